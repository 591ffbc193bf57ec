"""What a link is given: the words of the command line looked up in the file system, and each file read as what it is.

Invariant: every input is bitcode, native code made by this build, or one of the C library's own names (``-lm``); a
library of this machine is refused by its name, wherever it was meant to come from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from visget.errors import BuildError, FormatError
from visget.toolchain.archives import is_archive, read_archive
from visget.toolchain.driver_args import Command, linker_words
from visget.toolchain.driver_flags import is_system_library_directory
from visget.toolchain.driver_resolve import Entry, Unit
from visget.toolchain.irsymbols import is_bitcode, read_symbols
from visget.toolchain.wrappers import PLATFORM_MARK

_C_LIBRARY = frozenset(["c", "m", "pthread", "dl", "rt", "util", "gcc", "gcc_s", "gcc_eh"])
_CXX_LIBRARY = frozenset(["stdc++", "c++", "c++abi", "supc++", "c++experimental"])
_ELF = b"\x7fELF"


class Word(NamedTuple):
    """One word of the native linker's command line."""

    text: str = ""
    """The word; empty where the objects of `entry` stand."""
    entry: int | None = None
    """The index of the entry that it brings."""


class Inputs(NamedTuple):
    """Everything that is linked."""

    words: tuple[Word, ...]
    entries: tuple[Entry, ...]
    shared: tuple[str, ...]
    """The shared libraries of this build, as they were found."""


def gather(command: Command, compiled: dict[int, str]) -> Inputs:
    """Look up and read everything that `command` links.

    Args:
        command: the command line.
        compiled: the object that was made of the item with this index.

    Raises:
        BuildError: a file does not exist or is not linkable, or a library is this machine's own.
        FormatError: a file is damaged.
    """
    gathering = _Gathering(command)
    for place, item in enumerate(command.items):
        if item.kind == "flag":
            gathering.flag(item.text)
        elif item.kind == "library":
            gathering.library(item.text)
        else:
            gathering.file(compiled.get(place, item.text), shown=item.text)
    return Inputs(
        words=tuple(gathering.words),
        entries=tuple(gathering.entries),
        shared=tuple(gathering.shared),
    )


class _Gathering:
    """The state of one gather()."""

    def __init__(self, command: Command) -> None:
        self.directories = command.directories
        self.static = command.has("-static") or command.has("--static") or command.has("-static-pie")
        self.whole = False
        self.words: list[Word] = []
        self.entries: list[Entry] = []
        self.shared: list[str] = []

    def flag(self, flag: str) -> None:
        for word in linker_words(flag) or [flag]:
            if word in ("--whole-archive", "-whole-archive"):
                self.whole = True
            elif word in ("--no-whole-archive", "-no-whole-archive"):
                self.whole = False
            elif word in ("-Bstatic", "-dn", "-non_shared"):
                self.static = True
            elif word in ("-Bdynamic", "-dy", "-call_shared"):
                self.static = False
        self.words.append(Word(flag))

    def library(self, name: str) -> None:
        if name in _C_LIBRARY:
            self.words.append(Word(f"-l{name}"))
            return
        if name in _CXX_LIBRARY:
            return  # the names that are missing say what is needed of it
        for path in self._candidates(name):
            if path.is_file():
                known = len(self.shared)
                self.file(str(path), shown=f"-l{name}")
                if len(self.shared) > known:
                    # A dependency takes the place of a library that this system would find by itself.
                    self.words.append(Word(f"-Wl,-rpath,{path.parent.resolve()}"))
                return
        shown = name.removeprefix(":")
        raise BuildError(
            f"cannot find -l{name}: lib{shown} would be this machine's own, which another machine need not have",
            hint=f"declare {shown} under [dependencies] of visget.toml, or switch it off in the build's configuration",
            details={"library": shown},
        )

    def _candidates(self, name: str) -> Iterator[Path]:
        names = [f"lib{name}.a"] if self.static else [f"lib{name}.so", f"lib{name}.a"]
        if name.startswith(":"):
            names = [name[1:]]
        for directory in self.directories:
            for candidate in names:
                yield Path(directory) / candidate

    def file(self, path: str, *, shown: str) -> None:
        """Take one file by what it holds."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise BuildError(f"no such file or directory: '{shown}' ({error.strerror})", where=shown) from error
        if is_bitcode(data):
            self._entry(Entry(units=(Unit(shown, data, read_symbols(data, what=shown)),)))
        elif is_archive(data):
            self._archive(Path(path))
        elif data.startswith(_ELF):
            self._native(path, data)
        elif data.startswith(PLATFORM_MARK):
            self.library(data[len(PLATFORM_MARK) :].split()[0].decode("ascii", "replace"))
        else:
            raise BuildError(f"{shown}: file format not recognized: it is neither bitcode nor an object", where=shown)

    def _entry(self, entry: Entry, text: str = "") -> None:
        self.words.append(Word(text, len(self.entries)))
        self.entries.append(entry)

    def _archive(self, path: Path) -> None:
        self._refuse_system(path)
        members = read_archive(path)
        native = [member for member in members if member.data.startswith(_ELF)]
        if native and len(native) < len(members):
            raise BuildError(
                f"{native[0].origin} is machine code among bitcode",
                where=str(path),
                hint="it was not compiled by visget-cc: see which command made it (VISGET_WRAP_LOG lists all calls)",
            )
        if native:
            provides = frozenset(name for member in native for name in native_symbols(member.data))
            self._entry(Entry(provides=provides), str(path))
            return
        units = tuple(
            Unit(member.origin, member.data, read_symbols(member.data, what=member.origin)) for member in members
        )
        self._entry(Entry(units=units, lazy=not self.whole))

    def _native(self, path: str, data: bytes) -> None:
        self._refuse_system(Path(path))
        if int.from_bytes(data[16:18], "little") == 3:  # ET_DYN
            self.shared.append(path)
        self._entry(Entry(provides=native_symbols(data)), path)

    def _refuse_system(self, path: Path) -> None:
        # Both names count: /tmp/build/libz.so may be a link to this machine's, /usr/lib64 to another place.
        for place in (Path(os.path.abspath(path)), path.resolve()):  # noqa: PTH100 - links are not followed
            if is_system_library_directory(str(place.parent)):
                name = path.name.partition(".")[0].removeprefix("lib")
                raise BuildError(
                    f"{path} is this machine's own {name}, which another machine need not have",
                    where=str(path),
                    hint=f"declare {name} under [dependencies] of visget.toml, or switch it off in the build's "
                    "configuration",
                    details={"library": name},
                )


def native_symbols(data: bytes, *, defined: bool = True) -> frozenset[str]:
    """Return the names that the native object or shared library `data` defines for others, or needs of them."""
    from visget.installer.elf import SHT_DYNSYM, SHT_SYMTAB, STB_LOCAL, read_elf

    try:
        elf = read_elf(data)
        tables = (SHT_DYNSYM,) if int.from_bytes(data[16:18], "little") == 3 else (SHT_SYMTAB,)
        return frozenset(
            symbol.name
            for table in tables
            for symbol in elf.symbols(table)
            if symbol.defined == defined and symbol.binding != STB_LOCAL
        )
    except FormatError:
        return frozenset()
