"""One step of a test vector, parsed: its arguments, its expected result, and what earlier steps made for it.

Invariant: a step refers only to buffers and values that its vector has made before, every number fits into its
type, and the buffers of one vector stay within MEMORY_LIMIT. The spec is docs/spec/vectors.md.
"""

from __future__ import annotations

import binascii
import math
import re

from visget.digest import parse_digest
from visget.errors import UsageError, VisgetError
from visget.format.elements import ELEMENT_SIZES, element_bytes, element_count, parse_float
from visget.format.strictjson import Reader, parse_integer
from visget.format.vectors import (
    After,
    AfterBytes,
    AfterDigest,
    AfterValues,
    Arg,
    ArrayArg,
    BufferArg,
    BytesArg,
    Elements,
    ElementType,
    Expect,
    ExpectFloat,
    ExpectInt,
    ExpectNonnull,
    ExpectText,
    FloatArg,
    IntArg,
    NullArg,
    OutArg,
    Pattern,
    Step,
    TextArg,
    VarArg,
)

BUFFER_LIMIT = 64 << 20
"""The most bytes of one buffer."""
MEMORY_LIMIT = 256 << 20
"""The most bytes of all buffers of one vector."""
SEED_LIMIT = 2**32 - 1
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_HEX = re.compile(r"(?:[0-9a-f]{2})*\Z")
_TYPES: dict[str, ElementType] = {name: name for name in ELEMENT_SIZES}
_ARG_KEYS = ("int", "float", "bytes", "text", "null", "var", "buffer", "array", "out")
_EXPECT_KEYS = ("int", "float", "text", "nonnull")
_INT_LOW, _INT_HIGH = -(2**63), 2**64 - 1


