"""Registries as the settings know them: where they are, which root is trusted, and where their keys lie.

Invariant: only who holds a registry's keys signs for it, and reading one that this user keeps renews its
signatures before they run out, so that a registry on one's own disk never expires for oneself.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.errors import UsageError, VisgetError
from visget.progress import SILENT, Progress
from visget.wiring import network_of, store_of

if TYPE_CHECKING:
    from visget.digest import Digest
    from visget.registry.client import Registry
    from visget.registry.tuf_state import Registration


def rooms(settings: Settings) -> Path:
    """Return the directory of the rooms of the registries that this user keeps."""
    return settings.config / "registries"


def new_room(settings: Settings, name: str, directory: Path) -> Path:
    """Return where the room of a new registry in `directory` is to be: called `name`, unless another one has that."""
    from visget.registry.operator import open_room

    wanted = directory.resolve()
    for number in itertools.count(1):
        path = rooms(settings) / (name if number == 1 else f"{name}-{number}")
        if not (path / "registry.json").exists() or open_room(path).directory == wanted:
            return path
    raise AssertionError("count() has no end")


def room_of(settings: Settings, directory: Path) -> Path:
    """Return the operator's room of the registry in `directory`; whether it is there is another question."""
    from visget.registry.operator import find_room

    return find_room(rooms(settings), directory)


def directory_and_room(settings: Settings, which: str | None) -> tuple[Path, Path]:
    """Return the directory and the operator's room of the registry that `which`, a name or a directory, means.

    Raises:
        UsageError: it means none, or one that can only be read.
    """
    from visget.registry.directory import registry_directory

    directory = registry_directory(settings.location(which)).absolute()
    return directory, room_of(settings, directory)


def trust_own(settings: Settings, directory: Path) -> str:
    """Trust the root of a registry that this user made, and return its fingerprint.

    Raises:
        RegistryError, TrustError: there is none, or it is not in order.
    """
    from visget.cache.store import Store
    from visget.registry.contact import trust_made_here
    from visget.registry.transport import DirectoryTransport
    from visget.registry.tuf_state import TrustRoom

    room = TrustRoom(Store.open(settings.home).root / "trust")
    return trust_made_here(DirectoryTransport(directory), room)


def reading(
    settings: Settings, registry: str | None, progress: Progress = SILENT, *, expected: Digest | None = None
) -> Registry:
    """Return the registry to read from: `registry`, else the configured one; close it, or use it in a with statement.

    Args:
        settings: where registries are, and how to reach them.
        registry: a name, directory or URL; None means the configured one.
        progress: told what the user should know.
        expected: which registry it must be when this user does not know it yet.

    Raises:
        UsageError: none is named or configured.
    """
    from visget.registry.client import open_registry

    location = settings.location(registry)
    _keep_valid(settings, location)
    store = store_of(settings)
    return open_registry(
        location, network=network_of(settings), partial=settings.cache / "partial", trust=store.root / "trust",
        progress=progress, expected=expected,
    )  # fmt: skip


def adding(
    settings: Settings, location: str, *, root: Path | None, fingerprint: str | None, mirrors: Sequence[str],
    progress: Progress = SILENT,
) -> Registry:  # fmt: skip
    """Return the registry at `location`, whose root the user names now, whatever was known about it before.

    Args:
        settings: where the store is, and how to reach the network.
        location: a directory or URL.
        root: a file of one of its roots.
        fingerprint: the digest of one of its roots.
        mirrors: other locations with copies of it.
        progress: told what the user should know.

    Raises:
        UsageError: the file cannot be read.
    """
    from visget.cache.store import Store
    from visget.registry.client import open_registry
    from visget.registry.contact import Anchor

    try:
        data = root.read_bytes() if root is not None else None
    except OSError as error:
        raise UsageError(f"cannot read the root: {error.strerror}", where=str(root)) from error
    return open_registry(
        location, network=network_of(settings), partial=settings.cache / "partial",
        trust=Store.open(settings.home).root / "trust", anchor=Anchor(root=data, fingerprint=fingerprint, again=True),
        mirrors=mirrors, progress=progress,
    )  # fmt: skip


def known(settings: Settings, location: str) -> Registration | None:
    """Return what is known about the registry at `location`; None when it was never read.

    Raises:
        TrustError: the record of it is damaged.
    """
    from visget.cache.store import Store
    from visget.registry.client import location_of
    from visget.registry.tuf_state import TrustRoom

    return TrustRoom(Store.open(settings.home).root / "trust").registration(location_of(location))


def _keep_valid(settings: Settings, location: str) -> None:
    """Renew the signatures of a registry that this user keeps, when half of their time is over."""
    if location.lower().startswith(("http://", "https://")):
        return
    from visget.registry.client import directory_of
    from visget.registry.upkeep import refresh, timestamp_due

    try:
        directory = directory_of(location)
        room = room_of(settings, directory)
        if (room / "registry.json").exists() and timestamp_due(directory, room, time.time()):
            refresh(directory, room)
    except VisgetError:
        # Reading may still work, and says better what is wrong when it does not.
        return
