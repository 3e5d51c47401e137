"""Pruned estimators: one small network that predicts as well, and an estimator in every way."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from bowtienet._old import BowTieRegressor, load, open_source
from bowtienet._old.ensemble import prune_ensemble
from tests._old.estimators.models import stacked

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(5)
NAMES = ["age", "height", "weight", "mood", "luck"]
X = RNG.normal(3.0, 2.0, size=(150, 5))
Y = np.abs(X[:, 3] - 3.0) + 0.7 * X[:, 1] + 0.2 * RNG.normal(size=150)
FRAME = pd.DataFrame(X, columns=NAMES)


def quick(**changes: Any) -> BowTieRegressor:
    settings: dict[str, Any] = {
        "hidden_layer_sizes": (8,),
        "effort": "fast",
        "gate_temperature": "auto",
    }
    settings |= {"features": "standard", "target_transform": "none"}
    return stacked(**(settings | changes))


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return quick().fit(FRAME, Y)


@pytest.fixture(scope="module")
def pruned(model: BowTieRegressor) -> BowTieRegressor:
    return model.prune(FRAME, Y)


def everything(model: BowTieRegressor, table: Any) -> list[np.ndarray]:
    """What an estimator says, by every one of its ways to say it."""
    return [
        *model.predict(table, return_std=True),
        *model.predict(table, return_cov=True),
        model.predict_interval(table, [0.5, 0.9]),
        model.predict_interval(table, method="highest_density", n_samples=200),
        model.predict_interval(table, method="conformal"),
        model.predict_quantiles(table),
        model.predict_components(table),
        model.predict_dist(table).pdf(np.zeros(())),
        model.sample_y(table, 3),
        model.sample_y(table, 3, joint=True),
    ]


def assert_same_answers(first: BowTieRegressor, second: BowTieRegressor, table: Any) -> None:
    for a, b in zip(everything(first, table), everything(second, table), strict=True):
        assert_array_equal(a, b)


def test_the_old_estimator_is_unchanged(model: BowTieRegressor) -> None:
    before = pickle.dumps(model)
    found = model.prune(FRAME, Y)
    assert type(found) is BowTieRegressor
    assert pickle.dumps(model) == before
    assert not hasattr(model, "pruning_")
    assert found.get_params(deep=False) == model.get_params(deep=False)


@pytest.mark.parametrize("n_rows", [60, 150])
def test_before_anything_goes_it_is_the_single_network(
    n_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins and a warp included: training makes other networks of sums that round otherwise."""
    monkeypatch.setattr(prune_ensemble, "shrink_networks", lambda trial, start, tolerance: [start])
    table, targets = FRAME[:n_rows], np.exp(0.5 * Y[:n_rows])
    changes = {"features": "auto", "target_transform": "auto", "n_estimators": None}
    found = quick(**changes).fit(table, targets).prune(table, targets)
    single = quick(**(changes | {"n_estimators": 1})).fit(table, targets)
    [own], [other] = found.ensemble_.members, single.ensemble_.members
    for a, b in zip(own.factors.layers, other.factors.layers, strict=True):
        np.testing.assert_allclose(a.weights.mean, b.weights.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.predict(table), single.predict(table), rtol=2e-3)


def test_columns_that_matter_are_left_by_name(pruned: BowTieRegressor) -> None:
    found = pruned.pruning_
    assert found.columns == tuple(NAMES)
    assert {"height", "mood"} <= set(found.columns_after)
    assert len(found.columns_after) < 5
    strength = pruned.feature_relevance_.strength
    assert_array_equal(strength > 0.0, found.kept)
    gone = [name for name in NAMES if name not in found.columns_after]
    shuffled = FRAME.assign(**{name: FRAME[name].to_numpy()[::-1] for name in gone})
    assert_array_equal(pruned.predict(shuffled), pruned.predict(FRAME))


def test_the_summary_is_that_of_the_networks(
    model: BowTieRegressor, pruned: BowTieRegressor, tmp_path: Path
) -> None:
    found, size = pruned.pruning_, pruned.sparsity_
    [member] = pruned.ensemble_.members
    assert (found.networks_before, found.networks_after) == (2, 1)
    assert found.weights_after == size.weights_after[0] == member.model.n_weights()
    assert found.weights_after < found.weights_before == model.sparsity_.weights_after.sum()
    assert found.units_after == sum(member.model.architecture.hidden)
    model.save(tmp_path / "model")
    assert found.bytes_before == (tmp_path / "model").stat().st_size
    assert 0 < found.bytes_after < found.bytes_before
    assert found.rmse_after <= 1.02 * found.rmse_before
    assert found.nll_after <= found.nll_before + 0.1
    text = str(found)
    for word in ("mood", "height", f"{found.weights_after:,}", "out of fold", "RMSE", "NLL"):
        assert word in text
    assert "rate" not in text


def test_it_predicts_new_rows_with_honest_intervals(
    model: BowTieRegressor, pruned: BowTieRegressor
) -> None:
    """About 90 % of 600 rows: 0.84 to 0.96 is five binomial errors, less what the fit leaves."""
    rng = np.random.default_rng(6)
    new = rng.normal(3.0, 2.0, size=(600, 5))
    y = np.abs(new[:, 3] - 3.0) + 0.7 * new[:, 1] + 0.2 * rng.normal(size=600)
    table = pd.DataFrame(new, columns=NAMES)
    errors = [np.sqrt(np.mean((one.predict(table) - y) ** 2)) for one in (model, pruned)]
    assert errors[1] < 1.25 * errors[0]
    assert pruned.pruning_.rmse_after == pytest.approx(errors[1], rel=0.4)
    low, high = pruned.predict_interval(table, 0.9).to_numpy().T
    assert 0.8 < np.mean((low <= y) & (y <= high)) < 0.98


