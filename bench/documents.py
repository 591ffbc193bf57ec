"""Documents and pictures to parse, render, encode and decode: the same in every run and on every machine."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np

from bench.inputs import Arrays, mixed

_TEXT = """
time person year way day thing man world life hand part child eye woman place work week case point government
company number group problem fact caf\u00e9 na\u00efve \u00fcber \u4e2d\u6587 \u0436\u0438\u0437\u043d\u044c
"""
_WORDS = _TEXT.split()


@cache
def mixed_data(size: int) -> Any:
    """Return mixed data; made once for all libraries."""
    return Arrays().copy(mixed(size))


def _sentence(draw: random.Random, count: int = 12) -> str:
    return " ".join(_WORDS[int(draw.random() ** 2 * len(_WORDS))] for _ in range(count))


def _filled(size: int, piece: Any) -> str:
    draw = random.Random(7)
    pieces: list[str] = []
    length = 0
    while length < size:
        pieces.append(piece(draw, len(pieces)))
        length += len(pieces[-1])
    return "".join(pieces)


@cache
def json_text(size: int) -> bytes:
    """Return a list of records as JSON."""
    def record(draw: random.Random, number: int) -> str:
        return (
            f'{"," if number else "["}{{"id":{number},"name":"{_sentence(draw, 3)}","ratio":{draw.random():.6f},'
            f'"tags":["{_sentence(draw, 1)}","{_sentence(draw, 1)}"],"ok":{"true" if draw.random() < 0.5 else "null"},'
            f'"text":"{_sentence(draw)}\\n"}}'
        )

    return f"{_filled(size, record)}]".encode()


@cache
def xml_text(size: int) -> bytes:
    """Return an XML document with attributes, entities and text."""
    def record(draw: random.Random, number: int) -> str:
        return (
            f'<record id="{number}" kind="{_sentence(draw, 1)}"><name>{_sentence(draw, 3)} &amp; more</name>'
            f'<value unit="m">{draw.random():.6f}</value><p>{_sentence(draw)}</p><empty/></record>\n'
        )

    return f'<?xml version="1.0" encoding="UTF-8"?>\n<all>\n{_filled(size, record)}</all>\n'.encode()


@cache
def yaml_text(size: int) -> bytes:
    """Return a list of records as YAML."""
    def record(draw: random.Random, number: int) -> str:
        return (
            f'- id: {number}\n  name: {_sentence(draw, 3)}\n  ratio: {draw.random():.6f}\n'
            f"  tags: [{_sentence(draw, 1)}, '{_sentence(draw, 1)}']\n  text: |\n    {_sentence(draw)}\n"
        )

    return _filled(size, record).encode()


@cache
def markdown_text(size: int) -> bytes:
    """Return a document with all constructs of Markdown."""
    def section(draw: random.Random, number: int) -> str:
        return (
            f"## Section {number}: {_sentence(draw, 3)}\n\n{_sentence(draw)} **{_sentence(draw, 2)}** and "
            f"[{_sentence(draw, 2)}](https://example.org/{number} 'title') with `code`.\n{_sentence(draw)} &copy; "
            f"*{_sentence(draw, 1)}*.\n\n- {_sentence(draw, 4)}\n- {_sentence(draw, 4)}\n  - {_sentence(draw, 4)}\n\n"
            f"> {_sentence(draw)}\n\n```c\nint x = {number};\n```\n\n| a | b |\n|---|--:|\n| {number} | ~~2~~ |\n\n"
        )

    return _filled(size, section).encode()


@cache
def prose_text(size: int) -> bytes:
    """Return text in several scripts, with addresses and dates in it."""
    def line(draw: random.Random, number: int) -> str:
        extra = f" mail{number}@host{number % 97}.example.org 20{number % 90 + 10}-0{number % 9 + 1}-1{number % 10}"
        return f"{_sentence(draw, 20)}{extra if draw.random() < 0.3 else ''}\n"

    return _filled(size, line).encode()


@cache
def picture(side: int) -> Any:
    """Return a square picture of three channels: gradients, edges, texture and a little noise, as photographs have."""
    y, x = np.mgrid[0:side, 0:side].astype(np.float64)
    waves = [127 + 60 * np.sin(x / 37 + k) + 50 * np.cos((x + (k + 1) * y) / 53) for k in range(3)]
    pixels = np.stack(waves, axis=2)
    disc = (x - side / 2) ** 2 + (y - side / 3) ** 2 < (side / 5) ** 2
    pixels[disc] = 255 - pixels[disc]
    draw = random.Random(3)
    noise = np.frombuffer(draw.getrandbits(8 * side * side).to_bytes(side * side, "little"), np.uint8)
    pixels += (noise.reshape(side, side, 1) & 7).astype(np.float64) - 4
    return Arrays().copy(np.clip(pixels, 0, 255).astype(np.uint8))
