"""Row 15: a disk that is full or fails at every named point: a clear error, no partial state, and a retry works.

The other faults (EDQUOT, EMFILE, EACCES, a read-only file system) at every call are tests/cache/test_full_disk.py; real
full and read-only disks, limits on files and descriptors are tests/e2e/test_bad_moments.py.
"""

import errno
import os

import pytest
from failkit import failing, points_of
from operations import OPERATIONS, make_world, nothing_is_left

from visget import failpoint
from visget.errors import EXIT_UNSUPPORTED, ResourceError, UsageError

SAYS = {"enospc": "no space left", "eio": os.strerror(errno.EIO)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    base = make_world(tmp_path_factory.mktemp("faults") / "world")
    made = {}
    for name, (prepare, act, _) in OPERATIONS.items():
        root = tmp_path_factory.mktemp(name)
        world = base.copy(root / "before")
        prepare(world)
        tried = world.copy(root / "traced")
        made[name] = world, points_of(lambda act=act, tried=tried: act(tried), root / "points")
    return made


@pytest.mark.parametrize("fault", SAYS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_fault_at_every_point(operation, fault, prepared, tmp_path):
    _, act, check = OPERATIONS[operation]
    world, points = prepared[operation]
    for point in points:
        here = world.copy(tmp_path / point)
        error = failing(lambda here=here: act(here), point, fault)
        assert isinstance(error, ResourceError), (point, error)
        assert SAYS[fault] in error.message, (point, error.message)
        assert error.where, point
        assert error.exit_code == EXIT_UNSUPPORTED
        check(here, done=False)
        nothing_is_left(here)
        act(here)
        check(here, done=True)
        nothing_is_left(here)


def test_the_environment_arms_a_point_only_in_a_test(prepared, tmp_path):
    world = prepared["install"][0].copy(tmp_path / "world")
    place = world.place.with_env(VISGET_FAILPOINT="install.fetched=enospc")
    tested = place.with_env(VISGET_TESTING="1").process("install", "tiny")
    assert tested.code == EXIT_UNSUPPORTED
    assert "no space left" in tested.text
    assert "hint: free some space" in tested.err
    assert place.with_env(VISGET_TESTING="yes").process("install", "tiny").code == 0
    assert world.place.with_env(VISGET_TESTING="1").process("install", "tiny").code == 0


@pytest.mark.parametrize("text", ["nowhere=kill", "gc.renamed", "gc.renamed=explode", "gc.renamed=kill@x"])
def test_a_point_that_is_not_there_is_named(text):
    with pytest.raises(UsageError, match="POINT=ACTION"):
        failpoint.parse(text)


def test_a_worker_never_has_a_failpoint(prepared, tmp_path):
    """Its environment is empty, so only the parent dies: an installation that reaches no point works."""
    world = prepared["install"][0].copy(tmp_path / "world")
    place = world.place.with_env(VISGET_FAILPOINT="gc.renamed=kill", VISGET_TESTING="1")
    assert place.process("install", "tiny").code == 0


def test_a_point_that_is_not_armed_costs_nothing():
    import timeit

    one = min(timeit.repeat("failpoint('install.fetched')", number=100_000, repeat=5, globals=vars(failpoint))) / 1e5
    assert one < 5e-6, f"{one * 1e9:.0f} ns"
