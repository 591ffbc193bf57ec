"""The list of names in its parts."""

import pytest
from packagekit import key, package
from registrykit import repository, sign_target, tree

from visget.errors import NotFoundError, RegistryError
from visget.names import parse_name
from visget.registry import names_list
from visget.registry.client import open_registry
from visget.registry.editing import editing
from visget.registry.names_list import NamesList, plain
from visget.registry.protocol import Release, Releases
from visget.registry.tuf_names import NAMES_TARGET

PACKAGE = package("x")


def index(name, version="1.0"):
    manifest = package(name, version).manifest
    release = Release.of(manifest, vis=PACKAGE.digest, size=1, dsse=PACKAGE.digest, dsse_size=1)
    return Releases(name=manifest.name, owners=(key().public,), versions=(release,))


def fill(root, names):
    with editing(root) as editor:
        for name in names:
            editor.put_index(index(name))


def listing(root):
    made = repository(root)
    return NamesList.parse(made.read(made.find(NAMES_TARGET)), "w")


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(names_list, "_FULL", 4)


def test_many_names_are_in_many_parts(root, few):
    names = sorted(f"pkg{chr(97 + n // 26)}{chr(97 + n % 26)}-{n}" for n in range(150))
    for start in range(0, 150, 30):
        fill(root, names[start : start + 30])
    found = listing(root)
    assert (found.bits, found.count) == (6, 150)
    assert len(found.shards) > 40
    with open_registry(str(root)) as registry:
        assert [entry.name for entry in registry.names()] == names


def test_one_name_changes_one_part(root, few):
    fill(root, [f"name-{n}" for n in range(60)])
    before = listing(root).shards
    with editing(root) as editor:
        editor.put_index(index("name-7", "1.1"))
    after = listing(root).shards
    assert len([n for n in after if before.get(n) != after[n]]) == 1


def test_names_that_look_alike_are_always_in_one_part(root, few):
    fill(root, ["zlib", *(f"name-{n}" for n in range(60))])
    whole = listing(root)
    for alike in ("z-lib", "zl1b", "zllb", "zi-i-b"):
        assert plain(parse_name(alike)) == plain(parse_name("zlib"))
        assert whole.shard_of(parse_name(alike)) == whole.shard_of(parse_name("zlib"))
        with editing(root) as editor, pytest.raises(RegistryError, match="too similar to 'zlib'"):
            editor.check_similar(parse_name(alike))


def test_the_same_again_changes_nothing(root):
    fill(root, ["a", "b"])
    before = tree(root)
    fill(root, ["a", "b"])
    assert tree(root) == before


@pytest.mark.parametrize("damage", ["list", "part"])
def test_a_damaged_list_is_made_anew_from_the_indexes(root, few, damage):
    fill(root, [f"name-{n}" for n in range(20)])
    whole = listing(root)
    pattern = "*.names.json" if damage == "list" else "*.names__*"
    for path in (root / "t").glob(pattern):
        path.unlink()
    with pytest.raises(RegistryError):
        open_registry(str(root)).names()
    with editing(root) as editor:
        editor.put_index(index("more"))
    assert listing(root).count == whole.count + 1
    assert len(open_registry(str(root)).names()) == 21


def test_damage_that_is_met_while_the_list_grows_loses_nothing(root, few):
    fill(root, [f"name-{n}" for n in range(16)])
    number, target = sorted(listing(root).shards.items())[-1]
    next((root / "t").glob(f"{target.digest}.*")).unlink()
    # The new name is in another part than the lost one, which is met only when all parts are distributed anew.
    fresh = next(f"new-{n}" for n in range(100) if listing(root).shard_of(parse_name(f"new-{n}")) != number)
    fill(root, [fresh])
    assert listing(root).count == 17
    assert fresh in [entry.name for entry in open_registry(str(root)).names()]


def test_a_signed_list_that_makes_no_sense(root):
    fill(root, ["a"])
    for text in ('{"format":1,"bits":9,"count":1,"parts":[]}', '{"format":1,"bits":0,"count":1,"parts":[{}]}',
                 '{"format":1,"bits":0,"count":1,"parts":[{"part":1,"sha256":"' + "0" * 64 + '","size":1}]}',
                 '{"format":1,"bits":0,"count":1,"parts":[{"part":0,"sha256":"../x","size":1}]}'):  # fmt: skip
        sign_target(root, NAMES_TARGET, text.encode())
        with pytest.raises(RegistryError, match="malformed"):
            open_registry(str(root)).names()
        with pytest.raises(NotFoundError):
            open_registry(str(root)).releases(parse_name("b"))


def test_suggestions_are_not_worth_megabytes(root, monkeypatch):
    fill(root, ["xxhash"])
    with pytest.raises(NotFoundError) as caught:
        open_registry(str(root)).releases(parse_name("xxhsah"))
    assert "did you mean xxhash" in caught.value.hint
    from visget.registry import client

    monkeypatch.setattr(client, "_SUGGESTION_BYTES", 10)
    with pytest.raises(NotFoundError) as caught:
        open_registry(str(root)).releases(parse_name("xxhsah"))
    assert "visget search" in caught.value.hint
