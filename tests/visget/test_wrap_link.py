"""Programs, shared libraries, joined objects and archives out of neutral objects."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from wrapkit import Bench, lacks

from visget.format.module import parse_bitcode, text_of
from visget.toolchain.archives import read_archive
from visget.toolchain.irsymbols import is_bitcode, read_symbols

MAIN = '#include <stdio.h>\nint two(void);\nint main(void) { printf("%d\\n", two()); return 0; }\n'


@pytest.fixture
def bench(tmp_path) -> Bench:
    made = Bench(tmp_path)
    made.write(
        {
            "main.c": MAIN,
            "add.c": "int add(int a, int b) { return a + b; }\n",
            "two.c": "int add(int, int);\nint two(void) { return add(1, 1); }\n",
            "other.c": "int two(void) { return 3; }\nint unused_and_undefined(void);\n"
            "int other(void) { return unused_and_undefined(); }\n",
        }
    )
    return made


@pytest.fixture
def objects(bench) -> Bench:
    bench.good("-c", "main.c", "add.c", "two.c", "other.c")
    return bench


def is_native(path: Path) -> bool:
    return path.read_bytes()[:4] == b"\x7fELF"


def test_one_command_from_sources_to_a_program_that_runs(bench):
    bench.good("main.c", "add.c", "two.c")
    assert is_native(bench.root / "a.out")
    assert bench.program() == "2\n"
    assert not (bench.root / "main.o").exists()


def test_sources_and_objects_and_a_name(bench):
    bench.good("-c", "add.c")
    bench.good("main.c", "add.o", "two.c", "-o", "sub-program")
    assert bench.program("sub-program") == "2\n"


def test_a_program_from_standard_input(bench):
    bench.good("-x", "c", "-", "-o", "p", stdin="int main(void) { return 7; }")
    assert bench.run("./p").status == 7


@pytest.mark.parametrize("flags", ["cru", "cr", "rcs", "rcsT"])
def test_archives_stay_archives(objects, flags):
    """Taking every member would need what `other` needs, and define `two` twice."""
    objects.good(flags, "liball.a", "add.o", "two.o", tool="ar")
    objects.good("rcs", "libother.a", "other.o", tool="ar")
    objects.good("liball.a", tool="ranlib")
    objects.good("main.o", "-L.", "-lall", "-lother", "-o", "p")
    assert objects.program("p") == "2\n"
    objects.good("main.o", "./liball.a", "./libother.a", "-o", "q")
    assert objects.program("q") == "2\n"


def test_members_of_the_same_name(objects):
    objects.write({"sub/add.c": "int two(void);\nint three(void) { return two() + 1; }\n"})
    objects.good("-c", "sub/add.c", "-o", "sub/add.o")
    objects.good("qcs", "lib.a", "add.o", "sub/add.o", "two.o", tool="ar")
    assert [member.name for member in read_archive(objects.root / "lib.a")] == ["add.o", "add.o", "two.o"]
    objects.write({"three.c": "int three(void);\nint main(void) { return three(); }\n"})
    objects.good("three.c", "lib.a", "-o", "p")
    assert objects.run("./p").status == 3


def test_whole_archives(objects):
    code = '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts("begun"); }\n'
    objects.write({"ctor.c": code})
    objects.good("-c", "ctor.c")
    objects.good("rcs", "libctor.a", "ctor.o", tool="ar")
    objects.good("main.o", "add.o", "two.o", "libctor.a", "-o", "lazy")
    whole = ["-Wl,--whole-archive", "libctor.a", "-Wl,--no-whole-archive"]
    objects.good("main.o", "add.o", "two.o", *whole, "-o", "whole")
    assert objects.program("lazy") == "2\n"
    assert objects.program("whole") == "begun\n2\n"


def test_ar_lists_and_extracts(objects):
    objects.good("rcs", "x.a", "add.o", "two.o", tool="ar")
    assert objects.good("t", "x.a", tool="ar").out.split() == ["add.o", "two.o"]
    (objects.root / "add.o").unlink()
    objects.good("x", "x.a", "add.o", tool="ar")
    assert is_bitcode((objects.root / "add.o").read_bytes())
    assert objects.tool("ar", "t", "missing.a").status != 0
    archived = [call for call in objects.calls() if call["kind"] == "archive"]
    assert archived[0]["output"] == "x.a"
    assert archived[0]["inputs"] == ["add.o", "two.o"]


def test_a_shared_library_is_native_with_its_bitcode_beside(objects):
    objects.write({"v.map": "V1 { global: two; local: *; };\n"})
    objects.good(
        "-shared", "-fPIC", "add.o", "two.o", "-Wl,-soname", "-Wl,libtwo.so.1", "-Wl,--version-script=v.map", "-lm",
        "-o", "libtwo.so.1.0",
    )  # fmt: skip
    library = objects.root / "libtwo.so.1.0"
    assert is_native(library)
    beside = parse_bitcode((objects.root / "libtwo.so.1.0.bc").read_bytes())
    assert {function.name for function in beside.functions if not function.is_declaration} == {"add", "two"}
    facts = json.loads((objects.root / "libtwo.so.1.0.bc.json").read_text())
    assert facts["soname"] == "libtwo.so.1"
    assert facts["version_scripts"] == ["V1 { global: two; local: *; };\n"]
    assert facts["inputs"] == ["add.o", "two.o"]
    for link in ("libtwo.so", "libtwo.so.1"):
        (objects.root / link).symlink_to(library.name)
    objects.good("main.o", "-L.", "-ltwo", "-Wl,-rpath," + str(objects.root), "-o", "p")
    assert objects.program("p") == "2\n"
    (objects.root / "libtwo.so.1").unlink()
    assert objects.run("./p").status != 0, "it was linked to the shared library"
    assert objects.calls()[-1]["kind"] == "program"


def test_a_shared_library_of_archives_and_of_another_one(objects):
    objects.good("rcs", "libadd.a", "add.o", tool="ar")
    objects.good("-shared", "two.o", "-Wl,--whole-archive", "./libadd.a", "-Wl,--no-whole-archive", "-o", "libtwo.so")
    objects.write({"four.c": "int two(void);\nint four(void) { return two() + two(); }\n"})
    objects.good("-shared", "four.c", "-L.", "-ltwo", "-o", "libfour.so")
    facts = json.loads((objects.root / "libfour.so.bc.json").read_text())
    assert [Path(path).name for path in facts["needed"]] == ["libtwo.so"]
    inside = read_functions(objects.root / "libfour.so.bc")
    assert inside == {"four"}


def read_functions(path: Path) -> set[str]:
    return {one.name for one in parse_bitcode(path.read_bytes()).functions if not one.is_declaration}


def test_a_library_that_was_found_by_name_is_found_again_when_the_program_runs(objects):
    """As this machine's own would be: configure scripts run what they link with a dependency."""
    (objects.root / "prefix").mkdir()
    objects.good("-shared", "add.o", "two.o", "-Wl,-soname,libdep.so.3", "-o", "prefix/libdep.so.3")
    (objects.root / "prefix" / "libdep.so").symlink_to("libdep.so.3")
    objects.good("main.o", "-Lprefix", "-ldep", "-o", "p")
    assert objects.program("p") == "2\n"


