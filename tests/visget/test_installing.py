"""What an installation says about itself: compiled now, or found compiled."""

from __future__ import annotations

import json
import re

import pytest
from badkit import Place, publish_tiny


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """tiny 1.0 in a registry; the tests only read."""
    return publish_tiny(tmp_path_factory.mktemp("installing"))


@pytest.fixture
def user(tmp_path, published) -> Place:
    """A user with an empty store."""
    return Place(root=tmp_path, variables={"VISGET_REGISTRY": str(published.registry)})


def install(place: Place, *words: str) -> dict[str, object]:
    (done,) = place.run("install", "tiny", "--json", *words).json["installed"]
    return done


def test_of_several_at_once_one_compiles_and_the_others_reuse(user):
    children = [user.spawn("install", "tiny", "--json") for _ in range(4)]
    answers = [json.loads(child.communicate(timeout=120)[0])["installed"][0] for child in children]
    assert sorted(answer["reused"] for answer in answers) == [False, True, True, True]
    assert len({answer["directory"] for answer in answers}) == 1


def test_the_second_time_nothing_is_compiled(user):
    assert install(user)["reused"] is False
    assert install(user)["reused"] is True
    assert "already compiled for" in user.run("install", "tiny").out
    assert install(user, "--reinstall")["reused"] is False


def test_what_was_damaged_at_the_same_size_is_compiled_again_and_said_so(user):
    directory = install(user)["directory"]
    (library,) = user.home.glob("native/v1/*/lib/libtiny.so")
    assert str(library).startswith(str(directory))
    for path in (library.parent.parent, library.parent):
        path.chmod(0o755)
    library.chmod(0o644)
    data = bytearray(library.read_bytes())
    data[-1] ^= 1
    library.write_bytes(data)
    outcome = user.run("install", "tiny")
    assert outcome.code == 0
    assert "(compiled for " in outcome.out
    assert "already" not in outcome.out


def test_verbose_it_shows_the_receipt(user):
    quiet = user.run("install", "tiny").out
    outcome = user.run("-v", "install", "tiny")
    assert outcome.code == 0
    assert "compiler:" not in quiet
    for label in ("target:", "compiler:", "linker:", "sandbox:", "answers:", "files:", "took:"):
        assert f"\n  {label}" in outcome.out
    assert "test vectors reproduced: 1" in outcome.out
    stages = re.findall(r"^    ([\w-]+): +([\d,]+ ms)", outcome.out, re.M)
    assert [stage for stage, _ in stages] == ["compile", "gate", "link", "gate-library", "answers"]
    assert re.search(r"compile: +[\d,]+ ms \(.*check \d+.*optimise \d+.*emit \d+\)", outcome.out)


def test_info_shows_what_is_installed_here(user):
    before = user.run("info", "tiny")
    assert "installed here" not in before.out
    assert user.run("info", "tiny", "--json").json["installed"] == []
    assert user.run("install", "tiny").code == 0
    outcome = user.run("info", "tiny")
    head, _, here = outcome.out.partition("\n  installed here\n")
    assert head == before.out.rstrip("\n") + "\n"
    for label in ("target:", "compiler:", "linker:", "sandbox:", "answers:"):
        assert f"    {label}" in here
    (made,) = user.run("info", "tiny", "--json").json["installed"]
    assert (made["answers"], made["vectors"], made["level"]) == ("passed", 1, 3)
    assert user.run("install", "tiny", "--target", "aarch64-linux-musl").code == 0
    targets = [item["target"] for item in user.run("info", "tiny", "--json").json["installed"]]
    assert targets[0] == made["target"]
    assert len(targets) == 2
    assert "aarch64-linux-musl" in targets[1]


def test_a_damaged_receipt_does_not_keep_info_from_answering(user):
    assert user.run("install", "tiny").code == 0
    (receipt,) = user.home.glob("native/v1/*/receipt.json")
    receipt.parent.chmod(0o755)
    receipt.chmod(0o644)
    receipt.write_text("{")
    outcome = user.run("info", "tiny")
    assert outcome.code == 0
    assert "installed here" not in outcome.out
