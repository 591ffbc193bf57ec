"""visget's Ed25519 keys in the form that TUF metadata has, and back.

Invariant: a key's id is the SHA-256 of its canonical form, so that one key has one id; the ids of other keys are
refused by visget/registry/tuf_rules.py. The spec is docs/spec/registry.md, section "Metadata".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from visget.digest import digest_bytes
from visget.format.keys import PublicKey, SecretKey
from visget.format.strictjson import dumps

if TYPE_CHECKING:
    from securesystemslib.signer import Key, Signature  # type: ignore[attr-defined]


def key_object(key: PublicKey) -> dict[str, Any]:
    """Return `key` as metadata writes it."""
    return {"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": key.raw.hex()}}


def key_id(key: PublicKey) -> str:
    """Return the id that metadata has for `key`."""
    # Strict JSON of ASCII strings is canonical JSON.
    return str(digest_bytes(dumps(key_object(key))))


def tuf_key(key: PublicKey) -> Key:
    """Return `key` for python-tuf."""
    from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

    return SSlibKey.from_dict(key_id(key), key_object(key))


class KeySigner:
    """A secret key that signs metadata; python-tuf asks for no more than sign()."""

    def __init__(self, key: SecretKey) -> None:
        self._key = key
        self.public = key.public
        self.key_id = key_id(key.public)

    def sign(self, payload: bytes) -> Signature:
        """Return the signature of `payload`."""
        from securesystemslib.signer import Signature  # type: ignore[attr-defined]

        return Signature(self.key_id, self._key.sign(payload).hex())
