"""The writing side of a registry that is a directory: making one, and publishing into it.

Invariants: one publisher at a time; the files of a package are durable before its index names them, and the index
before the list of all names does, so that a crash leaves the old state or the new one; what was published under a
version never changes; a name belongs to the key that claimed it. The spec is docs/spec/registry.md, section
"Publishing".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from visget.cache.content import DamagedError, read_checked
from visget.digest import Digest, digest_bytes
from visget.errors import CacheError, RegistryError, TrustError, UsageError
from visget.files import atomic_write, fsync_dir, locked, translated
from visget.format.keys import PublicKey, parse_key_id
from visget.format.package import Package, VerifiedPackage, verify_package
from visget.format.signing import envelope_key_ids
from visget.names import PackageName, parse_name
from visget.registry.client import directory_of
from visget.registry.protocol import (
    INDEX_LIMIT,
    NAMES_LIMIT,
    NAMES_PATH,
    PACKAGE_LIMIT,
    ROOT_LIMIT,
    ROOT_PATH,
    NameEntry,
    Release,
    Releases,
    encode_names,
    encode_releases,
    encode_root,
    entry_of,
    envelope_path,
    index_path,
    package_path,
    parse_names,
    parse_releases,
    parse_root,
)
from visget.registry.transport import DirectoryTransport

_LOCK = ".lock"
_OURS = frozenset([ROOT_PATH, NAMES_PATH, "blobs", "index", _LOCK])
# What atomic_write() leaves when it is killed.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp\Z")
# Characters that are hard to tell apart are the same one here (the rule of PyPI's "ultranormalize").
_ALIKE = str.maketrans({"l": "1", "i": "1", "o": "0", "-": None, ".": None, "_": None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What publishing did."""

    name: PackageName
    """The package."""
    version: str
    """Its version."""
    digest: Digest
    """The digest of the package file."""
    signer: str
    """The id of the owner's key that signed it."""
    fresh: bool
    """False when exactly this package had been published before, and nothing changed."""
    claimed: bool
    """Whether the name was free and belongs to the signer now."""

    def as_dict(self) -> dict[str, object]:
        """Return it as the JSON object that ``--json`` prints."""
        return {
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "signer": self.signer,
            "fresh": self.fresh,
            "claimed": self.claimed,
        }


def registry_directory(location: str) -> Path:
    """Return the directory of the registry at `location`, for publishing.

    Raises:
        UsageError: it is a web address, which can only be read.
    """
    if location.lower().startswith(("http://", "https://")):
        raise UsageError(
            "a registry behind a web server can only be read",
            where=location,
            hint="publish into the directory that the server serves: --registry DIR",
        )
    return directory_of(location)


def init_registry(root: Path) -> Path:
    """Make the directory `root` an empty registry and return its path; a registry stays as it is.

    Raises:
        RegistryError: the directory holds something else, or cannot be written.
        ResourceError: the disk is full or fails.
    """
    root = root.absolute()
    # Before the lock is taken, for that would leave a file in a directory that is none of ours.
    _refuse_strangers(root)
    with _writing(root, make=True):
        if (root / ROOT_PATH).exists():
            _check_root(root)
        for room in ("blobs", "index"):
            (root / room).mkdir(exist_ok=True)
        _sweep(root)
        # The file that makes it a registry comes last: until then `init` can be repeated.
        if not (root / NAMES_PATH).exists():
            _write_names(root)
        if not (root / ROOT_PATH).exists():
            atomic_write(root / ROOT_PATH, encode_root())
        fsync_dir(root)
    return root


def _refuse_strangers(root: Path) -> None:
    with translated("read the directory", root):
        if not root.is_dir() or (root / ROOT_PATH).exists():
            return
        names = [path.name for path in root.iterdir()]
    if strangers := sorted(name for name in names if name not in _OURS and not _LEFTOVER.match(name)):
        raise RegistryError(
            f"the directory is not empty ({strangers[0]!r} is in it), so it cannot become a registry",
            where=str(root),
            hint="choose a new or empty directory",
        )


def publish(root: Path, package: Package, envelope: bytes) -> Published:
    """Put a signed package into the registry at `root`.

    Args:
        root: the registry's directory.
        package: the package.
        envelope: its signature file.

    Raises:
        TrustError: it is not signed, or not by an owner of its name.
        RegistryError: there is no registry, other bytes were published under this version, the name is too similar
            to another, or the registry cannot be written.
        ResourceError: the disk is full or fails.
    """
    name = package.manifest.name
    if len(package.data) > PACKAGE_LIMIT:
        raise RegistryError(
            f"{name} has {len(package.data)} bytes; a registry takes at most {PACKAGE_LIMIT}", where=str(root)
        )
    with _writing(root):
        _sweep(root)
        old = _read_index(root, name)
        verified = _verified(package, envelope, old)
        owners = old.owners if old else tuple(map(parse_key_id, verified.signers))
        if old is None:
            _check_similar(root, name)
        known = next((item for item in old.versions if item.version == package.manifest.version), None) if old else None
        if known is not None and known.vis != package.digest:
            raise _immutable(known, package)
        release = known or Release.of(
            package.manifest,
            vis=package.digest,
            size=len(package.data),
            dsse=digest_bytes(envelope),
            dsse_size=len(envelope),
        )
        # Also when nothing is new: files may be damaged, and an earlier publisher may have died before the last step.
        _write_blob(root / package_path(release), package.data, release.vis)
        if release.dsse == digest_bytes(envelope):
            _write_blob(root / envelope_path(release), envelope, release.dsse)
        versions = (*(item for item in (old.versions if old else ()) if item is not known), release)
        new = Releases(name=name, owners=owners, versions=tuple(sorted(versions, key=lambda item: item.version)))
        if new != old:
            atomic_write(root / index_path(name), encode_releases(new))
        _write_names(root, new)
    return Published(
        name=name,
        version=str(release.version),
        digest=release.vis,
        signer=verified.signers[0],
        fresh=known is None,
        claimed=old is None,
    )


