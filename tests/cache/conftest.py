import pytest

from visget.cache.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(tmp_path / "store")
