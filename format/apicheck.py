"""The checks that make it safe to build ctypes types from a described C interface.

Invariant: in an Api that passed, every reference resolves, every field lies inside its record, and no record contains
itself, so nothing built from it reads beyond a record. The spec is docs/spec/api.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from visget.errors import FormatError
from visget.format.prototypes import (
    Api,
    Array,
    Bool,
    CType,
    EnumRef,
    Field,
    Float,
    FunctionType,
    Integer,
    Pointer,
    Record,
    RecordRef,
    Typedef,
    Void,
    c_text,
)
from visget.format.strictjson import repeated

NESTING_LIMIT = 32
"""How deep records may hold each other by value."""


def check_api(api: Api) -> None:
    """Refuse names used twice, references to nothing, records that contain themselves and fields outside them.

    Raises:
        FormatError: it breaks a rule of docs/spec/api.md.
    """
    for what, names in (
        ("function", [function.name for function in api.functions]),
        ("record", [record.name for record in api.records]),
        ("enum", [enum.name for enum in api.enums]),
        ("constant", [constant.name for constant in api.constants]),
        ("typedef", [typedef.name for typedef in api.typedefs]),
    ):
        if (twice := repeated(names)) is not None:
            raise FormatError(f"api has the {what} {twice!r} twice")
    layout = _Layout(api)
    for record in api.records:
        layout.check_record(record)
    for function in api.functions:
        types = (parameter.type for parameter in function.parameters)
        layout.check_call(function.result, types, f"api: the function {function.name}")
    for typedef in api.typedefs:
        layout.check_typedef(typedef)


class _Layout:
    """The sizes of types, and whether what they refer to is there."""

    def __init__(self, api: Api) -> None:
        self._records = {record.name: record for record in api.records}
        self._enums = {enum.name: enum for enum in api.enums}
        self._checked: set[str] = set()

    def check_record(self, record: Record, within: tuple[str, ...] = ()) -> None:
        """Refuse `record` when a field leaves it or it contains itself."""
        where = f"api: the {record.kind} {record.name!r}"
        if record.name in within:
            raise FormatError(f"{where} contains itself")
        if len(within) > NESTING_LIMIT:
            raise FormatError(f"{where} is nested in more than {NESTING_LIMIT} others")
        if record.name in self._checked:
            return
        for field in record.fields:
            self.check_value(field.type, f"{where}, field {field.name!r},")
            held = field.type
            while isinstance(held, Array):
                held = held.element
            if isinstance(held, RecordRef):
                self.check_record(self._records[held.name], (*within, record.name))
            self._check_field(record, field, where)
        self._checked.add(record.name)

    def _check_field(self, record: Record, field: Field, where: str) -> None:
        size = self.size(field.type)
        if field.bits is None:
            end = 8 * (field.offset + (size or 0))
        else:
            first, width = field.bits
            if size is None or first + width > 8 * size:
                raise FormatError(f"{where}: the bit-field {field.name!r} leaves its storage unit")
            end = 8 * field.offset + first + width
        if end > 8 * record.size:
            raise FormatError(f"{where}: the field {field.name!r} leaves the record")

    def check_type(self, type_: CType, where: str) -> None:
        """Refuse a reference to a record or enum that is not there."""
        match type_:
            case Pointer(inner):
                self.check_type(inner, where)
            case Array(inner):
                self.check_value(inner, where)
            case RecordRef(name) if name not in self._records:
                raise FormatError(f"{where} refers to {name!r}, which is not among the records")
            case EnumRef(name) if name not in self._enums:
                raise FormatError(f"{where} refers to {name!r}, which is not among the enums")
            case FunctionType(result, parameters):
                self.check_call(result, parameters, where)

    def check_value(self, type_: CType, where: str) -> None:
        """Refuse a type that no object has."""
        if isinstance(type_, Void | FunctionType):
            raise FormatError(f"{where} has the type {c_text(type_)!r}, of which there are no values")
        self.check_type(type_, where)

    def check_typedef(self, typedef: Typedef) -> None:
        """Refuse a typedef of something else than a record, an enum, an arithmetic type or a pointer to a function."""
        where = f"api: the typedef {typedef.name!r}"
        match typedef.type:
            case RecordRef() | EnumRef() | Bool() | Integer() | Float() | Pointer(FunctionType()):
                self.check_type(typedef.type, where)
            case other:
                raise FormatError(f"{where} stands for {c_text(other)!r}, which is none of the types that may be named")

    def check_call(self, result: CType, parameters: Iterable[CType], where: str) -> None:
        """Refuse a function that C could not declare."""
        if isinstance(result, Array | FunctionType):
            raise FormatError(f"{where} returns {c_text(result)!r}, which no function can")
        self.check_type(result, where)
        for parameter in parameters:
            if isinstance(parameter, Array):
                raise FormatError(f"{where} takes {c_text(parameter)!r}, which C passes as a pointer")
            self.check_value(parameter, where)

    def size(self, type_: CType) -> int | None:
        """Return the bytes that `type_` takes, or None when that is not known."""
        match type_:
            case Bool():
                return 1
            case Integer() | Float():
                return type_.size
            case Pointer():
                return 8
            case Array(element, length):
                inner = self.size(element)
                return None if inner is None else inner * length
            case RecordRef(name):
                return self._records[name].size
            case EnumRef(name):
                return self._enums[name].type.size
        return None
