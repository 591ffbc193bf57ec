"""Renewal, rotation, ceremonies, and what is thrown away."""

import itertools
import json
import os
import shutil
import time

import pytest
from crash import survives
from packagekit import claim, key, package
from registrykit import repository, stored, tree

from visget.errors import NotFoundError, RegistryError, TrustError, UsageError
from visget.format.signing import sign_package
from visget.names import parse_name
from visget.registry.client import open_registry
from visget.registry.directory import Ceremony, init_registry, publish
from visget.registry.operator import find_room, open_room, sibling
from visget.registry.pruning import prune
from visget.registry.roots import Holders, parse_root, sign_file, staged
from visget.registry.tuf_client import ExpiredError
from visget.registry.tuf_keys import KeySigner, key_id
from visget.registry.tuf_names import BINS
from visget.registry.tuf_repository import Periods
from visget.registry.upkeep import (
    apply_staged,
    finish_staged,
    refresh,
    rotate_online,
    rotate_root,
    timestamp_due,
    waiting,
)

DAY = 86400.0
AUTHOR = key("author")


def put(root, item, *, keys=None, now=None):
    return publish(root, item, sign_package(item, AUTHOR), claim=claim(item, AUTHOR), keys=keys, now=now)


def read(root, *, trust=None, now=None):
    clock = time.time if now is None else (lambda: now)
    return [str(item.version) for item in open_registry(str(root), trust=trust, clock=clock)
            .releases(parse_name("xxhash")).versions]  # fmt: skip


def versions(root):
    made = repository(root)
    return {"root": made.signed_root.version, "targets": made.targets.signed.version, **vars_of(made.seen())}


def vars_of(seen):
    return {"timestamp": seen.timestamp, "snapshot": seen.snapshot}


# ---- renewal ------------------------------------------------------------------------------------------------


def test_nothing_is_due_at_first(root):
    before = tree(root)
    done = refresh(root, sibling(root))
    assert (done.renewed, done.waiting, done.removed) == ((), (), 0)
    assert tree(root) == before
    assert not timestamp_due(root, sibling(root), time.time())


@pytest.mark.parametrize(
    ("days", "renewed"),
    [(6.9, ()), (7.1, ("timestamp",)), (14.1, ("snapshot", "timestamp")), (45.1, ("bins", "snapshot", "timestamp"))],
)
def test_what_has_passed_half_of_its_time_is_renewed(root, days, renewed):
    put(root, package())
    now = time.time() + days * DAY
    done = refresh(root, sibling(root), now=now)
    assert done.renewed == renewed
    assert read(root, now=now) == ["1.0"]
    assert done.expires > now + 6.9 * DAY
    # Half of the shortest period later it is still valid, and due again.
    assert read(root, now=now + 6.9 * DAY) == ["1.0"]


def test_a_year_of_weekly_renewals(root, tmp_path):
    put(root, package())
    begin = time.time()
    (tmp_path / "store").mkdir(mode=0o700)
    for week in range(0, 120, 12):
        now = begin + week * 7 * DAY
        for step in range(3):
            done = refresh(root, sibling(root), now=now + step * 7 * DAY)
        assert done.waiting == ()
        assert read(root, trust=tmp_path / "store" / "trust", now=now + 14 * DAY) == ["1.0"]
    assert versions(root)["root"] >= 3
    assert versions(root)["targets"] >= 3


def test_an_expired_registry_comes_back(root):
    put(root, package())
    later = time.time() + 400 * DAY
    with pytest.raises(ExpiredError):
        read(root, now=later)
    refresh(root, sibling(root), now=later)
    assert read(root, now=later) == ["1.0"]


def test_publishing_renews(root):
    put(root, package())
    later = time.time() + 50 * DAY
    put(root, package(version="1.1"), now=later)
    assert read(root, now=later + 13 * DAY) == ["1.0", "1.1"]
    assert min(repository(root).bin(role).signed.version for role in BINS) >= 2


def test_force_renews_everything(root):
    before = versions(root)
    done = refresh(root, sibling(root), force=True)
    assert done.renewed == ("bins", "snapshot", "timestamp")
    after = versions(root)
    assert {name: after[name] > before[name] for name in before} == dict.fromkeys(before, True)
    assert min(repository(root).bin(role).signed.version for role in BINS) >= 2


