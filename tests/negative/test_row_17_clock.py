"""Row 17: a clock that is ten years ahead, ten years behind, or goes backwards between two runs: a clear message where
one is due, and nothing is broken for good.

Expiry of a registry's metadata under a wrong clock is tests/registry/test_tuf_reader.py. Here: the store, with a clock
of its own, and whole commands, with the machine's clock faked.
"""

import os
import shutil
import subprocess
import sys

import pytest
from badkit import publish_tiny
from storekit import KEY, Clock, build, open_store

from visget.cache.environment import Environment
from visget.digest import digest_bytes

YEAR = 365.25 * 86400
FAKETIME = shutil.which("faketime")
SHIFTS = {"ten years ahead": 10 * YEAR, "ten years behind": -10 * YEAR, "before 1970": -1_900_000_000.0}


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_store_works_and_keeps_what_is_needed(tmp_path, shift):
    clock = Clock()
    store = open_store(tmp_path / "store", clock)
    package = store.put_package(b"package")
    store.build_native(KEY, build)
    store.build_native(digest_bytes(b"free"), build)
    Environment(store).record("x", "1", package=package, natives={"m": KEY})
    clock.now += SHIFTS[shift]
    store.gc()
    assert store.native(KEY)
    assert store.package(package) == b"package"
    store.build_native(digest_bytes(b"made meanwhile"), build)
    Environment(store).record("y", "1", package=package)
    clock.now -= SHIFTS[shift]
    # Back in the present: all is there, and what is not needed goes after a week as ever.
    assert [item.name for item in Environment(store).installed()] == ["x", "y"]
    assert store.native(digest_bytes(b"made meanwhile"))
    store.gc()
    clock.now += 8 * 86400
    store.gc()
    assert [entry.key for entry in store.natives()] == [KEY]
    assert store.package(package) == b"package"
    assert store.check().damaged == ()


def test_a_clock_that_jumps_at_every_step(tmp_path):
    clock = Clock()
    store = open_store(tmp_path / "store", clock)
    Environment(store).record("x", "1", package=store.put_package(b"package"), natives={"m": KEY})
    for number, jump in enumerate((9e9, -1.79e9, 5.0, -3.0, 4e9, -8e9)):
        clock.now += jump
        assert store.build_native(KEY, build)
        store.gc()
        assert store.native(KEY), number
        Environment(store).select("x", "1")


# ---- the machine's clock -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return publish_tiny(tmp_path_factory.mktemp("clock") / "place")


@pytest.fixture
def place(published, tmp_path):
    from badkit import Place

    shutil.copytree(published.root, tmp_path / "place", symlinks=True)
    return Place(root=tmp_path / "place")


def at(place, when, *words):
    """Run a command with another clock; workers clear their environment and keep the real one, as they need none."""
    done = subprocess.run(
        [str(FAKETIME), "-f", when, sys.executable, "-m", "visget", *words], env=place.environ, capture_output=True,
        text=True, timeout=180,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.skipif(FAKETIME is None, reason="needs faketime")
@pytest.mark.parametrize("when", ["+10y", "-10y"])
def test_commands_with_a_wrong_clock(place, when):
    """An expired or future registry may be refused, with words; what is installed works; then all is well again."""
    assert place.process("install", "tiny").code == 0
    outcome = at(place, when, "install", "tiny", "--reinstall")
    assert outcome.returncode in (0, 3), outcome
    if outcome.returncode:
        assert "clock" in outcome.stderr or "expired" in outcome.stderr, outcome.stderr
        assert "hint: " in outcome.stderr
    for words in (("list",), ("path", "tiny"), ("cache", "verify"), ("cache", "gc"), ("doctor",)):
        outcome = at(place, when, *words)
        assert outcome.returncode == 0 or words == ("doctor",), (words, outcome)
    code = "import visget; print(visget.load('tiny').tiny_add(2, 40))"
    done = subprocess.run([str(FAKETIME), "-f", when, sys.executable, "-c", code], env=place.environ,
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.stdout == "42\n", done.stderr
    # The clock is right again, so it went backwards or leapt: nothing is bricked.
    assert place.process("install", "tiny").code == 0
    assert place.process("cache", "gc").code == 0
    assert place.process("cache", "verify").code == 0
    assert place.process("path", "tiny").code == 0


@pytest.mark.skipif(FAKETIME is None, reason="needs faketime")
@pytest.mark.parametrize("when", ["+10y", "-10y"])
def test_a_store_and_a_registry_made_under_a_wrong_clock(tmp_path, when):
    """The machine had no battery: it made everything in another decade, and then learns the time."""
    from badkit import Place, key_file, write_project

    place = Place(root=tmp_path)
    key_file(place.config / "keys" / "default.key", "author")
    write_project(tmp_path / "project")
    for words in (("build", str(tmp_path / "project")), ("registry", "init", str(place.registry)),
                  ("publish", str(tmp_path / "project" / "dist" / "tiny-1.0.vis")), ("install", "tiny")):  # fmt: skip
        outcome = at(place, when, *words)
        assert outcome.returncode == 0, (words, outcome)
    for words in (("list",), ("path", "tiny"), ("cache", "gc"), ("cache", "verify")):
        assert place.process(*words).code == 0, words
    outcome = place.process("install", "tiny", "--reinstall")
    if outcome.code:
        # Ten years later everything has expired: the operator renews it, and that is all there is to do.
        assert place.process("registry", "refresh", place.registry).code == 0
        outcome = place.process("install", "tiny", "--reinstall")
    assert outcome.code == 0, outcome
    assert os.listdir(place.home / "quarantine") == []  # noqa: PTH208
