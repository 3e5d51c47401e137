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
from scipy.stats import norm

from bowtienet import BowTieRegressor
from bowtienet._arrays import map_arrays
from bowtienet.estimators import partial
from bowtienet.estimators.given import read_given
from bowtienet.inference.convergence import Status
from bowtienet.prediction.ensemble import mean_and_deviation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = ("a", "b", "c")


def rows(n: int, seed: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2.0 * np.abs(X[:, 0]) - X[:, 1] + noise * rng.normal(size=n)


X, Y = rows(200, 0)
NEW = rows(60, 1)


def small(**changes: Any) -> BowTieRegressor:
    settings: dict[str, Any] = {"n_estimators": 2, "random_state": 0, "max_iter": 8}
    settings |= {"hidden_layer_sizes": (5,), "gate_temperature": 0.05, "init_penalty": 1.0}
    return BowTieRegressor(**(settings | {"combine": "equal"} | changes))


def counts(model: BowTieRegressor) -> list[float]:
    return [float(member.statistics.count) for member in model.ensemble_.members]


def assert_same(first: BowTieRegressor, second: BowTieRegressor) -> None:
    """To the bit."""
    for a, b in zip(first.ensemble_.members, second.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.factors, b.factors)
        map_arrays(assert_array_equal, a.statistics, b.statistics)
        assert_array_equal(a.variance_ratio, b.variance_ratio)
    assert_array_equal(first.member_weights_, second.member_weights_)
    assert_array_equal(
        mean_and_deviation(first.ensemble_, X), mean_and_deviation(second.ensemble_, X)
    )


@pytest.fixture(scope="module")
def begun() -> BowTieRegressor:
    """A model after its first call; take a copy."""
    return small().partial_fit(X, Y)


def further(model: BowTieRegressor) -> BowTieRegressor:
    return copy.deepcopy(model)


@pytest.mark.parametrize("solver", ["cavi", "svi"])
@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_the_first_call_is_a_fit(solver: str, combine: str) -> None:
    settings = {"solver": solver, "combine": combine, "max_iter": 3}
    fitted, begun = small(**settings).fit(X, Y), small(**settings).partial_fit(X, Y)
    for a, b in zip(fitted.ensemble_.members, begun.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.factors, b.factors)
        assert_array_equal(a.variance_ratio, b.variance_ratio)
        assert (a.variance_ratio is None) == (combine == "equal")
    assert_array_equal(fitted.member_weights_, begun.member_weights_)
    assert_array_equal(fitted.predict(X), begun.predict(X))
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
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_more_rows_make_a_better_model(combine: str) -> None:
    """Thirty noisy rows are few: of what they leave unexplained most goes with two thousand."""
    model = small(combine=combine, init_penalty=0.1, n_estimators=2).partial_fit(*rows(30, 3, 1.0))
    test = rows(2000, 4, 0.0)
    before = model.score(*test)
    uncertain = model.predict_components(test[0]).epistemic_variance.mean()
    more = rows(2000, 5, 1.0)
    for start in range(0, 2000, 100):
        model.partial_fit(more[0][start : start + 100], more[1][start : start + 100])
    assert_allclose(counts(model), 2030.0)
    assert 1.0 - model.score(*test) < 0.6 * (1.0 - before)
    assert model.predict_components(test[0]).epistemic_variance.mean() < uncertain


def test_rows_once_seen_matter_as_much_as_new_ones() -> None:
    """A regression without hidden layer has exact sums: it ends where all rows at once do."""
    settings = {"hidden_layer_sizes": (), "n_estimators": 1, "max_iter": 60, "tol": 1e-9}
    whole = rows(600, 6)
    model = small(**settings, forgetting_rate=1.0, step_delay=1e9).partial_fit(
        whole[0][:200], whole[1][:200]
    )
    for start in range(200, 600, 40):
        model.partial_fit(whole[0][start : start + 40], whole[1][start : start + 40])
    expected = small(**settings).fit(*whole)
    assert_allclose(model.predict(X), expected.predict(X), atol=5e-3)
    found = model.predict(X, return_std=True)[1]
    assert_allclose(found, expected.predict(X, return_std=True)[1], rtol=0.03)


@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_saved_in_between(combine: str, begun: BowTieRegressor, tmp_path: Path) -> None:
    """A pickle has the remembered rows and goes on to the bit; a file has no rows in it."""
    model = further(begun).set_params(combine=combine).partial_fit(*NEW)
    pickled = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / combine)
    loaded = BowTieRegressor.load(tmp_path / combine)
    assert not hasattr(loaded, "_remembered")
    again = rows(30, 7)
    assert_same(model.partial_fit(*again), pickled.partial_fit(*again))
    loaded.partial_fit(*again)
    assert_allclose(counts(loaded), 290.0)
    assert_allclose(loaded.predict(X), model.predict(X), atol=0.3)


