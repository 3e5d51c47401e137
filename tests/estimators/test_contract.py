"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bowtienet import BowTieRegressor

# Few and short fits: the contract does not ask how well they predict.
SMALL = {"hidden_layer_sizes": (5,), "n_estimators": 2, "max_iter": 10}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        BowTieRegressor(**SMALL),
        BowTieRegressor(**SMALL, combine="elbo", predictive="variational"),
    ],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
