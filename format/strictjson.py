"""JSON read strictly and written in one way only, and a reader that knows where in the document it stands.

Invariant: loads() returns only what every JSON reader agrees on: UTF-8 without a byte order mark, no key twice,
no floats, integers of at most 2^53 in magnitude, no lone surrogates, at most 32 levels. dumps() gives the same
bytes for the same value on every machine. A document costs memory in proportion to its bytes and to the count of
its values, and both have a limit. The rules are docs/spec/container.md, section "Strict JSON".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TypeVar

from visget.errors import FormatError, VisgetError
from visget.format.plaintext import is_line, is_text

DEPTH_LIMIT = 32
INTEGER_LIMIT = 2**53
MARKS_LIMIT = 1 << 19
"""The most commas and opening brackets and braces outside strings: about 50 MiB of memory, whatever they make."""
LINE_LIMIT = 4096
"""The characters a one-line string may have unless its own rule says less."""


_T = TypeVar("_T")


class _Refused(Exception):  # noqa: N818 - never leaves this module
    """What is wrong, thrown through the standard parser."""


def loads(data: bytes | memoryview, *, what: str, limit: int, marks: int = MARKS_LIMIT) -> dict[str, Any]:
    """Parse `data`, which must be one JSON object.

    Args:
        data: the encoded document.
        what: what the document is called in error messages.
        limit: the most bytes it may have.
        marks: the most commas and opening brackets and braces it may have outside strings.

    Raises:
        FormatError: it is too long or breaks a rule of strict JSON.
    """
    if len(data) > limit:
        raise FormatError(f"{what} has {len(data)} bytes; at most {limit} are allowed")
    raw = bytes(data)
    try:
        text = raw.decode("utf-8")
        if text.startswith("\ufeff"):
            raise _Refused("a byte order mark")
        _check_marks(raw, marks)
        value = _DECODER.decode(text)
        _check_depth(value)
        # Only an escape can bring a surrogate into decoded UTF-8, and a pair of them is one good character.
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8 (byte {error.start})") from error
    except UnicodeEncodeError as error:
        raise FormatError(f"{what} is not strict JSON: a lone surrogate") from error
    except RecursionError as error:
        raise FormatError(f"{what} is not strict JSON: more than {DEPTH_LIMIT} levels") from error
    except _Refused as error:
        raise FormatError(f"{what} is not strict JSON: {error}") from error
    except json.JSONDecodeError as error:
        raise FormatError(f"{what} is not JSON: {error.msg} (character {error.pos})") from error
    if not isinstance(value, dict):
        raise FormatError(f"{what} is not a JSON object")
    return value


def dumps(value: object) -> bytes:
    """Return `value` as strict JSON: keys sorted, no white space, ASCII, no newline at the end."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Refused(f"the key {(repeated(name for name, _ in pairs) or '')[:80]!r} twice in one object")
    return result