def test_single_rows(begun: BowTieRegressor) -> None:
    model = further(begun).set_params(combine="stacking")
    for x, y in zip(NEW[0][:8], NEW[1][:8], strict=True):
        model.partial_fit(x[None], y[None])
    assert_allclose(counts(model), 208.0)
    assert_allclose(model.score(*rows(500, 8)), begun.score(*rows(500, 8)), atol=0.05)


def test_sources(begun: BowTieRegressor, tmp_path: Path) -> None:
    frame = pd.DataFrame(dict(zip(NAMES, NEW[0].T, strict=True)) | {"y": NEW[1]})
    path = tmp_path / "new.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path)
    expected = further(begun).partial_fit(*NEW)
    named = small().partial_fit(pd.DataFrame(X, columns=NAMES), Y)
    for model, arguments in (
        (begun, ([NEW],)),
        (named, (path, "y")),
        (named, (frame, "y")),
        (named, (pa.Table.from_pandas(frame[["c", "y", "a", "b"]]), "y")),
    ):
        found = further(model).partial_fit(*arguments)
        assert_same(expected, found)
        assert hasattr(found, "feature_names_in_") == (model is named)
    halves = [(NEW[0][:30], NEW[1][:30]), (NEW[0][30:], NEW[1][30:])]
    assert_allclose(counts(further(begun).partial_fit(halves)), 260.0)
    first = small().partial_fit([(X, Y)])
    assert_allclose(first.predict(X), begun.predict(X), rtol=1e-6)


def test_long_tables_are_taken_in_by_batches(begun: BowTieRegressor) -> None:
    model = further(begun).set_params(batch_size=25).partial_fit(*NEW)
    assert model.n_iter_ == begun.n_iter_ + 3
    apart = further(begun)
    for start in (0, 25, 50):
        apart.partial_fit(NEW[0][start : start + 25], NEW[1][start : start + 25])
    assert_same(model, apart)


@pytest.mark.parametrize("combine", ["equal", "stacking"])
def test_rows_of_weight_zero_change_nothing(combine: str, begun: BowTieRegressor) -> None:
    some = np.arange(60) % 3 > 0
    wild = np.where(some[:, None], NEW[0], 1e3), np.where(some, NEW[1], -1e5)
    base = further(begun).set_params(combine=combine)
    expected = further(base).partial_fit(NEW[0][some], NEW[1][some])
    assert_same(expected, further(base).partial_fit(*wild, some.astype(float)))
    # A part of a source may have no other rows.
    silent = (NEW[0] * 1e3, NEW[1] * 1e5, np.zeros(60))
    loud = (NEW[0][some], NEW[1][some], np.ones(some.sum()))
    assert_same(expected, further(base).partial_fit([silent, loud]))
    assert_same(base, further(base).partial_fit([silent]))
    with pytest.raises(ValueError, match="sample_weight are all zero"):
        further(base).partial_fit(*silent)


def test_a_row_of_weight_two_is_two_rows(begun: BowTieRegressor) -> None:
    twice = np.repeat(np.arange(60), 2)
    found = further(begun).partial_fit(*NEW, np.full(60, 2.0))
    expected = further(begun).partial_fit(NEW[0][twice], NEW[1][twice])
    assert_allclose(counts(found), counts(expected))
    assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)


# The weights of the members


def test_weights_move_to_the_member_that_predicts_better() -> None:
    model = small(combine="stacking").partial_fit(X, Y)
    members = model.ensemble_.members
    half = np.full(len(members), 1.0 / len(members))
    assert len(members) == 2
    last = members[1].factors.layers[-1]
    weights = last.weights
    wrong = type(weights)(mean=0.0 * weights.mean, covariance=weights.covariance)
    spoilt = with_last_layer(members[1], wrong)
    model.ensemble_ = type(model.ensemble_)(
        **{**vars(model.ensemble_), "members": (members[0], spoilt), "weights": half}
    )
    seen = [half[0]]
    for seed in range(3):
        model.partial_fit(*rows(100, 10 + seed))
        seen.append(model.member_weights_[0])
    # The rows of the first call are predicted before anything is learned from them; then the
    # spoilt member learns its last layer anew.
    assert seen[1] > 0.7
    assert min(seen[2:]) > 0.7
    assert_allclose(model.member_weights_.sum(), 1.0)


