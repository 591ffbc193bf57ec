"""Binding libraries to each other: symbols and library names that carry the key of the artifact that they are in.

ELF knows one space of names for a whole process: whoever defines ``deflate`` first, be it the program, defines it for
all. So each library defines every export twice, under its plain name for programs and as ``deflate.TAG`` for the
packages that were linked with it, where TAG is the beginning of its action key. Invariant: a name with a dot cannot be
written in C, so no package and no C library defines such a name but by this module; two artifacts never share one.
Pure text to text; the reasons are docs/adr/0008-linking.md, the rules docs/spec/native-artifact.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from visget.digest import Digest
from visget.errors import RefusedError
from visget.format.irtext import NAME, scan

TAG_DIGITS = 20
"""How many digits of an action key names carry: 80 bits."""

_PIECES = re.compile(r'("[^"]*")')
_SYMBOL = re.compile(rf"@({NAME})")
_DEFINITION = re.compile(rf"^define [^\n]*?@({NAME})\([^\n]*\{{$", re.MULTILINE)
_ALIAS = re.compile(rf"^@({NAME}) = [^\n\"]*\balias [^\n\"]*, ptr @({NAME})$", re.MULTILINE)


def tag_of(key: Digest) -> str:
    """Return what names carry of the action key `key`."""
    return key[:TAG_DIGITS]


def soname_of(name: str, key: Digest, suffix: str = ".so") -> str:
    """Return what the library of the package `name` in the artifact `key` calls itself; `suffix` is the system's."""
    return f"lib{name}-{tag_of(key)}{suffix}"


def bound_name(symbol: str, tag: str) -> str:
    """Return the name of `symbol` for those who are linked with the artifact that has `tag`."""
    return f"{symbol}.{tag}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """How the names of one module are bound."""

    tag: str
    """That of the module's own artifact."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """For each function that comes from a dependency the tag of that one's artifact."""

    @property
    def taken_names(self) -> frozenset[str]:
        """The bound names of the functions that come from dependencies."""
        return frozenset(bound_name(symbol, tag) for symbol, tag in self.taken.items())


class Merged(NamedTuple):
    """A module that is merged with those that it depends on."""

    text: str
    exports: Sequence[str]
    binding: Binding


def bind(text: str, exports: Iterable[str], binding: Binding) -> str:
    """Return the module `text` with its exports under both names, and with bound names for what it takes."""
    aliases = (f"@{bound_name(name, binding.tag)} = alias void (), ptr @{name}\n" for name in sorted(exports))
    return f"{_renamed(text, binding.taken)}\n{''.join(aliases)}"


def bind_inside(modules: Sequence[Merged]) -> list[str]:
    """Return the texts of modules that will be one: what they take from each other has bound names on both sides.

    Args:
        modules: the dependencies, then the module whose exports stay what they are called.
    """
    *others, last = modules
    texts = [
        _renamed(one.text, {**one.binding.taken, **dict.fromkeys(one.exports, one.binding.tag)}) for one in others
    ]
    return [*texts, _renamed(last.text, last.binding.taken)]


def _renamed(text: str, tags: Mapping[str, str]) -> str:
    if not tags:
        return text

    def rename(match: re.Match[str]) -> str:
        tag = tags.get(match[1])
        return match[0] if tag is None else f"@{bound_name(match[1], tag)}"

    pieces = _PIECES.split(text)
    # Every second piece is a string; a symbol that needs quotation marks is no C identifier.
    pieces[::2] = [_SYMBOL.sub(rename, piece) for piece in pieces[::2]]
    return "".join(pieces)


def export_types(text: str, exports: Iterable[str]) -> dict[str, str]:
    """Return the LLVM type of each of `exports` that the module `text` defines."""
    aliases = dict(_ALIAS.findall(text))
    wanted = {name: _target(name, aliases) for name in sorted(exports)}
    defined = set(wanted.values())
    lines = [match[0] for match in _DEFINITION.finditer(text) if match[1] in defined]
    heads = scan("".join(f"{line}\n}}\n" for line in lines))
    found = {function.name: function.signature for function in heads.functions}
    return {name: found[target] for name, target in wanted.items() if target in found}


def _target(name: str, aliases: Mapping[str, str]) -> str:
    for _ in range(len(aliases)):
        if name not in aliases:
            break
        name = aliases[name]
    return name


def check_types(label: str, dependency: str, uses: Iterable[tuple[str, str]], types: Mapping[str, str]) -> None:
    """Refuse a dependency that lacks a function, or has it with another type than it is used with.

    Args:
        label: the package that uses it, such as ``libpng 1.6.43``.
        dependency: the dependency, such as ``zlib 1.3``.
        uses: each function with the type with which it was built.
        types: the types of the functions that `dependency` exports.

    Raises:
        RefusedError: it does; all such functions are named.
    """
    problems = []
    facts = []
    for symbol, expected in uses:
        found = types.get(symbol)
        if found == expected:
            continue
        there = "is not there any more" if found is None else f"is {found} there"
        problems.append(f"{symbol} {there}, and {label} was built for {expected}")
        facts.append({"symbol": symbol, "expected": expected, "found": found})
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        name = dependency.partition(" ")[0]
        raise RefusedError(
            f"{label} cannot be linked with {dependency}: {problems[0]}{more}",
            where=label,
            hint=f"take an earlier {name} (visget install NAME '{name}<VERSION'), or a version of "
            f"{label.partition(' ')[0]} that was built for this one; its author can narrow the range of its dependency",
            details={"dependent": label, "dependency": dependency, "symbols": facts},
        )
