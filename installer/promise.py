"""What a package's manifest promises about its native code, and the error when that does not keep it.

Invariant: pure values; the gates (visget.installer.gate, gate_systems) compare code with them. The rules are
docs/spec/native-gates.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from visget.errors import RefusedError
from visget.installer.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a package's manifest promises about its native code."""

    label: str
    """The package in messages, such as ``xxhash 3.5.0``."""
    target: Target
    exports: frozenset[str]
    """The symbols that must be visible, all of them and no other."""
    imports: frozenset[str]
    """The symbols that it leaves to the C library; what the compiler calls by itself is allowed besides."""
    constructors: bool
    """Whether code may run when the library is loaded."""
    bound: frozenset[str] = frozenset()
    """The names that visget gives the exports for other packages (visget/installer/binding.py)."""
    taken: frozenset[str] = frozenset()
    """The names of that kind that come from its dependencies."""
    libraries: frozenset[str] = frozenset()
    """What the libraries of its dependencies call themselves."""
    run_path: str | None = None
    """Where the loader looks for them."""


def broken(what: str, promise: Promise, found: list[str]) -> RefusedError:
    """Return the error for code that does not keep `promise`; `found` says how."""
    listed = list(dict.fromkeys(found))
    return RefusedError(
        f"the {what} compiled from {promise.label} for {promise.target} breaks "
        f"{'a rule' if len(listed) == 1 else f'{len(listed)} rules'}: {'; '.join(listed)}",
        hint="nothing was installed; only the package's author can mend this",
        details={"violations": listed, "target": promise.target.key()},
    )
