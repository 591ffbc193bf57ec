"""Everything slow happens once for all end-to-end tests: recipes are built, published and installed on demand."""

import pytest
from e2ekit import Shelf
from tinykit import Market


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Market:
    return Market(tmp_path_factory.mktemp("market"))
