"""What a child process may use: the layer of the sandbox that every system has.

Invariant: nothing that `confine` takes away can be had back. It is called once, by visget/installer/sandbox.py,
after the last import and before the first untrusted byte is interpreted. The reasons are docs/spec/worker.md.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_STACK = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one child process may use."""

    memory: int = 4 << 30
    """Address space in bytes."""
    seconds: float = 600.0
    """Wall-clock time for the whole child; its processor time is limited to the same."""
    reply: int = 512 << 20
    """Bytes that the parent accepts as an answer."""
    open_files: int = 64
    """Descriptors; enough to load one library with its dependencies."""
    library_path: str | None = None
    """LD_LIBRARY_PATH for the child, where the Python interpreter itself needs one to start."""

    sandbox: Literal["require", "auto", "off"] = "auto"
    """What the child demands of the system besides (visget/installer/sandbox.py)."""

    def as_dict(self) -> dict[str, object]:
        """Return the part that the child imposes on itself."""
        return {
            "memory": self.memory,
            "seconds": max(1, int(self.seconds)),
            "open_files": self.open_files,
            "sandbox": self.sandbox,
        }


DEFAULT_LIMITS = Limits()
"""For compilations."""

ANSWER_LIMITS = Limits(memory=4 << 30, seconds=60.0, reply=16 << 20, open_files=256)
"""For running a library's test vectors."""


def answer_limits(limits: Limits) -> Limits:
    """Return the limits for running test vectors, where compiling has `limits`."""
    return replace(ANSWER_LIMITS, library_path=limits.library_path, sandbox=limits.sandbox)


def follow_parent(parent: int) -> None:
    """Arrange that this process dies with the process `parent`, which started it."""
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        # The parent died between starting this process and the call above.
        os._exit(1)


def confine(limits: Mapping[str, object]) -> None:
    """Set the limits, for good."""
    seconds = _number(limits, "seconds")
    _cap(resource.RLIMIT_CORE, 0)
    _cap(resource.RLIMIT_FSIZE, 0)  # results leave through a pipe, never through a file
    _cap(resource.RLIMIT_NOFILE, _number(limits, "open_files"))
    # SIGXCPU first, so that the parent can tell a slow compilation from a crash; SIGKILL a second later.
    _cap(resource.RLIMIT_CPU, seconds, hard=seconds + 1)
    _cap(resource.RLIMIT_AS, _number(limits, "memory"))
    _raise_stack()
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _number(limits: Mapping[str, object], name: str) -> int:
    value = limits[name]
    if type(value) is not int:
        raise TypeError(f"the limit {name} is not a whole number")
    return value


def _cap(kind: int, value: int, *, hard: int | None = None) -> None:
    """Lower a limit; a limit that is lower already stays."""
    ceiling = resource.getrlimit(kind)[1]
    wanted = value if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        wanted = min(wanted, ceiling)
    resource.setrlimit(kind, (min(value, wanted), wanted))


def _raise_stack() -> None:
    """Let the main thread's stack grow: LLVM recurses deeply on large functions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < _STACK:
        roof = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (roof, hard))


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
