from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from native_code import EXPORTS, SIMPLE, cross_compile, object_of, qemu, zig

from visget.installer.archive import write_archive
from visget.installer.linkers import clean_environment
from visget.installer.target import baseline

PROGRAM = """
#include <stdio.h>
int add(int, int); int pick(long); double power(double, double); unsigned long length(const char *);
int main(void) { printf("%d %d %g %lu\\n", add(2, 3), pick(3), power(2, 10), length("hello")); return 0; }
"""


@pytest.mark.parametrize("member", ["x.o", "a-name-of-fifteen.o"[-15:], "exactly-sixteen.o"[-16:], "long-" * 9 + ".o"])
@pytest.mark.parametrize("size", [0, 1, 2, 4097])
def test_ar_reads_it(tmp_path: Path, member: str, size: int) -> None:
    ar = shutil.which("ar")
    command = [ar] if ar else [str(zig()), "ar"]
    content = bytes(range(256)) * (size // 256 + 1)
    path = tmp_path / "lib.a"
    path.write_bytes(write_archive(member, content[:size], ["one"]))
    listed = subprocess.run([*command, "t", path], capture_output=True, text=True, check=True)
    assert listed.stdout == f"{member}\n"
    assert subprocess.run([*command, "p", path, member], capture_output=True, check=True).stdout == content[:size]


def test_symbol_index_names_every_symbol(tmp_path: Path) -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm (Debian: binutils) is not installed")
    path = tmp_path / "lib.a"
    path.write_bytes(write_archive("x.o", object_of(SIMPLE), EXPORTS))
    listed = subprocess.run([nm, "--print-armap", path], capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if " in " in line] == [f"{name} in x.o" for name in sorted(EXPORTS)]


def test_bytes_depend_on_the_arguments_alone() -> None:
    one = write_archive("x.o", b"content", ["b", "a"])
    assert one == write_archive("x.o", b"content", ["a", "b", "a"])
    assert one != write_archive("x.o", b"content", ["a"])
    assert one != write_archive("x.o", b"Content", ["a", "b"])
    assert one.startswith(b"!<arch>\n/               0           0     0     0       16        `\n")


@pytest.mark.parametrize("name", ["", "a/b.o", "a\nb.o"])
def test_bad_member_names(name: str) -> None:
    with pytest.raises(ValueError, match="member"):
        write_archive(name, b"", [])


def test_the_hosts_compiler_links_it(tmp_path: Path) -> None:
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    (tmp_path / "libx.a").write_bytes(write_archive("x.o", object_of(SIMPLE), EXPORTS))
    (tmp_path / "main.c").write_text(PROGRAM, encoding="ascii")
    subprocess.run(
        [cc, "main.c", "-L.", "-lx", "-lm", "-o", "main"], cwd=tmp_path, check=True, env=clean_environment(tmp_path)
    )
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout == b"5 8 1024 5\n"
    # An archive is for shared libraries too: its code is position-independent.
    subprocess.run(
        [cc, "-shared", "-o", "libx.so", "-Wl,--whole-archive", "libx.a", "-Wl,--no-whole-archive", "-lm"],
        cwd=tmp_path, check=True, env=clean_environment(tmp_path),
    )  # fmt: skip
    assert ctypes.CDLL(str(tmp_path / "libx.so")).add(20, 22) == 42


@pytest.mark.cross
@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_foreign_archives_work_in_foreign_programs(tmp_path: Path, arch: str) -> None:
    emulator = qemu(arch)
    target = baseline(arch, "musl")
    (tmp_path / "libx.a").write_bytes(write_archive("x.o", object_of(SIMPLE, target), EXPORTS))
    (tmp_path / "main.c").write_text(PROGRAM, encoding="ascii")
    cross_compile(target.platform, tmp_path / "main.c", tmp_path / "main", "-static", str(tmp_path / "libx.a"))
    done = subprocess.run([*emulator, tmp_path / "main"], capture_output=True, check=True)
    assert done.stdout == b"5 8 1024 5\n"
