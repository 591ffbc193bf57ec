"""The parent's side of a worker: start it, feed it, watch it, and never believe it.

Invariant: the child is gone, with its whole process group, when `run_child` returns or raises; what it sent is
checked for form and size only, and its texts are stripped of what could drive a terminal. The protocol is
docs/spec/worker.md.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from visget.errors import ResourceError, VisgetError
from visget.format.plaintext import clean_line, clean_text
from visget.installer.frames import Frame, FrameError, Part, decode, encoding
from visget.installer.limits import Limits
from visget.installer.sandbox import NOTHING, Level, parse_level

OnStage = Callable[[Frame], None]
"""Told about each stage that the child announces."""

_BOOT = "import importlib,sys;sys.path.extend(sys.argv[3:]);importlib.import_module(sys.argv[1]).main(int(sys.argv[2]))"
_NEEDED = ("visget", "llvmlite", "packaging", "zstandard")
_CHUNK = 1 << 16
_STDERR_KEPT = 1 << 14
_MEMORY_WORDS = ("out of memory", "bad_alloc", "MemoryError", "Cannot allocate memory", "std::length_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a child answered."""

    head: dict[str, Any]
    parts: tuple[bytes, ...]
    sandbox: Level
    """What confined it."""


Cause = Literal["signal", "time", "memory", "forbidden", "garbage", "exit"]
"""How a child failed to answer."""


class ChildError(VisgetError):
    """The child ended without an answer.

    Invariant: it never reaches a user as it is; the caller says which package and which work it was.
    """

    def __init__(self, cause: Cause, message: str, *, stage: Frame | None, errors: str) -> None:
        super().__init__(message, details={"cause": cause, "stderr": errors})
        self.cause = cause
        self.stage = stage
        self.errors = errors

    @property
    def stage_name(self) -> str:
        """The last stage that the child announced."""
        return clean_line(str(self.stage.head.get("stage", "")))[:80] if self.stage else "start"


