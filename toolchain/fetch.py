"""Fetching the archives of a package's sources, once, into a cache that is keyed by digest.

Invariant: a file lies in the cache under its digest, or not at all; what is found there is hashed again before use, so
neither an interrupted download nor a damaged disk can change what is built.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from visget.digest import Digest, digest_file
from visget.download import Downloader, HttpError, NetworkOptions, shown_url
from visget.errors import NetworkError, NotFoundError, RegistryError, TrustError, VisgetError
from visget.files import fsync_dir, locked, translated
from visget.progress import Progress
from visget.toolchain.debian import Place, Tarball, dsc_name, find_places, parse_dsc
from visget.toolchain.origin import DebianSource, PypiSource, Source, UrlSource
from visget.toolchain.python_index import PipSettings, find_sdist, local_path, read_pip_settings

__all__ = ["Archive", "NetworkOptions", "fetch_archives"]

ARCHIVE_LIMIT = 1 << 30
_DSC_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A fetched archive, checked."""

    path: Path
    """The file in the cache; its name is its digest."""
    directory: str = ""
    """Where it belongs in the source tree; empty for the tree itself."""


def fetch_archives(source: Source, *, cache: Path, network: NetworkOptions, progress: Progress) -> tuple[Archive, ...]:
    """Return the archives of `source`, from the cache when they are there.

    Args:
        source: what to fetch.
        cache: a directory of downloads; it is created when it is missing.
        network: how to reach the network.
        progress: told of what arrives.

    Raises:
        TrustError: what arrived is not what visget.toml names.
        NotFoundError: no server has it.
        NetworkError: no server could be reached in time, or visget is offline and the cache lacks it.
    """
    if isinstance(source, DebianSource):
        return _fetch_debian(source, cache, network, progress)
    if isinstance(source, UrlSource):
        url = source.url

        def fetch(part: Path) -> None:
            with Downloader(network) as downloader:
                downloader.save(url, part, limit=ARCHIVE_LIMIT, what=shown_url(url), progress=progress)

        return (Archive(path=_cached(cache, source.sha256, shown_url(url), fetch)),)
    return (Archive(path=_fetch_pypi(source, cache, network, progress)),)


def _fetch_pypi(source: PypiSource, cache: Path, network: NetworkOptions, progress: Progress) -> Path:
    what = f"the source distribution of {source.name} {source.version}"

    def fetch(part: Path) -> None:
        _refuse_offline(network, what)
        settings = read_pip_settings() if network.python_index is None else PipSettings(indexes=(network.python_index,))
        options = dataclasses.replace(
            network, ca_bundle=network.ca_bundle or settings.cert, proxy=network.proxy or settings.proxy
        )
        with Downloader(options) as downloader:
            progress.step("finding", what)
            file = find_sdist(
                source.name, source.version, source.sha256, indexes=settings.indexes, downloader=downloader
            )
            if file.url.startswith("file:"):
                with translated("copy a source distribution", part):
                    shutil.copyfile(local_path(file.url), part)
            else:
                downloader.save(file.url, part, limit=ARCHIVE_LIMIT, what=file.name, progress=progress)

    return _cached(cache, source.sha256, what, fetch)


def _fetch_debian(
    source: DebianSource, cache: Path, network: NetworkOptions, progress: Progress
) -> tuple[Archive, ...]:
    name = dsc_name(source.name, source.version)
    finder = _Finder(source.name, network, progress)
    with finder:
        dsc = _cached(cache, source.sha256, name, lambda part: finder.save(name, part, _DSC_LIMIT))
        tarballs = parse_dsc(dsc.read_bytes(), source=source.name, version=source.version)

        def fetched(tarball: Tarball) -> Path:
            return _cached(
                cache, tarball.sha256, tarball.name, lambda part: finder.save(tarball.name, part, tarball.size)
            )

        return tuple(Archive(path=fetched(tarball), directory=tarball.directory) for tarball in tarballs)


class _Finder:
    """Looks for the files of one Debian source package, first where the last one was."""

    def __init__(self, source: str, network: NetworkOptions, progress: Progress) -> None:
        self._source = source
        self._network = network
        self._progress = progress
        self._downloader = Downloader(network)
        self._places: list[Place] = []

    def __enter__(self) -> _Finder:
        return self

    def __exit__(self, *exc: object) -> None:
        self._downloader.close()

    def save(self, file: str, part: Path, limit: int) -> None:
        """Fetch `file` into `part` from the first place that has it."""
        _refuse_offline(self._network, file)
        if not self._places:
            self._places = list(find_places(self._network.debian_mirror))
        failure: VisgetError | None = None
        for place in self._places:
            try:
                url = place.url(self._source, file)
                self._downloader.save(url, part, limit=limit, what=file, progress=self._progress)
            except HttpError as error:
                if error.status not in (404, 410):
                    failure = error
            except RegistryError as error:
                failure = error
            else:
                self._places.remove(place)
                self._places.insert(0, place)
                return
        if failure is not None:
            raise failure
        raise NotFoundError(
            f"no Debian mirror of this machine has {file}",
            hint="mirrors keep current versions only: name one that `apt-cache showsrc` shows, or set debian-mirror "
            "to an archive of old versions",
        )


def _refuse_offline(network: NetworkOptions, what: str) -> None:
    if network.offline:
        raise NetworkError(
            f"cannot fetch {what}: visget is offline, and it was not fetched before", hint="run without --offline"
        )


def _cached(cache: Path, digest: Digest, what: str, fetch: Callable[[Path], None]) -> Path:
    """Return the file with `digest`, calling `fetch` with the path of a part file when the cache lacks it."""
    path = cache / "sources" / digest
    part = path.with_name(f"{digest}.part")
    with translated("open the cache of sources", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        if path.is_file():
            if digest_file(path) == digest:
                return path
            path.unlink()  # damaged: a miss
        fetch(part)
        actual = digest_file(part)
        if actual != digest:
            part.unlink()
            _refuse(what, digest, actual)
        with translated("keep a download", path):
            part.chmod(0o444)
            part.replace(path)
            fsync_dir(path.parent)
    return path


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with locked(path.parent / "locks" / f"{path.name}.lock"):
        yield


def _refuse(what: str, expected: Digest, actual: Digest) -> NoReturn:
    raise TrustError(
        f"{what} is not the file that visget.toml names: expected SHA-256 {expected}, got {actual}",
        hint="it was changed on its way or at its server; compare with the author's announcement before you change "
        "source.sha256",
        details={"expected": expected, "actual": actual},
    )