@contextlib.contextmanager
def _writing(root: Path, *, make: bool = False) -> Iterator[None]:
    """Hold the registry's lock and translate what the file system refuses."""
    try:
        with translated("write the registry", root):
            if make:
                root.mkdir(parents=True, exist_ok=True)
            else:
                _check_root(root)
            # Everybody who may write in the directory may take the lock: locked() alone would make it private.
            (root / _LOCK).touch(mode=0o666)
            with locked(root / _LOCK):
                yield
    except CacheError as error:
        raise RegistryError(
            error.message, where=error.where, hint="publishing needs permission to write in the registry's directory"
        ) from error


def _check_root(root: Path) -> None:
    data = DirectoryTransport(root).read(ROOT_PATH, limit=ROOT_LIMIT, what="the registry")
    if data is None:
        raise RegistryError(
            "there is no registry here", where=str(root), hint=f"make one: visget registry init {root}"
        )
    parse_root(data, str(root / ROOT_PATH))


def _read_index(root: Path, name: PackageName) -> Releases | None:
    path = index_path(name)
    data = DirectoryTransport(root).read(path, limit=INDEX_LIMIT, what=f"the index of {name}")
    return None if data is None else parse_releases(data, name, str(root / path))


def _verified(package: Package, envelope: bytes, old: Releases | None) -> VerifiedPackage:
    """Return the package as verified by the owners of its name; a free name is claimed by the first who signed."""
    named = envelope_key_ids(envelope)
    if old is None:
        first: list[PublicKey] = [parse_key_id(named[0])] if named else []
        return verify_package(package, envelope, first)
    try:
        return verify_package(package, envelope, old.owners)
    except TrustError as error:
        if not named or any(owner.id in named for owner in old.owners):
            raise
        raise TrustError(
            f"the name {old.name} belongs to another key: the package is signed by {', '.join(named)}, its owner is "
            f"{', '.join(owner.id for owner in old.owners)}",
            where=old.name,
            hint="sign with the owner's key (--key), or choose another name",
            details={"signed_by": list(named), "owners": [owner.id for owner in old.owners]},
        ) from error


def _check_similar(root: Path, name: PackageName) -> None:
    plain = name.translate(_ALIKE)
    for other in _names(root):
        if other != name and other.translate(_ALIKE) == plain:
            raise RegistryError(
                f"the name {name!r} is too similar to {other!r}, which exists: they are easily taken for each other",
                hint="choose a name that cannot be mistaken",
            )


def _names(root: Path) -> list[PackageName]:
    """Return every name that has an index; other files there are none of ours."""
    names = []
    for path in sorted((root / "index").glob("*.json")):
        with contextlib.suppress(UsageError):
            names.append(parse_name(path.stem))
    return names


def _write_names(root: Path, changed: Releases | None = None) -> None:
    """Make the list of all names agree with the indexes.

    Args:
        root: the registry's directory.
        changed: the only index that may have changed; None, or a list that cannot be read, means all of them.
    """
    entries: dict[PackageName, NameEntry] = {}
    data = None
    if changed is not None:
        with contextlib.suppress(RegistryError):
            data = DirectoryTransport(root).read(NAMES_PATH, limit=NAMES_LIMIT, what="the list of names")
            if data is not None:
                entries = {entry.name: entry for entry in parse_names(data, str(root / NAMES_PATH))}
        entries[changed.name] = entry_of(changed)
    for name in _names(root):
        # Also names that another publisher died before listing.
        if name not in entries and (index := _read_index(root, name)) is not None and index.versions:
            entries[name] = entry_of(index)
    if (new := encode_names(entries.values())) != data:
        atomic_write(root / NAMES_PATH, new)


def _write_blob(path: Path, data: bytes, digest: Digest) -> None:
    """Write a file whose name is its digest, unless it is there; what a crash left of it is replaced."""
    with contextlib.suppress(DamagedError):
        if read_checked(path, digest, len(data)) is not None:
            return
    atomic_write(path, data, 0o444)


def _immutable(known: Release, package: Package) -> RegistryError:
    return RegistryError(
        f"{known.name} {known.version} is already published with other content, and a published version never "
        f"changes: it has the digest {known.vis}, this file {package.digest}",
        hint="raise the version in visget.toml, build, and publish again",
        details={"published": known.vis, "offered": package.digest},
    )


def _sweep(root: Path) -> None:
    """Remove what a killed publisher left half-written; the lock says that none is alive."""
    for room in (root, root / "blobs", root / "index"):
        for path in room.glob(".*.tmp"):
            if _LEFTOVER.match(path.name):
                path.unlink(missing_ok=True)
