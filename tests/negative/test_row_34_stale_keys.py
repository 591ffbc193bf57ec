"""Row 34: an artifact that another compiler, another processor or another store made is not loaded.

That every input of a compilation is part of the key is tests/installer/test_plan.py.
"""

import json
import shutil

import pytest
from installable import verified
from storeuser import ADDER, StoreUser, overwrite

from visget import api, machine
from visget.cache.entry import ENTRY
from visget.cache.environment import Environment
from visget.cache.storekey import PLACE, read_key
from visget.installer import install as installing


@pytest.fixture
def user(tmp_path):
    user = StoreUser(tmp_path)
    user.install()
    return user


def test_another_compiler_is_a_miss(user, monkeypatch):
    first = user.install()
    assert first.reused
    monkeypatch.setattr(installing, "compiler_identity", lambda: "llvmlite 0.51.0 / LLVM 23.1.0")
    second = user.install()
    assert not second.reused
    assert second.entry.key != first.entry.key
    assert api.resolve("adder", settings=user.settings)[1].key == second.entry.key


@pytest.mark.parametrize("change", ["flags", "model", "libc"])
def test_another_processor_is_a_miss(user, monkeypatch, change):
    """A shared home directory, or a disk that was put into another machine."""
    facts = {"flags": "fpu sse2", "model": "1", "libc": "glibc 2.36"}
    facts[change] += "0"
    other = machine.machine_id_of(
        "x86_64", "linux", f"flags : {facts['flags']}\nmodel : {facts['model']}\n", facts["libc"]
    )
    assert other != machine.machine_id()
    before = Environment(user.store).lookup("adder")
    monkeypatch.setattr("visget.wiring.machine_id", lambda: other)
    compiled = []
    original = installing.obtain_native
    monkeypatch.setattr(installing, "obtain_native", lambda *a, **k: compiled.append(1) or original(*a, **k))
    assert api.load("adder", settings=user.settings).adder_add(40, 2) == 42
    assert compiled == [1]
    after = Environment(user.store).lookup("adder")
    assert set(after.natives) == {*before.natives, other}, "the first machine keeps its own"


def test_an_artifact_of_another_store_is_compiled_again(user, tmp_path, caplog):
    """A cache that a CI service restored, or a directory that somebody shared: native code of who knows whom."""
    theirs = StoreUser(tmp_path / "theirs")
    entry = theirs.install().entry
    mine = user.store.native_path(entry.key)
    shutil.rmtree(mine)
    shutil.copytree(entry.path, mine)
    assert user.store.native(entry.key) is None
    assert "it does not bear the seal of this store" in caplog.text
    assert len(user.quarantine()) == 1
    assert user.works()
    assert read_key(user.store.root) != read_key(theirs.store.root)


def test_a_forged_list_is_noticed(user):
    """Library and list were changed together, so that every digest is right; only the seal is not."""
    entry = user.install().entry
    library = entry.path / "lib" / "libadder.so"
    evil = library.read_bytes() + b"evil"
    document = json.loads((entry.path / ENTRY).read_text())
    from visget.digest import digest_bytes

    for file in document["files"]:
        if file["path"] == "lib/libadder.so":
            file |= {"size": len(evil), "sha256": digest_bytes(evil)}
    overwrite(library, evil)
    overwrite(entry.path / ENTRY, json.dumps(document).encode())
    assert user.store.native(entry.key, check="quick") is None
    assert user.works()
    assert not library.read_bytes().endswith(b"evil")


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "NUL-filled": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "short": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "flipped": lambda path: path.write_bytes(path.read_bytes()[:40] + b"0" + path.read_bytes()[41:]),
    "another": lambda path: path.write_bytes(path.read_bytes()[::-1]),
    "readable by all": lambda path: path.chmod(0o644),
    "a link": lambda path: (path.rename(path.with_name("elsewhere")), path.symlink_to(path.with_name("elsewhere"))),
    "a directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_key_is_replaced_and_everything_compiled_again(user, damage, caplog):
    path = user.store.root / PLACE
    first, text = read_key(user.store.root), path.read_bytes() if damage == "flipped" else b""
    DAMAGE[damage](path)
    if damage == "flipped" and path.read_bytes() == text:
        pytest.skip("the digit was a 0 already")
    assert user.works()
    assert user.store.check().damaged == ()
    second = read_key(user.store.root)
    assert second is not None
    assert second != first
    assert path.stat().st_mode & 0o777 == 0o600
    assert user.install().reused


def test_the_key_is_private_and_stays(user):
    path = user.store.root / PLACE
    assert path.stat().st_mode & 0o777 == 0o600
    first = path.read_bytes()
    user.install(verified(summary="Another"))
    assert path.read_bytes() == first
    assert first not in b"".join(item.read_bytes() for item in user.store.native_path(
        Environment(user.store).lookup("adder").natives[machine.machine_id()]).rglob("*.json"))


def test_keys_made_at_the_same_moment_are_one(tmp_path):
    user = StoreUser(tmp_path)
    root = user.store.root
    code = (
        f"import time; from pathlib import Path; from visget.cache.storekey import ensure_key\n"
        f"while not Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.005)\n"
        f"print(ensure_key(Path({str(root)!r})).hex())"
    )
    import subprocess
    import sys

    racers = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(6)
    ]
    (tmp_path / "go").touch()
    assert {racer.communicate(timeout=60)[0].strip() for racer in racers} == {read_key(root).hex()}


def test_the_package_is_what_is_trusted(user):
    assert ADDER.package.digest in {digest for digest, _ in user.store.packages()}
