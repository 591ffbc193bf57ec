import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visget.errors import TrustError
from visget.format.keys import PublicKey, SecretKey, parse_key_id, verify_raw

P = 2**255 - 19
# Encodings under which OpenSSL verifies signatures that nobody with a secret key made.
TORSION = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]


@pytest.mark.parametrize("encoding", TORSION)
def test_small_order_is_refused(encoding):
    with pytest.raises(TrustError, match="small order"):
        PublicKey(bytes.fromhex(encoding))


@pytest.mark.parametrize("y", range(P, 2**255, 1))
@pytest.mark.parametrize("sign", [0, 1])
def test_non_canonical_is_refused(y, sign):
    with pytest.raises(TrustError, match="not canonical"):
        PublicKey((y | sign << 255).to_bytes(32, "little"))


@pytest.mark.parametrize("y", [1, P - 1])
def test_negative_zero_is_refused(y):
    """The x of these points is 0, so the sign bit makes a second encoding."""
    with pytest.raises(TrustError, match="small order"):
        PublicKey((y | 1 << 255).to_bytes(32, "little"))


def test_the_danger_is_real():
    """Without the rule a forged signature would be accepted: R = identity, s = 0 fits every message."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    identity = bytes.fromhex(TORSION[0])
    Ed25519PublicKey.from_public_bytes(identity).verify(identity + bytes(32), b"any message")


def test_about_half_of_all_strings_are_no_point():
    taken = 0
    for n in range(2, 102):
        try:
            PublicKey(n.to_bytes(32, "little"))
        except TrustError as error:
            assert "not a point" in str(error)
        else:
            taken += 1
    assert 30 < taken < 70


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_length(length):
    with pytest.raises(TrustError, match="32 bytes"):
        PublicKey(bytes(length))


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=50), st.integers(0, 511))
def test_every_real_key_is_taken(seed, message, bit):
    key = SecretKey(seed)
    assert parse_key_id(key.public.id) == key.public
    signature = bytearray(key.sign(message))
    assert verify_raw(key.public, bytes(signature), message)
    assert not verify_raw(key.public, bytes(signature), message + b"x")
    signature[bit // 8] ^= 1 << bit % 8
    assert not verify_raw(key.public, bytes(signature), message)


def test_rfc_8032_vector():
    key = SecretKey(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert key.public.raw.hex() == "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert key.sign(b"").hex().startswith("e5564300c360ac729086e2cc806e828a")
    assert not verify_raw(key.public, b"", b"")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.upper(),
        lambda text: text[:-1],
        lambda text: text + "a",
        lambda text: "vk2" + text[3:],
        lambda text: text[:-1] + chr(ord(text[-1]) + 1),
        lambda text: text.replace(text[10], "1"),
        lambda text: text[:20] + "\n" + text[21:],
        lambda text: "vk1" + "a" * 52,
        lambda text: "",
        lambda text: "é" * 55,
    ],
)
def test_key_ids_have_one_form(change):
    good = SecretKey(b"\1" * 32).public.id
    with pytest.raises(TrustError):
        parse_key_id(change(good))


def test_secret_stays_secret():
    key = SecretKey(b"\7" * 32)
    assert "07070707" not in repr(key) + str(key)
