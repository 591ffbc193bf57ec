"""Each recipe is built once for a session, and installed once for each machine that a test asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from e2ekit import Shelf
from machines import Machine
from recipekit import QUICK, Workshop, machines


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(Shelf(tmp_path_factory.mktemp("workshop")), tmp_path_factory.mktemp("runners"))


@pytest.fixture(scope="module", params=machines())
def machine(request: pytest.FixtureRequest, workshop: Workshop) -> Iterator[Machine]:
    """The library of the module's RECIPE, on each machine in turn."""
    with workshop.opened(request.module.RECIPE, request.param) as made:
        yield made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Every test here needs the network; those of recipes that are not quick are long."""
    for item in items:
        if item.path.parent.name != "recipes":
            continue
        item.add_marker(pytest.mark.network)
        recipe = getattr(item.module, "RECIPE", None)
        if recipe is None and hasattr(item, "callspec"):
            recipe = item.callspec.params.get("recipe")
        if recipe is not None and recipe not in QUICK:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="module")
def theirs(request: pytest.FixtureRequest, workshop: Workshop) -> Machine:
    """The distribution's own build of the module's library: the last of its DISTRIBUTION, after those it needs."""
    return workshop.distribution(request.module.RECIPE, *request.module.DISTRIBUTION)
