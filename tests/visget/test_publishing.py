"""`visget publish` first does what an installation would, and keeps nothing of it."""

import pytest
from badkit import Place, publish_tiny
from rowkit import copy_of, offer, refused, with_section

from visget.errors import EXIT_FAILED, EXIT_REFUSED
from visget.format.package import open_package
from visget.installer import trial


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("publishing"))


@pytest.fixture
def place(tmp_path, published) -> Place:
    return copy_of(published, tmp_path)


@pytest.fixture
def empty(place) -> Place:
    """A registry that has nothing yet."""
    outcome = place.run("registry", "init", place.root / "empty")
    assert outcome.code == 0, outcome
    return place.with_env(VISGET_REGISTRY=str(place.root / "empty"))


def wrong(place: Place) -> bytes:
    """The package with a vector that says that 2 + 40 is 43."""
    data = place.blob().read_bytes()
    content = open_package(data).section("vectors")
    assert content is not None
    assert content.count(b"42") == 1
    return with_section(data, "vectors", content.replace(b"42", b"43"))


def test_a_wrong_vector_is_refused_as_by_an_installation(place, empty):
    bad = wrong(place)
    file = place.root / "wrong.vis"
    file.write_bytes(bad)
    told = refused(empty, "publish", file, "--json", codes=(EXIT_FAILED,), prints=True)
    assert list((place.home / "tmp").iterdir()) == []
    offer(place, bad)
    installing = place.run("install", "tiny", "--json")
    assert (installing.code, installing.json["message"]) == (told.code, told.json["message"])
    assert told.json["message"].endswith("tiny_add(): returned 42, not 43")
    assert "[[vector]]" in told.json["hint"]


def test_a_right_one_leaves_nothing_in_the_store(place, empty):
    file = place.blob()
    assert empty.run("publish", file).code == 0
    assert empty.natives() == []
    assert list((place.home / "tmp").iterdir()) == []
    assert empty.run("install", "tiny").code == 0


def test_no_check_leaves_it_to_the_users(place, empty):
    file = place.root / "wrong.vis"
    file.write_bytes(wrong(place))
    outcome = empty.run("publish", file, "--no-check")
    assert outcome.code == 0, outcome
    assert "compiling" not in outcome.err
    assert empty.run("install", "tiny").code == EXIT_FAILED


def test_what_the_store_has_is_not_compiled_again(place, empty, monkeypatch):
    assert place.run("install", "tiny").code == 0
    monkeypatch.setattr(trial, "obtain_native", None)
    assert empty.run("publish", place.blob()).code == 0


@pytest.mark.parametrize("words", [(), ("--no-check",)], ids=["checked", "unchecked"])
def test_a_malformed_section_is_refused(place, empty, words):
    file = place.root / "bad.vis"
    file.write_bytes(with_section(place.blob().read_bytes(), "headers", b"{}x"))
    assert "headers" in refused(empty, "publish", file, *words, codes=(EXIT_REFUSED,)).err
