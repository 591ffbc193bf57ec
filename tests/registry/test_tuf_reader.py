"""Clocks, mirrors, processes at the same time, and kills: the client around the metadata."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from crash import survives
from packagekit import claim, key, package
from reposim import DAY, NAME, NOW, PERIODS, Client, RepoSim, date

from visget.digest import digest_bytes
from visget.errors import NetworkError, RegistryError, TrustError
from visget.format.signing import sign_package
from visget.registry.client import open_registry
from visget.registry.directory import publish
from visget.registry.tuf_client import ExpiredError
from visget.registry.tuf_names import stored_path

YEAR = 365 * DAY


@pytest.fixture
def sim():
    made = RepoSim()
    made.add(NAME, b"one")
    return made


@pytest.fixture
def client(tmp_path, sim):
    return Client(tmp_path / "store", sim)


# ---- row 17: clocks -----------------------------------------------------------------------------------------


def test_row_17_ten_years_ahead_is_refused_and_leaves_no_trace(client, sim):
    client.get()
    sim.now = NOW + 10 * YEAR
    with pytest.raises(ExpiredError, match="expired") as caught:
        client.get()
    assert "clock" in caught.value.hint
    sim.now = NOW + DAY
    assert client.get() == b"one"
    assert client.told.notes == []


def test_row_17_ten_years_back_on_a_new_machine(client, sim):
    """Nothing says what time it is; what is signed is still signed."""
    sim.now = NOW - 10 * YEAR
    assert client.get() == b"one"


def test_row_17_set_back_between_runs_cannot_thaw_an_old_state(client, sim):
    old = dict(sim.files)
    sim.now = NOW + 9 * DAY
    sim.timestamp.expires = date(NOW + 20 * DAY)
    sim.publish("timestamp")
    client.get()
    sim.now = NOW + 19 * DAY
    client.get()
    # A state whose signatures were valid back then, shown to a machine whose clock was turned back with it.
    sim.files = old
    sim.now = NOW + 5 * DAY
    with pytest.raises(TrustError):
        client.get()
    sim.files = {**old, "tuf/timestamp.json": sim.metadata("timestamp").to_bytes()}
    sim.timestamp.expires = date(NOW + 6 * DAY)
    sim.publish("timestamp")
    with pytest.raises(ExpiredError):
        client.get()
    assert any("was set back" in note for note in client.told.notes)


def test_row_17_a_day_back_is_nothing(client, sim):
    sim.now = NOW + 2 * DAY
    client.get()
    sim.now = NOW + 1.5 * DAY
    assert client.get() == b"one"
    assert client.told.notes == []


def test_row_17_back_from_a_wrong_future(client, sim):
    """The clock was ten years ahead once, and a registry on the same machine signed with it: no dead end."""
    sim.now = NOW + 10 * YEAR
    for role in ("root", "targets", "snapshot", "timestamp"):
        sim.signed(role).expires = date(sim.now + 10 * DAY)
    for role in sim.bins:
        sim.bins[role].expires = date(sim.now + 10 * DAY)
        sim.sign(role)
    sim.publish("root")
    sim.publish("targets")
    assert client.get() == b"one"
    sim.now = NOW
    for role in ("root", "targets", "snapshot", "timestamp"):
        sim.signed(role).expires = date(NOW + 10 * DAY)
    sim.publish("root")
    sim.publish("targets")
    assert client.get() == b"one"
    assert any("believing the clock" in note for note in client.told.notes)
    client.told.notes.clear()
    assert client.get() == b"one"
    assert client.told.notes == []


# ---- row 39: mirrors ----------------------------------------------------------------------------------------


def mirrored(sim):
    """A mirror with the present state."""
    copy = RepoSim()
    copy.files = dict(sim.files)
    copy.bins = sim.bins
    copy.location = "mirror"
    return copy


def test_row_39_a_stale_mirror_is_passed_over(tmp_path, sim):
    stale = mirrored(sim)
    sim.add(NAME, b"two")
    client = Client(tmp_path / "store", stale, sim)
    assert Client(tmp_path / "store", sim).get() == b"two"
    assert client.get() == b"two"
    assert [note for note in client.told.notes if "passed over mirror" in note and "older state" in note]


def test_row_39_a_mirror_whose_metadata_expired_is_passed_over(tmp_path, sim):
    stale = mirrored(sim)
    stale.now = NOW + (PERIODS.timestamp + 1) * DAY
    sim.timestamp.expires = date(stale.now + DAY)
    sim.publish("timestamp")
    client = Client(tmp_path / "store", stale, sim)
    assert client.get() == b"one"
    assert "expired" in client.told.notes[0]


@pytest.mark.parametrize("fault", ["gone", "forged", "no files", "another file"])
def test_row_39_a_broken_mirror_is_passed_over(tmp_path, sim, fault):
    broken = mirrored(sim)
    if fault == "gone":
        broken.files = {"tuf/1.root.json": sim.files["tuf/1.root.json"]}
    elif fault == "forged":
        thief = RepoSim()
        thief.keys["online"] = [key("thief")]
        thief.sign("snapshot")
        thief.timestamp.version = 9
        thief.sign("timestamp")
        broken.files["tuf/timestamp.json"] = thief.files["tuf/timestamp.json"]
    else:
        path = stored_path(NAME, digest_bytes(b"one"))
        broken.files.pop(path)
        if fault == "another file":
            broken.files[path] = b"two"
    client = Client(tmp_path / "store", broken, sim)
    assert client.get() == b"one"
    assert "passed over" in client.told.notes[0]


def test_row_39_when_all_fail_the_first_says_why(tmp_path, sim):
    one, two = mirrored(sim), mirrored(sim)
    one.files.pop("tuf/timestamp.json")
    two.files.clear()
    one.files["tuf/1.root.json"] = sim.files["tuf/1.root.json"]
    client = Client(tmp_path / "store", one, two)
    with pytest.raises(RegistryError, match="no registry here"):
        client.get()


def test_row_39_what_the_registry_does_not_have_no_mirror_adds(tmp_path, sim):
    """A mirror is a copy, not another registry: what is absent is absent, whoever says so under the signature."""
    other = mirrored(sim)
    other.add("idx__more.json", b"more")
    client = Client(tmp_path / "store", sim, other)
    assert client.get("idx__more.json") is None


# ---- rows 14 and 16: kills, and many at once ----------------------------------------------------------------


def test_row_14_kill_at_every_call_of_a_refresh(tmp_path, sim):
    client = Client(tmp_path / "store", sim)
    client.get()
    steps = 0
    for countdown in itertools.count(1):
        sim.add(NAME, str(countdown).encode())
        sim.publish("root")
        done = survives(client.get, countdown)
        assert client.get() == str(countdown).encode()
        # What a power cut may lose, nobody relies upon: nothing half-written is left to be believed.
        assert not [path for path in client.state.directory.rglob("*") if path.name.startswith("tmp")]
        steps += 1
        if done:
            break
    assert steps > 10


@pytest.mark.parametrize("racers", [6, pytest.param(24, marks=pytest.mark.long)])
def test_row_16_many_clients_with_one_state(tmp_path, root, racers):
    made = package()
    publish(root, made, sign_package(made, key()), claim=claim(made, key()))
    (tmp_path / "store").mkdir(mode=0o700)
    support = Path(sys.modules["packagekit"].__file__).parent
    code = f"""
