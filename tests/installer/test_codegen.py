"""Compiled code obeys each architecture's calling convention: C drivers made by other compilers call it.

The drivers are compiled by gcc (x86-64) or zig cc (aarch64, riscv64) for the real target, and the library by
visget's installer from one and the same neutral module. A wrong convention gives wrong numbers or a crash.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest
from neutral import exports_of, host_processor, native_object, neutral_ir, run_with

from visget.errors import CompileError, RefusedError, UnsupportedError
from visget.installer.codegen import Machine, compiler_identity, generate

ARCHITECTURES = [
    pytest.param("x86_64", id="x86_64"),
    pytest.param("aarch64", marks=pytest.mark.cross, id="aarch64"),
    pytest.param("riscv64", marks=pytest.mark.cross, id="riscv64"),
]

SCALARS = """
int neg(int a) { return -a; }
short triple(short a) { return a * 3; }
unsigned char wrap(unsigned char a) { return a + 250; }
signed char twice(signed char a) { return a * 2; }
unsigned next(unsigned a) { return a + 1; }
_Bool both(_Bool a, int b) { return a && b < 0; }
long mixed(int a, long b) { return a + b; }
long widen_s8(signed char a) { return a; }
long widen_u8(unsigned char a) { return a; }
long widen_s16(short a) { return a; }
long widen_u16(unsigned short a) { return a; }
long widen_s32(int a) { return a; }
unsigned long widen_u32(unsigned a) { return a; }
long widen_bool(_Bool a) { return a; }
float scale(float a, int b) { return a * b; }
double mean(double a, float b, int c) { return (a + b + c) / 3; }
long ten(signed char a, short b, int c, unsigned char d, unsigned short e, unsigned f, signed char g, short h, int i,
         unsigned char j)
{ return a + b * 10L + c * 100L + d + e + (long)f + g * 1000L + h * 10000L + i * 100000L + j; }
double twelve(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j,
              float k, float l) { return a - b + c - d + e - f + g - h + i - j + k - l; }
