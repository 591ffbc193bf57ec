"""C programs linked with installed libraries: for this machine in every way, and for others under qemu-user.

Each program of programs/ prints what its library computes, and the test compares that with a Python reference. So
headers, pkg-config files, archives, calling conventions and code are right together, or the test fails.
"""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import lz4.block
import lz4.frame
import numpy as np
import pytest
import xxhash
from e2ekit import Shelf, prose

pytestmark = pytest.mark.network

PROGRAMS = Path(__file__).parent / "programs"
FOREIGN = {"aarch64-linux-musl": "qemu-aarch64", "riscv64-linux-musl": "qemu-riscv64"}
TEXT = prose(30_000, 41)


def noise(size: int, seed: int) -> bytes:
    """The generator of programs/noise.h."""
    found = bytearray()
    for _ in range(size):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        found.append(seed >> 24)
    return bytes(found)


def lines(output: str) -> list[tuple[str, list[str]]]:
    return [(words[0], words[1:]) for words in map(str.split, output.splitlines()) if words]


def check_xxhash(output: str) -> None:
    found = lines(output)
    assert found.pop(0) == ("version", ["804"])
    data = noise(100_003, 42)
    assert [int(size) for size, _ in found][-3:] == [1025, 4096, 100_003]
    for size, hashes in found:
        part = data[: int(size)]
        assert hashes == [
            f"{xxhash.xxh32_intdigest(part, 3):08x}",
            f"{xxhash.xxh64_intdigest(part, 7):016x}",
            f"{xxhash.xxh3_64_intdigest(part):016x}",
            f"{xxhash.xxh3_128_intdigest(part, 5):032x}",
        ], size


def check_zlib(output: str) -> None:
    found = lines(output)
    assert found[:3] == [
        ("version", ["1.2.13"]),
        ("content", [str(len(TEXT)), f"{zlib.crc32(TEXT):08x}", f"{zlib.adler32(TEXT):08x}"]),
        ("combined", [f"{zlib.crc32(TEXT):08x}"]),
    ]
    assert found[-1] == ("damaged", ["data", "error"])
    windows = {"zlib": 15, "raw": -15, "gzip": 31}
    streams = found[3:-1]
    assert [kind for kind, _ in streams] == ["zlib"] * 4 + ["raw", "gzip"]
    for kind, (text,) in streams:
        assert zlib.decompress(bytes.fromhex(text), windows[kind]) == TEXT, kind


def check_lz4(output: str) -> None:
    found = lines(output)
    assert found[:3] == [("version", ["1.9.4"]), ("content", [str(len(TEXT))]), ("data", [TEXT.hex()])]
    assert [kind for kind, _ in found[3:]] == ["block", "block", "frame"]
    for kind, (text,) in found[3:]:
        packed = bytes.fromhex(text)
        assert len(packed) < len(TEXT)
        if kind == "block":
            assert lz4.block.decompress(packed, uncompressed_size=len(TEXT)) == TEXT
        else:
            assert lz4.frame.decompress(packed) == TEXT


def check_kissfft(output: str) -> None:
    found = lines(output)
    assert found[-2:] == [("fast", ["1080"]), ("odd", ["refused"])]
    kinds = [kind for kind, _ in found[:-2]]
    assert kinds == ["forward", "inverse", "forward"] * 7 + ["real", "plane"]
    for kind, (size_text, *numbers) in found[:-2]:
        size = int(size_text)
        values = (np.frombuffer(noise(size if kind == "real" else 2 * size, size), np.uint8) - 127.5) / 128
        signal = values if kind == "real" else values[::2] + 1j * values[1::2]
        wanted = {
            "forward": lambda s: np.fft.fft(s),
            "inverse": lambda s: np.fft.ifft(s) * s.size,
            "real": lambda s: np.fft.rfft(s),
            "plane": lambda s: np.fft.fft2(s.reshape(4, 6)).ravel(),
        }[kind](signal)
        parts = np.array([float.fromhex(number) for number in numbers])
        assert np.abs(parts[::2] + 1j * parts[1::2] - wanted).max() < 1e-5 * np.abs(wanted).max(), (kind, size)


CHECKS: dict[str, tuple[Callable[[str], None], bytes]] = {
    "xxhash": (check_xxhash, b""),
    "zlib": (check_zlib, zlib.compress(TEXT, 9)),
    "lz4": (check_lz4, lz4.frame.compress(TEXT, block_size=4)),
    "kissfft": (check_kissfft, b""),
}


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("no C compiler (cc, gcc, clang) on this machine")
    return found


def build(command: list[str], name: str, flags: str, program: Path) -> Path:
    words = [*command, "-O1", "-Wall", "-Werror", str(PROGRAMS / f"{name}.c"), *shlex.split(flags), "-o", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stderr}"
    return program