def test_no_undefined(objects):
    assert objects.good("-shared", "two.o", "-o", "open.so").status == 0
    for flag in ("-Wl,--no-undefined", "-Wl,-z,defs"):
        assert "undefined reference to `add'" in objects.cc("-shared", "two.o", flag, "-o", "closed.so").err


def test_joined_objects_are_bitcode(objects):
    objects.good("-r", "add.o", "two.o", "-o", "both.o")
    assert {symbol.name for symbol in read_symbols((objects.root / "both.o").read_bytes())} == {"add", "two"}
    objects.good("-nostdlib", "-Wl,-r", "add.o", "two.o", "-o", "again.o")
    objects.good("main.o", "both.o", "-o", "p")
    assert objects.program("p") == "2\n"
    assert "DICompileUnit" in text_of(parse_bitcode((objects.root / "both.o").read_bytes()))


def test_libraries_that_every_machine_has(bench):
    bench.write({"m.c": "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
                 'int main(void) { printf("%.3f\\n", pow(atof("2"), 0.5)); return 0; }\n'})  # fmt: skip
    bench.good("m.c", "-lm", "-lc", "-lpthread", "-ldl", "-lrt", "-pthread", "-o", "p")
    assert bench.program("p") == "1.414\n"


@pytest.mark.parametrize("given", [["-lz"], ["-lcrypto"], ["-L/usr/lib/x86_64-linux-gnu", "-lz"], ["-lno_such"]])
def test_a_library_of_this_machine_is_refused_by_name(objects, given):
    ran = objects.cc("main.o", "add.o", "two.o", *given, "-o", "p")
    assert ran.status == 1
    assert f"cannot find {given[-1]}" in ran.err
    assert "[dependencies]" in ran.err
    assert not (objects.root / "p").exists()


