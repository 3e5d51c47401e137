"""Rows that arrive over time: each call leaves a model of all rows so far."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor, load
from bowtienet._old._arrays import map_arrays
from tests._old.estimators.models import assert_same, rows, small
from tests._old.sign_pruning import prune_by_signs

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = ["a", "b", "c"]
X, Y = rows(200)
NEW = rows(60, seed=1)


def counts(model: BowTieRegressor) -> list[float]:
    """Rows that the members stand for."""
    return [float(member.statistics.count) for member in model.ensemble_.members]


@pytest.fixture(scope="module")
def begun() -> BowTieRegressor:
    """A model after its first call; take a copy."""
    return small(init_penalty=1.0).partial_fit(X, Y)


def further(model: BowTieRegressor, **options: Any) -> BowTieRegressor:
    found = copy.deepcopy(model)
    found.options.set_params(**options)
    return found


def assert_unchanged(first: BowTieRegressor, second: BowTieRegressor) -> None:
    assert_same(first, second)
    for a, b in zip(first.ensemble_.members, second.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.statistics, b.statistics)


@pytest.mark.parametrize("solver", ["cavi", "svi"])
@pytest.mark.parametrize("weighting", ["equal", "stacking"])
def test_the_first_call_is_a_fit(solver: str, weighting: str) -> None:
    settings = {"solver": solver, "weighting": weighting, "max_iter": 3, "init_penalty": 1.0}
    fitted, begun = small(**settings).fit(X, Y), small(**settings).partial_fit(X, Y)
    assert_same(fitted, begun)
    assert (begun.solver_, begun.status_) == (solver, fitted.status_)


@pytest.mark.parametrize("weighting", ["equal", "stacking"])
def test_saved_in_between(weighting: str, begun: BowTieRegressor, tmp_path: Path) -> None:
    """A pickle has the remembered rows and goes on to the bit; a file has no rows in it."""
    model = further(begun, weighting=weighting).partial_fit(*NEW)
    pickled = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    again = rows(30, seed=7)
    assert_unchanged(model.partial_fit(*again), pickled.partial_fit(*again))
    loaded.partial_fit(*again)
    assert_allclose(counts(loaded), 290.0)
    assert_allclose(loaded.predict(X), model.predict(X), atol=0.5)


def test_files_have_sums_where_somebody_goes_on(begun: BowTieRegressor, tmp_path: Path) -> None:
    """Sums over the rows are in files of updated models, and in others if that is asked for."""
    fitted, small_file, large_file = small().fit(X, Y), tmp_path / "small", tmp_path / "large"
    fitted.save(small_file)
    fitted.save(large_file, updatable=True)
    assert small_file.stat().st_size < large_file.stat().st_size
    np.testing.assert_array_equal(fitted.predict(X), load(small_file).predict(X))
    with pytest.raises(ValueError, match="updatable=True"):
        load(small_file).partial_fit(*NEW)
    load(large_file).save(tmp_path / "again")
    again = load(tmp_path / "again").partial_fit(*NEW)
    again.save(tmp_path / "updated", updatable=False)
    assert load(tmp_path / "updated").ensemble_.members[0].statistics is None


def test_sources(begun: BowTieRegressor, tmp_path: Path) -> None:
    frame = pd.DataFrame(NEW[0], columns=NAMES).assign(y=NEW[1])
    path = tmp_path / "new.parquet"
    pq.write_table(pa.Table.from_pandas(frame[["c", "y", "a", "b"]]), path)
    expected = further(begun).partial_fit(*NEW)
    named = small(init_penalty=1.0).partial_fit(pd.DataFrame(X, columns=NAMES), Y)
    for model, given in ((begun, ([NEW],)), (named, (path, "y")), (named, (frame, "y"))):
        assert_unchanged(expected, further(model).partial_fit(*given))
    halves = [(NEW[0][:30], NEW[1][:30]), (NEW[0][30:], NEW[1][30:])]
    assert_allclose(counts(further(begun).partial_fit(halves)), 260.0)


def test_tables_with_texts_and_missing_values() -> None:
    def table(data: tuple[np.ndarray, np.ndarray]) -> pd.DataFrame:
        sign = np.where(data[0][:, 1] > 0.0, "plus", "minus")
        number = np.where(np.arange(len(sign)) % 9 == 0, np.nan, data[0][:, 0])
        return pd.DataFrame({"number": number, "sign": sign, "y": data[1]})

    model = small().partial_fit(table((X, Y)), "y")
    columns = model.columns_
    model.partial_fit(table(NEW), "y")
    assert_allclose(counts(model), 260.0)
    assert model.columns_ == columns
    assert np.isfinite(model.predict(table(NEW))).all()


# From where it goes on, and from where not


@pytest.mark.parametrize(("solver", "n_rows"), [("cavi", 200), ("svi", 160)])
def test_after_a_fit_it_goes_on(solver: str, n_rows: int) -> None:
    """Of a stream a fifth of the rows was held out."""
    settings = {"solver": solver, "weighting": "stacking", "init_penalty": 1.0}
    model = small(**settings).fit(X, Y)
    assert_allclose(counts(model), n_rows)
    assert_allclose(counts(model.partial_fit(*NEW)), n_rows + 60)
    assert model.score(*rows(500, 8)) > 0.8


def test_no_way_on_without_sums(begun: BowTieRegressor) -> None:
    pruned = prune_by_signs(begun, 0.5)
    before = pruned.ensemble_
    with pytest.raises(ValueError, match="sums over the rows"):
        pruned.partial_fit(*NEW)
    assert pruned.ensemble_ is before


def test_remembered_rows_are_those_of_the_present_fit(begun: BowTieRegressor) -> None:
    model = further(begun).partial_fit(*NEW)
    assert model._arrivals.sample.rows.inputs.shape[0] == 260
    assert_same(model.fit(X, Y), begun)
    assert not hasattr(model, "_arrivals")
    model.partial_fit(*NEW)
    assert model._arrivals.sample.rows.inputs.shape[0] == 60


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ((NEW[0][:, :2], NEW[1]), "2 features"),
        (([(NEW[0][:, :2], NEW[1])],), "2 features"),
        ((NEW[0], np.stack([NEW[1]] * 2, axis=1)), "2 targets"),
        ((NEW[0],), "target"),
        (([NEW, (np.where(NEW[0] > 1.9, np.inf, NEW[0]), NEW[1])],), "batch 1"),
        ((NEW[0], np.where(np.arange(60) == 7, np.nan, NEW[1])), "y"),
    ],
    ids=["columns", "columns of a source", "targets", "no targets", "infinite", "no target"],
)
def test_rows_that_are_refused_leave_no_trace(
    given: tuple[Any, ...], match: str, begun: BowTieRegressor
) -> None:
    model = further(begun)
    with pytest.raises(ValueError, match=match):
        model.partial_fit(*given)
    assert_unchanged(begun, model)
    assert model._arrivals.sample.rows.inputs.shape[0] == 200
