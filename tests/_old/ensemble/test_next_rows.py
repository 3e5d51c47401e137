"""The batch is what conditioning of a joint Gaussian says, and far rows teach more than near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieClassifier, BowTieRegressor
from bowtienet._old.ensemble import next_rows
from bowtienet._old.ensemble.ensemble import components
from bowtienet._old.ensemble.next_rows import informative_rows, telling_rows, uncertainty
from tests._old.estimators import models


def small(**changes: Any) -> BowTieRegressor:
    return models.small(**({"tol": 1.0} | changes))


def left_over(covariance: np.ndarray, noise: np.ndarray, measured: list[int]) -> np.ndarray:
    """Var[f_j | y of the measured rows], by the dense formula."""
    among = covariance[np.ix_(measured, measured)] + np.diag(noise[measured])
    across = covariance[measured]
    return np.diagonal(covariance - across.T @ np.linalg.solve(among, across))


def test_each_row_is_the_best_one_beside_those_before(rng: np.random.Generator) -> None:
    factors = rng.normal(size=(2, 12, 4))
    covariance = np.einsum("dik,djk->ijd", factors, factors)
    noise, to_predict = rng.uniform(0.1, 2.0, size=(9, 2)), np.array([9, 10, 11, 4])
    chosen: list[int] = []
    for _ in range(4):
        rest = [row for row in range(9) if row not in chosen]
        totals = [
            sum(
                left_over(covariance[..., d], noise[:, d], [*chosen, row])[to_predict].sum()
                for d in range(2)
            )
            for row in rest
        ]
        chosen.append(rest[int(np.argmin(totals))])
    assert_array_equal(telling_rows(covariance, noise, 4, to_predict), chosen)
    assert sorted(telling_rows(covariance, noise, 9, to_predict)) == list(range(9))


def test_information_counts_as_far_as_it_is_not_told_already() -> None:
    """Two rows that say the same, and one that says something else, with less information."""
    covariance = np.array([[1.0, 0.99, 0.0], [0.99, 1.0, 0.0], [0.0, 0.0, 1.0]])[..., None]
    information, noise = np.array([1.0, 0.9, 0.3]), np.full((3, 1), 0.01)
    assert informative_rows(information, covariance, noise, 3).tolist() == [0, 2, 1]
    assert informative_rows(information, covariance, noise + 100.0, 3).tolist() == [0, 1, 2]


def test_rows_without_any_variance_teach_nothing() -> None:
    covariance, noise = np.zeros((3, 3, 1)), np.array([[0.0], [0.0], [1.0]])
    covariance[1, 1] = 2.0
    assert telling_rows(covariance, noise, 2, np.arange(3))[0] == 1


def test_covariance_is_that_of_the_function_in_units_of_the_targets() -> None:
    X, y = models.rows()
    model = small().fit(X, np.column_stack([y, 1000.0 * y]))
    found, noise = uncertainty(model.ensemble_, X[:7], np.random.default_rng(0))
    _, epistemic, own_noise = components(model.ensemble_, X[:7])
    scale = model.ensemble_.representation.target_scaling.scale**2
    assert_allclose(np.einsum("iid->id", found), epistemic / scale)
    assert_allclose(noise, own_noise / scale)
    assert_allclose(found, np.swapaxes(found, 0, 1), atol=1e-12)
    assert_allclose(found[..., 0], found[..., 1], rtol=1e-6, atol=1e-9)


def near_and_far() -> tuple[np.ndarray, np.ndarray]:
    """Rows of the data, and two places far from them, each several times over."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(80, 2))
    far = np.repeat([[4.0, 0.0], [0.0, -4.0]], 5, axis=0)
    return X, np.concatenate([X[:20], far + 0.01 * np.arange(10)[:, None]])


@pytest.mark.parametrize("outcome", ["gaussian", "counts", "classes"])
def test_the_first_two_rows_are_in_the_two_places_that_are_not_known(outcome: str) -> None:
    X, candidates = near_and_far()
    rng = np.random.default_rng(1)
    signal = np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2
    settings: dict[str, Any] = {"effort": "fast", "n_estimators": 2, "random_state": 0}
    model: Any
    if outcome == "classes":
        labels = np.where(signal + 0.3 * rng.normal(size=80) > 0.3, "b", "a")
        model = BowTieClassifier((5,), **settings).fit(X, labels)
    elif outcome == "counts":
        model = BowTieRegressor((5,), outcome="counts", **settings)
        model.fit(X, rng.poisson(np.exp(1.0 + signal)))
    else:
        model = small().fit(X, signal + 0.1 * rng.normal(size=80))
    found = model.next_points(candidates, 2)
    assert set(found.tolist()) <= set(range(20, 30))
    if outcome == "gaussian":
        assert {place // 25 for place in found.tolist()} == {0, 1}
        # What is asked for decides: only the first of the two places is to be predicted.
        found = model.next_points(candidates, 2, to_predict=candidates[20:25])
        assert set(found.tolist()) <= set(range(20, 25))


def test_of_many_candidates_a_sample_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = models.rows()
    model = small().fit(X, y)
    monkeypatch.setattr(next_rows, "MOST_CANDIDATES", 10)
    found = [model.next_points(X, 3, random_state=seed).tolist() for seed in range(4)]
    assert found == [model.next_points(X, 3, random_state=seed).tolist() for seed in range(4)]
    assert len({tuple(one) for one in found}) > 1
    assert all(len(set(one)) == 3 and max(one) < 60 for one in found)
    assert len(model.next_points(X, 30)) == 30
    monkeypatch.setattr(next_rows, "MOST_TO_PREDICT", 1)
    found = [model.next_points(X[:10], 1, to_predict=X, random_state=seed)[0] for seed in range(9)]
    assert len(set(found)) > 1
    with pytest.raises(ValueError, match="n is 61"):
        model.next_points(X, 61)
