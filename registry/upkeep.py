"""Keeping a registry's signatures valid: renewal, rotation of the online key, ceremonies, and old files.

Invariant: at every moment, also after a crash, the registry is in a state that clients accept, and what was begun
is completed by the same command again. The spec is docs/spec/registry.md, sections "Renewal" and "Ceremony".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from visget.digest import digest_bytes
from visget.errors import RegistryError, UsageError
from visget.failpoint import failpoint
from visget.files import atomic_write, fsync_dir, remove_leftovers, translated
from visget.registry.local import read_local
from visget.registry.operator import OperatorRoom, make_key, open_room, retire
from visget.registry.protocol import ROOT_PATH, encode_root
from visget.registry.pruning import prune
from visget.registry.roots import (
    Holders,
    Staged,
    accept,
    holders_of,
    make_root,
    make_targets,
    missing,
    parse_root,
    stage,
    staged,
)
from visget.registry.tuf_client import expiry_of
from visget.registry.tuf_keys import KeySigner
from visget.registry.tuf_names import METADATA, TARGETS, metadata_path
from visget.registry.tuf_repository import Change, Repository, write_first
from visget.registry.tuf_rules import TIMESTAMP_LIMIT
from visget.registry.writing import writing

_DAY = 86400.0
_WARN_OFFLINE = 60 * _DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What was done to the signatures of a registry."""

    renewed: tuple[str, ...]
    """Which kinds were signed anew."""
    expires: float
    """When the first signature expires, in seconds since the epoch."""
    waiting: tuple[str, ...]
    """What waits for offline signatures, in words."""
    removed: int
    """How many old files were removed."""


def due(expires: float, days: int, now: float) -> bool:
    """Tell whether half of a period is over."""
    return now >= expires - days * _DAY / 2


def due_kinds(repository: Repository, room: OperatorRoom, now: float) -> dict[str, bool]:
    """Tell of each kind of metadata that the online key signs whether it is to be signed anew."""
    periods = {"bins": room.periods.bins, "snapshot": room.periods.snapshot, "timestamp": room.periods.timestamp}
    expiries = repository.expiries()
    return {kind: due(expiries[kind], days, now) for kind, days in periods.items()}


def timestamp_due(root: Path, keys: Path, now: float) -> bool:
    """Tell cheaply whether refresh() has something to do soon."""
    expires = expiry_of(read_local(root / metadata_path("timestamp", None), TIMESTAMP_LIMIT))
    return expires is not None and due(expires, open_room(keys).periods.timestamp, now)


def refresh(
    root: Path, keys: Path, *, force: bool = False, restored: bool = False, now: float | None = None
) -> Upkeep:
    """Sign anew whatever has passed half of its time, and remove old files.

    Args:
        root: the registry's directory.
        keys: its operator's room.
        force: sign everything anew.
        restored: the directory was restored from a copy on purpose: go on from there.
        now: the time, in seconds since the epoch.

    Raises:
        UsageError: the keys are not here.
        TrustError, RegistryError: the registry is not in order.
        ResourceError: the disk is full or fails.
    """
    now = time.time() if now is None else now
    with writing(root):
        room = open_room(keys)
        _renew_offline(root, room, force, now)
        apply_ready(root, room, now)
        room = open_room(keys)
        repository = open_repository(root, room, restored=restored)
        wanted = {kind: force or restored or yes for kind, yes in due_kinds(repository, room, now).items()}
        change = Change(repository, signer_of(room), periods=room.periods, now=now, seen=room.seen)
        change.renew(wanted)
        room = room.remember(change.commit())
        repository = Repository(root, room.root())
        with translated("remove old files of the registry", root):
            failpoint("registry.refresh.before-prune")
        removed = prune(repository, now)
        return Upkeep(
            renewed=tuple(kind for kind, yes in wanted.items() if yes),
            expires=min(repository.expiries().values()),
            waiting=tuple(_waiting(room)),
            removed=removed,
        )


def open_repository(root: Path, room: OperatorRoom, *, restored: bool = False) -> Repository:
    """Return the registry's state, which must not be older than what was signed last.

    Raises:
        RegistryError: it is.
        TrustError: it was not signed by this registry.
    """
    repository = Repository(root, room.root())
    found = repository.seen()
    if not restored and (found.timestamp < room.seen.timestamp or found.snapshot < room.seen.snapshot):
        raise RegistryError(
            f"the directory holds an older state than was signed last (timestamp {found.timestamp}, "
            f"not {room.seen.timestamp}): somebody put back an old copy",
            where=str(root),
            hint=f"if that was you, and on purpose: visget registry refresh {root} --restored",
        )
    return repository


