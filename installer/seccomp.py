"""seccomp: a filter that the kernel runs before each system call of this process, assembled from rules.

Invariant: a program compares the calling convention first and ends the process when it is another one (x32 on
x86-64 included), because the numbers would mean other calls there. Rules are tried in their order; the first that
fits decides, else the filter's default. Nothing here says what a worker may do: that is visget/installer/policies.py.
The kernel's side is documented in its Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from visget.installer.syscalls import KNOWN, NEWEST, Convention, convention

_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_ALL_THREADS = 1  # SECCOMP_FILTER_FLAG_TSYNC
_PR_SET_NO_NEW_PRIVS = 38

# Classic BPF: load a word of struct seccomp_data, mask it, compare and jump, return.
_LOAD, _AND, _EQUAL, _ABOVE, _NOT_BELOW, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
_INSTRUCTION = struct.Struct("=HBBI")
_NUMBER_AT, _CONVENTION_AT, _ARGUMENTS_AT = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Action:
    """What the kernel does with a call."""

    code: int

    @classmethod
    def fail(cls, error: int) -> Action:
        """Return the action that makes the call fail with `error`."""
        return cls(0x00050000 | error)


ALLOW = Action(0x7FFF0000)
KILL = Action(0x80000000)
"""End the whole process with SIGSYS."""


@dataclass(frozen=True, slots=True)
class Where:
    """A condition: (argument & mask) == value. Only the lower 32 bits of an argument are looked at."""

    argument: int
    mask: int
    value: int


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens to some calls, if a condition holds."""

    action: Action
    calls: tuple[str, ...]
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Rules in order, and what happens to everything else."""

    rules: tuple[Rule, ...]
    default: Action
    unknown: Action | None = None
    """What happens to calls that are newer than the tables; None for the default."""


def rule(action: Action, calls: str, where: Where | None = None) -> Rule:
    """Return a rule for the calls named in the text `calls`.

    Raises:
        ValueError: a name is in no table, so it is misspelt.
    """
    names = tuple(calls.split())
    if strange := sorted(set(names) - KNOWN):
        raise ValueError(f"unknown system calls: {', '.join(strange)}")
    return Rule(action, names, where)


def assemble(filter_: Filter, calling: Convention) -> bytes:
    """Return the program for `filter_`: eight bytes for each instruction."""
    program = [
        _code(_LOAD, _CONVENTION_AT),
        _code(_EQUAL, calling.audit, then=1),
        _code(_RETURN, KILL.code),
        _code(_LOAD, _NUMBER_AT),
    ]
    if calling.limit is not None:
        program += [_code(_NOT_BELOW, calling.limit, otherwise=1), _code(_RETURN, KILL.code)]
    if filter_.unknown is not None:
        program += [_code(_ABOVE, NEWEST, otherwise=1), _code(_RETURN, filter_.unknown.code)]
    for entry in filter_.rules:
        for name in entry.calls:
            if name in calling.numbers:
                program += _decide(calling.numbers[name], entry)
    program.append(_code(_RETURN, filter_.default.code))
    return b"".join(program)


def _decide(number: int, entry: Rule) -> Sequence[bytes]:
    if entry.where is None:
        return (_code(_EQUAL, number, otherwise=1), _code(_RETURN, entry.action.code))
    where = entry.where
    return (
        _code(_EQUAL, number, otherwise=5),
        # All of the conventions are little-endian: the lower half of an argument comes first.
        _code(_LOAD, _ARGUMENTS_AT + 8 * where.argument),
        _code(_AND, where.mask),
        _code(_EQUAL, where.value, otherwise=1),
        _code(_RETURN, entry.action.code),
        _code(_LOAD, _NUMBER_AT),
    )


def _code(operation: int, operand: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return _INSTRUCTION.pack(operation, then, otherwise, operand & 0xFFFFFFFF)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def available() -> bool:
    """Whether this kernel takes filters from this process."""
    calling = convention()
    if calling is None:
        return False
    action = ctypes.c_uint32(KILL.code)
    return _call(calling, _GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def install(filter_: Filter, *, threads: bool) -> None:
    """Put `filter_` over this thread, or over all `threads` of the process, for good; children inherit it.

    The thread has to have called no_new_privileges() before, once.
    Filters add up: of those that a thread has, the strictest answer counts.

    Raises:
        OSError: the kernel has no seccomp, or the architecture is not in the tables.
    """
    calling = convention()
    if calling is None:
        raise OSError(f"no table of system calls for {os.uname().machine}")
    code = assemble(filter_, calling)
    program = _Program(len(code) // _INSTRUCTION.size, code)
    result = _call(calling, _SET_MODE_FILTER, _ALL_THREADS if threads else 0, ctypes.byref(program))
    if result > 0:
        raise OSError(errno.EBUSY, f"seccomp: thread {result} has a filter of its own")
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


def no_new_privileges() -> None:
    """Give up gaining rights by executing programs, for this thread and its children.

    Raises:
        OSError: the kernel does not know the request.
    """
    zero = ctypes.c_ulong(0)
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl(PR_SET_NO_NEW_PRIVS): {os.strerror(error)}")


def _call(calling: Convention, operation: int, flags: int, argument: object) -> int:
    result: int = _libc().syscall(
        ctypes.c_long(calling.numbers["seccomp"]), ctypes.c_uint(operation), ctypes.c_uint(flags), argument
    )
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
