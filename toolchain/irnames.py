"""Which symbols a module defines and what each of them refers to: enough to tell what a link needs.

Invariant: every reference that LLVM's text shows is listed; one that it does not have may be listed too (a word after
an @ in a string), which costs a unit more in a link and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from visget.toolchain.normalise import NAME, plain

_ENTITY = re.compile(
    rf'^(?:define (?P<head>(?:"[^"\n]*"|[^"\n@])*)@(?P<function>{NAME})\('
    rf"|@(?P<variable>{NAME}) = (?P<kind>[^\n]*))",
    re.M,
)
_REFERENCE = re.compile(rf"@({NAME})")
_TEXT = re.compile(r'\bc"[^"\n]*"')
_LINKAGE = re.compile(
    r"\b(private|internal|available_externally|linkonce_odr|linkonce|external|extern_weak|appending)\b"
)
_KEPT = frozenset(["llvm.global_ctors", "llvm.global_dtors", "llvm.used", "llvm.compiler.used"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The symbols of one module."""

    entities: Mapping[str, tuple[str, ...]]
    """What each definition refers to, by symbol."""
    offered: frozenset[str]
    """The definitions that other modules may use; not those that each user has a copy of."""
    roots: tuple[str, ...]
    """What runs or stays whether or not somebody refers to it."""

    def as_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {
            "entities": {name: list(used) for name, used in self.entities.items()},
            "offered": sorted(self.offered),
            "roots": list(self.roots),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Names:
        """Return what as_json() wrote."""
        return cls(
            entities={name: tuple(used) for name, used in value["entities"].items()},
            offered=frozenset(value["offered"]),
            roots=tuple(value["roots"]),
        )


def names_of(text: str) -> Names:
    """Return the symbols of the module `text`, which LLVM printed."""
    entities: dict[str, tuple[str, ...]] = {}
    offered: set[str] = set()
    roots: list[str] = []
    for found in _ENTITY.finditer(text):
        if found["function"] is not None:
            name, before = plain(found["function"]), found["head"]
            end = text.find("\n}", found.end())
            body = text[found.end() : len(text) if end < 0 else end]
        else:
            name, body = plain(found["variable"]), found["kind"]
            before = body.partition(" = ")[0]
            before = re.split(r"\b(?:global|constant|alias|ifunc)\b", before, maxsplit=1)[0]
        linkage = _LINKAGE.search(before)
        if linkage is not None and linkage[1] in ("external", "extern_weak", "available_externally"):
            continue
        used = tuple(dict.fromkeys(plain(n) for n in _REFERENCE.findall(_TEXT.sub("", body)) if not _intrinsic(n)))
        if name in _KEPT:
            roots += used
            continue
        entities[name] = used
        if linkage is None:
            offered.add(name)
    return Names(entities=entities, offered=frozenset(offered), roots=tuple(roots))


def _intrinsic(name: str) -> bool:
    return name.startswith("llvm.")


def reachable(names: Names, start: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the definitions of `names` that `start` and the roots reach, and the symbols defined elsewhere."""
    waiting = [*start, *names.roots]
    inside: set[str] = set()
    outside: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in inside or name in outside:
            continue
        if name in names.entities:
            inside.add(name)
            waiting += names.entities[name]
        else:
            outside.add(name)
    return inside, outside
