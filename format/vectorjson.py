"""The section "vectors" as strict JSON, and the same tables as an author writes them in visget.toml.

Invariant: parse_vectors(encode_vectors(v)) == v, and both entries apply the same rules; they differ only in the error
they raise and in that TOML may hold floats. The spec is docs/spec/vectors.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from visget.errors import FormatError, UsageError, VisgetError
from visget.format.strictjson import Reader, dumps, integer_json, loads
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
from visget.format.vectorsteps import Scope

VECTORS_FORMAT = "visget-vectors-1"
VECTORS_LIMIT = 8 << 20


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
    names: set[str] = set()
    for number, table in enumerate(tables, 1):
        reader = Reader(table, f"{key} {number}", error)
        name = reader.line("name", 200)
        if not name:
            raise reader.fail("name", "must not be empty")
        if name in names:
            raise reader.fail("name", f"is {name!r} a second time")
        names.add(name)
        reader.path = f"{key} {name!r}:"
        scope = Scope(error)
        steps = tuple(
            scope.step(Reader(item, f"{key} {name!r}, step {place}:", error))
            for place, item in enumerate(reader.array("steps"), 1)
        )
        if not steps:
            raise reader.fail("steps", "must not be empty")
        reader.done()
        vectors.append(Vector(name=name, steps=steps))
    return tuple(vectors)
