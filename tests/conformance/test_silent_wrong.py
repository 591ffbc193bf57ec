"""No silent wrong answer: what plain C suffers on its way through neutral code, class by class.

Every class below is C that compiled and linked on its way from one machine to another and then answered wrongly. In
visget each is refused at the author's desk with a text that says why, or it works: then a C program built by another
compiler for x86-64, AArch64 and RISC-V calls the installed library and must see what it sees from a native build.
The whole pipeline takes part: front end, rules, signature, compile worker.
"""
# ruff: noqa: E501 - C programs in a table, one a line

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from neutral import run_with
from programs import SLOTS, installed, native, package, said

from visget.errors import BuildError, RefusedError
from visget.format.package import Package


@dataclass(frozen=True)
class Refused:
    """C that must not become a package."""

    number: int
    name: str
    header: str
    source: str
    says: str


LOG = "#include <stdio.h>\n#include <stdarg.h>\nstatic int log_it(char *b, const char *t, ...)\n{ va_list a; va_start(a, t); int r = vsnprintf(b, 99, t, a); va_end(a); return r; }\n"
REFUSED = [
    # 1: long double has 128 bits here and 80 in the C library of x86-64
    Refused(1, "printf", "int f(char *b, double x);", '#include <stdio.h>\nint f(char *b, double x) { long double y = x; return sprintf(b, "%Lf", y); }', "long double"),
    Refused(1, "printf-constant", "int f(char *b);", '#include <stdio.h>\nint f(char *b) { return sprintf(b, "%Lf", 1.5L); }', "long double"),
    Refused(1, "printf-memory", "int f(char *b, const long double *x);", '#include <stdio.h>\nint f(char *b, const long double *x) { return sprintf(b, "%Lf", *x); }', "long double"),
    Refused(1, "own-variadic-to-vsnprintf", "int f(char *b);", LOG + 'int f(char *b) { return log_it(b, "%Lf", 1.5L); }', "long double"),
    Refused(1, "scanf", "double f(const char *s);", '#include <stdio.h>\ndouble f(const char *s) { long double x = 0; sscanf(s, "%Lf", &x); return (double)x; }', "long double"),
    Refused(1, "strtold", "double f(const char *s);", "#include <stdlib.h>\ndouble f(const char *s) { return strtold(s, 0); }", "strtold"),
    Refused(1, "expl", "double f(double s);", "#include <math.h>\ndouble f(double s) { long double x = s; return expl(x); }", "long double"),
    Refused(1, "sinl", "double f(double s);", "#include <math.h>\ndouble f(double s) { return sinl(s); }", "long double"),
    Refused(1, "constant-behind-a-pointer", "void f(void *p);", "void f(void *p) { *(long double *)p = 1.5L; }", "long double"),
    Refused(1, "table", "const void *f(void);", "static const long double t[2] = {1, 2};\nconst void *f(void) { return t; }", "long double"),
    Refused(1, "in-the-interface", "struct s { char a; long double b; };\nint f(struct s *p);", "int f(struct s *p) { return p->a; }", "long double"),
    # 2: _Complex float is returned in one register on x86-64 and in two elsewhere
    Refused(2, "csqrtl", "void f(double *a);", "#include <complex.h>\nvoid f(double *a) { long double _Complex x = csqrtl(a[0] + a[1] * I); a[0] = creall(x); }", "csqrtl"),
    Refused(2, "argument", "float f(float _Complex x);", "float f(float _Complex x) { return __real__ x; }", "_Complex"),
    Refused(2, "late-double", "double f(double a, double b, double c, double d, double e, double g, double h, double _Complex z);", "double f(double a, double b, double c, double d, double e, double g, double h, double _Complex z) { return a + b + c + d + e + g + h + __real__ z; }", "_Complex"),
    # 4: regex_t and regmatch_t
    Refused(4, "regex", "int f(const char *s);", '#include <regex.h>\nint f(const char *s) { regex_t r; regmatch_t m[2]; regcomp(&r, "a(b)", REG_EXTENDED); return regexec(&r, s, 2, m, 0) ? -1 : m[1].rm_so; }', "different layout"),
    Refused(4, "own-declaration", "int f(const char *s);", "int regexec(const void *, const char *, unsigned long, void *, int);\nint f(const char *s) { long m[9]; return regexec(s, s, 1, m, 0); }", "regexec"),
    Refused(4, "in-the-interface", "#include <regex.h>\nint f(regmatch_t *p);", "int f(regmatch_t *p) { return p->rm_so; }", "regmatch_t"),
    # 5: the floating-point environment
    Refused(5, "rounding-mode", "int f(void);", "#include <fenv.h>\nint f(void) { return fesetround(FE_UPWARD); }", "FE_UPWARD"),
    Refused(5, "own-declaration", "int f(void);", "int fetestexcept(int);\nint f(void) { return fetestexcept(1); }", "fetestexcept"),
    Refused(5, "flt-rounds", "int f(void);", "#include <float.h>\nint f(void) { return FLT_ROUNDS; }", "get.rounding"),
    Refused(5, "in-the-interface", "#include <fenv.h>\nstruct s { fenv_t e; int x; };\nint f(struct s *p);", "int f(struct s *p) { return p->x; }", "fenv_t"),
    # 6: numbers of FTW_D and its like
    Refused(6, "nftw", "int f(const char *p);", "#define _GNU_SOURCE\n#include <ftw.h>\nstatic int cb(const char *p, const struct stat *s, int t, struct FTW *w) { return t == FTW_D; }\nint f(const char *p) { return nftw(p, cb, 4, 0); }", "FTW_"),
    # 8: sizes and masks that glibc refuses
    Refused(8, "signal-stack", "int f(void);", "#define _GNU_SOURCE\n#include <signal.h>\nstatic char s[SIGSTKSZ];\nint f(void) { stack_t t = {.ss_sp = s, .ss_size = sizeof s}; return sigaltstack(&t, 0); }", "sigaltstack"),
    # 9: struct stat
    Refused(9, "own-declaration", "long f(const char *p);", "int stat(const char *, void *);\nlong f(const char *p) { long s[18]; return stat(p, s) ? -1 : s[6]; }", "struct stat"),
    Refused(9, "in-the-interface", "#include <sys/stat.h>\nlong f(struct stat *p);", "long f(struct stat *p) { return p->st_size; }", "struct stat"),
    # 10: a va_list in foreign hands
    Refused(10, "unknown-function", "int f(int n);", "#include <stdarg.h>\nint ext(va_list);\nstatic int g(int n, ...) { va_list a; va_start(a, n); int r = ext(a); va_end(a); return r; }\nint f(int n) { return g(n, 1); }", "ext"),
    Refused(10, "export", "#include <stdarg.h>\nint f(char *b, const char *t, va_list a);", "#include <stdio.h>\nint f(char *b, const char *t, va_list a) { return vsprintf(b, t, a); }", "va_list"),
    Refused(10, "variadic-export", "int f(int n, ...);", "int f(int n, ...) { return n; }", "variable number of arguments"),
    Refused(10, "callback", "#include <stdarg.h>\ntypedef int (*logger)(const char *, va_list);\nint f(logger l);",
            'static int g(logger l, const char *t, ...) { va_list a; va_start(a, t); int r = l(t, a); va_end(a); return r; }\nint f(logger l) { return g(l, "%d", 5); }', "va_list"),
    Refused(10, "callback-in-a-struct", "#include <stdarg.h>\nstruct ops { int (*log)(const char *, va_list); };\nint f(struct ops *o);",
            'static int g(struct ops *o, const char *t, ...) { va_list a; va_start(a, t); int r = o->log(t, a); va_end(a); return r; }\nint f(struct ops *o) { return g(o, "%d", 5); }', "va_list"),
    Refused(10, "in-a-struct", "#include <stdarg.h>\nstruct s { int a; va_list b; };\nint f(struct s *p);", "int f(struct s *p) { return p->a; }", "va_list"),
    # 12: more freedom with floating-point numbers than the manifest says
    Refused(12, "contract-pragma", "double f(double a, double b, double c);", "#pragma STDC FP_CONTRACT ON\ndouble f(double a, double b, double c) { return a * b + c; }", "'off'"),
    Refused(12, "reassociate-pragma", "double f(double *a, int n);", "#pragma clang fp reassociate(on)\ndouble f(double *a, int n) { double r = 0; for (int i = 0; i < n; i++) r += a[i]; return r; }", "reassoc"),
    Refused(12, "rounding-pragma", "double f(double a);", "#pragma STDC FENV_ACCESS ON\ndouble f(double a) { return a * 3; }", "strictfp"),
    # 13: intrinsics of one processor
    Refused(13, "sse", "int f(int x);", "#include <emmintrin.h>\nint f(int x) { return _mm_cvtsi128_si32(_mm_set1_epi32(x)); }", "outside VIS-1"),
    Refused(13, "neon", "int f(int x);", "#include <arm_neon.h>\nint f(int x) { return vgetq_lane_s32(vdupq_n_s32(x), 0); }", "outside VIS-1"),
    # 14: a call without a prototype
    Refused(14, "pointer", "int f(void);", "static double g(double a, ...) { return a; }\nint f(void) { double (*p)() = (double (*)())g; return p(1.5, 2); }", "prototype"),
    Refused(14, "implicit", "int f(int x);", "int f(int x) { return elsewhere(x); }", "elsewhere"),
    Refused(14, "unknown-builtin", "int f(int x);", "int f(int x) { return __builtin_elsewhere(x); }", "__builtin_elsewhere"),
    Refused(14, "ignored-convention", "int f(int x);", "__attribute__((ms_abi)) static int g(int x) { return x; }\nint f(int x) { return g(x); }", "ms_abi"),
    # 15: other layouts and sizes
    Refused(15, "int_fast16_t", "#include <stdint.h>\nint f(int_fast16_t *p);", "int f(int_fast16_t *p) { return p[1]; }", "int_fast16_t"),
    Refused(15, "int_fast32_t", "#include <stdint.h>\nstruct s { int_fast32_t a, b; };\nint f(struct s *p);", "int f(struct s *p) { return p->b; }", "int_fast32_t"),
    Refused(15, "mutex", "#include <pthread.h>\nstruct s { pthread_mutex_t m; int x; };\nint f(struct s *p);", "int f(struct s *p) { return p->x; }", "pthread_mutex_t"),
    Refused(15, "epoll", "#include <sys/epoll.h>\nint f(struct epoll_event *e);", "int f(struct epoll_event *e) { return e[1].data.fd; }", "epoll_event"),
    Refused(15, "FP_ILOGB0", "int f(double x);", "#include <math.h>\nint f(double x) { return ilogb(x) == FP_ILOGB0; }", "FP_ILOGB0"),
    Refused(15, "return-address", "int f(void);", "int f(void) { return __builtin_return_address(1) != 0; }", "returnaddress"),
    Refused(15, "cycle-counter", "long f(void);", "long f(void) { return __builtin_readcyclecounter(); }", "cycle counter"),
    Refused(15, "plain-char-callback", "int f(int (*p)(char), int v);", "int f(int (*p)(char), int v) { return p(v); }", "char"),
    Refused(15, "atomic-of-16-bytes", "int f(void);", "static _Atomic __int128 x;\nint f(void) { return x += 1; }", "16 bytes"),
    Refused(15, "struct-by-processor", "struct s {\n#ifdef __x86_64__\n  int fast;\n#endif\n  int a; };\nint f(struct s *p);", "int f(struct s *p) { return p->a; }", "struct s"),
    Refused(15, "zero-width-bit-field", "struct s { char a; int : 0; char b; };\nint f(struct s *p);", "int f(struct s *p) { return p->b; }", "struct s"),
    Refused(15, "unnamed-bit-field", "struct s { char a; int : 3; char b; };\nint f(struct s *p);", "int f(struct s *p) { return p->b; }", "struct s"),
    Refused(15, "wide-vector-member", "typedef float v8 __attribute__((vector_size(32)));\nstruct s { char a; v8 v; };\nint f(struct s *p);", "int f(struct s *p) { return (int)p->v[1]; }", "struct s"),
    Refused(15, "wide-bit-int-member", "struct s { char a; _BitInt(65) v; };\nint f(struct s *p);", "int f(struct s *p) { return (int)p->v; }", "struct s"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.number:02d}-{case.name}")
def test_refused_at_the_desk_of_the_author(case: Refused, tmp_path: Path) -> None:
    with pytest.raises((BuildError, RefusedError)) as caught:
        package(tmp_path, case.header, case.source)
    assert case.says in said(caught.value)


@dataclass(frozen=True)
class Works:
    """C that must answer the same everywhere; the driver is a native program."""

    number: int
    name: str
    header: str
    source: str
    driver: str
    wants: str | None = None
    """What it prints; None means whatever a native build of the same sources prints."""


WORKS = [
    Works(1, "classes-of-long-double", "int f(double s);",
          "#include <math.h>\nint f(double s) { long double x = s; return isnan(x) + 2 * !!isinf(x) + 4 * !!signbit(x) + 8 * (fpclassify(x * 3) == FP_ZERO) + 16 * isfinite(x); }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { double v[] = {0, -0.0, 1.5, -1e300, 1 / 0.0, -1 / 0.0, 0 / 0.0 + 1}; for (int i = 0; i < 6; i++) printf("%d ", f(v[i])); printf("%d", f(v[6]) & ~4); }'),
    Works(2, "complex-float-functions", "void f(float *a);",
          "#include <complex.h>\nvoid f(float *a) { float _Complex x = csqrtf(a[0] + a[1] * I); a[0] = crealf(x); a[1] = cimagf(x * x / (x + 1)); }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { float a[] = {-4, 0}; f(a); printf("%.4f %.4f ", a[0], a[1]); float b[] = {3, 4}; f(b); printf("%.4f %.4f", b[0], b[1]); }'),
    Works(1, "double-classification", "int f(double x);",
          "#include <math.h>\nint f(double s) { return isnan(s) + 2 * !!isinf(s) + 4 * !!signbit(s) + 8 * (fpclassify(s) == FP_ZERO) + 16 * isfinite(s) + 32 * isnormal(s); }",
          '#include <stdio.h>\n#include <math.h>\n#include "api.h"\nint main(void) { volatile double z = 0; double v[] = {1, -1, 0, -z, INFINITY, -INFINITY, NAN, 1e-310}; for (int i = 0; i < 8; i++) printf("%d ", f(v[i])); }'),
    Works(2, "complex-double", "void f(double *a);",
          "#include <complex.h>\nvoid f(double *a) { double _Complex x = csqrt(a[0] + a[1] * I) + cexp(a[1] + a[0] * I); a[0] = creal(x); a[1] = cimag(x); }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { double a[2] = {-3, 4}; f(a); printf("%.6f %.6f", a[0], a[1]); }'),
    Works(1, "long-double-inside", "double f(double x, double y);",
          "#include <math.h>\ndouble f(double x, double y) { long double a = x, b = y; return (double)(a * b / 3 + sqrtl(a) - fabsl(b)) + (a < b); }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%.10f", f(2.25, -7.5)); }'),
    Works(2, "complex-float", "void f(float *a);",
          "void f(float *a) { float _Complex x, y; __real__ x = a[0]; __imag__ x = a[1]; __real__ y = a[1]; __imag__ y = -a[0]; x = x * y + 1 / x; a[0] = __real__ x; a[1] = __imag__ x; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { float a[2] = {-3, 4.5f}; f(a); printf("%.5f %.5f", a[0], a[1]); }'),
    Works(3, "setbuf", "int f(const char *path);",
          '#include <stdio.h>\n#include <string.h>\nstatic struct { char b[BUFSIZ]; char guard[64]; } s;\n'
          'int f(const char *p) { memset(s.guard, 7, 64); FILE *o = fopen(p, "w"); if (!o) return -1; setbuf(o, s.b); for (int i = 0; i < 20000; i++) fputc(i, o); int r = 0; for (int i = 0; i < 64; i++) r += s.guard[i] != 7; fclose(o); return r; }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d", f("/dev/null")); }', "0"),
    Works(3, "fpos_t", "int f(const char *path);",
          '#include <stdio.h>\nint f(const char *p) { struct { fpos_t a; char guard[64]; } s = {0}; FILE *o = fopen(p, "rb"); if (!o) return -1; fgetpos(o, &s.a); int r = 0; for (int i = 0; i < 64; i++) r += s.guard[i]; fclose(o); return r; }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d", f("/dev/null")); }', "0"),
    Works(5, "feholdexcept", "int f(double x);",
          "#include <fenv.h>\n#include <string.h>\nint f(double x) { struct { fenv_t e; char guard[64]; } s; memset(&s, 7, sizeof s); feholdexcept(&s.e); volatile double y = x / 0; feclearexcept(FE_ALL_EXCEPT); fesetenv(&s.e); int r = 0; for (int i = 0; i < 64; i++) r += s.guard[i] != 7; return r + (fegetround() != FE_TONEAREST); }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d", f(1)); }', "0"),
    Works(8, "locale", "int f(void);",
          "#include <locale.h>\nint f(void) { return localeconv()->decimal_point[0]; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d", f()); }', "46"),
    Works(9, "size-of-a-file", "long f(const char *path);",
          '#include <stdio.h>\nlong f(const char *p) { FILE *o = fopen(p, "rb"); if (!o) return -1; fseek(o, 0, SEEK_END); long n = ftell(o); fclose(o); return n; }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { FILE *o = fopen("size.bin", "wb"); for (int i = 0; i < 70001; i++) fputc(i, o); fclose(o); printf("%ld", f("size.bin")); remove("size.bin"); }', "70001"),
    Works(10, "vsnprintf", "int f(char *b);", LOG + 'int f(char *b) { return log_it(b, "%d %s %g %ld %c %g %g %g %g %g %g %g %g %g %d", -3, "xyz", 1.25, -9L, 113, 1., 2., 3., 4., 5., 6., 7., 8., 9., 77); }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { char b[100]; int n = f(b); printf("%d %s", n, b); }'),
    Works(10, "vsscanf", "int f(const char *s, double *d);",
          "#include <stdio.h>\n#include <stdarg.h>\nstatic int g(const char *s, const char *t, ...) { va_list a; va_start(a, t); int r = vsscanf(s, t, a); va_end(a); return r; }\n"
          'int f(const char *s, double *d) { int i = 0; int n = g(s, "%d %lf", &i, d); return n * 1000 + i; }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { double d = 0; int n = f("42 2.5", &d); printf("%d %g", n, d); }', "2042 2.5"),
    Works(12, "cast-out-of-range", "long f(double x, int which);",
          "long f(double x, int which) { switch (which) { case 0: return (int)x; case 1: return (unsigned)x; case 2: return (long)x; case 3: return (signed char)x; case 4: return (unsigned short)x; case 5: return (int)(float)x; default: return (unsigned long)x; } }",
          '#include <stdio.h>\n#include <math.h>\n#include "api.h"\nint main(void) { volatile double v[] = {1e30, -1e30, NAN, INFINITY, 300.7, -3.9}; for (int i = 0; i < 6; i++) for (int k = 0; k < 7; k++) printf("%ld ", f(v[i], k)); }',
          "2147483647 4294967295 9223372036854775807 127 65535 2147483647 -1 "
          "-2147483648 0 -9223372036854775808 -128 0 -2147483648 0 "
          "0 0 0 0 0 0 0 "
          "2147483647 4294967295 9223372036854775807 127 65535 2147483647 -1 "
          "300 300 300 127 300 300 300 -3 0 -3 -3 0 -3 0 "),
    Works(15, "time", "int f(char *b, long t);",
          '#include <time.h>\nint f(char *b, long t) { time_t x = t; struct tm *m = gmtime(&x); return (int)strftime(b, 99, "%Y-%m-%d %H:%M:%S %j", m) + 1000 * m->tm_yday; }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { char b[100]; int n = f(b, 1700000000); printf("%d %s", n, b); }'),
    Works(15, "div", "long f(int a, int b);",
          "#include <stdlib.h>\nlong f(int a, int b) { div_t d = div(a, b); ldiv_t e = ldiv(a * 1000000000L, b); return d.quot * 10 + d.rem + e.quot + e.rem; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%ld", f(-17, 5)); }'),
    Works(15, "plain-char-is-signed", "int f(const char *s);", "int f(const char *s) { int n = 0; for (; *s; s++) n += *s < 0; return n; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d", f("a\\xc3\\xa9z")); }', "2"),
    Works(15, "bit-fields", "struct s { unsigned a : 3; int b : 7; long c : 40; char d; _Bool e : 1; unsigned short g : 9; };\nlong f(struct s *p);",
          "long f(struct s *p) { p->b -= 1; p->c *= 2; p->g++; return sizeof *p * 1000000 + p->a + p->b + p->c + p->d + p->e + p->g; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { struct s x = {5, -60, -123456789, 7, 1, 500}; long r = f(&x); printf("%ld %d %ld %d", r, x.b, (long)x.c, x.g); }'),
    Works(15, "errno", "int f(const char *s);", "#include <stdlib.h>\n#include <errno.h>\nint f(const char *s) { errno = 0; strtol(s, 0, 10); return errno == ERANGE; }",
          '#include <stdio.h>\n#include "api.h"\nint main(void) { printf("%d %d", f("99999999999999999999"), f("12")); }', "1 0"),
    Works(15, "printf-and-sort", "int f(char *b, int *p, unsigned long n);",
          '#include <stdio.h>\n#include <stdlib.h>\nstatic int c(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\nint f(char *b, int *p, unsigned long n) { qsort(p, n, 4, c); return sprintf(b, "%d %d %hhd %hu %zu %#lx %e %a %5.1f|%-4s|%c", p[0], p[n - 1], 300, 70000, n, -1L, 1.5, 0.1, -2.25, "ab", 65); }',
          '#include <stdio.h>\n#include "api.h"\nint main(void) { char b[200]; int v[] = {5, -7, 3, 1000, 0}; int n = f(b, v, 5); printf("%d %s", n, b); }'),
]  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Package, Path]]:
    """Packages by case: each is built once, and compiled for three architectures."""
    del tmp_path_factory
    return {}


