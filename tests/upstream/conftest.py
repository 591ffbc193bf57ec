"""Upstream's own tests are linked with the library that visget installed, and with one that gcc made."""

from __future__ import annotations

from typing import Any

import pytest
from e2ekit import Shelf
from upstreamkit import Suite, Workbench


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    return Workbench(Shelf(tmp_path_factory.mktemp("shelf")), tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, workbench: Workbench) -> Suite:
    """The suite that the module's make() describes."""
    suite = request.module.make(workbench)
    assert isinstance(suite, Suite)
    return suite


@pytest.fixture
def suite(request: pytest.FixtureRequest, made: Suite) -> Suite:
    """The same; what a test reports is noted for that test."""
    made.request = request
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Every test here needs the network; all are long but those of modules that say QUICK."""
    for item in items:
        if item.path.parent.name == "upstream":
            item.add_marker(pytest.mark.network)
            if not getattr(item.module, "QUICK", False):
                item.add_marker(pytest.mark.long)
