"""Recipes that stacking may choose from, and rows of a minibatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.ensemble.settings import (
    ALIKE,
    AUTO_BATCH,
    AUTO_TEMPERATURE,
    FEWEST_BATCHES,
    RECIPES,
    RECIPES_ALONE,
    Settings,
    batch_rows,
    build_recipes,
    repeat,
)


def starts(hidden: tuple[int, ...], **changes: Any) -> list[tuple[float, float, int]]:
    """Temperature, penalty and number of networks of each recipe; seeds all differ."""
    settings = Settings(hidden_layer_sizes=hidden, **changes)
    found = build_recipes(settings, np.random.default_rng(0), 1)
    assert len({recipe.seed for recipe in found}) == len(found)
    return [(recipe.gate_temperature, recipe.init_penalty, recipe.parts) for recipe in found]


def test_recipes_of_the_default() -> None:
    assert starts((50,)) == [(AUTO_TEMPERATURE, *recipe) for recipe in RECIPES]
    alone = starts((50,), n_estimators=1)
    assert alone == [(AUTO_TEMPERATURE, *recipe) for recipe in RECIPES_ALONE]
    for menu in (RECIPES, RECIPES_ALONE):
        assert len(set(menu)) == len(menu)


def test_recipes_that_would_be_the_same_are_tried_once() -> None:
    """Networks of three units at least: of small layers there is but one, whatever is wanted."""
    penalties = list(dict.fromkeys(penalty for penalty, _ in RECIPES))
    assert len(penalties) < len(RECIPES)
    assert starts((5,)) == [(AUTO_TEMPERATURE, penalty, 1) for penalty in penalties]
    assert starts((50, 5)) == starts((5,))
    numbers = list(dict.fromkeys(parts for _, parts in RECIPES))
    given = starts((50,), init_penalty=0.3, gate_temperature=0.2)
    assert given == [(0.2, 0.3, parts) for parts in numbers]
    assert starts((5,), init_penalty=0.3) == [(AUTO_TEMPERATURE, 0.3, 1)]
    assert all(parts <= 2 for _, _, parts in starts((50, 8)))


@pytest.mark.parametrize("settings", [{"init": "laplace"}, {"init": "spike_slab"}, {}], ids=str)
def test_without_a_network_to_start_from_there_is_one_recipe(settings: dict[str, Any]) -> None:
    assert len(starts((50,) if settings else (), **settings)) == 1


@pytest.mark.parametrize("weighting", ["equal", "elbo"])
def test_members_that_are_alike_differ_in_their_seed_alone(weighting: str) -> None:
    found = starts((50,), weighting=weighting, n_estimators=3)
    assert found == [(AUTO_TEMPERATURE, *ALIKE)] * 3
    given = starts((50,), weighting=weighting, n_estimators=2, init_penalty=2.0)
    assert given == [(AUTO_TEMPERATURE, 2.0, ALIKE[1])] * 2


@pytest.mark.parametrize("weighting", ["stacking", "equal"])
def test_every_start_with_every_view(weighting: str) -> None:
    """View by view; those of the first are the recipes of a single view, seeds included."""
    settings = Settings(weighting=weighting)
    alone, found = (build_recipes(settings, np.random.default_rng(0), n) for n in (1, 3))
    assert len(found) == 3 * len(alone)
    assert found[: len(alone)] == alone
    assert [recipe.view for recipe in found] == [v for v in range(3) for _ in alone]
    menu = [(recipe.init_penalty, recipe.parts) for recipe in found]
    assert menu == 3 * menu[: len(alone)]
    assert len({recipe.seed for recipe in found}) == len(found)


def test_recipes_in_turn_with_seeds_of_their_own() -> None:
    recipes = build_recipes(Settings(), np.random.default_rng(0), 1)
    found = repeat(recipes, 2 * len(recipes) + 1, np.random.default_rng(1))
    assert len({recipe.seed for recipe in found}) == len(found)
    penalties = [recipe.init_penalty for recipe in recipes]
    assert [recipe.init_penalty for recipe in found] == [*penalties, *penalties, penalties[0]]


def test_rows_of_a_minibatch() -> None:
    assert batch_rows(17, 10**6) == 17
    assert batch_rows("auto", 10**7) == AUTO_BATCH
    for n_rows in (1, 2, FEWEST_BATCHES, 100, 12_345):
        found = batch_rows("auto", n_rows)
        assert 1 <= found <= AUTO_BATCH
        assert n_rows / found >= min(n_rows, FEWEST_BATCHES)
