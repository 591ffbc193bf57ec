"""`visget bundle`: packages for a machine that has no network and has never seen the registry."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from badkit import Place, publish_tiny, snapshot
from lockkit import seize, sell, shop, user
from packagekit import key

from visget.config import read_settings
from visget.errors import EXIT_NOT_FOUND, EXIT_REGISTRY, EXIT_TRUST, EXIT_USAGE, RegistryError
from visget.lockfile import read_lock
from visget.names import parse_name
from visget.registry.client import open_registry


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Place:
    """A registry with tiny, and many packages that nobody wants."""
    place = publish_tiny(tmp_path_factory.mktemp("tiny"))
    keys = place.config / "registries" / "default"
    for name in ("xxhash", "zlib", "lz4"):
        sell(place.registry, name, "1.0", keys=keys)
    return place


@pytest.fixture
def bundle(tiny, tmp_path) -> Path:
    directory = tmp_path / "bundle"
    outcome = tiny.run("bundle", "tiny", "-o", directory)
    assert outcome.code == 0, outcome
    assert "1 package in" in outcome.out
    return directory


@pytest.fixture
def far(tmp_path) -> Place:
    """A user without network, registries or memory."""
    return Place(root=tmp_path / "far", variables={"VISGET_REGISTRY": ""})


def test_install_offline_from_a_bundle(bundle, far, tiny):
    outcome = far.run("install", "tiny", "--registry", bundle, "--offline")
    assert outcome.code == 0, outcome
    assert "first use" in outcome.err
    assert "first use of the registry" not in tiny.run("install", "tiny", "--registry", bundle).err
    loaded = far.process("path", "tiny")
    assert loaded.code == 0
    assert far.run("install", "tiny==2", "--registry", bundle, "--offline").code == EXIT_NOT_FOUND
    # A bundle is the same registry: what was pinned here counts there.
    settings = read_settings({"VISGET_HOME": str(far.home)})
    with (
        open_registry(str(bundle), trust=settings.home / "trust") as copy,
        open_registry(str(tiny.registry)) as original,
    ):
        assert copy.identity == original.identity
        assert copy.releases(parse_name("tiny")) == original.releases(parse_name("tiny"))


def test_a_bundle_holds_what_it_must_and_no_more(bundle, tiny):
    files = snapshot(bundle)
    assert {path for path in files if "/" not in path} == {"visget.json", "visget.lock"}
    assert len([path for path in files if path.startswith("t/")]) == len(list((tiny.registry / "t").glob("*tiny*")))
    assert not [path for path in files if "xxhash" in path or "zlib" in path]
    assert len([path for path in files if ".bin-" in path]) == 1
    for path in files:
        if path != "visget.lock":
            assert (bundle / path).read_bytes() == (tiny.registry / path).read_bytes()
    lock = read_lock(bundle / "visget.lock")
    assert [item.name for item in lock.packages] == ["tiny"]
    assert lock.registries[0].location == "./"
    # Nobody else's memory was needed: a bundle does not look at the world.
    shutil.copytree(bundle, bundle.with_name("moved"))
    with open_registry(str(bundle.with_name("moved"))) as moved:
        assert [str(item.version) for item in moved.releases(parse_name("tiny")).versions] == ["1.0"]


def test_sync_from_a_bundle(bundle, far, tiny, tmp_path):
    """With the lock file, which came another way, nothing is believed on first use, and nothing expires."""
    lock = tmp_path / "visget.lock"
    assert tiny.run("lock", "--file", lock, "tiny").code == 0
    outcome = far.run("sync", "--file", lock, "--locked", "--registry", bundle, "--offline")
    assert outcome.code == 0, outcome
    assert "first use" not in outcome.text
    frozen = Place(root=tmp_path / "frozen", variables={"VISGET_REGISTRY": ""})
    for path in (bundle / "tuf").iterdir():
        path.unlink()
    refused = frozen.run("sync", "--file", lock, "--locked", "--registry", bundle, "--offline")
    assert refused.code in (EXIT_REGISTRY, EXIT_TRUST)
    outcome = frozen.run("sync", "--file", lock, "--frozen", "--registry", bundle, "--offline")
    assert outcome.code == 0, outcome
    # The lock file inside is enough, for those who trust whoever brought it.
    third = Place(root=tmp_path / "third", variables={"VISGET_REGISTRY": ""})
    assert third.run("sync", "--file", bundle / "visget.lock", "--frozen", "--offline").code == 0


@pytest.mark.parametrize("victim", ["vis", "dsse"])
def test_a_bundle_that_was_tampered_with(bundle, far, tiny, tmp_path, victim):
    lock = tmp_path / "visget.lock"
    assert tiny.run("lock", "--file", lock, "tiny").code == 0
    (path,) = (bundle / "t").glob(f"*.{victim}")
    data = bytearray(path.read_bytes())
    path.chmod(0o644)
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    for words in (
        ("install", "tiny", "--registry", bundle, "--offline"),
        ("sync", "--file", lock, "--locked", "--registry", bundle, "--offline"),
        ("sync", "--file", lock, "--frozen", "--registry", bundle, "--offline"),
    ):
        outcome = far.run(*words)
        assert outcome.code in (EXIT_TRUST, EXIT_REGISTRY), outcome
    assert far.run("list", "--json").json["installed"] == []


def test_bundling_by_lock_file(tiny, tmp_path):
    registry = shop(tmp_path / "registry")
    for name, version in (("xxhash", "1.0"), ("zlib", "1.0")):
        sell(registry, name, version)
    place, lock = user(tmp_path, registry), tmp_path / "visget.lock"
    assert place.run("lock", "--file", lock, "xxhash", "zlib").code == 0
    sell(registry, "xxhash", "2.0")
    done = place.run("bundle", "--file", lock, "-o", tmp_path / "all", "--json").json
    assert [(item["name"], item["version"]) for item in done["packages"]] == [("xxhash", "1.0"), ("zlib", "1.0")]
    done = place.run("bundle", "--file", lock, "xxhash", "-o", tmp_path / "one", "--json").json
    assert [(item["name"], item["version"]) for item in done["packages"]] == [("xxhash", "1.0")]
    for words in (("lz4",), ("xxhash>=2",)):
        assert place.run("bundle", "--file", lock, *words, "-o", tmp_path / "none").code == EXIT_NOT_FOUND
    newest = place.run("bundle", "xxhash", "-o", tmp_path / "newest", "--json").json
    assert newest["packages"][0]["version"] == "2.0"
    # Another registry's owner is not bundled either.
    seize(registry, "zlib", "1.0", key("thief"), filling=b"other")
    assert place.run("bundle", "--file", lock, "-o", tmp_path / "stolen").code == EXIT_TRUST
    assert not (tmp_path / "stolen").exists()
    assert not (tmp_path / "none").exists()
    assert not list(tmp_path.glob(".*"))


def test_misuse(tiny, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "file").touch()
    for words, code in (
        (("tiny", "-o", tmp_path / "full"), EXIT_USAGE),
        (("tiny", "-o", tmp_path / "file"), EXIT_USAGE),
        (("-o", tmp_path / "new"), EXIT_USAGE),
        (("tiny", "tiny", "-o", tmp_path / "new"), EXIT_USAGE),
        (("nosuch", "-o", tmp_path / "new"), EXIT_NOT_FOUND),
        (("tiny", "--file", tmp_path / "no.lock", "-o", tmp_path / "new"), EXIT_USAGE),
        (("tiny",), EXIT_USAGE),
    ):
        outcome = tiny.run("bundle", *words)
        assert outcome.code == code, outcome
        assert "Traceback" not in outcome.err
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    assert tiny.run("bundle", "tiny", "-o", tmp_path / "empty").code == 0


def test_packages_of_several_registries(tmp_path):
    one, other, lock = shop(tmp_path / "one"), shop(tmp_path / "other"), tmp_path / "visget.lock"
    sell(one, "xxhash")
    sell(other, "zlib")
    place = user(tmp_path, one)
    assert place.run("lock", "--file", lock, "xxhash").code == 0
    assert place.run("lock", "--file", lock, "zlib", "--registry", other).code == 0
    outcome = place.run("bundle", "--file", lock, "-o", tmp_path / "bundle")
    assert outcome.code == EXIT_USAGE
    assert "one registry" in outcome.err
    assert place.run("bundle", "--file", lock, "zlib", "-o", tmp_path / "bundle").code == 0


def test_a_name_that_the_bundle_does_not_hold(bundle, far):
    outcome = far.run("install", "xxhash", "--registry", bundle, "--offline")
    assert outcome.code in (EXIT_REGISTRY, EXIT_NOT_FOUND)
    with open_registry(str(bundle)) as source, pytest.raises((RegistryError,)):
        source.releases(parse_name("nosuch"))
