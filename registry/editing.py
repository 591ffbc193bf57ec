"""Changing what a registry says about packages: the one way in which indexes are rewritten.

Invariant: whatever is put in within one editing() becomes visible at its end, all of it or nothing, and the list of
names always agrees with the indexes. The spec is docs/spec/registry.md, section "Publishing".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from visget.errors import RegistryError
from visget.format.keys import PublicKey
from visget.format.owner_chain import Role
from visget.names import PackageName
from visget.registry.names_list import NamesEditor
from visget.registry.operator import open_room, sibling
from visget.registry.protocol import OwnerFile, Release, Releases, encode_releases, parse_releases
from visget.registry.pruning import prune
from visget.registry.tuf_client import Target
from visget.registry.tuf_names import envelope_target, index_target, owner_target
from visget.registry.tuf_repository import Change, Repository
from visget.registry.upkeep import due_kinds, open_repository, signer_of
from visget.registry.writing import writing

_PRUNE_EVERY = 64


class Editor:
    """A registry that is being changed; made by editing()."""

    def __init__(self, repository: Repository, change: Change) -> None:
        self.change = change
        """Writes the files of packages."""
        self._repository = repository
        self._names: NamesEditor | None = None

    def index(self, name: PackageName) -> Releases | None:
        """Return the index of `name`, with its owner records, or None when there is no such package.

        Raises:
            RegistryError, TrustError: it is damaged.
        """
        target = self._repository.find(index_target(name))
        if target is None:
            return None
        where = f"{self._repository.root}, {target.name}"
        return parse_releases(self._repository.read(target), name, where)

    def records(self, releases: Releases) -> tuple[bytes, ...]:
        """Return the owner records of a package, the first first.

        Raises:
            RegistryError: one is lost or damaged.
        """
        return tuple(
            self._repository.read(
                Target(name=owner_target(releases.name, number), digest=item.digest, size=item.size)
            )
            for number, item in enumerate(releases.records, 1)
        )

    def envelope(self, release: Release) -> bytes | None:
        """Return the signature file of a version, or None when it is lost or damaged."""
        target = Target(
            name=envelope_target(release.name, release.version), digest=release.dsse, size=release.dsse_size
        )
        try:
            return self._repository.read(target)
        except RegistryError:
            return None

    @property
    def operators(self) -> Role:
        """The keys of the offline targets role, which may recover a name."""
        root = self._repository.signed_root
        role = root.roles["targets"]
        keys = tuple(PublicKey(bytes.fromhex(root.keys[name].keyval["public"])) for name in role.keyids)
        return Role(keys=keys, threshold=role.threshold)

    def put_index(self, releases: Releases) -> None:
        """Replace the index of a package, or add one."""
        if releases != self.index(releases.name):
            self.change.put(index_target(releases.name), encode_releases(releases))
        self._editor().update(releases)

    def finish(self) -> None:
        """Hand the list of names to the change; editing() does it."""
        if self._names is not None:
            self._names.finish()

    def put_records(self, name: PackageName, records: Sequence[bytes]) -> tuple[OwnerFile, ...]:
        """Write the owner records of a package, the first first, and return what its index says about them."""
        found = []
        for number, data in enumerate(records, 1):
            target = self.change.write(owner_target(name, number), data)
            found.append(OwnerFile(digest=target.digest, size=target.size))
        return tuple(found)

    def check_similar(self, name: PackageName) -> None:
        """Refuse a new name that is easily taken for another.

        Raises:
            RegistryError: it is.
        """
        other = self._editor().similar(name)
        if other is not None:
            raise RegistryError(
                f"the name {name!r} is too similar to {other!r}, which exists: they are easily taken for each other",
                hint="choose a name that cannot be mistaken",
            )

    def names(self) -> list[PackageName]:
        """Return every name.

        Raises:
            RegistryError: the list of names, and an index, are damaged.
        """
        return self._editor().all()

    def _editor(self) -> NamesEditor:
        if self._names is None:
            self._names = NamesEditor(self._repository, self.change)
        return self._names


@contextlib.contextmanager
def editing(root: Path, *, keys: Path | None = None, now: float | None = None) -> Iterator[Editor]:
    """Hold the registry at `root` for changes, and sign them at the end unless an error ends it.

    Args:
        root: the registry's directory.
        keys: the operator's room; None means the one beside the directory.
        now: the time, in seconds since the epoch.

    Raises:
        UsageError: the registry's keys are not here.
        TrustError, RegistryError: the registry is not in order, or cannot be written.
        ResourceError: the disk is full or fails.
    """
    now = time.time() if now is None else now
    with writing(root):
        room = open_room(keys or sibling(root.absolute()))
        repository = open_repository(root, room)
        change = Change(repository, signer_of(room), periods=room.periods, now=now, seen=room.seen)
        editor = Editor(repository, change)
        yield editor
        editor.finish()
        change.renew(due_kinds(repository, room, now))
        seen = change.commit()
        room.remember(seen)
        if seen.snapshot % _PRUNE_EVERY == 0:
            prune(Repository(root, room.root()), now)
