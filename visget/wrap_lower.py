"""Neutral objects made native, for programs that a build runs: one object at a time, and each only once.

Invariant: a native object is kept under a digest of everything that it depends on: the bitcode, the target, and the
code generator (LLVM's file and visget's own modules, by size and time). The directory can be deleted at any time.
Programs are for the build machine and are never shipped; what is installed is compiled by visget.installer.compile.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
from pathlib import Path

from visget.files import atomic_write, translated
from visget.installer.target import Target, baseline, no_back_end, parse_target
from visget.toolchain.driver_resolve import Unit
from visget.toolchain.irsymbols import is_bitcode

LEVEL = 1
"""The optimisation level: programs of a build run once and are compiled often."""

_LIMIT = 512 << 20
_KEPT = 256 << 20
_ROOMS = ("installer", "toolchain", "format")


def build_target(text: str | None) -> Target:
    """Return the target that `text` names; None means this machine.

    Raises:
        UnsupportedError: there is no back end for it.
    """
    from visget.machine import libc_family

    host = baseline(os.uname().machine, libc_family() or "gnu")
    target = host if text is None else parse_target(text, host)
    if target.system != "linux":
        raise no_back_end(target.platform)  # for programs; libraries can be made for it
    return target


def objects_directory(cache: str | None) -> Path:
    """Return the directory in which native objects are kept."""
    if cache is not None:
        return Path(cache) / "objects"
    from visget.directories import cache_dir

    return cache_dir() / "objects"


def lower(unit: Unit, target: Target, directory: Path) -> Path:
    """Return the file of `unit` compiled for `target`; its data may also be neutral LLVM IR text.

    Raises:
        FormatError: it is not valid bitcode.
        BuildError: it breaks a rule for programs.
        CompileError: it cannot be expressed on the target.
        UnsupportedError: it needs a built-in that this visget lacks.
    """
    digest = hashlib.sha256(f"{target.key()}\n{LEVEL}\n{_generator()}\n".encode())
    digest.update(unit.data)
    name = digest.hexdigest()
    path = directory / name[:2] / f"{name[2:]}.o"
    if path.is_file():
        with contextlib.suppress(OSError):
            os.utime(path)  # what is in use is the last to be thrown away
    else:
        native = _compile(unit, target)
        with translated("keep a native object", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _make_room(directory)
            atomic_write(path, native)
    return path


def _compile(unit: Unit, target: Target) -> bytes:
    # These load LLVM.
    from visget.format.module import parse_bitcode, text_of
    from visget.installer.codegen import Machine, generate_unit
    from visget.toolchain.driver_compile import ziglang
    from visget.toolchain.normalise import neutral_text
    from visget.toolchain.runtime_library import with_runtime
    from visget.wrap_check import check_unit

    if is_bitcode(unit.data):
        text = neutral_text(text_of(parse_bitcode(unit.data)))
    else:
        text = unit.data.decode("utf-8", "surrogateescape")
    # As in a package: the same arithmetic on every machine, and no compiler's run-time library.
    text = with_runtime(text, ziglang())
    if is_bitcode(unit.data):  # and not visget's own
        check_unit(text, unit.origin)
    machine = Machine(triple=target.triple, cpu=target.cpu, features=target.flattened, level=LEVEL)
    return generate_unit(text, machine)


@functools.cache
def _generator() -> str:
    """Name the code generator without loading it."""
    seen = []
    spec = importlib.util.find_spec("llvmlite")
    if spec is not None and spec.origin is not None:
        seen.append(Path(spec.origin))
    home = Path(__file__).resolve().parent
    for room in _ROOMS:
        seen += sorted((home / room).glob("*.py"))
    seen += sorted(home.glob("wrap_*.py"))
    facts = ((path.name, path.stat()) for path in seen)
    return hashlib.sha256(repr([(name, fact.st_size, fact.st_mtime_ns) for name, fact in facts]).encode()).hexdigest()


def _make_room(directory: Path) -> None:
    """Delete the oldest objects once in a while, when there is too much of them."""
    if os.urandom(1)[0] != 0:
        return
    found = sorted(
        ((entry.stat().st_mtime_ns, entry.stat().st_size, entry) for entry in directory.glob("*/*.o")), reverse=True
    )
    if sum(size for _, size, _ in found) <= _LIMIT:
        return
    kept = 0
    for _, size, entry in found:
        kept += size
        if kept > _KEPT:
            entry.unlink(missing_ok=True)
