"""Tables as people have them: read, fitted and predicted as well as a table cleaned by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score

from bowtienet import load
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.tables.door import open_known, open_rows
from bowtienet.tables.files import read_chunks, read_table
from bowtienet.tables.representation import learn_representation, standardize
from tests.tables import messy


def scores(case: str, path: Path) -> tuple[float, float]:
    """R² on fresh rows of a ridge on the messy table, and on that cleaned by hand."""
    rng = np.random.default_rng(7)
    names, write = messy.CASES[case]
    table = messy.clean(rng, [name for name in names if name != "holes"])
    table = messy.with_holes(table, rng) if "holes" in names else table
    train, fresh = table.iloc[:400], table.iloc[400:]
    hand = RidgeCV(np.logspace(-3, 3, 7)).fit(messy.by_hand(train, train), train["rent"])
    reference = r2_score(fresh["rent"], hand.predict(messy.by_hand(fresh, train)))
    rows = write(train, path / "train.csv")
    rows = rows if isinstance(rows, pd.DataFrame) else read_table(rows)
    estimator: Any = BaseEstimator()
    training = open_rows(estimator, rows, "rent")
    representation, inputs = learn_representation(training, 30)
    model = RidgeCV(np.logspace(-3, 3, 7)).fit(inputs, training.targets[:, 0])
    estimator._target_names = ("rent",)
    new = write(fresh, path / "fresh.csv")
    chunks = [new] if isinstance(new, pd.DataFrame) else read_chunks(new, 30)
    predictions = [
        model.predict(standardize(representation, open_known(estimator, chunk))) for chunk in chunks
    ]
    return r2_score(fresh["rent"], np.concatenate(predictions)), reference


@pytest.mark.filterwarnings("ignore:levels that training did not have")
@pytest.mark.parametrize("case", messy.CASES)
def test_a_messy_table_predicts_as_a_clean_one(case: str, tmp_path: Path) -> None:
    score, reference = scores(case, tmp_path)
    assert reference > 0.5
    assert score > reference - 0.05


def test_a_loaded_model_reads_rows_of_a_file_one_at_a_time(tmp_path: Path) -> None:
    """What was learnt of the columns is in the file of a model: codes, styles, levels, notes."""
    rng = np.random.default_rng(3)
    table = messy.with_holes(messy.clean(rng, ["day", "street"], n=400), rng)
    write = messy.with_codes("k.A.", "-", **messy.GERMAN, day="{:%d.%m.%Y}".format)
    rows = read_table(write(table.iloc[:300], tmp_path / "train.csv"))
    model = BowTieRegressor((8,), effort="fast", random_state=0).fit(rows, "rent")
    model.save(tmp_path / "model.btn")
    loaded = load(tmp_path / "model.btn")
    assert "'-', 'k.A.' count as missing" in loaded.summary()
    known = table["street"].isin(table["street"].iloc[:300])
    fresh = write(table[known].iloc[-20:], tmp_path / "fresh.csv")
    together = model.predict(read_table(fresh))
    alone = [loaded.predict(row)[0] for row in read_chunks(fresh, 1)]
    np.testing.assert_allclose(alone, together, rtol=1e-5)