import sys; sys.path.insert(0, {str(support)!r})
from pathlib import Path
from packagekit import claim, key, package
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.directory import publish
root, trust, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
for turn in range(4):
    if number == 0:
        made = package(version=f"1.{{turn + 1}}")
        publish(root, made, sign_package(made, key()), claim=claim(made, key()))
    with open_registry(str(root), trust=trust) as registry:
        found = registry.releases(parse_name("xxhash"))
        registry.fetch(found.versions[-1])
print(len(found.versions))
"""
    children = [
        subprocess.Popen([sys.executable, "-c", code, root, tmp_path / "store" / "trust", str(n)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(racers)
    ]  # fmt: skip
    for child in children:
        out, err = child.communicate(timeout=240)
        assert child.returncode == 0, err
        assert 1 <= int(out) <= 5
    with open_registry(str(root), trust=tmp_path / "store" / "trust") as registry:
        assert len(registry.names()) == 1


def test_metadata_is_durable_before_it_is_relied_upon(client, sim, monkeypatch):
    import os

    synced = set()
    fsync = os.fsync

    def watched(descriptor):
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    client.get()
    assert {"timestamp.json", "snapshot.json", "targets.json", "tuf"} <= synced
    synced.clear()
    client.get()
    assert not {"timestamp.json", "tuf"} & synced


def test_a_full_disk_is_said_so_and_heals(client, sim, monkeypatch):
    import os

    client.get()
    sim.add(NAME, b"two")
    with monkeypatch.context() as patch:
        def full(*args, **kwargs):
            raise OSError(28, "No space left on device")

        patch.setattr(os, "fsync", full)
        from visget.errors import ResourceError

        with pytest.raises(ResourceError, match="no space left"):
            client.get()
    assert client.get() == b"two"


def test_offline_reads_a_directory_as_always(root):
    from visget.network import NetworkOptions

    assert open_registry(str(root), network=NetworkOptions(offline=True)).names() == ()


def test_a_network_error_is_no_expiry(tmp_path, sim):
    class Broken(RepoSim):
        def read(self, path, **options):
            raise NetworkError("no route", where=path)

    broken = Broken()
    broken.files = sim.files
    with pytest.raises(NetworkError, match="no route"):
        Client(tmp_path / "store", broken).get()
