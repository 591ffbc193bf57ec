"""The built-ins of each target do what the platform interface says, by the side of the C library's own functions.

The library half of each program is neutral code that calls `__vis_*`; the other half is compiled for the machine with
its own headers, and compares.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from neutral import native_object, neutral_ir, run_with, zig

from visget.format.imports import BUILT_INS, IMPORTS, VA_LIST_FAMILY
from visget.format.module import parse_text, text_of
from visget.installer.legalise import ARCHITECTURES, VA_FAMILY, add_destructor, place_constructors
from visget.installer.support import built_ins, with_support

SLOTS = [
    pytest.param("x86_64", id="x86_64"),
    pytest.param("aarch64", marks=pytest.mark.cross, id="aarch64"),
    pytest.param("riscv64", marks=pytest.mark.cross, id="riscv64"),
]
LIBCS = ("gnu", "musl")


def every(arch: str) -> list[str]:
    return sorted(built_ins(arch, "gnu"))


@pytest.mark.parametrize("libc", LIBCS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_built_in_is_valid_ir_by_itself(arch: str, libc: str) -> None:
    assert with_support("", arch, libc, []) == ""
    for name in built_ins(arch, libc):
        text = with_support("", arch, libc, [name])
        assert f"@{name}" in text
        assert not re.search(r"^define (?!internal)|^@\S+ = (?!internal|appending)", text, re.M)
        text_of(parse_text(text.replace("define internal", "define")))
    text_of(parse_text(with_support("", arch, libc, built_ins(arch, libc))))


@pytest.mark.parametrize("libc", LIBCS)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_profile_and_the_installer_know_the_same_built_ins(arch: str, libc: str) -> None:
    """With the same signatures; the three that are intrinsics of LLVM are visget.installer.legalise's."""
    intrinsics = {f"__vis_va_{kind}" for kind in ("start", "end", "copy")}
    assert BUILT_INS.keys() - intrinsics <= built_ins(arch, libc).keys()
    module = parse_text(with_support("", arch, libc, BUILT_INS.keys() - intrinsics))
    for function in module.functions:
        if function.name in BUILT_INS:
            assert str(function.global_value_type) == BUILT_INS[function.name], function.name


def test_the_profile_and_the_installer_know_the_same_va_family() -> None:
    assert set(VA_FAMILY) >= VA_LIST_FAMILY
    module = parse_text(with_support("", "riscv64", "musl", [f"__vis_{name}" for name in sorted(VA_LIST_FAMILY)]))
    types = {function.name: str(function.global_value_type) for function in module.functions}
    for name in VA_LIST_FAMILY & IMPORTS.keys():
        assert types[name] == types[f"__vis_{name}"] == IMPORTS[name].signature


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nothing_is_extended_on_aarch64(arch: str) -> None:
    assert ("signext" in with_support("", arch, "gnu", every(arch))) == (arch != "aarch64")


