"""Rows that arrive over time: each step leaves members of all rows so far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.door import open_source
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble import arriving as module
from bowtienet._old.ensemble.arriving import Arrivals, remember, take_in
from bowtienet._old.ensemble.ensemble import Ensemble, mean_and_deviation
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.ensemble.stacking import NEVER
from bowtienet._old.ensemble.streams import arriving
from bowtienet._old.inference import global_step as steps
from bowtienet._old.inference.convergence import Status
from tests._old.ensemble.fits import fit, only, small

FAST = small(hidden_layer_sizes=(5,), max_iter=8, weighting="equal")


def table(n: int, seed: int, noise: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2.0 * np.abs(X[:, 0]) - X[:, 1] + noise * rng.normal(size=n)


X, Y = table(200, 0)
NEW = table(60, 1)


def seen(ensemble: Ensemble, *rows: Any, size: int = 4096) -> list[Rows]:
    return list(arriving(open_source(*rows), ensemble.representation, size))


def begin(rows: Any = (X, Y), settings: Settings = FAST) -> tuple[Ensemble, Arrivals]:
    ensemble = fit(rows, settings).ensemble
    return ensemble, remember(seen(ensemble, *rows))


@pytest.fixture(scope="module")
def begun() -> tuple[Ensemble, Arrivals]:
    return begin()


def counts(ensemble: Ensemble) -> list[float]:
    return [float(member.statistics.count) for member in ensemble.members]


def after(
    begun: tuple[Ensemble, Arrivals | None], *rows: Any, reweigh: bool = False, size: int = 4096
) -> tuple[Ensemble, Arrivals]:
    ensemble, arrivals = begun
    return take_in(ensemble, seen(ensemble, *rows, size=size), arrivals, reweigh=reweigh)


def assert_same(first: Ensemble, second: Ensemble) -> None:
    """To the bit."""
    for a, b in zip(first.members, second.members, strict=True):
        map_arrays(assert_array_equal, (a.factors, a.statistics), (b.factors, b.statistics))
        assert_array_equal(a.variance_ratio, b.variance_ratio)
    assert_array_equal(first.weights, second.weights)


def error(ensemble: Ensemble, rows: tuple[np.ndarray, np.ndarray]) -> float:
    return float(np.mean((mean_and_deviation(ensemble, rows[0])[0][:, 0] - rows[1]) ** 2))


# Rows


def test_rows_are_counted_by_their_weights(begun: tuple[Ensemble, Arrivals]) -> None:
    first, arrivals = after(begun, *NEW)
    assert_allclose(counts(first), 260.0)
    second, _ = after((first, arrivals), *NEW, np.full(60, 0.5))
    assert_allclose(counts(second), 290.0)
    for before, member in zip(begun[0].members, second.members, strict=True):
        assert member.status is Status.ARRIVING
        assert member.n_sweeps == before.n_sweeps + 2
        assert len(member.elbo_history) == len(before.elbo_history) + 2
        assert member.elbo_history[-1] == float(member.elbo_terms.total)
    assert arrivals.weight == 260.0
    assert begun[1].weight == 200.0


def test_rows_once_seen_matter_as_much_as_new_ones() -> None:
    """A regression without hidden layer has exact sums: it ends where all rows at once do."""
    settings = replace(FAST, hidden_layer_sizes=(), n_estimators=1, max_iter=60, tol=1e-9)
    whole = table(600, 6)
    state = begin((whole[0][:200], whole[1][:200]), settings)
    for start in range(200, 600, 40):
        state = after(state, whole[0][start : start + 40], whole[1][start : start + 40])
    expected = mean_and_deviation(fit(whole, settings).ensemble, X)
    found = mean_and_deviation(state[0], X)
    assert_allclose(found[0], expected[0], atol=5e-3)
    assert_allclose(found[1], expected[1], rtol=0.03)


def test_batches_are_taken_in_one_after_the_other(begun: tuple[Ensemble, Arrivals]) -> None:
    together, _ = after(begun, *NEW, size=25)
    state = begun
    for start in (0, 25, 50):
        state = after(state, NEW[0][start : start + 25], NEW[1][start : start + 25])
    assert_same(together, state[0])
    assert together.members[0].n_sweeps == begun[0].members[0].n_sweeps + 3


@pytest.mark.parametrize("reweigh", [True, False])
def test_rows_of_weight_zero_change_nothing(
    reweigh: bool, begun: tuple[Ensemble, Arrivals]
) -> None:
    some = np.arange(60) % 3 > 0
    wild = np.where(some[:, None], NEW[0], 1e3), np.where(some, NEW[1], -1e5)
    expected, _ = after(begun, NEW[0][some], NEW[1][some], reweigh=reweigh)
    found, _ = after(begun, *wild, some.astype(float), reweigh=reweigh)
    assert_same(expected, found)


def test_one_odd_row_counts_once(begun: tuple[Ensemble, Arrivals]) -> None:
    """Without remembered rows: as in a fit to all rows but one."""
    before = mean_and_deviation(begun[0], X)[1].mean()
    found, arrivals = after((begun[0], None), np.zeros((1, 3)), np.array([10.0]))
    assert mean_and_deviation(found, X)[1].mean() < 4.0 * before
    assert_allclose(counts(found), 201.0)
    assert arrivals.weight == 1.0


def test_remembered_rows_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while they speak for all rows; from a random start there is still much to learn."""
    begun = begin(settings=replace(FAST, init="laplace"))
    replayed, _ = after(begun, *NEW)
    plain, _ = after((begun[0], None), *NEW)
    monkeypatch.setattr(module, "REPLAYS", 0)
    none, _ = after(begun, *NEW)
    assert_same(plain, none)
    assert error(replayed, table(500, 8)) < error(none, table(500, 8))


