"""What networks see: encoded columns, standardised and ordered, with parts that belong together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet.data.tables import Block
from bowtienet.representation.columns import encode
from bowtienet.representation.representation import (
    Representation,
    check_representation,
    encoded_rows,
    network_features,
    network_rows,
    standardized_features,
    standardized_rows,
)
from bowtienet.representation.scaling import Scaling, fit_scaling
from tests.representation.tables import as_table, learn

TABLE = pd.DataFrame({"n": [1.0, None, 4.0, 9.0], "t": ["a", "b", "a", "b"], "c": [5, 5, 5, 5]})
COLUMNS = learn(TABLE)
ENCODED, _ = encode(COLUMNS, as_table(TABLE))
TARGETS = np.array([[1.0, 20.0], [2.0, 50.0], [3.0, 30.0], [7.0, 10.0]])
REPRESENTATION = Representation(
    columns=COLUMNS,
    feature_scaling=fit_scaling(ENCODED),
    target_scaling=fit_scaling(TARGETS),
    column_order=np.array([2, 0, 3, 1]),
)


def test_features_and_targets_are_standardised_and_ordered() -> None:
    block = Block(table=as_table(TABLE), targets=TARGETS, weights=np.arange(4.0))
    rows, surprises = encoded_rows(COLUMNS, block)
    assert surprises == []
    np.testing.assert_array_equal(rows.inputs, ENCODED)
    seen = standardized_rows(REPRESENTATION, rows)
    expected = ((ENCODED - ENCODED.mean(axis=0)) / ENCODED.std(axis=0))[:, [2, 0, 3, 1]]
    np.testing.assert_allclose(seen.inputs, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(standardized_features(REPRESENTATION, ENCODED), seen.inputs)
    scaled = (TARGETS - TARGETS.mean(axis=0)) / TARGETS.std(axis=0)
    np.testing.assert_allclose(seen.targets, scaled, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(seen.weights, np.arange(4.0))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": COLUMNS[:2]},
        {"columns": list(COLUMNS)},
        {"column_order": np.array([0, 0, 1, 2])},
        {"feature_scaling": fit_scaling(TARGETS)},
        {"target_scaling": fit_scaling(ENCODED)},
        {"target_scaling": Scaling(center=np.zeros(2), scale=np.array([1.0, 0.0]))},
        {"feature_scaling": None},
    ],
)
def test_parts_that_do_not_belong_together(change: dict[str, Any]) -> None:
    check_representation(REPRESENTATION, 3, 2)
    with pytest.raises(ValueError, match=r"column|scaling"):
        check_representation(replace(REPRESENTATION, **change), 3, 2)
