from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import pytest
from buildkit import frontend, units, write

from visget.errors import BuildError, UnsupportedError
from visget.progress import SILENT
from visget.toolchain.clang import OVERLAY, CompileOptions, find_frontend, recorded_flags
from visget.toolchain.frontend import Compilers, compile_units, parse_dependencies


def stderr_of(root: Path, files: dict[str, str], **options: object) -> str:
    with pytest.raises(BuildError) as caught:
        units(root, files, CompileOptions(**options))  # type: ignore[arg-type]
    return str(caught.value.details["stderr"])


def fake_compiler(path: Path, says: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


def test_ziglang_is_found_and_has_the_epoch() -> None:
    found = frontend()
    assert found.version.startswith("22.")
    assert found.command[1:] == ("clang",)


def test_another_clang_of_another_major_version_is_refused(tmp_path: Path) -> None:
    cc = fake_compiler(tmp_path / "cc", "Debian clang version 21.1.0 (1)")
    with pytest.raises(UnsupportedError, match=r"clang 21\.1\.0, but packages of this visget are LLVM 22"):
        find_frontend(cc, epoch=22)


def test_another_clang_of_the_same_major_version_is_taken(tmp_path: Path) -> None:
    cc = fake_compiler(tmp_path / "cc", "Debian clang version 22.1.3 (1)")
    assert find_frontend(cc, epoch=22).command == (cc,)


def test_another_path_to_clang_compiles(tmp_path: Path) -> None:
    # A wrapper stands for a clang that is not ziglang's.
    cc = tmp_path / "clang-22"
    cc.write_text(f'#!/bin/sh\nexec "{frontend().command[0]}" clang "$@"\n')
    cc.chmod(0o755)
    found = find_frontend(str(cc), epoch=22)
    write(tmp_path, {"a.c": "int f(void) { return 1; }\n"})
    (unit,) = compile_units(found, CompileOptions(), ["a.c"], root=tmp_path, jobs=1, progress=SILENT)
    assert "define signext i32 @f()" in unit.text


@pytest.mark.parametrize("says", ["gcc (Debian 12.2.0) 12.2.0", "Apple clang version 22.0.0 (clang-2200)", ""])
def test_what_is_no_clang_is_refused(tmp_path: Path, says: str) -> None:
    with pytest.raises(UnsupportedError, match="is not a clang"):
        find_frontend(fake_compiler(tmp_path / "cc", says), epoch=22)


def test_a_compiler_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="does not run"):
        find_frontend(str(tmp_path / "nothing"), epoch=22)


def test_no_ziglang_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UnsupportedError) as caught:
        find_frontend(None, epoch=22)
    assert caught.value.hint is not None and "visget[author]" in caught.value.hint


def test_the_neutral_model(tmp_path: Path) -> None:
    (unit,) = units(
        tmp_path,
        {"a.c": "int neg(char c) { return c < 0; }\ndouble fma_(double a, double b, double c) { return a * b + c; }\n"},
    )
    assert 'target triple = "riscv64-unknown-linux-musl"' in unit.text
    assert "icmp slt i32" in unit.text  # plain char is signed
    assert "llvm.fmuladd.f64" in unit.text
    assert "optnone" not in unit.text and "noinline" not in unit.text


@pytest.mark.parametrize(("mode", "found", "absent"), [
    ("strict", "fmul double", "fmuladd"), ("fast", "fmul contract double", "fmuladd"),
])  # fmt: skip
def test_floating_point_modes(tmp_path: Path, mode: str, found: str, absent: str) -> None:
    code = "double f(double a, double b, double c) { return a * b + c; }\n"
    (unit,) = units(tmp_path, {"a.c": code}, CompileOptions(floating_point=mode))  # type: ignore[arg-type]
    assert found in unit.text
    assert absent not in unit.text


def test_float_casts_saturate_unless_native_is_asked_for(tmp_path: Path) -> None:
    code = "int f(double a) { return (int)a; }\n"
    assert "llvm.fptosi.sat.i32.f64" in units(tmp_path, {"a.c": code})[0].text
    assert "fptosi double" in units(tmp_path, {"a.c": code}, CompileOptions(float_cast="native"))[0].text


def test_no_macro_names_a_processor(tmp_path: Path) -> None:
    compilers = Compilers()
    from visget.toolchain.frontend import clang_command

    ran = compilers.run(
        [*clang_command(frontend(), CompileOptions(), tmp_path, cxx=False), "-E", "-dM", "-x", "c", "-"],
        cwd=tmp_path,
    )
    assert ran.returncode == 0
    assert re.findall(r"(?im)^#define \w*(?:riscv|x86|aarch64|_arm|sse|avx|neon)\w*", ran.stdout) == []
    assert "#define __LP64__ 1" in ran.stdout


