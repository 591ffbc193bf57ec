"""Finding a linker: the system's own, or the one that the Python package ziglang brings.

Invariant: a Linker that find_linker() returns has been run once, says which program and version it is, and can
link for the target that it was found for. GNU ld and the compilers' drivers are used for this machine's
architecture only; every lld links for all architectures.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visget.errors import UnsupportedError
from visget.installer.systems import LINUX, MACOS, WINDOWS
from visget.installer.target import Target

Kind = Literal["lld", "gnu", "driver", "macho", "coff"]

_TIMEOUT = 30.0
# Newest first. Before 15, lld cannot merge the attributes of RISC-V objects that today's LLVM writes.
_LLD_NAMES = ("ld.lld", *(f"ld.lld-{version}" for version in range(24, 12, -1)))
_RISCV_LLD = 16
_DRIVERS = ("cc", "gcc", "clang")
_VERSION = re.compile(r"(\d+)(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Linker:
    """A program that links shared libraries."""

    kind: Kind
    """Which options it takes: ``lld``, ``gnu`` (GNU ld), ``driver`` (a C compiler that passes them on), or
    ``macho`` and ``coff``, which are zig's for macOS and Windows."""
    command: tuple[str, ...]
    """The program and what comes before its options."""
    version: str
    """What it says about itself; part of every cache key."""

    @property
    def identity(self) -> str:
        """The linker for cache keys and receipts: equal texts give equal libraries."""
        return f"{self.kind}: {self.version}"

    def __str__(self) -> str:
        return f"{' '.join(self.command)} ({self.version})"


def find_linker(preference: str | None, target: Target) -> Linker | None:
    """Return a linker for `target`.

    Args:
        preference: ``auto`` or None for the first that works; ``none`` for no linker at all; ``lld``, ``ld``, ``cc``
            or ``zig`` for one kind; or the path or name of a program.
        target: what is to be linked.

    Returns:
        The linker; None when there is none and none was asked for by name.

    Raises:
        UnsupportedError: the one that was asked for does not exist or cannot link for `target`.
    """
    wanted = (preference or "auto").strip()
    if target.system in (MACOS, WINDOWS):
        return _foreign(wanted, target)
    if wanted == "none":
        return None
    kinds = {"lld": _system_lld, "ld": _system_ld, "cc": _driver, "zig": _zig_lld}
    kinds["ziglang"] = kinds["zig"]
    if wanted == "auto":
        # The system's own linker knows its paths and hardening defaults best; lld is faster and links everything.
        for find in (_system_lld, _system_ld, _driver, _zig_lld):
            linker = find(target)
            if linker is not None:
                return linker
        return None
    if wanted in kinds:
        linker = kinds[wanted](target)
    else:
        path = shutil.which(wanted)
        linker = _usable(identify((path,)), target) if path else None
    if linker is None:
        raise UnsupportedError(
            f"there is no linker {wanted!r} on this machine that links for {target.platform}",
            hint="choose auto, none, lld, ld, cc, zig, or the path of GNU ld, ld.lld or a C compiler; "
            "`pip install ziglang` brings a linker for every target",
        )
    return linker


def _foreign(wanted: str, target: Target) -> Linker:
    """Return zig's linker for macOS or Windows; only that one can be had everywhere."""
    zig = zig_program() if wanted in ("auto", "zig", "ziglang") else None
    version = _version_of((str(zig),), "version").strip() if zig else ""
    if not version:
        raise UnsupportedError(
            f"libraries for {target.platform} are linked by the Python package ziglang, which "
            f"{'is not there' if wanted in ('auto', 'zig', 'ziglang') else 'is not what --linker says'}",
            hint="pip install 'visget[author]', and leave VISGET_LINKER alone",
        )
    if target.system == MACOS:
        return Linker(kind="macho", command=(str(zig),), version=f"zig {version}")
    return Linker(kind="coff", command=(str(zig), "lld-link"), version=f"lld-link of zig {version}")


def _system_lld(target: Target) -> Linker | None:
    for name in _LLD_NAMES:
        path = shutil.which(name)
        if path and (linker := _usable(identify((path,)), target)):
            return linker
    return None


def _system_ld(target: Target) -> Linker | None:
    path = shutil.which("ld")
    return _usable(identify((path,)), target) if path else None


def _driver(target: Target) -> Linker | None:
    for name in _DRIVERS:
        path = shutil.which(name)
        if path and (linker := _usable(identify((path,)), target)):
            return linker
    return None


def _zig_lld(target: Target) -> Linker | None:
    zig = zig_program()
    return _usable(identify((str(zig), "ld.lld")), target) if zig else None


def zig_program() -> Path | None:
    """Return the program of the installed package ziglang."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(spec.submodule_search_locations[0]) / "zig"
    return program if os.access(program, os.X_OK) else None


def _usable(linker: Linker | None, target: Target) -> Linker | None:
    """Return `linker` when it links for `target`."""
    if linker is None:
        return None
    if linker.kind != "lld":
        return linker if target.system == LINUX and target.arch == os.uname().machine else None
    major = _VERSION.search(linker.version)
    if target.arch == "riscv64" and (major is None or int(major[1]) < _RISCV_LLD):
        return None
    return linker


@functools.cache
def identify(command: tuple[str, ...]) -> Linker | None:
    """Run `command` with ``--version`` and return what it is; None when it is not a linker that visget knows."""
    text = _version_of(command, "--version")
    first = text.partition("\n")[0].strip()
    if "LLD" in first:
        return Linker(kind="lld", command=command, version=first)
    if first.startswith("GNU ld"):
        return Linker(kind="gnu", command=command, version=first)
    if "gcc" in text or "clang" in text or "Free Software Foundation" in text:
        # The driver's linker counts as much as the driver.
        ld = _version_of(command, "-Wl,--version", "-nostdlib", "-shared")
        name = next((line for line in ld.splitlines() if "ld" in line.lower() and _VERSION.search(line)), "")
        if name and "gold" not in name:
            return Linker(kind="driver", command=command, version=f"{first}; {name.strip()}")
    return None


def _version_of(command: tuple[str, ...], *arguments: str) -> str:
    try:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
            env=clean_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def clean_environment(scratch: Path | None = None) -> dict[str, str]:
    """Return the environment that linkers run in: nothing of the user's can change what they make."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
    if scratch is not None:
        # A driver writes temporary files, and zig insists on having a cache directory.
        place = str(scratch)
        environment |= {"TMPDIR": place, "HOME": place, "ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place}
    return environment
