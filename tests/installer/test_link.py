from __future__ import annotations

import ctypes
import io
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from native_code import EXPORTS, GENERIC, HOST_ARCH, IMPORTS, SIMPLE, cross_compile, object_of, promise, qemu

from visget.errors import CompileError, ResourceError, UnsupportedError
from visget.format.imports import IMPORTS as ALLOWED
from visget.installer import clibrary, elf, link_run, linkers
from visget.installer.clibrary import LOADERS, host_libraries, locate, mapped_libraries, stand_ins
from visget.installer.gate import gate_library, gate_object
from visget.installer.link import find_linker, libc_identity, link_library
from visget.installer.linkers import Linker, identify
from visget.installer.symbols import MATH, SUPPORT_CALLS
from visget.installer.target import Target, baseline

KINDS = ["lld", "ld", "cc", "zig"]


def linker_or_skip(kind: str, target: Target = GENERIC) -> Linker:
    try:
        linker = find_linker(kind, target)
    except UnsupportedError as error:
        pytest.skip(error.message)
    assert linker is not None
    return linker


def build(kind: str, scratch: Path, target: Target = GENERIC, text: str = SIMPLE, **changes: frozenset[str]) -> bytes:
    scratch.mkdir(exist_ok=True)
    content = object_of(text, target)
    wish = promise(target=target, **changes)
    needed = gate_object(content, wish)
    linker = linker_or_skip(kind, target)
    linked = link_library(
        linker, content, target=target, soname="libsample.so", exports=wish.exports, needed=needed, scratch=scratch
    )
    gate_library(linked.library, wish, soname="libsample.so")
    return linked.library


