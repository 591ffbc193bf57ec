"""The command line of a C compiler, as a value: what is asked for, of which files, with which flags.

Invariant: parse() reads nothing but the arguments and the response files that they name, and whatever they are it
returns a Command or raises UsageError; the order of inputs, libraries and linker flags is kept, for it matters.
The meaning of single flags is visget.toolchain.driver_flags'.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from visget.errors import UsageError
from visget.toolchain.driver_flags import (
    HEADER_DIRECTORY,
    SEPARATE,
    is_general,
    is_system_header_directory,
    is_system_library_directory,
    judge,
)

_C = frozenset([".c", ".i"])
_CXX = frozenset([".cc", ".cpp", ".cxx", ".c++", ".C", ".cp", ".CPP", ".ii"])
_ASSEMBLY = frozenset([".s", ".S", ".sx", ".asm"])
_OTHER = frozenset([".m", ".mm", ".f", ".f90", ".F", ".F90", ".f95", ".for", ".go", ".d", ".adb", ".ll", ".cu"])
_HEADERS = frozenset([".h", ".hh", ".hpp", ".hxx", ".H"])
_MODES = {"-c": "compile", "-S": "ir", "-E": "preprocess", "-M": "preprocess", "-MM": "preprocess",
          "-fsyntax-only": "check"}  # fmt: skip
# The strongest wins, as in every driver.
_ORDER = ("link", "compile", "ir", "check", "preprocess")
_QUERY = ("-print-", "--print-", "-dump")
_QUERIES = frozenset(["--version", "-V", "-qversion", "-version", "--help", "-###"])
_RESPONSE_DEPTH = 8


class Input(NamedTuple):
    """A file to compile or to link."""

    path: str
    """As it was written; ``-`` is standard input."""
    language: str
    """``c``, ``c++``, ``assembly``, another language as ``-x`` takes it, or ``object``."""


class Item(NamedTuple):
    """What the linker is given, in its place: an input, a library, or a flag."""

    kind: str
    """``input``, ``library`` or ``flag``."""
    text: str
    """The path, the name after ``-l``, or the flag."""
    language: str = "object"
    """Of an input: its language."""


class Command(NamedTuple):
    """A whole command line."""

    mode: str
    """``link``, ``compile``, ``ir`` (-S), ``check`` (-fsyntax-only), ``preprocess`` or ``query``."""
    query: tuple[str, ...]
    """The arguments of a query."""
    items: tuple[Item, ...]
    """Everything that has a place in the linker's command line."""
    output: str | None
    """What ``-o`` names."""
    flags: tuple[str, ...]
    """What clang is given."""
    directories: tuple[str, ...]
    """The directories of ``-L`` that are not this machine's own."""
    dropped: tuple[str, ...]
    """The flags that were left out, of which nobody needs to hear."""
    notes: tuple[str, ...]
    """Sentences about the flags that were left out and of which the author ought to hear."""
    target: str | None
    """What ``--vis-target`` names."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The files, in their order."""
        return tuple(Input(item.text, item.language) for item in self.items if item.kind == "input")

    def has(self, flag: str) -> bool:
        """Tell whether the linker is given `flag`, by itself or behind ``-Wl,``."""
        return any(item.kind == "flag" and flag in (item.text, *linker_words(item.text)) for item in self.items)


def linker_words(flag: str) -> list[str]:
    """Return the words that ``-Wl,a,b`` gives the linker; none for another flag."""
    return flag.split(",")[1:] if flag.startswith("-Wl,") else []


def expanded(arguments: Sequence[str], depth: int = 0) -> Iterator[str]:
    """Return `arguments` with response files (``@file``) in place of their names."""
    for argument in arguments:
        if not argument.startswith("@") or len(argument) < 2:
            yield argument
            continue
        if depth == _RESPONSE_DEPTH:
            raise UsageError(f"response files are nested more than {_RESPONSE_DEPTH} deep", where=argument[1:])
        try:
            text = Path(argument[1:]).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            yield argument  # as gcc and clang do: then it is a file of that name
            continue
        yield from expanded(_words(text), depth + 1)


