"""The commands of operators, and meeting registries behind web addresses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from badkit import Place, key_file
from lockkit import sell, user
from static_server import Fault, StaticServer

from visget.errors import EXIT_NOT_FOUND, EXIT_REGISTRY, EXIT_TRUST, EXIT_USAGE


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(root=tmp_path)


def made(place: Place, *words: object) -> dict:
    outcome = place.run("registry", "init", place.registry, *words, "--json")
    assert outcome.code == 0, outcome
    return outcome.json


def test_init_makes_everything_and_asks_nothing(place):
    outcome = place.run("registry", "init", place.registry)
    assert outcome.code == 0
    assert "its root, by which others know it: " in outcome.out
    room = place.config / "registries" / "default"
    assert {path.name for path in room.iterdir()} >= {"root.key", "targets.key", "online.key", "registry.json"}
    assert not list(place.registry.rglob("*.key"))
    listed = place.run("registry", "list", "--json").json
    assert listed["known"]["default"]["trusted"] == "made here"
    assert place.run("search").code == 0
    assert "first use" not in place.run("search").err


def test_init_of_the_same_place_after_it_was_removed(place):
    first = made(place)["fingerprint"]
    assert place.run("search").code == 0
    shutil.rmtree(place.registry)
    shutil.rmtree(place.config)
    second = made(place)["fingerprint"]
    assert first != second
    outcome = place.run("search")
    assert outcome.code == 0, outcome


def test_a_ceremony(place):
    for name in ("a", "b"):
        key_file(place.config / "keys" / f"{name}.key", name)
    b = place.run("key", "show", "b", "--json").json["id"]
    words = ("registry", "init", place.registry, "--threshold", "2", "--root-key", "a", "--root-key", b)
    outcome = place.run(*words)
    assert outcome.code == 0, outcome
    assert "waiting: 1.root.json lacks 1 of the signatures of " + b in outcome.out
    assert "visget registry sign" in outcome.out
    assert place.run("search").code == EXIT_REGISTRY
    assert place.run("registry", "apply", "default").code == EXIT_USAGE
    staged = sorted((place.config / "registries" / "default" / "staged").glob("*.json"))
    signed = place.run("registry", "sign", *staged, "--key", "b", "--json").json
    assert [item["role"] for item in signed["documents"]] == ["root"]
    assert signed["signer"] == b
    applied = place.run("registry", "apply", "default", "--json").json
    assert len(applied["fingerprint"]) == 64
    assert place.run("search").code == 0
    assert place.run("registry", "rotate-online", "default", "--json").json["waiting"] != []
    assert place.run("registry", "refresh", "default").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--threshold", "2"), "for registries whose holders are named"),
        (("--root-key", "nobody"), "there is no signing key 'nobody'"),
        (("--root-key", "vk1" + "a" * 52), "refused"),
        (("--timestamp-days", "0"), "0 is not in the range"),
    ],
)
def test_what_init_refuses(place, words, says):
    outcome = place.run("registry", "init", place.registry, *words)
    assert outcome.code in (EXIT_USAGE, EXIT_TRUST)
    assert says in outcome.err
    assert not (place.registry / "visget.json").exists()


@pytest.mark.parametrize("name", ["a\nb", "tab\there", "esc\x1b[2J", "\udcff"], ids=ascii)
def test_a_place_that_the_configuration_cannot_name_is_refused_first(place, name):
    place.config.mkdir(parents=True)
    (place.config / "config.toml").write_text("jobs = 1\n")
    for words in (("init", place.root / name), ("add", "team", str(place.root / name))):
        outcome = place.run("registry", *words)
        assert outcome.code == EXIT_USAGE, outcome
        assert "cannot be the location of a registry" in outcome.text
        assert "\x1b[2J" not in outcome.text
    assert not (place.root / name).exists()
    assert [path.name for path in place.config.iterdir()] == ["config.toml"]
    assert (place.config / "config.toml").read_text() == "jobs = 1\n"


def test_who_is_no_holder_signs_nothing(place, tmp_path):
    for name in ("a", "b", "stranger"):
        key_file(place.config / "keys" / f"{name}.key", name)
    a, b = (place.run("key", "show", name, "--json").json["id"] for name in "ab")
    outcome = place.run("registry", "init", place.registry, "--root-key", a, "--targets-key", b)
    assert outcome.code == 0, outcome
    files = sorted((place.config / "registries" / "default" / "staged").glob("*.json"))
    before = [path.read_bytes() for path in files]
    outcome = place.run("registry", "sign", *files, "--key", "stranger")
    assert outcome.code == EXIT_USAGE
    assert "is no holder's" in outcome.err
    assert all(holder in outcome.err for holder in (a, b))
    assert [path.read_bytes() for path in files] == before
    # A holder of one of two roles: the other document is left alone, also on a machine that has only the files.
    stick = [shutil.copy(path, tmp_path) for path in files]
    outcome = place.run("registry", "sign", *stick, "--key", "a", "--json")
    assert [item["role"] for item in outcome.json["documents"]] == ["root"]
    assert outcome.json["left"] == [f"1.targets.json is signed by the holders of {b}"]
    assert b in place.run("registry", "sign", *stick, "--key", "a").err
    assert place.run("registry", "sign", *files, "--key", "a").code == 0
    assert place.run("registry", "sign", *files, "--key", "b").code == 0
    assert place.run("registry", "apply", "default").code == 0
    # Later, old and new holders sign a root.
    key_file(place.config / "keys" / "new.key", "new")
    new = place.run("key", "show", "new", "--json").json["id"]
    assert place.run("registry", "rotate-root", "default", "--root-key", new).code == 0
    (file,) = (place.config / "registries" / "default" / "staged").glob("*.json")
    outcome = place.run("registry", "sign", file, "--key", "stranger")
    assert outcome.code == EXIT_USAGE
    assert all(holder in outcome.err for holder in (a, new))
    outcome = place.run("registry", "rotate-root", "default", "--root-key", "stranger")
    assert outcome.code == EXIT_USAGE
    assert f"visget registry apply {place.registry}" in outcome.err
    for name in ("a", "new"):
        assert place.run("registry", "sign", file, "--key", name).code == 0
    assert place.run("registry", "apply", place.registry).code == 0


def test_a_copy_of_a_registry_that_is_trusted_is_no_first_use(tmp_path, place):
    made(place)
    copy = shutil.copytree(place.registry, tmp_path / "copy")
    outcome = place.run("search", "--registry", copy)
    assert outcome.code == 0, outcome
    assert "first use" not in outcome.err
    assert place.run("registry", "add", "copy", copy).code == 0
    known = place.run("registry", "list", "--json").json["known"]
    assert known["copy"] == known["default"]
    # Somebody else meets it there for the first time; and another registry is another one.
    stranger = user(tmp_path, copy, "stranger")
    assert "first use" in stranger.run("search").err
    other = Place(root=tmp_path / "other")
    made(other)
    assert "first use" in place.run("search", "--registry", other.registry).err


def test_an_old_copy_is_judged_by_what_is_known(tmp_path, place):
    made(place)
    assert place.run("search").code == 0
    copy = shutil.copytree(place.registry, tmp_path / "copy")
    assert place.run("registry", "refresh", "--force").code == 0
    assert place.run("search").code == 0
    outcome = place.run("search", "--registry", copy)
    assert outcome.code == EXIT_TRUST, outcome
    assert "first use" not in outcome.err


def test_refresh_and_rotation(place):
    made(place)
    assert "nothing was due" in place.run("registry", "refresh").out
    assert place.run("registry", "refresh", "--force", "--json").json["renewed"] == ["bins", "snapshot", "timestamp"]
    assert "online key was replaced" in place.run("registry", "rotate-online", "default").out
    assert place.run("search").code == 0
    key_file(place.config / "keys" / "holder.key", "holder")
    outcome = place.run("registry", "rotate-root", "default", "--root-key", "holder")
    assert "new holders" in outcome.out, outcome
    assert place.run("search").code == 0
    root = json.loads((place.registry / "tuf" / "5.root.json").read_bytes())
    assert len(root["signed"]["roles"]["root"]["keyids"]) == 1


def test_others_cannot_operate(place, tmp_path):
    made(place)
    stranger = user(tmp_path, place.registry, "stranger")
    for words in (("refresh", place.registry), ("rotate-online", place.registry)):
        outcome = stranger.run("registry", *words)
        assert outcome.code == EXIT_USAGE
        assert "keys are not here" in outcome.err
    assert stranger.run("registry", "refresh", "https://example.org/r").code == EXIT_USAGE


# ---- behind a web address -----------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path):
    place = Place(root=tmp_path / "shop")
    place.root.mkdir()
    fingerprint = made(place)["fingerprint"]
    shutil.copytree(place.config / "registries" / "default", place.root / "registry.operator")
    sell(place.registry)
    with StaticServer(place.registry) as server:
        yield place.registry, server, fingerprint


def test_a_web_registry_must_be_added(tmp_path, shop):
    _, server, fingerprint = shop
    new = user(tmp_path, Path("unused"), "new").with_env(VISGET_REGISTRY=server.url)
    outcome = new.run("search")
    assert outcome.code == EXIT_USAGE
    assert f"visget registry add NAME {server.url} --fingerprint SHA256" in outcome.err
    assert server.requests == []
    wrong = new.run("registry", "add", "team", server.url, "--fingerprint", "0" * 64)
    assert wrong.code == EXIT_TRUST
    assert new.run("registry", "list", "--json").json["registries"] == {}
    added = new.run("registry", "add", "team", server.url, "--fingerprint", fingerprint.upper())
    assert added.code == 0, added
    assert "1 package" in added.out
    assert new.run("search", "xxhash", "--json").json["packages"][0]["name"] == "xxhash"
    by_name = new.with_env(VISGET_REGISTRY="team")
    assert by_name.run("search", "--json").json["packages"][0]["name"] == "xxhash"
    listed = by_name.run("registry", "list", "--json").json["known"]["team"]
    assert (listed["identity"], listed["trusted"]) == (fingerprint, "fingerprint")


def test_adding_by_the_file_of_a_later_root(tmp_path, shop):
    directory, server, fingerprint = shop
    from visget.registry.operator import sibling
    from visget.registry.upkeep import refresh

    refresh(directory, sibling(directory), force=True)
    new = user(tmp_path, Path("unused"), "new")
    root = directory / "tuf" / "2.root.json"
    added = new.run("registry", "add", "team", server.url, "--root", root, "--json")
    assert added.code == 0, added
    # The identity is that of the first root, whichever was handed out.
    assert added.json["identity"] == fingerprint
    assert new.run("registry", "add", "team", server.url, "--root", tmp_path / "none").code == EXIT_USAGE
    both = new.run("registry", "add", "team", server.url, "--root", root, "--fingerprint", fingerprint)
    assert both.code == EXIT_USAGE
    other = new.run("registry", "add", "team", directory)
    assert (other.code, "another registry" in other.err) == (EXIT_USAGE, True)


def test_row_39_mirrors_are_remembered(tmp_path, shop):
    directory, server, fingerprint = shop
    copy = shutil.copytree(directory, tmp_path / "mirror")
    new = user(tmp_path, Path("unused"), "new").with_env(VISGET_REGISTRY="team")
    with StaticServer(copy) as mirror:
        words = ("registry", "add", "team", server.url, "--fingerprint", fingerprint, "--mirror", mirror.url)
        assert new.run(*words).code == 0
        server.faults["*"] = Fault("status", status=403)
        outcome = new.run("search")
        assert outcome.code == 0, outcome
        assert "passed over" in outcome.err
        assert "xxhash" in outcome.out


@pytest.mark.parametrize("fault", [Fault("status", status=401), Fault("status", status=403), Fault("html")])
def test_row_24_a_registry_that_refuses_is_not_one_without_the_package(tmp_path, shop, fault):
    _, server, fingerprint = shop
    new = user(tmp_path, Path("unused"), "new").with_env(VISGET_REGISTRY="team")
    assert new.run("registry", "add", "team", server.url, "--fingerprint", fingerprint).code == 0
    assert new.run("info", "nothing").code == EXIT_NOT_FOUND
    server.faults["*"] = fault
    for words in (("info", "nothing"), ("info", "xxhash"), ("install", "xxhash"), ("search",)):
        outcome = new.run(*words)
        assert outcome.code == EXIT_REGISTRY, outcome


def test_offline(tmp_path, shop):
    _, server, fingerprint = shop
    new = user(tmp_path, Path("unused"), "new").with_env(VISGET_REGISTRY="team")
    assert new.run("registry", "add", "team", server.url, "--fingerprint", fingerprint).code == 0
    assert new.run("info", "xxhash").code == 0
    server.requests.clear()
    away = new.with_env(VISGET_OFFLINE="1")
    assert away.run("search").code == 0
    assert away.run("info", "xxhash").code == EXIT_REGISTRY, "the package itself is not here"
    assert server.requests == []


def test_a_user_who_keeps_a_registry_never_meets_its_expiry(place, monkeypatch):
    import time

    made(place)
    now = time.time
    for days in (10, 100, 400):
        monkeypatch.setattr(time, "time", lambda days=days: now() + days * 86400)
        assert place.run("search").code == 0


def test_the_doctor_warns_before_a_registry_expires(tmp_path, shop, monkeypatch):
    import time

    _, server, fingerprint = shop
    new = user(tmp_path, Path("unused"), "new").with_env(VISGET_REGISTRY="team")
    assert new.run("registry", "add", "team", server.url, "--fingerprint", fingerprint).code == 0
    findings = new.run("doctor", "--json").json["findings"]
    assert [item["status"] for item in findings if item["subject"] == "registries"] == ["ok"]
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 11 * 86400)
    findings = new.run("doctor", "--json").json["findings"]
    assert [item["status"] for item in findings if item["subject"] == "registries"] == ["warning", "ok"]
