"""From one object file to a shared library.

Invariant: the library's bytes depend on the object, the target, the names, the linker and the C library that it is
linked against, all of which are in the cache key; nothing outside the scratch directory is written. The options
and their reasons are docs/spec/native-gates.md, section "Linking".
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from visget.errors import CompileError, ResourceError, VisgetError
from visget.files import translated
from visget.installer.clibrary import STAND_IN, host_libraries, stand_ins
from visget.installer.confined import run_confined
from visget.installer.landlock import EXECUTE, READ, WRITE_FILE, Grant
from visget.installer.linkers import Linker, clean_environment, find_linker
from visget.installer.sandbox import Level, Mode
from visget.installer.stubs import stub_object
from visget.installer.symbols import SUPPORT_CALLS
from visget.installer.target import Target

__all__ = ["Linked", "Linker", "find_linker", "libc_identity", "link_library"]

_TIMEOUT = 300.0
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
# Older lld obeys the libraries that an object asks for in .deplibs; the object gate refuses that section too.
_LLD_OPTIONS = ("--no-dependent-libraries",)
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64")
_STORES = ("/nix/store/", "/gnu/store/")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
# A linker writes through a mapping: a disk that fills up then ends it with SIGBUS, which a driver or LLVM's crash
# handler reports in words or as 128 + number. SIGXFSZ is the same for a limit on the size of files.
_FULL = re.compile(r"no space left|disk quota exceeded|file too large|bus error|SIGBUS|SIGXFSZ", re.IGNORECASE)
_UNDEFINED = re.compile(r"undefined (?:symbol|reference to)[:]? [`'\"]?([A-Za-z0-9_.$@]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """What the linker made."""

    library: bytes
    libc: str
    """The C library that it was linked against: ``glibc 2.36``, or ``stand-in`` for that of a foreign target."""
    sandbox: Level
    """What confined the linker."""


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
    command = [*linker.command, "-shared", "-nostdlib", *options, "-o", output, *inputs]
    try:
        done = run_confined(
            command,
            directory=scratch,
            environment=clean_environment(scratch),
            grants=_grants(linker, inputs),
            seconds=_TIMEOUT,
            mode=sandbox,
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceError(f"the linker did not finish {output} within {_TIMEOUT:.0f} s") from error
    except OSError as error:
        raise CompileError(f"the linker {linker.command[0]} could not be started: {error.strerror}") from error
    if done.status != 0:
        raise _explain(done.output.decode("utf-8", "replace"), done.status, output, linker, target)
    with translated("read what the linker wrote", scratch / output):
        # A link that leads elsewhere is not followed: the linker may have been taken over.
        descriptor = os.open(scratch / output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(), done.sandbox


def _grants(linker: Linker, inputs: list[str]) -> list[Grant]:
    """Return what the linker needs besides its scratch directory: itself, what it is linked from, its inputs."""
    program = Path(shutil.which(linker.command[0]) or linker.command[0]).resolve()
    homes = [*_SYSTEM, str(program.parent)]
    homes += [str(program.parent.parent / name) for name in ("lib", "lib64", "libexec")]
    # A shared system: its whole store is readable for everyone.
    homes += [store for store in _STORES if str(program).startswith(store)]
    return [
        *(Grant(home, READ | EXECUTE) for home in homes),
        *(Grant(path, READ) for path in inputs if path.startswith("/")),
        *(Grant(path, READ) for path in _LOADER),
        Grant(os.devnull, READ | WRITE_FILE),
    ]


def _explain(complaints: str, status: int, output: str, linker: Linker, target: Target) -> VisgetError:
    missing = sorted(set(_UNDEFINED.findall(complaints)))
    if not missing and _disk_was_full(complaints, status):
        return ResourceError(
            f"{output} cannot be linked: no space left for what the linker writes",
            hint="free some space (`visget cache gc` removes what no installed package needs) and try again",
            details={"linker": linker.identity, "status": status, "cause": "space"},
        )
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


def _disk_was_full(complaints: str, status: int) -> bool:
    ended_by = status - 128 if status > 128 else -status
    return ended_by in (signal.SIGBUS, signal.SIGXFSZ) or _FULL.search(complaints) is not None
