"""The operator's room: the keys of a registry and what its operator remembers, outside the served directory.

::

    registry.json   which directory it belongs to, for how long signatures hold, and what was signed last
    root.json       the newest root: what the operator trusts when he reads his own directory
    online.key      signs bins, snapshot and timestamp
    targets.key     signs the top role; present when it was made here, and may be moved away
    root.key        signs roots; the same
    staged/         roots and top roles that wait for signatures

Invariant: a key file is complete or absent, readable by its owner only, and never replaced. The spec is
docs/spec/registry.md, section "Operator's room".
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from visget.digest import digest_bytes
from visget.errors import FormatError, TrustError, UsageError
from visget.failpoint import failpoint
from visget.files import atomic_write, fsync_dir, remove_leftovers, translated
from visget.format.keyfile import read_key, write_key
from visget.format.keys import SecretKey
from visget.format.strictjson import Reader, dumps, loads
from visget.registry.local import read_local
from visget.registry.tuf_keys import KeySigner, key_id
from visget.registry.tuf_names import metadata_path
from visget.registry.tuf_repository import Periods, Seen
from visget.registry.tuf_rules import ROOT_LIMIT

_FORMAT = 1
_SMALL = 64 << 10
_DAYS_LIMIT = 3650


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRoom:
    """An operator's room; made by make_room() or open_room()."""

    path: Path
    """Where it is."""
    directory: Path
    """The registry's directory."""
    periods: Periods
    """For how long signatures hold."""
    seen: Seen
    """What was signed last from here."""
    identity: str | None = None
    """Which registry it is: the digest of its first root; None until it has one."""

    @property
    def staged(self) -> Path:
        """The directory of documents that wait for signatures."""
        return self.path / "staged"

    def root(self) -> bytes:
        """Return the newest root.

        Raises:
            UsageError: the registry has none yet: its first root waits for signatures.
        """
        data = self.root_or_none()
        if data is None:
            raise UsageError(
                "this registry has no root yet: its first one waits for signatures",
                where=str(self.staged),
                hint="visget registry sign FILE --key KEY, by each holder; then visget registry apply DIR",
            )
        return data

    def root_or_none(self) -> bytes | None:
        """Return the newest root, or None when the registry has none yet."""
        with translated("read the operator's root", self.path):
            return read_local(self.path / "root.json", ROOT_LIMIT)

    def keep_root(self, data: bytes) -> None:
        """Make `data` the root that the operator trusts."""
        with translated("keep the registry's root", self.path):
            atomic_write(self.path / "root.json", data, 0o600)

    def online_keys(self) -> list[KeySigner]:
        """Return the online keys that are here: the current one, and the next one during a rotation."""
        paths = [self.path / name for name in ("online.key", "online.next.key")]
        return [KeySigner(read_key(path)) for path in paths if path.exists()]

    def offline(self, role: str) -> KeySigner | None:
        """Return the key of `role` ("root" or "targets") that was made here, unless it was moved away."""
        path = self.path / f"{role}.key"
        return KeySigner(read_key(path)) if path.exists() else None

    def remember(self, seen: Seen, identity: str | None = None) -> OperatorRoom:
        """Remember what was signed, and which registry it is."""
        new = replace(self, seen=seen, identity=identity or self.identity)
        if new != self:
            _write(new)
        return new


def sibling(directory: Path) -> Path:
    """Return where the room of a registry is when nobody said otherwise: beside it, and not in it."""
    return directory.with_name(f"{directory.name}.operator")


