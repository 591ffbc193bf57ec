"""What is timed of the cryptographic libraries: hashes, ciphers, signatures and key agreement."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.case import Case, amount
from bench.documents import mixed_data
from bench.inputs import Arrays
from bench.plain import Call, bound, call, callback
from visget.runtime.library import Library

_MIB = 1 << 20
_AES, _ENCRYPT, _SECP256R1 = 2, 1, 3


def sodium_cases(*, quick: bool) -> list[Case]:
    """Return the cases of libsodium."""
    size = _MIB // 8 if quick else _MIB
    message, short = mixed_data(size), mixed_data(_MIB)[:200]
    arrays = Arrays()
    out = arrays.empty(size + 64, np.uint8)
    public, secret, signature = (arrays.empty(count, np.uint8) for count in (32, 64, 64))

    def started(lib: Library, name: str, *args: Any) -> Call:
        call(lib, "sodium_init")
        call(lib, "crypto_sign_seed_keypair", public, secret, b"s" * 32)
        return bound(lib, name, *args)

    def verify(lib: Library) -> Call:
        started(lib, "crypto_sign_detached", signature, None, short, short.size, secret)()
        return bound(lib, "crypto_sign_verify_detached", signature, short, short.size, public)

    def case(title: str, room: Any, size: int, name: str, *args: Any) -> Case:
        return Case(title=title, amount=size, bind=lambda lib: started(lib, name, *args),
                    answer=lambda code: np.append(room, np.uint8(code & 255)))  # fmt: skip

    key, nonce = b"k" * 32, b"n" * 24
    return [
        case(f"secretbox, {amount(size)}", out[: size + 16], size, "crypto_secretbox_easy", out, message, size, nonce,
             key),
        case(f"ChaCha20-Poly1305, {amount(size)}", out[: size + 16], size,
             "crypto_aead_chacha20poly1305_ietf_encrypt", out, None, message, size, None, 0, None, nonce, key),
        case(f"BLAKE2b, {amount(size)}", out[:32], size, "crypto_generichash", out, 32, message, size, None, 0),
        case("Ed25519 sign, 200 bytes", signature, 0, "crypto_sign_detached", signature, None, short, short.size,
             secret),
        Case(title="Ed25519 verify, 200 bytes", bind=verify, answer=lambda code: code),
        case("X25519", out[:32], 0, "crypto_scalarmult_base", out, b"x" * 32),
    ]  # fmt: skip


def mbedtls_cases(*, quick: bool) -> list[Case]:
    """Return the cases of Mbed TLS."""
    size = _MIB // 8 if quick else _MIB
    message = mixed_data(size)
    arrays = Arrays()
    out, tag = arrays.empty(size, np.uint8), arrays.empty(64, np.uint8)
    context, group, one, two, point = (arrays.empty(4096, np.uint8) for _ in range(5))
    state = arrays.empty(1, np.uint64)

    def gcm(lib: Library) -> Call:
        call(lib, "mbedtls_gcm_init", context, result=None)
        call(lib, "mbedtls_gcm_setkey", context, _AES, b"k" * 16, 128)
        return bound(lib, "mbedtls_gcm_crypt_and_tag", context, _ENCRYPT, size, b"n" * 12, 12, b"", 0, message, out,
                     16, tag)  # fmt: skip

    def agreement(lib: Library) -> Call:
        state[0] = 1
        numbers = callback("steady_numbers")
        call(lib, "mbedtls_ecp_group_init", group, result=None)
        call(lib, "mbedtls_ecp_point_init", point, result=None)
        for number in (one, two):
            call(lib, "mbedtls_mpi_init", number, result=None)
        call(lib, "mbedtls_ecp_group_load", group, _SECP256R1)
        call(lib, "mbedtls_ecdh_gen_public", group, one, point, numbers, state)
        run = bound(lib, "mbedtls_ecdh_compute_shared", group, two, point, one, numbers, state)

        def again() -> Any:
            code = run()
            call(lib, "mbedtls_mpi_write_binary", two, out, 32)
            return code

        return again

    def forget(lib: Library) -> None:
        call(lib, "mbedtls_ecp_group_free", group, result=None)
        call(lib, "mbedtls_ecp_point_free", point, result=None)
        for number in (one, two):
            call(lib, "mbedtls_mpi_free", number, result=None)

    def hashed(name: str) -> Case:
        return Case(
            title=f"{name.upper()}, {amount(size)}", amount=size, answer=lambda code: np.append(tag, np.uint8(code)),
            bind=lambda lib: bound(lib, f"mbedtls_{name}_ret", message, size, tag, 0),
        )  # fmt: skip

    return [
        hashed("sha256"), hashed("sha512"),
        Case(title=f"AES-128-GCM, {amount(size)}", amount=size, bind=gcm, answer=lambda _: np.append(out, tag[:16]),
             release=lambda lib: call(lib, "mbedtls_gcm_free", context, result=None)),
        Case(title="ECDH, P-256", bind=agreement, answer=lambda code: np.append(out[:32], np.uint8(code & 255)),
             release=forget),
    ]  # fmt: skip
