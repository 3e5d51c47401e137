"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions

# Few and short fits, of one recipe: the contract does not ask how well they predict.
SMALL: dict[str, Any] = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 10}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        BowTieRegressor(**SMALL, options=FitOptions(init_penalty=0.1)),
        BowTieRegressor(**SMALL, options=FitOptions(weighting="elbo", propagation="variational")),
        BowTieRegressor(
            **SMALL, effort="fast", outcome="student_t", options=FitOptions(init_penalty=0.1)
        ),
        BowTieClassifier(**SMALL, effort="fast", options=FitOptions(init_penalty=0.1)),
        BowTieClassifier(**SMALL, options=FitOptions(weighting="equal", init_penalty=0.1)),
    ],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_tags_say_what_tables_may_hold() -> None:
    tags = get_tags(BowTieRegressor())
    assert tags.estimator_type == "regressor"
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert tags.target_tags.multi_output
    assert tags.target_tags.required


def test_tags_of_classes() -> None:
    tags = get_tags(BowTieClassifier())
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags.multi_class
    assert not tags.classifier_tags.multi_label
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert not tags.target_tags.multi_output
    assert tags.target_tags.required
