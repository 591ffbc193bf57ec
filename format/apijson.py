"""The section "api": an Api as strict JSON.

Invariant: parse_api() returns only interfaces that passed check_api(), and parse_api(encode_api(api)) == api. The
spec is docs/spec/api.md.
"""

from __future__ import annotations

import re

from visget.format.apicheck import check_api
from visget.format.prototypes import (
    BASE_TYPES,
    Api,
    Array,
    Bool,
    Constant,
    CType,
    Enum,
    EnumRef,
    Field,
    Float,
    Function,
    FunctionType,
    Integer,
    Opaque,
    Parameter,
    Pointer,
    Record,
    RecordRef,
    Typedef,
    Void,
)
from visget.format.strictjson import Reader, dumps, integer_json, loads, parse_integer

API_FORMAT = "visget-api-1"
API_LIMIT = 8 << 20
_SIZE_LIMIT = 1 << 40
# A string and not a compiled pattern: few packages have such a constant, and this module is on the load path.
_HEX_FLOAT = r"-?0x[01](?:\.[0-9a-f]+)?p[+-][0-9]{1,4}|-?inf|nan"
_BASE_NAMES = {type_: name for name, type_ in BASE_TYPES.items()}


def encode_api(api: Api) -> bytes:
    """Return `api` as the section "api"."""
    return dumps(
        {
            "format": API_FORMAT,
            "functions": [_function_json(function) for function in api.functions],
            "records": [
                {
                    "name": record.name,
                    "kind": record.kind,
                    "size": record.size,
                    "align": record.align,
                    "complete": record.complete,
                    "doc": record.doc,
                    "fields": [
                        {
                            "name": field.name,
                            "offset": field.offset,
                            "type": type_json(field.type),
                            "bits": None if field.bits is None else list(field.bits),
                        }
                        for field in record.fields
                    ],
                }
                for record in api.records
            ],
            "enums": [
                {
                    "name": enum.name,
                    "type": type_json(enum.type),
                    "values": [[name, integer_json(value)] for name, value in enum.values],
                    "doc": enum.doc,
                }
                for enum in api.enums
            ],
            "constants": [
                {
                    "name": constant.name,
                    "kind": constant.kind,
                    "value": integer_json(constant.value) if isinstance(constant.value, int) else constant.value,
                }
                for constant in api.constants
            ],
            "typedefs": [{"name": typedef.name, "type": type_json(typedef.type)} for typedef in api.typedefs],
        }
    )


def _function_json(function: Function) -> dict[str, object]:
    return {
        "name": function.name,
        "prototype": function.prototype,
        "doc": function.doc,
        "result_c": function.result_c,
        "result": type_json(function.result),
        "parameters": [
            {"name": parameter.name, "c": parameter.c, "type": type_json(parameter.type)}
            for parameter in function.parameters
        ],
        "variadic": function.variadic,
        "line": function.line,
        "header": function.header,
    }


def type_json(type_: CType) -> object:
    """Return `type_` in its JSON form: a base type by name, any other as an object with "kind"."""
    match type_:
        case Void() | Bool() | Integer() | Float() if type_ in _BASE_NAMES:
            return _BASE_NAMES[type_]
        case Integer(name, size, signed):
            return {"kind": "integer", "name": name, "size": size, "signed": signed}
        case Float(name, size):
            return {"kind": "float", "name": name, "size": size}
        case Pointer(target, const):
            return {"kind": "pointer", "target": type_json(target), "const": const}
        case Array(element, length):
            return {"kind": "array", "element": type_json(element), "length": length}
        case RecordRef(name):
            return {"kind": "record", "name": name}
        case EnumRef(name):
            return {"kind": "enum", "name": name}
        case FunctionType(result, parameters, variadic):
            return {
                "kind": "function",
                "result": type_json(result),
                "parameters": [type_json(parameter) for parameter in parameters],
                "variadic": variadic,
            }
        case Opaque(name):
            return {"kind": "opaque", "name": name}
    raise TypeError(f"not a C type: {type_!r}")


def parse_api(data: bytes | memoryview) -> Api:
    """Parse the section "api".

    Raises:
        FormatError: it breaks a rule of docs/spec/api.md.
    """
    reader = Reader(loads(data, what="the section api", limit=API_LIMIT), "api")
    if reader.string("format") != API_FORMAT:
        raise reader.fail("format", f"must be {API_FORMAT!r}")
    api = Api(
        functions=tuple(_function(item) for item in reader.objects("functions")),
        records=tuple(_record(item) for item in reader.objects("records")),
        enums=tuple(_enum(item) for item in reader.objects("enums")),
        constants=tuple(_constant(item) for item in reader.objects("constants")),
        typedefs=tuple(_typedef(item) for item in reader.objects("typedefs")),
    )
    reader.done()
    check_api(api)
    return api


def _function(reader: Reader) -> Function:
    function = Function(
        name=_symbol(reader, "name"),
        prototype=reader.line("prototype"),
        doc=reader.text("doc"),
        result_c=reader.line("result_c"),
        result=_type(reader, "result"),
        parameters=tuple(_parameter(item) for item in reader.objects("parameters")),
        variadic=reader.boolean("variadic"),
        line=reader.nullable_int("line", 1),
        header=reader.nullable_line("header", 255),
    )
    reader.done()
    return function


