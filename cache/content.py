"""Reading and writing below the store's root without trusting what lies there.

Invariants: nothing is followed that is not a plain file or directory of ours; what is written appears complete or
not at all; whatever a dead process left behind is removed by the next writer. A workspace is a directory in
``tmp/`` whose lock file its owner holds: the kernel drops the lock when the owner dies, so that "is it dead?"
needs neither ages nor process ids. The rules are docs/spec/store.md, sections "Layout" and "Durability".
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from visget.digest import Digest, digest_bytes
from visget.errors import TrustError
from visget.failpoint import failpoint
from visget.files import fsync_dir, locked, translated, write_new

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # NONBLOCK: a planted fifo must not hang us
_BLOCK = 1 << 20
# Reading met something that no healthy store holds; any other OSError says nothing about the file itself.
_DAMAGE_ERRNO = frozenset([errno.ELOOP, errno.EIO, errno.ENXIO, errno.EISDIR, errno.ENOTDIR])


class DamagedError(Exception):
    """What is wrong with a file or an entry; it reaches nobody but whoever can heal it: damage is a miss."""


def guard_directory(path: Path) -> None:
    """Create the directory `path` (0700) or check that it is a real one, ours, and writable by nobody else.

    Raises:
        TrustError: somebody else could change what is inside.
        CacheError: it cannot be created.
    """
    with translated("create a directory of the store", path):
        try:
            facts = path.lstat()
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
                with contextlib.suppress(PermissionError):  # a parent may be passable but not readable
                    fsync_dir(path.parent)
            facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode) or not stat.S_ISDIR(facts.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(facts.st_mode) else "not a directory"
        raise TrustError(
            f"the store cannot be used: {path.name!r} in it is {kind}",
            where=str(path),
            hint="visget makes its directories itself; find out who put this there, then move it away",
        )
    if facts.st_uid != os.geteuid():
        raise TrustError(
            f"the store cannot be used: it belongs to user id {facts.st_uid}, not to {os.geteuid()}",
            where=str(path),
            hint="native code is loaded from it; choose a directory of your own with --home DIR or VISGET_HOME",
        )
    if facts.st_mode & 0o022:
        raise TrustError(
            f"the store cannot be used: others may write to it (mode {stat.S_IMODE(facts.st_mode):04o})",
            where=str(path),
            hint=f"native code is loaded from it; if nobody else has written there: chmod go-w {path}",
        )


def guard_lock(path: Path) -> None:
    """Refuse a lock file that is something else, or a second name of another file, before it is opened.

    Raises:
        TrustError: it is not a plain file with one name.
    """
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        raise TrustError(
            "a lock file of the store is not a plain file with one name",
            where=str(path),
            hint="find out who put it there, then remove it; visget makes a new one",
        )


def unique() -> str:
    """Return a name that nothing else has."""
    return os.urandom(8).hex()


def read_file(path: Path, limit: int) -> bytes | None:
    """Return the bytes of the plain file `path`, or None when there is no such name.

    Raises:
        DamagedError: it is something else, or has more than `limit` bytes, or the disk cannot read it.
        OSError: reading failed for a reason outside the file, such as too many open files.
    """
    with _damage_named():
        try:
            descriptor = os.open(path, _READ)
        except FileNotFoundError:
            return None
        try:
            _plain(descriptor, limit)
            parts = []
            left = limit + 1
            # As a rule one read, whose bytes the join below hands on without a copy: packages may be large.
            block = max(_BLOCK, os.fstat(descriptor).st_size + 1)
            while left and (part := os.read(descriptor, min(left, block))):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(descriptor)
    if not left:
        raise DamagedError(f"{path.name} has more than {limit} bytes")
    return b"".join(parts)


def read_checked(path: Path, digest: Digest, limit: int) -> bytes | None:
    """Return the bytes of the plain file `path`, whose digest must be `digest`; None when there is no such name.

    Raises:
        DamagedError: they are others, or there are more than `limit`, or they cannot be read.
        OSError: reading failed for a reason outside the file.
    """
    data = read_file(path, limit)
    if data is not None and digest_bytes(data) != digest:
        raise DamagedError("its bytes were changed")
    return data


@contextlib.contextmanager
def plain_file(path: Path) -> Iterator[int]:
    """Open the plain file `path` for reading and give its descriptor.

    Raises:
        DamagedError: it is missing or something else.
        OSError: opening failed for a reason outside the file.
    """
    with _damage_named():
        try:
            descriptor = os.open(path, _READ)
        except FileNotFoundError:
            raise DamagedError(f"{path.name} is missing") from None
        try:
            _plain(descriptor, None)
            yield descriptor
        finally:
            os.close(descriptor)


def _plain(descriptor: int, limit: int | None) -> None:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise DamagedError("it is not a plain file")
    if limit is not None and facts.st_size > limit:
        raise DamagedError(f"it has {facts.st_size} bytes, more than {limit}")


@contextlib.contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _DAMAGE_ERRNO:
            raise DamagedError(f"it cannot be read: {error.strerror}") from error
        raise


@contextlib.contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """Give a new empty directory on the store's file system; it is removed at the end, also after a crash.

    Entering it also removes the workspaces of dead processes.
    """
    room = root / "tmp"
    guard_lock(root / "locks" / "tmp")
    # Held for the moment between making a workspace and locking it, in which it would look dead.
    with locked(root / "locks" / "tmp"):
        sweep(room)
        home = room / unique()
        home.mkdir(mode=0o700)
        try:
            failpoint("store.workspace.made")
            descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            with contextlib.suppress(OSError):
                home.rmdir()
            raise
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        inside = home / "new"
        inside.mkdir(mode=0o700)
        failpoint("store.workspace.ready")
        yield inside
        failpoint("store.workspace.before-removal")
    finally:
        remove_tree(home)
        os.close(descriptor)


def replace_file(root: Path, path: Path, data: bytes, mode: int) -> None:
    """Make `data` the content of `path`, below the store's `root`: readers see the old content or the new one.

    What was begun lies in a workspace, so that nothing remains beside `path` when the process is killed.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    with workspace(root) as work:
        write_new(work / "content", data, mode)
        failpoint("store.replace.written")
        (work / "content").replace(path)
        failpoint("store.replace.renamed")
        fsync_dir(path.parent)


