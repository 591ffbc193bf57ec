import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from crash import survives
from packagekit import claim, key, package
from registrykit import index_file, stored, tree
from syncs import Journal

from visget.errors import RegistryError, ResourceError, TrustError, UsageError, VisgetError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.directory import init_registry, publish, registry_directory
from visget.registry.operator import sibling
from visget.registry.tuf_names import bin_of
from visget.registry.upkeep import refresh

AUTHOR, THIEF = key("author"), key("thief")


def put(root, item, *keys):
    keys = keys or (AUTHOR,)
    return publish(root, item, sign_package(item, *keys), claim=claim(item, *keys))


def releases(root, name="xxhash"):
    return open_registry(str(root)).releases(parse_name(name))


# ---- making one ---------------------------------------------------------------------------------------------


def test_a_new_registry(tmp_path):
    root = init_registry(tmp_path / "a" / "registry")
    bins = {f"tuf/1.bin-{number:02x}.json" for number in range(256)}
    others = {"visget.json", *(f"tuf/{name}.json" for name in ("1.root", "1.targets", "1.snapshot", "timestamp"))}
    assert set(tree(root)) == bins | others
    assert open_registry(str(root)).names() == ()
    before = tree(root)
    assert init_registry(root) == root
    assert tree(root) == before


def test_init_keeps_what_was_published(root):
    put(root, package())
    before = tree(root)
    init_registry(root)
    assert tree(root) == before


def test_a_directory_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RegistryError, match=r"not empty \('thesis.tex'"):
        init_registry(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_keys_lie_outside_the_served_directory_and_are_private(tmp_path):
    root = init_registry(tmp_path / "registry", keys=tmp_path / "keys")
    assert {path.name for path in (tmp_path / "keys").iterdir()} == {
        "registry.json", "root.json", "root.key", "targets.key", "online.key", "staged",
    }  # fmt: skip
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "keys").glob("*.key")] == [0o600] * 3
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    secrets = [json.loads(path.read_bytes())["secret"] for path in (tmp_path / "keys").glob("*.key")]
    assert not [name for name, data in tree(root).items() for secret in secrets if secret.encode() in data]
    for inside in (tmp_path / "another", tmp_path / "another" / "keys"):
        with pytest.raises(UsageError, match="must not lie in the directory that is served"):
            init_registry(tmp_path / "another", keys=inside)
    with pytest.raises(UsageError, match="keys of another registry"):
        init_registry(tmp_path / "third", keys=tmp_path / "keys")


def interrupted(tmp_path, action, check, step):
    """Kill `action` at its Nth call for N = 1, 1 + step, ..., and check what is left each time."""
    for countdown in itertools.count(1, step):
        root = tmp_path / str(countdown)
        done = survives(lambda root=root: action(root), countdown)
        check(root)
        if done:
            return countdown
    raise AssertionError


@pytest.mark.parametrize("step", [41, pytest.param(1, marks=pytest.mark.long)])
def test_an_interrupted_init_can_be_repeated(tmp_path, step):
    def check(root):
        init_registry(root)
        assert open_registry(str(root)).names() == ()
        assert not list((root / ".new").iterdir())
        put(root, package())
        shutil.rmtree(root)

    assert interrupted(tmp_path, init_registry, check, step) > 500


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
    before = tree(root)
    with pytest.raises(TrustError, match="belongs to another key") as caught:
        put(root, package(version="1.1"), THIEF)
    assert THIEF.public.id in caught.value.message
    assert AUTHOR.public.id in caught.value.message
    assert tree(root) == before
    done = put(root, package(version="1.1"), THIEF, AUTHOR)
    assert (done.claimed, done.signer) == (False, AUTHOR.public.id)
    assert releases(root).owners == (AUTHOR.public,)


@pytest.mark.parametrize("case", ["unsigned", "other package", "garbage", "flipped", "owner named, thief signed"])
def test_a_bad_signature_changes_nothing(root, case):
    put(root, package())
    before = tree(root)
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
    assert tree(root) == before
    with pytest.raises(VisgetError):
        publish(root, package("fresh-name"), data, claim=claim(package("fresh-name"), AUTHOR))
    assert tree(root) == before


