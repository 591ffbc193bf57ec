"""Changing who owns a name: proposing, signing and submitting the next owner record.

Invariant: every change starts from a chain that was followed by the rules for clients (visget/registry/trust.py), so
that nobody signs a successor of a record that a registry made up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.errors import NotFoundError, TrustError, UsageError
from visget.files import atomic_write, translated
from visget.names import PackageName
from visget.registries import reading
from visget.trusting import decide_for, pins_of

if TYPE_CHECKING:
    from visget.format.keys import PublicKey, SecretKey
    from visget.format.owner import SignedRecord
    from visget.format.owner_chain import OwnerState, Role
    from visget.registry.ownership import Change, Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to change about the owner of a name."""

    add: tuple[PublicKey, ...] = ()
    """Keys that join."""
    remove: tuple[PublicKey, ...] = ()
    """Keys that leave."""
    revoke: str | None = None
    """Why the keys that leave are not safe any more; None when they leave in peace."""
    threshold: int | None = None
    """How many must sign from now on; None keeps it."""
    disown: tuple[str, ...] = ()
    """Published versions that the new owner does not vouch for."""
    recovery: bool = False
    """Whether the registry's operators do it in place of the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A change with the signatures so far."""

    change: Change
    """The change."""
    state: OwnerState
    """Who owns the name now."""
    operators: Role
    """The registry's offline keys."""

    @property
    def missing(self) -> Missing:
        """What it still needs."""
        return self.change.missing(self.state, self.operators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Who owns a name, and how that came about."""

    state: OwnerState
    """The newest record."""
    records: tuple[SignedRecord, ...]
    """All records that lead there."""
    operators: Role
    """The registry's offline keys."""


def owner_of(name: PackageName, *, registry: str | None, settings: Settings) -> Ownership:
    """Return who owns `name`.

    Raises:
        NotFoundError: there is no such package. TrustError: the chain is refused.
    """
    from visget.format.owner import SignedRecord

    with reading(settings, registry) as source:
        releases = source.releases(name)
        decision = decide_for(source, releases, settings=settings, pins=pins_of(settings))
        return Ownership(
            state=decision.accepted.state, operators=source.operators(),
            records=tuple(SignedRecord.parse(data) for data in releases.owner_records),
        )  # fmt: skip


def propose_change(
    name: PackageName, wish: Wish, keys: Collection[SecretKey], *, registry: str | None, settings: Settings
) -> Proposed:
    """Make the change that fulfils `wish`, signed with those of `keys` that matter.

    Raises:
        UsageError: there is nothing to change, or a key to remove is none.
        TrustError: the chain is refused, or the result would break a rule.
    """
    from visget.format.owner_chain import next_record
    from visget.registry.ownership import propose

    with reading(settings, registry) as source:
        releases = source.releases(name)
        mine = next(iter(keys)).public.id if keys and not wish.recovery else None
        state = decide_for(
            source, releases, settings=settings, pins=pins_of(settings), required=mine
        ).accepted.state
        _check_wish(wish, state, {str(release.version) for release in releases.versions})
        record = next_record(
            state, add=wish.add, remove=() if wish.revoke else wish.remove,
            revoke=[(key, wish.revoke) for key in wish.remove] if wish.revoke else (), threshold=wish.threshold,
            recovery=wish.recovery,
        )  # fmt: skip
        envelopes = [source.fetch_envelope(release) for release in releases.versions]
        operators = source.operators()
    change = propose(state, record, envelopes, wish.disown).signed_with(state, *keys, operators=operators)
    return Proposed(change=change, state=state, operators=operators)


def _check_wish(wish: Wish, state: OwnerState, versions: Collection[str]) -> None:
    known = ", ".join(key.id for key in state.keys)
    if strange := [key for key in wish.remove if key not in state.keys]:
        raise UsageError(f"{strange[0].id} is none of the keys of {state.name}", hint=f"they are {known}")
    if there := [key for key in wish.add if key in state.keys and not wish.recovery]:
        raise UsageError(f"{there[0].id} is one of the keys of {state.name} already")
    for key in wish.add:
        if (gone := state.revocation(key)) is not None:
            raise TrustError(
                f"{key.id} was revoked ({gone.reason}) and never owns {state.name} again", where=state.name,
                hint="make a new key: visget key new",
            )  # fmt: skip
    if strange_versions := sorted(set(wish.disown) - set(versions)):
        raise UsageError(f"{state.name} has no published version {strange_versions[0]!r}")
    if wish.threshold == state.threshold and not wish.add and not wish.remove:
        raise UsageError(f"{state.name} needs {state.threshold} signature(s) already; there is nothing to change")


def read_change(path: Path, *, registry: str | None, settings: Settings) -> Proposed:
    """Read a change of owner from a file, and follow the chain that it continues.

    Raises:
        NotFoundError: there is no such file, or no such package.
        FormatError, TrustError: it is no change, or none of the present owner's name.
    """
    from visget.registry.ownership import Change

    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"cannot read the change of owner: {error.strerror}", where=str(path)) from error
    change = Change.parse(data)
    found = owner_of(change.name, registry=registry, settings=settings)
    return Proposed(change=change, state=found.state, operators=found.operators)


def sign_change(proposed: Proposed, keys: Iterable[SecretKey]) -> Proposed:
    """Return the change with the signatures of `keys` added.

    Raises:
        TrustError: it does not follow the present owner, or would sign something that the present owner did not.
    """
    change = proposed.change.signed_with(proposed.state, *keys, operators=proposed.operators)
    return replace(proposed, change=change)


def write_change(proposed: Proposed, path: Path) -> Path:
    """Write the change to a file, for the next keyholder.

    Raises:
        ResourceError, CacheError: it cannot be written.
    """
    with translated("write the change of owner", path):
        atomic_write(path, proposed.change.encode())
    return path


def submit_change(proposed: Proposed, *, registry: str | None, settings: Settings) -> OwnerState:
    """Put a change that is signed well enough into a registry, and return who owns the name now.

    Raises:
        TrustError: it is not signed well enough.
        RegistryError, UsageError, ResourceError: the registry cannot be written.
    """
    from visget.registries import room_of
    from visget.registry.directory import registry_directory
    from visget.registry.owner_files import change_owner

    directory = registry_directory(settings.location(registry))
    return change_owner(directory, proposed.change, keys=room_of(settings, directory))
