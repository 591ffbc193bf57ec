"""The rules on C as people write it: compiled by the neutral front end, cleaned up, checked, pointed at by line."""

# ruff: noqa: E501 - a table, one row for each case
from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from neutral import neutral_ir

from visget.format.findings import Finding
from visget.format.irtext import scan
from visget.format.lines import extract_lines, strip_debug
from visget.format.module import parse_text, text_of
from visget.format.verifier import check_module

# Each row: what it shows, the C source with the offending line marked by /*!*/, and the rule.
REFUSED = [
    ("inline assembly", 'int f(int x) { __asm__("nop" : "+r"(x)); /*!*/ return x; }', "VIS-301"),
    ("file-scope assembly", '__asm__(".globl pwn");\nint f(void) { return 1; }', "VIS-107"),
    ("long double", "long double g(double);\nstatic long double h;\ndouble f(double x) {\n  h = h * x; /*!*/\n  return h;\n}",
     "VIS-313"),
    ("long double printed", '#include <stdio.h>\nlong double stored;\nvoid f(void) {\n  printf("%Lf", stored); /*!*/\n}',
     "VIS-506"),
    ("long double mathematics", "#include <math.h>\nlong double a;\nvoid f(void) {\n  a = sinl(a); /*!*/\n}", "VIS-315"),
    ("strtold", "#include <stdlib.h>\nvoid f(const char *s, long double *r) {\n  *r = strtold(s, 0); /*!*/\n}", "VIS-502"),
    ("complex float", "#include <complex.h>\nvoid f(float _Complex *a) {\n  *a = a[0] / a[1]; /*!*/\n}", "VIS-502"),
    ("complex float function", "#include <complex.h>\nvoid f(float _Complex *a) {\n  *a = csqrtf(*a); /*!*/\n}", "VIS-502"),
    ("regular expressions", "#include <regex.h>\nint f(regex_t *r, const char *s) {\n  return regcomp(r, s, 0); /*!*/\n}",
     "VIS-502"),
    ("rounding modes", "#include <fenv.h>\nvoid f(void) {\n  fesetround(FE_UPWARD); /*!*/\n}", "VIS-502"),
    ("tree walk", "#define _GNU_SOURCE\n#include <ftw.h>\nint f(const char *p, int (*g)(const char *, const struct stat *,"
     " int, struct FTW *)) {\n  return nftw(p, g, 5, 0); /*!*/\n}", "VIS-502"),
    ("open flags", "#include <fcntl.h>\nint f(const char *p) {\n  return open(p, O_RDONLY | O_NOFOLLOW); /*!*/\n}", "VIS-502"),
    ("struct stat", "#include <sys/stat.h>\nlong f(const char *p) {\n  struct stat s;\n"
     "  return stat(p, &s) ? -1 : s.st_size; /*!*/\n}", "VIS-502"),
    ("setjmp", "#include <setjmp.h>\njmp_buf b;\nint f(void) {\n  return setjmp(b); /*!*/\n}", "VIS-502"),
    ("programs", "#include <unistd.h>\nint f(void) {\n  return fork(); /*!*/\n}", "VIS-512"),
    ("event polls", "#include <sys/epoll.h>\nint f(void) {\n  return epoll_create1(0); /*!*/\n}", "VIS-502"),
    ("long double read", "#include <stdio.h>\nvoid f(const char *s, long double *p) {\n  sscanf(s, \"%*d %3Lf\", p); /*!*/\n}",
     "VIS-506"),
    ("atexit", "#include <stdlib.h>\nvoid f(void (*g)(void)) {\n  atexit(g); /*!*/\n}", "VIS-502"),
    ("128-bit division", "void f(unsigned __int128 *a) {\n  *a /= 10; /*!*/\n}", "VIS-313"),
    ("16-byte atomic", "void f(__int128 *a) {\n  __atomic_fetch_add(a, 1, 5); /*!*/\n}", "VIS-312"),
    ("half precision", "void f(_Float16 *a) {\n  a[0] += a[1]; /*!*/\n}", "VIS-313"),
    ("cycle counter", "unsigned long long f(void) {\n  return __builtin_readcyclecounter(); /*!*/\n}", "VIS-304"),
    ("frame of the caller", "void *f(void) {\n  return __builtin_return_address(1); /*!*/\n}", "VIS-317"),
    ("variable arguments exported", "int f(const char *p, ...) { /*!*/\n  return *p;\n}", "VIS-401"),
    ("large struct exported", "struct s { long a, b, c; };\nlong f(struct s x) { /*!*/\n  return x.a;\n}", "VIS-402"),
    ("float pair exported", "struct s { float a, b; };\nfloat f(struct s x) { /*!*/\n  return x.a;\n}", "VIS-402"),
    ("vector exported", "typedef int v __attribute__((vector_size(16)));\nv f(v x) { /*!*/\n  return x + x;\n}", "VIS-404"),
    ("weak hook", "__attribute__((weak)) int f(void) { /*!*/ return 1; }", "VIS-204"),
    ("weak import", "__attribute__((weak)) extern int hook(void);\nint f(void) {\n  return hook ? 1 : 0; /*!*/\n}", "VIS-204"),
    ("section", "__attribute__((section(\".init\"))) int f(void) { /*!*/ return 1; }", "VIS-109"),
    ("thread-local import", "extern __thread int other;\nint f(void) {\n  return other; /*!*/\n}", "VIS-206"),
    ("own malloc", "void *malloc(unsigned long n) { /*!*/ return 0; }\nint f(void) { return 0; }", "VIS-210"),
    ("asm label", "int f(void) __asm__(\"odd name\");\nint f(void) { /*!*/ return 1; }", "VIS-201"),
    ("optnone", "__attribute__((optnone)) int f(int x) { /*!*/ return x; }", "VIS-601"),
    ("no unrolling", "void f(int *p, int n) {\n  #pragma clang loop unroll(disable)\n"
     "  for (int i = 0; i < n; i++) /*!*/\n    p[i] += n;\n}", "VIS-602"),
]  # fmt: skip

