import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from storekit import KEY, LIBRARY, Clock, build, files_below, open_store

from visget.cache.store import Store
from visget.digest import digest_bytes
from visget.errors import CacheError, CompileError, TrustError, VisgetError


def never(work):
    raise AssertionError("the artifact is built a second time")


# ---- opening ------------------------------------------------------------------------------------------------


def test_a_new_store_is_private(tmp_path):
    store = Store.open(tmp_path / "a" / "store")
    for room in (store.root, *store.root.iterdir()):
        assert room.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_store_that_others_can_write_is_refused(tmp_path, mode):
    root = Store.open(tmp_path / "s").root
    root.chmod(mode)
    with pytest.raises(TrustError, match="others may write to it") as caught:
        Store.open(root)
    assert "chmod go-w" in caught.value.hint
    root.chmod(0o700)
    (root / "native").chmod(mode)
    with pytest.raises(TrustError, match="others may write to it") as caught:
        Store.open(root)
    assert caught.value.where == str(root / "native")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_store_of_somebody_else_is_refused(tmp_path):
    root = Store.open(tmp_path / "s").root
    os.chown(root, 12345, -1)
    with pytest.raises(TrustError, match="belongs to user id 12345"):
        Store.open(root)


@pytest.mark.parametrize("room", ["packages", "packages/v1", "native/v1", "env", "tmp", "locks", "quarantine", "trust"])
@pytest.mark.parametrize("kind", ["link", "file", "fifo"])
def test_a_planted_room_is_refused_and_its_target_untouched(tmp_path, room, kind):
    root = Store.open(tmp_path / "s").root
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    shutil.rmtree(root / room)
    if kind == "link":
        (root / room).symlink_to(outside)
    elif kind == "file":
        (root / room).write_text("")
    else:
        os.mkfifo(root / room)
    with pytest.raises(TrustError) as caught:
        Store.open(root)
    assert caught.value.where == str(root / room)
    assert [path.name for path in outside.iterdir()] == ["precious"]


def test_the_user_may_link_to_the_store(tmp_path):
    (tmp_path / "big").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to(tmp_path / "big")
    assert Store.open(tmp_path / "home").root == tmp_path / "big"


