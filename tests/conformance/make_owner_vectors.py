"""Write owner.json, the test vectors of docs/spec/owner-chain.md: run this file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE))

import base64  # noqa: E402
from typing import Any  # noqa: E402

from make_signature_vectors import A, B, C, envelope  # noqa: E402

TYPE = "application/vnd.visget.owner.v1+json"
NAME = "xxhash"


def body(seq: int = 1, prev: str | None = None, keys: tuple[Any, ...] = (A,), **changes: Any) -> dict[str, Any]:
    """The payload of a record, by the words of the spec, without visget's own code."""
    usual = {
        "name": NAME, "seq": seq, "prev": prev, "threshold": 1, "keys": sorted(key.public.id for key in keys),
        "revoked": [], "recovery": False,
    }  # fmt: skip
    return usual | changes


def text(value: dict[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(value: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(text(value)).hexdigest()


def signed(value: dict[str, Any], *keys: Any, kind: str = TYPE) -> dict[str, Any]:
    return envelope(text(value), *keys, kind=kind)


def records() -> Iterator[tuple[str, bytes, str]]:
    first = body()
    second = body(2, digest(first), (A, B), threshold=2)
    gone = {"key": C.public.id, "reason": "stolen", "refuse_after": 1}
    yield "first", text(first), "ok"
    yield "second", text(second), "ok"
    yield "with a revocation", text(second | {"revoked": [gone]}), "ok"
    yield "recovery", text(second | {"recovery": True}), "ok"
    yield "threshold out of reach", text(second | {"threshold": 3}), "TrustError"
    yield "threshold 0", text(second | {"threshold": 0}), "TrustError"
    yield "no key", text(first | {"keys": []}), "TrustError"
    yield "one key twice", text(second | {"keys": [A.public.id] * 2}), "TrustError"
    yield "keys not sorted", text(second | {"keys": second["keys"][::-1]}), "TrustError"
    yield "key with spare bits", text(first | {"keys": [A.public.id[:-1] + "b"]}), "TrustError"
    for y in (0, 1, 2**255 - 20, 2**255 - 19):
        weak = "vk1" + base64.b32encode(y.to_bytes(32, "little")).decode().rstrip("=").lower()
        yield f"weak key, y = {y}", text(first | {"keys": [weak]}), "TrustError"
    yield "revoked and listed", text(second | {"revoked": [gone | {"key": A.public.id}]}), "TrustError"
    yield "refused only from now on", text(second | {"revoked": [gone | {"refuse_after": 2}]}), "TrustError"
    yield "second without a first", text(second | {"prev": None}), "TrustError"
    yield "first with one before it", text(first | {"prev": "0" * 64}), "TrustError"
    yield "first that recovers", text(first | {"recovery": True}), "TrustError"
    yield "seq 0", text(first | {"seq": 0}), "FormatError"
    yield "unknown key", text(first | {"expires": "2030"}), "FormatError"
    yield "missing key", text({name: first[name] for name in first if name != "recovery"}), "FormatError"
    yield "twice the same key in JSON", text(first).replace(b'"seq":1', b'"seq":1,"seq":1'), "FormatError"
    yield "name in capitals", text(first | {"name": "XXHASH"}), "FormatError"
    yield "reason of two lines", text(second | {"revoked": [gone | {"reason": "a\nb"}]}), "FormatError"


def chains() -> Iterator[dict[str, Any]]:
    one = body()
    two = body(2, digest(one), (A, B), threshold=2)
    three = body(3, digest(two), (C,), revoked=[{"key": A.public.id, "reason": "lost", "refuse_after": 2}])
    good = [signed(one, A), signed(two, A, B), signed(three, A, B, C)]
    pins = [{"seq": item["seq"], "sha256": digest(item)} for item in (one, two, three)]

    def case(title: str, files: list[Any], result: Any, **options: Any) -> dict[str, Any]:
        usual = {"pin": None, "named": [], "operators": None, "accepted": []}
        return {"title": title, "name": NAME, "files": [text(item).decode() for item in files], **usual, **options,
                "result": result}  # fmt: skip

    yield case("first use", good, pins[2])
    for number, pin in enumerate(pins):
        yield case(f"pinned at {number + 1}", good, pins[2], pin=pin)
        yield case(f"pinned at {number + 1}, only what is new", good[number:], pins[2], pin=pin)
    yield case("named the first owner", good, pins[2], named=[A.public.id])
    yield case("named a later owner", good, pins[2], named=[C.public.id])
    yield case("named a stranger", good[:2], "anchor", named=[C.public.id])
    yield case("nothing", [], "none")
    yield case("rollback", good[:2], "rollback", pin=pins[2])
    yield case("fork at the pin", [signed(body(keys=(B,)), B)], "fork", pin=pins[0])
    yield case("fork before a record", [signed(body(keys=(B,)), B), good[1]], "fork")
    yield case("skipped", [good[0], good[2]], "sequence")
    yield case("begins late", good[1:], "sequence")
    yield case("unsigned by old", [good[0], signed(body(2, digest(one), (B,)), B)], "unsigned by old")
    yield case("unsigned by new", [good[0], signed(body(2, digest(one), (B,)), A)], "unsigned by new")
    yield case("one of two", [*good[:2], signed(three, A, C)], "unsigned by old", pin=pins[1])
    forged = signed(three, A, C)
    forged["signatures"].append({"keyid": B.public.id, "sig": forged["signatures"][0]["sig"]})
    yield case("one signature under two ids", [*good[:2], forged], "unsigned by old", pin=pins[1])
    four = body(4, digest(three), (C,))
    yield case("a revocation forgotten", [*good, signed(four, C)], "revoked")
    yield case("another name", [signed(body(name="zlib"), A)], "name")
    saved = body(2, digest(one), (C,), recovery=True)
    recovery = [good[0], signed(saved, B, C)]
    operators = {"keys": [B.public.id], "threshold": 1}
    end = {"seq": 2, "sha256": digest(saved)}
    yield case("recovery, first use", recovery, end)
    yield case("recovery, pinned", recovery, "recovery", pin=pins[0], operators=operators)
    yield case("recovery, accepted", recovery, end, pin=pins[0], operators=operators, accepted=[C.public.id])
    yield case("recovery, another key accepted", recovery, "recovery", pin=pins[0], operators=operators,
               accepted=[A.public.id])  # fmt: skip
    yield case("recovery without operators", [good[0], signed(saved, C)], "unsigned by operators", pin=pins[0],
               operators=operators, accepted=[C.public.id])  # fmt: skip


def table() -> dict[str, object]:
    return {
        "records": [
            {"title": title, "payload": base64.b64encode(data).decode(), "result": result}
            for title, data, result in records()
        ],
        "chains": list(chains()),
    }


if __name__ == "__main__":
    (HERE / "owner.json").write_text(json.dumps(table(), indent=1) + "\n")
