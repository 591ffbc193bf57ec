"""Many processes, one key: one of them builds it."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

RACER = """
import os, sys, time
from pathlib import Path
from storekit import KEY, build, open_store

def counted(work):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    build(work)
    time.sleep(0.3)

store = open_store(Path(sys.argv[1]))
while not os.path.exists(sys.argv[3]):
    time.sleep(0.005)
entry = store.build_native(KEY, counted)
assert store.native(KEY) == entry
"""


@pytest.mark.parametrize("racers", [8, pytest.param(24, marks=pytest.mark.long)])
@pytest.mark.parametrize("state", ["absent", "damaged"])
def test_one_builds_and_the_others_wait(store, tmp_path, racers, state):
    from storekit import KEY, build

    if state == "damaged":
        (store.build_native(KEY, build).path / "entry.json").unlink()
    support = Path(sys.modules["storekit"].__file__).parent
    code = f"import sys; sys.path.insert(0, {str(support)!r})\n{RACER}"
    log = tmp_path / "log"
    go = tmp_path / "go"
    processes = [subprocess.Popen([sys.executable, "-c", code, store.root, log, go]) for _ in range(racers)]
    time.sleep(0.5)
    go.touch()
    assert [process.wait(timeout=120) for process in processes] == [0] * racers
    assert log.read_text() == "built\n"
    assert list((store.root / "tmp").iterdir()) == []
    assert len(list((store.root / "quarantine").iterdir())) == (state == "damaged")


def test_two_keys_are_built_side_by_side(store, tmp_path):
    support = Path(sys.modules["storekit"].__file__).parent
    code = f"""
import sys, time; sys.path.insert(0, {str(support)!r})
from pathlib import Path
from storekit import build, open_store
from visget.digest import digest_bytes
mine, other = Path(sys.argv[2]), Path(sys.argv[3])
def meets(work):
    build(work)
    mine.touch()
    end = time.monotonic() + 20
    while not other.exists():
        assert time.monotonic() < end, "the other key waits for this one"
        time.sleep(0.01)
open_store(Path(sys.argv[1])).build_native(digest_bytes(str(mine).encode()), meets)
"""
    a, b = tmp_path / "a", tmp_path / "b"
    pair = [subprocess.Popen([sys.executable, "-c", code, store.root, *order]) for order in ((a, b), (b, a))]
    assert [process.wait(timeout=60) for process in pair] == [0, 0]
