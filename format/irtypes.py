"""Sizes and members of LLVM types in the neutral data layout.

Invariant: the numbers are those of the layout of docs/spec/vis-1.md, section 2 (natural alignment up to 16). Types
are given as masked text (visget.format.irtext). Hostile types cost no more than honest ones: each named type is
looked at once, and a type that is nested too deeply counts as endlessly large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from visget.format.irtext import split_list, split_type

ENDLESS = 1 << 62
"""The size of a type that is too deeply nested, or contains itself."""

_SCALARS = {
    "ptr": (8, 8), "half": (2, 2), "bfloat": (2, 2), "float": (4, 4), "double": (8, 8), "fp128": (16, 16),
    "x86_fp80": (16, 16), "ppc_fp128": (16, 16),
}  # fmt: skip
_INTEGER = re.compile(r"i(\d{1,8})\Z")
_ARRAY = re.compile(r"[\[<](?:vscale x )?(\d+) x (.*)[\]>]\Z", re.S)
_DEPTH_LIMIT = 64


class Types:
    """The named types of one module, and what follows from them."""

    def __init__(self, definitions: Mapping[str, str]) -> None:
        self._definitions = definitions
        self._known: dict[str, tuple[int, int]] = {}

    def size(self, kind: str) -> int:
        """Return the bytes that a value of type `kind` takes, 0 where it has no size."""
        return self._measure(kind, 0)[0]

    def scalars(self, kind: str, limit: int) -> list[str]:
        """Return the first `limit` scalar types that `kind` is made of, in order."""
        return list(islice(self._scalars(kind, 0), limit))

    def _measure(self, kind: str, depth: int) -> tuple[int, int]:
        """Return bytes and alignment."""
        if kind in _SCALARS:
            return _SCALARS[kind]
        if depth > _DEPTH_LIMIT:
            return ENDLESS, 1
        if match := _INTEGER.match(kind):
            return _integer(int(match[1]))
        if kind.startswith("%"):
            if kind not in self._known:
                self._known[kind] = ENDLESS, 1  # What a type that contains itself finds.
                self._known[kind] = self._measure(self._definitions.get(kind, ""), depth + 1)
            return self._known[kind]
        if kind.startswith("<{"):
            return sum(self._measure(member, depth + 1)[0] for member in _members(kind)), 1
        if kind.startswith("{"):
            return self._struct(kind, depth)
        match = _ARRAY.match(kind)
        if match is None:
            return 0, 1
        size, align = self._measure(match[2], depth + 1)
        total = int(match[1]) * size
        if kind.startswith("<"):
            align = min(16, 1 << max(0, total - 1).bit_length())
        return total, align

    def _struct(self, kind: str, depth: int) -> tuple[int, int]:
        offset, widest = 0, 1
        for member in _members(kind):
            size, align = self._measure(member, depth + 1)
            offset = -(-offset // align) * align + size
            widest = max(widest, align)
        return -(-offset // widest) * widest, widest

    def _scalars(self, kind: str, depth: int) -> Iterator[str]:
        array = _ARRAY.match(kind)
        if depth > _DEPTH_LIMIT:
            return
        if kind.startswith("%"):
            yield from self._scalars(self._definitions.get(kind, ""), depth + 1)
        elif kind.startswith(("{", "<{")):
            for member in _members(kind):
                yield from self._scalars(member, depth + 1)
        elif array and not kind.startswith("<"):
            for _ in range(min(int(array[1]), 64)):
                yield from self._scalars(array[2], depth + 1)
        elif kind:
            yield kind


def _integer(bits: int) -> tuple[int, int]:
    size = (bits + 7) // 8
    align = min(16, 1 << max(0, size - 1).bit_length())
    return -(-size // align) * align, align


def _members(kind: str) -> list[str]:
    inner = kind[2:-2] if kind.startswith("<{") else kind[1:-1]
    return [split_type(part)[0] for part in split_list(inner.strip()) if part]
