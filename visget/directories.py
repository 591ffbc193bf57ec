"""Where visget keeps things when nobody said otherwise; the only module that imports appdirs.

Invariant: nothing here creates a directory.
"""

from __future__ import annotations

from pathlib import Path

import appdirs

_APP = "visget"


def data_dir() -> Path:
    """Return the directory of the store: installed packages and native libraries."""
    return Path(appdirs.user_data_dir(_APP, appauthor=False))


def cache_dir() -> Path:
    """Return the directory of downloads that can be fetched again at any time."""
    return Path(appdirs.user_cache_dir(_APP, appauthor=False))


def config_dir() -> Path:
    """Return the directory of config.toml and of the author's keys."""
    return Path(appdirs.user_config_dir(_APP, appauthor=False))
