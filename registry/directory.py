"""The writing side of a registry that is a directory: making one, and publishing into it.

Invariants: one publisher at a time; the files of a package are durable before its index, and the index before the
signed metadata that names it, so that a crash leaves the old state or the new one; what was published under a
version never changes; a name belongs to the key that claimed it. The spec is docs/spec/registry.md, section
"Publishing".
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from visget.digest import Digest, digest_bytes
from visget.errors import RegistryError, UsageError
from visget.files import LEFTOVER, translated
from visget.format.keys import SecretKey
from visget.format.package import Package
from visget.names import PackageName
from visget.registry.client import directory_of
from visget.registry.editing import editing
from visget.registry.operator import OperatorRoom, make_key, make_room, sibling
from visget.registry.owner_files import signed_anew, verify_for_publishing
from visget.registry.protocol import PACKAGE_LIMIT, ROOT_PATH, Release, Releases
from visget.registry.roots import Holders, make_root, make_targets, stage, staged
from visget.registry.tuf_keys import KeySigner
from visget.registry.tuf_names import envelope_target, package_target
from visget.registry.tuf_repository import Periods
from visget.registry.upkeep import apply_ready
from visget.registry.writing import OURS, check_registry, writing


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceremony:
    """Offline keys that were not made here: whose they are, and those that are at hand."""

    root: Holders
    """Who signs roots."""
    targets: Holders | None = None
    """Who signs the top role; None means a key that is made here."""
    at_hand: tuple[SecretKey, ...] = ()
    """Secret keys among them that can sign now."""


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


def init_registry(
    root: Path,
    *,
    keys: Path | None = None,
    ceremony: Ceremony | None = None,
    periods: Periods | None = None,
    now: float | None = None,
) -> Path:
    """Make the directory `root` an empty registry and return its path; a registry stays as it is.

    With a ceremony whose holders have not all signed, it becomes a registry when they have: upkeep.apply_staged().

    Args:
        root: the directory.
        keys: the operator's room, made if need be; None means one beside the directory.
        ceremony: whose offline keys sign; None means keys that are made here.
        periods: for how long signatures hold.
        now: the time, in seconds since the epoch.

    Raises:
        RegistryError: the directory holds something else, or cannot be written.
        UsageError: the room belongs to another registry.
        ResourceError: the disk is full or fails.
    """
    now = time.time() if now is None else now
    root = root.absolute()
    # Before the lock is taken, for that would leave a file in a directory that is none of ours.
    _refuse_strangers(root)
    with writing(root, make=True):
        if (root / ROOT_PATH).exists():
            check_registry(root)
            return root
        room = make_room(keys or sibling(root), root.resolve(), periods or Periods())
        if not any(item.role == "root" for item in staged(room.staged)):
            _stage_first(room, ceremony, now)
        apply_ready(root, room, now)
    return root


def _stage_first(room: OperatorRoom, ceremony: Ceremony | None, now: float) -> None:
    online = make_key(room.path / "online.key").public
    at_hand = list(ceremony.at_hand) if ceremony else []
    if ceremony is None:
        at_hand.append(own := make_key(room.path / "root.key"))
        root = Holders(keys=(own.public,))
    else:
        root = ceremony.root
    if ceremony is None or ceremony.targets is None:
        at_hand.append(own := make_key(room.path / "targets.key"))
        targets = Holders(keys=(own.public,))
    else:
        targets = ceremony.targets
    # The root comes last: what is staged with one is complete.
    top = make_targets(version=1, online=[online], periods=room.periods, now=now)
    stage(room.staged, top, _signers(targets, at_hand))
    first = make_root(version=1, root=root, targets=targets, online=[online], periods=room.periods, now=now)
    stage(room.staged, first, _signers(root, at_hand))


def _signers(holders: Holders, at_hand: Iterable[SecretKey]) -> list[KeySigner]:
    return [KeySigner(key) for key in at_hand if key.public in holders.keys]


def _refuse_strangers(root: Path) -> None:
    with translated("read the directory", root):
        if not root.is_dir() or (root / ROOT_PATH).exists():
            return
        names = [path.name for path in root.iterdir()]
    if strangers := sorted(name for name in names if name not in OURS and not LEFTOVER.match(name)):
        raise RegistryError(
            f"the directory is not empty ({strangers[0]!r} is in it), so it cannot become a registry",
            where=str(root),
            hint="choose a new or empty directory",
        )


def publish(
    root: Path,
    package: Package,
    envelope: bytes,
    *,
    keys: Path | None = None,
    claim: bytes | None = None,
    now: float | None = None,
) -> Published:
    """Put a signed package into the registry at `root`.

    Args:
        root: the registry's directory.
        package: the package.
        envelope: its signature file.
        keys: the operator's room; None means the one beside the directory.
        claim: the owner record that claims the name if nobody owns it yet.
        now: the time, in seconds since the epoch.

    Raises:
        TrustError: it is not signed well enough by the owner of its name.
        UsageError: the registry's keys are not here.
        RegistryError: there is no registry, nobody claims the name, other bytes were published under this version,
            the name is too similar to another, or the registry cannot be written.
        ResourceError: the disk is full or fails.
    """
    name = package.manifest.name
    if len(package.data) > PACKAGE_LIMIT:
        raise RegistryError(
            f"{name} has {len(package.data)} bytes; a registry takes at most {PACKAGE_LIMIT}", where=str(root)
        )
    with editing(root, keys=keys, now=now) as editor:
        old = editor.index(name)
        verified, owner, claimed = verify_for_publishing(editor, package, envelope, old, claim)
        if old is None:
            editor.check_similar(name)
        known, release = _release(package, envelope, old)
        if known is not None:
            release = signed_anew(known, package, envelope, editor.envelope(known), owner)
        # Also when nothing is new: files may be damaged.
        editor.change.write(package_target(name, release.version), package.data)
        if release.dsse == digest_bytes(envelope):
            editor.change.write(envelope_target(name, release.version), envelope)
        versions = (*(item for item in (old.versions if old else ()) if item is not known), release)
        new = Releases(
            name=name,
            owners=owner.keys,
            versions=tuple(sorted(versions, key=lambda item: item.version)),
            records=editor.put_records(name, [claimed]) if claimed is not None else old.records if old else (),
        )
        editor.put_index(new)
    return Published(
        name=name,
        version=str(release.version),
        digest=release.vis,
        signer=verified.signers[0],
        fresh=known is None,
        claimed=claimed is not None,
    )


def _release(package: Package, envelope: bytes, old: Releases | None) -> tuple[Release | None, Release]:
    """Return what was published under this version before, if anything, and what its index will say."""
    manifest = package.manifest
    known = next((item for item in old.versions if item.version == manifest.version), None) if old else None
    if known is None:
        return None, Release.of(
            manifest, vis=package.digest, size=len(package.data), dsse=digest_bytes(envelope), dsse_size=len(envelope)
        )
    if known.vis != package.digest:
        raise RegistryError(
            f"{known.name} {known.version} is already published with other content, and a published version never "
            f"changes: it has the digest {known.vis}, this file {package.digest}",
            hint="raise the version in visget.toml, build, and publish again",
            details={"published": known.vis, "offered": package.digest},
        )
    return known, known
