"""The temperature of the gates, recipes in turn, and rows of a minibatch."""

from __future__ import annotations

import numpy as np

from bowtienet._old.ensemble.settings import (
    AUTO_BATCH,
    AUTO_TEMPERATURE,
    FEWEST_BATCHES,
    Recipe,
    Settings,
    batch_rows,
    gate_temperature,
    repeat,
)


def test_the_temperature_of_the_gates() -> None:
    assert gate_temperature(Settings()) == AUTO_TEMPERATURE == 0.001
    assert gate_temperature(Settings(gate_temperature=0.2)) == 0.2


def test_recipes_in_turn_with_seeds_of_their_own() -> None:
    penalties = [0.1, 2.0, 7.0]
    recipes = [
        Recipe(gate_temperature=0.1, init_penalty=penalty, start_iterations=5, seed=0)
        for penalty in penalties
    ]
    found = repeat(recipes, 2 * len(recipes) + 1, np.random.default_rng(1))
    assert len({recipe.seed for recipe in found}) == len(found)
    assert [recipe.init_penalty for recipe in found] == [*penalties, *penalties, penalties[0]]


def test_rows_of_a_minibatch() -> None:
    assert batch_rows(17, 10**6) == 17
    assert batch_rows("auto", 10**7) == AUTO_BATCH
    for n_rows in (1, 2, FEWEST_BATCHES, 100, 12_345):
        found = batch_rows("auto", n_rows)
        assert 1 <= found <= AUTO_BATCH
        assert n_rows / found >= min(n_rows, FEWEST_BATCHES)
