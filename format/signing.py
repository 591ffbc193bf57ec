"""Who published a package: a DSSE envelope around an in-toto statement about the digest of the whole ``.vis`` file.

Invariant: the bytes that are parsed are the bytes that were verified, and a threshold counts distinct raw keys. The
spec is docs/spec/signature.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.digest import Digest, parse_digest
from visget.errors import TrustError
from visget.format.dsse import Envelope
from visget.format.keyfile import read_key, write_key
from visget.format.keys import KeyId, PublicKey, SecretKey, parse_key_id
from visget.format.strictjson import Reader, dumps, loads

if TYPE_CHECKING:
    from visget.format.package import Package

__all__ = [
    "KeyId",
    "PublicKey",
    "SecretKey",
    "Statement",
    "parse_key_id",
    "read_key",
    "sign_package",
    "verify_envelope",
    "write_key",
]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://visget.dev/attestation/publish/v1"
ENVELOPE_LIMIT = 64 << 10
SIGNATURE_LIMIT = 16
"""The most signatures of one envelope, so that checking one costs little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What the signers state."""

    subject: str
    """The file name, ``NAME-VERSION.vis``."""
    digest: Digest
    """The digest of the whole file."""
    name: str
    """The package's name."""
    version: str
    """Its version."""
    profile: str
    """Its VIS profile."""
    epoch: int
    """Its bitcode epoch."""

    @classmethod
    def of(cls, package: Package) -> Statement:
        """Return the statement about `package`."""
        manifest = package.manifest
        return cls(
            subject=f"{manifest.name}-{manifest.version}.vis",
            digest=package.digest,
            name=manifest.name,
            version=str(manifest.version),
            profile=manifest.profile,
            epoch=manifest.epoch,
        )

    def encode(self) -> bytes:
        """Return the statement as strict JSON: the payload of the envelope."""
        return dumps(
            {
                "_type": STATEMENT_TYPE,
                "subject": [{"name": self.subject, "digest": {"sha256": self.digest}}],
                "predicateType": PREDICATE_TYPE,
                "predicate": {
                    "name": self.name,
                    "version": self.version,
                    "profile": self.profile,
                    "epoch": self.epoch,
                },
            }
        )

    @classmethod
    def parse(cls, data: bytes) -> Statement:
        """Parse a payload.

        Raises:
            FormatError: it is no statement about a package.
        """
        reader = Reader(loads(data, what="the signed statement", limit=ENVELOPE_LIMIT), "statement")
        reader.choice("_type", (STATEMENT_TYPE,))
        reader.choice("predicateType", (PREDICATE_TYPE,))
        subjects = list(reader.objects("subject"))
        if len(subjects) != 1:
            raise reader.fail("subject", f"must have one element, not {len(subjects)}")
        digests = subjects[0].object("digest")
        predicate = reader.object("predicate")
        try:
            digest = parse_digest(digests.line("sha256"))
        except ValueError as error:
            raise digests.fail("sha256", f"is {error}") from error
        statement = cls(
            subject=subjects[0].line("name", 255),
            digest=digest,
            name=predicate.line("name", 64),
            version=predicate.line("version", 128),
            profile=predicate.line("profile", 16),
            epoch=predicate.integer("epoch", 1, 999),
        )
        for part in (digests, subjects[0], predicate, reader):
            part.done()
        return statement


def sign_package(package: Package, *keys: SecretKey) -> bytes:
    """Return the envelope that states, signed by each of `keys`, that they publish `package`."""
    envelope = Envelope(kind=PAYLOAD_TYPE, payload=Statement.of(package).encode(), signatures={})
    return envelope.signed_with(*keys).encode()


def join_signatures(one: bytes, other: bytes) -> bytes:
    """Return the envelope with the signatures of both.

    Raises:
        FormatError: one is no envelope.
        TrustError: they are about different packages.
    """
    first, second = parse_envelope(one), parse_envelope(other)
    if first.payload != second.payload:
        raise TrustError(
            "the two signature files are about different packages",
            hint="remove the old .vis.dsse file and collect the signatures again",
        )
    return first.joined(second).encode()


def parse_envelope(data: bytes) -> Envelope:
    """Parse a signature file; nothing in it is verified.

    Raises:
        FormatError: it is no envelope.
        TrustError: it is about something else than a package.
    """
    return Envelope.parse(
        data, kind=PAYLOAD_TYPE, what="the signature file", limit=ENVELOPE_LIMIT, most=SIGNATURE_LIMIT
    )


def verify_envelope(
    envelope: bytes, trusted: Iterable[PublicKey], *, threshold: int = 1
) -> tuple[Statement, tuple[KeyId, ...]]:
    """Return what `envelope` states and who of `trusted` signed it.

    Raises:
        FormatError: it is no envelope.
        TrustError: fewer than `threshold` of the trusted keys signed it.
    """
    if threshold < 1:
        raise ValueError("a threshold is at least 1")
    parsed = parse_envelope(envelope)
    signatures = parsed.signatures
    signers = parsed.signers(trusted)
    if len(signers) < threshold:
        found = ", ".join(sorted(signatures)) or "nobody"
        raise TrustError(
            f"the package is not signed by {'a trusted key' if threshold == 1 else f'{threshold} trusted keys'}; "
            f"its signature file names {found[:400]}",
            details={"signed_by": sorted(signatures), "valid": sorted(key.id for key in signers)},
        )
    return Statement.parse(parsed.payload), tuple(sorted(key.id for key in signers))


def envelope_key_ids(envelope: bytes) -> tuple[str, ...]:
    """Return the key ids that `envelope` names, without believing them.

    Raises:
        FormatError: it is no envelope.
    """
    reader = Reader(loads(envelope, what="the signature file", limit=ENVELOPE_LIMIT), "envelope")
    return tuple(item.line("keyid", 64) for item in reader.objects("signatures"))
