"""scikit-learn's own checks, and what holds for all five estimators."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor

# Few and short fits: the contract asks little of how well they predict.
SMALL: dict[str, Any] = {"hidden_layer_sizes": (5,), "n_members": 2}
RANDOM_START = {**SMALL, "init": "laplace", "max_iter": 60}
QUICK: dict[str, Any] = {"hidden_layer_sizes": (5,), "effort": "fast"}


PRACTICAL = (BowTieRegressor, BowTieClassifier, BowTieCountRegressor)
NO_COUNTS = (
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_regressor_data_not_an_array",
    "check_regressors_train",
    "check_supervised_y_2d",
)
"""Checks whose targets are fractions or negative, which no tag can tell them."""


def expected_failures(estimator: Any) -> dict[str, str]:
    """Minibatches of ReLU networks are of rows; counts are whole numbers."""
    if getattr(estimator, "init", "relu_network") != "relu_network":
        return {}
    reason = "ReLU networks are trained on minibatches of rows: repeated rows are other batches"
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    failures = dict.fromkeys(names, reason)
    if isinstance(estimator, BowTieCountRegressor):
        failures |= dict.fromkeys(NO_COUNTS, "the targets of this check are no counts")
    return failures


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        BowTieNetwork(**RANDOM_START),
        BowTieNetwork(**SMALL),
        BowTieNetworkClassifier(**{**RANDOM_START, "max_iter": 20}),
        BowTieRegressor(**QUICK),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        BowTieNetworkClassifier(**SMALL),
        BowTieClassifier(**QUICK),
        BowTieCountRegressor(**QUICK),
    ],
    expected_failed_checks=expected_failures,
)
def test_contract_of_classes_and_counts(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("cls", "init"),
    [(BowTieNetwork, "laplace"), (BowTieNetwork, "relu_network"), *((c, "") for c in PRACTICAL)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weight_zero_is_removal_to_the_bit(cls: Any, init: str, rng: np.random.Generator) -> None:
    settings = {**SMALL, "init": init, "max_iter": 10} if init else QUICK
    X, y, weights = rng.normal(size=(50, 3)), rng.integers(0, 3, size=50), np.arange(50) % 4
    far, kept = np.where(weights[:, None] > 0, X, 1e3), weights > 0
    whole = cls(**settings, random_state=0).fit(far, y, weights)
    apart = cls(**settings, random_state=0).fit(X[kept], y[kept], weights[kept])
    answer = "predict_proba" if cls is BowTieClassifier else "predict_quantiles"
    assert_array_equal(getattr(whole, answer)(X), getattr(apart, answer)(X))


@pytest.mark.parametrize("cls", [BowTieNetwork, BowTieNetworkClassifier, *PRACTICAL])
def test_tags_say_what_tables_may_hold(cls: Any) -> None:
    tags = get_tags(cls())
    kind = "classifier" if "Classifier" in cls.__name__ else "regressor"
    assert tags.estimator_type == kind
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert tags.target_tags.required
    assert tags.target_tags.multi_output == (cls in (BowTieNetwork, BowTieRegressor))


FIVE: tuple[tuple[Any, dict[str, Any]], ...] = (
    (BowTieNetwork, {**SMALL, "max_iter": 3}),
    (BowTieNetworkClassifier, {**SMALL, "max_iter": 3}),
    *((cls, QUICK) for cls in PRACTICAL),
)
five = pytest.mark.parametrize(("cls", "settings"), FIVE)
limited = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:rows lie far outside"
)


def small_fit(cls: Any, settings: dict[str, Any], n: int = 40, **kept: Any) -> tuple[Any, Any, Any]:
    """An estimator of a few rows whose targets suit all five, and these rows."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.arange(n) % 3
    return cls(**settings, random_state=0).fit(kept.get("X", X), y), X, y


