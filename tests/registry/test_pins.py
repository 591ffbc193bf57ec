import subprocess
import sys

import pytest
from packagekit import key

from visget.cache.store import Store
from visget.errors import TrustError
from visget.registry.pins import PinStore

A, B = key("a").public, key("b").public


@pytest.fixture
def pins(tmp_path):
    return PinStore(Store.open(tmp_path / "store").root / "trust")


def files(pins):
    return [pins._path, *sorted(pins._path.with_suffix(".d").iterdir())]


def test_pins_are_kept_for_each_registry_and_name(pins):
    assert pins.get("r", "x") == ()
    pins.remember("r", "x", [A])
    pins.remember("r", "y", [A, B])
    pins.remember("s", "x", [B])
    pins.remember("r", "x", [B])
    assert pins.get("r", "x") == (B,)
    assert pins.get("r", "y") == (A, B)
    assert pins.get("r", "z") == ()
    assert PinStore(pins._path.parent).all() == {"r": {"x": (B,), "y": (A, B)}, "s": {"x": (B,)}}


def test_they_are_private(pins):
    pins.remember("r", "x", [A])
    assert {path.stat().st_mode & 0o777 for path in files(pins)} == {0o600}


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100, b"[]"])
def test_damage_is_recovered_from_the_copy(pins, damage):
    pins.remember("r", "x", [A])
    pins._path.write_bytes(damage)
    assert pins.get("r", "x") == (A,)
    pins.remember("r", "y", [B])
    assert pins.get("r", "x") == (A,)


def test_a_deleted_file_is_recovered_too(pins):
    pins.remember("r", "x", [A])
    pins._path.unlink()
    assert pins.get("r", "x") == (A,)


def test_an_exchanged_key_is_noticed(pins):
    pins.remember("r", "x", [A])
    for path in files(pins):
        path.write_bytes(path.read_bytes().replace(A.id.encode(), B.id.encode()))
    with pytest.raises(TrustError, match="damaged"):
        pins.get("r", "x")


def test_total_damage_never_counts_as_no_pins(pins):
    pins.remember("r", "x", [A])
    for path in files(pins):
        path.write_bytes(b"\0")
    for use in (lambda: pins.get("r", "x"), pins.all, lambda: pins.remember("r", "x", [B])):
        with pytest.raises(TrustError, match="whose packages you have trusted") as caught:
            use()
        assert "move" in caught.value.hint


def test_a_pin_has_a_key(pins):
    with pytest.raises(ValueError, match="at least one key"):
        pins.remember("r", "x", [])


def test_writers_at_the_same_time_lose_nothing(pins):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from visget.registry.pins import PinStore\nfrom visget.format.keys import parse_key_id\n"
        "pins = PinStore(Path(sys.argv[1]))\n"
        f"for n in range(5): pins.remember('r', f'{{sys.argv[2]}}-{{n}}', [parse_key_id({A.id!r})])\n"
    )
    racers = [subprocess.Popen([sys.executable, "-c", code, pins._path.parent, str(n)]) for n in range(4)]
    assert [racer.wait() for racer in racers] == [0] * 4
    assert len(pins.all()["r"]) == 20
