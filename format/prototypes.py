"""The C interface of a package: functions, structs, enums and constants with complete types.

Invariant: the sizes, alignments and offsets are those of the VIS data model (LP64, little-endian, signed char),
which all targets share; in a parsed Api a reference to a struct or enum names one of the same Api, and no struct
contains itself. The runtime makes Python functions from this, so it imports nothing heavy. The spec is
docs/spec/api.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Void:
    """The type void: no result, or what a void pointer points to."""


@dataclass(frozen=True, slots=True)
class Bool:
    """The type _Bool: one byte, 0 or 1."""


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer type."""

    name: str
    """The canonical C spelling, such as ``unsigned long``; plain ``char`` is ``char`` and signed."""
    size: int
    """Bytes: 1, 2, 4, 8 or 16."""
    signed: bool
    """Whether it is signed."""


@dataclass(frozen=True, slots=True)
class Float:
    """A binary floating-point type."""

    name: str
    """The canonical C spelling: ``float``, ``double`` or ``_Float16``."""
    size: int
    """Bytes: 2, 4 or 8."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer."""

    target: CType
    """What it points to."""
    const: bool = False
    """Whether what it points to is const."""


@dataclass(frozen=True, slots=True)
class Array:
    """An array inside a struct, or behind a pointer; parameters of array type are pointers."""

    element: CType
    """The type of its elements."""
    length: int
    """How many; 0 for a flexible array member or a length that is not known."""


@dataclass(frozen=True, slots=True)
class RecordRef:
    """A struct or union, by the name of its Record."""

    name: str
    """``struct foo``, ``union u``, or the typedef's name where the type has no tag."""


@dataclass(frozen=True, slots=True)
class EnumRef:
    """An enum, by the name of its Enum."""

    name: str
    """``enum foo``, or the typedef's name where the type has no tag."""


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function, as the target of a pointer."""

    result: CType
    """What it returns."""
    parameters: tuple[CType, ...]
    """What it takes."""
    variadic: bool = False
    """Whether it takes more arguments after those."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that Python cannot pass: long double, _Complex, vectors and the like."""

    name: str
    """Its C spelling."""


CType: TypeAlias = Union[  # noqa: UP007 - the classes above refer to it by name before it exists
    Void, Bool, Integer, Float, Pointer, Array, RecordRef, EnumRef, FunctionType, Opaque
]

