import base64
import json

import pytest
from formatkit import manifest, package
from packaging.version import Version
from securesystemslib.dsse import Envelope

from visget.errors import FormatError, TrustError
from visget.format.keys import SecretKey
from visget.format.signing import Statement, envelope_key_ids, sign_package, verify_envelope

A, B, C = (SecretKey(bytes([n]) * 32) for n in (1, 2, 3))
PACKAGE = package()
SIGNED = sign_package(PACKAGE, A)


def changed(data=SIGNED, **changes):
    return json.dumps(json.loads(data) | changes).encode()


def payload_of(data):
    return base64.b64decode(json.loads(data)["payload"])


def signed_payload(payload, key=A, payload_type="application/vnd.in-toto+json"):
    message = Envelope(payload, payload_type, {}).pae()
    return json.dumps(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": payload_type,
            "signatures": [{"keyid": key.public.id, "sig": base64.b64encode(key.sign(message)).decode()}],
        }
    ).encode()


def test_what_is_signed():
    statement, signers = verify_envelope(SIGNED, [A.public, B.public])
    assert signers == (A.public.id,)
    assert statement == Statement.of(PACKAGE)
    assert json.loads(payload_of(SIGNED)) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "adder-1.2.3.vis", "digest": {"sha256": PACKAGE.digest}}],
        "predicateType": "https://visget.dev/attestation/publish/v1",
        "predicate": {"name": "adder", "version": "1.2.3", "profile": "vis-1", "epoch": 22},
    }
    assert sign_package(PACKAGE, A) == SIGNED
    assert Statement.parse(Statement.of(PACKAGE).encode()) == Statement.of(PACKAGE)


def test_another_implementation_of_dsse_reads_it():
    envelope = Envelope.from_dict(json.loads(SIGNED))
    signature = bytes.fromhex(envelope.signatures[A.public.id].signature)
    from visget.format.keys import verify_raw

    assert verify_raw(A.public, signature, envelope.pae())


def test_unknown_key():
    with pytest.raises(TrustError, match="not signed by a trusted key") as caught:
        verify_envelope(SIGNED, [B.public])
    assert caught.value.details["signed_by"] == [A.public.id]
    with pytest.raises(TrustError):
        verify_envelope(SIGNED, [])


def test_wrong_key_under_the_right_id():
    forged = json.loads(sign_package(PACKAGE, B))
    forged["signatures"][0]["keyid"] = A.public.id
    with pytest.raises(TrustError):
        verify_envelope(json.dumps(forged).encode(), [A.public, B.public])


def test_threshold_counts_distinct_keys():
    both = sign_package(PACKAGE, A, B)
    garbage = changed(signatures=[*json.loads(SIGNED)["signatures"], {"keyid": B.public.id, "sig": "AAAA"}])
    assert verify_envelope(both, [C.public, B.public, A.public], threshold=2)[1] == tuple(
        sorted([A.public.id, B.public.id])
    )
    for data, keys in (
        (SIGNED, [A.public, B.public]),
        (SIGNED, [A.public, A.public]),
        (both, [A.public, C.public]),
        (garbage, [A.public, B.public]),
    ):
        with pytest.raises(TrustError, match="2 trusted keys"):
            verify_envelope(data, keys, threshold=2)
    with pytest.raises(FormatError, match="second time"):
        verify_envelope(changed(signatures=json.loads(SIGNED)["signatures"] * 2), [A.public], threshold=2)
    with pytest.raises(ValueError, match="at least 1"):
        verify_envelope(SIGNED, [A.public], threshold=0)


def test_a_key_counts_once_even_under_another_id():
    """A second id for the same key does not exist: an id that is not the key's own is nobody's."""
    signatures = json.loads(SIGNED)["signatures"]
    alias = [{"keyid": A.public.id.upper(), "sig": signatures[0]["sig"]}]
    with pytest.raises(TrustError):
        verify_envelope(changed(signatures=signatures + alias), [A.public], threshold=2)
    with pytest.raises(TrustError):
        verify_envelope(changed(signatures=alias), [A.public])


def test_other_payload_type():
    other = signed_payload(payload_of(SIGNED), payload_type="text/plain")
    with pytest.raises(TrustError, match="payload type"):
        verify_envelope(other, [A.public])
    # The type is inside the signature: claiming the right one does not help.
    with pytest.raises(TrustError, match="not signed"):
        verify_envelope(changed(other, payloadType="application/vnd.in-toto+json"), [A.public])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        changed(extra=1),
        changed(payload=1),
        changed(payload="e30"),
        changed(payload="e30=\n"),
        changed(payload="e31="),
        changed(payload="e30_"),
        changed(signatures={}),
        changed(signatures=[{"sig": "AAAA"}]),
        changed(signatures=[{"keyid": A.public.id}]),
        changed(signatures=[{"keyid": "a\nb", "sig": "AAAA"}]),
        changed(signatures=[{"keyid": str(n), "sig": "AAAA"} for n in range(17)]),
        SIGNED + b" " * (64 << 10),
    ],
)
def test_malformed_envelopes(data):
    with pytest.raises(FormatError):
        verify_envelope(data, [A.public])


GOOD = json.loads(payload_of(SIGNED))
SUBJECT = GOOD["subject"][0]


@pytest.mark.parametrize(
    "statement",
    [
        GOOD | {"_type": "https://in-toto.io/Statement/v0.1"},
        GOOD | {"predicateType": "https://slsa.dev/provenance/v1"},
        GOOD | {"subject": []},
        GOOD | {"subject": [SUBJECT, SUBJECT]},
        GOOD | {"subject": [SUBJECT | {"digest": {"sha512": "0"}}]},
        GOOD | {"subject": [SUBJECT | {"digest": {"sha256": "0"}}]},
        GOOD | {"subject": [SUBJECT | {"digest": SUBJECT["digest"] | {"md5": "0"}}]},
        GOOD | {"predicate": {}},
        GOOD | {"predicate": GOOD["predicate"] | {"more": 1}},
        GOOD | {"more": 1},
    ],
)
def test_well_signed_but_no_statement_about_a_package(statement):
    with pytest.raises(FormatError):
        verify_envelope(signed_payload(json.dumps(statement).encode()), [A.public])


def test_every_flipped_byte():
    for place in range(len(SIGNED)):
        for bit in (0x01, 0x20, 0x80):
            data = bytearray(SIGNED)
            data[place] ^= bit
            with pytest.raises((TrustError, FormatError)):
                verify_envelope(bytes(data), [A.public])


def test_every_truncation():
    for length in range(len(SIGNED)):
        with pytest.raises(FormatError):
            verify_envelope(SIGNED[:length], [A.public])


def test_key_ids_without_belief():
    assert envelope_key_ids(sign_package(PACKAGE, A, B)) == (A.public.id, B.public.id)


def test_statement_has_the_normal_version():
    assert Statement.of(package(manifest(version=Version("1.0.RC1")))).subject == "adder-1.0rc1.vis"
