"""The reading side of a registry: names, releases, and package files.

Invariant: "not found" is said only when the registry's signed metadata says so. Whatever cannot be read, verified,
parsed or compared stops with another error, and no other registry is asked instead. Who signed a package is not
decided here. The spec is docs/spec/registry.md.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
import urllib.parse
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from visget.digest import Digest, digest_bytes
from visget.errors import NotFoundError, RegistryError, TrustError, UsageError
from visget.format.owner_chain import Role
from visget.names import PackageName
from visget.nearest import nearest
from visget.progress import SILENT, Progress
from visget.registry.contact import Anchor, Contact, known, meet
from visget.registry.names_list import NamesList, read_all
from visget.registry.protocol import NameEntry, Release, Releases, parse_releases
from visget.registry.transport import DirectoryTransport, HttpTransport, Transport, location_of_url
from visget.registry.tuf_client import Target
from visget.registry.tuf_names import (
    NAMES_TARGET,
    envelope_target,
    index_target,
    metadata_path,
    owner_target,
    package_target,
)
from visget.registry.tuf_reader import TufReader
from visget.registry.tuf_rules import ROOT_LIMIT
from visget.registry.tuf_state import Clock, TrustRoom

if TYPE_CHECKING:
    from visget.download import Patience
    from visget.network import NetworkOptions
    from visget.registry.tuf_client import View

_NO_ANCHOR = Anchor()
# The names that a misspelt one may have meant are worth so many bytes, and not more.
_SUGGESTION_BYTES = 1 << 20


def open_registry(
    location: str,
    *,
    network: NetworkOptions | None = None,
    patience: Patience | None = None,
    partial: Path | None = None,
    trust: Path | None = None,
    anchor: Anchor = _NO_ANCHOR,
    expected: Digest | None = None,
    mirrors: Sequence[str] = (),
    clock: Clock = time.time,
    progress: Progress = SILENT,
) -> Registry:
    """Return the registry at `location`; nothing is read yet.

    Args:
        location: a directory, a file:// URL of one, or an http(s):// URL.
        network: how to reach the network.
        patience: how long to wait for slow servers.
        partial: a directory for interrupted downloads; without one they start again.
        trust: the directory trust/ of a store; without one nothing is remembered.
        anchor: what the user says about its root, when visget does not know it yet.
        expected: which registry it must be when visget does not know it yet, as a lock file says.
        mirrors: other locations with copies of it.
        clock: gives the time.
        progress: told what the user should know.

    Raises:
        UsageError: the location is none of these.
    """

    def source(text: str) -> Transport:
        scheme = urllib.parse.urlsplit(text).scheme.lower() if "://" in text else ""
        if scheme in ("http", "https"):
            return HttpTransport(text, network, patience, partial)
        return DirectoryTransport(directory_of(text))

    return Registry(
        source(location), trust=trust, anchor=anchor, expected=expected,
        mirrors=[source(text) for text in mirrors], make_source=source,
        offline=network is not None and network.offline, clock=clock, progress=progress,
    )  # fmt: skip


def location_of(location: str) -> str:
    """Return how the registry at `location` is called in what is remembered: without credentials, in normal form.

    Raises:
        UsageError: it is no location of a registry.
    """
    if location.lower().startswith(("http://", "https://")):
        return location_of_url(location)
    return DirectoryTransport(directory_of(location)).location


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

    def __init__(
        self, source: Transport, *, trust: Path | None, anchor: Anchor, expected: Digest | None,
        mirrors: Sequence[Transport], make_source: Callable[[str], Transport], offline: bool, clock: Clock,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._source = source
        self._mirrors = list(mirrors)
        self._trust = trust
        self._anchor = anchor
        self._expected = expected
        self._make_source = make_source
        self._offline = offline
        self._clock = clock
        self._progress = progress
        self._forget: Callable[[], object] | None = None
        self._contact: Contact | None = None
        self._verified: TufReader | None = None
        self._names: tuple[NameEntry, ...] | None = None

    def __enter__(self) -> Registry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        for source in (self._source, *self._mirrors):
            source.close()
        if self._forget is not None:
            self._forget()

    # ---- who it is -----------------------------------------------------------------------------------
    @property
    def location(self) -> str:
        """Where this registry is, without credentials."""
        return self._source.location

    @property
    def identity(self) -> Digest:
        """Which registry this is, wherever it is: the digest of its first root, which pins and lockfiles call it.

        Raises:
            UsageError, TrustError, RegistryError, NetworkError: it is not known, and cannot be met.
        """
        return self._met().registration.identity

    @property
    def first_contact(self) -> bool:
        """Whether it was met just now and is trusted only because it is there."""
        return self._met().first

    @property
    def view(self) -> View:
        """Versions and expiry of its verified metadata, and the keys of its operators.

        Raises:
            TrustError, RegistryError, NetworkError: it cannot be verified.
        """
        reader = self._reader()
        if reader.view is None:
            reader.find()
        if reader.view is None:
            raise AssertionError("find() sets the view")
        return reader.view

    def operators(self) -> Role:
        """Return the registry's offline keys, which may hand on a name whose owner lost his.

        Raises:
            TrustError, RegistryError, NetworkError: the metadata cannot be verified.
        """
        view = self.view
        return Role(keys=view.operators, threshold=view.operators_threshold)

    # ---- what it has ---------------------------------------------------------------------------------
    def names(self) -> tuple[NameEntry, ...]:
        """Return what the registry says about every name.

        Raises:
            TrustError, RegistryError, NetworkError: it does not say.
        """
        if self._names is None:
            self._names = read_all(self._names_list(), self._small, self.location)
        return self._names

    def releases(self, name: PackageName) -> Releases:
        """Return the owners and versions of `name`.

        Raises:
            NotFoundError: the registry has no such package.
            TrustError, RegistryError, NetworkError: it does not say.
        """
        (target,) = self._find(index_target(name))
        if target is None:
            close = self._similar(name)
            raise NotFoundError(
                f"there is no package {name!r} in this registry",
                where=self.location,
                hint=f"did you mean {' or '.join(close)}?" if close else "`visget search WORD` finds packages",
            )
        data = self._small(target, f"the index of {name}")
        found = parse_releases(data, name, f"{self.location}, {target.name}")
        records = [
            self._small(
                Target(name=owner_target(name, number), digest=item.digest, size=item.size),
                f"owner record {number} of {name}",
            )
            for number, item in enumerate(found.records, 1)
        ]
        return dataclasses.replace(found, owner_records=tuple(records))

    def fetch(self, release: Release, *, progress: Progress = SILENT) -> tuple[bytes, bytes]:
        """Return the package file and the signature file of `release`; their digests are those of the index.

        Raises:
            TrustError: a file is not the one that the index names.
            RegistryError, NetworkError: a file cannot be had.
        """
        what = f"{release.name} {release.version}"
        envelope = self.fetch_envelope(release, progress=progress)
        data = self._reader().fetch(
            package_target(release.name, release.version), release.vis, release.size, what, progress=progress
        )
        return data, envelope

    def fetch_envelope(self, release: Release, *, progress: Progress = SILENT) -> bytes:
        """Return the signature file of `release`; its digest is that of the index.

        Raises:
            TrustError: it is not the one that the index names.
            RegistryError, NetworkError: it cannot be had.
        """
        return self._reader().fetch(
            envelope_target(release.name, release.version), release.dsse, release.dsse_size,
            f"the signature of {release.name} {release.version}", progress=progress,
        )  # fmt: skip

    # ---- how -----------------------------------------------------------------------------------------
    def _met(self) -> Contact:
        if self._contact is None:
            if self._trust is None:
                temporary = Path(tempfile.mkdtemp(prefix="visget-registry-"))
                self._forget = weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
                self._trust = temporary / "trust"
            room = TrustRoom(self._trust)
            found = None if self._anchor.given or self._anchor.again else known(self._source, room)
            mirrors = tuple(mirror.location for mirror in self._mirrors)
            anchor = self._anchor if self._anchor.given else Anchor(fingerprint=self._expected)
            self._contact = found or meet(self._source, room, anchor, mirrors)
            if self._contact.first:
                self._progress.note(
                    f"first use of the registry at {self.location}: trusting its root "
                    f"{self._contact.registration.identity} from now on"
                )
        return self._contact

    def _reader(self) -> TufReader:
        if self._verified is None:
            contact = self._met()
            remembered = [location for location in contact.registration.mirrors if not self._mirrors]
            self._mirrors += [self._make_source(location) for location in remembered]
            self._verified = TufReader(
                contact.state, [self._source, *self._mirrors], offline=self._offline, clock=self._clock,
                progress=self._progress,
            )  # fmt: skip
        return self._verified

    def _find(self, *names: str) -> list[Target | None]:
        reader = self._reader()
        try:
            return reader.find(*names)
        except TrustError as error:
            self._explain_another(error)
            raise

    def _explain_another(self, error: TrustError) -> None:
        """Say so when the reason is that another registry lies at this place now."""
        if self._offline and self._source.remote:
            return
        path = metadata_path("root", 1)
        try:
            first = self._source.read(path, limit=ROOT_LIMIT, what="the registry's first root")
        except RegistryError:
            return
        if first is not None and digest_bytes(first) != self.identity:
            raise TrustError(
                "another registry is at this place than the one that was trusted before",
                where=self.location,
                hint="if that is right, say so: visget registry add NAME "
                f"{self.location} --fingerprint {digest_bytes(first)}",
                details={"trusted": self.identity, "found": digest_bytes(first)},
            ) from error

    def _small(self, target: Target, what: str) -> bytes:
        return self._reader().small(target, what)

    def _names_list(self) -> NamesList:
        (target,) = self._find(NAMES_TARGET)
        if target is None:
            return NamesList(shards={})
        return NamesList.parse(self._small(target, "the list of names"), self.location)

    def _similar(self, name: PackageName) -> list[str]:
        try:
            if self._names is None and self._names_list().size > _SUGGESTION_BYTES:
                return []
            return nearest(name, [entry.name for entry in self.names()], n=3)
        except (RegistryError, TrustError):
            # What the name may have meant is a courtesy; that it does not exist is certain without it.
            return []
