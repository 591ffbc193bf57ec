"""Row 14: kill -9 at every named point of install, gc, publish, refresh, rotate-online, sign and apply: the old state
or the new one, and the next run heals. The store's own tests kill it at every call into the system
(tests/cache/test_crash.py)."""

import re
from pathlib import Path

import pytest
from failkit import killed, points_of
from operations import OPERATIONS, make_world, nothing_is_left

from visget.failpoint import POINTS

ROOT = Path(__file__).resolve().parents[2]
# Reached when something is already wrong; tests/cache kills there.
ELSEWHERE = {"store.quarantine.before-rename", "store.envelope.before-cleanup", "client.before-root"}


# One file is written, and no more.
FEWEST = {"sign": 2, "apply": 2}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("kill") / "world")


@pytest.fixture(scope="module")
def prepared(worlds, tmp_path_factory):
    """Each operation's world, and the points that it passes; made once."""
    made = {}
    for name, (prepare, act, _) in OPERATIONS.items():
        root = tmp_path_factory.mktemp(name)
        world = worlds.copy(root / "before")
        prepare(world)
        tried = world.copy(root / "traced")
        made[name] = world, points_of(lambda act=act, tried=tried: act(tried), root / "points")
    return made


@pytest.mark.parametrize("occurrences", ["first and last", pytest.param("every", marks=pytest.mark.long)])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_kill_at_every_point(operation, occurrences, prepared, tmp_path):
    _, act, check = OPERATIONS[operation]
    world, points = prepared[operation]
    assert len(points) >= FEWEST.get(operation, 5), points
    for point, times in points.items():
        for nth in sorted({1, times}) if occurrences == "first and last" else range(1, times + 1):
            here = world.copy(tmp_path / f"{point}.{nth}")
            assert killed(lambda here=here: act(here), point, nth), (point, nth)
            check(here, done=False)
            act(here)
            check(here, done=True)
            nothing_is_left(here)


def test_every_point_was_tried(prepared):
    passed = {point for _, points in prepared.values() for point in points}
    assert set(POINTS) - passed <= ELSEWHERE


def test_the_list_is_that_of_the_code():
    found = {
        name
        for room in ("cache", "format", "installer", "registry", "runtime", "toolchain", "visget")
        for path in (ROOT / room).glob("*.py")
        for name in re.findall(r"\bfailpoint\(\"([a-z.-]+)\"\)", path.read_text())
        if path.name != "failpoint.py"
    }
    assert found == set(POINTS)
