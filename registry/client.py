"""The reading side of a registry: names, releases, and package files.

Invariant: "not found" is said only when the registry itself says so: its list of names was read and lacks the
name. Whatever cannot be read, parsed or compared stops with another error, and no other registry is asked
instead. Who signed a package is not decided here. The spec is docs/spec/registry.md.
"""

from __future__ import annotations

import difflib
import urllib.parse
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from visget.errors import NotFoundError, RegistryError, UsageError
from visget.names import PackageName
from visget.progress import SILENT, Progress
from visget.registry.protocol import (
    INDEX_LIMIT,
    NAMES_LIMIT,
    NAMES_PATH,
    ROOT_LIMIT,
    ROOT_PATH,
    NameEntry,
    Release,
    Releases,
    envelope_path,
    index_path,
    package_path,
    parse_names,
    parse_releases,
    parse_root,
)
from visget.registry.transport import DirectoryTransport, HttpTransport, Transport

if TYPE_CHECKING:
    from visget.download import Patience
    from visget.network import NetworkOptions


def open_registry(
    location: str,
    *,
    network: NetworkOptions | None = None,
    patience: Patience | None = None,
    partial: Path | None = None,
) -> Registry:
    """Return the registry at `location`; nothing is read yet.

    Args:
        location: a directory, a file:// URL of one, or an http(s):// URL.
        network: how to reach the network.
        patience: how long to wait for slow servers.
        partial: a directory for interrupted downloads; without one they start again.

    Raises:
        UsageError: the location is none of these.
    """
    scheme = urllib.parse.urlsplit(location).scheme.lower() if "://" in location else ""
    if scheme in ("http", "https"):
        return Registry(HttpTransport(location, network, patience, partial))
    return Registry(DirectoryTransport(directory_of(location)))


def directory_of(location: str) -> Path:
    """Return the directory that `location`, a path or a file:// URL, names.

    Raises:
        UsageError: it is a URL of another kind.
    """
    if "://" not in location:
        return Path(location).expanduser()
    parts = urllib.parse.urlsplit(location)
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{location.partition('?')[0]!r} is not the location of a registry",
            hint="give a directory, or a URL that begins with https://, http:// or file:///",
        )
    return Path(urllib.parse.unquote(parts.path))


class Registry:
    """A registry that is being read; open it with open_registry()."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._known = False
        self._names: tuple[NameEntry, ...] | None = None

    def __enter__(self) -> Registry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._transport.close()

    @property
    def identity(self) -> str:
        """Which registry this is, without credentials: what pins and receipts call it."""
        return self._transport.identity

    def names(self) -> tuple[NameEntry, ...]:
        """Return what the registry says about every name.

        Raises:
            RegistryError, NetworkError: it does not say.
        """
        if self._names is None:
            self._check_root()
            data = self._transport.read(NAMES_PATH, limit=NAMES_LIMIT, what="the list of names")
            where = self._transport.shown(NAMES_PATH)
            if data is None:
                raise RegistryError("the registry has lost its list of names", where=where)
            self._names = parse_names(data, where)
        return self._names

    def releases(self, name: PackageName) -> Releases:
        """Return the owners and versions of `name`.

        Raises:
            NotFoundError: the registry has no such package.
            RegistryError, NetworkError: it does not say.
        """
        self._check_root()
        path = index_path(name)
        data = self._transport.read(path, limit=INDEX_LIMIT, what=f"the index of {name}")
        if data is not None:
            return parse_releases(data, name, self._transport.shown(path))
        known = [entry.name for entry in self.names()]
        if name in known:
            raise RegistryError(f"the registry lists {name} but has lost its index", where=self._transport.shown(path))
        close = difflib.get_close_matches(name, known, n=3)
        raise NotFoundError(
            f"there is no package {name!r} in this registry",
            where=self.identity,
            hint=f"did you mean {' or '.join(close)}?" if close else "`visget search WORD` finds packages",
        )

    def fetch(self, release: Release, *, progress: Progress = SILENT) -> tuple[bytes, bytes]:
        """Return the package file and the signature file of `release`; their digests are those of the index.

        Raises:
            TrustError: a file is not the one that the index names.
            RegistryError, NetworkError: a file cannot be had.
        """
        what = f"{release.name} {release.version}"
        envelope = self._transport.fetch(
            envelope_path(release), size=release.dsse_size, digest=release.dsse, what=f"the signature of {what}",
            progress=progress,
        )  # fmt: skip
        data = self._transport.fetch(
            package_path(release), size=release.size, digest=release.vis, what=what, progress=progress
        )
        return data, envelope

    def _check_root(self) -> None:
        if self._known:
            return
        data = self._transport.read(ROOT_PATH, limit=ROOT_LIMIT, what="the registry")
        where = self._transport.shown(ROOT_PATH)
        if data is None:
            raise RegistryError(
                "there is no registry here",
                where=where,
                hint="check the location; `visget registry init DIR` makes one",
            )
        parse_root(data, where)
        self._known = True
