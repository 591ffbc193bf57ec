"""docs/reference/visget-toml.md describes every key, and its examples are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from visget.toolchain.project import read_project

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "visget-toml.md").read_text()
LEAST = {
    "package": '[package]\nname = "x"\nversion = "1"\nsummary = "s"\nlicense = "MIT"\n',
    "build": '[build]\nsources = ["x.c"]\n',
    "exports": '[exports]\nheaders = ["x.h"]\n',
}
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_table_has_an_example() -> None:
    found = {re.match(r"\[+(\w+)", example)[1] for example in EXAMPLES}  # type: ignore[index]
    assert found == {"package", "source", "build", "dependencies", "exports", "vector", "bench"}


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.partition("\n")[0] for example in EXAMPLES])
def test_the_examples_are_valid(tmp_path: Path, example: str) -> None:
    rest = "".join(text for name, text in LEAST.items() if not example.startswith(f"[{name}]"))
    (tmp_path / "visget.toml").write_text(rest + example)
    read_project(tmp_path)


def test_every_key_that_is_read_is_described() -> None:
    sources = Path(__file__).resolve().parents[2] / "toolchain"
    text = "".join((sources / name).read_text() for name in ("project.py", "build_table.py", "origin.py"))
    keys = set(re.findall(r'table\.(?:text|needed|choice|texts|table|path|paths|get|require)\(\s*"([\w-]+)"', text))
    keys |= set(re.findall(r'_symbol_patterns\(table, "([\w-]+)"', text))
    assert len(keys) > 20
    assert [key for key in sorted(keys) if f"| `{key}` |" not in PAGE and f"`[{key}]`" not in PAGE] == []