def test_paths_and_times_do_not_survive(tmp_path: Path) -> None:
    code = (
        "#include <assert.h>\n#include <stdio.h>\n#include \"sub/h.h\"\n"
        "const char *where(void) { return __FILE__ __DATE__ __TIME__; }\nint f(int a) { assert(a); return g(a); }\n"
    )
    (unit,) = units(tmp_path, {"a.c": code, "sub/h.h": "static inline int g(int a) { return a + sizeof(__FILE__); }\n"})
    assert "a.cJan  1 198000:00:00" in unit.text
    for forbidden in (str(tmp_path), "site-packages", "ziglang", "/tmp/", "/home/"):
        assert forbidden not in unit.text
    assert unit.inputs == ("a.c", "sub/h.h")


def test_the_environment_does_not_reach_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "evil", {"stdio.h": "#error reached\n"})
    monkeypatch.setenv("CPATH", str(tmp_path / "evil"))
    monkeypatch.setenv("C_INCLUDE_PATH", str(tmp_path / "evil"))
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "+-DEVIL")
    (unit,) = units(tmp_path, {"a.c": "#include <stdio.h>\n#ifdef EVIL\n#error evil\n#endif\nint x = BUFSIZ;\n"})
    assert "@x = global i32 8192" in unit.text


def test_errors_of_all_files_are_shown_as_clang_shows_them(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        units(tmp_path, {"a.c": "int f( {\n", "b.c": "int ok;\n", "c.c": "int g(void) { return x; }\n"})
    error = caught.value
    assert error.message == "2 files do not compile"
    assert error.details["files"] == ["a.c", "c.c"]
    said = str(error.details["stderr"])
    assert "a.c:1:8: error: " in said
    assert "c.c:1:22: error: use of undeclared identifier 'x'" in said
    assert "    1 | int g(void) { return x; }" in said


def test_colour_only_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path, {"a.c": "int f(void) { return x; }\n"})
    for colour in (False, True):
        with pytest.raises(BuildError) as caught:
            compile_units(
                frontend(), CompileOptions(), ["a.c"], root=tmp_path, jobs=1, progress=SILENT, colour=colour
            )
        assert ("\x1b[" in str(caught.value.details["stderr"])) is colour


@pytest.mark.parametrize(("code", "said"), [
    ("int f(void) { return g(3); }\n", "call to undeclared function 'g'"),
    ("int f(void) { return __builtin_frobnicate(3); }\n", "__builtin_frobnicate"),
    ("__attribute__((ms_abi)) int f(int a) { return a; }\n", "'ms_abi' calling convention is not supported"),
    ('__attribute__((target_clones("avx2", "default"))) int f(int a) { return a; }\n', "target_clones"),
    ("int t(const char *); int f(void) { int (*g)(int) = t; return g(1); }\n", "incompatible function pointer types"),
    ("char *f(void) { return 3; }\n", "incompatible integer to pointer conversion"),
    ("f(void) { return 3; }\n", "type specifier missing"),
    ("#include <immintrin.h>\n", "intrinsics of one processor are outside VIS-1"),
    ("#include <arm_neon.h>\n", "intrinsics of one processor are outside VIS-1"),
    ("#include <fenv.h>\nint f(void) { return fesetround(FE_UPWARD); }\n", "VIS-1 code rounds to nearest"),
    ("#include <regex.h>\nint f(regex_t *r) { return regcomp(r, \"a\", 0); }\n", "different layout in each C library"),
    ("#include <ftw.h>\nint f(void) { return ftw(\"/\", 0, 1); }\n", "different numbers in each C library"),
    ("#include <math.h>\nint f(double x) { return ilogb(x) == FP_ILOGB0; }\n", "differs between machines"),
    ("#include <sys/epoll.h>\nint f(void) { return epoll_create1(0); }\n",
     "not in the platform interface: struct epoll_event"),
    ("#include <string.h>\nvoid f(char *b, const char *s) { strlcpy(b, s, 9); }\n",
     "undeclared library function 'strlcpy'"),
    ("#define _GNU_SOURCE\n#include <signal.h>\nvoid *f(ucontext_t *c) { return c; }\n",
     "unknown type name 'ucontext_t'"),
])  # fmt: skip
def test_what_would_go_wrong_silently_is_an_error(tmp_path: Path, code: str, said: str) -> None:
    assert said in stderr_of(tmp_path, {"a.c": code})


