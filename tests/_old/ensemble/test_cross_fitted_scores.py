"""Scores of held-out rows: against plain formulas, with weights, and what files may hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score

from bowtienet._old.evaluation import evaluate_classes
from bowtienet._old.prediction.cross_fitted import (
    BINS,
    LEVELS,
    CrossFitted,
    check_cross_fitted,
    score_classes,
    score_counts,
    score_numbers,
)


def numbers(rng: np.random.Generator, weights: np.ndarray) -> tuple[CrossFitted, np.ndarray]:
    means = rng.normal(size=(len(weights), 2))
    targets = means + rng.normal(size=means.shape)
    logs, values = stats.norm.logpdf(targets - means), stats.norm.cdf(targets - means)
    return score_numbers(targets, means, logs, values, weights), np.stack([targets, means])


def test_scores_of_numbers_are_those_of_scikit_learn(rng: np.random.Generator) -> None:
    weights = rng.integers(1, 4, size=40).astype(float)
    found, (targets, means) = numbers(rng, weights)
    for d in range(2):
        r2, rmse, mae, log_density, coverage = found.scores[d]
        given = targets[:, d], means[:, d]
        assert r2 == pytest.approx(r2_score(*given, sample_weight=weights))
        assert mae == pytest.approx(mean_absolute_error(*given, sample_weight=weights))
        errors = given[0] - given[1]
        assert rmse == pytest.approx(np.sqrt(np.average(errors**2, weights=weights)))
        logs = stats.norm.logpdf(errors)
        assert log_density == pytest.approx(np.average(logs, weights=weights))
        inside = np.abs(errors) <= stats.norm.ppf(0.95)
        assert coverage == pytest.approx(np.average(inside, weights=weights))
    place = np.argmin(np.abs(LEVELS - 0.5))
    inside = np.abs(targets - means) <= stats.norm.ppf(0.75)
    np.testing.assert_allclose(
        found.observed[:, place], np.average(inside, axis=0, weights=weights)
    )


def test_a_row_of_weight_two_counts_twice(rng: np.random.Generator) -> None:
    probabilities = rng.dirichlet(np.ones(3), size=30)
    codes, weights = rng.integers(3, size=30), rng.integers(1, 3, size=30)
    one = score_classes(codes, probabilities, weights.astype(float))
    rows = np.repeat(np.arange(30), weights)
    two = score_classes(codes[rows], probabilities[rows], np.ones(len(rows)))
    np.testing.assert_allclose(one.scores, two.scores)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(
    n_classes: int, rng: np.random.Generator
) -> None:
    probabilities = rng.dirichlet(np.ones(n_classes), size=200)
    codes = rng.integers(n_classes, size=200)
    found = score_classes(codes, probabilities, np.ones(200))
    right, loss, brier = found.scores[0]
    assert right == pytest.approx(accuracy_score(codes, probabilities.argmax(axis=1)))
    assert loss == pytest.approx(log_loss(codes, probabilities))
    known = np.arange(n_classes)
    assert brier == pytest.approx(evaluate_classes(codes, probabilities, known).brier_score)
    judged = probabilities[:, 1] if n_classes == 2 else probabilities.max(axis=1)
    came = codes == 1 if n_classes == 2 else probabilities.argmax(axis=1) == codes
    bins = np.array_split(np.argsort(judged, kind="stable"), BINS)
    np.testing.assert_allclose(found.nominal[0], [judged[rows].mean() for rows in bins])
    np.testing.assert_allclose(found.observed[0], [came[rows].mean() for rows in bins])
    assert found.counts.tolist() == [[20.0] * BINS]


def test_scores_of_counts() -> None:
    counts, means = np.array([0.0, 3.0, 5.0]), np.array([1.0, 3.0, 3.0])
    intervals = np.array([[0.0, 2.0], [1.0, 4.0], [1.0, 4.0]])
    logs, values = np.array([-1.0, -2.0, -3.0]), np.array([0.1, 0.5, 0.99])
    found = score_counts(counts, means, logs, intervals, values, np.ones(3))
    expected = [np.sqrt(5.0 / 3.0), 1.0, -2.0, 2.0 / 3.0]
    np.testing.assert_allclose(found.scores[0], expected)
    assert found.observed[0, -1] == pytest.approx(2.0 / 3.0)


def test_what_files_may_hold(rng: np.random.Generator) -> None:
    found, _ = numbers(rng, np.ones(20))
    check_cross_fitted(found, 2)
    for wrong in (
        replace(found, scores=found.scores[:1]),
        replace(found, scores=np.full((2, 5), np.nan)),
        replace(found, observed=found.observed[:, :3]),
        replace(found, counts=-found.counts),
        "scores",
    ):
        with pytest.raises(ValueError, match="held-out rows"):
            check_cross_fitted(wrong, 2)
