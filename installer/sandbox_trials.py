"""The child of the sandbox's self-test: confine a process as a worker is, try something, and say what happened.

Invariant: each trial runs in a process of its own, forked before it was confined, so that one that is killed takes
nothing with it; and each does something that works where it is not forbidden. Nothing outside the directory of the
request is touched even then. Who asks for trials is visget/installer/sandbox_probe.py.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from visget.errors import VisgetError
from visget.installer import policies
from visget.installer.confined import confine_thread
from visget.installer.frames import Frame
from visget.installer.landlock import EVERYTHING, READ_FILE, Grant
from visget.installer.sandbox import NOTHING, enter, parse_level, tighten
from visget.installer.serve import Announce, Reply, serve

SECRET, LIBRARY = "secret", "library"
"""Names of files in the directory of the request: one that is out of reach, and one that may be loaded."""
WORKED = "worked"
"""The outcome of a trial that nothing stopped."""

_NO_MEMORY, _NO_SANDBOX = 200, 201


def _open(directory: str, limits: Mapping[str, object]) -> None:
    os.close(os.open(f"{directory}/{SECRET}", os.O_RDONLY))


def _list(directory: str, limits: Mapping[str, object]) -> None:
    os.listdir(directory)  # noqa: PTH208 - the list itself is the trial


def _write(directory: str, limits: Mapping[str, object]) -> None:
    os.close(os.open(f"{directory}/new", os.O_WRONLY | os.O_CREAT, 0o600))


def _overwrite(directory: str, limits: Mapping[str, object]) -> None:
    os.close(os.open(f"{directory}/{SECRET}", os.O_RDWR))


def _unlink(directory: str, limits: Mapping[str, object]) -> None:
    _victim(directory).unlink()


def _victim(directory: str) -> Path:
    return Path(directory, f"victim-{os.getpid()}")


def _internet(directory: str, limits: Mapping[str, object]) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def _local_socket(directory: str, limits: Mapping[str, object]) -> None:
    socket.socket(socket.AF_UNIX).close()


def _execute(directory: str, limits: Mapping[str, object]) -> None:
    # An interpreter that does nothing ends with status 0, as a trial that worked does.
    os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", ""])  # noqa: S606 - there is no shell on purpose


def _fork(directory: str, limits: Mapping[str, object]) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _writable_code(directory: str, limits: Mapping[str, object]) -> None:
    mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


def _make_executable(directory: str, limits: Mapping[str, object]) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    _libc("mprotect", address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)


def _trace(directory: str, limits: Mapping[str, object]) -> None:
    _libc("ptrace", 0, 0, 0, 0)  # PTRACE_TRACEME


def _signal(directory: str, limits: Mapping[str, object]) -> None:
    os.kill(os.getppid(), 0)


def _memory(directory: str, limits: Mapping[str, object]) -> None:
    mmap.mmap(-1, int(str(limits["memory"])) + mmap.PAGESIZE).close()


def _time(directory: str, limits: Mapping[str, object]) -> None:
    while os.times().user < float(str(limits["seconds"])) + 3:
        pass


def _libc(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*map(ctypes.c_ulong, arguments)) != 0:
        raise OSError(ctypes.get_errno(), name)


TRIALS: Mapping[str, Callable[[str, Mapping[str, object]], None]] = {
    "read a file": _open,
    "list a directory": _list,
    "make a file": _write,
    "open a file for writing": _overwrite,
    "remove a file": _unlink,
    "open an internet socket": _internet,
    "open a local socket": _local_socket,
    "start a program": _execute,
    "fork": _fork,
    "map writable code": _writable_code,
    "make data executable": _make_executable,
    "be traced": _trace,
    "signal its parent": _signal,
    "use more memory": _memory,
    "use more time": _time,
}
"""What is tried, by name."""


def main(parent: int) -> None:
    """Serve one request for the process `parent`."""
    serve(parent, lambda request: NOTHING, work)


def work(request: Frame, announce: Announce) -> Reply:
    """Try each of `trials`, pairs of a child and the name of a trial; reply with the outcomes."""
    head = request.head
    return {"outcomes": attempt(head["trials"], head["directory"], head["inner"], head["level"])}, ()


def attempt(
    trials: list[tuple[str, str]], directory: str, limits: Mapping[str, object], level: Mapping[str, object]
) -> list[str]:
    """Return what happened in each of `trials`: WORKED, or the name of an error or a signal."""
    started = []
    for child, name in trials:
        process = os.fork()
        if process == 0:
            _run(child, TRIALS[name], directory, limits, level)
        started.append(process)
    return [_outcome(os.waitpid(process, 0)[1]) for process in started]


def _run(
    child: str,
    trial: Callable[[str, Mapping[str, object]], None],
    directory: str,
    limits: Mapping[str, object],
    level: Mapping[str, object],
) -> None:
    status = 0
    try:
        _victim(directory).touch()
        _confine(child, directory, limits, level)
        trial(directory, limits)
    except OSError as error:
        status = error.errno or _NO_SANDBOX
    except MemoryError:
        status = _NO_MEMORY
    except VisgetError:
        status = _NO_SANDBOX
    finally:
        os._exit(status)


def _confine(child: str, directory: str, limits: Mapping[str, object], level: Mapping[str, object]) -> None:
    process = os.getpid()
    if child == "compiler":
        enter(policies.compiling(process), limits)
    elif child == "linker":
        place = f"{directory}/scratch"
        confine_thread(parse_level(level), (Grant(place, EVERYTHING),))
    else:
        library = Grant(f"{directory}/{LIBRARY}", READ_FILE)
        entered = enter(policies.loading(process, in_memory=False), limits, grants=(library,))
        if child == "library":
            tighten(policies.calling(process), entered)


def _outcome(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return WORKED
    return {_NO_MEMORY: "MemoryError", _NO_SANDBOX: "no sandbox"}.get(code) or errno.errorcode.get(code, str(code))
