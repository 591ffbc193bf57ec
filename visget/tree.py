"""What is installed because of what: the packages, and those that they are linked with.

Invariant: pure; everything is computed from the list of installed packages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from visget.cache.environment import Installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One installed version, and what it was linked with."""

    name: str
    version: str
    missing: bool = False
    """Whether it was uninstalled by force."""
    static: bool = False
    """Whether its code is part of that of the node above."""
    needs: tuple[Node, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the node as a JSON object."""
        return {
            "name": self.name, "version": self.version, "missing": self.missing, "static": self.static,
            "needs": [one.as_dict() for one in self.needs],
        }  # fmt: skip

    def __str__(self) -> str:
        how = " (not installed any more)" if self.missing else " (merged into it)" if self.static else ""
        return f"{self.name} {self.version}{how}"


def forest(installed: Sequence[Installed]) -> list[Node]:
    """Return a tree for each version that somebody asked for, or that nothing needs."""
    known = {(item.name, item.version): item for item in installed}
    needed = {one for item in installed if not item.static for one in item.requires.items()}
    roots = [item for item in installed if not item.automatic or (item.name, item.version) not in needed]
    return [_node(item, known) for item in roots]


def _node(item: Installed, known: dict[tuple[str, str], Installed]) -> Node:
    return Node(name=item.name, version=item.version, needs=tuple(_needs(item, known)))


def _needs(item: Installed, known: dict[tuple[str, str], Installed]) -> Iterator[Node]:
    for name, version in sorted(item.requires.items()):
        other = known.get((name, version))
        if item.static:
            yield Node(name=name, version=version, static=True)
        elif other is None:
            yield Node(name=name, version=version, missing=True)
        else:
            yield _node(other, known)


def reasons(name: str, installed: Sequence[Installed]) -> dict[str, list[tuple[str, ...]]]:
    """Return for each installed version of `name` the ways from it up to what somebody asked for.

    A way is a row of labels such as ``("zlib 1.3", "libpng 1.6", "app 1.0")``; that of a version that was asked for
    itself has one.
    """
    return {
        item.version: list(_ways(item, installed)) for item in installed if item.name == name
    }  # fmt: skip


def _ways(item: Installed, installed: Sequence[Installed]) -> Iterator[tuple[str, ...]]:
    label = f"{item.name} {item.version}"
    if not item.automatic:
        yield (label,)
    for other in installed:
        if other.requires.get(item.name) == item.version and not other.static:
            for way in _ways(other, installed):
                yield (label, *way)


def as_lines(nodes: Sequence[Node], indent: str = "") -> Iterator[str]:
    """Yield the lines of trees, drawn with box characters below the first level."""
    for node in nodes:
        yield f"{indent}{node}"
        yield from _branches(node.needs, indent)


def _branches(nodes: Sequence[Node], indent: str) -> Iterator[str]:
    for number, node in enumerate(nodes):
        last = number == len(nodes) - 1
        yield f"{indent}{'└── ' if last else '├── '}{node}"
        yield from _branches(node.needs, indent + ("    " if last else "│   "))
