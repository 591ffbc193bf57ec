"""Everything slow happens once for all end-to-end tests: recipes are built, published and installed on demand."""

import pytest
from e2ekit import Shelf


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("shelf"))