def test_roots_whose_key_is_away_are_staged_in_time(root):
    put(root, package())
    away = {name: (sibling(root) / name).rename(root.parent / name) for name in ("root.key", "targets.key")}
    later = time.time() + 300 * DAY
    assert refresh(root, sibling(root), now=later).waiting == ()
    later = time.time() + 310 * DAY
    lacking = refresh(root, sibling(root), now=later).waiting
    assert [text.split()[0] for text in lacking] == ["2.root.json", "2.targets.json"]
    assert read(root, now=later) == ["1.0"]
    for name, path in away.items():
        shutil.copy(path, sibling(root) / name)
    with pytest.raises(UsageError, match=r"2.root.json lacks 1"):
        apply_staged(root, sibling(root), now=later)
    for document in staged(sibling(root) / "staged"):
        from visget.format.keyfile import read_key

        sign_file(document.path, KeySigner(read_key(away[f"{document.role}.key"])))
    apply_staged(root, sibling(root), now=later)
    assert waiting(sibling(root)) == []
    assert read(root, now=later + 13 * DAY) == ["1.0"]
    with pytest.raises(UsageError, match="no document waits"):
        apply_staged(root, sibling(root))


def test_periods_are_chosen_once(tmp_path):
    root = init_registry(tmp_path / "registry", periods=Periods(timestamp=1, snapshot=2, bins=3, offline=30))
    put(root, package())
    now = time.time()
    assert read(root, now=now + 0.9 * DAY) == ["1.0"]
    with pytest.raises(ExpiredError):
        read(root, now=now + 1.1 * DAY)
    assert refresh(root, sibling(root), now=now + 0.6 * DAY).renewed == ("timestamp",)


# ---- rotation -----------------------------------------------------------------------------------------------


@pytest.fixture
def trust(tmp_path):
    (tmp_path / "store").mkdir(mode=0o700)
    return tmp_path / "store" / "trust"


def test_rotation_of_the_online_key(root, trust):
    put(root, package())
    assert read(root, trust=trust) == ["1.0"]
    (old,) = open_room(sibling(root)).online_keys()
    assert rotate_online(root, sibling(root)) == []
    (new,) = open_room(sibling(root)).online_keys()
    assert new.key_id != old.key_id
    trusted = parse_root(open_room(sibling(root)).root())
    assert [trusted.roles[role].keyids for role in ("timestamp", "snapshot")] == [[new.key_id]] * 2
    assert read(root, trust=trust) == ["1.0"]
    put(root, package(version="1.1"))
    assert read(root, trust=trust) == ["1.0", "1.1"]
    assert read(root) == ["1.0", "1.1"]
    # The old key is kept apart, and worth nothing.
    (retired,) = sibling(root).glob("*.retired")
    retired.rename(sibling(root) / "online.key")
    with pytest.raises(UsageError, match="replaced elsewhere"):
        put(root, package(version="1.2"))


@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.long)])
def test_a_killed_rotation_leaves_a_registry_that_everybody_accepts(root, tmp_path, step):
    put(root, package())
    for countdown in itertools.count(1, step):
        place = tmp_path / str(countdown) / "registry"
        place.parent.mkdir()
        shutil.copytree(root, place)
        shutil.copytree(sibling(root), sibling(place))
        done = survives(lambda place=place: rotate_online(place, sibling(place)), countdown)
        assert read(place) == ["1.0"]
        assert rotate_online(place, sibling(place)) == []
        put(place, package(version="1.1"))
        assert read(place) == ["1.0", "1.1"]
        assert not (sibling(place) / "online.next.key").exists()
        shutil.rmtree(place.parent)
        if done:
            return


def test_rotation_with_keys_elsewhere(root):
    put(root, package())
    owner = open_room(sibling(root)).offline("root")
    (sibling(root) / "root.key").rename(root.parent / "root.key")
    lacking = rotate_online(root, sibling(root))
    assert [text.split()[0] for text in lacking] == ["2.root.json", "3.root.json"]
    # Meanwhile everything goes on with the old key.
    put(root, package(version="1.1"))
    assert read(root) == ["1.0", "1.1"]
    with pytest.raises(UsageError, match="wait for signatures already"):
        rotate_root(root, sibling(root), Holders(keys=(key("x").public,)))
    for document in staged(sibling(root) / "staged"):
        if document.role == "root":
            sign_file(document.path, owner)
    assert finish_staged(root, sibling(root)) == []
    put(root, package(version="1.2"))
    assert read(root) == ["1.0", "1.1", "1.2"]
    assert len(list(sibling(root).glob("*.retired"))) == 1


