"""Numbers on their way into C: what an integer argument accepts, and how it is handed over.

Invariant: an integer reaches the C function unchanged or not at all; ctypes alone would cut 2**32 + 1 to 1 without
a word. The check costs less than it saves: ctypes builds an object for every argument of an ordinary type, while a
converter may return a plain int of up to 32 bits, which is passed as it is (about 60 ns less per argument than
``c_int``; for 64-bit types the objects of the last values are kept, which makes up for the check).
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

from visget.format.cnumbers import INTEGERS

_KEPT = 1024


class Converter:
    """What ctypes wants in ``argtypes``: an object whose ``from_param`` turns an argument into what C gets.

    A refused argument is a TypeError or OverflowError that says what was expected and what to do; the function
    that is called adds its own name and that of the argument (visget.runtime.functions).

    Args:
        from_param: the conversion.
        check: the same conversion with good messages, where `from_param` is one of ctypes' own.
    """

    __slots__ = ("check", "from_param")

    def __init__(self, from_param: Callable[[Any], Any], check: Callable[[Any], Any] | None = None) -> None:
        self.from_param = from_param
        self.check = check or from_param


def integer_argument(size: int, signed: bool, c: str) -> Converter:
    """Return the converter for an integer parameter.

    Args:
        size: bytes: 1, 2, 4 or 8.
        signed: whether the type is signed.
        c: the type as the header spells it, for messages.
    """
    high = 2 ** (8 * size - signed) - 1
    low = -high - 1 if signed else 0

    def index(x: Any) -> int:
        if isinstance(x, ctypes._SimpleCData) and isinstance(x.value, int):
            x = x.value
        try:
            value = int(operator.index(x))
        except TypeError:
            raise TypeError(_not_an_integer(x)) from None
        if not low <= value <= high:
            raise OverflowError(f"{value} does not fit into {c} ({low} to {high})")
        return value

    if size <= 4:
        # ctypes passes a plain int as a C int, whose low bits are the right ones for every smaller type, signed
        # or not, under the calling conventions that libffi knows.
        def narrow(x: Any) -> int:
            if x.__class__ is int and low <= x <= high:
                return x
            return index(x)

        return Converter(narrow)

    wrap = INTEGERS[size, signed].from_param
    kept: dict[int, Any] = {}

    def wide(x: Any) -> Any:
        if x.__class__ is not int:
            x = index(x)
        ready = kept.get(x)
        if ready is not None:
            return ready
        if not low <= x <= high:
            index(x)
        ready = wrap(x)
        # The objects are never changed, so one may serve many calls. When the table is full it stays as it is:
        # arguments that repeat, such as lengths, come early.
        if len(kept) < _KEPT:
            kept[x] = ready
        return ready

    return Converter(wide)


def _not_an_integer(x: object) -> str:
    if isinstance(x, float):
        return f"expected an integer, got the float {x!r}; use int() or round() to say what should happen"
    if isinstance(x, bytes) and len(x) == 1:
        return f"expected an integer, got {x!r}; a character is passed by its number: {x!r}[0]"
    if isinstance(x, str) and len(x) == 1:
        return f"expected an integer, got {x!r}; a character is passed by its number: ord({x!r})"
    return f"expected an integer, got {article(type(x).__name__)}"


def real_argument(size: int) -> Converter:
    """Return the converter for a floating-point parameter of 4 or 8 bytes."""
    wrap: Any = (ctypes.c_float if size == 4 else ctypes.c_double).from_param

    def check(x: Any) -> Any:
        try:
            return wrap(x)
        except TypeError:
            raise TypeError(f"expected a number, got {article(type(x).__name__)}") from None

    return Converter(wrap, check)


def article(noun: str) -> str:
    """Return `noun` with "a" or "an" before it, unless it is "bytes"."""
    if noun == "bytes":
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
