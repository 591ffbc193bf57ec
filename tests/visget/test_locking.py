"""`visget lock` and `visget sync`: what is written, what is refused, and that nobody is believed on first use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from badkit import Place, publish_tiny
from lockkit import seize, sell, shop, user
from packagekit import key
from static_server import StaticServer

from visget.config import read_settings
from visget.errors import EXIT_LOCK, EXIT_NOT_FOUND, EXIT_TRUST, EXIT_USAGE
from visget.lockfile import encode_lock, read_lock
from visget.locking import location_of
from visget.registry.operator import sibling


@pytest.fixture
def registry(tmp_path) -> Path:
    return shop(tmp_path / "registry")


@pytest.fixture
def lock(tmp_path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "visget.lock"


def run(place: Place, lock: Path, *words: object, code: int = 0) -> str:
    outcome = place.run(words[0], "--file", lock, *words[1:])
    assert outcome.code == code, outcome
    return outcome.text


def versions(lock: Path) -> dict[str, str]:
    return {item.name: str(item.version) for item in read_lock(lock).packages}


def change(lock: Path, old: str, new: str) -> None:
    text = lock.read_text()
    assert old in text
    lock.write_text(text.replace(old, new))


# ---- lock ------------------------------------------------------------------------------------------------


def test_lock_writes_what_was_verified(tmp_path, registry, lock):
    made = sell(registry, "xxhash", "1.0")
    sell(registry, "zlib", "1.3")
    place = user(tmp_path, registry)
    assert "+ xxhash 1.0\n+ zlib 1.3\nwrote" in run(place, lock, "lock", "zlib", "xxhash>=1")
    found = read_lock(lock)
    assert list(map(str, found.requirements)) == ["xxhash>=1", "zlib"]
    package = found.package("xxhash")
    assert package is not None
    assert package.digest == made.digest
    assert package.owners == (key().public,)
    assert lock.read_text() == encode_lock(found)
    assert "nothing changed" in run(place, lock, "lock")
    outcome = place.run("lock", "--file", lock, "--json").json
    assert outcome == {"file": str(lock), "packages": 2, "written": False, "changes": []}
    # Another machine writes the same text.
    other = tmp_path / "other" / "visget.lock"
    other.parent.mkdir()
    run(user(tmp_path, registry, "second"), other, "lock", "xxhash>=1", "zlib")
    assert other.read_bytes() == lock.read_bytes()


def test_lock_keeps_what_satisfies(tmp_path, registry, lock):
    sell(registry, "xxhash", "1.0")
    sell(registry, "zlib", "1.0")
    place = user(tmp_path, registry)
    run(place, lock, "lock", "xxhash", "zlib")
    sell(registry, "xxhash", "1.1")
    sell(registry, "xxhash", "2.0rc1")
    sell(registry, "zlib", "1.1")
    run(place, lock, "lock")
    assert versions(lock) == {"xxhash": "1.0", "zlib": "1.0"}
    assert "  xxhash 1.0 -> 1.1" in run(place, lock, "lock", "--upgrade", "xxhash")
    assert versions(lock) == {"xxhash": "1.1", "zlib": "1.0"}
    run(place, lock, "lock", "xxhash==2.0rc1")
    assert versions(lock) == {"xxhash": "2.0rc1", "zlib": "1.0"}
    run(place, lock, "lock", "--upgrade")
    assert versions(lock) == {"xxhash": "2.0rc1", "zlib": "1.1"}
    change(lock, '    "zlib",\n', "")
    assert "- zlib 1.1" in run(place, lock, "lock")
    assert versions(lock) == {"xxhash": "2.0rc1"}


def test_lock_refuses_nonsense(tmp_path, registry, lock):
    sell(registry)
    place = user(tmp_path, registry)
    assert "nothing is named" in run(place, lock, "lock", code=EXIT_USAGE)
    assert "named twice" in run(place, lock, "lock", "xxhash", "xxhash>1", code=EXIT_USAGE)
    run(place, lock, "lock", "nosuch", code=EXIT_NOT_FOUND)
    run(place, lock, "lock", "xxhash>5", code=EXIT_NOT_FOUND)
    run(place, lock, "lock", "--check", code=EXIT_USAGE)
    run(place, lock, "sync", code=EXIT_USAGE)
    assert not lock.exists()
    run(place, tmp_path / "none" / "visget.lock", "lock", "xxhash", code=6)
    run(place, lock, "lock", "xxhash")
    run(place, lock, "lock", "--check", "--upgrade", code=EXIT_USAGE)
    run(place, lock, "sync", "--locked", "--frozen", code=EXIT_USAGE)
    before = lock.read_bytes()
    run(place, lock, "lock", "nosuch", code=EXIT_NOT_FOUND)
    assert lock.read_bytes() == before


def test_locations_are_relative_where_they_can_be(tmp_path, lock):
    near = shop(lock.parent / "packages")
    sell(near)
    place = user(tmp_path, near)
    run(place, lock, "lock", "xxhash")
    assert read_lock(lock).registries[0].location == "./packages"
    far = shop(tmp_path / "far")
    sell(far, "zlib")
    run(place, lock, "lock", "zlib", "--registry", far)
    assert sorted(item.location for item in read_lock(lock).registries) == ["./packages", str(far)]
    stranger = user(tmp_path, tmp_path / "nowhere", "stranger")
    run(stranger, lock, "lock", "--check")


# ---- out of date: exit code 7 ----------------------------------------------------------------------------


def test_check_and_exit_code_7(tmp_path, registry, lock):
    sell(registry, "xxhash", "1.0")
    sell(registry, "xxhash", "1.1")
    place = user(tmp_path, registry)
    run(place, lock, "lock", "xxhash<1.1")
    assert "up to date: 1 package" in run(place, lock, "lock", "--check")
    before = lock.read_bytes()
    text = run(place, lock, "lock", "--check", "xxhash>1", code=EXIT_LOCK)
    assert "xxhash>1 is wanted, and xxhash 1.0 is locked" in text
    assert "zlib is not locked" in run(place, lock, "lock", "--check", "zlib", code=EXIT_LOCK)
    assert lock.read_bytes() == before
    change(lock, "xxhash<1.1", "xxhash>=1.1")
    for words in (("lock", "--check"), ("lock", "--check", "--offline"), ("sync", "--locked")):
        text = run(place, lock, *words, code=EXIT_LOCK)
        assert "xxhash>=1.1 is wanted, and xxhash 1.0 is locked" in text
        assert "visget lock" in text
    failed = place.run("sync", "--file", lock, "--locked", "--json").json
    assert failed["exit_code"] == EXIT_LOCK
    assert failed["details"]["problems"] == ["xxhash>=1.1 is wanted, and xxhash 1.0 is locked"]
    run(place, lock, "lock")
    run(place, lock, "lock", "--check")
    assert versions(lock) == {"xxhash": "1.1"}


# ---- owners, bytes and registries ------------------------------------------------------------------------


@pytest.mark.parametrize("filling", [b"", b"other"], ids=["same bytes", "other bytes"])
def test_row_24_owner_mismatch_with_the_lock(tmp_path, registry, lock, filling):
    """A machine that has never seen the package believes the lock file, not a registry that was taken over."""
    sell(registry)
    run(user(tmp_path, registry), lock, "lock", "xxhash")
    before = lock.read_bytes()
    seize(registry, "xxhash", "1.0", key("thief"), filling=filling)
    fresh = user(tmp_path, registry, "fresh")
    for words in (("lock", "--check"), ("sync",), ("sync", "--locked"), ("lock", "--upgrade")):
        text = run(fresh, lock, *words, code=EXIT_TRUST)
        assert key("thief").public.id in text or "owner" in text
    assert not list((fresh.home / "packages").rglob("*.vis"))
    assert lock.read_bytes() == before
    # Without the lock file the same machine believes the thief.
    run(fresh, tmp_path / "none.lock", "lock", "xxhash")


def test_row_40_owner_change_of_a_newer_version(tmp_path, registry, lock):
    sell(registry)
    run(user(tmp_path, registry), lock, "lock", "xxhash")
    before = lock.read_bytes()
    seize(registry, "xxhash", "1.1", key("thief"))
    fresh = user(tmp_path, registry, "fresh")
    text = run(fresh, lock, "lock", "--upgrade", code=EXIT_TRUST)
    assert key("thief").public.id in text or "owner" in text
    assert lock.read_bytes() == before


def test_row_24_a_registry_begun_anew_at_the_same_place(tmp_path, registry, lock):
    sell(registry)
    run(user(tmp_path, registry), lock, "lock", "xxhash")
    shutil.rmtree(registry)
    shutil.rmtree(sibling(registry))
    shop(registry)
    sell(registry, filling=b"other")
    for words in (("lock", "--check"), ("sync",), ("lock", "--upgrade")):
        assert "another registry" in run(user(tmp_path, registry, "fresh"), lock, *words, code=EXIT_TRUST)


def test_other_bytes_of_the_locked_version(tmp_path, registry, lock):
    sell(registry)
    place = user(tmp_path, registry)
    run(place, lock, "lock", "xxhash")
    locked = read_lock(lock).packages[0].digest
    change(lock, f'digest = "sha256:{locked}"', f'digest = "sha256:{"0" * 64}"')
    for words in (("lock", "--check"), ("sync",), ("sync", "--frozen")):
        assert "other bytes" in run(place, lock, *words, code=EXIT_TRUST)
    assert "other bytes" in run(place, lock, "lock", "--upgrade", code=EXIT_TRUST)


def test_row_24_another_registry_at_the_same_place(tmp_path, registry, lock):
    sell(registry)
    place = user(tmp_path, registry)
    run(place, lock, "lock", "xxhash")
    other = shop(tmp_path / "other")
    sell(other)
    for mode in ((), ("--locked",)):
        place = user(tmp_path, registry, "new")
        assert "another registry" in run(place, lock, "sync", *mode, "--registry", other, code=EXIT_TRUST)
    identity = read_lock(lock).registries[0].identity
    change(lock, identity, "0" * 64)
    assert "another registry" in run(place, lock, "lock", "--check", code=EXIT_TRUST)


def test_row_24_a_package_moves_to_another_registry_only_with_its_owner(tmp_path, registry, lock):
    sell(registry)
    place = user(tmp_path, registry)
    run(place, lock, "lock", "xxhash")
    thieves, honest = shop(tmp_path / "thieves"), shop(tmp_path / "honest")
    sell(thieves, "xxhash", "9.9", signer=key("thief"))
    sell(honest, "xxhash", "1.1")
    run(place, lock, "lock", "xxhash", "--registry", thieves, code=EXIT_TRUST)
    assert versions(lock) == {"xxhash": "1.0"}
    run(place, lock, "lock", "xxhash", "--registry", honest)
    assert versions(lock) == {"xxhash": "1.1"}


def test_row_24_a_registry_that_fails_is_not_replaced(tmp_path, registry, lock):
    """Two registries; the private one cannot be read: nothing falls through to the public one."""
    sell(registry, "private", "1.0")
    public = shop(tmp_path / "public")
    sell(public, "private", "99.0", signer=key("thief"))
    place = user(tmp_path, public)
    run(place, lock, "lock", "private", "--registry", registry)
    registry.rename(tmp_path / "gone")
    for words in (("lock", "--check"), ("sync",), ("lock", "--upgrade")):
        run(place, lock, *words, code=4)
    assert versions(lock) == {"private": "1.0"}


# ---- sync ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("tiny"))


def test_sync_installs_and_selects(tiny, tmp_path, lock):
    place = user(tmp_path, tiny.registry)
    run(place, lock, "lock", "tiny")
    text = run(place, lock, "sync")
    assert "tiny 1.0 (compiled)" in text
    assert "first use" not in text
    listed = place.run("list", "--json").json["installed"]
    assert [(item["name"], item["selected"]) for item in listed] == [("tiny", True)]
    assert "tiny 1.0 (was here)" in run(place, lock, "sync", "--locked")
    assert "1 package as" in run(place, lock, "sync", "--frozen")
    assert place.run("sync", "--file", lock, "--json").json["installed"][0]["reused"] is True


def test_frozen_needs_no_registry_for_what_is_here(tiny, tmp_path, lock):
    copy = tmp_path / "registry"
    shutil.copytree(tiny.registry, copy, symlinks=True)
    place = user(tmp_path, copy)
    run(place, lock, "lock", "tiny")
    copy.rename(tmp_path / "gone")
    run(place, lock, "sync", code=4)
    run(place, lock, "sync", "--locked", code=4)
    run(place, lock, "sync", "--frozen")
    # The lock file may ask for something else by now: frozen does not look.
    change(lock, '    "tiny",\n', '    "tiny>7",\n')
    run(place, lock, "sync", "--frozen")
    # The file names the owner: with another one the package in the store is not good enough.
    change(lock, key_id(lock), key("thief").public.id)
    run(place, lock, "sync", "--frozen", code=4)


def key_id(lock: Path) -> str:
    return read_lock(lock).packages[0].owners[0].id


def test_frozen_does_not_believe_the_name(tiny, tmp_path, lock):
    place = user(tmp_path, tiny.registry)
    run(place, lock, "lock", "tiny")
    change(lock, 'version = "1.0"', 'version = "2.0"')
    text = run(place, lock, "sync", "--frozen", code=EXIT_TRUST)
    assert "but it is tiny 1.0" in text


def test_sync_brings_the_file_up_to_date_first(tiny, tmp_path, lock):
    place = user(tmp_path, tiny.registry)
    lock.write_text('version = 1\nrequirements = ["tiny"]\n')
    run(place, lock, "sync", "--locked", code=EXIT_LOCK)
    run(place, lock, "sync")
    assert versions(lock) == {"tiny": "1.0"}
    assert json.loads(place.run("list", "--json").out)["installed"][0]["name"] == "tiny"


# ---- over the network ------------------------------------------------------------------------------------


@pytest.fixture
def served(tiny):
    with StaticServer(tiny.registry) as server:
        yield server


def test_a_lock_file_introduces_a_registry_behind_a_web_address(tiny, tmp_path, lock, served):
    """Nobody knows that address; the lock file says which registry must answer there, so nothing is first use."""
    run(user(tmp_path, tiny.registry), lock, "lock", "tiny")
    change(lock, str(tiny.registry), served.url)
    fresh = user(tmp_path, Path("nowhere"), "fresh")
    assert fresh.run("install", "tiny", "--registry", served.url).code == EXIT_USAGE
    text = run(fresh, lock, "sync", "--locked")
    assert "first use" not in text
    assert served.requests
    # From now on it is known, and what was fetched serves without network.
    count = len(served.requests)
    fresh.run("uninstall", "tiny")
    outcome = fresh.run("install", "tiny", "--registry", served.url, "--offline")
    assert outcome.code == 0, outcome
    run(fresh, lock, "sync", "--locked", "--offline")
    run(fresh, lock, "lock", "--check", "--offline")
    assert len(served.requests) == count


def test_row_24_another_registry_behind_the_locked_address(tiny, tmp_path, lock, served):
    run(user(tmp_path, tiny.registry), lock, "lock", "tiny")
    change(lock, str(tiny.registry), served.url)
    identity = read_lock(lock).registries[0].identity
    change(lock, identity, "0" * 64)
    for words in (("sync",), ("sync", "--locked"), ("sync", "--frozen"), ("lock", "--check"), ("lock", "--upgrade")):
        text = run(user(tmp_path, Path("nowhere"), "fresh"), lock, *words, code=EXIT_TRUST)
        assert "another registry" in text


def test_credentials_stay_out_of_the_lock_file(tiny, tmp_path, lock, served):
    run(user(tmp_path, tiny.registry), lock, "lock", "tiny")
    change(lock, str(tiny.registry), served.url)
    fresh = user(tmp_path, Path("nowhere"), "fresh")
    run(fresh, lock, "sync")
    secret = served.url.replace("http://", "http://user:secret@")
    fresh.config.mkdir()
    (fresh.config / "config.toml").write_text(f'[registries]\nown = "{secret}"\n')
    other = lock.with_name("other.lock")
    run(fresh.with_env(VISGET_REGISTRY="own"), other, "lock", "tiny")
    assert "secret" not in other.read_text()
    assert read_lock(other).registries[0].location == served.url
    # And the user's own entry for that address is what is used.
    (registry,) = read_lock(other).registries
    settings = read_settings({"VISGET_CONFIG_DIR": str(fresh.config)})
    assert location_of(registry, other, settings) == secret
    assert location_of(registry, other, read_settings({})) == served.url
    run(fresh.with_env(VISGET_REGISTRY=""), other, "lock", "--check")
