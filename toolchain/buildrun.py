"""Running a build system: one process group at a time, its output in a file, its progress told.

Invariant: no process of the build outlives run_step(), however it ends; what a failed build said is kept where the
error says.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from visget.errors import BuildError, UnsupportedError
from visget.progress import Progress
from visget.toolchain.buildtools import Step

_POLL = 0.2
_PATIENCE = 5.0
_TAIL = 25
_ERRORS = 8
_READ = 1 << 16
# An error of a compiler, of make, of CMake; not the name of a file such as error.c.
_ERROR = re.compile(r"\b(?:fatal )?error(?:\[[A-Z]+-\d+\])?: |^CMake Error|undefined reference to|\*\*\* \[")
# ninja: [12/345], make under cmake: [ 12%]
_COUNTED = re.compile(r"^\[(\d+)/(\d+)\]", re.MULTILINE)
_PERCENT = re.compile(r"^\[ *(\d+)%\]", re.MULTILINE)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\t\n\x20-\x7e\xa0-\U0010ffff]")


def run_step(step: Step, environment: Mapping[str, str], log: Path, progress: Progress) -> None:
    """Run `step` to its end.

    Args:
        step: what is run.
        environment: its whole environment, but for what the step adds.
        log: the file to which its output is appended.
        progress: told how far it is.

    Raises:
        BuildError: it failed; the message has its last lines, details "stderr" too.
        UnsupportedError: it cannot be started.
    """
    progress.step(step.phase, Path(step.command[0]).name)
    with log.open("ab") as output:
        start = output.tell()
        output.write(f"+ {' '.join(step.command)}\n".encode("utf-8", "surrogateescape"))
        output.flush()
        try:
            process = subprocess.Popen(
                step.command, cwd=step.cwd, env={**environment, **step.environment}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True, umask=0o022,
            )  # fmt: skip
        except OSError as error:
            raise UnsupportedError(
                f"{step.command[0]} cannot be started: {error.strerror}", where=str(step.cwd)
            ) from error
        try:
            _wait(process, step, log, start, progress)
        finally:
            stop_group(process)
    if process.returncode != 0:
        raise _failure(step, process.returncode, log, start)


def _wait(process: subprocess.Popen[bytes], step: Step, log: Path, start: int, progress: Progress) -> None:
    at, shown = start, ""
    while True:
        try:
            process.wait(timeout=_POLL)
        except subprocess.TimeoutExpired:
            at, text = _read(log, at)
            told = _told(text)
            if told and told != shown:
                shown = told
                done, total = told.split("/")
                progress.step(step.phase, "", int(done), int(total))
        else:
            return


def _read(log: Path, at: int) -> tuple[int, str]:
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        end = file.tell()
        file.seek(max(at, end - _READ))
        return end, file.read().decode("utf-8", "replace")


def _told(text: str) -> str:
    counted = _COUNTED.findall(text)
    if counted:
        return "/".join(counted[-1])
    percent = _PERCENT.findall(text)
    return f"{percent[-1]}/100" if percent else ""


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """End `process` and everything that it started, if anything of it is left."""
    deadline = time.monotonic() + _PATIENCE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)  # raises when nobody is left
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _failure(step: Step, status: int, log: Path, start: int) -> BuildError:
    with log.open("rb") as file:
        file.seek(start)
        text = _CONTROL.sub("", file.read().decode("utf-8", "replace"))
    lines = _telling(text.splitlines())
    ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return BuildError(
        f"{Path(step.command[0]).name} {ended} while {step.phase}",
        where=str(log),
        hint="the file has the whole output",
        details={"stderr": "\n".join(lines) + "\n", "log": str(log), "command": list(step.command)},
    )


def _telling(lines: list[str]) -> list[str]:
    """Return the last lines, and the errors before them: in a parallel build the first one is far above the end."""
    earlier = [line for line in lines[:-_TAIL] if _ERROR.search(line)]
    return [*earlier[:_ERRORS], *(["..."] if earlier else []), *lines[-_TAIL:]]