def _parameter(reader: Reader) -> Parameter:
    parameter = Parameter(name=reader.line("name", 256), c=reader.line("c"), type=_type(reader, "type"))
    reader.done()
    return parameter


def _symbol(reader: Reader, name: str) -> str:
    """Return the C symbol `name` of the object."""
    value = reader.line(name, 256)
    if not (value.isascii() and value.isidentifier()):
        raise reader.fail(name, f"must be a C identifier, not {value[:80]!r}")
    return value


def _type(reader: Reader, name: str) -> CType:
    value = reader.any(name)
    if type(value) is str:
        if (base := BASE_TYPES.get(value)) is None:
            raise reader.fail(name, f"names the unknown base type {value[:80]!r}")
        return base
    inner = reader.object(name)
    type_ = _compound(inner, inner.string("kind"))
    inner.done()
    return type_


def _compound(reader: Reader, kind: str) -> CType:
    match kind:
        case "pointer":
            return Pointer(_type(reader, "target"), reader.boolean("const"))
        case "array":
            return Array(_type(reader, "element"), reader.integer("length", 0, _SIZE_LIMIT))
        case "record":
            return RecordRef(reader.line("name", 256))
        case "enum":
            return EnumRef(reader.line("name", 256))
        case "function":
            parameters = reader.array("parameters")
            slots = Reader({str(n): item for n, item in enumerate(parameters)}, f"{reader.path}.parameters")
            return FunctionType(
                _type(reader, "result"),
                tuple(_type(slots, str(n)) for n in range(len(parameters))),
                reader.boolean("variadic"),
            )
        case "opaque":
            return Opaque(reader.line("name", 256))
        case "integer" | "float":
            name = reader.line("name", 256)
            if name in BASE_TYPES:
                raise reader.fail("name", f"is the base type {name!r}, which is written by name alone")
            size = reader.integer("size", 1, 16)
            if size.bit_count() != 1:
                raise reader.fail("size", f"must be a power of two, not {size}")
            return Integer(name, size, reader.boolean("signed")) if kind == "integer" else Float(name, size)
    raise reader.fail("kind", f"is unknown: {kind[:40]!r}")


def _record(reader: Reader) -> Record:
    record = Record(
        name=reader.line("name", 256),
        kind="union" if reader.choice("kind", ("struct", "union")) == "union" else "struct",
        size=reader.integer("size", 0, _SIZE_LIMIT),
        align=reader.integer("align", 1, 4096),
        complete=reader.boolean("complete"),
        doc=reader.text("doc"),
        fields=tuple(_field(item) for item in reader.objects("fields")),
    )
    reader.done()
    if not record.complete and (record.fields or record.size):
        raise reader.fail(None, "is not complete, so it has neither size nor fields")
    return record


def _field(reader: Reader) -> Field:
    bits = None
    if reader.any("bits") is not None:
        pair = reader.array("bits")
        if [type(item) for item in pair] != [int, int] or pair[0] < 0 or pair[1] < 1:
            raise reader.fail("bits", "must be null or [first bit, width]")
        bits = (pair[0], pair[1])
    field = Field(
        name=reader.line("name", 256),
        offset=reader.integer("offset", 0, _SIZE_LIMIT),
        type=_type(reader, "type"),
        bits=bits,
    )
    reader.done()
    return field


def _enum(reader: Reader) -> Enum:
    held = _type(reader, "type")
    if not isinstance(held, Integer):
        raise reader.fail("type", "must be an integer type")
    values = []
    for number, item in enumerate(reader.array("values")):
        match item:
            case [str(name), value] if (parsed := parse_integer(value)) is not None:
                values.append((reader.check_line(f"values[{number}]", name, 256), parsed))
            case _:
                raise reader.fail(f"values[{number}]", "must be [name, integer]")
    enum = Enum(name=reader.line("name", 256), type=held, values=tuple(values), doc=reader.text("doc"))
    reader.done()
    return enum


def _typedef(reader: Reader) -> Typedef:
    typedef = Typedef(name=_symbol(reader, "name"), type=_type(reader, "type"))
    reader.done()
    return typedef


def _constant(reader: Reader) -> Constant:
    name = _symbol(reader, "name")
    kind = reader.choice("kind", ("int", "float", "str"))
    value: int | str | None
    if kind == "int":
        value = parse_integer(reader.any("value"))
        if value is None:
            raise reader.fail("value", "must be an integer")
        constant = Constant(name=name, kind="int", value=value)
    elif kind == "float":
        value = reader.string("value")
        if not re.fullmatch(_HEX_FLOAT, value):
            raise reader.fail("value", "must be a float in hexadecimal, such as 0x1.8p+0")
        constant = Constant(name=name, kind="float", value=value)
    else:
        constant = Constant(name=name, kind="str", value=reader.string("value"))
    reader.done()
    return constant
