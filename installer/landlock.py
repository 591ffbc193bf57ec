"""Landlock: this process, and every child of it, loses the file system except for what is granted.

Invariant: works for root and for ordinary users alike; what this kernel's version of Landlock (its ABI) does not
know is left out of the request, so an older kernel takes away less and never fails. The rights are those of
linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from visget.installer.syscalls import convention

_CREATE_VERSION = 1
_RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READ = READ_FILE | READ_DIR
EVERYTHING = (1 << 16) - 1
_ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

# The rights that each ABI added: renaming across directories, truncating, requests to devices.
_FILE_SYSTEM = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NETWORK_SINCE, _BIND_AND_CONNECT = 4, 3
_SCOPE_SINCE, _SOCKETS_AND_SIGNALS = 6, 3


@dataclass(frozen=True, slots=True)
class Grant:
    """What stays possible at a path and, where it is a directory, beneath it."""

    path: str
    rights: int


def abi() -> int:
    """Return the version of this kernel's Landlock; 0 where there is none or it is switched off."""
    calling = convention()
    if calling is None:
        return 0
    version = _call(calling.numbers["landlock_create_ruleset"], None, ctypes.c_size_t(0), _CREATE_VERSION)
    return max(0, version)


def handled(version: int) -> int:
    """Return every right to files that ABI `version` can take away."""
    return next(rights for since, rights in sorted(_FILE_SYSTEM.items(), reverse=True) if since <= version)


def attributes(version: int) -> bytes:
    """Return struct landlock_ruleset_attr for ABI `version`, with everything in it that can be taken away."""
    words = [handled(version)]
    if version >= _NETWORK_SINCE:
        words.append(_BIND_AND_CONNECT)
    if version >= _SCOPE_SINCE:
        words.append(_SOCKETS_AND_SIGNALS)
    return struct.pack(f"={len(words)}Q", *words)


def restrict(grants: Iterable[Grant] = (), *, version: int | None = None) -> int:
    """Take everything from this thread that Landlock can take, except for `grants`.

    Paths that do not exist are passed over. The thread has to have called no_new_privileges() before.

    Args:
        grants: what stays.
        version: pretend that the kernel has this ABI; None for what it says.

    Returns:
        The ABI that was used; 0 when there is no Landlock and nothing was taken.

    Raises:
        OSError: the kernel refuses, although it has Landlock.
    """
    calling = convention()
    used = abi() if version is None else min(abi(), version)
    if calling is None or used == 0:
        return 0
    wanted = attributes(used)
    buffer = ctypes.create_string_buffer(wanted, len(wanted))
    ruleset = _must(_call(calling.numbers["landlock_create_ruleset"], buffer, ctypes.c_size_t(len(wanted)), 0))
    try:
        for grant in grants:
            _add(calling.numbers["landlock_add_rule"], ruleset, grant, used)
        _must(_call(calling.numbers["landlock_restrict_self"], ctypes.c_int(ruleset), 0))
    finally:
        os.close(ruleset)
    return used


def _add(number: int, ruleset: int, grant: Grant, version: int) -> None:
    try:
        place = os.open(grant.path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it cannot be reached, so there is nothing to grant
    try:
        rights = grant.rights & handled(version)
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _ON_FILES
        if not rights:
            return
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
        _must(_call(number, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, 0))
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    whole = [ctypes.c_uint(item) if isinstance(item, int) else item for item in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *whole)
    return result


def _must(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
