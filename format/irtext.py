r"""Reads the LLVM IR text of one module into its entities: globals, functions, instructions, metadata.

Invariant: the input is what LLVM's own printer wrote (visget.format.module.text_of). There a quoted string never
holds a bare quotation mark or a newline, so replacing every quoted string by its number first ("masking") leaves
text in which no string constant, symbol name or metadata string can be mistaken for syntax. A line that the
scanner does not know is an error, never skipped. Masked text is what rules search; `Module.strings` turns a
number back into the string as printed (non-printing bytes stay written as \XX).

The n-th instruction of a function (its ordinal, from 0) is the n-th line of its body that is indented by two
spaces and goes on with neither a space nor `]`; other indented lines continue the instruction above.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from visget.errors import FormatError

NAME = r'(?:"\d+"|[-\w.$]+)'
"""A symbol, type or metadata name in masked text, without its sigil."""

_STRING = re.compile(r'"[^"\n]*"')
_COMMENT_LINE = re.compile(r"^;.*$", re.M)
_BODY_NOISE = re.compile(r"^(?:[^ \n].*|    #dbg_.*)\n?", re.M)
_INSTRUCTION = re.compile(r"^  (?=[^ \]\n])", re.M)
_GLOBAL = re.compile(rf"@({NAME}) = (.*)\Z")
_FUNCTION = re.compile(rf"(?:define|declare) (?:(.*?) )?@({NAME})\(")
_SYMBOL = re.compile(rf"@({NAME})")
_KINDS = re.compile(r"\b(global|constant|alias|ifunc)\b")
_TYPE_START = re.compile(
    r"(?:i\d+|ptr|void|half|bfloat|float|double|fp128|x86_fp80|ppc_fp128|x86_amx|x86_mmx|token|metadata|label)\Z"
    r"|[\[{<%]|target\("
)
# fmt: off
_LINKAGES = frozenset((
    "private", "internal", "available_externally", "linkonce", "weak", "common", "appending", "extern_weak",
    "linkonce_odr", "weak_odr", "external",
))
# fmt: on
_OPEN, _CLOSE = "([{<", ")]}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter, argument or result: its type, and its attributes as words."""

    type: str
    attributes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A global variable, alias or ifunc. `text` is the whole definition, masked; `value` follows the type."""

    name: str
    kind: str
    linkage: str
    prefix: str
    type: str
    value: str

    @property
    def declared(self) -> bool:
        """Whether it is defined elsewhere."""
        return self.linkage in ("external", "extern_weak")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function. `prefix` stands before its name, `suffix` after its parameters; `body` is masked text."""

    name: str
    declared: bool
    linkage: str
    prefix: str
    result: Parameter
    parameters: tuple[Parameter, ...]
    variadic: bool
    suffix: str
    body: str
    starts: tuple[int, ...]

    def ordinal(self, offset: int) -> int:
        """Return the ordinal of the instruction that covers `offset` in the body."""
        return max(0, bisect.bisect_right(self.starts, offset) - 1)

    def instruction(self, ordinal: int) -> str:
        """Return the masked text of one instruction, with its continuation lines."""
        end = self.starts[ordinal + 1] if ordinal + 1 < len(self.starts) else len(self.body)
        return self.body[self.starts[ordinal] : end].strip()

    @property
    def signature(self) -> str:
        """The types alone, such as `i32 (ptr, ...)`."""
        types = [parameter.type for parameter in self.parameters] + ["..."] * self.variadic
        return f"{self.result.type} ({', '.join(types)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """All entities of one module, in the order of the text."""

    strings: tuple[str, ...]
    source: str | None = None
    triple: str | None = None
    layout: str | None = None
    assembly: int = 0
    comdats: tuple[str, ...] = ()
    types: dict[str, str] = field(default_factory=dict)
    globals: tuple[Global, ...] = ()
    functions: tuple[Function, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    named_metadata: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)

    def text(self, masked: str) -> str:
        """Return `masked` with every string put back, quotation marks included."""
        return unmask(masked, self.strings)

    def name(self, token: str) -> str:
        """Return the name that a masked name token stands for."""
        return self.strings[int(token[1:-1])] if token.startswith('"') else token

    def definitions(self) -> Iterator[Function]:
        """Yield the functions that have a body."""
        return (function for function in self.functions if not function.declared)


def mask(text: str) -> tuple[str, tuple[str, ...]]:
    """Replace each quoted string of `text` by its number; return the masked text and the strings.

    Equal strings get equal numbers. Comment lines are dropped first: the name of the module stands in one,
    without escapes.
    """
    interned: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f'"{interned.setdefault(match[0][1:-1], len(interned))}"'

    return _STRING.sub(number, _COMMENT_LINE.sub("", text)), tuple(interned)


def unmask(masked: str, strings: tuple[str, ...]) -> str:
    """Put the strings back into masked text, quotation marks included."""
    return _STRING.sub(lambda match: f'"{strings[int(match[0][1:-1])]}"', masked)


def scan(text: str) -> Module:
    """Read `text`.

    Raises:
        FormatError: a line is not LLVM IR as LLVM prints it.
    """
    masked, strings = mask(text)
    if masked.count('"') != 2 * len(_STRING.findall(masked)):
        raise FormatError("LLVM IR text: a quotation mark has no partner")
    masked += "\n"
    reader = _Reader(strings)
    position = 0
    while position < len(masked):
        end = masked.index("\n", position)
        line = masked[position:end]
        if line.startswith("define "):
            close = masked.find("\n}\n", end - 1)
            if close < 0 or not line.endswith("{"):
                raise FormatError(f"LLVM IR text: the body of a function does not end: {line[:80]}")
            reader.function(line, masked[end + 1 : close + 1])
            end = close + 2
        elif line:
            reader.line(line)
        position = end + 1
    return reader.module()


class _Reader:
    """Collects the entities while `scan` walks the lines."""

    def __init__(self, strings: tuple[str, ...]) -> None:
        self.strings = strings
        self.scalars: dict[str, str] = {}
        self.assembly = 0
        self.comdats: list[str] = []
        self.types: dict[str, str] = {}
        self.globals: list[Global] = []
        self.functions: list[Function] = []
        self.attributes: dict[str, str] = {}
        self.named_metadata: dict[str, str] = {}
        self.metadata: dict[str, str] = {}

    def module(self) -> Module:
        return Module(
            strings=self.strings,
            source=self.scalars.get("source_filename"),
            triple=self.scalars.get("target triple"),
            layout=self.scalars.get("target datalayout"),
            assembly=self.assembly,
            comdats=tuple(self.comdats),
            types=self.types,
            globals=tuple(self.globals),
            functions=tuple(self.functions),
            attributes=self.attributes,
            named_metadata=self.named_metadata,
            metadata=self.metadata,
        )

    def line(self, line: str) -> None:
        key, equals, value = line.partition(" = ")
        if line.startswith("@"):
            self.globals.append(self._global(line))
        elif line.startswith("declare "):
            self.function(line, "")
        elif line.startswith("%") and value.startswith("type "):
            self.types[key] = value[5:]
        elif line.startswith("attributes #") and line.endswith(" }"):
            self.attributes[key[len("attributes ") :]] = value.strip("{} ")
        elif line.startswith("!") and equals:
            target = self.metadata if key[1:].isdigit() else self.named_metadata
            target[self.name(key[1:])] = value
        elif line.startswith("$"):
            self.comdats.append(self.name(key[1:]))
        elif line.startswith("module asm "):
            self.assembly += 1
        elif key in ("source_filename", "target triple", "target datalayout") and equals:
            self.scalars[key] = self.name(value)
        elif not line.startswith("uselistorder"):
            raise FormatError(f"LLVM IR text: unknown line: {line[:80]}")

    def name(self, token: str) -> str:
        return self.strings[int(token[1:-1])] if token.startswith('"') else token

    def _global(self, line: str) -> Global:
        match = _GLOBAL.match(line)
        kind = _KINDS.search(match[2]) if match else None
        if match is None or kind is None:
            raise FormatError(f"LLVM IR text: unknown global: {line[:80]}")
        prefix = match[2][: kind.start()].strip()
        words = prefix.split()
        kind_type, value = split_type(match[2][kind.end() :].strip())
        linkage = next((word for word in words if word in _LINKAGES), "")
        return Global(
            name=self.name(match[1]), kind=kind[1], linkage=linkage, prefix=prefix, type=kind_type, value=value
        )

    def function(self, line: str, lines: str) -> None:
        # A declaration prints its metadata between the keyword and the rest: `declare !dbg !5 i32 @f()`.
        head = re.sub(r"^declare (?:![\w.]+ !\d+ )+", "declare ", line)
        match = _FUNCTION.match(head)
        close = closing(head, match.end() - 1) if match else -1
        if match is None or close < 0:
            raise FormatError(f"LLVM IR text: unknown function: {line[:80]}")
        prefix = match[1] or ""
        parameters = [part for part in split_list(head[match.end() : close]) if part]
        body = _BODY_NOISE.sub("", lines)
        self.functions.append(
            Function(
                name=self.name(match[2]),
                declared=line.startswith("declare "),
                linkage=next((word for word in prefix.split() if word in _LINKAGES), ""),
                prefix=prefix,
                result=_result(prefix),
                parameters=tuple(_parameter(part) for part in parameters if part != "..."),
                variadic="..." in parameters,
                suffix=head[close + 1 :].rstrip(" {"),
                body=body,
                starts=tuple(found.start() for found in _INSTRUCTION.finditer(body)),
            )
        )


def symbols(masked: str) -> list[str]:
    """Return the tokens of all symbols (without @) in masked text."""
    return _SYMBOL.findall(masked)


def closing(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one at `start`, or -1."""
    depth = 0
    for index in range(start, len(text)):
        char = text[index]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE and not (char == ">" and text[index - 1] == "-"):
            depth -= 1
            if depth == 0:
                return index
    return -1


def split_list(text: str, separator: str = ",") -> list[str]:
    """Split masked text at the separators that stand outside all brackets."""
    if not any(bracket in text for bracket in _OPEN):
        return [part.strip() for part in text.split(separator)]
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def split_type(text: str) -> tuple[str, str]:
    """Split masked text that begins with a type into the type and what follows it."""
    end = closing(text, 0) + 1 if text[:1] in "[{<" else 0
    if text.startswith("target("):
        end = closing(text, 6) + 1
    if not end:
        match = re.match(rf"%{NAME}|[\w.]+(?: addrspace\([^)]*\))?", text)
        end = match.end() if match else 0
    return text[:end], text[end:].strip()


def _parameter(text: str) -> Parameter:
    kind, rest = split_type(text)
    return Parameter(type=kind, attributes=rest)


def _result(prefix: str) -> Parameter:
    # Linkage, calling convention and result attributes come first; the type is the last thing in the prefix.
    words = split_list(prefix, " ")
    for index, word in enumerate(words):
        if _TYPE_START.match(word):
            kind, _ = split_type(" ".join(words[index:]))
            return Parameter(type=kind, attributes=" ".join(words[:index]))
    return Parameter(type="", attributes=prefix)
