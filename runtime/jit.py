"""Loading a library that was never linked: LLVM's own linker puts the object file into this process.

Invariant: this is the only module of the runtime that imports LLVM, and it is imported only when an installed
library has no shared object because no linker was found.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from visget.errors import LoadError

_loaded: list[Any] = []
"""The linked libraries; LLVM unmaps one, and runs its destructors, as soon as nobody holds it."""


class JitLibrary:
    """A loaded object file that answers like a ``ctypes.CDLL``: functions as attributes and by subscript."""

    def __init__(self, engine: Any, name: str) -> None:
        self._engine = engine
        self._name = name

    def __getitem__(self, symbol: str) -> Any:
        try:
            found = self._engine.lookup(self._name, symbol)
        except RuntimeError:
            raise AttributeError(f"{self._name} has no function {symbol}") from None
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


def load_object(path: Path, name: str) -> JitLibrary:
    """Load the object file `path` as the library `name`.

    Raises:
        LoadError: it cannot be read, or LLVM cannot link it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    try:
        engine = llvm.create_lljit_compiler(suppress_errors=True)
        builder = llvm.JITLibraryBuilder().add_object_img(path.read_bytes())
        _loaded.append(builder.add_current_process().link(engine, name))
    except OSError as error:
        raise LoadError(f"{name} cannot be read: {error.strerror}", where=str(path)) from error
    except RuntimeError as error:
        raise LoadError(
            f"LLVM cannot load {name}: {str(error).strip()}",
            hint="install a linker (ld.lld, ld or cc), then install the library again",
            where=str(path),
        ) from error
    return JitLibrary(engine, name)
