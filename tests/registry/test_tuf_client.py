"""The client against a repository that lies; rows are those of the list of negative tests."""

import copy
import datetime
import json

import pytest
from packagekit import key
from reposim import DAY, NAME, NOW, OTHER, PERIODS, ROLE, Client, RepoSim, date, resigned, second_id
from tuf.api.metadata import (
    DelegatedRole,
    Delegations,
    Metadata,
    MetaFile,
    Signature,
    SuccinctRoles,
    TargetFile,
    Targets,
)

from visget.digest import digest_bytes
from visget.errors import NetworkError, RegistryError, TrustError
from visget.format.keys import SecretKey
from visget.registry.tuf_client import ExpiredError
from visget.registry.tuf_keys import KeySigner, key_id, tuf_key
from visget.registry.tuf_names import BINS, bin_of, stored_path
from visget.registry.tuf_rules import ROLE_FIELD, check_metadata


@pytest.fixture
def sim():
    made = RepoSim()
    made.add(NAME, b"one")
    return made


@pytest.fixture
def client(tmp_path, sim):
    return Client(tmp_path / "store", sim)


def refused(client, match, error=TrustError):
    """The client refuses, says why, and goes on with what it knew once the repository is honest again."""
    with pytest.raises(error, match=match) as caught:
        client.get()
    assert caught.value.where
    return caught.value


# ---- the honest way -----------------------------------------------------------------------------------------


def test_what_is_signed_is_found_and_absence_is_signed_too(client, sim):
    assert client.get() == b"one"
    assert client.get("idx__nothing.json") is None


def test_a_second_look_asks_for_two_files(client, sim):
    client.get()
    sim.asked.clear()
    assert client.get() == b"one"
    assert sim.asked == ["tuf/2.root.json", "tuf/timestamp.json"]


def test_one_reader_asks_once(client, sim):
    reader = client.reader()
    reader.find(NAME)
    sim.asked.clear()
    assert reader.find(NAME, OTHER)[1] is None
    assert sim.asked == [f"tuf/1.{bin_of(OTHER)}.json"]


def test_changes_arrive(client, sim):
    client.get()
    sim.add(NAME, b"two")
    assert client.get() == b"two"


def test_python_tuf_still_has_the_names_that_the_adapter_uses(client, sim):
    """`_trusted_set` and its `reference_time` are private; should they go, the clock would silently not count."""
    client.get()
    sim.now += (PERIODS.timestamp + 1) * DAY
    refused(client, "expired", ExpiredError)


# ---- row 3: rollback ----------------------------------------------------------------------------------------


def test_row_03_rollback_of_the_timestamp(client, sim):
    old = sim.files["tuf/timestamp.json"]
    sim.add(NAME, b"two")
    assert client.get() == b"two"
    sim.files["tuf/timestamp.json"] = old
    refused(client, "older state")


def test_row_03_rollback_of_the_snapshot(client, sim):
    sim.add(NAME, b"two")
    assert client.get() == b"two"
    sim.snapshot.version = 1
    sim.sign("snapshot")
    sim.timestamp.version += 1
    sim.sign("timestamp")
    refused(client, "older state")


@pytest.mark.parametrize("role", ["targets", ROLE])
def test_row_03_rollback_of_targets_and_of_a_bin(client, sim, role):
    sim.publish(role)
    client.get()
    sim.snapshot.meta[f"{role}.json"] = MetaFile(1)
    sim.publish("snapshot")
    refused(client, "older state")


@pytest.mark.parametrize("role", ["targets", ROLE])
def test_row_03_a_role_vanishes_from_the_snapshot(client, sim, role):
    client.get()
    del sim.snapshot.meta[f"{role}.json"]
    sim.publish("snapshot")
    refused(client, "missing info")


def test_row_03_rollback_of_an_index(client, sim):
    client.get()
    sim.add(NAME, b"two")
    sim.files[stored_path(NAME, digest_bytes(b"two"))] = b"one"
    refused(client, "another file")


