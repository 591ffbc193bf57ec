"""Row 20: bit rot, and what a power cut makes of files: it heals, or a precise error says what cannot heal.

Every file of an artifact and of a package on the command line's way is tests/e2e/test_bad_moments.py; every damage to
an entry is tests/cache/test_store.py. Here programs load what is damaged, and the power is cut.
"""

import itertools
import shutil

import pytest
from powercut import VARIANTS, PowerCut
from storekit import KEY, build
from storeuser import ADDER, StoreUser, overwrite

from visget import api
from visget.cache.environment import Environment
from visget.cache.store import Store
from visget.errors import CacheError

HARM = {
    "flipped": lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 4]) + data[len(data) // 2 + 1 :],
    "zeroed": lambda data: bytes(len(data)),
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "longer": lambda data: data + bytes(4096),
}
FILES = ["lib/libadder.so", "api.json", "receipt.json", "entry.json"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    root = tmp_path_factory.mktemp("rot") / "base"
    StoreUser(root).install()
    return root


@pytest.fixture
def user(base, tmp_path):
    shutil.copytree(base, tmp_path / "user", symlinks=True)
    return StoreUser(tmp_path / "user")


def entry_of(user):
    return user.store.native_path(next(iter(Environment(user.store).lookup("adder").natives.values())))


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_heals_at_the_next_load(user, file, harm):
    """Above all a library that is too short never reaches the system's loader: the program would die of SIGBUS."""
    path = entry_of(user) / file
    good = path.read_bytes()
    overwrite(path, HARM[harm](good))
    assert user.works()
    assert len(user.quarantine()) == 1
    if file in ("lib/libadder.so", "api.json"):
        assert path.read_bytes() == good, "compiled again, bit for bit"
    assert user.works()
    assert len(user.quarantine()) == 1


def test_a_file_that_others_could_change_is_made_anew(user):
    path = entry_of(user) / "lib" / "libadder.so"
    path.chmod(0o666)
    assert user.works()
    assert path.stat().st_mode & 0o777 == 0o444


def test_the_rest_of_an_artifact_is_found_by_a_check(user):
    overwrite(entry_of(user) / "lib" / "libadder.a", b"")
    assert user.works(), "names and sizes are looked at"
    assert len(user.quarantine()) == 1
    data = (entry_of(user) / "include" / "adder" / "adder.h").read_bytes()
    overwrite(entry_of(user) / "include" / "adder" / "adder.h", bytes(len(data)))
    (damage,) = user.store.check().damaged
    assert "adder.h was changed" in damage.reason


@pytest.mark.parametrize("harm", HARM)
def test_library_and_package_damaged_and_no_registry(user, harm):
    """What cannot heal is named: the package file, why it is not fetched, and what to do."""
    library = entry_of(user) / "lib" / "libadder.so"
    package = user.store.package_path(ADDER.package.digest)
    good = package.read_bytes()
    overwrite(library, HARM[harm](library.read_bytes()))
    overwrite(package, HARM[harm](good))
    with pytest.raises(CacheError, match=r"adder 1\.2\.3 is damaged in the store.*cannot be fetched") as caught:
        api.load("adder", settings=user.settings)
    assert caught.value.where == str(package)
    assert caught.value.hint
    # The list of what is installed is as before; with the package back, everything is.
    user.store.put_package(good)
    assert user.works()


# ---- power cuts ----------------------------------------------------------------------------------------------

ACTIONS = {
    "native": lambda store: store.build_native(KEY, build),
    "package": lambda store: store.put_envelope(store.put_package(b"package"), b"envelope"),
    "record": lambda store: Environment(store).record("x", "2", package="0" * 64, natives={"m": KEY}),
    "gc": lambda store: store.gc(max_age=0),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_power_cut_at_every_call(tmp_path, action, variant):
    """Bytes that were not synchronised are lost, or zeros; names may be the old ones. What was there before stays."""
    for countdown in itertools.count(1):
        root = tmp_path / str(countdown)
        store = Store.open(root)
        Environment(store).record("x", "1", package=store.put_package(b"installed"))
        store.put_package(b"not needed any more")
        cut = PowerCut(root, tmp_path / f"log{countdown}")
        done = cut.survives(lambda store=store: ACTIONS[action](store), countdown)
        cut.happen(variant)
        again = Store.open(root)
        versions = [item.version for item in Environment(again).installed()]
        assert versions in (["1"], ["1", "2"])
        assert again.package(Environment(again).lookup("x", "1").package) == b"installed"
        damaged = [item.name for item in again.check().damaged]
        assert damaged == [], (countdown, variant)
        ACTIONS[action](again)
        assert again.check().damaged == ()
        if action == "native" and done:
            assert again.native(KEY)
        if action == "record":
            assert [item.version for item in Environment(again).installed()] == ["1", "2"]
        if done:
            assert countdown > 10
            return


def test_the_double_loses_what_is_not_synchronised(tmp_path):
    """A check of the test's own tool: a careless writer's file is damaged by it."""

    def careless():
        (tmp_path / "room").mkdir()
        (tmp_path / "room" / "new").write_bytes(b"bytes")
        (tmp_path / "room" / "new").replace(tmp_path / "room" / "name")

    for variant, found in (("cut", b""), ("zeros", bytes(5))):
        shutil.rmtree(tmp_path / "room", ignore_errors=True)
        cut = PowerCut(tmp_path / "room", tmp_path / "log")
        assert cut.survives(careless, 10_000)
        cut.happen(variant)
        assert (tmp_path / "room" / "name").read_bytes() == found
    shutil.rmtree(tmp_path / "room")
    cut = PowerCut(tmp_path / "room", tmp_path / "log")
    assert cut.survives(careless, 10_000)
    cut.happen("old names")
    assert not (tmp_path / "room" / "name").exists()
