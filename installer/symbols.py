"""Names with a meaning of their own in native code, and where they live.

Invariant: every undefined symbol of a compiled package is one of the package's own imports, or one that the
compiler may call of its own accord and that is in a table here; the gates refuse anything else.
"""

from __future__ import annotations

import re

SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
"""A symbol that a package may export or import."""

_REAL = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
    fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint
    nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc exp10
    roundeven sincos fmaximum fminimum fmaximum_num fminimum_num __fpclassify __signbit __finite __isinf __isnan
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt
    ctan ctanh drem j0 j1 jn lgamma_r scalb significand y0 y1 yn
    """.split()  # noqa: SIM905 -- a list of a hundred quoted words is harder to read
MATH = frozenset(name + suffix for name in _REAL for suffix in ("", "f", "l")) | {"signgam", "lgammaf_r"}
"""What glibc keeps in libm.so.6 rather than in libc.so.6."""

UNWINDER = frozenset(["_Unwind_Resume"])
"""What LLVM calls behind a landing pad; packages import more of the unwinder, which all lives in libgcc_s."""

LOADER_MADE = frozenset(["__tls_get_addr"])
"""What glibc keeps in its dynamic loader."""

LIBRARY_CALLS = frozenset(
    """
    memcpy memmove memset memcmp memchr memrchr bcmp memccpy mempcpy strlen strnlen strcpy stpcpy strncpy stpncpy strcmp
    strncmp strchr strrchr strcat strncat strstr strpbrk puts putchar putc fputs fputc fwrite malloc calloc abort
    acos acosf asin asinf atan atanf atan2 atan2f cbrt cbrtf ceil ceilf copysign copysignf cos cosf cosh coshf exp expf
    exp10 exp10f exp2 exp2f fabs fabsf floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf
    frexp frexpf hypot hypotf ldexp ldexpf llrint llrintf llround llroundf log logf log10 log10f log2 log2f lrint lrintf
    lround lroundf modf modff nearbyint nearbyintf pow powf rint rintf round roundf sin sinf sincos
    sincosf sinh sinhf sqrt sqrtf tan tanf tanh tanhf trunc truncf
    """.split()  # noqa: SIM905
)
"""Functions of the C library that LLVM calls although no module names them: block operations, cheaper forms of what
a module does name, and what an LLVM intrinsic without an instruction becomes."""

SUPPORT_CALLS = frozenset(
    """
    __divti3 __modti3 __udivti3 __umodti3 __multi3 __muloti4 __ashlti3 __ashrti3 __lshrti3 __powisf2 __powidf2
    __popcountdi2 __popcountti2 __clzti2 __ctzti2 __fixsfti __fixdfti __fixunssfti __fixunsdfti __floattisf __floattidf
    __floatuntisf __floatuntidf __extendhfsf2 __truncsfhf2 __truncdfhf2 __truncsfbf2 __truncdfbf2
    """.split()  # noqa: SIM905
)
"""Functions of the compiler's support library (libgcc or compiler-rt) that LLVM calls for wide and narrow numbers.

The rules of VIS-1 refuse what needs them in a module (VIS-313, VIS-315); the optimiser may still bring integers of 128
bits and powi, but never long double, whose functions are therefore not here."""

BUILT_IN_CALLS = frozenset(
    """
    stat lstat fstat fstatat open openat fcntl __cxa_atexit __cxa_finalize __register_atfork pthread_atfork
    __xpg_strerror_r strerror_r __xpg_basename basename
    """.split()  # noqa: SIM905
)
"""What the built-ins of VIS-1 call (visget.installer.support). The manifest names no built-ins among its imports."""

LINKER_MADE = frozenset(["_GLOBAL_OFFSET_TABLE_", "__dso_handle", "_DYNAMIC"])
"""What every linker defines by itself."""

COMPILER_MADE = LIBRARY_CALLS | SUPPORT_CALLS | LOADER_MADE | LINKER_MADE | BUILT_IN_CALLS | UNWINDER
"""Every undefined symbol that may occur without being a package's import."""
