"""Which C types cross the boundary of a library in the same way on every processor.

Invariant: what passes here is lowered by the neutral target exactly as the real target's own compiler expects it from
a caller; everything else is named with the reason. The table is docs/spec/vis-1.md, section "Values at the boundary":
it was measured on x86-64, AArch64 and RISC-V.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from visget.format.prototypes import (
    Array,
    Bool,
    CType,
    Enum,
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

_GENERAL_REGISTERS = 6
"""Of the targets x86-64 has the fewest general registers for arguments."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One scalar inside a record."""

    offset: int
    size: int
    kind: str
    """ "i" for integers and pointers, "f" for floating point, "?" for anything else."""


@dataclass(frozen=True, slots=True)
class Passing:
    """How a value is passed: general registers it takes, or why it cannot be passed alike everywhere."""

    registers: int = 0
    problem: str | None = None


class Boundary:
    """The rules, for the records and enums of one interface."""

    def __init__(self, records: Mapping[str, Record], enums: Mapping[str, Enum]) -> None:
        self._records = records
        self._enums = enums

    def problems(self, result: CType, parameters: Sequence[CType]) -> list[str]:
        """Say what cannot cross the boundary in a function of that type."""
        found = []
        returned = self._returned(result)
        if returned.problem:
            found.append(f"returns {returned.problem}")
        used = returned.registers
        for number, parameter in enumerate(parameters, 1):
            passed = self._passed(parameter)
            if passed.problem:
                found.append(f"parameter {number} is {passed.problem}")
            elif passed.registers == 2 and used + 2 > _GENERAL_REGISTERS and isinstance(parameter, RecordRef):
                found.append(
                    f"parameter {number} is {parameter.name} by value after {used} other words: on x86-64 it no longer "
                    "fits into registers"
                )
            used += passed.registers
        return found

    def callbacks(self, types: Sequence[CType]) -> Iterator[FunctionType]:
        """Yield the function types behind pointers in `types`, and in the records they reach."""
        seen: set[str] = set()
        pending = list(types)
        while pending:
            match pending.pop():
                case Pointer(inner) | Array(inner):
                    pending.append(inner)
                case FunctionType(result, parameters) as function:
                    yield function
                    pending += [result, *parameters]
                case RecordRef(name) if name not in seen and name in self._records:
                    seen.add(name)
                    pending += [field.type for field in self._records[name].fields]

    def _returned(self, type_: CType) -> Passing:
        if isinstance(type_, RecordRef) and self._size(type_) > 16:
            # Returned through a pointer everywhere, except that AArch64 returns up to four equal floats in registers.
            leaves = list(self._leaves(type_, 0))
            if all(leaf.kind == "i" for leaf in leaves):
                return Passing(1)
            return Passing(problem=f"{type_.name} by value, which holds floating point and has more than 16 bytes")
        return Passing(0, self._passed(type_).problem)

    def _passed(self, type_: CType) -> Passing:
        match type_:
            case Void() | Float():
                return Passing(0)
            case Bool() | Pointer() | EnumRef():
                return Passing(1)
            case Integer():
                return Passing(2 if type_.size > 8 else 1)
            case Opaque("_Complex double"):
                return Passing(0)
            case RecordRef():
                return self._record(type_)
            case Opaque(name):
                return Passing(problem=name)
        return Passing(problem="of a type that cannot be passed")

    def _record(self, type_: RecordRef) -> Passing:
        name, size = type_.name, self._size(type_)
        if size == 0:
            return Passing(problem=f"{name} by value, which has no size")
        if size > 16:
            return Passing(problem=f"{name} by value, which has more than 16 bytes")
        leaves = list(self._leaves(type_, 0))
        if any(leaf.kind == "?" or leaf.offset % leaf.size for leaf in leaves):
            return Passing(problem=f"{name} by value, which has a packed field or one of a special type")
        if self._align(type_) > 8:
            return Passing(problem=f"{name} by value, which is aligned to more than 8 bytes")
        if all(leaf.kind == "i" for leaf in leaves):
            return Passing(1 if size <= 8 else 2)
        shape = [(leaf.kind, leaf.size) for leaf in leaves]
        if shape in ([("f", 4)], [("f", 8)], [("f", 8), ("f", 8)]) and size == sum(s for _, s in shape):
            return Passing(0)
        return Passing(problem=f"{name} by value, which each processor passes differently")

    def _leaves(self, type_: CType, offset: int, *, union: bool = False) -> Iterator[_Leaf]:
        match type_:
            case Integer() | EnumRef() | Bool() | Pointer():
                size = self._size(type_)
                yield _Leaf(offset, size, "i" if size <= 8 else "?")
            case Float():
                # The neutral target passes a union in general registers, whatever it holds.
                yield _Leaf(offset, type_.size, "f" if type_.size > 2 and not union else "?")
            case Array(element, length):
                if length == 0:
                    yield _Leaf(offset, 1, "?")
                step = self._size(element)
                for index in range(min(length, 64)):
                    yield from self._leaves(element, offset + index * step, union=union)
            case RecordRef(name):
                union |= self._records[name].kind == "union"
                for field in self._records[name].fields:
                    if field.bits is not None:
                        yield _Leaf(offset + field.offset, 1, "i")
                    else:
                        yield from self._leaves(field.type, offset + field.offset, union=union)
            case _:
                yield _Leaf(offset, 1, "?")

    def _size(self, type_: CType) -> int:
        match type_:
            case Integer() | Float():
                return type_.size
            case Bool():
                return 1
            case Pointer():
                return 8
            case EnumRef(name):
                return self._enums[name].type.size if name in self._enums else 4
            case Array(element, length):
                return self._size(element) * length
            case RecordRef(name):
                return self._records[name].size
        return 1

    def _align(self, type_: RecordRef) -> int:
        return self._records[type_.name].align