typedef int (*callback)(int, signed char, unsigned short, _Bool);
long call(callback f, int x) { return f(x, (signed char)-7, (unsigned short)65000, 1); }
__int128 product(__int128 a, long b) { return a * b; }
__int128 product_second(long b, __int128 a) { return a * b; }
int sum_array(const int *p, unsigned long n) { int s = 0; while (n--) s += *p++; return s; }
"""

SCALARS_DRIVER = """
#include <stdio.h>
#include <string.h>
int neg(int); short triple(short); unsigned char wrap(unsigned char); signed char twice(signed char);
unsigned next(unsigned); _Bool both(_Bool, int); long mixed(int, long);
long widen_s8(signed char), widen_u8(unsigned char), widen_s16(short), widen_u16(unsigned short), widen_s32(int);
unsigned long widen_u32(unsigned); long widen_bool(_Bool);
float scale(float, int); double mean(double, float, int);
long ten(signed char, short, int, unsigned char, unsigned short, unsigned, signed char, short, int, unsigned char);
double twelve(double, double, double, double, double, double, double, double, double, double, float, float);
typedef int (*callback)(int, signed char, unsigned short, _Bool);
long call(callback, int);
__int128 product(__int128, long), product_second(long, __int128);
int sum_array(const int *, unsigned long);
static int mine(int a, signed char b, unsigned short c, _Bool d) { return a * 100 + b + c * 2 + d * 1000000; }
static int bad;
#define CHECK(e) do { if (!(e)) { printf("wrong: %s\\n", #e); bad = 1; } } while (0)
int main(void)
{
    volatile signed char s8 = -3; volatile unsigned char u8 = 250; volatile short s16 = -300;
    volatile unsigned short u16 = 65000; volatile int s32 = -70000; volatile unsigned u32 = 4000000000u;
    CHECK(neg(-5) == 5); CHECK(triple(-7) == -21); CHECK(wrap(10) == 4); CHECK(twice(-9) == -18);
    CHECK(next(0xffffffffu) == 0); CHECK(both(1, -1) == 1); CHECK(both(1, 1) == 0); CHECK(mixed(-5, 3) == -2);
    CHECK(widen_s8(s8) == -3); CHECK(widen_u8(u8) == 250); CHECK(widen_s16(s16) == -300);
    CHECK(widen_u16(u16) == 65000); CHECK(widen_s32(s32) == -70000); CHECK(widen_u32(u32) == 4000000000u);
    CHECK(widen_bool(u8 == 250) == 1); CHECK(widen_bool(u8 == 1) == 0);
    CHECK(scale(1.5f, -2) == -3.0f); CHECK(mean(1.5, 2.5f, -1) == 1.0);
    CHECK(ten(-1, -2, -3, 250, 65000, 4000000000u, -4, -5, -6, 7)
          == -1 - 20 - 300 + 250 + 65000 + 4000000000L - 4000 - 50000 - 600000 + 7);
    CHECK(twelve(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.5f, 12.25f) == -5.75);
    CHECK(call(mine, -3) == -300 - 7 + 130000 + 1000000);
    __int128 big = ((__int128)-5) << 70;
    CHECK(product(big, 3) == big * 3); CHECK(product_second(-3, big) == big * -3);
    int values[] = {1, -2, 3, 40, -500}; CHECK(sum_array(values, 5) == -458);
#ifdef __aarch64__
    /* This convention leaves the high bits of small integers undefined: give them garbage. */
    volatile long g = 0x1122334455667788;
    CHECK(((long (*)(long))(void *)widen_s8)(g) == (signed char)g);
    CHECK(((long (*)(long))(void *)widen_u8)(g) == (unsigned char)g);
    CHECK(((long (*)(long))(void *)widen_s16)(g) == (short)g);
    CHECK(((long (*)(long))(void *)widen_s32)(g) == (int)g);
#endif
    if (!bad) printf("right\\n");
    return bad;
}
"""


@pytest.fixture(scope="module")
def scalars(tmp_path_factory: pytest.TempPathFactory) -> str:
    return neutral_ir(SCALARS, tmp_path_factory.mktemp("scalars"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_scalars_and_callbacks(arch: str, scalars: str, tmp_path: Path) -> None:
    done = run_with(SCALARS_DRIVER, native_object(scalars, arch), arch, tmp_path)
    assert (done.stdout, done.returncode) == ("right\n", 0)


def test_scalars_tuned_for_this_processor(scalars: str, tmp_path: Path) -> None:
    cpu, features = host_processor()
    native = native_object(scalars, "x86_64", cpu=cpu, features=features)
    done = run_with(SCALARS_DRIVER, native, "x86_64", tmp_path)
    assert (done.stdout, done.returncode) == ("right\n", 0)


VARIADIC = """
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
typedef int (*function)(int);
static long walk(const char *f, va_list ap)
{
    long r = 0;
    for (; *f; f++) switch (*f) {
        case 'i': r += va_arg(ap, int); break;
        case 'l': r += va_arg(ap, long); break;
        case 'd': r += (long)(va_arg(ap, double) * 10); break;
        case 's': r += strlen(va_arg(ap, char *)); break;
        case 'f': r += va_arg(ap, function)(3); break;
        case 'u': r += va_arg(ap, unsigned); break;
    }
    return r;
}
long sum(const char *f, ...)
{
    va_list ap, again;
    va_start(ap, f);
    va_copy(again, ap);
    long a = walk(f, ap), b = walk(f, again);
    va_end(ap); va_end(again);
    return a == b ? a : -999999;
}
static long forward(const char *f, va_list *ap) { return walk(f, *ap); }
long by_pointer(const char *f, ...)
{ va_list ap; va_start(ap, f); long r = forward(f, &ap); va_end(ap); return r; }
int text(char *b, unsigned long n, const char *f, ...)
{ va_list ap; va_start(ap, f); int r = vsnprintf(b, n, f, ap); va_end(ap); return r; }
int read_text(const char *b, const char *f, ...)
{ va_list ap; va_start(ap, f); int r = vsscanf(b, f, ap); va_end(ap); return r; }
static int (*chosen)(char *, unsigned long, const char *, va_list) = vsnprintf;
int text_by_pointer(char *b, unsigned long n, const char *f, ...)
{ va_list ap; va_start(ap, f); int r = chosen(b, n, f, ap); va_end(ap); return r; }
int square(int x) { return x * x; }
"""

VARIADIC_DRIVER = """
#include <stdio.h>
#include <string.h>
long sum(const char *, ...), by_pointer(const char *, ...); int square(int);
int text(char *, unsigned long, const char *, ...), text_by_pointer(char *, unsigned long, const char *, ...);
int read_text(const char *, const char *, ...);
int main(void)
{
    long want = -5+7+25+5+9+4000000000L-1+15+100+25+3+1-2+1+2+3+4+5+6+7+8+9+5+6+3;
#define ARGUMENTS "ildsfuidldliidddddddddlls", -5, 7L, 2.5, "hello", square, 4000000000u, -1, 1.5, 100L, 2.5, 3L, 1, \\
        -2, .1, .2, .3, .4, .5, .6, .7, .8, .9, 5L, 6L, "abc"
    printf("%d %d\\n", sum(ARGUMENTS) == want, by_pointer(ARGUMENTS) == want);
    char b[200];
#define FORMAT "%d %s %g %ld %c %u %g %g %g %g %g %g %g %g %g %d", -3, "xyz", 1.25, -9L, 'q', 3u, 1., 2., 3., 4., 5., \\
        6., 7., 8., 9., 77
    printf("%d ", text(b, 200, FORMAT)); puts(b);
    printf("%d ", text_by_pointer(b, 200, FORMAT)); puts(b);
    int i; double d; char w[20];
    printf("%d ", read_text("12 2.5 word", "%d %lf %s", &i, &d, w)); printf("%d %g %s\\n", i, d, w);
    return 0;
}
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variable_arguments_from_native_callers(arch: str, tmp_path: Path) -> None:
    """Native callers pass arguments; libc's v* functions get our va_list, by name and by pointer."""
    text = neutral_ir(VARIADIC, tmp_path)
    done = run_with(VARIADIC_DRIVER, native_object(text, arch), arch, tmp_path / arch)
    line = "39 -3 xyz 1.25 -9 q 3 1 2 3 4 5 6 7 8 9 77"
    assert done.stdout.splitlines() == ["1 1", line, line, "3 12 2.5 word"], done
    assert done.returncode == 0


