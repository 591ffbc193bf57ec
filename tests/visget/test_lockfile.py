"""visget.lock as text: strict, deterministic, and every error with its line."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packagekit import key
from packaging.version import Version

from visget.config import read_settings
from visget.digest import digest_bytes
from visget.errors import TrustError, UnsupportedError, UsageError, VisgetError
from visget.format.owner_chain import OwnerPin
from visget.lockfile import (
    Lock,
    LockedPackage,
    LockedRegistry,
    encode_lock,
    make_lock,
    problems,
    read_lock,
)
from visget.names import Requirement

A, B = digest_bytes(b"a"), digest_bytes(b"b")
HOME = LockedRegistry(identity=A, location="https://packages.example.org")
NEAR = LockedRegistry(identity=B, location='./odd "name" \\ ü \x07')


def locked(name: str = "zlib", version: str = "1.3", **changed: object) -> LockedPackage:
    fields: dict[str, object] = {
        "name": name, "version": Version(version), "digest": A, "registry": HOME.identity, "owners": (key().public,),
    }  # fmt: skip
    return LockedPackage(**(fields | changed))  # type: ignore[arg-type]


def lock(*texts: str, packages: tuple[LockedPackage, ...] = (), registries=(HOME, NEAR)) -> Lock:
    return make_lock(map(Requirement.parse, texts), registries, packages)


FULL = lock(
    "zlib>=1.2,<2", "xxhash",
    packages=(
        locked(),
        locked("xxhash", "0.8.4rc1", registry=B, owners=(key("x").public, key("y").public), threshold=2,
               record=OwnerPin(seq=3, sha256=B)),
    ),
)  # fmt: skip
TEXT = encode_lock(FULL)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_round_trip(tmp_path):
    assert read_lock(write(tmp_path / "visget.lock", TEXT)) == FULL
    assert encode_lock(FULL) == TEXT
    assert tomllib.loads(TEXT)["registry"][0]["location"] in (HOME.location, NEAR.location)
    empty = lock()
    assert read_lock(write(tmp_path / "empty", encode_lock(empty))) == empty
    assert empty.registries == ()


def test_the_text_does_not_depend_on_the_order(tmp_path):
    other = make_lock(reversed(FULL.requirements), reversed(FULL.registries), reversed(FULL.packages))
    assert encode_lock(other) == TEXT
    shuffled = TEXT.replace("# Written", "# Mine, not written").replace("\n", "\r\n")
    assert encode_lock(read_lock(write(tmp_path / "visget.lock", shuffled))) == TEXT


def test_registries_that_nothing_comes_from_go():
    assert [item.identity for item in lock("zlib", packages=(locked(),)).registries] == [A]


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_any_location_is_valid_toml(location):
    text = encode_lock(lock("zlib", packages=(locked(),), registries=(LockedRegistry(identity=A, location=location),)))
    assert tomllib.loads(text)["registry"][0]["location"] == location


BAD = [
    ("version = 1", "version = 0", 2, "version"),
    ("version = 1", "version = true", 2, "version"),
    ("version = 1\n", "", 1, "version"),
    ("version = 1", "version = 1\nversoin = 1", 3, "versoin"),
    ("version = 1", "version = 1\nversion = 1", 3, "TOML"),
    ('"xxhash",', '"xxhash", "xxhash==1",', 4, "twice"),
    ('"xxhash",', '"XXHASH",', 4, "not a package name"),
    ('"xxhash",', '"../x",', 4, "requirement"),
    ('"xxhash",', "7,", 4, "string"),
    ('"zlib"\nversion', '"con"\nversion', None, "reserved"),
    ('"zlib"\nversion', '"xxhash"\nversion', None, "twice"),
    ('"zlib"\nversion', '"z/lib"\nversion', None, "not a package name"),
    ('version = "1.3"', 'version = "one"', None, "not a version"),
    ('version = "1.3"', "version = 1.3", None, "string"),
    (f'digest = "sha256:{A}"\n', "", None, "'digest' is missing"),
    (f'digest = "sha256:{A}"', f'digest = "{A}"', None, "sha256:"),
    (f'digest = "sha256:{A}"', f'digest = "sha256:{A[:-1]}"', None, "not a SHA-256"),
    (f'digest = "sha256:{A}"', f'digest = "sha256:{A.upper()}"', None, "not a SHA-256"),
    (f'registry = "sha256:{A}"', f'registry = "sha256:{"0" * 64}"', None, "no [[registry]]"),
    (f'registry = "sha256:{A}"', 'registry = "elsewhere"', None, "sha256:"),
    (f'identity = "sha256:{A}"', f'identity = "sha256:{B}"', None, "twice"),
    (f'identity = "sha256:{A}"', 'identity = "https://x"', None, "sha256:"),
    ("threshold = 2", "threshold = 3", None, "outside 1 to 2"),
    ("threshold = 2", "threshold = 0", None, "outside"),
    ("threshold = 2", 'threshold = "2"', None, "integer"),
    ("owner-seq = 3\n", "", None, "owner-seq"),
    ("owner-seq = 3", "owner-seq = 0", None, "outside"),
    (f'owner-record = "sha256:{B}"\n', "", None, "owner-record"),
    (f'owners = [\n    "{key().public.id}",\n]', "owners = []", None, "key ids"),
    (f'owners = [\n    "{key().public.id}",\n]', "", None, "key ids"),
    ('location = "https', 'place = "https', None, "location"),
    ("[[package]]", "[package]", None, "TOML"),
    ("[[registry]]", "[[registries]]", None, "registries"),
]


@pytest.mark.parametrize(("old", "new", "line", "word"), BAD)
def test_malformed_files_are_refused_with_the_line(tmp_path, old, new, line, word):
    assert old in TEXT
    path = write(tmp_path / "visget.lock", TEXT.replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read_lock(path)
    shown = f"{caught.value.message} {caught.value.hint}"
    assert word in shown
    assert str(caught.value.where).startswith(f"{path}:{line or ''}")


def test_keys_that_are_none(tmp_path):
    weak = "vk1" + "ae" + "a" * 50
    for bad in (weak, key().public.id[:-1], key().public.id.upper(), "vk1"):
        path = write(tmp_path / "visget.lock", TEXT.replace(key().public.id, bad))
        with pytest.raises(TrustError) as caught:
            read_lock(path)
        assert f"{path}:" in str(caught.value.where)


def test_newer_files_and_no_file(tmp_path):
    path = write(tmp_path / "visget.lock", TEXT.replace("version = 1", "version = 2"))
    with pytest.raises(UnsupportedError, match="version 2"):
        read_lock(path)
    with pytest.raises(UsageError, match="no lock file") as caught:
        read_lock(tmp_path / "none.lock")
    assert "visget lock" in str(caught.value.hint)


def test_row_36_an_integer_of_6000_digits(tmp_path):
    path = write(tmp_path / "visget.lock", TEXT.replace("owner-seq = 3", "owner-seq = " + "9" * 6000))
    with pytest.raises(UsageError, match=r"too long|4300 digits"):
        read_lock(path)
    write(tmp_path / "config.toml", "jobs = " + "9" * 6000)
    with pytest.raises(UsageError, match="not valid TOML"):
        read_settings({"VISGET_CONFIG_DIR": str(tmp_path)})


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_a_clean_error(tmp_path_factory, data):
    at = data.draw(st.integers(0, len(TEXT) - 1))
    change = data.draw(st.sampled_from(["", "\0", '"', "\n", "9" * 6000, "[", "é", "=", "\ud800"]))
    path = tmp_path_factory.mktemp("lock") / "visget.lock"
    path.write_bytes((TEXT[:at] + change + TEXT[at + 1 :]).encode("utf-8", "surrogatepass"))
    try:
        found = read_lock(path)
    except VisgetError:
        return
    assert read_lock(write(path, encode_lock(found))) == found


# ---- out of date -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "packages", "expected"),
    [
        (("zlib",), (locked(),), []),
        (("zlib==1.3",), (locked(),), []),
        (("zlib",), (locked(version="1.4rc1"),), []),
        (("zlib>=1.4",), (locked(),), ["zlib>=1.4 is wanted, and zlib 1.3 is locked"]),
        (("zlib", "lz4"), (locked(),), ["lz4 is wanted, and lz4 is not locked"]),
        ((), (locked(),), ["zlib 1.3 is locked, and nothing wants it"]),
    ],
)
def test_problems(texts, packages, expected):
    assert problems(lock(*texts, packages=packages)) == expected


def test_problems_with_what_is_asked_for():
    found = lock("zlib", packages=(locked(),))
    assert problems(found, [Requirement.parse("zlib<2")]) == []
    assert problems(found, [Requirement.parse("zlib<1")]) == ["zlib<1 is wanted, and zlib 1.3 is locked"]
    assert problems(found, [Requirement.parse("lz4")]) == ["lz4 is wanted, and lz4 is not locked"]
