"""Cross-fitted ensembles: held-out rows, members, weights, and tables that are hard to fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bowtienet._old._arrays import map_arrays
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.ensemble import cross_fit as module
from bowtienet._old.ensemble import fold_networks, member
from bowtienet._old.ensemble.cross_fit import Fitted, allocate, cross_fit, members_of_recipes
from bowtienet._old.ensemble.ensemble import check_ensemble, mean_and_deviation
from bowtienet._old.ensemble.fold_networks import Candidate, held_out_folds, new_networks, see
from bowtienet._old.ensemble.held_out_forecasts import (
    Swept,
    ratio_of_group,
    stack_forecasts,
)
from bowtienet._old.ensemble.settings import EFFORTS, FIRST_LENGTH, Effort, Settings, sweep_lengths
from bowtienet._old.ensemble.stacking import LARGEST_RATIO
from bowtienet._old.inference.start import network_outputs
from bowtienet._old.prediction.levels import gate_inputs, level_probabilities
from bowtienet._old.prediction.predictive import predict
from bowtienet._old.representation.representation import PLAIN
from tests._old.ensemble.fits import (
    RECIPE,
    assert_same_ensemble,
    assert_same_fit,
    bent_rows,
    bent_table,
    fit,
)

few_examples = settings(max_examples=50, deadline=None, derandomize=True)
SHORT = Effort(
    screens=True,
    penalties=(0.1, 3.0),
    parts=(1, 2),
    lengths=(15, 30),
    kept=(2, 2),
    n_recipes=2,
    sweeps=(1, 2),
    adapts=False,
    members=4,
)
PLAINLY = {"features": "standard", "target_transform": "none", "effort": "short"}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    monkeypatch.setattr(fold_networks, "FURTHER_STEPS", 10)


def small(**changes: Any) -> Settings:
    given: dict[str, Any] = {"hidden_layer_sizes": (6,), "max_iter": 20}
    return Settings(**(given | PLAINLY | changes))


def fitted(rows: Rows, seed: int = 0, **changes: Any) -> Fitted:
    rng = np.random.default_rng(seed)
    return cross_fit(rows, [PLAIN], small(**changes), rng, lambda *_, **__: None)


# Numbers of sweeps and members


@pytest.mark.parametrize("max_iter", [1, 2, 4, 5, 6, 19, 20, 21, 80, 500])
def test_lengths_from_a_random_start(max_iter: int) -> None:
    """Each twice the one before, and the last one the most that is allowed."""
    lengths = sweep_lengths(small(init="laplace", max_iter=max_iter))
    assert lengths[-1] == max_iter
    assert lengths[0] == min(FIRST_LENGTH, max_iter)
    assert {after / before for before, after in pairwise(lengths[:-1])} <= {2.0}
    assert all(before < after <= 2 * before for before, after in pairwise(lengths))


def test_lengths_from_a_network_are_few() -> None:
    assert sweep_lengths(small()) == (1, 2)
    assert sweep_lengths(small(max_iter=1)) == (1,)


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any),
    count=st.integers(1, 40),
)
@few_examples
def test_places_are_shared_out_in_proportion(counts: list[int], count: int) -> None:
    weights = np.array(counts, dtype=float)
    weights /= weights.sum()
    places = allocate(weights, count)
    assert places.sum() == count
    assert np.all(np.abs(places - weights * count) < 1.0 + 1e-9)
    assert np.all(places[weights == 0.0] == 0)
    order = np.argsort(weights, kind="stable")
    assert np.all(np.diff(places[order])[np.diff(weights[order]) > 1e-12] >= 0)


def test_members_of_recipes() -> None:
    weights = np.array([0.7, 0.0, 0.3])
    assert members_of_recipes(weights, None, 5) == [5, 0, 5]
    assert members_of_recipes(weights, 10, 5) == [7, 0, 3]
    assert members_of_recipes(weights, 1, 5) == [1, 0, 0]


@pytest.mark.parametrize("count", [1, 3, 12])
def test_as_many_members_as_are_wanted(count: int) -> None:
    found = fit(bent_table(60), small(n_estimators=count)).ensemble
    check_ensemble(found, 2, 1)
    assert len(found.members) == count
    assert found.weights.sum() == pytest.approx(1.0)
    assert np.all(found.weights > 0.0)
    assert (
        len({member.factors.layers[0].weights.mean.tobytes() for member in found.members}) == count
    )
    new, target = bent_table(200, seed=1)
    mean, deviation = mean_and_deviation(found, new)
    # A straight line leaves an error of 0.9.
    assert np.sqrt(np.mean((mean[:, 0] - target) ** 2)) < 0.5
    # 0.72 to 0.95 by the order of sums: one fit of 60 rows.
    assert np.mean(np.abs(mean[:, 0] - target) < 2.0 * deviation[:, 0]) > 0.6


def test_members_by_default_are_those_of_the_folds() -> None:
    """A recipe has a member for each fold, of one group, with equal weights and one ratio."""
    found = fitted(bent_rows(60))
    n_folds, n_groups = len(held_out_folds(60)), max(found.groups) + 1
    assert len(found.members) == n_folds * n_groups
    for group in range(n_groups):
        own = [k for k, place in enumerate(found.groups) if place == group]
        assert len(own) == n_folds
        assert len({found.weights[k] for k in own}) == 1
        assert len({found.members[k].variance_ratio.tobytes() for k in own}) == 1
        assert len({found.views[k] for k in own}) == 1
    assert sum(found.weights) == pytest.approx(1.0)


# Held-out rows


def noted(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> tuple[list[Swept], Fitted]:
    """What each recipe says of held-out rows, and what comes of it."""
    swept: list[Swept] = []
    whole = module.stack_recipes

    def note(own: Sequence[Swept], *arguments: Any) -> Any:
        swept.extend(own)
        return whole(own, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, "stack_recipes", note)
        found = fitted(rows, **changes)
    return swept, found


@pytest.mark.parametrize("changes", [{}, {"init": "laplace"}, {"hidden_layer_sizes": ()}], ids=str)
def test_forecasts_do_not_depend_on_the_held_out_target(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the prior of the first table: other targets move errors by as much, and no forecast.

    Networks of the other folds see these rows, and change.
    """
    rows, folds = bent_rows(40), held_out_folds(40)
    changes = {"init_penalty": 0.5, "n_estimators": 2, "max_iter": 5} | changes
    short = replace(SHORT, parts=(1,), sweeps=(2,), lengths=(15,), kept=(1,))
    monkeypatch.setitem(EFFORTS, "short", short)
    plain, prior = member.default_model, rows.targets
    monkeypatch.setattr(
        member, "default_model", lambda a, x, y, w, **given: plain(a, x, prior, w, **given)
    )
    fold, rest = folds[1], folds[2]
    targets = rows.targets.copy()
    targets[fold] += 0.1
    [one], _ = noted(rows, monkeypatch, **changes)
    [other], _ = noted(replace(rows, targets=targets), monkeypatch, **changes)
    assert one.n_sweeps == other.n_sweeps
    before, after = rows.targets[fold] - one.errors[fold], targets[fold] - other.errors[fold]
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(other.variances[fold], one.variances[fold], rtol=1e-9)
    assert not np.allclose(one.errors[rest], other.errors[rest], atol=1e-4)


