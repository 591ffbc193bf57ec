"""What somebody who has a lock file knows about a package before asking a registry, and holding the registry to it.

Invariant: everything here only narrows what the trust rules allow; an expectation that is met makes nobody trusted
who would not be otherwise. The rules are docs/spec/lockfile.md, section "Installing".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.digest import Digest
from visget.errors import TrustError
from visget.names import PackageName

if TYPE_CHECKING:
    from visget.format.keys import PublicKey
    from visget.format.owner_chain import OwnerPin
    from visget.registry.protocol import Release
    from visget.registry.trust import Pin

_AGAIN = "if the author confirms the new owner, remove {name} from the lock file and lock it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is known about one package."""

    name: PackageName
    """The package."""
    registry: Digest | None
    """The identity of its registry; None when it may come from another one now."""
    digest: Digest | None
    """The digest of its file; None when another version is wanted."""
    owners: tuple[PublicKey, ...]
    """Keys of its owner."""
    record: OwnerPin | None
    """An owner record of it."""

    @property
    def pin(self) -> Pin:
        """What to believe on a machine that remembers nothing about the package."""
        from visget.registry.trust import Pin

        # A record of another registry proves nothing here, but a key does.
        return Pin(keys=self.owners, record=self.record if self.registry is not None else None, how="named")

    def check_registry(self, identity: str, location: str) -> None:
        """Refuse another registry than the expected one.

        Raises:
            TrustError: it is another one.
        """
        if self.registry is not None and identity != self.registry:
            raise TrustError(
                f"{self.name} is locked to another registry than the one that answers here",
                where=location,
                hint="another registry has other authors; if it is meant, lock the package again with --registry",
                details={"expected": self.registry, "actual": identity},
            )

    def check_owner(self, keys: Collection[PublicKey], chain: Sequence[bytes] = ()) -> None:
        """Refuse an owner who does not follow from the expected one.

        Args:
            keys: the owner's keys that the trust rules accept.
            chain: the owner records of the name; empty in a registry without any.

        Raises:
            TrustError: the owner is another one.
        """
        from visget.format.owner_chain import follow

        try:
            if chain:
                # A record of another registry proves nothing here, but a key does.
                record = self.record if self.registry is not None else None
                follow(chain, self.name, pinned=record, anchors=self.owners)
                return
            problem = None if set(self.owners) & set(keys) else "no key of the locked owner is listed any more"
        except TrustError as error:
            problem = error.message
        if problem is not None:
            raise TrustError(
                f"the owner of {self.name} is another one than the lock file says: {problem}",
                where=self.name,
                hint=_AGAIN.format(name=self.name),
                details={
                    "locked": [key.id for key in self.owners],
                    "owners": [key.id for key in keys],
                    "rule": "lock",
                },
            )

    def check_release(self, release: Release, location: str) -> None:
        """Refuse other bytes than the expected ones.

        Raises:
            TrustError: they are others.
        """
        if self.digest is not None and release.vis != self.digest:
            raise TrustError(
                f"the registry offers other bytes as {release.name} {release.version} than the lock file says",
                where=location,
                hint="a published version never changes; tell the registry's operator and the author",
                details={"expected": self.digest, "actual": release.vis},
            )