def make_room(path: Path, directory: Path, periods: Periods) -> OperatorRoom:
    """Make the room at `path`, or return the one that is there for the same directory.

    Raises:
        UsageError: it belongs to another registry, or would be served with the registry.
        ResourceError, CacheError: it cannot be written.
    """
    if path.resolve().is_relative_to(directory.resolve()):
        raise UsageError(
            "the registry's keys must not lie in the directory that is served", where=str(path), hint="choose another"
        )
    if (path / "registry.json").exists():
        room = open_room(path)
        if room.directory != directory:
            raise UsageError(
                f"there are keys of another registry, {room.directory}",
                where=str(path),
                hint="choose another --name for this one",
            )
        return room
    with translated("make the room of the registry's keys", path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    room = OperatorRoom(path=path, directory=directory, periods=periods, seen=Seen())
    _write(room)
    return room


def open_room(path: Path) -> OperatorRoom:
    """Return the room at `path`.

    Raises:
        UsageError: there is none.
        TrustError: its record is damaged.
    """
    record = path / "registry.json"
    with translated("read the operator's record", record):
        data = read_local(record, _SMALL)
    if data is None:
        raise UsageError(
            "the registry's keys are not here",
            where=str(path),
            hint="only who made the registry, or has its keys, can publish into it",
        )
    try:
        reader = Reader(loads(data, what="the operator's record", limit=_SMALL), "registry")
        reader.integer("format", _FORMAT, _FORMAT)
        days, seen = reader.object("days"), reader.object("seen")
        return OperatorRoom(
            path=path,
            directory=Path(reader.line("directory")),
            periods=Periods(
                timestamp=days.integer("timestamp", 1, _DAYS_LIMIT),
                snapshot=days.integer("snapshot", 1, _DAYS_LIMIT),
                bins=days.integer("bins", 1, _DAYS_LIMIT),
                offline=days.integer("offline", 1, _DAYS_LIMIT),
            ),
            seen=Seen(timestamp=seen.integer("timestamp"), snapshot=seen.integer("snapshot")),
            identity=reader.nullable_line("identity", 64),
        )
    except FormatError as error:
        raise TrustError(f"the operator's record is damaged: {error.message}", where=str(record)) from error


def find_room(rooms: Path, directory: Path) -> Path:
    """Return the room of the registry in `directory`, which may have been moved, or be a copy.

    Args:
        rooms: the directory that holds an operator's rooms.
        directory: the registry's directory.

    Returns:
        The one of `rooms` that belongs to the directory, or to the registry in it; else the one beside it.
    """
    beside = sibling(directory.resolve())
    if (beside / "registry.json").exists():
        return beside
    found = []
    for record in sorted(rooms.glob("*/registry.json")):
        with contextlib.suppress(UsageError, TrustError):
            found.append(open_room(record.parent))
    first = read_local(directory / metadata_path("root", 1), ROOT_LIMIT)
    identity = digest_bytes(first) if first is not None else None
    same = [room for room in found if room.identity == identity and identity is not None]
    here = [room for room in found if room.directory == directory.resolve()]
    return (same or here)[0].path if same or here else beside


def make_key(path: Path) -> SecretKey:
    """Return the key at `path`, made now unless it is there.

    Raises:
        TrustError, FormatError: what is there is not a key of ours alone.
        ResourceError, CacheError: it cannot be written.
    """
    if path.exists():
        return read_key(path)
    key = SecretKey.generate()
    half = path.with_name(f".{path.name}.new")
    with translated("make a key", path):
        # What an interrupted call left half-written: it was never used.
        half.unlink(missing_ok=True)
        write_key(half, key)
        half.rename(path)
        fsync_dir(path.parent)
    return key


def retire(path: Path, key: SecretKey) -> None:
    """Move the file of a key that signs nothing any more out of the way."""
    with translated("retire a key", path):
        path.rename(path.with_name(f"{path.stem}.{key_id(key.public)[:16]}.retired"))
        fsync_dir(path.parent)


def _write(room: OperatorRoom) -> None:
    periods, seen = room.periods, room.seen
    body: dict[str, Any] = {
        "format": _FORMAT,
        "directory": str(room.directory),
        "days": {
            "timestamp": periods.timestamp,
            "snapshot": periods.snapshot,
            "bins": periods.bins,
            "offline": periods.offline,
        },
        "identity": room.identity,
        "seen": {"timestamp": seen.timestamp, "snapshot": seen.snapshot},
    }
    with translated("write the operator's record", room.path):
        remove_leftovers(room.path)
        failpoint("registry.operator.before-record")
        atomic_write(room.path / "registry.json", dumps(body), 0o600)

