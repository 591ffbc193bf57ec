"""Running a program that visget did not write, confined.

Seccomp filters and Landlock belong to a thread and are inherited by what it starts. So a thread is made for the
purpose: it confines itself, starts the program and ends, and the rest of this process stays as it was. That costs
a millisecond; a process of our own in between would cost thirty. Invariant: nothing but the start of the program
happens in that thread, the program's whole process group is gone when `run_confined` returns or raises, and its
output is kept up to a limit of size. The spec is docs/spec/worker.md, section "Linker".
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from visget.installer import landlock, seccomp
from visget.installer.policies import linking
from visget.installer.sandbox import NOTHING, Level, Mode, demanded, refused

_MEMORY, _FILE_SIZE, _OPEN_FILES = 16 << 30, 1 << 30, 1024
_OUTPUT = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended."""

    status: int
    """Its exit status, or minus the signal that ended it."""
    output: bytes
    """The beginning of what it wrote to standard output and standard error."""
    sandbox: Level


def run_confined(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    grants: Sequence[landlock.Grant],
    seconds: float,
    mode: Mode = "auto",
) -> Finished:
    """Run `command` in `directory`, where it may do anything; elsewhere it has only `grants`.

    Raises:
        UnsupportedError: this system does not offer what `mode` demands.
        subprocess.TimeoutExpired: it did not end within `seconds`.
        OSError: it cannot be started.
    """
    level = demanded(mode)
    given = (*grants, landlock.Grant(str(directory), landlock.EVERYTHING))
    with Path(os.devnull).open("rb") as nothing:  # opened here: the confined thread may not
        process = _in_a_thread(lambda: _start(command, directory, environment, given, level, nothing))
    with process:
        try:
            _limit(process.pid, seconds)
            output = _listen(process, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return Finished(status=process.returncode, output=output, sandbox=level)


def confine_thread(level: Level, grants: Sequence[landlock.Grant]) -> None:
    """Confine this thread, and every program that it starts from now on, as a linker is.

    Raises:
        UnsupportedError: the kernel refuses.
    """
    if level == NOTHING:
        return
    try:
        seccomp.no_new_privileges()
        if level.landlock:
            landlock.restrict(grants)
        if level.seccomp:
            seccomp.install(linking(), threads=False)
    except OSError as error:
        raise refused(error) from error


def _start(
    command: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    grants: Sequence[landlock.Grant],
    level: Level,
    nothing: BinaryIO,
) -> subprocess.Popen[bytes]:
    confine_thread(level, grants)
    return subprocess.Popen(
        command,
        cwd=directory,
        env=dict(environment),
        stdin=nothing,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _in_a_thread(start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    started: list[subprocess.Popen[bytes]] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            started.append(start())
        except BaseException as error:  # noqa: BLE001 - raised again below, in the thread of the caller
            failed.append(error)

    with _no_collection():
        thread = threading.Thread(target=body, name="visget-confined")
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
    return started[0]


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from running other people's finalizers in the confined thread."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _listen(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Read the output of `process` until it ends; return the beginning."""
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    deadline = time.monotonic() + seconds
    kept = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                process.wait(max(0.1, deadline - time.monotonic()))
                return bytes(kept)
            kept += chunk[: _OUTPUT - len(kept)]
    raise subprocess.TimeoutExpired(process.args, seconds)


def _limit(process: int, seconds: float) -> None:
    """Set the limits of a process that has begun to run."""
    if not sys.platform.startswith("linux"):
        return
    for kind, value in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_FSIZE, _FILE_SIZE),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        # It may have ended already; and a limit that is lower stays.
        with contextlib.suppress(OSError, ValueError):
            ceiling = resource.prlimit(process, kind)[1]
            if ceiling == resource.RLIM_INFINITY or ceiling > value:
                resource.prlimit(process, kind, (value, value))