@pytest.mark.parametrize("kind", KINDS)
def test_every_linker_makes_a_working_library(tmp_path: Path, kind: str) -> None:
    library = build(kind, tmp_path / "a")
    assert library == build(kind, tmp_path / "b"), "linking twice in different directories gives the same bytes"
    loaded = ctypes.CDLL(str(tmp_path / "a" / "libsample.so"))
    loaded.power.restype = ctypes.c_double
    loaded.power.argtypes = [ctypes.c_double, ctypes.c_double]
    assert (loaded.add(20, 22), loaded.pick(3), loaded.power(2, 10), loaded.length(b"hello")) == (42, 8, 1024.0, 5)
    file = ELFFile(io.BytesIO(library))
    needed = {tag.needed for tag in file.get_section_by_name(".dynamic").iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
    assert needed == {"libc.so.6", "libm.so.6"}
    # References bind to this machine's versions, not to the oldest that exist.
    assert {str(s.name) for s in file.get_section_by_name(".dynsym").iter_symbols() if s.name} == EXPORTS | IMPORTS
    versions = file.get_section_by_name(".gnu.version_r")
    assert versions is not None


def test_only_the_libraries_that_are_needed_are_named(tmp_path: Path) -> None:
    text = "define i32 @one() {\n  ret i32 1\n}\n"
    library = build("zig", tmp_path, text=text, exports=frozenset(["one"]), imports=frozenset())
    tags = ELFFile(io.BytesIO(library)).get_section_by_name(".dynamic").iter_tags()
    assert not [tag for tag in tags if tag.entry.d_tag == "DT_NEEDED"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_libc_lacks_is_named(tmp_path: Path, kind: str) -> None:
    text = "declare void @no_such_function()\ndefine void @f() {\n  call void @no_such_function()\n  ret void\n}\n"
    with pytest.raises(CompileError, match=r"lacks no_such_function$") as caught:
        build(kind, tmp_path, text=text, exports=frozenset(["f"]), imports=frozenset(["no_such_function"]))
    assert caught.value.details["undefined"] == ["no_such_function"]


def test_unused_functions_are_left_out(tmp_path: Path) -> None:
    text = "define internal i32 @unused() noinline {\n  ret i32 7\n}\ndefine i32 @f() {\n  ret i32 1\n}\n"
    library = build("zig", tmp_path, text=text, exports=frozenset(["f"]), imports=frozenset())
    names = [s.name for s in ELFFile(io.BytesIO(library)).get_section_by_name(".dynsym").iter_symbols() if s.name]
    assert names == ["f"]


def test_own_calls_reach_own_functions(tmp_path: Path) -> None:
    """A library whose function has the name of another library's keeps calling its own."""
    text = """
    define i64 @strlen(ptr %s) noinline {
      ret i64 4242
    }
    define i64 @ask(ptr %s) {
      %r = tail call i64 @strlen(ptr %s) nobuiltin
      ret i64 %r
    }
    """
    content = object_of(text)  # no gate: it refuses the name
    link_library(
        linker_or_skip("zig"), content, target=GENERIC, soname="libsample.so", exports=["strlen", "ask"], needed=[],
        scratch=tmp_path,
    )  # fmt: skip
    assert ctypes.CDLL(str(tmp_path / "libsample.so")).ask(b"hello") == 4242


@pytest.mark.cross
@pytest.mark.parametrize("libc", ["gnu", "musl"])
@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_foreign_libraries_name_the_libraries_of_their_own_system(tmp_path: Path, arch: str, libc: str) -> None:
    target = baseline(arch, libc)
    library = build("zig", tmp_path, target)
    tags = list(ELFFile(io.BytesIO(library)).get_section_by_name(".dynamic").iter_tags())
    needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
    assert needed == ({"libc.so"} if libc == "musl" else {"libc.so.6", "libm.so.6"})


# Where Debian's packages libc6-arm64-cross and libc6-riscv64-cross put a foreign C library.
SYSROOTS = Path(os.environ.get("VISGET_TEST_SYSROOTS", "/usr"))


@pytest.mark.cross
@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_foreign_libraries_load(tmp_path: Path, arch: str) -> None:
    """The loader of a foreign glibc finds every name that was linked against a stand-in."""
    emulator = qemu(arch)
    sysroot = SYSROOTS / f"{arch}-linux-gnu"
    if not (sysroot / "lib" / LOADERS[arch]).exists():
        pytest.skip(f"no C library for {arch} below {SYSROOTS} (Debian: libc6-arm64-cross, libc6-riscv64-cross)")
    target = baseline(arch, "gnu")
    text = SIMPLE + "define i128 @divide(i128 %a, i128 %b) {\n  %q = udiv i128 %a, %b\n  ret i128 %q\n}\n"
    # Not in tmp_path itself: the stand-ins for the C library are left beside it.
    library = build("zig", tmp_path / "scratch", target, text, exports=EXPORTS | {"divide"})
    (tmp_path / "libsample.so").write_bytes(library)
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\nint add(int, int); unsigned long length(const char *); double power(double, double);\n"
        "unsigned __int128 divide(unsigned __int128, unsigned __int128);\nint main(void) {\n"
        "  int quotient = (int)divide((__int128)7 << 90, (__int128)1 << 83);\n"
        '  printf("%d %lu %g %d\\n", add(2, 3), length("hello"), power(2, 10), quotient);\n'
        "  return 0;\n}\n",
        encoding="ascii",
    )
    cross_compile(target.platform, tmp_path / "main.c", tmp_path / "main", "libsample.so", "-Wl,-rpath,$ORIGIN")
    done = subprocess.run([*emulator, "-L", sysroot, tmp_path / "main"], capture_output=True, check=False)
    assert done.stdout == b"5 5 1024 896\n", done.stderr


THREADS = """
@counter = internal thread_local global i64 40
@large = internal thread_local global [5000 x i8] zeroinitializer
declare ptr @llvm.threadlocal.address.p0(ptr)
define i64 @bump(i64 %by) {
  %p = call ptr @llvm.threadlocal.address.p0(ptr @counter)
  %n = load i64, ptr %p
  %m = add i64 %n, %by
  store i64 %m, ptr %p
  %q = call ptr @llvm.threadlocal.address.p0(ptr @large)
  %r = getelementptr i8, ptr %q, i64 4999
  %s = load i8, ptr %r
  %t = add i8 %s, 1
  store i8 %t, ptr %r
  %w = zext i8 %t to i64
  %x = mul i64 %w, 1000000
  %y = add i64 %m, %x
  ret i64 %y
}
"""
THREADS_MAIN = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static long (*bump)(long);
static void *work(void *by)
{
    long last = 0;
    for (int i = 0; i < 3; i++) last = bump((long)by);
    return (void *)last;
}
int main(void)
{
    pthread_t threads[4];
    void *library = dlopen("./libsample.so", RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    bump = (long (*)(long))dlsym(library, "bump");
    for (long i = 0; i < 4; i++) pthread_create(threads + i, 0, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++) { void *last; pthread_join(threads[i], &last); printf("%ld ", (long)last); }
    printf("%ld\n", bump(0));
    return 0;
}
"""


@pytest.mark.parametrize(
    "arch", [HOST_ARCH, *(pytest.param(a, marks=pytest.mark.cross) for a in ("aarch64", "riscv64") if a != HOST_ARCH)]
)
def test_each_thread_has_its_own_variables_in_a_library_that_is_loaded_late(tmp_path: Path, arch: str) -> None:
    emulator = qemu(arch)
    target = baseline(arch, "gnu")
    sysroot = SYSROOTS / f"{arch}-linux-gnu"
    if emulator and not (sysroot / "lib" / LOADERS[arch]).exists():
        pytest.skip(f"no C library for {arch} below {SYSROOTS} (Debian: libc6-arm64-cross, libc6-riscv64-cross)")
    library = build("zig", tmp_path / "scratch", target, THREADS, exports=frozenset(["bump"]), imports=frozenset())
    (tmp_path / "libsample.so").write_bytes(library)
    (tmp_path / "main.c").write_text(THREADS_MAIN, encoding="ascii")
    cross_compile(f"{target.platform}.2.34", tmp_path / "main.c", tmp_path / "main", "-w")
    command = [*emulator, *(["-L", str(sysroot)] if emulator else []), "./main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "3000043 3000046 3000049 3000052 1000040\n", done.stderr


def test_automatic_choice() -> None:
    linker = find_linker("auto", GENERIC)
    if linker is None:
        pytest.skip("no linker at all")
    assert linker == find_linker(None, GENERIC)
    assert linker.version in linker.identity
    assert find_linker("none", GENERIC) is None


def test_this_machines_linkers_are_not_used_for_foreign_targets() -> None:
    foreign = baseline("riscv64" if GENERIC.arch != "riscv64" else "aarch64", "gnu")
    for kind in ("ld", "cc"):
        with pytest.raises(UnsupportedError, match=f"no linker '{kind}'"):
            find_linker(kind, foreign)


def test_old_lld_is_not_used_for_riscv(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(version: str) -> Linker:
        return Linker(kind="lld", command=("ld.lld",), version=version)

    riscv = baseline("riscv64", "gnu")
    assert linkers._usable(pretend("Debian LLD 14.0.6"), riscv) is None
    assert linkers._usable(pretend("LLD 19.1.7"), riscv) is not None
    assert linkers._usable(pretend("Debian LLD 14.0.6"), GENERIC) is not None


def test_a_linker_by_path_or_name(tmp_path: Path) -> None:
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    assert find_linker(cc, GENERIC) == find_linker("cc", GENERIC)
    for wrong in (str(tmp_path / "missing"), "no-such-linker", shutil.which("true") or "/bin/true"):
        with pytest.raises(UnsupportedError, match="no linker"):
            find_linker(wrong, GENERIC)


def test_without_any_linker_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkers.shutil, "which", lambda _: None)
    monkeypatch.setattr(linkers.importlib.util, "find_spec", lambda _: None)
    assert find_linker("auto", GENERIC) is None
    with pytest.raises(UnsupportedError, match="no linker"):
        find_linker("zig", GENERIC)


def test_programs_that_are_no_linkers_are_not_taken_for_one(tmp_path: Path) -> None:
    fake = tmp_path / "ld"
    for script in ("echo hello", "exit 1", "echo 'GNU gold (binutils) 1.16'"):
        fake.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        fake.chmod(0o755)
        identify.cache_clear()
        assert identify((str(fake),)) is None


def test_a_linker_that_hangs_or_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_run, "_TIMEOUT", 0.3)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 30\n", encoding="ascii")
    slow.chmod(0o755)
    (tmp_path / "s").mkdir()
    with pytest.raises(ResourceError, match="did not finish"):
        link_library(
            Linker(kind="gnu", command=(str(slow),), version="x"), b"", target=GENERIC, soname="libx.so", exports=[],
            needed=[], scratch=tmp_path / "s",
        )  # fmt: skip
    with pytest.raises(CompileError, match="could not be started"):
        link_library(
            Linker(kind="gnu", command=(str(tmp_path / "gone"),), version="x"), b"", target=GENERIC, soname="libx.so",
            exports=[], needed=[], scratch=tmp_path / "s",
        )  # fmt: skip


def test_other_complaints_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot be linked") as caught:
        link_library(
            linker_or_skip("zig"), b"not an object", target=GENERIC, soname="libx.so", exports=[], needed=[],
            scratch=tmp_path,
        )  # fmt: skip
    assert caught.value.details["stderr"]
    assert "--linker" in str(caught.value.hint)


def test_mapped_libraries_are_read() -> None:
    maps = (
        "7f00-7f01 r-xp 00000000 fe:01 123 /usr/lib/x86_64-linux-gnu/libc.so.6\n"
        "7f02-7f03 r--p 00000000 fe:01 124 /opt/my libs/libm.so.6\n"
        "7f04-7f05 r--p 00000000 fe:01 125 /usr/lib/libold.so.1 (deleted)\n"
        "7f06-7f07 rw-p 00000000 00:00 0 [heap]\n7f08-7f09 rw-p 00000000 00:00 0\n"
    )
    assert mapped_libraries(maps) == {
        "libc.so.6": Path("/usr/lib/x86_64-linux-gnu/libc.so.6"),
        "libm.so.6": Path("/opt/my libs/libm.so.6"),
    }


def test_libraries_beside_the_running_libc_come_first() -> None:
    there = {Path("/nix/abc/lib/libc.so.6"), Path("/nix/abc/lib/libm.so.6"), Path("/lib64/libm.so.6")}
    mapped = {"libc.so.6": Path("/nix/abc/lib/libc.so.6")}
    assert locate("x86_64", mapped, there.__contains__) == (
        Path("/nix/abc/lib/libc.so.6"),
        Path("/nix/abc/lib/libm.so.6"),
    )
    assert locate("x86_64", {}, {Path("/lib64/libm.so.6")}.__contains__) == ()


def test_stand_ins_are_sorted_into_libraries() -> None:
    names = ["strlen", "pow", "__tls_get_addr", "__udivti3"]
    assert stand_ins(baseline("riscv64", "gnu"), names, SUPPORT_CALLS) == {
        "libc.so.6": ["strlen"],
        "libm.so.6": ["pow"],
        "ld-linux-riscv64-lp64d.so.1": ["__tls_get_addr"],
        "libgcc_s.so.1": ["__udivti3"],
    }
    assert stand_ins(baseline("riscv64", "musl"), names, SUPPORT_CALLS) == {
        "libc.so": ["__tls_get_addr", "pow", "strlen"],
        "libgcc_s.so.1": ["__udivti3"],
    }


def test_the_table_of_maths_functions_is_complete() -> None:
    """Every import that packages may have and that lives in libm alone is known to."""
    libraries = host_libraries(GENERIC)
    if libraries is None:
        pytest.skip("this machine has no glibc")
    names = []
    for path in libraries.paths[:2]:
        symbols = elf.read_elf(path.read_bytes()).symbols(elf.SHT_DYNSYM)
        names.append({symbol.name for symbol in symbols if symbol.defined})
    libc, libm = names
    assert set(ALLOWED) & (libm - libc) <= MATH
    assert not set(ALLOWED) & (libc - libm) & MATH


def test_libc_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert libc_identity(baseline("riscv64", "musl")) == "stand-in"
    monkeypatch.setattr(clibrary, "libc_family", lambda: "musl")
    assert host_libraries(GENERIC) is None


@pytest.mark.parametrize("kind", KINDS)
def test_thread_local_variables_and_constructors(tmp_path: Path, kind: str) -> None:
    text = """
    @mine = internal thread_local global i32 40
    @ready = internal global i32 0
    @first = internal constant ptr @begin, section ".init_array", align 8
    @llvm.used = appending global [1 x ptr] [ptr @first], section "llvm.metadata"
    define internal void @begin() {
      store i32 2, ptr @ready
      ret void
    }
    define i32 @next() {
      %p = call ptr @llvm.threadlocal.address.p0(ptr @mine)
      %old = load i32, ptr %p
      %more = load i32, ptr @ready
      %new = add i32 %old, %more
      store i32 %new, ptr %p
      ret i32 %new
    }
    declare ptr @llvm.threadlocal.address.p0(ptr)
    """
    content = object_of(text)
    wish = promise(frozenset(["next"]), frozenset(), constructors=True)
    needed = gate_object(content, wish)
    linked = link_library(
        linker_or_skip(kind), content, target=GENERIC, soname="libsample.so", exports=wish.exports, needed=needed,
        scratch=tmp_path,
    )  # fmt: skip
    assert set(gate_library(linked.library, wish, soname="libsample.so")) <= {LOADERS[GENERIC.arch]}
    library = ctypes.CDLL(str(tmp_path / "libsample.so"))
    assert (library.next(), library.next()) == (42, 44)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(library.next()))
    thread.start()
    thread.join()
    assert seen == [42]


@pytest.mark.parametrize(
    "ending",
    [
        "echo 'ld: final link failed: No space left on device'; exit 1",
        "echo 'LLVM ERROR: IO failure on output stream: Disk quota exceeded'; exit 1",
        "echo 'collect2: fatal error: ld terminated with signal 7 [Bus error]'; exit 1",
        "echo 'Stack dump:'; exit 135",
        "kill -BUS $$",
        "kill -XFSZ $$",
    ],
)
def test_a_disk_that_fills_up_while_the_linker_writes_is_no_fault_of_the_package(tmp_path: Path, ending: str) -> None:
    program = tmp_path / "linker"
    program.write_text(f"#!/bin/sh\n{ending}\n")
    program.chmod(0o755)
    linker = Linker(kind="gnu", command=(str(program),), version="of this test")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(ResourceError, match="no space left") as caught:
        link_library(
            linker, object_of(SIMPLE), target=GENERIC, soname="libsample.so", exports=sorted(EXPORTS), needed=[],
            scratch=scratch, sandbox="off",
        )  # fmt: skip  # confined, it could not end itself by a signal
    assert "free some space" in (caught.value.hint or "")
