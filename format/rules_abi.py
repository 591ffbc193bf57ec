"""The VIS rules about the signatures of exported functions and of imports (VIS-4xx).

Invariant: where the C types are known (the section `api`), they decide; the IR alone tells less, because the
front end has already taken structs apart, and then doubt counts against the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from visget.format.abi_classes import callbacks, reachable, refusals, takes_va_list
from visget.format.imports import IMPORTS
from visget.format.irtext import Function, Parameter
from visget.format.prototypes import Api, CType, Integer, Opaque
from visget.format.prototypes import Function as CFunction
from visget.format.rule import INDIRECT_CALL, Hit, Rule, Scope

_NARROW = re.compile(r"i(?:[1-9]|[12]\d|3[0-2])\Z")
_EXTENDED = re.compile(r"\b(?:signext|zeroext)\b")
_ODD_TYPE = re.compile(r"(?:i128|half|bfloat|fp128|x86_fp80|ppc_fp128|x86_amx|<.*|target\(.*)\Z", re.S)
_LONG_DOUBLE = frozenset(("fp128", "x86_fp80", "ppc_fp128"))
_DOUBLE = "Use double in the public headers: wrap the function in one of your own, or leave it out of the exports."
_BY_ADDRESS = re.compile(r"\b(?:dead_on_return|byval|byref|inalloca|preallocated)\b")
_FOREIGN_PASSING = re.compile(r"\b(?:inreg|nest|swiftself|swiftasync|swifterror)\b")
_SRET = re.compile(r"\bsret\(([^()]*(?:\([^()]*\))?[^()]*)\)")


def _prototype(scope: Scope, function: Function) -> CFunction | None:
    return scope.api.function(function.name) if scope.api is not None else None


def _types(prototype: CFunction) -> tuple[CType, ...]:
    return (prototype.result, *(parameter.type for parameter in prototype.parameters))


def _variadic(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        if function.variadic:
            yield Hit(message="the exported function takes a variable number of arguments", function=function)


def _by_value(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        prototype = _prototype(scope, function)
        reasons: list[str] = []
        if prototype is not None and scope.api is not None:
            types = tuple(parameter.type for parameter in prototype.parameters)
            reasons += refusals(prototype.result, types, scope.api)
        # The IR is asked even so: an api section that says less than the module does must not help.
        for why in reasons or _by_value_in_ir(scope, function, typed=prototype is not None):
            yield Hit(message=why, function=function, remedy=_scalar_remedy(why))


def _scalar_remedy(why: str) -> str | None:
    """Return the advice for a single value; that of the rule is for structs."""
    if " of type " not in why:
        return None
    if "long double" in why:  # its address is no help: VIS-409
        return _DOUBLE
    return "Pass a pointer to the value, or a type of at most 64 bits; or leave the function out of the exports."


def _by_value_in_ir(scope: Scope, function: Function, *, typed: bool) -> Iterator[str]:
    # The address of a result in memory comes first and is no parameter of the C function.
    hidden = any("sret(" in parameter.attributes for parameter in function.parameters[:1])
    for position, parameter in enumerate(function.parameters, 0 if hidden else 1):
        sret = _SRET.search(parameter.attributes)
        if _BY_ADDRESS.search(parameter.attributes):
            yield f"parameter {position} is a struct by value of more than 16 bytes"
        elif _FOREIGN_PASSING.search(parameter.attributes):
            yield f"parameter {position} is passed in a register of its own"
        elif parameter.type.startswith("{") or (parameter.type.startswith("[") and parameter.type != "[2 x i64]"):
            yield f"parameter {position} is a struct by value ({parameter.type})"
        elif sret and _is_float_struct(scope.types.scalars(sret[1].strip(), 5)):
            yield "the result is a struct of floating-point members only, which AArch64 returns in registers"
    result = function.result.type
    if result.startswith(("{", "[")) and result not in ("[2 x i64]", "{ double, double }"):
        yield f"the result is a struct by value ({result})"
    if not typed:
        yield from _taken_apart(function)


def _is_float_struct(scalars: list[str]) -> bool:
    return 1 <= len(scalars) <= 4 and set(scalars) <= {"float", "double"}


def _taken_apart(function: Function) -> Iterator[str]:
    """Find structs of two members: the front end passes the members, and marks them with no `noundef`."""
    bare = [_is_bare(parameter) for parameter in function.parameters]
    for position in range(1, len(bare)):
        left, right = function.parameters[position - 1], function.parameters[position]
        pair = {left.type, right.type}
        if bare[position - 1] and bare[position] and pair & {"float", "double"} and pair != {"double"}:
            yield f"parameters {position} and {position + 1} seem to be one struct ({left.type}, {right.type})"


def _is_bare(parameter: Parameter) -> bool:
    return "noundef" not in parameter.attributes and re.match(r"i\d+\Z|float\Z|double\Z", parameter.type) is not None


def _two_words(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        places = [f"parameter {position}" for position, parameter in enumerate(function.parameters, 1)
                  if parameter.type == "[2 x i64]"]  # fmt: skip
        if function.result.type == "[2 x i64]":
            places.insert(0, "the result")
        if places and _prototype(scope, function) is None:
            message = f"{places[0]} is a struct of two words, and the C types are not there to tell of what kind"
            yield Hit(message=message, function=function)


def _odd_types(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        if _ODD_TYPE.match(function.result.type):
            remedy = _DOUBLE if function.result.type in _LONG_DOUBLE else None
            yield Hit(message=f"the result has the type {function.result.type}", function=function, remedy=remedy)
        for position, parameter in enumerate(function.parameters, 1):
            if _ODD_TYPE.match(parameter.type):
                remedy = _DOUBLE if parameter.type in _LONG_DOUBLE else None
                message = f"parameter {position} has the type {parameter.type}"
                yield Hit(message=message, function=function, remedy=remedy)


def _callback_types(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        prototype = _prototype(scope, function)
        if prototype is None or scope.api is None:
            continue
        for callback in callbacks(_types(prototype), scope.api):
            for why in refusals(callback.result, callback.parameters, scope.api):
                yield Hit(message=f"a callback that it takes: {why}", function=function)
            kinds = (callback.result, *callback.parameters)
            if any(isinstance(kind, Integer) and kind.name == "char" for kind in kinds):
                message = "a callback that it takes has a char by value, which is unsigned on some processors"
                remedy = "Let the callback take int, signed char or unsigned char; pointers to char are fine."
                yield Hit(message=message, function=function, remedy=remedy)
            if callback.variadic:
                yield Hit(message="a callback that it takes has variable arguments", function=function)
            if any(map(takes_va_list, callback.parameters)):
                yield Hit(message="a callback that it takes is handed a va_list", function=function)


def _long_double(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        prototype = _prototype(scope, function)
        if prototype is not None and scope.api is not None:
            for kind, owner in reachable(_types(prototype), scope.api):
                # A member of a union is there for the alignment, which is the same everywhere.
                if isinstance(kind, Opaque) and "long double" in kind.name and (not owner or owner.kind != "union"):
                    what = "it takes, returns or is given the address of a"
                    if owner:
                        what = f"{owner.name} has a member of type"
                    yield Hit(message=f"{what} {kind.name}", function=function)


def _callback_calls(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, match in scope.find(INDIRECT_CALL):
        if "dead_on_return" not in match[1]:
            continue
        message = "a struct of more than 16 bytes is passed by value through a function pointer"
        yield Hit(message=message, function=function, ordinal=ordinal)


def _extension(scope: Scope) -> Iterator[Hit]:
    imported = (function for function in scope.imported if function.name in IMPORTS or function.name in scope.uses)
    for function in (*scope.exported, *imported, *scope.built_ins):
        what = "exported" if not function.declared else "imported"
        if _NARROW.match(function.result.type) and not _EXTENDED.search(function.result.attributes):
            yield Hit(message=f"the result ({function.result.type}) of the {what} function {function.name[:60]} is not "
                      "marked signext or zeroext", function=None if function.declared else function)  # fmt: skip
        for position, parameter in enumerate(function.parameters, 1):
            if _NARROW.match(parameter.type) and not _EXTENDED.search(parameter.attributes):
                message = f"parameter {position} ({parameter.type}) of the {what} function {function.name[:60]} is not "
                message += "marked signext or zeroext"
                yield Hit(message=message, function=None if function.declared else function)


def _va_list(scope: Scope) -> Iterator[Hit]:
    for function in scope.exported:
        prototype = _prototype(scope, function)
        if prototype is None:
            continue
        for position, parameter in enumerate(prototype.parameters, 1):
            if takes_va_list(parameter.type) or "va_list" in parameter.c:
                yield Hit(message=f"parameter {position} is a va_list", function=function)
        for kind, owner in reachable(_types(prototype), scope.api or Api()):
            if owner and takes_va_list(kind):
                yield Hit(message=f"{owner.name} has a member of type va_list", function=function)


_POINTER = (
    "Pass a pointer to the struct: wrap the function in one of your own and export that instead, or leave it out of "
    "the exports."
)

RULES = (
    Rule(
        id="VIS-401",
        title="exported functions take a fixed number of arguments",
        severity="error",
        check=_variadic,
        reason="Callers from other languages cannot pass variable arguments reliably; some targets pass them in other "
        "places than named ones.",
        remedy="Export a function that takes an array, or text that is already formatted.",
    ),
    Rule(
        id="VIS-402",
        title="structs by value only where all targets agree",
        severity="error",
        check=_by_value,
        reason="Each target puts structs into other registers; the module holds one lowering of them.",
        remedy=_POINTER,
    ),
    Rule(
        id="VIS-403",
        title="two-word structs need their C types",
        severity="warning",
        check=_two_words,
        reason="Two words of integers or pointers agree on all targets, four floats do not, and both look alike here.",
        remedy="Declare the function in a public header, so that its C types are known, or pass a pointer.",
    ),
    Rule(
        id="VIS-404",
        title="plain types in exported signatures",
        severity="error",
        check=_odd_types,
        reason="128-bit integers, long double, 16-bit floats and vectors are passed in other places on each target "
        "(a vector looks like an integer of 128 bits here).",
        remedy="Pass a pointer to the value, or two 64-bit integers.",
    ),
    Rule(
        id="VIS-405",
        title="callbacks obey the same limits",
        severity="error",
        check=_callback_types,
        reason="A callback is called from the package, by the package's lowering and with its va_list.",
        remedy="Let the callback take pointers to structs, and text that is already formatted.",
    ),
    Rule(
        id="VIS-406",
        title="large structs through function pointers",
        severity="warning",
        check=_callback_calls,
        reason="Inside the package it works; a function of the user's program expects the struct elsewhere.",
        remedy="Pass a pointer, if the function can come from outside.",
    ),
    Rule(
        id="VIS-407",
        title="narrow integers say how they are extended",
        severity="error",
        check=_extension,
        reason="RISC-V passes 64-bit registers: without the mark the upper half is undefined there.",
        remedy="Declare functions with prototypes and the right types; `visget build` then sets the marks.",
    ),
    Rule(
        id="VIS-408",
        title="no va_list in exported functions",
        severity="error",
        check=_va_list,
        reason="A va_list is a structure on some targets and a pointer on others.",
        remedy="Take text that is already formatted.",
    ),
    Rule(
        id="VIS-409",
        title="no long double within reach of callers",
        severity="error",
        check=_long_double,
        reason="The package writes and reads the 128 bits of IEEE 754 there; a caller on x86-64 has the 80 of the x87.",
        remedy="Use double in the public headers.",
    ),
)