AGGREGATES = """
#include <stdarg.h>
#include <string.h>
typedef struct { int a; } S4; typedef struct { long a; } S8; typedef struct { char a[9]; } S9;
typedef struct { long a; double b; } S16; typedef struct { double a, b; } D16; typedef struct { float a, b, c; } F12;
typedef struct { long a, b, c; } S24; typedef struct { char a[40]; } S40; typedef struct {} S0;
typedef struct { _Alignas(16) long a; long b; } A16;
static double take(const char *f, va_list ap)
{
    double r = 0, k = 1;
    for (; *f; f++, k += 1) switch (*f) {
        case 'i': r += k * va_arg(ap, int); break;
        case 'd': r += k * va_arg(ap, double); break;
        case 'l': r += k * va_arg(ap, long); break;
        case 'p': r += k * *va_arg(ap, int *); break;
        case '0': (void)va_arg(ap, S0); break;
        case '4': r += k * va_arg(ap, S4).a; break;
        case '8': r += k * va_arg(ap, S8).a; break;
        case '9': { S9 s = va_arg(ap, S9); r += k * (s.a[0] + 2 * s.a[8]); break; }
        case 'x': { S16 s = va_arg(ap, S16); r += k * (s.a + 2 * s.b); break; }
        case 'y': { D16 s = va_arg(ap, D16); r += k * (s.a + 2 * s.b); break; }
        case 'z': { F12 s = va_arg(ap, F12); r += k * (s.a + 2 * s.b + 3 * s.c); break; }
        case 't': { S24 s = va_arg(ap, S24); r += k * (s.a + 2 * s.b + 3 * s.c); break; }
        case 'q': { S40 s = va_arg(ap, S40); r += k * (s.a[0] + s.a[39]); break; }
        case 'a': { A16 s = va_arg(ap, A16); r += k * (s.a + 2 * s.b); break; }
        case 'L': r += k * (double)va_arg(ap, long double); break;
        case 'H': r += k * (double)(long)(va_arg(ap, __int128) >> 64); break;
        case 'c': { _Complex double c = va_arg(ap, _Complex double); r += k * (__real__ c + 2 * __imag__ c); break; }
        case 'C': { _Complex float c = va_arg(ap, _Complex float); r += k * (__real__ c + 2 * __imag__ c); break; }
    }
    return r;
}
__attribute__((noinline)) static double sum(const char *f, ...)
{
    va_list ap, again;
    va_start(ap, f); va_copy(again, ap);
    double a = take(f, ap), b = take(f, again);
    va_end(ap); va_end(again);
    return a == b ? a : -1e9;
}
static S4 s4; static S8 s8; static S9 s9; static S16 s16; static D16 d16; static F12 f12;
static S24 s24; static S40 s40; static S0 s0; static A16 a16; static int number;
double run(int which, double seed)
{
    volatile double v = seed;
    s4.a = v; s8.a = v + 1; s9.a[0] = v + 2; s9.a[8] = v + 3; s16.a = v + 4; s16.b = v + 5; d16.a = v + 6;
    d16.b = v + 7;
    f12.a = v; f12.b = v + 1; f12.c = v + 2; s24.a = v; s24.b = v + 3; s24.c = v + 5; s40.a[0] = v; s40.a[39] = v + 1;
    a16.a = v + 8; a16.b = v + 9; number = v + 10;
    long double ld = v + 0.5L; __int128 wide = ((__int128)(long)v) << 64; _Complex double c; _Complex float cf;
    __real__ c = v; __imag__ c = v + 1; __real__ cf = v + 2; __imag__ cf = v + 3;
    int i = v; double d = v + .25; long l = -v;
    switch (which) {
        case 0: return sum("4898i", s4, s8, s9, s8, i);
        case 1: return sum("xxxxd", s16, s16, s16, s16, d);
        case 2: return sum("iixiiixll", i, i, s16, i, i, i, s16, l, l);
        case 3: return sum("ddddddddydd", d, d, d, d, d, d, d, d, d16, d, d);
        case 4: return sum("iiiiiyzii", i, i, i, i, i, d16, f12, i, i);
        case 5: return sum("tqt0id", s24, s40, s24, s0, i, d);
        case 6: return sum("iLdLddddddLi", i, ld, d, ld, d, d, d, d, d, d, ld, i);
        case 7: return sum("iHiHiHd", i, wide, i, wide, i, wide, d);
        case 8: return sum("iiiiHiHld", i, i, i, i, wide, i, wide, l, d);
        case 9: return sum("iaiaiad", i, a16, i, a16, i, a16, d);
        case 10: return sum("cCcCidpp", c, cf, c, cf, i, d, &number, &number);
        case 11: return sum("iiiiiaLHxyztqd", i, i, i, i, i, a16, ld, wide, s16, d16, f12, s24, s40, d);
        case 12: return sum("lllllllHLaxd", l, l, l, l, l, l, l, wide, ld, a16, s16, d);
    }
    return -1;
}
"""

