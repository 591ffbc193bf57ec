"""An installed library in this process: its functions, types and constants as attributes.

Invariant: loading reads the package's interface and maps the shared library, and nothing more: no LLVM, no
cryptography, no NumPy. Each attribute is made when first asked for, once, whatever the number of threads.

A library cannot be closed: its functions, structs with function pointers, and every pointer it returned would dangle.
It is unmapped when the process ends.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from visget.errors import LoadError

if TYPE_CHECKING:
    from visget.format.prototypes import Api
    from visget.runtime.members import Members

_RECEIPT_LIMIT = 1 << 20


class Library:
    """An installed library.

    Functions, structs, enums, enum values and constants are attributes under their C names, without ``struct``,
    ``union`` or ``enum``. A name that this class uses itself, or a struct with the name of a function, is
    reached by subscript: ``lib["path"]``, ``lib["struct stat"]``. Iteration gives the names of the functions.
    Text in constants is bytes, ready to be passed where C wants ``const char *``.
    """

    def __init__(self, *, name: str, version: str, path: Path, cdll: Any, api: Callable[[], Api]) -> None:
        """Do not call this: visget.load() makes libraries."""
        self.name = name
        """The package's name."""
        self.version = version
        """The package's version."""
        self.path = path
        """The file that was loaded."""
        self.cdll = cdll
        """The same library for plain ctypes, with no types declared."""
        self._read_api = api
        self._lock = threading.RLock()
        self._found: Members | None = None
        self._made: dict[str, Any] = {}

    @property
    def receipt(self) -> dict[str, Any]:
        """What was compiled from what, for which processor, by which compiler."""
        from visget.format import strictjson

        file = self.path.parent.parent / "receipt.json"
        try:
            return strictjson.loads(file.read_bytes(), what="the receipt", limit=_RECEIPT_LIMIT)
        except OSError as error:
            raise _damaged(self.name, f"its receipt cannot be read: {error.strerror}", file) from error

    def __getattr__(self, name: str) -> Any:
        # Only reached when the attribute is not there yet.
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(self._no_such(name), name=name, obj=self) from None
        self.__dict__[name] = value
        return value

    def __getitem__(self, name: str) -> Any:
        try:
            return self._made[name]
        except KeyError:
            with self._lock:
                if name not in self._made:
                    self._made[name] = self._members().make(name)
                return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members().functions)

    def __len__(self) -> int:
        return len(self._members().functions)

    def __contains__(self, name: object) -> bool:
        return name in self._members().items

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self._members().items if name.isidentifier())})

    def __repr__(self) -> str:
        return f"<visget library {self.name} {self.version} at {str(self.path)!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a library cannot be pickled or copied; call visget.load({self.name!r}, {self.version!r}) "
            "in the process that needs it"
        )

    def _members(self) -> Members:
        """What there is, without making any of it; read when it is first asked for, like all that it imports."""
        members = self._found
        if members is None:
            with self._lock:
                members = self._found
                if members is None:
                    from visget.runtime.members import Members

                    self._found = members = Members(self._read_api(), f"visget.lib.{self.name}", self._native)
        return members

    def _native(self, symbol: str) -> Any:
        try:
            return self.cdll[symbol]
        except AttributeError as error:
            raise _damaged(self.name, f"it has no function {symbol}", self.path) from error

    def _no_such(self, name: str) -> str:
        message = f"the library {self.name} {self.version} has no {name!r}"
        import difflib

        close = difflib.get_close_matches(name, self._members().items, 3)
        return f"{message}; did you mean {' or '.join(close)}?" if close else message


def open_library(directory: Path, *, name: str, version: str) -> Library:
    """Load the library that is installed in `directory`.

    Args:
        directory: an entry of the native store.
        name: the package's name.
        version: the package's version.

    Raises:
        LoadError: the entry is damaged, or the system cannot load it.
    """
    shared = directory / "lib" / f"lib{name}.so"
    relocatable = directory / "lib" / f"lib{name}.o"
    cdll: Any
    if shared.exists():
        path = shared
        try:
            cdll = ctypes.CDLL(str(shared), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise LoadError(
                f"{name} {version} cannot be loaded: {error}",
                hint=f"install it again: visget install --reinstall {name}=={version}",
                where=str(shared),
            ) from error
    elif relocatable.exists():
        # No linker was found when it was installed. Only now is LLVM needed.
        from visget.runtime.jit import load_object

        path = relocatable
        cdll = load_object(relocatable, name)
    else:
        raise _damaged(name, f"there is neither {shared.name} nor {relocatable.name}", directory / "lib")

    def api() -> Api:
        from visget.format.prototypes import Api

        file = directory / "api.json"
        try:
            return Api.parse(file.read_bytes())
        except OSError as error:
            raise _damaged(name, f"its interface cannot be read: {error.strerror}", file) from error

    return Library(name=name, version=version, path=path, cdll=cdll, api=api)


def _damaged(name: str, why: str, where: Path) -> LoadError:
    return LoadError(
        f"the installed library {name} is damaged: {why}",
        hint=f"install it again: visget install --reinstall {name}",
        where=str(where),
    )
