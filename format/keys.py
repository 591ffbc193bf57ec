"""Ed25519 keys: their names, and the weak ones that are refused.

Invariant: a PublicKey that exists is the canonical encoding of a point of the curve that is not of small order, so
no signature verifies under it but those its owner made. The spec is docs/spec/signature.md; how a secret key lies
on disk is visget/format/keyfile.py.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

from visget.errors import TrustError

if TYPE_CHECKING:
    from visget.format.package import Package

KeyId = NewType("KeyId", str)
"""``vk1`` and the public key in base32: the name of a key is the key."""

_PREFIX = "vk1"
_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
# The y coordinates of the eight points of small order. Under such a key one signature fits many messages, and
# OpenSSL, which cryptography uses, accepts it.
_SMALL_ORDER_Y = frozenset(
    (
        0,
        1,
        _P - 1,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    )
)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The public half of a key, 32 bytes.

    Raises:
        TrustError: the bytes are no key, or a weak one.
    """

    raw: bytes
    """The encoded point (RFC 8032, section 5.1.2)."""

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise TrustError(f"a public key has 32 bytes, not {len(self.raw)}")
        y = int.from_bytes(self.raw, "little") & (1 << 255) - 1
        if y >= _P:
            raise TrustError(f"the public key {self.raw.hex()} is refused: its encoding is not canonical")
        if y in _SMALL_ORDER_Y:
            raise TrustError(f"the public key {self.raw.hex()} is refused: it is a point of small order")
        # x^2 = (y^2 - 1) / (d y^2 + 1) must be a square, or there is no such point (RFC 8032, section 5.1.3).
        square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
        if pow(square, (_P - 1) // 2, _P) != 1:
            raise TrustError(f"the public key {self.raw.hex()} is refused: it is not a point of the curve")

    @property
    def id(self) -> KeyId:
        """The name of the key."""
        return KeyId(_PREFIX + base64.b32encode(self.raw).decode("ascii").rstrip("=").lower())

    def __str__(self) -> str:
        return self.id


def parse_key_id(text: str) -> PublicKey:
    """Return the key that `text` names.

    Raises:
        TrustError: it names none, or a weak one.
    """
    body = text.removeprefix(_PREFIX)
    if len(text) == 55 and len(body) == 52 and body == body.lower():
        try:
            key = PublicKey(base64.b32decode(body.upper() + "===="))
        except ValueError:
            key = None
        # The last character has four spare bits, which must be zero: one key has one name.
        if key is not None and key.id == text:
            return key
    raise TrustError(
        f"{text[:80]!r} is not the id of a key", hint="a key id is vk1 and 52 lower-case letters and digits 2 to 7"
    )


class SecretKey:
    """The secret half of a key; it never shows itself."""

    __slots__ = ("public", "seed")

    seed: bytes
    """The 32 bytes that are the key (RFC 8032, section 5.1.5); only for key files and other libraries' signers."""
    public: PublicKey
    """The public half."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self.seed = seed
        self.public = PublicKey(Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> SecretKey:
        """Make a new key from the system's randomness."""
        return cls(os.urandom(32))

    def __repr__(self) -> str:
        return f"<SecretKey of {self.public.id}>"

    def sign(self, message: bytes) -> bytes:
        """Return the signature of `message`, 64 bytes; the same message gives the same signature."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)

    def sign_statement(self, package: Package) -> bytes:
        """Return the envelope that states, signed by this key, that its owner publishes `package`."""
        from visget.format.signing import sign_package

        return sign_package(package, self)


def verify_raw(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Tell whether `signature` is one that the owner of `key` made for `message`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
    except InvalidSignature:
        return False
    return True
