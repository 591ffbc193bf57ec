"""Write key-file.json, the test vectors of docs/spec/key-file.md: run this file.

The encryption is done here by the words of the spec, with hashlib's scrypt, and not with visget's own code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

HERE = Path(__file__).parent
# RFC 8032, section 7.1, test 1.
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
OTHER = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"  # that of test 2
PLAIN = {"format": "visget-key-1", "algorithm": "ed25519", "kdf": "none", "public": PUBLIC, "secret": SEED}


def compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sealed(passphrase: bytes, *, seed: str = SEED, **changed: Any) -> dict[str, Any]:
    head: dict[str, Any] = {
        "format": "visget-key-1", "algorithm": "ed25519", "kdf": "scrypt", "n": 1 << 17, "r": 8, "p": 1,
        "salt": bytes(range(16, 32)).hex(), "cipher": "chacha20-poly1305", "nonce": bytes(range(12)).hex(),
        "public": PUBLIC,
    }  # fmt: skip
    head |= changed
    key = hashlib.scrypt(
        passphrase, salt=bytes.fromhex(head["salt"]), n=head["n"], r=head["r"], p=head["p"], maxmem=1 << 30, dklen=32
    )
    cipher = ChaCha20Poly1305(key)
    return head | {
        "secret": cipher.encrypt(bytes.fromhex(head["nonce"]), bytes.fromhex(seed), compact(head).encode()).hex()
    }


def files() -> Iterator[tuple[str, str, str | None, str, str]]:
    """Name, text, passphrase, and the seed or the family of the error."""
    good = sealed(b"correct horse")
    yield "not encrypted", compact(PLAIN), None, "seed", SEED
    yield "not encrypted, indented", json.dumps(PLAIN, indent=2), None, "seed", SEED
    yield "encrypted", compact(good), "correct horse", "seed", SEED
    yield "encrypted, indented, in another order", json.dumps(dict(reversed(good.items())), indent=1), \
        "correct horse", "seed", SEED  # fmt: skip
    composed = "pässwörd ☂"
    yield "a passphrase in normal form C", compact(sealed(composed.encode())), composed, "seed", SEED
    yield "the same passphrase, decomposed", compact(sealed(composed.encode())), \
        "pa\u0308sswo\u0308rd ☂", "seed", SEED  # fmt: skip
    yield "p = 4", compact(sealed(b"correct horse", p=4)), "correct horse", "seed", SEED
    yield "another passphrase", compact(good), "correct house", "error", "UsageError"
    yield "encrypted, no passphrase given", compact(good), None, "error", "UsageError"
    yield "another public key", compact(good | {"public": OTHER}), "correct horse", "error", "UsageError"
    yield "another seed, well encrypted", compact(sealed(b"correct horse", seed="00" * 32)), \
        "correct horse", "error", "FormatError"  # fmt: skip
    yield "n was lowered by its author", compact(sealed(b"correct horse", n=1 << 14)), \
        "correct horse", "error", "FormatError"  # fmt: skip
    for name, changed in (
        ("n = 2^40", {"n": 1 << 40}), ("n = 2^21", {"n": 1 << 21}), ("n = 2^17 + 1", {"n": (1 << 17) + 1}),
        ("r = 1", {"r": 1}), ("p = 5", {"p": 5}), ("p = 0", {"p": 0}), ("kdf = none", {"kdf": "none"}),
        ("unknown kdf", {"kdf": "pbkdf2"}), ("unknown cipher", {"cipher": "aes-256-gcm"}),
        ("short salt", {"salt": "00" * 15}), ("unknown key", {"note": ""}), ("upper case", {"salt": "0A" * 16}),
    ):  # fmt: skip
        yield name, compact(good | changed), "correct horse", "error", "FormatError"
    yield "weak public key", compact(good | {"public": "01" + "00" * 31}), "correct horse", "error", "TrustError"
    yield "halves that do not belong together", compact(PLAIN | {"secret": "00" * 32}), None, "error", "FormatError"
    yield "truncated", compact(good)[:-1], "correct horse", "error", "FormatError"
    yield "a key twice", compact(good)[:-1] + ',"n":131072}', "correct horse", "error", "FormatError"


def table() -> dict[str, object]:
    """All vectors."""
    return {
        "files": [
            {"name": name, "text": text, "passphrase": passphrase, outcome: value}
            for name, text, passphrase, outcome, value in files()
        ]
    }


if __name__ == "__main__":
    (HERE / "key-file.json").write_text(json.dumps(table(), indent=1) + "\n")
