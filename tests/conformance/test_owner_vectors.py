import base64
import json
from pathlib import Path

import pytest

from visget.errors import VisgetError
from visget.format.keys import parse_key_id
from visget.format.owner import OwnerRecord
from visget.format.owner_chain import OwnerPin, Role, follow

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "owner.json").read_text())


@pytest.mark.parametrize("case", TABLE["records"], ids=lambda case: case["title"])
def test_records(case):
    payload = base64.b64decode(case["payload"])
    if case["result"] == "ok":
        assert OwnerRecord.parse(payload).encode() == payload
    else:
        with pytest.raises(VisgetError) as caught:
            OwnerRecord.parse(payload)
        assert type(caught.value).__name__ == case["result"]


@pytest.mark.parametrize("case", TABLE["chains"], ids=lambda case: case["title"])
def test_chains(case):
    def keys(ids):
        return tuple(map(parse_key_id, ids))

    operators = case["operators"]
    options = {
        "pinned": OwnerPin(**case["pin"]) if case["pin"] else None,
        "anchors": keys(case["named"]),
        "operators": Role(keys=keys(operators["keys"]), threshold=operators["threshold"]) if operators else None,
        "accepted": keys(case["accepted"]),
    }
    files = [item.encode() for item in case["files"]]
    if isinstance(case["result"], dict):
        assert follow(files, case["name"], **options).pin == OwnerPin(**case["result"])
    else:
        with pytest.raises(VisgetError) as caught:
            follow(files, case["name"], **options)
        assert caught.value.details["rule"] == case["result"]


def test_the_vectors_are_those_of_the_generator():
    import runpy

    made = runpy.run_path(str(HERE / "make_owner_vectors.py"))["table"]()
    assert json.loads(json.dumps(made)) == TABLE
