"""Calls of library functions through plain ctypes, the same for every build of a library.

The distribution's packages have no typed interface, and libraries that hand out pointers to pointers are easier to
drive without one. Every integer is passed as a 64-bit word, as all three calling conventions allow.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.inputs import Arrays
from bench.native import link
from visget.runtime.library import Library

Call = Callable[[], Any]
POINTER, SIZE, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
LIBC = ctypes.CDLL(None)
LIBC.free.argtypes = [ctypes.c_void_p]
LIBC.free.restype = None


def bound(library: Library, name: str, *args: object, result: Any = INT) -> Call:
    """Return the call of the function `name` with these arguments, ready to be made any number of times."""
    function = library.cdll[name]
    function.restype = result
    made = partial(function, *map(_argument, args))
    made.keep = args  # type: ignore[attr-defined]
    return made


def call(library: Library, name: str, *args: object, result: Any = INT) -> Any:
    """Call the function `name` now."""
    return bound(library, name, *args, result=result)()


def address(library: Library | ctypes.CDLL, name: str) -> ctypes.c_void_p:
    """Return the address of a function, to be passed on."""
    cdll = library if isinstance(library, ctypes.CDLL) else library.cdll
    return ctypes.cast(cdll[name], ctypes.c_void_p)


def taken(pointer: int | None, size: int) -> Any:
    """Return a copy of `size` bytes at `pointer`."""
    return np.frombuffer(ctypes.string_at(pointer or 0, size), np.uint8)


def _argument(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, int):
        return ctypes.c_size_t(value & (1 << 64) - 1)
    if isinstance(value, float):
        return ctypes.c_double(value)
    return value


@cache
def driver() -> ctypes.CDLL:
    """Return the callbacks of driver.c, compiled by this machine's compiler."""
    source = Path(__file__).with_name("driver.c")
    with tempfile.TemporaryDirectory(prefix="visget-bench-") as directory:
        made = Path(directory, "driver.so")
        link(["-O2", "-fPIC", str(source)], made, source.parent)
        return ctypes.CDLL(str(made))


def callback(name: str) -> ctypes.c_void_p:
    """Return the address of a callback."""
    return address(driver(), name)


class Sink:
    """Where callbacks put what a library hands out."""

    def __init__(self, room: int) -> None:
        arrays = Arrays()
        self.data = arrays.empty(max(room, 1), np.uint8)
        self.state = arrays.empty(5, np.uint64)
        self.state[0], self.state[1] = self.data.ctypes.data, room

    def clear(self) -> None:
        """Forget everything."""
        self.state[2:] = 0

    def written(self) -> Any:
        """Return a copy of what was appended."""
        return self.data[: int(self.state[2])].copy()

    def noted(self) -> Any:
        """Return how many events there were, and the hash of their texts."""
        return self.state[3:].copy()