def test_row_28_the_same_bytes_again_are_well_and_change_nothing(root):
    put(root, package())
    before = tree(root)
    done = put(root, package())
    assert (done.fresh, done.claimed) == (False, False)
    assert tree(root) == before
    with pytest.raises(TrustError):
        put(root, package(), THIEF)


@pytest.mark.parametrize("version", ["1.0", "1.0.0"])
def test_row_28_a_version_never_changes(root, version):
    put(root, package())
    before = tree(root)
    with pytest.raises(RegistryError, match="is already published with other content") as caught:
        put(root, package(version=version, filling=b"changed"))
    assert "raise the version" in caught.value.hint
    assert tree(root) == before


@pytest.mark.parametrize(
    ("first", "second"), [("zlib", "z-lib"), ("zlib", "zl1b"), ("zlib", "zllb"), ("lz4", "1z4"), ("foo", "f0o")]
)
def test_row_23_names_that_look_alike_are_refused(root, first, second):
    if second == "1z4":
        second = "iz4"
    put(root, package(first))
    before = tree(root)
    with pytest.raises(RegistryError, match="too similar"):
        put(root, package(second), THIEF)
    assert tree(root) == before
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


@pytest.mark.parametrize("instead", [b"half", None])
def test_a_damaged_file_is_mended_by_publishing_again(root, instead):
    item = package()
    put(root, item)
    good = tree(root)
    for path in [*stored(root, "vis"), *stored(root, "dsse"), *(root / "t").glob("*.names*.json")]:
        path.unlink()
        if instead is not None:
            path.write_bytes(instead)
    put(root, item)
    assert tree(root) == good


def test_a_damaged_index_stops_publishing(root):
    put(root, package())
    path = index_file(root, "xxhash")
    path.unlink()
    path.write_text("{}")
    before = tree(root)
    with pytest.raises(RegistryError, match="damaged"):
        put(root, package(version="1.1"))
    assert tree(root) == before


def test_nothing_is_signed_that_this_registry_did_not_sign(root, tmp_path):
    """Somebody who can write in the served directory, but has no key, cannot make the publisher sign his files."""
    put(root, package())
    other = init_registry(tmp_path / "other")
    put(other, package("evil"), THIEF)
    for name in ("timestamp.json", "2.snapshot.json", f"2.{bin_of('idx__evil.json')}.json"):
        shutil.copy(other / "tuf" / name, root / "tuf" / name)
    with pytest.raises(TrustError, match="signatures do not suffice"):
        put(root, package("zlib"))


def test_an_old_copy_put_back_is_noticed(root, tmp_path):
    put(root, package())
    copy = shutil.copytree(root, tmp_path / "copy")
    put(root, package(version="1.1"))
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    with pytest.raises(RegistryError, match="older state than was signed last") as caught:
        put(root, package(version="1.2"))
    assert "--restored" in caught.value.hint
    # The operator knows better: what follows is newer than whatever clients have seen.
    refresh(root, sibling(root), restored=True)
    put(root, package(version="1.2"))
    assert [str(item.version) for item in releases(root).versions] == ["1.0", "1.2"]


def test_without_the_keys_nothing_is_published(root):
    shutil.rmtree(sibling(root))
    before = tree(root)
    with pytest.raises(UsageError, match="keys are not here"):
        put(root, package())
    assert tree(root) == before


def test_without_the_online_key_nothing_is_published(root):
    (sibling(root) / "online.key").unlink()
    with pytest.raises(UsageError, match="online key is not here"):
        put(root, package())


