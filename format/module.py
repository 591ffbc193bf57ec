"""LLVM modules of the profile: the only module of this room that calls LLVM.

Invariant: bytes reach LLVM's bitcode reader only after `check_envelope`, which needs no LLVM: the reader skips
wrapper headers and ignores trailing bytes, so without it two different files could hold one module. Text and
bitcode that leave here come from LLVM's own printer and writer, and have passed LLVM's verifier. Each module
lives in an LLVM context of its own: in a shared one the names of its struct types, and so its bytes, would depend
on what this process read before. The profile that a module must obey is docs/spec/vis-1.md and is checked
elsewhere (visget.format.verifier).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import llvmlite.binding as llvm

from visget.errors import BuildError, FormatError
from visget.format.profile import BITCODE_EPOCH, DATALAYOUT, TRIPLE

__all__ = [
    "BITCODE_EPOCH",
    "BITCODE_LIMIT",
    "DATALAYOUT",
    "TRIPLE",
    "ModuleRef",
    "bitcode_of",
    "check_envelope",
    "link",
    "parse_bitcode",
    "parse_text",
    "text_of",
]

ModuleRef: TypeAlias = llvm.ModuleRef
"""A parsed LLVM module. It lives in LLVM's memory and is not safe to share between threads."""

BITCODE_LIMIT = 64 << 20
"""The largest bitcode that is looked at, in bytes."""

_PLAIN = re.compile(r"[\w.:-]*\Z", re.ASCII)
_MAGIC = b"BC\xc0\xde"
_WRAPPER_MAGIC = b"\xde\xc0\x17\x0b"
_ENTER_SUBBLOCK = 1
_MODULE, _IDENTIFICATION, _STRTAB, _SYMTAB = 8, 13, 23, 25
# What LLVM's writer produces for one module. The symbol table is a cache for linkers; llvmlite leaves it out.
_LAYOUTS = (
    (_IDENTIFICATION, _MODULE, _STRTAB),
    (_IDENTIFICATION, _MODULE, _SYMTAB, _STRTAB),
)


def check_envelope(bitcode: bytes | bytearray | memoryview) -> None:
    """Check the outermost structure of `bitcode` without LLVM.

    A module is the magic `BC C0 DE` followed, with nothing between and nothing after, by an identification
    block, one module block, an optional symbol table and a string table (docs/spec/vis-1.md, section 2).

    Raises:
        FormatError: the bytes are anything else.
    """
    data = memoryview(bitcode).cast("B") if not isinstance(bitcode, bytes) else memoryview(bitcode)
    if len(data) > BITCODE_LIMIT:
        raise FormatError(f"bitcode of {len(data)} bytes is over the limit of {BITCODE_LIMIT} bytes")
    start = bytes(data[:4])
    if start == _WRAPPER_MAGIC:
        raise FormatError("bitcode has a wrapper header in front", hint="store the bare bitcode, magic BC C0 DE")
    if start != _MAGIC:
        raise FormatError(f"not LLVM bitcode: it starts with {start.hex(' ') or 'nothing'}, not 42 43 c0 de")
    if len(data) % 4:
        raise FormatError(f"bitcode of {len(data)} bytes is not a whole number of 32-bit words")
    blocks = tuple(_walk_blocks(data))
    if blocks not in _LAYOUTS:
        raise FormatError(f"bitcode holds the top-level blocks {list(blocks)}, not those of exactly one module")


def _walk_blocks(data: memoryview) -> Iterator[int]:
    position = 4
    while position < len(data):
        if position + 8 > len(data):
            raise FormatError(f"bitcode ends inside a block header at byte {position}")
        head, words = struct.unpack_from("<II", data, position)
        # Two bits of abbreviation id, eight of block id (one VBR8 chunk), four of new width, padding to 32.
        if head & 3 != _ENTER_SUBBLOCK or head & 0x200 or head >> 14:
            raise FormatError(f"bitcode has something other than a block at byte {position}")
        position += 8 + 4 * words
        if position > len(data):
            raise FormatError("bitcode is cut short: its last block is longer than the file")
        yield head >> 2 & 0x7F


def parse_bitcode(data: bytes | bytearray | memoryview) -> ModuleRef:
    """Return the module in `data`.

    A damaged module can abort the process inside LLVM: untrusted bytes belong in a worker process.

    Raises:
        FormatError: the bytes are not one valid module.
    """
    check_envelope(data)
    try:
        module = llvm.parse_bitcode(bytes(data), llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise FormatError(f"LLVM cannot read the bitcode: {_first_line(error)}", details=_text(error)) from error
    except UnicodeDecodeError as error:
        # LLVM's complaint quotes a name of the module.
        raise FormatError(f"LLVM cannot read the bitcode: {error.object[:80]!r}") from error
    return module


def parse_text(text: str) -> ModuleRef:
    """Return the module written in `text` (LLVM IR assembly).

    Raises:
        FormatError: the text is not one valid module.
    """
    return _parse_text(text, llvm.create_context())


def _parse_text(text: str, context: llvm.ContextRef) -> ModuleRef:
    if "\0" in text:
        raise FormatError("LLVM IR text holds a NUL character, where LLVM would stop reading")
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        raise FormatError(f"LLVM cannot read the IR text: {_first_line(error)}", details=_text(error)) from error
    return module


def text_of(module: ModuleRef) -> str:
    """Return `module` as LLVM's printer writes it: the form that every scanner of this room reads.

    Raises:
        FormatError: the triple or the data layout would be printed as something else than one string, or a name
            that LLVM prints as it is (the module's own) is not UTF-8.
    """
    try:
        # LLVM prints these two without escaping: a newline inside would become lines of their own.
        for what, value in (("triple", module.triple), ("data layout", module.data_layout)):
            if not _PLAIN.match(value):
                raise FormatError(f"the {what} of the module is not plain text: {value[:80]!r}")
        return str(module)
    except UnicodeDecodeError as error:
        raise FormatError(f"the module has a name that is not UTF-8: {error.object[:80]!r}") from error


def bitcode_of(module: ModuleRef) -> bytes:
    """Return `module` as bitcode; the same module gives the same bytes."""
    bitcode: bytes = module.as_bitcode()
    return bitcode


def link(texts: Iterable[str]) -> ModuleRef:
    """Return one module made of all `texts`, in their order.

    Raises:
        FormatError: a text is not a valid module.
        BuildError: there is no text, or two of them cannot be one program (a symbol defined twice).
    """
    merged: ModuleRef | None = None
    context = llvm.create_context()
    for text in texts:
        module = _parse_text(text, context)
        if merged is None:
            merged = module
            continue
        try:
            merged.link_in(module)
        except RuntimeError as error:
            message = f"the compiled files cannot be merged: {_first_line(error)}"
            hint = "rename or make static one of the two definitions, or exclude one of the files"
            raise BuildError(message, hint=hint, details=_text(error)) from error
    if merged is None:
        raise BuildError("there is nothing to merge: no source file was compiled")
    return merged


def _first_line(error: RuntimeError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # "LLVM IR parsing error" alone on the first line says nothing; the reason follows it.
    return ": ".join(lines[:2]) if lines else "no reason given"


def _text(error: RuntimeError) -> dict[str, object]:
    return {"llvm": str(error)[:4000]}
