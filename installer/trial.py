"""A trial: everything that an installation does, for this machine, and nothing of it is kept.

An author's side calls it before anybody else is given the package. Invariant: the artifact is made by the very code
that installs one, in a store of its own below the user's store; the user's store is only asked whether it has the
artifact already, which then went through all of this when it was made.
"""

from __future__ import annotations

from collections.abc import Sequence

from visget.cache.content import workspace
from visget.cache.store import Store
from visget.format.package import VerifiedPackage
from visget.installer.detect import host_target
from visget.installer.install import obtain_native, plan_package
from visget.installer.limits import DEFAULT_LIMITS, Limits
from visget.installer.linkers import Linker
from visget.installer.plan import Dependency
from visget.progress import SILENT, Progress


def try_package(
    verified: VerifiedPackage,
    store: Store,
    *,
    linker: Linker | None,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress = SILENT,
    dependencies: Sequence[Dependency] = (),
) -> None:
    """Compile `verified` for this machine and check its answers, as an installation does.

    Args:
        verified: the package.
        store: the user's store.
        linker: what links it.
        limits: what the workers may use.
        progress: told what is being done.
        dependencies: what it is linked with, in the user's store.

    Raises:
        VisgetError: as obtain_native().
    """
    target = host_target()
    if plan_package(verified, target, store, linker=linker, limits=limits, dependencies=dependencies).cached:
        return
    if dependencies:
        # Where the artifacts are that it is linked with; it goes as soon as it has proved itself.
        entry = obtain_native(
            verified, target, store, linker=linker, limits=limits, progress=progress, dependencies=dependencies
        ).entry
        store.remove_native(entry.key)
        return
    # Not in a directory for temporary files, from which libraries often may not be loaded.
    with store.in_use(), workspace(store.root) as directory:
        scratch = Store.open(directory / "store", network=True)
        obtain_native(verified, target, scratch, linker=linker, limits=limits, progress=progress)
