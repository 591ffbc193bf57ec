"""The gates for macOS and Windows: what a compiled object and a linked library may contain there.

Invariant: as visget.installer.gate; besides, everything that code refers to is in the table of its system
(visget.installer.systems) or comes from a dependency. The rules are docs/spec/native-gates.md, section "Other
systems".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from visget.errors import FormatError
from visget.format.reserved import why_reserved
from visget.installer import macho, pe
from visget.installer.promise import Promise, broken
from visget.installer.symbols import SYMBOL
from visget.installer.systems import NAMES, WINDOWS, WINDOWS_LIBRARIES

_DATA_LIMIT = 256 << 20
SYSTEM_LIBRARY = "/usr/lib/libSystem.B.dylib"
# What zig's linker adds to every library: the address of its own header, under two names. With macOS's two-level names
# nobody else finds them.
_HEADER_NAMES = frozenset(["_mh_dylib_header", "__dso_handle"])
_MACHO_COMMON = [
    "__TEXT,__text",
    "__TEXT,__const",
    "__TEXT,__cstring",
    "__TEXT,__literal4",
    "__TEXT,__literal8",
    "__TEXT,__literal16",
    "__TEXT,__eh_frame",
    "__DATA,__data",
    "__DATA,__bss",
    "__DATA,__common",
    "__DATA,__const",
    "__DATA_CONST,__const",
]
_MACHO_OBJECT = frozenset([*_MACHO_COMMON, "__LD,__compact_unwind"])
_MACHO_LIBRARY = frozenset(
    [*_MACHO_COMMON, *["__TEXT,__stubs", "__TEXT,__stub_helper", "__TEXT,__unwind_info",
       "__DATA_CONST,__got", "__DATA,__got", "__DATA,__la_symbol_ptr"]]
)  # fmt: skip
_MACHO_INITIALISERS = frozenset(["__DATA,__mod_init_func", "__DATA_CONST,__mod_init_func", "__TEXT,__init_offsets"])
# Contents, zeros, literals, pointers and stubs. Others make the loader act, or are thread-local.
_MACHO_KINDS = frozenset([0, 1, 2, 3, 4, 6, 7, 8, 0xB, 0xE])
_OBJECT_COMMANDS = frozenset(
    [macho.LC_SEGMENT_64, macho.LC_SYMTAB, macho.LC_DYSYMTAB, macho.LC_BUILD_VERSION, macho.LC_DATA_IN_CODE,
     macho.LC_LINKER_OPTIMIZATION_HINT]
)  # fmt: skip
_LIBRARY_COMMANDS = frozenset(
    [macho.LC_SEGMENT_64, macho.LC_SYMTAB, macho.LC_DYSYMTAB, macho.LC_LOAD_DYLIB, macho.LC_ID_DYLIB,
     macho.LC_LOAD_DYLINKER, macho.LC_UUID, macho.LC_CODE_SIGNATURE, macho.LC_FUNCTION_STARTS, macho.LC_DATA_IN_CODE,
     macho.LC_SOURCE_VERSION, macho.LC_BUILD_VERSION, macho.LC_RPATH, macho.LC_DYLD_INFO_ONLY, macho.LC_EXPORTS_TRIE,
     macho.LC_CHAINED_FIXUPS]
)  # fmt: skip
_COFF_SECTION = re.compile(r"\.(text|data|bss|rdata|xdata|pdata)(\$[\w.]+)?\Z")
_PE_SECTION = re.compile(r"\.(text|data|bss|rdata|xdata|pdata|reloc|buildid)\Z")
_PE_DIRECTORIES = frozenset([pe.EXPORTS, pe.IMPORTS, pe.EXCEPTIONS, pe.RELOCATIONS, pe.DEBUG, pe.ADDRESSES])
# Code and data may lie at any address, also above 4 GiB, and data is not executable.
_PE_LOADING = 0x20 | 0x40 | 0x100
API_SET = "api-ms-win-crt-{}-l1-1-0.dll"
"""How the parts of Windows's C run-time are called."""


def gate_foreign_object(data: bytes, promise: Promise) -> frozenset[str]:
    """Return the undefined symbols of an object file for macOS or Windows, which keeps `promise`.

    Raises:
        RefusedError: it does not; the message has every violation.
    """
    windows = promise.target.system == WINDOWS
    try:
        found, defined, undefined = _coff_object(data) if windows else _macho_object(data, promise)
    except FormatError as error:
        raise broken("object file", promise, [error.message]) from error
    found += _visible(defined, promise)
    found += _needed(undefined, promise)
    if found:
        raise broken("object file", promise, found)
    return undefined


