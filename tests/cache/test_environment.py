import json
import os
import subprocess
import sys

import pytest

from visget.cache.environment import Environment, Installed
from visget.digest import digest_bytes
from visget.errors import NotFoundError, UsageError

PACKAGE = digest_bytes(b"package")
NATIVE = digest_bytes(b"native")
OTHER = digest_bytes(b"other")


@pytest.fixture
def environment(store):
    return Environment(store)


def current(environment):
    return environment.directory / "current.json"


def test_nothing_is_installed_at_first(environment):
    assert environment.installed() == []
    assert environment.lookup("xxhash") is None
    assert environment.roots() == (frozenset(), frozenset())
    assert not current(environment).exists()


def test_an_installed_version_is_found(environment):
    made = environment.record(
        "xxhash", "1.2", package=PACKAGE, signers=["k2", "k1"], natives={"m1": NATIVE}, source="/registry"
    )
    assert made == Installed("xxhash", "1.2", PACKAGE, ("k1", "k2"), True, {"m1": NATIVE}, "/registry")
    assert environment.lookup("xxhash") == made
    assert environment.lookup("xxhash", "1.2") == made
    assert environment.lookup("xxhash", "1.2.0") == made
    assert environment.lookup("xxhash", None, "m1") == made
    assert environment.lookup("xxhash", None, "m2") is None
    assert environment.lookup("xxhash", "1.3") is None
    assert environment.lookup("xxhash", "nonsense") is None
    assert Environment(environment.store).installed() == [made]
    assert environment.roots() == (frozenset([PACKAGE]), frozenset([NATIVE]))


def test_machines_share_an_installation_until_the_package_changes(environment):
    environment.record("x", "1", package=PACKAGE, natives={"m1": NATIVE})
    assert environment.record("x", "1", package=PACKAGE, natives={"m2": OTHER}).natives == {"m1": NATIVE, "m2": OTHER}
    assert environment.record("x", "1.0", package=OTHER, natives={"m2": OTHER}).natives == {"m2": OTHER}
    assert [item.version for item in environment.installed()] == ["1"]


def test_versions_live_side_by_side(environment):
    for version in ("1.10", "1.9", "2.0rc1"):
        environment.record("x", version, package=PACKAGE)
    environment.record("a", "1", package=PACKAGE)
    assert [(item.name, item.version, item.selected) for item in environment.installed()] == [
        ("a", "1", True), ("x", "1.9", False), ("x", "1.10", False), ("x", "2.0rc1", True),
    ]  # fmt: skip
    assert environment.select("x", "1.9").selected
    assert environment.lookup("x").version == "1.9"
    assert environment.history("x") == ("1.10", "1.9", "2.0rc1")
    assert not environment.record("x", "3", package=PACKAGE, select=False).selected
    assert environment.lookup("x").version == "1.9"


def test_rollback_goes_back_step_by_step(environment):
    for version in ("1", "2", "3"):
        environment.record("x", version, package=PACKAGE)
    environment.record("x", "3", package=PACKAGE)  # again: no new step
    assert environment.rollback("x").version == "2"
    assert environment.rollback("x").version == "1"
    with pytest.raises(NotFoundError, match="no earlier version"):
        environment.rollback("x")
    assert environment.lookup("x").version == "1"
    environment.select("x", "3")
    environment.remove("x", "1")
    with pytest.raises(NotFoundError, match="no earlier version"):
        environment.rollback("x")


def test_removal_selects_what_was_selected_before(environment):
    for version in ("1.10", "1.9", "1.11"):
        environment.record("x", version, package=PACKAGE)
    assert [item.version for item in environment.remove("x", "1.11.0")] == ["1.11"]
    assert environment.lookup("x").version == "1.9"
    environment.record("y", "1.10", package=PACKAGE)
    environment.record("y", "1.9", package=PACKAGE, select=False)
    environment.record("y", "1.2", package=PACKAGE, select=False)
    environment.remove("y", "1.10")
    assert environment.lookup("y").version == "1.9"
    assert [item.version for item in environment.remove("y")] == ["1.2", "1.9"]
    assert environment.lookup("y") is None


def test_what_is_not_there_is_named_with_a_hint(environment):
    environment.record("xxhash", "1", package=PACKAGE)
    with pytest.raises(NotFoundError) as caught:
        environment.remove("xxhsah")
    assert caught.value.hint == "did you mean xxhash?"
    for verb in (environment.remove, environment.select):
        with pytest.raises(NotFoundError, match=r"xxhash 2 is not installed") as caught:
            verb("xxhash", "2")
        assert caught.value.hint == "installed: 1"
    with pytest.raises(NotFoundError):
        environment.rollback("nothing")
    assert len(environment.installed()) == 1


def test_a_refused_change_writes_nothing(environment):
    environment.record("x", "1", package=PACKAGE)
    before = current(environment).read_bytes()
    with pytest.raises(NotFoundError):
        environment.select("x", "2")
    assert current(environment).read_bytes() == before


