import os
import shutil

import pytest
from packagekit import claim, key, package
from registrykit import Told, edit_index, index_file, sign_target, stored

from visget.cache.store import Store
from visget.digest import digest_bytes
from visget.errors import NotFoundError, RegistryError, TrustError, UnsupportedError, UsageError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.contact import Anchor
from visget.registry.directory import init_registry, publish
from visget.registry.search import search
from visget.registry.tuf_names import bin_of, index_target

XXHASH = parse_name("xxhash")


@pytest.fixture
def item(root):
    made = package()
    publish(root, made, sign_package(made, key()), claim=claim(made, key()))
    return made


def test_a_directory_is_read_by_path_and_by_url(root, item):
    for location in (str(root), f"file://{root}", f"file://localhost{root}", f"{root}/"):
        registry = open_registry(location)
        assert registry.location == str(root)
        assert registry.identity == digest_bytes((root / "tuf" / "1.root.json").read_bytes())
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
    ("location", "shown"),
    [
        ("HTTPS://User:Secret@Example.ORG:443/R/", "https://example.org/R"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://h:80", "http://h"),
    ],
)
def test_the_location_of_a_web_registry_has_no_credentials(location, shown):
    assert open_registry(location).location == shown


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


DAMAGED = {
    "index lost": lambda root: index_file(root, "xxhash"),
    "names lost": lambda root: next((root / "t").glob("*.names.json")),
    "part of the names lost": lambda root: next((root / "t").glob("*.names__0-00.json")),
    "timestamp lost": lambda root: root / "tuf" / "timestamp.json",
    "snapshot lost": lambda root: root / "tuf" / "2.snapshot.json",
    "targets lost": lambda root: root / "tuf" / "1.targets.json",
    "bin lost": lambda root: root / "tuf" / f"2.{bin_of(index_target(XXHASH))}.json",
    "root lost": lambda root: root / "tuf" / "1.root.json",
}


