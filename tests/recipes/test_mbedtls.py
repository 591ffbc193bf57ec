"""Mbed TLS against hashlib and the Python package cryptography, and upstream's self tests, on every machine."""

from __future__ import annotations

import datetime
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.x509.oid import NameOID
from e2ekit import noise
from machines import Machine, Memory

RECIPE = "mbedtls"
TESTS = [
    "aes", "camellia", "ccm", "chacha20", "chachapoly", "ctr_drbg", "des", "dhm", "ecp",
    "gcm", "hmac_drbg", "md5", "mpi", "pkcs5", "poly1305", "ripemd160", "rsa", "sha1", "sha256", "sha512",
    "x509",
]  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_self_tests(machine: Machine, name: str) -> None:
    assert getattr(machine, f"mbedtls_{name}_self_test")(0) == 0


def test_hashes_and_hmac(machine: Machine) -> None:
    out = machine.buffer(64)
    for data in (b"", b"abc", noise(10_001, 1)):
        for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512"):
            info = machine.mbedtls_md_info_from_string(name.upper().encode())
            assert machine.mbedtls_md(info, data, len(data), out) == 0
            assert out.read(machine.mbedtls_md_get_size(info)) == hashlib.new(name, data).digest()


@pytest.mark.parametrize("bits", [128, 192, 256])
def test_aes_in_pieces(machine: Machine, bits: int) -> None:
    key, counter, data = noise(bits // 8, 2), noise(16, 3), noise(5000, 4)
    context = machine.struct("mbedtls_aes_context")
    machine.mbedtls_aes_init(context)
    assert machine.mbedtls_aes_setkey_enc(context, key, bits) == 0
    offset, nonce, stream = machine.buffer(8), machine.buffer(counter), machine.buffer(16)
    found = b""
    for start in range(0, len(data), 777):
        piece = data[start : start + 777]
        out = machine.buffer(len(piece))
        assert machine.mbedtls_aes_crypt_ctr(context, len(piece), offset, nonce, stream, piece, out) == 0
        found += out.read()
    encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
    assert found == encryptor.update(data) + encryptor.finalize()


def random_source(machine: Machine) -> tuple[int, Memory]:
    """The library's own generator, seeded from the system's entropy."""
    entropy, generator = machine.struct("mbedtls_entropy_context"), machine.struct("mbedtls_ctr_drbg_context")
    machine.mbedtls_entropy_init(entropy)
    machine.mbedtls_ctr_drbg_init(generator)
    code = machine.mbedtls_ctr_drbg_seed(generator, machine.address_of("mbedtls_entropy_func"), entropy, b"test", 4)
    assert code == 0
    return machine.address_of("mbedtls_ctr_drbg_random"), generator


def parsed_key(machine: Machine, key: object) -> Memory:
    pem = key.private_bytes(  # type: ignore[attr-defined]
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = machine.struct("mbedtls_pk_context")
    machine.mbedtls_pk_init(context)
    assert machine.mbedtls_pk_parse_key(context, pem + b"\0", len(pem) + 1, None, 0) == 0
    return context


@pytest.mark.parametrize("kind", ["rsa", "secp256r1", "secp384r1"])
def test_signatures_both_ways(machine: Machine, kind: str) -> None:
    random, generator = random_source(machine)
    digest = hashlib.sha256(b"message").digest()
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(
        {"secp256r1": ec.SECP256R1, "secp384r1": ec.SECP384R1}[kind]()
    )  # fmt: skip
    context = parsed_key(machine, key)
    out, size = machine.buffer(512), machine.buffer(8)
    sha256 = machine.MBEDTLS_MD_SHA256
    assert machine.mbedtls_pk_sign(context, sha256, digest, 32, out, size, random, generator) == 0
    signature = out.read(size.u64())
    if isinstance(key, rsa.RSAPrivateKey):
        key.public_key().verify(signature, digest, padding.PKCS1v15(), Prehashed(hashes.SHA256()))
        theirs = key.sign(digest, padding.PKCS1v15(), Prehashed(hashes.SHA256()))
        assert theirs == signature
    else:
        key.public_key().verify(signature, digest, ec.ECDSA(Prehashed(hashes.SHA256())))
        theirs = key.sign(digest, ec.ECDSA(Prehashed(hashes.SHA256())))
    assert machine.mbedtls_pk_verify(context, sha256, digest, 32, theirs, len(theirs)) == 0
    broken = theirs[:-1] + bytes([theirs[-1] ^ 1])
    assert machine.mbedtls_pk_verify(context, sha256, digest, 32, broken, len(broken)) != 0


def test_certificates(machine: Machine) -> None:
    """A chain that cryptography makes; time, names and signatures are checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)

    def certificate(days: int) -> bytes:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "visget.test")])
        made = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(7).not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )  # fmt: skip
        return made.public_bytes(serialization.Encoding.PEM)

    for days, host, wanted in (
        (5, b"visget.test", 0),
        (-5, b"visget.test", machine.MBEDTLS_X509_BADCERT_EXPIRED),
        (5, b"other.test", machine.MBEDTLS_X509_BADCERT_CN_MISMATCH),
    ):
        chain, flags = machine.struct("mbedtls_x509_crt"), machine.buffer(4)
        machine.mbedtls_x509_crt_init(chain)
        pem = certificate(days)
        assert machine.mbedtls_x509_crt_parse(chain, pem + b"\0", len(pem) + 1) == 0
        machine.mbedtls_x509_crt_verify(chain, chain, None, host, flags, None, None)
        assert flags.u32() == wanted
        text = machine.buffer(2000)
        assert machine.mbedtls_x509_crt_info(text, 2000, b"", chain) > 0
        assert b"CN=visget.test" in machine.text(text.address)
        machine.mbedtls_x509_crt_free(chain)
    broken = machine.struct("mbedtls_x509_crt")
    machine.mbedtls_x509_crt_init(broken)
    code = machine.mbedtls_x509_crt_parse(broken, b"-----BEGIN nothing\0", 19)
    assert code < 0
    words = machine.buffer(200)
    machine.mbedtls_strerror(code, words, 200)
    assert b"X509" in words.read() or b"PEM" in words.read()
