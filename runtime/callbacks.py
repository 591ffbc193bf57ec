"""Python functions that C calls.

Invariant: a Python function that C was given stays alive as long as the library, since C may keep the pointer; and
an exception in it neither crosses C nor gets lost. C gets 0, the function is not called again during the same call,
and when that call returns the exception is raised there. ctypes alone would print it and hand C whatever is in memory.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from visget.runtime.arrays import Address, same_type
from visget.runtime.scalars import Converter, article

_Native: Any = ctypes.CFUNCTYPE(None).__base__


class Pending:
    """The callbacks of one library, and the exceptions in them that wait for C to return."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._thunks: dict[object, Any] = {}

    def __len__(self) -> int:
        return len(self._thunks)

    def thunk(self, made: Any, function: Callable[..., Any]) -> Any:
        """Return the C function of the type `made` that calls `function`: the same one each time."""
        key: object = (made, function)
        try:
            hash(key)
        except TypeError:
            # It is kept alive by the thunk, so that its identity stays its own.
            key = (made, id(function))
        found = self._thunks.get(key)
        if found is None:
            found = self._thunks.setdefault(key, made(self._guarded(function)))
        return found

    def raising(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call` as a function that raises what was raised in callbacks meanwhile."""

        def checked(*arguments: Any) -> Any:
            calls = self._calls()
            raised: list[BaseException] = []
            calls.append(raised)
            try:
                result = call(*arguments)
            finally:
                calls.pop()
            if raised:
                raise raised[0]
            return result

        return checked

    def _calls(self) -> list[list[BaseException]]:
        """Return, for each call of this thread that C has not finished yet, what was raised in it."""
        try:
            calls: list[list[BaseException]] = self._local.calls
        except AttributeError:
            calls = self._local.calls = []
        return calls

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            calls = self._calls()
            if calls and calls[-1]:
                return 0
            try:
                return function(*arguments)
            except BaseException as error:
                # Raised again when C returns.
                if calls:
                    calls[-1].append(error)
                else:
                    # C had kept the pointer and called it later, or from a thread of its own.
                    import logging

                    logging.getLogger("visget.runtime").exception("exception in the callback %r", function)
                return 0

        return guarded


def callback_argument(made: Any, pending: Pending, spelled: str) -> Converter:
    """Return the converter for a function pointer: it takes callables, ctypes functions and None.

    Pass the same callable again rather than a new lambda for every call: each is kept.

    Args:
        made: the ctypes function type; `Address` where Python cannot make such a function.
        pending: keeps what is passed.
        spelled: the type as the header spells it, for messages.
    """

    def from_param(x: Any) -> Any:
        if x is None:
            return None
        native = getattr(x, "native", x)
        if isinstance(native, _Native):
            if made is not Address and not _same_function(native, made):
                raise TypeError(f"expected {spelled}, got a C function of another type")
            return ctypes.cast(native, ctypes.c_void_p)
        if made is Address:
            raise TypeError(f"expected {spelled}, which Python cannot make; pass a ctypes function of that type")
        if not callable(x):
            raise TypeError(f"expected {spelled}: a callable or None, got {article(type(x).__name__)}")
        return pending.thunk(made, x)

    return Converter(from_param)


def _same_function(native: Any, made: Any) -> bool:
    """Return whether a ctypes function may stand for a callback type, as far as its own types are known."""
    if isinstance(native, made) or native.argtypes is None:
        return True
    if len(native.argtypes) != len(made._argtypes_):
        return False
    return all(
        isinstance(one, Converter) or one is other or same_type(one, other)
        for one, other in zip(native.argtypes, made._argtypes_, strict=True)
    )