OWN = """
@text = constant [10 x i8] c"@lstat(x)\\00"
declare i32 @__vis_stat(ptr, ptr)
declare i32 @stat(ptr, ptr)
declare i32 @__vis_lstat(ptr, ptr)
define internal i32 @lstat(ptr %p) {
  ret i32 7
}
define i32 @f(ptr %p) {
  %a = call i32 @__vis_stat(ptr %p, ptr %p)
  %b = call i32 @stat(ptr %p, ptr %p)
  %c = call i32 @__vis_lstat(ptr %p, ptr %p)
  %d = call i32 @lstat(ptr %p)
  %e = call i32 @lstat64(ptr %p)
  ret i32 %d
}
declare i32 @lstat64(ptr)
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_module_s_own_function_of_that_name_is_not_the_c_library_s(arch: str) -> None:
    text = with_support(OWN, arch, "musl", ["__vis_stat", "__vis_lstat"])
    assert "define internal i32 @lstat.vis(ptr %p)" in text
    assert "call i32 @lstat.vis(ptr %p)" in text
    assert 'c"@lstat(x)\\00"' in text
    assert "@lstat64(ptr %p)" in text
    assert len(re.findall(r"^declare [^\n]*@stat\(", text, re.M)) == 1
    assert len(re.findall(r"^declare [^\n]*@lstat\(", text, re.M)) == 1
    text_of(parse_text(text))


FILES = """
#include <sys/types.h>
#include <sys/stat.h>
#include <fcntl.h>
int v_stat(const char *restrict, struct stat *restrict) __asm__("__vis_stat");
int v_lstat(const char *restrict, struct stat *restrict) __asm__("__vis_lstat");
int v_fstat(int, struct stat *) __asm__("__vis_fstat");
int v_fstatat(int, const char *restrict, struct stat *restrict, int) __asm__("__vis_fstatat");
int v_open(const char *, int, ...) __asm__("__vis_open");
int v_openat(int, const char *, int, ...) __asm__("__vis_openat");
int v_fcntl(int, int, ...) __asm__("__vis_fcntl");
static int spread(int r, const struct stat *s, long *out)
{
    out[0] = s->st_dev; out[1] = s->st_ino; out[2] = s->st_mode; out[3] = s->st_nlink; out[4] = s->st_uid;
    out[5] = s->st_gid; out[6] = s->st_rdev; out[7] = s->st_size; out[8] = s->st_blksize; out[9] = s->st_blocks;
    out[10] = s->st_atim.tv_sec; out[11] = s->st_atim.tv_nsec; out[12] = s->st_mtim.tv_sec;
    out[13] = s->st_mtim.tv_nsec; out[14] = s->st_ctim.tv_sec; out[15] = s->st_ctim.tv_nsec;
    return r;
}
static struct { struct stat s; long guard[8]; } one;
static void fill(void) { __builtin_memset(&one, 0x5a, sizeof one); }
int by_name(const char *p, long *out) { fill(); return spread(v_stat(p, &one.s), &one.s, out); }
int by_link(const char *p, long *out) { fill(); return spread(v_lstat(p, &one.s), &one.s, out); }
int by_number(int f, long *out) { fill(); return spread(v_fstat(f, &one.s), &one.s, out); }
int by_place(int d, const char *p, int flags, long *out)
{ fill(); return spread(v_fstatat(d, p, &one.s, flags), &one.s, out); }
int unharmed(void) { for (int i = 0; i < 8; i++) if (one.guard[i] != 0x5a5a5a5a5a5a5a5aL) return 0; return 1; }
static int (*volatile chosen)(const char *restrict, struct stat *restrict) = v_stat;
int by_pointer(const char *p, long *out) { fill(); return spread(chosen(p, &one.s), &one.s, out); }
static int (*volatile opener)(const char *, int, ...) = v_open;
int make(const char *p, int mode) { return v_open(p, O_CREAT | O_RDWR | O_EXCL, mode); }
int make_by_pointer(const char *p, int mode) { return opener(p, O_CREAT | O_RDWR | O_EXCL, mode); }
int make_at(int d, const char *p, int mode) { return v_openat(d, p, O_CREAT | O_RDWR, mode); }
int directory(const char *p) { return v_open(p, O_RDONLY | O_DIRECTORY); }
int directory_at(int d, const char *p) { return v_openat(d, p, O_RDONLY | O_DIRECTORY); }
int no_link(const char *p) { return v_open(p, O_RDONLY | O_NOFOLLOW | O_CLOEXEC); }
int temporary(const char *p) { return v_open(p, O_TMPFILE | O_RDWR, 0600); }
int close_on_exec(int f) { return v_fcntl(f, F_GETFD); }
int duplicate(int f, int least) { return v_fcntl(f, F_DUPFD, least); }
int switches(int f)
{
    int before = v_fcntl(f, F_GETFL);
    if (before < 0 || v_fcntl(f, F_SETFL, before | O_APPEND | O_NONBLOCK) < 0) return -1;
    return v_fcntl(f, F_GETFL) & (O_APPEND | O_NONBLOCK | O_DIRECTORY | O_NOFOLLOW | O_ACCMODE);
}
int shown(int f) { int g = v_fcntl(f, F_GETFL); return !!(g & O_DIRECTORY) + 2 * !!(g & O_NOFOLLOW); }
int locked(int f)
{
    struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 3, .l_len = 4 };
    if (v_fcntl(f, F_SETLK, &l)) return -1;
    l.l_type = F_RDLCK;
    if (v_fcntl(f, F_GETLK, &l)) return -2;
    return l.l_type == F_UNLCK;
}
int wanted_switches = O_APPEND | O_NONBLOCK | O_RDWR;
"""

FILES_DRIVER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int by_name(const char *, long *), by_link(const char *, long *), by_number(int, long *), unharmed(void);
int by_place(int, const char *, int, long *), by_pointer(const char *, long *), make(const char *, int);
int make_by_pointer(const char *, int), make_at(int, const char *, int), directory(const char *);
int directory_at(int, const char *), no_link(const char *), temporary(const char *), close_on_exec(int);
int duplicate(int, int), switches(int), shown(int), locked(int);
extern int wanted_switches;
static int bad;
#define CHECK(e) do { if (!(e)) { printf("line %d: %s (errno %d)\n", __LINE__, #e, errno); bad = 1; } } while (0)
static int same(const struct stat *s, const long *o)
{
    return o[0] == (long)s->st_dev && o[1] == (long)s->st_ino && o[2] == s->st_mode && o[3] == (long)s->st_nlink
        && o[4] == s->st_uid && o[5] == s->st_gid && o[6] == (long)s->st_rdev && o[7] == s->st_size
        && o[8] == s->st_blksize && o[9] == s->st_blocks && o[10] == s->st_atim.tv_sec && o[11] == s->st_atim.tv_nsec
        && o[12] == s->st_mtim.tv_sec && o[13] == s->st_mtim.tv_nsec && o[14] == s->st_ctim.tv_sec
        && o[15] == s->st_ctim.tv_nsec;
}
int main(int argc, char **argv)
{
    struct stat s; long o[16];
    umask(0);
    CHECK(chdir(argv[1]) == 0);
    int f = make("file", 0640);
    CHECK(f >= 0 && write(f, "some bytes", 10) == 10);
    CHECK(symlink("file", "link") == 0 && mkdir("dir", 0750) == 0);
    CHECK(by_name("file", o) == 0 && stat("file", &s) == 0 && same(&s, o) && unharmed());
    CHECK(o[7] == 10 && (o[2] & 07777) == 0640);
    CHECK(by_name("link", o) == 0 && same(&s, o) && by_pointer("link", o) == 0 && same(&s, o));
    CHECK(by_number(f, o) == 0 && fstat(f, &s) == 0 && same(&s, o) && unharmed());
    CHECK(by_link("link", o) == 0 && lstat("link", &s) == 0 && same(&s, o) && S_ISLNK(o[2]) && unharmed());
    CHECK(by_place(AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW, o) == 0 && same(&s, o) && unharmed());
    CHECK(by_name("/dev/null", o) == 0 && stat("/dev/null", &s) == 0 && same(&s, o) && o[6] != 0);
    CHECK(by_name(".", o) == 0 && stat(".", &s) == 0 && same(&s, o));
    errno = 0;
    CHECK(by_name("absent", o) == -1 && errno == ENOENT && o[0] == 0x5a5a5a5a5a5a5a5aL && unharmed());
    CHECK(make("file", 0600) == -1 && errno == EEXIST);
    CHECK(make_by_pointer("other", 0604) >= 0 && stat("other", &s) == 0 && (s.st_mode & 07777) == 0604);
    int d = directory("dir");
    CHECK(d >= 0 && directory("file") == -1 && errno == ENOTDIR);
    CHECK(make_at(d, "inner", 0611) >= 0 && stat("dir/inner", &s) == 0 && (s.st_mode & 07777) == 0611);
    CHECK(by_place(d, "inner", 0, o) == 0 && same(&s, o));
    CHECK(directory_at(d, "inner") == -1 && errno == ENOTDIR && directory_at(d, ".") >= 0);
    CHECK(no_link("link") == -1 && errno == ELOOP);
    int n = no_link("file");
    CHECK(n >= 0 && close_on_exec(n) == FD_CLOEXEC && close_on_exec(f) == 0);
    int t = temporary(".");
    CHECK((t >= 0 && fstat(t, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 0) || errno == EOPNOTSUPP);
    CHECK(duplicate(f, 40) == 40 && by_number(40, o) == 0 && o[7] == 10);
    CHECK(switches(f) == wanted_switches && (fcntl(f, F_GETFL) & O_APPEND) && (fcntl(f, F_GETFL) & O_NONBLOCK));
    int p = open("dir", O_PATH | O_DIRECTORY | O_NOFOLLOW);
    CHECK(p >= 0 && shown(p) == !!(fcntl(p, F_GETFL) & O_DIRECTORY) + 2 * !!(fcntl(p, F_GETFL) & O_NOFOLLOW));
    CHECK(shown(p) != 0);
    CHECK(locked(f) == 1);
    CHECK(close_on_exec(77) == -1 && errno == EBADF);
    if (!bad) printf("right\n");
    return bad;
}
"""


