"""What visget demands of TUF metadata beyond what python-tuf checks; pure functions over bytes.

python-tuf takes JSON with a key twice, counts one key under two ids as two, accepts weak keys and any target name,
and cannot tell which of two roles that one key signs a document was made for. Each of these is refused here,
before python-tuf sees the bytes. Invariant: a document that passes means the same to every reader. The rules are
docs/spec/registry.md, section "Metadata".

`strict` rules are those of visget's own registries; without it the rules are what every TUF repository must keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from visget.digest import parse_digest
from visget.errors import FormatError, TrustError
from visget.format.keys import PublicKey
from visget.format.strictjson import Reader, loads
from visget.registry.protocol import PACKAGE_LIMIT
from visget.registry.tuf_keys import key_id
from visget.registry.tuf_names import BIN_BITS, BIN_PREFIX, BINS, bin_of, check_target_name

ROOT_LIMIT = 512_000
TIMESTAMP_LIMIT = 16_384
SNAPSHOT_LIMIT = 1_000_000
TARGETS_LIMIT = 5_000_000
_TOP = ("root", "timestamp", "snapshot", "targets")
_KEYS_LIMIT = 256
_SIGNATURES_LIMIT = 256
_HEX64 = re.compile(r"[0-9a-f]{64}\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")
_HEX = re.compile(r"[0-9a-f]*\Z")
ROLE_FIELD = "x-visget-role"
"""The signed field that says for which bin a document was made: all bins are signed by one key."""


def limit_of(role: str) -> int:
    """Return the most bytes that the metadata of `role` may have."""
    return {"root": ROOT_LIMIT, "timestamp": TIMESTAMP_LIMIT, "snapshot": SNAPSHOT_LIMIT}.get(role, TARGETS_LIMIT)


def check_metadata(data: bytes, role: str, *, where: str, strict: bool = True) -> dict[str, Any]:
    """Check the metadata that was fetched for `role` and return its signed part; signatures are not checked.

    Raises:
        TrustError: a rule is broken.
    """
    what = f"the registry's {role!r} metadata"
    try:
        document = Reader(loads(data, what=what, limit=limit_of(role)), role)
        signatures = document.array("signatures")
        if len(signatures) > _SIGNATURES_LIMIT:
            raise document.fail("signatures", f"has more than {_SIGNATURES_LIMIT} entries")
        # One form only, so that the bytes of a file are as fixed as its meaning.
        if strict and not all(_HEX.match(item.string("sig")) for item in document.objects("signatures")):
            raise document.fail("signatures", "must be lower-case hexadecimal digits")
        signed = document.object("signed")
        kind = signed.string("_type")
        if kind != (role if role in _TOP else "targets"):
            raise signed.fail("_type", f"is {kind[:20]!r}: this is another role's metadata")
        # Readers that take other forms of a date would verify what they read, not what is written.
        if not _DATE.match(signed.string("expires")):
            raise signed.fail("expires", "must be YYYY-MM-DDThh:mm:ssZ")
        value: dict[str, Any] = document.any("signed")
        if role == "root":
            _check_root(signed, strict)
        elif kind == "targets":
            _check_targets(signed, role, strict)
    except (FormatError, TrustError) as error:
        raise TrustError(
            f"{what} is refused: {error.message}",
            where=where,
            hint="nothing of it was used; tell the registry's operator",
        ) from error
    return value


def _check_root(signed: Reader, strict: bool) -> None:
    if strict and not signed.boolean("consistent_snapshot"):
        raise signed.fail("consistent_snapshot", "must be true")
    keys = signed.object("keys")
    roles = signed.object("roles")
    table: dict[str, Any] = signed.any("roles")
    if set(table) != set(_TOP):
        raise signed.fail("roles", "must be root, timestamp, snapshot and targets")
    _check_keys(keys, signed.any("keys"), [roles.object(name) for name in _TOP], strict)


def _check_targets(signed: Reader, role: str, strict: bool) -> None:
    if strict:
        _check_target_files(signed, role)
    if "delegations" not in signed:
        if strict and role == "targets":
            raise signed.fail("delegations", "is missing")
        return
    delegations = signed.object("delegations")
    keys = delegations.object("keys")
    table: dict[str, Any] = delegations.any("keys")
    if not strict:
        found = list(delegations.objects("roles")) if "roles" in delegations else []
        if "succinct_roles" in delegations:
            found.append(delegations.object("succinct_roles"))
        _check_keys(keys, table, found, strict)
        return
    if role != "targets":
        raise signed.fail("delegations", "may only be in the top role")
    if "roles" in delegations:
        raise delegations.fail("roles", "must not be there: targets are delegated to bins only")
    bins = delegations.object("succinct_roles")
    if bins.integer("bit_length") != BIN_BITS or bins.string("name_prefix") != BIN_PREFIX:
        raise delegations.fail("succinct_roles", f"must be {1 << BIN_BITS} bins called {BIN_PREFIX}-XX")
    _check_keys(keys, table, [bins], strict)


def _check_target_files(signed: Reader, role: str) -> None:
    files = signed.object("targets")
    table: dict[str, Any] = signed.any("targets")
    if role == "targets":
        if table:
            raise signed.fail("targets", "must be empty in the top role")
        return
    if role not in BINS:
        raise signed.fail(None, "belongs to no role of a registry")
    # One key signs all bins: without this, the document of one could be served as that of another, and what the
    # other holds would seem not to exist.
    if signed.string(ROLE_FIELD) != role:
        raise signed.fail(ROLE_FIELD, f"is not {role!r}: this is another bin")
    for name in table:
        check_target_name(name)
        if bin_of(name) != role:
            raise signed.fail("targets", f"holds {name!r}, which belongs to another bin")
        entry = files.object(name)
        entry.integer("length", 0, PACKAGE_LIMIT)
        hashes = entry.object("hashes")
        digest = hashes.string("sha256")
        try:
            parse_digest(digest)
        except ValueError as error:
            raise hashes.fail("sha256", f"is {error}") from error


def _check_keys(keys: Reader, table: dict[str, Any], roles: Iterable[Reader], strict: bool) -> None:
    """Refuse weak keys and keys that count twice.

    Raises:
        FormatError, TrustError: a key is malformed or weak; one key has two ids; an id is not that of its key.
    """
    if len(table) > _KEYS_LIMIT:
        raise keys.fail(None, f"has more than {_KEYS_LIMIT} keys")
    material = {name: _material(name, keys.object(name), strict) for name in table}
    groups = [list(material)] if strict else []
    for role in roles:
        ids = [name for name in role.array("keyids") if isinstance(name, str)]
        if strict:
            role.integer("threshold", 1, len(ids))
            if unknown := next((name for name in ids if name not in table), None):
                raise role.fail("keyids", f"names the unknown key {unknown[:16]!r}")
        groups.append([name for name in ids if name in material])
    for group in groups:
        if len({material[name] for name in group}) != len(group):
            raise keys.fail(None, "has one key under two ids, which would count as two signers")


def _material(name: str, key: Reader, strict: bool) -> str:
    kind, scheme = key.string("keytype"), key.string("scheme")
    public = key.object("keyval").string("public")
    if kind != "ed25519":
        if strict:
            raise key.fail("keytype", f"is {kind[:20]!r}; registries sign with ed25519 only")
        # The same key may be written with other line ends.
        return "".join(public.split())
    if not _HEX64.match(public):
        raise key.fail("keyval", "holds no Ed25519 key in lower-case hexadecimal")
    parsed = PublicKey(bytes.fromhex(public))
    if strict and (scheme != "ed25519" or name != key_id(parsed)):
        raise key.fail(None, "has an id that is not the digest of its key")
    return public
