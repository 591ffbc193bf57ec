"""Roots and top roles: the documents that offline keys sign, and the ceremony around them.

A document whose signers are elsewhere is staged: a file in the operator's room that each holder signs where his key
is, with nothing but the file and the key. Invariant: what is applied is signed by as many distinct keys as the root
before it and the document itself demand. The spec is docs/spec/registry.md, section "Ceremony".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuf.api.metadata import (  # type: ignore[attr-defined]  # re-exported, not marked so
    Delegations,
    Metadata,
    Role,
    Root,
    SuccinctRoles,
    Targets,
)

from visget.digest import digest_bytes
from visget.errors import TrustError, UsageError
from visget.files import atomic_write, remove_leftovers, translated
from visget.format.keys import PublicKey
from visget.registry.local import read_local
from visget.registry.tuf_client import check_delegated, check_root
from visget.registry.tuf_keys import KeySigner, tuf_key
from visget.registry.tuf_names import BIN_BITS, BIN_PREFIX
from visget.registry.tuf_repository import Periods, sign, until
from visget.registry.tuf_rules import ROOT_LIMIT, TARGETS_LIMIT, check_metadata

_STAGED = re.compile(r"([1-9][0-9]*)\.(root|targets)\.json\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Whose keys sign in a role, and how many of them must."""

    keys: tuple[PublicKey, ...]
    """The keys."""
    threshold: int = 1
    """How many of them must sign."""

    def __post_init__(self) -> None:
        if len(set(self.keys)) != len(self.keys):
            raise UsageError("one key is named twice: it would count once only")
        if not 1 <= self.threshold <= len(self.keys):
            raise UsageError(
                f"a threshold of {self.threshold} cannot be met by {len(self.keys)} key(s)",
                hint="name at least as many keys as must sign",
            )


def make_root(
    *, version: int, root: Holders, targets: Holders, online: Sequence[PublicKey], periods: Periods, now: float
) -> Root:
    """Return a root, unsigned."""
    once = Holders(keys=tuple(online))
    roles = {"root": root, "targets": targets, "snapshot": once, "timestamp": once}
    made = Root(
        version=version,
        expires=until(now, periods.offline),
        roles={name: Role([], holders.threshold) for name, holders in roles.items()},
        consistent_snapshot=True,
    )
    for name, holders in roles.items():
        for key in holders.keys:
            made.add_key(tuf_key(key), name)
    return made


def make_targets(*, version: int, online: Sequence[PublicKey], periods: Periods, now: float) -> Targets:
    """Return a top role that delegates all targets to bins signed by the online key, unsigned."""
    keys = {key.keyid: key for key in map(tuf_key, online)}
    bins = SuccinctRoles(list(keys), 1, BIN_BITS, BIN_PREFIX)
    delegations = Delegations(keys, None, bins)
    return Targets(version=version, expires=until(now, periods.offline), delegations=delegations)


def holders_of(root: Root, role: str) -> Holders:
    """Return whose keys sign in `role`."""
    found = root.roles[role]
    keys = tuple(PublicKey(bytes.fromhex(root.keys[name].keyval["public"])) for name in found.keyids)
    return Holders(keys=keys, threshold=found.threshold)


