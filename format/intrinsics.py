"""The LLVM intrinsics of VIS-1: what every target compiles to code of its own or to a call of plain ISO C.

Invariant: an intrinsic that is not in the table is not in the profile, also those that future LLVMs invent. Where
the back end of a target turns one into a call, that function is in the table of allowed imports.
"""

from __future__ import annotations

# fmt: off
ALLOWED = frozenset((
    # Integers and bits.
    "abs", "smax", "smin", "umax", "umin", "bswap", "bitreverse", "ctpop", "ctlz", "cttz", "fshl", "fshr",
    "sadd.with.overflow", "uadd.with.overflow", "ssub.with.overflow", "usub.with.overflow", "smul.with.overflow",
    "umul.with.overflow", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat", "sshl.sat", "ushl.sat", "scmp", "ucmp",
    # Memory.
    "memcpy", "memmove", "memset", "prefetch", "stacksave", "stackrestore",
    "ptrmask", "masked.load", "masked.store", "masked.gather", "masked.scatter", "masked.expandload",
    "masked.compressstore",
    # Facts for the optimiser.
    "lifetime.start", "lifetime.end", "invariant.start", "invariant.end", "launder.invariant.group",
    "strip.invariant.group", "assume", "expect", "expect.with.probability", "experimental.noalias.scope.decl",
    "sideeffect", "donothing", "objectsize", "is.constant", "arithmetic.fence", "threadlocal.address",
    # C++ exceptions.
    "eh.typeid.for",
    # The end of everything.
    "trap", "debugtrap", "ubsantrap",
    # Floating point.
    "fabs", "copysign", "canonicalize", "is.fpclass", "minnum", "maxnum", "minimum", "maximum", "minimumnum",
    "maximumnum", "fptosi.sat", "fptoui.sat", "sqrt", "fma", "fmuladd", "floor", "ceil", "trunc", "rint",
    "nearbyint", "round", "lround", "llround", "lrint", "llrint", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "sincos", "pow", "exp", "exp2", "exp10", "log", "log2", "log10", "ldexp",
    "frexp", "modf",
    # Vectors of fixed length.
    "vector.reduce.add", "vector.reduce.mul", "vector.reduce.and", "vector.reduce.or", "vector.reduce.xor",
    "vector.reduce.smax", "vector.reduce.smin", "vector.reduce.umax", "vector.reduce.umin", "vector.reduce.fadd",
    "vector.reduce.fmul", "vector.reduce.fmax", "vector.reduce.fmin", "vector.reduce.fmaximum",
    "vector.reduce.fminimum", "vector.insert", "vector.extract", "vector.reverse", "vector.splice",
    "vector.splice.left", "vector.splice.right", "vector.interleave2", "vector.deinterleave2", "vector.compress",
    "get.active.lane.mask",
))
"""Without `llvm.` and without the types at the end."""

TARGETS = frozenset((
    "x86", "aarch64", "arm", "riscv", "ppc", "s390", "mips", "loongarch", "amdgcn", "nvvm", "r600", "wasm", "hexagon",
    "bpf", "sparc", "xcore", "ve", "spv", "dx",
))
"""The first word of intrinsics that belong to one target."""
# fmt: on

ELSEWHERE = ("va_start", "va_end", "va_copy", "returnaddress", "frameaddress", "dbg.")
"""Beginnings of intrinsics that rules of their own explain."""

_WHY = {
    "readcyclecounter": ("a cycle counter traps on Arm", "Use clock() from <time.h>."),
    "readsteadycounter": ("a cycle counter traps or stands still", "Use clock() from <time.h>."),
    "powi": (
        "it becomes a call of __powidf2, which only a compiler's own run-time library has",
        "Use pow(), or multiply in a loop.",
    ),
    "roundeven": ("it becomes a call of roundeven(), which musl does not have", "Use rint() or nearbyint()."),
    "experimental.constrained": (
        "it depends on the floating-point environment, whose constants differ between targets",
        "Build without -ffp-model=strict and #pragma STDC FENV_ACCESS.",
    ),
    "init.trampoline": ("trampolines need an executable stack", "Pass a context pointer beside the function pointer."),
    "eh.sjlj": ("the buffer of __builtin_setjmp belongs to one target", "Use setjmp and longjmp of <setjmp.h>."),
    "matrix": ("its lowering is not part of the default pipeline", "Write the loops out."),
    "clear_cache": ("code that writes code cannot be a package", "Use the library's interpreter or table version."),
    "var.annotation": ("annotations carry paths", "Remove __attribute__((annotate(...)))."),
    "ptr.annotation": ("annotations carry paths", "Remove __attribute__((annotate(...)))."),
    "instrprof": ("profile and coverage code needs a run-time library", "Build without -fprofile and -fcoverage."),
    "memcpy.inline": ("it unrolls a copy of any length", "Use __builtin_memcpy."),
    "memset.inline": ("it unrolls a fill of any length", "Use __builtin_memset."),
    "type.test": ("control-flow checks need the whole program", "Build without -fsanitize=cfi."),
}


def base(name: str) -> str | None:
    """Return the allowed intrinsic that `name` (with `llvm.` and types) is a form of, or None."""
    parts = name.removeprefix("llvm.").split(".")
    for count in range(len(parts), 0, -1):
        candidate = ".".join(parts[:count])
        if candidate in ALLOWED:
            # What follows must be types (p0, i64, v4f32, f64), or it is another intrinsic of the same beginning.
            return candidate if all(_is_type(part) for part in parts[count:]) else None
    return None


def why_not(name: str) -> tuple[str, str]:
    """Return reason and remedy for an intrinsic that is not allowed."""
    short = name.removeprefix("llvm.")
    for beginning, advice in _WHY.items():
        if short.startswith(beginning):
            return advice
    return (
        "it is not in the table of intrinsics, so some target may not have it",
        "Write it in plain C or with the vector extensions; docs/spec/vis-1.md lists the intrinsics.",
    )


def _is_type(part: str) -> bool:
    # Struct results are spelled sl_..._s; the letters cover p0, i64, f128, bf16, v16i8 and those.
    return part[:1] in "pifbvs" and any(char.isdigit() for char in part)
