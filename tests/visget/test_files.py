import errno
import os
import subprocess
import sys

import pytest

from visget.errors import CacheError, ResourceError
from visget.files import atomic_write, locked, translated, write_new


def test_atomic_write_replaces_and_leaves_nothing_behind(tmp_path):
    path = tmp_path / "f"
    atomic_write(path, b"one")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_atomic_write_keeps_the_old_file_when_the_disk_is_full(tmp_path, monkeypatch):
    path = tmp_path / "f"
    atomic_write(path, b"old")

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="space"):
        atomic_write(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_write_new_follows_no_link_and_overwrites_nothing(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(target)
    for name in ("link", "target"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"x")
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("number", "family"),
    [(errno.ENOSPC, ResourceError), (errno.EDQUOT, ResourceError), (errno.EIO, ResourceError),
     (errno.EMFILE, ResourceError), (errno.EACCES, CacheError), (errno.EROFS, CacheError)],
)  # fmt: skip
def test_errors_are_translated(tmp_path, number, family):
    with pytest.raises(family) as caught, translated("write the entry", tmp_path):
        raise OSError(number, os.strerror(number))
    assert "write the entry" in caught.value.message
    assert caught.value.where == str(tmp_path)


HOLD = """
import pathlib, sys, time
from visget.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_lock_excludes_tells_the_holder_and_dies_with_it(tmp_path):
    path = tmp_path / "locks" / "l"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"in\n"
        with pytest.raises(CacheError, match=f"pid {holder.pid}"), locked(path, timeout=0.2):
            raise AssertionError("the lock was given twice")
        holder.kill()
    with locked(path, timeout=5):
        pass


def test_shared_locks_live_side_by_side(tmp_path):
    code = (
        "import sys, pathlib; from visget.files import locked\n"
        "with locked(pathlib.Path(sys.argv[1]), shared=True, timeout=1): print('in')"
    )
    with locked(tmp_path / "l", shared=True):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "l")], capture_output=True, text=True)
    assert done.stdout == "in\n"