BASE_TYPES: dict[str, Void | Bool | Integer | Float] = {
    "void": Void(),
    "_Bool": Bool(),
    "char": Integer("char", 1, True),
    "signed char": Integer("signed char", 1, True),
    "unsigned char": Integer("unsigned char", 1, False),
    "short": Integer("short", 2, True),
    "unsigned short": Integer("unsigned short", 2, False),
    "int": Integer("int", 4, True),
    "unsigned int": Integer("unsigned int", 4, False),
    "long": Integer("long", 8, True),
    "unsigned long": Integer("unsigned long", 8, False),
    "long long": Integer("long long", 8, True),
    "unsigned long long": Integer("unsigned long long", 8, False),
    "__int128": Integer("__int128", 16, True),
    "unsigned __int128": Integer("unsigned __int128", 16, False),
    "_Float16": Float("_Float16", 2),
    "float": Float("float", 4),
    "double": Float("double", 8),
}
"""The arithmetic types of C in the VIS data model; the api section writes them by name alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a function."""

    name: str
    """Its name in the header, or an empty string."""
    c: str
    """Its type as the header spells it, such as ``const uint8_t *``."""
    type: CType
    """The same with typedefs resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One exported function."""

    name: str
    """The symbol."""
    prototype: str
    """One line of C that declares it, without the semicolon."""
    doc: str
    """The comment that stands before it in the header, without comment marks; may be empty."""
    result_c: str
    """The result type as the header spells it."""
    result: CType
    """The same with typedefs resolved."""
    parameters: tuple[Parameter, ...]
    """What it takes."""
    variadic: bool = False
    """Whether it takes more arguments after those."""
    line: int | None = None
    """The line in `header` that declares it."""
    header: str | None = None
    """The include name of the header that declares it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One member of a struct or union."""

    name: str
    """Its name; empty for an anonymous struct or union, whose members are found through it."""
    offset: int
    """Bytes from the start of the record; for a bit-field, of its storage unit."""
    type: CType
    """Its type; for a bit-field, that of the storage unit."""
    bits: tuple[int, int] | None = None
    """For a bit-field: (first bit within the storage unit, counted from the least significant; width)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A struct or union."""

    name: str
    """``struct foo``, ``union u``, or the typedef's name where the type has no tag."""
    kind: Literal["struct", "union"]
    """Which of the two."""
    size: int
    """Bytes; 0 when it is not complete."""
    align: int
    """Alignment in bytes; 1 when it is not complete."""
    fields: tuple[Field, ...]
    """Its members in order; empty when it is not complete."""
    complete: bool = True
    """Whether the headers define it; if not, only pointers to it can be passed."""
    doc: str = ""
    """The comment that stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    """An enum."""

    name: str
    """``enum foo``, or the typedef's name where the type has no tag."""
    type: Integer
    """The integer type that holds it."""
    values: tuple[tuple[str, int], ...]
    """Its constants in order."""
    doc: str = ""
    """The comment that stands before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A macro or const object with a value known at compile time."""

    name: str
    """Its name."""
    kind: Literal["int", "float", "str"]
    """What `value` is."""
    value: int | str
    """An integer; or the float in hexadecimal (``0x1.8p+0``); or the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typedef:
    """Another name for a record, an enum, an arithmetic type or a pointer to a function."""

    name: str
    """The name."""
    type: CType
    """What it stands for, with other typedefs resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything the public headers of a package declare."""

    functions: tuple[Function, ...] = ()
    """The exported functions."""
    records: tuple[Record, ...] = ()
    """The structs and unions they use."""
    enums: tuple[Enum, ...] = ()
    """The enums they use."""
    constants: tuple[Constant, ...] = ()
    """The macros with a value."""
    typedefs: tuple[Typedef, ...] = ()
    """The typedef names of the public headers; not those that are the only name of a record or enum."""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Api:
        """Parse the section "api".

        Raises:
            FormatError: it breaks a rule of docs/spec/api.md.
        """
        from visget.format.apijson import parse_api

        return parse_api(data)

    def encode(self) -> bytes:
        """Return the section "api" for this interface."""
        from visget.format.apijson import encode_api

        return encode_api(self)

    def function(self, name: str) -> Function | None:
        """Return the function `name`, if there is one."""
        return next((function for function in self.functions if function.name == name), None)

    def record(self, name: str) -> Record | None:
        """Return the struct or union `name`, if there is one."""
        return next((record for record in self.records if record.name == name), None)

    def enum(self, name: str) -> Enum | None:
        """Return the enum `name`, if there is one."""
        return next((enum for enum in self.enums if enum.name == name), None)


def c_text(type_: CType, name: str = "") -> str:
    """Return the C declaration of `name` with the type `type_`, such as ``int (*compare)(const void *)``.

    With an empty name it is the C spelling of the type alone.
    """
    return _declare(type_, name, const=False)


def _declare(type_: CType, inner: str, *, const: bool) -> str:
    """Wrap the declarator `inner` in `type_`, reading outwards as C does; `const` qualifies `type_` itself."""
    if isinstance(type_, Pointer):
        qualifier = "const" if const else ""
        star = f"*{qualifier}{' ' if qualifier and inner else ''}{inner}"
        if isinstance(type_.target, Array | FunctionType):
            star = f"({star})"
        return _declare(type_.target, star, const=type_.const)
    if isinstance(type_, Array):
        # In C a const array is an array of const elements.
        return _declare(type_.element, f"{inner}[{type_.length or ''}]", const=const)
    if isinstance(type_, FunctionType):
        parameters = [c_text(parameter) for parameter in type_.parameters]
        if type_.variadic:
            parameters.append("...")
        return _declare(type_.result, f"{inner}({', '.join(parameters) or 'void'})", const=False)
    if isinstance(type_, Void):
        base = "void"
    elif isinstance(type_, Bool):
        base = "_Bool"
    else:
        base = type_.name
    return f"{'const ' if const else ''}{base}{' ' if inner else ''}{inner}"


def plain_char_results(api: Api | None) -> tuple[str, ...]:
    """Return the functions that return a plain ``char``, which C compilers take for signed or unsigned."""
    functions = api.functions if api is not None else ()
    return tuple(one.name for one in functions if isinstance(one.result, Integer) and one.result.name == "char")
