"""An installed library in this process: its functions, types and constants as attributes.

Invariants: loading reads the package's interface and maps the shared library, and nothing more: no LLVM, no
cryptography, no NumPy. What was loaded works on whatever happens to the store, for nothing is read later. Each
attribute is made when first asked for, once, whatever the number of threads.

A library cannot be closed: its functions, structs with function pointers, and every pointer it returned would dangle.
It is unmapped when the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from visget.cache.content import DamagedError
from visget.cache.entry import NativeEntry, unsealed
from visget.digest import Digest
from visget.errors import LoadError
from visget.runtime.mapping import map_library

if TYPE_CHECKING:
    from visget.format.prototypes import Api
    from visget.runtime.members import Members

_RECEIPT = "receipt.json"
_RECEIPT_LIMIT = 1 << 20


class Library:
    """An installed library.

    Functions, structs, enums, enum values and constants are attributes under their C names, without ``struct``,
    ``union`` or ``enum``, and under the names that a typedef gives them. A name that this class uses itself, or a
    struct with the name of a function, is reached by subscript: ``lib["path"]``, ``lib["struct stat"]``. Iteration
    gives the names of the functions. Text in constants is bytes, ready to be passed where C wants ``const char *``.
    """

    def __init__(
        self, *, name: str, version: str, path: Path, cdll: Any, api: Callable[[], Api], receipt: bytes | None
    ) -> None:
        """Do not call this: visget.load() makes libraries."""
        self.name = name
        """The package's name."""
        self.version = version
        """The package's version."""
        self.path = path
        """The file that was loaded; it may have been removed from the store since."""
        self.cdll = cdll
        """The same library for plain ctypes, with no types declared."""
        self._read_api = api
        self._receipt = receipt
        self._lock = threading.RLock()
        self._found: Members | None = None
        self._made: dict[str, Any] = {}

    @property
    def receipt(self) -> dict[str, Any]:
        """What was compiled from what, for which processor, by which compiler."""
        if self._receipt is None:
            raise _damaged(self.name, "it has no receipt", self.path.parent.parent / _RECEIPT)
        from visget.format import strictjson

        return strictjson.loads(self._receipt, what="the receipt", limit=_RECEIPT_LIMIT)

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


Find = Callable[[Digest], NativeEntry | None]
"""Gives the artifact of an action key, or None."""


def open_entry(entry: NativeEntry, *, name: str, version: str, find: Find | None = None) -> Library:
    """Load the library that `entry` holds: the file that was checked is the one that is mapped.

    Args:
        entry: its artifact.
        name: the package's name.
        version: the package's version.
        find: gives the artifacts of the libraries that it is linked with; these are checked and mapped before it.

    Raises:
        DamagedError: a file that is needed is not the one that the store made; nothing of it was loaded.
        LoadError: the system cannot load it, or the files cannot be read now.
    """
    shared, relocatable = f"lib/lib{name}.so", f"lib/lib{name}.o"
    cdll: Any
    try:
        # Read now, not when first needed: by then the entry may have been removed or made anew.
        api, receipt = entry.content("api.json"), entry.content(_RECEIPT) if entry.file(_RECEIPT) else None
        if entry.file(shared) is not None:
            path = entry.path / shared
            map_needed(entry, find)
            with entry.opened(shared) as descriptor:
                cdll = _mapped(descriptor, path, name, version, alone=not entry.needs)
        elif entry.file(relocatable) is not None:
            # No linker was found when it was installed. Only now is LLVM needed.
            from visget.runtime.jit import load_object

            path = entry.path / relocatable
            cdll = load_object(entry.content(relocatable), name, path)
        else:
            raise _damaged(name, f"there is neither lib{name}.so nor lib{name}.o", entry.path / "lib")
    except OSError as error:
        raise LoadError(f"{name} {version} cannot be read: {error.strerror}", where=str(entry.path)) from error

    def parsed() -> Api:
        from visget.format.prototypes import Api

        return Api.parse(api)

    return Library(name=name, version=version, path=path, cdll=cdll, api=parsed, receipt=receipt)


def open_library(directory: Path, *, name: str, version: str) -> Library:
    """Load a library from a directory that no store vouches for, such as one that a benchmark has filled.

    Raises:
        LoadError: something is missing, or the system cannot load it.
    """
    try:
        return open_entry(unsealed(directory), name=name, version=version)
    except (DamagedError, ValueError, OSError) as error:
        raise _damaged(name, str(error), directory) from error


def map_needed(entry: NativeEntry, find: Find | None, seen: set[Digest] | None = None) -> None:
    """Map the libraries that the one in `entry` is linked with, each after those that it is linked with itself.

    The loader then takes these, because each has a name of its own: whatever lies in their places by now is not looked
    at.

    Raises:
        DamagedError: one is missing, or not the one that the store made.
        OSError: the system's loader refuses one, or it cannot be read now.
    """
    seen = set() if seen is None else seen
    for need in entry.needs:
        if need.key in seen or not need.path:
            continue
        seen.add(need.key)
        other = find(need.key) if find is not None else None
        if other is None or other.file(need.path) is None:
            raise DamagedError(f"{need.path.rpartition('/')[2]}, which it is linked with, is missing or damaged")
        map_needed(other, find, seen)
        with other.opened(need.path) as descriptor:
            map_library(descriptor, other.path / need.path, alone=not other.needs)


def _mapped(descriptor: int, path: Path, name: str, version: str, *, alone: bool) -> Any:
    try:
        return map_library(descriptor, path, alone=alone)
    except OSError as error:
        raise LoadError(
            f"{name} {version} cannot be loaded: {error}",
            hint=f"install it again: visget install --reinstall {name}=={version}",
            where=str(path),
        ) from error


def _damaged(name: str, why: str, where: Path) -> LoadError:
    return LoadError(
        f"the installed library {name} is damaged: {why}",
        hint=f"install it again: visget install --reinstall {name}",
        where=str(where),
    )
