import json
import subprocess
import sys

import pytest
from ownerkit import A, B, Chain, publics

from visget.cache.document import read_document, write_document
from visget.cache.store import Store
from visget.errors import CacheError, TrustError
from visget.registry.pins import PinStore
from visget.registry.trust import Pin

CHAIN = Chain(A).change(A, add=publics(B))
OLD = Pin(keys=(A.public,), record=CHAIN.copy(1).pin, how="first use")
NEW = Pin(keys=CHAIN.newest.keys, record=CHAIN.pin, how="first use")
NAMED = Pin(keys=(B.public,), record=None, how="named")


@pytest.fixture
def pins(tmp_path):
    return PinStore(Store.open(tmp_path / "store").root / "trust")


def files(pins):
    return [pins._path, *sorted(pins._path.with_suffix(".d").iterdir())]


def test_pins_are_kept_for_each_registry_and_name(pins):
    assert pins.get("r", "x") is None
    pins.remember("r", "x", OLD, seen=None)
    pins.remember("r", "y", NAMED, seen=None)
    pins.remember("s", "x", NAMED, seen=None)
    pins.remember("r", "x", NEW, seen=OLD)
    assert pins.get("r", "x") == NEW
    assert pins.get("r", "z") is None
    assert PinStore(pins._path.parent).all() == {"r": {"x": NEW, "y": NAMED}, "s": {"x": NAMED}}


def test_a_pin_by_key_becomes_one_by_record(pins):
    pins.remember("r", "x", NAMED, seen=None)
    pins.remember("r", "x", NEW, seen=NAMED)
    assert pins.get("r", "x") == NEW


def test_forgetting_is_a_step_of_its_own(pins):
    pins.remember("r", "x", NEW, seen=None)
    assert pins.forget("r", "x") == NEW
    assert pins.get("r", "x") is None
    assert pins.forget("r", "x") is None
    assert pins.forget("nowhere", "x") is None


@pytest.mark.parametrize("worse", [
    OLD, NAMED, Pin(keys=(A.public,), record=Chain(A).change(A, threshold=1).pin, how="first use")
])  # fmt: skip
def test_row_03_a_pin_is_never_lowered_or_exchanged(pins, worse):
    pins.remember("r", "x", NEW, seen=None)
    with pytest.raises(TrustError, match="never lowered"):
        pins.remember("r", "x", worse, seen=NEW)
    assert pins.get("r", "x") == NEW


def test_a_pin_that_was_decided_without_knowing_the_present_one(pins):
    pins.remember("r", "x", OLD, seen=None)
    with pytest.raises(CacheError, match="at the same moment"):
        pins.remember("r", "x", NEW, seen=None)
    pins.remember("r", "x", OLD, seen=None)  # the same pin twice is well
    assert pins.get("r", "x") == OLD


def test_they_are_private(pins):
    pins.remember("r", "x", OLD, seen=None)
    assert {path.stat().st_mode & 0o777 for path in files(pins)} == {0o600}


def test_pins_of_early_versions_are_keys(pins):
    write_document(pins._root, pins._path, {"registries": {"r": {"x": [A.public.id]}}}, 0)
    assert pins.get("r", "x") == Pin(keys=(A.public,), record=None, how="first use")


@pytest.mark.parametrize("value", [
    [], {}, 3, {"keys": [], "seq": None, "sha256": None, "how": "named"},
    {"keys": [A.public.id], "seq": 1, "sha256": None, "how": "named"},
    {"keys": [A.public.id], "seq": 1, "sha256": "x", "how": "named"},
    {"keys": [A.public.id], "seq": None, "sha256": None, "how": "rumour"},
    {"keys": ["vk1"], "seq": None, "sha256": None, "how": "named"},
])  # fmt: skip
def test_a_malformed_pin_stops(pins, value):
    write_document(pins._root, pins._path, {"registries": {"r": {"x": value}}}, 0)
    with pytest.raises(TrustError):
        pins.get("r", "x")


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100, b"[]"])
def test_damage_is_recovered_from_the_copy(pins, damage):
    pins.remember("r", "x", OLD, seen=None)
    pins._path.write_bytes(damage)
    assert pins.get("r", "x") == OLD
    pins.remember("r", "y", NEW, seen=None)
    assert pins.get("r", "x") == OLD


def test_a_deleted_file_is_recovered_too(pins):
    pins.remember("r", "x", OLD, seen=None)
    pins._path.unlink()
    assert pins.get("r", "x") == OLD


def test_an_exchanged_key_is_noticed(pins):
    pins.remember("r", "x", OLD, seen=None)
    for path in files(pins):
        path.write_bytes(path.read_bytes().replace(A.public.id.encode(), B.public.id.encode()))
    with pytest.raises(TrustError, match="damaged"):
        pins.get("r", "x")


def test_total_damage_never_counts_as_no_pins(pins):
    pins.remember("r", "x", OLD, seen=None)
    for path in files(pins):
        path.write_bytes(b"\0")
    for use in (
        lambda: pins.get("r", "x"), pins.all, lambda: pins.remember("r", "x", NEW, seen=OLD),
        lambda: pins.forget("r", "x"),
    ):  # fmt: skip
        with pytest.raises(TrustError, match="whose packages you have trusted") as caught:
            use()
        assert "move" in caught.value.hint


def test_writers_at_the_same_time_lose_nothing(pins):
    pin = json.dumps(A.public.id)
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from visget.registry.pins import PinStore\nfrom visget.registry.trust import Pin\n"
        "from visget.format.keys import parse_key_id\n"
        f"pin = Pin(keys=(parse_key_id({pin}),), record=None, how='named')\n"
        "pins = PinStore(Path(sys.argv[1]))\n"
        "for n in range(5): pins.remember('r', f'{sys.argv[2]}-{n}', pin, seen=None)\n"
    )
    racers = [subprocess.Popen([sys.executable, "-c", code, pins._path.parent, str(n)]) for n in range(4)]
    assert [racer.wait() for racer in racers] == [0] * 4
    assert len(pins.all()["r"]) == 20
    assert read_document(pins._path).generation == 20
