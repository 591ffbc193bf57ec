"""Choosing versions, without registries: a catalogue in memory."""

import random

import pytest
from packaging.version import Version

from visget.digest import digest_bytes
from visget.errors import NotFoundError
from visget.names import Requirement, parse_name
from visget.registry.protocol import Release, Releases
from visget.resolving import ConflictError, Wanted, in_order, resolve

D = digest_bytes(b"x")


class Shelf:
    """`Shelf({"zlib": {"1.2": [], "1.3": []}, "png": {"1.6": ["zlib>=1.2"]}})`; a "!" after a version: withdrawn."""

    def __init__(self, packages, **others):
        self.rooms = {"here": packages, **others}
        self.asked = []

    def releases(self, name, registry):
        self.asked.append((name, registry))
        if name not in self.rooms[registry]:
            raise NotFoundError(f"there is no package {name!r} in this registry", where=registry)
        versions = [
            Release(
                name=name, version=Version(text.rstrip("!")), vis=D, size=1, dsse=D, dsse_size=1, summary="",
                license="MIT", profile="vis-1", epoch=22, functions=(),
                dependencies=tuple(str(Requirement.parse(one)) for one in needs),
                yanked="broken" if text.endswith("!") else None,
            )
            for text, needs in self.rooms[registry][name].items()
        ]  # fmt: skip
        return Releases(name=name, owners=(), versions=tuple(sorted(versions, key=lambda one: one.version)))


def wanted(text, registry="here"):
    return Wanted(requirement=Requirement.parse(text), registry=registry)


def chosen(shelf, *texts, prefer=None):
    known = {name: Version(text) for name, text in (prefer or {}).items()}
    return [str(one) for one in resolve([wanted(text) for text in texts], shelf, prefer=known)]


ZLIB = {"1.2": [], "1.3": [], "1.3.1": []}


def test_the_newest_that_fits_each_after_what_it_needs():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.6": ["zlib>=1.2,<1.3.1"]}, "app": {"1": ["png", "zlib"], "2": ["png"]}})
    assert chosen(shelf, "app") == ["zlib 1.3", "png 1.6", "app 2"]
    assert chosen(shelf, "zlib") == ["zlib 1.3.1"]


def test_what_is_there_already_stays_where_it_fits():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.6": ["zlib>=1.2"]}})
    assert chosen(shelf, "png", prefer={"zlib": "1.2"}) == ["zlib 1.2", "png 1.6"]
    assert chosen(shelf, "png", "zlib>=1.3", prefer={"zlib": "1.2"}) == ["zlib 1.3.1", "png 1.6"]


def test_it_goes_back_to_an_older_version_of_who_asks_for_too_much():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.5": ["zlib<1.3"], "1.6": ["zlib>=2"]}, "app": {"1": ["png"]}})
    assert chosen(shelf, "app") == ["zlib 1.2", "png 1.5", "app 1"]


def test_a_conflict_says_who_needs_what_and_what_there_is():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.6": ["zlib<1.3"]}, "app": {"1.0": ["png", "zlib>=1.3"]}})
    with pytest.raises(ConflictError) as caught:
        chosen(shelf, "app")
    assert caught.value.message == (
        "no version of zlib is what everybody needs: app 1.0 needs zlib>=1.3; png 1.6 needs zlib<1.3; "
        "zlib has 1.3.1, 1.3, 1.2"
    ) or caught.value.message == (
        "no version of zlib is what everybody needs: png 1.6 needs zlib<1.3; app 1.0 needs zlib>=1.3; "
        "zlib has 1.3.1, 1.3, 1.2"
    )
    assert caught.value.hint == "take another version of app or png (visget info NAME lists them)"
    assert caught.value.exit_code == 8


def test_a_conflict_with_the_users_own_wish():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.6": ["zlib<1.3"]}})
    with pytest.raises(ConflictError, match=r"you ask for zlib>=1\.3") as caught:
        chosen(shelf, "png", "zlib>=1.3")
    assert "leave zlib>=1.3 out or widen it" in caught.value.hint


