"""A package with all that it needs: obtained, and installed in order.

Invariant: a package is compiled only when the artifacts that it is linked with are in the store; what was obtained says
about its dependencies what its registry said when versions were chosen.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from visget.cache.environment import Environment, Installed
from visget.cache.store import Store
from visget.config import Settings
from visget.errors import CacheError, TrustError
from visget.installing import InstallResult, install_verified
from visget.names import PackageName, Requirement, parse_version
from visget.obtain import Obtained, obtain
from visget.progress import SILENT, Progress
from visget.registries import reading
from visget.resolving import Candidate, Wanted, in_order, resolve

if TYPE_CHECKING:
    from packaging.version import Version

    from visget.cache.entry import NativeEntry
    from visget.digest import Digest
    from visget.format.package import Package, VerifiedPackage
    from visget.installer.plan import Dependency
    from visget.installer.receipt import Linking
    from visget.installer.target import Target
    from visget.registry.client import Registry
    from visget.registry.protocol import Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A package and everything that it needs."""

    packages: tuple[Obtained, ...]
    """Each after what it needs itself; the last is what was asked for."""

    @property
    def asked(self) -> Obtained:
        """What was asked for."""
        return self.packages[-1]


class Shelves:
    """What the registries have; each is opened once, and asked once for a name."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._open: dict[str, Registry] = {}
        self._found: dict[tuple[str, str], Releases] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Shelves:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def registry(self, location: str) -> Registry:
        """Return the registry at `location`, open."""
        if location not in self._open:
            opened = reading(self._settings, location, self._progress)
            self._open[location] = self._stack.enter_context(opened)
        return self._open[location]

    def releases(self, name: PackageName, registry: str) -> Releases:
        """Return the versions of `name` in the registry at that location."""
        key = (name, registry)
        if key not in self._found:
            self._found[key] = self.registry(registry).releases(name)
        return self._found[key]


def obtain_chain(
    requirement: Requirement,
    *,
    registry: str | None = None,
    trust: str | None = None,
    also: Sequence[Requirement] = (),
    upgrade: bool = False,
    settings: Settings,
    progress: Progress = SILENT,
    remember: bool = True,
) -> Chain:
    """Choose, fetch and verify what satisfies `requirement` and everything that it needs.

    Args:
        requirement: the package and its acceptable versions.
        registry: where it comes from, and what it needs; None means the configured one.
        trust: the id of the key that must have signed it.
        also: other requirements of the user, which versions have to satisfy, too.
        upgrade: take the newest versions of what it needs, also where an installed one would do.
        settings: where things are.
        progress: told what is being done.
        remember: keep the bytes in the store and pin keys that are trusted for the first time.

    Raises:
        ConflictError: no set of versions is what everybody needs.
        VisgetError: as obtain().
    """
    found = obtain(requirement, registry=registry, trust=trust, settings=settings, progress=progress,
                   remember=remember)  # fmt: skip
    if not found.verified.package.manifest.dependencies:
        return Chain(packages=(found,))
    location = settings.location(registry)
    wanted = [Wanted(requirement=one, registry=location) for one in joined([requirement, *also])]
    prefer = {} if upgrade else _installed_versions(settings, found.location)
    # What is named is to be the newest.
    prefer = {name: version for name, version in prefer.items() if name not in {one.requirement.name for one in wanted}}
    with Shelves(settings, progress) as shelves:
        progress.step("choosing versions", str(requirement))
        chosen: dict[str, Candidate] = {one.name: one for one in resolve(wanted, shelves, prefer=prefer)}
        packages: dict[str, Obtained] = {}
        for candidate in closure(requirement.name, chosen):
            if candidate.name == requirement.name and candidate.release.vis == found.verified.package.digest:
                packages[candidate.name] = found
                continue
            if candidate.name == requirement.name:
                progress.note(
                    f"took {candidate}, not {found.verified.package.manifest.version}: with that, not everything that "
                    "is needed can be had together"
                )
            packages[candidate.name] = obtain_candidate(
                candidate, shelves, settings=settings, progress=progress, remember=remember,
                trust=trust if candidate.name == requirement.name else None,
            )  # fmt: skip
    progress_clashes([one.verified.package for one in packages.values()], progress)
    return Chain(packages=tuple(packages.values()))


def obtain_candidate(
    candidate: Candidate,
    shelves: Shelves,
    *,
    settings: Settings,
    progress: Progress,
    remember: bool = True,
    trust: str | None = None,
) -> Obtained:
    """Fetch and verify a version that was chosen.

    Raises:
        TrustError: it needs something else than the registry said.
        VisgetError: as obtain().
    """
    # === and not ==, which would also take a local version (1.0+x for 1.0).
    found = obtain(
        Requirement.parse(f"{candidate.name}==={candidate.version}"), registry=candidate.registry, trust=trust,
        settings=settings, progress=progress, remember=remember, source=shelves.registry(candidate.registry),
    )  # fmt: skip
    if found.verified.package.manifest.dependencies != candidate.release.dependencies:
        raise TrustError(
            f"the registry says something else about what {candidate} needs than the package itself",
            where=found.location,
            hint="tell the registry's operator and the author",
            details={
                "registry": list(candidate.release.dependencies),
                "package": list(found.verified.package.manifest.dependencies),
            },
        )
    return found


def joined(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Return one requirement for each name, which is satisfied by what satisfies all of that name."""
    together: dict[str, Requirement] = {}
    for one in requirements:
        other = together.get(one.name)
        together[one.name] = one if other is None else Requirement(one.name, other.specifier & one.specifier)
    return list(together.values())


