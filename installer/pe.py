"""Reading COFF object files and PE libraries for x86-64, and writing the one object that visget adds to each.

Invariant: every offset and count is compared with the file before it is used; what is malformed is a FormatError.
Format: Microsoft's "PE Format".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from visget.errors import FormatError

AMD64 = 0x8664
EXECUTE, WRITE = 0x20000000, 0x80000000
EXPORTS, IMPORTS, EXCEPTIONS, RELOCATIONS, DEBUG, ADDRESSES = 0, 1, 3, 5, 6, 12

_FILE = struct.Struct("<2H3I2H")
_SECTION = struct.Struct("<8s6I2HI")
_SYMBOL = struct.Struct("<8sIhHBB")
_EXPORTS = struct.Struct("<2I2H7I")
_MANY = 1 << 20
_EXTERNAL, _WEAK = 2, 105

# LLVM calls this on Windows where a function's frame is larger than a page: so many bytes as rax says are touched, page
# after page, because the system makes a stack longer only page by page. It changes no register.
_PROBE = bytes.fromhex("5051488d4c2418483d0010000076114881e9001000008401482d00100000ebe74829c184015958c3")
PROBE = "___chkstk_ms"
"""The name under which LLVM calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section."""

    name: str
    address: int
    size: int
    flags: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coff:
    """What an object file says about itself."""

    machine: int
    sections: tuple[Section, ...]
    defined: frozenset[str]
    """The symbols that other files see."""
    undefined: frozenset[str]
    weak: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What a DLL says about itself."""

    machine: int
    flags: int
    """Characteristics of the file."""
    loading: int
    """DllCharacteristics."""
    entry: int
    """The address of the function that runs when it is loaded; 0 for none."""
    sections: tuple[Section, ...]
    name: str
    exports: frozenset[str]
    forwarded: frozenset[str]
    imports: tuple[tuple[str, frozenset[str]], ...]
    """Each library that it needs, and the names that it takes from it; an ordinal is a number sign and digits."""
    directories: tuple[int, ...]
    """The numbers of the data directories that it has."""


def read_coff(data: bytes) -> Coff:
    """Return what the object file `data` says.

    Raises:
        FormatError: it is not a COFF file, or is malformed.
    """
    try:
        machine, count, _, table, symbols, optional, _ = _FILE.unpack_from(data)
        sections = tuple(_sections(data, _FILE.size + optional, count, table + symbols * _SYMBOL.size))
        defined, undefined, weak = _symbols(data, table, symbols)
        return Coff(machine=machine, sections=sections, defined=defined, undefined=undefined, weak=weak)
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(f"it is not a COFF file that can be read: {error}") from None


def _sections(data: bytes, offset: int, count: int, strings: int) -> Iterator[Section]:
    for number in range(count):
        name, memory, address, size, start, _, _, _, _, flags = _SECTION.unpack_from(
            data, offset + number * _SECTION.size
        )
        text = name.rstrip(b"\0").decode("ascii", "replace")
        if text.startswith("/"):
            place = strings + int(text[1:])
            text = data[place : data.index(b"\0", place)].decode("ascii", "replace")
        content = data[start : start + size] if start else b""
        if start and len(content) != size:
            raise FormatError(f"section {text[:80]!r} does not fit the file")
        yield Section(name=text, address=address, size=max(memory, size), flags=flags, data=content)


def _symbols(data: bytes, table: int, count: int) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    defined, undefined, weak = set(), set(), set()
    strings = table + count * _SYMBOL.size
    number = 0
    if count > _MANY:
        raise FormatError("it has too many symbols")
    while number < count:
        raw, value, section, _, kind, more = _SYMBOL.unpack_from(data, table + number * _SYMBOL.size)
        number += 1 + more
        if raw[:4] == b"\0\0\0\0":
            place = strings + struct.unpack("<I", raw[4:])[0]
            raw = data[place : data.index(b"\0", place)]
        name = raw.rstrip(b"\0").decode("ascii", "replace")
        if kind == _WEAK:
            weak.add(name)
        elif kind == _EXTERNAL and section == 0 and value == 0:
            undefined.add(name)
        elif kind == _EXTERNAL:
            defined.add(name)
    return frozenset(defined), frozenset(undefined), frozenset(weak)


