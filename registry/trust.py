"""Whose signature is accepted under a name: pins, trust on first use, and the chain of owner records.

The rules, all pure; docs/spec/owner-chain.md has them with their reasons:

1. A name that has a pin is followed from the pinned record. What does not follow from it is refused.
2. A key that the user names must have owned the name, as a record signed by it shows. It narrows what a pin allows
   and never widens it.
3. A name with neither is believed as the registry tells it (first use), unless the policy is "pinned".

Invariant: nothing here reads or writes; visget/registry/pins.py keeps the pins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from visget.errors import TrustError
from visget.format.keys import PublicKey, parse_key_id
from visget.format.owner_chain import OwnerPin, OwnerState, Role, follow
from visget.names import PackageName

Policy = Literal["tofu", "pinned"]
"""What to do with a name that has no pin: believe the registry once, or refuse."""

How = Literal["first use", "named", "accepted"]
"""How a pin came about: the registry's word, the user's word, the user's word about a recovery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What is remembered about the owner of one name in one registry."""

    keys: tuple[PublicKey, ...]
    """The owner's keys when the pin was written; of a pin by key, the keys that the user named."""
    record: OwnerPin | None
    """The newest record seen; None when the user named a key and no record has been seen yet."""
    how: How
    """How it came about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Who may have signed a package of one name."""

    keys: tuple[PublicKey, ...]
    """The keys to verify with; never empty."""
    threshold: int
    """How many of them must have signed."""
    pin: Pin
    """What to remember once a package was verified with them."""
    first_use: bool
    """Whether the keys are believed only because the registry names them."""
    state: OwnerState
    """The newest owner record."""


def decide(
    name: PackageName,
    chain: Sequence[bytes],
    *,
    pin: Pin | None = None,
    required: str | None = None,
    policy: Policy = "tofu",
    operators: Role | None = None,
    accepted: Collection[PublicKey] = (),
) -> Accepted:
    """Decide whose signature is accepted under `name`.

    Args:
        name: the package.
        chain: its owner records, as the registry has them.
        pin: what is remembered about this name and registry.
        required: the id of a key that the user names.
        policy: whether a name without a pin is believed.
        operators: the registry's offline keys, which may recover a name.
        accepted: keys that the user accepts although only the operators vouch for them.

    Raises:
        FormatError: a record is malformed.
        TrustError: nobody is accepted; the message says why and what to do.
    """
    named = (parse_key_id(required),) if required is not None else ()
    if pin is None and not named and policy == "pinned":
        raise _unpinned(name)
    anchors = pin.keys if pin is not None else named
    state = follow(
        chain, name, pinned=pin.record if pin else None, anchors=anchors, operators=operators, accepted=accepted
    )
    if named:
        _check_named(chain, state, named[0], pin, operators, accepted)
    how: How = pin.how if pin is not None else "named" if named else "first use"
    if accepted and state.recovered:
        how = "accepted"
    return Accepted(
        keys=state.keys, threshold=state.threshold, pin=Pin(keys=state.keys, record=state.pin, how=how),
        first_use=pin is None and not named, state=state,
    )  # fmt: skip


def pin_by_key(name: PackageName, key: PublicKey, pin: Pin | None) -> Pin:
    """Return the pin of a user who names the owner's key, given what is remembered.

    Raises:
        TrustError: another owner is pinned; forgetting that is a step of its own.
    """
    if pin is None or (pin.record is None and pin.keys != (key,)):
        return Pin(keys=(key,), record=None, how="named")
    if key in pin.keys:
        return Pin(keys=pin.keys, record=pin.record, how="named")
    raise TrustError(
        f"{name} is pinned to {', '.join(item.id for item in pin.keys)}, and a pin is never replaced in passing",
        where=name,
        hint=f"if the author really has new keys that the old ones did not sign: visget trust forget {name}",
        details={"rule": "anchor", "pinned": [item.id for item in pin.keys], "wanted": [key.id]},
    )


def _check_named(
    chain: Sequence[bytes], state: OwnerState, key: PublicKey, pin: Pin | None, operators: Role | None,
    accepted: Collection[PublicKey],
) -> None:  # fmt: skip
    if (gone := state.revocation(key)) is not None:
        raise TrustError(
            f"the key {key.id} was revoked by the owner of {state.name}: {gone.reason}",
            where=state.name,
            hint=f"do not use it any more; the owner's keys are now {', '.join(item.id for item in state.keys)}",
            details={"rule": "revoked", "key": key.id, "refuse_after": gone.refuse_after},
        )
    if pin is not None and key not in state.keys:
        # With a pin the chain was followed from the pinned record; the named key must have its place in it as well.
        follow(chain, state.name, anchors=(key,), operators=operators, accepted=accepted)


def _unpinned(name: PackageName) -> TrustError:
    return TrustError(
        f'nobody has said whose {name} is the right one, and trust-policy = "pinned" believes no registry about that',
        where=name,
        hint=f"get the author's key id from the author, then: visget trust pin {name} KEY-ID",
        details={"rule": "unpinned"},
    )
