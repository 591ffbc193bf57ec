from __future__ import annotations

import pytest

from visget.errors import EXIT_UNSUPPORTED, UnsupportedError
from visget.installer.target import (
    PLATFORMS,
    Target,
    baseline,
    known_targets,
    make_target,
    ordered_features,
    parse_target,
    x86_level,
)

HOST = make_target("x86_64", "gnu", "skylake", ["+avx", "+avx2", "+fma", "-avx512f", "-rtm"])


def accept(target: Target) -> Target:
    return target


def never(target: Target) -> Target:
    raise AssertionError(f"LLVM need not be asked about {target}")


def parse(text: str, host: Target = HOST) -> Target:
    return parse_target(text, host, accept)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_platform_alone_is_its_baseline(platform: str) -> None:
    target = parse_target(platform, HOST, never)
    assert target.platform == platform
    assert target == baseline(target.arch, target.libc)


def test_parts_of_a_target() -> None:
    target = parse("aarch64-linux-musl:neoverse-n1")
    assert (target.arch, target.system, target.libc, target.cpu) == ("aarch64", "linux", "musl", "neoverse-n1")
    assert target.triple == "aarch64-unknown-linux-musl"
    assert str(target) == "aarch64-linux-musl:neoverse-n1"


def test_host_and_baseline() -> None:
    assert parse_target("host", HOST, never) is HOST
    assert parse_target("baseline", HOST, never).key() == "x86_64-unknown-linux-gnu:x86-64:"
    riscv = make_target("riscv64", "musl", "sifive-u74")
    assert parse_target("baseline", riscv, never).key() == "riscv64-unknown-linux-musl:generic-rv64:+a,+c,+d,+f,+m"


def test_levels_stand_for_the_hosts_libc() -> None:
    musl = make_target("x86_64", "musl", "znver4")
    assert parse("x86-64-v3", musl).key() == "x86_64-unknown-linux-musl:x86-64-v3:"
    assert parse("x86-64-v3,-movbe").key() == "x86_64-unknown-linux-gnu:x86-64-v3:-movbe"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("x86_64-linux-gnu:znver4+avxvnni,-avx512f", "x86_64-unknown-linux-gnu:znver4:+avxvnni,-avx512f"),
        ("x86_64-linux-gnu:x86-64-v3+aes+sha", "x86_64-unknown-linux-gnu:x86-64-v3:+aes,+sha"),
        ("x86_64-linux-gnu:x86-64-v3,+sha,+aes", "x86_64-unknown-linux-gnu:x86-64-v3:+aes,+sha"),
        ("riscv64-linux-gnu:sifive-u74+v", "riscv64-unknown-linux-gnu:sifive-u74:+a,+c,+d,+f,+m,+v"),
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu:x86-64:"),
        ("x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu:x86-64:"),
        ("amd64-linux-gnu", "x86_64-unknown-linux-gnu:x86-64:"),
        ("arm64-linux-musl", "aarch64-unknown-linux-musl:generic:"),
        ("aarch64-linux-android:cortex-a76", "aarch64-unknown-linux-android28:cortex-a76:"),
        ("arm64-macos", "aarch64-apple-macosx11.0.0-macho:generic:"),
        ("x86_64-windows:x86-64-v3", "x86_64-pc-windows-gnu:x86-64-v3:"),
        (" aarch64-linux-gnu:baseline+sve ", "aarch64-unknown-linux-gnu:generic:+sve"),
    ],
)
def test_spellings(text: str, key: str) -> None:
    assert parse(text).key() == key


def test_host_processor_on_another_libc_keeps_the_features_that_are_not_named() -> None:
    target = parse("x86_64-linux-musl:host,-avx2+rtm")
    assert target.key() == "x86_64-unknown-linux-musl:skylake:+avx,+fma,+rtm,-avx2,-avx512f"


@pytest.mark.parametrize(
    "text",
    [
        "x86_64-windows-msvc", "x86_64-w64-mingw32", "aarch64-apple-darwin", "x86_64-macos", "wasm32-wasi", "wasm64",
        "x86_64-linux-android", "aarch64-windows", "aarch64-ios", "armv7-linux-gnueabihf", "i686-linux-gnu",
        "powerpc64le-linux-gnu", "s390x-linux-gnu", "riscv32-linux-gnu", "nvptx64-nvidia-cuda", "x86_64-freebsd",
    ],
)  # fmt: skip
def test_known_platforms_without_a_back_end(text: str) -> None:
    with pytest.raises(UnsupportedError, match="no back end") as caught:
        parse_target(text, HOST, never)
    assert text in caught.value.message
    assert all(name in str(caught.value.hint) for name in ("host", "baseline", *PLATFORMS))
    assert caught.value.exit_code == EXIT_UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("x86_64-linux-gun", "x86_64-linux-gnu"),
        ("aarch64-linux", "aarch64-linux-"),
        ("x86-64-v5", "x86-64-v"),
        ("hots", "host"),
        ("basline", "baseline"),
        ("riscv64-linux-mussel:sifive-u74", "riscv64-linux-musl"),
    ],
)
def test_misspelled_targets_get_a_suggestion(text: str, near: str) -> None:
    with pytest.raises(UnsupportedError, match=f"did you mean '{near}"):
        parse_target(text, HOST, never)


