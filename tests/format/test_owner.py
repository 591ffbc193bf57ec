import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ownerkit import NAME, THIEF, A, B, C, publics

from visget.errors import FormatError, TrustError, VisgetError
from visget.format.owner import (
    KEYS_LIMIT,
    RECORD_LIMIT,
    OwnerRecord,
    Revocation,
    SignedRecord,
    first_record,
    sign_record,
)
from visget.format.strictjson import dumps

FIRST = first_record(NAME, A)
BOTH = tuple(sorted(publics(A, B), key=lambda key: key.id))


def record(**changes):
    """A second record: A and B own the name, C was revoked."""
    usual = {
        "name": NAME, "seq": 2, "prev": FIRST.digest, "threshold": 2, "keys": BOTH,
        "revoked": (Revocation(key=C.public, reason="stolen laptop", refuse_after=1),),
    }  # fmt: skip
    return OwnerRecord(**{**usual, **changes})


def test_a_record_survives_its_encoding():
    item = record()
    assert OwnerRecord.parse(item.encode()) == item
    signed = sign_record(item, A, B)
    again = SignedRecord.parse(signed.encode())
    assert (again.record, again.digest, again.signers(BOTH)) == (item, signed.digest, {A.public, B.public})


def test_the_first_record_claims_a_name_for_its_signer():
    assert FIRST.record == OwnerRecord(name=NAME, seq=1, prev=None, threshold=1, keys=(A.public,))
    assert FIRST.signers([A.public, B.public]) == {A.public}


def test_a_signature_more_is_the_same_record():
    assert FIRST.signed_with(B).digest == FIRST.digest
    assert FIRST.signed_with(B).encode() != FIRST.encode()


@pytest.mark.parametrize(("changes", "why"), [
    ({"threshold": 3}, "cannot reach"),
    ({"threshold": 0}, "cannot reach"),
    ({"keys": ()}, "0 keys"),
    ({"keys": (A.public, A.public)}, "twice"),
    ({"keys": BOTH[::-1]}, "not sorted"),
    ({"revoked": (Revocation(key=A.public, reason="x", refuse_after=1),)}, "both a key and revoked"),
    ({"revoked": (Revocation(key=C.public, reason="x", refuse_after=2),)}, "only after"),
    ({"revoked": (Revocation(key=C.public, reason="x", refuse_after=1),) * 2}, "twice"),
    ({"seq": 1}, "no record before it"),
    ({"prev": None}, "no record before it"),
    ({"seq": 1, "prev": None}, "neither recovers nor revokes"),
    ({"seq": 1, "prev": None, "revoked": (), "recovery": True}, "neither recovers nor revokes"),
    ({"seq": 10000}, "outside"),
])  # fmt: skip
def test_row_08_and_10_a_record_that_breaks_a_rule_of_its_own(changes, why):
    with pytest.raises(TrustError, match=why):
        record(**changes)


@pytest.mark.parametrize(("changes", "why"), [
    ({"threshold": 3}, "cannot reach"),
    ({"keys": [A.public.id] * 2}, "twice"),
])  # fmt: skip
def test_row_08_the_same_rules_hold_for_what_is_read(changes, why):
    body = json.loads(record().encode()) | changes
    with pytest.raises(TrustError, match=why):
        OwnerRecord.parse(dumps(body))


@pytest.mark.parametrize("y", [
    0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
])  # fmt: skip
@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("place", ["keys", "revoked"])
def test_row_31_weak_keys_in_a_record(y, sign, place):
    import base64

    weak = "vk1" + base64.b32encode((y | sign << 255).to_bytes(32, "little")).decode().rstrip("=").lower()
    body = json.loads(record().encode())
    if place == "keys":
        body["keys"] = [weak]
        body["threshold"] = 1
    else:
        body["revoked"][0]["key"] = weak
    with pytest.raises(TrustError, match=r"refused|not the id of a key"):
        OwnerRecord.parse(dumps(body))


