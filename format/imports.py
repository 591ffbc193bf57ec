"""What a package may take from the C library of the user's machine: the table of allowed imports.

Invariant: the table holds names whose meaning, arguments, structures and constants are the same in every C library
that VIS serves, with the signature that the neutral lowering gives them; whatever is not in it is refused
(visget.format.refused_imports has the reasons for well-known names). The spec is docs/spec/vis-1.md, section 6.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An allowed function, with the LLVM types of its result and parameters."""

    name: str
    result: str
    params: tuple[str, ...]
    variadic: bool = False

    @property
    def signature(self) -> str:
        """The types as text, such as `i32 (ptr, ...)`."""
        return f"{self.result} ({', '.join([*self.params, *['...'] * self.variadic])})"


# Names by signature. Every i32 is int or unsigned int, every i64 is long, size_t, time_t or an 8-byte struct.
_GROUPS: tuple[tuple[str, str], ...] = (
    # <string.h>, and what C23 and the clean-up of calls add to it
    ("ptr (ptr, ptr, i64)", "memcpy memmove mempcpy strncpy strncat stpncpy"),
    ("ptr (ptr, i32, i64)", "memset memchr memrchr"),
    ("i32 (ptr, ptr, i64)", "memcmp bcmp strncmp"),
    ("ptr (ptr, ptr, i32, i64)", "memccpy"),
    ("ptr (ptr, ptr)", "strcpy strcat strpbrk strstr strtok stpcpy"),
    ("i32 (ptr, ptr)", "strcmp strcoll"),
    ("ptr (ptr, i32)", "strchr strrchr"),
    ("i64 (ptr, ptr)", "strspn strcspn"),
    ("i64 (ptr, ptr, i64)", "strxfrm"),
    ("i64 (ptr, i64)", "strnlen"),
    ("i64 (ptr)", "strlen"),
    ("ptr (i32)", "strerror"),
    ("ptr (ptr)", "strdup"),
    ("ptr (ptr, i64)", "strndup"),
    # <ctype.h>
    (
        "i32 (i32)",
        "isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit "
        "tolower toupper",
    ),
    # <stdlib.h>, <inttypes.h>
    ("ptr (i64)", "malloc"),
    ("ptr (i64, i64)", "calloc aligned_alloc"),
    ("ptr (ptr, i64)", "realloc"),
    ("void (ptr)", "free"),
    ("void (ptr, i64, i64, ptr)", "qsort"),
    ("ptr (ptr, ptr, i64, i64, ptr)", "bsearch"),
    ("i32 (i32)", "abs"),
    ("i64 (i64)", "labs llabs imaxabs"),
    ("i64 (i32, i32)", "div"),
    ("[2 x i64] (i64, i64)", "ldiv lldiv imaxdiv"),
    ("i32 (ptr)", "atoi"),
    ("i64 (ptr)", "atol atoll"),
    ("double (ptr)", "atof"),
    ("i64 (ptr, ptr, i32)", "strtol strtoll strtoul strtoull strtoimax strtoumax"),
    ("double (ptr, ptr)", "strtod"),
    ("float (ptr, ptr)", "strtof"),
    ("i32 ()", "rand"),
    ("void (i32)", "srand exit _Exit"),
    ("void ()", "abort"),
    ("ptr (ptr)", "getenv"),
    # <assert.h>, <errno.h>
    ("void (ptr, ptr, i32, ptr)", "__assert_fail"),
    ("ptr ()", "__errno_location"),
    # <stdio.h>
    ("i32 (ptr, ...)", "printf scanf"),
    ("i32 (ptr, ptr, ...)", "fprintf sprintf fscanf sscanf"),
    ("i32 (ptr, i64, ptr, ...)", "snprintf"),
    ("i32 (ptr, ptr)", "vprintf vscanf"),
    ("i32 (ptr, ptr, ptr)", "vfprintf vsprintf vfscanf vsscanf"),
    ("i32 (ptr, i64, ptr, ptr)", "vsnprintf"),
    ("ptr (ptr, ptr)", "fopen"),
    ("ptr (ptr, ptr, ptr)", "freopen"),
    ("ptr ()", "tmpfile"),
    ("i32 (ptr)", "fclose fflush feof ferror fgetc getc puts remove"),
    ("i32 (ptr, ptr)", "fputs rename fgetpos fsetpos"),
    ("i32 (i32, ptr)", "fputc putc ungetc"),
    ("i32 (i32)", "putchar"),
    ("i32 ()", "getchar"),
    ("ptr (ptr, i32, ptr)", "fgets"),
    ("i64 (ptr, i64, i64, ptr)", "fread fwrite"),
    ("i32 (ptr, i64, i32)", "fseek"),
    ("i64 (ptr)", "ftell"),
    ("void (ptr)", "rewind clearerr perror"),
    ("void (ptr, ptr)", "setbuf"),
    ("i32 (ptr, ptr, i32, i64)", "setvbuf"),
    # <time.h>, <locale.h>
    ("i64 (ptr)", "time mktime"),
    ("i64 ()", "clock"),
    ("double (i64, i64)", "difftime"),
    ("ptr (ptr)", "gmtime localtime asctime ctime"),
    ("i64 (ptr, i64, ptr, ptr)", "strftime"),
    ("ptr ()", "localeconv"),
    # <math.h>; exp10 is what the clean-up makes of pow(10, x)
    (
        "double (double)",
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 exp10 expm1 fabs floor lgamma log "
        "log10 log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc",
    ),
    ("double (double, double)", "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"),
    ("double (double, double, double)", "fma"),
    ("double (double, ptr)", "frexp modf"),
    ("double (double, i32)", "ldexp scalbn"),
    ("double (double, i64)", "scalbln"),
    ("double (double, double, ptr)", "remquo"),
    ("i64 (double)", "lround llround lrint llrint"),
    ("double (ptr)", "nan"),
    ("i32 (double)", "__fpclassify __signbit"),
    (
        "float (float)",
        "acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf erff erfcf expf exp2f exp10f expm1f fabsf "
        "floorf lgammaf logf log10f log1pf log2f logbf nearbyintf rintf roundf sinf sinhf sqrtf tanf tanhf tgammaf "
        "truncf",
    ),
    ("float (float, float)", "atan2f copysignf fdimf fmaxf fminf fmodf hypotf nextafterf powf remainderf"),
    ("float (float, float, float)", "fmaf"),
    ("float (float, ptr)", "frexpf modff"),
    ("float (float, i32)", "ldexpf scalbnf"),
    ("float (float, i64)", "scalblnf"),
    ("float (float, float, ptr)", "remquof"),
    ("i64 (float)", "lroundf llroundf lrintf llrintf"),
    ("float (ptr)", "nanf"),
    ("i32 (float)", "__fpclassifyf __signbitf"),
    # <complex.h>, double only
    ("double (double, double)", "cabs carg cimag creal"),
    (
        "{ double, double } (double, double)",
        "cacos cacosh casin casinh catan catanh ccos ccosh cexp clog conj cproj csin csinh csqrt ctan ctanh",
    ),
    ("{ double, double } (double, double, double, double)", "cpow"),
)

