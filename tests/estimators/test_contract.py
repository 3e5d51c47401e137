"""scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

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