def closure(name: str, chosen: Mapping[str, Candidate]) -> list[Candidate]:
    """Return the candidate `name` and all that it needs, each after what it needs itself."""
    needs: dict[str, list[str]] = {}
    pending = [name]
    while pending:
        one = pending.pop()
        if one not in needs:
            needs[one] = [want.requirement.name for want in chosen[one].wants({})]
            pending += needs[one]
    return [chosen[one] for one in in_order(needs, {one: str(chosen[one]) for one in needs})]


def progress_clashes(packages: Sequence[Package], progress: Progress) -> None:
    """Say which packages export the same function: harmless among packages, but not for a program linked with both."""
    for one, other in itertools.combinations(packages, 2):
        if both := sorted(set(one.manifest.exports) & set(other.manifest.exports)):
            some = ", ".join(both[:3]) + (f" and {len(both) - 3} more" if len(both) > 3 else "")
            progress.note(
                f"warning: {one.manifest.name} and {other.manifest.name} both export {some}; each package calls that "
                "of the one it was built for, but a C program that is linked with both gets the first one's"
            )


def _installed_versions(settings: Settings, location: str) -> dict[str, Version]:
    """Return the selected versions of what came from the registry at `location`."""
    environment = Environment(Store.open(settings.home))
    return {
        item.name: parse_version(item.version)
        for item in environment.installed()
        if item.selected and item.source == location
    }


# ---- installing ------------------------------------------------------------------------------------------


def install_chain(
    chain: Chain,
    store: Store,
    target: Target,
    *,
    settings: Settings,
    progress: Progress,
    linking: Linking = "shared",
    again: bool = False,
) -> InstallResult:
    """Install what was asked for, and before it what it needs.

    Args:
        chain: the packages.
        store: where they go.
        target: what they are compiled for.
        settings: where things are.
        progress: told what is being done.
        linking: "static" makes the code of what it needs part of its own, and installs nothing else.
        again: compile what was asked for again, also when the store has the artifact.

    Raises:
        VisgetError: something could not be installed; what was installed before stays.
    """
    results: dict[str, InstallResult] = {}
    there: dict[str, Dependency] = {}
    for found in chain.packages:
        package = found.verified.package
        last = found is chain.asked
        if linking == "static" and not last:
            there[package.manifest.name] = dependency(found.verified, None)
            continue
        needs = list(there.values()) if linking == "static" else [there[name] for name in needed(package)]
        result = install_verified(
            found.verified, store, target, source=found.location, first_use=found.first_use, again=again and last,
            settings=settings, progress=progress, select=last, automatic=not last, dependencies=needs,
            linking=linking,
        )  # fmt: skip
        results[result.name] = result
        there[result.name] = dependency(found.verified, result.entry.key)
    *others, done = results.values()
    return replace(done, dependencies=tuple(others))


