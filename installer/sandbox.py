"""How far the children of an installation are confined, and what is demanded.

Three layers: limits (visget/installer/limits.py), which every system has; seccomp, which decides about each system
call; Landlock, which takes away the file system. Invariant: with ``require`` a child without all three does nothing;
with ``auto`` a child on Linux without seccomp does nothing; what a child has is said by the child before it sees a
package's bytes and is kept in the receipt. The spec is docs/spec/worker.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from visget.errors import UnsupportedError
from visget.installer import landlock, seccomp
from visget.installer.limits import confine

Mode = Literal["require", "auto", "off"]

MODES: tuple[Mode, ...] = ("require", "auto", "off")
"""What the setting `sandbox` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What confines a child besides its limits."""

    seccomp: bool = False
    landlock: int = 0
    """The ABI of Landlock in use; 0 for none."""

    def __str__(self) -> str:
        parts = ["seccomp"] * self.seccomp + [f"landlock {self.landlock}"] * (self.landlock > 0)
        return ", ".join(parts) or "limits only"

    @property
    def complete(self) -> bool:
        """Whether every layer is there."""
        return self.seccomp and self.landlock > 0

    def as_dict(self) -> dict[str, object]:
        """Return the level as a JSON object."""
        return {"seccomp": self.seccomp, "landlock": self.landlock}


NOTHING = Level()
"""Limits only."""


def parse_level(obj: Mapping[str, object]) -> Level:
    """Return the level that as_dict() wrote as `obj`; whatever is not understood counts as missing."""
    abi = obj.get("landlock")
    return Level(seccomp=obj.get("seccomp") is True, landlock=abi if type(abi) is int and 0 < abi < 1000 else 0)


def weakest(levels: Iterable[Level]) -> Level:
    """Return what all of `levels` have."""
    known = list(levels)
    return Level(
        seccomp=all(level.seccomp for level in known) and bool(known),
        landlock=min((level.landlock for level in known), default=0),
    )


def available() -> Level:
    """Return what this system offers."""
    return Level(seccomp=seccomp.available(), landlock=landlock.abi())


def demanded(mode: Mode) -> Level:
    """Return the level to enter in `mode`.

    Raises:
        UnsupportedError: this system does not offer what `mode` demands.
    """
    if mode == "off":
        return NOTHING
    level = available()
    linux = sys.platform.startswith("linux")
    if level.complete or (mode == "auto" and (level.seccomp or not linux)):
        return level
    raise UnsupportedError(
        f"the sandbox for package code cannot be set up: {lacking(level)}",
        hint="install on a system that has it; or, for packages whose authors you trust, set VISGET_SANDBOX="
        + ("auto or off" if level.seccomp or not linux else "off"),
        details={"sandbox": level.as_dict(), "mode": mode},
    )


def lacking(level: Level) -> str:
    """Say what `level` lacks on this system, and what that means; empty when nothing is missing."""
    if not sys.platform.startswith("linux"):
        return (
            f"{'macOS' if sys.platform == 'darwin' else sys.platform} has neither seccomp nor Landlock: compilers run "
            "with limits only, and could read and write your files"
        )
    missing = []
    if not level.seccomp:
        missing.append("this kernel, container or architecture has no seccomp filters")
    if not level.landlock:
        missing.append("this kernel or container has no Landlock, so the linker and constructors can reach files")
    return "; ".join(missing)


def enter(filter_: seccomp.Filter, limits: Mapping[str, object], *, grants: Iterable[landlock.Grant] = ()) -> Level:
    """Confine this very process, which has one thread, for good; return what it is confined by.

    Args:
        filter_: its system calls.
        limits: what Limits.as_dict() gave.
        grants: the files that it still needs.

    Raises:
        UnsupportedError: the mode in `limits` demands what this system does not offer.
    """
    confine(limits)
    level = demanded(_mode(limits))
    try:
        if level.landlock:
            landlock.restrict(grants)
        if level.seccomp:
            seccomp.install(filter_, threads=True)
    except OSError as error:
        raise refused(error) from error
    return level


def tighten(filter_: seccomp.Filter, level: Level) -> None:
    """Put another filter on top, where enter() installed one.

    Raises:
        UnsupportedError: the kernel refuses.
    """
    if level.seccomp:
        try:
            seccomp.install(filter_, threads=True)
        except OSError as error:
            raise refused(error) from error


def refused(error: OSError) -> UnsupportedError:
    """Return the error for a kernel that does not do what it said it could."""
    return UnsupportedError(
        f"the kernel refuses to confine a process: {error.strerror or error}",
        hint="`visget doctor` tests the sandbox; VISGET_SANDBOX=off works without it",
    )


def _mode(limits: Mapping[str, object]) -> Mode:
    wanted = limits.get("sandbox")
    # Whatever is not understood is the strictest.
    return next((mode for mode in MODES if mode == wanted), "require")
