"""The compiler flags that visget.toml may ask for, and why the others are refused.

Invariant: a flag that passed check_flag() cannot name a file outside the source tree, add an input or an output, load
code into the compiler, or tie the module to one CPU. The list for authors is docs/reference/visget-toml.md, "flags".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from visget.toolchain.paths import path_problem

_ALLOWED = re.compile(
    r"""
    -D(?P<macro>[A-Za-z_]\w*(\([\w\s,.]*\))?(=.*)?)
    | -U(?P<undefine>[A-Za-z_]\w*)
    | -I(?P<directory>.+)
    | -std=(?P<standard>(c|gnu|c\+\+|gnu\+\+|iso9899:)[0-9a-z]+)
    | -f(no-)?(wrapv|strict-aliasing|strict-overflow|builtin|common|delete-null-pointer-checks
        |char8_t|sized-deallocation|aligned-allocation|threadsafe-statics|exceptions|rtti|ms-extensions|gnu89-inline|permissive
        |strict-enums|strict-return|operator-names|coroutines|relaxed-template-template-args|merge-all-constants)
    | -f(no-builtin-\w+|no-asynchronous-unwind-tables|no-unwind-tables
        |no-c\+\+-static-destructors|cx-limited-range)
    | -f(bracket-depth|constexpr-steps|constexpr-depth|template-depth|constexpr-loop-limit)=\d{1,9}
    | -W(?![alp],)[A-Za-z0-9+=_-]+
    | -pedantic | -pedantic-errors | -ansi
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """Why flags of one kind do not belong in a package."""

    pattern: re.Pattern[str]
    reason: str
    remedy: str


def _refusal(pattern: str, reason: str, remedy: str) -> _Refusal:
    return _Refusal(pattern=re.compile(pattern), reason=reason, remedy=remedy)


# The first that matches speaks. The reason of -O is measured: docs/spec/front-end.md, section "Command line".
_REFUSED = (
    _refusal(
        r"-O[01]?",
        "marks functions and loops as not to be optimised, and the mark stays: the installed code is slower",
        "remove it; visget optimises on the user's machine",
    ),
    _refusal(
        r"-O.*",
        "optimises for the author's machine, but the code is optimised on the user's machine",
        "remove it; every package is optimised for the CPU that it is installed on",
    ),
    _refusal(
        r"-(march|mtune|mcpu|mabi|mattr)\b.*",
        "ties the package to one kind of CPU",
        "remove it; visget compiles for exactly the CPU that the package is installed on",
    ),
    _refusal(
        r"-m.+",
        "asks for the instructions or conventions of one kind of CPU",
        "remove it, and let the source take its portable path",
    ),
    _refusal(
        r"-f(no-(vectorize|slp-vectorize|tree-vectorize|tree-slp-vectorize|unroll-loops)|no-inline.*)",
        "leaves a mark that also stops the optimiser on the user's machine",
        "remove it",
    ),
    _refusal(
        r"-f(vectorize|slp-vectorize|tree-vectorize|unroll-loops|inline.*|omit-frame-pointer)",
        "asks for what the installer does anyway",
        "remove it",
    ),
    _refusal(
        r"-f(openmp|iopenmp|opencl|sycl|cuda|openacc).*", "needs a run-time library that VIS-1 lacks", "remove it"
    ),
    _refusal(
        r"-f(no-)?(lto|whole-program|split-lto|thin).*",
        "asks for link-time optimisation, which a package always has: all its files become one module",
        "remove it",
    ),
    _refusal(
        r"-g.*",
        "puts paths of the author's machine into the module",
        "remove it; visget keeps line tables by itself",
    ),
    _refusal(
        r"-f(fast-math|unsafe-math.*|finite-math.*|associative-math|reciprocal-math|(no-)?math-errno|ffp-.*|fp-.*"
        r"|no-signed-zeros|(no-)?trapping-math|(no-)?rounding-math|no-honor-.*|approx-func|excess-precision.*)",
        "is decided for the whole package",
        'set build.floating-point to "strict", "contract" or "fast" instead',
    ),
    _refusal(
        r"-f(un)?signed-char",
        "does not apply: char is signed in VIS-1 on every machine",
        "write signed char or unsigned char where it matters",
    ),
    _refusal(r"-f(PIC|pic|PIE|pie)", "is always so", "remove it"),
    _refusal(
        r"-f(visibility.*|semantic-interposition)",
        "does not decide what a package exports",
        "name the public functions in [exports]",
    ),
    _refusal(
        r"-f(sanitize|profile|coverage|instrument|xray|patchable|stack-protector|stack-check|cf-protection).*"
        r"|--coverage|-pg",
        "adds checks or counters that need the author's machine",
        "remove it",
    ),
    _refusal(r"-[lL].*", "links a library of the author's machine", "put the sources of that library into the package"),
    _refusal(r"-Wl,.*|-Xlinker.*|-shared|-static.*|-rdynamic|-nostd.*", "is for the linker", "remove it"),
    _refusal(r"-W[ap],.*|-Xassembler.*", "is for the assembler or another tool", "remove it"),
    _refusal(
        r"-w",
        "also silences the warnings that mean a wrong answer on some machine",
        "remove it; visget shows no other warnings unless you ask for them",
    ),
    _refusal(
        r"-f(no-)?short-.*|-fpack-struct.*",
        "changes the layout of types, which programs that use the package do not know",
        "remove it",
    ),
    _refusal(r"-pthread", "asks for POSIX threads, which VIS-1 does not have", "remove it"),
    _refusal(
        r"-i(system|quote|dirafter|prefix|withprefix.*|sysroot).*",
        "names a directory of headers",
        "list directories of the source tree in build.include",
    ),
    _refusal(r"-(include|imacros).*", "is a flag with a separate argument", "include the file from the source"),
    _refusal(r"-x.*", "chooses the language", 'set build.language to "c" or "c++"'),
    _refusal(r"-[cSEo].*|-M.*|-save-temps.*", "is the business of visget", "remove it"),
)


def flag_problem(flag: str) -> tuple[str, str] | None:
    """Tell why `flag` cannot be used, and what to do instead; None when it can."""
    match = _ALLOWED.fullmatch(flag)
    if match is not None:
        return _argument_problem(match)
    if flag in ("-D", "-U", "-I"):
        return f"{flag} stands alone", f"write it together with its value, as in {flag}NAME"
    for refusal in _REFUSED:
        if refusal.pattern.fullmatch(flag):
            return f"{flag[:60]} {refusal.reason}", refusal.remedy
    return (
        f"{flag[:60]!r} is not among the flags that a package may use",
        "allowed are -D, -U, -I, -std=, -W..., -f[no-]wrapv, -f[no-]strict-aliasing, -fno-builtin, -f[no-]exceptions, "
        "-f[no-]rtti and others listed in docs/reference/visget-toml.md",
    )


def _argument_problem(match: re.Match[str]) -> tuple[str, str] | None:
    directory = match["directory"]
    if directory is not None:
        problem = path_problem(directory)
        return (f"-I: {problem}", "name a directory of the source tree") if problem else None
    macro = match["macro"] or match["undefine"]
    if macro is not None:
        return macro_problem(re.split(r"[=(]", macro, maxsplit=1)[0])
    return None


def macro_problem(name: str) -> tuple[str, str] | None:
    """Tell why the macro `name` cannot be defined, and what to do instead; None when it can."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{name[:60]!r} is not the name of a macro", "use letters, digits and underscores"
    if name.startswith("__vis_"):
        return f"{name} belongs to visget: names that begin with __vis_ are VIS built-ins", "use another name"
    return None
