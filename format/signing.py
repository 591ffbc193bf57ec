"""Who published a package: a DSSE envelope around an in-toto statement about the digest of the whole ``.vis`` file.

Invariant: the bytes that are parsed are the bytes that were verified, and a threshold counts distinct raw keys. The
spec is docs/spec/signature.md.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from visget.digest import Digest, parse_digest
from visget.errors import TrustError
from visget.format.keyfile import read_key, write_key
from visget.format.keys import KeyId, PublicKey, SecretKey, parse_key_id, verify_raw
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
    payload = Statement.of(package).encode()
    message = _pae(payload)
    return dumps(
        {
            "payload": base64.b64encode(payload).decode("ascii"),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {"keyid": key.public.id, "sig": base64.b64encode(key.sign(message)).decode("ascii")} for key in keys
            ],
        }
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
    reader = Reader(loads(envelope, what="the signature file", limit=ENVELOPE_LIMIT), "envelope")
    payload = _base64(reader, "payload")
    if (kind := reader.string("payloadType")) != PAYLOAD_TYPE:
        raise TrustError(f"the signature is about something else: its payload type is {kind[:80]!r}")
    signatures: dict[str, bytes] = {}
    for item in reader.objects("signatures"):
        key_id = item.line("keyid", 64)
        if key_id in signatures:
            raise item.fail("keyid", "is there a second time")
        signatures[key_id] = _base64(item, "sig")
        item.done()
        if len(signatures) > SIGNATURE_LIMIT:
            raise reader.fail("signatures", f"has more than {SIGNATURE_LIMIT} elements")
    reader.done()
    message = _pae(payload)
    # A set of keys and not of ids: one key counts once, under whatever names it may come.
    signers = {
        key for key in set(trusted) if key.id in signatures and verify_raw(key, signatures[key.id], message)
    }
    if len(signers) < threshold:
        found = ", ".join(sorted(signatures)) or "nobody"
        raise TrustError(
            f"the package is not signed by {'a trusted key' if threshold == 1 else f'{threshold} trusted keys'}; "
            f"its signature file names {found[:400]}",
            details={"signed_by": sorted(signatures), "valid": sorted(key.id for key in signers)},
        )
    return Statement.parse(payload), tuple(sorted(key.id for key in signers))


def envelope_key_ids(envelope: bytes) -> tuple[str, ...]:
    """Return the key ids that `envelope` names, without believing them.

    Raises:
        FormatError: it is no envelope.
    """
    reader = Reader(loads(envelope, what="the signature file", limit=ENVELOPE_LIMIT), "envelope")
    return tuple(item.line("keyid", 64) for item in reader.objects("signatures"))


def _base64(reader: Reader, name: str) -> bytes:
    text = reader.string(name)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise reader.fail(name, "is not base64") from error
    # Spare bits and padding must be as an encoder writes them: one value has one text.
    if base64.b64encode(data).decode("ascii") != text:
        raise reader.fail(name, "is not canonical base64")
    return data


def _pae(payload: bytes) -> bytes:
    """Return what is signed: DSSE's pre-authentication encoding of the type and the payload."""
    from securesystemslib.dsse import Envelope

    return Envelope(payload, PAYLOAD_TYPE, {}).pae()


