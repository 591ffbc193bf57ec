"""Reading key files against the test vectors of docs/spec/key-file.md."""

import json
from pathlib import Path

import pytest

from visget import errors
from visget.format.keyfile import parse_key, passphrase_bytes

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "key-file.json").read_text())
SPEC = HERE.parents[1] / "docs" / "spec" / "key-file.md"


@pytest.mark.parametrize("row", TABLE["files"], ids=lambda row: row["name"])
def test_file(row):
    words = row["passphrase"]
    unlock = None if words is None else lambda: passphrase_bytes(words)
    if "seed" in row:
        assert parse_key(row["text"].encode()).open(unlock).seed.hex() == row["seed"]
        return
    with pytest.raises(getattr(errors, row["error"])):
        parse_key(row["text"].encode()).open(unlock)


def test_the_vector_in_the_text():
    row = next(row for row in TABLE["files"] if row["name"] == "encrypted")
    assert row["text"] in "".join(line.strip() for line in SPEC.read_text().splitlines())
