"""The section "vectors" as strict JSON, and the same tables as an author writes them in visget.toml.

Invariant: parse_vectors(encode_vectors(v)) == v, and both entries apply the same rules; they differ only in the error
they raise and in that TOML may hold floats. The spec is docs/spec/vectors.md.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Iterable

from visget.digest import parse_digest
from visget.errors import FormatError, UsageError, VisgetError
from visget.format.elements import ELEMENT_SIZES, element_bytes, element_count, parse_float
from visget.format.strictjson import Reader, dumps, integer_json, loads, parse_integer
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
    Vector,
    VectorSet,
)

VECTORS_FORMAT = "visget-vectors-1"
VECTORS_LIMIT = 16 << 20
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


def encode_vectors(vectors: VectorSet) -> bytes:
    """Return `vectors` as the section "vectors"."""
    return dumps(
        {
            "format": VECTORS_FORMAT,
            "vectors": [
                {"name": vector.name, "steps": [_step_json(step) for step in vector.steps]}
                for vector in vectors.vectors
            ],
        }
    )


def _step_json(step: Step) -> dict[str, object]:
    value: dict[str, object] = {"call": step.call, "args": [_arg_json(arg) for arg in step.args]}
    match step.returns:
        case ExpectInt(value=number):
            value["returns"] = {"int": integer_json(number)}
        case ExpectFloat(text=text, rel=rel, abs=abs_):
            value["returns"] = {"float": text} | _tolerance_json(rel, abs_)
        case ExpectText(text=text):
            value["returns"] = {"text": text}
        case ExpectNonnull():
            value["returns"] = {"nonnull": True}
    if step.save is not None:
        value["save"] = step.save
    if step.nonnull:
        value["nonnull"] = True
    return value


def _arg_json(arg: Arg) -> dict[str, object]:
    match arg:
        case IntArg(value=number):
            return {"int": integer_json(number)}
        case FloatArg(text=text):
            return {"float": text}
        case BytesArg(data=data):
            return {"bytes": data.hex()}
        case TextArg(text=text):
            return {"text": text}
        case NullArg():
            return {"null": True}
        case VarArg(name=name):
            return {"var": name}
        case BufferArg(name=name, after=after):
            return {"buffer": name} | _after_json(after)
        case ArrayArg(type=type_, values=values, after=after, id=id_):
            array = {"type": type_} | _elements_json(values)
            return {"array": array} | _after_json(after) | ({} if id_ is None else {"id": id_})
        case OutArg(type=type_, length=length, after=after, id=id_):
            out = {"type": type_, "length": length}
            return {"out": out} | _after_json(after) | ({} if id_ is None else {"id": id_})
    raise TypeError(f"not an argument: {arg!r}")


def _elements_json(values: Elements) -> dict[str, object]:
    if isinstance(values, Pattern):
        return {"pattern": {"kind": values.kind, "count": values.count, "seed": values.seed}}
    return {"values": [integer_json(value) if isinstance(value, int) else value for value in values]}


def _after_json(after: After | None) -> dict[str, object]:
    match after:
        case AfterValues(values=values, rel=rel, abs=abs_):
            elements = _elements_json(values)
            # A list stands for itself; a pattern keeps its key, so that the two cannot be confused.
            return {"after": elements.get("values", elements)} | _tolerance_json(rel, abs_)
        case AfterBytes(data=data):
            return {"after_hex": data.hex()}
        case AfterDigest(sha256=sha256):
            return {"after_sha256": sha256}
    return {}


def _tolerance_json(rel: str, abs_: str) -> dict[str, object]:
    return {name: text for name, text in (("rel", rel), ("abs", abs_)) if text != "0"}


def parse_vectors(data: bytes | memoryview) -> VectorSet:
    """Parse the section "vectors".

    Raises:
        FormatError: it breaks a rule of docs/spec/vectors.md.
    """
    reader = Reader(loads(data, what="the section vectors", limit=VECTORS_LIMIT), "vectors")
    if reader.string("format") != VECTORS_FORMAT:
        raise reader.fail("format", f"must be {VECTORS_FORMAT!r}")
    tables = reader.array("vectors")
    reader.done()
    return VectorSet(vectors=_vectors(tables, "vector", FormatError))


def vectors_from_toml(tables: object, *, key: str = "vector") -> VectorSet:
    """Convert the [[vector]] (or [[bench]]) tables of visget.toml.

    Raises:
        UsageError: a table breaks a rule; the message names the vector, the step and the key.
    """
    if not isinstance(tables, list):
        raise UsageError(f"{key} must be an array of tables", where=key, hint=f"write [[{key}]]")
    vectors = VectorSet(vectors=_vectors(tables, key, UsageError))
    if len(encode_vectors(vectors)) > VECTORS_LIMIT:
        raise UsageError(f"the [[{key}]] tables take more than {VECTORS_LIMIT} bytes", hint="use patterns")
    return vectors


def _vectors(tables: Iterable[object], key: str, error: type[VisgetError]) -> tuple[Vector, ...]:
    vectors: list[Vector] = []
    for number, table in enumerate(tables, 1):
        reader = Reader(table, f"{key} {number}", error)
        name = reader.line("name", 200)
        if not name:
            raise reader.fail("name", "must not be empty")
        if any(name == other.name for other in vectors):
            raise reader.fail("name", f"is {name!r} a second time")
        reader.path = f"{key} {name!r}"
        scope = _Scope(error)
        steps = tuple(
            scope.step(Reader(item, f"{key} {name!r}, step {place}", error))
            for place, item in enumerate(reader.array("steps"), 1)
        )
        if not steps:
            raise reader.fail("steps", "must not be empty")
        reader.done()
        vectors.append(Vector(name=name, steps=steps))
    return tuple(vectors)


class _Scope:
    """What the steps of one vector have made so far."""

    def __init__(self, error: type[VisgetError]) -> None:
        self._lenient = error is UsageError
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
                inner = Reader({"values": value}, reader.path) if isinstance(value, list) else reader.object("after")
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