AGGREGATES_DRIVER = """
#include <stdio.h>
double run(int, double);
int main(void) { for (int i = 0; i < 13; i++) printf("%.17g\\n", run(i, 3)); return 0; }
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_variable_arguments_of_every_size(arch: str, tmp_path: Path) -> None:
    """Between functions of one package: structs, long double, __int128 and complex, across the register border."""
    text = neutral_ir(AGGREGATES, tmp_path)
    done = run_with(AGGREGATES_DRIVER, native_object(text, arch), arch, tmp_path / arch)
    plain = tmp_path / "plain.c"
    plain.write_text(AGGREGATES + AGGREGATES_DRIVER)
    subprocess.run(["gcc", "-O1", "-w", str(plain), "-o", str(tmp_path / "plain")], check=True)
    wanted = subprocess.run([str(tmp_path / "plain")], capture_output=True, text=True, check=True).stdout
    assert done.stdout.splitlines() == wanted.splitlines()
    assert done.returncode == 0


STARTUP = """
static volatile int seen[4], count; /* volatile: the optimiser would run the constructors itself */
extern int outcome;
__attribute__((constructor(300), noinline)) static void second(void) { seen[count++] = 2; }
__attribute__((constructor(200), noinline)) static void first(void) { seen[count++] = 1; }
__attribute__((constructor, noinline)) static void third(void) { seen[count++] = 3; }
__attribute__((destructor)) static void last(void) { outcome = 77; }
int outcome;
int order(void) { return seen[0] * 100 + seen[1] * 10 + seen[2]; }
const void *watched(void) { return &outcome; }
_Thread_local int local = 41;
static _Thread_local long hidden = 5;
int bump(void) { return ++local + (int)++hidden; }
__attribute__((weak)) int weakling(void) { return 9; }
int calls_weakling(void) { return weakling() + 1; }
"""

STARTUP_DRIVER = """
#include <stdio.h>
#include <stdlib.h>
int order(void), bump(void), calls_weakling(void); extern int outcome;
static void report(void) { printf("end %d\\n", outcome); fflush(stdout); }
/* In the program's own list of destructors, which runs after the library's: higher priority runs later. */
__attribute__((destructor(101))) static void after(void) { report(); }
int main(void) { int a = bump(), b = bump(); printf("%d %d %d %d\\n", order(), a, b, calls_weakling()); return 0; }
"""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_constructors_destructors_and_thread_locals(arch: str, tmp_path: Path) -> None:
    text = neutral_ir(STARTUP, tmp_path)
    done = run_with(STARTUP_DRIVER, native_object(text, arch), arch, tmp_path / arch)
    assert done.stdout.splitlines() == ["123 48 50 10", "end 77"]


def test_constructors_run_when_a_library_is_loaded(tmp_path: Path) -> None:
    source = (
        "#include <time.h>\nstatic long when; __attribute__((constructor)) static void start(void) { when = "
        "time(0); }\n"
        "long started(void) { return when; }\n"
    )
    native = tmp_path / "x.o"
    native.write_bytes(native_object(neutral_ir(source, tmp_path), "x86_64"))
    library = tmp_path / "libx.so"
    subprocess.run(["gcc", "-shared", str(native), "-o", str(library)], check=True)
    assert ctypes.CDLL(str(library)).started() != 0


def test_vectors_follow_the_processor(tmp_path: Path) -> None:
    """The same module uses wide registers exactly where the target has them."""
    source = (
        "void saxpy(long n, float a, const float *restrict x, float *restrict y)\n{ for (long i = 0; i < n; "
        "i++) y[i] += a * x[i]; }\n"
    )
    text = neutral_ir(source, tmp_path)
    sizes = {}
    for cpu in ("x86-64", "x86-64-v3", "x86-64-v4"):
        native = tmp_path / f"{cpu}.o"
        native.write_bytes(native_object(text, "x86_64", cpu=cpu, features=""))
        listing = subprocess.run(["objdump", "-d", str(native)], capture_output=True, text=True, check=True).stdout
        sizes[cpu] = set(re.findall(r"%([xyz])mm", listing))
    assert sizes["x86-64"] == {"x"}
    assert "y" in sizes["x86-64-v3"]
    assert "z" not in sizes["x86-64-v3"]


def test_straight_line_code_is_vectorised_too(tmp_path: Path) -> None:
    """The SLP vectoriser is on; llvmlite's default is off."""
    source = (
        "void add(float *restrict a, const float *restrict b)\n{ a[0] += b[0]; a[1] += b[1]; a[2] += b[2]; "
        "a[3] += b[3]; }\n"
    )
    native = tmp_path / "x.o"
    native.write_bytes(native_object(neutral_ir(source, tmp_path), "x86_64"))
    listing = subprocess.run(["objdump", "-d", str(native)], capture_output=True, text=True, check=True).stdout
    assert "addps" in listing