ACCEPTED = """\
#include <assert.h>
#include <complex.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { const char *text; size_t length; } slice;
typedef float v8 __attribute__((vector_size(32)));
enum mode { FAST, SLOW };
static atomic_ulong calls;
static _Thread_local int depth_of_nothing;
static int order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int logged(FILE *file, const char *format, ...) {
  va_list arguments, copy;
  va_start(arguments, format);
  va_copy(copy, arguments);
  int written = vfprintf(file, format, arguments);
  double first = va_arg(copy, double);
  va_end(copy);
  va_end(arguments);
  return written + (int)first;
}

__attribute__((constructor)) static void ready(void) { atomic_store(&calls, 0); }

int f(const char **names, size_t count, enum mode mode, bool loud, int8_t tiny, uint16_t small) {
  char buffer[64];
  atomic_fetch_add(&calls, 1);
  qsort(names, count, sizeof *names, order);
  for (size_t i = 0; i < count; i++) {
    if (!isalpha((unsigned char)names[i][0])) continue;
    snprintf(buffer, sizeof buffer, "%s-%" PRIu64, names[i], (uint64_t)i);
    printf("hello\\n");
    printf("%c", buffer[0]);
    fprintf(stderr, "%s", buffer);
    if (strcmp(buffer, "stop") == 0 || memcmp(buffer, "x-", 2) == 0) break;
    logged(loud ? stdout : stderr, "%g\\n", (double)i);
  }
  char *copy = strdup(names[0]);
  sprintf(buffer, "%s", copy ? copy : "");
  free(copy);
  FILE *file = fopen("data.bin", "rb");
  if (!file) return errno == ENOENT ? -1 : -2;
  setvbuf(file, NULL, _IOFBF, BUFSIZ);
  size_t got = fread(buffer, 1, sizeof buffer, file);
  fclose(file);
  assert(got <= sizeof buffer);
  time_t now = time(NULL);
  struct tm *parts = gmtime(&now);
  div_t split = div(tiny, 3);
  static void *const labels[] = {&&one, &&two};
  goto *labels[mode == SLOW];
one:
  return (int)got + parts->tm_year + split.quot + small;
two:
  return (int)strtoul("12", NULL, 10);
}

double g(const double *x, double complex *z, unsigned __int128 *wide, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += sqrt(x[i]) * exp(-fabs(x[i])) + pow(10, x[i]) + fma(x[i], 2, 1) + fmod(x[i], 3) + round(x[i]);
  *z = cexp(*z) + CMPLX(isnan(sum), isinf(sum));
  *wide = *wide * *wide >> 64;
  v8 a, b;
  memcpy(&a, x, sizeof a);
  b = a * a + __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int i = 0; i < 8; i++) sum += b[i];
  return sum + __builtin_popcountll(n) + __builtin_clz(n | 1) + __builtin_bswap32(n);
}

slice h(slice s, slice t) { return s.length < t.length ? s : t; }
"""


def compiled(source: str, directory: Path) -> tuple[str, list[Finding]]:
    """Compile, clean up, strip and check."""
    flags = ("-gline-tables-only", "-fdebug-compilation-dir=.", f"-ffile-prefix-map={directory}/=")
    module = parse_text(neutral_ir(source, directory, *flags, name="lib"))
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple("riscv64-unknown-linux-musl").create_target_machine(features="+m,+a,+f,+d,+c")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    manager = llvm.create_new_module_pass_manager()
    for name in ("sroa", "simplify_cfg", "instruction_combine", "simplify_cfg", "global_dead_code_eliminate",
                 "strip_dead_prototype"):  # fmt: skip
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    # As the toolchain does: calls that the clean-up invented carry no mark.
    text = re.sub(r"^(declare (?:noundef )?)i32 @(?!llvm\.)", r"\1signext i32 @", text_of(module), flags=re.M)
    lines = extract_lines(text)
    final = text_of(parse_text(strip_debug(text)))
    exports = [name for name in ("f", "g", "h") if f"@{name}(" in final]
    return final, check_module(final, exports=exports, lines=lines)


@pytest.mark.parametrize(("what", "source", "rule"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_not_portable_is_refused_at_its_line(what: str, source: str, rule: str, tmp_path: Path) -> None:
    _, findings = compiled(source, tmp_path)
    found = [finding for finding in findings if finding.rule == rule]
    assert found, [finding.render() for finding in findings]
    assert found[0].severity == "error"
    marked = next((n for n, line in enumerate(source.splitlines(), 1) if "/*!*/" in line), None)
    if marked is not None:
        assert {(finding.file, finding.line) for finding in found} >= {("lib.c", marked)}


def test_ordinary_code_gives_no_errors(tmp_path: Path) -> None:
    text, findings = compiled(ACCEPTED, tmp_path)
    assert len(scan(text).functions) > 40
    assert [finding.render() for finding in findings if finding.severity == "error"] == []
    # Without C types nobody can tell two words of integers from four floats.
    assert {finding.rule for finding in findings} == {"VIS-403"}
