"""Key files: a secret key on disk, encrypted under a passphrase or as it is.

Invariants: what a file says about the work to do is checked before any of it is done; the public key and every
parameter are authenticated together with the secret; a file appears complete or not at all and is never
overwritten, except by the same key under another passphrase. The spec is docs/spec/key-file.md.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visget.errors import FormatError, ResourceError, TrustError, UsageError
from visget.files import atomic_write, fsync_dir, translated, write_new
from visget.format.keys import PublicKey, SecretKey
from visget.format.strictjson import Reader, dumps, loads

Unlock = Callable[[], bytes]
"""Gives the passphrase; called only for a file that is encrypted."""

KEY_FORMAT = "visget-key-1"
PASSPHRASE_LIMIT = 1024
"""The most bytes of a passphrase."""
_FILE_LIMIT = 4096
_CIPHER = "chacha20-poly1305"
# 128 MiB and half a second each time. A file may ask for up to eight times as much, but not for less: a smaller n
# would make guessing cheap, and no writer has ever used one.
_N_LOW, _N_HIGH, _R, _P_HIGH = 1 << 17, 1 << 20, 8, 4


class WrongPassphraseError(UsageError):
    """The passphrase does not open the file, or the file was changed: nobody can tell which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """A key file, parsed but not opened."""

    public: PublicKey
    """The public key that the file claims; proven only by opening it."""
    _secret: bytes = field(repr=False)
    _sealing: _Sealing | None

    @property
    def encrypted(self) -> bool:
        """Whether opening it takes a passphrase."""
        return self._sealing is not None

    def open(self, unlock: Unlock | None = None) -> SecretKey:
        """Return the key.

        Args:
            unlock: gives the passphrase; None when there is none to give.

        Raises:
            WrongPassphraseError: the passphrase is another one, or the file was changed.
            UsageError: the file is encrypted and there is no `unlock`.
            FormatError: its two halves do not belong together.
        """
        seed = self._secret
        if self._sealing is not None:
            if unlock is None:
                raise UsageError("the key file is encrypted, and no passphrase was given")
            seed = self._sealing.unseal(seed, unlock(), _head(self.public, self._sealing))
        key = SecretKey(seed)
        if key.public != self.public:
            raise FormatError("the key file is damaged: its secret and public halves do not belong together")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sealing:
    """How the secret is encrypted."""

    n: int
    p: int
    salt: bytes
    nonce: bytes

    def seal(self, seed: bytes, passphrase: bytes, head: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        return ChaCha20Poly1305(self._derive(passphrase)).encrypt(self.nonce, seed, head)

    def unseal(self, sealed: bytes, passphrase: bytes, head: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        try:
            return ChaCha20Poly1305(self._derive(passphrase)).decrypt(self.nonce, sealed, head)
        except InvalidTag:
            raise WrongPassphraseError(
                "the passphrase is wrong, or the key file was changed",
                hint="try again; without the right passphrase nobody can restore the key",
            ) from None

    def _derive(self, passphrase: bytes) -> bytes:
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

        try:
            return Scrypt(salt=self.salt, length=32, n=self.n, r=_R, p=self.p).derive(passphrase)
        except MemoryError as error:
            raise ResourceError(
                f"opening or sealing a key file takes {self.n * _R >> 13} MiB of memory, which cannot be had"
            ) from error


def passphrase_bytes(text: str) -> bytes:
    """Return the bytes that `text` stands for as a passphrase: UTF-8 in normal form C.

    Raises:
        UsageError: it is empty or too long, or holds a control character.
    """
    data = unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
    if not data:
        raise UsageError("the passphrase is empty")
    if len(data) > PASSPHRASE_LIMIT:
        raise UsageError(f"the passphrase has more than {PASSPHRASE_LIMIT} bytes")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise UsageError("the passphrase holds a control character or is not Unicode")
    return data


def encode_key(key: SecretKey, passphrase: bytes | None = None) -> bytes:
    """Return the content of a key file; without a passphrase the secret lies in it as it is.

    Raises:
        ResourceError: there is not enough memory.
    """
    if passphrase is None:
        return dumps(_fields(key.public, None) | {"secret": key.seed.hex()})
    sealing = _Sealing(n=_N_LOW, p=1, salt=os.urandom(16), nonce=os.urandom(12))
    return _sealed(key, passphrase, sealing)


def _sealed(key: SecretKey, passphrase: bytes, sealing: _Sealing) -> bytes:
    secret = sealing.seal(key.seed, passphrase, _head(key.public, sealing))
    return dumps(_fields(key.public, sealing) | {"secret": secret.hex()})


def parse_key(data: bytes) -> KeyFile:
    """Parse the content of a key file; nothing is decrypted.

    Raises:
        FormatError: it is no key file, or asks for absurd work.
        TrustError: the public key is a weak one.
    """
    reader = Reader(loads(data, what="the key file", limit=_FILE_LIMIT), "key")
    reader.choice("format", (KEY_FORMAT,))
    reader.choice("algorithm", ("ed25519",))
    sealing = None
    if reader.choice("kdf", ("none", "scrypt")) == "scrypt":
        reader.choice("cipher", (_CIPHER,))
        n = reader.integer("n", _N_LOW, _N_HIGH)
        if n & (n - 1):
            raise reader.fail("n", "is not a power of two")
        reader.integer("r", _R, _R)
        sealing = _Sealing(
            n=n, p=reader.integer("p", 1, _P_HIGH), salt=_hex(reader, "salt", 16), nonce=_hex(reader, "nonce", 12)
        )
    # The values stay out of the messages: a message ends in logs.
    secret, public = _hex(reader, "secret", 48 if sealing else 32), _hex(reader, "public", 32)
    reader.done()
    return KeyFile(public=PublicKey(public), _secret=secret, _sealing=sealing)


def _fields(public: PublicKey, sealing: _Sealing | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"format": KEY_FORMAT, "kdf": "none", "algorithm": "ed25519", "public": public.raw.hex()}
    if sealing is not None:
        fields |= {
            "kdf": "scrypt", "n": sealing.n, "r": _R, "p": sealing.p, "salt": sealing.salt.hex(),
            "cipher": _CIPHER, "nonce": sealing.nonce.hex(),
        }  # fmt: skip
    return fields


def _head(public: PublicKey, sealing: _Sealing) -> bytes:
    """Return what is authenticated with the secret: everything else in the file, written in the one way."""
    return dumps(_fields(public, sealing))


def _hex(reader: Reader, name: str, length: int) -> bytes:
    text = reader.string(name)
    if len(text) != 2 * length or not set(text) <= set("0123456789abcdef"):
        raise reader.fail(name, f"must be {length} bytes in lower-case hexadecimal")
    return bytes.fromhex(text)


# ---- files -----------------------------------------------------------------------------------------------


def write_key(path: Path, key: SecretKey, passphrase: bytes | None = None) -> None:
    """Write `key` to the new file `path`, which only its owner can read.

    Raises:
        UsageError: the file exists, or its directory does not.
        ResourceError, CacheError: it cannot be written; nothing was.
    """
    data = encode_key(key, passphrase)
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    with translated("write the key file", path):
        try:
            write_new(temporary, data, 0o600)
            # A link and not a rename: it appears complete, and never in the place of another file.
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            raise UsageError(
                "there is a file of that name already; a key is never overwritten",
                where=str(path),
                hint="use that key, or choose another name",
            ) from None
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError("there is no such directory", where=str(path.parent)) from error
        finally:
            if temporary.parent.is_dir():
                temporary.unlink(missing_ok=True)
        fsync_dir(path.parent)


def change_passphrase(path: Path, key: SecretKey, passphrase: bytes | None) -> None:
    """Replace the key file `path`, which must hold `key`, by one under another passphrase.

    Raises:
        UsageError: the file holds another key by now, or is gone.
        ResourceError, CacheError: it cannot be written; the old file stays.
    """
    if read_key_file(path).public != key.public:
        raise UsageError("the file holds another key by now", where=str(path))
    with translated("write the key file", path):
        atomic_write(path, encode_key(key, passphrase), 0o600)


def read_key(path: Path, unlock: Unlock | None = None) -> SecretKey:
    """Read the key in a key file.

    Args:
        path: the file.
        unlock: gives the passphrase; called only when the file is encrypted and well-formed.

    Raises:
        UsageError: there is no such file, it is encrypted and there is no `unlock`, or the passphrase is wrong.
        TrustError: others can read it, or it is not a plain file.
        FormatError: it is not a key file.
    """
    found = read_key_file(path)
    try:
        return found.open(unlock)
    except (UsageError, FormatError) as error:
        error.where = error.where or str(path)
        raise


def read_key_file(path: Path) -> KeyFile:
    """Read a key file without opening it: whose it is, and whether it takes a passphrase.

    Raises:
        UsageError: there is no such file.
        TrustError: others can read it, it is not a plain file, or its public key is a weak one.
        FormatError: it is not a key file.
    """
    data = read_private(path, what="the key file", limit=_FILE_LIMIT, missing="make one with `visget key new`")
    try:
        return parse_key(data)
    except (FormatError, TrustError) as error:
        error.where = str(path)
        raise


def read_private(path: Path, *, what: str, limit: int, missing: str | None = None) -> bytes:
    """Return at most `limit` + 1 bytes of a file that holds a secret.

    Args:
        path: the file.
        what: what it is called in messages.
        limit: the most bytes that are of use.
        missing: what to do when there is no such file.

    Raises:
        UsageError: there is no such file.
        TrustError: somebody else can read it, or it is not a plain file.
    """
    where = str(path)
    with translated(f"read {what}", path):
        try:
            # O_NONBLOCK: opening a pipe of that name must not wait for somebody to write into it.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            noun = what.removeprefix("the ")
            raise UsageError(f"there is no such {noun}", where=where, hint=missing) from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise TrustError(
                f"{what} is a symbolic link, which could be turned elsewhere",
                where=where,
                hint="name the file itself",
            ) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise TrustError(f"{what} is not a plain file", where=where)
            if status.st_uid not in (os.geteuid(), 0):
                raise TrustError(
                    f"{what} belongs to somebody else (user id {status.st_uid}), who can read and change it",
                    where=where,
                    hint="use a file of your own",
                )
            if status.st_mode & 0o077:
                raise TrustError(
                    f"{what} can be read or written by others (mode {stat.S_IMODE(status.st_mode):04o}), "
                    "so what is in it may not be yours alone",
                    where=where,
                    hint=f"chmod 600 {path}, or make a new one if somebody may have read it",
                )
            return os.read(descriptor, limit + 1)
        finally:
            os.close(descriptor)