def test_the_same_rows_and_seed_give_the_same_bits(
    model: BowTieRegressor, pruned: BowTieRegressor
) -> None:
    order = np.random.default_rng(0).permutation(len(FRAME))
    for again in (model.prune(open_source(FRAME, Y)), model.prune(FRAME.iloc[order], Y[order])):
        assert_same_answers(again, pruned, FRAME[:5])


def test_weights_count_as_repeated_rows(model: BowTieRegressor) -> None:
    weights = np.arange(150) % 3
    places = np.repeat(np.arange(150), weights)
    found = model.prune(FRAME, Y, weights)
    repeated = model.prune(FRAME.iloc[places], Y[places])
    np.testing.assert_allclose(found.predict(FRAME), repeated.predict(FRAME), rtol=1e-6)


def test_a_larger_tolerance_leaves_no_more(model: BowTieRegressor) -> None:
    counts = [model.prune(FRAME, Y, tolerance=share).pruning_.weights_after for share in (0.0, 2.0)]
    assert counts[1] <= counts[0]


def test_files_and_copies_say_the_same(pruned: BowTieRegressor, tmp_path: Path) -> None:
    pruned.save(tmp_path / "small")
    loaded = load(tmp_path / "small")
    assert loaded.pruning_ == pruned.pruning_
    for again in (loaded, pickle.loads(pickle.dumps(pruned))):
        assert_same_answers(again, pruned, FRAME[:5])
    for answer in everything(pruned, FRAME[:5]):
        assert np.isfinite(np.asarray(answer)).all()


def test_a_pruned_model_goes_on(pruned: BowTieRegressor) -> None:
    [member] = pruned.ensemble_.members
    warm = pickle.loads(pickle.dumps(pruned)).set_params(warm_start=True).fit(FRAME, Y)
    assert warm.ensemble_.members[0].model.architecture == member.model.architecture
    assert not hasattr(warm, "pruning_")
    more = pickle.loads(pickle.dumps(pruned)).partial_fit(FRAME[:20], Y[:20])
    assert more.sparsity_.weights_after[0] == member.model.n_weights()
    assert np.isfinite(more.predict(FRAME)).all()
    again = pruned.prune(FRAME, Y)
    assert again.pruning_.networks_before == 1


@pytest.mark.parametrize("hidden", [(), (6, 4)], ids=str)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_other_depths_and_several_targets(hidden: tuple[int, ...], n_targets: int) -> None:
    targets = np.column_stack([Y, X[:, 0]])[:, :n_targets]
    found = quick(hidden_layer_sizes=hidden).fit(X, targets).prune(X, targets)
    assert found.predict(X[:3]).shape == (3, n_targets)
    assert np.isfinite(found.predict(X[:3], return_std=True)).all()
    assert found.pruning_.weights_after < found.pruning_.weights_before


@pytest.mark.parametrize("prior", ["gaussian", "horseshoe", "regularized_horseshoe"])
def test_other_priors(prior: str) -> None:
    found = quick(prior=prior).fit(X, Y).prune(X, Y)
    assert np.isfinite(found.predict(X, return_std=True)).all()
    assert np.isfinite(found.elbo_)


def test_targets_without_a_signal() -> None:
    noise = np.random.default_rng(1).normal(20.0, 4.0, size=150)
    found = quick().fit(X, noise).prune(X, noise)
    assert found.pruning_.weights_after < found.pruning_.weights_before
    assert abs(np.mean(found.predict(X)) - 20.0) < 2.0


@pytest.mark.parametrize("tolerance", [-0.1, np.nan, "0.02", True])
def test_tolerances_that_are_none(tolerance: Any, model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        model.prune(FRAME, Y, tolerance=tolerance)


def test_rows_that_do_not_fit(model: BowTieRegressor) -> None:
    with pytest.raises(ValueError, match="mood"):
        model.prune(FRAME[NAMES[:3]], Y)
    with pytest.raises(ValueError, match="target"):
        model.prune(FRAME)
    with pytest.raises(ValueError, match="9 different rows"):
        model.prune(FRAME[:9], Y[:9])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [500, 501, 502])
def test_it_is_within_five_percent_of_a_single_network(seed: int) -> None:
    """Planted: 3 of 12 columns, an interaction, 400 rows, scored on 4,000 new ones."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(4400, 12))
    y = 2.0 * np.abs(table[:, 0]) + table[:, 1] * table[:, 2] + 0.3 * rng.normal(size=4400)
    rows, new = (table[:400], y[:400]), (table[400:], y[400:])
    single = BowTieRegressor(n_estimators=1, random_state=seed).fit(*rows)
    found = BowTieRegressor(random_state=seed).fit(*rows).prune(*rows)
    errors = [np.sqrt(np.mean((one.predict(new[0]) - new[1]) ** 2)) for one in (single, found)]
    assert errors[1] < 1.05 * errors[0]
    assert {"x0", "x1", "x2"} <= set(found.pruning_.columns_after)
    assert len(found.pruning_.columns_after) < 12
