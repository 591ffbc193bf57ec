"""Housekeeping of the store: how much it holds, whether it is whole, and what nothing needs any longer.

Invariant: garbage collection removes nothing that an environment refers to and nothing under construction: it
reads the roots while it alone holds the store. An entry vanishes by one rename before its files are removed, so
that readers see it whole or not at all, and programs that have loaded a library keep it. The policy is
docs/spec/store.md, section "Garbage collection".
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from visget.cache.content import DamagedError, move_aside, read_checked, tidy, workspace
from visget.cache.entry import read_entry
from visget.cache.environment import Roots, roots_of
from visget.cache.store import ENVELOPE_LIMIT, PACKAGE_LIMIT, Store
from visget.digest import Digest, parse_digest
from visget.failpoint import failpoint
from visget.files import translated

MAX_AGE_SECONDS = 7 * 86400.0
"""What was not used for a week and is not installed goes; going back to a version of last week stays instant."""
_GC_WAIT_SECONDS = 10.0
# A time stamp this far in the future was written by a clock that was wrong.
_FUTURE_SECONDS = 86400.0


class Item(NamedTuple):
    """One thing in the store that can be removed by itself."""

    kind: str
    """"packages", "native" or "quarantine"."""
    path: Path
    """Where it is."""
    size: int
    """Its bytes."""
    used: float
    """When it was last used, in seconds since the epoch."""
    needed: bool
    """Whether an environment refers to it."""


class Usage(NamedTuple):
    """How much one part of the store holds."""

    kind: str
    """"packages", "native", "quarantine" or "temporary"."""
    entries: int
    """How many."""
    size: int
    """Their bytes."""


class GcReport(NamedTuple):
    """What garbage collection did, or would do."""

    removed: tuple[Item, ...]
    """What went."""
    kept_bytes: int
    """The bytes that stay."""
    over_bytes: int
    """By how much what is installed exceeds the size cap."""

    @property
    def freed_bytes(self) -> int:
        """The bytes of what went."""
        return sum(item.size for item in self.removed)


class Damage(NamedTuple):
    """One damaged thing that check_all() found."""

    kind: str
    """"packages" or "native"."""
    name: str
    """Its file name or key."""
    reason: str
    """What is wrong."""
    moved: bool
    """Whether it is in quarantine/ now."""


class CheckReport(NamedTuple):
    """What check_all() found."""

    checked: int
    """How many packages, envelopes and artifacts were looked at."""
    damaged: tuple[Damage, ...]
    """What is wrong with them."""


def measure(store: Store) -> tuple[Usage, ...]:
    """Return how much each part of the store holds."""
    rooms = {
        "packages": [path for shard in _entries(store.root / "packages" / "v1") for path in _entries(shard)],
        "native": _entries(store.root / "native" / "v1"),
        "quarantine": _entries(store.root / "quarantine"),
        "temporary": _entries(store.root / "tmp"),
    }
    return tuple(Usage(kind, len(paths), sum(map(_size, paths))) for kind, paths in rooms.items())


def check_all(store: Store) -> CheckReport:
    """Compare every package and artifact with its digests and move what is damaged to quarantine/.

    Raises:
        CacheError, ResourceError: something could not be read for a reason outside it.
    """
    damaged = []
    checked = 0
    with store.in_use(), translated("check the store", store.root):
        tidy(store.root)
        for shard in _entries(store.root / "packages" / "v1"):
            for path in _entries(shard):
                checked += 1
                try:
                    _check_file(path)
                except DamagedError as error:
                    moved = move_aside(store.root, path) is not None
                    damaged.append(Damage("packages", path.name, str(error), moved))
        for path in _entries(store.root / "native" / "v1"):
            checked += 1
            with store.lock(f"native-{path.name}"):
                try:
                    read_entry(path, parse_digest(path.name), "full", store.secret())
                except (DamagedError, ValueError) as error:
                    moved = move_aside(store.root, path) is not None
                    damaged.append(Damage("native", path.name, str(error), moved))
    return CheckReport(checked, tuple(damaged))


def collect(
    store: Store,
    roots: Callable[[], Roots] | None = None,
    *,
    max_age: float = MAX_AGE_SECONDS,
    max_bytes: int | None = None,
    dry_run: bool = False,
    wait: float = _GC_WAIT_SECONDS,
) -> GcReport:
    """Remove what no environment refers to and nobody used for `max_age` seconds; then, above the cap, the rest.

    Args:
        store: the store.
        roots: what must stay; asked while nobody can install. None means what the environments refer to.
        max_age: seconds since the last use; 0 removes everything that is not needed.
        max_bytes: the size cap. Above it, what is not needed goes too, the longest unused first.
        dry_run: only report.
        wait: seconds to wait for installations under way.

    Raises:
        CacheError: another process works on the store for longer than `wait`.
    """
    with store.alone(wait), translated("collect garbage", store.root):
        needed = with_needs(store, roots_of(store) if roots is None else roots())
        failpoint("gc.roots-read")
        items = _items(store, needed)
        now = store.clock()
        going, over = plan(items, now=now, max_age=max_age, max_bytes=max_bytes)
        if not dry_run:
            for item in items:
                if item.used > now + _FUTURE_SECONDS:
                    with contextlib.suppress(OSError):
                        os.utime(item.path, (now, now), follow_symlinks=False)
            with workspace(store.root) as work:
                for number, item in enumerate(going):
                    failpoint("gc.before-rename")
                    item.path.rename(work / str(number))
                failpoint("gc.renamed")
            failpoint("gc.before-locks")
            _forget_locks(store)
        kept = sum(item.size for item in items) - sum(item.size for item in going)
        return GcReport(tuple(going), kept, over)


def with_needs(store: Store, roots: Roots) -> Roots:
    """Return `roots` with every artifact that theirs are linked with, directly or not."""
    found: set[Digest] = set()
    pending = list(roots.natives)
    while pending:
        key = pending.pop()
        if key not in found:
            found.add(key)
            # What is damaged names nothing that could be relied on: it is compiled again, and its needs with it.
            with contextlib.suppress(DamagedError, OSError):
                entry = read_entry(store.native_path(key), key, "quick", store.secret())
                pending += [need.key for need in entry.needs] if entry else []
    return roots._replace(natives=frozenset(found))


def plan(
    items: Iterable[Item], *, now: float, max_age: float, max_bytes: int | None
) -> tuple[list[Item], int]:
    """Return the items that go, and by how many bytes what is needed exceeds the cap; a pure function."""
    items = list(items)
    # A last use in the future says nothing, so that item counts as just used.
    free = sorted((item for item in items if not item.needed), key=lambda item: (min(item.used, now), item.path))
    going = [item for item in free if now - min(item.used, now) >= max_age]
    if max_bytes is None:
        return going, 0
    left = sum(item.size for item in items) - sum(item.size for item in going)
    for item in free[len(going) :]:
        if left <= max_bytes:
            break
        going.append(item)
        left -= item.size
    return going, max(0, left - max_bytes)


def _items(store: Store, needed: Roots) -> list[Item]:
    found = []
    for shard in _entries(store.root / "packages" / "v1"):
        for path in _entries(shard):
            # Name and envelope of a package both begin with its digest.
            keep = path.name.partition(".")[0] in needed.packages
            found.append(_item("packages", path, keep))
    found += [_item("native", path, path.name in needed.natives) for path in _entries(store.root / "native" / "v1")]
    found += [_item("quarantine", path, False) for path in _entries(store.root / "quarantine")]
    return found


def _item(kind: str, path: Path, needed: bool) -> Item:
    return Item(kind, path, _size(path), path.lstat().st_mtime, needed)


def _entries(directory: Path) -> list[Path]:
    if directory.is_symlink() or not directory.is_dir():
        return []
    return sorted(directory.iterdir())


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        facts = path.lstat()
        if stat.S_ISDIR(facts.st_mode):
            return sum(_size(item) for item in _entries(path))
        return facts.st_size // max(1, facts.st_nlink)  # a file with several names takes its space once
    return 0


def _check_file(path: Path) -> None:
    parts = path.name.split(".")
    try:
        digests = [parse_digest(part) for part in parts[:-1]]
    except ValueError:
        digests = []
    if parts[-1] == "vis" and len(digests) == 1:
        read_checked(path, digests[0], PACKAGE_LIMIT)
    elif parts[-1] == "dsse" and len(digests) == 2:
        read_checked(path, digests[1], ENVELOPE_LIMIT)
    else:
        raise DamagedError("it does not belong here")


def _forget_locks(store: Store) -> None:
    """Remove the lock files of artifacts that are gone; nobody can hold one, for that takes the store's lock."""
    prefix = "native-"
    for path in (store.root / "locks").glob(f"{prefix}*"):
        if not store.native_path(Digest(path.name.removeprefix(prefix))).exists():
            path.unlink(missing_ok=True)