def with_ratios(model: BowTieRegressor, *ratios: float) -> BowTieRegressor:
    """A copy whose members have these ratios."""
    model = further(model)
    members = tuple(
        replace(member, variance_ratio=np.array([ratio]))
        for member, ratio in zip(model.ensemble_.members, ratios, strict=True)
    )
    model.ensemble_ = replace(model.ensemble_, members=members)
    return model


def test_ratios_stay_while_rows_come(begun: BowTieRegressor) -> None:
    model = with_ratios(begun, 1.5, 0.7).set_params(combine="stacking")
    for start in (0, 30):
        model.partial_fit(NEW[0][start : start + 30], NEW[1][start : start + 30])
    assert [member.variance_ratio.tolist() for member in model.ensemble_.members] == [[1.5], [0.7]]


def test_densities_of_new_rows_have_the_variances_of_the_members(begun: BowTieRegressor) -> None:
    """Those of `predict_dist`, but for the unit of the target."""
    model = with_ratios(begun, 4.0, 0.3)
    ensemble = model.ensemble_
    [batch] = model._arriving(read_given(*NEW, None, None))
    found = partial._recent(np.empty((0, 2)), list(ensemble.members), batch, model.predictive)
    for index in range(2):
        alone = replace(ensemble, members=ensemble.members[index : index + 1], weights=np.ones(1))
        mean, deviation = mean_and_deviation(alone, NEW[0])
        expected = norm.logpdf(NEW[1], mean[:, 0], deviation[:, 0])
        expected += np.log(ensemble.target_scaling.scale[0])
        assert_allclose(found[:, index], expected, rtol=1e-9, atol=1e-9)


def test_weights_move_away_from_variances_that_are_wrong(begun: BowTieRegressor) -> None:
    """The same network twice: the one that claims to know little loses its say."""
    model = further(begun).set_params(combine="stacking")
    first = model.ensemble_.members[0]
    model.ensemble_ = replace(model.ensemble_, members=(first, first))
    model = with_ratios(model, 1.0, 1e4).partial_fit(*rows(150, 12))
    assert model.member_weights_[0] > 0.7


def with_last_layer(member: Any, weights: Any) -> Any:
    layers = member.factors.layers
    last = replace(layers[-1], weights=weights)
    return replace(member, factors=replace(member.factors, layers=(*layers[:-1], last)))


def test_few_rows_leave_the_weights_of_the_fit(begun: BowTieRegressor) -> None:
    model = further(begun).set_params(combine="stacking")
    model.ensemble_ = type(model.ensemble_)(
        **{**vars(model.ensemble_), "weights": np.array([0.9, 0.1])}
    )
    model.partial_fit(NEW[0][:1], NEW[1][:1])
    assert_allclose(model.member_weights_, [0.9, 0.1], atol=0.02)


@pytest.mark.parametrize("combine", ["equal", "elbo"])
def test_without_stacking_weights_stay(combine: str) -> None:
    model = small(combine=combine, max_iter=3).partial_fit(X, Y)
    before = model.member_weights_
    model.partial_fit(*NEW)
    assert_array_equal(model.member_weights_, before)


def test_only_the_latest_rows_weigh_the_members(
    begun: BowTieRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial, "RECENT", 50)
    model = further(begun).set_params(combine="stacking").partial_fit(*NEW)
    assert model._recent_densities.shape == (50, 2)
    assert np.all(model._recent_densities > partial.NEVER)


# From where it goes on, and from where not


def test_after_a_stochastic_fit_it_goes_on() -> None:
    model = small(solver="svi", combine="stacking", max_iter=3).fit(X, Y)
    before = counts(model)
    assert_allclose(before, 160.0)  # a fifth was held out
    model.partial_fit(*NEW)
    assert_allclose(counts(model), 220.0)


def test_after_coordinate_ascent_it_goes_on() -> None:
    model = small(solver="cavi").fit(X, Y).partial_fit(*NEW)
    assert_allclose(counts(model), 260.0)
    assert model.score(*rows(500, 8)) > 0.8


def test_no_way_on_from_a_pruned_model() -> None:
    pruned = small().partial_fit(X, Y).prune()
    before = pruned.ensemble_
    with pytest.raises(ValueError, match="partial_fit cannot go on from a pruned model; prune"):
        pruned.partial_fit(*NEW)
    assert pruned.ensemble_ is before


