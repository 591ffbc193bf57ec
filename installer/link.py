"""From one object file to a shared library.

Invariant: the library's bytes depend on the object, the target, the names, the linker and the C library that it is
linked against, all of which are in the cache key; nothing outside the scratch directory is written. The options
and their reasons are docs/spec/native-gates.md, section "Linking".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from visget.files import translated
from visget.installer.clibrary import STAND_IN, host_libraries, stand_ins
from visget.installer.link_run import run_linker
from visget.installer.link_systems import link_foreign
from visget.installer.linkers import Linker, find_linker
from visget.installer.sandbox import Level, Mode
from visget.installer.stubs import stub_object
from visget.installer.symbols import SUPPORT_CALLS
from visget.installer.systems import ANDROID, MACOS, WINDOWS
from visget.installer.target import Target

__all__ = ["Linked", "Linker", "find_linker", "libc_identity", "link_library"]

_NO_LIBRARIES: Mapping[str, Collection[str]] = MappingProxyType({})
_OPTIONS = (
    "-Bsymbolic",  # a library's calls of its own functions reach them, whatever else the process has loaded
    "-z", "defs",  # a missing symbol is found here, not by the user's program
    "-z", "now",
    "-z", "relro",
    "-z", "noexecstack",
    "--hash-style=gnu",
    "--eh-frame-hdr",
    "--gc-sections",
    "--as-needed",
    "--build-id=none",
)  # fmt: skip
_ANDROID_PAGE = 16384  # devices with pages of that size refuse libraries that are laid out for smaller ones
# Older lld obeys the libraries that an object asks for in .deplibs; the object gate refuses that section too.
_LLD_OPTIONS = ("--no-dependent-libraries",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """What the linker made."""

    library: bytes
    libc: str
    """The C library that it was linked against: ``glibc 2.36``, or ``stand-in`` for that of a foreign target."""
    sandbox: Level
    """What confined the linker."""
    import_library: bytes | None = None
    """For Windows: what programs are linked with."""


def libc_identity(target: Target) -> str:
    """Return what Linked.libc will be for `target`; part of the cache key."""
    libraries = host_libraries(target)
    return libraries.version if libraries else STAND_IN


def link_library(
    linker: Linker,
    content: bytes,
    *,
    target: Target,
    soname: str,
    exports: Collection[str],
    needed: Collection[str],
    scratch: Path,
    sandbox: Mode = "auto",
    libraries: Mapping[str, Collection[str]] = _NO_LIBRARIES,
    run_path: str | None = None,
) -> Linked:
    """Link the object file `content` into a shared library.

    Args:
        linker: what find_linker() found for `target`.
        content: an object file that has passed its gate.
        target: what it was compiled for.
        soname: the library's own name, such as ``libxxhash.so``.
        exports: the symbols to keep visible.
        needed: the object's undefined symbols, as the gate reported them.
        scratch: an empty directory for this call, the only place where the linker may write.
        sandbox: what must confine the linker.
        libraries: the libraries of its dependencies, by what they call themselves, and what each provides.
        run_path: where the loader will look for those.

    Raises:
        CompileError: the linker refuses; undefined symbols are named.
        UnsupportedError: this system lacks what `sandbox` demands.
        ResourceError: no space, or the linker did not end in time.
    """
    if target.system in (MACOS, WINDOWS):
        library, beside_it, level = link_foreign(
            linker, content, target=target, soname=soname, exports=exports, needed=needed, scratch=scratch,
            sandbox=sandbox, libraries=libraries,
        )  # fmt: skip
        return Linked(library=library, libc=STAND_IN, sandbox=level, import_library=beside_it)
    with translated("prepare the linking", scratch):
        (scratch / "input.o").write_bytes(content)
        names = "".join(f"    {name};\n" for name in sorted(exports))
        script = ("{\n  global:\n" + names if names else "{\n") + "  local: *;\n};\n"
        (scratch / "exports.map").write_text(script, encoding="ascii")
    provided = frozenset(name for names in libraries.values() for name in names)
    host = host_libraries(target)
    if host is not None:
        beside = [str(path) for path in host.paths]
    else:
        homes = stand_ins(target, frozenset(needed) - provided, SUPPORT_CALLS)
        beside = _link_stand_ins(homes, linker, target, scratch, sandbox)
    # Stand-ins for those too: all that a linker needs of a library is its name and the names in it.
    beside = [*_link_stand_ins(libraries, linker, target, scratch, sandbox), *beside]
    options = [*_OPTIONS, "-soname", soname, "--version-script=exports.map"]
    if target.system == ANDROID:
        options += ["-z", f"max-page-size={_ANDROID_PAGE}"]
    if run_path is not None:
        options += ["--enable-new-dtags", "-rpath", run_path]
    library, level = _run(linker, options, ["input.o", *beside], soname, target, scratch, sandbox)
    return Linked(library=library, libc=host.version if host else STAND_IN, sandbox=level)


def _link_stand_ins(
    homes: Mapping[str, Collection[str]], linker: Linker, target: Target, scratch: Path, sandbox: Mode
) -> list[str]:
    paths = []
    for home, names in homes.items():
        with translated("prepare the linking", scratch):
            (scratch / f"{home}.o").write_bytes(stub_object(target.arch, names))
        _run(linker, ["-soname", home], [f"{home}.o"], home, target, scratch, sandbox)
        paths.append(home)
    return paths


def _run(
    linker: Linker,
    options: list[str],
    inputs: list[str],
    output: str,
    target: Target,
    scratch: Path,
    sandbox: Mode,
) -> tuple[bytes, Level]:
    if linker.kind == "lld":
        options = [*_LLD_OPTIONS, *options]
    if linker.kind == "driver":
        options = [word for option in options for word in ("-Xlinker", option)]
    words = ["-shared", "-nostdlib", *options, "-o", output, *inputs]
    return run_linker(linker, words, inputs, output, target, scratch, sandbox)
