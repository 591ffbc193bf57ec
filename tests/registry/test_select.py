import dataclasses

import pytest
from packagekit import key, package
from packaging.version import Version

from visget.errors import NotFoundError
from visget.names import Requirement
from visget.registry.protocol import Release, Releases
from visget.registry.select import choose

PACKAGE = package("x")


def releases(*texts: str) -> Releases:
    """Make releases; a version with ``!`` at its end is yanked."""
    made = []
    for text in texts:
        release = Release.of(PACKAGE.manifest, vis=PACKAGE.digest, size=1, dsse=PACKAGE.digest, dsse_size=1)
        yanked = "broken" if text.endswith("!") else None
        made.append(dataclasses.replace(release, version=Version(text.rstrip("!")), yanked=yanked))
    made.sort(key=lambda release: release.version)
    return Releases(name=PACKAGE.manifest.name, owners=(key().public,), versions=tuple(made))


@pytest.mark.parametrize(
    ("text", "versions", "chosen"),
    [
        ("x", ["1.9", "1.10", "1.2"], "1.10"),
        ("x<1.10", ["1.9", "1.10"], "1.9"),
        ("x>=1.2,<2", ["1.9", "2.0", "1.10"], "1.10"),
        ("x==1.0", ["1.0.0", "1.1"], "1.0.0"),
        ("x", ["1.0", "2.0rc1"], "1.0"),
        ("x==2.0rc1", ["1.0", "2.0rc1"], "2.0rc1"),
        ("x>=2.0rc1", ["1.0", "2.0rc1", "2.0rc2"], "2.0rc2"),
        ("x", ["1.0", "1.1!"], "1.0"),
        ("x==1.1", ["1.0", "1.1!"], "1.1"),
        ("x==1.*", ["1.0", "1.1!"], "1.0"),
        ("x~=1.1", ["1.1", "1.5", "2.0"], "1.5"),
        ("x!=1.5", ["1.1", "1.5"], "1.1"),
        ("x", ["1!0.1", "5"], "1!0.1"),
    ],
)
def test_what_a_requirement_means(text, versions, chosen):
    assert str(choose(releases(*versions), Requirement.parse(text)).version) == chosen


@pytest.mark.parametrize(
    ("text", "versions", "message", "hint"),
    [
        ("x>2", ["1.0", "1.10"], "no published version satisfies x>2", "there is 1.10, 1.0"),
        ("x", ["2.0rc1"], "only pre-releases satisfy x", "x==2.0rc1"),
        ("x", ["1.0!", "1.1!"], "withdrawn by its owner (1.1: broken)", "x==1.1"),
        ("x", [], "has no published version", None),
    ],
)
def test_nothing_fits(text, versions, message, hint):
    with pytest.raises(NotFoundError) as caught:
        choose(releases(*versions), Requirement.parse(text))
    assert message in caught.value.message
    assert caught.value.hint == hint or hint in caught.value.hint


def test_a_long_list_of_versions_is_cut():
    with pytest.raises(NotFoundError) as caught:
        choose(releases(*[f"1.{n}" for n in range(50)]), Requirement.parse("x>2"))
    assert caught.value.hint.endswith("1.40 and 40 older ones")


def test_the_latest_release():
    assert releases().latest is None
    assert releases("1!", "0.9!").latest is None
    assert str(releases("1.0", "2.0rc1", "1.5!").latest.version) == "1.0"
    assert str(releases("2.0rc1", "2.0rc2").latest.version) == "2.0rc2"
