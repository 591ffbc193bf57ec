"""Messages that name the thing: the file that is damaged, the key that exists, the machine an artifact is for."""

from __future__ import annotations

import json

import pytest
from badkit import Place, publish_tiny

from visget.cli_install import _machines
from visget.errors import EXIT_NOT_FOUND, EXIT_REFUSED, EXIT_USAGE
from visget.machine import machine_id


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 in a registry; the tests only read."""
    return publish_tiny(tmp_path_factory.mktemp("messages"))


@pytest.fixture
def user(tmp_path, published) -> Place:
    """A user with an empty store."""
    return Place(root=tmp_path, variables={"VISGET_REGISTRY": str(published.registry)})


@pytest.mark.parametrize("command", ["check", "info", "publish"])
def test_a_malformed_package_file_is_named(command, published, tmp_path):
    damaged = tmp_path / "damaged.vis"
    damaged.write_bytes(b"VISPKG1\n\xff")
    outcome = published.run(command, str(damaged))
    assert outcome.code == EXIT_REFUSED
    assert f"error: {damaged}: " in outcome.err


def test_a_key_that_exists_is_said_before_a_passphrase_is_asked_for(user):
    assert user.run("key", "new", "mine", "--no-passphrase").code == 0
    outcome = user.run("key", "new", "mine")
    assert outcome.code == EXIT_USAGE
    assert "there is a key of that name already" in outcome.err


def test_the_list_says_for_which_machine(user):
    assert user.run("install", "tiny").code == 0
    assert user.run("install", "tiny", "--target", "riscv64-linux-musl").code == 0
    (line,) = user.run("list").out.splitlines()[1:]
    assert line.endswith("this machine, riscv64-linux-musl:generic-rv64")
    (facts,) = user.run("list", "--json").json["installed"]
    assert machine_id() in facts["natives"]


def test_other_machines_that_share_the_home_are_counted():
    target = "target:x86_64-unknown-linux-gnu:x86-64-v3:+avx,+avx2"
    assert _machines([target, "0" * 16, "1" * 16, machine_id()]) == [
        "this machine", "2 other machines", "x86_64-linux-gnu:x86-64-v3",
    ]  # fmt: skip
    assert _machines(["0" * 16]) == ["1 other machine"]


def test_what_was_installed_before_a_failure_is_said(user):
    outcome = user.run("install", "tiny", "nowhere")
    assert outcome.code == EXIT_NOT_FOUND
    assert "installed before that: tiny 1.0" in outcome.err
    outcome = user.run("install", "tiny", "nowhere", "--json")
    (installed,) = json.loads(outcome.out)["details"]["installed"]
    assert installed["name"] == "tiny"


def test_what_this_machine_lacks_is_not_said_of_another_target(user):
    lines = user.run("target", "--target", "aarch64-linux-musl").out.splitlines()
    labels = [line.split()[0] for line in lines]
    assert labels.index("target") > labels.index("system")
    assert "masked" not in labels[labels.index("target") :]


def test_several_guesses_are_one_hint(user):
    outcome = user.run("build", "--out", "x")
    assert outcome.code == EXIT_USAGE
    error, hint = outcome.err.splitlines()
    assert error == "error: no such option '--out'"
    assert hint.startswith("hint: did you mean one of: '--output'")
    assert ")" not in hint