def gate_foreign_library(data: bytes, promise: Promise, *, soname: str) -> tuple[str, ...]:
    """Return the names of the libraries that a library for macOS or Windows needs; it keeps `promise`.

    Raises:
        RefusedError: it does not; the message has every violation.
    """
    windows = promise.target.system == WINDOWS
    try:
        found, needed = (_pe_library if windows else _macho_library)(data, promise, soname)
    except FormatError as error:
        raise broken("library", promise, [error.message]) from error
    if found:
        raise broken("library", promise, found)
    return needed


def gate_import_library(data: bytes, promise: Promise, *, soname: str) -> None:
    """Check the import library `data` of a DLL: it names that DLL and the promised functions, and holds no code.

    Raises:
        RefusedError: it is something else; the message has every violation.
    """
    try:
        members = list(pe.read_import_library(data))
    except FormatError as error:
        raise broken("import library", promise, [error.message]) from error
    found = _same("it leads to", {member.library for member in members if member.name}, {soname})
    found += _visible(frozenset(member.name for member in members if member.name), promise)
    for member in members:
        found += [f"it has the section {name[:80]!r}" for name in member.sections if not name.startswith(".idata$")]
    if found:
        raise broken("import library", promise, found)


def _macho_object(data: bytes, promise: Promise) -> tuple[list[str], frozenset[str], frozenset[str]]:
    file = macho.read_macho(data)
    found = _macho_head(file, promise, macho.OBJECT, "an object file", _OBJECT_COMMANDS, _MACHO_OBJECT)
    defined = frozenset(symbol.name for symbol in file.symbols if symbol.defined)
    return found, defined, frozenset(symbol.name for symbol in file.symbols if not symbol.defined)


def _macho_library(data: bytes, promise: Promise, soname: str) -> tuple[list[str], tuple[str, ...]]:
    file = macho.read_macho(data)
    found = _macho_head(file, promise, macho.DYLIB, "a dynamic library", _LIBRARY_COMMANDS, _MACHO_LIBRARY)
    found += _same("it calls itself", file.paths(macho.LC_ID_DYLIB), [f"@rpath/{soname}"])
    found += _same("its run path is", file.paths(macho.LC_RPATH), ["@loader_path"] if promise.libraries else [])
    needed = file.paths(macho.LC_LOAD_DYLIB)
    allowed = [SYSTEM_LIBRARY, *(f"@rpath/{name}" for name in promise.libraries)]
    found += [f"it needs {name!r}, which is not part of the system" for name in needed if name not in allowed]
    found += [f"it names the loader {path}" for path in file.paths(macho.LC_LOAD_DYLINKER) if path != "/usr/lib/dyld"]
    for name, protection in file.segments:
        if protection & 6 == 6:
            found.append(f"segment {name} is both writable and executable")
    if not any(number == macho.LC_CODE_SIGNATURE for number, _ in file.commands):
        found.append("it is not signed, and the system would not load it")
    defined = frozenset(symbol.name for symbol in file.symbols if symbol.defined and not symbol.private)
    found += _visible(defined - _HEADER_NAMES, promise)
    found += _same("what its symbols and what its table of exports name differs:", defined ^ file.trie, [])
    undefined = [symbol for symbol in file.symbols if not symbol.defined]
    found += _needed((symbol.name for symbol in undefined if symbol.name != macho.BINDER), promise)
    for symbol in undefined:
        home = needed[symbol.library - 1] if 1 <= symbol.library <= len(needed) else "no library"
        if (home == SYSTEM_LIBRARY) == (symbol.name in promise.taken):
            found.append(f"it takes {symbol.name[:80]} from {home}")
    return found, tuple(needed)


