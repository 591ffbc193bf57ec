"""What a package exports: the functions that its public headers declare and its module defines.

Invariant: an exported function is called alike on every processor, has the type that its header says, and is in the
module. Each function that is not so is a finding (the rules API-..., docs/spec/front-end.md, section 7) or a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol

from visget.errors import UsageError
from visget.format.findings import Finding, Severity, in_order
from visget.format.irtext import Function as IrFunction
from visget.format.irtext import Module, scan, symbols
from visget.format.prototypes import (
    Api,
    Bool,
    CType,
    Enum,
    EnumRef,
    Float,
    Function,
    Integer,
    Pointer,
    Void,
)
from visget.toolchain.ctypescope import reachable, references
from visget.toolchain.headers import Declared, Headers

_FAST = frozenset(["int_fast16_t", "int_fast32_t", "uint_fast16_t", "uint_fast32_t"])
_FOREIGN = frozenset(
    ["jmp_buf", "sigjmp_buf", "fenv_t", "fexcept_t", "regex_t", "regmatch_t", "regoff_t", "pthread_mutex_t",
     "pthread_mutexattr_t", "pthread_condattr_t", "pthread_barrierattr_t", "pthread_attr_t", "mtx_t", "ucontext_t",
     "nlink_t"]
)  # fmt: skip
_FOREIGN_RECORDS = frozenset(["struct stat", "struct epoll_event", "struct utmpx", "struct rusage", "struct sysinfo"])
JUDGED = _FAST | _FOREIGN | _FOREIGN_RECORDS
"""The types that API-003 and API-004 know by name."""
_FLOATS = {2: "half", 4: "float", 8: "double"}


class _Found(Protocol):
    """Makes a finding about the function at hand."""

    def __call__(self, rule: str, message: str, remedy: str, severity: Severity = "error") -> Finding:
        """Return the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The interface of the package."""

    api: Api
    """Its description."""
    symbols: tuple[str, ...]
    """The exported functions, sorted."""
    findings: list[Finding]
    """What is wrong with them."""
    notes: tuple[str, ...]
    """What the author should know though nothing is wrong."""


def choose_exports(
    headers: Headers, merged: str | Module, *, functions: Sequence[str], exclude: Sequence[str]
) -> Exported:
    """Choose the exported functions and check each against the module.

    Args:
        headers: what the public headers say.
        merged: the merged module, before anything is made internal, or its text.
        functions: patterns of the functions to export.
        exclude: patterns of functions to leave out.

    Raises:
        UsageError: a pattern matches no declared function, or nothing is left to export.
    """
    names = [one.function.name for one in headers.declared]
    _refuse_idle_patterns((*functions, *exclude), names)
    wanted = [one for one in headers.declared if _matches(one.function.name, functions, exclude)]
    module = scan(merged) if isinstance(merged, str) else merged
    defined = {function.name: function for function in module.definitions() if function.linkage != "internal"}
    defined |= dict(_aliases(module))
    chosen = [one for one in wanted if one.function.name in defined]
    missing = [one.function.name for one in wanted if one.function.name not in defined]
    literal = [name for name in missing if name in functions]
    if literal or not chosen:
        raise UsageError(
            f"the function {literal[0]} is declared but not defined in the sources"
            if literal
            else "none of the functions that the public headers declare is defined in the sources",
            where=", ".join(headers.files),
            hint="add the file that defines it to [build] sources",
            details={"pattern": literal[0]} if literal else {},
        )
    api = _pruned(headers, chosen)
    checker = _Checker(api)
    findings = [finding for one in chosen for finding in checker.check(one, defined[one.function.name])]
    return Exported(
        api=api,
        symbols=tuple(sorted(one.function.name for one in chosen)),
        findings=in_order(findings),
        notes=tuple(_notes(missing, headers.variables)),
    )


def _aliases(module: Module) -> Iterator[tuple[str, IrFunction]]:
    """Yield the other names of functions, as ``__attribute__((alias))`` makes them; finishing resolves them."""
    functions = {function.name: function for function in module.definitions()}
    for item in module.globals:
        if item.kind == "alias" and item.linkage not in ("internal", "private"):
            target = functions.get(module.name((symbols(item.value) or [""])[-1]))
            if target is not None:
                yield item.name, target


def _matches(name: str, functions: Iterable[str], exclude: Iterable[str]) -> bool:
    return any(fnmatchcase(name, p) for p in functions) and not any(fnmatchcase(name, p) for p in exclude)


def _refuse_idle_patterns(patterns: Iterable[str], names: Sequence[str]) -> None:
    for pattern in patterns:
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(
                f"the pattern {pattern!r} in [exports] matches no function of the public headers",
                hint=f"they declare: {', '.join(names[:8]) or 'no function'}{' ...' if len(names) > 8 else ''}",
                details={"pattern": pattern},
            )


def _notes(missing: Sequence[str], variables: Sequence[str]) -> Iterator[str]:
    if missing:
        some = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
        yield f"declared but not defined, so not exported: {some}"
    if variables:
        some = ", ".join(variables[:6]) + (" ..." if len(variables) > 6 else "")
        yield f"variables are not exported: {some}; a package exports functions, such as one that returns the address"


def _pruned(headers: Headers, chosen: Sequence[Declared]) -> Api:
    """Return the interface with the types that the headers define or the functions reach, and no others."""
    records = {record.name: record for record in headers.api.records}
    types = [type_ for one in chosen for type_ in _types(one.function)]
    types += [field.type for name in headers.public_types if name in records for field in records[name].fields]
    kept = reachable(types, records) | headers.public_types
    return replace(
        headers.api,
        functions=tuple(one.function for one in chosen),
        records=tuple(record for record in headers.api.records if record.name in kept),
        enums=tuple(enum for enum in headers.api.enums if enum.name in kept),
        typedefs=tuple(one for one in headers.api.typedefs if kept.issuperset(references(one.type))),
    )


def _types(function: Function) -> tuple[CType, ...]:
    return (function.result, *(parameter.type for parameter in function.parameters))


class _Checker:
    """The rules API-001 to API-005; what a type may be passed as is VIS-4xx's (visget.format.rules_abi)."""

    def __init__(self, api: Api) -> None:
        self._records = {record.name: record for record in api.records}
        self._enums: Mapping[str, Enum] = {enum.name: enum for enum in api.enums}

    def check(self, one: Declared, defined: IrFunction) -> Iterator[Finding]:
        """Yield what is wrong with the exported function `one`."""
        function = one.function

        def found(rule: str, message: str, remedy: str, severity: Severity = "error") -> Finding:
            return Finding(
                rule=rule, severity=severity, function=function.name, file=one.file, line=function.line,
                message=message, remedy=f'{remedy}, or leave it out with [exports] exclude = ["{function.name}"]',
            )  # fmt: skip

        if not one.prototyped and defined.parameters:
            yield found("API-001", "it is declared without its parameters", "write the parameter types in the header")
            return
        if (mismatch := self._mismatch(function, defined)) is not None:
            yield found("API-002", mismatch, "make the header and the definition agree")
        for name in sorted(one.names & _FAST):
            yield found("API-003", f"{name} has 4 bytes in one C library and 8 in another", "use int32_t or int64_t")
        foreign = one.names & _FOREIGN | reachable(_types(function), self._records) & _FOREIGN_RECORDS
        for name in sorted(foreign):
            yield found("API-004", f"{name} has a different layout in each C library", "use a type of your own")
        if "wchar_t" in one.names:
            message = "wchar_t is signed on some processors and unsigned on others"
            yield found("API-005", message, "use int32_t or char32_t", "warning")

    def _mismatch(self, function: Function, defined: IrFunction) -> str | None:
        """Say how the definition differs from the declaration, where the two can be compared."""
        expected = [self._lowered(type_) for type_ in _types(function)]
        actual = [defined.result.type, *(parameter.type for parameter in defined.parameters)]
        if defined.variadic != function.variadic:
            return "its definition and its header disagree about variable arguments"
        if None in expected:
            return None
        if len(expected) != len(actual):
            return f"its header declares {len(expected) - 1} parameters, but its definition has {len(actual) - 1}"
        for number, (want, have) in enumerate(zip(expected, actual, strict=True)):
            if want != have:
                what = f"parameter {number}" if number else "the result"
                return f"{what} is {want} (LLVM type) by its header, but {have} in its definition"
        return None

    def _lowered(self, type_: CType) -> str | None:
        """Return the LLVM type of a scalar; None for what is passed in some other form."""
        match type_:
            case Void():
                return "void"
            case Bool():
                return "i1"
            case Integer():
                return f"i{8 * type_.size}"
            case Float():
                return _FLOATS.get(type_.size)
            case Pointer():
                return "ptr"
            case EnumRef(name) if name in self._enums:
                return f"i{8 * self._enums[name].type.size}"
        return None
