"""The vectors of each recipe, on the processors of others. (On this one, installing has carried them out.)"""

from __future__ import annotations

import pytest
from machines import FOREIGN
from recipekit import NAMES, Workshop, run_vector, vectors_of


@pytest.mark.cross
@pytest.mark.parametrize("machine_name", FOREIGN)
@pytest.mark.parametrize("recipe", NAMES)
def test_vectors_elsewhere(workshop: Workshop, recipe: str, machine_name: str) -> None:
    vectors = vectors_of(workshop.shelf.package(recipe))
    assert vectors
    with workshop.opened(recipe, machine_name) as machine:
        for vector in vectors:
            run_vector(machine, vector)


@pytest.mark.parametrize("recipe", NAMES)
def test_vectors_here(workshop: Workshop, recipe: str) -> None:
    assert workshop.shelf.load(recipe).receipt["answers"] == "passed"
