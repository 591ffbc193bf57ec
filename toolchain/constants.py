"""The values of the macros and enums in the public headers, as the compiler itself computes them.

Invariant: a value comes out of a constant that clang folded; a macro that is not a constant expression of integer,
floating or string type gives nothing. C is never evaluated here.
"""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from visget.format.prototypes import BASE_TYPES, Constant, Enum, Integer
from visget.toolchain.ctypescope import RawEnum


class Reader(Protocol):
    """What runs clang over the headers."""

    includes: str

    def run(self, *flags: str, source: str | None = None) -> tuple[int, str, str]:
        """Run clang over `source`, or over all headers; return its status, output and messages."""

    def read(self, *flags: str) -> str:
        """Return what clang prints about the headers."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A folded constant."""

    kind: str
    value: int | float | str


_MARKER = re.compile(r'# \d+ "((?:\\.|[^"\\])*)"')
_DEFINE = re.compile(r"#define ([A-Za-z]\w*|_[a-z0-9]\w*) (.+)")
_UNDEF = re.compile(r"#undef (\w+)")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_AT_FAULT = re.compile(r"^visget-probe:(\d+):\d+: (?:fatal )?error:", re.MULTILINE)
_GLOBAL = re.compile(r"^@visget_(\w)_(\d+) = (?:\w+ )*?constant (.*?)(?:, align \d+)?$", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")

_INTEGERS = (
    "_Bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long",
    "unsigned long", "long long", "unsigned long long",
)  # fmt: skip
_KINDS = [*(f"{name}: 1" for name in _INTEGERS), "float: 2", "double: 2", "char *: 3", "const char *: 3", "default: 0"]
_KIND = f"const int visget_v_{{n}} = _Generic(({{e}}), {', '.join(_KINDS)});"
_VALUES = {
    1: "const unsigned long long visget_v_{n} = (unsigned long long)({e}); const int visget_n_{n} = ({e}) < 0;",
    2: "const double visget_f_{n} = ({e});",
    3: "const char visget_s_{n}[] = {e};",
}
_ROUNDS = 12


def evaluate(reader: Reader, expressions: Sequence[str]) -> list[_Value | None]:
    """Return the value of each C expression in the scope of the headers, or None where it is not a constant."""
    kinds = _probe(reader, {n: _KIND.format(n=n, e=e) for n, e in enumerate(expressions)})
    wanted = {
        n: _VALUES[kind.value].format(n=n, e=expressions[n])
        for n, kind in kinds.items()
        if isinstance(kind.value, int) and kind.value in _VALUES
    }
    values = _probe(reader, wanted)
    return [values.get(n) for n in range(len(expressions))]


def _probe(reader: Reader, lines: Mapping[int, str]) -> dict[int, _Value]:
    """Compile the probe `lines`, leaving out those at fault, and read the constants that came out."""
    left = dict(lines)
    for _ in range(_ROUNDS):
        if not left:
            return {}
        source = reader.includes + "".join(f'#line {n + 1} "visget-probe"\n{line}\n' for n, line in left.items())
        status, stdout, stderr = reader.run("-ferror-limit=0", "-S", "-emit-llvm", "-o", "-", source=source)
        if status == 0:
            return _folded(stdout)
        faulty = {int(found) - 1 for found in _AT_FAULT.findall(stderr)} & left.keys()
        if not faulty:
            return {}
        left = {n: line for n, line in left.items() if n not in faulty}
    return {}


def _folded(text: str) -> dict[int, _Value]:
    found: dict[int, _Value] = {}
    negative = {number for kind, number, value in _GLOBAL.findall(text) if kind == "n" and value == "i32 1"}
    for kind, number, value in _GLOBAL.findall(text):
        type_, _, constant = value.partition(" ")
        if kind == "v" and re.fullmatch(r"-?\d+", constant):
            bits = int(constant) % (1 << 64)
            signed = number in negative and bits >= 1 << 63
            found[int(number)] = _Value("int", bits - (1 << 64) if signed else bits)
        elif kind == "f" and type_ == "double":
            found[int(number)] = _Value("float", _double(constant))
        elif kind == "s" and (string := _string(value)) is not None:
            found[int(number)] = _Value("str", string)
    return found


def _double(text: str) -> float:
    """Return the number that LLVM writes as a decimal or as the bits in hexadecimal."""
    if text.startswith("0x"):
        number: float = struct.unpack(">d", bytes.fromhex(text[2:].rjust(16, "0")))[0]
        return number
    return float(text)


def _string(value: str) -> str | None:
    if value.endswith("zeroinitializer"):
        return ""
    quoted = re.fullmatch(r'\[\d+ x i8\] c"(.*)"', value)
    if quoted is None:
        return None
    raw = _ESCAPE.sub(
        lambda found: b"\\" if found[1] == b"\\" else bytes.fromhex(found[1].decode()), quoted[1].encode("latin-1")
    )
    try:
        return raw.removesuffix(b"\0").decode("utf-8")
    except UnicodeDecodeError:
        return None


def evaluate_constants(reader: Reader, public: Mapping[str, str], enumerators: Sequence[str]) -> list[Constant]:
    """Return the constants among the macros of the public headers, and the given enum constants, sorted by name."""
    names = sorted({*_macros(reader.read("-E", "-dD"), public), *enumerators})
    constants: list[Constant] = []
    for name, found in zip(names, evaluate(reader, names), strict=True):
        match found:
            case _Value("int", int(number)):
                constants.append(Constant(name=name, kind="int", value=number))
            case _Value("float", float(number)):
                constants.append(Constant(name=name, kind="float", value=number.hex()))
            case _Value("str", str(text)):
                constants.append(Constant(name=name, kind="str", value=text))
    return constants


def _macros(preprocessed: str, public: Mapping[str, str]) -> list[str]:
    """Return the macros without parameters that the public headers leave defined and that may be constants."""
    file = ""
    found: dict[str, None] = {}
    for line in preprocessed.splitlines():
        if marker := _MARKER.match(line):
            file = posixpath.normpath(marker[1])
        elif (define := _DEFINE.match(line)) and file in public:
            if _plausible(define[2]):
                found[define[1]] = None
        elif undef := _UNDEF.match(line):
            found.pop(undef[1], None)
    return list(found)


def _plausible(body: str) -> bool:
    """Leave out what would upset the lines around it; the compiler judges the rest."""
    bare = _STRING.sub("0", body)
    return not set(bare) & set("{};#@`\\") and bare.count("(") == bare.count(")") and "__attribute__" not in bare


def evaluate_enums(reader: Reader, enums: Sequence[RawEnum]) -> list[Enum]:
    """Return the enums with the values of their constants and the integer type that holds them."""
    expressions: list[str] = []
    for enum in enums:
        spelled = enum.spelling or "unsigned int"
        expressions += [f"sizeof({spelled})", f"({spelled})-1 < 0", *enum.constants]
    values = iter(evaluate(reader, expressions))
    result: list[Enum] = []
    for enum in enums:
        size, signed = next(values), next(values)
        numbers = [(name, next(values)) for name in enum.constants]
        listed = tuple((name, v.value) for name, v in numbers if v is not None and isinstance(v.value, int))
        negative = any(number < 0 for _, number in listed)
        width = size.value if size is not None and isinstance(size.value, int) else 4
        below = negative if enum.spelling is None else signed is not None and signed.value == 1
        result.append(Enum(name=enum.name, type=_holder(width, below), values=listed, doc=enum.doc))
    return result


def _holder(size: int, signed: bool) -> Integer:
    name = {1: "signed char" if signed else "char", 2: "short", 4: "int", 8: "long"}.get(size, "int")
    found = BASE_TYPES[name if signed else f"unsigned {name}"]
    if not isinstance(found, Integer):
        raise TypeError(name)
    return found
