"""Rows outside the range of training: variances, covariances and draws of one model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.prediction.outside import (
    Outside,
    check_outside,
    draw_outside,
    excess,
    outside_covariances,
    outside_variances,
)

OUTSIDE = Outside(
    low=np.array([-1.0, -2.0, 0.0]),
    high=np.array([1.0, 0.5, 0.0]),
    slope_variances=np.random.default_rng(0).gamma(2.0, size=(2, 3, 2)),
    bounded=np.array([False, True]),
)
X = np.random.default_rng(1).normal(0.0, 2.0, size=(7, 3))


def test_variances_are_those_of_the_sum_row_by_row() -> None:
    found = outside_variances(OUTSIDE, X)
    for group, n, d in np.ndindex(2, 7, 2):
        expected = 0.0
        for j in range(3):
            away = max(OUTSIDE.low[j] - X[n, j], X[n, j] - OUTSIDE.high[j], 0.0)
            expected += OUTSIDE.slope_variances[group, j, d] * away**2
        if group == 1:
            expected = expected / (1.0 + expected)
        np.testing.assert_allclose(found[group, n, d], expected, rtol=1e-12)


def test_nothing_changes_inside() -> None:
    inside = np.random.default_rng(2).uniform(OUTSIDE.low, OUTSIDE.high, size=(20, 3))
    assert not outside_variances(OUTSIDE, inside).any()
    assert not excess(OUTSIDE, inside).any()


def test_covariances_have_the_variances_on_their_diagonal_and_the_sides_apart() -> None:
    found = outside_covariances(OUTSIDE, X)
    diagonal = np.einsum("gnnd->gnd", found)
    np.testing.assert_allclose(diagonal, outside_variances(OUTSIDE, X), rtol=1e-12)
    below_and_above = np.array([[-3.0, 0.0, 0.0], [3.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    apart = outside_covariances(OUTSIDE, below_and_above)
    assert not apart[:, 0, 1:].any()
    np.testing.assert_allclose(apart[0, 1, 2], 6.0 * OUTSIDE.slope_variances[0, 0], rtol=1e-12)


def test_draws_have_these_covariances() -> None:
    """Over 4,000 draws, within five standard errors of each variance."""
    rng = np.random.default_rng(3)
    draws = np.stack([draw_outside(OUTSIDE, X, 1, rng) for _ in range(4000)])
    expected = outside_covariances(OUTSIDE, X)[1]
    found = np.einsum("knd,kmd->nmd", draws, draws) / 4000
    own = np.einsum("nnd->nd", expected)
    error = np.sqrt((own[:, None] * own[None] + expected**2) / 4000)
    assert np.all(np.abs(found - expected) <= 5.0 * error + 1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"low": np.zeros(2)},
        {"low": np.array([2.0, -2.0, 0.0])},
        {"high": np.array([1.0, np.inf, 0.0])},
        {"slope_variances": np.ones((1, 3, 2))},
        {"slope_variances": -OUTSIDE.slope_variances},
        {"bounded": np.array([True])},
    ],
    ids=str,
)
def test_ranges_of_other_columns_are_refused(change: dict[str, Any]) -> None:
    check_outside(OUTSIDE, 3, 2, 2)
    with pytest.raises(ValueError, match="ranges of the columns"):
        check_outside(replace(OUTSIDE, **change), 3, 2, 2)
