"""A small copy of a registry: some packages with everything that a client needs to verify them.

A bundle is a registry directory like any other, with the same signed metadata, of which it holds only the bins of
its packages. Invariant: nothing is signed here and nothing is believed: a finished bundle has been read as a client
with an empty memory reads it. The spec is docs/spec/bundle.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from visget.digest import Digest, digest_bytes, parse_digest
from visget.errors import RegistryError, TrustError
from visget.files import translated
from visget.format.signing import ENVELOPE_LIMIT
from visget.names import PackageName
from visget.progress import SILENT, Progress
from visget.registry.client import directory_of, open_registry
from visget.registry.contact import Anchor
from visget.registry.local import read_local
from visget.registry.protocol import INDEX_LIMIT, PACKAGE_LIMIT, ROOT_PATH, Release, encode_root, parse_releases
from visget.registry.transport import DirectoryTransport, HttpTransport, Transport
from visget.registry.tuf_client import ROTATIONS
from visget.registry.tuf_names import (
    METADATA,
    TARGETS,
    bin_of,
    envelope_target,
    index_target,
    metadata_path,
    owner_target,
    package_target,
    stored_path,
)
from visget.registry.tuf_rules import check_metadata, limit_of
from visget.registry.writing import NEW, write_batch

if TYPE_CHECKING:
    from visget.network import NetworkOptions

_ENVELOPES = 16
"""The most signature files of one version that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """What a bundle holds."""

    files: int
    """How many files."""
    size: int
    """Their bytes."""


def write_bundle(
    directory: Path,
    location: str,
    identity: Digest,
    releases: Sequence[Release],
    *,
    network: NetworkOptions | None = None,
    partial: Path | None = None,
    progress: Progress = SILENT,
) -> Bundled:
    """Copy `releases` and the metadata that vouches for them from the registry at `location` into a directory.

    Args:
        directory: an existing, empty directory.
        location: a directory or URL, with credentials if it needs them.
        identity: which registry it must be.
        releases: the packages.
        network: how to reach the network.
        partial: a directory for interrupted downloads.
        progress: told what is going on.

    Raises:
        TrustError: the registry is another one, or not in order.
        RegistryError, NetworkError: something of it cannot be had.
        ResourceError, CacheError: the directory cannot be written.
    """
    if location.lower().startswith(("http://", "https://")):
        source: Transport = HttpTransport(location, network, None, partial)
    else:
        source = DirectoryTransport(directory_of(location))
    try:
        files = dict(_copies(source, releases, progress))
    finally:
        source.close()
    with translated("write the bundle", directory):
        for room in (METADATA, TARGETS):
            (directory / room).mkdir()
    write_batch(directory, files)
    # It becomes a registry with its last file.
    write_batch(directory, {ROOT_PATH: encode_root()})
    with translated("write the bundle", directory):
        (directory / NEW).rmdir()
    _check(directory, identity, releases)
    return Bundled(files=len(files) + 1, size=sum(map(len, files.values())))


def _copies(source: Transport, releases: Sequence[Release], progress: Progress) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file, the way a client finds them but without verifying."""
    yield from _roots(source)
    path, data, timestamp = _metadata(source, "timestamp", None)
    yield path, data
    path, data, snapshot = _metadata(source, "snapshot", _version(timestamp, "snapshot"))
    yield path, data
    path, data, _ = _metadata(source, "targets", _version(snapshot, "targets"))
    yield path, data
    bins: dict[str, dict[str, Any]] = {}
    for role in sorted({bin_of(index_target(release.name)) for release in releases}):
        path, data, bins[role] = _metadata(source, role, _version(snapshot, role))
        yield path, data
    for number, release in enumerate(releases):
        progress.step("copying", f"{release.name} {release.version}", number, len(releases))
        yield from _package(source, release, bins[bin_of(index_target(release.name))], progress)


def _roots(source: Transport) -> Iterator[tuple[str, bytes]]:
    for version in range(1, ROTATIONS + 1):
        path = metadata_path("root", version)
        data = source.read(path, limit=limit_of("root"), what=f"root {version} of the registry")
        if data is None:
            return
        yield path, data


def _metadata(source: Transport, role: str, version: int | None) -> tuple[str, bytes, dict[str, Any]]:
    path = metadata_path(role, version)
    data = source.read(path, limit=limit_of(role), what=f"the registry's {role}")
    if data is None:
        raise _changed(source.shown(path))
    return path, data, check_metadata(data, role, where=source.shown(path))


def _version(signed: dict[str, Any], role: str) -> int:
    return int(signed["meta"][f"{role}.json"]["version"])


def _package(
    source: Transport, release: Release, signed: dict[str, Any], progress: Progress
) -> Iterator[tuple[str, bytes]]:
    name = index_target(release.name)
    entry = signed["targets"].get(name)
    if entry is None:
        raise _changed(source.location)
    path = stored_path(name, parse_digest(entry["hashes"]["sha256"]))
    index = source.read(path, limit=INDEX_LIMIT, what=f"the index of {release.name}")
    if index is None:
        raise _changed(source.shown(path))
    yield path, index
    found = parse_releases(index, release.name, source.shown(path))
    wanted = [
        (owner_target(release.name, number), item.digest, item.size) for number, item in enumerate(found.records, 1)
    ]
    wanted.append((package_target(release.name, release.version), release.vis, release.size))
    wanted.append((envelope_target(release.name, release.version), release.dsse, release.dsse_size))
    for target, digest, size in wanted:
        path = stored_path(target, digest)
        yield path, source.fetch(path, size=size, digest=digest, what=target, progress=progress)


def _changed(where: str) -> RegistryError:
    return RegistryError(
        "the registry changed while it was copied, or lacks a file", where=where, hint="run the same command again"
    )


def _check(directory: Path, identity: Digest, releases: Sequence[Release]) -> None:
    """Read the bundle as a client who knows nothing but which registry it comes from."""
    with tempfile.TemporaryDirectory(prefix="visget-bundle-") as memory:
        trust = Path(memory) / "trust"
        with open_registry(str(directory), trust=trust, anchor=Anchor(fingerprint=identity)) as bundle:
            for release in releases:
                if release not in bundle.releases(release.name).versions:
                    raise TrustError(
                        f"the registry says something else about {release.name} {release.version} now",
                        where=str(directory), hint="run the same command again",
                    )  # fmt: skip
                bundle.fetch(release)


def take(directory: Path, name: PackageName, version: Version, digest: Digest) -> tuple[bytes, list[bytes]] | None:
    """Return a package file from a registry's directory by its digest, and what may be its signature files.

    The registry's metadata is not looked at, so this is for callers who know digest and owner from elsewhere.

    Raises:
        ResourceError, CacheError: the directory cannot be read.
    """
    with translated("read the registry", directory):
        data = read_local(directory / stored_path(package_target(name, version), digest), PACKAGE_LIMIT)
        if data is None or digest_bytes(data) != digest:
            return None
        # Its digest is only in the metadata; there is one for each owner who has signed the version.
        found = sorted((directory / TARGETS).glob(f"*.{envelope_target(name, version)}"))[:_ENVELOPES]
        return data, [text for path in found if (text := read_local(path, ENVELOPE_LIMIT)) is not None]