class Scope:
    """What the steps of one vector have made so far."""

    def __init__(self, error: type[VisgetError]) -> None:
        # What a person wrote in TOML may hold floats and integers of 64 bits as such.
        self._lenient = issubclass(error, UsageError)
        self._buffers: dict[str, tuple[ElementType, int]] = {}
        self._saved: set[str] = set()
        self._bytes = 0

    def step(self, reader: Reader) -> Step:
        """Parse one step."""
        call = reader.line("call", 256)
        if not _SYMBOL.match(call):
            raise reader.fail("call", f"must be the name of a function, not {call[:80]!r}")
        args = tuple(self._arg(item) for item in reader.objects("args")) if "args" in reader else ()
        returns = self._expect(reader.object("returns")) if "returns" in reader else None
        save = self._identifier(reader, "save") if "save" in reader else None
        if save is not None:
            if save in self._saved:
                raise reader.fail("save", f"is {save!r} a second time")
            self._saved.add(save)
        nonnull = "nonnull" in reader and reader.boolean("nonnull")
        reader.done()
        return Step(call=call, args=args, returns=returns, save=save, nonnull=nonnull)

    def _arg(self, reader: Reader) -> Arg:
        arg = self._arg_of(reader, self._kind(reader, _ARG_KEYS))
        reader.done()
        return arg

    def _arg_of(self, reader: Reader, kind: str) -> Arg:
        match kind:
            case "int":
                return IntArg(value=self._integer(reader, "int"))
            case "float":
                return FloatArg(text=self._float(reader, "float"))
            case "bytes":
                data = self._hex(reader, "bytes")
                self._account(reader, len(data))
                return BytesArg(data=data)
            case "text":
                return TextArg(text=self._text(reader))
            case "null":
                self._true(reader, "null")
                return NullArg()
            case "var":
                name = self._identifier(reader, "var")
                if name not in self._saved:
                    raise reader.fail("var", f"is {name!r}, which no earlier step saved")
                return VarArg(name=name)
            case "buffer":
                name = self._identifier(reader, "buffer")
                if name not in self._buffers:
                    raise reader.fail("buffer", f"is {name!r}, which no earlier argument has as its id")
                return BufferArg(name=name, after=self._after(reader, *self._buffers[name]))
            case "array":
                inner = reader.object("array")
                type_ = self._type(inner)
                values = self._elements(inner, type_)
                inner.done()
                count = element_count(values)
                self._account(inner, count * ELEMENT_SIZES[type_])
                after = self._after(reader, type_, count)
                return ArrayArg(type=type_, values=values, after=after, id=self._id(reader, type_, count))
            case _:
                inner = reader.object("out")
                type_ = self._type(inner)
                length = inner.integer("length", 1, BUFFER_LIMIT)
                inner.done()
                self._account(inner, length * ELEMENT_SIZES[type_])
                after = self._after(reader, type_, length)
                return OutArg(type=type_, length=length, after=after, id=self._id(reader, type_, length))

    def _expect(self, reader: Reader) -> Expect:
        expect: Expect
        match self._kind(reader, _EXPECT_KEYS):
            case "int":
                expect = ExpectInt(value=self._integer(reader, "int"))
            case "float":
                text = self._float(reader, "float")
                expect = ExpectFloat(text=text, rel=self._tolerance(reader, "rel"), abs=self._tolerance(reader, "abs"))
            case "text":
                expect = ExpectText(text=self._text(reader))
            case _:
                self._true(reader, "nonnull")
                expect = ExpectNonnull()
        reader.done()
        return expect

    def _kind(self, reader: Reader, kinds: tuple[str, ...]) -> str:
        present = [kind for kind in kinds if kind in reader]
        if len(present) != 1:
            raise reader.fail(None, f"must have exactly one of the keys {', '.join(kinds)}")
        return present[0]

    def _after(self, reader: Reader, type_: ElementType, count: int) -> After | None:
        present = [key for key in ("after", "after_hex", "after_sha256") if key in reader]
        if len(present) > 1:
            raise reader.fail(present[1], f"cannot stand beside {present[0]}")
        match present:
            case ["after"]:
                value = reader.any("after")
                inner = reader.holding("values", value) if isinstance(value, list) else reader.object("after")
                values = self._elements(inner, type_)
                inner.done()
                if element_count(values) > count:
                    raise reader.fail("after", f"has {element_count(values)} elements; the buffer has {count}")
                return AfterValues(
                    values=values, rel=self._tolerance(reader, "rel"), abs=self._tolerance(reader, "abs")
                )
            case ["after_hex"]:
                data = self._hex(reader, "after_hex")
                if len(data) > count * ELEMENT_SIZES[type_]:
                    raise reader.fail("after_hex", f"has {len(data)} bytes; the buffer has fewer")
                return AfterBytes(data=data)
            case ["after_sha256"]:
                try:
                    return AfterDigest(sha256=parse_digest(reader.line("after_sha256")))
                except ValueError as error:
                    raise reader.fail("after_sha256", f"is {error}") from error
        return None

    def _elements(self, reader: Reader, type_: ElementType) -> Elements:
        if ("values" in reader) == ("pattern" in reader):
            raise reader.fail(None, "must have exactly one of the keys values, pattern")
        if "pattern" in reader:
            inner = reader.object("pattern")
            pattern = Pattern(
                kind="lcg" if inner.choice("kind", ("ramp", "lcg")) == "lcg" else "ramp",
                count=inner.integer("count", 1, BUFFER_LIMIT // ELEMENT_SIZES[type_]),
                seed=inner.integer("seed", 0, SEED_LIMIT),
            )
            inner.done()
            return pattern
        items = reader.array("values")
        values: Elements
        if type_ in ("f32", "f64"):
            values = tuple(self._float_of(reader, f"values[{n}]", item) for n, item in enumerate(items))
        else:
            values = tuple(self._integer_of(reader, f"values[{n}]", item) for n, item in enumerate(items))
        try:
            element_bytes(type_, values)
        except ValueError as error:
            raise reader.fail("values", f"do not fit: {error}") from error
        return values

    def _account(self, reader: Reader, size: int) -> None:
        if size > BUFFER_LIMIT:
            raise reader.fail(None, f"makes a buffer of {size} bytes; at most {BUFFER_LIMIT} are allowed")
        self._bytes += size
        if self._bytes > MEMORY_LIMIT:
            raise reader.fail(None, f"brings the buffers of this vector above {MEMORY_LIMIT} bytes")

    def _id(self, reader: Reader, type_: ElementType, count: int) -> str | None:
        if "id" not in reader:
            return None
        name = self._identifier(reader, "id")
        if name in self._buffers:
            raise reader.fail("id", f"is {name!r} a second time")
        self._buffers[name] = (type_, count)
        return name

    def _type(self, reader: Reader) -> ElementType:
        return _TYPES[reader.choice("type", tuple(_TYPES))]

    def _identifier(self, reader: Reader, name: str) -> str:
        value = reader.line(name, 64)
        if not _IDENTIFIER.match(value):
            raise reader.fail(name, f"must be an identifier, not {value[:80]!r}")
        return value

    def _true(self, reader: Reader, name: str) -> None:
        if not reader.boolean(name):
            raise reader.fail(name, "must be true, or absent")

    def _text(self, reader: Reader) -> str:
        value = reader.string("text")
        if "\0" in value:
            raise reader.fail("text", "holds a NUL")
        return value

    def _hex(self, reader: Reader, name: str) -> bytes:
        value = reader.string(name)
        if not _HEX.match(value):
            raise reader.fail(name, "must be bytes in lower-case hexadecimal")
        return binascii.unhexlify(value)

    def _integer(self, reader: Reader, name: str) -> int:
        return self._integer_of(reader, name, reader.any(name))

    def _integer_of(self, reader: Reader, name: str, value: object) -> int:
        number = value if self._lenient and type(value) is int else parse_integer(value)
        if number is None:
            raise reader.fail(name, "must be an integer")
        if not _INT_LOW <= number <= _INT_HIGH:
            raise reader.fail(name, f"is {number}, which has more than 64 bits")
        return number

    def _float(self, reader: Reader, name: str) -> str:
        return self._float_of(reader, name, reader.any(name))

    def _float_of(self, reader: Reader, name: str, value: object) -> str:
        if self._lenient and (type(value) is float or type(value) is int):
            # repr() gives the shortest text that stands for the same binary64.
            value = repr(value)
        if type(value) is not str:
            raise reader.fail(name, "must be the text of a float")
        try:
            parse_float(value)
        except ValueError as error:
            raise reader.fail(name, f"is {error}") from error
        return value

    def _tolerance(self, reader: Reader, name: str) -> str:
        if name not in reader:
            return "0"
        text = self._float(reader, name)
        if not 0 <= (value := parse_float(text)) < math.inf:
            raise reader.fail(name, f"must be zero or positive, not {value}")
        return text
