"""What a package takes from the packages that it depends on, found out by looking at its module.

Invariant: each function comes from exactly one place, and its type is the one that the dependency's own module has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from visget.errors import BuildError
from visget.format.manifest import Use
from visget.names import PackageName
from visget.toolchain.project import Dependency


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """A dependency, as it is there for this build."""

    name: PackageName
    """The package."""
    version: str
    """The version that is there."""
    exports: Mapping[str, str]
    """The LLVM type of each function that it exports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The dependencies of a build: where their headers and libraries are, and what they provide."""

    prefix: Path | None = None
    """A directory with include/ and lib/ for all of them; None where there are none."""
    provided: tuple[Provided, ...] = ()
    """Each of them."""


ALONE = Surroundings()
"""Those of a package without dependencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a module needs from elsewhere, by where it comes from."""

    imports: tuple[str, ...]
    """From the C library."""
    uses: tuple[Use, ...]
    """From dependencies."""
    idle: tuple[str, ...]
    """The dependencies from which nothing comes."""

    @property
    def used(self) -> dict[str, str]:
        """The functions that come from dependencies, with their LLVM types."""
        return {symbol: signature for use in self.uses for symbol, signature in use.symbols}


def needs_of(names: Iterable[str], provided: Sequence[Provided], *, project: str) -> Needs:
    """Say where each of the undefined symbols `names` comes from.

    Args:
        names: the symbols.
        provided: the dependencies.
        project: the visget.toml, for messages.

    Raises:
        BuildError: two dependencies export one of them.
    """
    imports: list[str] = []
    found: dict[PackageName, dict[str, str]] = {}
    for name in sorted(names):
        homes = [one for one in provided if name in one.exports]
        if len(homes) > 1:
            raise BuildError(
                f"{name} is exported by two dependencies, {homes[0].name} and {homes[1].name}: which is meant?",
                where=project,
                hint="leave one of them out of [dependencies]",
            )
        if homes:
            found.setdefault(homes[0].name, {})[name] = homes[0].exports[name]
        else:
            imports.append(name)
    return Needs(
        imports=tuple(imports),
        uses=tuple(Use(package=name, symbols=tuple(sorted(found[name].items()))) for name in sorted(found)),
        idle=tuple(one.name for one in provided if one.name not in found),
    )


def requirement_texts(dependencies: Iterable[Dependency]) -> tuple[str, ...]:
    """Return the table [dependencies] as a manifest has it."""
    return tuple(f"{one.name}{one.specifier}" for one in sorted(dependencies, key=lambda one: one.name))
