"""Reading Mach-O: 64-bit arm64 object files and dynamic libraries, as far as visget checks them.

Invariant: every offset and count is compared with the file before it is used; what is malformed is a FormatError.
Names are without the underscore that Mach-O puts before C's. Format: <mach-o/loader.h>, <mach-o/nlist.h>.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from visget.errors import FormatError

CPU_ARM64 = 0x0100000C
OBJECT, DYLIB = 1, 6
LC_SYMTAB, LC_DYSYMTAB, LC_LOAD_DYLIB, LC_ID_DYLIB, LC_LOAD_DYLINKER, LC_SEGMENT_64, LC_UUID = (
    2,
    11,
    12,
    13,
    14,
    0x19,
    0x1B,
)
LC_CODE_SIGNATURE, LC_FUNCTION_STARTS, LC_DATA_IN_CODE, LC_SOURCE_VERSION, LC_BUILD_VERSION = (
    0x1D,
    0x26,
    0x29,
    0x2A,
    0x32,
)
LC_LINKER_OPTION, LC_LINKER_OPTIMIZATION_HINT = 0x2D, 0x2E
LC_RPATH, LC_DYLD_INFO_ONLY, LC_EXPORTS_TRIE, LC_CHAINED_FIXUPS = 0x8000001C, 0x80000022, 0x80000033, 0x80000034

BINDER = "dyld_stub_binder"
"""The loader's own function, which every library refers to and whose name has no underscore."""

_HEADER = struct.Struct("<8I")
_SEGMENT = struct.Struct("<2I16s4Q4I")
_SECTION = struct.Struct("<16s16s2Q8I")
_NLIST = struct.Struct("<IBBHQ")
_MAGIC = 0xFEEDFACF
_MANY = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section, and whether its segment may be written or executed."""

    segment: str
    name: str
    size: int
    kind: int
    """The low byte of the flags: what loaders do with it."""

    @property
    def label(self) -> str:
        """Both names, as linkers write them."""
        return f"{self.segment},{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A symbol that other files can see, or that is needed from them."""

    name: str
    defined: bool
    private: bool
    weak: bool
    library: int
    """For a needed one in a library: the number of the library it comes from, from 1 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachO:
    """What a file says about itself."""

    cpu: int
    kind: int
    commands: tuple[tuple[int, bytes], ...]
    """Number and bytes of each load command."""
    segments: tuple[tuple[str, int], ...]
    """Name and highest protection (4: execute, 2: write) of each segment."""
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    trie: frozenset[str]
    """The names that the loader finds in a library."""

    def paths(self, command: int) -> list[str]:
        """Return the path in each load command of a kind (LC_ID_DYLIB, LC_LOAD_DYLIB, LC_RPATH, LC_LOAD_DYLINKER)."""
        found = []
        for number, data in self.commands:
            if number == command:
                (start,) = struct.unpack_from("<I", data, 8)
                if not 12 <= start < len(data):
                    raise FormatError("a load command has its path outside itself")
                found.append(data[start:].split(b"\0", 1)[0].decode("utf-8", "replace"))
        return found


def read_macho(data: bytes) -> MachO:
    """Return what the Mach-O file `data` says.

    Raises:
        FormatError: it is not a 64-bit little-endian Mach-O file, or is malformed.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise FormatError(f"it is not a Mach-O file that can be read: {error}") from None


def _read(data: bytes) -> MachO:
    magic, cpu, _, kind, count, size, _, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise FormatError("it is not a 64-bit Mach-O file")
    commands, offset = [], _HEADER.size
    for _ in range(count):
        number, length = struct.unpack_from("<II", data, offset)
        if length < 8 or offset + length > min(len(data), _HEADER.size + size):
            raise FormatError("a load command does not fit the file")
        commands.append((number, data[offset : offset + length]))
        offset += length
    segments: list[tuple[str, int]] = []
    sections: list[Section] = []
    symbols: list[Symbol] = []
    trie: frozenset[str] = frozenset()
    for number, body in commands:
        if number == LC_SEGMENT_64:
            segment = _SEGMENT.unpack_from(body)
            if segment[5] + segment[6] > len(data):
                raise FormatError(f"segment {_text(segment[2])[:80]!r} does not fit the file")
            segments.append((_text(segment[2]), segment[7]))
            for place in range(segment[9]):
                found = _SECTION.unpack_from(body, _SEGMENT.size + place * _SECTION.size)
                sections.append(
                    Section(segment=_text(found[1]), name=_text(found[0]), size=found[3], kind=found[8] & 0xFF)
                )
        elif number == LC_SYMTAB:
            symbols += _symbols(data, *struct.unpack_from("<4I", body, 8))
        elif number == LC_DYLD_INFO_ONLY:
            trie |= _trie(data, *struct.unpack_from("<2I", body, 40))
        elif number == LC_EXPORTS_TRIE:
            trie |= _trie(data, *struct.unpack_from("<2I", body, 8))
    return MachO(
        cpu=cpu, kind=kind, commands=tuple(commands), segments=tuple(segments), sections=tuple(sections),
        symbols=tuple(symbols), trie=trie,
    )  # fmt: skip


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("ascii", "replace")


def _plain(raw: bytes) -> str:
    name = raw.decode("ascii", "replace")
    if name == BINDER:
        return name
    if not name.startswith("_"):
        raise FormatError(f"the symbol {name[:80]!r} is not one of C's")
    return name[1:]


def _symbols(data: bytes, offset: int, count: int, strings: int, size: int) -> Iterator[Symbol]:
    table = data[strings : strings + size]
    if len(table) != size or count > _MANY:
        raise FormatError("its table of symbols does not fit the file")
    for number in range(count):
        name, kind, _, about, _ = _NLIST.unpack_from(data, offset + number * _NLIST.size)
        if kind & 0xE0 or not kind & 0x01:
            continue  # for debuggers, or local
        end = table.index(b"\0", name)
        yield Symbol(
            name=_plain(table[name:end]), defined=kind & 0x0E != 0, private=bool(kind & 0x10), weak=bool(about & 0xC0),
            library=about >> 8,
        )  # fmt: skip


def _trie(data: bytes, offset: int, size: int) -> frozenset[str]:
    """Return the names in a tree of exports, whose edges hold parts of names."""
    tree = data[offset : offset + size]
    if len(tree) != size:
        raise FormatError("its table of exports does not fit the file")
    names, pending, seen = set(), [(0, b"")] if tree else [], set[int]()
    while pending:
        place, prefix = pending.pop()
        if place in seen or len(seen) > _MANY:
            raise FormatError("its table of exports is no tree")
        seen.add(place)
        terminal, place = _number(tree, place)
        if terminal:
            flags, _ = _number(tree, place)
            if flags & ~0x03:
                raise FormatError(f"the export {prefix[:80]!r} is of an odd kind ({flags:#x})")
            names.add(_plain(prefix))
        place += terminal
        children = tree[place]
        place += 1
        for _ in range(children):
            end = tree.index(b"\0", place)
            child, after = _number(tree, end + 1)
            pending.append((child, prefix + tree[place:end]))
            place = after
    return frozenset(names)


def _number(tree: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = tree[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, place
        if shift > 63:
            raise FormatError("a number in its table of exports has no end")