def test_a_batch_out_of_all_proportion_breaks_nothing(begun: tuple[Ensemble, Arrivals]) -> None:
    """A step that is not finite is not taken, and its rows are not remembered."""
    found, arrivals = after(begun, NEW[0], 1e300 * NEW[1])
    assert_same(found, begun[0])
    assert arrivals.sample.rows.inputs.shape[0] == 200


@pytest.mark.parametrize("size", [1e20, 1e150, 1e300])
def test_rows_out_of_reach_are_left_out(begun: tuple[Ensemble, Arrivals], size: float) -> None:
    """What a filled value of 1e20 would do to the networks is undone by no later row."""
    x, y = NEW[0].copy(), NEW[1]
    x[:3, 1] = size
    with pytest.warns(UserWarning, match="3 rows"):
        found, _ = after(begun, x, y)
    assert_same(found, after(begun, x[3:], y[3:])[0])


def test_a_step_that_breaks_down_is_not_taken(
    begun: tuple[Ensemble, Arrivals], monkeypatch: pytest.MonkeyPatch
) -> None:
    def singular(*_: Any) -> Any:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(steps, "update_local_shrinkage", singular)
    found, arrivals = after(begun, *NEW)
    assert_same(found, begun[0])
    assert arrivals.sample.rows.inputs.shape[0] == 200


def test_members_of_several_targets_go_on() -> None:
    settings = replace(FAST, hidden_layer_sizes=(12,), max_iter=12)
    two, new = (
        np.stack([y, x[:, 2] + 0.3 * np.random.default_rng(0).normal(size=len(y))], axis=1)
        for x, y in ((X, Y), NEW)
    )
    state = begin((X, two), settings)
    found, _ = after(state, NEW[0], new)
    assert_allclose(counts(found), 260.0)
    assert error(found, table(500, 8)) < 0.1
    deep = begin((X, two), replace(FAST, hidden_layer_sizes=(4, 3), max_iter=3, n_estimators=1))
    assert_allclose(counts(after(deep, X[:20], two[:20])[0]), 220.0)


# Ensemble weights


def with_ratios(ensemble: Ensemble, *ratios: float) -> Ensemble:
    members = tuple(
        replace(member, variance_ratio=np.array([ratio]))
        for member, ratio in zip(ensemble.members, ratios, strict=True)
    )
    return replace(ensemble, members=members)


def test_weights_move_to_the_member_that_predicts_better(begun: tuple[Ensemble, Arrivals]) -> None:
    """New rows are predicted before anything is learnt from them."""
    good, bad = begun[0].members
    layers = bad.factors.layers
    wrong = replace(layers[-1].weights, mean=0.0 * layers[-1].weights.mean)
    spoilt = (*layers[:-1], replace(layers[-1], weights=wrong))
    bad = replace(bad, factors=replace(bad.factors, layers=spoilt))
    ensemble = replace(begun[0], members=(good, bad))
    found, _ = after((ensemble, begun[1]), *table(100, 10), reweigh=True)
    assert found.weights[0] > 0.7
    assert_allclose(found.weights.sum(), 1.0)


def test_weights_move_away_from_variances_that_are_wrong(begun: tuple[Ensemble, Arrivals]) -> None:
    """The same network twice: the one that claims to know little loses its weight."""
    first = begun[0].members[0]
    ensemble = with_ratios(replace(begun[0], members=(first, first)), 1.0, 1e4)
    found, _ = after((ensemble, begun[1]), *table(150, 12), reweigh=True)
    assert found.weights[0] > 0.7
    assert [member.variance_ratio.tolist() for member in found.members] == [[1.0], [1e4]]


def test_few_rows_leave_the_weights_of_the_fit(begun: tuple[Ensemble, Arrivals]) -> None:
    ensemble = replace(begun[0], weights=np.array([0.9, 0.1]))
    found, _ = after((ensemble, begun[1]), NEW[0][:1], NEW[1][:1], reweigh=True)
    assert_allclose(found.weights, [0.9, 0.1], atol=0.02)
    same, arrivals = after((ensemble, begun[1]), *NEW)
    assert_array_equal(same.weights, [0.9, 0.1])
    assert arrivals.recent is None


def test_densities_are_those_of_the_predictive_distribution(
    begun: tuple[Ensemble, Arrivals], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ratios of the members, but for the unit of the target; the latest rows alone."""
    monkeypatch.setattr(module, "RECENT", 50)
    ensemble = with_ratios(begun[0], 4.0, 0.3)
    _, arrivals = after((ensemble, begun[1]), *NEW, reweigh=True)
    assert arrivals.recent.shape == (50, 2)
    assert np.all(arrivals.recent > NEVER)
    scale = ensemble.representation.target_scaling.scale[0]
    for index in range(2):
        alone = only(ensemble, index)
        mean, deviation = mean_and_deviation(alone, NEW[0][10:])
        expected = norm.logpdf(NEW[1][10:], mean[:, 0], deviation[:, 0]) + np.log(scale)
        assert_allclose(arrivals.recent[:, index], expected, rtol=1e-9, atol=1e-9)