def test_a_package_cannot_switch_the_errors_off(tmp_path: Path) -> None:
    flags = ("-Wno-implicit-function-declaration", "-Wno-error", "-Wno-everything")
    assert "undeclared function" in stderr_of(tmp_path, {"a.c": "int f(void) { return g(3); }\n"}, flags=flags)


def test_unprototyped_calls_with_arguments_are_refused(tmp_path: Path) -> None:
    said = stderr_of(tmp_path, {"a.c": "int g();\nint f(void) { return g(1, 2.0f); }\n"})
    assert "a.c:2:23: error: passing arguments to 'g' without a prototype" in said


def test_unprototyped_calls_without_arguments_are_fine(tmp_path: Path) -> None:
    (unit,) = units(tmp_path, {"a.c": "int g();\nint f(void) { return g(); }\n"})
    assert unit.warnings == ""


def test_old_style_definitions_are_accepted_in_silence(tmp_path: Path) -> None:
    code = "int g(int a, char b);\nint g(a, b) int a; char b; { return a + b; }\nint f(void) { return g(1, 2); }\n"
    (unit,) = units(tmp_path, {"a.c": code})
    assert unit.warnings == ""


def test_warnings_only_when_the_author_asks(tmp_path: Path) -> None:
    code = "int f(void) { int unused = 3; return 0; }\n"
    assert units(tmp_path, {"a.c": code})[0].warnings == ""
    assert "unused variable" in units(tmp_path, {"a.c": code}, CompileOptions(flags=("-Wall",)))[0].warnings


def test_cxx_with_and_without_exceptions(tmp_path: Path) -> None:
    code = (
        "#include <algorithm>\n#include <array>\n#include <cmath>\n"
        'extern "C" int top(const int *p) { std::array<int, 3> a{p[0], p[1], p[2]}; std::sort(a.begin(), a.end());'
        " return a[2]; }\n"
    )
    (unit,) = units(tmp_path, {"a.cpp": code})
    assert "define signext i32 @top(ptr" in unit.text
    files = {
        "b.cc": "void f() { throw 1; }\n",
        "c.cc": "struct A { virtual ~A(); }; struct B : A {}; B *f(A *a) { return dynamic_cast<B *>(a); }\n",
    }
    assert [bool(unit.text) for unit in units(tmp_path, files)] == [True, True]
    said = stderr_of(tmp_path, files, exceptions=False, rtti=False)
    assert "cannot use 'throw' with exceptions disabled" in said
    assert "dynamic_cast requires -frtti" in said


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_va_list_is_the_replaceable_one(tmp_path: Path, suffix: str) -> None:
    code = """
#include <stdarg.h>
#include <stdio.h>
struct big { long a, b, c; };
struct two { long a, b; };
struct none {};
struct one { float x; };
typedef int (*callback)(int);
static long walk(va_list ap) {
    long r = va_arg(ap, int) + (long)va_arg(ap, double);
    r += va_arg(ap, struct big).b + va_arg(ap, struct two).b + (long)va_arg(ap, struct one).x;
    r += (long)va_arg(ap, long double) + (long)va_arg(ap, __int128) + va_arg(ap, callback)(3);
    r += va_arg(ap, const char *)[0];
    struct none n = va_arg(ap, struct none);
    (void)n;
    return r;
}
long sum(int n, ...) {
    va_list ap, aq;
    va_start(ap, n);
    va_copy(aq, ap);
    long r = walk(ap) + walk(aq);
    va_end(ap);
    va_end(aq);
    return r;
}
int print(char *b, unsigned long n, const char *f, ...) {
    va_list ap;
    va_start(ap, f);
    int r = vsnprintf(b, n, f, ap);
    va_end(ap);
    return r;
}
"""
    (unit,) = units(tmp_path, {f"a.{suffix}": code})
    for name in ("start", "end", "copy", "arg_gp", "arg_fp", "arg_pair", "arg_i128", "arg_f128"):
        assert f"@__vis_va_{name}(" in unit.text
    assert "llvm.va_" not in unit.text
    assert "va_arg ptr" not in unit.text


def test_a_function_that_is_not_declared_has_advice(tmp_path: Path) -> None:
    code = "#include <string.h>\nvoid f(char *b, const char *s) { other(b); strlcpy(b, s, 9); }\n"
    with pytest.raises(BuildError) as caught:
        units(tmp_path, {"a.c": code})
    assert caught.value.hint == (
        "strlcpy is not in the platform interface: not every C library has it. "
        "Define it in the package under a name of its own."
    )


