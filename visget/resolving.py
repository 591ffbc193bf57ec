"""Choosing versions: from requirements, and those of what they need, to one version of each package.

Invariant: a package that somebody needs comes from the registry of whoever needs it, and a name never from two
registries, so that nobody can slip in a package by publishing its name elsewhere. What is withdrawn or a pre-release
is chosen only when somebody asks for it by its number, or has it already. The rules are docs/spec/resolution.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from visget.errors import NotFoundError, RegistryError, UsageError
from visget.names import PackageName, Requirement

if TYPE_CHECKING:
    from packaging.version import Version
    from resolvelib.structs import RequirementInformation

    from visget.registry.protocol import Release, Releases

DEPTH = 200
"""How many packages may need each other in a row."""
_SHOWN = 8


class ConflictError(NotFoundError):
    """No set of versions is what everybody needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One version of a package that may be chosen."""

    release: Release
    """The version, as its registry describes it."""
    registry: str
    """Where it comes from."""

    @property
    def name(self) -> PackageName:
        """The package."""
        return self.release.name

    @property
    def version(self) -> Version:
        """Its version."""
        return self.release.version

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    def wants(self, pinned: Mapping[str, str]) -> tuple[Wanted, ...]:
        """Return what it needs; `pinned` says for names that were asked for where they come from."""
        try:
            needed = [Requirement.parse(text) for text in self.release.dependencies]
        except UsageError as error:
            raise RegistryError(f"the registry gives {self} a dependency that is none: {error.message}") from error
        return tuple(
            Wanted(requirement=one, registry=pinned.get(one.name, self.registry), parent=self) for one in needed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requirement, and whose it is."""

    requirement: Requirement
    """What is needed."""
    registry: str
    """Where it has to come from."""
    parent: Candidate | None = None
    """Who needs it; None for the user."""

    def __str__(self) -> str:
        return f"{self.parent or 'you'} {'needs' if self.parent else 'ask for'} {self.requirement}"


class Catalogue(Protocol):
    """What registries have."""

    def releases(self, name: PackageName, registry: str) -> Releases:
        """Return the versions of `name` in `registry`.

        Raises:
            NotFoundError: it has no such package.
        """


def resolve(
    wanted: Sequence[Wanted], catalogue: Catalogue, *, prefer: Mapping[str, Version] | None = None
) -> tuple[Candidate, ...]:
    """Return one version of each package that `wanted` needs, directly or not; each after what it needs itself.

    Args:
        wanted: the requirements of the user.
        catalogue: what registries have.
        prefer: versions that are there already; one that fits is taken, else the newest that does.

    Raises:
        ConflictError: no set of versions is what everybody needs; who needs what is named.
        NotFoundError: a package is not in its registry.
    """
    provider = _Provider(catalogue, prefer or {}, {one.requirement.name: one.registry for one in wanted})
    try:
        resolver: Resolver[Wanted, Candidate, str] = Resolver(provider, BaseReporter())
        found = resolver.resolve(wanted, max_rounds=10_000)
    except ResolutionImpossible as error:
        name, needs = provider.failures[0] if provider.failures else _causes(error.causes)
        raise _explained(name, needs, catalogue, len(provider.failures)) from None
    except (ResolutionTooDeep, RecursionError) as error:
        # The resolver follows who needs whom, and Python ends that after a thousand.
        why = f"through more than {DEPTH} packages" if isinstance(error, RecursionError) else "within 10,000 attempts"
        raise ConflictError(
            f"no set of versions was found {why}",
            hint="narrow the requirements: name versions of the packages that have most of them",
        ) from None
    return tuple(_in_order(found.mapping, provider.pinned))


class _Provider(AbstractProvider["Wanted", "Candidate", str]):
    """Answers resolvelib's questions."""

    def __init__(self, catalogue: Catalogue, prefer: Mapping[str, Version], pinned: Mapping[str, str]) -> None:
        self._catalogue = catalogue
        self._prefer = prefer
        self.pinned = pinned
        self.failures: list[tuple[str, list[Wanted]]] = []
        """The packages of which no version did, with who needs them, in the order in which that was found out."""

    def identify(self, requirement_or_candidate: Wanted | Candidate) -> str:
        if isinstance(requirement_or_candidate, Candidate):
            return requirement_or_candidate.name
        return requirement_or_candidate.requirement.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[RequirementInformation[Wanted, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Wanted, Candidate]],
    ) -> tuple[bool, bool, str]:
        """What the user asks for comes first, then what there was trouble with, then by name: always the same way."""
        asked = identifier not in self.pinned
        causes = {self.identify(cause.requirement) for cause in backtrack_causes}
        return asked, identifier not in causes, identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Wanted]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> list[Candidate]:
        needs = list(requirements[identifier])
        excluded = {candidate.version for candidate in incompatibilities[identifier]}
        found: list[Candidate] = []
        if len({one.registry for one in needs}) == 1:
            found += (
                Candidate(release=release, registry=needs[0].registry)
                for release in self._releases(needs[0])
                if release.version not in excluded and self._allowed(release, needs)
            )
        if not found and not excluded:
            self.failures.append((identifier, needs))
        kept = self._prefer.get(identifier)
        return sorted(found, key=lambda one: (one.version == kept, one.version), reverse=True)

    def is_satisfied_by(self, requirement: Wanted, candidate: Candidate) -> bool:
        return requirement.registry == candidate.registry and requirement.requirement.specifier.contains(
            candidate.version, prereleases=True
        )

    def get_dependencies(self, candidate: Candidate) -> tuple[Wanted, ...]:
        return candidate.wants(self.pinned)

    def _releases(self, one: Wanted) -> tuple[Release, ...]:
        try:
            return self._catalogue.releases(one.requirement.name, one.registry).versions
        except NotFoundError:
            if one.parent is None:  # what the user asks for must be there
                raise
            return ()

    def _allowed(self, release: Release, needs: Sequence[Wanted]) -> bool:
        specifiers = [one.requirement.specifier for one in needs]
        if not all(specifier.contains(release.version, prereleases=True) for specifier in specifiers):
            return False
        if release.version == self._prefer.get(release.name):
            return True
        if release.yanked is not None and not any(map(_is_exact, needs)):
            return False
        return not release.version.is_prerelease or any(bool(specifier.prereleases) for specifier in specifiers)


