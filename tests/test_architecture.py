"""ARCHITECTURE.md is true: its layers are those that import-linter enforces, and every file that it names exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]


def test_the_layers_are_those_that_are_enforced():
    (block,) = re.findall(r"^```\n(cli : .+?)^```", TEXT, re.M | re.S)
    assert [" ".join(layer.split()) for layer in block.split(">")] == LAYERS


def test_every_layer_is_there():
    for name in re.findall(r"\w+", " ".join(LAYERS)):
        assert (ROOT / "visget" / f"{name}.py").is_file() or (ROOT / name / "__init__.py").is_file(), name


def test_every_file_that_is_named_exists():
    named = re.findall(r"`((?:visget|docs|[a-z]+)/[\w./*-]+\.(?:py|md|h))`", TEXT)
    assert len(named) > 30
    assert [name for name in named if not list(ROOT.glob(name))] == []


def test_every_room_has_its_place():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"visget", "bench", "examples"}
    for room in rooms:
        assert f"`{room}/" in TEXT, room