def tidy(root: Path) -> None:
    """Remove what dead processes left in the store at `root`, for a caller that needs no workspace itself."""
    room = root / "tmp"
    if any(room.iterdir()):
        guard_lock(root / "locks" / "tmp")
        with locked(root / "locks" / "tmp"):
            sweep(room)


def sweep(room: Path) -> None:
    """Remove what dead processes left in `room`; the caller holds the lock "tmp"."""
    for leftover in sorted(room.iterdir()):
        if leftover.is_symlink() or not leftover.is_dir():
            leftover.unlink(missing_ok=True)
        elif not _alive(leftover / "lock"):
            remove_tree(leftover)


def _alive(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_tree(path: Path) -> None:
    """Remove `path` and all below it, following no link; what cannot be removed now is left for the next sweep."""
    import shutil  # not on the load path: it imports the compression modules

    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def seal(directory: Path) -> None:
    """Make every file below `directory` read-only and durable, then every directory, the deepest first.

    Raises:
        ValueError: there is something else than plain files and directories.
    """
    for item in sorted(directory.iterdir()):
        mode = item.lstat().st_mode
        if stat.S_ISDIR(mode):
            seal(item)
        elif stat.S_ISREG(mode):
            descriptor = os.open(item, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.fchmod(descriptor, 0o444)
                failpoint("store.seal.before-fsync")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        else:
            raise ValueError(f"{item.name} is neither a plain file nor a directory")
    fsync_dir(directory)


def move_aside(root: Path, path: Path) -> Path | None:
    """Move `path` into quarantine/ and return where it is now; None when it is gone or cannot be moved.

    The thing itself is moved: of a link, not what it points to.
    """
    aside = root / "quarantine" / f"{path.name}.{unique()}"
    try:
        failpoint("store.quarantine.before-rename")
        path.rename(aside)
    except OSError:
        return None
    # So that garbage collection counts its age from now.
    with contextlib.suppress(OSError):
        os.utime(aside, follow_symlinks=False)
    return aside
