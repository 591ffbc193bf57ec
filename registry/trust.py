"""Whose signature is accepted under a name: pins, and trust on first use.

The rules, all pure:

1. A key that the user names is the only one accepted, whatever the registry and the pins say.
2. A name that has a pin accepts the pinned keys that the registry still lists as owners. A key that only the
   registry added is not accepted: a registry that was taken over could add its own.
3. A name without a pin accepts the owners that the registry lists, and they become its pin (first use).

Invariant: nothing here reads or writes; visget/registry/pins.py keeps the pins. This module is the seam for
stronger rules, such as chains of owner records under signed registry metadata: callers know only Accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from visget.errors import TrustError
from visget.format.keys import PublicKey, parse_key_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Who may have signed a package of one name."""

    keys: tuple[PublicKey, ...]
    """The keys to verify with; never empty."""
    new_pin: tuple[PublicKey, ...] | None
    """What to remember once a package was verified with them; None when nothing changes."""
    first_use: bool
    """Whether the keys are believed only because the registry names them."""


def accepted_keys(
    name: str, owners: Iterable[PublicKey], pinned: Iterable[PublicKey] = (), required: str | None = None
) -> Accepted:
    """Decide whose signature is accepted under `name`.

    Args:
        name: the package.
        owners: the keys that the registry lists as its owners.
        pinned: the keys remembered for this name and registry.
        required: the id of the key that the user demands.

    Raises:
        TrustError: nobody is accepted; the message says why and what to do.
    """
    listed, known = tuple(owners), tuple(pinned)
    if required is not None:
        key = parse_key_id(required)
        return Accepted(keys=(key,), new_pin=None if known == (key,) else (key,), first_use=False)
    if not listed:
        raise TrustError(
            f"the registry names no owner for {name}, so nothing published under that name can be verified",
            hint="tell the registry's operator; with a key that you have from its author: --trust KEY-ID",
        )
    if not known:
        return Accepted(keys=listed, new_pin=listed, first_use=True)
    keys = tuple(key for key in known if key in listed)
    if not keys:
        raise TrustError(
            f"the owner of {name} has changed: the registry now names {_ids(listed)}, but packages of that name were "
            f"signed by {_ids(known)} here before",
            where=name,
            hint="ask the author, not over this registry, whether the key was replaced; only if so, accept it with "
            f"--trust {listed[0].id}",
            details={"pinned": [key.id for key in known], "owners": [key.id for key in listed]},
        )
    return Accepted(keys=keys, new_pin=None, first_use=False)


def _ids(keys: tuple[PublicKey, ...]) -> str:
    return ", ".join(key.id for key in keys)
