"""Making a lock: what is locked stays, what is not is obtained, and what all of it needs is chosen together.

Invariant: a package is locked only after it was fetched and verified, with the owner and the registry that it had
before. The rules are docs/spec/lockfile.md, section "Writing".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.errors import TrustError
from visget.expectation import Expected
from visget.lockfile import Lock, LockedPackage, LockedRegistry, needed_by
from visget.names import Requirement
from visget.obtain import Obtained, obtain
from visget.progress import Progress
from visget.requiring import Shelves
from visget.resolving import Wanted, resolve

if TYPE_CHECKING:
    from packaging.version import Version

    from visget.digest import Digest


class Making:
    """A lock while it is being made."""

    def __init__(
        self, old: Lock, path: Path, *, registry: str | None, trust: str | None, settings: Settings, progress: Progress
    ) -> None:
        self._old = old
        self._path = path
        self._registry = registry
        self._trust = trust
        self._settings = settings
        self._progress = progress
        self.packages: dict[str, LockedPackage] = {}
        self.registries = {item.identity: item for item in old.registries}
        self._places: dict[Digest, str] = {}

    def keep(self, before: LockedPackage) -> None:
        """Take a package as it is locked already."""
        self.packages[before.name] = before

    def add(self, requirement: Requirement, *, where: str | None = None) -> None:
        """Obtain a package and lock it."""
        before = self._old.package(requirement.name)
        if where is None:
            where = self._registry
            if before is not None and where is None:
                where = location_of(self._old.registry(before), self._path, self._settings)
        elsewhere = self._registry is not None and where == self._registry
        expected = None if before is None else expected_of(before, elsewhere=elsewhere)
        found = obtain(
            requirement, registry=where, trust=self._trust, settings=self._settings, progress=self._progress,
            expected=expected,
        )  # fmt: skip
        locked = locked_of(found)
        check_unchanged(before, locked)
        self.packages[locked.name] = locked
        self._places.setdefault(found.identity, self._settings.location(where))
        self.registries[found.identity] = LockedRegistry(
            identity=found.identity, location=portable(found.location, self._path)
        )

    def complete(self, wanted: Sequence[Requirement], *, fresh: Collection[str]) -> None:
        """Choose versions of everything together, and lock what is not locked as it was chosen.

        Args:
            wanted: the requirements of the file.
            fresh: the packages whose dependencies are to be the newest.
        """
        roots = [Wanted(requirement=one, registry=self._home(self.packages[one.name])) for one in wanted]
        renewed = {item.name for name in fresh for item in needed_by(self._old, [name])}
        known = [*self._old.packages, *self.packages.values()]
        prefer: dict[str, Version] = {item.name: item.version for item in known if item.name not in renewed}
        prefer |= {item.name: item.version for item in self.packages.values()}
        with Shelves(self._settings, self._progress) as shelves:
            chosen = resolve(roots, shelves, prefer=prefer)
        names = {candidate.name for candidate in chosen}
        for candidate in chosen:
            before = self.packages.get(candidate.name) or self._old.package(candidate.name)
            home = self._home(before) if before is not None else None
            there = (candidate.version, candidate.registry, candidate.release.vis)
            if before is not None and (before.version, home, before.digest) == there:
                self.keep(before)
                continue
            # === and not ==, which would also take a local version (1.0+x for 1.0).
            self.add(Requirement.parse(f"{candidate.name}==={candidate.version}"), where=candidate.registry)
        self.packages = {name: item for name, item in self.packages.items() if name in names}

    def _home(self, package: LockedPackage) -> str:
        """Return where the registry of a package is: one place for each, or its names would seem to be two."""
        if package.registry not in self._places:
            self._places[package.registry] = location_of(
                self.registries[package.registry], self._path, self._settings
            )
        return self._places[package.registry]


def expected_of(package: LockedPackage, *, elsewhere: bool, same: bool = False) -> Expected:
    """Return what is known about `package` before a registry is asked: all but its bytes, or all (`same`)."""
    return Expected(
        name=package.name, registry=None if elsewhere else package.registry, digest=package.digest if same else None,
        owners=package.owners, record=package.record,
    )  # fmt: skip


def locked_of(found: Obtained) -> LockedPackage:
    """Return what a lock file says of a package that was fetched and verified."""
    manifest = found.verified.package.manifest
    return LockedPackage(
        name=manifest.name, version=manifest.version, digest=found.verified.package.digest, registry=found.identity,
        owners=found.trusted, threshold=found.threshold, record=found.record,
        dependencies=tuple(map(Requirement.parse, manifest.dependencies)),
    )  # fmt: skip


def check_unchanged(before: LockedPackage | None, after: LockedPackage) -> None:
    """Refuse other bytes under the same version.

    Raises:
        TrustError: they are others.
    """
    if before is None or (before.registry, before.version) != (after.registry, after.version):
        return
    if before.digest != after.digest:
        raise TrustError(
            f"the registry offers other bytes as {after} than the lock file says",
            hint="a published version never changes; tell the registry's operator and the author",
            details={"expected": before.digest, "actual": after.digest},
        )


# ---- locations -------------------------------------------------------------------------------------------


def portable(location: str, path: Path) -> str:
    """Return `location` as the lock file has it: a directory beside or below the file is relative to it."""
    if "://" in location:
        return location
    base = path.resolve().parent
    found = Path(location).resolve()
    return f"./{found.relative_to(base).as_posix()}" if found.is_relative_to(base) else str(found)


def location_of(registry: LockedRegistry, path: Path, settings: Settings) -> str:
    """Return where a registry of the lock file `path` is, for this machine and this user."""
    if "://" not in registry.location:
        return str(path.resolve().parent / registry.location)
    from visget.network import split_credentials

    # The user's own entry for the same place may have credentials, which no lock file holds.
    same = (text for text in settings.registries.values() if "://" in text and "@" in text)
    return next(
        (text for text in same if split_credentials(text)[0].rstrip("/") == registry.location.rstrip("/")),
        registry.location,
    )
