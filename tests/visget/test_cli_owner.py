"""`visget owner` and `visget trust` as their users meet them, with packages that are only signed."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from ownerkit import NAME, THIEF, A, B, C, Chain
from ownershop import seize, sell, shop
from packagekit import package

from visget.cli import visget
from visget.errors import EXIT_NOT_FOUND, EXIT_TRUST, EXIT_USAGE
from visget.format.keyfile import write_key
from visget.format.owner import OwnerRecord, sign_record
from visget.format.owner_chain import next_record
from visget.format.signing import sign_package
from visget.registry.operator import sibling
from visget.registry.ownership import propose

OLD, NEW = package(version="1.0"), package(version="1.1")


class Person:
    """Somebody with a configuration of their own."""

    def __init__(self, directory: Path, root: Path, **keys) -> None:
        self.directory = directory
        (directory / "config" / "keys").mkdir(parents=True, mode=0o700)
        for name, secret in keys.items():
            write_key(directory / "config" / "keys" / f"{name}.key", secret)
        self.env = {
            "VISGET_HOME": str(directory / "home"), "VISGET_CONFIG_DIR": str(directory / "config"),
            "VISGET_CACHE_DIR": str(directory / "cache"), "VISGET_REGISTRY": str(root),
        }  # fmt: skip

    def run(self, *words, code=0, **env):
        done = CliRunner().invoke(visget, [str(word) for word in words], env={**self.env, **env})
        assert done.exit_code == code, done.output
        return done.output

    def json(self, *words, code=0, **env):
        done = CliRunner().invoke(visget, [*map(str, words), "--json"], env={**self.env, **env})
        assert done.exit_code == code, done.output
        return json.loads(done.stdout)


@pytest.fixture
def root(tmp_path):
    root = shop(tmp_path / "registry")
    sell(root, OLD, A)
    sell(root, NEW, A)
    return root


@pytest.fixture
def author(tmp_path, root, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Person(tmp_path / "author", root, default=A, spare=B)


@pytest.fixture
def user(tmp_path, root):
    user = Person(tmp_path / "user", root)
    assert user.json("info", NAME)["owners"] == [A.public.id]
    return user


def owners(person):
    found = person.json("owner", "list", NAME)
    return found["record"], sorted(found["keys"]), found["threshold"]


def test_list(author):
    text = author.run("owner", "list", NAME)
    assert text.startswith(f"{NAME}: 1 of 1 key must sign\n  {A.public.id}\n")
    assert owners(author) == (1, [A.public.id], 1)


@pytest.mark.parametrize("how", ["spare", B.public.id])
def test_add(author, how):
    assert author.json("owner", "add", NAME, how)["submitted"] is True
    assert owners(author) == (2, sorted([A.public.id, B.public.id]), 1)
    assert "already" in author.run("owner", "add", NAME, how, code=EXIT_USAGE)


def test_a_key_of_this_account_can_be_pinned_once_it_was_added(author, user):
    author.run("owner", "add", NAME, "spare")
    user.run("trust", "pin", NAME, B.public.id)
    assert sorted(user.json("info", NAME)["owners"]) == sorted([A.public.id, B.public.id])


def test_row_10_an_owner_is_not_led_astray_by_a_registry(author, root, tmp_path):
    """A registry that makes up a chain with the owner's key in it, to get a signature on what it likes."""
    evil = package(version="6.6.6", filling=b"evil")
    both = tuple(sorted((A.public, THIEF.public), key=lambda key: key.id))
    made_up = Chain(THIEF)
    made_up.items = [sign_record(OwnerRecord(name=NAME, seq=1, prev=None, threshold=1, keys=both), THIEF)]
    seize(root, made_up.files, [(evil, sign_package(evil, THIEF))])
    text = author.run("owner", "remove", NAME, THIEF.public.id, code=EXIT_TRUST)
    assert "none of your keys has signed" in text
    assert f"visget trust pin {NAME} KEY-ID" in text
    # Nor by a file that continues that chain.
    file = tmp_path / "work" / "trap.json"
    record = next_record(made_up.newest, remove=[THIEF.public])
    file.write_bytes(propose(made_up.newest, record, [sign_package(evil, THIEF)]).encode())
    before = file.read_bytes()
    assert "none of your keys has signed" in author.run("owner", "sign", file, code=EXIT_TRUST)
    author.run("trust", "pin", NAME, A.public.id)
    author.run("owner", "sign", file, code=EXIT_TRUST)
    assert file.read_bytes() == before


def test_rotate_with_both_keys_here(author, user):
    done = author.json("owner", "rotate", NAME, "--to", "spare")
    assert (done["submitted"], done["signed_anew"]) == (True, 2)
    assert owners(author) == (2, [B.public.id], 1)
    assert user.json("info", f"{NAME}==1.0")["owners"] == [B.public.id]


def test_rotate_to_another_persons_key(author, root, tmp_path):
    other = Person(tmp_path / "other", root, mine=C)
    text = author.run("owner", "rotate", NAME, "--to", C.public.id)
    file = f"{NAME}-owner-2.json"
    assert f"wrote {file}" in text
    assert f"waits for signatures of {C.public.id}" in text
    assert owners(author) == (1, [A.public.id], 1)
    # Too early: nothing happens.
    author.run("owner", "submit", file, code=EXIT_TRUST)
    # A stranger's signature is refused.
    stranger = Person(tmp_path / "stranger", root, mine=THIEF)
    assert "neither owns" in stranger.run("owner", "sign", file, "--key", "mine", code=EXIT_TRUST)
    text = other.run("owner", "sign", file, "--key", "mine")
    assert f"this signs {NAME} 1.0 anew" in text
    assert f"only the registry says that {NAME} belongs to {A.public.id}" in text
    assert f"next: visget owner submit {file}" in text
    author.run("owner", "submit", file)
    assert owners(author) == (2, [C.public.id], 1)


