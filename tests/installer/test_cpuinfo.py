from __future__ import annotations

from pathlib import Path

import pytest

from visget.installer.cpuinfo import Cache, parse_cache, parse_cpuinfo, parse_riscv_isa

HOSTS = Path(__file__).parents[1] / "data" / "hosts"


def read(host: str) -> str:
    return (HOSTS / f"{host}.cpuinfo").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("host", "vendor", "on", "off"),
    [
        ("skylake", "GenuineIntel", {"avx2", "fma", "bmi", "lzcnt", "sse4.2", "sahf"}, {"avx512f", "vaes", "sse4a"}),
        ("zen4", "AuthenticAMD", {"avx512f", "avx512bf16", "avx512vnni", "vaes", "sse4a", "sha"}, {"avxvnni", "rtm"}),
        ("vm-masked", "GenuineIntel", {"sse4.2", "aes", "popcnt"}, {"avx", "avx2", "fma", "avx512f", "xsave"}),
    ],
)
def test_x86(host: str, vendor: str, on: set[str], off: set[str]) -> None:
    info = parse_cpuinfo("x86_64", read(host))
    assert info.vendor == vendor
    assert {f"+{name}" for name in on} <= set(info.features)
    assert {f"-{name}" for name in off} <= set(info.features)
    assert info.cpu == ""
    assert info.hypervisor == (host == "vm-masked")


@pytest.mark.parametrize(
    ("host", "cpu", "on", "off"),
    [
        ("neoverse-n1", "neoverse-n1", {"lse", "dotprod", "fullfp16", "aes", "sha2", "rcpc"}, {"sve", "sha3", "bf16"}),
        ("rpi4", "cortex-a72", {"crc"}, {"aes", "sha2", "lse"}),
        ("neoverse-v1-nosve", "neoverse-v1", {"i8mm", "bf16", "rand", "sm4"}, {"sve", "sve2"}),
        # A55 and A76: no single name, and only the features that both kinds of cores have.
        ("rk3588", "", {"dotprod", "lse"}, {"lse2", "rcpc-immo"}),
    ],
)
def test_aarch64(host: str, cpu: str, on: set[str], off: set[str]) -> None:
    info = parse_cpuinfo("aarch64", read(host))
    assert info.cpu == cpu
    assert {f"+{name}" for name in on} <= set(info.features)
    assert {f"-{name}" for name in off} <= set(info.features)


def test_aarch64_model_comes_from_the_board() -> None:
    assert parse_cpuinfo("aarch64", read("rpi4")).model == "Raspberry Pi 4 Model B Rev 1.2"


@pytest.mark.parametrize(
    ("host", "cpu", "on", "off"),
    [
        ("visionfive2", "sifive-u74", {"zba", "zbb"}, {"v", "zbs", "zicond"}),
        ("bananapi-f3", "spacemit-x60", {"v", "zba", "zbs", "zfh", "zvfh", "zicond"}, {"zbkb", "zvbb"}),
    ],
)
def test_riscv64(host: str, cpu: str, on: set[str], off: set[str]) -> None:
    info = parse_cpuinfo("riscv64", read(host))
    assert info.cpu == cpu
    assert {f"+{name}" for name in on} <= set(info.features)
    assert {f"-{name}" for name in off} <= set(info.features)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64", "sparc"])
@pytest.mark.parametrize("text", ["", "\n\n\n", "nothing here", "processor\t: 0\n", "flags\nFeatures\nisa : garbage\n"])
def test_texts_that_say_nothing(arch: str, text: str) -> None:
    assert parse_cpuinfo(arch, text).features == ()


@pytest.mark.parametrize(
    ("text", "extensions"),
    [
        ("rv64imafdc", {"i", "m", "a", "f", "d", "c"}),
        ("RV64GC_zba", {"g", "c", "i", "m", "a", "f", "d", "zicsr", "zifencei", "zba"}),
        ("rv64imafdcvzba", {"i", "m", "a", "f", "d", "c", "v"}),
        ("rv128i", set()),
        ("x86", set()),
    ],
)
def test_isa_strings(text: str, extensions: set[str]) -> None:
    assert parse_riscv_isa(text) == extensions


def test_caches() -> None:
    assert parse_cache("1\n", "Data\n", "48K\n", "64\n") == Cache(level=1, kind="data", size=49152, line=64)
    assert parse_cache("3", "Unified", "266240K") == Cache(level=3, kind="unified", size=266240 << 10, line=0)
    assert parse_cache("2", "Unified", "1M", "?") == Cache(level=2, kind="unified", size=1 << 20, line=0)
    for level, size in (("", "48K"), ("1", ""), ("one", "48K"), ("1", "48 kB")):
        assert parse_cache(level, "Data", size) is None


def test_compiler_features_have_llvms_names() -> None:
    """Every name in the tables is one that LLVM knows; otherwise it would be ignored in silence."""
    from visget.installer.probe import known_names

    for host, arch in (("zen4", "x86_64"), ("rpi4", "aarch64"), ("visionfive2", "riscv64")):
        _, known = known_names(f"{arch}-unknown-linux-gnu")
        listed = {feature[1:] for feature in parse_cpuinfo(arch, read(host)).features}
        assert listed <= set(known), listed - set(known)


def test_processor_names_are_llvms() -> None:
    from visget.installer import cpuinfo
    from visget.installer.probe import known_names

    assert set(cpuinfo._ARM_PARTS.values()) <= set(known_names("aarch64-unknown-linux-gnu")[0])
    assert set(cpuinfo._RISCV_UARCH.values()) <= set(known_names("riscv64-unknown-linux-gnu")[0])
