"""Finite in, finite out: rows of any size have finite predictions, and uncertainty that grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests._old.estimators import class_models, models

X, Y = models.rows()
COUNTS = np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 0]))
CLASSES = np.digitize(Y, [-1.0, 1.0])
SIZES = {np.float32: [1e7, 1e20], np.float64: [1e7, 1e20, 1e140, 1e155, 1e300]}

pytestmark = pytest.mark.filterwarnings("ignore:max_iter:sklearn.exceptions.ConvergenceWarning")


def far_rows(dtype: Any) -> np.ndarray:
    """One column far away, all of them, and those at the end of the numbers."""
    sizes = [*SIZES[dtype], float(np.finfo(dtype).max)]
    directions = np.array([[1, 0, 0], [-1, 0, 0], [1, -1, 1]])
    return np.concatenate([size * directions for size in sizes]).astype(dtype)


def assert_finite(answers: dict[str, Any]) -> None:
    for name, answer in answers.items():
        for part in answer if isinstance(answer, tuple) else (answer,):
            assert np.isfinite(part).all(), name


def small(**changes: Any) -> Any:
    """One member after two sweeps."""
    return models.small(**({"max_iter": 2, "n_estimators": 1, "init_penalty": 1.0} | changes))


REGRESSIONS: dict[str, Callable[[], Any]] = {
    "default route": lambda: models.stacked().fit(X, Y),
    "bins and a warp": lambda: models.stacked(
        features="piecewise", target_transform="yeo-johnson"
    ).fit(X, np.exp(Y)),
    "raw numbers and a warp": lambda: small(
        features="standard", target_transform="yeo-johnson"
    ).fit(X, np.exp(Y)),
    "several layers": lambda: small(hidden_layer_sizes=(4, 3, 3)).fit(X, Y),
    "variational": lambda: small(hidden_layer_sizes=(4, 3), propagation="variational").fit(X, Y),
    "principal": lambda: small(features="principal").fit(X, Y),
    "two targets": lambda: small().fit(X, np.stack([Y, Y**2], axis=1)),
    "outliers": lambda: models.stacked(outcome="student_t").fit(X, Y),
    "single precision": lambda: small().fit(X.astype(np.float32), Y.astype(np.float32)),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_predictions_of_far_rows_are_finite(name: str) -> None:
    model = REGRESSIONS[name]()
    for dtype in SIZES:
        far = far_rows(dtype)
        found = model.predict_dist(far)
        zeros = (
            np.zeros((len(far), model.n_outputs_)) if model.n_outputs_ > 1 else np.zeros(len(far))
        )
        assert_finite(
            {
                "std": model.predict(far, return_std=True),
                "cov": model.predict(far, return_cov=True),
                "interval": model.predict_interval(far, coverage=0.99),
                "quantiles": model.predict_quantiles(far, [1e-9, 0.5, 1.0 - 1e-9]),
                "components": tuple(model.predict_components(far)),
                "moments": (found.mean(), found.std(), found.var()),
                "log density": (found.logpdf(zeros), model.log_score(far, zeros)),
                "joint": model.sample_y(far, 2, joint=True),
                "functions": model.sample_y(far, 2, joint=True, noise=False),
                "rows": model.sample_y(far, 2),
                "means": model.sample_y(far, 2, noise=False),
            }
        )


@pytest.mark.parametrize("propagation", ["push_forward", "variational"])
def test_counts_of_far_rows_are_finite(propagation: str) -> None:
    model = small(outcome="counts", propagation=propagation).fit(X, COUNTS)
    for dtype in SIZES:
        far = far_rows(dtype)
        found = model.predict_dist(far)
        assert_finite(
            {
                "std": model.predict(far, return_std=True),
                "interval": model.predict_interval(far),
                "components": tuple(model.predict_components(far)),
                "log probability": found.logpmf(np.zeros(len(far))),
                "joint": model.sample_y(far, 2, joint=True),
                "rows": model.sample_y(far, 2),
            }
        )


@pytest.mark.parametrize(
    ("labels", "propagation"),
    [(Y > 0.0, "push_forward"), (CLASSES, "push_forward"), (CLASSES, "variational")],
    ids=["two classes", "three classes", "variational"],
)
def test_probabilities_of_far_rows_are_finite(labels: np.ndarray, propagation: str) -> None:
    model = class_models.small(propagation=propagation).fit(X, labels)
    for dtype in SIZES:
        far = far_rows(dtype)
        proba = model.predict_proba(far)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert_finite(
            {
                "proba": proba,
                "components": tuple(model.predict_components(far)),
                "draws": model.sample_proba(far, 2),
                "joint": model.sample_proba(far, 2, joint=True),
                "score": model.log_score(far, np.resize(model.classes_, len(far))),
            }
        )


@pytest.mark.parametrize("features", ["standard", "piecewise"])
def test_uncertainty_goes_on_growing(features: str) -> None:
    model = small(features=features).fit(X, Y)
    far = np.zeros((9, 3))
    far[:, 0] = [10.0, 1e3, 1e6, 1e8, 1e20, 1e100, 1e200, 1e300, np.finfo(float).max]
    _, deviation = model.predict(far, return_std=True)
    assert np.all(np.diff(deviation) > 0.0)
    low, high = model.predict_interval(far).T
    assert np.all(np.diff(high - low) > 0.0)


def test_units_of_columns_do_not_matter_to_far_rows() -> None:
    """Scales that single precision cannot hold, and columns near the ends of the numbers."""
    unit = np.array([1e-60, 1e-300, 1e300])
    model = small().fit(X * unit, Y)
    for dtype in SIZES:
        assert_finite({"std": model.predict(far_rows(dtype), return_std=True)})


def test_rows_of_training_may_be_as_far() -> None:
    """1e300 in one row; and in one that hardly counts, which has no part in the column's scale."""
    table, weights = X.copy(), np.ones(len(X))
    table[5, 0] = 1e300
    for weight in (1.0, 1e-30):
        weights[5] = weight
        model = small().fit(table, Y, sample_weight=weights)
        assert_finite({"std": model.predict(table, return_std=True)})


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_what_is_not_finite_is_refused_as_before(value: float) -> None:
    model, table = small().fit(X, Y), X[:2].copy()
    table[1, 0] = value
    with pytest.raises(ValueError, match="infin"):
        model.predict(table)