def run_in(directory: Path, driver: str, native: bytes, arch: str) -> subprocess.CompletedProcess[str]:
    """Build the program, and run it with the name of an empty directory."""
    place = directory / "place"
    place.mkdir(parents=True)
    whole = driver.replace("int main(int argc, char **argv)\n{", "int main(void)\n{\n    char *argv[] = {0, PLACE};")
    return run_with(f'#define PLACE "{place}"\n{whole}', native, arch, directory)


@pytest.mark.parametrize("arch", SLOTS)
def test_files(arch: str, tmp_path: Path) -> None:
    native = native_object(neutral_ir(FILES, tmp_path), arch)
    done = run_in(tmp_path / arch, FILES_DRIVER, native, arch)
    assert (done.stdout, done.stderr, done.returncode) == ("right\n", "", 0)


def test_the_test_of_files_can_fail(tmp_path: Path) -> None:
    """Without the built-ins, on x86-64: the C library writes its own layout over more than the structure."""
    direct = re.sub(r"__vis_(\w+)", r"\1", FILES)
    done = run_in(tmp_path / "run", FILES_DRIVER, native_object(neutral_ir(direct, tmp_path), "x86_64"), "x86_64")
    assert done.returncode != 0


PROCESS = """
#include <stddef.h>
int v_atexit(void (*)(void)) __asm__("__vis_atexit");
int v_cxa_atexit(void (*)(void *), void *, void *) __asm__("__vis_cxa_atexit");
int v_atfork(void (*)(void), void (*)(void), void (*)(void)) __asm__("__vis_pthread_atfork");
int v_strerror_r(int, char *, size_t) __asm__("__vis_strerror_r");
char *v_basename(char *) __asm__("__vis_basename");
int v_regno(int) __asm__("__vis_eh_return_data_regno");
static void (*say)(const char *);
static void first(void) { say("first"); }
static void second(void) { say("second"); }
static void third(void *text) { say(text); }
static void before(void) { say("before"); }
static void parent(void) { say("parent"); }
static void child(void) { say("child"); }
int enter(void (*speaker)(const char *))
{
    say = speaker;
    return v_atexit(first) | v_atexit(second) | v_cxa_atexit(third, "third", 0) | v_atfork(before, parent, child);
}
__attribute__((destructor)) static void last(void) { if (say) say("destructor"); }
int explain(int error, char *buffer, size_t size) { return v_strerror_r(error, buffer, size); }
char *base(char *path) { return v_basename(path); }
int registers(void) { return v_regno(0) * 100 + v_regno(1) * 10 + v_regno(2); }
"""

