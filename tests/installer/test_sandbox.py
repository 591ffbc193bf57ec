"""Which level is demanded, what happens where it cannot be had, and how it is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confinedkit import NO_LANDLOCK, NO_SECCOMP, linux, run_python
from workerkit import sample

from visget.errors import CompileError, UnsupportedError
from visget.installer import child, sandbox
from visget.installer.child import run_child
from visget.installer.compile import compile_package
from visget.installer.limits import Limits
from visget.installer.sandbox import NOTHING, Level, demanded, lacking, parse_level, weakest
from visget.installer.target import baseline

FULL, ONLY_SECCOMP = Level(seccomp=True, landlock=7), Level(seccomp=True)
HERE = baseline("x86_64", "gnu")


@pytest.mark.parametrize(
    ("mode", "level", "platform", "entered"),
    [
        ("require", FULL, "linux", FULL),
        ("require", ONLY_SECCOMP, "linux", None),
        ("require", NOTHING, "darwin", None),
        ("auto", FULL, "linux", FULL),
        ("auto", ONLY_SECCOMP, "linux", ONLY_SECCOMP),
        ("auto", Level(landlock=3), "linux", None),
        ("auto", NOTHING, "linux", None),
        ("auto", NOTHING, "darwin", NOTHING),
        ("auto", NOTHING, "win32", NOTHING),
        ("off", FULL, "linux", NOTHING),
        ("off", NOTHING, "linux", NOTHING),
    ],
)
def test_what_each_mode_demands(
    monkeypatch: pytest.MonkeyPatch, mode: sandbox.Mode, level: Level, platform: str, entered: Level | None
) -> None:
    monkeypatch.setattr(sandbox, "available", lambda: level)
    monkeypatch.setattr(sys, "platform", platform)
    if entered is not None:
        assert demanded(mode) == entered
        return
    with pytest.raises(UnsupportedError, match="cannot be set up") as caught:
        demanded(mode)
    assert "VISGET_SANDBOX=" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("platform", "level", "words"),
    [
        ("linux", FULL, ()),
        ("linux", ONLY_SECCOMP, ("Landlock",)),
        ("linux", Level(landlock=2), ("seccomp",)),
        ("linux", NOTHING, ("seccomp", "Landlock")),
        ("darwin", NOTHING, ("macOS", "neither", "read and write your files")),
        ("win32", NOTHING, ("win32", "neither", "read and write your files")),
    ],
)
def test_what_is_missing_is_said_plainly(
    monkeypatch: pytest.MonkeyPatch, platform: str, level: Level, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    told = lacking(level)
    assert bool(told) == bool(words)
    assert all(word in told for word in words)


def test_levels_as_texts_and_the_weakest() -> None:
    assert [str(level) for level in (FULL, ONLY_SECCOMP, Level(landlock=3), NOTHING)] == [
        "seccomp, landlock 7", "seccomp", "landlock 3", "limits only",
    ]  # fmt: skip
    assert weakest([FULL, Level(seccomp=True, landlock=4)]) == Level(seccomp=True, landlock=4)
    assert weakest([FULL, ONLY_SECCOMP]) == ONLY_SECCOMP
    assert weakest([FULL, NOTHING]) == NOTHING
    assert weakest([]) == NOTHING


@pytest.mark.parametrize("level", [FULL, ONLY_SECCOMP, NOTHING])
def test_levels_survive_the_way_to_the_parent(level: Level) -> None:
    assert parse_level(level.as_dict()) == level


@pytest.mark.parametrize(
    "obj", [{}, {"seccomp": 1, "landlock": True}, {"seccomp": "yes", "landlock": -1}, {"landlock": 10**9}]
)
def test_a_child_cannot_boast(obj: dict[str, object]) -> None:
    assert parse_level(obj) == NOTHING


@linux
def test_the_child_says_what_confines_it_before_anything_else() -> None:
    made = compile_package(sample(), HERE, Limits(seconds=60.0))
    assert made.sandbox == sandbox.available()
    assert made.sandbox.seccomp
    off = compile_package(sample(), HERE, Limits(seconds=60.0, sandbox="off"))
    assert off.sandbox == NOTHING
    assert off.object == made.object


def test_a_child_that_says_nothing_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os, struct\ntext = b'{\"status\": \"ok\"}'\nos.write(1, struct.pack('<I', len(text)) + text)\n"
    monkeypatch.setattr(child, "python_command", lambda module: [sys.executable, "-I", "-S", "-c", script])
    assert run_child("none", {}, (), Limits()).sandbox == NOTHING
    with pytest.raises(child.ChildError, match="did not say that it was confined"):
        run_child("none", {}, (), Limits(sandbox="require"))


def test_only_the_first_claim_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that was taken over later cannot make the receipt say more."""
    script = (
        "import json, os, struct\n"
        "for head in ({'stage': 'confined', 'level': {'seccomp': False, 'landlock': 0}},"
        " {'stage': 'confined', 'level': {'seccomp': True, 'landlock': 7}}, {'status': 'ok'}):\n"
        "    text = json.dumps(head).encode(); os.write(1, struct.pack('<I', len(text)) + text)\n"
    )
    monkeypatch.setattr(child, "python_command", lambda module: [sys.executable, "-I", "-S", "-c", script])
    assert run_child("none", {}, (), Limits()).sandbox == NOTHING


