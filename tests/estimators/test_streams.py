"""Estimators of rows beyond memory: as in memory, all kinds, predictions in order, bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet
from sklearn.metrics import accuracy_score, r2_score

from bowtienet.ensemble import forecasts
from bowtienet.estimators import _streams
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.network import BowTieNetwork
from bowtienet.estimators.network_classifier import BowTieNetworkClassifier
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.tables import sources
from bowtienet.tables.door import open_rows
from bowtienet.tables.sources import keys_and_folds

N = 1_500
QUICK: dict[str, Any] = {"hidden_layer_sizes": (16,), "effort": "fast", "random_state": 0}
SMALL: dict[str, Any] = {"hidden_layer_sizes": (8,), "n_members": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3))
    signal = np.abs(X[:, 0]) + X[:, 1]
    return pd.DataFrame(
        {
            **{f"x{j}": X[:, j] for j in range(3)},
            "city": rng.choice(["Rome", "Oslo"], N),
            "y": signal + 0.2 * rng.normal(size=N),
            "label": np.where(signal > 0.8, "high", "low"),
            "count": rng.poisson(np.exp(signal)),
        }
    )


@pytest.fixture
def folder(table: pd.DataFrame, tmp_path: Path) -> Path:
    for number, begin in enumerate(range(0, N, 400)):
        part = pa.Table.from_pandas(table[begin : begin + 400])
        parquet.write_table(part, tmp_path / f"{number}.parquet")
    return tmp_path


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit holds no more than 500 rows, and trains no longer for the others."""
    monkeypatch.setattr(sources, "SAMPLE", 500)
    monkeypatch.setattr(forecasts, "MOST_LONGER", 1.0)


def without(table: pd.DataFrame, target: str) -> pd.DataFrame:
    return table.drop(columns=[name for name in ("y", "label", "count") if name != target])


@pytest.mark.parametrize(
    "model", [BowTieRegressor(**QUICK), BowTieNetwork(**SMALL)], ids=["practical", "paper"]
)
def test_sources_of_few_rows_are_fitted_as_in_memory(model: Any, table: pd.DataFrame) -> None:
    table = without(table, "y")
    keys, _ = keys_and_folds(open_rows(BowTieNetwork(), table, "y"))
    streamed = model.fit([table[:700], table[700:]], "y").predict(table[:50])
    assert_array_equal(streamed, model.fit(table.iloc[np.argsort(keys)], "y").predict(table[:50]))


@pytest.mark.usefixtures("few")
def test_practical_fits_of_many_rows(table: pd.DataFrame, folder: Path) -> None:
    numbers = [without(table[i : i + 300], "y") for i in range(0, N, 300)]
    numbers[1] = numbers[1].assign(y=[np.nan] * 50 + [*numbers[1]["y"][50:]])
    with pytest.warns(UserWarning, match="50 rows without a target"):
        model = BowTieRegressor(**QUICK).fit(numbers, "y")
    X = table[["x0", "x1", "x2", "city"]]
    assert r2_score(table["y"], model.predict(X)) > 0.95
    batches = [(without(part, "label").drop(columns="label"), part["label"]) for part in [table]]
    classes = BowTieClassifier(class_weight="balanced", **QUICK).fit(batches)
    assert classes.classes_.tolist() == ["high", "low"]
    assert accuracy_score(table["label"], classes.predict(X)) > 0.85
    counts = BowTieCountRegressor(**QUICK).fit([without(table, "count")], "count")
    assert r2_score(np.exp(np.abs(X["x0"]) + X["x1"]), counts.predict(X)) > 0.7