def run_child(
    module: str,
    head: Mapping[str, object],
    parts: Sequence[Part],
    limits: Limits,
    on_stage: OnStage | None = None,
) -> Reply:
    """Run ``module.main`` in a fresh process and return its reply and what the process was confined by.

    The process has an isolated interpreter without site modules, an empty environment, no descriptors but its
    three pipes, and a process group of its own.

    Raises:
        ChildError: it was killed, ran out of time or memory, or sent something else than a reply.
        ResourceError: no process can be started.
        Exception: whatever a part raised while it was made.
    """
    request = encoding({**head, "limits": limits.as_dict()}, parts)
    environment = {"LC_ALL": "C.UTF-8"}
    if limits.library_path:
        environment["LD_LIBRARY_PATH"] = limits.library_path
    try:
        process = subprocess.Popen(
            python_command(module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            close_fds=True,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise ResourceError(
            f"cannot start a worker process: {error.strerror}", hint="close other programs and try again"
        ) from error
    with process:
        try:
            return _Conversation(process, request, limits, on_stage).hold()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def python_command(module: str) -> list[str]:
    """Return the command that runs ``module.main`` in an isolated interpreter.

    ``-I -S`` leaves only the standard library on the path (and runs no ``.pth`` file), so the directories of
    the few distributions that a worker needs are named: they may be in a user's own site-packages.
    """
    if not sys.executable:
        raise ResourceError(
            "this Python cannot tell where its interpreter is, so no worker process can be started",
            hint="run visget from an ordinary python3",
        )
    return [sys.executable, "-I", "-S", "-c", _BOOT, module, str(os.getpid()), *_directories()]


def _directories() -> list[str]:
    found: list[str] = []
    for name in _NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            continue
        directory = str(Path(spec.origin).parent.parent)
        if directory not in found:
            found.append(directory)
    return found


class _Conversation:
    """One request and its reply."""

    def __init__(
        self, process: subprocess.Popen[bytes], request: Iterator[bytes], limits: Limits, on_stage: OnStage | None
    ) -> None:
        self._process = process
        self._request = request
        self._unsent = memoryview(b"")
        self._limits = limits
        self._on_stage = on_stage
        self._received = bytearray()
        self._errors = bytearray()
        self._stage: Frame | None = None
        self._reply: Frame | None = None
        self._level: Level | None = None

    def hold(self) -> Reply:
        """Exchange everything until the child closes its output, then judge how it ended."""
        deadline = time.monotonic() + self._limits.seconds
        with selectors.DefaultSelector() as selector:
            for stream, events in (
                (self._process.stdin, selectors.EVENT_WRITE),
                (self._process.stdout, selectors.EVENT_READ),
                (self._process.stderr, selectors.EVENT_READ),
            ):
                assert stream is not None  # noqa: S101 - all three are pipes
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, events)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._died("time", f"it took longer than {self._limits.seconds:.0f} s")
                for key, _ in selector.select(min(left, 5.0)):
                    if not self._serve(key.fileobj):  # type: ignore[arg-type]
                        selector.unregister(key.fileobj)
            try:
                status = self._process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise self._died("time", f"it took longer than {self._limits.seconds:.0f} s") from None
        return self._judge(status)

    def _serve(self, stream: IO[bytes]) -> bool:
        """Move bytes in one direction; say whether there can be more."""
        if stream is self._process.stdin:
            return self._feed(stream)
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            return False
        if stream is self._process.stderr:
            self._errors += chunk
            del self._errors[:-_STDERR_KEPT]
        else:
            self._received += chunk
            self._take_frames()
        return True

    def _feed(self, stream: IO[bytes]) -> bool:
        if not self._unsent:
            self._unsent = memoryview(self._next())
        if not self._unsent:
            stream.close()
            return False
        try:
            self._unsent = self._unsent[os.write(stream.fileno(), self._unsent[: 1 << 20]) :]
        except BrokenPipeError:  # it died, or answered without reading: the reply will tell
            stream.close()
            return False
        return True

    def _next(self) -> bytearray:
        """Return more of the request, empty when there is no more; its pieces may be tiny."""
        gathered = bytearray()
        for piece in self._request:
            gathered += piece
            if len(gathered) >= _CHUNK:
                break
        return gathered

    def _take_frames(self) -> None:
        while self._received:
            if self._reply is not None:
                raise self._died("garbage", "it sent bytes after its reply")
            view = memoryview(self._received)
            try:
                found = decode(view, self._limits.reply)
            except FrameError as error:
                raise self._died("garbage", f"it sent something that is not an answer: {error}") from error
            finally:
                view.release()
            if found is None:
                if len(self._received) > self._limits.reply + (1 << 20):
                    raise self._died("garbage", f"its answer is over the limit of {self._limits.reply} bytes")
                return
            frame, used = found
            del self._received[:used]
            if "status" in frame.head:
                self._reply = frame
            elif frame.head.get("stage") == "confined" and self._level is None:
                level = frame.head.get("level")
                self._level = parse_level(level) if isinstance(level, dict) else NOTHING
            elif "stage" in frame.head:
                self._stage = frame
                if self._on_stage is not None:
                    self._on_stage(frame)
            else:
                raise self._died("garbage", "it sent something that is neither a stage nor an answer")

    def _judge(self, status: int) -> Reply:
        if self._reply is not None and not self._received and status == 0:
            level = self._level or NOTHING
            if self._limits.sandbox == "require" and not level.complete and self._reply.head["status"] == "ok":
                raise self._died("garbage", "it did not say that it was confined")
            return Reply(head=self._reply.head, parts=self._reply.parts, sandbox=level)
        if any(word in self._text() for word in _MEMORY_WORDS):
            raise self._died("memory", f"it needed more than {self._limits.memory >> 20} MiB of memory")
        if status < 0:
            number = -status
            if number == signal.SIGXCPU:
                raise self._died("time", f"it used more than {self._limits.seconds:.0f} s of processor time")
            if number == signal.SIGSYS:
                raise self._died("forbidden", "it tried something that the sandbox forbids (SIGSYS)")
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            raise self._died("signal", f"it was ended by {name} ({signal.strsignal(number)})")
        if status != 0:
            raise self._died("exit", f"it ended with status {status}")
        raise self._died("garbage", "it ended without an answer")

    def _text(self) -> str:
        return clean_text(self._errors.decode("utf-8", "replace"))

    def _died(self, cause: Cause, message: str) -> ChildError:
        return ChildError(cause, message, stage=self._stage, errors=self._text())
