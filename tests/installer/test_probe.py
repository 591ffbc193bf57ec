from __future__ import annotations

import subprocess

import pytest

from visget.errors import ResourceError, UnsupportedError
from visget.installer import probe
from visget.installer.detect import host_target
from visget.installer.probe import check_target, known_names
from visget.installer.target import make_target, parse_target


@pytest.mark.parametrize(
    ("arch", "cpu", "features"),
    [
        ("x86_64", "znver4", ["+avxvnni", "-avx512f"]),
        ("x86_64", "x86-64-v4", []),
        ("aarch64", "neoverse-n1", ["-lse"]),
        ("riscv64", "sifive-u74", ["+v", "+zbs"]),
    ],
)
def test_llvm_knows_these(arch: str, cpu: str, features: list[str]) -> None:
    target = make_target(arch, "gnu", cpu, features)
    assert check_target(target) is target


def test_llvm_accepts_the_hosts_own_target() -> None:
    assert check_target(host_target()) == host_target()


@pytest.mark.parametrize(
    ("text", "complaint", "near"),
    [
        ("x86_64-linux-gnu:znver44", "no processor 'znver44'", "znver4"),
        ("x86_64-linux-gnu:skylake+avx22", "no feature 'avx22'", "avx2"),
        ("aarch64-linux-gnu:neoverse-n11", "no processor 'neoverse-n11'", "neoverse-n1"),
        ("riscv64-linux-gnu:generic-rv64+zbbb", "no feature 'zbbb'", "zbb"),
        ("x86_64-linux-gnu:help", "no processor|makes no 64-bit", ""),
    ],
)
def test_what_llvm_would_silently_ignore_is_refused(text: str, complaint: str, near: str) -> None:
    with pytest.raises(UnsupportedError, match=complaint) as caught:
        parse_target(text, host_target())
    assert f"{near}'" in caught.value.message or not near


def test_processors_without_64_bit_mode_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="64-bit"):
        check_target(make_target("x86_64", "gnu", "i386"))


def test_tables() -> None:
    cpus, features = known_names("x86_64-unknown-linux-gnu")
    assert {"skylake", "znver4", "x86-64-v3"} <= set(cpus)
    assert {"avx2", "avx512f"} <= set(features)
    assert "avx2" not in cpus


def test_a_silent_child_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("probe", 60)

    monkeypatch.setattr(probe.subprocess, "run", hang)
    with pytest.raises(ResourceError, match="did not answer"):
        check_target(make_target("x86_64", "gnu", "znver3"))
