"""The numbers of test vectors: their bytes in memory, the patterns that make them, and when an answer is right.

Invariant: the bytes are those of the VIS data model (little-endian, IEEE 754) on every host. The spec is
docs/spec/vectors.md, sections "Elements", "Patterns" and "Comparison".
"""

from __future__ import annotations

import array
import math
import re
import sys
from collections.abc import Iterable, Iterator

from visget.digest import digest_bytes
from visget.format.vectors import (
    After,
    AfterBytes,
    AfterDigest,
    Elements,
    ElementType,
    Expect,
    ExpectFloat,
    ExpectInt,
    ExpectText,
    Pattern,
)

ELEMENT_SIZES: dict[ElementType, int] = {
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "f32": 4,
    "f64": 8,
}
_CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I"} | {
    "i64": "q",
    "u64": "Q",
    "f32": "f",
    "f64": "d",
}
_DECIMAL = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?\Z")
_HEXADECIMAL = re.compile(r"-?0[xX][0-9a-fA-F]{1,40}(?:\.[0-9a-fA-F]{1,40})?[pP][+-]?[0-9]{1,5}\Z")
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# Knuth's MMIX generator.
_LCG_MULTIPLIER = 6364136223846793005
_LCG_INCREMENT = 1442695040888963407
_MASK = 2**64 - 1


def parse_float(text: str) -> float:
    """Return the binary64 nearest to the number that `text` spells.

    Raises:
        ValueError: it spells none, or one that is not finite although it is not inf or nan.
    """
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _DECIMAL.match(text):
            value = float(text)
        elif _HEXADECIMAL.match(text):
            value = float.fromhex(text)
        else:
            raise ValueError(f"not a float: {text[:80]!r}")
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"too large for a float: {text[:80]!r}")
    return value


def element_count(values: Elements) -> int:
    """Return how many elements `values` stands for."""
    return values.count if isinstance(values, Pattern) else len(values)


def element_bytes(type_: ElementType, values: Elements) -> bytes:
    """Return `values` as they lie in memory.

    Raises:
        ValueError: a value does not fit into the type.
    """
    if isinstance(values, Pattern):
        return _pattern_bytes(type_, values)
    numbers: Iterable[int | float]
    if type_ in ("f32", "f64"):
        numbers = [parse_float(str(value)) for value in values]
    else:
        if not all(isinstance(value, int) for value in values):
            raise ValueError(f"{type_} elements are integers")
        numbers = [int(value) for value in values]
    try:
        packed = _packed(type_, numbers)
    except OverflowError as error:
        raise ValueError(f"a value does not fit into {type_}: {error}") from error
    if type_ == "f32":
        for number, stored in zip(numbers, _unpacked(type_, packed), strict=True):
            if math.isinf(stored) and not math.isinf(number):
                raise ValueError(f"{number!r} does not fit into f32")
    return packed


def _packed(type_: str, numbers: Iterable[int | float]) -> bytes:
    held: array.array[float] = array.array(_CODES[type_], numbers)
    if sys.byteorder == "big":
        held.byteswap()
    return held.tobytes()


def _unpacked(type_: str, data: bytes | memoryview) -> array.array[float]:
    held: array.array[float] = array.array(_CODES[type_])
    held.frombytes(data)
    if sys.byteorder == "big":
        held.byteswap()
    return held


def _pattern_bytes(type_: ElementType, pattern: Pattern) -> bytes:
    bits = 8 * ELEMENT_SIZES[type_]
    numbers: Iterable[int | float]
    if pattern.kind == "ramp":
        counting = range(pattern.seed, pattern.seed + pattern.count)
        if type_ in ("f32", "f64"):
            numbers = map(float, counting)
        else:
            mask = 2**bits - 1
            numbers = [number & mask for number in counting]
    else:
        states = _lcg(pattern.seed, pattern.count)
        if type_ == "f32":
            numbers = [(state >> 40) * 2.0**-23 - 1.0 for state in states]
        elif type_ == "f64":
            numbers = [(state >> 11) * 2.0**-52 - 1.0 for state in states]
        else:
            numbers = [state >> 64 - bits for state in states]
    # A signed element has the bits of the unsigned number.
    return _packed(type_.replace("i", "u"), numbers)


def _lcg(seed: int, count: int) -> Iterator[int]:
    state, multiplier, increment, mask = seed, _LCG_MULTIPLIER, _LCG_INCREMENT, _MASK
    for _ in range(count):
        state = state * multiplier + increment & mask
        yield state


def is_close(got: float, want: float, rel: float, abs_: float) -> bool:
    """Tell whether `got` is the expected float: equal, both NaN, or within ``abs + rel * |want|``."""
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if math.isinf(want) or math.isinf(got):
        return got == want
    return abs(got - want) <= abs_ + rel * abs(want)


def compare_result(expect: Expect, got: float | bytes | None) -> str | None:
    """Return why `got` is not the expected result, or None when it is.

    Args:
        expect: what the vector says.
        got: the integer or float returned, or the address; for ExpectText the bytes before the NUL, or None for a
            null pointer.
    """
    if isinstance(expect, ExpectInt):
        return None if got == expect.value else f"returned {got!r}, not {expect.value}"
    if isinstance(expect, ExpectFloat):
        want = parse_float(expect.text)
        if isinstance(got, int | float) and is_close(got, want, parse_float(expect.rel), parse_float(expect.abs)):
            return None
        return f"returned {got!r}, not {expect.text} (rel {expect.rel}, abs {expect.abs})"
    if isinstance(expect, ExpectText):
        return None if got == expect.text.encode() else f"returned {_short(got)}, not {_short(expect.text.encode())}"
    return None if got else "returned null"


def compare_buffer(type_: ElementType, after: After, got: bytes | memoryview) -> str | None:
    """Return why the buffer `got` is not what the vector expects after the call, or None when it is."""
    if isinstance(after, AfterDigest):
        actual = digest_bytes(got)
        return None if actual == after.sha256 else f"the digest of the buffer is {actual}, not {after.sha256}"
    if isinstance(after, AfterBytes):
        head = bytes(got[: len(after.data)])
        if head == after.data:
            return None
        place = next((n for n, (a, b) in enumerate(zip(head, after.data, strict=False)) if a != b), len(head))
        return f"byte {place} of the buffer differs: {_short(head[place:])}, not {_short(after.data[place:])}"
    expected = element_bytes(type_, after.values)
    head = bytes(got[: len(expected)])
    if head == expected:
        return None
    wanted = _unpacked(type_, expected)
    found = _unpacked(type_, head[: len(head) // ELEMENT_SIZES[type_] * ELEMENT_SIZES[type_]])
    if len(found) < len(wanted):
        return f"the buffer holds {len(found)} elements; {len(wanted)} are expected"
    rel, abs_ = parse_float(after.rel), parse_float(after.abs)
    for number, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if not (is_close(a, b, rel, abs_) if type_ in ("f32", "f64") else a == b):
            tolerance = f" (rel {after.rel}, abs {after.abs})" if type_ in ("f32", "f64") else ""
            return f"element {number} of the buffer is {a!r}, not {b!r}{tolerance}"
    return None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
