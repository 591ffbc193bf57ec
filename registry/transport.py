"""Reading the files of a registry, from a directory or from any static web server.

Invariant: read() returns None only when the file is certainly not there; an answer that merely could not be had is
an error, so that "not found" is never guessed. Everything read has a size cap. The rules are
docs/spec/registry.md, section "Reading".
"""

from __future__ import annotations

import os
import urllib.parse
from pathlib import Path
from typing import Protocol

from visget.cache.content import DamagedError, read_file
from visget.digest import Digest, digest_bytes
from visget.download import Downloader, HttpError, Patience
from visget.errors import CacheError, RegistryError, TrustError, UsageError
from visget.files import locked, translated
from visget.network import NetworkOptions, shown_url
from visget.progress import Progress


class Transport(Protocol):
    """Access to the files of one registry."""

    location: str
    """Where the registry is, without credentials: the same text for the same place."""
    remote: bool
    """Whether reading needs the network."""

    def shown(self, path: str) -> str:
        """Return where the file `path` is, for messages."""

    def read(self, path: str, *, limit: int, what: str) -> bytes | None:
        """Return a document, or None when there is none.

        Raises:
            RegistryError, NetworkError: whether there is one cannot be said, or it is too large.
        """

    def fetch(self, path: str, *, size: int, digest: Digest, what: str, progress: Progress) -> bytes:
        """Return the file `path`, which must have exactly this size and digest.

        Raises:
            TrustError: it has another digest.
            RegistryError, NetworkError: it cannot be had.
        """

    def close(self) -> None:
        """Let go of connections."""


class DirectoryTransport:
    """A registry in a directory of this machine."""

    remote = False

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.location = str(self.root)

    def shown(self, path: str) -> str:
        """Return where the file `path` is, for messages."""
        return str(self.root / path)

    def read(self, path: str, *, limit: int, what: str) -> bytes | None:
        """Return a document, or None when there is none."""
        file = self.root / path
        try:
            with translated(f"read {what}", file):
                return read_file(file, limit)
        except DamagedError as error:
            raise RegistryError(f"cannot read {what}: {error}", where=str(file)) from error
        except CacheError as error:
            raise RegistryError(error.message, where=str(file), hint="ask its owner for permission to read") from error

    def fetch(self, path: str, *, size: int, digest: Digest, what: str, progress: Progress) -> bytes:
        """Return the file `path`, which must have exactly this size and digest."""
        data = self.read(path, limit=size, what=what)
        if data is None:
            raise _missing(what, self.shown(path))
        check_body(data, size, digest, what, self.shown(path))
        return data

    def close(self) -> None:
        """Do nothing: there is no connection."""


class HttpTransport:
    """A registry behind a web server."""

    remote = True

    def __init__(
        self, url: str, options: NetworkOptions | None, patience: Patience | None, partial: Path | None
    ) -> None:
        self.location = location_of_url(url)
        self._base = url.rstrip("/")
        self._downloader = Downloader(options, patience)
        self._partial = partial

    def shown(self, path: str) -> str:
        """Return where the file `path` is, for messages."""
        return f"{self.location}/{path}"

    def read(self, path: str, *, limit: int, what: str) -> bytes | None:
        """Return a document, or None when the server says that it has none."""
        try:
            return self._downloader.read(f"{self._base}/{path}", limit=limit, what=what).body
        except HttpError as error:
            if error.status in (404, 410):
                return None
            raise

    def fetch(self, path: str, *, size: int, digest: Digest, what: str, progress: Progress) -> bytes:
        """Return the file `path`, which must have exactly this size and digest."""
        url = f"{self._base}/{path}"
        try:
            if self._partial is None:
                data = self._downloader.read(url, limit=size, what=what, progress=progress).body
                check_body(data, size, digest, what, self.shown(path))
                return data
            # Few locks, for their files stay; two downloads rarely meet in one.
            with locked(self._partial / f"{digest[:2]}.lock"):
                return self._resumed(url, self._partial / f"{digest}.part", path, size, digest, what, progress)
        except HttpError as error:
            if error.status in (404, 410):
                raise _missing(what, self.shown(path)) from error
            raise

    def _resumed(
        self, url: str, part: Path, path: str, size: int, digest: Digest, what: str, progress: Progress
    ) -> bytes:
        continued = part.exists()
        while True:
            self._downloader.save(url, part, limit=size, what=what, progress=progress)
            with translated("read a download", part):
                data = part.read_bytes()
                part.unlink()
            try:
                check_body(data, size, digest, what, self.shown(path))
                return data
            except TrustError:
                if not continued:
                    raise
                # What lay there from an earlier try may be to blame; the second time it is the server.
                continued = False

    def close(self) -> None:
        """Let go of connections."""
        self._downloader.close()


def check_body(data: bytes, size: int, digest: Digest, what: str, where: str) -> None:
    """Refuse a file that is not the one that the index names.

    Raises:
        TrustError: size or digest differ.
    """
    actual = digest_bytes(data)
    if len(data) != size or actual != digest:
        raise TrustError(
            f"{what} is not the file that the registry's index names: it has {len(data)} bytes and the digest "
            f"{actual}, not {size} bytes and {digest}",
            where=where,
            hint="somebody or something changed it on the way or on the server; nothing of it was used",
            details={"expected": digest, "actual": actual},
        )


def _missing(what: str, where: str) -> RegistryError:
    return RegistryError(
        f"the registry lists {what} but does not have its file",
        where=where,
        hint="tell the registry's operator; another version may be complete",
    )


def location_of_url(url: str) -> str:
    """Return `url` in normal form and without credentials.

    Raises:
        UsageError: it cannot be the address of a registry.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.query or parts.fragment:
        raise UsageError(
            f"{shown_url(url)} cannot be the address of a registry", hint="give http(s)://HOST/PATH, without ? and #"
        )
    scheme = parts.scheme.lower()
    place = f"[{host}]" if ":" in host else host
    if port not in (None, {"http": 80, "https": 443}[scheme]):
        place = f"{place}:{port}"
    return f"{scheme}://{place}{parts.path.rstrip('/')}"