def _macho_head(
    file: macho.MachO, promise: Promise, kind: int, what: str, commands: frozenset[int], sections: frozenset[str]
) -> list[str]:
    found = []
    if file.kind != kind:
        found.append(f"it is not {what} (kind {file.kind})")
    if file.cpu != macho.CPU_ARM64:
        found.append(f"it is for another processor ({file.cpu:#x}) than {promise.target.arch}")
    found += [
        f"it has the load command {number:#x}, which packages may not have"
        for number, _ in file.commands
        if number not in commands
    ]
    for section in file.sections:
        if section.label in _MACHO_INITIALISERS and section.kind in (9, 0x16):
            if not promise.constructors:
                found.append(f"section {section.label} runs code at loading, which its manifest does not announce")
        elif section.label not in sections or section.kind not in _MACHO_KINDS:
            found.append(f"section {section.label[:80]} ({section.kind:#x}) is not one that packages may have")
    if sum(section.size for section in file.sections if "__DATA" in section.segment) > _DATA_LIMIT:
        found.append(f"it has more than {_DATA_LIMIT >> 20} MiB of variables")
    found += [f"{symbol.name[:80]} is weak, so that others could replace it" for symbol in file.symbols
              if symbol.defined and symbol.weak]  # fmt: skip
    return found


def _coff_object(data: bytes) -> tuple[list[str], frozenset[str], frozenset[str]]:
    file = pe.read_coff(data)
    found = [] if file.machine == pe.AMD64 else [f"it is for another processor ({file.machine:#x})"]
    found += _pe_sections(file.sections, _COFF_SECTION)
    found += [f"{name[:80]} is weak, so that others could replace it" for name in sorted(file.weak)]
    # Marks for the linker, which say nothing about code.
    marks = frozenset(name for name in file.defined if name.startswith("@feat."))
    return found, file.defined - marks, file.undefined


def _pe_library(data: bytes, promise: Promise, soname: str) -> tuple[list[str], tuple[str, ...]]:
    file = pe.read_pe(data)
    found = [] if file.machine == pe.AMD64 else [f"it is for another processor ({file.machine:#x})"]
    if not file.flags & 0x2000:
        found.append("it is not a DLL")
    if file.entry:
        found.append("it runs code when it is loaded")
    if file.loading & _PE_LOADING != _PE_LOADING:
        found.append(f"it does without a protection of its memory ({file.loading:#x})")
    found += _same("it calls itself", [file.name], [soname])
    found += _pe_sections(file.sections, _PE_SECTION)
    extra = sorted(set(file.directories) - _PE_DIRECTORIES)
    found += [f"it has the data directory {number}, which packages may not have" for number in extra]
    found += _visible(file.exports, promise)
    found += [f"{name[:80]} leads to another library" for name in sorted(file.forwarded)]
    homes = {API_SET.format(part): names for part, names in WINDOWS_LIBRARIES.items()}
    homes |= dict.fromkeys(promise.libraries, promise.taken)
    for home, names in file.imports:
        if home not in homes:
            found.append(f"it needs {home!r}, which is not part of the system")
        elif odd := sorted(names - homes[home]):
            found.append(f"it takes {', '.join(odd)[:200]} from {home}")
    return found, tuple(home for home, _ in file.imports)


def _pe_sections(sections: Iterable[pe.Section], allowed: re.Pattern[str]) -> list[str]:
    found, size = [], 0
    for section in sections:
        if not allowed.match(section.name):
            found.append(f"section {section.name[:80]!r} is not one that packages may have")
        if section.flags & pe.WRITE and section.flags & pe.EXECUTE:
            found.append(f"section {section.name[:80]} is both writable and executable")
        size += section.size if section.flags & pe.WRITE else 0
    if size > _DATA_LIMIT:
        found.append(f"it has more than {_DATA_LIMIT >> 20} MiB of variables")
    return found


def _visible(visible: frozenset[str], promise: Promise) -> list[str]:
    promised = promise.exports | promise.bound
    found = [f"{name} is exported by the manifest but not by the code" for name in sorted(promised - visible)]
    found += [f"{name[:80]} is exported by the code but not by the manifest" for name in sorted(visible - promised)]
    for name in sorted(visible):
        if owner := why_reserved(name):
            found.append(f"{name[:80]} must not be exported: it belongs to {owner}")
        if name not in promise.bound and not SYMBOL.match(name):
            found.append(f"{name[:80]!r} is not a name that a symbol may have")
    return found


def _needed(names: Iterable[str], promise: Promise) -> list[str]:
    known = NAMES[promise.target.system].native | promise.taken
    return [f"{name[:80]} is needed, and {promise.target.platform} has no such function that a package may use"
            for name in sorted(set(names) - known)]  # fmt: skip


def _same(what: str, found: Iterable[str], wanted: Iterable[str]) -> list[str]:
    left, right = sorted(found), sorted(wanted)
    return [] if left == right else [f"{what} {', '.join(left) or 'nothing'} and not {', '.join(right) or 'nothing'}"]
