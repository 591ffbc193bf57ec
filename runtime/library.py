"""An installed library in this process: its functions, types and constants as attributes.

Invariant: loading reads the package's interface and maps the shared library, and nothing more: no LLVM, no
cryptography, no NumPy. Each attribute is made when first asked for, once, whatever the number of threads.

A library cannot be closed: its functions, structs with function pointers, and every pointer it returned would dangle.
It is unmapped when the process ends.
"""

from __future__ import annotations

import ctypes
import difflib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from visget.errors import LoadError
from visget.format import strictjson
from visget.format.prototypes import Api, Constant, Enum, Function, Record
from visget.runtime.functions import make_function
from visget.runtime.types import Types, short_name

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
        self._items: dict[str, Any] | None = None
        self._function_names: tuple[str, ...] = ()
        self._made: dict[str, Any] = {}

    @property
    def receipt(self) -> dict[str, Any]:
        """What was compiled from what, for which processor, by which compiler."""
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
                    self._made[name] = self._make(name)
                return self._made[name]

    def __iter__(self) -> Iterator[str]:
        self._table()
        return iter(self._function_names)

    def __len__(self) -> int:
        self._table()
        return len(self._function_names)

    def __contains__(self, name: object) -> bool:
        return name in self._table()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self._table() if name.isidentifier())})

    def __repr__(self) -> str:
        return f"<visget library {self.name} {self.version} at {str(self.path)!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a library cannot be pickled or copied; call visget.load('{self.name}=={self.version}') "
            "in the process that needs it"
        )

    def _table(self) -> dict[str, Any]:
        """Return what each name stands for, without making any of it."""
        items = self._items
        if items is None:
            with self._lock:
                items = self._items
                if items is None:
                    api = self._read_api()
                    self._types: Types = Types(api, self._module)
                    self._function_names = tuple(function.name for function in api.functions)
                    self._items = items = _names(api)
        return items

    @property
    def _module(self) -> str:
        return f"visget.lib.{self.name}"

    def _make(self, name: str) -> Any:
        item, types = self._table()[name], self._types
        if isinstance(item, Function):
            return make_function(item, self._native, types, self._module)
        if isinstance(item, Record):
            return types.record(item.name)
        if isinstance(item, Enum):
            return types.enum(item.name)
        if isinstance(item, Constant):
            return _constant(item)
        enum_name, value = item
        return types.enum(enum_name)._value2member_map_.get(value, value)

    def _native(self, symbol: str) -> Any:
        try:
            return self.cdll[symbol]
        except AttributeError as error:
            raise _damaged(self.name, f"it has no function {symbol}", self.path) from error

    def _no_such(self, name: str) -> str:
        message = f"the library {self.name} {self.version} has no {name!r}"
        close = difflib.get_close_matches(name, self._table(), 3)
        return f"{message}; did you mean {' or '.join(close)}?" if close else message


def _names(api: Api) -> dict[str, Any]:
    """Return the item that each name of the interface stands for; an enum value is (name of the enum, value)."""
    items: dict[str, Any] = {}
    # C keeps functions and struct tags apart; of two with one name the later entry here has it.
    declarations: tuple[Record | Enum, ...] = (*api.records, *api.enums)
    for declared in declarations:
        items[declared.name] = items[short_name(declared.name)] = declared
    for constant in api.constants:
        items[constant.name] = constant
    for enum in api.enums:
        items.update((name, (enum.name, value)) for name, value in enum.values)
    for function in api.functions:
        items[function.name] = function
    return items


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
        file = directory / "api.json"
        try:
            return Api.parse(file.read_bytes())
        except OSError as error:
            raise _damaged(name, f"its interface cannot be read: {error.strerror}", file) from error

    return Library(name=name, version=version, path=path, cdll=cdll, api=api)


def _constant(constant: Constant) -> int | float | bytes:
    if isinstance(constant.value, int):
        return constant.value
    if constant.kind == "float":
        return float.fromhex(constant.value)
    return constant.value.encode()


def _damaged(name: str, why: str, where: Path) -> LoadError:
    return LoadError(
        f"the installed library {name} is damaged: {why}",
        hint=f"install it again: visget install --reinstall {name}",
        where=str(where),
    )
