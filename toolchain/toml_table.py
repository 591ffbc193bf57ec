"""Reading a TOML file of an author into typed values, with errors that name file, line and key.

Invariant: a value that leaves a Table has the type that was asked for, and Table.done() has refused every key that
nobody asked for: a misspelt key never passes in silence.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from visget.errors import UsageError, VisgetError
from visget.nearest import nearest
from visget.toolchain.paths import path_problem
from visget.toolchain.toml_lines import Place, places

_SIZE_LIMIT = 4 << 20
_DIGITS = 4300
"""How many digits int() takes, and thereby tomllib; TOML itself promises only 64 bits."""
_LONG_NUMBER = re.compile(rf"(?:\d_?){{{_DIGITS + 1}}}")
_WORDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "a table",
}


class Document:
    """The text of one TOML file: it knows its lines."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._places = places(text)

    def where(self, place: Place) -> str:
        """Return ``file:line`` of `place`, or of the nearest thing around it that has a line."""
        for end in range(len(place), 0, -1):
            if place[:end] in self._places:
                return f"{self.path}:{self._places[place[:end]]}"
        return f"{self.path}:1"

    def fail(self, place: Place, problem: str, hint: str | None = None) -> NoReturn:
        """Raise the error for the key at `place`."""
        key = show_place(place)
        message = f"{key}: {problem}" if key else problem
        raise UsageError(message, hint=hint, where=self.where(place), details={"key": key})