def test_threshold_and_packages_with_several_signatures(author, root, tmp_path):
    author.run("owner", "add", NAME, "spare")
    text = author.run("owner", "threshold", NAME, "2", "--key", "default", "--key", "spare")
    assert "2 of them must sign" in text
    assert "add a spare key" in text
    assert owners(author)[2] == 2
    later = package(version="1.2")
    file = tmp_path / "work" / "xxhash-1.2.vis"
    file.write_bytes(later.data)
    one = author.json("owner", "sign", file, "--key", "default")
    assert one["signers"] == [A.public.id]
    two = author.json("owner", "sign", file, "--key", "spare")
    assert two["signers"] == sorted([A.public.id, B.public.id])
    from visget.errors import TrustError
    from visget.registry.directory import publish

    with pytest.raises(TrustError, match="2 of the 2 keys") as caught:
        publish(root, later, sign_package(later, A))
    assert "visget owner sign FILE.vis" in caught.value.hint
    assert publish(root, later, Path(two["file"]).read_bytes()).fresh
    assert author.json("info", f"{NAME}==1.2")["version"] == "1.2"


def test_row_10_revoke_and_disown(author, user):
    author.run("owner", "add", NAME, "spare")
    done = author.json("owner", "remove", NAME, "default", "--key", "spare", "--revoke", "stolen laptop",
                       "--disown", "1.1")  # fmt: skip
    assert (done["submitted"], done["signed_anew"]) == (True, 1)
    found = author.json("owner", "list", NAME)
    assert found["revoked"] == [{"key": A.public.id, "reason": "stolen laptop", "refuse_after": 2}]
    assert "revoked: stolen laptop" in author.run("owner", "list", NAME)
    assert user.json("info", f"{NAME}==1.0")["owners"] == [B.public.id]
    user.run("info", f"{NAME}==1.1", code=EXIT_TRUST)
    assert "stolen laptop" in user.run("install", NAME, "--trust", A.public.id, code=EXIT_TRUST)
    assert "never owns" in author.run("owner", "add", NAME, "default", "--key", "spare", code=EXIT_TRUST)


def test_usage(author):
    assert "none of the keys" in author.run("owner", "remove", NAME, B.public.id, code=EXIT_USAGE)
    assert "nothing to change" in author.run("owner", "threshold", NAME, "1", code=EXIT_USAGE)
    assert "cannot reach" in author.run("owner", "threshold", NAME, "2", code=EXIT_TRUST)
    assert "neither the id of a key" in author.run("owner", "add", NAME, "nobody", code=EXIT_USAGE)
    assert "no published version" in author.run("owner", "remove", NAME, "default", "--disown", "9", code=EXIT_USAGE)
    author.run("owner", "list", "nothing", code=EXIT_NOT_FOUND)
    author.run("owner", "sign", "nothing.json", code=EXIT_NOT_FOUND)
    author.run("owner", "remove", NAME, "default", code=EXIT_TRUST)  # the last key


def test_row_10_recovery_from_both_sides(author, user, root, tmp_path):
    user.run("trust", "pin", NAME, A.public.id)
    operator = Person(tmp_path / "operator", root)
    new = Person(tmp_path / "new", root, default=C)
    targets = sibling(root) / "targets.key"
    text = operator.run("owner", "recover", NAME, "--to", C.public.id, "--key", targets, "--revoke", "lost")
    assert f"waits for signatures of {C.public.id}" in text
    file = f"{NAME}-owner-2.json"
    new.run("owner", "sign", file)
    operator.run("owner", "submit", file)
    text = user.run("info", NAME, code=EXIT_TRUST)
    assert f"visget trust accept {NAME} {C.public.id}" in text
    user.run("trust", "accept", NAME, THIEF.public.id, code=EXIT_TRUST)
    text = user.run("trust", "accept", NAME, C.public.id)
    assert text == f"{NAME} belongs to {C.public.id} from now on\n"
    assert user.json("info", NAME)["owners"] == [C.public.id]
    (pins,) = user.json("trust", "list")["pins"].values()
    assert (pins[NAME]["record"], pins[NAME]["how"]) == (2, "accepted")
    # Somebody who never knew the old owner is not asked.
    assert Person(tmp_path / "late", root).json("info", NAME)["owners"] == [C.public.id]


def test_row_40_trust(user, root):
    assert "nobody is pinned yet" in user.run("trust", "list")
    strict = {"VISGET_TRUST_POLICY": "pinned"}
    assert f"visget trust pin {NAME} KEY-ID" in user.run("info", NAME, code=EXIT_TRUST, **strict)
    assert user.run("trust", "pin", NAME, A.public.id) == f"{NAME} is pinned to {A.public.id}\n"
    user.run("info", NAME, **strict)
    assert A.public.id in user.run("trust", "list")
    seize(root, Chain(THIEF).files, [(OLD, sign_package(OLD, THIEF))])
    user.run("info", NAME, code=EXIT_TRUST)
    assert f"forgot that {NAME} belongs to {A.public.id}" in user.run("trust", "forget", NAME)
    user.run("trust", "forget", NAME, code=EXIT_NOT_FOUND)
    user.run("trust", "accept", NAME, A.public.id, code=EXIT_NOT_FOUND)
    user.run("trust", "pin", NAME, "vk1nonsense", code=EXIT_TRUST)
    assert user.json("info", NAME)["owners"] == [THIEF.public.id]