def test_every_row_is_held_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    swept, found = noted(bent_rows(60), monkeypatch)
    for one in swept:
        assert one.errors.shape == one.variances.shape == (60, 1)
        assert np.all(one.variances > 0.0)
    held_out = found.noise.held_out
    assert held_out.values.shape == (60, 1)
    np.testing.assert_array_equal(held_out.weights, np.ones(60))


def test_members_have_seen_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean error of the members is below that of held-out rows."""
    rows = bent_rows(60)
    swept, found = noted(rows, monkeypatch)
    mean = sum(
        weight * predict(member.model, member.factors, rows.inputs).mean
        for weight, member in zip(found.weights, found.members, strict=True)
    )
    best = min(np.mean(one.errors**2) for one in swept)
    assert np.mean((rows.targets - mean) ** 2) < best


def test_the_same_bits_on_one_and_two_threads() -> None:
    first, second = (
        fit(bent_table(60), small(n_estimators=3, n_jobs=n_jobs)).ensemble for n_jobs in (1, 2)
    )
    assert_same_ensemble(first, second)
    map_arrays(np.testing.assert_array_equal, first.levels, second.levels)
    map_arrays(np.testing.assert_array_equal, first.held_out, second.held_out)


# Weights, levels and scores from forecasts


def random_swept(n: int = 80, n_recipes: int = 2, seed: int = 0) -> list[Swept]:
    rng = np.random.default_rng(seed)
    return [
        Swept(
            candidate=Candidate(recipe=RECIPE),
            n_sweeps=1,
            targets=rng.normal(size=(n, 2)),
            means=np.zeros((n, 2)),
            variances=rng.gamma(4.0, 0.25, size=(n, 2)),
            ratio=rng.uniform(0.7, 1.5, size=2),
            log_densities=np.zeros(n),
        )
        for _ in range(n_recipes)
    ]


def test_scores_of_held_out_rows_in_loops() -> None:
    """F(y) of the mixture of recipes and levels, of rows that count."""
    swept, rng = random_swept(), np.random.default_rng(1)
    inputs = rng.normal(size=(80, 3))
    row_weights = np.where(np.arange(80) % 7 == 0, 0.0, 1.5)
    weights, levels, held_out = stack_forecasts(
        swept, np.zeros((2, 80)), row_weights, inputs, Settings()
    )
    assert weights.sum() == pytest.approx(1.0)
    assert (levels.scale.shape, levels.gates.shape) == ((3, 2), (2, 4, 2))
    shares = level_probabilities(levels, inputs)
    expected = np.zeros((80, 2))
    for n, d in np.ndindex(80, 2):
        for weight, one in zip(weights, swept, strict=True):
            for k in range(3):
                spread = levels.scale[k, d] * one.ratio[d] * one.variances[n, d]
                expected[n, d] += (
                    weight * shares[k, n, d] * norm.cdf(one.errors[n, d], 0, spread**0.5)
                )
    np.testing.assert_allclose(held_out.values, expected[row_weights > 0.0], rtol=1e-9)
    np.testing.assert_array_equal(held_out.weights, 1.5)


def test_scores_are_uniform_where_noise_is_as_forecast() -> None:
    """Kolmogorov's distance of 2000 scores below its 1e-6 point, 2.7 / sqrt(2000)."""
    rng = np.random.default_rng(2)
    swept = random_swept(2000, 1)
    deviations = np.sqrt(swept[0].ratio * swept[0].variances)
    swept = [replace(swept[0], targets=deviations * rng.normal(size=(2000, 2)))]
    _, _, held_out = stack_forecasts(
        swept, np.zeros((1, 2000)), np.ones(2000), rng.normal(size=(2000, 2)), Settings()
    )
    even = (np.arange(2000) + 0.5) / 2000
    for values in held_out.values.T:
        assert np.max(np.abs(np.sort(values) - even)) < 2.7 / np.sqrt(2000)


