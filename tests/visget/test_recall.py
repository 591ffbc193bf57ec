"""A repeated installation ends at once when nothing has changed, and goes the long way when anything has."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from badkit import Place, overwrite, publish_tiny, write_project
from packagekit import key

from visget import api, recall, requiring
from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.config import read_settings
from visget.format.package import open_package
from visget.format.signing import sign_package
from visget.installer import linkers
from visget.installing import InstallResult
from visget.names import Requirement
from visget.registries import room_of
from visget.registry.directory import publish
from visget.registry.upkeep import refresh, rotate_online

HEAVY = ("tuf", "securesystemslib", "cryptography", "llvmlite", "urllib3", "zstandard", "elftools", "subprocess")


class LongWayError(Exception):
    """The installation would have gone the long way."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Place:
    place = publish_tiny(tmp_path_factory.mktemp("recall"))
    project = write_project(place.root / "second", version="2.0")
    assert place.run("build", project).code == 0
    return place


@pytest.fixture
def place(tmp_path, made) -> Place:
    """A copy where tiny 1.0 is installed, and where that is remembered."""
    for name in ("registry", "config", "second"):
        shutil.copytree(made.root / name, tmp_path / name)
    place = Place(root=tmp_path)
    for _ in range(2):  # the first one tells of the registry's first use
        assert place.run("install", "tiny").code == 0
    return place


def install(place: Place, text: str = "tiny", **options: object) -> InstallResult:
    return api.install(text, settings=read_settings(place.environ), **options)  # type: ignore[arg-type]


@pytest.fixture
def shut(monkeypatch):
    """Close the long way."""

    def refuse(*_: object, **__: object) -> None:
        raise LongWayError

    def close() -> None:
        monkeypatch.setattr(requiring, "obtain_chain", refuse)

    return close


def test_the_same_again(place, shut):
    long = install(place)
    shut()
    short = install(place)
    assert short == long
    assert short.reused


