"""Bundles: some packages of a registry in a directory that can be carried to a machine without network.

Invariant: what goes into a bundle was fetched and verified as for an installation here. The format is
docs/spec/bundle.md; installing from one needs nothing of this module.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings, read_settings
from visget.errors import NotFoundError, TrustError, UsageError
from visget.files import fsync_dir, translated, write_new
from visget.lockfile import LOCK_NAME, Lock, encode_lock, make_lock, needed_by, read_lock, satisfies
from visget.locking import obtain_locked, resolve_lock
from visget.lockmaking import location_of
from visget.names import Requirement
from visget.progress import SILENT, Progress
from visget.registries import reading
from visget.wiring import network_of

if TYPE_CHECKING:
    from visget.registry.protocol import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleResult:
    """What was bundled."""

    directory: Path
    """Where."""
    lock: Lock
    """The lock file in it."""
    files: int
    """How many files there are besides."""
    size: int
    """Their bytes."""


def make_bundle(
    directory: Path,
    texts: Sequence[str] = (),
    *,
    lock_file: Path | None = None,
    registry: str | None = None,
    settings: Settings | None = None,
    progress: Progress = SILENT,
) -> BundleResult:
    """Write packages, signatures and the registry's signed metadata into the new directory `directory`.

    Args:
        directory: the bundle; it must not exist, or be empty.
        texts: requirements. With a lock file they choose among its packages, and none of them means all.
        lock_file: the lock file that decides on versions; None means the newest that satisfy the requirements.
        registry: name, directory or URL of the registry; None means that of the lock file, or the configured one.

    Raises:
        UsageError: there is nothing to bundle, packages come from several registries, or the directory is not empty.
        NotFoundError, TrustError, FormatError, NetworkError, RegistryError: as install(); nothing is left.
    """
    settings = settings or read_settings()
    with translated("make the bundle", directory):
        if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError("a bundle needs a directory that is new or empty", where=str(directory))
    wanted = [Requirement.parse(text) for text in texts]
    if lock_file is None:
        lock = resolve_lock(Lock(), wanted, directory / LOCK_NAME, registry=registry, settings=settings,
                            progress=progress)  # fmt: skip
        location = settings.location(registry)
    else:
        lock = _chosen(read_lock(lock_file), wanted)
        for package in lock.packages:
            obtain_locked(lock, package, lock_file, registry, settings, progress)
        location = settings.location(registry or location_of(lock.registries[0], lock_file, settings))
    if len(lock.registries) != 1:
        raise UsageError(
            "a bundle has the packages of one registry" if lock.registries else "there is nothing to bundle",
            hint="name the packages" if not lock.registries else "bundle those of each registry by themselves",
        )
    with translated("make the bundle", directory):
        directory.absolute().parent.mkdir(parents=True, exist_ok=True)
        half = directory.absolute().with_name(f".{directory.absolute().name}.{os.urandom(8).hex()}.tmp")
        half.mkdir()
    try:
        result = _fill(half, lock, location, settings, progress)
        with translated("make the bundle", directory):
            half.chmod(0o755)
            half.replace(directory)
            fsync_dir(directory.absolute().parent)
    finally:
        shutil.rmtree(half, ignore_errors=True)
    return dataclasses.replace(result, directory=directory)


def _chosen(lock: Lock, wanted: Sequence[Requirement]) -> Lock:
    if not wanted:
        return make_lock(lock.requirements, lock.registries, lock.packages)
    for requirement in wanted:
        package = lock.package(requirement.name)
        if package is None or not satisfies(package, requirement):
            raise NotFoundError(f"{requirement} is not in the lock file", hint=f"visget lock '{requirement}'")
    return make_lock(wanted, lock.registries, needed_by(lock, [requirement.name for requirement in wanted]))


def _fill(half: Path, lock: Lock, location: str, settings: Settings, progress: Progress) -> BundleResult:
    from visget.registry.bundle import write_bundle

    with reading(settings, location, progress) as source:
        identity = source.identity
        if identity != lock.registries[0].identity:
            raise TrustError("the packages come from another registry than this one", where=location)
        releases: list[Release] = [
            next(item for item in source.releases(package.name).versions if item.vis == package.digest)
            for package in lock.packages
        ]
    done = write_bundle(
        half, location, identity, releases, network=network_of(settings), partial=settings.cache / "partial",
        progress=progress,
    )  # fmt: skip
    here = dataclasses.replace(lock, registries=(dataclasses.replace(lock.registries[0], location="./"),))
    with translated("write the lock file", half / LOCK_NAME):
        write_new(half / LOCK_NAME, encode_lock(here).encode("utf-8"))
        fsync_dir(half)
    return BundleResult(directory=half, lock=here, files=done.files, size=done.size)