@pytest.mark.parametrize("text", ["", "native", "linux", "x86_64", "../../etc", "x" * 5000])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_target(text, HOST, never)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x86_64-linux-gnu:", "names no processor"),
        ("x86_64-linux-gnu:+avx2", "names no processor"),
        ("x86_64-linux-gnu:sky lake", "names no processor"),
        ("x86_64-linux-gnu:skylake,avx2", "not a feature with its sign"),
        ("x86_64-linux-gnu:skylake+", "not a feature with its sign"),
        ("x86_64-linux-gnu:skylake+avx2 ,-fma;", "not a feature with its sign"),
        ("x86_64-linux-gnu:skylake,-sse2", "how functions call each other"),
        ("x86_64-linux-gnu:skylake+x32", "how functions call each other"),
        ("x86_64-linux-gnu:skylake+soft-float", "how functions call each other"),
        ("riscv64-linux-gnu:sifive-u74,-d", "how functions call each other"),
        ("riscv64-linux-gnu:sifive-u74+e", "how functions call each other"),
        ("aarch64-linux-gnu:generic+reserve-x18", "how functions call each other"),
        ("aarch64-linux-gnu:host", "processor is x86_64"),
    ],
)
def test_bad_processors_and_features(text: str, complaint: str) -> None:
    with pytest.raises(UnsupportedError, match=complaint):
        parse_target(text, HOST, never)


def test_off_wins_and_the_order_is_canonical() -> None:
    assert ordered_features(["-b", "+c", "+a", "+b", "+a"]) == ("+a", "+c", "-b")
    assert ordered_features(["+b", "-b"]) == ordered_features(["-b", "+b"]) == ("-b",)
    for bad in ("avx", "+", "+a b", "+a,b", "+\n"):
        with pytest.raises(ValueError, match="sign"):
            ordered_features([bad])


def test_key_separates_what_differs() -> None:
    keys = {
        make_target(arch, libc, cpu, features).key()
        for arch in ("x86_64", "aarch64")
        for libc in ("gnu", "musl")
        for cpu in ("a", "b")
        for features in ([], ["+x"], ["-x"], ["+x", "+y"])
    }
    assert len(keys) == 32


def test_make_target_refuses_other_platforms() -> None:
    with pytest.raises(ValueError, match="sparc"):
        make_target("sparc", "gnu", "v9")


def test_levels_from_features() -> None:
    assert x86_level([]) == "x86-64"
    assert x86_level(HOST.features) == "x86-64"
    v2 = ["+cx16", "+popcnt", "+sahf", "+sse3", "+sse4.1", "+sse4.2", "+ssse3"]
    assert x86_level(v2) == "x86-64-v2"
    v3 = [*v2, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe", "+xsave"]
    assert x86_level(v3) == "x86-64-v3"
    assert x86_level([*v3, "-fma"]) == "x86-64-v3"  # a contradiction is not looked for here
    assert x86_level([f for f in v3 if f != "+fma"]) == "x86-64-v2"


def test_what_runs_here() -> None:
    assert HOST.runs_on(HOST)
    assert baseline("x86_64", "gnu").runs_on(HOST)
    assert not baseline("x86_64", "musl").runs_on(HOST)
    assert not baseline("aarch64", "gnu").runs_on(HOST)
    assert parse("x86_64-linux-gnu:baseline+avx2").runs_on(HOST)
    assert not parse("x86_64-linux-gnu:baseline+avx512f").runs_on(HOST)
    assert not parse("x86-64-v3").runs_on(HOST), "this host does not list bmi"
    assert not parse("x86_64-linux-gnu:znver4").runs_on(HOST)
    # The host's own name implies features that its hypervisor hides: only with those off is it sure to run.
    assert not parse("x86_64-linux-gnu:skylake").runs_on(HOST)
    assert parse("x86_64-linux-gnu:skylake,-avx512f,-rtm").runs_on(HOST)
    riscv = baseline("riscv64", "gnu")
    assert riscv.runs_on(riscv)


def test_lists() -> None:
    assert known_targets()[:2] == ("host", "baseline")
    assert HOST.as_dict()["features"] == ["+avx", "+avx2", "+fma", "-avx512f", "-rtm"]