def test_the_root_goes_to_other_keys(root, trust):
    put(root, package())
    read(root, trust=trust)
    new = [key(f"holder-{n}") for n in range(3)]
    holders = Holders(keys=tuple(item.public for item in new), threshold=2)
    (lacking,) = rotate_root(root, sibling(root), holders)
    assert "lacks 2 of the signatures" in lacking
    (document,) = staged(sibling(root) / "staged")
    for secret in new[:2]:
        sign_file(document.path, KeySigner(secret))
    apply_staged(root, sibling(root))
    assert read(root, trust=trust) == ["1.0"]
    # The key that was made here signs roots no longer.
    (sibling(root) / "root.key").unlink()
    put(root, package(version="1.1"))
    assert read(root, trust=trust) == ["1.0", "1.1"]


# ---- ceremony -----------------------------------------------------------------------------------------------


def test_row_08_a_ceremony_of_two_of_three(tmp_path, trust):
    holders = [key(f"holder-{n}") for n in range(3)]
    ceremony = Ceremony(
        root=Holders(keys=tuple(item.public for item in holders), threshold=2),
        targets=Holders(keys=tuple(item.public for item in holders[:2]), threshold=2),
        at_hand=(holders[0],),
    )
    root = init_registry(tmp_path / "registry", ceremony=ceremony)
    room = sibling(root)
    assert len(waiting(room)) == 2
    assert not (room / "root.key").exists()
    for place in (lambda: read(root), lambda: put(root, package())):
        with pytest.raises(RegistryError, match="no registry here"):
            place()
    with pytest.raises(UsageError, match="lacks 1 of the signatures"):
        apply_staged(root, room)
    # Somebody else's signature does not count, nor the same one again.
    for secret in (key("stranger"), holders[0]):
        for document in staged(room / "staged"):
            sign_file(document.path, KeySigner(secret))
    with pytest.raises(UsageError, match="lacks 1 of the signatures"):
        apply_staged(root, room)
    # On another machine: nothing but the files and the key.
    carried = shutil.copytree(room / "staged", tmp_path / "stick")
    for path in carried.iterdir():
        sign_file(path, KeySigner(holders[1]))
    shutil.copytree(carried, room / "staged", dirs_exist_ok=True)
    apply_staged(root, room)
    put(root, package())
    assert read(root, trust=trust) == ["1.0"]
    view = open_registry(str(root), trust=trust).operators()
    assert (set(view.keys), view.threshold) == ({item.public for item in holders[:2]}, 2)
    init_registry(root, ceremony=ceremony)


def test_an_interrupted_ceremony_goes_on(tmp_path):
    holder = key("holder")
    ceremony = Ceremony(root=Holders(keys=(holder.public,)))
    root = init_registry(tmp_path / "registry", ceremony=ceremony)
    before = (sibling(root) / "staged" / "1.root.json").read_bytes()
    init_registry(root, ceremony=ceremony)
    assert (sibling(root) / "staged" / "1.root.json").read_bytes() == before
    sign_file(sibling(root) / "staged" / "1.root.json", KeySigner(holder))
    init_registry(root, ceremony=ceremony)
    with pytest.raises(NotFoundError):
        read(root)


@pytest.mark.parametrize(("count", "threshold"), [(1, 0), (1, 2), (0, 1), (0, 0)])
def test_thresholds_that_cannot_be_met(count, threshold):
    with pytest.raises(UsageError, match="cannot be met"):
        Holders(keys=tuple(key(str(n)).public for n in range(count)), threshold=threshold)


def test_one_holder_named_twice():
    with pytest.raises(UsageError, match="named twice"):
        Holders(keys=(AUTHOR.public, AUTHOR.public), threshold=2)


