"""`structure`: checked at the door, kept on the estimator and saved with it."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from bowtienet._old import BowTieRegressor, load
from bowtienet._old.estimators import structure_fit
from tests._old.estimators.models import small

RNG = np.random.default_rng(501)
ROWS = 200
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 10.0, size=ROWS),
        "color": RNG.choice(["red", "green", "blue"], size=ROWS),
        "luck": RNG.normal(size=ROWS),
        "member": RNG.random(ROWS) < 0.5,
        "income": np.where(RNG.random(ROWS) < 0.2, np.nan, RNG.lognormal(size=ROWS)),
    }
)
Y = 0.1 * FRAME["age"] + 2.0 * (FRAME["color"] == "red") + 0.5 * RNG.normal(size=ROWS)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def model() -> BowTieRegressor:
    return small().fit(FRAME, Y)


def test_columns_of_all_kinds_are_tested_by_name(model: BowTieRegressor) -> None:
    found = model.structure(FRAME, Y)
    assert found.names == tuple(FRAME.columns)
    assert set(found.selected_names) == {"age", "color"}
    assert found is model.structure_
    assert found.n_rows == ROWS


def test_the_same_rows_are_not_tested_again(model: BowTieRegressor, tmp_path: Path) -> None:
    found = model.structure(FRAME, Y)
    model.save(tmp_path / "model.btn")
    for known in (model, load(tmp_path / "model.btn")):
        with mock.patch.object(structure_fit, "find_structure", side_effect=AssertionError):
            again = known.structure(FRAME, Y, false_discovery_rate=0.2)
        assert_array_equal(again.p_values, found.p_values)
        assert again.false_discovery_rate == 0.2


def test_other_rows_and_a_new_fit_are_another_matter(model: BowTieRegressor) -> None:
    first = model.structure(FRAME, Y)
    assert not np.array_equal(model.structure(FRAME, -(Y**2)).p_values, first.p_values)
    model.fit(FRAME, Y)
    assert not hasattr(model, "structure_")


def test_rows_of_weight_zero_are_absent(model: BowTieRegressor) -> None:
    weights = np.ones(ROWS)
    weights[:50] = 0.0
    assert model.structure(FRAME, Y, weights).n_rows == ROWS - 50


def test_bad_input_is_named(model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="false_discovery_rate must lie strictly between 0 and 1"):
        model.structure(FRAME, Y, false_discovery_rate=1.0)
    with pytest.raises(ValueError, match="10 rows that count: structure needs at least 20"):
        model.structure(FRAME[:10], Y[:10])
    with pytest.raises(ValueError, match="the target y is None"):
        model.structure(FRAME)
