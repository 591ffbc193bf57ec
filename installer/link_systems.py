"""Linking for macOS and Windows, with the linkers inside the Python package ziglang.

Invariant: as visget.installer.link; nothing of those systems is needed, because all that a linker needs of a
library is its name and the names in it: a text for macOS (a .tbd file; the system's own comes with ziglang), an
import library for Windows that is made here. The options and their reasons are docs/spec/native-gates.md, section
"Other systems".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from visget.files import translated
from visget.installer.gate_systems import API_SET
from visget.installer.link_run import read_output, run_linker
from visget.installer.linkers import Linker
from visget.installer.pe import PROBE, probe_object
from visget.installer.sandbox import Level, Mode
from visget.installer.systems import MACOS, WINDOWS, WINDOWS_LIBRARIES
from visget.installer.target import Target


def link_foreign(
    linker: Linker,
    content: bytes,
    *,
    target: Target,
    soname: str,
    exports: Collection[str],
    needed: Collection[str],
    scratch: Path,
    sandbox: Mode,
    libraries: Mapping[str, Collection[str]],
) -> tuple[bytes, bytes | None, Level]:
    """Link an object file into a library for macOS or Windows; see visget.installer.link.link_library().

    Returns:
        The library, for Windows its import library, and what confined the linker.
    """
    link = _link_macos if target.system == MACOS else _link_windows
    with translated("prepare the linking", scratch):
        (scratch / "input.o").write_bytes(content)
        words, inputs = link(scratch, soname, sorted(exports), frozenset(needed), libraries, linker, target, sandbox)
    library, level = run_linker(linker, words, inputs, soname, target, scratch, sandbox)
    beside = read_output(scratch, f"{soname}.a") if target.system == WINDOWS else None
    return library, beside, level


def _link_macos(
    scratch: Path, soname: str, exports: list[str], needed: frozenset[str], libraries: Mapping[str, Collection[str]],
    linker: Linker, target: Target, sandbox: Mode,
) -> tuple[list[str], list[str]]:  # fmt: skip
    inputs = ["input.o"]
    for home, names in sorted(libraries.items()):
        listed = ", ".join(f"'_{name}'" for name in sorted(names))
        (scratch / f"{home}.tbd").write_text(
            f"--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '@rpath/{home}'\n"
            f"exports:\n  - targets: [ arm64-macos ]\n    symbols: [ {listed} ]\n...\n",
            encoding="ascii",
        )
        inputs.append(f"{home}.tbd")
    words = [
        "build-lib", "-dynamic", "-target", "aarch64-macos.11.0", "-OReleaseFast", "-fstrip", "-fno-compiler-rt",
        "-fno-ubsan-rt", "-lc", "--name", "library", f"-femit-bin={soname}", "-install_name", f"@rpath/{soname}",
        *(["-rpath", "@loader_path"] if libraries else []), *inputs,
    ]  # fmt: skip
    return words, inputs


def _link_windows(
    scratch: Path, soname: str, exports: list[str], needed: frozenset[str], libraries: Mapping[str, Collection[str]],
    linker: Linker, target: Target, sandbox: Mode,
) -> tuple[list[str], list[str]]:  # fmt: skip
    inputs = ["input.o"]
    homes: dict[str, Collection[str]] = {
        API_SET.format(part): names & needed for part, names in WINDOWS_LIBRARIES.items() if names & needed
    }
    for home, names in sorted({**homes, **libraries}.items()):
        _definition(scratch / f"{home}.def", home, names)
        maker = Linker(kind=linker.kind, command=(linker.command[0], "dlltool"), version=linker.version)
        run_linker(maker, ["-m", "i386:x86-64", "-d", f"{home}.def", "-l", f"{home}.lib"], [], f"{home}.lib", target,
                   scratch, sandbox)  # fmt: skip
        inputs.append(f"{home}.lib")
    if PROBE in needed:
        (scratch / "probe.o").write_bytes(probe_object())
        inputs.append("probe.o")
    _definition(scratch / "exports.def", soname, exports)
    words = [
        "/dll", "/noentry", "/machine:x64", "/nodefaultlib", "/brepro", "/opt:ref", "/dynamicbase", "/nxcompat",
        "/highentropyva", f"/out:{soname}", "/def:exports.def", f"/implib:{soname}.a", *inputs,
    ]  # fmt: skip
    return words, inputs


def _definition(place: Path, library: str, names: Collection[str]) -> None:
    listed = "".join(f"  {name}\n" for name in sorted(names))
    place.write_text(f"LIBRARY {library}\nEXPORTS\n{listed}", encoding="ascii")
