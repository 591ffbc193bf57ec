"""Which calls of the VIS run-time stand for an instruction: docs/spec/front-end.md, section 8.

Invariant: what the instructions that are made compute is what the one that they stand for computes; the made-up names
are not used twice. Instructions that are not in the list, and those on vectors, stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from visget.format.irtext import closing, mask, split_list, split_type, unmask
from visget.toolchain.runtime_table import ROUTINES

WIDE = r"i(?:6[5-9]|[789]\d|1[01]\d|12[0-8])"
"""Integers of 65 to 128 bits."""

_FLAGS = r"(?:(?:nnan|ninf|nsz|arcp|contract|afn|reassoc|fast) )*"
_RESULT = re.compile(r"  (%\S+) = (\w+) ")
_DIVISION = re.compile(rf"(?:udiv|sdiv|urem|srem) (?:exact )?({WIDE}) (.*)")
_ARITHMETIC = re.compile(rf"(?:fadd|fsub|fmul|fdiv|frem) {_FLAGS}(fp128|half|bfloat) (.*)")
_COMPARISON = re.compile(rf"fcmp {_FLAGS}(\w+) (fp128|half|bfloat) (.*)")
_TO_FLOAT = re.compile(r"([su])itofp (?:nneg )?i(\d+) (\S+) to (float|double|fp128|half|bfloat)\b")
_TO_INTEGER = re.compile(r"fpto([su])i (float|double|fp128|half|bfloat) (\S+) to i(\d+)\b")
_EXTENSION = re.compile(rf"fpext {_FLAGS}(half|bfloat|float|double) (\S+) to (float|double|fp128)\b")
_TRUNCATION = re.compile(rf"fptrunc {_FLAGS}(fp128|double|float) (\S+) to (double|float|half|bfloat)\b")
_CALL = re.compile(r"(?:(?:tail|notail) )?call [^@]*?@llvm\.([\w.]+)(?=\()")
_DEBUG = re.compile(r", !dbg !\d+")

_DIVISIONS = {"udiv": "udivti3", "sdiv": "divti3", "urem": "umodti3", "srem": "modti3"}
_OPERATIONS = {"fadd": "addtf3", "fsub": "subtf3", "fmul": "multf3", "fdiv": "divtf3", "frem": "fmodtf"}
_SIGNS = {"s": "sext", "u": "zext"}
_INTO_FLOAT = {
    ("s", "float"): "floattisf", ("s", "double"): "floattidf", ("s", "fp128"): "floattitf",
    ("u", "float"): "floatuntisf", ("u", "double"): "floatuntidf", ("u", "fp128"): "floatuntitf",
}  # fmt: skip
# Less is 1, equal 2, greater 4, unordered 8: LLVM's own code, but for the order of the bits.
_PREDICATES = {
    "false": 0, "olt": 1, "oeq": 2, "ole": 3, "ogt": 4, "one": 5, "oge": 6, "ord": 7,
    "uno": 8, "ult": 9, "ueq": 10, "ule": 11, "ugt": 12, "une": 13, "uge": 14, "true": 15,
}  # fmt: skip
_INTRINSICS = {
    "powi.f32.i32": "powisf2", "powi.f64.i32": "powidf2", "is.fpclass.f128": "isfpclasstf",
    "floor.f128": "floortf", "ceil.f128": "ceiltf", "trunc.f128": "trunctf", "round.f128": "roundtf",
    "rint.f128": "roundeventf", "nearbyint.f128": "roundeventf", "roundeven.f128": "roundeventf",
    "sqrt.f128": "sqrttf", "minnum.f128": "fmintf", "maxnum.f128": "fmaxtf", "minimumnum.f128": "fmintf",
    "maximumnum.f128": "fmaxtf", "fma.f128": "fmatf", "ldexp.f128.i32": "ldexptf",
}  # fmt: skip
_WHOLE_CALL = re.compile(r"l{0,2}(rint|round)\.i(\d+)\.f128\Z")
_WHOLES = {"rint": "roundeventf", "round": "roundtf"}
# On 16 bits: calculated in float by the intrinsic of the same name.
_IN_FLOAT = {
    "fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign", "minnum", "maxnum",
    "minimumnum", "maximumnum",
}  # fmt: skip
_SMALL_CALL = re.compile(r"(\w+)\.(f16|bf16)\Z")
_SATURATING = re.compile(r"fpto([su])i\.sat\.i(\d+)\.(f16|bf16|f32|f64|f128)\Z")
_FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "f128": "fp128"}
_SMALL = {"half": "hf", "bfloat": "bf"}
_CODES = {"float": "sf", "double": "df", "fp128": "tf", **_SMALL}


class Lowering:
    """Replaces instructions, and counts the names that it makes up."""

    def __init__(self, first: int) -> None:
        self._next = first
        self.used: set[str] = set()
        self.intrinsics: dict[str, str] = {}
        """The declarations of LLVM's own functions that are called now."""
        self._lowerings: dict[str, Callable[[str, str, str], Iterator[str]]] = {
            **dict.fromkeys(_DIVISIONS, self._division),
            **dict.fromkeys(_OPERATIONS, self._arithmetic),
            "fcmp": self._comparison,
            "sitofp": self._to_float,
            "uitofp": self._to_float,
            "fptosi": self._to_integer,
            "fptoui": self._to_integer,
            "fpext": self._extension,
            "fptrunc": self._truncation,
            "call": self._call,
            "tail": self._call,
            "notail": self._call,
        }

    def lines(self, line: str) -> list[str]:
        """Return what stands for one line of a module; most lines stand for themselves."""
        masked, strings = mask(line) if '"' in line else (line, ())
        match = _RESULT.match(masked)
        lowering = self._lowerings.get(match[2]) if match is not None else None
        if match is None or lowering is None:
            return [line]
        debug = _DEBUG.search(masked)
        place = debug[0] if debug else ""
        made = [f"  {new}{place}" for new in lowering(match[1], match[2], masked[match.start(2) :])]
        return [unmask(new, strings) for new in made] or [line]

    def _fresh(self) -> str:
        self._next += 1
        return f"%vis.rt.{self._next - 1}"

    def _routine(self, short: str, *values: str) -> str:
        name = f"vis_rt_{short}"
        self.used.add(name)
        return ROUTINES[name].call(*values)

    def _division(self, result: str, operation: str, text: str) -> Iterator[str]:
        match = _DIVISION.match(text)
        if match is None:
            return
        kind, (left, right, *_) = match[1], split_list(match[2])
        if kind == "i128":
            yield f"{result} = {self._routine(_DIVISIONS[operation], left, right)}"
            return
        extend = _SIGNS["u" if operation.startswith("u") else "s"]
        values = [self._fresh(), self._fresh()]
        for wide, narrow in zip(values, (left, right), strict=True):
            yield f"{wide} = {extend} {kind} {narrow} to i128"
        whole = self._fresh()
        yield f"{whole} = {self._routine(_DIVISIONS[operation], *values)}"
        yield f"{result} = trunc i128 {whole} to {kind}"

    def _arithmetic(self, result: str, operation: str, text: str) -> Iterator[str]:
        match = _ARITHMETIC.match(text)
        if match is None:
            return
        left, right = split_list(match[2])[:2]
        if match[1] == "fp128":
            yield f"{result} = {self._routine(_OPERATIONS[operation], left, right)}"
            return
        values = [self._fresh(), self._fresh()]
        for wide, narrow in zip(values, (left, right), strict=True):
            yield from self._widen(wide, match[1], narrow)
        whole = self._fresh()
        yield f"{whole} = {operation} float {values[0]}, {values[1]}"
        yield from self._narrow(result, match[1], "float", whole)

    def _widen(self, result: str, kind: str, value: str) -> Iterator[str]:
        """Convert a number of 16 bits to float."""
        bits = self._fresh()
        yield f"{bits} = bitcast {kind} {value} to i16"
        if kind == "half":
            yield f"{result} = {self._routine('extendhfsf2', bits)}"
            return
        long, upper = self._fresh(), self._fresh()
        yield f"{long} = zext i16 {bits} to i32"
        yield f"{upper} = shl i32 {long}, 16"
        yield f"{result} = bitcast i32 {upper} to float"

    def _narrow(self, result: str, kind: str, source: str, value: str) -> Iterator[str]:
        """Convert a number to 16 bits, in one rounding."""
        bits = self._fresh()
        yield f"{bits} = {self._routine(f'trunc{_CODES[source]}{_SMALL[kind]}2', value)}"
        yield f"{result} = bitcast i16 {bits} to {kind}"

    def _comparison(self, result: str, _operation: str, text: str) -> Iterator[str]:
        match = _COMPARISON.match(text)
        if match is None:
            return
        left, right = split_list(match[3])[:2]
        if match[2] == "fp128":
            order, chosen = self._fresh(), self._fresh()
            yield f"{order} = {self._routine('cmptf2', left, right)}"
            yield f"{chosen} = and i32 {order}, {_PREDICATES[match[1]]}"
            yield f"{result} = icmp ne i32 {chosen}, 0"
            return
        values = [self._fresh(), self._fresh()]
        for wide, narrow in zip(values, (left, right), strict=True):
            yield from self._widen(wide, match[2], narrow)
        yield f"{result} = fcmp {match[1]} float {values[0]}, {values[1]}"

    def _to_float(self, result: str, operation: str, text: str) -> Iterator[str]:
        match = _TO_FLOAT.match(text)
        if match is None or int(match[2]) > 128:
            return
        sign, bits, value, kind = match.groups()
        if kind in _SMALL:
            # Exact up to 2^53; binary16 ends at 65504, and a larger bfloat16 is rounded twice, as compilers do it.
            whole = self._fresh()
            made = list(self._to_float(whole, operation, f"{operation} i{bits} {value} to double"))
            yield from made or [f"{whole} = {operation} i{bits} {value} to double"]
            yield from self._narrow(result, kind, "double", whole)
            return
        if kind != "fp128" and int(bits) <= 64:
            return
        if bits != "128":
            wide = self._fresh()
            yield f"{wide} = {_SIGNS[sign]} i{bits} {value} to i128"
            value = wide
        yield f"{result} = {self._routine(_INTO_FLOAT[sign, kind], value)}"

    def _to_integer(self, result: str, operation: str, text: str) -> Iterator[str]:
        match = _TO_INTEGER.match(text)
        if match is not None:
            sign, kind, value, bits = match.groups()
            plain = f"{operation} float {{}} to i{bits}" if kind in _SMALL else None
            yield from self._integer_of(result, sign, kind, value, int(bits), plain)

    def _integer_of(
        self, result: str, sign: str, kind: str, value: str, bits: int, plain: str | None = None
    ) -> Iterator[str]:
        """Convert to `bits` bits; out of range, where the instruction means nothing, the nearest number will do.

        Where a conversion from float needs nothing of the run-time, `plain` is what converts a number of 16 bits.
        """
        if bits > 128 or (kind != "fp128" and bits <= 64 and plain is None):
            return
        if kind in _SMALL:
            single = self._fresh()
            yield from self._widen(single, kind, value)
            kind, value = "float", single
            if bits <= 64 and plain is not None:
                yield f"{result} = {plain.format(value)}"
                return
        if kind == "float":
            double = self._fresh()
            yield f"{double} = fpext float {value} to double"
            value = double
        short = ("fixtfti" if sign == "s" else "fixunstfti") if kind == "fp128" else (
            "fixdfti" if sign == "s" else "fixunsdfti"
        )  # fmt: skip
        if bits == 128:
            yield f"{result} = {self._routine(short, value, str(bits))}"
            return
        whole = self._fresh()
        yield f"{whole} = {self._routine(short, value, str(bits))}"
        yield f"{result} = trunc i128 {whole} to i{bits}"

    def _extension(self, result: str, _operation: str, text: str) -> Iterator[str]:
        match = _EXTENSION.match(text)
        if match is None or (match[1] not in _SMALL and match[3] != "fp128"):
            return
        kind, value, into = match.groups()
        if kind in _SMALL:
            single = result if into == "float" else self._fresh()
            yield from self._widen(single, kind, value)
            if into == "double":
                yield f"{result} = fpext float {single} to double"
            if into != "fp128":
                return
            kind, value = "float", single
        if kind == "float":
            double = self._fresh()
            yield f"{double} = fpext float {value} to double"
            value = double
        yield f"{result} = {self._routine('extenddftf2', value)}"

    def _truncation(self, result: str, _operation: str, text: str) -> Iterator[str]:
        match = _TRUNCATION.match(text)
        if match is None:
            return
        kind, value, into = match.groups()
        if into in _SMALL:
            yield from self._narrow(result, into, kind, value)
        elif kind == "fp128":
            yield f"{result} = {self._routine('trunctfsf2' if into == 'float' else 'trunctfdf2', value)}"

    def _call(self, result: str, _operation: str, text: str) -> Iterator[str]:
        match = _CALL.match(text)
        if match is None:
            return
        name, arguments = match[1], text[match.end() + 1 : closing(text, match.end())]
        values = [_value(argument) for argument in split_list(arguments)]
        saturating = _SATURATING.match(name)
        if saturating is not None:
            sign, bits, code = saturating.groups()
            kind = _FLOATS[code]
            if kind in _SMALL and int(bits) <= 64:
                # The float form of it may not be declared: the run-time saturates as well.
                single, double, whole = self._fresh(), self._fresh(), self._fresh()
                yield from self._widen(single, kind, values[0])
                yield f"{double} = fpext float {single} to double"
                yield f"{whole} = {self._routine('fixdfti' if sign == 's' else 'fixunsdfti', double, bits)}"
                yield f"{result} = trunc i128 {whole} to i{bits}"
                return
            yield from self._integer_of(result, sign, kind, values[0], int(bits))
        elif name == "fmuladd.f128":
            product = self._fresh()
            yield f"{product} = {self._routine('multf3', *values[:2])}"
            yield f"{result} = {self._routine('addtf3', product, values[2])}"
        elif (rounding := _WHOLE_CALL.match(name)) is not None:
            nearest = self._fresh()
            yield f"{nearest} = {self._routine(_WHOLES[rounding[1]], *values)}"
            yield from self._integer_of(result, "s", "fp128", nearest, int(rounding[2]))
        elif name == "modf.f128":
            fraction, integral, pair = (self._fresh() for _ in range(3))
            yield f"{fraction} = {self._routine('modftf', *values)}"
            yield f"{integral} = {self._routine('trunctf', *values)}"
            yield f"{pair} = insertvalue {{ fp128, fp128 }} poison, fp128 {fraction}, 0"
            yield f"{result} = insertvalue {{ fp128, fp128 }} {pair}, fp128 {integral}, 1"
        elif (small := _SMALL_CALL.match(name)) is not None:
            yield from self._small_call(result, small[1], _FLOATS[small[2]], values)
        elif name == "smul.with.overflow.i128":
            product, told, flag, pair = (self._fresh() for _ in range(4))
            yield f"{product} = mul i128 {values[0]}, {values[1]}"
            yield f"{told} = {self._routine('mulovti', *values)}"
            yield f"{flag} = icmp ne i32 {told}, 0"
            yield f"{pair} = insertvalue {{ i128, i1 }} poison, i128 {product}, 0"
            yield f"{result} = insertvalue {{ i128, i1 }} {pair}, i1 {flag}, 1"
        elif name in _INTRINSICS:
            yield f"{result} = {self._routine(_INTRINSICS[name], *values)}"


    def _small_call(self, result: str, name: str, kind: str, values: list[str]) -> Iterator[str]:
        if name == "fmuladd":
            product = self._fresh()
            yield from self._arithmetic(product, "fmul", f"fmul {kind} {values[0]}, {values[1]}")
            yield from self._arithmetic(result, "fadd", f"fadd {kind} {product}, {values[2]}")
        elif name in _IN_FLOAT:
            wide = [self._fresh() for _ in values]
            for to, value in zip(wide, values, strict=True):
                yield from self._widen(to, kind, value)
            whole = self._fresh()
            self.intrinsics[f"llvm.{name}.f32"] = f"declare float @llvm.{name}.f32({', '.join(['float'] * len(wide))})"
            yield f"{whole} = call float @llvm.{name}.f32({', '.join(f'float {value}' for value in wide)})"
            yield from self._narrow(result, kind, "float", whole)


def _value(argument: str) -> str:
    """Return an argument of a call without its type and attributes."""
    return split_type(argument)[1].split(" ")[-1]