def test_files_of_this_machine_are_refused_by_name(objects):
    found = next((path for path in Path("/usr/lib").glob("*-linux-gnu/libm.so.6")), None)
    if found is None:
        pytest.skip("no libm.so.6 in /usr/lib")
    (objects.root / "libsly.so").symlink_to(found)
    for given in (str(found), "./libsly.so"):
        ran = objects.cc("main.o", "add.o", "two.o", given, "-o", "p")
        assert ran.status == 1
        assert "this machine's own" in ran.err


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gnu_get_libc_version", "platform"), ("fopencookie", "platform"), ("getcontext", ""), ("backtrace", "")],
)
def test_functions_that_only_this_machine_has_do_not_link(bench, name, hint):
    """AC_CHECK_FUNCS: a yes here would be a no where the package is installed."""
    bench.write({"conftest.c": f"char {name} ();\nint main (void) {{ return {name} (); }}\n"})
    ran = bench.cc("conftest.c", "-o", "conftest")
    assert ran.status == 1
    assert f"undefined reference to `{name}'" in ran.err
    assert "not in the platform interface" in ran.err
    assert hint in ran.err
    assert not (bench.root / "conftest").exists()


@pytest.mark.parametrize(
    "name", ["memcpy", "strtol", "stat", "open", "fseeko", "clock_gettime", "pthread_create", "pow"]
)
def test_functions_that_every_machine_has_link_without_their_header(bench, name):
    bench.write({"conftest.c": f"char {name} ();\nint main (void) {{ return {name} (); }}\n"})
    bench.good("conftest.c", "-o", "conftest")


def test_what_only_dead_branches_call_is_not_needed(bench):
    condition = "(c > 5 || sizeof(long) == 4) ? sizeof(long) == 4 && no_such() : 0"
    bench.write(
        {"dead.c": f"int no_such(void);\nint main(int c, char **v) {{ if ({condition}) return 1; return 0; }}\n"}
    )
    bench.good("dead.c", "-o", "p")
    assert bench.run("./p").status == 0


def test_undefined_names_of_the_build_say_who_needs_them(objects):
    assert "undefined reference to `add' (two.o)" in objects.cc("main.o", "two.o", "-o", "p").err


def test_two_definitions_are_an_error_that_names_both(objects):
    ran = objects.cc("main.o", "add.o", "two.o", "other.o", "-Dx", "-o", "p")
    assert ran.status != 0


def test_machine_code_cannot_be_part_of_a_library(objects):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no native compiler")
    subprocess.run([compiler, "-c", "add.c", "-o", "native.o"], cwd=objects.root, check=True)
    objects.good("main.o", "native.o", "two.o", "-o", "p")
    assert objects.program("p") == "2\n", "a program of the build may have it"
    assert "native.o is machine code" in objects.cc("-shared", "two.o", "native.o", "-o", "l.so").err
    assert "native.o is machine code" in objects.cc("-r", "two.o", "native.o", "-o", "l.o").err
    objects.good("rcs", "mixed.a", "two.o", "native.o", tool="ar")
    assert "mixed.a(native.o) is machine code" in objects.cc("main.o", "mixed.a", "-o", "p").err


def test_what_is_no_object(objects):
    objects.write({"readme.o": "hello\n", "empty.o": ""})
    for name in ("readme.o", "empty.o"):
        assert "file format not recognized" in objects.cc("main.o", name, "-o", "p").err
    assert "no such file" in objects.cc("main.o", "missing.o", "-o", "p").err


def test_the_linker_introduces_itself(bench):
    """Meson finds no linker without it."""
    ran = bench.good("-Wl,--version")
    assert "ld" in ran.out.lower()


@pytest.mark.parametrize("flags", [["-static"], ["-pie"], ["-no-pie"], ["-s"], ["-rdynamic"], ["-Wl,-O1,--as-needed"]])
def test_flags_for_the_linker(objects, flags):
    objects.good("main.o", "add.o", "two.o", *flags, "-o", "p")
    assert objects.program("p") == "2\n"