def signer_of(room: OperatorRoom) -> KeySigner:
    """Return the online key that the root in force names.

    Raises:
        UsageError: it is not here.
    """
    accepted = set(parse_root(room.root()).roles["timestamp"].keyids)
    candidates = room.online_keys()
    for signer in candidates:
        if signer.key_id in accepted:
            return signer
    raise UsageError(
        "the registry's online key is not here" if not candidates else "the online key here was replaced elsewhere",
        where=str(room.path),
        hint="publish where the registry was made, or bring its room here",
    )


# ---- documents that offline keys sign --------------------------------------------------------------------


def rotate_online(root: Path, keys: Path, *, now: float | None = None) -> list[str]:
    """Replace the online key, as after a suspicion that somebody has it; return what waits for signatures.

    Raises:
        UsageError: a rotation or renewal is under way.
        TrustError, RegistryError: the registry is not in order.
    """
    now = time.time() if now is None else now
    with writing(root):
        room = open_room(keys)
        if not any(item.role == "targets" and item.version > 1 for item in staged(room.staged)):
            if not _half_staged(room):
                _refuse_staged(room)
            _stage_rotation(room, Repository(root, room.root()).targets.signed.version, now)
        apply_ready(root, room, now)
        return list(_waiting(open_room(keys)))


def _half_staged(room: OperatorRoom) -> bool:
    """Tell whether a killed rotation has staged roots and not yet the top role, which comes last."""
    documents, key = staged(room.staged), room.path / "online.next.key"
    if not documents or not key.exists() or any(item.role != "root" for item in documents):
        return False
    new = make_key(key).public
    return all(new in holders_of(parse_root(item.data), "timestamp").keys for item in documents)


def _stage_rotation(room: OperatorRoom, targets_version: int, now: float) -> None:
    old = parse_root(room.root())
    new = make_key(room.path / "online.next.key").public
    root, targets = holders_of(old, "root"), holders_of(old, "targets")
    signers = _here(room, "root")
    # Both keys hold for a moment, so that there is none at which clients accept neither.
    for step, online in enumerate(([*holders_of(old, "timestamp").keys, new], [new]), 1):
        document = make_root(
            version=old.version + step, root=root, targets=targets, online=online, periods=room.periods, now=now
        )
        stage(room.staged, document, signers)
    top = make_targets(version=targets_version + 1, online=[new], periods=room.periods, now=now)
    stage(room.staged, top, _here(room, "targets"))


def _renew_offline(root_directory: Path, room: OperatorRoom, force: bool, now: float) -> None:
    """Stage a new root or top role when half of its time is over, or soon before its end when its keys are away."""
    if staged(room.staged):
        return
    repository = Repository(root_directory, room.root())
    expiries, periods = repository.expiries(), room.periods
    old = repository.signed_root
    root, targets = holders_of(old, "root"), holders_of(old, "targets")
    online = holders_of(old, "timestamp").keys
    for kind in ("root", "targets"):
        here = bool(_here(room, kind))
        late = due(expiries[kind], periods.offline, now) if here else now >= expiries[kind] - _WARN_OFFLINE
        if not late and not (force and here):
            continue
        document = (
            make_root(version=old.version + 1, root=root, targets=targets, online=online, periods=periods, now=now)
            if kind == "root"
            else make_targets(
                version=repository.targets.signed.version + 1, online=online, periods=periods, now=now
            )
        )
        stage(room.staged, document, _here(room, kind))


def rotate_root(root: Path, keys: Path, holders: Holders, *, now: float | None = None) -> list[str]:
    """Hand the root role to other keys; return what waits for signatures, of the old holders and the new.

    Raises:
        UsageError: a rotation or renewal is under way.
        TrustError, RegistryError: the registry is not in order.
    """
    now = time.time() if now is None else now
    with writing(root):
        room = open_room(keys)
        _refuse_staged(room)
        old = parse_root(room.root())
        document = make_root(
            version=old.version + 1, root=holders, targets=holders_of(old, "targets"),
            online=holders_of(old, "timestamp").keys, periods=room.periods, now=now,
        )  # fmt: skip
        stage(room.staged, document, _here(room, "root"))
        apply_ready(root, room, now)
        return list(_waiting(open_room(keys)))


def apply_staged(root: Path, keys: Path, *, now: float | None = None) -> None:
    """Put the staged documents in force.

    Raises:
        UsageError: nothing is staged, or signatures are missing.
        TrustError, RegistryError: the registry is not in order.
    """
    now = time.time() if now is None else now
    with writing(root, make=True):
        room = open_room(keys)
        if not staged(room.staged):
            raise UsageError("no document waits for signatures", where=str(room.staged))
        if lacking := list(_waiting(room)):
            raise UsageError(
                "; ".join(lacking),
                where=str(room.staged),
                hint="each holder: visget registry sign FILE --key KEY",
            )
        apply_ready(root, room, now)


