"""Object files that only define names: what stands in for a C library that is not there at link time.

Invariant: the bytes depend on the arguments alone. A linker needs a shared library to find out which name comes
from where; for a foreign target there is none, so visget links one from such an object, and the loader of the
target finds the real library by its name. Format: ELF-64, little-endian, relocatable (System V gABI, chapter 4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}
"""ELF's number for each processor family (e_machine)."""
ELF_FLAGS = {"x86_64": 0, "aarch64": 0, "riscv64": 0x5}
"""e_flags of linkable code: for RISC-V compressed instructions and the double-float calling convention."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + b"\0" * 9
_NAMES = (b"", b".text", b".symtab", b".strtab", b".shstrtab", b".note.GNU-stack")
_GLOBAL_FUNCTION = 0x12


def stub_object(arch: str, names: Iterable[str]) -> bytes:
    """Return an object file for `arch` that defines each of `names` as a function of no length."""
    strings = bytearray(b"\0")
    symbols = bytearray(_SYMBOL.pack(0, 0, 0, 0, 0, 0))
    text = b"\0" * 16
    for name in sorted(set(names)):
        symbols += _SYMBOL.pack(len(strings), _GLOBAL_FUNCTION, 0, 1, 0, 0)
        strings += name.encode("ascii") + b"\0"
    section_names = b"\0".join(_NAMES) + b"\0"
    # Each part starts at a multiple of 8.
    parts = [text, bytes(symbols), bytes(strings), section_names]
    offsets, body = [], bytearray()
    for part in parts:
        offsets.append(_HEADER.size + len(body))
        body += part + b"\0" * (-len(part) % 8)
    position = [section_names.index(b"\0" + name + b"\0") + 1 if name else 0 for name in _NAMES]
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    table = b"".join(
        _SECTION.pack(*row)
        for row in (
            (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            (position[1], 1, 6, 0, offsets[0], len(text), 0, 0, 16, 0),
            (position[2], 2, 0, 0, offsets[1], len(symbols), 3, 1, 8, _SYMBOL.size),
            (position[3], 3, 0, 0, offsets[2], len(strings), 0, 0, 1, 0),
            (position[4], 3, 0, 0, offsets[3], len(section_names), 0, 0, 1, 0),
            (position[5], 1, 0, 0, offsets[3], 0, 0, 0, 1, 0),
        )
    )
    header = _HEADER.pack(
        _IDENT, 1, MACHINES[arch], 1, 0, 0, _HEADER.size + len(body), ELF_FLAGS[arch],
        _HEADER.size, 0, 0, _SECTION.size, len(_NAMES), 4,
    )  # fmt: skip
    return header + bytes(body) + table
