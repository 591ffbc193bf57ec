"""An owner record: who may publish under a name from now on, signed by those who could before.

Invariant: an OwnerRecord obeys every rule that needs no other record (a threshold that its keys can reach, no key
twice, no revoked key among them), and a SignedRecord's digest is that of the signed bytes, so that gaining a
signature does not make it another record. How records follow each other is visget/format/owner_chain.py; the spec
is docs/spec/owner-chain.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from visget.digest import Digest, digest_bytes, parse_digest
from visget.errors import TrustError, UsageError
from visget.format.dsse import Envelope
from visget.format.keys import PublicKey, SecretKey, parse_key_id
from visget.format.strictjson import Reader, dumps, loads, repeated
from visget.names import PackageName, parse_name

RECORD_TYPE = "application/vnd.visget.owner.v1+json"
RECORD_LIMIT = 64 << 10
"""The most bytes of a record with its signatures."""
KEYS_LIMIT = 16
SIGNATURES_LIMIT = 4 * KEYS_LIMIT
"""Room for the old keys, the new ones, and a registry's offline keys."""
REVOKED_LIMIT = 128
REASON_LIMIT = 200
SEQ_LIMIT = 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """A key that must never count again."""

    key: PublicKey
    """The key."""
    reason: str
    """Why, in one line."""
    refuse_after: int
    """The last record under which its signatures were its owner's own; 0 when none was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRecord:
    """One link of the owner chain of one name.

    Raises:
        TrustError: it breaks a rule that no record may break.
    """

    name: PackageName
    """The package."""
    seq: int
    """Its number, from 1."""
    prev: Digest | None
    """The digest of the record before; None for the first."""
    threshold: int
    """How many of the keys must sign a package, and the next record."""
    keys: tuple[PublicKey, ...]
    """The keys of the owner, sorted by id."""
    revoked: tuple[Revocation, ...] = ()
    """Keys given up because they are not safe, sorted by id; a chain never forgets one."""
    recovery: bool = False
    """Whether the registry's operators and not the owner before made this record."""

    def __post_init__(self) -> None:
        ids = [key.id for key in self.keys]
        gone = [item.key.id for item in self.revoked]
        for what, names, least, most in (("keys", ids, 1, KEYS_LIMIT), ("revoked", gone, 0, REVOKED_LIMIT)):
            if not least <= len(names) <= most:
                raise self._wrong(f"it has {len(names)} {what}; {least} to {most} are allowed")
            if again := repeated(names):
                raise self._wrong(f"{what} holds {again} twice")
            if names != sorted(names):
                raise self._wrong(f"{what} is not sorted")
        if not 1 <= self.threshold <= len(ids):
            raise self._wrong(f"its threshold is {self.threshold}, which {len(ids)} key(s) cannot reach")
        if both := sorted(set(ids) & set(gone)):
            raise self._wrong(f"{both[0]} is both a key and revoked")
        if not 1 <= self.seq <= SEQ_LIMIT:
            raise self._wrong(f"its number is outside 1 to {SEQ_LIMIT}")
        if (self.prev is None) != (self.seq == 1):
            raise self._wrong("the first record, and no other, has no record before it")
        if self.seq == 1 and (self.recovery or self.revoked):
            raise self._wrong("a first record neither recovers nor revokes anything")
        if late := [item for item in self.revoked if not 0 <= item.refuse_after < self.seq]:
            raise self._wrong(f"{late[0].key.id} is to be refused only after record {late[0].refuse_after}")

    def _wrong(self, why: str) -> TrustError:
        return TrustError(f"owner record {self.seq} of {self.name} is refused: {why}", where=self.name)

    def encode(self) -> bytes:
        """Return the record as strict JSON: the payload of its envelope."""
        return dumps(
            {
                "name": self.name,
                "seq": self.seq,
                "prev": self.prev,
                "threshold": self.threshold,
                "keys": [key.id for key in self.keys],
                "revoked": [
                    {"key": item.key.id, "reason": item.reason, "refuse_after": item.refuse_after}
                    for item in self.revoked
                ],
                "recovery": self.recovery,
            }
        )

    @classmethod
    def parse(cls, data: bytes) -> OwnerRecord:
        """Parse the payload of an owner record.

        Raises:
            FormatError: it is malformed.
            TrustError: it breaks a rule, or one of its keys is weak.
        """
        reader = Reader(loads(data, what="the owner record", limit=RECORD_LIMIT), "owner record")
        try:
            name = parse_name(reader.line("name", 64))
        except UsageError as error:
            raise reader.fail("name", "is not a package name") from error
        revoked = []
        for item in reader.objects("revoked"):
            revoked.append(
                Revocation(
                    key=parse_key_id(item.line("key", 64)),
                    reason=item.line("reason", REASON_LIMIT),
                    refuse_after=item.integer("refuse_after", 0, SEQ_LIMIT),
                )
            )
            item.done()
        record = cls(
            name=name,
            seq=reader.integer("seq", 1, SEQ_LIMIT),
            prev=None if reader.any("prev") is None else _digest(reader, "prev"),
            threshold=reader.integer("threshold"),
            keys=tuple(map(parse_key_id, reader.lines("keys", 64))),
            revoked=tuple(revoked),
            recovery=reader.boolean("recovery"),
        )
        reader.done()
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRecord:
    """An owner record with its signatures, none of which is verified yet."""

    record: OwnerRecord
    """What was signed."""
    envelope: Envelope
    """The signatures over it."""

    @property
    def digest(self) -> Digest:
        """The digest of the signed bytes: what the next record and pins name."""
        return digest_bytes(self.envelope.payload)

    @classmethod
    def parse(cls, data: bytes) -> SignedRecord:
        """Parse the file of an owner record.

        Raises:
            FormatError: it is malformed.
            TrustError: it is about something else, breaks a rule, or names a weak key.
        """
        return cls.read(Reader(loads(data, what="the owner record", limit=RECORD_LIMIT), "owner record"))

    @classmethod
    def read(cls, reader: Reader) -> SignedRecord:
        """Parse an owner record that is part of a larger document; see parse()."""
        envelope = Envelope.read(reader, kind=RECORD_TYPE, most=SIGNATURES_LIMIT)
        return cls(record=OwnerRecord.parse(envelope.payload), envelope=envelope)

    def encode(self) -> bytes:
        """Return the file."""
        return self.envelope.encode()

    def signed_with(self, *keys: SecretKey) -> SignedRecord:
        """Return the same record with the signatures of `keys` added."""
        return SignedRecord(record=self.record, envelope=self.envelope.signed_with(*keys))

    def signers(self, trusted: Iterable[PublicKey]) -> frozenset[PublicKey]:
        """Return which of `trusted` have signed."""
        return self.envelope.signers(trusted)


def sign_record(record: OwnerRecord, *keys: SecretKey) -> SignedRecord:
    """Return `record`, signed with each of `keys`."""
    envelope = Envelope(kind=RECORD_TYPE, payload=record.encode(), signatures={})
    return SignedRecord(record=record, envelope=envelope.signed_with(*keys))


def first_record(name: PackageName, *keys: SecretKey, threshold: int = 1) -> SignedRecord:
    """Return the record with which the owners of `keys` claim the free name `name`."""
    owners = tuple(sorted((key.public for key in keys), key=lambda key: key.id))
    return sign_record(OwnerRecord(name=name, seq=1, prev=None, threshold=threshold, keys=owners), *keys)


def _digest(reader: Reader, name: str) -> Digest:
    try:
        return parse_digest(reader.line(name, 64))
    except ValueError as error:
        raise reader.fail(name, f"is {error}") from error