def test_safe_constants_of_the_c_library(tmp_path: Path) -> None:
    code = """
#include <fenv.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdio.h>
#include <tgmath.h>
_Static_assert(BUFSIZ == 8192 && MB_LEN_MAX == 16 && L_tmpnam == 20 && FOPEN_MAX == 16, "");
_Static_assert(sizeof(jmp_buf) == 512 && _Alignof(jmp_buf) == 16, "");
_Static_assert(LC_ALL_MASK == 63, "");
_Static_assert(FE_ALL_EXCEPT == 0 && FE_TONEAREST == 0, "");
#if defined FE_UPWARD || defined FE_INEXACT || defined FP_ILOGB0
#error they would differ
#endif
int quiet(void) { fenv_t e; return fegetround() + feholdexcept(&e) + fesetround(FE_TONEAREST) + feupdateenv(&e); }
int jump(jmp_buf b) { return setjmp(b); }
"""
    (unit,) = units(tmp_path, {"a.c": code})
    assert "declare i32 @fe" not in unit.text  # all of them are the header's own
    assert re.search(r"@_setjmp\(ptr noundef\) #(\d+)", unit.text) is not None
    assert "returns_twice" in unit.text


OVERLAYS = sorted(
    str(path.relative_to(OVERLAY))
    for path in OVERLAY.rglob("[!v]*.h")
    if not re.search(r"vis_no_intrinsics.h|^#error", path.read_text(), re.M)
)


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_every_header_of_our_own_compiles_twice_and_strictly(tmp_path: Path, suffix: str) -> None:
    code = "".join(f"#include <{name}>\n" for name in OVERLAYS * 2)
    strict = ("-Wall", "-Wextra", "-Wpedantic", "-Wno-pragma-system-header-outside-header")
    units(tmp_path, {f"a.{suffix}": code + "int done;\n"}, CompileOptions(flags=strict, defines=("_GNU_SOURCE",)))
    assert {"stdio.h", "fenv.h", "math.h", "setjmp.h"} <= set(OVERLAYS)


def test_every_header_of_intrinsics_says_why_not(tmp_path: Path) -> None:
    files = [path for path in OVERLAY.glob("[!v]*.h") if "vis_no_intrinsics.h" in path.read_text()]
    names = sorted(path.name for path in files)
    assert {"immintrin.h", "arm_neon.h", "riscv_vector.h"} <= set(names)
    said = stderr_of(tmp_path, {f"{n}.c": f"#include <{name}>\n" for n, name in enumerate(names)})
    assert said.count("error: ") == len(names) == said.count("outside VIS-1: use plain loops") // 2


def test_dependencies_in_the_syntax_of_make() -> None:
    assert parse_dependencies("unit: a.c \\\n  dir/my\\ file.h x$$y.h\n") == ["a.c", "dir/my file.h", "x$y.h"]


def test_recorded_flags_name_no_path() -> None:
    flags = recorded_flags(CompileOptions(include=("include",), defines=("A=1",), flags=("-Wall",)), cxx=True)
    assert not [flag for flag in flags if flag.startswith("/") or "=/" in flag]
    assert {"-DA=1", "-fexceptions", "-frtti", "-ffp-contract=on"} <= set(flags)
    assert "-Wall" not in flags


def test_stopping_kills_the_running_compilers(tmp_path: Path) -> None:
    compilers = Compilers()
    ended: list[int] = []
    thread = threading.Thread(target=lambda: ended.append(compilers.run(["sleep", "60"], cwd=tmp_path).returncode))
    thread.start()
    while not compilers._running:
        time.sleep(0.01)
    compilers.stop()
    thread.join(timeout=10)
    assert ended == [-9]
    with pytest.raises(UnsupportedError, match="stopped"):
        compilers.run(["true"], cwd=tmp_path)


def test_an_interrupt_stops_everything(tmp_path: Path) -> None:
    class Impatient:
        def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
            if done:
                raise KeyboardInterrupt

        def note(self, text: str) -> None:
            raise AssertionError(text)

    write(tmp_path, {f"{n}.c": "int ok;\n" for n in range(12)})
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        compile_units(
            frontend(), CompileOptions(), [f"{n}.c" for n in range(12)], root=tmp_path, jobs=1, progress=Impatient()
        )
    assert time.monotonic() - started < 5
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("clang")]