def test_row_03_rollback_of_the_root(client, sim):
    sim.publish("root")
    client.get()
    assert b'"version":2' in client.state.roots()[0]
    # Another client state lost its cache of roots; the newest is kept apart.
    sim.files["tuf/3.root.json"] = sim.files["tuf/2.root.json"]
    refused(client, "older state")
    sim.files["tuf/3.root.json"] = sim.files["tuf/1.root.json"]
    refused(client, "older state")


# ---- row 4: freeze ------------------------------------------------------------------------------------------


def test_row_04_freeze(client, sim):
    """Whoever holds back new metadata is found out when the old expires."""
    client.get()
    sim.now = NOW + PERIODS.timestamp * DAY - 1
    assert client.get() == b"one"
    sim.now += 1
    error = refused(client, "timestamp.json is expired", ExpiredError)
    assert "visget registry refresh" in error.hint
    # The operator renews it: all is well again, with the expired one in the cache.
    sim.timestamp.expires = date(sim.now + 10 * DAY)
    sim.publish("timestamp")
    assert client.get() == b"one"


def test_row_04_offline_is_zero_network_and_has_a_limit(client, sim):
    with pytest.raises(NetworkError, match="was not fetched before"):
        client.get(offline=True)
    assert sim.asked == []
    client.get()
    sim.asked.clear()
    sim.now = NOW + 0.5 * DAY
    assert client.get(offline=True) == b"one"
    assert client.told.notes == []
    sim.now = NOW + 3 * DAY
    assert client.get(offline=True) == b"one"
    assert "is from 2027-01-15" in client.told.notes.pop()
    for days in (0.01, 6.99):
        sim.now = NOW + (PERIODS.timestamp + days) * DAY
        assert client.get(offline=True) == b"one"
        assert "expired on" in client.told.notes.pop()
    sim.now = NOW + (PERIODS.timestamp + 7.01) * DAY
    with pytest.raises(ExpiredError, match="more than 7 days ago") as caught:
        client.get(offline=True)
    assert "--offline" in caught.value.hint
    assert sim.asked == []


def test_row_04_offline_what_was_never_looked_up_is_not_unknown(client, sim):
    client.get()
    sim.asked.clear()
    with pytest.raises(NetworkError, match="offline"):
        client.get(OTHER, offline=True)
    assert sim.asked == []


def test_row_04_offline_still_verifies(client, sim):
    client.get()
    path = client.state.metadata / f"{ROLE}.json"
    path.write_bytes(path.read_bytes().replace(b'"length":3', b'"length":4'))
    with pytest.raises((TrustError, NetworkError)):
        client.get(offline=True)


# ---- row 5: mix and match -----------------------------------------------------------------------------------


def test_row_05_a_new_snapshot_with_an_old_bin(client, sim):
    old = sim.files[f"tuf/2.{ROLE}.json"]
    sim.add(NAME, b"two")
    sim.files[f"tuf/3.{ROLE}.json"] = old
    refused(client, "older state|mixture")


def test_row_05_another_snapshot_of_that_version(client, sim):
    client.get()
    sim.add(NAME, b"two")
    mixed = sim.metadata("snapshot")
    mixed.signed.expires = date(NOW + 19 * DAY)
    mixed.sign(KeySigner(key("online")))
    sim.files[f"tuf/{sim.snapshot.version}.snapshot.json"] = mixed.to_bytes()
    refused(client, "hash|length")


def test_row_05_an_index_of_another_package(client, sim):
    sim.add(OTHER, b"ten")
    sim.files[stored_path(NAME, digest_bytes(b"one"))] = b"ten"
    refused(client, "another file")


def test_row_05_the_bin_of_other_names(client, sim):
    """All bins have the same signer and may have the same version: what the one holds must not seem to be missing."""
    other = next(role for role in BINS if role != ROLE)
    sim.publish(other)
    assert sim.bins[other].version == sim.bins[ROLE].version
    sim.files[f"tuf/2.{ROLE}.json"] = sim.files[f"tuf/2.{other}.json"]
    refused(client, "this is another bin")


def test_row_05_a_target_in_a_bin_that_is_not_its_own(client, sim):
    sim.add("idx__elsewhere.json", b"x", role=ROLE)
    refused(client, "belongs to another bin")


