"""The layout of ADR 1 holds: every room is packaged, every link is right, no bare name leaks."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ["toolchain", "format", "registry", "installer", "cache", "runtime", "examples"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_folder_with_an_init_is_packaged():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"visget", "bench"}
    listed = set(PROJECT["tool"]["setuptools"]["packages"]) - {"visget"}
    assert listed == {f"visget.{room}" for room in rooms} == {f"visget.{room}" for room in ROOMS}
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {f"visget.{room}": room for room in ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_link_for_static_tools(room):
    link = ROOT / "visget" / room
    # A checkout without symlink support holds a text file with the same content.
    target = str(link.readlink()) if link.is_symlink() else link.read_text()
    assert target == f"../{room}"


def test_rooms_are_flat():
    folders = [path for room in ROOMS[:-1] for path in (ROOT / room).iterdir() if path.is_dir()]
    assert {path.name for path in folders} <= {"__pycache__", "include", "libcxx", "runtime"}


def test_bare_names_are_not_importable_from_elsewhere(tmp_path):
    code = "import importlib.util as u; print([n for n in %r if u.find_spec(n)])" % [
        room for room in ROOMS if room not in ("cache",)
    ]
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_modules_stay_readable():
    """A module over 400 lines does two things; split it."""
    long = {
        str(path.relative_to(ROOT)): count
        for folder in ["visget", *ROOMS[:-1]]
        for path in (ROOT / folder).glob("*.py")
        if (count := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_only_config_reads_the_environment():
    readers = [
        str(path.relative_to(ROOT))
        for folder in ["visget", *ROOMS[:-1]]
        for path in (ROOT / folder).glob("*.py")
        if re.search(r"\bos\.(environ|getenv)\b", path.read_text())
    ]
    # The compiler wrappers start thousands of times in a build, and read five variables.
    assert sorted(readers) == ["visget/config.py", "visget/wrap_settings.py"]


@pytest.mark.parametrize("word", ["import pickle", "import marshal", "shell=True", "eval(", "except Exception"])
def test_banned_words(word):
    pattern = re.compile(r"(?<![\w.])" + re.escape(word))
    users = [
        str(path.relative_to(ROOT))
        for folder in ["visget", *ROOMS[:-1]]
        for path in (ROOT / folder).glob("*.py")
        if pattern.search(path.read_text())
    ]
    assert users == []
