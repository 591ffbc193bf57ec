from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from visget.digest import digest_bytes
from visget.errors import FormatError
from visget.installer.receipt import Receipt
from visget.installer.target import make_target

RECEIPT = Receipt(
    name="adder", version="1.2.3", package=digest_bytes(b"p"), bitcode=digest_bytes(b"b"), signers=("vk1a", "vk1b"),
    key=digest_bytes(b"k"), target=make_target("riscv64", "musl", "sifive-u74", ["-v"]), compiler="llvmlite / LLVM",
    level=3, pipeline="1", linker="lld: LLD 22", libc="glibc 2.36", fp_contract="on", artifact="library",
    answers="passed", vectors=3, reason="", sandbox="seccomp, landlock 7", milliseconds={"compile": 12, "link": 0},
    sizes={"lib/libadder.so": 2400},
)  # fmt: skip


@pytest.mark.parametrize(
    "receipt",
    [
        RECEIPT,
        replace(RECEIPT, linker=None, artifact="object", libc="none"),
        replace(RECEIPT, answers="not-run", vectors=0, reason="a foreign target"),
        replace(RECEIPT, signers=(), milliseconds={}, sizes={}, target=make_target("x86_64", "gnu", "x86-64")),
    ],
)
def test_round_trip(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.encode()) == receipt
    assert Receipt.parse(receipt.encode()).encode() == receipt.encode()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "visget-receipt-2"), ("name", 1), ("version", "a\nb"), ("package", "abc"), ("bitcode", "F" * 64),
        ("signers", "vk1a"), ("signers", [1]), ("key", None), ("compiler", None), ("level", 4), ("level", -1),
        ("level", True), ("linker", 1), ("fp_contract", "maybe"), ("artifact", "program"), ("answers", "failed"),
        ("vectors", -1), ("sandbox", None), ("milliseconds", {"a": "1"}), ("milliseconds", [1]), ("sizes", {"a": -1}),
        ("target", {"triple": "x86_64-unknown-linux-gnu", "cpu": "a", "features": ["-b", "+a"]}),
        ("target", {"triple": "x86_64-unknown-linux-gnu", "cpu": "a", "features": ["a"]}),
        ("target", {"triple": "x86_64", "cpu": "a", "features": []}),
        ("target", {"triple": "x86_64-unknown-linux-gnu", "cpu": "a", "features": [], "tune": "b"}),
        ("extra", 1),
    ],
)  # fmt: skip
def test_anything_else_is_refused(key: str, value: Any) -> None:
    document = json.loads(RECEIPT.encode())
    document[key] = value
    with pytest.raises(FormatError):
        Receipt.parse(json.dumps(document).encode())


@pytest.mark.parametrize("key", sorted(json.loads(RECEIPT.encode())))
def test_every_key_is_needed(key: str) -> None:
    document = json.loads(RECEIPT.encode())
    del document[key]
    with pytest.raises(FormatError, match=key):
        Receipt.parse(json.dumps(document).encode())
