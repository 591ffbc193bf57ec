"""A reader of ELF-64 little-endian files: just what the gates look at.

Invariant: read_elf() reads nothing outside the bytes that it is given, and whatever they are it returns an ElfFile
or raises FormatError. Field names are those of the System V gABI, chapters 4 and 5, written out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from visget.errors import FormatError, UnsupportedError

ET_REL, ET_DYN = 1, 3
SHT_SYMTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOBITS, SHT_REL, SHT_DYNSYM, SHT_GROUP = 2, 4, 6, 8, 9, 11, 17
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_TLS = 1, 2, 3, 7
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_OBJECT, STT_FUNC, STT_TLS, STT_GNU_IFUNC = 1, 2, 6, 10
STV_DEFAULT, STV_HIDDEN, STV_PROTECTED = 0, 2, 3
SHN_UNDEF = 0
DT_NULL, DT_NEEDED, DT_INIT, DT_FINI, DT_SONAME, DT_RPATH, DT_TEXTREL = 0, 1, 12, 13, 14, 15, 22
DT_INIT_ARRAY, DT_FINI_ARRAY, DT_RUNPATH, DT_FLAGS, DT_PREINIT_ARRAY = 25, 26, 29, 30, 32
DT_AUDIT, DT_DEPAUDIT, DT_AUXILIARY, DT_FILTER = 0x6FFFFEFC, 0x6FFFFEFB, 0x7FFFFFFD, 0x7FFFFFFF
DT_FLAGS_1 = 0x6FFFFFFB
DF_SYMBOLIC, DF_TEXTREL, DF_BIND_NOW, DF_STATIC_TLS = 2, 4, 8, 16
DF_1_NOW = 1

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<qQ")

NEEDS_LINKER = {"constructors": (".init_array", ".fini_array"), "thread-local variables": (".tdata", ".tbss")}
"""Sections of an object that only a linked library makes work: LLVM's linker in memory skips the first without a word
and ends the process at the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section header."""

    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One program header."""

    type: int
    flags: int
    offset: int
    size: int
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One entry of a symbol table."""

    name: str
    binding: int
    type: int
    visibility: int
    section: int
    """Index of the section that defines it; SHN_UNDEF when another file must."""

    @property
    def defined(self) -> bool:
        """Whether this file defines it."""
        return self.section != SHN_UNDEF


@dataclass(frozen=True, slots=True)
class ElfFile:
    """The headers of one file, and its bytes."""

    data: bytes
    kind: int
    machine: int
    flags: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]

    def symbols(self, table: int) -> Iterator[Symbol]:
        """Yield the named symbols of every table of type `table` (SHT_SYMTAB or SHT_DYNSYM)."""
        for section in self.sections:
            if section.type != table:
                continue
            strings = _linked(self, section)
            content = _cut(self.data, section.offset, section.size, f"section {section.name}")
            for name, info, other, index, _value, _size in _entries(_SYMBOL, content, section.name):
                if name:
                    yield Symbol(
                        name=_text(strings, name, "symbol"),
                        binding=info >> 4,
                        type=info & 15,
                        visibility=other & 3,
                        section=index,
                    )

    def group_names(self) -> list[str]:
        """Return the names of the symbols that stand for the groups of sections (SHT_GROUP)."""
        found = []
        for section in self.sections:
            if section.type == SHT_GROUP:
                if not 1 <= section.link <= len(self.sections):
                    raise FormatError("a group of sections of the ELF file has no symbol table")
                table = self.sections[section.link - 1]
                if section.info >= table.size // _SYMBOL.size:
                    raise FormatError("a group of sections of the ELF file names a symbol that is not there")
                row = _cut(self.data, table.offset + section.info * _SYMBOL.size, _SYMBOL.size, "a symbol")
                found.append(_text(_linked(self, table), _SYMBOL.unpack(row)[0], "symbol"))
        return found

    def relocation_types(self) -> set[int]:
        """Return the types of relocations that occur."""
        found: set[int] = set()
        for section in self.sections:
            if section.type == SHT_RELA:
                content = _cut(self.data, section.offset, section.size, f"section {section.name}")
                found |= {info & 0xFFFFFFFF for _, info, _ in _entries(_RELOCATION, content, section.name)}
        return found

    def dynamic(self) -> list[tuple[int, int]]:
        """Return the (tag, value) pairs of the dynamic section, as the loader finds it."""
        pairs: list[tuple[int, int]] = []
        for segment in self.segments:
            if segment.type == PT_DYNAMIC:
                content = _cut(self.data, segment.offset, segment.size, "the dynamic segment")
                for tag, value in _entries(_DYNAMIC, content, ".dynamic"):
                    if tag == DT_NULL:
                        break
                    pairs.append((tag, value))
        return pairs

    def dynamic_text(self, offset: int) -> str:
        """Return the text at `offset` in the dynamic string table."""
        for section in self.sections:
            if section.type == SHT_DYNAMIC:
                return _text(_linked(self, section), offset, "name")
        raise FormatError("the ELF file has a dynamic segment but no dynamic section")


def read_elf(data: bytes) -> ElfFile:
    """Read the headers of `data`.

    Raises:
        FormatError: not an ELF-64 little-endian file, or one whose tables lie outside it.
    """
    if len(data) < _HEADER.size or data[:7] != b"\x7fELF\x02\x01\x01":
        raise FormatError("not a 64-bit little-endian ELF file")
    (_, kind, machine, version, _, segments_at, sections_at, flags, _, segment_size, segments, section_size,
     sections, names_index) = _HEADER.unpack_from(data)  # fmt: skip
    if version != 1 or (segments and segment_size != _SEGMENT.size) or section_size != _SECTION.size:
        raise FormatError("the ELF header is malformed")
    # With 65280 sections or more the count would be elsewhere; no compiled package comes near.
    table = _cut(data, sections_at, sections * _SECTION.size, "the section table")
    raw = list(_SECTION.iter_unpack(table))
    if names_index >= len(raw):
        raise FormatError("the ELF header names no section for the sections' names")
    names = _cut(data, raw[names_index][4], raw[names_index][5], "the sections' names")
    return ElfFile(
        data=data,
        kind=kind,
        machine=machine,
        flags=flags,
        sections=tuple(
            Section(
                name=_text(names, row[0], "section"),
                type=row[1],
                flags=row[2],
                offset=row[4],
                size=row[5],
                link=row[6],
                info=row[7],
                align=row[8],
            )
            for row in raw[1:]
        ),
        segments=tuple(
            Segment(type=row[0], flags=row[1], offset=row[2], size=row[5], memory=row[6])
            for row in _SEGMENT.iter_unpack(_cut(data, segments_at, segments * _SEGMENT.size, "the program headers"))
        ),
    )


def _linked(elf: ElfFile, section: Section) -> bytes:
    if not 1 <= section.link <= len(elf.sections):
        raise FormatError(f"section {section.name} of the ELF file has no string table")
    strings = elf.sections[section.link - 1]
    return _cut(elf.data, strings.offset, strings.size, f"section {strings.name}")


def _cut(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise FormatError(f"{what} of the ELF file lies outside it")
    return data[offset : offset + size]


def _entries(layout: struct.Struct, content: bytes, what: str) -> Iterator[tuple[int, ...]]:
    if len(content) % layout.size:
        raise FormatError(f"{what} of the ELF file has an incomplete entry")
    return layout.iter_unpack(content)


def _text(strings: bytes, offset: int, what: str) -> str:
    end = strings.find(b"\0", offset)
    if offset >= len(strings) or end < 0:
        raise FormatError(f"a {what}'s name lies outside its string table in the ELF file")
    # Names that are not ASCII are shown escaped; no list of allowed names has one.
    return strings[offset:end].decode("ascii", "backslashreplace")


def check_needs_no_linker(content: bytes, label: str) -> None:
    """Refuse an object that LLVM's linker in memory would load wrongly.

    Raises:
        UnsupportedError: there are constructors or thread-local variables.
    """
    sections = {section.name for section in read_elf(content).sections}
    for what, names in NEEDS_LINKER.items():
        if any(section.startswith(names) for section in sections):
            raise UnsupportedError(
                f"{label} has {what}, which only work in a linked library, and there is no linker",
                where=label,
                hint="install a linker: Debian's lld or binutils, or pip install 'visget[author]'",
            )