@pytest.mark.parametrize(("role", "other"), [("timestamp", "snapshot"), ("snapshot", "timestamp"), (ROLE, "targets")])
def test_row_05_metadata_of_another_role(client, sim, role, other):
    served = {"timestamp": "tuf/timestamp.json", "snapshot": "tuf/2.snapshot.json", ROLE: f"tuf/2.{ROLE}.json"}
    sim.files[served[role]] = sim.metadata(other).to_bytes()
    refused(client, "another role|another bin|may only be in the top role|hash|length|must be empty|lacks")


# ---- row 6: expiry ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets", ROLE])
def test_row_06_expired(client, sim, role):
    sim.signed(role).expires = date(NOW - 1)
    sim.publish(role)
    error = refused(client, "expired", ExpiredError)
    assert role in error.message
    sim.signed(role).expires = date(NOW + DAY)
    sim.publish(role)
    assert client.get() == b"one"


def test_row_06_an_expired_root_in_the_middle_of_a_chain_is_well(client, sim):
    for days in (-20, -10, 30):
        sim.root.expires = date(NOW + days * DAY)
        sim.publish("root")
    assert client.get() == b"one"
    assert client.reader().find(NAME)[0] is not None


# ---- row 7: signatures that are none ------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets", ROLE])
def test_row_07_another_key_under_the_right_id(client, sim, role):
    owner = key("targets" if role == "targets" else "online")
    sim.signed(role).version += 1
    sim.serve(role, resigned(sim.metadata(role), by=key("thief"), under=owner))
    _name_it(sim, role)
    refused(client, "signatures do not suffice")


def _name_it(sim, role):
    if role == "timestamp":
        return
    if role != "snapshot":
        sim.snapshot.meta[f"{role}.json"] = MetaFile(sim.signed(role).version)
        sim.snapshot.version += 1
        sim.sign("snapshot")
    sim.timestamp.version += 1
    sim.sign("timestamp")


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets", ROLE])
@pytest.mark.parametrize("how", ["none", "unknown id", "garbage", "other payload", "short", "no digits", "capitals"])
def test_row_07_signatures_that_do_not_count(client, sim, role, how):
    owner = key("targets" if role == "targets" else "online")
    before = sim.metadata(role).signatures[key_id(owner.public)].signature
    sim.signed(role).version += 1
    metadata = sim.metadata(role)
    good = metadata.signatures[key_id(owner.public)].signature
    others = {"garbage": "00" * 64, "other payload": before, "short": good[:-2], "no digits": "zz" * 64}
    text = others.get(how, good.upper() if how == "capitals" else good)
    name = "ab" * 32 if how == "unknown id" else key_id(owner.public)
    metadata.signatures = {} if how == "none" else {name: Signature(name, text)}
    sim.serve(role, metadata)
    _name_it(sim, role)
    refused(client, "lower-case hexadecimal" if how in ("no digits", "capitals") else "signatures do not suffice")


def test_row_07_the_right_key_under_another_id(client, sim):
    """The id must be that of the key, or two ids could hide one key."""
    wanted = key_id(key("online").public)
    entry = sim.root.keys.pop(wanted)
    other = "ab" * 32
    sim.root.keys[other] = type(entry).from_dict(other, tuf_key(key("online").public).to_dict())
    for role in ("timestamp", "snapshot"):
        sim.root.roles[role].keyids[:] = [other]
    sim.publish("root")
    refused(client, "an id that is not the digest of its key")


@pytest.mark.parametrize(
    "change",
    [
        {"keytype": "rsa", "scheme": "rsassa-pss-sha256"}, {"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp256"},
        {"scheme": "ecdsa-sha2-nistp256"}, {"keytype": "Ed25519"}, {"keyval": {"public": ""}},
        {"keyval": {"public": "A" * 64}}, {"keyval": {}},
    ],
)  # fmt: skip
def test_row_07_another_algorithm(client, sim, change):
    sim.root.version += 1
    document = json.loads(sim.metadata("root").to_bytes())
    document["signed"]["keys"][key_id(key("online").public)].update(change)
    sim.files["tuf/2.root.json"] = json.dumps(document).encode()
    refused(client, "is refused")


