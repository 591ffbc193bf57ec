"""Bitcode that a build made, read as the units that visget's own compiler would have given.

Invariant: a unit has the neutral triple and tells its files relative to the root of the sources; what else it may be is
for the rules to say. Bitcode of another target is only taken where the caller asks for it (foreign=True): then triple
and layout are replaced, and the rules judge what is left. The spec is docs/spec/front-end.md, sections 9 and 10.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from visget.errors import BuildError, FormatError
from visget.format.module import TRIPLE, parse_bitcode, text_of
from visget.toolchain.frontend import Unit
from visget.toolchain.retarget import retargeted

DEBUG_ROOT = "/visget-src"
"""What the compiler writes for the root of the sources in debug records: absolute, so that it can be told apart."""

_UNIT = re.compile(
    r'!DICompileUnit\((?:language|sourceLanguageName): DW_L(?:ANG|NAME)_(\w+), .*?file: !(\d+)'
    r'(?:, producer: "([^"]*)")?'
)
_FILE = re.compile(r'^!(\d+) = (?:distinct )?!DIFile\(filename: "([^"]*)", directory: "([^"]*)"', re.MULTILINE)
_TRIPLE = re.compile(r'^target triple = "([^"]*)"$', re.MULTILINE)
_SOURCE = re.compile(r'^source_filename = "((?:[^"\\]|\\[0-9A-F]{2})*)"$', re.MULTILINE)
_IDENT = re.compile(r"^!llvm\.ident = !\{!(\d+)", re.MULTILINE)

_MACHINES = {3: "x86", 8: "MIPS", 20: "PowerPC", 21: "PowerPC 64", 22: "S/390", 40: "Arm", 62: "x86-64",
             183: "AArch64", 243: "RISC-V", 258: "LoongArch"}  # fmt: skip
_MACHO = frozenset((b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """What a module says about its making."""

    sources: tuple[str, ...]
    """The source files, relative to the root where they were inside of it."""
    cxx: bool
    """Whether any of it was C++."""
    name: str
    """The front end, such as ``clang version 22.1.8``; empty when it does not say."""


def kind_of(data: bytes) -> str:
    """Say what `data` is: "bitcode", "archive", "thin archive", or machine code in words; empty for none of them."""
    if data[:4] in (b"BC\xc0\xde", b"\xde\xc0\x17\x0b"):
        return "bitcode"
    if data[:8] == b"!<arch>\n":
        return "archive"
    if data[:8] == b"!<thin>\n":
        return "thin archive"
    if data[:4] == b"\x7fELF" and len(data) > 20:
        machine = int.from_bytes(data[18:20], "big" if data[5] == 2 else "little")
        return f"machine code for {_MACHINES.get(machine, f'processor {machine}')}"
    if data[:4] in _MACHO:
        return "machine code (Mach-O)"
    return ""


def read_unit(data: bytes, *, origin: str, foreign: bool = False) -> tuple[Unit, Producer]:
    """Return the module in `data` as a unit.

    Args:
        data: bitcode.
        origin: where it lies, for messages: ``libz.a(adler32.o)``.
        foreign: whether another target than the neutral one is accepted, and replaced.

    Raises:
        BuildError: it is no bitcode of this LLVM, or is bitcode for another target.
    """
    try:
        text = text_of(parse_bitcode(data))
    except FormatError as error:
        raise BuildError(
            f"{origin} is not bitcode that visget can read: {error.message}", hint=error.hint, where=origin
        ) from error
    text = relative_files(text)
    producer = read_producer(text)
    triple = _TRIPLE.search(text)
    if (triple[1] if triple else "") != TRIPLE:
        if not foreign:
            raise BuildError(
                f"{origin} is bitcode for {triple[1] if triple else 'no target'}, not the neutral bitcode of visget's "
                "compiler",
                where=origin,
                hint="let the build use $CC and $CXX; a compiler that is called by its path is none of visget's",
            )
        text = retargeted(text)
    name = producer.sources[0] if producer.sources else origin
    return Unit(source=name, text=text, warnings="", inputs=producer.sources, origin=origin, cxx=producer.cxx), producer


def read_producer(text: str) -> Producer:
    """Return what the IR text of a module says about its making; its file names are relative already."""
    files = {match[1]: posixpath.join(match[3], match[2]) for match in _FILE.finditer(text)}
    units = list(_UNIT.finditer(text))
    sources = dict.fromkeys(posixpath.normpath(files.get(unit[2], "")) for unit in units)
    sources.pop(".", None)
    if not sources and (named := _SOURCE.search(text)) is not None:
        sources = {named[1]: None}
    names = [unit[3] for unit in units if unit[3]]
    if not names and (ident := _IDENT.search(text)) is not None:
        found = re.search(rf'^!{ident[1]} = !\{{!"([^"]*)"\}}$', text, re.MULTILINE)
        names = [found[1]] if found else []
    return Producer(
        sources=tuple(sources),
        cxx=any("plus_plus" in unit[1] for unit in units),
        name=", ".join(dict.fromkeys(names)),
    )


def relative_files(text: str) -> str:
    """Return IR text whose debug records name the files of the sources relative to their root."""

    def renamed(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(match[3], match[2]))
        if path.startswith(f"{DEBUG_ROOT}/"):
            path = path[len(DEBUG_ROOT) + 1 :]
        elif path.startswith("/"):
            return match[0]
        start = match[0].index("filename: ")
        return f'{match[0][:start]}filename: "{path}", directory: "."'

    return _FILE.sub(renamed, text)


def sorted_units(units: Iterable[Unit]) -> list[Unit]:
    """Return `units` in an order that does not depend on how the build went, each module once.

    A build may put the same object into a library twice; two copies of one module are one.
    """
    once: dict[str, Unit] = {}
    for unit in sorted(units, key=lambda unit: (unit.source, unit.origin)):
        once.setdefault(unit.text, unit)
    return list(once.values())
