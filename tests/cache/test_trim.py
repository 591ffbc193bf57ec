import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from storekit import KEY, Clock, build, files_below, open_store

from visget.cache.entry import Need
from visget.cache.environment import Environment, Roots
from visget.cache.trim import Item, plan
from visget.digest import digest_bytes
from visget.errors import CacheError

DAY = 86400.0


def item(name, size=1, used=0.0, needed=False):
    return Item("native", name, size, used, needed)


@pytest.mark.parametrize(
    ("items", "max_age", "max_bytes", "going", "over"),
    [
        ([], 0, None, [], 0),
        ([item("old"), item("new", used=95)], 10, None, ["old"], 0),
        ([item("old", needed=True)], 0, 0, [], 1),
        ([item("a", 5, 1), item("b", 5, 2), item("c", 5, 3)], 1000, 10, ["a"], 0),
        ([item("a", 5, 3), item("b", 5, 2), item("c", 5, 1)], 1000, 4, ["c", "b", "a"], 0),
        ([item("a", 5, 3), item("b", 50, 0, True)], 1000, 10, ["a"], 40),
        ([item("future", used=1e12), item("now", used=100)], 10, None, [], 0),
        ([item("future", used=1e12)], 0, None, ["future"], 0),
    ],
)
def test_the_plan(items, max_age, max_bytes, going, over):
    found, excess = plan(items, now=100.0, max_age=max_age, max_bytes=max_bytes)
    assert ([one.path for one in found], excess) == (going, over)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def full(tmp_path, clock):
    """A store with an installed package, an uninstalled one, and something in quarantine."""
    store = open_store(tmp_path / "s", clock)
    wanted = store.put_package(b"wanted")
    store.put_envelope(wanted, b"signature of wanted")
    Environment(store).record("x", "1", package=wanted, natives={"m": KEY})
    store.build_native(KEY, build)
    unwanted = store.put_package(b"unwanted")
    store.put_envelope(unwanted, b"signature of unwanted")
    store.build_native(digest_bytes(b"old"), build)
    (store.root / "quarantine" / "broken.0123").mkdir()
    for path in store.root.rglob("*"):
        os.utime(path, (clock.now, clock.now))
    return store


def test_only_what_nothing_refers_to_goes(full, clock):
    assert full.gc().removed == ()
    clock.now += 6 * DAY
    assert full.gc().removed == ()
    clock.now += 2 * DAY
    before = files_below(full.root)
    rehearsal = full.gc(dry_run=True)
    assert files_below(full.root) == before
    report = full.gc()
    assert report == rehearsal
    assert sorted(one.kind for one in report.removed) == ["native", "packages", "packages", "quarantine"]
    assert report.freed_bytes > 5000
    assert full.native(KEY)
    assert full.native(digest_bytes(b"old")) is None
    (kept,) = (digest for digest, _ in full.packages())
    assert full.package(kept) == b"wanted"
    assert full.envelope(kept) == b"signature of wanted"
    assert list((full.root / "quarantine").iterdir()) == []
    assert sorted(path.name for path in (full.root / "locks").glob("native-*")) == [f"native-{KEY}"]


def test_use_keeps_an_artifact(full, clock):
    clock.now += 6 * DAY
    full.native(digest_bytes(b"old"))
    clock.now += 2 * DAY
    assert "native" not in {one.kind for one in full.gc().removed}


def test_age_zero_removes_all_that_is_not_needed(full):
    full.gc(max_age=0)
    assert [entry.key for entry in full.natives()] == [KEY]
    assert full.gc(max_age=0).removed == ()


def test_the_cap_removes_the_longest_unused_first(full, clock):
    total = sum(usage.size for usage in full.size())
    report = full.gc(max_bytes=total - 1)
    assert len(report.removed) >= 1
    assert report.kept_bytes <= total - 1
    report = full.gc(max_bytes=10)
    assert full.native(KEY)
    assert report.over_bytes > 0


def test_a_wrong_clock_neither_removes_nor_keeps_for_ever(full, clock):
    clock.now += 3650 * DAY
    full.native(digest_bytes(b"old"))
    clock.now -= 3650 * DAY
    assert full.gc().removed == ()
    clock.now += 8 * DAY
    assert "native" in {one.kind for one in full.gc().removed}


def test_installations_under_way_are_not_disturbed(full):
    with full.in_use(), pytest.raises(CacheError, match="another visget process"):
        from visget.cache.trim import collect

        collect(full, max_age=0, wait=0.1)
    assert full.native(digest_bytes(b"old"))


def test_who_keeps_the_store_in_use_does_not_queue_behind_a_waiting_collector(full):
    waiting = worker("open_store(Path(sys.argv[1])).gc(max_age=0)", full.root)
    with full.in_use():
        start = time.monotonic()
        while not (full.root / "locks" / "gate").read_text():
            assert time.monotonic() - start < 30
            time.sleep(0.01)
        start = time.monotonic()
        open_store(full.root).put_package(b"another step of the same installation")
        Environment(full).record("z", "1", package=digest_bytes(b"another step of the same installation"))
        assert time.monotonic() - start < 2
        assert full.native(digest_bytes(b"old"))
    assert waiting.wait(timeout=30) == 0
    assert full.native(digest_bytes(b"old")) is None
    assert full.package(digest_bytes(b"another step of the same installation"))


def test_the_roots_are_read_while_the_store_is_held(full):
    def roots():
        with pytest.raises(CacheError), full.lock("store", shared=True, timeout=0):
            pass
        return Roots(frozenset(), frozenset([digest_bytes(b"old")]))

    full.gc(roots, max_age=0)
    assert [entry.key for entry in full.natives()] == [digest_bytes(b"old")]


