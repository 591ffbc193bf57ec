"""docs/reference/negative-tests.md keeps its promises: all rows are there, and each test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "negative-tests.md"
ROWS = range(1, 41)
# Rows of the registry's server: they have a note until it is here.
ELSEWHERE = {29, 30, 38}


def table() -> dict[int, list[str]]:
    """The cells of each row of the page."""
    lines = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(lines) == len({number for number, _ in lines}), "a row stands twice"
    return {int(number): [cell.strip() for cell in cells.split(" | ")] for number, cells in lines}


TABLE = table()


def cited_by(row: int) -> list[tuple[Path, str]]:
    """The file and the beginning of the functions' names of each test that the row names."""
    cited = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TABLE[row][-1])
    return [(ROOT / file, prefix or "test_") for file, prefix in cited]


@cache
def functions(path: Path) -> tuple[str, ...]:
    """The names of the test functions of a file, also of those in classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def numbers(name: str) -> set[int]:
    """The rows that the name of a file or function carries, as in test_row_08_and_10_something."""
    match = re.match(r"test_row_(\d\d(?:_and_\d\d)*)_", name)
    return {int(number) for number in match[1].split("_and_")} if match else set()


def test_every_row_is_there_in_order() -> None:
    assert list(TABLE) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_names_exists(row: int) -> None:
    *_, shown = TABLE[row]
    assert len(TABLE[row]) == 4
    problems = []
    for path, prefix in cited_by(row):
        if not path.is_file():
            problems.append(f"{path.relative_to(ROOT)} does not exist")
        elif not any(name.startswith(prefix) for name in functions(path)):
            problems.append(f"{path.relative_to(ROOT)} has no function {prefix}...")
    assert problems == []
    if row in ELSEWHERE:
        assert shown.startswith("belongs to the registry server")


@pytest.mark.parametrize("row", sorted(set(ROWS) - ELSEWHERE))
def test_a_row_has_a_test_with_its_number(row: int) -> None:
    assert any(
        row in numbers(path.name) or any(row in numbers(name) for name in functions(path) if name.startswith(prefix))
        for path, prefix in cited_by(row)
    )


def test_every_test_with_a_number_is_named_in_its_row() -> None:
    missing = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        found = {(row, "test_") for row in numbers(path.name)}
        found |= {(row, name) for name in functions(path) for row in numbers(name)}
        for row, name in sorted(found):
            listed = [prefix for file, prefix in cited_by(row) if file == path] if row in TABLE else []
            if not any(name.startswith(prefix) for prefix in listed):
                missing.append(f"row {row}: {path.relative_to(ROOT)}::{name}")
    assert not missing, "docs/reference/negative-tests.md does not name:\n" + "\n".join(missing)
