import shutil
from pathlib import Path

import pytest

from visget.registry.directory import init_registry
from visget.registry.operator import sibling


@pytest.fixture(scope="session")
def _template(tmp_path_factory) -> Path:
    return init_registry(tmp_path_factory.mktemp("template") / "registry")


@pytest.fixture
def root(_template, tmp_path) -> Path:
    """An empty registry with its keys beside it."""
    shutil.copytree(sibling(_template), sibling(tmp_path / "registry"))
    return shutil.copytree(_template, tmp_path / "registry")
