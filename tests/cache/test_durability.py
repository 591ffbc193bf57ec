from storekit import KEY, build
from syncs import Journal

from visget.cache.environment import Environment


def test_everything_is_durable_before_it_is_visible(store, monkeypatch):
    journal = Journal(store.root, monkeypatch)
    store.build_native(KEY, build)
    journal.check("native/v1")
    digest = store.put_package(b"package")
    store.put_envelope(digest, b"envelope")
    journal.check(f"packages/v1/{digest[:2]}")
    Environment(store).record("x", "1", package=digest)
    journal.check("env/v1/default/current.json", "env/v1/default/current.d")


def test_the_list_of_files_is_written_last(store, monkeypatch):
    import os

    opened = []
    original = os.open

    def watched(path, flags, *args, **kwargs):
        if flags & os.O_CREAT and "/tmp/" in str(path) and "/new" in str(path):
            opened.append(str(path).rpartition("/new/")[2])
        return original(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", watched)

    def through_os(work):
        for name in ("a", "b"):
            os.close(os.open(work / name, os.O_WRONLY | os.O_CREAT))

    store.build_native(KEY, through_os)
    assert [name for name in opened if name != "content"] == ["a", "b", "entry.json"]