def finish_staged(root: Path, keys: Path, *, now: float | None = None) -> list[str]:
    """Put the staged documents in force if every signature is there; return what they wait for.

    Raises:
        TrustError, RegistryError: the registry is not in order.
    """
    with writing(root):
        apply_ready(root, open_room(keys), time.time() if now is None else now)
        return list(_waiting(open_room(keys)))


def waiting(keys: Path) -> list[str]:
    """Return in words which signatures staged documents wait for."""
    return list(_waiting(open_room(keys)))


def _refuse_staged(room: OperatorRoom) -> None:
    if staged(room.staged):
        raise UsageError(
            "documents wait for signatures already",
            where=str(room.staged),
            hint=f"finish with them first: visget registry apply {room.directory}",
        )


def _waiting(room: OperatorRoom) -> Iterator[str]:
    before = room.root_or_none()
    for document in staged(room.staged):
        yield from missing(document, before)
        if document.role == "root":
            before = document.data


def apply_ready(root: Path, room: OperatorRoom, now: float) -> None:
    """Put what is staged in force when every signature is there; otherwise leave it."""
    if any(True for _ in _waiting(room)):
        return
    documents = staged(room.staged)
    roots = [item for item in documents if item.role == "root"]
    tops = [item for item in documents if item.role == "targets"]
    if not documents:
        return
    if not (root / ROOT_PATH).exists():
        begin(root, room, roots[0], tops[0], now)
        roots, tops = [], []
    # The first root admits what the top role and everything below it are signed with; the last excludes the rest.
    for document in roots[:1]:
        _install_root(root, room, document)
    for document in tops:
        _install_top(root, room, document, now)
    for document in roots[1:]:
        _install_root(root, room, document)
    _swap_keys(room)
    for document in documents:
        with translated("remove a staged document", document.path):
            document.path.unlink(missing_ok=True)
    with translated("tidy the operator's room", room.path):
        for place in (room.staged, room.path):
            remove_leftovers(place)


def _install_root(root: Path, room: OperatorRoom, document: Staged) -> None:
    current = room.root()
    if document.version > parse_root(current).version:
        accept(document, current)
        path = root / metadata_path("root", document.version)
        with translated("write the registry's root", path):
            atomic_write(path, document.data)
        room.keep_root(document.data)


def _install_top(root: Path, room: OperatorRoom, document: Staged, now: float) -> None:
    repository = open_repository(root, room)
    if document.version > repository.targets.signed.version:
        accept(document, room.root())
        change = Change(repository, _newest(room), periods=room.periods, now=now, seen=room.seen)
        change.renew({"bins": True, "snapshot": True, "timestamp": True}, document.metadata)
        open_room(room.path).remember(change.commit())


def _newest(room: OperatorRoom) -> KeySigner:
    """Return the online key to sign with when the bins are delegated anew: the next one, if there is one."""
    accepted = set(parse_root(room.root()).roles["timestamp"].keyids)
    usable = [signer for signer in room.online_keys() if signer.key_id in accepted]
    return usable[-1] if usable else signer_of(room)


def _swap_keys(room: OperatorRoom) -> None:
    following = room.path / "online.next.key"
    if not following.exists():
        return
    key = make_key(following)
    accepted = holders_of(parse_root(room.root()), "timestamp").keys
    if accepted == (key.public,):
        current = room.path / "online.key"
        if current.exists():
            retire(current, make_key(current))
        with translated("replace the online key", current):
            following.rename(current)
            fsync_dir(room.path)


def _here(room: OperatorRoom, role: str) -> list[KeySigner]:
    found = room.offline(role)
    return [] if found is None else [found]


def begin(root: Path, room: OperatorRoom, first: Staged, top: Staged, now: float) -> None:
    """Make an empty registry of its first root and top role; the file that makes it one comes last."""
    accept(first, None)
    accept(top, first.data)
    room.keep_root(first.data)
    with translated("write the registry", root):
        for name in (METADATA, TARGETS):
            (root / name).mkdir(exist_ok=True)
        atomic_write(root / metadata_path("root", 1), first.data)
    if not (root / metadata_path("timestamp", None)).exists():
        seen = write_first(root, top.metadata, signer_of(room), periods=room.periods, now=now)
        room.remember(seen, digest_bytes(first.data))
    with translated("write the registry", root):
        atomic_write(root / ROOT_PATH, encode_root())
