from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from visget.errors import UnsupportedError
from visget.installer import detect
from visget.installer.cpuinfo import CpuInfo, parse_cpuinfo
from visget.installer.detect import choose_target, detect_host, host_target, level_of_name, masked_features
from visget.installer.target import baseline

HOSTS = Path(__file__).parents[1] / "data" / "hosts"
SILENT = CpuInfo(vendor="", model="", cpu="", features=(), hypervisor=False)


def info(arch: str, host: str) -> CpuInfo:
    return parse_cpuinfo(arch, (HOSTS / f"{host}.cpuinfo").read_text(encoding="utf-8"))


def test_this_machine() -> None:
    target = host_target()
    assert target.runs_on(target)
    assert target.arch in ("x86_64", "aarch64", "riscv64")
    assert any(feature[0] == "+" for feature in target.features)


def test_facts_are_json_and_lines() -> None:
    facts = detect_host()
    again = json.loads(json.dumps(facts.as_dict()))
    assert again["cores"] == len(os.sched_getaffinity(0))
    assert again["target"]["key"] == host_target().key()
    text = "\n".join(facts.as_lines(facts.target))
    assert str(facts.target) in text
    assert "not this machine" not in text
    assert "not this machine" in "\n".join(facts.as_lines(baseline("riscv64", "musl")))


def test_cores_follow_the_affinity_of_the_process() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert detect_host().cores == 1
    finally:
        os.sched_setaffinity(0, before)


def test_llvm_is_believed_on_x86() -> None:
    target = choose_target("x86_64", "gnu", "skylake", {"avx2": True, "fma": True, "64bit": True, "rtm": False}, SILENT)
    # archspec says that a Skylake has v3; with AVX2 and FMA alone the name is not kept.
    assert target.key() == "x86_64-unknown-linux-gnu:x86-64:+avx2,+fma,-rtm"


def test_kernels_text_serves_where_llvm_says_nothing() -> None:
    target = choose_target("x86_64", "gnu", "skylake", {}, info("x86_64", "skylake"))
    assert target.cpu == "skylake"
    assert "+avx2" in target.features
    assert "-avx512f" in target.features


def test_a_masked_machine_loses_its_name() -> None:
    target = choose_target("x86_64", "gnu", "skylake-avx512", {}, info("x86_64", "vm-masked"))
    assert target.cpu == "x86-64-v2"
    assert {"+sse4.2", "-avx", "-avx512f"} <= set(target.features)


def test_an_unknown_x86_gets_its_level() -> None:
    assert choose_target("x86_64", "gnu", "", {}, info("x86_64", "zen4")).cpu == "x86-64-v4"
    assert choose_target("x86_64", "gnu", "generic", {}, info("x86_64", "skylake")).cpu == "x86-64-v3"


def test_what_the_kernel_hides_on_arm_is_switched_off() -> None:
    # LLVM reports what it sees, and nothing about what it does not see.
    seen = {"neon": True, "fp-armv8": True, "crc": True, "aes": False, "sha2": False}
    pi = choose_target("aarch64", "gnu", "cortex-a72", seen, info("aarch64", "rpi4"))
    assert pi.cpu == "cortex-a72"
    assert {"+crc", "-aes", "-sha2", "-sve", "-lse"} <= set(pi.features)
    graviton = choose_target("aarch64", "gnu", "neoverse-v1", {"neon": True}, info("aarch64", "neoverse-v1-nosve"))
    assert {"+bf16", "-sve", "-sve2"} <= set(graviton.features)
    # The kernel's "off" beats LLVM's "on".
    liar = choose_target("aarch64", "gnu", "neoverse-v1", {"sve": True}, info("aarch64", "neoverse-v1-nosve"))
    assert "-sve" in liar.features
    assert "+sve" not in liar.features


def test_tables_name_what_llvm_does_not() -> None:
    assert choose_target("aarch64", "gnu", "generic", {}, info("aarch64", "rpi4")).cpu == "cortex-a72"
    assert choose_target("aarch64", "gnu", "", {}, info("aarch64", "rk3588")).cpu == "generic"
    riscv = choose_target("riscv64", "gnu", "", {}, info("riscv64", "visionfive2"))
    assert riscv.cpu == "sifive-u74"
    assert {"+m", "+a", "+f", "+d", "+c", "+zba", "-v"} <= set(riscv.features)


def test_nothing_known_means_the_baseline() -> None:
    for arch in ("x86_64", "aarch64", "riscv64"):
        assert choose_target(arch, "musl", "fast-cpu-9000", {}, SILENT) == baseline(arch, "musl")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("nehalem", "x86-64-v2"), ("haswell", "x86-64-v3"), ("skylake", "x86-64-v3"), ("znver4", "x86-64-v4"),
        ("skylake-avx512", "x86-64-v4"), ("emeraldrapids", "x86-64-v4"), ("icelake-server", "x86-64-v4"),
        ("no-such-cpu", "x86-64"),
    ],
)  # fmt: skip
def test_levels_of_names(name: str, level: str) -> None:
    assert level_of_name(name) == level


def test_masked_features_are_told_in_the_kernels_words() -> None:
    target = choose_target("x86_64", "gnu", "skylake-avx512", {}, info("x86_64", "vm-masked"))
    assert masked_features(target, frozenset(["avx512f", "avx2", "sse4_2", "clwb"])) == ("avx2", "avx512f")


@pytest.mark.parametrize(
    ("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "ppc64le"), ("linux", "i686")]
)
def test_other_machines_have_no_back_end(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(detect.sys, "platform", system)
    monkeypatch.setattr(detect.platform, "machine", lambda: machine)
    host_target.cache_clear()
    try:
        with pytest.raises(UnsupportedError, match="no back end"):
            host_target()
    finally:
        host_target.cache_clear()
