import json
import os

import pytest
from packagekit import key, package

from visget.errors import NotFoundError, RegistryError, TrustError, UnsupportedError, UsageError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.directory import publish
from visget.registry.search import search

XXHASH = parse_name("xxhash")


@pytest.fixture
def item(root):
    made = package()
    publish(root, made, sign_package(made, key()))
    return made


def test_a_directory_is_read_by_path_and_by_url(root, item):
    for location in (str(root), f"file://{root}", f"file://localhost{root}", f"{root}/"):
        registry = open_registry(location)
        assert registry.identity == str(root)
        (release,) = registry.releases(XXHASH).versions
        assert registry.fetch(release)[0] == item.data
        assert [hit.name for hit in search(registry, ["xxh32"])] == ["xxhash"]


@pytest.mark.parametrize("location", ["ftp://h/r", "s3://bucket", "file://host/r", "://"])
def test_other_locations_are_refused(location):
    with pytest.raises(UsageError):
        open_registry(location)


@pytest.mark.parametrize("location", ["http://h/r?x=1", "https://h/r#x", "http://", "http://h:port/"])
def test_addresses_that_cannot_be_a_registry(location):
    with pytest.raises(UsageError, match="cannot be the address"):
        open_registry(location)


@pytest.mark.parametrize(
    ("location", "identity"),
    [
        ("HTTPS://User:Secret@Example.ORG:443/R/", "https://example.org/R"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://h:80", "http://h"),
    ],
)
def test_the_identity_of_a_web_registry_has_no_credentials(location, identity):
    assert open_registry(location).identity == identity


def test_an_unknown_name_is_said_by_the_registry_itself(root, item):
    with pytest.raises(NotFoundError, match="no package 'xxhsah' in this registry") as caught:
        open_registry(str(root)).releases(parse_name("xxhsah"))
    assert caught.value.hint == "did you mean xxhash?"
    with pytest.raises(NotFoundError) as caught:
        open_registry(str(root)).releases(parse_name("qqq"))
    assert "visget search" in caught.value.hint


def test_no_registry_is_not_an_unknown_name(tmp_path):
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(RegistryError, match="no registry here"):
            open_registry(str(place)).releases(XXHASH)


@pytest.mark.parametrize(
    "damage", ["index lost", "names lost", "index is a folder", "names malformed", "root malformed"]
)
def test_a_damaged_registry_is_not_an_unknown_name(root, item, damage):
    path = root / {"i": "index/xxhash.json", "n": "names.json", "r": "visget.json"}[damage[0]]
    path.unlink()
    if damage == "index is a folder":
        path.mkdir()
    elif damage != "index lost" and damage != "names lost":
        path.write_text("<html>")
    wanted = XXHASH if damage.startswith("index") else parse_name("another")
    with pytest.raises(RegistryError):
        open_registry(str(root)).releases(wanted)


def test_what_may_not_be_read_is_not_an_unknown_name(root, item, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(RegistryError, match="Permission denied"):
        open_registry(str(root)).releases(XXHASH)


def test_a_later_format_says_so(root, item):
    (root / "visget.json").write_text('{"format": 2}')
    with pytest.raises(UnsupportedError):
        open_registry(str(root)).releases(XXHASH)


@pytest.mark.parametrize("kind", ["vis", "dsse"])
@pytest.mark.parametrize("damage", ["flip", "short", "long", "lost", "fifo"])
def test_a_changed_file_is_refused(root, item, kind, damage):
    (path,) = (root / "blobs").glob(f"*.{kind}")
    data = path.read_bytes()
    path.unlink()
    if damage == "fifo":
        os.mkfifo(path)
    elif damage != "lost":
        path.write_bytes({"flip": b"\0" + data[1:], "short": data[:-1], "long": data + b"\0"}[damage])
    (release,) = open_registry(str(root)).releases(XXHASH).versions
    with pytest.raises(TrustError if damage in ("flip", "short") else RegistryError) as caught:
        open_registry(str(root)).fetch(release)
    assert caught.value.where == str(path)


def test_a_weak_owner_is_refused(root, item):
    path = root / "index" / "xxhash.json"
    document = json.loads(path.read_bytes())
    document["owners"] = ["vk1" + "a" * 52]
    path.write_text(json.dumps(document))
    with pytest.raises(TrustError):
        open_registry(str(root)).releases(XXHASH)
