from __future__ import annotations

import json
import sys

import pytest

from visget.installer import devices
from visget.installer.devices import DeviceList, OpenClDevice, list_devices, parse_reply

DEVICE = {
    "platform": "Portable", "name": "cpu-1", "vendor": "V", "kind": "cpu", "version": "OpenCL 3.0", "driver": "1",
    "units": 2, "memory": 1 << 30, "spirv": True,
}  # fmt: skip


def test_it_always_answers() -> None:
    found = list_devices()
    assert bool(found.devices) != bool(found.reason)
    assert "could not be asked" not in found.reason


def pretend(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run `code` in place of the drivers."""
    monkeypatch.setattr(devices, "python_command", lambda _: [sys.executable, "-c", code])


def test_a_hanging_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "import time; time.sleep(30)")
    assert "did not answer" in list_devices(timeout=0.5).reason


def test_a_crashing_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "import os; os.kill(os.getpid(), 11)")
    assert "signal 11" in list_devices().reason


def test_a_child_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "raise RuntimeError('no ICD')")
    assert "no ICD" in list_devices().reason


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda _: None)
    assert "visget[opencl]" in list_devices().reason


def test_the_answer_is_the_last_line() -> None:
    output = b"a driver says hello\n" + json.dumps([DEVICE]).encode() + b"\n"
    found = parse_reply(0, output, b"warnings")
    assert found == DeviceList(devices=(OpenClDevice(**DEVICE),), reason="")
    assert found.devices[0].as_dict() == DEVICE


@pytest.mark.parametrize("output", [b"", b"hello", b"[1]", b'[{"name": 1}]', b"{}\n[]x"])
def test_answers_that_are_none(output: bytes) -> None:
    assert parse_reply(0, output, b"").devices == ()
    assert parse_reply(0, output, b"").reason