def _words(text: str) -> list[str]:
    """Split the text of a response file as GNU tools do."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            word = [*(word or []), text[position]]
            position += 1
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = word or []
                word.append(char)
        elif char in "'\"":
            quote = char
            word = word or []
        elif char.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = word or []
            word.append(char)
    return words if word is None else [*words, "".join(word)]


class _Parser:
    """The state of one parse."""

    def __init__(self, *, cxx: bool) -> None:
        self.cxx = cxx
        self.modes: set[str] = set()
        self.query: list[str] = []
        self.items: list[Item] = []
        self.output: str | None = None
        self.flags: list[str] = []
        self.directories: list[str] = []
        self.dropped: list[str] = []
        self.notes: list[str] = []
        self.target: str | None = None
        self.language = ""

    def take(self, flag: str, value: str | None) -> None:
        """Take one flag; `value` is the next word where the flag has one."""
        if flag in _MODES:
            self.modes.add(_MODES[flag])
            if flag in ("-E", "-M", "-MM", "-fsyntax-only"):
                self.flags.append(flag)
        elif flag == "-o" or (flag.startswith("-o") and value is None):
            self.output = value if value is not None else flag[2:]
        elif flag == "-x" or (flag.startswith("-x") and value is None):
            language = value if value is not None else flag[2:]
            self.language = "" if language == "none" else language
        elif flag.startswith("--vis-target="):
            self.target = flag.partition("=")[2]
        elif flag in _QUERIES or flag.startswith(_QUERY):
            self.query.append(flag)
        elif flag.startswith("-l"):
            self.items.append(Item("library", value if value is not None else flag[2:]))
        elif flag.startswith("-L"):
            self._library_directory(value if value is not None else flag[2:])
        elif flag.startswith(HEADER_DIRECTORY):
            self._header_directory(flag, value)
        else:
            self._judge(flag, value)

    def _library_directory(self, path: str) -> None:
        if is_system_library_directory(_absolute(path)):
            self.notes.append(f"-L{path} is dropped: it holds this machine's own libraries")
        else:
            self.directories.append(path)
            self.items.append(Item("flag", f"-L{path}"))

    def _header_directory(self, flag: str, value: str | None) -> None:
        name = next(name for name in HEADER_DIRECTORY if flag.startswith(name))
        path = value if value is not None else flag[len(name) :]
        absolute = _absolute(path)
        if not is_system_header_directory(absolute):
            self.flags += [name, path]
        elif is_general(absolute):
            self.notes.append(f"{name} {path} is dropped: it holds this machine's own headers")
        else:
            library = absolute.rstrip("/").rpartition("/")[2]
            raise UsageError(
                f"{name} {path}: these are the headers of this machine's own {library}, "
                "which another machine need not have",
                hint=f"declare {library} under [dependencies] of visget.toml, or switch it off in the build's "
                "configuration",
            )

    def _judge(self, flag: str, value: str | None) -> None:
        verdict = judge(flag)
        words = [flag] if value is None else [flag, value]
        if verdict.kind == "pass":
            self.flags += words
            if flag == "-pthread":
                self.items.append(Item("flag", flag))
        elif verdict.kind == "link":
            self.items += [Item("flag", word) for word in words]
        elif verdict.kind == "refuse":
            raise UsageError(f"unsupported option '{flag}' for target 'vis-1': {verdict.why}")
        else:
            self.dropped += words
            if verdict.kind == "note":
                self.notes.append(f"{flag} is dropped: {verdict.why}")

    def file(self, path: str) -> None:
        """Take one input."""
        self.items.append(Item("input", path, self.language_of(path)))

    def language_of(self, path: str) -> str:
        """Return the language of the file `path`."""
        if self.language:
            return "assembly" if self.language.startswith("assembler") else self.language
        suffix = Path(path).suffix
        if suffix in _CXX:
            return "c++"
        if suffix in _C:
            return "c++" if self.cxx else "c"
        if suffix in _HEADERS:
            return "c++-header" if self.cxx else "c-header"
        if suffix in _ASSEMBLY:
            return "assembly"
        return suffix[1:] if suffix in _OTHER else "object"


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - links are not followed: the name is what counts


def parse(arguments: Sequence[str], *, cxx: bool) -> Command:
    """Return the command that `arguments` give to the C compiler, or to the C++ compiler when `cxx`.

    Raises:
        UsageError: a flag is refused, lacks its value, or names headers of this machine.
    """
    parser = _Parser(cxx=cxx)
    words = iter(list(expanded(arguments)))
    for word in words:
        if word == "-" or not word.startswith("-"):
            parser.file(word)
            continue
        value = None
        if word in SEPARATE:
            value = next(words, None)
            if value is None:
                raise UsageError(f"argument to '{word}' is missing")
        parser.take(word, value)
    mode = max(parser.modes, key=_ORDER.index, default="link")
    if parser.query and not any(item.kind == "input" for item in parser.items):
        mode = "query"
    return Command(
        mode=mode,
        query=tuple(parser.query),
        items=tuple(parser.items),
        output=parser.output,
        flags=tuple(parser.flags),
        directories=tuple(parser.directories),
        dropped=tuple(parser.dropped),
        notes=tuple(dict.fromkeys(parser.notes)),
        target=parser.target,
    )
