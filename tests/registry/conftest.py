from pathlib import Path

import pytest

from visget.registry.directory import init_registry


@pytest.fixture
def root(tmp_path) -> Path:
    return init_registry(tmp_path / "registry")
