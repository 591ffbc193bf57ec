"""Programs, shared libraries and joined objects out of bitcode: the linking half of ``visget cc``.

Invariant: a program is linked only when every name that it needs is defined by the build or belongs to the platform
interface, whatever this machine's C library has besides; then the machine's own linker has the last word. A shared
library has its bitcode beside it, as NAME.bc; a joined object (-r) is bitcode.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from visget.errors import BuildError, UnsupportedError
from visget.files import atomic_write, translated
from visget.installer.target import Target
from visget.toolchain.driver_args import Command, linker_words
from visget.toolchain.driver_resolve import Resolution, Unit, resolve
from visget.wrap_inputs import Inputs, gather, native_symbols
from visget.wrap_lower import build_target, lower, objects_directory
from visget.wrap_settings import WrapSettings

BITCODE_SUFFIX = ".bc"
"""What is appended to the name of a shared library for the name of its bitcode."""

PREFIX_FILE = "visget-prefix.json"
"""What the directory has in which a build finds its dependencies (visget/surroundings.py)."""

_PATH = f"{os.defpath}:/usr/local/bin"
_DRIVERS = ("cc", "gcc", "clang")
# What linkers themselves define.
_LINKER_NAMES = re.compile(
    r"_?_?(?:end|etext|edata|bss_start|executable_start|ehdr_start|dso_handle|init_array_(?:start|end)"
    r"|fini_array_(?:start|end)|preinit_array_(?:start|end))|_GLOBAL_OFFSET_TABLE_|_DYNAMIC|__(?:start|stop)_\w+"
    r"|__vis_\w+"
)
_CXX_PREFIXES = ("_Z", "__cxa_", "__gxx_personality_v0", "__dynamic_cast", "vis_cxx_")
_SHOWN = 20


def link(command: Command, settings: WrapSettings, compiled: dict[int, str], scratch: Path) -> int:
    """Link what `command` asks for and return the exit status.

    Raises:
        BuildError: an input is not linkable, or a name is outside the platform interface.
        UnsupportedError: there is no linker for the target.
    """
    output = command.output or "a.out"
    if command.has("-r"):
        return _join(command, compiled, output)
    target = build_target(command.target or settings.target)
    inputs = gather(command, compiled)
    resolution = resolve(inputs.entries, roots=_roots(command))
    shared = command.has("-shared") or command.has("--shared")
    library = _cxx_library(resolution, settings)
    if not shared or command.has("defs") or command.has("--no-undefined"):
        _check_interface(resolution, library, target, objects_directory(settings.cache))
    if shared:
        _refuse_machine_code(command, inputs)
    status = _link_native(output, settings, inputs, resolution, library, target, scratch)
    if status == 0 and shared:
        _keep_bitcode(Path(output), command, inputs, resolution)
    return status


def _roots(command: Command) -> list[str]:
    words = [word for item in command.items if item.kind == "flag" for word in linker_words(item.text) or [item.text]]
    return [after for word, after in pairwise(words) if word == "-u"]


def _cxx_library(resolution: Resolution, settings: WrapSettings) -> list[Unit]:
    """Return the units of the C++ run-time library that the link needs, compiled when they are needed first."""
    if not any(name.startswith(_CXX_PREFIXES) for name in resolution.undefined):
        return []
    # These load LLVM.
    from visget.format.profile import BITCODE_EPOCH
    from visget.toolchain.clang import find_frontend
    from visget.toolchain.cxx import chosen_units
    from visget.toolchain.cxxlibrary import open_library
    from visget.toolchain.irnames import Names

    own = {symbol.name: () for unit in resolution.units() for symbol in unit.symbols if symbol.defined}
    library = open_library(
        find_frontend(settings.cc, epoch=BITCODE_EPOCH), cache=objects_directory(settings.cache).parent, jobs=1
    )
    needed = set(resolution.undefined)
    while True:
        names = Names(entities=own, offered=frozenset(own), roots=tuple(sorted(needed)))
        chosen = chosen_units(names, (), library)
        # A package's module is swept; here a unit is linked whole, with what its unused functions refer to.
        inside = {name for unit in chosen for name in unit.names.entities}
        more = {name for unit in chosen for used in unit.names.entities.values() for name in used} - inside - own.keys()
        if more <= needed:
            break
        needed |= more
    return [Unit(unit.source, _program_text(unit.text()), ()) for unit in chosen]


def _program_text(text: str) -> bytes:
    """Return the text of a unit of the C++ library for a program, whose own handle comes with its start-up code."""
    return re.sub(
        r"^@__dso_handle = .*$", "@__dso_handle = external hidden global ptr", text, flags=re.MULTILINE
    ).encode("utf-8", "surrogateescape")


def _check_interface(resolution: Resolution, library: Sequence[Unit], target: Target, directory: Path) -> None:
    """Refuse names that only this machine's C library may have.

    A program that links here but cannot be installed elsewhere makes configure scripts believe in functions that a
    package may not call.
    """
    from visget.format.imports import BUILT_INS, DATA, IMPORTS, PROGRAM_DATA

    # Configure scripts ask for stat without its header, which would have called it __vis_stat.
    known = {*IMPORTS, *DATA, *PROGRAM_DATA, *(name.removeprefix("__vis_") for name in BUILT_INS)}
    missing = {
        name: origin
        for name, origin in resolution.undefined.items()
        if name not in known and not _LINKER_NAMES.fullmatch(name)
        # What libc++ does not have, the native linker will say.
        and not (library and name.startswith(_CXX_PREFIXES))
    }
    if missing:
        missing = _still_needed(missing, resolution, target, directory)
    if not missing:
        return
    lines = [f"undefined reference to `{name}' ({origin})" for name, origin in sorted(missing.items())[:_SHOWN]]
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    raise BuildError(
        "\n".join(lines) + f"{more}: not in the platform interface",
        hint=_reason(min(missing)),
        details={"undefined": sorted(missing)},
    )


def _still_needed(
    missing: dict[str, str], resolution: Resolution, target: Target, directory: Path
) -> dict[str, str]:
    """Return those of `missing` that are left after optimising: bitcode also lists what only dead branches call."""
    needed: dict[str, str] = {}
    for unit in resolution.units():
        wanted = {symbol.name for symbol in unit.symbols if not symbol.defined} & missing.keys()
        if wanted:
            used = native_symbols(lower(unit, target, directory).read_bytes(), defined=False)
            needed |= {name: needed.get(name, unit.origin) for name in wanted & used}
    return needed


def _reason(name: str) -> str:
    from visget.format.rules_imports import why_not

    found = why_not(name, program=True)
    if found is None or found[0] == "VIS-501":
        return "define it here, or leave out what uses it; docs/spec/platform.md lists what every machine has"
    return f"{found[1]}. {found[2]}"


def _refuse_machine_code(command: Command, inputs: Inputs) -> None:
    for word in inputs.words:
        if word.entry is not None and word.text and word.text not in inputs.shared:
            raise BuildError(
                f"{word.text} is machine code: a package cannot have it in {command.output or 'a.out'}",
                where=word.text,
                hint="it was not compiled by visget-cc: see which command made it (VISGET_WRAP_LOG lists all calls)",
            )


def _link_native(
    output: str,
    settings: WrapSettings,
    inputs: Inputs,
    resolution: Resolution,
    library: Sequence[Unit],
    target: Target,
    scratch: Path,
) -> int:
    directory = objects_directory(settings.cache)
    linker, environment = native_linker(target, settings)
    line = [*linker, "-o", output]

    def add(unit: Unit) -> None:
        # The linker's complaints should name something that people know.
        name = scratch / f"{len(line):04d}-{re.sub(r'[^A-Za-z0-9.-]+', '_', unit.origin)[-80:]}.o"
        name.symlink_to(lower(unit, target, directory).resolve())
        line.append(str(name))

    for unit in library:  # first, for its constructors come first
        add(unit)
    for word in inputs.words:
        if word.text:
            line.append(word.text)
        elif word.entry is not None:
            for unit in resolution.chosen[word.entry]:
                add(unit)
    # Programs of the build are to find the libraries of dependencies when they run; others they find on their own.
    homes = {Path(path).absolute().parent for path in inputs.shared}
    line += [f"-Wl,-rpath,{home}" for home in sorted(homes) if (home.parent / PREFIX_FILE).is_file()]
    if library and linker[-1] != linker[0]:
        line.append("-lunwind")  # zig's; a compiler of the system knows its own
    # Code of every program may call these; the program's author need not know.
    line += ["-Wl,--as-needed", "-lm", "-lpthread"]
    return run_linker(line, environment)


def native_linker(target: Target, settings: WrapSettings) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of the linker for programs on `target`.

    Raises:
        UnsupportedError: there is none.
    """
    environment = {"PATH": _PATH, "LC_ALL": "C", "TMPDIR": settings.scratch, "SOURCE_DATE_EPOCH": "315532800"}
    if target.triple == build_target(None).triple:
        # Not by the caller's PATH: there, cc may be visget-cc.
        for name in _DRIVERS:
            path = shutil.which(name, path=_PATH)
            if path:
                return [path], environment
    from visget.installer.linkers import zig_program

    zig = zig_program()
    if zig is None:
        raise UnsupportedError(
            f"there is no linker for programs on {target.platform}", hint="pip install 'visget[author]'"
        )
    place = str(objects_directory(settings.cache).parent / "zig")
    environment |= {"HOME": place, "ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}
    static = ["-static"] if target.libc == "musl" else []
    return [str(zig), "cc", "-target", target.platform, *static], environment


def run_linker(line: Sequence[str], environment: dict[str, str]) -> int:
    """Run the native linker, show what it says, and return its exit status."""
    try:
        done = subprocess.run(line, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise UnsupportedError(f"the linker {line[0]} cannot be started: {error.strerror}") from error
    sys.stdout.buffer.write(done.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(done.stderr)
    sys.stderr.buffer.flush()
    return done.returncode


def _keep_bitcode(output: Path, command: Command, inputs: Inputs, resolution: Resolution) -> None:
    """Write the bitcode of a shared library beside it, and what else a package would want to know of it."""
    words = [word for item in command.items if item.kind == "flag" for word in linker_words(item.text) or [item.text]]
    facts = {
        "soname": _after(words, "-soname", "-h"),
        "version_scripts": _scripts(words),
        "needed": list(inputs.shared),
        "inputs": [unit.origin for unit in resolution.units()],
        "flags": [item.text for item in command.items if item.kind == "flag"],
    }
    with translated("keep the bitcode of a shared library", output):
        atomic_write(output.with_name(output.name + BITCODE_SUFFIX), merged(resolution.units()))
        text = json.dumps(facts, ensure_ascii=True, sort_keys=True).encode()
        atomic_write(output.with_name(f"{output.name}{BITCODE_SUFFIX}.json"), text)


def _after(words: Sequence[str], *flags: str) -> str | None:
    """Return the value of the last of `flags`, written ``-flag value``, ``-flag=value`` or ``--flag=value``."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in (*flags, *(f"-{flag}" for flag in flags)):
            if equals:
                found = value
            elif place + 1 < len(words):
                found = words[place + 1]
    return found


def _scripts(words: Sequence[str]) -> list[str]:
    """Return the text of the version scripts and export lists."""
    texts = []
    for flag in ("-version-script", "-retain-symbols-file", "-dynamic-list"):
        path = _after(words, flag)
        if path is not None:
            try:
                texts.append(Path(path).read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue
    return texts


def merged(units: Sequence[Unit]) -> bytes:
    """Return one module of bitcode made of `units`.

    Raises:
        BuildError: two of them define the same name, or there is none.
    """
    from visget.format.module import bitcode_of, link, parse_bitcode, text_of

    return bitcode_of(link(text_of(parse_bitcode(unit.data)) for unit in units))


def _join(command: Command, compiled: dict[int, str], output: str) -> int:
    inputs = gather(command, compiled)
    _refuse_machine_code(command, inputs)
    units = resolve(inputs.entries, roots=_roots(command)).units()
    if not units:
        raise BuildError(f"there is no bitcode to join in {output}")
    # llvmlite's writer leaves out the table of symbols, so the joined module goes through clang once more.
    with translated("write the joined object", Path(output)):
        atomic_write(Path(output), with_table(merged(units)))
    return 0


def with_table(bitcode: bytes) -> bytes:
    """Return `bitcode` with the table of symbols that linkers read."""
    from visget.format.profile import BITCODE_EPOCH, TRIPLE
    from visget.toolchain.clang import ENVIRONMENT, find_frontend

    frontend = find_frontend(None, epoch=BITCODE_EPOCH)
    line = [*frontend.command, "--no-default-config", f"--target={TRIPLE}", "-c", "-emit-llvm", "-O2", "-Xclang",
            "-disable-llvm-passes", "-x", "ir", "-", "-o", "-"]  # fmt: skip
    done = subprocess.run(line, input=bitcode, env=ENVIRONMENT, capture_output=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"clang cannot read the joined object: {done.stderr.decode('utf-8', 'replace').strip()[:300]}")
    return done.stdout
