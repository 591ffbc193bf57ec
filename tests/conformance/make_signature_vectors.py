"""Write signature.json, the test vectors of docs/spec/signature.md: run this file.

"keys" lists encodings of public keys with their id, or null when they must be refused. "envelopes" lists envelopes
about container/valid-usual.bin with the trusted key ids, the threshold, and "ok" or the family of the error.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))

from formatkit import manifest, package  # noqa: E402
from packaging.version import Version  # noqa: E402

from visget.format.keys import SecretKey  # noqa: E402
from visget.format.package import open_package  # noqa: E402
from visget.format.signing import Statement, sign_package  # noqa: E402

# RFC 8032, section 7.1, tests 1 to 3.
SEEDS = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
)
A, B, C = (SecretKey(bytes.fromhex(seed)) for seed in SEEDS)
P = 2**255 - 19
REFUSED = (
    *(0, 1, P - 1, P, P + 1, 2**255 - 1),
    *(
        int.from_bytes(bytes.fromhex(text), "little")
        for text in (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        )
    ),
    2,  # not a point of the curve
)


def envelope(payload: bytes, *keys: SecretKey, kind: str = "application/vnd.in-toto+json") -> dict[str, object]:
    """An envelope by the words of the spec, without visget's own code."""
    name = kind.encode()
    message = b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": kind,
        "signatures": [
            {"keyid": key.public.id, "sig": base64.b64encode(key.sign(message)).decode()} for key in keys
        ],
    }


def envelopes() -> Iterator[tuple[str, object, list[SecretKey], int, str]]:
    usual = open_package((HERE / "container" / "valid-usual.bin").read_bytes())
    payload = Statement.of(usual).encode()
    good = envelope(payload, A)
    assert sign_package(usual, A) == json.dumps(good, sort_keys=True, separators=(",", ":")).encode()
    other = Statement.of(package(manifest(version=Version("1.2.4")))).encode()
    signatures = good["signatures"]
    yield "good", good, [A], 1, "ok"
    yield "one of two trusted keys", good, [B, A], 1, "ok"
    yield "two of two", envelope(payload, A, B), [A, B], 2, "ok"
    yield "also signed by a stranger", envelope(payload, A, C), [A], 1, "ok"
    indented = json.dumps(json.loads(payload), indent=1).encode()
    yield "payload in another form of JSON", envelope(indented, A), [A], 1, "ok"
    yield "nobody is trusted", good, [], 1, "TrustError"
    yield "another key is trusted", good, [B], 1, "TrustError"
    yield "one of two, two needed", good, [A, B], 2, "TrustError"
    yield "no signature", good | {"signatures": []}, [A], 1, "TrustError"
    yield "signature of B under the id of A", good | {
        "signatures": [envelope(payload, B)["signatures"][0] | {"keyid": A.public.id}]
    }, [A, B], 1, "TrustError"
    yield "the same signature twice", good | {"signatures": signatures * 2}, [A], 1, "FormatError"
    yield "other payload type", envelope(payload, A, kind="text/plain"), [A], 1, "TrustError"
    yield "payload type changed afterwards", envelope(payload, A, kind="text/plain") | {
        "payloadType": "application/vnd.in-toto+json"
    }, [A], 1, "TrustError"
    yield "another package", envelope(other, A), [A], 1, "TrustError"
    for key, value in (("name", "other"), ("version", "1.2.4"), ("profile", "vis-2"), ("epoch", 21)):
        statement = json.loads(payload)
        statement["predicate"][key] = value
        yield f"other {key}, well signed", envelope(json.dumps(statement).encode(), A), [A], 1, "TrustError"
    statement = json.loads(payload)
    statement["subject"] *= 2
    yield "two subjects, well signed", envelope(json.dumps(statement).encode(), A), [A], 1, "FormatError"
    yield "unknown key", good | {"note": "x"}, [A], 1, "FormatError"
    yield "base64 without padding", good | {"payload": good["payload"].rstrip("=")}, [A], 1, "FormatError"
    yield "base64 with a line end", good | {"payload": good["payload"] + "\n"}, [A], 1, "FormatError"


def table() -> dict[str, object]:
    """All vectors."""
    keys = [{"raw": key.public.raw.hex(), "id": key.public.id} for key in (A, B, C)]
    for y in REFUSED:
        for sign in (0, 1):
            keys.append({"raw": (y | sign << 255).to_bytes(32, "little").hex(), "id": None})
    return {
        "seeds": dict(zip((key.public.id for key in (A, B, C)), SEEDS, strict=True)),
        "keys": keys,
        "envelopes": [
            {
                "name": name,
                "envelope": json.dumps(value, sort_keys=True, separators=(",", ":")),
                "trusted": [key.public.id for key in trusted],
                "threshold": threshold,
                "result": result,
            }
            for name, value, trusted, threshold, result in envelopes()
        ],
    }


if __name__ == "__main__":
    (HERE / "signature.json").write_text(json.dumps(table(), indent=1) + "\n")
