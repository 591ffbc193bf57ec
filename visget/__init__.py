"""visget: native libraries whose packages hold no machine code.

``visget.load("NAME")`` returns an installed library with typed functions, ``visget.path("NAME")`` the file for
``ctypes.CDLL``. Names are resolved on first use, so that ``import visget`` costs next to nothing and never
imports a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from visget.version import __version__

if TYPE_CHECKING:
    from visget.errors import VisgetError
    from visget.loading import load, path

__all__ = ["VisgetError", "__version__", "load", "path"]

_HOME = {"load": "visget.loading", "path": "visget.loading", "VisgetError": "visget.errors"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'visget' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