def test_a_loop_of_links_is_a_clear_error(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(VisgetError):
        Store.open(tmp_path / "a")


@pytest.mark.parametrize("kind", ["link", "hardlink", "fifo"])
def test_a_planted_lock_is_refused_and_its_target_untouched(store, tmp_path, kind):
    target = tmp_path / "precious"
    target.write_text("precious")
    for name in ("tmp", f"native-{KEY}", "store"):
        lock = store.root / "locks" / name
        lock.unlink(missing_ok=True)
        if kind == "link":
            lock.symlink_to(target)
        elif kind == "hardlink":
            lock.hardlink_to(target)
        else:
            os.mkfifo(lock)
        with pytest.raises(TrustError, match="lock file"):
            store.build_native(KEY, build)
        lock.unlink()
    assert target.read_text() == "precious"
    assert store.native(KEY) is None


# ---- packages -----------------------------------------------------------------------------------------------


def test_a_package_comes_back(store):
    digest = store.put_package(b"package")
    assert store.package(digest) == b"package"
    assert store.put_package(b"package") == digest
    assert files_below(store.root) == [f"packages/v1/{digest[:2]}/{digest}.vis"]
    assert store.package(digest_bytes(b"other")) is None
    assert [(found, path.name) for found, path in store.packages()] == [(digest, f"{digest}.vis")]


@pytest.mark.parametrize("damage", ["flip", "empty", "short", "long", "nul", "link", "own link", "fifo", "directory"])
def test_a_damaged_package_is_a_miss_and_heals(store, tmp_path, caplog, damage):
    data = bytes(range(256)) * 5
    digest = store.put_package(data)
    path = store.root / "packages" / "v1" / digest[:2] / f"{digest}.vis"
    harm(path, data, damage, tmp_path)
    with caplog.at_level(logging.WARNING, "visget.cache"):
        assert store.package(digest) is None
    assert "damaged" in caplog.text
    assert "quarantine" in caplog.text
    assert not os.path.lexists(path)
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert store.put_package(data) == digest
    assert store.package(digest) == data
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("damage", ["flip", "link", "fifo", "directory"])
def test_putting_a_package_mends_a_damaged_one(store, tmp_path, damage):
    data = bytes(range(256)) * 5
    digest = store.put_package(data)
    harm(store.root / "packages" / "v1" / digest[:2] / f"{digest}.vis", data, damage, tmp_path)
    assert store.put_package(data) == digest
    assert store.package(digest) == data
    assert (tmp_path / "precious").read_text() == "precious"


def harm(path: Path, data: bytes, damage: str, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    path.parent.chmod(0o700)
    path.unlink()
    changed = {
        "flip": data[:100] + bytes([data[100] ^ 1]) + data[101:],
        "empty": b"",
        "short": data[:-1],
        "long": data + b"\0",
        "nul": bytes(len(data)),
    }
    if damage in changed:
        path.write_bytes(changed[damage])
    elif damage == "link":
        path.symlink_to(tmp_path / "precious")
    elif damage == "own link":
        # The same bytes, but where others may change them after they were checked.
        (tmp_path / "copy").write_bytes(data)
        path.symlink_to(tmp_path / "copy")
    elif damage == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()


def test_envelopes_are_checked_and_replaced(store, caplog):
    digest = store.put_package(b"package")
    assert store.envelope(digest) is None
    store.put_envelope(digest, b"one")
    store.put_envelope(digest, b"two")
    store.put_envelope(digest, b"two")
    assert store.envelope(digest) == b"two"
    (path,) = (store.root / "packages" / "v1" / digest[:2]).glob("*.dsse")
    path.chmod(0o600)
    path.write_bytes(b"tWo")
    assert store.envelope(digest) is None
    assert "damaged" in caplog.text
    store.put_envelope(digest, b"two")
    store.remove_package(digest)
    assert list((store.root / "packages" / "v1" / digest[:2]).iterdir()) == []


# ---- native artifacts ---------------------------------------------------------------------------------------


def test_an_artifact_is_built_once(store):
    assert store.native(KEY) is None
    entry = store.build_native(KEY, build)
    assert (entry.path, entry.key) == (store.root / "native" / "v1" / KEY, KEY)
    assert [file.path for file in entry.files] == ["include/x.h", "lib/libx.a", "lib/libx.so", "receipt.json"]
    assert entry.files[2].sha256 == digest_bytes(LIBRARY)
    assert entry.size == sum(file.size for file in entry.files)
    assert store.build_native(KEY, never) == entry
    assert store.native(KEY) == store.native(KEY, check="quick") == entry
    assert list(store.natives()) == [entry]
    assert {path.stat().st_mode & 0o777 for path in entry.path.rglob("*") if path.is_file()} == {0o444}
    assert list((store.root / "tmp").iterdir()) == []


def test_a_failed_build_leaves_nothing(store):
    def fails(work):
        build(work)
        raise CompileError("no")

    with pytest.raises(CompileError):
        store.build_native(KEY, fails)
    assert files_below(store.root) == []
    assert store.build_native(KEY, build)


@pytest.mark.parametrize("kind", ["link", "fifo", "nothing", "entry", "control"])
def test_a_build_that_leaves_something_else_than_files_is_a_mistake(store, kind):
    def wrong(work):
        if kind == "link":
            (work / "l").symlink_to("/etc/passwd")
        elif kind == "fifo":
            os.mkfifo(work / "f")
        elif kind == "entry":
            (work / "entry.json").write_text("{}")
        elif kind == "control":
            (work / "a\nb").write_text("")

    with pytest.raises(ValueError, match=r"neither|at least one|called"):
        store.build_native(KEY, wrong)
    assert files_below(store.root) == []


def entry_damages():
    def edit(name, change):
        def apply(directory):
            path = directory / name
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(change(data))

        return apply

    def swap_key(data):
        document = json.loads(data)
        document["key"] = digest_bytes(b"another")
        return json.dumps(document).encode()

    def no_files(data):
        document = json.loads(data)
        document["files"] = []
        return json.dumps(document).encode()

    yield "library flipped", edit("lib/libx.so", lambda data: data[:50] + b"\xff" + data[51:]), "full"
    yield "library NUL-filled", edit("lib/libx.so", lambda data: bytes(len(data))), "full"
    yield "library empty", edit("lib/libx.so", lambda data: b""), "quick"
    yield "library short", edit("lib/libx.so", lambda data: data[:-1]), "quick"
    yield "receipt flipped", edit("receipt.json", lambda data: b"[]"), "full"
    yield "file missing", lambda directory: (directory / "receipt.json").unlink(), "quick"
    yield "file added", lambda directory: (directory / "lib" / "evil.so").write_text(""), "quick"
    yield "entry.json missing", lambda directory: (directory / "entry.json").unlink(), "quick"
    yield "entry.json empty", edit("entry.json", lambda data: b""), "quick"
    yield "entry.json NUL-filled", edit("entry.json", lambda data: bytes(len(data))), "quick"
    yield "entry.json short", edit("entry.json", lambda data: data[:-20]), "quick"
    yield "entry.json of another key", edit("entry.json", swap_key), "quick"
    yield "entry.json without files", edit("entry.json", no_files), "quick"
    yield "entry.json is an array", edit("entry.json", lambda data: b"[]"), "quick"
    yield "entry.json nested", edit("entry.json", lambda data: b"[" * 100_000), "quick"
    yield "entry.json with a wild number", edit("entry.json", lambda data: b'{"format":' + b"9" * 9999 + b"}"), "quick"

    def link_library(directory):
        path = directory / "lib" / "libx.so"
        copy = directory.parent.parent / "copy.so"
        copy.write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(copy)

    def link_folder(directory):
        (directory / "lib").rename(directory.parent.parent / "lib-elsewhere")
        (directory / "lib").symlink_to(directory.parent.parent / "lib-elsewhere")

    def fifo(directory):
        (directory / "receipt.json").unlink()
        os.mkfifo(directory / "receipt.json")

    yield "library is a link to the same bytes", link_library, "quick"
    yield "folder is a link", link_folder, "quick"
    yield "fifo", fifo, "quick"

    def emptied(directory):
        shutil.rmtree(directory)
        directory.mkdir()

    def replaced_by_file(directory):
        shutil.rmtree(directory)
        directory.write_text("")

    def replaced_by_link(directory):
        directory.rename(directory.parent.parent / "moved")
        directory.symlink_to(directory.parent.parent / "moved")

    yield "emptied", emptied, "quick"
    yield "replaced by a file", replaced_by_file, "quick"
    yield "replaced by a link", replaced_by_link, "quick"


DAMAGES = {name: (harm_entry, check) for name, harm_entry, check in entry_damages()}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_artifact_is_a_miss_and_heals(store, caplog, name):
    harm_entry, check = DAMAGES[name]
    entry = store.build_native(KEY, build)
    harm_entry(entry.path)
    assert store.native(KEY, check=check) is None
    assert f"{KEY} is damaged" in caplog.text
    assert not os.path.lexists(entry.path)
    assert len(list((store.root / "quarantine").iterdir())) == 1
    assert store.build_native(KEY, build) == entry
    assert store.native(KEY) == entry


@pytest.mark.parametrize("name", DAMAGES)
def test_a_build_replaces_a_damaged_artifact(store, name):
    entry = store.build_native(KEY, build)
    DAMAGES[name][0](entry.path)
    assert store.build_native(KEY, build) == entry
    assert store.native(KEY) == entry


def test_every_flipped_byte_of_the_list_is_noticed(store):
    entry = store.build_native(KEY, build)
    path = entry.path / "entry.json"
    good = path.read_bytes()
    document = json.loads(good)
    path.chmod(0o600)
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        found = store.native(KEY)
        if found is not None:
            # A flip in the white space that still parses to the same list changes nothing.
            assert json.loads(path.read_bytes()) == document
            continue
        (aside,) = (store.root / "quarantine").iterdir()
        aside.rename(entry.path)
    path.write_bytes(good)
    assert store.native(KEY) == entry


def test_what_a_reader_cannot_read_for_reasons_of_its_own_is_not_moved_away(store, monkeypatch):
    entry = store.build_native(KEY, build)
    digest = store.put_package(b"package")

    def full_table(*args, **kwargs):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full_table)
        assert store.native(KEY) is None
        assert store.package(digest) is None
    assert store.native(KEY) == entry
    assert store.package(digest) == b"package"
    assert list((store.root / "quarantine").iterdir()) == []


def test_a_reader_does_not_move_away_what_a_builder_works_on(store):
    entry = store.build_native(KEY, build)
    (entry.path / "receipt.json").unlink()
    with store.lock(f"native-{KEY}"):
        assert store.native(KEY) is None
        assert entry.path.exists()
    assert store.native(KEY) is None
    assert not entry.path.exists()


def test_leftovers_of_dead_processes_are_removed_and_living_ones_kept(store):
    dead = store.root / "tmp" / "0123456789abcdef"
    (dead / "new" / "lib").mkdir(parents=True)
    (dead / "lock").write_text("")
    (dead / "new" / "lib" / "x").write_text("x")
    (store.root / "tmp" / "never-locked").mkdir()
    (store.root / "tmp" / "stray").write_text("")
    (store.root / "tmp" / "link").symlink_to(store.root / "native")
    seen = []

    def nested(work):
        build(work)
        store.put_package(b"written while another workspace is alive")
        seen.extend(path.name for path in (store.root / "tmp").iterdir())
        assert (work / "lib" / "libx.so").read_bytes() == LIBRARY

    store.build_native(KEY, nested)
    assert len(seen) == 1
    assert list((store.root / "tmp").iterdir()) == []
    assert store.native(KEY)


def test_removal_is_complete_and_may_be_repeated(store):
    entry = store.build_native(KEY, build)
    store.remove_native(KEY)
    store.remove_native(KEY)
    assert not entry.path.exists()
    assert files_below(store.root) == []


def test_the_last_use_is_noted_at_most_hourly(tmp_path):
    clock = Clock()
    store = open_store(tmp_path / "s", clock)
    entry = store.build_native(KEY, build)
    store.native(KEY)
    assert entry.path.stat().st_mtime == clock.now
    first = clock.now
    clock.now += 3599
    store.native(KEY)
    assert entry.path.stat().st_mtime == first
    clock.now += 2
    store.native(KEY)
    assert entry.path.stat().st_mtime == clock.now
    clock.now -= 10 * 365 * 86400  # the clock had been wrong
    store.native(KEY)
    assert entry.path.stat().st_mtime == clock.now


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_loaded_library_survives_repair_and_removal(store):
    def real(work):
        (work / "x.c").write_text("int pad[40000] = {1}; int f(int x) { return x + 1; }")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", work / "x.so", work / "x.c"], check=True)

    code = f"""
import ctypes, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from visget.cache.store import Store
store = Store.open(Path({str(store.root)!r}))
entry = store.native({KEY!r})
library = ctypes.CDLL(str(entry.path / "x.so"))
assert library.f(1) == 2
(entry.path / "extra").write_text("damage")
assert store.native({KEY!r}) is None          # moved to quarantine
def again(work):
    (work / "x.so").write_bytes(b"something else")
store.build_native({KEY!r}, again)
store.remove_native({KEY!r})
store.gc(max_age=0)
print(library.f(1), (ctypes.c_int * 40000).in_dll(library, "pad")[39999])
"""
    store.build_native(KEY, real)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2 0\n"), done.stderr


def test_an_unwritable_store_reads(store, monkeypatch):
    entry = store.build_native(KEY, build)
    store.put_package(b"p")

    def read_only(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    for name in ("mkdir", "rename", "replace", "utime", "unlink"):
        monkeypatch.setattr(os, name, read_only)
    again = Store.open(store.root)
    assert again.native(KEY) == entry
    with pytest.raises(CacheError, match="Read-only") as caught:
        again.build_native(digest_bytes(b"other"), build)
    assert "--home" in caught.value.hint


def test_reading_imports_nothing_heavy():
    code = (
        "import json, hashlib, pathlib, sys, typing\n"
        "before = set(sys.modules)\n"
        "import visget.cache.store, visget.cache.environment, visget.cache.key\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    allowed = {"dataclasses", "inspect", "logging", "packaging", "shutil", "tempfile", "visget.names", "visget.format"}
    assert allowed & set(done.stdout.split()) == set()