@pytest.mark.parametrize(
    ("n", "noise", "expected"), [(49, "auto", 1), (50, "auto", 3), (80, "constant", 1)]
)
def test_numbers_of_levels(n: int, noise: str, expected: int) -> None:
    _, levels, _ = stack_forecasts(
        random_swept(n), np.zeros((2, n)), np.ones(n), np.zeros((n, 2)), Settings(noise=noise)
    )
    assert len(levels.scale) == expected
    assert len(levels.gates) == expected - 1


def test_gates_see_the_columns_that_errors_follow() -> None:
    """Few of many columns where rows are few: those that the size of errors follows."""
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(100, 40))
    [one] = random_swept(100, 1)
    errors = np.sqrt(one.variances) * np.exp(1.5 * inputs[:, [17]]) * rng.normal(size=(100, 2))
    _, levels, _ = stack_forecasts(
        [replace(one, targets=errors)], np.zeros((1, 100)), np.ones(100), inputs, Settings()
    )
    assert len(levels.columns) == 10
    assert 17 in levels.columns
    assert np.all(np.diff(levels.columns) > 0)
    assert gate_inputs(levels.columns, inputs).shape == (100, 11)


def test_recipes_of_little_weight_are_left_out() -> None:
    good, bad = random_swept(200, 2)
    bad = replace(bad, targets=9.0 * bad.errors)
    weights, _, _ = stack_forecasts(
        [bad, good], np.zeros((2, 200)), np.ones(200), np.zeros((200, 1)), Settings()
    )
    np.testing.assert_array_equal(weights, [0.0, 1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_recipe_that_broke_down_is_left_out(bad: float) -> None:
    good, broken = random_swept(80, 2)
    broken = replace(broken, means=np.full_like(broken.errors, bad))
    weights, levels, held_out = stack_forecasts(
        [good, broken], np.zeros((2, 80)), np.ones(80), np.zeros((80, 1)), Settings()
    )
    np.testing.assert_array_equal(weights, [1.0, 0.0])
    assert np.isfinite(levels.gates).all()
    assert np.all((levels.scale > 0.0) & (levels.scale <= LARGEST_RATIO))
    assert np.all((held_out.values >= 0.0) & (held_out.values <= 1.0))


def test_the_ratio_of_a_group_leaves_room_for_disagreement() -> None:
    """r - 2 (1 - 1/m) τ² / v, with τ² of the parts if it is known, else that of the members."""
    [seen] = see(bent_rows(30), [PLAIN])
    networks = [new_networks(RECIPE, number, seen.rows, small()) for number in range(3)]
    outputs = [network_outputs(own, seen.rows.inputs)[0, :, 0] for own in networks]
    spread = sum((own - sum(outputs) / 3.0) ** 2 for own in outputs).mean() / 2.0
    variances = np.random.default_rng(4).uniform(200.0, 300.0, size=(30, 1))
    one = Swept(
        candidate=Candidate(recipe=RECIPE),
        n_sweeps=1,
        targets=variances,
        means=np.zeros_like(variances),
        variances=variances,
        ratio=np.array([1.5]),
        log_densities=np.zeros(30),
    )
    expected = 1.5 - 2.0 * (2.0 / 3.0) * spread / variances.mean()
    np.testing.assert_allclose(ratio_of_group(one, networks, seen.rows), [expected], rtol=1e-5)
    known = replace(one, by_chance=np.array([30.0]))
    expected = 1.5 - 2.0 * (2.0 / 3.0) * 30.0 / variances.mean()
    np.testing.assert_allclose(ratio_of_group(known, networks, seen.rows), [expected], rtol=1e-9)
    # Not less than a quarter of it is left.
    narrow = replace(known, variances=1e-9 * variances)
    np.testing.assert_allclose(ratio_of_group(narrow, networks, seen.rows), 0.25 * 1.5)
    np.testing.assert_array_equal(ratio_of_group(known, networks[:1], seen.rows), [1.5])


# Tables that are hard to fit


@pytest.mark.parametrize("n", [2, 3, 9])
def test_too_few_rows_are_not_held_out(n: int) -> None:
    found = fit(bent_table(n), small()).ensemble
    check_ensemble(found, 2, 1)
    assert len(found.members) == module.FEW_MEMBERS
    assert (found.levels, found.held_out) == (None, None)
    np.testing.assert_allclose(found.weights, 0.2)
    assert np.isfinite(mean_and_deviation(found, bent_table(5)[0])).all()
    assert len(fit(bent_table(n), small(n_estimators=2)).ensemble.members) == 2


@pytest.mark.parametrize("n", [10, 11, 60])
@pytest.mark.parametrize("kind", ["constant target", "identical rows", "constant columns"])
def test_tables_without_a_difference(kind: str, n: int) -> None:
    X, y = bent_table(n)
    if kind == "constant target":
        y = np.full(n, 3.5)
    elif kind == "identical rows":
        X, y = np.tile(X[:1], (n, 1)), np.tile(y[:1], n)
    else:
        X = np.ones_like(X)
    found = fit((X, y), small(n_estimators=2)).ensemble
    check_ensemble(found, 2, 1)
    mean, deviation = mean_and_deviation(found, X)
    assert np.isfinite(mean).all()
    assert np.all(deviation > 0.0)
    if kind != "constant columns":
        np.testing.assert_allclose(mean[:, 0], y, atol=0.05)


@pytest.mark.parametrize("changes", [{}, {"init": "laplace"}], ids=str)
def test_rows_of_weight_zero_have_no_influence(changes: dict[str, Any]) -> None:
    """Whatever targets they have: members, weights and levels are the same to the bit."""
    weights = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    rows = replace(bent_rows(60), weights=weights)
    targets = np.where(weights[:, None] > 0.0, rows.targets, 7.0)
    first, second = (
        fitted(each, n_estimators=2, **changes) for each in (rows, replace(rows, targets=targets))
    )
    for one, other in zip(first.members, second.members, strict=True):
        assert_same_fit(one, other)
    assert first.weights == second.weights
    map_arrays(np.testing.assert_array_equal, first.noise, second.noise)
    assert first.noise.held_out.values.shape == (45, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": (4, 3)},
        {"init": "laplace"},
        {"init": "laplace", "hidden_layer_sizes": (4, 3)},
        {"prior": "gaussian", "propagation": "variational"},
        {"noise": "constant"},
    ],
    ids=str,
)
def test_networks_of_every_kind(changes: dict[str, Any]) -> None:
    found = fit(bent_table(60), small(n_estimators=3, **changes)).ensemble
    check_ensemble(found, 2, 1)
    assert len(found.members) == 3
    new, target = bent_table(100, seed=1)
    mean, deviation = mean_and_deviation(found, new)
    assert np.mean(np.abs(mean[:, 0] - target) < 2.0 * deviation[:, 0]) > 0.8
    if changes.get("hidden_layer_sizes") == ():
        assert found.members[0].model.architecture.hidden == ()
    if changes.get("noise") == "constant":
        assert len(found.levels.scale) == 1


def test_two_targets() -> None:
    X, y = bent_table(60)
    both = np.column_stack([y, 10.0 * X[:, 1] - 7.0])
    found = fit((X, both), small(n_estimators=3)).ensemble
    check_ensemble(found, 2, 2)
    mean, _ = mean_and_deviation(found, X)
    assert np.all(np.sqrt(np.mean((mean - both) ** 2, axis=0)) < [0.5, 2.0])
    assert found.levels.scale.shape[1] == found.held_out.values.shape[1] == 2


def test_no_noise_at_all_is_fitted() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    found = fitted(build_rows(X, np.zeros((40, 1))), n_estimators=2)
    assert np.isfinite(found.weights).all()
    assert all(np.isfinite(member.variance_ratio).all() for member in found.members)


def test_the_first_sweep_does_not_forget_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrinkage suits the weights from the beginning, also on a small table with little noise."""
    [bent, *_], _ = noted(bent_rows(60), monkeypatch)
    assert np.sqrt(np.mean(bent.errors**2)) < 0.2