def needed(package: Package) -> list[str]:
    """Return the names of the packages that `package` itself depends on."""
    return [Requirement.parse(text).name for text in package.manifest.dependencies]


def dependency(verified: VerifiedPackage, key: Digest | None) -> Dependency:
    """Return `verified` as what another package is linked with, or merged with where it has no artifact."""
    from visget.installer.plan import Dependency

    return Dependency(verified=verified, key=key)


def needs_in_order(
    found: Installed, environment: Environment, verify: Callable[[Installed], VerifiedPackage]
) -> list[tuple[Installed, VerifiedPackage]]:
    """Return what an installed package was linked with, each after what it needs itself.

    Raises:
        CacheError: one of them was uninstalled by force.
    """
    items = {name: environment.lookup(name, version) for name, version in found.requires.items()}
    there = {name: (item, verify(item)) for name, item in items.items() if item is not None}
    if gone := sorted(items.keys() - there.keys()):
        raise CacheError(
            f"{found.name} {found.version} has to be compiled again, and {gone[0]} {found.requires[gone[0]]}, "
            "which it is linked with, is not installed any more",
            hint=f"install it again: visget install {found.name}=={found.version}",
        )
    needs = {
        name: [one for one in needed(verified.package) if one in there] for name, (_, verified) in there.items()
    }
    return [there[name] for name in in_order(needs, {name: name for name in needs})]


def compile_chain(
    packages: Sequence[VerifiedPackage], store: Store, target: Target, *, settings: Settings, progress: Progress
) -> dict[str, tuple[Dependency, NativeEntry]]:
    """Compile `packages`, each after what it needs, into the store; nothing is installed. Return all by name."""
    from visget.installer.install import obtain_native
    from visget.wiring import limits_of, linker_of

    there: dict[str, tuple[Dependency, NativeEntry]] = {}
    for verified in packages:
        entry = obtain_native(
            verified, target, store, linker=linker_of(settings, target), limits=limits_of(settings),
            progress=progress, dependencies=[there[name][0] for name in needed(verified.package)],
        ).entry  # fmt: skip
        there[verified.package.manifest.name] = dependency(verified, entry.key), entry
    return there


def compile_needs(
    package: Package, registry: str | None, *, settings: Settings, progress: Progress
) -> list[Dependency]:
    """Compile what `package` needs, for this machine and from the given registry, and return what it is linked with.

    Raises:
        VisgetError: as obtain_chain().
    """
    from visget.installer.detect import host_target
    from visget.wiring import store_of

    wanted = [
        Wanted(requirement=Requirement.parse(text), registry=settings.location(registry))
        for text in package.manifest.dependencies
    ]
    with Shelves(settings, progress) as shelves:
        chosen = resolve(wanted, shelves)
        packages = [obtain_candidate(one, shelves, settings=settings, progress=progress).verified for one in chosen]
    there = compile_chain(packages, store_of(settings), host_target(), settings=settings, progress=progress)
    return [there[name][0] for name in needed(package)]


def plan_needs(chain: Chain, store: Store, target: Target, *, settings: Settings,
               linking: Linking = "shared") -> Iterator[Dependency]:  # fmt: skip
    """Yield what the package that was asked for would be linked with; nothing is compiled."""
    from visget.installer.install import plan_package
    from visget.wiring import limits_of, linker_of

    there: dict[str, Dependency] = {}
    for found in chain.packages[:-1]:
        key = None
        if linking == "shared":
            needs = [there[name] for name in needed(found.verified.package)]
            key = plan_package(
                found.verified, target, store, linker=linker_of(settings, target), limits=limits_of(settings),
                dependencies=needs,
            ).digest
        there[found.verified.package.manifest.name] = dependency(found.verified, key)
    if linking == "static":
        yield from there.values()
    else:
        yield from (there[name] for name in needed(chain.asked.verified.package))
