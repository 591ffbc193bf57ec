"""On which machines the recipes' tests pass: from what pytest wrote, else from the page on portability.

Invariant: the counting is that of tests/support/portability.py, which writes that page; nothing is counted twice.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.workplace import ROOT

MACHINES = ("x86-64", "aarch64", "riscv64")
PAGE = ROOT / "docs" / "portability.md"
_SUPPORT = ROOT / "tests" / "support" / "portability.py"
_NAME = re.compile(r"\[([^\]]+)\]")

Results = dict[str, dict[str, str]]
"""recipe -> machine -> what to say."""


def results_of(files: Sequence[Path]) -> Results:
    """Return what the tests of each recipe gave on each machine."""
    if files:
        return counted(_portability().results(list(files)))
    return from_page(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}


def counted(found: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Results:
    """Return recipe -> machine -> "12" or "2 of 12 failed", from recipe -> machine -> test -> outcome."""
    return {
        recipe: {machine: _counted(list(tests.values())) for machine, tests in machines.items()}
        for recipe, machines in found.items()
    }


def _counted(outcomes: Sequence[str]) -> str:
    failed, passed = outcomes.count("failed"), outcomes.count("passed")
    if failed:
        return f"**{failed} of {len(outcomes)} failed**"
    return f"{passed}" if passed else "skipped"


def from_page(page: str) -> Results:
    """Return what the table of that page says."""
    found: Results = {}
    columns: dict[str, int] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not columns and all(machine in cells for machine in MACHINES):
            columns = {machine: cells.index(machine) for machine in MACHINES}
        elif columns and cells and (name := _NAME.match(cells[0])) and len(cells) > max(columns.values()):
            found[name[1]] = {machine: cells[at].removeprefix("passed ") for machine, at in columns.items()}
    return found


def _portability() -> Any:
    spec = importlib.util.spec_from_file_location("portability", _SUPPORT)
    if spec is None or spec.loader is None:
        raise SystemExit(f"bench: there is no {_SUPPORT.name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
