"""Mapping a shared library through the very descriptor whose bytes were checked.

Between a check and a later open of the same path, another file may have come to lie there. So on Linux the system's
loader is given the checked descriptor, under its name in /proc. Invariant: no two files are ever given to the loader
under one name: glibc returns an older library of the same name without looking at the file.

The descriptor stays open as long as the process lives, one for each library: debuggers find the library by the name
that the loader was given, which therefore says ``/proc/PID`` and not ``/proc/self``. Profilers, which ask the kernel,
see the library's own path. The reasons are docs/spec/store.md, section "Loading".
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from pathlib import Path

from visget.machine import libc_family

_lock = threading.Lock()
_kept: dict[tuple[int, int], tuple[int, int]] = {}
"""For each mapped file, by device and inode: the descriptor that stays open, and the number that makes its name
unique."""
_numbers = itertools.count(1)


def map_library(descriptor: int, path: Path, *, alone: bool = True) -> ctypes.CDLL:
    """Load the library that `descriptor` reads, which is the file `path`; nothing of it becomes global.

    Args:
        descriptor: reads the library.
        path: the library.
        alone: whether it is linked with no library of another package. Only glibc finds such a one, mapped before,
            by what it calls itself; other loaders look where the library's own run path leads from where it lies.

    Raises:
        OSError: the system's loader refuses it; the message names `path`.
    """
    # The kernel's own name for this process: os.getpid() is another where /proc belongs to an outer namespace.
    try:
        directory = f"/proc/{os.readlink('/proc/self')}/fd"  # noqa: PTH115 - a pathlib object costs ten times as much
    except OSError:
        directory = ""
    if sys.platform != "linux" or not directory or not (alone or libc_family() == "gnu"):
        return ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    with _lock:
        name = _name(directory, descriptor)
        try:
            loaded = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise OSError(str(error).replace(name, str(path))) from error
    # The same library, but people who print it see where it lies.
    return ctypes.CDLL(str(path), handle=loaded._handle)


def _name(directory: str, descriptor: int) -> str:
    facts = os.fstat(descriptor)
    file = (facts.st_dev, facts.st_ino)
    kept, number = _kept.get(file, (-1, 0))
    if not _reads(kept, file):  # never mapped, or the program has closed all descriptors since
        kept, number = _kept[file] = (os.dup(descriptor), next(_numbers))
    # A number of slashes and dots tells apart two files that had the same descriptor, one after the other.
    digits = "".join("./" if digit == "1" else "/" for digit in f"{number:b}")
    return f"{directory}/{digits}{kept}"


def _reads(descriptor: int, file: tuple[int, int]) -> bool:
    try:
        facts = os.fstat(descriptor)
    except OSError:
        return False
    return (facts.st_dev, facts.st_ino) == file
