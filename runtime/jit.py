"""Loading a library that was never linked: LLVM's own linker puts the object file into this process.

Invariant: this is the only module of the runtime that imports LLVM, and it is imported only when an installed
library has no shared object because no linker was found.
"""

from __future__ import annotations

import ctypes
import io
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from visget.errors import LoadError

_loaded: list[Any] = []
"""The linked libraries; LLVM unmaps one, and runs its destructors, as soon as nobody holds it."""
# LLVM's linker in memory skips the first without a word and ends the process at the second.
_NEEDS_LINKER = {"constructors": (".init_array", ".fini_array"), "thread-local variables": (".tdata", ".tbss")}


class JitLibrary:
    """A loaded object file that answers like a ``ctypes.CDLL``: functions as attributes and by subscript."""

    def __init__(self, engine: Any, name: str, path: Path) -> None:
        self._engine = engine
        self._name = name
        self._path = path

    def __getitem__(self, symbol: str) -> Any:
        try:
            found = self._engine.lookup(self._name, symbol)
        except RuntimeError as error:
            if "Symbols not found" in str(error):
                raise AttributeError(f"{self._name} has no function {symbol}") from None
            # The code is linked when something of it is first asked for.
            raise _unlinkable(self._name, str(error), self._path) from error
        _loaded.append(found)
        return ctypes.CFUNCTYPE(ctypes.c_int)(found[symbol])

    def __getattr__(self, symbol: str) -> Any:
        if symbol.startswith("__"):
            raise AttributeError(symbol)
        function = self[symbol]
        setattr(self, symbol, function)
        return function

    def __repr__(self) -> str:
        return f"<JitLibrary {self._name}>"


def load_object(image: bytes, name: str, path: Path) -> JitLibrary:
    """Load the object file `image`, which lies at `path`, as the library `name`.

    Raises:
        LoadError: LLVM cannot link it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        # Not with LLVM's own reader, which ends the process when the file is damaged.
        sections = [str(section.name) for section in ELFFile(io.BytesIO(image)).iter_sections()]
        for what, names in _NEEDS_LINKER.items():
            if any(section.startswith(names) for section in sections):
                raise _unlinkable(name, f"it has {what}, which only work in a linked library", path)
        engine = llvm.create_lljit_compiler(suppress_errors=True)
        builder = llvm.JITLibraryBuilder().add_object_img(image)
        _loaded.append(builder.add_current_process().link(engine, name))
    except (RuntimeError, ELFError) as error:
        raise _unlinkable(name, str(error), path) from error
    return JitLibrary(engine, name, path)


def _unlinkable(name: str, why: str, path: Path) -> LoadError:
    return LoadError(
        f"LLVM cannot load {name}: {why.strip()}",
        hint="install a linker (ld.lld, ld or cc, or pip install ziglang), then install the library again",
        where=str(path),
    )
