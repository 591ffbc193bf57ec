"""The same client for any TUF repository, as the public conformance suite for TUF clients drives it.

Names of targets and kinds of keys are free here; everything else (the lock, the download, strict JSON, keys that
count twice, durable files) is as in visget's own registries. Invariant: a file appears in the target directory only
after its length and hashes were those of signed metadata.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from pathlib import Path

from visget.errors import NotFoundError, RegistryError, TrustError
from visget.files import atomic_write, locked, translated
from visget.registry.transport import HttpTransport
from visget.registry.tuf_client import Fetcher, Session, check_root, open_session


def start(metadata: Path, root: Path) -> None:
    """Trust the root in the file `root` for the client whose metadata is kept in the directory `metadata`.

    Raises:
        TrustError: it is no root, or not signed by itself.
    """
    with translated("read the trusted root", root):
        data = root.read_bytes()
    check_root(data, None, where=str(root), strict=False)
    with translated("keep the trusted root", metadata):
        atomic_write(metadata / "root.json", data)


def refresh(metadata: Path, url: str) -> None:
    """Bring the metadata up to date from the repository at `url`.

    Raises:
        TrustError, RegistryError, NetworkError: it cannot be verified, or cannot be had.
    """
    _run(metadata, url, lambda session: None)


def download(metadata: Path, url: str, targets: str, directory: Path, names: list[str]) -> None:
    """Fetch targets into `directory` unless they are there.

    Raises:
        NotFoundError: there is no such target.
        TrustError, RegistryError, NetworkError: it cannot be verified, or cannot be had.
    """
    source = HttpTransport(targets, None, None, None)

    def work(session: Session) -> None:
        for name in names:
            _download(session, source, directory, name)

    _run(metadata, url, work)


def _download(session: Session, source: HttpTransport, directory: Path, name: str) -> None:
    found = session.find_any(name)
    if found is None:
        raise NotFoundError(f"there is no target {name!r}", where=source.location)
    path = directory / urllib.parse.quote(name, "")
    with translated("read a target", path):
        if path.exists() and session.fits(found, path.read_bytes()):
            return
    place = session.place_of(found)
    data = source.read(place, limit=found.length, what=name)
    if data is None:
        raise RegistryError(f"the repository does not have {name!r}", where=source.shown(place))
    if not session.fits(found, data):
        raise TrustError(f"{name!r} is not the file that the metadata names", where=source.shown(place))
    with translated("write a target", path):
        atomic_write(path, data)


def _run(metadata: Path, url: str, work: Callable[[Session], None]) -> None:
    source = HttpTransport(url, None, None, None)
    fetcher = Fetcher(
        lambda name, limit: source.read(name, limit=limit, what=name),
        metadata,
        settled=False,
        strict=False,
        where=source.location,
    )
    with locked(metadata / ".lock"):
        with translated("read the trusted root", metadata):
            # A link to one of the verified roots, which this client made.
            bootstrap = (metadata / "root.json").read_bytes()
        with open_session(metadata, fetcher, bootstrap=bootstrap, where=source.location, strict=False) as session:
            session.refresh()
            work(session)
