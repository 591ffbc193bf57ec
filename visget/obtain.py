"""Choosing, fetching and verifying a package: everything between a name and a VerifiedPackage.

Invariant: a package's inside is looked at only after its signature was verified by a key that the trust rules
accept for its name (visget/registry/trust.py). Neither the package nor that key is remembered before every section
was found well-formed, so a package that is refused leaves the store and the pins as they were.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.config import Settings
from visget.digest import Digest, digest_bytes
from visget.errors import TrustError
from visget.failpoint import failpoint
from visget.files import translated
from visget.names import Requirement
from visget.progress import SILENT, Progress
from visget.registries import reading
from visget.trusting import decide_for
from visget.wiring import store_of

if TYPE_CHECKING:
    from visget.expectation import Expected
    from visget.format.keys import PublicKey
    from visget.format.owner_chain import OwnerPin
    from visget.format.package import VerifiedPackage
    from visget.registry.client import Registry

__all__ = ["Obtained", "obtain", "reading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obtained:
    """A package that was chosen, fetched and verified."""

    verified: VerifiedPackage
    """The package."""
    first_use: bool
    """Whether its signers were not known before."""
    location: str
    """The registry."""
    versions: tuple[str, ...]
    """All published versions, newest first."""
    owners: tuple[str, ...]
    """Ids of the keys that own the name."""
    identity: Digest
    """Which registry it is, wherever it lies."""
    trusted: tuple[PublicKey, ...]
    """The keys that were accepted for the name."""
    threshold: int
    """How many of them had to sign."""
    record: OwnerPin
    """The newest owner record."""


def obtain(requirement: Requirement, *, registry: str | None = None, trust: str | None = None,
           settings: Settings, progress: Progress = SILENT, remember: bool = True,
           expected: Expected | None = None, source: Registry | None = None) -> Obtained:  # fmt: skip
    """Choose a release, fetch it unless the store has it, and verify it.

    Args:
        requirement: the package and its acceptable versions.
        registry: name, directory or URL of the registry; None means the configured one.
        trust: the id of the key that must have signed it; None means the pinned or the registry's owner.
        remember: keep the bytes in the store and pin the keys trusted for the first time.
        expected: what a lock file says; a name that is not pinned yet is then no first use.
        source: that registry, when it is open already.

    Raises:
        NotFoundError, TrustError, FormatError, NetworkError, RegistryError: see their classes.
    """
    from visget.format.package import check_contents, open_package, verify_package
    from visget.registry.pins import PinStore
    from visget.registry.select import choose

    store = store_of(settings)
    pins = PinStore(store.root / "trust")
    known = expected.registry if expected is not None else None
    with contextlib.ExitStack() as stack:
        if source is None:
            source = stack.enter_context(reading(settings, registry, progress, expected=known))
        if expected is not None:
            expected.check_registry(source.identity, source.location)
        releases = source.releases(requirement.name)
        release = choose(releases, requirement)
        decision = decide_for(
            source, releases, settings=settings, pins=pins, required=trust,
            otherwise=expected.pin if expected is not None else None,
        )  # fmt: skip
        accepted = decision.accepted
        title = f"{release.name} {release.version}"
        if expected is not None:
            expected.check_owner(accepted.keys, releases.owner_records)
            expected.check_release(release, source.location)
        if release.yanked is not None:
            progress.note(f"warning: {title} was withdrawn by its owner: {release.yanked or 'no reason given'}")
        data, envelope = store.package(release.vis), store.envelope(release.vis)
        # A version signed anew, by another owner, keeps its package but has another envelope.
        fresh = data is None
        if data is None or envelope is None or digest_bytes(envelope) != release.dsse:
            progress.step("fetching", title)
            data, envelope = source.fetch(release, progress=progress)
        with translated("install a package", store.root):
            failpoint("install.fetched")
        progress.step("verifying", title)
        package = open_package(data)
        verified = verify_package(package, envelope, accepted.keys, threshold=accepted.threshold)
        if (package.manifest.name, package.manifest.version) != (release.name, release.version):
            raise TrustError(
                f"the registry offers {title}, but the package is {package.manifest.name} {package.manifest.version}",
                where=source.location,
            )
        if fresh:  # what the store has was checked before it was kept
            check_contents(package)
        if remember:
            with translated("install a package", store.root):
                failpoint("install.verified")
                store.put_package(data)
                failpoint("install.stored")
                store.put_envelope(package.digest, envelope)
                failpoint("install.before-pin")
                decision.remember(pins)
                failpoint("install.pinned")
    return Obtained(
        verified=verified, first_use=accepted.first_use, location=source.location,
        versions=tuple(str(item.version) for item in reversed(releases.versions)),
        owners=tuple(owner.id for owner in accepted.keys), identity=source.identity, trusted=accepted.keys,
        threshold=accepted.threshold, record=accepted.state.pin,
    )  # fmt: skip