def test_all_environments_are_roots(full):
    Environment(full, "second").record("y", "1", package="0" * 64, natives={"m": digest_bytes(b"old")})
    full.gc(max_age=0)
    assert len(list(full.natives())) == 2


def test_sizes(full):
    sizes = {usage.kind: (usage.entries, usage.size) for usage in full.size()}
    assert sizes["packages"] == (4, len(b"wantedunwantedsignature of wantedsignature of unwanted"))
    assert sizes["native"][0] == 2
    assert sizes["native"][1] > 2 * sum(file.size for file in full.native(KEY).files)
    assert sizes["quarantine"] == (1, 0)
    assert sizes["temporary"] == (0, 0)


def test_a_check_finds_and_heals_everything(full):
    assert full.check() == (6, ())
    (full.native_path(KEY) / "extra").write_text("")
    (full.root / "native" / "v1" / "stray").mkdir()
    (full.root / "tmp" / "0123456789abcdef").mkdir()
    for path in list((full.root / "packages" / "v1").rglob("*.*")):
        path.chmod(0o600)
        path.write_bytes(b"")
    report = full.check()
    assert report.checked == 7
    assert len(report.damaged) == 6
    assert all(damage.moved and damage.reason for damage in report.damaged)
    assert full.check() == (1, ())
    assert list((full.root / "tmp").iterdir()) == []


def worker(code, *args):
    head = "import sys\nfrom pathlib import Path\nfrom storekit import *\n"
    where = str(Path(sys.modules["storekit"].__file__).parent)
    return subprocess.Popen(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {where!r})\n{head}{code}", *map(str, args)]
    )


INSTALLER = """
from visget.cache.environment import Environment
import time
store = open_store(Path(sys.argv[1])); environment = Environment(store); end = time.time() + float(sys.argv[2])
n = 0
while time.time() < end:
    n += 1
    key = digest_bytes(f"{sys.argv[3]}-{n % 3}".encode())
    with store.in_use():
        package = store.put_package(key.encode())
        store.build_native(key, build)
        environment.record(f"p{sys.argv[3]}", str(n % 3), package=package, natives={"m": key})
    assert store.package(package) and store.native(key), "collected although installed"
    environment.remove(f"p{sys.argv[3]}")
"""
COLLECTOR = """
import time
store = open_store(Path(sys.argv[1])); end = time.time() + float(sys.argv[2])
while time.time() < end:
    store.gc(max_age=0)
    time.sleep(0.01)
"""
LOADER = """
import time
store = open_store(Path(sys.argv[1])); end = time.time() + float(sys.argv[2])
while time.time() < end:
    for key in store.native_keys():
        entry = store.native(key)
        assert entry is None or entry.files
"""


@pytest.mark.parametrize("seconds", [2.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_installing_loading_and_collecting_at_once(store, seconds, caplog):
    workers = [
        worker(INSTALLER, store.root, seconds, 1),
        worker(INSTALLER, store.root, seconds, 2),
        worker(COLLECTOR, store.root, seconds),
        worker(LOADER, store.root, seconds),
    ]
    start = time.monotonic()
    assert [one.wait() for one in workers] == [0] * 4
    assert time.monotonic() - start < seconds + 60
    assert list((store.root / "quarantine").iterdir()) == []
    assert list((store.root / "tmp").iterdir()) == []


def test_what_an_installed_artifact_is_linked_with_stays(tmp_path):
    """Directly or not, also when nothing else refers to it; and it goes with the last that needs it."""
    clock = Clock()
    store = open_store(tmp_path / "store", clock)
    keys = [digest_bytes(name) for name in (b"base", b"middle", b"top", b"other")]
    base, middle, top, other = keys
    store.build_native(base, build)
    store.build_native(middle, build, needs=[Need(base, "lib/libx.so")])
    store.build_native(top, build, needs=[Need(middle, "lib/libx.so")])
    store.build_native(other, build)
    environment = Environment(store)
    environment.record("top", "1.0", package=digest_bytes(b"p"), natives={"machine": top})
    clock.now += 30 * 86400
    store.gc()
    assert set(store.native_keys()) == {base, middle, top}
    entry = store.native(top)
    assert entry is not None
    assert entry.needs == (Need(middle, "lib/libx.so"),)
    environment.remove("top")
    clock.now += 30 * 86400
    store.gc()
    assert store.native_keys() == []


def test_a_list_of_needs_that_was_changed_is_damage(tmp_path):
    store = open_store(tmp_path / "store")
    base, top = digest_bytes(b"base"), digest_bytes(b"top")
    store.build_native(base, build)
    entry = store.build_native(top, build, needs=[Need(base, "lib/libx.so")])
    listed = entry.path / "entry.json"
    listed.chmod(0o644)
    listed.write_text(listed.read_text().replace("lib/libx.so", "lib/liby.so"))
    assert store.native(top) is None


def test_a_file_with_several_names_takes_its_space_once(tmp_path):
    store = open_store(tmp_path / "store")

    def twice(work):
        build(work)
        os.link(work / "lib" / "libx.so", work / "lib" / "libx-tag.so")

    store.build_native(digest_bytes(b"one"), build)
    before = {usage.kind: usage.size for usage in store.size()}["native"]
    store.build_native(digest_bytes(b"two"), twice)
    after = {usage.kind: usage.size for usage in store.size()}["native"]
    assert after - before < before + 400