# ---- row 8: thresholds --------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path):
    """A repository whose root needs two of three signatures."""
    made = RepoSim(root_keys=3, root_threshold=2)
    made.add(NAME, b"one")
    return made, Client(tmp_path / "pair", made)


A, B, C = (key(f"root-{n}") for n in range(3))


def root_signed(sim, *signers):
    sim.root.version += 1
    return sim.metadata("root", *signers)


def test_row_08_enough_signatures(pair):
    sim, client = pair
    for signers in ((A, B), (B, C), (A, B, C), (A, C, key("stranger"))):
        sim.serve("root", root_signed(sim, *signers))
        assert client.get() == b"one"
    assert b'"version":5' in client.state.roots()[0]


def test_row_08_one_signature(pair):
    sim, client = pair
    sim.serve("root", root_signed(sim, A))
    refused(client, "signatures do not suffice")


def test_row_08_one_and_garbage(pair):
    sim, client = pair
    metadata = root_signed(sim, A)
    metadata.signatures[key_id(B.public)] = Signature(key_id(B.public), "11" * 64)
    sim.serve("root", metadata)
    refused(client, "signatures do not suffice")


def test_row_08_one_and_a_copy_under_another_id(pair):
    sim, client = pair
    metadata = root_signed(sim, A)
    copied = metadata.signatures[key_id(A.public)].signature
    metadata.signatures[key_id(B.public)] = Signature(key_id(B.public), copied)
    sim.serve("root", metadata)
    refused(client, "signatures do not suffice")


def test_row_08_the_same_signature_twice(pair):
    sim, client = pair
    document = json.loads(root_signed(sim, A).to_bytes())
    document["signatures"] *= 2
    sim.files["tuf/2.root.json"] = json.dumps(document).encode()
    refused(client, "Multiple signatures|is refused")


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets"])
def test_row_08_one_key_under_two_ids(client, sim, role):
    secret = sim.keys[role if role in sim.keys else "online"][0]
    other = second_id(sim.root, secret, role)
    sim.root.roles[role].threshold = 2
    sim.root.version += 1
    metadata = sim.metadata("root")
    metadata.signatures[other] = Signature(other, metadata.signatures[key_id(sim.keys["root"][0].public)].signature)
    sim.serve("root", metadata)
    refused(client, "an id that is not the digest of its key|one key under two ids")


def test_row_08_python_tuf_alone_would_count_one_key_twice(sim):
    """The reason for the rule: should this fail some day, python-tuf has learned it."""
    other = second_id(sim.root, key("root-0"), "root")
    sim.root.roles["root"].threshold = 2
    metadata = sim.metadata("root")
    metadata.signatures[other] = Signature(other, metadata.signatures[key_id(key("root-0").public)].signature)
    sim.root.verify_delegate("root", metadata.signed_bytes, metadata.signatures)
    with pytest.raises(TrustError):
        check_metadata(metadata.to_bytes(), "root", where="w")


def test_row_08_one_key_under_two_ids_in_any_repository(sim):
    """Without the strict rules ids are free, but one key still counts once."""
    second_id(sim.root, key("online"), "snapshot")
    with pytest.raises(TrustError, match="one key under two ids"):
        check_metadata(sim.metadata("root").to_bytes(), "root", where="w", strict=False)


@pytest.mark.parametrize("threshold", [0, -1, 2, 1 << 60])
def test_row_08_absurd_thresholds(client, sim, threshold):
    sim.root.version += 1
    document = json.loads(sim.metadata("root").to_bytes())
    document["signed"]["roles"]["timestamp"]["threshold"] = threshold
    sim.files["tuf/2.root.json"] = json.dumps(document).encode()
    refused(client, "is refused")


# ---- row 9: rotation of roots -------------------------------------------------------------------------------


def hand_over(sim, name, *signers):
    """The next root belongs to the key `name` alone."""
    new = key(name)
    old = sim.root.roles["root"].keyids[0]
    sim.root.add_key(tuf_key(new.public), "root")
    sim.root.revoke_key(old, "root")
    sim.root.version += 1
    sim.serve("root", sim.metadata("root", *signers))


