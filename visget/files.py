"""Writing files so that a crash leaves the old content or the new one, and locks that die with their process.

Invariant: nothing here overwrites a file in place. The rules are docs/spec/store.md, section "Durability".
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from visget.errors import CacheError, ResourceError
from visget.failpoint import failpoint

_POLL_SECONDS = 0.05
LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp\Z")
"""The name of what atomic_write() leaves when it is killed."""


def fsync_dir(path: Path) -> None:
    """Make the names in the directory `path` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_new(path: Path, data: bytes | memoryview, mode: int = 0o644) -> None:
    """Create `path` with `data` and make its bytes durable; refuse to follow a link or to overwrite."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace `path` by a file holding `data`: readers see the old content or the new one, never a mixture."""
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        write_new(temporary, data, mode)
        failpoint("file.written")
        temporary.replace(path)
        failpoint("file.renamed")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_dir(path.parent)


def remove_leftovers(directory: Path, name: str = "*") -> None:
    """Remove what killed calls of atomic_write() left in `directory`, for every file or for the one called `name`.

    Only for who holds the lock that everybody who writes there holds: a living writer's file looks the same.
    """
    for path in directory.glob(f".{name}.*.tmp"):
        if LEFTOVER.match(path.name):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def translated(action: str, path: Path) -> Iterator[None]:
    """Turn an OSError met while doing `action` at `path` into an error that says what to do.

    Raises:
        ResourceError: no space, quota, descriptors or memory left, or an input/output error.
        CacheError: no permission, or a read-only file system.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ResourceError(
                f"cannot {action}: no space left",
                where=str(path),
                hint="free some space (`visget cache gc` removes what no installed package needs) and try again",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise CacheError(
                f"cannot {action}: {reason}",
                where=str(path),
                hint="choose a place that you may write to with --home DIR or VISGET_HOME",
            ) from error
        raise ResourceError(f"cannot {action}: {reason}", where=str(path)) from error


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, timeout: float = 600.0) -> Iterator[None]:
    """Hold an advisory lock (flock) on the file `path`, creating it when it is missing.

    The kernel drops the lock when the process dies, so no stale lock can remain. The file is never unlinked.

    Args:
        path: the lock file.
        shared: several holders at once, as long as nobody holds it alone.
        timeout: seconds to wait for other holders.

    Raises:
        CacheError: the lock could not be had in time, or the file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with translated("open a lock file", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            # The pid is written into it below: through a planted hard link that would destroy another file.
            raise CacheError(
                "a lock file is not a file of its own", where=str(path), hint="somebody tampered with it; remove it"
            )
        operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, operation)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                    raise CacheError(
                        f"another visget process{f' (pid {holder})' if holder else ''} holds the lock "
                        f"for more than {timeout:.0f} s",
                        where=str(path),
                        hint="wait for it to end, or stop it, and try again",
                    ) from None
                time.sleep(_POLL_SECONDS)
        if not shared:
            # The holder's pid is a help for people only: nothing depends on it, so a full disk must not matter.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
        yield
    finally:
        os.close(descriptor)
