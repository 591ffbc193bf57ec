"""Write docs/portability.md from what the recipes' tests found.

    pytest tests/recipes -m "long or not long" --junitxml results.xml
    python tests/support/portability.py results.xml [more.xml ...]

Where several files know of a test, the last one counts. A library that was not tested keeps a dash. What the table
cannot know (why a switch is needed, what stops a recipe) is in tests/recipes/remarks.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "recipes"
REMARKS = ROOT / "tests" / "recipes" / "remarks.toml"
PAGE = ROOT / "docs" / "portability.md"
MACHINES = ("x86-64", "aarch64", "riscv64")
HEAD = """\
# What builds, and where it runs

The recipes in [examples/recipes](../examples/recipes) build well-known libraries from unmodified upstream sources.
Each has test vectors, which every installation repeats, and a functional test in [tests/recipes](../tests/recipes)
that uses the library in earnest: against the distribution's own build of the same version, byte for byte where the
library promises that, and against Python's modules. The same test runs on this machine and, under qemu-user, on
AArch64 and RISC-V: the package is one file for all of them.

This page is written by `python tests/support/portability.py`; its first lines say how.

## Results

*passed n*: that many tests ran and none failed. *how*: the library's own build system, or *sources* where visget
compiles a list of files. *level*: of the [platform interface](spec/platform.md) that the package needs.
"""


def results(files: list[Path]) -> dict[str, dict[str, dict[str, str]]]:
    """Return recipe -> machine -> test -> passed, failed or skipped."""
    names = {path.parent.name.replace("-", "_"): path.parent.name for path in RECIPES.glob("*/visget.toml")}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):  # noqa: S314 - what our pytest wrote
            module, test = case.get("classname", "").split(".")[-1], case.get("name", "")
            place = _place(module, test, names)
            if place is None:
                continue
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            found.setdefault(place[0], {}).setdefault(place[1], {})[f"{module}.{test}"] = outcome
    return found


def _place(module: str, test: str, names: dict[str, str]) -> tuple[str, str] | None:
    words = test.partition("[")[2].rstrip("]")
    if module == "test_vectors":
        recipe, _, machine = (
            words.rpartition("-") if test.startswith("test_vectors_elsewhere") else (words, "", MACHINES[0])
        )
        return (recipe, machine) if recipe else None
    name = names.get(module.removeprefix("test_"))
    machine = next(
        (machine for machine in MACHINES if words == machine or words.startswith(machine + "-")), MACHINES[0]
    )
    return None if name is None else (name, machine)


def _cell(tests: dict[str, str] | None) -> str:
    if not tests:
        return "–"
    outcomes = list(tests.values())
    if failed := outcomes.count("failed"):
        return f"**{failed} of {len(outcomes)} failed**"
    return f"passed {outcomes.count('passed')}" if "passed" in outcomes else "skipped"


def table(found: dict[str, dict[str, dict[str, str]]], remarks: dict[str, Any]) -> str:
    """Return the lines of the table."""
    lines = [
        "| library | version | how | level | builds | x86-64 | aarch64 | riscv64 | remarks |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for path in sorted(RECIPES.glob("*/visget.toml")):
        recipe = tomllib.loads(path.read_text(encoding="utf-8"))
        name, machines = path.parent.name, found.get(path.parent.name, {})
        note = remarks.get(name, {})
        stopped = note.get("stopped")
        built = "no" if stopped else "yes" if any("passed" in tests.values() for tests in machines.values()) else "–"
        how = recipe["build"].get("system", "sources")
        cells = [_cell(machines.get(machine)) for machine in MACHINES]
        said = stopped or note.get("remark", "")
        lines.append(
            f"| [{name}](../examples/recipes/{name}/visget.toml) | {recipe['package']['version']} | {how} | "
            f"{note.get('level', '')} | {built} | {' | '.join(cells)} | {said} |"
        )
    return "\n".join(lines)


def switches(remarks: dict[str, Any]) -> str:
    """Return the lines about what had to be switched, and why."""
    lines = ["| library | switch | why |", "|---|---|---|"]
    for name in sorted(remarks):
        for switch in remarks[name].get("switches", []):
            lines.append(f"| {name} | `{switch['set']}` | {switch['why']} |")
    return "\n".join(lines)


def page(files: list[Path]) -> str:
    """Return the text of the page."""
    remarks = tomllib.loads(REMARKS.read_text(encoding="utf-8"))
    general = remarks.pop("page", {})
    parts = [
        HEAD,
        table(results(files), remarks),
        "\n## Switches\n",
        general.get("switches", "").strip(),
        "",
        switches(remarks),
    ]
    for title, text in general.get("sections", {}).items():
        parts += [f"\n## {title}\n", re.sub(r"\n{3,}", "\n\n", text.strip())]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page([Path(word) for word in sys.argv[1:]]), encoding="utf-8")