def test_row_09_rotation_signed_by_both(client, sim):
    hand_over(sim, "second", key("root-0"), key("second"))
    hand_over(sim, "third", key("second"), key("third"))
    assert client.get() == b"one"
    assert b'"version":3' in client.state.roots()[0]


@pytest.mark.parametrize("signers", [("root-0",), ("second",), ("thief",), ("second", "thief")])
def test_row_09_signed_only_by_the_old_or_only_by_the_new(client, sim, signers):
    client.get()
    hand_over(sim, "second", *map(key, signers))
    refused(client, "signatures do not suffice")
    assert b'"version":1' in client.state.roots()[0]


def test_row_09_a_root_is_skipped(client, sim):
    hand_over(sim, "second", key("root-0"), key("second"))
    hand_over(sim, "third", key("second"), key("third"))
    sim.files["tuf/2.root.json"] = sim.files.pop("tuf/3.root.json")
    refused(client, "older state|signatures do not suffice")


def test_row_09_the_old_keys_are_worth_nothing_afterwards(client, sim):
    hand_over(sim, "second", key("root-0"), key("second"))
    client.get()
    hand_over(sim, "thief", key("root-0"), key("thief"))
    refused(client, "signatures do not suffice")


@pytest.mark.parametrize("count", [300, pytest.param(2100, marks=pytest.mark.long)])
def test_row_09_many_rotations(client, sim, count):
    """More than a client follows in one go (python-tuf's own limit is 256, counted from the first root)."""
    for _ in range(count):
        sim.publish("root")
    for _ in range(count // 1024 + 1):
        assert client.get() == b"one"
    assert f'"version":{count + 1}'.encode() in client.state.roots()[0]
    sim.asked.clear()
    assert client.get() == b"one"
    assert sim.asked == [f"tuf/{count + 2}.root.json", "tuf/timestamp.json"]


def test_row_09_recovery_from_a_stolen_online_key(client, sim):
    """The thief signed far into the future; a root without his key takes all of that back."""
    client.get()
    sim.timestamp.version = sim.snapshot.version = 9000
    sim.snapshot.meta[f"{ROLE}.json"] = MetaFile(9000)
    sim.bins[ROLE].version = 9000
    for role in (ROLE, "snapshot", "timestamp"):
        sim.sign(role)
    assert client.get() == b"one"
    sim.keys["online"] = [key("new")]
    old = key_id(key("online").public)
    for role in ("timestamp", "snapshot"):
        sim.root.add_key(tuf_key(key("new").public), role)
        sim.root.revoke_key(old, role)
    sim.root.version += 1
    sim.sign("root")
    new = key_id(key("new").public)
    sim.targets.delegations = Delegations(
        {new: tuf_key(key("new").public)}, None, SuccinctRoles([new], 1, 8, "bin")
    )
    sim.targets.version += 1
    sim.sign("targets")
    sim.snapshot.meta["targets.json"] = MetaFile(sim.targets.version)
    for role in BINS:
        sim.bins[role].version = 3
        sim.sign(role)
        sim.snapshot.meta[f"{role}.json"] = MetaFile(3)
    sim.snapshot.version = sim.timestamp.version = 3
    sim.sign("snapshot")
    sim.sign("timestamp")
    assert client.get() == b"one"
    sim.keys["online"] = [key("online")]
    sim.publish("timestamp")
    refused(client, "signatures do not suffice")


# ---- row 11: names ------------------------------------------------------------------------------------------

NAMES = [
    "../../etc/passwd", "/abs", "a//b", "a/../b", "a\\b", "a\0b", "%2e%2e", "..", ".", "", "a..b", ".a", "a.",
    "a" * 200, "x" * 5000, "\uff41", "e\u0301", "\u00e9", "A", "con ", "a\nb", "a\u202eb", "a?b", "a#b", "a:b", "a b",
    "~", "a*",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_row_11_names_are_checked_before_they_are_looked_up(client, sim, name):
    with pytest.raises(TrustError, match="cannot be the name"):
        client.reader().find(name)
    with pytest.raises(TrustError, match="cannot be the name"):
        stored_path(name, "0" * 64)
    assert sim.asked == []


@pytest.mark.parametrize("name", NAMES)
def test_row_11_signed_metadata_with_such_a_name_is_refused(client, sim, name):
    sim.bins[ROLE].targets[name] = TargetFile(1, {"sha256": "0" * 64}, name)
    sim.publish(ROLE)
    refused(client, "is refused")


# ---- row 27: huge and tangled metadata ----------------------------------------------------------------------


def test_row_27_metadata_above_its_cap(client, sim):
    sim.snapshot.unrecognized_fields["padding"] = "x" * 1_100_000
    sim.publish("snapshot")
    refused(client, "too large|larger", RegistryError)


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets", ROLE])
def test_row_27_each_role_has_a_cap(client, sim, role):
    data = b" " * (6 << 20)
    paths = {"root": "tuf/2.root.json", "timestamp": "tuf/timestamp.json", "snapshot": "tuf/2.snapshot.json",
             "targets": "tuf/1.targets.json", ROLE: f"tuf/2.{ROLE}.json"}  # fmt: skip
    sim.files[paths[role]] = data
    refused(client, "too large", RegistryError)
    with pytest.raises(TrustError, match="at most"):
        check_metadata(data, role, where="w")


def test_row_27_many_delegations(client, sim):
    names = [f"role-{n}" for n in range(10_000)]
    online = key("online").public
    roles = {name: DelegatedRole(name, [key_id(online)], 1, False, paths=["*"]) for name in names}
    sim.targets.delegations = Delegations({key_id(online): tuf_key(online)}, roles)
    sim.publish("targets")
    refused(client, "bins only|succinct_roles")


def test_row_27_a_bin_delegates_further(client, sim):
    online = key("online").public
    sim.bins[ROLE].delegations = Delegations(
        {key_id(online): tuf_key(online)}, {ROLE: DelegatedRole(ROLE, [key_id(online)], 1, False, paths=["*"])}
    )
    sim.publish(ROLE)
    refused(client, "may only be in the top role")


@pytest.mark.parametrize("change", [{"bit_length": 1}, {"bit_length": 32}, {"name_prefix": "../bin"}])
def test_row_27_other_bins(client, sim, change):
    for name, value in change.items():
        setattr(sim.targets.delegations.succinct_roles, name, value)
    sim.publish("targets")
    refused(client, "must be 256 bins")


def test_row_27_a_target_in_the_top_role(client, sim):
    sim.targets.targets[NAME] = TargetFile(1, {"sha256": "0" * 64}, NAME)
    sim.publish("targets")
    refused(client, "must be empty")


@pytest.mark.parametrize(
    "change", [{"length": -1}, {"length": 1 << 60}, {"hashes": {}}, {"hashes": {"sha256": "A" * 64}},
               {"hashes": {"md5": "0" * 32}}, {"hashes": {"sha256": "../../x"}}, {"length": "3"}],
)  # fmt: skip
def test_row_27_absurd_targets(client, sim, change):
    sim.publish(ROLE)
    path = f"tuf/3.{ROLE}.json"
    document = json.loads(sim.files[path])
    document["signed"]["targets"][NAME].update(change)
    sim.files[path] = json.dumps(document).encode()
    refused(client, "is refused")


# ---- rows 31 and 36: weak keys, and JSON that means two things ----------------------------------------------

WEAK = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


@pytest.mark.parametrize("public", WEAK)
@pytest.mark.parametrize("strict", [True, False])
def test_row_31_weak_keys_in_a_root(sim, public, strict):
    document = json.loads(sim.metadata("root").to_bytes())
    document["signed"]["keys"]["ab" * 32] = {
        "keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": public},
    }  # fmt: skip
    with pytest.raises(TrustError, match="is refused"):
        check_metadata(json.dumps(document).encode(), "root", where="w", strict=strict)


NOT_JSON = [
    lambda data: data.replace(b'"version":', b'"version":1,"version":', 1),
    lambda data: data.replace(b'"signed":{', b'"signed":{"x":NaN,', 1),
    lambda data: data.replace(b'"signed":{', b'"signed":{"x":1.5,', 1),
    lambda data: data.replace(b'"signed":{', b'"signed":{"x":"\\ud800",', 1),
    lambda data: data.replace(b'"signed":{', b'"signed":{"x":' + b"9" * 6000 + b",", 1),
    lambda data: data.replace(b'"signed":{', b'"signed":{"x":' + b"[" * 5000 + b"]" * 5000 + b",", 1),
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data + b"{}",
    lambda data: data[:-1],
    lambda data: b"",
    lambda data: bytes(len(data)),
    lambda data: b"[]",
    lambda data: b"<html>please log in</html>",
    lambda data: b'{"signed":{},"signatures":[]}',
    lambda data: b'{"signed":[],"signatures":{}}',
    lambda data: data.decode().encode("utf-16"),
    lambda data: data.replace(b"T08:00:00Z", b"t08:00:00z"),
    lambda data: data.replace(b"T08:00:00Z", b"T8:0:0Z"),
]


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets", ROLE])
@pytest.mark.parametrize("number", range(len(NOT_JSON)))
def test_row_36_what_is_not_strict_json(client, sim, role, number):
    client.get()
    sim.publish(role)
    path = sim.path(role, sim.signed(role).version)
    sim.files[path] = NOT_JSON[number](sim.files[path])
    refused(client, "is refused|too large", (TrustError, RegistryError))


def test_row_36_python_tuf_alone_takes_the_last_of_two_keys(sim):
    data = sim.metadata("timestamp").to_bytes().replace(b'"version":', b'"version":7,"version":', 1)
    assert Metadata.from_bytes(data).signed.version != 0
    with pytest.raises(TrustError, match="twice"):
        check_metadata(data, "timestamp", where="w")


# ---- row 1: no byte can be changed --------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["root", "timestamp", "snapshot", "targets", ROLE])
@pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.long)])
def test_row_01_flipped_bytes_change_no_answer(tmp_path, sim, role, step):
    if role == "root":
        sim.publish("root")
    path = {"root": "tuf/2.root.json", "timestamp": "tuf/timestamp.json", "snapshot": "tuf/2.snapshot.json",
            "targets": "tuf/1.targets.json", ROLE: f"tuf/2.{ROLE}.json"}[role]  # fmt: skip
    good = sim.files[path]
    for at in range(0, min(len(good), 2000), step):
        sim.files[path] = good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :]
        client = Client(tmp_path / str(at), sim)
        try:
            assert client.get() == b"one"
        except (TrustError, RegistryError):
            pass
        else:
            # Only what is not signed may differ: a second signature nobody asked for, or white space.
            assert json.loads(sim.files[path])["signed"] == json.loads(good)["signed"]


