"""Sizes of LLVM types in the neutral data layout.

Invariant: the numbers are those of the layout of docs/spec/vis-1.md, section 2 (natural alignment up to 16).
Types are given as masked text (visget.format.irtext).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from visget.format.irtext import split_list, split_type

_SCALARS = {
    "ptr": (8, 8), "half": (2, 2), "bfloat": (2, 2), "float": (4, 4), "double": (8, 8), "fp128": (16, 16),
    "x86_fp80": (16, 16), "ppc_fp128": (16, 16),
}  # fmt: skip
_ARRAY = re.compile(r"[\[<](?:vscale x )?(\d+) x (.*)[\]>]\Z", re.S)
_DEPTH_LIMIT = 64


def size_and_alignment(kind: str, types: Mapping[str, str], depth: int = 0) -> tuple[int, int]:
    """Return bytes and alignment of the type `kind`; (0, 1) where it has no size.

    Args:
        kind: the type.
        types: the named types of the module, `%name` to definition.
        depth: how many types this one is nested in.
    """
    if kind in _SCALARS:
        return _SCALARS[kind]
    if depth > _DEPTH_LIMIT:
        return 0, 1
    if re.fullmatch(r"i\d{1,8}", kind):
        size = 1 << max(0, (int(kind[1:]) + 7) // 8 - 1).bit_length()
        align = min(size, 16)
        return -(-((int(kind[1:]) + 7) // 8) // align) * align, align
    if kind.startswith("%"):
        return size_and_alignment(types.get(kind, ""), types, depth + 1)
    if kind.startswith("<{"):
        return sum(size_and_alignment(member, types, depth + 1)[0] for member in _members(kind[2:-2])), 1
    if kind.startswith("{"):
        return _struct(kind, types, depth)
    match = _ARRAY.match(kind)
    if match is None:
        return 0, 1
    size, align = size_and_alignment(match[2], types, depth + 1)
    total = int(match[1]) * size
    if kind.startswith("<"):
        align = min(16, 1 << max(0, total - 1).bit_length())
    return total, align


def members(kind: str, types: Mapping[str, str], depth: int = 0) -> list[str]:
    """Return the scalar types that `kind` is made of, in order, arrays spelled out up to 16 elements."""
    if depth > _DEPTH_LIMIT:
        return [kind]
    if kind.startswith("%"):
        return members(types.get(kind, ""), types, depth + 1)
    if kind.startswith(("{", "<{")):
        inner = kind[1:-1] if kind.startswith("{") else kind[2:-2]
        return [scalar for member in _members(inner) for scalar in members(member, types, depth + 1)]
    match = _ARRAY.match(kind)
    if match is None or kind.startswith("<"):
        return [kind]
    return members(match[2], types, depth + 1) * min(int(match[1]), 16)


def _members(inner: str) -> list[str]:
    return [split_type(part)[0] for part in split_list(inner.strip()) if part]


def _struct(kind: str, types: Mapping[str, str], depth: int) -> tuple[int, int]:
    offset, widest = 0, 1
    for member in _members(kind[1:-1]):
        size, align = size_and_alignment(member, types, depth + 1)
        offset = -(-offset // align) * align + size
        widest = max(widest, align)
    return -(-offset // widest) * widest, widest
