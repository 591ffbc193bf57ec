"""Inputs that are the same in every run and on every machine.

Invariant: only random.Random.random() and getrandbits() are drawn from, whose sequences Python promises to keep.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np

_CONSONANTS, _VOWELS = "bcdfghklmnprstvw", "aeiou"
_LINE = 4096


def mixed(size: int, seed: int = 1) -> bytes:
    """Return `size` bytes as they lie on disks: prose, tables, binary records and a little noise, mixed."""
    draw = random.Random(seed)
    words = ["".join(_letter(draw, place) for place in range(2 + int(draw.random() * 8))) for _ in range(5000)]
    pieces: list[bytes] = []
    length = 0
    while length < size:
        kind = draw.random()
        if kind < 0.55:
            piece = _prose(draw, words)
        elif kind < 0.75:
            piece = _table(draw)
        elif kind < 0.92:
            piece = _records(draw)
        else:
            piece = draw.getrandbits(8 * 2048).to_bytes(2048, "little")
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces)[:size]


def _letter(draw: random.Random, place: int) -> str:
    letters = _VOWELS if place % 2 else _CONSONANTS
    return letters[int(draw.random() * len(letters))]


def _prose(draw: random.Random, words: list[str]) -> bytes:
    # Few words are frequent, as in languages.
    text = " ".join(words[int(draw.random() ** 3 * len(words))] for _ in range(700))
    return text.replace(" a", ". A").encode() + b"\n"


def _table(draw: random.Random) -> bytes:
    stamp = int(draw.random() * 1e9)
    return "".join(
        f"{stamp + 10 * row},sensor-{int(draw.random() * 40):02},{20 + draw.random():.3f},{draw.random() < 0.9}\n"
        for row in range(110)
    ).encode()


def _records(draw: random.Random) -> bytes:
    base = draw.getrandbits(20)
    return b"".join(
        struct.pack("<IHHd", base + row, int(draw.random() * 8), 0x4000, row * 0.25) for row in range(250)
    )


class Arrays:
    """Makes arrays whose addresses are those that good allocators give, the same for all that use them.

    Each begins at a multiple of 64 bytes, and no two at the same place within a page, so that neither split cache
    lines nor store-to-load aliasing depends on luck.
    """

    def __init__(self) -> None:
        self._step = 0

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return an array of zeros."""
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        room = np.zeros(count + 2 * _LINE, np.uint8)
        self._step = (self._step + 640) % _LINE
        start = -room.ctypes.data % _LINE + self._step
        return room[start : start + count].view(dtype).reshape(shape)

    def copy(self, values: Any) -> Any:
        """Return a copy of an array or of bytes."""
        source = np.frombuffer(values, np.uint8) if isinstance(values, bytes) else np.asarray(values)
        made = self.empty(source.shape, source.dtype)
        made[...] = source
        return made