@linux
def test_a_forbidden_call_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM "taken over": while the module is checked, a socket is opened."""
    hook = "import socket, visget.installer.worker as w; w.check_module = lambda *a, **k: socket.socket(); "
    monkeypatch.setattr(
        child, "_BOOT", child._BOOT.replace("importlib.import_module(sys", hook + "importlib.import_module(sys")
    )
    with pytest.raises(CompileError, match="something that the sandbox forbids") as caught:
        compile_package(sample(), HERE, Limits(seconds=60.0))
    assert caught.value.details["cause"] == "forbidden"
    assert caught.value.details["stage"] == "check"
    assert "hostile" in (caught.value.hint or "")


COMPILE = """
from workerkit import sample
from visget.errors import VisgetError
from visget.installer.compile import compile_package
from visget.installer.limits import Limits
from visget.installer.target import baseline
def attempt(mode):
    try:
        return str(compile_package(sample(), baseline("x86_64", "gnu"), Limits(seconds=60.0, sandbox=mode)).sandbox)
    except VisgetError as error:
        return [type(error).__name__, error.message, error.hint]
result = {mode: attempt(mode) for mode in ("require", "auto", "off")}
"""


def compile_on(kernel: str) -> dict[str, object]:
    support = Path(__file__).parents[1] / "support"
    result = run_python(COMPILE, f"sys.path.insert(0, {str(support)!r})", kernel)
    assert isinstance(result, dict)
    return result


@linux
def test_a_container_without_landlock() -> None:
    result = compile_on(NO_LANDLOCK)
    assert result["auto"] == "seccomp"
    assert result["off"] == "limits only"
    assert isinstance(result["require"], list)
    assert result["require"][0] == "UnsupportedError"
    assert "no Landlock" in result["require"][1]
    assert "VISGET_SANDBOX=auto" in result["require"][2]


@linux
def test_a_kernel_without_seccomp_is_refused_unless_the_user_says_off() -> None:
    result = compile_on(NO_SECCOMP)
    assert result["off"] == "limits only"
    for mode in ("auto", "require"):
        told = result[mode]
        assert isinstance(told, list)
        assert told[0] == "UnsupportedError"
        assert "no seccomp" in told[1]
        assert told[2].endswith("VISGET_SANDBOX=off")


@linux
def test_a_worker_imports_nothing_after_it_was_confined() -> None:
    """Otherwise it would only work where files can be read."""
    for module, operation in (("worker", "compile"), ("answer_worker", "answer")):
        script = f"import visget.installer.{module}, sys; print(*sorted(m for m in sys.modules if 'visget' in m))"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert "visget.format.apijson" in done.stdout.split(), operation
