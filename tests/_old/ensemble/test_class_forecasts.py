"""Recipes and slopes of classes: what groups of noisy networks may be sure of, linear recipes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.fold_networks import Candidate, SeenRows
from bowtienet._old.ensemble.held_out_forecasts import LEAST_REST, Swept, judged, slope_of_group
from bowtienet._old.ensemble.recipes import (
    FEWEST_UNITS,
    STRONGER,
    possible_parts,
    possible_recipes,
)
from bowtienet._old.ensemble.settings import EFFORTS, Recipe, Settings, hidden_of
from bowtienet._old.inference.start import Networks
from bowtienet._old.model.outcomes import Binary, Classes, Counts, Gaussian
from bowtienet._old.prediction.calibration import calibrate

N_ROWS, N_NETWORKS, CHANCE = 6000, 5, 1.2


def forecasts_of(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Swept]:
    """Targets of planted outputs, and a recipe whose networks have a noise by chance."""
    z = 2.0 * rng.normal(size=(N_ROWS, 1))
    targets = (rng.random(z.shape) < expit(z)).astype(float)
    recipe = Recipe(gate_temperature=0.001, init_penalty=1.0, start_iterations=1, seed=0)
    means = z + CHANCE * rng.normal(size=z.shape)
    swept = judged(
        Candidate(recipe=recipe),
        1,
        targets,
        (means, np.zeros_like(means)),
        np.ones(N_ROWS),
        Binary(),
    )
    return z, targets, swept


def networks_with_spread(count: int) -> list[Networks]:
    """Networks without hidden layers, which are never asked where the spread is known."""
    return [Networks(layers=(np.zeros((1, 1, 2)),)) for _ in range(count)]


def test_slopes_of_groups_are_those_of_their_means(rng: np.random.Generator) -> None:
    """The slope of a mean of five noisy outputs, from that of single ones: within 4 %."""
    z, targets, swept = forecasts_of(rng)
    mean = z + CHANCE / math.sqrt(N_NETWORKS) * rng.normal(size=z.shape)
    wanted, _, _ = calibrate(Binary(), targets, mean, np.zeros_like(mean), np.ones(N_ROWS))
    swept = Swept(**{**vars(swept), "by_chance": np.array([CHANCE**2])})
    rows = Rows(inputs=np.zeros((2, 1)), targets=np.zeros((2, 1)), weights=np.ones(2))
    found = slope_of_group(swept, swept.slope, networks_with_spread(N_NETWORKS), rows, Binary())
    # A little more than that of the mean, for what the disagreement of members takes away again.
    rest = max(1.0 - math.pi / 8.0 * wanted**2 * CHANCE**2, LEAST_REST)
    assert found == pytest.approx(wanted / math.sqrt(rest), rel=0.06)
    assert found > wanted > 1.2 * swept.slope
    assert slope_of_group(swept, 0.7, networks_with_spread(1), rows, Binary()) == 0.7
    assert slope_of_group(swept, 1.0, networks_with_spread(3), rows, Counts()) == 1.0


def seen_rows(n_rows: int = 60) -> list[SeenRows]:
    rows = Rows(
        inputs=np.zeros((n_rows, 4)), targets=np.zeros((n_rows, 1)), weights=np.ones(n_rows)
    )
    return [SeenRows(rows=rows, log_slopes=np.zeros(n_rows), groups=np.arange(4))]


@pytest.mark.parametrize("outcome", [Binary(), Classes(n_classes=3), Counts()])
def test_linear_recipes_take_part_for_classes_and_counts(outcome) -> None:
    settings = Settings(outcome=outcome)
    found = possible_recipes(seen_rows(), settings, np.random.default_rng(0))
    lines = [recipe for recipe in found if recipe.linear]
    penalties = EFFORTS["balanced"].penalties
    assert {one.init_penalty for one in lines} == {*penalties, STRONGER * max(penalties)}
    assert all(hidden_of(one, settings) == () for one in lines)
    assert all(hidden_of(one, settings) == (50,) for one in found if not one.linear)


def test_numbers_have_networks_alone() -> None:
    found = possible_recipes(seen_rows(), Settings(outcome=Gaussian()), np.random.default_rng(0))
    assert not any(recipe.linear for recipe in found)


@pytest.mark.parametrize(("n_classes", "parts"), [(3, [1, 2, 5]), (10, [1, 2]), (20, [1])])
def test_more_classes_ask_for_more_units(n_classes: int, parts: list[int]) -> None:
    settings = Settings(outcome=Classes(n_classes=n_classes))
    found = possible_recipes(seen_rows(), settings, np.random.default_rng(0))
    assert sorted({one.parts for one in found if not one.linear}) == parts
    assert possible_parts((50,), (1, 2, 5), FEWEST_UNITS) == [1, 2, 5]
