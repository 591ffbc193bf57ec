"""Kill -9 at every call into the operating system: absent or complete, and the next run heals."""

import itertools

import pytest
from crash import survives
from storekit import KEY, build, files_below

from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.digest import digest_bytes


def native(root):
    Store.open(root).build_native(KEY, build)


def package(root):
    store = Store.open(root)
    store.put_envelope(store.put_package(b"package"), b"envelope")


def record(root):
    Environment(Store.open(root)).record("x", "2", package="0" * 64, natives={"m": KEY})


def collect(root):
    Store.open(root).gc(max_age=0)


def every_point(tmp_path, action, prepare):
    """Give a store on which `action` was killed at its first, second, third... call, until it survives."""
    for countdown in itertools.count(1):
        root = tmp_path / str(countdown)
        prepare(Store.open(root))
        done = survives(lambda root=root: action(root), countdown)
        yield Store.open(root), done
        if done:
            assert countdown > 10, "hardly any point was tried"
            return


@pytest.mark.parametrize("damaged", [False, True])
def test_kill_while_building(tmp_path, damaged):
    def prepare(store):
        if damaged:
            entry = store.build_native(KEY, build)
            (entry.path / "extra").write_text("")

    for store, done in every_point(tmp_path, native, prepare):
        entry = store.native(KEY)
        assert entry is not None or not done
        assert store.build_native(KEY, build) == store.native(KEY)
        assert list((store.root / "tmp").iterdir()) == []
        # Nothing half-finished was ever taken for an artifact: only what the test itself damaged is here.
        assert len(list((store.root / "quarantine").iterdir())) == damaged


def test_kill_while_storing_a_package(tmp_path):
    digest = digest_bytes(b"package")
    for store, done in every_point(tmp_path, package, lambda store: None):
        assert store.package(digest) == b"package" or (store.package(digest) is None and not done)
        assert store.envelope(digest) == b"envelope" or (store.envelope(digest) is None and not done)
        store.put_envelope(store.put_package(b"package"), b"envelope")
        assert store.envelope(digest) == b"envelope"
        assert len(files_below(store.root)) == 2


def test_kill_while_recording(tmp_path):
    def prepare(store):
        Environment(store).record("x", "1", package="0" * 64)

    for store, done in every_point(tmp_path, record, prepare):
        versions = [item.version for item in Environment(store).installed()]
        assert versions == ["1", "2"] or (versions == ["1"] and not done)
        Environment(store).record("x", "3", package="0" * 64)
        assert [item.version for item in Environment(store).installed()] == [*versions, "3"]
        assert not list(store.root.rglob("*.tmp"))
        assert list((store.root / "quarantine").iterdir()) == []


def test_kill_while_collecting(tmp_path):
    def prepare(store):
        Environment(store).record("x", "1", package="0" * 64, natives={"m": KEY})
        store.build_native(KEY, build)
        for name in (b"one", b"two"):
            store.build_native(digest_bytes(name), build)
            store.put_package(name)

    for store, done in every_point(tmp_path, collect, prepare):
        assert len(list(store.natives())) == len(store.native_keys())
        assert store.check().damaged == ()
        store.gc(max_age=0)
        assert store.native_keys() == [KEY]
        assert list((store.root / "tmp").iterdir()) == []
        assert done or store.native(KEY)
