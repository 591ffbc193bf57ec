"""A tiny interpreter of classic BPF, so that filters for other architectures can be judged here."""

from __future__ import annotations

import struct

ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000


def run(program: bytes, number: int, audit: int, *arguments: int) -> int:
    """Return the answer of `program` to the system call `number` under the convention `audit`."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *(*arguments, *[0] * 6)[:6])
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = position = 0
    for _ in range(len(code)):
        operation, then, otherwise, operand = code[position]
        position += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x06:
            return operand
        else:
            true = {0x15: accumulator == operand, 0x25: accumulator > operand, 0x35: accumulator >= operand}[operation]
            position += then if true else otherwise
    raise AssertionError("the program does not end")
