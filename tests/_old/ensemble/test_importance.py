"""Losses by permuted columns against plain loops, and errors against the spread of new rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble import importance
from bowtienet._old.ensemble.ensemble import Ensemble, mean_and_deviation, mixture
from bowtienet._old.ensemble.importance import draw_donors, permutation_losses, total_effects
from bowtienet._old.prediction.levels import Levels
from bowtienet._old.representation.background import Background
from tests._old.ensemble.fits import bent_table, viewed_ensemble

N, REPEATS = 12, 3


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    """Four views, and noise that differs between rows."""
    found = viewed_ensemble(bent_table(), max_iter=3)
    levels = Levels(
        scale=np.array([[0.5], [2.0]]),
        gates=np.array([[[0.3], [1.0], [-0.7]]]),
        columns=np.array([0, 1]),
    )
    return replace(found, levels=levels)


@pytest.fixture(scope="module")
def rows() -> Rows:
    X, y = bent_table(N, seed=1)
    return Rows(inputs=X, targets=y[:, None], weights=np.linspace(0.5, 2.0, N))


# Who gives its values to whom


def test_equal_weights_make_permutations(rng: np.random.Generator) -> None:
    for found in draw_donors(np.full(20, 0.1), 30, rng):
        assert sorted(found) == list(range(20))


def test_rows_give_in_proportion_to_their_weights(rng: np.random.Generator) -> None:
    """Each to each; of 4,000 repeats shares are known to 0.008, and five times that is allowed."""
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    donors = draw_donors(weights, 4000, rng)
    for row in range(4):
        shares = np.bincount(donors[:, row], minlength=4) / 4000
        np.testing.assert_allclose(shares, weights / 10.0, atol=0.04)


# What permuted columns cost


def slow_scores(ensemble: Ensemble, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Log density and squared error of one row."""
    found = mixture(ensemble, x[None, :])
    return np.array([found.logpdf(y[None, :])[0], (y - found.mean()[0]) ** 2])


@pytest.mark.parametrize("groups", [[0, 1], [0, 0]], ids=["columns", "one group"])
@pytest.mark.parametrize("chunk", [1, 32_768])
def test_losses_and_errors_are_those_of_plain_loops(
    ensemble: Ensemble,
    rows: Rows,
    groups: list[int],
    chunk: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importance, "CHUNK_ROWS", chunk)
    places = np.asarray(groups)
    found = permutation_losses(ensemble, rows, places, REPEATS, np.random.default_rng(3))
    donors = draw_donors(rows.weights, REPEATS, np.random.default_rng(3))
    total = rows.weights.sum()
    before = np.array(
        [slow_scores(ensemble, x, y) for x, y in zip(rows.inputs, rows.targets, strict=True)]
    )[..., 0]
    scores = np.sum(rows.weights[:, None] * before, axis=0) / total
    np.testing.assert_allclose(found.log_density, scores[:1], rtol=1e-9)
    np.testing.assert_allclose(found.rmse, np.sqrt(scores[1:]), rtol=1e-9)
    for group in set(groups):
        change = np.zeros((N, REPEATS, 2))
        for i in range(N):
            for r in range(REPEATS):
                x = rows.inputs[i].copy()
                x[places == group] = rows.inputs[donors[r, i], places == group]
                change[i, r] = slow_scores(ensemble, x, rows.targets[i])[:, 0] - before[i]
        loss = sum(rows.weights[i] * change[i].mean(axis=0) for i in range(N)) / total
        moved = np.zeros((N, 2))
        for i in range(N):
            moved[i] += rows.weights[i] * (change[i].mean(axis=0) - loss) / total
            for r in range(REPEATS):
                apart = change[i, r] - change[i].mean(axis=0)
                moved[donors[r, i]] += rows.weights[i] * apart / ((REPEATS - 1) * total)
        np.testing.assert_allclose(found.log_density_drop[group], [-loss[0]], rtol=1e-8)
        error = np.sqrt(np.sum(moved[:, 0] ** 2))
        np.testing.assert_allclose(found.log_density_error[group], [error], rtol=1e-8)
        after = np.sqrt(scores[1] + loss[1])
        np.testing.assert_allclose(found.rmse_rise[group], [after - np.sqrt(scores[1])], rtol=1e-8)
        own = rows.weights * (before[:, 1] - scores[1]) / total
        rise = (moved[:, 1] + own) / (2.0 * after) - own / (2.0 * np.sqrt(scores[1]))
        error = np.sqrt(np.sum(rise**2))
        np.testing.assert_allclose(found.rmse_error[group], [error], rtol=1e-8)


def test_errors_are_the_spread_over_new_rows(ensemble: Ensemble) -> None:
    """150 tables of 60 rows: a spread is known to 6 % and errors vary, so 0.8 to 1.4 is allowed."""
    drops, errors = [], []
    for seed in range(150):
        X, y = bent_table(60, seed=500 + seed)
        rows = Rows(inputs=X, targets=y[:, None], weights=np.ones(60))
        found = permutation_losses(ensemble, rows, np.arange(2), 4, np.random.default_rng(seed))
        drops.append([found.log_density_drop[:, 0], found.rmse_rise[:, 0]])
        errors.append([found.log_density_error[:, 0], found.rmse_error[:, 0]])
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(drops, axis=0)
    assert np.all((ratio > 0.8) & (ratio < 1.4))


def test_total_effects_are_those_of_plain_loops(ensemble: Ensemble, rows: Rows) -> None:
    background = Background(features=rows.inputs, weights=rows.weights)
    found = total_effects(ensemble, background, np.random.default_rng(5))
    repeats = importance.EFFECT_REPEATS
    donors = draw_donors(rows.weights, repeats, np.random.default_rng(5))
    unit = float(ensemble.representation.target_scaling.scale[0])
    before = mean_and_deviation(ensemble, rows.inputs)[0][:, 0]
    for column in range(2):
        effect = 0.0
        for own in donors:
            x = rows.inputs.copy()
            x[:, column] = rows.inputs[own, column]
            moved = (mean_and_deviation(ensemble, x)[0][:, 0] - before) / unit
            effect += 0.5 * np.average(moved**2, weights=rows.weights) / repeats
        np.testing.assert_allclose(found[column], effect, rtol=1e-9)