def check(name: str, command: list[str | Path]) -> None:
    judge, given = CHECKS[name]
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr)
    judge(done.stdout.decode())
    assert (b"Real FFT optimization must be even" in done.stderr) == (name == "kissfft")


def test_the_judges_can_say_no() -> None:
    """A check that passes on anything would make this file worthless."""
    with pytest.raises(AssertionError):
        check_xxhash("version 804\n1025 0 0 0 0\n4096 0 0 0 0\n100003 0 0 0 0\n")
    with pytest.raises(AssertionError):
        check_kissfft("forward 1 0x1p+0 0x0p+0\nfast 1080\nodd refused\n")
    with pytest.raises(AssertionError):
        check_zlib("version 1.2.13\n")


@pytest.mark.cross
@pytest.mark.parametrize("target", FOREIGN)
@pytest.mark.parametrize("name", CHECKS)
def test_static_programs_for_other_machines(shelf: Shelf, name: str, target: str, tmp_path: Path) -> None:
    emulator = shutil.which(FOREIGN[target]) or shutil.which(f"{FOREIGN[target]}-static")
    if emulator is None:
        pytest.skip(f"no {FOREIGN[target]} (Debian: qemu-user)")
    shelf.install(name, target)
    flags = shelf.user.visget("pkg-config", "--static", "--cflags", "--libs", name, "--target", target)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-static"]
    program = build(command, name, flags, tmp_path / name)
    check(name, [emulator, program])


@pytest.mark.parametrize("name", CHECKS)
def test_programs_for_this_machine_with_the_shared_library(shelf: Shelf, name: str, tmp_path: Path) -> None:
    entry = shelf.install(name)
    flags = shelf.user.visget("pkg-config", "--cflags", "--libs", name)
    program = build([compiler()], name, flags, tmp_path / name)
    check(name, [program])
    if shutil.which("ldd"):
        needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        used = [Path(word).resolve() for word in needed.split() if word.startswith("/")]
        # The name that programs remember has a part of the artifact's key in it (docs/spec/native-artifact.md).
        own = entry.resolve() / "lib"
        assert [path for path in used if path.parent == own and path.name.startswith(f"lib{name}-")], needed


@pytest.mark.parametrize("name", CHECKS)
def test_programs_for_this_machine_with_the_archive(shelf: Shelf, name: str, tmp_path: Path) -> None:
    shelf.install(name)
    flags = shelf.user.visget("pkg-config", "--static", "--cflags", "--libs", name)
    program = build([compiler()], name, flags, tmp_path / name)
    check(name, [program])
    # It no longer needs the store, and does not mention it.
    assert str(shelf.user.root).encode() not in program.read_bytes()


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("static", [False, True])
def test_programs_through_the_program_pkg_config(shelf: Shelf, name: str, static: bool, tmp_path: Path) -> None:
    tool = shutil.which("pkg-config") or shutil.which("pkgconf")
    if tool is None:
        pytest.skip("no pkg-config on this machine")
    shelf.install(name)
    path = shelf.user.visget("pkg-config", "--path", name).strip()
    words = [tool, "--cflags", "--libs", *(["--static"] if static else []), name]
    done = subprocess.run(words, env={"PKG_CONFIG_PATH": path}, capture_output=True, text=True, check=True)
    check(name, [build([compiler()], name, done.stdout, tmp_path / name)])
    version = subprocess.run(
        [tool, "--modversion", name], env={"PKG_CONFIG_PATH": path}, capture_output=True, text=True, check=True
    )
    assert version.stdout.strip() == shelf.load(name).version


def test_one_program_with_all_libraries(shelf: Shelf, tmp_path: Path) -> None:
    """Libraries share a program without disturbing each other: lz4 has a private copy of xxHash."""
    names = random.Random(1).sample(sorted(CHECKS), len(CHECKS))
    for name in names:
        shelf.install(name)
    source = tmp_path / "all.c"
    source.write_text(
        "#include <stdio.h>\n#include <zlib.h>\n#include <xxhash.h>\n#include <lz4.h>\n#include <kiss_fft.h>\n"
        'int main(void) {\n    printf("%s %u %s ", zlibVersion(), XXH_versionNumber(), LZ4_versionString());\n'
        '    printf("%d %08lx\\n", kiss_fft_next_fast_size(7), crc32(0, (const unsigned char *)"abc", 3));\n'
        "    return 0;\n}\n"
    )
    for static in ([], ["--static"]):
        flags = shelf.user.visget("pkg-config", *static, "--cflags", "--libs", *names)
        words = [compiler(), "-Wall", "-Werror", str(source), *shlex.split(flags), "-o", str(tmp_path / "all")]
        subprocess.run(words, check=True)
        done = subprocess.run([tmp_path / "all"], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["1.2.13", "804", "1.9.4", "8", f"{zlib.crc32(b'abc'):08x}"]