def show_place(place: Place) -> str:
    """Return `place` as an author would write it: ``build.flags[2]``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else repr(part)[:60]
            text += f".{shown}" if text else shown
    return text


def suggest(word: str, known: Collection[str]) -> str | None:
    """Return a hint that names the known word nearest to `word`, else all of them."""
    near = nearest(word.lower(), known)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known here: {', '.join(sorted(known))}" if known else None


class Table:
    """One table of a document, read key by key."""

    def __init__(self, document: Document, place: Place, data: Mapping[str, Any]) -> None:
        self.document = document
        self.place = place
        self._data = data
        self._asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def peek(self, key: str) -> object:
        """Return the raw value of `key`, or None."""
        self._asked.add(key)
        return self._data.get(key)

    def fail_here(self, problem: str, hint: str | None = None) -> NoReturn:
        """Raise the error for this table as a whole."""
        self.document.fail(self.place, problem, hint)

    def fail(self, key: str, problem: str, hint: str | None = None) -> NoReturn:
        """Raise the error for `key` of this table."""
        self.document.fail((*self.place, key), problem, hint)

    def get(self, key: str, kind: type[Any], example: str) -> Any | None:
        """Return the value of `key`, which must be of the TOML type `kind`; None when it is absent."""
        self._asked.add(key)
        value = self._data.get(key)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            self.fail(key, f"expected {_WORDS[kind]}, found {_describe(value)}", f"write {key} = {example}")
        return value

    def require(self, key: str, example: str) -> None:
        """Refuse a table without `key`."""
        self._asked.add(key)
        if key not in self._data:
            near = nearest(key, self._data.keys() - self._asked)
            self.document.fail(
                (*self.place, *near),
                f"unknown key; did you mean {key!r}?" if near else f"the key {key!r} is missing",
                f"write {key} = {example}",
            )

    def text(self, key: str, example: str, *, limit: int = 4096) -> str | None:
        """Return the string at `key`; it is one line, not empty, without control characters."""
        value: str | None = self.get(key, str, example)
        if value is not None:
            self._check_line(key, value, limit, f"write {key} = {example}")
        return value

    def _check_line(self, key: str, value: str, limit: int, hint: str) -> None:
        if not value.strip():
            self.fail(key, "is empty", hint)
        if not value.isprintable():
            self.fail(key, "expected one line without control characters", hint)
        if len(value) > limit:
            self.fail(key, f"is longer than {limit} characters")

    def needed(self, key: str, example: str, *, limit: int = 4096) -> str:
        """Return the string at `key`, which must be there."""
        self.require(key, example)
        value = self.text(key, example, limit=limit)
        if value is None:  # unreachable; require() has raised
            raise AssertionError(key)
        return value

    def choice(self, key: str, words: Sequence[str], default: str) -> str:
        """Return the string at `key`, which must be one of `words`."""
        value: str | None = self.get(key, str, f'"{default}"')
        if value is not None and value not in words:
            listed = ", ".join(f'"{word}"' for word in words)
            self.fail(key, f"expected one of {listed}, found {value[:40]!r}", suggest(value, words))
        return value or default

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """Return the strings of the array at `key`; empty when it is absent."""
        values: list[Any] = self.get(key, list, example) or []
        for index, value in enumerate(values):
            place = (*self.place, key, index)
            if not isinstance(value, str):
                self.document.fail(place, f"expected a string, found {_describe(value)}", f"write {key} = {example}")
            if not value.strip() or not value.isprintable():
                self.document.fail(place, "expected one line of text without control characters")
            if value in values[:index]:
                self.document.fail(place, f"{value!r} is there twice", "remove one of the two")
        return tuple(values)

    def path(self, key: str, example: str) -> str | None:
        """Return the relative path at `key`."""
        text = self.text(key, example)
        problem = path_problem(text) if text is not None else None
        if problem is not None:
            self.fail(key, problem)
        return text

    def paths(self, key: str, example: str) -> tuple[str, ...]:
        """Return the relative paths or patterns of the array at `key`; empty when it is absent."""
        texts = self.texts(key, example)
        for index, text in enumerate(texts):
            problem = path_problem(text)
            if problem is not None:
                self.document.fail((*self.place, key, index), problem)
        return texts

    def table(self, key: str) -> Table:
        """Return the table at `key`; an empty one when it is absent."""
        value = self.get(key, dict, "{ }")
        return Table(self.document, (*self.place, key), value or {})

    def parsed(self, key: str, error: VisgetError) -> NoReturn:
        """Raise `error`, met while parsing the value of `key`, with its place."""
        self.fail(key, error.message, error.hint)

    def only(self, known: Collection[str]) -> None:
        """Refuse every key but the `known` ones."""
        for key, value in self._data.items():
            if key not in known:
                kind = "table" if isinstance(value, dict) or _is_tables(value) else "key"
                self.fail(key, f"unknown {kind}", suggest(key, known))

    def done(self) -> None:
        """Refuse the keys that nobody has asked for."""
        self.only(self._asked)


def read_document(path: Path) -> Table:
    """Read the TOML file at `path`.

    Raises:
        UsageError: there is no such file, or it is not TOML; line and column are named.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no {path.name} here", where=str(path), hint="run `visget init` to write one"
        ) from error
    except OSError as error:
        raise UsageError(f"cannot read {path.name}: {error.strerror}", where=str(path)) from error
    if len(data) > _SIZE_LIMIT:
        raise UsageError(f"{path.name} is larger than {_SIZE_LIMIT} bytes", where=str(path))
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path.name} is not UTF-8 text", where=f"{path}:{line}") from error
    if text.startswith("\ufeff"):
        raise UsageError(
            f"{path.name} begins with a byte order mark, which TOML does not allow",
            where=f"{path}:1:1",
            hint="save it as UTF-8 without a byte order mark (BOM)",
        )
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, at = _syntax_error(str(error), text)
        raise UsageError(
            f"{path.name} is not valid TOML: {problem}",
            where=f"{path}:{at}",
            hint="strings need quotes, arrays brackets, and each key stands once in its table",
        ) from error
    except ValueError as error:  # an integer of thousands of digits, which tomllib leaves to int()
        found = _LONG_NUMBER.search(text)
        line = text.count("\n", 0, found.start()) + 1 if found else 1
        raise UsageError(
            f"{path.name} is not valid TOML: an integer of more than {_DIGITS} digits", where=f"{path}:{line}"
        ) from error
    except RecursionError as error:
        raise UsageError(f"{path.name} nests arrays or tables too deeply", where=str(path)) from error
    return Table(Document(path, text), (), values)


def _syntax_error(message: str, text: str) -> tuple[str, str]:
    """Split "problem (at line 3, column 5)" into the problem and "3:5"."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if match is not None:
        return match[1], f"{match[2]}:{match[3]}"
    # "at end of document" is all that tomllib says there.
    return message, str(text.count("\n") + 1)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _describe(value: object) -> str:
    for kind, word in _WORDS.items():
        if isinstance(value, kind):
            return f"{word} ({value!r})" if kind in (int, float, str) and len(repr(value)) < 40 else word
    return "a date or time"
