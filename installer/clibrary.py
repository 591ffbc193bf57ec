"""The C library at link time: this machine's own, or a stand-in for one that is elsewhere.

Invariant: a library is linked against real libraries only where its target has this machine's platform, because
then references get this machine's default symbol versions. Otherwise the linker gets stand-ins that define exactly
the names needed, under the names by which the target's loader finds the real ones.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from visget.installer.symbols import LOADER_MADE, MATH
from visget.installer.systems import ANDROID
from visget.installer.target import Target
from visget.machine import libc_family

LOADERS = {
    "x86_64": "ld-linux-x86-64.so.2",
    "aarch64": "ld-linux-aarch64.so.1",
    "riscv64": "ld-linux-riscv64-lp64d.so.1",
}
"""glibc's dynamic loader for each architecture."""

_DYNAMIC = frozenset(["dlopen", "dlsym", "dlclose", "dlerror"])

STAND_IN = "stand-in"
"""What takes the place of a C library's version where none was linked against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLibraries:
    """The files of this machine's glibc."""

    paths: tuple[Path, ...]
    """libc, libm, the loader, and libgcc_s where there is one, in the order for the linker."""
    version: str
    """What glibc calls itself, such as ``glibc 2.36``."""


def host_libraries(target: Target) -> HostLibraries | None:
    """Return this machine's C library when `target` runs with it; None when a stand-in must do."""
    if target.libc != "gnu" or libc_family() != "gnu" or target.arch != os.uname().machine:
        return None
    return _find_glibc(target.arch)


@functools.cache
def _find_glibc(arch: str) -> HostLibraries | None:
    try:
        mapped = mapped_libraries(Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        mapped = {}
    found = locate(arch, mapped, Path.is_file)
    try:
        version = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        version = ""
    return HostLibraries(paths=found, version=version) if found and version else None


def mapped_libraries(maps: str) -> dict[str, Path]:
    """Return the shared libraries in the text of /proc/PID/maps, by file name."""
    found = {}
    for line in maps.splitlines():
        path = line.split(maxsplit=5)[5:]
        if path and path[0].startswith("/") and ".so" in path[0] and not path[0].endswith(" (deleted)"):
            found[path[0].rpartition("/")[2]] = Path(path[0])
    return found


def locate(arch: str, mapped: dict[str, Path], exists: Callable[[Path], bool]) -> tuple[Path, ...]:
    """Return the files to link against; empty when libc or libm cannot be found.

    The C library that this process itself runs on is the right one (systems may have several); the others lie
    beside it or where distributions put them.
    """
    directories = [Path(p) for p in (f"/lib/{arch}-linux-gnu", f"/usr/lib/{arch}-linux-gnu", "/lib64", "/usr/lib64")]
    directories += [Path("/lib"), Path("/usr/lib")]
    if "libc.so.6" in mapped:
        directories.insert(0, mapped["libc.so.6"].parent)
    found = []
    for name in ("libc.so.6", "libm.so.6", LOADERS[arch], "libgcc_s.so.1"):
        candidates = [mapped[name]] if name in mapped else []
        candidates += [directory / name for directory in directories]
        path = next((candidate for candidate in candidates if exists(candidate)), None)
        if path is not None:
            found.append(path)
        elif name in ("libc.so.6", "libm.so.6"):
            return ()
    return tuple(found)


def stand_ins(target: Target, needed: Iterable[str], helpers: frozenset[str]) -> dict[str, list[str]]:
    """Return, for each library that the target will load, the names among `needed` that come from it.

    Args:
        target: the foreign target.
        needed: the undefined symbols of the object.
        helpers: the names that belong to the compiler's support library.
    """
    homes: dict[str, list[str]] = {}
    for name in sorted(needed):
        if name in helpers or name.startswith("_Unwind_"):
            home = "libgcc_s.so.1"
        elif target.libc == "musl":
            home = "libc.so"
        elif target.system == ANDROID:
            home = "libdl.so" if name in _DYNAMIC else "libm.so" if name in MATH else "libc.so"
        elif name in LOADER_MADE:
            home = LOADERS[target.arch]
        else:
            home = "libm.so.6" if name in MATH else "libc.so.6"
        homes.setdefault(home, []).append(name)
    return homes