@pytest.mark.parametrize("arch", SLOTS)
@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.number:02d}-{case.name}") for case in WORKS])
def test_the_same_answer_everywhere(
    case: Works, arch: str, built: dict[str, tuple[Package, Path]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if case.name not in built:
        directory = tmp_path_factory.mktemp(case.name)
        built[case.name] = package(directory, case.header, case.source), directory
    made, directory = built[case.name]
    (directory / arch).mkdir(exist_ok=True)
    (directory / arch / "api.h").write_text(case.header + "\n")
    done = run_with(case.driver, installed(made, arch), arch, directory / arch)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (native(directory, case.driver) if case.wants is None else case.wants)


def test_a_native_cast_is_the_authors_own_choice(tmp_path: Path) -> None:
    """Class 12: only an author who asks for it gives up the same answer everywhere."""
    header, source = "int f(double x);", "int f(double x) { return (int)x; }"
    same = package(tmp_path / "same", header, source)
    fast = package(tmp_path / "fast", header, source, build='float-cast = "native"')
    assert same.bitcode() != fast.bitcode()
    assert any("float-cast" in flag for flag in same.manifest.provenance.flags)


@pytest.mark.parametrize("arch", SLOTS)
def test_errno_of_the_mathematical_functions_is_announced(arch: str, tmp_path: Path) -> None:
    """Class 11: they do not set errno, and math_errhandling, which C asks to be read first, says so."""
    made = package(
        tmp_path, "int f(void);", "#include <math.h>\nint f(void) { return (math_errhandling & MATH_ERRNO) != 0; }"
    )
    driver = '#include <stdio.h>\nint f(void);\nint main(void) { printf("%d", f()); }'
    assert run_with(driver, installed(made, arch), arch, tmp_path / arch).stdout == "0"
