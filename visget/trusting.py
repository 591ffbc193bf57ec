"""Whom to believe about a name: what the user remembers, what the registry shows, and the decision between them.

Invariant: a pin changes only after the rules of visget/registry/trust.py allowed it, or because the user said so in
as many words (`visget trust`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.errors import NotFoundError, UsageError
from visget.names import PackageName
from visget.registry.pins import PinStore
from visget.registry.trust import Accepted, Pin, Policy, decide, pin_by_key
from visget.wiring import store_of

if TYPE_CHECKING:
    from visget.format.keys import PublicKey
    from visget.registry.client import Registry
    from visget.registry.protocol import Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision, and what it was made with."""

    registry: str
    """The registry's identity."""
    accepted: Accepted
    """The decision."""
    pin: Pin | None
    """What was remembered before."""

    def remember(self, pins: PinStore) -> None:
        """Write down what changed.

        Raises:
            TrustError, CacheError, ResourceError: it cannot be written.
        """
        if self.accepted.pin != self.pin:
            pins.remember(self.registry, self.accepted.state.name, self.accepted.pin, seen=self.pin)


def pins_of(settings: Settings) -> PinStore:
    """Return what this user has trusted."""
    return PinStore(store_of(settings).root / "trust")


def decide_for(
    source: Registry, releases: Releases, *, settings: Settings, pins: PinStore, required: str | None = None,
    accepted: Collection[PublicKey] = (), otherwise: Pin | None = None,
) -> Decision:  # fmt: skip
    """Decide whose signature is accepted under the name of `releases`.

    Args:
        source: the registry.
        releases: what it says about the name.
        settings: the policy.
        pins: what is remembered.
        required: the id of a key that the user names.
        accepted: keys that the user accepts although only the registry's operators vouch for them.
        otherwise: what to go by where nothing is remembered: what a lock file says.

    Raises:
        TrustError, FormatError: nobody is accepted.
    """
    pin = pins.get(source.identity, releases.name)
    found = decide(
        releases.name, releases.owner_records, pin=pin or otherwise, required=required, policy=policy_of(settings),
        operators=source.operators(), accepted=accepted,
    )  # fmt: skip
    return Decision(registry=source.identity, accepted=found, pin=pin)


def policy_of(settings: Settings) -> Policy:
    """Return the policy for names that have no pin."""
    return "pinned" if settings.trust_policy == "pinned" else "tofu"


def pin(source: Registry, name: PackageName, key: PublicKey, *, settings: Settings) -> Pin:
    """Pin the owner of `name` by a key that the user names, and return the pin.

    Raises:
        TrustError: another owner is pinned.
    """
    pins = pins_of(settings)
    before = pins.get(source.identity, name)
    after = pin_by_key(name, key, before)
    pins.remember(source.identity, name, after, seen=before)
    return after


def accept(source: Registry, name: PackageName, key: PublicKey, *, settings: Settings) -> tuple[Pin | None, Pin]:
    """Accept the newest owner of `name`, whom only the registry's operators vouch for, and return both pins.

    Raises:
        NotFoundError: the name is not pinned, or not in the registry.
        TrustError: `key` is none of the new owner's, or more is wrong than that.
        UsageError: there is nothing to accept.
    """
    pins = pins_of(settings)
    if pins.get(source.identity, name) is None:
        raise NotFoundError(
            f"nobody is pinned for {name}, so there is nothing to accept", hint=f"visget trust pin {name} {key.id}"
        )
    decision = decide_for(source, source.releases(name), settings=settings, pins=pins, accepted=(key,))
    if not decision.accepted.state.recovered:
        raise UsageError(
            f"there is no recovery of {name} to accept: its owner is the one whom you know",
            hint=f"the keys are {', '.join(item.id for item in decision.accepted.keys)}",
        )
    decision.remember(pins)
    return decision.pin, decision.accepted.pin


def forget(registry: str, name: PackageName, *, settings: Settings) -> Pin:
    """Drop the pin of `name` in the registry with that identity, and return it.

    Raises:
        NotFoundError: there is none.
    """
    gone = pins_of(settings).forget(registry, name)
    if gone is None:
        raise NotFoundError(f"nobody is pinned for {name} in this registry", where=registry)
    return gone
