"""Changing who owns a name: proposing, signing and submitting the next owner record.

Invariant: every change starts from a chain that was followed by the rules for clients (visget/registry/trust.py), so
that nobody signs a successor of a record that a registry made up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.errors import NotFoundError, TrustError, UsageError
from visget.files import atomic_write, translated
from visget.names import PackageName
from visget.registries import reading
from visget.trusting import Decision, decide_for, pins_of

if TYPE_CHECKING:
    from visget.format.keys import PublicKey, SecretKey
    from visget.format.owner import SignedRecord
    from visget.format.owner_chain import OwnerState, Role
    from visget.registry.client import Registry
    from visget.registry.ownership import Change, Missing
    from visget.registry.protocol import Releases


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
    believed: bool = False
    """Whether the registry's word was taken for who owns the name."""

    @property
    def missing(self) -> Missing:
        """What it still needs."""
        return self.change.missing(self.state, self.operators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """Who owns a name, and how that came about."""

    state: OwnerState
    """The newest record."""
    believed: bool
    """Whether the registry's word was taken for it: nothing was pinned, and no key at hand has signed a record."""
    records: tuple[SignedRecord, ...]
    """All records that lead there."""
    operators: Role
    """The registry's offline keys."""


def owner_of(
    name: PackageName, *, registry: str | None, settings: Settings, keys: Iterable[PublicKey] = ()
) -> Ownership:
    """Return who owns `name`.

    Args:
        name: the package.
        registry: where to look.
        settings: the policy.
        keys: keys of this user: where nothing is pinned, one that has signed a record vouches for the chain.

    Raises:
        NotFoundError: there is no such package. TrustError: the chain is refused.
    """
    from visget.format.owner import SignedRecord

    with reading(settings, registry) as source:
        releases = source.releases(name)
        decision = _decision(source, releases, keys, settings)
        return Ownership(
            state=decision.accepted.state, believed=decision.accepted.first_use, operators=source.operators(),
            records=tuple(SignedRecord.parse(data) for data in releases.owner_records),
        )  # fmt: skip


def _decision(source: Registry, releases: Releases, keys: Iterable[PublicKey], settings: Settings) -> Decision:
    pins = pins_of(settings)
    if pins.get(source.identity, releases.name) is None:
        for key in keys:
            # Not the registry's word but one's own signature: a registry that makes up a chain cannot have that.
            with contextlib.suppress(TrustError):
                return decide_for(source, releases, settings=settings, pins=pins, required=key.id)
    return decide_for(source, releases, settings=settings, pins=pins)


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
        decision = _decision(source, releases, [key.public for key in keys], settings)
        state = decision.accepted.state
        if decision.accepted.first_use and not wish.recovery:
            raise _unknown(state)
        _check_wish(wish, state, {str(release.version) for release in releases.versions})
        record = next_record(
            state, add=wish.add, remove=() if wish.revoke else wish.remove,
            revoke=[(key, wish.revoke) for key in wish.remove] if wish.revoke else (), threshold=wish.threshold,
            recovery=wish.recovery,
        )  # fmt: skip
        envelopes = [source.fetch_envelope(release) for release in releases.versions]
        operators = source.operators()
    change = propose(state, record, envelopes, wish.disown).signed_with(state, *keys, operators=operators)
    if not wish.recovery:
        decision.remember(pins_of(settings))
    return Proposed(change=change, state=state, operators=operators)


def _unknown(state: OwnerState) -> TrustError:
    return TrustError(
        f"none of your keys has signed an owner record of {state.name} yet, so the registry could show you any owner: "
        f"it says {', '.join(key.id for key in state.keys)}",
        where=state.name,
        hint=f"compare one of these with its holder, and say so: visget trust pin {state.name} KEY-ID",
        details={"rule": "anchor", "keys": [key.id for key in state.keys]},
    )


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
        raise UsageError(f"{state.name} has the threshold {state.threshold} already; there is nothing to change")


def read_change(
    path: Path, *, registry: str | None, settings: Settings, keys: Iterable[PublicKey] = ()
) -> Proposed:
    """Read a change of owner from a file, and follow the chain that it continues.

    Args:
        path: the file.
        registry: where the chain is.
        settings: the policy.
        keys: keys of this user, which may vouch for the chain.

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
    found = owner_of(change.name, registry=registry, settings=settings, keys=keys)
    return Proposed(change=change, state=found.state, operators=found.operators, believed=found.believed)


def sign_change(proposed: Proposed, keys: Iterable[SecretKey]) -> Proposed:
    """Return the change with the signatures of `keys` added.

    Raises:
        TrustError: it does not follow the present owner, or would sign something that the present owner did not; or
            only the registry says that one of `keys` owns the name.
    """
    keys = list(keys)
    if proposed.believed and any(key.public in proposed.state.keys for key in keys):
        # A made-up chain with this key in it would get a signature that counts in the true one.
        raise _unknown(proposed.state)
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
