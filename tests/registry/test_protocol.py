import dataclasses
import json

import pytest
from packagekit import key, package

from visget.errors import RegistryError, TrustError, UnsupportedError
from visget.registry.protocol import (
    NameEntry,
    OwnerFile,
    Release,
    Releases,
    encode_names,
    encode_releases,
    encode_root,
    entry_of,
    parse_names,
    parse_releases,
    parse_root,
)

PACKAGE = package("xxhash", "1.10", exports=("a", "b"), dependencies=("zlib>=1.2",))
RELEASE = Release.of(PACKAGE.manifest, vis=PACKAGE.digest, size=10, dsse="f" * 64, dsse_size=20)
OLDER = Release.of(package("xxhash", "1.9").manifest, vis="0" * 64, size=1, dsse="1" * 64, dsse_size=2)
RELEASES = Releases(name="xxhash", owners=(key().public,), versions=(OLDER, RELEASE))


def changed(path: str, value: object) -> bytes:
    """Return the encoded index with the value at `path` (such as ``versions.0.size``) replaced, or removed by ...."""
    document = json.loads(encode_releases(RELEASES))
    *steps, last = [int(step) if step.isdecimal() else step for step in path.split(".")]
    place = document
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document).encode()


def test_an_index_survives_a_round_trip():
    assert parse_releases(encode_releases(RELEASES), "xxhash", "w") == RELEASES


def test_the_list_of_names_survives_a_round_trip_and_is_sorted():
    entries = (entry_of(RELEASES), NameEntry(name="a", latest=None, summary="s", functions=()))
    assert parse_names(encode_names(entries), "w") == (entries[1], entries[0])
    assert entries[0] == NameEntry(name="xxhash", latest="1.10", summary="A fast hash", functions=("a", "b"))


def test_unknown_keys_are_ignored():
    assert parse_releases(changed("later", {"x": []}), "xxhash", "w") == RELEASES
    assert parse_releases(changed("versions.0.later", 1), "xxhash", "w") == RELEASES


def test_owner_records_survive_a_round_trip():
    records = (OwnerFile(digest="a" * 64, size=7), OwnerFile(digest="b" * 64, size=8))
    releases = dataclasses.replace(RELEASES, records=records)
    assert parse_releases(encode_releases(releases), "xxhash", "w").records == records


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("format", 2), ("format", "1"), ("format", ...), ("name", "zlib"), ("name", "../x"), ("owners", "x"),
        ("owners", [1]), ("owners", [key().public.id] * 2), ("owners", [f"{n}" for n in range(65)]), ("versions", {}),
        ("versions.0", []), ("versions.0.version", "1.10"), ("versions.0.version", "1.10.0"),
        ("versions.0.version", "nonsense"), ("versions.0.vis", "../../etc/passwd"), ("versions.0.vis", "A" * 64),
        ("versions.0.size", 0), ("versions.0.size", -1), ("versions.0.size", 1 << 40), ("versions.0.size", True),
        ("versions.0.size", 1.5), ("versions.0.dsse_size", 1 << 20), ("versions.0.summary", "a\x1b[31mb"),
        ("versions.0.summary", "a" * 5000), ("versions.0.summary", "a\u202eb"), ("versions.0.yanked", 1),
        ("versions.0.epoch", 0), ("versions.0.dependencies", [1]), ("versions.0.functions", None),
        ("versions.0.size", ...), ("records", {}), ("records", [{}]), ("records", [{"sha256": "x", "size": 1}]),
        ("records", [{"sha256": "a" * 64, "size": 1 << 20}]), ("records", [{"sha256": "a" * 64, "size": 1}] * 5000),
    ],
)  # fmt: skip
def test_a_malformed_index_is_refused(path, value):
    with pytest.raises(RegistryError, match="the registry's answer is malformed") as caught:
        parse_releases(changed(path, value), "xxhash", "http://r/index/xxhash.json")
    assert caught.value.where == "http://r/index/xxhash.json"


@pytest.mark.parametrize("owner", ["vk1", key().public.id.upper(), "vk1" + "a" * 52, "vk1ae" + "a" * 50])
def test_a_weak_or_malformed_owner_is_a_question_of_trust(owner):
    with pytest.raises(TrustError, match="names an owner whose key is refused"):
        parse_releases(changed("owners", [owner]), "xxhash", "w")


GOOD = encode_releases(RELEASES)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"null", b"<html>", b"\xef\xbb\xbf" + GOOD, GOOD[:-1], GOOD + b"{}",
        GOOD.replace(b'"format":1', b'"format":1,"format":1'),
        b'{"format":NaN}', b'{"format":' + b"9" * 6000 + b"}", b'{"name":"\\ud800"}', b"[" * 100_000, b"\xff",
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(data):
    with pytest.raises(RegistryError):
        parse_releases(data, "xxhash", "w")
    with pytest.raises(RegistryError):
        parse_names(data, "w")


def test_a_later_format_says_so():
    parse_root(encode_root(), "w")
    parse_root(b'{"format": 2, "title": "Team"}', "w")
    with pytest.raises(UnsupportedError, match="format 3") as caught:
        parse_root(b'{"format": 3}', "w")
    assert "pip install -U visget" in caught.value.hint
    for data in (b"", b"{}", b'{"format": 0}', b'{"format": "1"}', b"<html>"):
        with pytest.raises(RegistryError):
            parse_root(data, "w")
