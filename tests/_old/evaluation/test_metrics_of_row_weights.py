"""Scores of forecasts whose weights belong to rows, against those of one row at a time."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from bowtienet._old.evaluation import metrics
from bowtienet._old.evaluation.metrics import calibration_curve, crps, evaluate, pit
from tests._old.prediction.test_row_weights import KINDS, alone, both_kinds, random_mixture


@both_kinds
@pytest.mark.parametrize("base", [(8,), (5, 2)], ids=str)
def test_crps_row_by_row(kind: str, base: tuple[int, ...], rng: np.random.Generator) -> None:
    mixture = random_mixture(kind, rng, 4, base)
    y = mixture.rvs(random_state=1)
    scores = [crps(y[cell][None], alone(mixture, cell)) for cell in np.ndindex(base)]
    assert crps(y, mixture) == pytest.approx(np.mean(scores), rel=1e-13)


@both_kinds
def test_crps_by_draws(kind: str) -> None:
    """E|X - y| - ½ E|X - X'| of 100,000 pairs; five standard errors, 6e-7, for each row."""
    mixture = random_mixture(kind, np.random.default_rng(5), 3, (4,))
    y = mixture.rvs(random_state=0)
    one, two = mixture.rvs(100_000, 1), mixture.rvs(100_000, 2)
    terms = np.abs(one - y) - 0.5 * np.abs(one - two)
    scores = [crps(y[row : row + 1], mixture.of_rows(slice(row, row + 1))) for row in range(4)]
    error = np.abs(terms.mean(axis=0) - scores)
    assert np.all(error < 5.0 * terms.std(axis=0) / np.sqrt(len(terms)))


@both_kinds
def test_components_have_no_part_in_rows_without_weight(
    kind: str, rng: np.random.Generator
) -> None:
    mixture = random_mixture(kind, rng, 4, (20,))
    y, missing = mixture.rvs(random_state=1), mixture.weights == 0.0
    assert missing.any()
    other = replace(
        mixture,
        means=np.where(missing, 1e90, mixture.means),
        deviations=np.where(missing, 1e90, mixture.deviations),
    )
    assert crps(y, other) == pytest.approx(crps(y, mixture), rel=1e-13)


@both_kinds
def test_blocks_do_not_matter(
    kind: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = random_mixture(kind, rng, 4, (17, 2))
    y = mixture.rvs(random_state=1)
    whole = crps(y, mixture)
    monkeypatch.setattr(metrics, "_BLOCK", 500)
    assert crps(y, mixture) == pytest.approx(whole, rel=1e-13)


@both_kinds
@pytest.mark.parametrize("base", [(30,), (10, 2)], ids=str)
def test_every_score_with_equal_weights_in_all_rows(
    kind: str, base: tuple[int, ...], rng: np.random.Generator
) -> None:
    shared = KINDS[kind](rng, 4, base)
    rows = np.broadcast_to(shared.weights.reshape(-1, *[1] * len(base)), shared.means.shape)
    mixture, y = replace(shared, weights=rows.copy()), shared.rvs(random_state=1)
    assert asdict(evaluate(y, mixture)) == pytest.approx(asdict(evaluate(y, shared)), rel=1e-13)
    np.testing.assert_array_equal(pit(y, mixture), pit(y, shared))
    np.testing.assert_array_equal(calibration_curve(y, mixture), calibration_curve(y, shared))
