"""The recipes name sources that exist and that hold the files that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from visget.errors import NetworkError, NotFoundError, UnsupportedError
from visget.toolchain.project import read_project
from visget.toolchain.sources import find_headers, find_sources, find_text, source_tree

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"
NAMES = sorted(path.parent.name for path in RECIPES.glob("*/visget.toml"))


def test_all_recipes_are_here() -> None:
    assert {"kissfft", "lz4", "xxhash", "zlib"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid_and_has_vectors_and_benches(name: str) -> None:
    project = read_project(RECIPES / name)
    assert project.package.name == name
    assert project.source is not None
    assert project.package.license_files
    assert project.vectors.vectors
    assert project.benches.vectors


@pytest.mark.network
@pytest.mark.parametrize("name", NAMES)
def test_the_sources_of_a_recipe_are_complete(name: str, tmp_path: Path) -> None:
    project = read_project(RECIPES / name)
    try:
        with source_tree(project, cache=tmp_path) as tree:
            if project.build.system == "sources":
                assert find_sources(project, tree.root)
                headers = find_headers(project, tree.root)
                assert list(headers) == list(project.exports.headers)
            for file in project.package.license_files:
                assert find_text(project, tree.root, file).stat().st_size > 100
    except (NetworkError, UnsupportedError) as error:
        pytest.skip(f"cannot fetch: {error}")
    except NotFoundError as error:
        if project.source is not None and project.source.label.startswith("debian:"):
            pytest.skip(f"this machine's mirrors keep other versions: {error}")
        raise
