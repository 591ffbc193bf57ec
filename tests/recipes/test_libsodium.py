"""libsodium against hashlib, the Python package cryptography and the distribution's build, on every machine."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from e2ekit import noise
from machines import Machine

RECIPE = "libsodium"
DISTRIBUTION = ("libsodium.so.23",)
MESSAGES = [b"", b"x", noise(1000, 1), noise(70_001, 2)]


@pytest.fixture(autouse=True)
def started(machine: Machine) -> None:
    assert machine.sodium_init() >= 0


def test_hashes(machine: Machine) -> None:
    out = machine.buffer(64)
    for message in MESSAGES:
        machine.crypto_hash_sha256(out, message, len(message))
        assert out.read(32) == hashlib.sha256(message).digest()
        machine.crypto_hash_sha512(out, message, len(message))
        assert out.read() == hashlib.sha512(message).digest()
        machine.crypto_generichash(out, 64, message, len(message), b"key" * 8, 24)
        assert out.read() == hashlib.blake2b(message, key=b"key" * 8).digest()
        machine.crypto_auth_hmacsha256(out, message, len(message), b"k" * 32)
        assert out.read(32) == hmac.digest(b"k" * 32, message, "sha256")


def test_signatures(machine: Machine) -> None:
    public, secret, signature = machine.buffer(32), machine.buffer(64), machine.buffer(64)
    machine.crypto_sign_seed_keypair(public, secret, b"s" * 32)
    theirs = Ed25519PrivateKey.from_private_bytes(b"s" * 32)
    assert public.read() == theirs.public_key().public_bytes_raw()
    for message in MESSAGES:
        assert machine.crypto_sign_detached(signature, None, message, len(message), secret) == 0
        assert signature.read() == theirs.sign(message)
        Ed25519PublicKey.from_public_bytes(public.read()).verify(signature.read(), message)
        assert machine.crypto_sign_verify_detached(signature, message, len(message), public) == 0
        assert machine.crypto_sign_verify_detached(signature, message + b"!", len(message) + 1, public) == -1
        broken = bytearray(signature.read())
        broken[40] ^= 1
        assert machine.crypto_sign_verify_detached(bytes(broken), message, len(message), public) == -1
        with pytest.raises(InvalidSignature):
            theirs.public_key().verify(bytes(broken), message)


def test_key_agreement(machine: Machine) -> None:
    out = machine.buffer(32)
    secret = noise(32, 3)
    theirs = X25519PrivateKey.from_private_bytes(secret)
    machine.crypto_scalarmult_base(out, secret)
    assert out.read() == theirs.public_key().public_bytes_raw()
    other = X25519PrivateKey.from_private_bytes(noise(32, 4)).public_key().public_bytes_raw()
    assert machine.crypto_scalarmult(out, secret, other) == 0
    assert out.read() == theirs.exchange(X25519PublicKey.from_public_bytes(other))
    assert machine.crypto_scalarmult(out, secret, bytes(32)) == -1


def test_authenticated_encryption(machine: Machine) -> None:
    key, nonce = b"k" * 32, b"n" * 12
    for message in MESSAGES:
        out, size = machine.buffer(len(message) + 16), machine.buffer(8)
        machine.crypto_aead_chacha20poly1305_ietf_encrypt(
            out, size, message, len(message), b"more", 4, None, nonce, key
        )
        assert out.read() == ChaCha20Poly1305(key).encrypt(nonce, message, b"more")
        back = machine.buffer(len(message))
        sealed = out.read()
        assert machine.crypto_aead_chacha20poly1305_ietf_decrypt(
            back, size, None, sealed, len(sealed), b"more", 4, nonce, key
        ) == 0  # fmt: skip
        assert back.read() == message
        assert machine.crypto_aead_chacha20poly1305_ietf_decrypt(
            back, size, None, sealed, len(sealed), b"less", 4, nonce, key
        ) == -1  # fmt: skip


def test_boxes(machine: Machine, theirs: Machine) -> None:
    theirs.sodium_init()
    key, nonce, message = b"k" * 32, b"n" * 24, MESSAGES[2]
    sealed = [m.buffer(len(message) + 16) for m in (machine, theirs)]
    for m, out in zip((machine, theirs), sealed, strict=True):
        assert m.crypto_secretbox_easy(out, message, len(message), nonce, key) == 0
    assert sealed[0].read() == sealed[1].read()
    back = machine.buffer(len(message))
    assert machine.crypto_secretbox_open_easy(back, sealed[0], sealed[0].size, nonce, key) == 0
    assert back.read() == message
    sealed[0].write(b"\xff", 30)
    assert machine.crypto_secretbox_open_easy(back, sealed[0], sealed[0].size, nonce, key) == -1


@pytest.mark.parametrize("kind", ["argon2id", "argon2i", "scryptsalsa208sha256"])
def test_password_hashing(machine: Machine, theirs: Machine, kind: str) -> None:
    theirs.sodium_init()
    results = []
    for m in (machine, theirs):
        out, salt = m.buffer(32), b"s" * 32
        function = getattr(m, f"crypto_pwhash_{kind}")
        extra = [getattr(m, f"crypto_pwhash_{kind}_ALG_{kind.upper()}13")] if kind != "scryptsalsa208sha256" else []
        assert function(out, 32, b"password", 8, salt, 3, 1 << 20 if not extra else 1 << 16, *extra) in (0, -1)
        results.append(out.read())
    assert results[0] == results[1]


def test_randomness(machine: Machine) -> None:
    one, two = machine.buffer(64), machine.buffer(64)
    machine.randombytes_buf(one, 64)
    machine.randombytes_buf(two, 64)
    assert one.read() != two.read()
    assert 0 <= machine.randombytes_uniform(10) < 10
    machine.randombytes_buf_deterministic(one, 64, b"s" * 32)
    machine.randombytes_buf_deterministic(two, 64, b"s" * 32)
    assert one.read() == two.read()


def test_guarded_memory(machine: Machine) -> None:
    """Pages that may not be touched lie around it; the functions that manage them go through mprotect and mlock."""
    place = machine.sodium_malloc(100)
    assert place
    machine.write(place, b"x" * 100)
    assert machine.sodium_mprotect_readonly(place) == 0
    assert machine.read(place, 100) == b"x" * 100
    assert machine.sodium_mprotect_readwrite(place) == 0
    machine.sodium_memzero(place, 100)
    assert machine.read(place, 100) == bytes(100)
    machine.sodium_free(place)


def test_encodings(machine: Machine) -> None:
    out, size = machine.buffer(100), machine.buffer(8)
    machine.sodium_bin2base64(out, 100, b"\xff\xfe\x00abc", 6, machine.sodium_base64_VARIANT_ORIGINAL)
    assert out.read(8) == b"//4AYWJj"
    assert machine.sodium_hex2bin(out, 100, b"de:ad:be:ef", 11, b":", size, None) == 0
    assert out.read(size.u64()) == b"\xde\xad\xbe\xef"
    assert machine.sodium_hex2bin(out, 2, b"deadbeef", 8, None, size, None) == -1
