"""What is timed: one function of a library on one input.

Invariant: inputs and outputs are made once and shared by all builds of the library, so that no build has luckier
addresses than another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from visget.runtime.library import Library

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One function on one input."""

    title: str
    """Function and size, for people."""
    bind: Callable[[Library], Callable[[], object]]
    """Prepares a build of the library and returns the call."""
    release: Callable[[Library], object] = lambda _library: None
    """Gives back what bind() has prepared, so that the next build finds the same memory."""
    answer: Callable[[Any], object]
    """What a call that returned this has computed: a value or an array."""
    amount: int = 0
    """Bytes of input, where a rate makes sense."""
    tolerance: float = 0.0
    """How far the answers of two builds may differ, relative to the largest value: fused operations round once."""


def same(one: object, other: object, tolerance: float) -> bool:
    """Tell whether two answers agree."""
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape:
        return False
    if not tolerance:
        return bool(np.array_equal(left, right))
    scale = float(np.max(np.abs(right))) or 1.0
    return bool(np.max(np.abs(left - right)) <= tolerance * scale)


def amount(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size // _MIB} MiB" if size % _MIB == 0 else f"{size >> 10} KiB"