def answer(model: Any, X: Any) -> np.ndarray:
    """Probabilities, or quantiles."""
    ask = "predict_proba" if hasattr(model, "classes_") else "predict_quantiles"
    return np.asarray(getattr(model, ask)(X))


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "byte-swapped": lambda x: x.astype(">f8"),
    "Fortran": np.asfortranarray,
    "objects": lambda x: x.astype(object),
    "frame of objects": lambda x: pd.DataFrame(x).astype(object),
}


@limited
@five
def test_every_layout_of_an_array_is_the_same_table(cls: Any, settings: dict[str, Any]) -> None:
    model, X, _ = small_fit(cls, settings)
    expected = answer(model, X)
    for name, layout in LAYOUTS.items():
        other, _, _ = small_fit(cls, settings, X=layout(X.copy()))
        assert_array_equal(answer(other, layout(X.copy())), expected, err_msg=name)


@limited
@five
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_handful_of_rows(cls: Any, settings: dict[str, Any], n: int) -> None:
    """An answer in numbers, or one sentence; never an error of arithmetic."""
    try:
        model, X, _ = small_fit(cls, settings, n)
    except ValueError as error:
        assert 20 < len(str(error)) < 300  # noqa: PT017 (either is right)
        assert n == 1
    else:
        assert np.isfinite(answer(model, X)).all()


@limited
@five
def test_answers_of_frames_are_arrays(cls: Any, settings: dict[str, Any]) -> None:
    """So that the two ends of intervals unpack to numbers, and not to names of columns."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    model, _, _ = small_fit(cls, settings, X=X)
    if hasattr(model, "classes_"):
        assert type(model.predict_proba(X)) is type(model.predict(X)) is np.ndarray
        return
    low, high = model.predict_interval(X).T
    assert type(low) is np.ndarray
    assert np.all(low <= high)


@limited
@five
def test_64_threads_predict_from_one_model(cls: Any, settings: dict[str, Any]) -> None:
    """The same to the bit, and the number of BLAS threads is as before."""
    model, X, _ = small_fit(cls, settings)
    expected = answer(model, X)
    with threadpool_limits(2, "blas"):
        before = threadpool_info()
        with ThreadPoolExecutor(64) as pool:
            for found in pool.map(lambda _: answer(model, X), range(128)):
                assert_array_equal(found, expected)
        assert threadpool_info() == before


@limited
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "model",
    [
        BowTieNetwork((), solver="svi", n_members=2, max_iter=5, random_state=0),
        BowTieNetwork((), init="laplace", max_iter=20, random_state=0),
    ],
    ids=["svi", "cavi"],
)
def test_deviations_are_numbers(model: Any, unit: float, precision: Any) -> None:
    X = unit * np.random.default_rng(0).normal(size=(60, 3))
    mean, std = model.fit(X.astype(precision), X[:, 0]).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.all(np.isfinite(std) & (std > 0.0))


@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_tiny_noise_is_neither_missed_nor_doubted(noise: float) -> None:
    """A line: errors are not far above the noise, and deviations say so."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = 3.0 * X[:, 0] - X[:, 1] + noise * rng.normal(size=600)
    model = BowTieRegressor(**QUICK, random_state=0).fit(X[:300], y[:300])
    mean, std = model.predict(X[300:], return_std=True)
    assert np.sqrt(np.mean((mean - y[300:]) ** 2)) < 1.3 * noise
    assert 0.6 * noise < np.median(std) < 2.0 * noise


def test_noise_without_a_mean_is_refused() -> None:
    """Weights of rows that hardly count, and a prior that says nothing: no variance is known."""
    X, y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    model = BowTieNetwork((), output_noise=(0.5, 1e-3), random_state=0)
    with pytest.raises(ValueError, match="output_noise"):
        model.fit(X, y, [1e-3, 1e-3])
    small = BowTieNetwork((3,), n_members=1, random_state=0).fit(X, y, [1e-3, 1e-3])
    assert np.isfinite(small.predict(X, return_std=True)[1]).all()
