from __future__ import annotations

from pathlib import Path

import pytest

from visget.errors import UsageError
from visget.names import parse_name
from visget.toolchain.project import read_project
from visget.toolchain.sources import find_headers, find_sources
from visget.toolchain.template import init_project


@pytest.mark.parametrize(("language", "source"), [("c", "src/my_lib.c"), ("c++", "src/my_lib.cpp")])
def test_writes_a_complete_project(tmp_path: Path, language: str, source: str) -> None:
    written = init_project(tmp_path / "new", parse_name("my-lib"), language)  # type: ignore[arg-type]
    project = read_project(tmp_path / "new")
    assert project.package.name == "my-lib"
    assert find_sources(project, project.directory) == (source,)
    assert list(find_headers(project, project.directory)) == ["my_lib.h"]
    assert project.vectors.vectors[0].steps[0].call == "my_lib_dot"
    assert all(path.is_file() for path in written)


def test_overwrites_nothing(tmp_path: Path) -> None:
    header = tmp_path / "include" / "x.h"
    header.parent.mkdir()
    header.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        init_project(tmp_path, parse_name("x"))
    assert header.read_text() == "mine"
    assert not (tmp_path / "visget.toml").exists()


def test_keeps_an_ignore_file(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    init_project(tmp_path, parse_name("x"))
    assert (tmp_path / ".gitignore").read_text() == "mine"