DATA = {"stdin": "ptr", "stdout": "ptr", "stderr": "ptr"}
"""The allowed external data, with its type."""

VA_LIST_FAMILY = frozenset(("vprintf", "vfprintf", "vsprintf", "vsnprintf", "vscanf", "vfscanf", "vsscanf"))
"""The imports that take a va_list. Where the target's va_list is a pointer, the installer adapts the calls."""

BUILT_INS = {
    "__vis_va_start": "void (ptr)",
    "__vis_va_end": "void (ptr)",
    "__vis_va_copy": "void (ptr, ptr)",
    "__vis_va_arg_gp": "ptr (ptr)",
    "__vis_va_arg_fp": "ptr (ptr)",
    "__vis_va_arg_pair": "ptr (ptr, ptr)",
    "__vis_va_arg_i128": "ptr (ptr, ptr)",
    "__vis_va_arg_f128": "ptr (ptr)",
    # Level 2. A header gives them the C library's names by asm labels; they may be called, and their address taken.
    "__vis_stat": "i32 (ptr, ptr)",
    "__vis_lstat": "i32 (ptr, ptr)",
    "__vis_fstat": "i32 (i32, ptr)",
    "__vis_fstatat": "i32 (i32, ptr, ptr, i32)",
    "__vis_open": "i32 (ptr, i32, ...)",
    "__vis_openat": "i32 (i32, ptr, i32, ...)",
    "__vis_fcntl": "i32 (i32, i32, ...)",
    "__vis_atexit": "i32 (ptr)",
    "__vis_cxa_atexit": "i32 (ptr, ptr, ptr)",
    "__vis_pthread_atfork": "i32 (ptr, ptr, ptr)",
    "__vis_strerror_r": "i32 (i32, ptr, i64)",
    "__vis_basename": "ptr (ptr)",
    "__vis_eh_return_data_regno": "i32 (i32)",
}
"""The functions that the installer itself provides, with their signatures."""

_SIGNATURE = re.compile(r"(.*?) \((.*)\)\Z")


def _parse(name: str, signature: str) -> Import:
    match = _SIGNATURE.match(signature)
    assert match, signature  # noqa: S101 - the table above is part of this file
    params = tuple(part for part in match[2].split(", ") if part)
    fixed = tuple(part for part in params if part != "...")
    return Import(name=name, result=match[1], params=fixed, variadic=fixed != params)


IMPORTS: dict[str, Import] = {name: _parse(name, signature) for signature, names in _GROUPS for name in names.split()}
"""The allowed functions by name."""
