"""The VIS run-time is right: beside the compiler's own on this machine, and through the pipeline on all three."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from neutral import native_object, run_with
from programs import SLOTS, installed, native, package

from visget.format.imports import IMPORTS
from visget.format.manifest import EPOCH
from visget.format.verifier import module_facts
from visget.installer.symbols import SUPPORT_CALLS
from visget.toolchain.clang import Frontend, find_frontend
from visget.toolchain.runtime_library import RUNTIME, runtime_text
from visget.toolchain.runtime_rewrite import lower_operations
from visget.toolchain.runtime_table import ROUTINES

PROGRAMS = Path(__file__).parent / "runtime_programs"


@pytest.fixture(scope="module")
def frontend() -> Frontend:
    return find_frontend(None, epoch=EPOCH)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run-time and the compiler's own, in one program for this machine."""
    program = tmp_path_factory.mktemp("beside") / "program"
    compile_beside(RUNTIME, program)
    return program


def compile_beside(runtime: Path, program: Path) -> None:
    command = ["gcc", "-O1", "-std=gnu17", "-w", "-ffp-contract=off", "-I", str(runtime)]
    subprocess.run([*command, str(PROGRAMS / "against_native.c"), "-o", str(program), "-lquadmath", "-lm"], check=True)


def test_the_run_time_beside_the_compiler_s_own(beside: Path) -> None:
    done = subprocess.run([beside, "10000"], capture_output=True, text=True, check=False)
    assert done.stdout == "0 failures in 10000 rounds\n"