# ---- what cannot happen here but in any TUF repository ------------------------------------------------------


def test_the_role_field_is_signed(sim):
    assert json.loads(sim.files[f"tuf/2.{ROLE}.json"])["signed"][ROLE_FIELD] == ROLE


def test_keys_of_any_kind_where_names_are_free():
    from securesystemslib.signer import CryptoSigner

    rsa = CryptoSigner.generate_ecdsa().public_key
    top = Targets(expires=datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC))
    top.delegations = Delegations({rsa.keyid: rsa}, {"a": DelegatedRole("a", [rsa.keyid], 1, False, paths=["*"])})
    data = Metadata(top).to_bytes()
    check_metadata(data, "targets", where="w", strict=False)
    with pytest.raises(TrustError):
        check_metadata(data, "targets", where="w")
    double = copy.deepcopy(rsa.to_dict())
    double["keyval"]["public"] = double["keyval"]["public"].replace("\n", "\r\n")
    top.delegations.keys["ab" * 32] = type(rsa).from_dict("ab" * 32, double)
    top.delegations.roles["a"].keyids.append("ab" * 32)
    with pytest.raises(TrustError, match="one key under two ids"):
        check_metadata(Metadata(top).to_bytes(), "targets", where="w", strict=False)


def test_secret_keys_do_not_show():
    assert "secret" not in repr(KeySigner(SecretKey(bytes(32))))
