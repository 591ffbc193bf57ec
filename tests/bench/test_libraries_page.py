"""The tables of the real libraries: what is measured, what failed and what is unknown all have their place."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ziglang")

from bench.libraries_page import compiled, mean, overview, render_libraries
from bench.page import between


def sample(seconds: float) -> dict[str, Any]:
    return {"median": seconds, "quartiles": [seconds, seconds], "range": [seconds, seconds], "seconds": [seconds]}


def library(name: str, **more: Any) -> dict[str, Any]:
    return {"library": name, "errors": {}, **more}


GOOD = library(
    "good",
    package={"system": "cmake", "dependencies": ["zlib"], "bytes": 100},
    rivals={
        "found": {"clang -O3 native": {"making": 4.0, "configuring": 1.5}, "gcc -O3 native": {"making": 3.0}},
        "missing": {"distribution": "libgood1 is not installed"},
    },
    install=sample(2.0),
    size={"vis": 100, "installed": 120, "gcc -O3 native": 200, "clang -O3 native": 210},
    speed=[
        {"function": "one, 1 MiB", "bytes": 1 << 20, "differ": [], "times": {
            "visget": sample(0.010), "gcc -O3 native": sample(0.020), "clang -O3 native": sample(0.009)}},
        {"function": "two", "bytes": 0, "differ": ["gcc -O3 native"], "failed": {"distribution": "no function two"},
         "times": {"visget": sample(0.010), "gcc -O3 native": sample(0.005), "clang -O3 native": sample(0.010)}},
    ],
)  # fmt: skip
BROKEN = library("broken", errors={"package": "/opt/somebody/x/y.c:3: no | good"})
CRASHED = library(
    "crashed", package={"system": "sources", "dependencies": [], "bytes": 1}, errors={"speed": "ended by signal 11"}
)
NEVER = library("never")


def page(*libraries: dict[str, Any], **tests: dict[str, str]) -> str:
    result = {"quick": False, "date": "2026-01-01", "host": {"cores": "2"}, "libraries": libraries, "tests": tests}
    return render_libraries(result)


def test_a_row_has_the_quotients() -> None:
    row = overview(GOOD, {"x86-64": "12", "aarch64": "**1 of 12 failed**"})
    assert row == [
        "good", "yes", "12", "**1 of 12 failed**", "–", "0.50x", "2.00 s", "4.00 s", "0.50x", "1.00x", "0.95x", "–"
    ]  # fmt: skip


def test_means_are_geometric_and_leave_out_what_is_unknown() -> None:
    assert mean(GOOD, "gcc -O3 native") == pytest.approx(1.0)  # twice and half as fast
    assert mean(GOOD, "distribution") is None
    assert mean(NEVER, "gcc -O3 native") is None
    assert compiled(GOOD) == 4.0
    assert compiled(BROKEN) is None


def test_what_failed_is_a_row_and_a_reason() -> None:
    text = page(GOOD, BROKEN, CRASHED, NEVER)
    assert "| broken | **no** | – |" in text
    assert "| crashed | yes |" in text
    assert "| never | – | – |" in text
    assert "* broken, package: y.c:3: no / good" in text
    assert "* crashed, speed: ended by signal 11" in text
    assert "* good, distribution: libgood1 is not installed" in text
    assert "* good: two, distribution: no function two" in text
    assert "somebody" not in text


def test_differences_and_slower_operations_are_named() -> None:
    text = page(GOOD)
    assert "* good: two (gcc -O3 native)" in text.partition("Different answers")[2]
    slower = text.partition("Slower than a rival")[2].partition("Different")[0]
    assert "* good: two (gcc -O3 native: 0.50x)" in slower
    assert "* good: one, 1 MiB (clang -O3 native: 0.90x)" in slower
    assert "one, 1 MiB (gcc" not in slower
    assert "Different answers: none." in page(NEVER)


def test_all_rows_of_a_table_have_as_many_cells() -> None:
    widths = []
    for line in page(GOOD, BROKEN, CRASHED, NEVER).splitlines():
        if not line.startswith("|"):
            widths = []
            continue
        widths.append(line.count("|"))
        assert widths[0] == widths[-1], line


def test_only_what_is_between_the_markers_changes() -> None:
    assert between("a <b> old <e> z", "<b>", "<e>", "new") == "a <b>\n\nnew\n<e> z"
    with pytest.raises(ValueError, match="lacks the line"):
        between("a <b> z", "<b>", "<e>", "new")