@pytest.mark.parametrize("change", [
    {"name": "XXHASH"}, {"name": "../x"}, {"name": 3}, {"seq": "2"}, {"seq": 0}, {"seq": True}, {"prev": "abc"},
    {"prev": 3}, {"threshold": -1}, {"threshold": None}, {"keys": "x"}, {"keys": [3]}, {"revoked": None},
    {"revoked": [{"key": C.public.id, "reason": "a\nb", "refuse_after": 1}]},
    {"revoked": [{"key": C.public.id, "reason": "a", "refuse_after": 1, "more": 1}]},
    {"recovery": 0}, {"expires": "2030-01-01"},
])  # fmt: skip
def test_row_36_malformed_records(change):
    with pytest.raises(FormatError):
        OwnerRecord.parse(dumps(json.loads(record().encode()) | change))


@pytest.mark.parametrize("name", ["name", "seq", "prev", "threshold", "keys", "revoked", "recovery"])
def test_nothing_may_be_missing(name):
    body = json.loads(record().encode())
    del body[name]
    with pytest.raises(FormatError, match=f"lacks the key '{name}'"):
        OwnerRecord.parse(dumps(body))


def test_row_36_json_tricks():
    text = record().encode()
    for data in (
        text.replace(b'"seq":2', b'"seq":2,"seq":3'), text.replace(b'"seq":2', b'"seq":NaN'), b"\xef\xbb\xbf" + text,
        text.replace(b'"seq":2', b'"seq":2.0'), text.replace(b"stolen", b"\\ud800"),
        text.replace(b'"seq":2', b'"seq":' + b"9" * 6000),
    ):  # fmt: skip
        with pytest.raises(FormatError):
            OwnerRecord.parse(data)


def test_row_07_another_payload_type_is_no_record():
    signed = sign_record(record(), A, B)
    other = dataclasses.replace(signed.envelope, kind="application/vnd.in-toto+json")
    with pytest.raises(TrustError, match="payload type"):
        SignedRecord.parse(other.encode())
    # Signed as something else and relabelled: the type is part of what is signed.
    stolen = dataclasses.replace(signed.envelope, kind="text/plain", signatures={}).signed_with(A, B)
    relabelled = SignedRecord.parse(dataclasses.replace(stolen, kind=signed.envelope.kind).encode())
    assert relabelled.signers(BOTH) == set()


def test_row_08_one_key_under_two_names_counts_once():
    signed = sign_record(record(), A)
    genuine = signed.envelope.signatures[A.public.id]
    padded = dataclasses.replace(
        signed.envelope,
        signatures={**signed.envelope.signatures, B.public.id: genuine, A.public.id.upper(): genuine, "": genuine},
    )
    assert SignedRecord.parse(padded.encode()).signers([*BOTH, *BOTH]) == {A.public}


def test_row_08_the_same_signature_twice_is_malformed():
    body = json.loads(sign_record(record(), A).encode())
    body["signatures"] *= 2
    with pytest.raises(FormatError, match="second time"):
        SignedRecord.parse(dumps(body))


def test_limits():
    body = json.loads(sign_record(record(), A).encode())
    body["signatures"] = [{"keyid": str(n), "sig": "AAAA"} for n in range(65)]
    with pytest.raises(FormatError, match="more than 64"):
        SignedRecord.parse(dumps(body))
    with pytest.raises(FormatError, match="at most"):
        SignedRecord.parse(b" " * (RECORD_LIMIT + 1))
    with pytest.raises(TrustError, match=f"1 to {KEYS_LIMIT}"):
        record(keys=BOTH * 9, threshold=1)


@given(st.data())
def test_row_01_mutations_never_pass_as_another_record(data):
    good = bytearray(sign_record(record(), A, B).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = SignedRecord.parse(bytes(good))
    except VisgetError:
        return
    if found.digest != sign_record(record(), A, B).digest:
        assert found.signers([*BOTH, THIEF.public]) == set()