def test_only_exports_stay_visible(tmp_path: Path) -> None:
    text = neutral_ir(
        "int helper(int x) { return x * 3; }\nint shared_data = 4;\nint kept(int x) { return helper(x) + "
        "shared_data; }\n",
        tmp_path,
    )
    machine = Machine(triple="x86_64-unknown-linux-gnu", cpu="x86-64", features="")
    native = tmp_path / "x.o"
    native.write_bytes(generate(text, machine, exports=["kept"], announce=lambda stage: None).object)
    listing = subprocess.run(["nm", "-g", str(native)], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in listing.splitlines()] == ["kept"]


def test_an_exported_alias_is_an_export(tmp_path: Path) -> None:
    text = neutral_ir('int one(int x) { return x + 1; }\nint other(int) __attribute__((alias("one")));\n', tmp_path)
    machine = Machine(triple="x86_64-unknown-linux-gnu", cpu="x86-64", features="")
    made = generate(text, machine, exports=["one", "other"], announce=lambda stage: None)
    driver = '#include <stdio.h>\nint one(int), other(int);\nint main(void) { printf("%d %d", one(1), other(2)); }'
    assert run_with(driver, made.object, "x86_64", tmp_path / "run").stdout == "2 3"


def test_an_export_that_is_not_defined_is_refused(scalars: str) -> None:
    machine = Machine(triple="x86_64-unknown-linux-gnu", cpu="x86-64", features="")
    with pytest.raises(RefusedError, match="exports absent"):
        generate(scalars, machine, exports=["neg", "absent"], announce=lambda stage: None)


