"""A DSSE envelope: a payload of a stated type with signatures over both, read strictly and written in one way only.

Invariant: the payload that is handed out is the one that the signatures are checked against, the type is part of
what is signed, and signers are counted as distinct raw keys, never as key ids. The spec is docs/spec/signature.md.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from visget.errors import TrustError
from visget.format.keys import PublicKey, SecretKey, verify_raw
from visget.format.strictjson import Reader, dumps, loads


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A payload and who claims to have signed it."""

    kind: str
    """The payload's type."""
    payload: bytes
    """What is signed."""
    signatures: Mapping[str, bytes]
    """Key id and signature; nothing here is verified yet."""

    @classmethod
    def parse(cls, data: bytes, *, kind: str, what: str, limit: int, most: int) -> Envelope:
        """Parse an envelope whose payload has the type `kind`.

        Args:
            data: the file.
            kind: the only type that is accepted.
            what: what the file is called in messages.
            limit: the most bytes it may have.
            most: the most signatures it may have.

        Raises:
            FormatError: it is no envelope.
            TrustError: its payload has another type.
        """
        return cls.read(Reader(loads(data, what=what, limit=limit), what), kind=kind, most=most)

    @classmethod
    def read(cls, reader: Reader, *, kind: str, most: int) -> Envelope:
        """Parse an envelope that is part of a larger document; see parse()."""
        payload = _base64(reader, "payload")
        if (found := reader.string("payloadType")) != kind:
            raise TrustError(
                f"{reader.path} is about something else: its payload type is {found[:80]!r}, not {kind!r}"
            )
        signatures: dict[str, bytes] = {}
        for item in reader.objects("signatures"):
            key_id = item.line("keyid", 64)
            if key_id in signatures:
                raise item.fail("keyid", "is there a second time")
            signatures[key_id] = _base64(item, "sig")
            item.done()
            if len(signatures) > most:
                raise reader.fail("signatures", f"has more than {most} elements")
        reader.done()
        return cls(kind=kind, payload=payload, signatures=signatures)

    def as_object(self) -> dict[str, object]:
        """Return the envelope as a JSON object."""
        return {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "payloadType": self.kind,
            "signatures": [
                {"keyid": key_id, "sig": base64.b64encode(signature).decode("ascii")}
                for key_id, signature in self.signatures.items()
            ],
        }

    def encode(self) -> bytes:
        """Return the file."""
        return dumps(self.as_object())

    def signed_with(self, *keys: SecretKey) -> Envelope:
        """Return the same payload with the signatures of `keys` added."""
        message = self._message()
        return replace(self, signatures={**self.signatures, **{key.public.id: key.sign(message) for key in keys}})

    def joined(self, other: Envelope) -> Envelope:
        """Return the envelope with the signatures of `other` too, which must have the same payload."""
        if (self.kind, self.payload) != (other.kind, other.payload):
            raise ValueError("two envelopes with different payloads cannot be joined")
        more = {name: sig for name, sig in other.signatures.items() if name not in self.signatures}
        return replace(self, signatures={**self.signatures, **more})

    def only(self, keys: Iterable[PublicKey]) -> Envelope:
        """Return the envelope without the signatures of other keys than `keys`."""
        wanted = {key.id for key in keys}
        return replace(self, signatures={name: sig for name, sig in self.signatures.items() if name in wanted})

    def signers(self, trusted: Iterable[PublicKey]) -> frozenset[PublicKey]:
        """Return which of `trusted` have signed.

        A set of keys and not of ids: one key counts once, under whatever names it may come.
        """
        message = self._message()
        return frozenset(
            key
            for key in set(trusted)
            if key.id in self.signatures and verify_raw(key, self.signatures[key.id], message)
        )

    def _message(self) -> bytes:
        """Return what is signed: DSSE's pre-authentication encoding of the type and the payload."""
        from securesystemslib.dsse import Envelope as Dsse

        return bytes(Dsse(self.payload, self.kind, {}).pae())


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