def parse_root(data: bytes) -> Root:
    """Return the signed part of a root that was checked before."""
    root: Root = Metadata[Root].from_bytes(data).signed
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A document that waits for signatures, or has them."""

    path: Path
    """Its file."""
    role: str
    """"root" or "targets"."""
    version: int
    """Its version."""
    data: bytes
    """Its content."""

    @property
    def metadata(self) -> Metadata[Any]:
        """The document."""
        return Metadata.from_bytes(self.data)


def stage(room: Path, document: Root | Targets, signers: Iterable[KeySigner]) -> Path:
    """Write a document into `room`, with the signatures of `signers`, and return its file."""
    role = "root" if isinstance(document, Root) else "targets"
    path = room / f"{document.version}.{role}.json"
    with translated("stage a document for signing", path):
        room.mkdir(mode=0o700, exist_ok=True)
        remove_leftovers(room, path.name)
        atomic_write(path, sign(document, *signers).to_bytes(), 0o600)
    return path


def staged(room: Path) -> list[Staged]:
    """Return what is staged in `room`: roots first, each kind by version.

    Raises:
        TrustError: a document breaks a rule.
    """
    found = [_read(path, match[2]) for path in room.glob("*.json") if (match := _STAGED.match(path.name))]
    return sorted(found, key=lambda item: (item.role, item.version))


def sign_file(path: Path, signer: KeySigner) -> Staged:
    """Add a signature to the staged document at `path` and return it.

    Raises:
        UsageError: there is no such document.
        TrustError: it breaks a rule, or is signed by that key already with another content.
    """
    document = _staged_at(path)
    metadata = document.metadata
    metadata.sign(signer, append=True)  # type: ignore[arg-type]  # sign() needs no more than a KeySigner has
    data = metadata.to_bytes()
    with translated("write the signed document", path):
        atomic_write(path, data, 0o600)
    return Staged(path=path, role=document.role, version=document.version, data=data)


def signable(paths: Sequence[Path], key: PublicKey) -> tuple[list[Path], list[str]]:
    """Return those of the staged documents `paths` that `key` may sign, and in words who may sign the others.

    Raises:
        UsageError: it may sign none of them; or there is no such document.
        TrustError: a document breaks a rule.
    """
    mine, others, names = [], [], set()
    for path in paths:
        keys, all_known = _known_holders(path)
        if key in keys or not all_known:
            mine.append(path)
            continue
        names |= {holder.id for holder in keys}
        others.append(f"{path.name} is signed by the holders of {', '.join(holder.id for holder in keys)}")
    if not mine:
        raise UsageError(
            f"the key {key.id} is no holder's: it cannot sign {', '.join(path.name for path in paths)}",
            where=str(paths[0].parent),
            hint=f"the holders' keys are {', '.join(sorted(names))}",
        )
    return mine, others


def _known_holders(path: Path) -> tuple[list[PublicKey], bool]:
    """Return who signs the staged document at `path`, and whether that is all who do.

    The root before a root, and the one in force for a top role, are known only where they lie beside the document,
    or in the operator's room to which it belongs.
    """
    document = _staged_at(path)
    roots = {item.version: parse_root(item.data) for item in staged(path.parent) if item.role == "root"}
    kept = read_local(path.parent.parent / "root.json", ROOT_LIMIT) if path.parent.name == "staged" else None
    if kept is not None:
        current = parse_root(kept)
        roots.setdefault(current.version, current)
    if document.role == "targets":
        return (list(holders_of(roots[max(roots)], "targets").keys), True) if roots else ([], False)
    before = roots.get(document.version - 1)
    concerned = [parse_root(document.data), *([before] if before is not None else [])]
    keys = dict.fromkeys(key for root in concerned for key in holders_of(root, "root").keys)
    return list(keys), before is not None or document.version == 1


def _staged_at(path: Path) -> Staged:
    match = _STAGED.match(path.name)
    if match is None:
        raise UsageError(
            f"{path.name!r} is not a document to sign",
            where=str(path),
            hint="its name is N.root.json or N.targets.json",
        )
    return _read(path, match[2])


def _read(path: Path, role: str) -> Staged:
    with translated("read a staged document", path):
        data = read_local(path, TARGETS_LIMIT)
    if data is None:
        raise UsageError("there is no such document", where=str(path))
    signed = check_metadata(data, role, where=str(path))
    version = signed.get("version")
    if type(version) is not int or f"{version}.{role}.json" != path.name:
        raise TrustError("a document has another version than its name says", where=str(path))
    return Staged(path=path, role=role, version=version, data=data)


def missing(document: Staged, before: bytes | None) -> list[str]:
    """Return in words which signatures `document` lacks; empty when it has them all.

    Args:
        document: the document.
        before: the root before it, or for a top role the root that is in force when it is; None for a first root.
    """
    metadata = document.metadata
    roots: list[Root] = [] if before is None else [parse_root(before)]
    if document.role == "root":
        roots.append(metadata.signed)
    lacking = []
    for root in roots:
        result = root.get_verification_result(document.role, metadata.signed_bytes, metadata.signatures)
        if not result:
            names = ", ".join(
                PublicKey(bytes.fromhex(key.keyval["public"])).id for key in result.unsigned.values()
            )
            lacking.append(f"{document.path.name} lacks {result.missing} of the signatures of {names}")
    return list(dict.fromkeys(lacking))


def accept(document: Staged, before: bytes | None) -> None:
    """Check that `document` has all signatures.

    Raises:
        TrustError: it has not.
    """
    if document.role == "root":
        check_root(document.data, before, where=str(document.path))
    elif before is not None:
        check_delegated(document.data, "targets", parse_root(before), where=str(document.path))


def fingerprint(root: bytes) -> str:
    """Return the fingerprint of a root, by which users recognise a registry."""
    return str(digest_bytes(root))