def test_nothing_heavy_is_loaded(place):
    code = (
        "import sys, visget.api, visget.config\n"
        "done = visget.api.install('tiny')\n"
        "print(done.version, [name for name in sys.argv[1:] if name in sys.modules])"
    )
    # Not in the checkout: Python would take its visget, not the one that installed and remembers.
    done = subprocess.run([sys.executable, "-c", code, *HEAVY], env=place.environ, cwd=place.root, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout == "1.0 []\n"


def _publish_second(place: Place) -> None:
    second = open_package((place.root / "second" / "dist" / "tiny-2.0.vis").read_bytes())
    settings = read_settings(place.environ)
    publish(place.registry, second, sign_package(second, key("author")), keys=room_of(settings, place.registry))


def _refresh(place: Place) -> None:
    refresh(place.registry, room_of(read_settings(place.environ), place.registry), force=True)


def _rotate(place: Place) -> None:
    """A next root, and the old timestamp again beside it."""
    old = (place.registry / "tuf" / "timestamp.json").read_bytes()
    rotate_online(place.registry, room_of(read_settings(place.environ), place.registry))
    overwrite(place.registry / "tuf" / "timestamp.json", old)


def _store(place: Place) -> Store:
    return Store.open(place.home)


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.parent.chmod(0o755)
    overwrite(path, bytes(data))


def _artifact(place: Place) -> None:
    (entry,) = _store(place).natives()
    entry.path.chmod(0o755)
    _damage(entry.path / "lib" / "libtiny.a")


def _package(place: Place) -> None:
    (path,) = (place.home / "packages").rglob("*.vis")
    _damage(path)


def _selected(place: Place) -> None:
    (item,) = Environment(_store(place)).installed()
    Environment(_store(place)).remove(item.name, item.version)


def _pins(place: Place) -> None:
    pins = place.home / "trust" / "pins.json"
    pins.write_bytes(pins.read_bytes() + b"\n")


def _where(place: Place) -> None:
    (record,) = (place.home / "trust" / "at").iterdir()
    record.unlink()


def _key(place: Place) -> None:
    (place.home / "trust" / "store.key").unlink()


def _recollection(place: Place) -> Path:
    return next((place.home / "trust" / "recall").iterdir())


def _tampered(place: Place) -> None:
    for path in (place.home / "trust" / "recall").iterdir():
        document = json.loads(path.read_bytes())
        document["body"] = document["body"].replace('"version": "1.0"', '"version": "6.6"')
        path.write_text(json.dumps(document))


def _cut(place: Place) -> None:
    for path in (place.home / "trust" / "recall").iterdir():
        path.write_bytes(path.read_bytes()[:-9])


def _configuration(place: Place) -> None:
    with (place.config / "config.toml").open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write('trust-policy = "pinned"\n' + text)


CHANGES = {
    "a version is published": _publish_second, "signatures are renewed": _refresh, "there is a next root": _rotate,
    "the artifact is damaged": _artifact, "the package is damaged": _package, "it was uninstalled": _selected,
    "pins": _pins, "the registry's record": _where, "the store's key": _key, "no seal": _tampered, "cut": _cut,
    "settings": _configuration,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_has_changed_leads_the_long_way(place, change, shut):
    CHANGES[change](place)
    shut()
    with pytest.raises(LongWayError):
        install(place)


@pytest.mark.parametrize("options", [{"again": True}, {"target": "baseline"}, {"trust": "vk1"}, {"upgrade": True}])
def test_another_question_has_another_answer(place, shut, options):
    shut()
    with pytest.raises(LongWayError):
        install(place, **options)
    with pytest.raises(LongWayError):
        install(place, "tiny==1.0")


def test_a_new_version_is_found_at_once(place):
    assert install(place).version == "1.0"
    _publish_second(place)
    assert install(place).version == "2.0"
    assert install(place).version == "2.0"


def test_damage_is_healed(place):
    for damage in (_artifact, _package):
        damage(place)
        assert install(place).version == "1.0"
        assert _store(place).check().damaged == ()


@pytest.mark.parametrize(("seconds", "still"), [(-1, False), (0, True), (3599, True), (3600, False), (1e9, False)])
def test_an_hour_later_everything_is_verified_again(place, seconds, still):
    settings = read_settings(place.environ)
    asked = recall.question(settings, "tiny", None, None, [], "shared", False)
    now = json.loads(json.loads(_recollection(place).read_bytes())["body"])["at"]
    found = [recall.recall(asked, settings, clock=lambda: now + seconds) for _ in range(2)]
    assert [item is not None for item in found] == [still] * 2


def test_never_after_what_was_verified_has_expired(place):
    """Here the first signature expires within the hour."""
    settings = read_settings(place.environ)
    asked = recall.question(settings, "tiny", None, None, [], "shared", False)
    body = json.loads(json.loads(_recollection(place).read_bytes())["body"])
    assert time.time() + 13 * 86400 < body["until"] < time.time() + 15 * 86400
    chain = requiring.obtain_chain(Requirement.parse("tiny"), settings=settings)
    almost = body["until"] - 10
    recall.remember(asked, chain, install(place), settings, clock=lambda: almost)
    assert recall.recall(asked, settings, clock=lambda: almost + 9) is not None
    assert recall.recall(asked, settings, clock=lambda: almost + 10) is None


def test_another_machine_or_compiler(place, monkeypatch, shut):
    shut()
    assert install(place).reused
    with monkeypatch.context() as other:
        other.setattr(recall, "machine_id", lambda: "0" * 16)
        with pytest.raises(LongWayError):
            install(place)
    with monkeypatch.context() as other:
        other.setattr(recall, "_tools", lambda: "0" * 64)
        with pytest.raises(LongWayError):
            install(place)
    assert install(place).reused


def test_a_linker_that_appears_counts(tmp_path, monkeypatch):
    before = recall._tools()
    assert recall._tools() == before
    path = tmp_path / "ld.lld"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert recall._tools() != before


@pytest.mark.parametrize("room", ["installer", "format"])
def test_another_code_generator_counts(monkeypatch, room):
    before = recall._tools()
    home = str(Path(importlib.import_module(f"visget.{room}").__file__).parent)
    true = recall._directory
    monkeypatch.setattr(recall, "_directory", lambda path: ["new"] if str(path) == home else true(path))
    assert recall._tools() != before


def test_every_linker_that_is_looked_for_counts():
    assert set(recall._LINKERS) == {*linkers._LLD_NAMES, *linkers._DRIVERS, "ld"}


def test_what_the_user_was_told_is_told_again(place, shut):
    assert place.run("install", "tiny==1.0").code == 0
    assert place.run("yank", "tiny==1.0", "--reason", "wrong").code == 0
    for _ in range(2):
        assert "wrong" in place.run("install", "tiny==1.0").err


def test_old_recollections_go(place):
    old = _recollection(place).with_name("0" * 64 + ".json")
    old.write_text("{}")
    os.utime(old, (1, 1))
    install(place, "tiny==1.0")
    assert not old.exists()