def test_an_unknown_back_end_is_unsupported(scalars: str) -> None:
    machine = Machine(triple="pdp11-unknown-linux-gnu", cpu="", features="")
    with pytest.raises(UnsupportedError, match="pdp11"):
        generate(scalars, machine, exports=["neg"], announce=lambda stage: None)


def test_stages_are_announced_and_timed(scalars: str) -> None:
    machine = Machine(triple="x86_64-unknown-linux-gnu", cpu="x86-64", features="")
    seen: list[str] = []
    made = generate(scalars, machine, exports=exports_of(scalars), announce=seen.append)
    assert seen == ["legalise", "optimise", "emit"] == list(made.seconds)


def test_objects_are_the_same_in_every_process(scalars: str, tmp_path: Path) -> None:
    """Byte for byte, with constructors and built-ins, whatever the hash seed."""
    text = neutral_ir(VARIADIC + STARTUP, tmp_path)
    path = tmp_path / "both.ll"
    path.write_text(text)
    script = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[2]); from neutral import native_object\n"
        "print(*[hashlib.sha256(native_object(open(sys.argv[1]).read(), a)).hexdigest()"
        " for a in ('x86_64', 'aarch64', 'riscv64')])\n"
    )
    support = str(Path(__file__).resolve().parents[1] / "support")
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, str(path), support],
            capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
        ).stdout
        for seed in ("1", "2", "77")
    }  # fmt: skip
    assert len(outputs) == 1


def test_a_built_in_of_the_future_is_unsupported(tmp_path: Path) -> None:
    text = neutral_ir("int __vis_quantum(int); int f(int x) { return __vis_quantum(x); }", tmp_path)
    with pytest.raises(UnsupportedError, match="__vis_quantum") as caught:
        native_object(text, "x86_64")
    assert "newer visget" in (caught.value.hint or "")


def test_a_va_built_in_as_a_value_is_refused(tmp_path: Path) -> None:
    text = neutral_ir("void *f(void) { return (void *)__vis_va_start; }", tmp_path)
    with pytest.raises(CompileError, match="as a value"):
        native_object(text, "x86_64")


def test_the_compiler_names_itself() -> None:
    assert re.fullmatch(r"llvmlite \d+\.\d+\.\d+ / LLVM 22\.\d+\.\d+", compiler_identity())