@pytest.mark.parametrize("damage", [b"", b"{}", b"<html>", None])
def test_what_is_no_document_is_not_signed(root, damage):
    rotate_root(root, sibling(root), Holders(keys=(AUTHOR.public,)))
    (document,) = staged(sibling(root) / "staged")
    if damage is None:
        data = json.loads(document.data)
        data["signed"]["version"] = 7
        damage = json.dumps(data).encode()
    document.path.write_bytes(damage)
    with pytest.raises(TrustError):
        sign_file(document.path, KeySigner(AUTHOR))
    assert document.path.read_bytes() == damage
    with pytest.raises(UsageError, match="not a document to sign"):
        sign_file(document.path.with_name("notes.txt"), KeySigner(AUTHOR))
    with pytest.raises(UsageError, match="no such document"):
        sign_file(document.path.with_name("9.root.json"), KeySigner(AUTHOR))


def test_a_staged_document_that_was_exchanged_is_refused(root):
    """Whoever can write into the room but has no key gains nothing."""
    rotate_root(root, sibling(root), Holders(keys=(AUTHOR.public,)))
    (document,) = staged(sibling(root) / "staged")
    data = json.loads(document.data)
    data["signed"]["roles"]["root"]["threshold"] = 1
    data["signed"]["expires"] = "2099-01-01T00:00:00Z"
    document.path.write_text(json.dumps(data))
    sign_file(document.path, KeySigner(AUTHOR))
    with pytest.raises(UsageError, match="lacks 1"):
        apply_staged(root, sibling(root))


# ---- rooms --------------------------------------------------------------------------------------------------


def test_a_moved_registry_finds_its_room(tmp_path):
    rooms = tmp_path / "rooms"
    one = init_registry(tmp_path / "one", keys=rooms / "a")
    two = init_registry(tmp_path / "two", keys=rooms / "b")
    assert (find_room(rooms, one), find_room(rooms, two)) == (rooms / "a", rooms / "b")
    moved = two.rename(tmp_path / "three")
    assert find_room(rooms, moved) == rooms / "b"
    put(moved, package(), keys=rooms / "b")
    assert find_room(rooms, tmp_path / "none") == tmp_path / "none.operator"


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100])
def test_a_damaged_record_of_the_operator(root, damage):
    (sibling(root) / "registry.json").write_bytes(damage)
    with pytest.raises(TrustError, match="operator's record is damaged"):
        put(root, package())


def test_keys_that_others_can_read_are_refused(root):
    (sibling(root) / "online.key").chmod(0o644)
    with pytest.raises(TrustError, match="can be read or written by others"):
        put(root, package())


# ---- old files ----------------------------------------------------------------------------------------------


def age(root, days):
    for path in root.rglob("*"):
        if path.is_file():
            facts = path.stat()
            os.utime(path, (facts.st_atime, facts.st_mtime - days * DAY))


def test_what_was_replaced_is_removed_after_a_day(root):
    for number in range(4):
        put(root, package(version=f"1.{number}"))
    put(root, package("zlib"))
    assert refresh(root, sibling(root)).removed == 0
    good = read(root)
    age(root, 2)
    removed = refresh(root, sibling(root)).removed
    assert removed >= 3 * 2 + 4
    assert read(root) == good
    assert refresh(root, sibling(root)).removed == 0
    assert len(stored(root, "vis")) == 5
    names = [path.name for path in (root / "tuf").iterdir()]
    assert len(names) == 256 + 4
    assert len(list((root / "t").glob("*.idx__*"))) == 2
    assert len(list((root / "t").glob("*names*"))) == 2
    assert [entry.name for entry in open_registry(str(root)).names()] == ["xxhash", "zlib"]


def test_roots_are_kept_for_ever(root):
    for _ in range(3):
        refresh(root, sibling(root), force=True)
    age(root, 2)
    assert prune(repository(root), time.time()) > 0
    assert len(list((root / "tuf").glob("*.root.json"))) == 4
    assert open_registry(str(root)).names() == ()


def test_key_ids_are_digests_of_canonical_keys():
    from securesystemslib.signer import CryptoSigner

    signer = CryptoSigner.generate_ed25519()
    from visget.format.keys import PublicKey

    assert key_id(PublicKey(bytes.fromhex(signer.public_key.keyval["public"]))) == signer.public_key.keyid