class _Image:
    """A file as it lies in memory."""

    def __init__(self, data: bytes) -> None:
        if data[:2] != b"MZ":
            raise FormatError("it is not a PE file")
        (start,) = struct.unpack_from("<I", data, 0x3C)
        if data[start : start + 4] != b"PE\0\0":
            raise FormatError("it is not a PE file")
        self.machine, count, _, _, _, optional, self.flags = _FILE.unpack_from(data, start + 4)
        head = start + 4 + _FILE.size
        magic, _, _, _, _, _, self.entry = struct.unpack_from("<HBB4I", data, head)
        if magic != 0x20B:
            raise FormatError("it is not a 64-bit PE file")
        (self.loading,) = struct.unpack_from("<H", data, head + 70)
        (directories,) = struct.unpack_from("<I", data, head + 108)
        pairs = [struct.unpack_from("<2I", data, head + 112 + 8 * number) for number in range(min(directories, 16))]
        self.directories = {number: (place, size) for number, (place, size) in enumerate(pairs) if place}
        self.sections = tuple(_sections(data, head + optional, count, 0))

    def at(self, address: int, size: int) -> bytes:
        for section in self.sections:
            offset = address - section.address
            if 0 <= offset < section.size:
                piece = section.data[offset : offset + size]
                return piece + bytes(size - len(piece)) if offset + size <= section.size else piece
        raise FormatError(f"nothing lies at the address {address:#x}")

    def text(self, address: int) -> str:
        raw = self.at(address, 512)
        return raw[: raw.index(b"\0")].decode("ascii", "replace")


def read_pe(data: bytes) -> Library:
    """Return what the DLL `data` says.

    Raises:
        FormatError: it is not a 64-bit PE file, or is malformed.
    """
    try:
        image = _Image(data)
        name, exports, forwarded = _exports(image)
        return Library(
            machine=image.machine, flags=image.flags, loading=image.loading, entry=image.entry, sections=image.sections,
            name=name, exports=exports, forwarded=forwarded, imports=tuple(_imports(image)),
            directories=tuple(sorted(image.directories)),
        )  # fmt: skip
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(f"it is not a PE file that can be read: {error}") from None


def _exports(image: _Image) -> tuple[str, frozenset[str], frozenset[str]]:
    place, size = image.directories.get(EXPORTS, (0, 0))
    if not place:
        return "", frozenset(), frozenset()
    _, _, _, _, own, _, functions, count, table, texts, ordinals = _EXPORTS.unpack(image.at(place, _EXPORTS.size))
    if count > _MANY or functions != count:
        raise FormatError("it exports functions without names")
    names, forwarded = set(), set()
    for number in range(count):
        (where,) = struct.unpack("<I", image.at(texts + 4 * number, 4))
        (index,) = struct.unpack("<H", image.at(ordinals + 2 * number, 2))
        (address,) = struct.unpack("<I", image.at(table + 4 * index, 4))
        name = image.text(where)
        names.add(name)
        if place <= address < place + size:
            forwarded.add(name)
    return image.text(own), frozenset(names), frozenset(forwarded)


def _imports(image: _Image) -> Iterator[tuple[str, frozenset[str]]]:
    place, _ = image.directories.get(IMPORTS, (0, 0))
    while place:
        lookup, _, _, name, addresses = struct.unpack("<5I", image.at(place, 20))
        if not name:
            return
        names = set()
        table = lookup or addresses
        while entry := struct.unpack("<Q", image.at(table, 8))[0]:
            names.add(f"#{entry & 0xFFFF}" if entry >> 63 else image.text(entry + 2))
            table += 8
        yield image.text(name), frozenset(names)
        place += 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of an import library: a function, or a part of the table that leads to the DLL."""

    name: str
    """The function; empty for a part of the table."""
    library: str
    sections: tuple[str, ...]
    """The sections of a part of the table."""


def read_import_library(data: bytes) -> Iterator[Member]:
    """Yield the members of an import library.

    Raises:
        FormatError: it is not one, or is malformed.
    """
    try:
        if data[:8] != b"!<arch>\n":
            raise FormatError("it is not an archive")
        place = 8
        while place < len(data):
            name, size = data[place : place + 16].rstrip(), int(data[place + 48 : place + 58])
            body = data[place + 60 : place + 60 + size]
            if len(body) != size:
                raise FormatError("a member does not fit the archive")
            place += 60 + size + size % 2
            if name in (b"/", b"//"):
                continue
            if body[:4] == b"\0\0\xff\xff":
                symbol, library = body[20:].split(b"\0")[:2]
                yield Member(name=symbol.decode("ascii"), library=library.decode("ascii"), sections=())
            else:
                part = read_coff(body)
                yield Member(name="", library="", sections=tuple(section.name for section in part.sections))
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(f"it is not an import library that can be read: {error}") from None


def probe_object() -> bytes:
    """Return an object file that defines PROBE."""
    name = PROBE.encode() + b"\0"
    start = _FILE.size + _SECTION.size
    symbols = start + len(_PROBE)
    head = _FILE.pack(AMD64, 1, 0, symbols, 1, 0, 0)
    section = _SECTION.pack(b".text\0\0\0", 0, 0, len(_PROBE), start, 0, 0, 0, 0, 0x60500020)
    symbol = _SYMBOL.pack(b"\0\0\0\0\x04\0\0\0", 0, 1, 0x20, _EXTERNAL, 0)
    return head + section + _PROBE + symbol + struct.pack("<I", 4 + len(name)) + name
