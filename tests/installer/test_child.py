"""A child process may crash, hang, flood or lie: the parent says what happened and leaves nothing running."""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path

import pytest

from visget.errors import FormatError, ResourceError
from visget.installer import child
from visget.installer.child import ChildError, python_command, run_child
from visget.installer.frames import Flow, Frame, FrameError, decode, encode
from visget.installer.limits import Limits

FRAMES = """
import json, os, struct, sys, time
def send(head, parts=()):
    if parts: head = {**head, "parts": [len(p) for p in parts]}
    text = json.dumps(head).encode()
    os.write(1, struct.pack("<I", len(text)) + text + b"".join(parts))
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """Let run_child() start a script instead of a module."""

    def use(script: str) -> None:
        monkeypatch.setattr(child, "python_command", lambda module: [sys.executable, "-I", "-S", "-c", FRAMES + script])

    return use


def ask(**limits: float) -> Frame:
    return run_child("none", {"op": "x"}, (b"payload",), Limits(**limits))  # type: ignore[arg-type]


def test_a_reply_with_bytes_and_stages(fake) -> None:
    fake(
        'sys.stdin.read(); send({"stage": "one"}); send({"stage": "two"}); send({"status": "ok", "n": 1}, '
        '[b"ab", b"c"])'
    )
    seen: list[str] = []
    reply = run_child("none", {}, (), Limits(), lambda frame: seen.append(frame.head["stage"]))
    assert (reply.head, reply.parts, seen) == ({"status": "ok", "n": 1}, (b"ab", b"c"), ["one", "two"])


def test_a_large_request_and_a_large_reply_do_not_block_each_other(fake) -> None:
    fake('send({"stage": "s"}); os.write(2, b"e" * 200000); data = sys.stdin.buffer.read(); '
         'sys.stdout.buffer.write(b""); f = os.fdopen(1, "wb", 0, closefd=False); '
         'text = json.dumps({"status": "ok", "parts": [len(data)]}).encode(); f = open(1, "wb", closefd=False); '
         'f.write(struct.pack("<I", len(text)) + text + data); f.flush()')  # fmt: skip
    payload = os.urandom(1 << 20) * 8
    reply = run_child("none", {}, (payload,), Limits())
    assert reply.parts[0].endswith(payload)


def test_a_part_is_made_while_it_is_sent(fake) -> None:
    fake('data = sys.stdin.buffer.read(); send({"status": "ok"}, [data])')
    flow = Flow(size=6, chunks=iter([b"ab", b"", b"cd", b"ef"]))
    reply = run_child("none", {}, (b"12", flow, b"34"), Limits())
    found = decode(memoryview(reply.parts[0]), 1 << 20)
    assert found is not None
    assert found[0].parts == (b"12", b"abcdef", b"34")


def test_what_goes_wrong_while_a_part_is_made_ends_the_child(fake, tmp_path: Path) -> None:
    fake(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); sys.stdin.buffer.read()")

    def chunks():
        yield bytes(1 << 20)
        deadline = time.monotonic() + 20
        while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        raise FormatError("the section is damaged")

    with pytest.raises(FormatError, match="damaged"):
        run_child("none", {}, (Flow(size=2 << 20, chunks=chunks()),), Limits())
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("script", "cause", "says"),
    [
        ('send({"stage": "opt"}); os.kill(os.getpid(), 11)', "signal", "SIGSEGV"),
        (
            'send({"stage": "opt"}); sys.stderr.write("LLVM ERROR: no"); sys.stderr.flush(); os.abort()',
            "signal",
            "SIGABRT",
        ),
        ('send({"stage": "opt"}); os.write(2, b"LLVM ERROR: out of memory"); os.abort()', "memory", "memory"),
        ("os._exit(3)", "exit", "status 3"),
        ("", "garbage", "without an answer"),
        ('os.write(1, b"hello world, this is no frame")', "garbage", "not an answer"),
        ('os.write(1, struct.pack("<I", 4) + b"[1] ")', "garbage", "not an object"),
        ('os.write(1, struct.pack("<I", 2) + b"{}")', "garbage", "neither a stage nor an answer"),
        ('send({"status": "ok"}); send({"status": "ok"})', "garbage", "after its reply"),
        ('send({"status": "ok", "parts": [5]})', "garbage", "without an answer"),
        ('send({"status": "ok", "parts": [10**12]})', "garbage", "not an answer"),
        ('send({"status": "ok", "parts": [-1]})', "garbage", "impossible sizes"),
        ('send({"status": "ok"}); os._exit(1)', "exit", "status 1"),
    ],
)
def test_a_child_that_does_not_answer(fake, script: str, cause: str, says: str) -> None:
    fake(script)
    with pytest.raises(ChildError) as caught:
        ask()
    assert caught.value.cause == cause
    assert says in caught.value.message


def test_the_last_stage_and_the_words_on_standard_error_are_kept(fake) -> None:
    fake('send({"stage": "parse"}); send({"stage": "emit\\x1b[31m"}); os.write(2, b"why \\x1b[31m red"); os._exit(9)')
    with pytest.raises(ChildError) as caught:
        ask()
    assert caught.value.stage_name.startswith("emit")
    assert "\x1b" not in caught.value.stage_name + caught.value.errors
    assert "why" in caught.value.errors


@pytest.mark.parametrize(
    "script",
    ["time.sleep(60)", "while True: pass", "os.close(1); os.close(2); sys.stdin.read(); time.sleep(60)",
     'send({"stage": "a"})\nif os.fork() == 0: time.sleep(60)\nos._exit(0)'],
    ids=["sleep", "spin", "closed", "orphan"],
)  # fmt: skip
def test_a_child_that_does_not_end_is_ended(fake, script: str) -> None:
    fake(script)
    begin = time.monotonic()
    with pytest.raises(ChildError, match="took longer than 1 s"):
        ask(seconds=1.0)
    assert time.monotonic() - begin < 10


def test_nothing_of_the_group_survives(fake, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    fake(f'pid = os.fork()\nif pid == 0: time.sleep(300)\nopen({str(note)!r}, "w").write(str(pid)); os._exit(0)')
    with pytest.raises(ChildError):
        ask(seconds=1.0)
    pid = int(note.read_text())
    for _ in range(100):
        if not _alive(pid):
            break
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_an_interrupt_ends_the_child(fake) -> None:
    fake('send({"stage": "a"}); time.sleep(300)')
    started: list[int] = []

    def interrupt(frame: Frame) -> None:
        started.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_child("none", {}, (), Limits(), interrupt)
    assert started


def test_a_flood_is_cut_off(fake) -> None:
    fake(
        "block = bytes(1 << 16)\nsend({'stage': 'x'})\nos.write(1, struct.pack('<I', 100) + "
        'b\'{"status":"ok"\')\nwhile True: os.write(1, block)'
    )
    with pytest.raises(ChildError) as caught:
        ask(reply=1 << 20)
    assert caught.value.cause == "garbage"


def test_a_program_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "python_command", lambda module: ["/nonexistent/python"])
    with pytest.raises(ResourceError, match="cannot start a worker"):
        ask()


def test_the_command_is_isolated_and_finds_what_it_needs() -> None:
    command = python_command("visget.installer.worker")
    assert command[1:3] == ["-I", "-S"]
    assert str(os.getpid()) in command
    assert any((Path(directory) / "llvmlite").is_dir() for directory in command[7:])


def test_frames() -> None:
    data = memoryview(encode({"a": 1}, (b"xy", b"")) + b"rest")
    found = decode(data, 100)
    assert found is not None
    frame, used = found
    assert (frame.head, frame.parts, bytes(data[used:])) == ({"a": 1}, (b"xy", b""), b"rest")
    for cut in range(used):
        assert decode(data[:cut], 100) is None
    with pytest.raises(FrameError, match="over the limit"):
        decode(memoryview(encode({}, (b"x" * 51, b"x" * 51))), 100)
    with pytest.raises(FrameError, match="no JSON"):
        decode(memoryview(struct.pack("<I", 3) + b"{,}"), 100)
    with pytest.raises(FrameError):
        decode(memoryview(struct.pack("<I", 2**31)), 2**32)