DAMAGE = {
    "missing": None,
    "empty": lambda data: b"",
    "NUL-filled": lambda data: bytes(len(data)),
    "short": lambda data: data[: len(data) // 2],
    "flipped digest": lambda data: data.replace(NATIVE.encode(), OTHER.encode(), 1),
    "other version": lambda data: data.replace(b'"selected": "2"', b'"selected": "1"'),
    "array": lambda data: b"[]",
    "nested": lambda data: b"[" * 100_000,
    "binary": lambda data: b"\xff\xfe" + data,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_list_is_recovered_completely_and_says_so(environment, caplog, damage):
    environment.record("x", "1", package=PACKAGE, natives={"m": NATIVE})
    environment.record("x", "2", package=PACKAGE, natives={"m": NATIVE})
    before = environment.installed()
    path = current(environment)
    data = path.read_bytes()
    path.unlink()
    if DAMAGE[damage]:
        assert DAMAGE[damage](data) != data
        path.write_bytes(DAMAGE[damage](data))
    assert environment.installed() == before
    assert "recovered" in caplog.text
    caplog.clear()
    assert environment.installed() == before
    assert caplog.text == ""
    environment.record("y", "1", package=PACKAGE)
    assert len(environment.installed()) == 3


def test_the_list_being_a_link_touches_nothing_outside(environment, tmp_path):
    environment.record("x", "1", package=PACKAGE)
    outside = tmp_path / "precious"
    outside.write_text("precious")
    current(environment).unlink()
    current(environment).symlink_to(outside)
    environment.record("x", "2", package=PACKAGE)
    assert [item.version for item in environment.installed()] == ["1", "2"]
    assert outside.read_text() == "precious"


def test_an_older_generation_serves_when_the_newest_is_damaged_too(environment, caplog):
    for version in ("1", "2", "3"):
        environment.record("x", version, package=PACKAGE)
    generations = sorted((environment.directory / "current.d").iterdir())
    generations[-1].write_bytes(b"")
    current(environment).write_bytes(b"")
    assert [item.version for item in environment.installed()] == ["1", "2"]
    assert "recovered" in caplog.text


def test_when_everything_is_damaged_the_list_is_empty_and_says_so(environment, caplog):
    environment.record("x", "1", package=PACKAGE)
    for path in [current(environment), *(environment.directory / "current.d").iterdir()]:
        path.write_bytes(b"\0")
    assert environment.installed() == []
    assert "install what you need again" in caplog.text
    assert environment.record("x", "1", package=PACKAGE)


def test_only_some_generations_are_kept(environment):
    for number in range(25):
        environment.record("x", str(number), package=PACKAGE)
    assert len(list((environment.directory / "current.d").iterdir())) == 10
    assert len(environment.installed()) == 25
    assert len(environment.history("x")) == 20


def test_leftovers_of_a_killed_writer_are_removed(environment):
    environment.record("x", "1", package=PACKAGE)
    (environment.directory / ".current.json.0123.tmp").write_text("half")
    (environment.directory / "current.d" / ".00000002.json.0123.tmp").write_text("half")
    environment.record("x", "2", package=PACKAGE)
    assert not list(environment.directory.rglob("*.tmp"))


def test_a_read_only_store_is_read_in_spite_of_damage(environment, monkeypatch):
    environment.record("x", "1", package=PACKAGE)
    current(environment).write_bytes(b"")

    def read_only(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    for name in ("rename", "replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, read_only)
    assert [item.version for item in environment.installed()] == ["1"]


def test_the_file_is_the_one_of_the_spec(environment):
    environment.record("x", "1", package=PACKAGE, signers=["k"], natives={"m": NATIVE}, source="s")
    document = json.loads(current(environment).read_bytes())
    body = {
        "packages": {
            "x": {
                "history": [],
                "selected": "1",
                "versions": {"1": {"natives": {"m": NATIVE}, "package": PACKAGE, "signers": ["k"], "source": "s"}},
            }
        }
    }
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    assert document == {"format": 1, "generation": 1, "sha256": digest_bytes(canonical), "body": body}


def test_writers_at_the_same_time_lose_nothing(environment):
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from visget.cache.store import Store\nfrom visget.cache.environment import Environment\n"
        "environment = Environment(Store.open(Path(sys.argv[1])))\n"
        "for n in range(5): environment.record('x', f'{sys.argv[2]}.{n}', package='0' * 64)\n"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", code, environment.store.root, str(number)]) for number in range(4)
    ]
    assert [racer.wait() for racer in racers] == [0] * 4
    assert len(environment.installed()) == 20


def test_what_others_are_linked_with_is_not_removed(environment):
    package = digest_bytes(b"p")
    environment.record("zlib", "1.3", package=package, automatic=True, select=False)
    environment.record("png", "1.6", package=package, requires={"zlib": "1.3"})
    environment.record("tool", "1.0", package=package, requires={"zlib": "1.3"}, static=True)
    assert [item.name for item in environment.dependents("zlib", "1.3")] == ["png"]
    with pytest.raises(UsageError, match=r"zlib 1\.3 is needed by png 1\.6$") as caught:
        environment.remove("zlib", "1.3")
    assert caught.value.details == {"dependents": ["png 1.6"]}
    assert environment.lookup("zlib") is not None
    assert [item.name for item in environment.remove("zlib", force=True)] == ["zlib"]
    environment.remove("png")


def test_what_somebody_asked_for_is_not_automatic_again(environment):
    package = digest_bytes(b"p")
    assert environment.record("zlib", "1.3", package=package, automatic=True).automatic
    assert environment.record("zlib", "1.3", package=package, automatic=True).automatic
    assert not environment.record("zlib", "1.3", package=package).automatic
    assert not environment.record("zlib", "1.3", package=package, automatic=True).automatic


def test_artifacts_for_other_machines_go_when_it_is_linked_with_something_else(environment):
    package, one, two = (digest_bytes(text) for text in (b"p", b"1", b"2"))
    environment.record("png", "1.6", package=package, natives={"a": one}, requires={"zlib": "1.2"})
    same = environment.record("png", "1.6", package=package, natives={"b": two}, requires={"zlib": "1.2"})
    assert same.natives == {"a": one, "b": two}
    other = environment.record("png", "1.6", package=package, natives={"b": two}, requires={"zlib": "1.3"})
    assert other.natives == {"b": two}
    assert environment.record("png", "1.6", package=package, natives={"b": one}, static=True).natives == {"b": one}
