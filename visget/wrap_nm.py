"""``visget-nm``: the symbols of neutral objects, and of archives of them, as ``nm`` lists them.

Invariant: what is native is left to the system's own nm; the output for bitcode is what libtool, CMake and people
parse: one line for each symbol, a letter for its kind, no addresses (bitcode has none).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from visget.errors import BuildError, UnsupportedError
from visget.toolchain.archives import is_archive, read_archive
from visget.toolchain.irsymbols import Symbol, is_bitcode, read_symbols
from visget.wrap_log import Call
from visget.wrap_settings import WrapSettings

_LONG = {
    "extern-only": "g", "undefined-only": "u", "defined-only": "U", "portability": "P", "print-file-name": "A",
    "no-sort": "p", "just-symbol-name": "j", "dynamic": "D", "format=posix": "P", "format=bsd": "B",
    "print-size": "S", "numeric-sort": "n", "demangle": "C", "no-demangle": "", "format=just-symbols": "j",
    "print-armap": "s", "reverse-sort": "r", "debug-syms": "a", "special-syms": "", "size-sort": "n",
}  # fmt: skip
_PATH = f"{os.defpath}:/usr/local/bin"


def list_symbols(tool: str, arguments: Sequence[str], settings: WrapSettings) -> Call:
    """List the symbols of every file that `arguments` name.

    Raises:
        UnsupportedError: a file is native and the system has no nm.
    """
    options, files = _parse(arguments)
    status = 0
    for name in files or ["a.out"]:
        heading = f"{name}:\n" if len(files) > 1 and "P" not in options and "A" not in options else ""
        try:
            status = _list(name, options, arguments, f"\n{heading}" if heading else "") or status
        except (BuildError, OSError) as error:
            said = error.message if isinstance(error, BuildError) else error.strerror
            sys.stderr.write(f"visget-nm: {name}: {said}\n")
            status = 1
    return Call(tool=tool, argv=tuple(arguments), kind="symbols", inputs=tuple(files), status=status)


def _parse(arguments: Sequence[str]) -> tuple[set[str], list[str]]:
    options: set[str] = set()
    files: list[str] = []
    for argument in arguments:
        if argument in ("--version", "-V"):
            # libtool asks for it, and takes who is no GNU nm for a BSD one; the formats are the same.
            sys.stdout.write("visget-nm, compatible with GNU nm\n")
            raise SystemExit(0)
        if argument.startswith("--"):
            if argument[2:] not in _LONG:
                raise BuildError(f"unrecognized option '{argument}'")
            options |= set(_LONG[argument[2:]])
        elif argument.startswith("-") and argument != "-":
            options |= set(argument[1:])
        else:
            files.append(argument)
    return options, files


def _list(name: str, options: set[str], arguments: Sequence[str], heading: str) -> int:
    path = Path(name)
    data = b"" if name == os.devnull else path.read_bytes()
    if is_bitcode(data):
        _write(heading, name, read_symbols(data, what=name), options)
    elif is_archive(data):
        members = read_archive(path)
        if any(not is_bitcode(member.data) for member in members):
            return _system_nm(name, arguments)
        for member in members:
            shown = f"{name}[{member.name}]" if "P" in options else f"\n{member.name}:\n"
            symbols = read_symbols(member.data, what=member.origin)
            if "A" in options:
                _write("", f"{name}:{member.name}", symbols, options)
            else:
                _write(f"{shown}:\n" if "P" in options else shown, name, symbols, options)
    elif data.startswith(b"\x7fELF"):
        return _system_nm(name, arguments)
    else:
        raise BuildError("file format not recognized" if data else "no symbols")
    return 0


def _write(heading: str, name: str, symbols: Sequence[Symbol], options: set[str]) -> None:
    lines = "".join(f"{line}\n" for line in _lines(name, symbols, options))
    sys.stdout.write(heading + lines)


def _lines(name: str, symbols: Sequence[Symbol], options: set[str]) -> Iterator[str]:
    chosen = [
        symbol
        for symbol in symbols
        if not ("g" in options and not symbol.visible)
        and not ("u" in options and symbol.defined)
        and not ("U" in options and not symbol.defined)
    ]
    if "p" not in options:
        chosen.sort(key=lambda symbol: symbol.name, reverse="r" in options)
    for symbol in chosen:
        front = f"{name}: " if "A" in options or "o" in options else ""
        letter = kind(symbol)
        if "j" in options:
            yield f"{front}{symbol.name}"
        elif "P" in options:
            yield f"{front}{symbol.name} {letter}" + (" 0 0" if symbol.defined else "")
        else:
            yield f"{front}{'0' * 16 if symbol.defined else ' ' * 16} {letter} {symbol.name}"


def kind(symbol: Symbol) -> str:
    """Return the letter that nm gives `symbol`."""
    if not symbol.defined:
        return "w" if symbol.weak else "U"
    if symbol.weak:
        return "W" if symbol.executable else "V"
    if symbol.common:
        return "C"
    letter = "T" if symbol.executable else "D"
    return letter if symbol.visible else letter.lower()


def _system_nm(name: str, arguments: Sequence[str]) -> int:
    program = shutil.which("nm", path=_PATH)
    if program is None:
        raise UnsupportedError(f"{name} is native, and this system has no nm", hint="install binutils")
    options = [argument for argument in arguments if argument.startswith("-")]
    sys.stdout.flush()
    return subprocess.run([program, *options, name], check=False).returncode
