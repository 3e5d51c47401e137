"""scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from bowtienet import BowTieNetwork, BowTieNetworkClassifier

# Few and short fits: the contract asks little of how well they predict.
SMALL: dict[str, Any] = {"hidden_layer_sizes": (5,), "n_members": 2}
RANDOM_START = {**SMALL, "init": "laplace", "max_iter": 60}


def expected_failures(estimator: Any) -> dict[str, str]:
    """Minibatches of a ReLU network are of rows, and know nothing of weights."""
    if estimator.init != "relu_network":
        return {}
    reason = "the ReLU start is trained on minibatches of rows: repeated rows are other batches"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        BowTieNetwork(**RANDOM_START),
        BowTieNetwork(**SMALL),
        BowTieNetworkClassifier(**{**RANDOM_START, "max_iter": 20}),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [BowTieNetworkClassifier(**SMALL)], expected_failed_checks=expected_failures
)
def test_contract_of_classes_from_relu_networks(estimator, check):
    check(estimator)


def test_tags_say_what_tables_may_hold() -> None:
    for estimator in (BowTieNetwork(), BowTieNetworkClassifier()):
        tags = get_tags(estimator)
        kind = "regressor" if isinstance(estimator, BowTieNetwork) else "classifier"
        assert tags.estimator_type == kind
        assert tags.input_tags.allow_nan
        assert tags.input_tags.categorical
        assert tags.input_tags.string
        assert tags.target_tags.required
        assert tags.target_tags.multi_output == (kind == "regressor")