def _is_exact(one: Wanted) -> bool:
    clauses = one.requirement.specifier
    return any(clause.operator in ("==", "===") and not clause.version.endswith(".*") for clause in clauses)


def _causes(causes: Iterable[RequirementInformation[Wanted, Candidate]]) -> tuple[str, list[Wanted]]:
    needs = [cause.requirement for cause in causes]
    name = needs[0].requirement.name
    return name, [one for one in needs if one.requirement.name == name]


# ---- what went wrong -------------------------------------------------------------------------------------


def _explained(name: str, needs: Sequence[Wanted], catalogue: Catalogue, failures: int) -> NotFoundError:
    who = "; ".join(map(str, needs))
    others = sorted({one.parent.name for one in needs if one.parent is not None})
    more = f"; other versions of {' and '.join(others)} do not fit either" if failures > 1 and others else ""
    details: dict[str, object] = {
        "package": name,
        "needs": [
            {"by": str(one.parent) if one.parent else None, "requirement": str(one.requirement),
             "registry": one.registry}
            for one in needs
        ],
    }  # fmt: skip
    registries = sorted({one.registry for one in needs})
    if len(registries) > 1:
        return ConflictError(
            f"{name} is needed from two registries, which may mean two different packages: "
            + "; ".join(f"{one} from {one.registry}" for one in needs),
            hint=f"say which it is by asking for it yourself: visget lock {name} --registry WHERE",
            details=details,
        )
    try:
        versions = catalogue.releases(PackageName(name), registries[0]).versions
    except NotFoundError as error:
        return NotFoundError(
            f"{who}, and there is no package {name} in that registry (any more){more}",
            where=registries[0],
            hint=f"no other registry is asked by itself; if one has the right {name}, say so by locking it from there, "
            f"before the rest: visget lock {name} --registry WHERE. Else tell the author of {' and '.join(others)}"
            if others
            else error.hint,
            details=details,
        )
    details["versions"] = [str(one.version) for one in versions]
    there = f"{name} has {_listed(versions)}" if versions else f"{name} has no version"
    if len(needs) > 1:
        message = f"no version of {name} is what everybody needs: {who}; {there}{more}"
        asked = [one for one in needs if one.parent is None]
        hint = f"leave {asked[0].requirement} out or widen it" if asked else None
        if others:
            hint = f"{hint}, or take" if hint else "take"
            hint += f" another version of {' or '.join(others)} (visget info NAME lists them)"
    else:
        message = f"{who}, and no version does: {there}{more}"
        hint = _way_out(needs[0], versions)
    return ConflictError(message, hint=hint, details=details)


def _way_out(one: Wanted, versions: Sequence[Release]) -> str | None:
    fitting = [item for item in versions if one.requirement.specifier.contains(item.version, prereleases=True)]
    if fitting:
        return f"to have it all the same, name it exactly, too: {one.requirement.name}=={fitting[-1].version}"
    if one.parent is not None:
        return f"take another version of {one.parent.name}, or tell its author"
    return None


def _listed(versions: Sequence[Release]) -> str:
    """Return versions, the newest first, with what keeps each from being chosen."""
    shown = []
    for item in list(reversed(versions))[:_SHOWN]:
        why = f" (withdrawn: {item.yanked or 'no reason given'})" if item.yanked is not None else ""
        if not why and item.version.is_prerelease:
            why = " (a pre-release)"
        shown.append(f"{item.version}{why}")
    more = f" and {len(versions) - _SHOWN} older ones" if len(versions) > _SHOWN else ""
    return ", ".join(shown) + more


# ---- order -----------------------------------------------------------------------------------------------


def _in_order(chosen: Mapping[str, Candidate], pinned: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield each candidate after what it needs.

    Raises:
        ConflictError: some need each other in a circle.
    """
    needs = {name: [one.requirement.name for one in item.wants(pinned)] for name, item in chosen.items()}
    yield from (chosen[name] for name in in_order(needs, {name: str(item) for name, item in chosen.items()}))


def in_order(needs: Mapping[str, Iterable[str]], labels: Mapping[str, str]) -> list[str]:
    """Return the names of `needs`, each after those that it needs.

    Raises:
        ConflictError: some need each other in a circle; `labels` says how they are called.
    """
    done: list[str] = []
    trail: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in trail:
            circle = [*trail[trail.index(name) :], name]
            raise ConflictError(
                f"packages need each other in a circle: {' -> '.join(labels[one] for one in circle)}",
                hint="one of the authors has to take the common part into a package of its own; "
                "other versions may do: visget install NAME==VERSION",
                details={"circle": [labels[one] for one in circle]},
            )
        if len(trail) >= DEPTH:
            raise ConflictError(f"{labels[trail[0]]} needs more than {DEPTH} packages through each other")
        trail.append(name)
        for other in sorted(needs[name]):
            visit(other)
        trail.pop()
        done.append(name)

    for name in sorted(needs):
        visit(name)
    return done
