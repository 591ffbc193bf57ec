"""Write patterns.json, the table of docs/spec/vectors.md, section "Patterns": run this file.

It follows the words of the spec in plain integers and Fractions and does not import visget, so that the table is a
second opinion.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

BITS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}


def states(seed: int, count: int) -> Iterator[int]:
    for _ in range(count):
        seed = (6364136223846793005 * seed + 1442695040888963407) % 2**64
        yield seed


def pattern(type_: str, kind: str, count: int, seed: int) -> bytes:
    numbers = range(seed, seed + count) if kind == "ramp" else states(seed, count)
    data = b""
    for number in numbers:
        if type_ in BITS:
            element = number % 2 ** BITS[type_] if kind == "ramp" else number // 2 ** (64 - BITS[type_])
            data += element.to_bytes(BITS[type_] // 8, "little")
            continue
        single = type_ == "f32"
        if kind == "ramp":
            value = Fraction(number)
        else:
            value = Fraction(number // 2**40, 2**23) - 1 if single else Fraction(number // 2**11, 2**52) - 1
        data += struct.pack("<f" if single else "<d", float(value))
    return data


def main() -> None:
    rows = []
    for type_ in (*BITS, "f32", "f64"):
        for kind in ("ramp", "lcg"):
            for seed, count in ((0, 4), (250, 8), (2**32 - 1, 3), (1, 1000)):
                data = pattern(type_, kind, count, seed)
                row = {"type": type_, "kind": kind, "seed": seed, "count": count}
                row |= {"sha256": hashlib.sha256(data).hexdigest()}
                rows.append(row | ({"hex": data.hex()} if count < 10 else {}))
    lines = ",\n".join(json.dumps(row) for row in rows)
    Path(__file__).with_name("patterns.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
