"""Write docs/upstream-tests.md: runs the tests in tests/upstream, or reads what earlier runs found.

    python tests/support/upstreampage.py [-k EXPRESSION]
    python tests/support/upstreampage.py results.xml [more.xml ...]

Where several files know of a suite, the last one counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "upstream"
PAGE = ROOT / "docs" / "upstream-tests.md"
HEAD = """\
# Upstream's own tests

The test programs that libraries come with, from the same source packages, compiled by gcc and linked twice: with a
library that `gcc -O2` made of the same sources, and with the one that visget built, packed, checked, compiled and
installed, through its pkg-config file. The same tests have to pass; they are in [tests/upstream](../tests/upstream).

This page is written by `python tests/support/upstreampage.py`, which runs them.

| library | suite | tests | passed natively | passed with visget |
|---|---|---|---|---|
"""


def notes(files: list[Path]) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], Any]]:
    """Return (library, suite) -> result, and (library, what) -> what was not run."""
    suites: dict[tuple[str, str], Any] = {}
    missing: dict[tuple[str, str], Any] = {}
    for file in files:
        for item in ElementTree.parse(file).iter("property"):  # noqa: S314 - what our pytest wrote
            if item.get("name") == "upstream":
                note = json.loads(item.get("value", ""))
                suites[note["library"], note["suite"]] = note
            elif item.get("name") == "upstream-not-run":
                note = json.loads(item.get("value", ""))
                missing[note["library"], note["what"]] = note
    return suites, missing


def page(files: list[Path]) -> str:
    """Return the text of the page."""
    suites, missing = notes(files)
    lines = [HEAD.rstrip("\n")]
    for library, suite in sorted(suites):
        note = suites[library, suite]
        lines.append(f"| {library} | {suite} | {note['tests']} | {note['native']} | {note['visget']} |")
    known = {library.replace("-", "_") for library, _ in suites}
    waiting = sorted(path.stem[5:] for path in TESTS.glob("test_*.py") if path.stem[5:] not in known)
    if waiting:
        lines += ["", f"No result of these is on this page: {', '.join(waiting)}."]
    lines += ["", "## What does not pass, on both sides", "", "| library | test | why |", "|---|---|---|"]
    for library, suite in sorted(suites):
        lines += [f"| {library} | {test} | {why} |" for test, why in sorted(suites[library, suite]["known"].items())]
    lines += ["", "## What is not run, or not against the installed library", "", "| library | what | why |"]
    lines.append("|---|---|---|")
    lines += [f"| {library} | {what} | {missing[library, what]['why']} |" for library, what in sorted(missing)]
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> int:
    """Run the tests unless results are given; write the page."""
    if words and not words[0].startswith("-"):
        PAGE.write_text(page([Path(word) for word in words]), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as place:
        results = Path(place, "results.xml")
        command = [sys.executable, "-m", "pytest", "tests/upstream", "-m", "long or not long", f"--junitxml={results}"]
        code = subprocess.run([*command, *words], cwd=ROOT, check=False).returncode
        if results.exists():
            PAGE.write_text(page([results]), encoding="utf-8")
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