PROCESS_DRIVER = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int enter(void (*)(const char *)), explain(int, char *, size_t), registers(void); char *base(char *);
static void speak(const char *text) { printf("%s\n", text); fflush(stdout); }
int main(void)
{
    char text[100], small[4], path[] = "/some/where/", none[] = "";
    printf("%d\n", enter(speak)); fflush(stdout);
    if (fork() == 0) _exit(0);
    wait(0);
    printf("%d %s %d\n", explain(ENOENT, text, sizeof text), text, explain(ENOENT, small, sizeof small) == ERANGE);
    printf("%s %s\n", base(path), base(none));
    printf("%d\n", registers());
    return 0;
}
"""
TOLD = ["0", "before", "parent", "0 No such file or directory 1", "where .", "third", "second", "first", "destructor"]


@pytest.mark.parametrize("arch", SLOTS)
def test_processes(arch: str, tmp_path: Path) -> None:
    """What is registered runs at the end, the last first, before the library's destructors."""
    native = native_object(neutral_ir(PROCESS, tmp_path), arch)
    done = run_with(PROCESS_DRIVER, native, arch, tmp_path / arch)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    lines.remove("child")
    assert lines.pop(5) == ("1109" if arch == "riscv64" else "9")
    assert lines == TOLD


UNLOADING = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static void speak(const char *text) { printf("%s\n", text); fflush(stdout); }
int main(void)
{
    void *library = dlopen("./libprocess.so", RTLD_NOW);
    if (!library) { printf("%s\n", dlerror()); return 1; }
    ((int (*)(void (*)(const char *)))dlsym(library, "enter"))(speak);
    dlclose(library);
    printf("closed %d\n", dlopen("./libprocess.so", RTLD_NOW | RTLD_NOLOAD) == 0);
    if (fork() == 0) _exit(0);
    return 0;
}
"""


def test_what_a_library_registered_goes_with_it(tmp_path: Path) -> None:
    """Nothing runs, at the end or at a fork, that is no longer in memory; crtbegin.o is not linked in."""
    (tmp_path / "process.o").write_bytes(native_object(neutral_ir(PROCESS, tmp_path), "x86_64"))
    (tmp_path / "main.c").write_text(UNLOADING)
    link = ["gcc", "-shared", "-nostdlib", "process.o", "-o", "libprocess.so", "-lc"]
    subprocess.run(link, check=True, cwd=tmp_path)
    subprocess.run(["gcc", "main.c", "-o", "main"], check=True, cwd=tmp_path)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["destructor", "third", "second", "first", "closed 1"]


@pytest.mark.cross
@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_a_foreign_glibc(arch: str, tmp_path: Path) -> None:
    """The names that only glibc has: against a real one, under qemu."""
    emulator = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
    sysroot = Path("/usr") / f"{arch}-linux-gnu"
    if emulator is None or not (sysroot / "lib" / "libc.so.6").exists():
        pytest.skip(f"no qemu-{arch} or no C library for {arch}")
    from visget.installer.codegen import Machine, generate

    features = "+m,+a,+f,+d,+c" if arch == "riscv64" else ""
    cpu = "generic-rv64" if arch == "riscv64" else "generic"
    machine = Machine(triple=f"{arch}-unknown-linux-gnu", cpu=cpu, features=features)
    text = neutral_ir(PROCESS, tmp_path)
    made = generate(text, machine, exports=["enter", "explain", "base", "registers"], announce=lambda stage: None)
    (tmp_path / "process.o").write_bytes(made.object)
    (tmp_path / "main.c").write_text(PROCESS_DRIVER)
    command = [str(zig()), "cc", "-target", f"{arch}-linux-gnu.2.36", "-w", "main.c", "process.o", "-o", "main"]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = subprocess.run(
        [emulator, "-L", str(sysroot), "./main"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line not in ("child", "9", "1109")] == TOLD


def test_a_destructor_of_the_built_ins_stands_first() -> None:
    assert add_destructor("", "one").strip().endswith("[{ i32, ptr, ptr } { i32 65535, ptr @one, ptr null }]")
    two = add_destructor(add_destructor("", "one"), "two")
    assert two.index("@two") < two.index("@one")
    assert "[2 x { i32, ptr, ptr }]" in two
    empty = "@llvm.global_dtors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n"
    assert add_destructor(empty, "one") == add_destructor("", "one").lstrip()
    functions = "".join(f"define internal void @{name}() {{\n  ret void\n}}\n" for name in ("one", "two"))
    placed = place_constructors(two + functions)
    assert placed.index("ptr @two, section") < placed.index("ptr @one, section")
    text_of(parse_text(placed))
