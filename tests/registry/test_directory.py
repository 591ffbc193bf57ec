import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from crash import survives
from packagekit import key, package
from syncs import Journal

from visget.errors import RegistryError, ResourceError, TrustError, UsageError, VisgetError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.directory import init_registry, publish, registry_directory

AUTHOR, THIEF = key("author"), key("thief")


def put(root, item, *keys):
    return publish(root, item, sign_package(item, *(keys or (AUTHOR,))))


def snapshot(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def releases(root, name="xxhash"):
    return open_registry(str(root)).releases(parse_name(name))


# ---- making one ---------------------------------------------------------------------------------------------


def test_a_new_registry(tmp_path):
    root = init_registry(tmp_path / "a" / "registry")
    assert snapshot(root) == {"visget.json": b'{"format":1}\n', "names.json": b'{"format":1,"packages":[]}'}
    assert open_registry(str(root)).names() == ()
    before = snapshot(root)
    assert init_registry(root) == root
    assert snapshot(root) == before


def test_init_keeps_what_was_published(root):
    put(root, package())
    before = snapshot(root)
    init_registry(root)
    assert snapshot(root) == before


def test_a_directory_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RegistryError, match=r"not empty \('thesis.tex'"):
        init_registry(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_interrupted_init_can_be_repeated(tmp_path):
    for countdown in itertools.count(1):
        root = tmp_path / str(countdown)
        done = survives(lambda root=root: init_registry(root), countdown)
        init_registry(root)
        assert sorted(snapshot(root)) == ["names.json", "visget.json"]
        put(root, package())
        if done:
            assert countdown > 8
            return


def test_a_place_that_cannot_be_a_directory_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(VisgetError):
        init_registry(tmp_path / "file" / "registry")
    with pytest.raises(VisgetError):
        init_registry(tmp_path / "file")


@pytest.mark.parametrize("location", ["http://h/r", "HTTPS://h/r"])
def test_one_does_not_publish_to_a_web_address(location):
    with pytest.raises(UsageError, match="can only be read"):
        registry_directory(location)


def test_directories_are_named_in_two_ways(tmp_path):
    assert registry_directory(str(tmp_path)) == tmp_path
    assert registry_directory(f"file://{tmp_path}") == tmp_path
    assert registry_directory("file:///a%20b") == Path("/a b")


# ---- publishing ---------------------------------------------------------------------------------------------


def test_the_first_signer_claims_the_name(root):
    item = package()
    done = put(root, item)
    assert done.as_dict() == {
        "name": "xxhash", "version": "1.0", "digest": item.digest, "signer": AUTHOR.public.id, "fresh": True,
        "claimed": True,
    }  # fmt: skip
    found = releases(root)
    assert found.owners == (AUTHOR.public,)
    (release,) = found.versions
    assert open_registry(str(root)).fetch(release) == (item.data, sign_package(item, AUTHOR))
    assert (release.summary, release.functions) == ("A fast hash", ("xxh32",))


def test_only_the_first_of_several_signers_claims(root):
    put(root, package(), AUTHOR, THIEF)
    assert releases(root).owners == (AUTHOR.public,)


def test_later_versions_need_the_owners_signature(root):
    put(root, package())
    before = snapshot(root)
    with pytest.raises(TrustError, match="belongs to another key") as caught:
        put(root, package(version="1.1"), THIEF)
    assert THIEF.public.id in caught.value.message
    assert AUTHOR.public.id in caught.value.message
    assert snapshot(root) == before
    done = put(root, package(version="1.1"), THIEF, AUTHOR)
    assert (done.claimed, done.signer) == (False, AUTHOR.public.id)
    assert releases(root).owners == (AUTHOR.public,)


@pytest.mark.parametrize("case", ["unsigned", "other package", "garbage", "flipped", "owner named, thief signed"])
def test_a_bad_signature_changes_nothing(root, case):
    put(root, package())
    before = snapshot(root)
    item = package(version="1.1")
    envelope = json.loads(sign_package(item, AUTHOR))
    if case == "unsigned":
        envelope["signatures"] = []
    elif case == "other package":
        envelope = json.loads(sign_package(package(version="1.2"), AUTHOR))
    elif case == "flipped":
        envelope["signatures"][0]["sig"] = envelope["signatures"][0]["sig"].replace("A", "B", 1)
    elif case == "owner named, thief signed":
        envelope = json.loads(sign_package(item, THIEF))
        envelope["signatures"][0]["keyid"] = AUTHOR.public.id
    data = b"\0" if case == "garbage" else json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(VisgetError) as caught:
        publish(root, item, data)
    assert caught.value.exit_code in (3, 5)
    assert snapshot(root) == before
    with pytest.raises(VisgetError):
        publish(root, package("fresh-name"), data)
    assert snapshot(root) == before


def test_the_same_bytes_again_are_well_and_change_nothing(root):
    put(root, package())
    before = snapshot(root)
    done = put(root, package())
    assert (done.fresh, done.claimed) == (False, False)
    assert snapshot(root) == before
    with pytest.raises(TrustError):
        put(root, package(), THIEF)


@pytest.mark.parametrize("version", ["1.0", "1.0.0"])
def test_a_version_never_changes(root, version):
    put(root, package())
    before = snapshot(root)
    with pytest.raises(RegistryError, match="is already published with other content") as caught:
        put(root, package(version=version, filling=b"changed"))
    assert "raise the version" in caught.value.hint
    assert snapshot(root) == before


@pytest.mark.parametrize(
    ("first", "second"), [("zlib", "z-lib"), ("zlib", "zl1b"), ("zlib", "zllb"), ("lz4", "1z4"), ("foo", "f0o")]
)
def test_names_that_look_alike_are_refused(root, first, second):
    if second == "1z4":
        second = "iz4"
    put(root, package(first))
    before = snapshot(root)
    with pytest.raises(RegistryError, match="too similar"):
        put(root, package(second), THIEF)
    assert snapshot(root) == before
    put(root, package(first, "1.1"))


def test_versions_are_listed_from_the_lowest(root):
    for version in ("1.10", "1.9", "1.11rc1"):
        put(root, package(version=version))
    assert [str(release.version) for release in releases(root).versions] == ["1.9", "1.10", "1.11rc1"]
    (entry,) = open_registry(str(root)).names()
    assert entry.latest == "1.10"


def test_there_must_be_a_registry(tmp_path):
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(RegistryError, match="no registry here") as caught:
            put(place, package())
        assert caught.value.hint == f"make one: visget registry init {place}"
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_mended_by_publishing_again(root):
    item = package()
    put(root, item)
    good = snapshot(root)
    for path in (root / "blobs").iterdir():
        path.chmod(0o600)
        path.write_bytes(b"half")
    (root / "names.json").write_bytes(b"{")
    put(root, item)
    assert snapshot(root) == good


def test_a_malformed_index_stops_publishing(root):
    put(root, package())
    (root / "index" / "xxhash.json").write_text("{}")
    before = snapshot(root)
    with pytest.raises(RegistryError, match="malformed"):
        put(root, package(version="1.1"))
    assert snapshot(root) == before


# ---- faults, crashes, races ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "code", "family"), [
    ("write", 28, ResourceError), ("fsync", 5, ResourceError), ("replace", 28, ResourceError),
    ("open", 24, ResourceError), ("open", 30, RegistryError), ("open", 13, RegistryError),
])  # fmt: skip
def test_a_fault_at_each_call(tmp_path, monkeypatch, name, code, family):
    original = getattr(os, name)
    for nth in itertools.count(1):
        root = init_registry(tmp_path / str(nth))
        put(root, package())
        old = snapshot(root)
        calls = []

        def fails(*args, calls=calls, nth=nth, **kwargs):
            calls.append(args)
            if len(calls) >= nth:
                raise OSError(code, os.strerror(code))
            return original(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            try:
                put(root, package(version="1.1"))
            except (ResourceError, RegistryError) as error:
                assert isinstance(error, family)
            if len(calls) < nth:
                break
        assert [str(item.version) for item in releases(root).versions] in (["1.0"], ["1.0", "1.1"])
        assert {name: data for name, data in snapshot(root).items() if name.startswith("blobs")}.items() >= {
            name: data for name, data in old.items() if name.startswith("blobs")
        }.items()
        put(root, package(version="1.1"))
        assert open_registry(str(root)).names()[0].latest == "1.1"
        assert not list(root.rglob("*.tmp"))
    assert nth > 3


@pytest.mark.parametrize("action", ["new", "more"])
def test_kill_while_publishing(tmp_path, action):
    for countdown in itertools.count(1):
        root = init_registry(tmp_path / str(countdown))
        put(root, package())
        item = package("zlib") if action == "new" else package(version="1.1")
        done = survives(lambda root=root, item=item: put(root, item), countdown)
        registry = open_registry(str(root))
        for entry in registry.names():
            # Everything that a reader can see is complete.
            for release in registry.releases(entry.name).versions:
                registry.fetch(release)
        if action == "new":
            assert (root / "index" / "zlib.json").exists() or not done
        else:
            assert len(registry.releases(parse_name("xxhash")).versions) in ((2,) if done else (1, 2))
        put(root, item)
        assert [(entry.name, entry.latest) for entry in open_registry(str(root)).names()] == (
            [("xxhash", "1.0"), ("zlib", "1.0")] if action == "new" else [("xxhash", "1.1")]
        )
        assert not list(root.rglob("*.tmp"))
        if done:
            assert countdown > 15
            return


def test_what_a_killed_publisher_left_unlisted_is_listed_by_the_next(root):
    put(root, package())
    put(root, package("zlib"))
    (root / "names.json").write_bytes(b'{"format":1,"packages":[]}')
    put(root, package("lz4"))
    assert [entry.name for entry in open_registry(str(root)).names()] == ["lz4", "xxhash", "zlib"]


@pytest.mark.parametrize("racers", [6, pytest.param(20, marks=pytest.mark.long)])
def test_publishers_of_one_version_at_once(root, racers):
    support = Path(sys.modules["packagekit"].__file__).parent
    code = f"""
import sys; sys.path.insert(0, {str(support)!r})
from pathlib import Path
from packagekit import key, package
from syncs import Journal
from visget.errors import RegistryError
from visget.format.signing import sign_package
from visget.registry.directory import publish
item = package(filling=sys.argv[2].encode())
try:
    print(publish(Path(sys.argv[1]), item, sign_package(item, key("author"))).fresh)
except RegistryError as error:
    assert "already published" in error.message
    print("other")
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, root, str(n % 2)], stdout=subprocess.PIPE, text=True)
        for n in range(racers)
    ]
    words = sorted(process.communicate()[0].strip() for process in processes)
    assert words.count("True") == 1
    assert words.count("other") == racers // 2
    assert len(list((root / "blobs").iterdir())) == 2


def test_files_are_durable_before_the_index_and_the_index_before_the_names(root, monkeypatch):
    put(root, package())
    journal = Journal(root, monkeypatch)
    put(root, package(version="1.1"))
    journal.check("blobs", "index/xxhash.json", "names.json")
    order = [Path(target).relative_to(root).parts[0] for target, _ in journal.renames]
    assert order == ["blobs", "blobs", "index", "names.json"]
