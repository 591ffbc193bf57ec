"""Finding the line of every key and array element of a TOML document, which tomllib does not tell.

Invariant: the text has passed tomllib before, so this scanner may be lenient: it follows the structure of a valid
document (TOML 1.0) and understands no values.
"""

from __future__ import annotations

import bisect
import re
import tomllib

Place = tuple[str | int, ...]
"""A key path, such as ("build", "flags", 2): tables by name, elements of arrays by number."""

_HEADER = re.compile(r"\[\[?")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_KEY_PART = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_STRING = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*\'''',
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n]*")


def places(text: str) -> dict[Place, int]:
    """Return the line (counted from 1) on which each table, key and array element of `text` begins."""
    return _Scanner(text).scan()


class _Scanner:
    """One pass over a document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._found: dict[Place, int] = {}
        self._counts: dict[Place, int] = {}  # how many [[tables]] of this path there have been

    def scan(self) -> dict[Place, int]:
        table: Place = ()
        while self._skip(_BLANK):
            header = _HEADER.match(self._text, self._at)
            if header is None:
                self._pair(table)
                continue
            line = self._line()
            self._at = header.end()
            table = self._resolve(self._key(), array=len(header[0]) == 2)
            self._note(table, line)
            self._skip(_SPACE)
            self._at += len(header[0])
        return self._found

    def _resolve(self, names: list[str], *, array: bool) -> Place:
        """Turn the names of a header into a path: a name of an array means its last table so far."""
        path: Place = ()
        for depth, name in enumerate(names):
            path = (*path, name)
            if array and depth == len(names) - 1:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _pair(self, table: Place) -> None:
        line = self._line()
        path = table
        for name in self._key():
            path = (*path, name)
            self._note(path, line)
        self._skip(_SPACE)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: Place) -> None:
        start = self._text[self._at : self._at + 1]
        if start == "[":
            self._array(path)
        elif start == "{":
            self._inline_table(path)
        elif not self._take(_STRING):
            self._take(_SCALAR)

    def _array(self, path: Place) -> None:
        self._at += 1
        index = 0
        while self._skip(_BLANK) and self._text[self._at] != "]":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._note((*path, index), self._line())
            self._value((*path, index))
            index += 1
        self._at += 1

    def _inline_table(self, path: Place) -> None:
        self._at += 1
        while self._skip(_BLANK) and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._pair(path)
        self._at += 1

    def _key(self) -> list[str]:
        names: list[str] = []
        while True:
            self._skip(_SPACE)
            match = _KEY_PART.match(self._text, self._at)
            if match is None:  # unreachable for a valid document; a wrong line is better than a crash
                self._at = len(self._text)
                return names
            self._at = match.end()
            part = match[0]
            names.append(next(iter(tomllib.loads(f"{part}=0"))) if part[0] in "\"'" else part)
            self._skip(_SPACE)
            if self._text[self._at : self._at + 1] != ".":
                return names
            self._at += 1

    def _take(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match is not None

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        """Pass over `pattern` and tell whether anything is left."""
        self._take(pattern)
        return self._at < len(self._text)

    def _note(self, path: Place, line: int) -> None:
        self._found.setdefault(path, line)

    def _line(self) -> int:
        return bisect.bisect_left(self._breaks, self._at) + 1
