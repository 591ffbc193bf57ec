"""From a verified package to an installed one: compile it, or find it compiled, and write it into the environment.

Invariant: the environment names an artifact only after the store holds it complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.cache.entry import NativeEntry
from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.config import Settings
from visget.failpoint import failpoint
from visget.files import translated
from visget.progress import Progress
from visget.wiring import limits_of, linker_of, machine_key, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from visget.format.package import VerifiedPackage
    from visget.installer.artifact_dir import ArtifactDirectory
    from visget.installer.plan import Dependency
    from visget.installer.receipt import Linking
    from visget.installer.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallResult:
    """What one installation did."""

    name: str
    """The package."""
    version: str
    """The version that is now installed."""
    target: str
    """The target that it was compiled for, in short; the receipt has every feature."""
    foreign: bool
    """Whether that is another target than the one that `load` uses."""
    entry: NativeEntry
    """The native artifact."""
    reused: bool
    """Whether the artifact was already there and nothing was compiled."""
    first_use: bool
    """Whether this installation trusted the package's signers for the first time."""
    signers: tuple[str, ...]
    """Ids of the keys that signed it."""
    linked_with: tuple[tuple[str, str], ...] = ()
    """Name and version of each package that it was linked with."""
    linking: Linking = "shared"
    """Whether those are libraries of their own, or part of its code."""
    dependencies: tuple[InstallResult, ...] = ()
    """What was installed before it, because it needs it."""


def install_verified(
    verified: VerifiedPackage,
    store: Store,
    target: Target,
    *,
    source: str,
    first_use: bool,
    settings: Settings,
    progress: Progress,
    select: bool = True,
    again: bool = False,
    automatic: bool = False,
    dependencies: Sequence[Dependency] = (),
    linking: Linking = "shared",
) -> InstallResult:
    """Compile `verified` for `target` unless the store has it already, and record it as installed.

    Args:
        verified: the package.
        store: where it goes.
        target: what it is compiled for.
        source: the identity of the registry that it came from.
        first_use: passed on into the result.
        select: make it the version that `load` takes.
        again: compile it again, also when the store has the artifact.
        automatic: it is there only because others need it.
        dependencies: what it is linked with (visget.installer.install.obtain_native).
        linking: how.

    Raises:
        VisgetError: a stage failed; nothing was installed.
    """
    from visget.installer.install import obtain_native, plan_package

    manifest = verified.package.manifest
    linker = linker_of(settings, target)
    # There may be two: what was compiled in a hurry has a key of its own.
    while again and (
        made := plan_package(
            verified, target, store, linker=linker, limits=limits_of(settings), dependencies=dependencies,
            linking=linking,
        )
    ).cached:
        store.remove_native(made.digest)
    entry, compiled = obtain_native(
        verified, target, store, linker=linker, limits=limits_of(settings), progress=progress,
        dependencies=dependencies, linking=linking,
    )  # fmt: skip
    with translated("install a package", store.root):
        failpoint("install.before-record")
        Environment(store).record(
            manifest.name, str(manifest.version), package=verified.package.digest, signers=verified.signers,
            natives={machine_key(settings, target): entry.key}, source=source, select=select,
            requires={one.name: one.version for one in dependencies}, static=linking == "static" and bool(dependencies),
            automatic=automatic,
        )  # fmt: skip
        failpoint("install.recorded")
    return InstallResult(
        name=manifest.name, version=str(manifest.version), target=str(target),
        foreign=machine_key(settings, target) != machine_key(settings, None), entry=entry, reused=not compiled,
        first_use=first_use, signers=tuple(verified.signers),
        linked_with=tuple((one.name, one.version) for one in dependencies), linking=linking,
    )  # fmt: skip


def write_artifact(
    result: InstallResult, place: Path, *, settings: Settings, force: bool = False
) -> ArtifactDirectory:
    """Write what `result` installed, and all that it needs, to a directory that can be copied to another machine.

    Raises:
        UsageError: something else is at that place (visget.installer.artifact_dir.write_directory).
        CacheError: an artifact is gone from the store.
    """
    from visget.installer.artifact_dir import write_directory

    store = store_of(settings)
    with store.in_use():
        return write_directory(result.entry, store, place, force=force)
