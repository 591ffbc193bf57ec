"""Parses C types as clang spells them, such as ``int (*const [2])(const struct foo *, size_t)``.

Invariant: parsing never guesses: a spelling outside the grammar below becomes Opaque with that spelling, which no
caller can pass by value. The grammar is the abstract declarator of ISO C 6.7.7 with clang's spellings of unnamed
types (docs/spec/front-end.md, section 7).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from visget.format.prototypes import (
    BASE_TYPES,
    Array,
    CType,
    EnumRef,
    FunctionType,
    Opaque,
    Pointer,
    RecordRef,
    Void,
)

VA_LISTS = frozenset(["va_list", "__builtin_va_list", "__vis_va_list", "__isoc_va_list", "__gnuc_va_list"])
"""Typedefs of the type that VIS replaces."""

_VA_TAG = "struct __vis_va_tag"
_UNNAMED = re.compile(r"(?:(?:struct|union|enum) )?(?:\w+::)*\((?:unnamed|anonymous)(?: \w+)? at (.+?:\d+:\d+)\)")
_VECTOR = re.compile(r"__attribute__\(\((?:__vector_size__|vector_size|ext_vector_type|__ext_vector_type__)\(.*?\)\)\)")
_ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")
_TOKEN = re.compile(r"\s*(@[^@]*@|\.\.\.|[A-Za-z_$][\w$]*|\d+|[*()\[\],])")
_QUALIFIERS = frozenset(
    ["const", "volatile", "restrict", "__restrict", "_Nonnull", "_Nullable", "_Null_unspecified", "__unaligned"]
)
_BASE_WORDS = frozenset(
    ["void", "_Bool", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "__int128",
     "_Float16", "__fp16", "__bf16", "_Complex"]
)  # fmt: skip
_NAMES = {
    "bool": "_Bool", "short int": "short", "long int": "long", "long long int": "long long", "unsigned": "unsigned int",
    "signed": "int", "signed int": "int", "unsigned short int": "unsigned short",
    "unsigned long int": "unsigned long", "unsigned long long int": "unsigned long long",
}  # fmt: skip


class Scope(Protocol):
    """What the names in a type stand for."""

    def typedef(self, name: str) -> Parsed | None:
        """Return what the typedef `name` stands for."""

    def tag(self, kind: str, name: str) -> RecordRef | EnumRef | None:
        """Return the struct, union or enum with that tag."""

    def unnamed(self, place: str) -> RecordRef | EnumRef | None:
        """Return the unnamed struct, union or enum written at `place` (file:line:column)."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A type with what was met on the way to it."""

    type: CType
    """The type, typedefs resolved."""
    const: bool = False
    """Whether it is const."""
    names: frozenset[str] = field(default_factory=frozenset)
    """The typedefs that its spelling goes through, and "va_list" or "vector" where those were met."""


class _UnknownError(ValueError):
    """The spelling is outside the grammar."""


_Wrap = Callable[[Parsed], Parsed]


def parse_type(text: str, scope: Scope) -> Parsed:
    """Return the type that `text` spells."""
    if _VECTOR.search(text):
        # A pointer to a vector is a pointer; only the vector itself is out of reach.
        stars = _VECTOR.sub("", text).count("*")
        vector: CType = Opaque(text.rstrip("* ") if stars else text)
        for _ in range(stars):
            vector = Pointer(vector)
        return Parsed(vector, names=frozenset(["vector"]))
    marked = _UNNAMED.sub(lambda match: f"@{match[1]}@", _ATTRIBUTE.sub("", text))
    tokens = _TOKEN.findall(marked)
    # A character that is no token, outside blanks, is a spelling that this grammar does not know.
    if re.sub(r"\s", "", "".join(tokens)) != re.sub(r"\s", "", marked):
        return Parsed(Opaque(text))
    parser = _Parser(tokens, scope)
    try:
        parsed = parser.type_name()
        if parser.left():
            return Parsed(Opaque(text))
    except _UnknownError:
        return Parsed(Opaque(text))
    return parsed


def adjusted(parsed: Parsed) -> Parsed:
    """Return the type that a parameter declared so really has: arrays and functions become pointers."""
    if isinstance(parsed.type, Array):
        return Parsed(Pointer(parsed.type.element, parsed.const), names=parsed.names)
    if isinstance(parsed.type, FunctionType):
        return Parsed(Pointer(parsed.type), names=parsed.names)
    return parsed


class _Parser:
    """One left-to-right reading of the tokens of one type."""

    def __init__(self, tokens: list[str], scope: Scope) -> None:
        self._tokens = tokens
        self._at = 0
        self._scope = scope

    def left(self) -> bool:
        return self._at < len(self._tokens)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        if not token or (expected is not None and token != expected):
            raise _UnknownError
        self._at += 1
        return token

    def type_name(self) -> Parsed:
        base = self._specifiers()
        return self._declarator()(base)

    def _specifiers(self) -> Parsed:
        const, found = False, None
        words: list[str] = []
        while word := self._peek():
            if word in _QUALIFIERS:
                const |= word == "const"
            elif word == "_Atomic" and not words and found is None:
                found = self._atomic()
                continue
            elif word in _BASE_WORDS and found is None:
                words.append(word)
            elif words or found is not None:
                break
            elif word in ("struct", "union", "enum"):
                self._take()
                found = self._tagged(word, self._peek())
            elif word.startswith("@"):
                found = self._place(word[1:-1])
            elif word[0].isalpha() or word[0] in "_$":
                found = self._named(word)
            else:
                break
            self._take()
        if words:
            found = Parsed(_base(" ".join(words)))
        if found is None:
            raise _UnknownError
        return Parsed(found.type, const or found.const, found.names)

    def _atomic(self) -> Parsed:
        """Return the type inside ``_Atomic(...)``; a struct may have another size there."""
        self._take("_Atomic")
        self._take("(")
        inner = self.type_name()
        self._take(")")
        if isinstance(inner.type, RecordRef | Opaque):
            raise _UnknownError
        return inner

    def _tagged(self, kind: str, name: str) -> Parsed:
        if f"{kind} {name}" == _VA_TAG:
            return Parsed(Opaque("va_list"), names=frozenset(["va_list"]))
        # clang names an unnamed struct by the typedef that gives it a name: "struct point_t".
        found = self._scope.tag(kind, name)
        if found is not None:
            return Parsed(found)
        through = self._scope.typedef(name)
        if through is None:
            raise _UnknownError
        return through

    def _place(self, place: str) -> Parsed:
        found = self._scope.unnamed(place)
        if found is None:
            raise _UnknownError
        return Parsed(found)

    def _named(self, name: str) -> Parsed:
        if name in VA_LISTS:
            return Parsed(Opaque("va_list"), names=frozenset([name, "va_list"]))
        found = self._scope.typedef(name)
        if found is None:
            raise _UnknownError
        return Parsed(found.type, found.const, found.names | {name})

    def _declarator(self) -> _Wrap:
        """Return the function that wraps a base type in what this declarator says."""
        stars: list[bool] = []
        while self._peek() == "*":
            self._take()
            const = False
            while self._peek() in _QUALIFIERS:
                const |= self._take() == "const"
            stars.append(const)
        inner: _Wrap | None = None
        if self._peek() == "(" and self._peek(1) in ("*", "(", "["):
            self._take("(")
            inner = self._declarator()
            self._take(")")
        suffixes: list[_Wrap] = []
        while self._peek() in ("[", "("):
            suffixes.append(self._array() if self._peek() == "[" else self._function())

        def wrap(base: Parsed) -> Parsed:
            for const in stars:
                base = Parsed(Pointer(base.type, base.const), const, base.names)
            for suffix in reversed(suffixes):
                base = suffix(base)
            return base if inner is None else inner(base)

        return wrap

    def _array(self) -> _Wrap:
        self._take("[")
        length = 0
        while self._peek() in _QUALIFIERS or self._peek() == "static":
            self._take()
        if self._peek() == "*":
            self._take()
        elif self._peek() != "]":
            token = self._take()
            if not token.isdigit():
                raise _UnknownError
            length = int(token)
        self._take("]")
        return lambda base: Parsed(Array(base.type, length), base.const, base.names)

    def _function(self) -> _Wrap:
        self._take("(")
        parameters: list[Parsed] = []
        variadic = False
        while self._peek() != ")":
            if self._peek() == "...":
                self._take()
                variadic = True
            else:
                parameters.append(adjusted(self.type_name()))
            if self._peek() == ",":
                self._take()
        self._take(")")
        if len(parameters) == 1 and isinstance(parameters[0].type, Void):
            parameters = []

        def wrap(base: Parsed) -> Parsed:
            names = base.names.union(*(parameter.names for parameter in parameters))
            return Parsed(FunctionType(base.type, tuple(p.type for p in parameters), variadic), names=names)

        return wrap


def _base(words: str) -> CType:
    name = _NAMES.get(words, words)
    return BASE_TYPES.get(name, Opaque(name))


def declare(spelling: str, name: str) -> str:
    """Return the C declaration of `name` with the type `spelling`, kept as the header spells it."""
    if not name:
        return spelling
    nested = re.search(r"\(\*[^()\[\]]*(?=[)\[])", spelling)
    if nested:
        before, after = spelling[: nested.end()], spelling[nested.end() :]
        gap = " " if before[-1].isalnum() else ""
        return f"{before}{gap}{name}{after}"
    array = spelling.find("[")
    before, after = (spelling, "") if array < 0 else (spelling[:array], spelling[array:])
    return f"{before}{'' if before.endswith('*') else ' '}{name}{after}"


def split_function(spelling: str) -> tuple[str, str]:
    """Split the spelling of a function type into that of its result and that of its parameters.

    ``int (char *)`` gives ``int`` and ``char *``; ``void (*(int))(float)`` gives ``void (*)(float)`` and ``int``.
    """
    plain = _ATTRIBUTE.sub("", spelling).strip()
    # The parameters are in the parenthesis that follows the place of the name: the innermost "(*" of a result that
    # is itself a pointer to a function, else the first parenthesis.
    start = plain.find("(")
    while start >= 0 and plain[start + 1 : start + 2] == "*":
        start = plain.find("(", start + 1)
    if start < 0:
        return plain, ""
    depth, end = 0, start
    for end in range(start, len(plain)):
        depth += {"(": 1, ")": -1}.get(plain[end], 0)
        if depth == 0:
            break
    return (plain[:start] + plain[end + 1 :]).strip(), plain[start + 1 : end]
