"""The gates: what a compiled object and a linked library may contain.

The rules at the author's desk judge a module; these judge what came out of LLVM and out of the linker, without
trusting either. Invariant: each gate reports every violation, not just the first, and what passes exports exactly
what its manifest says, needs nothing outside the C library's family, and runs no code when it is loaded except the
constructors that its manifest announces. The rules are docs/spec/native-gates.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from visget.errors import FormatError
from visget.format.reserved import why_reserved
from visget.installer import elf
from visget.installer.gate_systems import gate_foreign_library, gate_foreign_object
from visget.installer.promise import Promise, broken
from visget.installer.stubs import ELF_FLAGS, MACHINES
from visget.installer.symbols import COMPILER_MADE, LINKER_MADE, SYMBOL
from visget.installer.systems import ANDROID, MACOS, NAMES, WINDOWS

__all__ = ["Promise", "gate_library", "gate_object"]

_DATA_LIMIT = 256 << 20
_COMMON_SECTIONS = (
    r"|\.text(\..*)?|\.rodata(\..*)?|\.data(\..*)?|\.bss(\..*)?|\.tdata(\..*)?|\.tbss(\..*)?|\.symtab|\.strtab|\.shstrtab"
    r"|\.eh_frame|\.gcc_except_table(\..*)?|\.comment|\.debug_.*|\.riscv\.attributes|\.sdata(\..*)?|\.sbss(\..*)?|\.srodata(\..*)?"
    r"|\.note\.gnu\.property|\.note\.GNU-stack"
)
_OBJECT_SECTION = re.compile(r"(\.rela\..*|\.symtab_shndx|\.llvm_addrsig|\.group" + _COMMON_SECTIONS + r")\Z")
_LIBRARY_SECTION = re.compile(
    r"(\.dynsym|\.dynstr|\.dynamic|\.hash|\.gnu\.hash|\.gnu\.version(_[rd])?|\.rela\.(dyn|plt)|\.relr\.dyn"
    r"|\.plt(\.got|\.sec)?|\.got(\.plt)?|\.eh_frame_hdr|\.relro_padding|\.bss\.rel\.ro" + _COMMON_SECTIONS + r")\Z"
)
_ARRAY_SECTION = re.compile(r"(\.rela)?\.(init|fini)_array(\..*)?\Z")
_NEEDED = re.compile(
    r"(libc\.so|libm\.so|libdl\.so|libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libgcc_s\.so\.1|libc\.musl-[a-z0-9_]+\.so\.1"
    r"|ld-linux-(x86-64\.so\.2|aarch64\.so\.1|riscv64-lp64d\.so\.1))\Z"
)
# LLVM reaches the function that reads a landing pad's tables through a variable of this name, in a group of its own,
# which linkers fold with others of that name. The installer names that function after the package.
_PERSONALITY = re.compile(r"DW\.ref\.vis_personality_[0-9a-f]{16}\Z")
_ALIGNMENT_LIMIT = 1 << 16
_THREAD_LOCAL_LIMIT = 1 << 20
# Contents, tables, notes, and what is specific to LLVM and to processors (unwinding, attributes). The rest makes
# linkers and loaders act.
_SECTION_TYPES = frozenset([0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 18, 19, 0x6FFF4C03, 0x70000001, 0x70000003]) | frozenset(
    [0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF]  # hash table and versions, in libraries
)
# Where its tables lie, what it needs and is called, and DT_DEBUG, which the loader fills in.
_KNOWN_TAGS = frozenset(
    [
        *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 16, 20, 21, 23, 24, 25, 26, 27, 28, 30, 35, 36, 37),
        *(0x6FFFFEF5, 0x6FFFFEF6, 0x6FFFFEF7, 0x6FFFFFF0, 0x6FFFFFF9, elf.DT_FLAGS_1, 0x6FFFFFFE, 0x6FFFFFFF),
        *(0x70000001, 0x70000003, 0x70000005),  # branch protection and vector calls on aarch64; RISC-V
    ]
)
_KNOWN_FLAGS = elf.DF_SYMBOLIC | elf.DF_TEXTREL | elf.DF_BIND_NOW | elf.DF_STATIC_TLS
_IRELATIVE = {"x86_64": 37, "aarch64": 1032, "riscv64": 58}
# R_*_TPOFF64, R_*_TPREL64: a place in the part of each thread's storage that is fixed when the program starts.
_STATIC_TLS = {"x86_64": 18, "aarch64": 1030, "riscv64": 11}
_FORBIDDEN_TAGS = {
    elf.DT_RPATH: "a library search path (DT_RPATH)",
    elf.DT_RUNPATH: "a library search path (DT_RUNPATH)",
    elf.DT_TEXTREL: "relocations in code (DT_TEXTREL)",
    elf.DT_INIT: "an initialisation function (DT_INIT)",
    elf.DT_FINI: "a termination function (DT_FINI)",
    elf.DT_PREINIT_ARRAY: "functions that run before all others (DT_PREINIT_ARRAY)",
    elf.DT_AUDIT: "an audit library (DT_AUDIT)",
    elf.DT_DEPAUDIT: "an audit library (DT_DEPAUDIT)",
    elf.DT_FILTER: "a filtered library (DT_FILTER)",
    elf.DT_AUXILIARY: "an auxiliary library (DT_AUXILIARY)",
}


def gate_object(data: bytes, promise: Promise) -> frozenset[str]:
    """Return the undefined symbols of the object file `data`, which keeps `promise`.

    Raises:
        RefusedError: it does not; the message has every violation.
    """
    if promise.target.system in (MACOS, WINDOWS):
        return gate_foreign_object(data, promise)
    try:
        file = elf.read_elf(data)
        symbols = list(file.symbols(elf.SHT_SYMTAB))
        groups = file.group_names()
    except FormatError as error:
        raise broken("object file", promise, [error.message]) from error
    found = _head(file, promise, elf.ET_REL, "an object file")
    found += _sections(file, promise, _OBJECT_SECTION)
    if not all(_PERSONALITY.match(name) for name in groups):
        found.append("it has section groups, whose symbols other files could replace")
    symbols = [symbol for symbol in symbols if not _is_personality(symbol)]
    found += _symbols(symbols, promise, {s.name for s in symbols if s.defined and s.binding != elf.STB_LOCAL})
    if found:
        raise broken("object file", promise, found)
    return frozenset(s.name for s in symbols if not s.defined) - LINKER_MADE


def gate_library(data: bytes, promise: Promise, *, soname: str) -> tuple[str, ...]:
    """Return the names of the libraries that the shared library `data` needs; it keeps `promise`.

    Raises:
        RefusedError: it does not; the message has every violation.
    """
    if promise.target.system in (MACOS, WINDOWS):
        return gate_foreign_library(data, promise, soname=soname)
    try:
        file = elf.read_elf(data)
        symbols = list(file.symbols(elf.SHT_DYNSYM))
        every = list(file.symbols(elf.SHT_SYMTAB))
        tags = file.dynamic()
        needed = tuple(file.dynamic_text(value) for tag, value in tags if tag == elf.DT_NEEDED)
        names = [file.dynamic_text(value) for tag, value in tags if tag == elf.DT_SONAME]
        run_paths = [file.dynamic_text(value) for tag, value in tags if tag == elf.DT_RUNPATH]
        relocations = file.relocation_types()
    except FormatError as error:
        raise broken("library", promise, [error.message]) from error
    found = _head(file, promise, elf.ET_DYN, "a shared library")
    found += _sections(file, promise, _LIBRARY_SECTION)
    found += _segments(file.segments)
    allowed = {elf.DT_RUNPATH} if promise.run_path else set()
    found += [f"it has {_FORBIDDEN_TAGS[tag]}" for tag, _ in tags if tag in _FORBIDDEN_TAGS.keys() - allowed]
    if promise.run_path and run_paths != [promise.run_path]:
        found.append(f"its library search path is {', '.join(run_paths) or 'missing'} and not {promise.run_path}")
    found += [
        f"its dynamic section has the tag {tag:#x}, which packages may not have"
        for tag, _ in tags
        if tag not in _KNOWN_TAGS and tag not in _FORBIDDEN_TAGS
    ]
    for tag, value in tags:
        unknown = value & ~{elf.DT_FLAGS: _KNOWN_FLAGS, elf.DT_FLAGS_1: elf.DF_1_NOW}.get(tag, value)
        if unknown:
            found.append(f"it asks the loader for something that packages may not have (flags {unknown:#x})")
    if any(tag == elf.DT_FLAGS and value & elf.DF_TEXTREL for tag, value in tags):
        found.append("it has relocations in code (DF_TEXTREL)")
    if not promise.constructors and any(tag in (elf.DT_INIT_ARRAY, elf.DT_FINI_ARRAY) for tag, _ in tags):
        found.append("it has constructors or destructors that its manifest does not announce")
    found += [
        f"it needs {name!r}, which is not part of the C library"
        for name in needed
        if not _NEEDED.match(name) and name not in promise.libraries
    ]
    if names != [soname]:
        found.append(f"it calls itself {', '.join(names) or 'nothing'} and not {soname}")
    if _IRELATIVE.get(promise.target.arch) in relocations:
        found.append("it has functions that are chosen by running code while it is loaded (IRELATIVE)")
    if _STATIC_TLS.get(promise.target.arch) in relocations or any(
        tag == elf.DT_FLAGS and value & elf.DF_STATIC_TLS for tag, value in tags
    ):
        found.append("it wants its thread-local variables where there is room for few libraries (static TLS)")
    found += _symbols(symbols, promise, {s.name for s in symbols if s.defined})
    # Hidden ones are not among the dynamic symbols.
    found += [f"{symbol.name} is an indirect function (ifunc)" for symbol in every if symbol.type == elf.STT_GNU_IFUNC]
    if found:
        raise broken("library", promise, found)
    return needed


def _is_personality(symbol: elf.Symbol) -> bool:
    return symbol.defined and symbol.visibility == elf.STV_HIDDEN and _PERSONALITY.match(symbol.name) is not None


def _head(file: elf.ElfFile, promise: Promise, kind: int, what: str) -> list[str]:
    found = []
    arch = promise.target.arch
    if file.kind != kind:
        found.append(f"it is not {what} (e_type {file.kind})")
    if file.machine != MACHINES[arch]:
        found.append(f"it is for another processor (e_machine {file.machine}) than {arch}")
    # RISC-V: the float convention (bits 1-2), RV32E (bit 3) must fit; compressed instructions (bit 0) may differ.
    elif (file.flags ^ ELF_FLAGS[arch]) & ~1:
        found.append(f"it has another calling convention (e_flags {file.flags:#x}) than {promise.target.platform}")
    return found


def _sections(file: elf.ElfFile, promise: Promise, allowed: re.Pattern[str]) -> list[str]:
    found = []
    data = 0
    for section in file.sections:
        if _ARRAY_SECTION.match(section.name):
            if section.type == elf.SHT_PREINIT_ARRAY:
                found.append(f"section {section.name} runs code before the program is ready")
            if not promise.constructors:
                found.append(f"section {section.name} runs code at loading, which its manifest does not announce")
        elif not allowed.match(section.name):
            found.append(f"section {section.name[:80]!r} is not one that packages may have")
        elif section.type not in _SECTION_TYPES and section.type != elf.SHT_GROUP:
            found.append(f"section {section.name[:80]} has the type {section.type:#x}, which packages may not have")
        if section.align > _ALIGNMENT_LIMIT:
            found.append(f"section {section.name[:80]} is aligned to {section.align} bytes; the limit is "
                         f"{_ALIGNMENT_LIMIT}")  # fmt: skip
        if section.flags & elf.SHF_WRITE and section.flags & elf.SHF_EXECINSTR:
            found.append(f"section {section.name[:80]} is both writable and executable")
        if section.name == ".note.GNU-stack" and section.flags & elf.SHF_EXECINSTR:
            found.append("it asks for an executable stack")
        if section.flags & elf.SHF_WRITE and section.flags & elf.SHF_ALLOC:
            data += section.size
    if data > _DATA_LIMIT:
        found.append(f"it has {data >> 20} MiB of variables; the limit is {_DATA_LIMIT >> 20} MiB")
    return found


def _segments(segments: Iterable[elf.Segment]) -> list[str]:
    found = []
    stacks = [segment for segment in segments if segment.type == elf.PT_GNU_STACK]
    if not stacks or any(segment.flags & elf.PF_X for segment in stacks):
        found.append("it asks for an executable stack")
    for segment in segments:
        if segment.type == elf.PT_INTERP:
            found.append("it names a program interpreter")
        if segment.type == elf.PT_TLS and segment.memory > _THREAD_LOCAL_LIMIT:
            found.append(f"it has {segment.memory >> 10} KiB of variables for each thread; the limit is "
                         f"{_THREAD_LOCAL_LIMIT >> 10} KiB")  # fmt: skip
        if segment.type == elf.PT_LOAD and segment.flags & elf.PF_W and segment.flags & elf.PF_X:
            found.append("it has a segment that is both writable and executable")
    if not any(segment.type == elf.PT_GNU_RELRO for segment in segments) and any(
        segment.type == elf.PT_DYNAMIC and segment.flags & elf.PF_W for segment in segments
    ):
        found.append("its dynamic section stays writable (no RELRO)")
    return found


def _symbols(symbols: Collection[elf.Symbol], promise: Promise, visible: set[str]) -> list[str]:
    promised = promise.exports | promise.bound
    missing, extra = promised - visible, visible - promised
    found = [f"{name} is exported by the manifest but not by the code" for name in sorted(missing)]
    found += [f"{name[:80]} is exported by the code but not by the manifest" for name in sorted(extra)]
    for name in sorted(visible):
        if owner := why_reserved(name):
            found.append(f"{name[:80]} must not be exported: it belongs to {owner}")
    for symbol in symbols:
        if symbol.type == elf.STT_GNU_IFUNC:
            found.append(f"{symbol.name} is an indirect function (ifunc)")
        if symbol.binding == elf.STB_GNU_UNIQUE:
            found.append(f"{symbol.name} is a symbol that all libraries of a process share (STB_GNU_UNIQUE)")
        if symbol.name in promised and symbol.defined:
            if symbol.visibility not in (elf.STV_DEFAULT, elf.STV_PROTECTED):
                found.append(f"{symbol.name} is exported by the manifest but hidden in the code")
            if symbol.type == elf.STT_TLS:
                found.append(f"{symbol.name} is a thread-local variable, which cannot be exported")
        visgets = symbol.name in promise.bound or symbol.name in promise.taken
        if symbol.binding != elf.STB_LOCAL and not visgets and not SYMBOL.match(symbol.name):
            found.append(f"{symbol.name[:80]!r} is not a name that a symbol may have")
    unknown = {symbol.name for symbol in symbols if not symbol.defined}
    if promise.target.system == ANDROID:
        unknown -= NAMES[ANDROID].native | promise.taken | LINKER_MADE
    else:
        unknown -= promise.imports | promise.taken | COMPILER_MADE
    found += [f"{name[:80]} is needed but not among the manifest's imports" for name in sorted(unknown)]
    return found
