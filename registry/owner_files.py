"""The owner records in a registry's directory: who owns a name there, and changing that.

Invariant: a registry holds only chains that keep the rule of visget/format/owner_chain.py, and every version that
the owner vouches for is signed well enough by the newest record's keys; both change within one editing(). The spec
is docs/spec/owner-chain.md, section "Changes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from visget.digest import Digest, digest_bytes
from visget.errors import NotFoundError, TrustError
from visget.format.owner_chain import OwnerState, follow
from visget.format.package import Package, VerifiedPackage, verify_package
from visget.format.signing import envelope_key_ids
from visget.names import PackageName
from visget.registry.editing import Editor, editing
from visget.registry.ownership import Change, owner_of
from visget.registry.protocol import Release, Releases
from visget.registry.tuf_names import envelope_target, owner_target


def change_owner(root: Path, change: Change, *, keys: Path | None = None, now: float | None = None) -> OwnerState:
    """Put a change of owner into the registry at `root`, and return who owns the name now.

    Args:
        root: the registry's directory.
        change: the change.
        keys: the operator's room; None means the one beside the directory.
        now: the time, in seconds since the epoch.

    Raises:
        NotFoundError: there is no such package.
        TrustError: the change does not follow the newest record, or is not signed well enough.
        UsageError, RegistryError, ResourceError: the registry cannot be written.
    """
    with editing(root, keys=keys, now=now) as editor:
        old = editor.index(change.name)
        if old is None:
            raise NotFoundError(f"there is no package {change.name!r} in this registry", where=str(root))
        chain = editor.records(old)
        state = follow(chain, old.name)
        if state.digest == change.record.digest:
            # An earlier try came so far and its answer was lost.
            return state
        after = change.check(state, editor.operators)
        files = change.files()
        versions = tuple(_resigned(editor, release, files) for release in old.versions)
        records = editor.put_records(old.name, [*chain, change.record.encode()])
        editor.put_index(replace(old, owners=after.keys, versions=versions, records=records))
    return after


def _resigned(editor: Editor, release: Release, files: Mapping[Digest, bytes]) -> Release:
    data = files.get(release.vis)
    if data is None:
        return release
    target = editor.change.write(envelope_target(release.name, release.version), data)
    return replace(release, dsse=target.digest, dsse_size=target.size)


def verify_for_publishing(
    editor: Editor, package: Package, envelope: bytes, old: Releases | None, claim: bytes | None
) -> tuple[VerifiedPackage, OwnerState, bytes | None]:
    """Verify a package that is to be published with the owner of its name.

    Args:
        editor: the registry.
        package: the package.
        envelope: its signature file.
        old: the index of its name, if the name exists.
        claim: the owner record that claims the name if it is free.

    Returns:
        The verified package, who owns the name, and the claim when it was needed.

    Raises:
        TrustError: it is not signed well enough by the owner.
        RegistryError: the name is free and nobody claims it.
    """
    name = package.manifest.name
    if old is not None and old.records and claim is not None and digest_bytes(claim) == old.records[0].digest:
        # The file may be damaged, and here it is again.
        editor.change.write(owner_target(name, 1), claim)
    state, claimed = owner_of(name, editor.records(old) if old is not None else (), claim)
    try:
        return verify_package(package, envelope, state.keys, threshold=state.threshold), state, claimed
    except TrustError as error:
        raise _explained(name, state, envelope_key_ids(envelope), error) from error


def _explained(name: PackageName, state: OwnerState, named: tuple[str, ...], error: TrustError) -> TrustError:
    mine = [key.id for key in state.keys if key.id in named]
    ids = ", ".join(key.id for key in state.keys)
    if not named or (mine and state.threshold == 1):
        return error
    details = {"signed_by": list(named), "owners": [key.id for key in state.keys], "threshold": state.threshold}
    if mine:
        return TrustError(
            f"{state.threshold} of the {len(state.keys)} keys of {name} must sign a package, and the signatures here "
            f"are by {', '.join(named)}",
            where=name,
            hint="let the others sign first: visget owner sign FILE.vis --key NAME, then publish again",
            details=details,
        )
    return TrustError(
        f"the name {name} belongs to another key: the package is signed by {', '.join(named)}, its owner is {ids}",
        where=name,
        hint="sign with the owner's key (--key), or choose another name",
        details=details,
    )


def signed_anew(old: Release, package: Package, envelope: bytes, previous: bytes | None, state: OwnerState) -> Release:
    """Return what the index says about a version that is published again with the same bytes.

    Its signature file stays, unless the present owner has not signed that one well enough.
    """
    try:
        if previous is not None:
            verify_package(package, previous, state.keys, threshold=state.threshold)
            return old
    except TrustError:
        pass
    return replace(old, dsse=digest_bytes(envelope), dsse_size=len(envelope))
