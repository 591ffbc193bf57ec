"""The sandbox's self-test: does this system deny what it promises to deny?

Invariant: every answer comes from a real process that was confined exactly as a worker is and then tried to do the
forbidden thing (visget/installer/sandbox_trials.py); nothing is concluded from version numbers.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from visget.errors import ResourceError
from visget.installer.child import ChildError, run_child
from visget.installer.limits import Limits
from visget.installer.sandbox import Level, demanded
from visget.installer.sandbox_trials import LIBRARY, SECRET, TRIALS

_WORKER = "visget.installer.sandbox_trials"
_FILES = frozenset(["read a file", "list a directory", "make a file", "open a file for writing", "remove a file"])
# What a denial looks like. Anything else, such as ENOENT, would say that the trial itself is wrong.
_DENIALS = frozenset(["SIGSYS", "EACCES", "EPERM", "ENOSYS", "ENOMEM", "MemoryError", "SIGXCPU"])
_LIMITED = frozenset(["use more memory", "use more time"])
_BY_LINKER = _FILES | {"open an internet socket", "open a local socket", "be traced", "signal its parent"}

FORBIDDEN: Mapping[str, frozenset[str]] = {
    "compiler": frozenset(TRIALS),
    "loader": frozenset(TRIALS) - {"use more time"},  # the limit is the compiler's; a second for each is enough
    "library": frozenset(TRIALS) - {"use more time"},
    "linker": _BY_LINKER,
}
"""What each child must not be able to do. The answer worker is ``loader`` while constructors run, then ``library``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One forbidden thing that was tried."""

    child: str
    action: str
    outcome: str
    """``SIGSYS``, ``EACCES`` or another error or signal; ``worked`` when nothing stopped it."""
    promised: bool
    """Whether the layers of the sandbox that this system has must stop it."""

    @property
    def denied(self) -> bool:
        """Whether it was stopped."""
        return self.outcome in _DENIALS

    def __str__(self) -> str:
        return f"the {self.child} can {self.action}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReport:
    """What was tried, and under which layers."""

    level: Level
    trials: tuple[Trial, ...]

    @property
    def broken(self) -> tuple[Trial, ...]:
        """What worked although it must not."""
        return tuple(trial for trial in self.trials if trial.promised and not trial.denied)

    @property
    def open(self) -> tuple[Trial, ...]:
        """What worked because a layer is missing here."""
        return tuple(trial for trial in self.trials if not trial.promised and not trial.denied)


def probe_sandbox(limits: Limits | None = None) -> SandboxReport:
    """Try everything that children must not do, in real processes; takes little more than a second.

    Args:
        limits: the mode and the library path are taken from it; None for the defaults.

    Raises:
        UnsupportedError: this system does not offer what the mode demands.
        ResourceError: the processes cannot be started.
    """
    given = replace(limits or Limits(), memory=1 << 30, seconds=60.0)
    level = demanded(given.sandbox)
    trials = [(child, action) for child, actions in FORBIDDEN.items() for action in TRIALS if action in actions]
    # The trial of the time limit comes first, so that its second passes while the others run.
    trials.sort(key=lambda trial: trial[1] != "use more time")
    with tempfile.TemporaryDirectory(prefix="visget-probe-") as directory:
        for name in (SECRET, LIBRARY):
            Path(directory, name).write_bytes(b"visget")
        Path(directory, "scratch").mkdir()
        inner = {**given.as_dict(), "seconds": 1}
        head = {"directory": directory, "trials": trials, "level": level.as_dict(), "inner": inner}
        try:
            outcomes = run_child(_WORKER, head, (), given).head.get("outcomes")
        except ChildError as error:
            raise ResourceError(f"the sandbox cannot be tested: {error.message}", details=error.details) from error
    if not isinstance(outcomes, list) or len(outcomes) != len(trials):
        raise ResourceError("the sandbox cannot be tested: the child did not try everything")
    return SandboxReport(
        level=level,
        trials=tuple(
            Trial(child=child, action=action, outcome=str(outcome), promised=_promised(child, action, level))
            for (child, action), outcome in zip(trials, outcomes, strict=True)
        ),
    )


def _promised(child: str, action: str, level: Level) -> bool:
    if action in _LIMITED:
        return sys.platform.startswith("linux")
    if child == "linker" and action in _FILES:
        return level.landlock > 0
    if child == "loader" and action == "read a file":
        return level.landlock > 0
    return level.seccomp
