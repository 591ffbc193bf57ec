"""The VIS rules about what instructions do: assembly, intrinsics, exceptions, conventions (VIS-3xx, first part)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format import intrinsics
from visget.format.irtext import NAME, Function
from visget.format.rule import Hit, Rule, Scope, word

_ASM = re.compile(r'\basm (?:sideeffect |alignstack |inteldialect |unwind )*("\d+"), ("\d+")')
# Operands that every target understands: registers, memory, constants, ties and "anything".
_GENERIC = re.compile(r"(?:[=+&*%]*[rmioXgnps0-9]+|~\{memory\}|~\{cc\}|~\{dirflag\}|~\{fpsr\}|~\{flags\})\Z")
_EXCEPTIONS = word(r"invoke|landingpad|resume")
_FOREIGN_EXCEPTIONS = word(r"catchswitch|catchpad|catchret|cleanuppad|cleanupret|callbr")
_PERSONALITY = re.compile(rf"(?:^| )personality ptr @({NAME})(?= |\Z)")
_BUNDLE = re.compile(r"\[ (\"\d+\")\(")
_CONVENTION = re.compile(r"\b(?:cc \d+|\w+cc|preserve_\w+|cxx_fast_tlscc|intel_ocl_bicc|swift\w+)\b")
_FLAGS = r"= (?:tail |musttail |notail )?(?:call|f[a-z]+|phi|select) (?:[a-z]+ )*?"
_FUSED = re.compile(rf"{_FLAGS}contract\b|@llvm\.fmuladd\.")
_REORDERED = re.compile(rf"{_FLAGS}(reassoc|arcp|afn|fast)\b")
_SETJMP = re.compile(r"@_setjmp(?![-\w.$])")
_SETJMP_CALL = re.compile(r"(?:%[^ ]+ = )?(?:call|invoke) [^@]*@_setjmp\(")
PERSONALITY = "__gxx_personality_v0"
"""The one personality function of VIS: that of C++, which the package brings along."""
_INTERNAL_CONVENTIONS = frozenset(("fastcc", "coldcc", "tailcc"))


def _asm(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, template, constraints in _asm_sites(scope):
        if not _is_barrier(template, constraints):
            shown = template.strip() or constraints
            yield Hit(message=f'inline assembly "{shown[:60]}"', function=function, ordinal=ordinal)


def _barrier(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, template, constraints in _asm_sites(scope):
        if _is_barrier(template, constraints):
            message = f'an empty asm statement ("{constraints[:40]}") keeps the optimiser from looking through it'
            yield Hit(message=message, function=function, ordinal=ordinal)


def _asm_sites(scope: Scope) -> Iterator[tuple[Function, int, str, str]]:
    for function, ordinal, match in scope.find(_ASM):
        yield function, ordinal, scope.module.name(match[1]), scope.module.name(match[2])


def _is_barrier(template: str, constraints: str) -> bool:
    parts = [part for part in constraints.split(",") if part]
    return not template.strip() and all(_GENERIC.match(part) for part in parts)


def _target_intrinsic(scope: Scope) -> Iterator[Hit]:
    for name in scope.intrinsics:
        if name.split(".")[1] in intrinsics.TARGETS:
            yield scope.at_use(name, f"{name} exists on one target only")


def _other_intrinsic(scope: Scope) -> Iterator[Hit]:
    for name in scope.intrinsics:
        short = name.removeprefix("llvm.")
        if short.startswith(intrinsics.ELSEWHERE) or short.split(".")[0] in intrinsics.TARGETS:
            continue
        if intrinsics.base(name) is None:
            reason, remedy = intrinsics.why_not(name)
            yield scope.at_use(name, f"{name} is not in VIS: {reason}", remedy=remedy)


def _frame(scope: Scope) -> Iterator[Hit]:
    for call in scope.calls:
        if call.callee.startswith(("llvm.returnaddress", "llvm.frameaddress")) and "(i32 0)" in call.text:
            message = f"{call.callee} gives an address of the machine code, which differs on every target"
            yield Hit(message=message, function=call.function, ordinal=call.ordinal)


def _frame_above(scope: Scope) -> Iterator[Hit]:
    for call in scope.calls:
        if call.callee.startswith(("llvm.returnaddress", "llvm.frameaddress")) and "(i32 0)" not in call.text:
            message = f"{call.callee} of a caller: frames above are not kept, so it can crash"
            yield Hit(message=message, function=call.function, ordinal=call.ordinal)


def _exceptions(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, match in scope.find(_FOREIGN_EXCEPTIONS):
        yield Hit(message=f"{match[0]} belongs to one system's exceptions", function=function, ordinal=ordinal)
    defined = {function.name for function in scope.module.definitions()}
    for function in scope.module.functions:
        if "personality " not in function.suffix:
            continue
        found = _PERSONALITY.search(function.suffix)
        name = scope.module.name(found[1]) if found else "an expression"
        if name != PERSONALITY or name not in defined:
            which = "which the module does not define" if name == PERSONALITY else f"not {PERSONALITY}"
            yield Hit(message=f"the personality function is {name[:60]}, {which}", function=function)
    for function, ordinal, match in scope.find(_EXCEPTIONS):
        if "personality " not in function.suffix:
            message = f"exception handling ({match[0]}) without a personality function"
            yield Hit(message=message, function=function, ordinal=ordinal)


def _jumps(scope: Scope) -> Iterator[Hit]:
    """Find uses of setjmp that an optimiser would not understand as such."""
    for function in scope.imported:
        if function.name == "_setjmp" and not _returns_twice(scope, function.suffix):
            yield scope.at_use("_setjmp", "_setjmp is declared without the attribute returns_twice")
    for function, ordinal, _ in scope.find(_SETJMP):
        text = function.instruction(ordinal)
        if not _SETJMP_CALL.match(text) or len(_SETJMP.findall(text)) > 1:
            yield Hit(message="_setjmp is used other than by calling it", function=function, ordinal=ordinal)
    for item in scope.module.globals:
        if re.search(r"@_setjmp(?![-\w.$])", item.value):
            yield scope.at_use(item.name, f"{item.name[:60]} holds the address of _setjmp")


def _returns_twice(scope: Scope, suffix: str) -> bool:
    texts = [suffix, *(scope.module.attributes.get(group, "") for group in re.findall(r"#\d+", suffix))]
    return any("returns_twice" in text.split() for text in texts)


def _long_jump(scope: Scope) -> Iterator[Hit]:
    for call in scope.calls:
        if call.callee == "longjmp" and not scope.program:
            yield Hit(message="longjmp leaves functions at once", function=call.function, ordinal=call.ordinal)
            return


def _convention(scope: Scope) -> Iterator[Hit]:
    for function in scope.module.functions:
        match = _CONVENTION.search(function.prefix)
        if match and (function.linkage != "internal" or match[0] not in _INTERNAL_CONVENTIONS):
            yield Hit(message=f"the calling convention {match[0]}", function=function)


def _bundles(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, match in scope.find(_BUNDLE):
        if "@llvm.assume(" not in function.instruction(ordinal):
            message = f'a call carries the operand bundle "{scope.module.name(match[1])[:60]}"'
            yield Hit(message=message, function=function, ordinal=ordinal)


def _freedom(scope: Scope) -> Iterator[Hit]:
    if scope.fp_contract is None:
        return
    said = f"the manifest's floating-point contract is {scope.fp_contract!r}, but "
    if scope.fp_contract == "off":
        for function, ordinal, _ in scope.find(_FUSED):
            message = f"{said}a multiplication and an addition may become one"
            yield Hit(message=message, function=function, ordinal=ordinal)
    if scope.fp_contract != "fast":
        for function, ordinal, match in scope.find(_REORDERED):
            message = f"{said}an operation is marked {match[1]}"
            yield Hit(message=message, function=function, ordinal=ordinal)


RULES = (
    Rule(
        id="VIS-301",
        title="no inline assembly",
        severity="error",
        check=_asm,
        reason="Assembly is for one machine. Only an empty template with generic operands is (VIS-302).",
        remedy="Use the C version of the code: most libraries have a define that switches assembly off.",
    ),
    Rule(
        id="VIS-302",
        title="empty asm statements cost speed",
        severity="warning",
        check=_barrier,
        reason="An empty asm statement means the same everywhere, but hides values from the optimiser.",
        remedy="Nothing has to change; where the library has a define that removes it, measure with it.",
    ),
    Rule(
        id="VIS-303",
        title="no intrinsics of one target",
        severity="error",
        check=_target_intrinsic,
        reason="Intrinsics of one instruction set cannot be compiled for another.",
        remedy="Use plain C or __attribute__((vector_size)), or switch the SIMD code off with the library's define.",
    ),
    Rule(
        id="VIS-304",
        title="only the intrinsics of the table",
        severity="error",
        check=_other_intrinsic,
        reason="An intrinsic that is not in the table may trap, need a run-time library, or not compile somewhere.",
        remedy="Write it in plain C.",
    ),
    Rule(
        id="VIS-316",
        title="return and frame addresses differ",
        severity="warning",
        check=_frame,
        reason="The value is another one on every target and in every build.",
        remedy="Use it for messages only, or switch it off with the library's define.",
    ),
    Rule(
        id="VIS-317",
        title="no return or frame addresses of callers",
        severity="error",
        check=_frame_above,
        reason="Compiled packages keep no frame pointers, so walking frames reads random memory.",
        remedy="Remove __builtin_return_address(n) and __builtin_frame_address(n) with n above 0.",
    ),
    Rule(
        id="VIS-318",
        title="C++ exceptions, and the package's own C++ run-time library",
        severity="error",
        check=_exceptions,
        reason="Exceptions are handled by the personality function; that of C++ is part of the package, so that no "
        "library of the user's system has to fit to it.",
        remedy="Build with `visget build`, which adds the C++ run-time library; or compile with -fno-exceptions.",
    ),
    Rule(
        id="VIS-319",
        title="the C calling convention",
        severity="error",
        check=_convention,
        reason="Other conventions exist on one target only, or between functions of one module.",
        remedy="Remove __attribute__((ms_abi, sysv_abi, regparm, preserve_most, vectorcall ...)).",
    ),
    Rule(
        id="VIS-320",
        title="no operand bundles",
        severity="error",
        check=_bundles,
        reason="Operand bundles belong to languages and instrumentation that VIS does not have.",
        remedy="Build without -fsanitize and -fobjc-arc; only assumptions (__builtin_assume) carry bundles in C.",
    ),
    Rule(
        id="VIS-321",
        title="no more floating-point freedom than the manifest says",
        severity="error",
        check=_freedom,
        reason="Such operations are rounded otherwise from one machine to another; the manifest promises that they "
        "are not.",
        remedy="Remove the pragma (STDC FP_CONTRACT, clang fp) that asks for it, or set build.floating-point "
        "accordingly.",
    ),
    Rule(
        id="VIS-323",
        title="setjmp is called, and known to return twice",
        severity="error",
        check=_jumps,
        reason="Without the attribute returns_twice the optimiser keeps values in registers that a jump restores.",
        remedy="Include <setjmp.h> and call setjmp; do not declare it by hand or take its address.",
    ),
    Rule(
        id="VIS-324",
        title="jumps stay inside the package",
        severity="warning",
        check=_long_jump,
        reason="A jump over functions of the caller's language (a callback of Python, C++ destructors) leaves them in "
        "the middle, which nobody can check.",
        remedy="Call longjmp only where the setjmp and everything in between is code of the package.",
    ),
)
