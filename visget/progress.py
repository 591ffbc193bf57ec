"""How long work tells what it is doing, without knowing whether anybody watches.

Invariant: reporting never changes a result. The command line draws bars (visget/cli_common.py); libraries get
the silent reporter.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A receiver of progress."""

    def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
        """Say that `phase` (a verb in -ing, such as "compiling") has come to `done` of `total` units."""

    def note(self, text: str) -> None:
        """Tell the user one line that they should see even when nothing went wrong."""


class Silent:
    """The reporter that says nothing."""

    def step(self, phase: str, detail: str = "", done: int = 0, total: int | None = None) -> None:
        """Ignore the report."""

    def note(self, text: str) -> None:
        """Ignore the line."""


SILENT: Progress = Silent()
"""The shared silent reporter."""
