"""Ed25519 keys: their names, their files, and the weak ones that are refused.

Invariant: a PublicKey that exists is the canonical encoding of a point of the curve that is not of small order, so
no signature verifies under it but those its owner made. The spec is docs/spec/signature.md.
"""

from __future__ import annotations

import base64
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NewType

from visget.errors import FormatError, TrustError, UsageError
from visget.files import translated, write_new
from visget.format.strictjson import Reader, dumps, loads

if TYPE_CHECKING:
    from visget.format.package import Package

KeyId = NewType("KeyId", str)
"""``vk1`` and the public key in base32: the name of a key is the key."""

KEY_FORMAT = "visget-key-1"
_PREFIX = "vk1"
_KEY_FILE_LIMIT = 4096
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

    __slots__ = ("_seed", "public")

    public: PublicKey
    """The public half."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._seed = seed
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

        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(message)

    def sign_statement(self, package: Package) -> bytes:
        """Return the envelope that states, signed by this key, that its owner publishes `package`."""
        from visget.format.signing import sign_package

        return sign_package(package, self)

    def encode(self) -> bytes:
        """Return the content of a key file."""
        return dumps(
            {
                "format": KEY_FORMAT,
                "kdf": "none",
                "algorithm": "ed25519",
                "secret": self._seed.hex(),
                "public": self.public.raw.hex(),
            }
        )

    @classmethod
    def parse(cls, data: bytes) -> SecretKey:
        """Parse the content of a key file.

        Raises:
            FormatError: it is no key file, or its two halves do not belong together.
        """
        reader = Reader(loads(data, what="the key file", limit=_KEY_FILE_LIMIT), "key")
        reader.choice("format", (KEY_FORMAT,))
        reader.choice("kdf", ("none",))
        reader.choice("algorithm", ("ed25519",))
        # The values stay out of the messages: a message ends in logs.
        secret, public = _hex32(reader, "secret"), _hex32(reader, "public")
        reader.done()
        key = cls(secret)
        if key.public.raw != public:
            raise FormatError("the key file is damaged: its secret and public halves do not belong together")
        return key


def _hex32(reader: Reader, name: str) -> bytes:
    text = reader.string(name)
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise reader.fail(name, "must be 32 bytes in lower-case hexadecimal")
    return bytes.fromhex(text)


def verify_raw(key: PublicKey, signature: bytes, message: bytes) -> bool:
    """Tell whether `signature` is one that the owner of `key` made for `message`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def write_key(path: Path, key: SecretKey) -> None:
    """Write `key` to the new file `path`, which only its owner can read.

    Raises:
        UsageError: the file exists.
        ResourceError, CacheError: it cannot be written.
    """
    with translated("write the key file", path):
        try:
            write_new(path, key.encode(), 0o600)
        except FileExistsError:
            raise UsageError(
                "there is a file of that name already; a key is never overwritten",
                where=str(path),
                hint="use that key, or choose another name",
            ) from None
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError("there is no such directory", where=str(path.parent)) from error


def read_key(path: Path) -> SecretKey:
    """Read a key file.

    Raises:
        UsageError: there is no such file.
        TrustError: others can read it, or it is not a plain file.
        FormatError: it is not a key file.
    """
    where = str(path)
    with translated("read the key file", path):
        try:
            # O_NONBLOCK: opening a pipe of that name must not wait for somebody to write into it.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError("there is no such key file", where=where, hint="make one with `visget key new`") from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise TrustError(
                "the key file is a symbolic link, which could be turned elsewhere",
                where=where,
                hint="name the file itself",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise TrustError("the key file is not a plain file", where=where)
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o077:
                raise TrustError(
                    f"the key file can be read or written by others (mode {stat.S_IMODE(status.st_mode):04o}), "
                    "so the key may not be yours alone",
                    where=where,
                    hint=f"chmod 600 {path}, or make a new key if somebody may have read it",
                )
            data = os.read(descriptor, _KEY_FILE_LIMIT + 1)
        finally:
            os.close(descriptor)
    return SecretKey.parse(data)
