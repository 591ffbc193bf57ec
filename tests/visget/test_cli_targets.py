"""visget install --target T --to DIR, as a user types it."""

import json

import pytest
from badkit import Place, publish_tiny

from visget.errors import EXIT_UNSUPPORTED, EXIT_USAGE
from visget.installer.linkers import zig_program
from visget.installer.target import PLATFORMS


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Place:
    return publish_tiny(tmp_path_factory.mktemp("targets"))


LIBRARIES = {
    "aarch64-linux-android": "so", "aarch64-macos": "dylib", "x86_64-windows": "dll", "riscv64-linux-musl": "so",
}  # fmt: skip


@pytest.mark.skipif(zig_program() is None, reason="ziglang is not installed")
@pytest.mark.parametrize("target", LIBRARIES)
def test_it_writes_a_directory(place, tmp_path, target):
    outcome = place.run("install", "tiny", "--target", target, "--to", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome
    found = outcome.json["directory"]
    assert found["path"] == str(tmp_path / "out")
    assert f"lib/libtiny.{LIBRARIES[target]}" in found["files"]
    listed = json.loads((tmp_path / "out/visget-artifact.json").read_bytes())
    assert listed["files"] == found["files"]
    assert all((tmp_path / "out" / path).is_file() for path in found["files"])
    assert json.loads((tmp_path / "out/receipt.json").read_bytes())["answers"] in ("not-run", "none")
    again = place.run("install", "tiny", "--target", target, "--to", tmp_path / "out")
    assert again.code == 0, again
    assert f"lib/libtiny.{LIBRARIES[target]}" in again.out


def test_a_place_that_is_taken_is_refused_before_anything_is_compiled(place, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")
    for words in (("tiny",), ("tiny", "--force")):
        outcome = place.run("install", *words, "--target", "aarch64-linux-gnu", "--to", tmp_path / "out")
        assert outcome.code == EXIT_USAGE
        assert "visget did not write it" in outcome.err
    assert (tmp_path / "out/mine").read_text() == "mine"


def test_what_makes_no_sense_is_refused(place, tmp_path):
    assert place.run("install", "tiny", "tiny", "--to", tmp_path / "out").code == EXIT_USAGE
    assert place.run("install", "tiny", "--force").code == EXIT_USAGE
    assert place.run("install", "tiny", "--to", tmp_path / "no" / "way").code == EXIT_USAGE


def test_a_linker_of_another_kind_is_told(place, tmp_path):
    user = Place(root=tmp_path, variables={"VISGET_REGISTRY": str(place.registry), "VISGET_LINKER": "ld"})
    outcome = user.run("install", "tiny", "--target", "aarch64-macos", "--to", tmp_path / "out", "--json")
    assert outcome.code == EXIT_UNSUPPORTED
    assert "ziglang" in outcome.json["message"]
    assert not (tmp_path / "out").exists()


def test_the_list_of_targets_has_all(place):
    assert set(PLATFORMS) <= set(place.run("target", "--list").out.split())