def test_the_offline_keys_may_be_moved_away(root):
    for name in ("root.key", "targets.key"):
        (sibling(root) / name).unlink()
    put(root, package())
    assert len(releases(root).versions) == 1


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A registry with one package, to be copied."""
    root = init_registry(tmp_path_factory.mktemp("small") / "registry")
    put(root, package())
    return root


def fresh(template, root):
    """Make a copy of a registry; nothing in one is ever changed in place, so its files may be shared."""
    shutil.copytree(sibling(template), sibling(root))
    shutil.copytree(template, root, copy_function=os.link)
    (root / ".lock").unlink()
    return root


# ---- faults, crashes, races ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "code", "family"), [
    ("write", 28, ResourceError), ("fsync", 5, ResourceError), ("replace", 28, ResourceError),
    ("open", 24, ResourceError), ("open", 30, RegistryError), ("open", 13, RegistryError),
])  # fmt: skip
def test_a_fault_at_each_call(small, tmp_path, monkeypatch, name, code, family):
    original = getattr(os, name)
    for nth in itertools.count(1):
        root = fresh(small, tmp_path / str(nth))
        old = tree(root)
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
        assert {name: data for name, data in tree(root).items() if ".pkg__" in name}.items() >= {
            name: data for name, data in old.items() if ".pkg__" in name
        }.items()
        put(root, package(version="1.1"))
        assert open_registry(str(root)).names()[0].latest == "1.1"
        assert not list(root.rglob("*.tmp"))
    assert nth > 3


@pytest.mark.parametrize("action", ["new", "more"])
def test_kill_while_publishing(small, tmp_path, action):
    item = package("zlib") if action == "new" else package(version="1.1")

    def check(root):
        registry = open_registry(str(root))
        entries = registry.names()
        assert [(entry.name, entry.latest) for entry in entries] in (
            [[("xxhash", "1.0")], [("xxhash", "1.0"), ("zlib", "1.0")]] if action == "new"
            else [[("xxhash", "1.0")], [("xxhash", "1.1")]]
        )  # fmt: skip
        for entry in entries:
            # Everything that a reader can see is complete.
            for release in registry.releases(entry.name).versions:
                registry.fetch(release)
        put(root, item)
        assert [(entry.name, entry.latest) for entry in open_registry(str(root)).names()] == (
            [("xxhash", "1.0"), ("zlib", "1.0")] if action == "new" else [("xxhash", "1.1")]
        )
        assert not list(root.rglob("*.tmp"))
        assert not list((root / ".new").iterdir())

    for countdown in itertools.count(1):
        root = tmp_path / str(countdown)
        fresh(small, root)
        done = survives(lambda root=root: put(root, item), countdown)
        check(root)
        shutil.rmtree(root)
        if done:
            assert countdown > 15
            return


@pytest.mark.parametrize("racers", [6, pytest.param(20, marks=pytest.mark.long)])
def test_row_28_publishers_of_one_version_at_once(root, racers):
    support = Path(sys.modules["packagekit"].__file__).parent
    code = f"""
import sys; sys.path.insert(0, {str(support)!r})
from pathlib import Path
from packagekit import claim, key, package
from registrykit import index_file, stored, tree
from syncs import Journal
from visget.errors import RegistryError
from visget.format.signing import sign_package
from visget.registry.directory import publish
item = package(filling=sys.argv[2].encode())
try:
    author = key("author")
    print(publish(Path(sys.argv[1]), item, sign_package(item, author), claim=claim(item, author)).fresh)
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
    assert (len(stored(root, "vis")), len(stored(root, "dsse"))) == (1, 1)


def test_files_are_durable_before_what_names_them_and_the_timestamp_comes_last(root, monkeypatch):
    put(root, package())
    journal = Journal(root, monkeypatch)
    put(root, package(version="1.1"))
    journal.check("t", "tuf")
    order = [str(Path(target).relative_to(root)) for target, _ in journal.renames if Path(target).is_relative_to(root)]
    kinds = ["t" if path.startswith("t/") else path.partition(".")[2] for path in order]
    assert kinds[: kinds.count("t")] == ["t"] * kinds.count("t")
    assert kinds[kinds.count("t") :][-2:] == ["snapshot.json", "json"]
    assert order[-1] == "tuf/timestamp.json"
