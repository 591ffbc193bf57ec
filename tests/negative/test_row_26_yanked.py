"""Row 26: a withdrawn version is skipped, an exact pin and a lock file still get it with a warning (PEP 592)."""

from __future__ import annotations

from pathlib import Path

import pytest
from badkit import Place, publish_tiny
from lockkit import sell, shop, user

from visget.errors import EXIT_NOT_FOUND, EXIT_USAGE
from visget.lockfile import read_lock

REASON = "wrong sums for large numbers"


@pytest.fixture
def registry(tmp_path) -> Path:
    root = shop(tmp_path / "registry")
    for version in ("1.0", "1.1", "1.2"):
        sell(root, "xxhash", version)
    return root


@pytest.fixture
def place(tmp_path, registry) -> Place:
    return user(tmp_path, registry)


@pytest.fixture
def lock(tmp_path) -> Path:
    return tmp_path / "visget.lock"


def locked(place: Place, lock: Path, *words: str, code: int = 0) -> tuple[str | None, str]:
    """Lock, and return the version of xxhash and what people see."""
    outcome = place.run("lock", "--file", lock, *words)
    assert outcome.code == code, outcome
    return (str(read_lock(lock).packages[0].version) if lock.exists() else None), outcome.text


def yank(place: Place, *words: str, code: int = 0) -> str:
    outcome = place.run("yank", *words)
    assert outcome.code == code, outcome
    return outcome.text


def test_row_26_skipped(place, lock):
    assert "xxhash 1.2 is withdrawn" in yank(place, "xxhash==1.2", "--reason", REASON)
    version, text = locked(place, lock, "xxhash")
    assert version == "1.1"
    assert REASON not in text
    shown = place.run("search", "--json").json["packages"]
    assert [(item["name"], item["version"]) for item in shown] == [("xxhash", "1.1")]


@pytest.mark.parametrize("wanted", ["xxhash==1.2", "xxhash===1.2", "xxhash==1.2,>1"])
def test_row_26_exact_pin_warns(place, lock, wanted):
    yank(place, "xxhash==1.2", "--reason", REASON)
    version, text = locked(place, lock, wanted)
    assert version == "1.2"
    assert f"warning: xxhash 1.2 was withdrawn by its owner: {REASON}" in text


@pytest.mark.parametrize("wanted", ["xxhash>=1.2", "xxhash~=1.2", "xxhash==1.2.*", "xxhash>1.1"])
def test_row_26_anything_but_an_exact_pin_is_refused(place, lock, wanted):
    yank(place, "xxhash==1.2", "--reason", REASON)
    version, text = locked(place, lock, wanted, code=EXIT_NOT_FOUND)
    assert version is None
    assert REASON in text
    assert "xxhash==1.2" in text


def test_row_26_a_lock_file_keeps_it(place, lock):
    assert locked(place, lock, "xxhash")[0] == "1.2"
    yank(place, "xxhash==1.2", "--reason", REASON)
    assert locked(place, lock)[0] == "1.2"
    outcome = place.run("lock", "--file", lock, "--check")
    assert outcome.code == 0
    assert REASON in outcome.err
    # A new decision is a new choice.
    assert locked(place, lock, "--upgrade")[0] == "1.1"


def test_row_26_taken_back(place, lock):
    yank(place, "xxhash==1.2", "--reason", REASON)
    assert "nothing changed" in yank(place, "xxhash==1.2", "--reason", REASON)
    assert "nothing changed" not in yank(place, "xxhash==1.2", "--reason", "another reason")
    assert "in good standing" in yank(place, "xxhash==1.2", "--undo")
    assert "nothing changed" in yank(place, "xxhash==1.2", "--undo")
    version, text = locked(place, lock, "xxhash")
    assert version == "1.2"
    assert "reason" not in text


def test_row_26_all_withdrawn(place, lock, registry):
    for version in ("1.0", "1.1", "1.2"):
        yank(place, f"xxhash=={version}", "--reason", REASON)
    version, text = locked(place, lock, "xxhash", code=EXIT_NOT_FOUND)
    assert version is None
    assert f"every version that satisfies xxhash was withdrawn by its owner (1.2: {REASON})" in text
    # Publishing goes on.
    sell(registry, "xxhash", "1.3")
    assert locked(place, lock, "xxhash")[0] == "1.3"


def test_row_26_nothing_else_changes(place, registry):
    before = {path: path.read_bytes() for path in registry.rglob("*.vis")}
    yank(place, "xxhash==1.2", "--reason", REASON)
    assert {path: path.read_bytes() for path in registry.rglob("*.vis")} == before
    info = place.run("info", "xxhash", "--json").json
    assert info["version"] == "1.1"
    # The same version cannot be published with other bytes, withdrawn or not.
    with pytest.raises(Exception, match="already published with other content"):
        sell(registry, "xxhash", "1.2", filling=b"other")
    sell(registry, "xxhash", "1.2")
    assert place.run("info", "xxhash", "--json").json["version"] == "1.1"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("xxhash==1.2",), EXIT_USAGE, "either --reason TEXT or --undo"),
        (("xxhash==1.2", "--reason", "x", "--undo"), EXIT_USAGE, "either --reason TEXT or --undo"),
        (("xxhash==1.2", "--reason", " "), EXIT_USAGE, "the reason is empty"),
        (("xxhash==1.2", "--reason", "a\nb"), EXIT_USAGE, "one line"),
        (("xxhash==1.2", "--reason", "\x1b[31m"), EXIT_USAGE, "one line"),
        (("xxhash==1.2", "--reason", "x" * 501), EXIT_USAGE, "500 characters"),
        (("xxhash", "--undo"), EXIT_USAGE, "does not name one version"),
        (("xxhash>=1", "--undo"), EXIT_USAGE, "does not name one version"),
        (("xxhash===1.2", "--undo"), EXIT_USAGE, "does not name one version"),
        (("xxhash==1.2,<3", "--undo"), EXIT_USAGE, "not a version"),
        (("xxhash==9", "--undo"), EXIT_NOT_FOUND, "never published"),
        (("xxhsh==1.2", "--undo"), EXIT_NOT_FOUND, "xxhash"),
        (("xxhash==1.2", "--undo", "--registry", "https://example.org"), EXIT_USAGE, "can only be read"),
    ],
)
def test_row_26_misuse(place, words, code, message):
    assert message in yank(place, *words, code=code)


def test_row_26_installing(tmp_path):
    """The real thing: what is installed stays, what is locked comes, what is asked for by name alone does not."""
    place = publish_tiny(tmp_path)
    lock = tmp_path / "visget.lock"
    assert place.run("lock", "--file", lock, "tiny").code == 0
    yank(place, "tiny==1.0", "--reason", REASON)
    refused = place.run("install", "tiny")
    assert refused.code == EXIT_NOT_FOUND
    assert REASON in refused.err
    synced = place.run("sync", "--file", lock, "--locked")
    assert synced.code == 0, synced
    assert REASON in synced.err
    pinned = place.run("install", "tiny==1.0")
    assert pinned.code == 0, pinned
    assert f"warning: tiny 1.0 was withdrawn by its owner: {REASON}" in pinned.err
    assert place.run("path", "tiny").code == 0
