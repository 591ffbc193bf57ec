"""No space, no descriptors, a failing disk, no permission: a clear error, no trace, and a retry that works."""

import errno
import itertools
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from storekit import KEY, build, files_below

from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.errors import CacheError, ResourceError

ACTIONS = {
    "native": lambda store: store.build_native(KEY, build),
    "package": lambda store: store.put_envelope(store.put_package(b"package"), b"envelope"),
    "record": lambda store: Environment(store).record("x", "2", package="0" * 64),
}
FAULTS = [
    ("write", errno.ENOSPC, ResourceError),
    ("write", errno.EDQUOT, ResourceError),
    ("write", errno.EIO, ResourceError),
    ("fsync", errno.EIO, ResourceError),
    ("mkdir", errno.ENOSPC, ResourceError),
    ("open", errno.EMFILE, ResourceError),
    ("open", errno.EACCES, CacheError),
    ("open", errno.EROFS, CacheError),
    ("rename", errno.EIO, ResourceError),
    ("replace", errno.ENOSPC, ResourceError),
]


def faulty(monkeypatch, name, code, nth):
    """Make the `nth` call of os.NAME and all after it fail; returns a list whose length is the number of calls."""
    original = getattr(os, name)
    calls = []

    def fails(*args, **kwargs):
        calls.append(args)
        if len(calls) >= nth:
            raise OSError(code, os.strerror(code))
        return original(*args, **kwargs)

    monkeypatch.setattr(os, name, fails)
    return calls


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("name", "code", "family"), FAULTS)
def test_a_fault_at_each_call(tmp_path, monkeypatch, action, name, code, family):
    for nth in itertools.count(1):
        store = Store.open(tmp_path / str(nth))
        Environment(store).record("x", "1", package="0" * 64)
        before = [file for file in files_below(store.root) if "current.d" not in file]
        with monkeypatch.context() as patch:
            calls = faulty(patch, name, code, nth)
            try:
                ACTIONS[action](store)
            except (ResourceError, CacheError) as error:
                # A package that was stored before its envelope failed is complete, and stays.
                assert isinstance(error, family), error
                assert os.strerror(code) in error.message or "no space left" in error.message
                assert error.where
            if len(calls) < nth:
                break
        Store.open(store.root).build_native(KEY, build)
        ACTIONS[action](store)
        assert list((store.root / "tmp").iterdir()) == []
        assert store.check().damaged == ()
        assert store.native(KEY)
        versions = {item.version for item in Environment(store).installed()}
        assert versions in ({"1"}, {"1", "2"})
        assert set(before) <= set(files_below(store.root))
    unused = {("native", "replace"), ("package", "rename"), ("record", "rename"), ("record", "mkdir")}
    assert nth > 1 or (action, name) in unused


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_that_is_really_full():
    with tempfile.TemporaryDirectory() as name:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "visget-test", name]).returncode:
            pytest.skip("this machine does not let root mount a tmpfs")
        try:
            store = Store.open(Path(name) / "store")
            digest = store.put_package(b"small")
            before = files_below(store.root)

            def large(work):
                build(work)
                (work / "large").write_bytes(bytes(1_000_000))

            for _ in range(2):
                with pytest.raises(ResourceError, match="no space left") as caught:
                    store.build_native(KEY, large)
                assert "visget cache gc" in caught.value.hint
                with pytest.raises(ResourceError, match="no space left"):
                    store.put_package(bytes(1_000_000))
            assert files_below(store.root) == before
            assert store.package(digest) == b"small"
            assert store.build_native(KEY, build)
        finally:
            subprocess.run(["umount", name], check=True)


def test_an_error_of_the_compiler_passes_unchanged(store):
    def fails(work):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.build_native(KEY, fails)
    assert files_below(store.root) == []
