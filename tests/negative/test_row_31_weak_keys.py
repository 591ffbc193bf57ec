"""Row 31: the eight points of small order, in every encoding, are refused wherever a public key comes from.

Under such a key one signature fits many messages, and OpenSSL verifies it: the first test shows the danger.
"""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from packagekit import key, package

from visget.errors import RegistryError, TrustError, VisgetError
from visget.format.keyfile import encode_key, parse_key
from visget.format.keys import PublicKey, parse_key_id, verify_raw
from visget.format.package import verify_package
from visget.format.signing import Statement, sign_package
from visget.registry.protocol import Release, Releases, encode_releases, parse_releases

P = 2**255 - 19
ORDER_8 = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
)
_Y = (0, 1, P - 1, P, P + 1, *(int.from_bytes(bytes.fromhex(text), "little") for text in ORDER_8))
# The torsion points, the second encodings of those with x = 0, and those with y >= p.
WEAK = [(y | sign << 255).to_bytes(32, "little") for y in _Y for sign in (0, 1)]
# What lies outside the curve's field altogether, and the last encoding there is.
NON_CANONICAL = [(y | sign << 255).to_bytes(32, "little") for y in range(P + 2, 2**255) for sign in (0, 1)]


def weak_id(raw: bytes) -> str:
    return "vk1" + base64.b32encode(raw).decode().rstrip("=").lower()


def test_row_31_the_danger_is_real():
    identity = bytes([1]) + bytes(31)
    forged = identity + bytes(32)
    for raw in (identity, (1 | 1 << 255).to_bytes(32, "little"), (P + 1).to_bytes(32, "little")):
        Ed25519PublicKey.from_public_bytes(raw).verify(forged, b"any message")


@pytest.mark.parametrize("raw", WEAK + NON_CANONICAL, ids=lambda raw: raw.hex()[:8] + raw.hex()[-4:])
def test_row_31_no_such_public_key_exists(raw):
    with pytest.raises(TrustError, match="refused"):
        PublicKey(raw)


@pytest.mark.parametrize("raw", WEAK, ids=lambda raw: raw.hex()[:8] + raw.hex()[-4:])
class TestRow31:
    def test_row_31_as_an_id(self, raw):
        """`--trust ID`, pins, lock files and owner records name keys by their ids."""
        with pytest.raises(TrustError):
            parse_key_id(weak_id(raw))

    def test_row_31_as_owner_in_an_index(self, raw):
        found = package()
        envelope = sign_package(found, key())
        release = Release.of(
            found.manifest, vis=found.digest, size=len(found.data), dsse=found.digest, dsse_size=len(envelope)
        )
        index = json.loads(encode_releases(Releases(name="xxhash", owners=(key().public,), versions=(release,))))
        index["owners"] = [weak_id(raw)]
        with pytest.raises((TrustError, RegistryError)):
            parse_releases(json.dumps(index).encode(), "xxhash", "here")

    def test_row_31_as_signer_of_a_package(self, raw):
        found = package()
        payload = base64.b64encode(Statement.of(found).encode()).decode()
        forged = base64.b64encode(bytes([1]) + bytes(63)).decode()
        envelope = {
            "payload": payload,
            "payloadType": "application/vnd.in-toto+json",
            "signatures": [{"keyid": weak_id(raw), "sig": forged}],
        }
        with pytest.raises(TrustError):
            verify_package(found, json.dumps(envelope).encode(), [key().public])

    def test_row_31_in_a_key_file(self, raw):
        fields = json.loads(encode_key(key())) | {"public": raw.hex()}
        with pytest.raises(VisgetError):
            parse_key(json.dumps(fields).encode()).open()


def test_row_31_a_good_key_with_a_forged_signature():
    for forged in (bytes([1]) + bytes(63), bytes(64), bytes.fromhex(ORDER_8[0]) + bytes(32)):
        assert not verify_raw(key().public, forged, b"any message")
