"""Choosing, fetching and verifying a package: everything between a name and a VerifiedPackage.

Invariant: a package's inside is looked at only after its signature was verified by a key that the trust rules
accept for its name (visget/registry/trust.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.cache.store import Store
from visget.config import Settings
from visget.errors import TrustError
from visget.names import Requirement
from visget.progress import SILENT, Progress
from visget.wiring import network_of

if TYPE_CHECKING:
    from visget.format.package import VerifiedPackage


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


def obtain(requirement: Requirement, *, registry: str | None = None, trust: str | None = None,
           settings: Settings, progress: Progress = SILENT, remember: bool = True) -> Obtained:  # fmt: skip
    """Choose a release, fetch it unless the store has it, and verify it.

    Args:
        requirement: the package and its acceptable versions.
        registry: name, directory or URL of the registry; None means the configured one.
        trust: the id of the key that must have signed it; None means the pinned or the registry's owner.
        remember: keep the bytes in the store and pin the keys trusted for the first time.

    Raises:
        NotFoundError, TrustError, FormatError, NetworkError, RegistryError: see their classes.
    """
    from visget.format.package import open_package, verify_package
    from visget.registry.client import open_registry
    from visget.registry.select import choose
    from visget.registry.trust import PinStore, accepted_keys

    location = settings.location(registry)
    store = Store.open(settings.home)
    source = open_registry(location, network=network_of(settings))
    releases = source.releases(requirement.name)
    release = choose(releases, requirement)
    pins = PinStore(store.root / "trust")
    pinned = pins.get(source.identity, requirement.name)
    decision = accepted_keys(requirement.name, releases.owners, pinned, required=trust)
    title = f"{release.name} {release.version}"
    progress.step("fetching", title)
    data, envelope = store.package(release.vis), store.envelope(release.vis)
    if data is None or envelope is None:
        data, envelope = source.fetch(release, progress=progress)
    progress.step("verifying", title)
    package = open_package(data)
    verified = verify_package(package, envelope, decision.keys)
    if (package.manifest.name, package.manifest.version) != (release.name, release.version):
        raise TrustError(
            f"the registry offers {title}, but the package is {package.manifest.name} {package.manifest.version}",
            where=location,
        )
    if remember:
        store.put_package(data)
        store.put_envelope(package.digest, envelope)
        if decision.first_use:
            pins.remember(source.identity, requirement.name, decision.keys)
    return Obtained(
        verified=verified, first_use=decision.first_use, location=location,
        versions=tuple(str(item.version) for item in reversed(releases.versions)),
        owners=tuple(owner.id for owner in releases.owners),
    )  # fmt: skip
