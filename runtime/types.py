"""C types as Python types: structs, unions, enums, pointers and function types, made by ctypes when first needed.

Invariant: a record's size and the offset of every member are those of the package's interface, which come from the
compiler; they are checked when the class is made, so a class that exists can be handed to C. Bit-fields are
properties over the raw bytes, because ctypes has its own ideas of where they lie.

What C gives back: ``const char *`` is bytes (or None), ``void *`` an `Address`, other pointers are ctypes pointers;
all null pointers are false. A single ``char`` is an integer, as in C; an array of them is bytes.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

from visget.errors import LoadError, UnsupportedError
from visget.format import prototypes as c
from visget.format.cnumbers import INTEGERS
from visget.runtime.arrays import Address
from visget.runtime.callbacks import Pending


class _Shown:
    """A readable repr for structs and unions."""

    __slots__ = ()
    _visget_names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._visget_names)
        return f"{type(self).__name__}({values})"


class Types:
    """The Python types of one library.

    Args:
        api: the interface of the package.
        module: what ``__module__`` of the classes says.
    """

    def __init__(self, api: c.Api, module: str) -> None:
        self._module = module
        self._records = {record.name: record for record in api.records}
        self._enums = {item.name: item for item in api.enums}
        self._classes: dict[str, Any] = {}
        self._enum_classes: dict[str, type[enum.IntEnum]] = {}
        self._undefined: list[str] = []
        self._defined: set[str] = set()
        self._not_by_value: dict[str, str] = {}
        self.pending = Pending()
        """The Python functions that C was given, and what they raised."""

    def record(self, name: str) -> Any:
        """Return the class of the struct or union `name`; an incomplete one has no fields."""
        shell = self._declare(name)
        self._define_pending()
        return shell

    def enum(self, name: str) -> type[enum.IntEnum]:
        """Return the class of the enum `name`."""
        if name not in self._enum_classes:
            # The enum module keeps names like _x_ and mro for itself; such constants remain on the library.
            members = [(n, v) for n, v in self._enums[name].values if n != "mro" and not n.startswith("_")]
            functional: Any = enum.IntEnum
            self._enum_classes[name] = functional(short_name(name), members, module=self._module)
            self._enum_classes[name].__doc__ = self._enums[name].doc or name
        return self._enum_classes[name]

    def enum_type(self, name: str) -> c.Integer:
        """Return the integer type that holds the enum `name`."""
        return self._enums[name].type

    def size_and_alignment(self, record: str) -> tuple[int, int]:
        """Return the bytes and the alignment that C gives to a record."""
        return self._records[record].size, self._records[record].align

    def is_complex(self, record: str) -> bool:
        """Return whether a record is two equal floats, as a complex number is in memory."""
        if self._records[record].kind != "struct":
            return False
        types = [field.type for field in self._records[record].fields]
        return types in ([c.Float("float", 4)] * 2, [c.Float("double", 8)] * 2)

    def storage(self, type_: c.CType) -> Any:
        """Return the ctypes type of an object of C type `type_` (None for void).

        Raises:
            UnsupportedError: Python has no such type.
        """
        made = self._storage(type_)
        self._define_pending()
        return made

    def by_value(self, name: str) -> Any:
        """Return the class of the struct `name` for passing or returning it by value.

        Raises:
            UnsupportedError: ctypes would pass it in other registers than the compiler does.
        """
        made = self.storage(c.RecordRef(name))
        record = self._records[name]
        if reason := self._by_value_obstacle(record):
            raise UnsupportedError(f"{name} cannot be passed by value from Python: {reason}")
        return made

    def _storage(self, type_: c.CType) -> Any:
        if isinstance(type_, c.Void):
            return None
        if isinstance(type_, c.Bool):
            return ctypes.c_bool
        if isinstance(type_, c.Integer | c.Float):
            return _scalar(type_)
        if isinstance(type_, c.EnumRef):
            return _scalar(self.enum_type(type_.name))
        if isinstance(type_, c.Pointer):
            return self._pointer(type_)
        if isinstance(type_, c.Array):
            return self._element(type_.element) * type_.length
        if isinstance(type_, c.RecordRef):
            if not self._records[type_.name].complete:
                raise UnsupportedError(f"{type_.name} is incomplete: only pointers to it can be used")
            made = self._declare(type_.name)
            self._define(type_.name)
            return made
        raise UnsupportedError(f"Python has no type for {c.c_text(type_)}")

    def _element(self, type_: c.CType) -> Any:
        """Return the type of an object that an array holds or a pointer points to."""
        if isinstance(type_, c.Integer) and type_.name == "char":
            return ctypes.c_char
        return self._storage(type_)

    def _pointer(self, type_: c.Pointer) -> Any:
        target = type_.target
        if isinstance(target, c.Void | c.Opaque):
            return Address
        if isinstance(target, c.RecordRef):
            return ctypes.POINTER(self._declare(target.name))
        if isinstance(target, c.Integer) and target.name == "char" and type_.const:
            return ctypes.c_char_p
        if isinstance(target, c.FunctionType):
            return Address if target.variadic else self._callback(target)
        try:
            return ctypes.POINTER(self._element(target))
        except UnsupportedError:
            return Address

    def _callback(self, type_: c.FunctionType) -> Any:
        try:
            result = self._storage(type_.result)
            # ctypes returns only simple types from callbacks; a pointer is then an address.
            if isinstance(type_.result, c.Pointer):
                result = ctypes.c_void_p
            elif isinstance(type_.result, c.RecordRef):
                return Address
            return ctypes.CFUNCTYPE(result, *[self._storage(parameter) for parameter in type_.parameters])
        except UnsupportedError:
            return Address

    def _declare(self, name: str) -> Any:
        """Return the class of a record, perhaps still without fields: pointers need no more."""
        shell = self._classes.get(name)
        if shell is None:
            record = self._records[name]
            base: Any = ctypes.Structure if record.kind == "struct" else ctypes.Union
            body = {"__doc__": record.doc or name, "__module__": self._module, "__slots__": ()}
            shell = type(short_name(name), (_Shown, base), body)
            self._classes[name] = shell
            if record.complete:
                self._undefined.append(name)
        return shell

    def _define_pending(self) -> None:
        while self._undefined:
            self._define(self._undefined.pop())

    def _define(self, name: str) -> None:
        """Give the class of a record its fields; those of the records inside it first."""
        if name in self._defined:
            return
        self._defined.add(name)
        record, cls = self._records[name], self._classes[name]
        members: list[tuple[str, int, Any]] = []
        for number, field in enumerate(record.fields):
            if field.bits is not None:
                setattr(cls, field.name, self._bit_field(field, *field.bits))
                continue
            try:
                members.append((field.name or f"_anonymous{number}", field.offset, self._storage(field.type)))
            except UnsupportedError:
                # A long double inside: its bytes are there as padding, only not as an attribute.
                self._not_by_value[name] = f"Python has no type for its member {field.name}"
        fields, packed = _with_padding(record, members)
        padded = len(fields) > len(members)
        if (packed or padded) and name not in self._not_by_value:
            self._not_by_value[name] = "it has bit-fields, or members that are not aligned in the usual way"
        if packed:
            cls._pack_ = 1
        if anonymous := [member for member, _, _ in members if member.startswith("_anonymous")]:
            cls._anonymous_ = anonymous
        cls._fields_ = fields
        for member, offset, _ in members:
            _check(record, f"the offset of {member}", getattr(cls, member).offset, offset)
        _check(record, "the size", ctypes.sizeof(cls), record.size)
        cls._visget_names = tuple(field.name for field in record.fields if hasattr(cls, field.name))

    def _by_value_obstacle(self, record: c.Record) -> str | None:
        if record.kind == "union":
            return "it is a union"
        if record.name in self._not_by_value:
            return self._not_by_value[record.name]
        for field in record.fields:
            inner = field.type
            while isinstance(inner, c.Array):
                inner = inner.element
            if isinstance(inner, c.RecordRef) and (why := self._by_value_obstacle(self._records[inner.name])):
                return f"{inner.name} inside it: {why}"
        return None

    def _bit_field(self, field: c.Field, first: int, width: int) -> property:
        first += 8 * field.offset
        start, stop = first // 8, (first + width + 7) // 8
        shift, mask = first - 8 * start, (1 << width) - 1
        unit = self.enum_type(field.type.name) if isinstance(field.type, c.EnumRef) else field.type
        signed = isinstance(unit, c.Integer) and unit.signed
        low, high = (-(1 << width - 1), mask >> 1) if signed else (0, mask)

        def read(self: Any) -> int:
            value = int.from_bytes(memoryview(self).cast("B")[start:stop], "little") >> shift & mask
            return value - mask - 1 if signed and value > high else value

        def write(self: Any, value: int) -> None:
            if not low <= value <= high:
                raise OverflowError(f"{value} does not fit into the {width} bits of {field.name} ({low} to {high})")
            raw = memoryview(self).cast("B")[start:stop]
            others = int.from_bytes(raw, "little") & ~(mask << shift)
            raw[:] = (others | (value & mask) << shift).to_bytes(stop - start, "little")

        return property(read, write, doc=f"{width} bits")


def _with_padding(record: c.Record, members: list[tuple[str, int, Any]]) -> tuple[list[tuple[str, Any]], bool]:
    """Return the ctypes fields that put `members` (name, offset, type) where they belong, and whether packed.

    Padding is written out only where natural alignment would not leave it.
    """
    union = record.kind == "union"
    packed = any(offset % ctypes.alignment(made) for _, offset, made in members)
    fields: list[tuple[str, Any]] = []
    cursor, widest = 0, 1

    def pad(offset: int) -> None:
        if offset < cursor:
            raise _wrong(record, "a member lies inside the one before it")
        fields.append((f"_padding{len(fields)}", ctypes.c_ubyte * (offset - cursor)))

    for name, offset, made in members:
        align = 1 if packed else ctypes.alignment(made)
        widest = max(widest, align)
        if not union and offset != _round_up(cursor, align):
            pad(offset)
        fields.append((name, made))
        cursor = max(cursor, offset + ctypes.sizeof(made))
    if _round_up(cursor, widest) != record.size:
        cursor = 0 if union else cursor
        pad(record.size)
    return fields, packed


def _round_up(offset: int, align: int) -> int:
    return -(-offset // align) * align


def short_name(name: str) -> str:
    """Return the name of a record or enum without its tag word: ``struct point`` is ``point``."""
    return name.rpartition(" ")[2]


def _scalar(type_: c.Integer | c.Float) -> Any:
    if isinstance(type_, c.Float) and type_.size in (4, 8):
        return ctypes.c_float if type_.size == 4 else ctypes.c_double
    if isinstance(type_, c.Integer) and (made := INTEGERS.get((type_.size, type_.signed))):
        return made
    raise UnsupportedError(f"Python has no type for {type_.name}")


def _check(record: c.Record, what: str, found: int, stated: int) -> None:
    if found != stated:
        raise _wrong(record, f"{what} is {stated} for the compiler and {found} for Python")


def _wrong(record: c.Record, why: str) -> LoadError:
    return LoadError(
        f"the layout of {record.name} in the package's interface is not one that C can have: {why}",
        hint="tell the package's author; lib.cdll still gives plain ctypes functions",
    )