VARIADIC = r"""
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
static double sum(int n, ...) { va_list l; va_start(l, n); double s = 0;
  for (int i = 0; i < n; i++) s += i % 2 ? va_arg(l, double) : va_arg(l, int); va_end(l); return s; }
static void say(char *to, size_t size, const char *f, ...) {
  va_list l; va_start(l, f); vsnprintf(to, size, f, l); va_end(l); }
static int order(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
_Thread_local int mine = 5;
int main(int argc, char **argv) {
  char text[80]; say(text, sizeof text, "%d %s %.2f %c", 7, "seven", 7.5, 'x');
  char letters[] = "neutral"; qsort(letters, 7, 1, order);
  errno = 0; strtol("99999999999999999999", 0, 10);
  long double wide = argc; wide = wide / 3 * 3; unsigned __int128 big = (unsigned __int128)argc << 100;
  printf("%s|%.1f|%s|%d|%d|%d|%d\n", text, sum(4, 1, 2.5, 3, 4.5), letters, errno == ERANGE, mine, wide == 1,
         (int)(big / 3 >> 98));
  return 0; }
"""
EXPECTED = "7 seven 7.50 x|11.0|aelnrtu|1|5|1|1\n"


def test_a_program_means_here_what_it_means_everywhere(bench):
    bench.write({"p.c": VARIADIC})
    bench.good("p.c", "-o", "p")
    assert bench.program("p") == EXPECTED


# zig builds its own libraries for each of them first, which takes minutes.
LATER = [
    pytest.param(target, marks=pytest.mark.long)
    for target in ("riscv64-linux-musl", "x86_64-linux-musl", "aarch64-linux-gnu", "riscv64-linux-gnu")
]


@pytest.mark.cross
@pytest.mark.parametrize("target", ["aarch64-linux-musl", *LATER])
def test_programs_for_other_machines(bench, target):
    arch, _, libc = target.split("-")
    if why := arch != "x86_64" and lacks(f"qemu-{arch}"):
        pytest.skip(str(why))
    sysroot = Path(f"/usr/{arch}-linux-gnu")
    if libc == "gnu" and not sysroot.is_dir():
        pytest.skip(f"no C library in {sysroot}")
    bench.write({"p.c": VARIADIC})
    bench.good(f"--vis-target={target}", "p.c", "-o", "p")
    bench.good("p.c", "-o", "q", VISGET_CC_TARGET=target)
    under = () if arch == "x86_64" else (f"qemu-{arch}", *(("-L", str(sysroot)) if libc == "gnu" else ()))
    assert bench.program("p", under=under) == bench.program("q", under=under) == EXPECTED


def test_a_target_without_a_back_end(bench):
    bench.write({"p.c": VARIADIC})
    assert "no back end" in bench.cc("--vis-target=x86_64-windows", "p.c").err


CXX = r"""
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
struct Base { virtual ~Base() = default; virtual std::string name() const { return "base"; } };
struct Derived : Base { std::string name() const override { return "derived"; } };
int main() {
  std::map<std::string, int> counts; counts["a"]++; counts["a"]++;
  Base *thing = new Derived;
  try { std::string("x").at(9); } catch (const std::out_of_range &) { std::cout << "caught "; }
  std::cout << counts["a"] << ' ' << thing->name() << ' ' << (dynamic_cast<Derived *>(thing) != nullptr) << std::endl;
  delete thing; return 0; }
"""


@pytest.mark.long
def test_programs_in_cxx(bench):
    """Long: the first one compiles libc++."""
    bench.write({"p.cc": CXX})
    bench.good("p.cc", "-o", "p", tool="c++")
    assert bench.program("p") == "caught 2 derived 1\n"
    bench.good("-c", "p.cc", tool="c++")
    bench.good("p.o", "-lstdc++", "-o", "q")
    assert bench.program("q") == "caught 2 derived 1\n"


def test_native_objects_are_compiled_once(objects):
    cache = objects.root / "cache"
    objects.good("main.o", "add.o", "two.o", "-o", "p", VISGET_CACHE_DIR=str(cache))
    made = {path: path.stat().st_ino for path in (cache / "objects").rglob("*.o")}
    assert len(made) == 3
    objects.good("main.o", "add.o", "two.o", "-o", "q", VISGET_CACHE_DIR=str(cache))
    assert {path: path.stat().st_ino for path in (cache / "objects").rglob("*.o")} == made