def repeated(names: Iterable[str]) -> str | None:
    """Return the first of `names` that was there before, if any."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _integer(text: str) -> int:
    # Seventeen characters hold every allowed integer with its sign; longer ones are not converted at all.
    if len(text) > 17 or abs(number := int(text)) > INTEGER_LIMIT:
        raise _Refused("an integer beyond 2^53")
    if text == "-0":
        raise _Refused("a negative zero")
    return number


def _float(text: str) -> NoReturn:
    raise _Refused(f"a number that is not an integer ({text[:40]})")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_float
)


_STRING_OR_MARK = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([,\[{])', re.DOTALL)


def _check_marks(raw: bytes, limit: int) -> None:
    """Refuse what would take a hundred bytes of memory for each of its own, before anything is made of it."""
    if len(raw) <= limit or raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= limit:
        return
    # Rare: a huge document, or texts full of punctuation, which the count above took for values.
    left = limit
    for match in _STRING_OR_MARK.finditer(raw):
        left -= match.lastindex is not None
        if left < 0:
            raise _Refused(f"more than {limit} values")


def _check_depth(value: object) -> None:
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT):
        level = [
            item
            for node in level
            for item in (node.values() if type(node) is dict else node if type(node) is list else ())
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return
    raise _Refused(f"more than {DEPTH_LIMIT} levels")


def integer_json(value: int) -> int | str:
    """Return an integer in its JSON form: a decimal string where a JSON number would not be exact everywhere."""
    return value if abs(value) <= INTEGER_LIMIT else str(value)


def parse_integer(value: object) -> int | None:
    """Return the integer that integer_json() wrote, or None when `value` is no such thing."""
    if type(value) is int:
        return value
    if type(value) is str and re.fullmatch("-?[1-9][0-9]{15,39}", value):
        number = int(value)
        return number if abs(number) > INTEGER_LIMIT else None
    return None


class Reader:
    """Typed access to one object of a parsed document; every complaint names the place.

    Args:
        value: the parsed object.
        path: where it stands in the document, such as ``manifest.sections[2]``.
        error: the family of error to raise: FormatError for bytes, UsageError for what a person wrote.
    """

    __slots__ = ("_error", "_object", "_seen", "path")

    def __init__(self, value: object, path: str, error: type[VisgetError] = FormatError) -> None:
        self.path = path
        self._error = error
        if not isinstance(value, dict):
            raise error(f"{path} must be an object, not {_kind(value)}", where=path)
        self._object: dict[str, Any] = value
        self._seen: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._object

    def names(self) -> list[str]:
        """Return the keys, for objects whose keys are data."""
        return list(self._object)

    def fail(self, name: str | None, why: str) -> VisgetError:
        """Return the error that says `why` the value of `name` (or the object itself) is wrong."""
        place = self._below(name) if name else self.path
        return self._error(f"{place} {why}", where=place)

    def _below(self, name: str) -> str:
        # A path may end in words, such as "vector 'a', step 2:".
        return f"{self.path}{' ' if self.path.endswith(':') else '.'}{name}"

    def any(self, name: str) -> Any:
        """Return the value of `name` as it is."""
        try:
            value = self._object[name]
        except KeyError:
            raise self._error(f"{self.path} lacks the key {name!r}", where=self.path) from None
        self._seen.add(name)
        return value

    def _typed(self, name: str, kind: type[_T], word: str) -> _T:
        value = self.any(name)
        # type() and not isinstance(): True is an int to isinstance().
        if type(value) is not kind:
            raise self.fail(name, f"must be {word}, not {_kind(value)}")
        return value

    def string(self, name: str) -> str:
        """Return the string `name`, whatever is in it."""
        return self._typed(name, str, "a string")

    def text(self, name: str) -> str:
        """Return the string `name`, which may hold newlines and tabs but no other control character."""
        value = self._typed(name, str, "a string")
        if not is_text(value):
            raise self.fail(name, "holds a control character")
        return value

    def line(self, name: str, limit: int = LINE_LIMIT) -> str:
        """Return the string `name`, which must be one line of at most `limit` characters."""
        value = self._object.get(name)
        # The short way for nearly all: reading the api section must cost little more than json.loads().
        if type(value) is str and len(value) <= limit and value.isascii() and value.isprintable():
            self._seen.add(name)
            return value
        return self.check_line(name, self.any(name), limit)

    def check_line(self, name: str, value: object, limit: int = LINE_LIMIT) -> str:
        """Return `value`, found at `name`, when it is one line of at most `limit` characters."""
        if type(value) is not str:
            raise self.fail(name, f"must be a string, not {_kind(value)}")
        if len(value) > limit:
            raise self.fail(name, f"has {len(value)} characters; at most {limit} are allowed")
        if not is_line(value):
            raise self.fail(name, "holds a control character or a line end")
        return value

    def nullable_line(self, name: str, limit: int = LINE_LIMIT) -> str | None:
        """Return the one-line string `name`, or None where it is null."""
        return None if self.any(name) is None else self.line(name, limit)

    def integer(self, name: str, low: int = 0, high: int = INTEGER_LIMIT) -> int:
        """Return the integer `name`, which must lie between `low` and `high`."""
        value = self._typed(name, int, "an integer")
        if not low <= value <= high:
            raise self.fail(name, f"is {value}, outside {low} to {high}")
        return value

    def nullable_int(self, name: str, low: int = 0, high: int = INTEGER_LIMIT) -> int | None:
        """Return the integer `name`, or None where it is null."""
        return None if self.any(name) is None else self.integer(name, low, high)

    def boolean(self, name: str) -> bool:
        """Return the truth value `name`."""
        return self._typed(name, bool, "true or false")

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the string `name`, which must be one of `choices`."""
        value = self.any(name)
        if type(value) is not str or value not in choices:
            raise self.fail(name, f"must be one of {', '.join(choices)}, not {str(value)[:40]!r}")
        return value

    def array(self, name: str) -> list[Any]:
        """Return the array `name`."""
        return self._typed(name, list, "an array")

    def lines(self, name: str, limit: int = LINE_LIMIT) -> tuple[str, ...]:
        """Return the array `name` of one-line strings."""
        return tuple(self.check_line(f"{name}[{n}]", item, limit) for n, item in enumerate(self.array(name)))

    def object(self, name: str) -> Reader:
        """Return a reader for the object `name`."""
        return Reader(self.any(name), self._below(name), self._error)

    def holding(self, name: str, value: Any) -> Reader:
        """Return a reader at this place for an object that has only `value`, under `name`."""
        return Reader({name: value}, self.path, self._error)

    def objects(self, name: str) -> Iterator[Reader]:
        """Return readers for the objects in the array `name`."""
        place = self._below(name)
        for number, item in enumerate(self.array(name)):
            yield Reader(item, f"{place}[{number}]", self._error)

    def done(self) -> None:
        """Refuse keys that nobody asked for."""
        if len(self._seen) != len(self._object):
            unknown = sorted(self._object.keys() - self._seen)
            raise self._error(f"{self.path} has the unknown key {unknown[0][:80]!r}", where=self.path)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false", int: "an integer"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")
