"""The VIS rules about marks that would keep installed code slow (VIS-6xx)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from visget.format.irtext import Function
from visget.format.rule import Hit, Rule, Scope

_LOOP = re.compile(r"!llvm\.loop !(\d+)")
_REFERENCE = re.compile(r"!(\d+)")
_STRING = re.compile(r'!("\d+")(?:, i(?:1|32) (\w+))?')
_DISABLED = {
    ("llvm.loop.unroll.disable", ""),
    ("llvm.loop.vectorize.enable", "false"),
    ("llvm.loop.disable_nonforced", ""),
    ("llvm.loop.interleave.count", "1"),
    ("llvm.loop.vectorize.width", "1"),
}


def _optnone(scope: Scope) -> Iterator[Hit]:
    groups = [group for group, text in scope.module.attributes.items() if re.search(r"\boptnone\b", text)]
    for group in groups:
        pattern = re.compile(rf"{group}(?!\d)")
        for function in scope.module.definitions():
            if pattern.search(function.suffix):
                yield Hit(message="the function is marked optnone", function=function)


def _loops(scope: Scope) -> Iterator[tuple[Function, int, frozenset[tuple[str, str]]]]:
    """Yield each loop that carries metadata, with its properties (name, value)."""
    metadata = scope.module.metadata

    @cache
    def properties(node: str) -> frozenset[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for reference in _REFERENCE.findall(metadata.get(node, "")):
            if reference != node:
                for token, value in _STRING.findall(metadata.get(reference, "")):
                    found.add((scope.module.name(token), value))
        return frozenset(found)

    for function, ordinal, match in scope.find(_LOOP):
        yield function, ordinal, properties(match[1])


def _disabled_everywhere(scope: Scope) -> Iterator[Hit]:
    loops = list(_loops(scope))
    marked = [loop for loop in loops if loop[2] & _DISABLED]
    if 2 * len(marked) > len(loops):
        function, ordinal, properties = marked[0]
        name = sorted(properties & _DISABLED)[0][0]
        message = f"{len(marked)} of {len(loops)} loops are marked {name}"
        yield Hit(message=message, function=function, ordinal=ordinal)


def _disabled(scope: Scope) -> Iterator[Hit]:
    loops = list(_loops(scope))
    marked = [loop for loop in loops if loop[2] & _DISABLED]
    if 2 * len(marked) <= len(loops):
        for function, ordinal, properties in marked:
            name = sorted(properties & _DISABLED)[0][0]
            yield Hit(message=f"a loop is marked {name}", function=function, ordinal=ordinal)


def _vectorized(scope: Scope) -> Iterator[Hit]:
    for function, ordinal, properties in _loops(scope):
        if any(name == "llvm.loop.isvectorized" and value != "0" for name, value in properties):
            yield Hit(message="a loop was vectorised for the neutral machine", function=function, ordinal=ordinal)


RULES = (
    Rule(
        id="VIS-601",
        title="no optnone",
        severity="error",
        check=_optnone,
        reason="optnone keeps a function unoptimised for ever: it comes from -O0.",
        remedy="Build with -O2 -Xclang -disable-llvm-passes, as `visget build` does; remove __attribute__((optnone)).",
    ),
    Rule(
        id="VIS-602",
        title="loops are not marked by build flags",
        severity="error",
        check=_disabled_everywhere,
        reason="-O1, -fno-unroll-loops and -fno-vectorize mark every loop, and the user's compiler obeys: installed "
        "code was up to 1.8 times slower. More than half of the loops being marked shows such a flag.",
        remedy="Remove -O0, -O1, -fno-unroll-loops and -fno-vectorize from the flags.",
    ),
    Rule(
        id="VIS-603",
        title="marked loops stay slow",
        severity="warning",
        check=_disabled,
        reason="A pragma such as `unroll(disable)` was chosen for another compiler or machine, and stays in force.",
        remedy="Remove the pragma, unless it was measured on several machines.",
    ),
    Rule(
        id="VIS-604",
        title="loops are not vectorised beforehand",
        severity="error",
        check=_vectorized,
        reason="A loop that is marked as vectorised already is left alone by the user's compiler.",
        remedy="Do not run LLVM's optimiser before packaging; `visget build` does what is needed.",
    ),
)