def test_one_odd_row_counts_once() -> None:
    """After a fit, without remembered rows: as in a fit to all rows but one."""
    model = small(solver="cavi", max_iter=20).fit(X, Y)
    before = model.predict(X, return_std=True)[1].mean()
    model.partial_fit(np.zeros((1, 3)), [10.0])
    assert model.predict(X, return_std=True)[1].mean() < 4.0 * before
    assert_allclose(counts(model), 201.0)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    model = small().partial_fit(torch.from_numpy(X), torch.from_numpy(Y))
    model.partial_fit(torch.from_numpy(NEW[0]), torch.from_numpy(NEW[1]))
    expected = small().partial_fit(X, Y).partial_fit(*NEW)
    assert_allclose(model.predict(X), expected.predict(X), rtol=1e-6)


def test_remembered_rows_are_those_of_the_present_fit(begun: BowTieRegressor) -> None:
    model = further(begun).partial_fit(*NEW)
    assert model._remembered.sample.rows.inputs.shape[0] == 260
    assert not hasattr(model.fit(X, Y), "_remembered")
    model.partial_fit(*NEW)
    assert model._remembered.sample.rows.inputs.shape[0] == 60


def test_units_taken_out_during_the_first_call() -> None:
    model = small(hidden_layer_sizes=(12,), prune_every=4, max_iter=12).partial_fit(X, Y)
    assert any(member.pruning is not None for member in model.ensemble_.members)
    model.partial_fit(*NEW)
    assert_allclose(counts(model), 260.0)
    assert model.score(*rows(500, 8)) > 0.8


def test_two_hidden_layers_and_several_targets() -> None:
    two = np.stack([Y, X[:, 2]], axis=1)
    model = small(hidden_layer_sizes=(4, 3), max_iter=3).partial_fit(X, two)
    model.partial_fit(NEW[0], np.stack([NEW[1], NEW[0][:, 2]], axis=1))
    assert model.predict(X).shape == (200, 2)
    assert_allclose(counts(model), 260.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((NEW[0][:, :2], NEW[1]), "X has 2 features, but BowTieRegressor is expecting 3"),
        (([(NEW[0][:, :2], NEW[1])],), "X has 2 features, but BowTieRegressor is expecting 3"),
        ((NEW[0], np.stack([NEW[1]] * 2, axis=1)), "y has 2 targets, but it had 1"),
        (([(NEW[0], np.stack([NEW[1]] * 2, axis=1))],), "y has 2 targets, but it had 1"),
    ],
    ids=["columns", "columns of a source", "targets", "targets of a source"],
)
def test_rows_of_another_shape(
    arguments: tuple[Any, ...], words: str, begun: BowTieRegressor
) -> None:
    model = further(begun)
    with pytest.raises(ValueError, match=rf"{words}.*use a new estimator to start anew"):
        model.partial_fit(*arguments)
    assert_same(begun, model)


def test_other_layers(begun: BowTieRegressor) -> None:
    model = further(begun).set_params(hidden_layer_sizes=(6,))
    with pytest.raises(ValueError, match=r"hidden_layer_sizes is \(6,\), but it was \(5,\)"):
        model.partial_fit(*NEW)


def test_rows_that_go_bad_in_the_middle_leave_no_trace(begun: BowTieRegressor) -> None:
    model = further(begun)
    hole = np.where(np.arange(60)[:, None] == 7, np.nan, NEW[0])
    with pytest.raises(ValueError, match="batch 1: X contains NaN"):
        model.partial_fit([NEW, (hole, NEW[1])])
    assert_same(begun, model)
    with pytest.raises(ValueError, match="the target y is None"):
        model.partial_fit(NEW[0])
    assert_same(begun, model)


def test_a_batch_out_of_all_proportion_breaks_nothing(begun: BowTieRegressor) -> None:
    """A step that is not finite is not taken."""
    model = further(begun).partial_fit(1e150 * NEW[0], 1e300 * NEW[1])
    assert np.isfinite(mean_and_deviation(model.ensemble_, X)).all()
    assert model._remembered.sample.rows.inputs.shape[0] == 200


def test_fit_starts_anew(begun: BowTieRegressor) -> None:
    model = further(begun).partial_fit(*NEW)
    assert_array_equal(model.fit(X, Y).predict(X), begun.predict(X))