@pytest.mark.long
def test_the_run_time_beside_the_compiler_s_own_for_long(beside: Path) -> None:
    done = subprocess.run([beside, "5000000"], capture_output=True, text=True, check=False)
    assert done.stdout == "0 failures in 5000000 rounds\n"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("below > 4 ||", "below >= 4 ||"),
        ("low >> 109", "low >> 110"),
        ("again = 1;", "again = 0;"),
        ("quotient++;", "quotient += 2;"),
        ("trial = root << 2 | 1", "trial = root << 2"),
        ("limit - !negative;", "limit;"),
        ("guess--;", ";"),
        ("(mode == 4 || a & unit)", "mode == 4"),
        ("left & 1)", "left & 2)"),
        ("31 - zeros", "30 - zeros"),
        ("shifted_right(other, exponent - e_c)", "shifted_right(other, exponent - e_c + 1)"),
    ],
)
def test_that_comparison_sees_mistakes(right: str, wrong: str, tmp_path: Path) -> None:
    for path in RUNTIME.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace(right, wrong))
    compile_beside(tmp_path, tmp_path / "program")
    try:
        done = subprocess.run([tmp_path / "program", "10000"], capture_output=True, text=True, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return
    assert done.returncode != 0


def test_the_table_is_what_clang_makes_of_the_run_time(frontend: Frontend) -> None:
    """Names, types, and who extends what."""
    text = runtime_text(frontend, frozenset(ROUTINES))
    found = {}
    for head, name in re.findall(r"^define ([^\n@]*@(vis_rt_\w+)\([^\n]*?\)) (?:local_unnamed_addr )?#", text, re.M):
        plain = re.sub(r"\bnoundef |%\w+|\b(?:range|nofpclass|captures)\([^)]*\) ?", "", head)
        found[name] = re.sub(r" +([,)])", r"\1", plain).strip()
    assert found == {name: routine.declaration.removeprefix("declare ") for name, routine in ROUTINES.items()}


def test_the_run_time_needs_nothing(frontend: Frontend) -> None:
    """Not itself, and nothing of a compiler's library on any machine."""
    by_double = {name for name, routine in ROUTINES.items() if routine.file == "complex_float.c"}
    imports = module_facts(runtime_text(frontend, frozenset(by_double))).imports
    by_itself = {"vis_rt_crealf", "vis_rt_cimagf", "vis_rt_conjf"}
    assert {f"vis_rt_{name}f" for name in imports} | by_itself == by_double
    assert set(imports) <= IMPORTS.keys()
    text = runtime_text(frontend, frozenset(ROUTINES) - by_double)
    assert lower_operations(text).routines == frozenset()
    assert not re.search(r"^declare [^\n]*@(?!llvm\.)", text, re.M)
    assert not re.search(r"@llvm\.(?:is\.fpclass|fabs|copysign)\.f128", text)
    for arch in ("x86_64", "aarch64", "riscv64"):
        symbols = ELFFile(io.BytesIO(native_object(text, arch))).get_section_by_name(".symtab")
        undefined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"} - {""}
        assert undefined <= {"memcpy", "memset"}, (arch, undefined)


def test_only_long_doubles_hold_their_callers_back(frontend: Frontend) -> None:
    """Marks spread with inlined code: functions on long doubles are not inlined, the others have none."""
    text = runtime_text(frontend, frozenset(ROUTINES))
    groups = dict(re.findall(r"^attributes (#\d+) = \{(.*)\}$", text, re.M))
    for name, group in re.findall(r"^define [^\n@]*@(vis_rt_\w+)\([^\n]*?(#\d+)", text, re.M):
        quad = ROUTINES[name].file.startswith("float128")
        assert ("noimplicitfloat" in groups[group]) == quad == ("noinline" in groups[group]), name


HEADER = "void quads(const void *a, const void *b, void *out);\nvoid wides(const void *a, const void *b, void *out);\n"
SOURCE = r"""
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#define Q(name) name##l
#define L(x) x##L
#else
typedef __float128 quad;
#define L(x) x##Q
#endif
typedef __int128 wide;
typedef unsigned __int128 uwide;
union any { wide w; unsigned char b[16]; struct { double x, y; } d; unsigned long l[2]; };
/* Word by word: the profile lets no long double through a caller's pointer. */
static quad quad_of(const unsigned long *p)
{
    union { uwide w; quad q; } x = { (uwide)p[1] << 64 | p[0] };
    return x.q;
}
static volatile int sink;
static quad table[2] = { L(0.1), L(-1e4000) };
__attribute__((noinline)) static quad apply(quad (*f)(quad, quad), quad a, quad b) { return f(a, b); }
static quad sum(quad a, quad b) { return a + b; }
static quad poly(quad a, quad b) { return ((a * L(3.25) - b) * a + table[0]) / (b * b + 1); }
static quad put(union any *out, quad x)
{
    memset(out, 0, 16);
    union { quad q; uwide w; } bits = { x };
    if (x == x) out->l[0] = (unsigned long)bits.w, out->l[1] = (unsigned long)(bits.w >> 64); else out->b[0] = 0x4e;
    return x;
}
static void put_double(union any *out, double x, double y)
{
    memset(out, 0, 16);
    if (x == x) out->d.x = x; else out->b[0] = 0x4e;
    if (y == y) out->d.y = y; else out->b[8] = 0x4e;
}
void quads(const void *one, const void *two, void *all)
{
    quad a = quad_of(one), b = quad_of(two);
    union any *out = all;
    put(out++, a + b); put(out++, a - b); put(out++, a * b); put(out++, a / b);
    put(out++, -a); put(out++, apply(sum, a, b)); put(out++, apply(poly, a, b)); put(out++, table[sink] + a);
    put(out++, a < b ? a : b);
    out++->w = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5 | (!(a < b)) << 6
        | (!(a >= b)) << 7 | (a != a) << 8 | !a << 9 | __builtin_isunordered(a, b) << 10
        | __builtin_islessgreater(a, b) << 11 | (__builtin_isinf_sign(a) + 1) << 12;
    put_double(out++, (double)a, (double)(float)b);
    double d = (double)a;
    float f = (float)b;
    put(out++, (quad)d + (quad)f);
    long whole = a > L(-9e18) && a < L(9e18) ? (long)a : 7;
    int small = a > L(-2e9) && a < L(2e9) ? (int)a : 7;
    unsigned long natural = a > L(-0.5) && a < L(1.8e19) ? (unsigned long)a : 7;
    out->d.x = 0; out->w = (wide)whole << 64 | (uwide)natural; out++;
    out++->w = small;
    put(out++, (quad)whole + (quad)natural - (quad)small);
    wide big = a > L(-1e38) && a < L(1e38) ? (wide)a : 7;
    uwide large = a > L(-0.5) && a < L(3e38) ? (uwide)a : 7;
    out++->w = big; out++->w = (wide)large;
    put(out++, (quad)big); put(out++, (quad)large);
    a += 1;
    b++;
    put(out++, a); put(out++, b);
    quad total = 0;
    for (int i = 0; i < 5; i++) total += (quad)i * a - (quad)(unsigned char)i / 3;
    put(out++, total);
}
void wides(const void *one, const void *two, void *all)
{
    wide a, b;
    union any *out = all;
    memcpy(&a, one, 16);
    memcpy(&b, two, 16);
    uwide c = a, d = b, rest;
    if (b == 0) b = d = 1;
    if (b == -1) b = 3;
    out++->w = a / b; out++->w = a % b; out++->w = c / d; out++->w = c % d;
    out++->w = a / 10; out++->w = c % 1000000007; out++->w = a / -77; out++->w = (wide)(c / ((uwide)1 << 90));
    wide product = 5;
    int beyond = __builtin_mul_overflow(a, b, &product);
    out->w = product; out++; out++->w = beyond;
    put_double(out++, (double)a, (double)c);
    put_double(out++, (float)a, (float)c);
    double x = (double)a / 3, y = (double)c / 3;
    out++->w = (wide)x; out++->w = (wide)(uwide)y; out++->w = (wide)(float)(a >> 3);
    double base = (double)(int)(a >> 20) / 65536;
    put_double(out++, __builtin_powi(base, (int)b % 9), __builtin_powif((float)base, (int)a % 9));
    _Complex double p, q;
    __real__ p = (double)a; __imag__ p = (double)(b >> 3); __real__ q = (double)(a ^ b); __imag__ q = base;
    if (c % 7 == 0) __imag__ p = __builtin_inf();
    if (c % 5 == 0) __real__ q = __builtin_inf();
    if (c % 3 == 0) __imag__ q = __builtin_nan("");
    p *= q;
    put_double(out++, __real__ p, __imag__ p);
    _Complex float s = p, t = q;
    s *= t;
    put_double(out++, __real__ s, __imag__ s);
}
"""
DRIVER = r"""
#include <stdio.h>
#include <string.h>
#include "api.h"
static unsigned long state = 88172645463325252u;
static unsigned long word(void) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
static void show(const char *what, const unsigned char *out, int size)
{
    printf("%s", what);
    for (int i = 0; i < size; i++) printf("%s%02x", i % 16 ? "" : " ", out[i]);
    printf("\n");
}
int main(void)
{
    static unsigned char out[32 * 16];
    for (int i = 0; i < 400; i++) {
        unsigned long a[2] = { word(), word() }, b[2] = { word(), word() };
        memset(out, 0, sizeof out);
        if (i % 3) a[1] = (a[1] & 0x8000fffffffffffful) | (16383ul - 60 + word() % 200) << 48;
        if (i % 4) b[1] = (b[1] & 0x8000fffffffffffful) | (16383ul - 60 + word() % 130) << 48;
        if (i % 7 == 0) a[0] = 0, a[1] &= ~0ul << 40;
        if (i % 11 == 0) a[1] |= 0x7ffful << 48;
        if (i % 33 == 0) a[0] = 0, a[1] &= 0xfffful << 48;
        if (i % 13 == 0) memset(b, 0, 16);
        if (i % 17 == 0) memcpy(b, a, 16);
        if (i % 19 == 0) b[1] &= 0x8000fffffffffffful;
        quads(a, b, out);
        show("q", out, 22 * 16);
        a[1] = i % 2 ? (long)a[1] >> word() % 64 : a[1];
        b[1] = i % 2 ? (long)b[1] >> (i % 4 == 1 ? 63 : word() % 64) : b[1];
        memset(out, 0, sizeof out);
        wides(a, b, out);
        show("w", out, 18 * 16);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    directory = tmp_path_factory.mktemp("built")
    return package(directory, HEADER, SOURCE), native(directory, DRIVER)


@pytest.mark.parametrize("arch", SLOTS)
def test_a_package_with_long_doubles_and_wide_integers(arch: str, built, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """gcc's binary128 and 128-bit integers on this machine say what is right, on all three."""
    whole, wanted = built
    driver = DRIVER.replace('#include "api.h"', HEADER)
    made = installed(whole, arch)
    done = run_with(driver, made, arch, tmp_path)
    assert done.returncode == 0, done.stderr
    for number, (got, want) in enumerate(zip(done.stdout.splitlines(), wanted.splitlines(), strict=True)):
        differing = [i for i, pair in enumerate(zip(got.split(), want.split(), strict=True)) if pair[0] != pair[1]]
        assert not differing, (number, differing, got, want)
    symbols = ELFFile(io.BytesIO(made)).get_section_by_name(".symtab")
    undefined = {symbol.name for symbol in symbols.iter_symbols() if symbol["st_shndx"] == "SHN_UNDEF"}
    assert not undefined & SUPPORT_CALLS
    assert not [name for name in undefined if name.endswith(("tf2", "tf3", "ti3", "dc3", "sc3"))]


MATHS_HEADER = "void maths(double x, double y, double *out);\n"
MATHS = r"""
#include <math.h>
void maths(double a, double b, double *out)
{
    long double x = a, y = b, whole;
    int n = 0;
    *out++ = frexpl(x, &n); *out++ = n; *out++ = ldexpl(x, n % 7); *out++ = scalbnl(x, 3); *out++ = scalblnl(x, -5L);
    *out++ = modfl(x, &whole); *out++ = whole; *out++ = fmodl(x, y); *out++ = remainderl(x, y); *out++ = logbl(x);
    *out++ = fdiml(x, y); *out++ = fmaxl(x, y) + 0; *out++ = fminl(x, y) + 0; *out++ = sqrtl(fabsl(x));
    *out++ = copysignl(x, y);
    *out++ = floorl(x); *out++ = ceill(x); *out++ = truncl(x); *out++ = roundl(x); *out++ = rintl(x);
    *out++ = fmal(x, y, 0.5L) + nearbyintl(x); *out++ = lrintl(x); *out++ = llrintl(y); *out++ = lroundl(x);
    *out++ = llroundl(y);
    *out++ = isnan(x) + 2 * isinf(x) + 4 * isfinite(x) + 8 * isnormal(x) + 16 * !!signbit(x);
    *out++ = fpclassify(x) == FP_ZERO; *out++ = nextafterl(x, y) > x; *out++ = isnan(nanl("")); *out++ = x != x;
}
"""
MATHS_DRIVER = r"""
#include <math.h>
#include <stdio.h>
#include "api.h"
int main(void)
{
    double values[] = { 0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.75, -1e-310, 1e10, 123456.789, -7.25, 0x1p52, 3 };
    for (int i = 0; i < 15; i++)
        for (int j = 0; j < 15; j++) {
            double out[30] = { 0 };
            maths(values[i], values[j], out);
            for (int k = 0; k < 30; k++)
                if (isnan(out[k])) printf("nan "); else printf("%.17g ", out[k]);
            printf("\n");
        }
    return 0;
}
"""


@pytest.mark.parametrize("arch", SLOTS)
def test_functions_of_math_h_on_long_doubles(arch: str, tmp_path: Path) -> None:
    """Those whose results are exact: on this machine's own long double they are the same."""
    whole = package(tmp_path / "package", MATHS_HEADER, MATHS)
    wanted = native(tmp_path / "package", MATHS_DRIVER)
    made = installed(whole, arch)
    done = run_with(MATHS_DRIVER.replace('#include "api.h"', MATHS_HEADER), made, arch, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    for got, want in zip(done.stdout.splitlines(), wanted.splitlines(), strict=True):
        assert got == want


COMPLEX_HEADER = "void waves(float x, float y, float *out);\n"
COMPLEX = r"""
#include <complex.h>
static float *put(float *out, float complex z) { out[0] = crealf(z); out[1] = cimagf(z); return out + 2; }
void waves(float x, float y, float *out)
{
    float complex z = x + y * I;
    out = put(out, csqrtf(z)); out = put(out, cexpf(z)); out = put(out, clogf(z)); out = put(out, cpowf(z, conjf(z)));
    out = put(out, csinf(z)); out = put(out, catanf(z)); out = put(out, cabsf(z) + cargf(z) * I); out = put(out, z * z);
    out = put(out, ccoshf(z)); out = put(out, cprojf(z) / (z + 2));
}
"""
COMPLEX_DRIVER = r"""
#include <stdio.h>
#include "api.h"
int main(void)
{
    float values[] = { 0.5f, 1, -2.25f, 3 };
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            float out[20];
            waves(values[i], values[j], out);
            for (int k = 0; k < 20; k++) printf("%.9g ", out[k]);
        }
    return 0;
}
"""


@pytest.mark.parametrize("arch", SLOTS)
def test_complex_functions_on_floats(arch: str, tmp_path: Path) -> None:
    """Their last places differ from this machine's own, which do not go by double."""
    whole = package(tmp_path / "package", COMPLEX_HEADER, COMPLEX)
    wanted = native(tmp_path / "package", COMPLEX_DRIVER)
    driver = COMPLEX_DRIVER.replace('#include "api.h"', COMPLEX_HEADER)
    done = run_with(driver, installed(whole, arch), arch, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    numbers = list(map(float, wanted.split()))
    assert len(numbers) == 320
    assert list(map(float, done.stdout.split())) == pytest.approx(numbers, rel=1e-4, abs=1e-4)
