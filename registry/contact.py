"""Meeting a registry for the first time: which root is trusted, and why.

A registry in a directory of this machine is trusted on first use, and the user is shown its fingerprint. Behind a
web address nothing is: the user names the fingerprint of a root, or has its file. Whichever root is named, the
chain from the first root to it is followed, so that the identity of the registry is that of its first root for
everybody. Invariant: nothing becomes trusted here that the user did not decide or was not told. The spec is
docs/spec/registry.md, section "First contact".
"""

from __future__ import annotations

from dataclasses import dataclass

from visget.digest import Digest, digest_bytes, parse_digest
from visget.download import HttpError
from visget.errors import RegistryError, TrustError, UnsupportedError, UsageError
from visget.registry.protocol import ROOT_LIMIT as VISGET_LIMIT
from visget.registry.protocol import ROOT_PATH, parse_root
from visget.registry.transport import Transport
from visget.registry.tuf_client import ROTATIONS, check_root
from visget.registry.tuf_names import metadata_path
from visget.registry.tuf_rules import ROOT_LIMIT
from visget.registry.tuf_state import How, Registration, TrustRoom, TrustState


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What the user has said about the root of a registry."""

    root: bytes | None = None
    """The content of a root that he has."""
    fingerprint: str | None = None
    """The digest of a root."""
    again: bool = False
    """Meet it anew, whatever was known before."""

    @property
    def given(self) -> bool:
        """Whether he said anything."""
        return self.root is not None or self.fingerprint is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A registry whose root is trusted."""

    registration: Registration
    """What is known about it."""
    state: TrustState
    """What is remembered of it."""
    first: bool
    """Whether it was met just now and is trusted only because it is there."""


def known(source: Transport, room: TrustRoom) -> Contact | None:
    """Return the registry at `source` when it was met before.

    Raises:
        TrustError: the record of it is damaged.
    """
    found = room.registration(source.location)
    if found is None:
        return None
    return Contact(registration=found, state=room.state(found.identity), first=False)


def meet(source: Transport, room: TrustRoom, anchor: Anchor, mirrors: tuple[str, ...] = ()) -> Contact:
    """Trust the registry at `source` as `anchor` says, or on first use, and remember it.

    Raises:
        UsageError: it is behind a web address, and the user said nothing about its root.
        TrustError: its roots are not those that the user named, or do not follow each other.
        RegistryError, NetworkError: there is no registry, or it cannot be read.
    """
    if not anchor.given and source.remote:
        raise UsageError(
            f"visget does not know the registry at {source.location} yet, and whoever answers there could be anybody",
            where=source.location,
            hint=f"ask its operator for the fingerprint, then: visget registry add NAME {source.location} "
            "--fingerprint SHA256",
        )
    identity, pinned = follow(source, anchor)
    if not anchor.given and (before := room.registration_of(identity)) is not None:
        # A copy of a registry that is trusted already, such as a bundle: its roots are judged by what is known.
        registration = Registration(location=source.location, identity=identity, how=before.how, mirrors=mirrors)
        return Contact(registration=registration, state=room.register(registration, None), first=False)
    how: How = "root file" if anchor.root is not None else "fingerprint" if anchor.given else "first use"
    registration = Registration(location=source.location, identity=identity, how=how, mirrors=mirrors)
    return Contact(registration=registration, state=room.register(registration, pinned), first=not anchor.given)


def trust_made_here(source: Transport, room: TrustRoom) -> Digest:
    """Trust the registry at `source`, which this user has just made, and return its identity.

    Raises:
        TrustError, RegistryError: it is not in order.
    """
    identity, pinned = follow(source, Anchor())
    registration = Registration(location=source.location, identity=identity, how="made here")
    room.register(registration, pinned)
    return identity


def follow(source: Transport, anchor: Anchor) -> tuple[Digest, bytes]:
    """Return the identity of the registry at `source`, and the root that is to be trusted.

    Raises:
        UsageError: the fingerprint is none.
        TrustError, RegistryError, NetworkError: as meet().
    """
    wanted = _wanted(anchor)
    first = _root(source, 1)
    if first is None:
        raise _absent(source)
    identity, before, data = digest_bytes(first), None, first
    for version in range(1, ROTATIONS + 1):
        if check_root(data, before, where=source.shown(metadata_path("root", version))) != version:
            raise TrustError(f"root {version} says that it is another version", where=source.location)
        if wanted is None or digest_bytes(data) == wanted:
            return identity, data
        following = _root(source, version + 1)
        if following is None:
            break
        before, data = data, following
    raise TrustError(
        "the root that you trust is none of this registry's: this is another registry, or somebody stands between",
        where=source.location,
        hint="compare the fingerprint with its operator's, over another way than this network",
        details={"expected": wanted, "first": identity},
    )


def _wanted(anchor: Anchor) -> Digest | None:
    if anchor.root is not None:
        return digest_bytes(anchor.root)
    if anchor.fingerprint is None:
        return None
    try:
        return parse_digest(anchor.fingerprint.strip().lower().removeprefix("sha256:"))
    except ValueError as error:
        raise UsageError(
            f"{anchor.fingerprint[:80]!r} is not a fingerprint",
            hint="a fingerprint has 64 hexadecimal digits; `visget registry init` and `registry list` show it",
        ) from error


def _root(source: Transport, version: int) -> bytes | None:
    path = metadata_path("root", version)
    try:
        return source.read(path, limit=ROOT_LIMIT, what=f"root {version} of the registry")
    except HttpError as error:
        if error.status == 403 and version > 1:
            return None
        raise


def _absent(source: Transport) -> RegistryError | UnsupportedError:
    data = source.read(ROOT_PATH, limit=VISGET_LIMIT, what="the registry")
    if data is None:
        return RegistryError(
            "there is no registry here",
            where=source.location,
            hint="check the location; `visget registry init DIR` makes one",
        )
    # Raises when another version of visget made it, which is the likeliest reason.
    parse_root(data, source.shown(ROOT_PATH))
    return RegistryError("the registry has lost its first root", where=source.location)