def test_one_that_nothing_satisfies_and_what_keeps_versions_from_being_chosen():
    shelf = Shelf({"zlib": {"1.2": [], "1.3!": [], "2.0rc1": []}, "png": {"1.6": ["zlib>=1.3"]}})
    with pytest.raises(ConflictError) as caught:
        chosen(shelf, "png")
    assert caught.value.message == (
        "png 1.6 needs zlib>=1.3, and no version does: zlib has 2.0rc1 (a pre-release), 1.3 (withdrawn: broken), 1.2"
    )
    assert caught.value.hint == "to have it all the same, name it exactly, too: zlib==2.0rc1"
    assert chosen(shelf, "png", "zlib==1.3") == ["zlib 1.3", "png 1.6"]
    assert chosen(shelf, "png", prefer={"zlib": "1.3"}) == ["zlib 1.3", "png 1.6"]
    assert chosen(shelf, "png", "zlib==2.0rc1") == ["zlib 2.0rc1", "png 1.6"]


def test_other_versions_that_do_not_fit_either_are_mentioned():
    shelf = Shelf({"zlib": ZLIB, "png": {"1.5": ["zlib>=3"], "1.6": ["zlib>=2"]}})
    with pytest.raises(ConflictError, match=r"png 1\.6 needs zlib>=2, .*; other versions of png do not fit either"):
        chosen(shelf, "png")


def test_a_dependency_that_is_not_there_any_more():
    shelf = Shelf({"png": {"1.6": ["zlib"]}})
    with pytest.raises(NotFoundError, match=r"png 1\.6 needs zlib, and there is no package zlib in that registry"):
        chosen(shelf, "png")
    with pytest.raises(NotFoundError, match="there is no package 'png'"):
        chosen(Shelf({}), "png")


def test_a_circle_is_shown():
    shelf = Shelf({"a": {"1": ["b"]}, "b": {"2": ["d"]}, "d": {"3": ["a"]}})
    with pytest.raises(ConflictError, match=r"in a circle: a 1 -> b 2 -> d 3 -> a 1$"):
        chosen(shelf, "a")
    with pytest.raises(ConflictError, match="in a circle: own 1 -> own 1"):
        chosen(Shelf({"own": {"1": ["own"]}}), "own")


def test_row_24_a_dependency_comes_from_the_registry_of_who_needs_it():
    """Whatever another registry has under that name, and also when the right one does not have it."""
    png = {"png": {"1": ["zlib"]}}
    shelf = Shelf({"zlib": {"99": []}}, private=png | {"zlib": {"1": []}}, other=png)
    assert [str(one) for one in resolve([wanted("png", "private")], shelf)] == ["zlib 1", "png 1"]
    assert ("zlib", "here") not in shelf.asked
    with pytest.raises(NotFoundError, match="no package zlib"):
        resolve([wanted("png", "other")], shelf)
    assert ("zlib", "here") not in shelf.asked


def test_row_24_one_name_never_comes_from_two_registries():
    shelf = Shelf({"app": {"1": ["zlib"]}, "zlib": {"1": []}}, private={"png": {"1": ["zlib"]}, "zlib": {"1": []}})
    roots = [wanted("app"), wanted("png", "private")]
    with pytest.raises(ConflictError, match="zlib is needed from two registries"):
        resolve(roots, shelf)
    found = resolve([*roots, wanted("zlib", "private")], shelf)
    assert {one.registry for one in found if one.name == "zlib"} == {"private"}


def test_order_is_the_same_whatever_the_order_of_the_question():
    names = [f"p{number}" for number in range(12)]
    packages = {name: {"1": [f"p{n}" for n in range(number) if (n * number) % 3]} for number, name in enumerate(names)}
    expected = chosen(Shelf(packages), *names)
    for seed in range(5):
        mixed = random.Random(seed).sample(names, len(names))
        assert chosen(Shelf(packages), *mixed) == expected


def test_thousands_of_possibilities_end():
    """Twenty versions each of a chain in which only the oldest fit."""
    packages = {f"p{n}": {str(v): [f"p{n + 1}=={v}"] for v in range(1, 21)} for n in range(8)}
    packages["p8"] = {"1": []}
    assert chosen(Shelf(packages), "p0") == [f"p{n} 1" for n in range(8, -1, -1)]


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.long)])
def test_a_long_way_is_an_error(count):
    packages = {f"p{n}": {"1": [f"p{n + 1}"]} for n in range(count)} | {f"p{count}": {"1": []}}
    with pytest.raises(ConflictError, match="more than 200 packages"):
        chosen(Shelf(packages), "p0")


def test_in_order():
    assert in_order({"a": ["b"], "b": []}, {}) == ["b", "a"]
    assert parse_name("a") == "a"
