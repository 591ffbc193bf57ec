"""The common options mean the same before the command and behind it, and errors name a thing once."""

from __future__ import annotations

import json

import pytest
from badkit import Place, publish_tiny

from visget.cli import COMMANDS
from visget.cli_common import Ui
from visget.errors import EXIT_NOT_FOUND, EXIT_USAGE, CompileError

ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Place:
    """A registry with tiny 1.0, installed; the tests only read."""
    place = publish_tiny(tmp_path_factory.mktemp("options"))
    assert place.run("install", "tiny").code == 0
    return place


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (["--json"], ["--json"]),
        (["-q"], ["-q"]),
        (["-qq"], ["-qq"]),
        (["-q", "-q"], ["--quiet", "--quiet"]),
        (["--color", "always"], ["--color=always"]),
        (["--no-progress", "--json"], ["--json", "--no-progress"]),
    ],
)
@pytest.mark.parametrize("words", [["info", "tiny"], ["path", "tyni"], ["list"]])
def test_before_the_command_as_behind_it(before, behind, words, published):
    one, other = published.run(*before, *words), published.run(*words, *behind)
    assert one == other


def test_counts_add_up(published):
    twice = published.run("-q", "list", "-q")
    assert (twice.code, twice.out, twice.err) == (0, "", "")
    assert published.run("-v", "info", "tiny").out == published.run("info", "tiny", "-v").out
    assert "tiny_add(int a, int b);" in published.run("-v", "info", "tiny").out


def test_the_nearer_option_wins(published, tmp_path):
    assert ESCAPE in published.run("--color", "always", "list").out
    assert ESCAPE not in published.run("--color", "always", "list", "--color", "never").out
    assert ESCAPE not in published.run("--color", "always", "list", "--color", "auto").out
    other = tmp_path / "other"
    assert published.run("--home", other, "list", "--json").json == {"installed": []}
    assert len(published.run("--home", other, "list", "--json", "--home", published.home).json["installed"]) == 1


def test_a_command_of_a_group_hears_them_too(published):
    assert "registries" in json.loads(published.run("--json", "registry", "list").out)


def test_a_wrong_command_line_is_reported_as_was_asked_for(published):
    outcome = published.run("--json", "lsit")
    assert outcome.code == EXIT_USAGE
    assert outcome.json["hint"].startswith("did you mean 'list'?")
    assert published.run("-qq", "list", "--bogus").text == ""


def test_alone_they_ask_for_help(published):
    outcome = published.run("-v")
    assert outcome.code == 0
    for option in ("--json", "-q, --quiet", "-v, --verbose", "--color", "--no-progress", "--home"):
        assert f"  {option}" in outcome.out
    assert all(name in outcome.out for name in COMMANDS)


@pytest.mark.parametrize("words", [["path", "tyni"], ["install", "tyni"], ["info", "tyni"], ["uninstall", "tyni"]])
def test_exchanged_letters_of_a_short_name(words, published):
    outcome = published.run(*words)
    assert outcome.code == EXIT_NOT_FOUND
    assert "did you mean 'tiny'?" in outcome.err.replace("did you mean tiny?", "did you mean 'tiny'?")


def test_what_the_message_names_is_not_named_again(capsys):
    ui = Ui(as_json=False, quiet=0, verbose=0, color="never", progress=False)
    ui.fail(CompileError("while optimising, the compile worker for tiny 1.0 failed", where="tiny 1.0"))
    assert capsys.readouterr().err == "error: while optimising, the compile worker for tiny 1.0 failed\n"
    ui.fail(CompileError("it does not link", where="tiny 1.0"))
    assert capsys.readouterr().err == "error: tiny 1.0: it does not link\n"