@pytest.mark.parametrize("instead", ["nothing", "folder", "page", "nul", "half"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_registry_is_not_an_unknown_name(root, item, damage, instead):
    path = DAMAGED[damage](root)
    data = path.read_bytes()
    path.unlink()
    if instead == "folder":
        path.mkdir()
    elif instead != "nothing":
        path.write_bytes({"page": b"<html>", "nul": bytes(len(data)), "half": data[: len(data) // 2]}[instead])
    with pytest.raises((RegistryError, TrustError)):
        registry = open_registry(str(root))
        if "names" in damage:
            registry.names()
        else:
            registry.releases(XXHASH)


def test_the_list_of_names_is_only_a_courtesy_for_an_unknown_name(root, item):
    next((root / "t").glob("*.names.json")).unlink()
    with pytest.raises(NotFoundError):
        open_registry(str(root)).releases(parse_name("xxhsah"))


def test_what_may_not_be_read_is_not_an_unknown_name(root, item, monkeypatch):
    def denied(path, *args, **kwargs):
        if str(path).startswith(str(root)):
            raise PermissionError(13, "Permission denied")
        return original(path, *args, **kwargs)

    original = os.open
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(RegistryError, match="Permission denied"):
        open_registry(str(root)).releases(XXHASH)


def test_another_format_says_so(tmp_path):
    for number, what in ((1, "format 1"), (3, "pip install -U visget")):
        (tmp_path / "visget.json").write_text(f'{{"format": {number}}}')
        with pytest.raises(UnsupportedError) as caught:
            open_registry(str(tmp_path)).releases(XXHASH)
        assert what in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("kind", ["vis", "dsse"])
@pytest.mark.parametrize("damage", ["flip", "short", "long", "lost", "fifo"])
def test_a_changed_file_is_refused(root, item, kind, damage):
    (path,) = stored(root, kind)
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
    edit_index(root, "xxhash", lambda index: index.update(owners=["vk1" + "a" * 52]))
    with pytest.raises(TrustError):
        open_registry(str(root)).releases(XXHASH)


def test_signed_nonsense_is_malformed(root, item):
    for data in (b"{}", b"<html>", b'{"format": 1, "format": 1}'):
        sign_target(root, index_target(XXHASH), data)
        with pytest.raises(RegistryError, match="malformed"):
            open_registry(str(root)).releases(XXHASH)


# ---- first contact, and what is remembered ------------------------------------------------------------------


@pytest.fixture
def trust(tmp_path):
    return Store.open(tmp_path / "store").root / "trust"


def test_a_registry_on_disk_is_trusted_on_first_use_and_said_so(root, item, trust):
    told = Told()
    first = open_registry(str(root), trust=trust, progress=told)
    first.releases(XXHASH)
    assert first.first_contact
    (line,) = told.notes
    assert first.identity in line
    assert "first use" in line
    again = open_registry(str(root), trust=trust, progress=told)
    again.releases(XXHASH)
    assert not again.first_contact
    assert len(told.notes) == 1


def test_another_registry_at_the_same_place_is_noticed(root, item, trust, tmp_path):
    open_registry(str(root), trust=trust).releases(XXHASH)
    shutil.rmtree(root)
    other = init_registry(root, keys=tmp_path / "other")
    with pytest.raises(TrustError, match="another registry is at this place") as caught:
        open_registry(str(root), trust=trust).releases(XXHASH)
    fingerprint = digest_bytes((other / "tuf" / "1.root.json").read_bytes())
    assert f"--fingerprint {fingerprint}" in caught.value.hint
    with pytest.raises(NotFoundError):
        open_registry(str(root), trust=trust, anchor=Anchor(fingerprint=fingerprint)).releases(XXHASH)
    with pytest.raises(NotFoundError):
        open_registry(str(root), trust=trust).releases(XXHASH)


def test_a_copy_is_the_same_registry(root, item, trust, tmp_path):
    copy = shutil.copytree(root, tmp_path / "copy")
    assert open_registry(str(copy), trust=trust).identity == open_registry(str(root), trust=trust).identity


@pytest.mark.parametrize("what", ["fingerprint", "root"])
def test_a_root_that_is_none_of_this_registry(root, item, trust, what, tmp_path):
    other = (init_registry(tmp_path / "other") / "tuf" / "1.root.json").read_bytes()
    anchor = Anchor(root=other) if what == "root" else Anchor(fingerprint=digest_bytes(other))
    for _ in range(2):
        with pytest.raises(TrustError, match="none of this registry's"):
            open_registry(str(root), trust=trust, anchor=anchor).releases(XXHASH)
    assert not (trust / "at").exists()


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "a" * 63])
def test_what_is_no_fingerprint(root, item, text):
    with pytest.raises(UsageError, match="is not a fingerprint"):
        open_registry(str(root), anchor=Anchor(fingerprint=text)).releases(XXHASH)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100])
def test_a_damaged_record_stops(root, item, trust, damage):
    open_registry(str(root), trust=trust).releases(XXHASH)
    (record,) = (trust / "at").iterdir()
    record.write_bytes(damage)
    with pytest.raises(TrustError, match="what is known about the registry"):
        open_registry(str(root), trust=trust).releases(XXHASH)


@pytest.mark.parametrize("how", [b"", b"\0" * 500, None])
def test_kept_metadata_heals(root, item, trust, how):
    open_registry(str(root), trust=trust).releases(XXHASH)
    files = [path for path in trust.rglob("*.json") if path.parent.name != "at" and not path.is_symlink()]
    assert len(files) >= 9
    for path in files:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if how is None else how)
        open_registry(str(root), trust=trust).releases(XXHASH)
        if path.name == "pinned.json":
            path.write_bytes(data)


def test_the_lost_root_stops(root, item, trust):
    open_registry(str(root), trust=trust).releases(XXHASH)
    for name in ("pinned.json", "root.json"):
        for path in trust.glob(f"*/{name}"):
            path.unlink()
    with pytest.raises(TrustError, match="is lost"):
        open_registry(str(root), trust=trust).releases(XXHASH)
