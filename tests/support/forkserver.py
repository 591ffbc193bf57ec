"""Workers by fork instead of by a new interpreter: the same code, thirty times as fast, for tests that need thousands.

`forked(monkeypatch)` makes run_child() fork this process, which has everything imported already, where it would
start python. The child then does what the real one does: it reads its request, confines itself, works, and answers.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest

from visget.installer import child, codegen


class ForkedWorker:
    """What run_child() uses of subprocess.Popen."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.args = command
        self.returncode: int | None = None
        module, parent = command[5], int(command[6])
        pipes = [os.pipe() for _ in range(3)]
        theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
        ours = (pipes[0][1], pipes[1][0], pipes[2][0])
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                for number, descriptor in enumerate(theirs):
                    os.dup2(descriptor, number)
                os.closerange(3, 256)
                importlib.import_module(module).main(parent)
            finally:
                os._exit(1)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(descriptor, mode, 0) for descriptor, mode in zip(ours, ("wb", "rb", "rb"), strict=True)
        )

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            else:
                time.sleep(0.0005)
        return self.returncode

    def __enter__(self) -> ForkedWorker:
        return self

    def __exit__(self, *reason: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.wait()


def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let run_child() fork from now on."""
    importlib.import_module("visget.installer.worker")
    codegen._initialise()
    # Only what child.py sees of the module: others go on starting real programs.
    monkeypatch.setattr(
        child, "subprocess",
        SimpleNamespace(Popen=ForkedWorker, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired),
    )  # fmt: skip
