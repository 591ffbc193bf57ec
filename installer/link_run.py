"""Running a linker, confined, and saying what went wrong.

Invariant: the linker writes in its scratch directory only, and whatever ends it becomes an error that names the
library.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from visget.errors import CompileError, ResourceError, VisgetError
from visget.files import translated
from visget.installer.confined import run_confined
from visget.installer.landlock import EXECUTE, READ, WRITE_FILE, Grant
from visget.installer.linkers import Linker, clean_environment
from visget.installer.sandbox import Level, Mode
from visget.installer.target import Target

_TIMEOUT = 300.0
_KEPT = 20_000
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64")
_STORES = ("/nix/store/", "/gnu/store/")
_LOADER = ("/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
# A linker writes through a mapping: a disk that fills up then ends it with SIGBUS, which a driver or LLVM's crash
# handler reports in words or as 128 + number. SIGXFSZ is the same for a limit on the size of files.
_FULL = re.compile(r"no space left|disk quota exceeded|file too large|bus error|SIGBUS|SIGXFSZ", re.IGNORECASE)
_UNDEFINED = re.compile(r"undefined (?:symbol|reference to)[:]? [`'\"]?([A-Za-z0-9_.$@]+)")


def run_linker(
    linker: Linker,
    words: Sequence[str],
    inputs: Sequence[str],
    output: str,
    target: Target,
    scratch: Path,
    sandbox: Mode,
) -> tuple[bytes, Level]:
    """Run `linker` with `words` in the directory `scratch`; return the file `output` and what confined the linker.

    Args:
        linker: the linker.
        words: what follows its command.
        inputs: the files among them; those outside `scratch` may be read.
        output: the name of the file that it writes.
        target: what is linked, for messages.
        scratch: the only place where the linker may write.
        sandbox: what must confine the linker.

    Raises:
        CompileError: the linker refuses; undefined symbols are named.
        ResourceError: no space, or the linker did not end in time.
    """
    try:
        done = run_confined(
            [*linker.command, *words],
            directory=scratch,
            environment=clean_environment(scratch),
            grants=_grants(linker, list(inputs)),
            seconds=_TIMEOUT,
            mode=sandbox,
        )
    except subprocess.TimeoutExpired as error:
        raise ResourceError(f"the linker did not finish {output} within {_TIMEOUT:.0f} s") from error
    except OSError as error:
        raise CompileError(f"the linker {linker.command[0]} could not be started: {error.strerror}") from error
    if done.status != 0:
        raise _explain(done.output.decode("utf-8", "replace"), done.status, output, linker, target)
    return read_output(scratch, output), done.sandbox


def read_output(scratch: Path, output: str) -> bytes:
    """Return the file `output` that a linker wrote in `scratch`."""
    with translated("read what the linker wrote", scratch / output):
        # A link that leads elsewhere is not followed: the linker may have been taken over.
        descriptor = os.open(scratch / output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()


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
        details={"linker": linker.identity, "undefined": missing, "stderr": complaints[-_KEPT:]},
    )


def _disk_was_full(complaints: str, status: int) -> bool:
    ended_by = status - 128 if status > 128 else -status
    return ended_by in (signal.SIGBUS, signal.SIGXFSZ) or _FULL.search(complaints) is not None
