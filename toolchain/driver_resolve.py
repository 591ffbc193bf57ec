"""Which objects a link takes: an archive's members only where something needs them, as linkers do.

Invariant: pure. What is given as an object always takes part; a member of an archive takes part when it defines a
name that is needed and that nothing before it defines; names that nobody defines are reported with who needs them.
As with lld, the order of archives decides only between two that define the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from visget.toolchain.irsymbols import Symbol


class Unit(NamedTuple):
    """One object of bitcode."""

    origin: str
    """Its path, or ``libx.a(member.o)``."""
    data: bytes
    symbols: tuple[Symbol, ...]


class Entry(NamedTuple):
    """One word of the linker's command line that brings symbols."""

    units: tuple[Unit, ...] = ()
    lazy: bool = False
    """Whether it is an archive, whose members take part only when they are needed."""
    provides: frozenset[str] = frozenset()
    """What native code defines: a shared library or a native object."""


class Resolution(NamedTuple):
    """What the link is made of."""

    chosen: tuple[tuple[Unit, ...], ...]
    """For each entry the units that take part, in their order."""
    undefined: dict[str, str]
    """Each needed name that nothing defines, with the origin of the first unit that needs it."""

    def units(self) -> list[Unit]:
        """Return all units that take part."""
        return [unit for entry in self.chosen for unit in entry]


def resolve(entries: Sequence[Entry], *, roots: Iterable[str] = ()) -> Resolution:
    """Choose the units of `entries`; `roots` are names that are needed from the outset."""
    defined: set[str] = set()
    needed: dict[str, str] = dict.fromkeys(roots, "the command line")
    queue: list[str] = list(needed)
    lazy: dict[str, tuple[int, int]] = {}
    taken: list[set[int]] = [set() for _ in entries]

    def take(place: int, number: int) -> None:
        taken[place].add(number)
        unit = entries[place].units[number]
        for symbol in unit.symbols:
            if symbol.visible and symbol.defined:
                defined.add(symbol.name)
        for symbol in unit.symbols:
            if not symbol.defined and not symbol.weak and symbol.name not in needed:
                needed[symbol.name] = unit.origin
                queue.append(symbol.name)

    for place, entry in enumerate(entries):
        defined |= entry.provides
        for number, unit in enumerate(entry.units):
            if not entry.lazy:
                take(place, number)
                continue
            for symbol in unit.symbols:
                if symbol.visible and symbol.defined:
                    lazy.setdefault(symbol.name, (place, number))
    for name in queue:  # grows while it is walked
        if name not in defined and name in lazy:
            take(*lazy[name])
    return Resolution(
        chosen=tuple(
            tuple(entry.units[number] for number in sorted(numbers))
            for entry, numbers in zip(entries, taken, strict=True)
        ),
        undefined={name: origin for name, origin in needed.items() if name not in defined},
    )