def test_more_rows_than_the_sample_make_a_better_fit(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "SAMPLE", 500)

    def rows(n: int) -> pd.DataFrame:
        X = rng.normal(size=(n, 6))
        y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
        return pd.DataFrame({**{f"x{j}": X[:, j] for j in range(6)}, "y": y})

    table, new = rows(8_000), rows(2_000)
    whole = BowTieRegressor(**QUICK).fit([table[:5_000], table[5_000:]], "y")
    part = BowTieRegressor(**QUICK).fit(table[:500], "y")
    errors = [np.mean((m.predict(new.drop(columns="y")) - new["y"]) ** 2) for m in (whole, part)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("solver", "tolerance"), [("cavi", 1e-8), ("svi", 0.1)])
def test_networks_of_sources_are_those_of_memory(
    solver: str, tolerance: float, table: pd.DataFrame, folder: Path
) -> None:
    """Coordinate ascent to rounding; minibatches come in another order."""
    model = BowTieNetwork(**SMALL, solver=solver, max_iter=5)
    table = table.drop(columns=["label", "count"])
    here = model.fit(table, "y").elbo_history_
    X = table.drop(columns="y")
    predicted = model.predict(X)
    there = model.fit([table[:1_000], table[1_000:]], "y").elbo_history_
    assert_allclose(there[-1], here[-1], rtol=tolerance)
    assert_allclose(model.predict(X), predicted, atol=tolerance * 10)
    assert r2_score(table["y"], predicted) > 0.85


@pytest.mark.usefixtures("few")
def test_networks_of_classes(table: pd.DataFrame) -> None:
    table = table.drop(columns=["y", "count"])
    model = BowTieNetworkClassifier(**SMALL)
    here = model.fit(table.drop(columns="label"), table["label"]).elbo_history_
    there = model.fit([table[:1_000], table[1_000:]], "label").elbo_history_
    assert_allclose(there, here, rtol=1e-8)
    assert model.classes_.tolist() == ["high", "low"]
    assert model.predict([table[:700], table[700:]]).shape == (N,)


def test_predictions_of_sources_are_in_their_order(table: pd.DataFrame, folder: Path) -> None:
    rows = without(table, "y")
    for path in folder.iterdir():
        part = parquet.read_table(path).drop_columns(["label", "count"])
        parquet.write_table(part, path)
    X = rows.drop(columns="y")
    model = BowTieRegressor(**QUICK).fit(rows[:200], "y")
    mean, std = model.predict(folder, return_std=True)
    for found, expected in zip((mean, std), model.predict(X, return_std=True), strict=True):
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert_allclose(model.predict_interval(folder), model.predict_interval(X), atol=1e-4)
    assert model.predict_quantiles([X[:10], X[10:]]).shape == (N, 3)
    assert_allclose(model.predict_components(folder).noise, model.predict_components(X).noise, 1e-4)
    network = BowTieNetwork(**SMALL).fit(rows[:200], "y")
    assert_allclose(network.predict(folder), network.predict(X))
    with pytest.raises(ValueError, match="load the rows"):
        model.predict_dist(folder)
    with pytest.raises(ValueError, match="no rows"):
        model.predict([X[:0], X[:0]])


class Changing:
    """Batches that lose a row in every pass."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield self.table
        self.table = self.table[:-1]


@pytest.mark.usefixtures("few")
def test_what_sources_cannot_do(table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = without(table, "y")
    for model in (BowTieRegressor(**QUICK), BowTieNetwork(**SMALL)):
        with pytest.raises(ValueError, match="must not change"):
            model.fit(Changing(rows), "y")
    counts = without(table, "count")
    with pytest.raises(ValueError, match="exposure"):
        BowTieCountRegressor(**QUICK).fit([counts], "count", exposure=np.ones(N))
    with pytest.raises(ValueError, match="one class"):
        BowTieClassifier(**QUICK).fit([rows.assign(y="a")], "y")
    network = BowTieNetwork(**SMALL).fit([rows], "y")
    with pytest.raises(ValueError, match="rows of the"), pytest.warns(UserWarning, match="rate"):
        network.prune()
    monkeypatch.setattr(_streams, "MEMORY_BYTES", 100_000)
    with pytest.raises(ValueError, match="solver='svi'"):
        network.fit([rows], "y")
