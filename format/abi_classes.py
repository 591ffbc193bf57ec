"""Which C types can cross the boundary of a package by value (docs/spec/vis-1.md, section 5).

Invariant: a type that is let through is passed and returned in the same registers by the neutral lowering (lp64d)
and by the native calling conventions of x86-64 (System V), AArch64 and RISC-V; whoever is in doubt is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from visget.format.prototypes import (
    Api,
    Array,
    Bool,
    CType,
    EnumRef,
    Float,
    FunctionType,
    Integer,
    Opaque,
    Pointer,
    Record,
    RecordRef,
    Void,
)

# Registers for arguments: eight on AArch64 and RISC-V, six for integers and eight for floats on x86-64.
_X86_INTEGER_REGISTERS = 6
_FLOAT_REGISTERS = 8


@dataclass(slots=True)
class _Used:
    integers: int = 0
    floats: int = 0


def refusals(result: CType, parameters: tuple[CType, ...], api: Api) -> Iterator[str]:
    """Yield a sentence for each type of a function that cannot cross the boundary as it is."""
    used = _Used()
    why = _result(result, api)
    if why:
        yield f"the result {why}"
    record = _record(result, api)
    if record is not None and record[0] > 16:
        used.integers += 1  # The address of the result takes the first register on x86-64 and RISC-V.
    for position, parameter in enumerate(parameters, 1):
        why = _parameter(parameter, api, used)
        if why:
            yield f"parameter {position} {why}"


def callbacks(kinds: Iterable[CType], api: Api) -> Iterator[FunctionType]:
    """Yield the function types that are reachable through `kinds`: their pointers, and the fields of their structs."""
    return (kind for kind, _ in reachable(kinds, api) if isinstance(kind, FunctionType))


def reachable(kinds: Iterable[CType], api: Api) -> Iterator[tuple[CType, Record | None]]:
    """Yield each type that `kinds` lead to, themselves included, and the record that it is a member of, if it is."""
    pending: list[tuple[CType, Record | None]] = [(kind, None) for kind in kinds]
    seen: set[str] = set()
    while pending:
        kind, owner = pending.pop()
        yield kind, owner
        if isinstance(kind, Pointer):
            pending.append((kind.target, owner))
        elif isinstance(kind, Array):
            pending.append((kind.element, owner))
        elif isinstance(kind, FunctionType):
            pending += [(inner, None) for inner in (kind.result, *kind.parameters)]
        elif isinstance(kind, RecordRef) and kind.name not in seen:
            seen.add(kind.name)
            record = api.record(kind.name)
            pending += [(field.type, record) for field in (record.fields if record else ())]


def takes_va_list(kind: CType) -> bool:
    """Return whether `kind` is a va_list as the VIS prefix defines it."""
    if isinstance(kind, Pointer):
        return takes_va_list(kind.target)
    if isinstance(kind, Array):
        return takes_va_list(kind.element)
    return isinstance(kind, RecordRef | Opaque) and ("__vis_va" in kind.name or "va_list" in kind.name)


def _result(kind: CType, api: Api) -> str | None:
    scalar = _scalar(kind)
    if scalar is not None:
        return scalar or None
    record = _record(kind, api)
    if record is None:
        return "is a struct whose members are not known"
    size, scalars, union = record
    if size > 16:
        # Returned through memory everywhere, except that AArch64 has up to four doubles in registers.
        if not union and 1 <= len(scalars) <= 4 and {name for name, _ in scalars} <= {"f8", "f4"}:
            return "is a struct of floating-point members only, which AArch64 returns in registers"
        return None
    return _small(size, scalars, union)


def _parameter(kind: CType, api: Api, used: _Used) -> str | None:
    scalar = _scalar(kind)
    if scalar == "":
        if isinstance(kind, Float):
            used.floats += 1
        elif isinstance(kind, Opaque):
            if used.floats + 2 > _FLOAT_REGISTERS:
                return f"is of type {kind.name} and would be split between registers and the stack"
            used.floats += 2
        else:
            used.integers += 1
        return None
    if scalar is not None:
        return scalar
    record = _record(kind, api)
    if record is None:
        return "is a struct whose members are not known"
    size, scalars, union = record
    if size > 16:
        return f"is a struct of {size} bytes by value, which the neutral lowering passes by address"
    why = _small(size, scalars, union)
    if why:
        return why
    if scalars and scalars[0][0].startswith("f"):
        if used.floats + len(scalars) > _FLOAT_REGISTERS:
            return "is a struct that would be split between registers and the stack"
        used.floats += len(scalars)
        return None
    words = (size + 7) // 8
    if used.integers < _X86_INTEGER_REGISTERS < used.integers + words:
        return "is a struct that would be split between registers and the stack"
    used.integers += words
    return None


def _scalar(kind: CType) -> str | None:
    """Return "" for a scalar that is fine, a sentence for one that is not, None for a struct or union."""
    if isinstance(kind, RecordRef):
        return None
    if isinstance(kind, Void | Bool | EnumRef | Pointer):
        return ""
    if isinstance(kind, Integer):
        return "" if kind.size <= 8 else f"is of type {kind.name}, which has no portable place in registers"
    if isinstance(kind, Float):
        return "" if kind.size in (4, 8) else f"is of type {kind.name}, which has no portable place in registers"
    if isinstance(kind, Opaque):
        name = kind.name
        if name in ("_Complex double", "double _Complex"):
            return ""
        return f"is of type {name}, which is not passed alike on all targets"
    return "is not a type that can be passed"


def _small(size: int, scalars: list[tuple[str, int]], union: bool) -> str | None:
    """Judge a record of at most 16 bytes."""
    kinds = [name for name, _ in scalars]
    if not kinds:
        return "is an empty struct, which C++ and C pass differently"
    if any(offset % int(name[1:]) for name, offset in scalars):
        return "is a packed struct, which x86-64 passes in memory"
    if any(name == "i16" for name in kinds) or any(name == "?" for name in kinds):
        return "is a struct with a member that is not passed alike on all targets"
    if all(name.startswith("i") for name in kinds):
        return None
    if not union and kinds in (["f8"], ["f4"], ["f8", "f8"]):
        return None
    return f"is a struct of {size} bytes with floating-point members, which each target puts elsewhere"


def _record(kind: CType, api: Api) -> tuple[int, list[tuple[str, int]], bool] | None:
    """Return size, scalars (kind, offset) and whether a union is inside; None when the members are not known."""
    if not isinstance(kind, RecordRef):
        return None
    record = api.record(kind.name)
    if record is None or not record.complete:
        return None
    scalars: list[tuple[str, int]] = []
    union = _flatten(kind, api, 0, scalars)
    if record.align > 8:
        scalars.append(("i16", 0))
    return record.size, scalars, union


def _flatten(kind: CType, api: Api, offset: int, out: list[tuple[str, int]]) -> bool:
    if len(out) > 64:
        return False
    if isinstance(kind, RecordRef):
        record = api.record(kind.name)
        union = False
        for field in record.fields if record else ():
            union |= _flatten(field.type, api, offset + field.offset, out)
        return union or (record is not None and record.kind == "union")
    if isinstance(kind, Array):
        size = _size(kind.element, api)
        unions = [_flatten(kind.element, api, offset + index * size, out) for index in range(min(kind.length, 65))]
        return any(unions)
    if isinstance(kind, Pointer):
        out.append(("i8", offset))
    elif isinstance(kind, Bool):
        out.append(("i1", offset))
    elif isinstance(kind, Integer):
        out.append((f"i{kind.size}", offset))
    elif isinstance(kind, Float):
        out.append((f"f{kind.size}", offset))
    elif isinstance(kind, EnumRef):
        enum = next((enum for enum in api.enums if enum.name == kind.name), None)
        out.append((f"i{enum.type.size if enum else 4}", offset))
    else:
        out.append(("i16", offset))
    return False


def _size(kind: CType, api: Api) -> int:
    if isinstance(kind, RecordRef):
        record = api.record(kind.name)
        return record.size if record else 0
    if isinstance(kind, Array):
        return kind.length * _size(kind.element, api)
    if isinstance(kind, Integer | Float):
        return kind.size
    if isinstance(kind, EnumRef):
        enum = next((enum for enum in api.enums if enum.name == kind.name), None)
        return enum.type.size if enum else 4
    return 1 if isinstance(kind, Bool) else 8
