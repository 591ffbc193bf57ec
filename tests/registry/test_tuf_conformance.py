"""The protocol of the public TUF client conformance suite, and that suite's main scenarios."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from static_server import StaticServer
from tuf.api.metadata import Metadata, Signature
from tufsim import TufSim, days, signer

from visget.cli_conformance import tuf_conformance


class Client:
    """The command under test, in this process."""

    def __init__(self, root, server, initial):
        self.metadata, self.targets, self.server = root / "metadata", root / "targets", server
        self.metadata.mkdir()
        self.targets.mkdir()
        self.initial = root / "initial_root.json"
        self.initial.write_bytes(initial)

    def run(self, *words):
        result = CliRunner().invoke(tuf_conformance, ["--metadata-dir", str(self.metadata), *map(str, words)])
        assert result.exit_code in (0, 1), result.output
        return result.exit_code

    def init(self):
        return self.run("init", self.initial)

    def refresh(self):
        return self.run("--metadata-url", f"{self.server.url}/metadata/", "refresh")

    def download(self, *names):
        options = [word for name in names for word in ("--target-name", name)]
        return self.run("--metadata-url", f"{self.server.url}/metadata", *options, "--target-base-url",
                        f"{self.server.url}/targets/", "--target-dir", self.targets, "download")  # fmt: skip

    def version(self, role):
        path = self.metadata / f"{role}.json"
        return Metadata.from_bytes(path.read_bytes()).signed.version if path.exists() else None

    def roles(self):
        found = {path.stem: path for path in self.metadata.glob("*.json")}
        return {role: Metadata.from_bytes(path.read_bytes()).signed.version for role, path in sorted(found.items())}

    def downloaded(self):
        files = [path for path in self.targets.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return [path.read_bytes() for path in sorted(files, key=lambda path: path.stat().st_mtime_ns)]

    def asked(self):
        """What was asked for since the last call."""
        paths = [path.removeprefix("/metadata/").removesuffix(".json") for path, _ in self.server.requests]
        self.server.requests.clear()
        return paths


@pytest.fixture(params=["ed25519", "ecdsa"])
def kind(request):
    return request.param


@pytest.fixture
def repo(tmp_path, kind):
    return TufSim(tmp_path / "repo", kind=kind)


@pytest.fixture
def server(repo):
    with StaticServer(repo.directory) as running:
        yield running


@pytest.fixture
def client(tmp_path, server, repo):
    made = Client(tmp_path, server, repo.path("root", 1).read_bytes())
    assert made.init() == 0
    assert server.requests == []
    return made


# ---- basics -------------------------------------------------------------------------------------------------


def test_refresh_asks_for_each_role_once(client):
    assert client.refresh() == 0
    assert client.asked() == ["2.root", "timestamp", "1.snapshot", "1.targets"]
    assert client.roles() == {"root": 1, "snapshot": 1, "targets": 1, "timestamp": 1}
    assert client.refresh() == 0
    assert client.asked() == ["2.root", "timestamp"]


def test_download_refreshes_first(client):
    assert client.download("nonexistent") == 1
    assert client.asked() == ["2.root", "timestamp", "1.snapshot", "1.targets"]
    assert client.roles() == {"root": 1, "snapshot": 1, "targets": 1, "timestamp": 1}


@pytest.mark.parametrize("damage", ["no version", "not signed", "other signature", "no JSON"])
def test_a_bad_initial_root(tmp_path, server, repo, damage):
    document = json.loads(repo.path("root", 1).read_bytes())
    if damage == "no version":
        del document["signed"]["version"]
    elif damage == "not signed":
        document["signatures"] = []
    elif damage == "other signature":
        document["signatures"][0]["sig"] = "30" * 64
    client = Client(tmp_path, server, b"{" if damage == "no JSON" else json.dumps(document).encode())
    client.init()
    assert client.refresh() == 1
    assert server.requests == []


def test_unknown_fields_are_signed_too(client, repo):
    repo.root.unrecognized_fields["custom"] = "value"
    for item in repo.root.keys.values():
        item.unrecognized_fields["extra"] = {"a": 1}
        item.unrecognized_fields["keyid_hash_algorithms"] = ["md5"]
    repo.root.roles["root"].unrecognized_fields["another"] = [1]
    repo.publish("root")
    assert client.refresh() == 0
    assert client.version("root") == 2


def test_a_timestamp_of_the_same_version_is_not_taken(client, repo):
    assert client.refresh() == 0
    kept = (client.metadata / "timestamp.json").read_bytes()
    repo.timestamp.snapshot_meta.version = 100
    repo.sign("timestamp")
    client.refresh()
    assert (client.metadata / "timestamp.json").read_bytes() == kept


def test_the_real_command(tmp_path, server, repo, client):
    words = [sys.executable, "-m", "visget", "tuf-conformance"]
    place = ["--metadata-dir", client.metadata, "--metadata-url", f"{server.url}/metadata/"]
    assert subprocess.run([*words, *place, "refresh"]).returncode == 0
    repo.path("timestamp").write_bytes(b"{}")
    failed = subprocess.run([*words, *place, "refresh"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: ")
    shown = subprocess.run([sys.executable, "-m", "visget", "--help"], capture_output=True, text=True)
    assert "tuf-conformance" not in shown.stdout


# ---- rollback -----------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["versions", "hashes"])
def hashed(request, repo):
    repo.hashes = request.param


def test_timestamp_rollback(client, repo):
    old = repo.path("timestamp").read_bytes()
    repo.publish("timestamp")
    assert client.refresh() == 0
    repo.path("timestamp").write_bytes(old)
    assert client.refresh() == 1
    assert client.version("timestamp") == 2


def test_snapshot_rollback(client, repo, hashed):
    repo.publish("snapshot")
    assert client.refresh() == 0
    repo.snapshot.version = 1
    repo.stamp(repo.sign("snapshot"))
    client.asked()
    assert client.refresh() == 1
    assert client.asked() == ["2.root", "timestamp"]
    assert (client.version("timestamp"), client.version("snapshot")) == (2, 2)


def test_targets_rollback(client, repo, hashed):
    repo.publish("targets")
    repo.publish("targets")
    assert client.refresh() == 0
    repo.targets.version = 1
    repo.publish("targets")
    assert client.refresh() == 1
    assert client.version("targets") == 3


def test_snapshot_of_another_version(client, repo):
    repo.snapshot.version = 2
    (repo.path("snapshot", 1)).write_bytes(repo.sign("snapshot"))
    assert client.refresh() == 1
    assert client.roles() == {"root": 1, "timestamp": 1}


def test_targets_of_another_version_or_content(client, repo):
    assert client.refresh() == 0
    repo.hashes = True
    repo.publish("targets")
    repo.targets.expires = days(20)
    repo.sign("targets")
    assert client.refresh() == 1
    assert client.version("targets") == 1


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets"])
def test_recovery_from_a_fast_forward(client, repo, role):
    repo.signed[role].version = 9999
    if role == "targets":
        repo.publish("targets")
    else:
        repo.sign("snapshot")
        repo.stamp(repo.path("snapshot", repo.snapshot.version).read_bytes(), bump=role == "snapshot")
    assert client.refresh() == 0
    assert client.version(role) >= 9999
    for name in ("snapshot", "timestamp"):
        repo.rotate(name, f"new-{name}")
    repo.publish("root")
    repo.signed[role].version = 1
    if role == "targets":
        repo.sign("targets")
        repo.update()
    else:
        repo.snapshot.version = 1 if role == "snapshot" else repo.snapshot.version
        repo.stamp(repo.sign("snapshot"), bump=role == "snapshot")
    assert client.refresh() == 0
    assert client.version(role) < 100


# ---- expiry -------------------------------------------------------------------------------------------------


def test_an_expired_root_is_kept_and_nothing_below_it(client, repo):
    assert client.refresh() == 0
    repo.publish("root")
    repo.root.expires = days(-1)
    repo.publish("root")
    repo.publish("targets")
    assert client.refresh() == 1
    assert client.roles() == {"root": 3, "snapshot": 1, "targets": 1, "timestamp": 1}


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets"])
def test_expired(client, repo, role):
    assert client.refresh() == 0
    repo.signed[role].expires = days(-5)
    if role == "targets":
        repo.publish("targets")
    else:
        repo.update()
    assert client.refresh() == 1
    assert client.version(role) == 1 if role == "targets" else client.version(role) is not None
    repo.signed[role].expires = days(5)
    repo.publish(role) if role == "targets" else repo.update()
    assert client.refresh() == 0


def test_an_expired_role_that_was_delegated_to(client, repo):
    repo.delegate("targets", "delegated", ["path/*"])
    repo.signed["delegated"].expires = days(-1)
    repo.add("path/target", b"content", "delegated")
    repo.sign("delegated")
    repo.publish("targets")
    assert client.refresh() == 0
    assert client.download("path/target") == 1
    assert client.downloaded() == []
    assert set(client.roles()) == {"root", "timestamp", "snapshot", "targets"}


# ---- keys ---------------------------------------------------------------------------------------------------

ROTATIONS = {
    "one key for another": [([1], 1, [1], True), ([2], 1, [2, 1], True), ([2], 1, [2], True)],
    "signatures of strangers": [([1], 1, [3, 1, 4], True), ([2], 1, [3, 2, 1, 4], True), ([2], 1, [3, 2, 4], True)],
    "any three of five": [([0, 1, 2, 3, 4], 3, [0, 2, 4], True), ([0, 1, 2, 3, 4], 3, [0, 4, 1], True),
                          ([0, 1, 2, 3, 4], 3, [0, 1, 3], True)],
    "one of five goes": [([0, 1, 2, 3, 4], 3, [0, 2, 4], True), ([0, 1, 3, 4, 5], 3, [0, 4, 1], True)],
    "all five go": [([0, 1, 2, 3, 4], 3, [0, 2, 4], True), ([5, 6, 7, 8, 9], 3, [0, 2, 4, 5, 6, 7], True),
                    ([5, 6, 7, 8, 9], 3, [5, 6, 7], True)],
    "the threshold rises": [([1, 2, 3], 1, [1], True), ([1, 2, 3], 2, [1, 2], True)],
    "the threshold falls": [([1, 2, 3], 2, [1, 2], True), ([1, 2, 3], 1, [1, 2], True), ([1, 2, 3], 1, [1], True)],
    "not signed by the old": [([1], 1, [1], True), ([2], 1, [2, 3, 4], False)],
    "not signed by the new": [([1], 1, [1], True), ([2], 1, [1, 3, 4], False)],
    "too few of the new": [([0, 1, 2, 3, 4], 3, [0, 2, 4], True), ([0, 1, 3, 4, 5], 3, [0, 2, 4], False)],
    "too few of the old": [([0, 1, 2, 3, 4], 3, [0, 2, 4], True), ([0, 1, 3, 4, 5], 3, [0, 4, 5], False)],
    "below the new threshold": [([1, 2, 3], 1, [1], True), ([1, 2, 3], 2, [2], False)],
    "below the old threshold": [([1, 2, 3], 2, [1, 2], True), ([1, 2, 3], 1, [1], False)],
}  # fmt: skip


@pytest.mark.parametrize("steps", ROTATIONS.values(), ids=ROTATIONS)
def test_rotation_of_the_root(tmp_path, server, repo, steps):
    for version, (keys, threshold, signers, _) in enumerate(steps, 1):
        repo.rotate("root", *(f"k{n}" for n in keys), threshold=threshold)
        repo.root.version = version
        repo.sign("root", *(signer(f"k{n}") for n in signers))
    client = Client(tmp_path, server, repo.path("root", 1).read_bytes())
    assert client.init() == 0
    good = steps[-1][3]
    assert client.refresh() == (0 if good else 1)
    wanted = repo.path("root", len(steps) - (not good)).read_bytes()
    assert (client.metadata / "root.json").read_bytes() == wanted


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets"])
@pytest.mark.parametrize(
    ("keys", "threshold", "signers", "good"),
    [([2], 1, [2], True), ([1], 1, [3, 1, 4], True), ([2], 1, [1, 3, 4], False), ([0, 1, 3], 3, [0, 1, 2], False),
     ([0, 1, 3], 3, [0, 1], False), ([0, 1, 2, 3], 3, [1, 2, 3], True)],
)  # fmt: skip
def test_keys_of_the_other_roles(client, repo, role, keys, threshold, signers, good):
    repo.rotate(role, *(f"k{n}" for n in keys), threshold=threshold)
    repo.publish("root")
    data = repo.sign(role, *(signer(f"k{n}") for n in signers))
    assert client.refresh() == (0 if good else 1)
    kept = client.metadata / f"{role}.json"
    assert (kept.exists() and kept.read_bytes() == data) == good


def test_a_threshold_above_the_number_of_keys(client, repo):
    assert client.refresh() == 0
    repo.root.roles["snapshot"].threshold = 2
    repo.publish("root")
    repo.publish("snapshot")
    assert client.refresh() == 1
    assert (client.version("root"), client.version("snapshot")) == (2, 1)


def test_one_key_under_many_ids(client, repo):
    assert client.refresh() == 0
    mine = repo.signers["snapshot"][0]
    for number in range(3):
        copied = type(mine.public_key).from_dict(f"{number:064x}", mine.public_key.to_dict())
        repo.root.add_key(copied, "snapshot")
    repo.root.roles["snapshot"].threshold = 3
    repo.publish("root")
    repo.publish("snapshot")
    path = repo.path("snapshot", repo.snapshot.version)
    metadata = Metadata.from_bytes(path.read_bytes())
    (sig,) = metadata.signatures.values()
    for name in repo.root.roles["snapshot"].keyids:
        metadata.signatures[name] = Signature(name, sig.signature)
    path.write_bytes(metadata.to_bytes())
    assert client.refresh() == 1
    assert client.version("snapshot") == 1


def test_an_rsa_key(tmp_path, server, repo):
    repo.rotate("targets", "rsa-targets")
    repo.publish("root")
    repo.publish("targets")
    client = Client(tmp_path, server, repo.path("root", 1).read_bytes())
    assert client.init() == 0
    assert client.refresh() == 0


# ---- delegations --------------------------------------------------------------------------------------------

GRAPHS = {
    "one": ([("targets", "A")], ["A"]),
    "two": ([("targets", "A"), ("targets", "B")], ["A", "B"]),
    "two levels": ([("targets", "A"), ("targets", "B"), ("B", "C")], ["A", "B", "C"]),
    "depth first": ([("targets", "A"), ("targets", "B"), ("A", "C"), ("A", "D")], ["A", "C", "D", "B"]),
    "three levels": ([("targets", "A"), ("targets", "B"), ("A", "C"), ("C", "D")], ["A", "C", "D", "B"]),
    "terminating": ([("targets", "A"), ("targets", "B"), ("A", "C", None, True), ("A", "D")], ["A", "C"]),
    "terminating, and below": ([("targets", "A"), ("targets", "B"), ("A", "C", None, True), ("C", "D")],
                               ["A", "C", "D"]),
    "no match": ([("targets", "A", ["*.py"]), ("targets", "B"), ("A", "C")], ["B"]),
    "no match below": ([("targets", "A"), ("targets", "B"), ("A", "C", ["*.py"]), ("C", "D")], ["A", "B"]),
    "cycle": ([("targets", "A"), ("targets", "B"), ("B", "C"), ("C", "D"), ("D", "B")], ["A", "B", "C", "D"]),
    "two ways": ([("targets", "A"), ("targets", "B"), ("B", "C"), ("A", "C")], ["A", "C", "B"]),
    "two ways, one matches": ([("targets", "A"), ("targets", "B"), ("B", "C"), ("A", "C", ["*.py"])], ["A", "B", "C"]),
}  # fmt: skip


def delegate(repo, delegations):
    for parent, child, *rest in delegations:
        repo.delegate(parent, child, rest[0] if rest else None, terminating=len(rest) > 1 and rest[1])
    for role in repo.signed:
        if role not in ("root", "timestamp", "snapshot", "targets"):
            repo.sign(role)
    repo.publish("targets")


@pytest.mark.parametrize(("delegations", "visited"), GRAPHS.values(), ids=GRAPHS)
def test_the_order_of_delegations(client, repo, delegations, visited):
    delegate(repo, delegations)
    assert client.download("missing") == 1
    assert client.asked()[4:] == [f"1.{role}" for role in visited]


@pytest.mark.parametrize(
    ("name", "found", "visited"),
    [("file", True, []), ("README.md", True, ["A"]), ("releases/x/x1", True, ["B", "C"]),
     ("releases/y/y1.zip", True, ["B", "D"]), ("releases/z/z1.zip", False, ["B"])],
)  # fmt: skip
def test_searching_a_target(client, repo, name, found, visited):
    for child, paths, parent in (("A", ["*.doc", "*.md"], "targets"), ("B", ["releases/*/*"], "targets"),
                                 ("C", ["releases/x/*"], "B"), ("D", ["releases/y/*.zip"], "B")):  # fmt: skip
        repo.delegate(parent, child, paths)
    for role, target in (("targets", "file"), ("A", "README.md"), ("C", "releases/x/x1"),
                         ("D", "releases/y/y1.zip"), ("D", "releases/z/z1.zip")):  # fmt: skip
        repo.add(target, f"{target} by {role}".encode(), role)
    delegate(repo, [])
    assert client.download(name) == (0 if found else 1)
    asked = [path for path in client.asked() if not path.startswith("/targets")]
    assert asked[4:] == [f"1.{role}" for role in visited]
    assert len(client.downloaded()) == found


@pytest.mark.parametrize("role", ["?", "#", "/delegatedrole", "../delegatedrole"])
def test_names_of_roles_are_quoted(client, repo, role):
    import urllib.parse

    delegate(repo, [("targets", role)])
    # The server looks for the file that the quoted name means.
    path = repo.path(role, 1)
    assert path.exists()
    assert client.download("nothing") == 1
    assert f"1.{urllib.parse.quote(role, '')}" in client.asked()


# ---- downloads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["file.txt", "path/to/a/file.txt"])
def test_a_download(client, repo, name):
    repo.add(name, b"content")
    repo.publish("targets")
    assert client.refresh() == 0
    assert client.downloaded() == []
    assert client.download(name) == 0
    assert client.downloaded() == [b"content"]


def test_what_is_there_is_not_fetched_again(client, repo):
    repo.add("one", b"1")
    repo.add("two", b"2")
    repo.publish("targets")
    assert client.download("one", "two") == 0
    assert len([path for path in client.asked() if path.startswith("/targets")]) == 2
    assert client.download("one", "two") == 0
    assert [path for path in client.asked() if path.startswith("/targets")] == []
    (client.targets / "one").write_bytes(b"x")
    assert client.download("one") == 0
    assert sorted(client.downloaded()) == [b"1", b"2"]


def test_other_content_is_refused_and_nothing_is_left(client, repo):
    one = repo.add("one", b"one")
    two = repo.add("two", b"two")
    repo.publish("targets")
    assert client.download("one") == 0
    for path in (one, two):
        path.write_bytes(b"evil")
    assert client.download("two") == 1
    client.download("one")
    assert client.downloaded() == [b"one"]


def test_a_target_that_changes_keeps_its_file_name(client, repo):
    for number in range(4):
        repo.add("file", f"content {number}".encode())
        repo.publish("targets")
        assert client.download("file") == 0
        assert client.downloaded() == [f"content {number}".encode()]
        evil = repo.add("file", b"other").read_bytes()
        assert evil == b"other"
        client.download("file")
        assert client.downloaded() == [f"content {number}".encode()]
