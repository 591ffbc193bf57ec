"""What the compiler wrappers are told from outside, apart from their command line.

Invariant: light, for it is read at every compilation, where visget.config would take longer than the rest; it reads
only the environment. config.toml has no part in it, for builds must be repeatable. The variables are described in
docs/guides/building.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple


class WrapSettings(NamedTuple):
    """The settings of one call of a wrapper."""

    log: str | None = None
    """The directory to which each call appends a line."""
    root: str | None = None
    """The directory to which paths in objects are relative; None means the current one."""
    flags: tuple[str, ...] = ()
    """Flags that every compilation is given after its own."""
    target: str | None = None
    """What programs are made for; None means this machine."""
    cc: str | None = None
    """Another clang than ziglang's."""
    cache: str | None = None
    """Where native objects are kept between calls; None means the default place."""
    scratch: str = "/tmp"  # noqa: S108 - what every program takes when TMPDIR is not set
    """Where temporary directories are made."""


def read_wrap_settings(environ: Mapping[str, str] | None = None) -> WrapSettings:
    """Return the settings that `environ` holds; None means the environment of the process."""
    environ = os.environ if environ is None else environ
    return WrapSettings(
        log=environ.get("VISGET_WRAP_LOG") or None,
        root=environ.get("VISGET_WRAP_ROOT") or None,
        flags=tuple(flag for flag in environ.get("VISGET_WRAP_FLAGS", "").split("\n") if flag),
        target=environ.get("VISGET_CC_TARGET") or None,
        cc=environ.get("VISGET_CC") or None,
        cache=environ.get("VISGET_CACHE_DIR") or None,
        scratch=environ.get("TMPDIR") or "/tmp",  # noqa: S108
    )
