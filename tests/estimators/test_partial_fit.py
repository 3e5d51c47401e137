"""Rows that arrive over time: each call leaves a model of all rows so far."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet import BowTieRegressor, load
from bowtienet._arrays import map_arrays
from bowtienet.ensemble import arriving
from bowtienet.inference.convergence import Status
from tests.estimators.models import answers, assert_same, rows, small

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


def test_rows_are_counted(begun: BowTieRegressor) -> None:
    model = further(begun)
    assert_allclose(counts(model), 200.0)
    model.partial_fit(*NEW)
    assert_allclose(counts(model), 260.0)
    model.partial_fit(*NEW, np.full(60, 0.5))
    assert_allclose(counts(model), 290.0)
    assert model.status_ == Status.ARRIVING
    assert model.n_iter_ == begun.n_iter_ + 2
    assert len(model.elbo_history_) == len(begun.elbo_history_) + 2
    assert model.solver_ == "svi"
    assert not model.converged_


@pytest.mark.parametrize("weighting", ["equal", "stacking"])
def test_more_rows_make_a_better_model(weighting: str) -> None:
    """Thirty noisy rows are few: of what they leave unexplained most goes with 800."""
    model = small(weighting=weighting, init_penalty=0.1).partial_fit(*rows(30, 3, noise=1.0))
    test, more = rows(1000, 4, noise=0.0), rows(800, 5, noise=1.0)
    before = model.score(*test)
    uncertain = model.predict_components(test[0]).epistemic_variance.mean()
    for start in range(0, 800, 200):
        model.partial_fit(more[0][start : start + 200], more[1][start : start + 200])
    assert_allclose(counts(model), 830.0)
    assert 1.0 - model.score(*test) < 0.6 * (1.0 - before)
    assert model.predict_components(test[0]).epistemic_variance.mean() < uncertain


def test_rows_once_seen_matter_as_much_as_new_ones() -> None:
    """A regression without hidden layer has exact sums: it ends where all rows at once do."""
    settings = {"hidden_layer_sizes": (), "n_estimators": 1, "max_iter": 60, "tol": 1e-9}
    whole = rows(600, 6)
    model = small(**settings).partial_fit(whole[0][:200], whole[1][:200])
    for start in range(200, 600, 40):
        model.partial_fit(whole[0][start : start + 40], whole[1][start : start + 40])
    expected = small(**settings).fit(*whole)
    assert_allclose(model.predict(X), expected.predict(X), atol=5e-3)
    assert_allclose(answers(model, X)[1], answers(expected, X)[1], rtol=0.03)


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


def test_single_rows(begun: BowTieRegressor) -> None:
    model = further(begun, weighting="stacking")
    for x, y in zip(NEW[0][:5], NEW[1][:5], strict=True):
        model.partial_fit(x[None], y[None])
    assert_allclose(counts(model), 205.0)
    assert_allclose(model.score(*rows(500, 8)), begun.score(*rows(500, 8)), atol=0.05)


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


def test_long_tables_are_taken_in_by_batches(begun: BowTieRegressor) -> None:
    model = further(begun, batch_size=25).partial_fit(*NEW)
    assert model.n_iter_ == begun.n_iter_ + 3
    apart = further(begun)
    for start in (0, 25, 50):
        apart.partial_fit(NEW[0][start : start + 25], NEW[1][start : start + 25])
    assert_unchanged(model, apart)


@pytest.mark.parametrize("weighting", ["equal", "stacking"])
def test_rows_of_weight_zero_change_nothing(weighting: str, begun: BowTieRegressor) -> None:
    some = np.arange(60) % 3 > 0
    wild = np.where(some[:, None], NEW[0], 1e3), np.where(some, NEW[1], -1e5)
    base = further(begun, weighting=weighting)
    expected = further(base).partial_fit(NEW[0][some], NEW[1][some])
    assert_unchanged(expected, further(base).partial_fit(*wild, some.astype(float)))
    # A part of a source may have no other rows.
    silent = (NEW[0] * 1e3, NEW[1] * 1e5, np.zeros(60))
    loud = (NEW[0][some], NEW[1][some], np.ones(some.sum()))
    assert_unchanged(expected, further(base).partial_fit([silent, loud]))
    with pytest.raises(ValueError, match="sample_weight"):
        further(base).partial_fit(*silent)


def test_a_row_of_weight_two_is_two_rows(begun: BowTieRegressor) -> None:
    twice = np.repeat(np.arange(60), 2)
    found = further(begun).partial_fit(*NEW, np.full(60, 2.0))
    expected = further(begun).partial_fit(NEW[0][twice], NEW[1][twice])
    assert_allclose(counts(found), counts(expected))
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)


# The weights of the members


def with_members(model: BowTieRegressor, **changes: Any) -> BowTieRegressor:
    found = further(model, weighting="stacking")
    found.ensemble_ = replace(found.ensemble_, **changes)
    return found


def test_weights_move_to_the_member_that_predicts_better(begun: BowTieRegressor) -> None:
    """The same network twice: the one that claims to know little loses its say."""
    first = begun.ensemble_.members[0]
    honest, unsure = (replace(first, variance_ratio=np.array([r])) for r in (1.0, 1e4))
    model = with_members(begun, members=(honest, unsure)).partial_fit(*rows(150, 12))
    assert model.member_weights_[0] > 0.7
    assert model.member_weights_.sum() == pytest.approx(1.0)
    ratios = [member.variance_ratio.tolist() for member in model.ensemble_.members]
    assert ratios == [[1.0], [1e4]]


def test_few_rows_leave_the_weights_of_the_fit(begun: BowTieRegressor) -> None:
    model = with_members(begun, weights=np.array([0.9, 0.1]))
    model.partial_fit(NEW[0][:1], NEW[1][:1])
    assert_allclose(model.member_weights_, [0.9, 0.1], atol=0.02)


@pytest.mark.parametrize("weighting", ["equal", "elbo"])
def test_without_stacking_weights_stay(weighting: str, begun: BowTieRegressor) -> None:
    model = further(begun, weighting=weighting)
    model.ensemble_ = replace(model.ensemble_, weights=np.array([0.9, 0.1]))
    assert_array_equal(model.partial_fit(*NEW).member_weights_, [0.9, 0.1])


def test_only_the_latest_rows_weigh_the_members(
    begun: BowTieRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving, "RECENT", 50)
    model = further(begun, weighting="stacking").partial_fit(*NEW)
    assert model._arrivals.recent.shape == (50, 2)


# From where it goes on, and from where not


@pytest.mark.parametrize(("solver", "n_rows"), [("cavi", 200), ("svi", 160)])
def test_after_a_fit_it_goes_on(solver: str, n_rows: int) -> None:
    """Of a stream a fifth of the rows was held out."""
    settings = {"solver": solver, "weighting": "stacking", "init_penalty": 1.0}
    model = small(**settings).fit(X, Y)
    assert_allclose(counts(model), n_rows)
    assert_allclose(counts(model.partial_fit(*NEW)), n_rows + 60)
    assert model.score(*rows(500, 8)) > 0.8


def test_no_way_on_from_a_pruned_model(begun: BowTieRegressor) -> None:
    pruned = begun.prune(0.5)
    before = pruned.ensemble_
    with pytest.raises(ValueError, match="prune"):
        pruned.partial_fit(*NEW)
    assert pruned.ensemble_ is before


def test_units_taken_out_during_the_first_call() -> None:
    model = small(hidden_layer_sizes=(12,), prune_every=4, max_iter=12).partial_fit(X, Y)
    assert any(member.pruning is not None for member in model.ensemble_.members)
    model.partial_fit(*NEW)
    assert_allclose(counts(model), 260.0)
    assert model.score(*rows(500, 8)) > 0.8


def test_one_odd_row_counts_once() -> None:
    """After a fit, without remembered rows: as in a fit to all rows but one."""
    model = small(max_iter=20).fit(X, Y)
    before = answers(model, X)[1].mean()
    model.partial_fit(np.zeros((1, 3)), [10.0])
    assert answers(model, X)[1].mean() < 4.0 * before
    assert_allclose(counts(model), 201.0)


def test_remembered_rows_are_those_of_the_present_fit(begun: BowTieRegressor) -> None:
    model = further(begun).partial_fit(*NEW)
    assert model._arrivals.remembered.sample.rows.inputs.shape[0] == 260
    assert_same(model.fit(X, Y), begun)
    assert not hasattr(model, "_arrivals")
    model.partial_fit(*NEW)
    assert model._arrivals.remembered.sample.rows.inputs.shape[0] == 60


def test_two_hidden_layers_and_several_targets() -> None:
    two = np.stack([Y, X[:, 2]], axis=1)
    model = small(hidden_layer_sizes=(4, 3), max_iter=3).partial_fit(X, two)
    model.partial_fit(NEW[0], np.stack([NEW[1], NEW[0][:, 2]], axis=1))
    assert model.predict(X).shape == (200, 2)
    assert_allclose(counts(model), 260.0)


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
    assert model._arrivals.remembered.sample.rows.inputs.shape[0] == 200


def test_a_batch_out_of_all_proportion_breaks_nothing(begun: BowTieRegressor) -> None:
    """A step that is not finite is not taken."""
    model = further(begun).partial_fit(1e150 * NEW[0], 1e300 * NEW[1])
    assert np.isfinite(answers(model, X)).all()
    assert model._arrivals.remembered.sample.rows.inputs.shape[0] == 200
