"""The platform interface, level 1: ISO C, and what the optimiser makes calls of ISO C into.

Invariant: as visget.format.imports, whose table it is a part of: names by LLVM signature, in the order of the headers
that declare them. The spec is docs/spec/platform.md.
"""

from __future__ import annotations

# Every i32 is int or unsigned int, every i64 is long, size_t, time_t or an 8-byte struct.
ISO: tuple[tuple[str, str], ...] = (
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
