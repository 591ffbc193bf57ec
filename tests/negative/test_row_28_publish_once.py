"""Row 28: a version is published exactly once, whoever tries how often, at the same moment or after a lost answer.

Of a registry in a directory; a registry's server answers 200, 201 and 409 to the same.
"""

import json
import os
import re

import pytest
from badkit import Place, key_file, publish_tiny, write_project
from failkit import killed
from packagekit import claim, key
from registrykit import stored, tree
from rowkit import copy_of, refused, with_section

from visget.errors import EXIT_REGISTRY, EXIT_TRUST, RegistryError
from visget.failpoint import POINTS
from visget.format.package import open_package
from visget.format.signing import sign_package
from visget.registries import room_of
from visget.registry.directory import publish


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 in a registry, and tiny 2.0 built."""
    place = publish_tiny(tmp_path_factory.mktemp("once"))
    assert place.run("build", write_project(place.root / "second", version="2.0")).code == 0
    return place


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


@pytest.fixture
def first(published):
    return published.root / "project" / "dist" / "tiny-1.0.vis"


@pytest.fixture
def second(published):
    return published.root / "second" / "dist" / "tiny-2.0.vis"


def other(vis, tmp_path):
    """The same version with other content."""
    path = tmp_path / "other.vis"
    path.write_bytes(with_section(vis.read_bytes(), "license", b"Another licence\n"))
    return path


def test_row_28_the_same_bytes_again(place, first):
    before = place.state()
    outcome = place.run("publish", first, "--json")
    assert outcome.code == 0
    assert outcome.json["fresh"] is False
    assert place.run("publish", first).out.startswith("already published, nothing changed: tiny 1.0")
    assert place.state() == before


def test_row_28_other_bytes(place, first, tmp_path):
    says = "tiny 1.0 is already published with other content"
    outcome = refused(place, "publish", other(first, tmp_path), codes=(EXIT_REGISTRY,), says=says)
    assert "hint: raise the version" in outcome.err
    key_file(place.config / "keys" / "stranger.key", "stranger")
    refused(place, "publish", first, "--key", "stranger", codes=(EXIT_TRUST,))


def at_once(actions) -> list[str]:
    """Run each action in a process of its own, all from one moment on, and return what each says."""
    go_read, go_write = os.pipe()
    said, children = [], []
    for action in actions:
        out_read, out_write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(go_write)
                os.read(go_read, 1)
                os.write(out_write, action().encode())
            except BaseException as error:  # noqa: BLE001 - the parent compares
                os.write(out_write, repr(error).encode())
            finally:
                os._exit(0)
        os.close(out_write)
        said.append(out_read)
        children.append(child)
    os.close(go_write)
    texts = []
    for reader, child in zip(said, children, strict=True):
        with os.fdopen(reader) as stream:
            texts.append(stream.read())
        os.waitpid(child, 0)
    os.close(go_read)
    return texts


def test_row_28_twenty_publishers_of_one_version(place, second, tmp_path):
    """Half of them have other bytes: whoever is first decides, and exactly one publication happened."""
    author = key("author")
    items = [open_package(path.read_bytes()) for path in (second, other(second, tmp_path))]
    room = room_of(settings(place), place.registry)

    def put(item):
        def action() -> str:
            try:
                done = publish(
                    place.registry, item, sign_package(item, author), claim=claim(item, author), keys=room
                )
            except RegistryError as error:
                return "refused" if "already published with other content" in error.message else repr(error)
            return "fresh" if done.fresh else "known"

        return action

    texts = at_once([put(items[number % 2]) for number in range(20)])
    assert sorted(texts) == ["fresh"] + ["known"] * 9 + ["refused"] * 10
    assert len(stored(place.registry, "vis", "tiny", "2.0")) == 1
    assert len(stored(place.registry, "dsse", "tiny", "2.0")) == 1
    assert place.run("info", "tiny", "--json").json["versions"] == ["2.0", "1.0"]
    assert place.run("install", "tiny").code == 0


def settings(place: Place):
    from visget.config import read_settings

    return read_settings(place.environ)


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.long)])
def test_row_28_the_command_many_times_at_once(place, second, count):
    children = [place.spawn("publish", second, "--json") for _ in range(count)]
    fresh = []
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        fresh.append(json.loads(out)["fresh"])
    assert sorted(fresh) == [False] * (count - 1) + [True]


@pytest.mark.parametrize("point", [point for point in POINTS if re.match(r"registry\.(commit|operator|files)", point)])
def test_row_28_the_answer_is_lost_and_the_author_tries_again(place, second, tmp_path, point):
    """Killed at each point, the last one after readers see the version: the second try ends as the only one would."""
    alone = copy_of(place, tmp_path / "alone")
    assert alone.run("publish", second).code == 0
    if not killed(lambda: place.run("publish", second), point):
        pytest.fail(f"publishing does not pass {point}")
    visible = place.run("info", "tiny", "--json").json["versions"] == ["2.0", "1.0"]
    assert visible or point != "registry.commit.done"
    outcome = place.run("publish", second, "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["fresh"] is not visible
    again = place.run("publish", second, "--json")
    assert (again.code, again.json["fresh"]) == (0, False)
    for kind in ("vis", "dsse"):
        (one,) = stored(place.registry, kind, "tiny", "2.0")
        assert tree(alone.registry)[f"t/{one.name}"] == one.read_bytes()
    assert place.run("info", "tiny", "--json").json["versions"] == ["2.0", "1.0"]
