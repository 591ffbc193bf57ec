"""The store: packages by their digest, native artifacts by their action key, each complete or absent.

Invariants: an entry appears by one rename after all its bytes are durable, and is never changed afterwards; what
is damaged is a miss with a reason (logged to "visget.cache") and moves to quarantine/, where it can be looked at;
two builders of one key build it once. The store knows bytes and keys, not trust: what it returns was not verified.
Layout, lock order and points of durability are docs/spec/store.md.

Safe for many processes on one machine; on a network file system as far as its flock works between machines.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from visget.cache.content import (
    DamagedError,
    guard_directory,
    guard_lock,
    move_aside,
    read_checked,
    remove_tree,
    seal,
    tidy,
    workspace,
)
from visget.cache.entry import Check, NativeEntry, Need, read_entry, write_entry
from visget.cache.storekey import ensure_key, read_key
from visget.digest import Digest, digest_bytes, parse_digest
from visget.errors import CacheError, ResourceError
from visget.failpoint import failpoint
from visget.files import fsync_dir, locked, translated, write_new

if TYPE_CHECKING:
    from visget.cache.environment import Roots
    from visget.cache.trim import CheckReport, GcReport, Usage

PACKAGE_LIMIT = 1 << 30
"""No package file in the store is larger; a longer file is damage."""
ENVELOPE_LIMIT = 1 << 20
_ROOMS = ("packages", "packages/v1", "native", "native/v1", "env", "env/v1", "locks", "tmp", "quarantine", "trust")
# The stores that this thread of control keeps in use.
_IN_USE: ContextVar[frozenset[Path]] = ContextVar("_IN_USE", default=frozenset())
# The last use is written at most hourly, so that loading a library rarely writes to the disk.
_TOUCH_SECONDS = 3600.0
# Compiling a large package takes minutes; whoever waits for it would otherwise compile it himself.
_BUILD_WAIT_SECONDS = 3600.0


class Store:
    """A directory that keeps packages and native artifacts; open it with Store.open()."""

    def __init__(self, root: Path, clock: Callable[[], float], network: bool) -> None:
        self.root = root
        self.clock = clock
        self._locks_hold = network

    @classmethod
    def open(cls, root: Path, *, clock: Callable[[], float] = time.time, network: bool = False) -> Store:
        """Open the store at `root`, and create it when there is none.

        Args:
            root: its directory.
            clock: what time it is.
            network: whether it may be written to on a network file system; reading takes no locks.

        Raises:
            TrustError: somebody else owns it or could write to it.
            CacheError: it cannot be created.
        """
        with translated("open the store", root):
            # The user may keep the store behind a link of his own; inside it there are none.
            real = Path(os.path.realpath(root))
            real.parent.mkdir(parents=True, exist_ok=True)
        guard_directory(real)
        for room in _ROOMS:
            guard_directory(real / room)
        return cls(real, clock, network)

    # ---- locks ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, name: str, *, shared: bool = False, timeout: float = 600.0) -> Iterator[None]:
        """Hold the lock `name` of this store; their order is that of the spec.

        Raises:
            CacheError: others hold it, or the store lies on a network file system and that was not allowed.
        """
        if not self._locks_hold:
            from visget.cache.filesystem import refuse_network  # readers need no locks, and are to be quick

            refuse_network(self.root)
            self._locks_hold = True
        path = self.root / "locks" / name
        guard_lock(path)
        with locked(path, shared=shared, timeout=timeout):
            yield

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep garbage collection away for as long as several steps belong together, such as an installation."""
        held = _IN_USE.get()
        if self.root in held:
            # To queue behind a collector that waits for ourselves would help neither.
            yield
            return
        with contextlib.ExitStack() as stack:
            with self.lock("gate", shared=True):
                stack.enter_context(self.lock("store", shared=True))
            token = _IN_USE.set(held | {self.root})
            try:
                yield
            finally:
                _IN_USE.reset(token)

    @contextlib.contextmanager
    def alone(self, wait: float) -> Iterator[None]:
        """Hold the store while nobody else writes; newcomers queue, so that a busy store cannot starve the caller.

        Raises:
            CacheError: those who were there first took longer than `wait` seconds.
        """
        with self.lock("gate", timeout=wait), self.lock("store", timeout=wait):
            yield

    # ---- packages ---------------------------------------------------------------------------------------

    def put_package(self, data: bytes) -> Digest:
        """Keep the package file `data` and return its digest.

        Raises:
            ResourceError: the disk is full or fails.
            CacheError: the store cannot be written.
        """
        digest = digest_bytes(data)
        self._put(self.package_path(digest), data, digest)
        return digest

    def package(self, digest: Digest) -> bytes | None:
        """Return the package file with this digest, or None when it is absent or damaged."""
        return self._get(self.package_path(digest), digest, PACKAGE_LIMIT)

    def put_envelope(self, package: Digest, data: bytes) -> None:
        """Keep `data` as the signature envelope of `package`, in place of an earlier one.

        Raises:
            ResourceError: the disk is full or fails.
            CacheError: the store cannot be written.
        """
        digest = digest_bytes(data)
        path = self.package_path(package).with_name(f"{package}.{digest}.dsse")
        self._put(path, data, digest)
        with self.in_use(), translated("replace a signature envelope", path):
            failpoint("store.envelope.before-cleanup")
            for other in self._envelopes(package):
                if other != path:
                    other.unlink(missing_ok=True)

    def envelope(self, package: Digest) -> bytes | None:
        """Return the signature envelope of `package`, or None when it is absent or damaged."""
        for path in self._envelopes(package):
            digest = path.name.split(".")[1]
            if (data := self._get(path, Digest(digest), ENVELOPE_LIMIT)) is not None:
                return data
        return None

    def packages(self) -> Iterator[tuple[Digest, Path]]:
        """Give digest and path of every package file, unchecked."""
        for shard in sorted((self.root / "packages" / "v1").glob("[0-9a-f][0-9a-f]")):
            for path in sorted(shard.glob("*.vis")):
                with contextlib.suppress(ValueError):
                    yield parse_digest(path.stem), path

    def remove_package(self, digest: Digest) -> None:
        """Remove a package file and its envelope, if they are there."""
        with self.in_use(), translated("remove a package", self.root):
            for path in (self.package_path(digest), *self._envelopes(digest)):
                path.unlink(missing_ok=True)

    def package_path(self, digest: Digest) -> Path:
        """Return where the package file with this digest is or would be."""
        return self.root / "packages" / "v1" / digest[:2] / f"{digest}.vis"

    def package_files(self, digest: Digest) -> list[Path]:
        """Return the files of a package: itself and its signatures."""
        return [self.package_path(digest), *self._envelopes(digest)]

    def _envelopes(self, package: Digest) -> list[Path]:
        """Return the envelopes of `package`, the newest first; there are two only after a crash."""
        found = self.package_path(package).parent.glob(f"{package}.*.dsse")
        return sorted(found, key=lambda path: (-path.lstat().st_mtime_ns, path.name))

    def _put(self, path: Path, data: bytes, digest: Digest) -> None:
        with translated("store a package", path), self.in_use():
            guard_directory(path.parent)
            if self._get(path, digest, len(data)) is not None:
                tidy(self.root)
                return
            with workspace(self.root) as work:
                write_new(work / "content", data, 0o444)
                failpoint("store.package.written")
                # A file or a link is replaced in one step: it may be the good one of another process by now.
                if path.is_dir() and not path.is_symlink():
                    move_aside(self.root, path)
                (work / "content").replace(path)
                failpoint("store.package.renamed")
                fsync_dir(path.parent)

    def _get(self, path: Path, digest: Digest, limit: int) -> bytes | None:
        try:
            data = read_checked(path, digest, limit)
        except DamagedError as error:
            return self._move_damaged(path, digest, limit, error)
        except OSError as error:
            _log(f"{path.name} cannot be read now: {error.strerror}")
            return None
        if data is not None:
            self._touch(path)
        return data

    def _move_damaged(self, path: Path, digest: Digest, limit: int, error: DamagedError) -> bytes | None:
        aside = move_aside(self.root, path)
        with contextlib.suppress(DamagedError, OSError):
            # Another process may have put a good file there since this one looked: then that was moved.
            if aside is not None and (data := read_checked(aside, digest, limit)) is not None:
                aside.replace(path)
                return data
        _log(f"{path.name} is damaged: {error}; {_outcome(aside)}")
        return None

    # ---- native artifacts -------------------------------------------------------------------------------

    def native_path(self, key: Digest) -> Path:
        """Return where the artifact named `key` is or would be."""
        return self.root / "native" / "v1" / key

    def native(self, key: Digest, *, check: Check = "full") -> NativeEntry | None:
        """Return the artifact named `key`, or None when it is absent or damaged.

        Args:
            key: its action key.
            check: "full" compares the digest of every file; "quick" only names and sizes.
        """
        path = self.native_path(key)
        try:
            entry = read_entry(path, key, check, self.secret())
        except (DamagedError, OSError):
            return self._second_look(key, check)
        if entry is not None:
            self._touch(path)
        return entry

    def build_native(
        self, key: Digest, build: Callable[[Path], None], *, needs: Sequence[Need] = ()
    ) -> NativeEntry:
        """Return the artifact named `key`; when it is absent or damaged, have `build` make it.

        Of several callers at once, in any number of processes, one builds and the others wait for it.

        Args:
            key: the action key; everything that influences `build` must be in it.
            build: is given an empty directory, and fills it with plain files and directories.
            needs: the libraries of other artifacts that it will be linked with; they stay as long as it does.

        Raises:
            ResourceError: the disk is full or fails.
            CacheError: the store cannot be written, or another process has been building for an hour.
        """
        path = self.native_path(key)
        with (
            translated("store a native artifact", path),
            self.in_use(),
            self.lock(f"native-{key}", timeout=_BUILD_WAIT_SECONDS),
        ):
            secret = ensure_key(self.root)
            entry = self._read_or_move(key, "full")
            if entry is not None:
                self._touch(path)
                tidy(self.root)
                return entry
            with workspace(self.root) as work:
                failpoint("store.native.before-build")
                build(work)
                failpoint("store.native.built")
                write_entry(work, key, secret, needs)
                failpoint("store.native.listed")
                seal(work)
                failpoint("store.native.sealed")
                work.rename(path)
                failpoint("store.native.renamed")
                fsync_dir(path.parent)
            entry = read_entry(path, key, "quick", secret)
        if entry is None:  # only when somebody works on the store without its locks
            raise CacheError("a native artifact vanished as soon as it was built", where=str(path))
        return entry

    def natives(self) -> Iterator[NativeEntry]:
        """Give every artifact that a quick check finds complete."""
        for key in self.native_keys():
            with contextlib.suppress(DamagedError, OSError):
                if entry := read_entry(self.native_path(key), key, "quick", self.secret()):
                    yield entry

    def native_keys(self) -> list[Digest]:
        """Return the key of everything below native/, complete or not."""
        keys = []
        for path in sorted((self.root / "native" / "v1").iterdir()):
            with contextlib.suppress(ValueError):
                keys.append(parse_digest(path.name))
        return keys

    def remove_native(self, key: Digest) -> None:
        """Remove an artifact, if it is there; programs that have loaded it keep running."""
        with translated("remove a native artifact", self.root), self.in_use(), self.lock(f"native-{key}"):
            self.discard(self.native_path(key))

    def discard(self, path: Path) -> None:
        """Make `path` vanish in one step, then remove it; the caller keeps builders away."""
        with workspace(self.root) as work:
            with contextlib.suppress(FileNotFoundError):
                path.rename(work / "gone")
            remove_tree(work / "gone")

    def _second_look(self, key: Digest, check: Check) -> NativeEntry | None:
        """Look again under the lock: a builder may just have replaced what was found damaged without it."""
        # A held lock means that somebody builds it already; for this caller it is a miss.
        with (
            contextlib.suppress(CacheError, ResourceError, OSError),
            self.lock("store", shared=True, timeout=0.0),
            self.lock(f"native-{key}", timeout=0.0),
        ):
            return self._read_or_move(key, check)
        return None

    def _read_or_move(self, key: Digest, check: Check) -> NativeEntry | None:
        path = self.native_path(key)
        try:
            return read_entry(path, key, check, self.secret())
        except DamagedError as error:
            _log(f"native/v1/{key} is damaged: {error}; {_outcome(move_aside(self.root, path))}")
            return None

    def secret(self) -> bytes | None:
        """Return the key that seals this store's artifacts; None when it has none, or a damaged one.

        Raises:
            OSError: it could not be read for a reason outside it; nothing is known about any artifact then.
        """
        try:
            return read_key(self.root)
        except DamagedError:
            return None

    def _touch(self, path: Path) -> None:
        """Note the use of `path`: garbage collection removes what was not used for long."""
        now = self.clock()
        with contextlib.suppress(OSError):
            # Also when the clock was wrong and the time noted lies in the future.
            if not 0 <= now - path.lstat().st_mtime < _TOUCH_SECONDS:
                os.utime(path, (now, now), follow_symlinks=False)

    # ---- housekeeping -----------------------------------------------------------------------------------

    def size(self) -> tuple[Usage, ...]:
        """Return how much each part of the store holds."""
        from visget.cache.trim import measure

        return measure(self)

    def check(self) -> CheckReport:
        """Compare every file with its digest and move what is damaged to quarantine/."""
        from visget.cache.trim import check_all

        return check_all(self)

    def gc(
        self, roots: Callable[[], Roots] | None = None, max_age: float | None = None, *,
        max_bytes: int | None = None, dry_run: bool = False,
    ) -> GcReport:  # fmt: skip
        """Remove what nothing refers to; see visget.cache.trim.collect()."""
        from visget.cache.trim import MAX_AGE_SECONDS, collect

        age = MAX_AGE_SECONDS if max_age is None else max_age
        return collect(self, roots, max_age=age, max_bytes=max_bytes, dry_run=dry_run)


def _outcome(aside: Path | None) -> str:
    return "it was moved to quarantine/" if aside else "it cannot be moved to quarantine/"


def _log(text: str) -> None:
    import logging  # costs 5 ms; damage is rare

    logging.getLogger("visget.cache").warning("%s", text)
