"""What a VIS built-in is made of: IR text, other built-ins, and declarations of what it takes from the C library.

Invariant: pure values. `externals` holds every symbol that the text uses and does not define, so that whoever adds the
text to a module can see to it that each is declared exactly once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One built-in for one target."""

    text: str
    """Its definition; every symbol in it is internal."""
    needs: tuple[str, ...] = ()
    """The other built-ins that the text mentions."""
    externals: Mapping[str, str] = field(default_factory=dict)
    """The declarations that it needs, by symbol."""
    finaliser: str | None = None
    """A function of the text that has to run when the library is unloaded."""


def declare(result: str, name: str, parameters: str) -> dict[str, str]:
    """Return the declaration of one function, as `externals` wants it."""
    return {name: f"declare {result} @{name}({parameters})"}
