"""From one object file to a shared library.

Invariant: the library's bytes depend on the object, the target, the names, the linker and the C library that it is
linked against, all of which are in the cache key; nothing outside the scratch directory is written. The options
and their reasons are docs/spec/native-gates.md, section "Linking".
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from visget.errors import CompileError, ResourceError
from visget.files import translated
from visget.installer.clibrary import STAND_IN, host_libraries, stand_ins
from visget.installer.linkers import Linker, clean_environment, find_linker
from visget.installer.stubs import stub_object
from visget.installer.symbols import SUPPORT_CALLS
from visget.installer.target import Target

__all__ = ["Linked", "Linker", "find_linker", "libc_identity", "link_library"]

_TIMEOUT = 300.0
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
# Older lld obeys the libraries that an object asks for in .deplibs; the object gate refuses that section too.
_LLD_OPTIONS = ("--no-dependent-libraries",)
_UNDEFINED = re.compile(r"undefined (?:symbol|reference to)[:]? [`'\"]?([A-Za-z0-9_.$@]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """What the linker made."""

    library: bytes
    libc: str
    """The C library that it was linked against: ``glibc 2.36``, or ``stand-in`` for that of a foreign target."""


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
) -> Linked:
    """Link the object file `content` into a shared library.

    Args:
        linker: what find_linker() found for `target`.
        content: an object file that has passed its gate.
        target: what it was compiled for.
        soname: the library's own name, such as ``libxxhash.so``.
        exports: the symbols to keep visible.
        needed: the object's undefined symbols, as the gate reported them.
        scratch: an empty directory for this call.

    Raises:
        CompileError: the linker refuses; undefined symbols are named.
        ResourceError: no space, or the linker did not end in time.
    """
    with translated("prepare the linking", scratch):
        (scratch / "input.o").write_bytes(content)
        names = "".join(f"    {name};\n" for name in sorted(exports))
        script = ("{\n  global:\n" + names if names else "{\n") + "  local: *;\n};\n"
        (scratch / "exports.map").write_text(script, encoding="ascii")
    libraries = host_libraries(target)
    if libraries is not None:
        beside = [str(path) for path in libraries.paths]
    else:
        beside = _link_stand_ins(linker, target, needed, scratch)
    options = [*_OPTIONS, "-soname", soname, "--version-script=exports.map"]
    library = _run(linker, options, ["input.o", *beside], soname, target, scratch)
    return Linked(library=library, libc=libraries.version if libraries else STAND_IN)


def _link_stand_ins(linker: Linker, target: Target, needed: Collection[str], scratch: Path) -> list[str]:
    paths = []
    for home, names in stand_ins(target, needed, SUPPORT_CALLS).items():
        with translated("prepare the linking", scratch):
            (scratch / f"{home}.o").write_bytes(stub_object(target.arch, names))
        _run(linker, ["-soname", home], [f"{home}.o"], home, target, scratch)
        paths.append(home)
    return paths


def _run(
    linker: Linker, options: list[str], inputs: list[str], output: str, target: Target, scratch: Path
) -> bytes:
    if linker.kind == "lld":
        options = [*_LLD_OPTIONS, *options]
    if linker.kind == "driver":
        options = [word for option in options for word in ("-Xlinker", option)]
    command = [*linker.command, "-shared", "-nostdlib", *options, "-o", output, *inputs]
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            env=clean_environment(scratch),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceError(f"the linker did not finish {output} within {_TIMEOUT:.0f} s") from error
    except OSError as error:
        raise CompileError(f"the linker {linker.command[0]} could not be started: {error.strerror}") from error
    complaints = (done.stderr + done.stdout).decode("utf-8", "replace")
    if done.returncode != 0:
        raise _explain(complaints, done.returncode, output, linker, target)
    with translated("read what the linker wrote", scratch / output):
        return (scratch / output).read_bytes()


def _explain(complaints: str, status: int, output: str, linker: Linker, target: Target) -> CompileError:
    missing = sorted(set(_UNDEFINED.findall(complaints)))
    if missing:
        message = (
            f"{output} cannot be linked for {target.platform}: the C library there lacks "
            f"{', '.join(missing[:12])}{' ...' if len(missing) > 12 else ''}"
        )
        hint = "the package needs a newer C library, or its author must leave these functions out"
    else:
        lines = [line.strip() for line in complaints.splitlines() if line.strip()]
        message = f"{output} cannot be linked for {target.platform}: {lines[0][:300] if lines else f'exit {status}'}"
        hint = "choose another linker with --linker (auto, lld, ld, cc, zig), or none to keep the object file"
    return CompileError(
        message,
        hint=hint,
        details={"linker": linker.identity, "undefined": missing, "stderr": complaints[-4000:]},
    )
