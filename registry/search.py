"""Finding packages by name, by a word of their summary, or by a function that they export.

Invariant: a package is found when every word occurs in it; better matches come first, and the order is the same
every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.names import PackageName
from visget.registry.protocol import NameEntry

if TYPE_CHECKING:
    from visget.registry.client import Registry

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A package that was found."""

    name: PackageName
    """The package."""
    version: str
    """Its newest version; empty when all were withdrawn."""
    summary: str
    """One line that says what it is."""
    functions: tuple[str, ...]
    """The exported functions that match a word."""

    @property
    def matched(self) -> str:
        """Some of the functions that match, for people; empty when name or summary match."""
        more = f" and {len(self.functions) - _SHOWN} more" if len(self.functions) > _SHOWN else ""
        return ", ".join(self.functions[:_SHOWN]) + more

    def as_dict(self) -> dict[str, object]:
        """Return the hit as the JSON object that ``--json`` prints."""
        return {
            "name": self.name,
            "version": self.version,
            "summary": self.summary,
            "functions": list(self.functions),
        }


def search(registry: Registry, words: Iterable[str]) -> list[Hit]:
    """Return the packages of `registry` in which every one of `words` occurs; all packages when there are none.

    Raises:
        RegistryError, NetworkError: the list of names cannot be had.
    """
    return find(registry.names(), list(words))


def find(entries: Iterable[NameEntry], words: Sequence[str]) -> list[Hit]:
    """Return the entries in which every word occurs, the best first; a pure function."""
    wanted = [word.casefold() for word in words if word.strip()]
    found = []
    for entry in entries:
        ranks = [_rank(entry, word) for word in wanted]
        if all(rank is not None for rank in ranks):
            functions = [
                function for function in entry.functions if any(word in function.casefold() for word in wanted)
            ]
            hit = Hit(
                name=entry.name, version=entry.latest or "", summary=entry.summary, functions=tuple(functions)
            )
            found.append((sum(rank or 0 for rank in ranks), entry.name, hit))
    return [hit for _, _, hit in sorted(found, key=lambda item: item[:2])]


def _rank(entry: NameEntry, word: str) -> int | None:
    """Return how well `word` matches `entry`, 0 best; None when it does not."""
    if entry.name == word:
        return 0
    if entry.name.startswith(word):
        return 1
    folded = [function.casefold() for function in entry.functions]
    if word in folded:
        return 2
    if word in entry.name:
        return 3
    if word in entry.summary.casefold().split():
        return 4
    if any(word in function for function in folded):
        return 5
    return 6 if word in entry.summary.casefold() else None
