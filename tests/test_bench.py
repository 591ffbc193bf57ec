"""The measurements of bench/ run, agree on the answers, and render into the page; no number is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytest.importorskip("ziglang")
PAGE = "Before.\n<!-- measured: begin -->\nstale numbers\n<!-- measured: end -->\nAfter.\n"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "bench/run.py", *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_quick_run_measures_everything_and_renders_the_page(tmp_path: Path) -> None:
    page, file = tmp_path / "page.md", tmp_path / "result.json"
    page.write_text(PAGE)
    done = run("--quick", "--rounds", 1, "--json", file, "--write-page", page)
    assert done.returncode == 0, done.stderr

    result = json.loads(file.read_text())
    assert {"speed", "startup", "install", "size", "host"} <= set(result)
    assert len(result["speed"]) == 8
    for row in result["speed"]:
        assert row["differ"] == []
        assert set(row["times"]) >= {"visget", "clang -O3 native"}
    (install,) = result["install"]
    assert {"compile", "link", "answers"} <= set(install["stages"])
    assert result["size"][0]["vis"] > result["size"][0]["module"] > 0

    text = page.read_text()
    assert text.startswith("Before.\n<!-- measured: begin -->\n")
    assert text.endswith("<!-- measured: end -->\nAfter.\n")
    assert "stale numbers" not in text
    assert "num_gemm" in text
    # The page is public.
    assert str(ROOT) not in text
    assert str(Path.home()) not in text

    again = tmp_path / "again.md"
    again.write_text(PAGE)
    assert run("--render", file, "--write-page", again).returncode == 0
    assert again.read_text() == text


def test_an_unknown_part_is_an_error() -> None:
    done = run("--only", "everything")
    assert done.returncode == 2
    assert "invalid choice" in done.stderr
