"""Writing, checking and installing from visget.lock.

Invariants: a package is locked only after it was fetched and verified; what is installed from a lock file has the
locked bytes, registry and owner, or nothing is installed. The rules are docs/spec/lockfile.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from visget.cache.store import Store
from visget.config import Settings, read_settings
from visget.errors import FormatError, TrustError, UsageError
from visget.files import atomic_write, translated
from visget.installing import InstallResult, install_verified
from visget.lockfile import (
    Lock,
    LockedPackage,
    LockError,
    encode_lock,
    in_order,
    make_lock,
    problems,
    read_lock,
    satisfies,
)
from visget.lockmaking import Making, expected_of, location_of
from visget.names import Requirement
from visget.obtain import Obtained, obtain
from visget.progress import SILENT, Progress
from visget.requiring import dependency, needed
from visget.wiring import store_of, target_of

if TYPE_CHECKING:
    from visget.format.package import VerifiedPackage
    from visget.installer.plan import Dependency

Mode = Literal["update", "locked", "frozen"]
"""What `sync` does about a lock file that is out of date: update it, refuse it, or not look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happened to one package of a lock file."""

    name: str
    """The package."""
    before: str | None
    """The version that was locked."""
    after: str | None
    """The version that is."""

    def __str__(self) -> str:
        if self.before is None:
            return f"+ {self.name} {self.after}"
        if self.after is None:
            return f"- {self.name} {self.before}"
        return f"  {self.name} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockResult:
    """What writing a lock file did."""

    lock: Lock
    """What it says now."""
    written: bool
    """Whether its text changed."""
    changes: tuple[Change, ...]
    """What is another version now, sorted by name."""


def update_lock(
    path: Path,
    texts: Sequence[str] = (),
    *,
    registry: str | None = None,
    trust: str | None = None,
    upgrade: bool = False,
    settings: Settings | None = None,
    progress: Progress = SILENT,
) -> LockResult:
    """Make the lock file `path` answer its requirements, with `texts` in place of those for the same packages.

    Args:
        path: the lock file; it is made when it is missing.
        texts: requirements.
        registry: where the packages of `texts` come from; None means where they came from, else the configured one.
        trust: the id of a key that must own every package that is locked now.
        upgrade: look for newer versions of the packages in `texts`, or of all when there are none.

    Raises:
        UsageError: there is nothing to lock, or the lock file is malformed.
        NotFoundError, TrustError, FormatError, NetworkError, RegistryError: as install(); the file stays as it was.
    """
    settings = settings or read_settings()
    old = read_lock(path) if path.exists() else Lock()
    asked = [Requirement.parse(text) for text in texts]
    new = resolve_lock(old, asked, path, registry=registry, trust=trust, upgrade=upgrade, settings=settings,
                       progress=progress)  # fmt: skip
    text = encode_lock(new).encode("utf-8")
    with translated("write the lock file", path):
        written = not path.exists() or path.read_bytes() != text
        if written:
            atomic_write(path, text)
    return LockResult(lock=new, written=written, changes=_changes(old, new))


def resolve_lock(
    old: Lock,
    asked: Sequence[Requirement],
    path: Path,
    *,
    registry: str | None = None,
    trust: str | None = None,
    upgrade: bool = False,
    settings: Settings,
    progress: Progress = SILENT,
) -> Lock:
    """Return what update_lock() writes, given what the file says now; nothing is written.

    Raises:
        VisgetError: as update_lock().
    """
    named = {item.name for item in asked}
    wanted = [item for item in old.requirements if item.name not in named] + list(asked)
    if not wanted:
        raise UsageError("nothing is named", where=str(path), hint="name packages: NAME, NAME==1.2 or NAME>=1.2,<2")
    if len(named) != len(asked):
        raise UsageError("a package is named twice", hint="join its clauses with a comma: NAME>=1,<2")
    making = Making(old, path, registry=registry, trust=trust, settings=settings, progress=progress)
    with store_of(settings).in_use():
        for requirement in wanted:
            before = old.package(requirement.name)
            renew = registry is not None and requirement.name in named
            renew = renew or (upgrade and (not named or requirement.name in named))
            if before is not None and satisfies(before, requirement) and not renew:
                making.keep(before)
            else:
                making.add(requirement)
        if any(item.dependencies for item in making.packages.values()):
            making.complete(wanted, fresh={item.name for item in wanted} if upgrade and not named else named if upgrade
                            else set())  # fmt: skip
    return make_lock(wanted, making.registries.values(), making.packages.values())


def check_lock(path: Path, texts: Sequence[str] = (), *, settings: Settings | None = None,
               progress: Progress = SILENT) -> Lock:  # fmt: skip
    """Check that the lock file `path` answers its requirements and `texts`, and that the registries still agree.

    Offline the registries are not asked.

    Raises:
        LockError: it is out of date.
        UsageError: there is none, or it is malformed.
        TrustError: a registry offers other bytes, or names another owner.
        NotFoundError, NetworkError, RegistryError: a registry does not have a package any more, or does not answer.
    """
    settings = settings or read_settings()
    lock = read_lock(path)
    _refuse_outdated(path, problems(lock) + problems(lock, map(Requirement.parse, texts)))
    if not settings.offline:
        for package in lock.packages:
            progress.step("checking", str(package))
            obtain_locked(lock, package, path, None, settings, progress, remember=False)
    return lock


def sync(
    path: Path,
    *,
    mode: Mode = "update",
    registry: str | None = None,
    target: str | None = None,
    settings: Settings | None = None,
    progress: Progress = SILENT,
) -> tuple[Lock, list[InstallResult]]:
    """Install what the lock file `path` says, no more and no less, and select it.

    Args:
        path: the lock file.
        mode: what to do when it is out of date.
        registry: where to fetch from, such as a mirror or a bundle; None means where the file says.
        target: what to compile for; None means the setting, else this machine.

    Raises:
        LockError: the file is out of date and `mode` is "locked".
        UsageError: there is none, or it is malformed.
        TrustError: a registry, an owner, or the bytes are others than the locked ones.
        VisgetError: as install(). What was installed before the failure stays.
    """
    settings = settings or read_settings()
    lock = read_lock(path)
    if mode != "frozen" and (found := problems(lock)):
        if mode == "locked":
            _refuse_outdated(path, found)
        lock = update_lock(path, settings=settings, progress=progress).lock
    wanted = target_of(settings, target)
    store = store_of(settings)
    done = []
    with store.in_use():
        there: dict[str, Dependency] = {}
        asked = {item.name for item in lock.requirements}
        for package in in_order(lock):
            source = registry or location_of(lock.registry(package), path, settings)
            verified = _at_hand(store, package, settings.location(source)) if mode == "frozen" else None
            if verified is None:
                found_there = obtain_locked(lock, package, path, registry, settings, progress)
                verified, source = found_there.verified, found_there.location
            if missing := [name for name in needed(verified.package) if name not in there]:
                raise LockError(
                    f"{package} needs {missing[0]}, which the lock file does not say", where=str(path),
                    hint="lock it again: visget lock",
                )  # fmt: skip
            result = install_verified(
                verified, store, wanted, source=source, first_use=False, settings=settings, progress=progress,
                automatic=package.name not in asked,
                dependencies=[there[name] for name in needed(verified.package)],
            )  # fmt: skip
            there[package.name] = dependency(verified, result.entry.key)
            done.append(result)
    return lock, done


def obtain_locked(
    lock: Lock,
    package: LockedPackage,
    path: Path,
    registry: str | None,
    settings: Settings,
    progress: Progress,
    *,
    remember: bool = True,
) -> Obtained:
    """Fetch and verify a package of the lock file `path` and hold it to what the file says.

    Args:
        lock: the content of the file.
        package: the package.
        path: the file.
        registry: where to fetch from; None means where the file says.
        remember: keep the bytes and what was learnt about its owner.

    Raises:
        VisgetError: as visget.obtain.obtain(); TrustError also when registry, owner or bytes are not the locked ones.
    """
    # === and not ==, which would also take a local version (1.0+x for 1.0).
    return obtain(
        Requirement.parse(f"{package.name}==={package.version}"),
        registry=registry or location_of(lock.registry(package), path, settings), settings=settings,
        progress=progress, remember=remember, expected=expected_of(package, elsewhere=False, same=True),
    )  # fmt: skip


def _at_hand(store: Store, package: LockedPackage, location: str) -> VerifiedPackage | None:
    """Return the package from the store or a directory, verified with the locked keys; None when it is in neither."""
    data, envelope = store.package(package.digest), store.envelope(package.digest)
    if data is not None and envelope is not None:
        found = _verified(package, data, [envelope])
        if found is not None:
            return found[0]
    if location.lower().startswith(("http://", "https://")):
        return None
    from visget.format.package import check_contents
    from visget.registry.bundle import take
    from visget.registry.client import directory_of

    taken = take(directory_of(location), package.name, package.version, package.digest)
    found = None if taken is None else _verified(package, *taken)
    if taken is None or found is None:
        return None
    check_contents(found[0].package)
    store.put_package(taken[0])
    store.put_envelope(package.digest, found[1])
    return found[0]


def _verified(
    package: LockedPackage, data: bytes, envelopes: Sequence[bytes]
) -> tuple[VerifiedPackage, bytes] | None:
    """Return the package and the envelope that the locked keys signed; None when they signed none of these."""
    from visget.format.package import open_package, verify_package

    opened = open_package(data)
    if (opened.manifest.name, opened.manifest.version) != (package.name, package.version):
        raise TrustError(
            f"the lock file calls this package {package}, but it is {opened.manifest.name} {opened.manifest.version}",
            details={"digest": package.digest},
        )
    for envelope in envelopes:
        try:
            return verify_package(opened, envelope, package.owners, threshold=package.threshold), envelope
        except (TrustError, FormatError):
            # Signed anew by a later owner, perhaps: the registry has the records that lead there.
            continue
    return None


def _refuse_outdated(path: Path, found: Sequence[str]) -> None:
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise LockError(
            f"the lock file is out of date: {found[0]}{more}",
            where=str(path), hint="bring it up to date: visget lock", details={"problems": list(found)},
        )  # fmt: skip


def _changes(old: Lock, new: Lock) -> tuple[Change, ...]:
    before, after = ({item.name: str(item.version) for item in lock.packages} for lock in (old, new))
    return tuple(
        Change(name=name, before=before.get(name), after=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )
