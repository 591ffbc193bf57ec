"""The verifier against the test vectors of docs/spec/signature.md."""

import json
from pathlib import Path

import pytest

from visget import errors
from visget.format.keys import PublicKey, SecretKey, parse_key_id
from visget.format.package import open_package, verify_package

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "signature.json").read_text())


@pytest.mark.parametrize("row", TABLE["keys"], ids=lambda row: row["raw"][:12] + row["raw"][-4:])
def test_key(row):
    raw = bytes.fromhex(row["raw"])
    if row["id"] is None:
        with pytest.raises(errors.TrustError, match="refused"):
            PublicKey(raw)
        return
    assert PublicKey(raw).id == row["id"]
    assert parse_key_id(row["id"]).raw == raw
    assert SecretKey(bytes.fromhex(TABLE["seeds"][row["id"]])).public.raw == raw


@pytest.mark.parametrize("row", TABLE["envelopes"], ids=lambda row: row["name"])
def test_envelope(row):
    package = open_package((HERE / "container" / "valid-usual.bin").read_bytes())
    trusted = [parse_key_id(key_id) for key_id in row["trusted"]]
    envelope = row["envelope"].encode()
    if row["result"] == "ok":
        assert verify_package(package, envelope, trusted, threshold=row["threshold"]).signers
        return
    with pytest.raises(errors.VisgetError) as caught:
        verify_package(package, envelope, trusted, threshold=row["threshold"])
    assert type(caught.value).__name__ == row["result"]
