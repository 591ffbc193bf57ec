"""The symbols of a bitcode object, read without LLVM.

Compilers put a table for linkers into bitcode (LLVM's ``irsymtab``): which names a module defines and which it needs.
Reading it takes microseconds, where starting LLVM takes a tenth of a second; linking hundreds of configure tests and
``visget nm`` live off it. Invariant: read_symbols() reads nothing outside the bytes that it is given, and returns
Symbols or raises FormatError. The layout is LLVM's ``llvm/Object/IRSymtab.h``, version 3 and later.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from visget.errors import FormatError

MAGIC = b"BC\xc0\xde"
"""The first bytes of bitcode."""

_STRTAB, _SYMTAB = 23, 25
_ENTER_SUBBLOCK, _DEFINE_ABBREV = 1, 2
_SYMBOL = struct.Struct("<6I")
# Word 0 is the version; then the producer (a text), and ranges of modules, COMDATs and symbols.
_SYMBOLS_AT = 4 + 8 + 8 + 8
_UNDEFINED, _WEAK, _COMMON, _TLS, _GLOBAL, _SPECIAL, _EXECUTABLE = 3, 4, 5, 8, 10, 11, 13


class Symbol(NamedTuple):
    """One name of a module."""

    name: str
    defined: bool
    weak: bool
    common: bool
    visible: bool
    """Whether other objects can see it."""
    executable: bool
    """Whether it is a function."""
    tls: bool
    visibility: str
    """``default``, ``hidden`` or ``protected``."""


def is_bitcode(data: bytes) -> bool:
    """Tell whether `data` begins as bitcode does."""
    return data[:4] == MAGIC


def read_symbols(bitcode: bytes, *, what: str = "object") -> tuple[Symbol, ...]:
    """Return the symbols of `bitcode` in their order; LLVM's intrinsics are left out.

    Raises:
        FormatError: it is not bitcode, or has no table of symbols.
    """
    if not is_bitcode(bitcode):
        raise FormatError(f"{what} is not LLVM bitcode")
    blobs = dict(_blobs(bitcode, what))
    table, strings = blobs.get(_SYMTAB), blobs.get(_STRTAB)
    if table is None or strings is None:
        raise FormatError(
            f"{what} is bitcode without a table of symbols",
            hint="let visget-cc compile it; bitcode of other tools cannot be linked by it",
        )
    try:
        offset, count = struct.unpack_from("<II", table, _SYMBOLS_AT)
        rows = [_SYMBOL.unpack_from(table, offset + _SYMBOL.size * number) for number in range(count)]
    except struct.error as error:
        raise FormatError(f"the table of symbols of {what} is cut short") from error
    return tuple(_symbol(strings, row) for row in rows if not row[5] >> _SPECIAL & 1)


def _symbol(strings: memoryview, row: tuple[int, ...]) -> Symbol:
    start, size, flags = row[0], row[1], row[5]
    return Symbol(
        name=bytes(strings[start : start + size]).decode("utf-8", "replace"),
        defined=not flags >> _UNDEFINED & 1,
        weak=bool(flags >> _WEAK & 1),
        common=bool(flags >> _COMMON & 1),
        visible=bool(flags >> _GLOBAL & 1),
        executable=bool(flags >> _EXECUTABLE & 1),
        tls=bool(flags >> _TLS & 1),
        visibility=("default", "hidden", "protected", "default")[flags & 3],
    )


def _blobs(bitcode: bytes, what: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the content of the string table and of the symbol table."""
    data = memoryview(bitcode)
    position = 4
    while position + 8 <= len(data):
        head, words = struct.unpack_from("<II", data, position)
        block = head >> 2 & 0x7F
        if head & 3 != _ENTER_SUBBLOCK or head & 0x200:
            raise FormatError(f"{what} has something other than a block at byte {position}")
        position += 8
        end = position + 4 * words
        if end > len(data):
            raise FormatError(f"{what} is cut short: its last block is longer than the file")
        if block in (_STRTAB, _SYMTAB):
            yield block, _blob(data[position:end], head >> 10 & 0xF, what)
        position = end


def _blob(block: memoryview, width: int, what: str) -> memoryview:
    """Return the one blob of `block`: an abbreviation is defined, and one record uses it."""
    bits = _Bits(block)
    if bits.fixed(width) != _DEFINE_ABBREV:
        raise FormatError(f"{what} has a table of an unknown form")
    for _ in range(bits.vbr(5)):
        if bits.fixed(1):
            bits.vbr(8)
        elif bits.fixed(3) in (1, 2):
            bits.vbr(5)
    if bits.fixed(width) < 4:
        raise FormatError(f"{what} has a table of an unknown form")
    size = bits.vbr(6)
    bits.align()
    start = bits.position // 8
    if start + size > len(block):
        raise FormatError(f"a table of {what} is cut short")
    return block[start : start + size]


class _Bits:
    """A reader of LLVM's bitstream."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.position = 0

    def fixed(self, width: int) -> int:
        """Return the next `width` bits."""
        value = 0
        for place in range(width):
            byte, bit = divmod(self.position, 8)
            if byte >= len(self._data):
                raise FormatError("a table of symbols is cut short")
            value |= (self._data[byte] >> bit & 1) << place
            self.position += 1
        return value

    def vbr(self, width: int) -> int:
        """Return the next number of variable length."""
        value = shift = 0
        while True:
            chunk = self.fixed(width)
            value |= (chunk & (1 << width - 1) - 1) << shift
            if not chunk >> width - 1:
                return value
            shift += width - 1

    def align(self) -> None:
        """Go on at the next 32-bit word."""
        self.position = (self.position + 31) // 32 * 32
