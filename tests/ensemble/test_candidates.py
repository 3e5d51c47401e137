"""Recipes by held-out densities of ordinary networks: views, parts, halving, and starts.

Paths of L-BFGS in single precision part after some steps, so networks that should agree are
compared after few; `SINGLE` is what single precision allows there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from bowtienet.data.rows import Rows, build_rows, take_rows
from bowtienet.distributions.yeo_johnson import Warp, fit_warp, identity, to_warped
from bowtienet.ensemble import candidates as module
from bowtienet.ensemble.candidates import (
    FEWEST_ROWS,
    FEWEST_UNITS,
    FOLDS,
    KEPT,
    LEAST_BEND,
    LEAST_WEIGHT,
    LENGTHS,
    MOST_RECIPES,
    PARTS,
    PENALTIES,
    choose_recipes,
    held_out_folds,
    possible_parts,
    possible_views,
    start_networks,
)
from bowtienet.ensemble.settings import AUTO_TEMPERATURE, Recipe, Settings
from bowtienet.inference.start import (
    SMOOTHING,
    Networks,
    fit_networks,
    network_outputs,
    random_networks,
)
from bowtienet.representation.pieces import N_BINS, fit_pieces
from bowtienet.representation.representation import PLAIN, View, log_slopes, network_rows

SINGLE = 2e-4
FEW_STEPS = (2, 4, 6)
RECIPE = Recipe(gate_temperature=0.1, init_penalty=0.5, start_iterations=4, seed=1)


def standardized(inputs: np.ndarray, targets: np.ndarray, weights: Any = None) -> Rows:
    targets = targets.reshape(len(inputs), -1)
    inputs, targets = ((x - x.mean(axis=0)) / x.std(axis=0) for x in (inputs, targets))
    return build_rows(inputs, targets, weights)


def curved_rows(n: int = 80, seed: int = 0, weights: Any = None) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return standardized(x, np.sin(2.0 * x[:, 0]) + x[:, 1] + 0.2 * rng.normal(size=n), weights)


def skewed_rows(n: int = 80, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return standardized(x, np.exp(1.2 * x[:, 0] + 0.5 * rng.normal(size=n)))


def chosen(rows: Rows, seed: int = 0, **changes: Any) -> list[tuple[View, Recipe]]:
    """Recipes with their views."""
    settings = Settings(**({"hidden_layer_sizes": (10,)} | changes))
    views = possible_views(rows, settings)
    recipes = choose_recipes(rows, views, settings, np.random.default_rng(seed))
    return [(views[recipe.view], recipe) for recipe in recipes]


# Views


def kinds(views: Sequence[View]) -> list[tuple[bool, bool]]:
    """Whether views have pieces and a warp."""
    return [(view.pieces is not None, view.warp is not None) for view in views]


@pytest.mark.parametrize(
    ("features", "pieces"),
    [("auto", [False, True]), ("standard", [False]), ("piecewise", [True]), (4, [True])],
)
@pytest.mark.parametrize(
    ("transform", "warps"),
    [("auto", [False, True]), ("none", [False]), ("yeo-johnson", [True])],
)
def test_views_of_every_setting(
    features: str | int, pieces: list[bool], transform: str, warps: list[bool]
) -> None:
    """The plainest first; bins and warp are those of all rows, and the same in all views."""
    rows = skewed_rows()
    views = possible_views(rows, Settings(features=features, target_transform=transform))
    assert kinds(views) == list(product(pieces, warps))
    n_bins = features if isinstance(features, int) else N_BINS
    expected = fit_pieces(rows.inputs, rows.weights, n_bins), fit_warp(rows.targets, rows.weights)
    for view in views:
        for found, wanted in zip((view.pieces, view.warp), expected, strict=True):
            for name, values in vars(found).items() if found is not None else ():
                np.testing.assert_array_equal(values, getattr(wanted, name))
    if isinstance(features, int):
        assert all(max(np.bincount(view.pieces.column)) == features for view in views)


@pytest.mark.parametrize(
    ("exponents", "bent"),
    [
        ([1.0], False),
        ([1.0 - 0.98 * LEAST_BEND], False),
        ([1.0 + 0.98 * LEAST_BEND], False),
        ([1.0 - 1.02 * LEAST_BEND], True),
        ([1.0 + 1.02 * LEAST_BEND], True),
        ([1.0, 0.5], True),
    ],
)
def test_a_warp_that_is_nearly_none_is_left_out_unless_asked_for(
    exponents: list[float], bent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    warp = replace(identity(len(exponents)), exponent=np.array(exponents))
    monkeypatch.setattr(module, "fit_warp", lambda targets, weights: warp)
    rows = build_rows(np.zeros((20, 1)), np.zeros((20, len(exponents))))
    plain = Settings(features="standard")
    assert kinds(possible_views(rows, plain)) == [(False, False), (False, True)][: 1 + bent]
    [view] = possible_views(rows, replace(plain, target_transform="yeo-johnson"))
    assert view.warp is warp


@pytest.mark.parametrize("features", ["auto", "piecewise", 4])
def test_no_pieces_where_no_column_has_two_bins(features: str | int) -> None:
    """Columns of two values, and tables of few rows."""
    rng = np.random.default_rng(0)
    two_values = build_rows(rng.integers(0, 2, size=(60, 3)) - 0.5, rng.gamma(1.0, size=60))
    for rows in (two_values, take_rows(skewed_rows(), np.arange(9))):
        for transform, warps in (("none", [False]), ("yeo-johnson", [True])):
            settings = Settings(features=features, target_transform=transform)
            assert kinds(possible_views(rows, settings)) == [(False, warp) for warp in warps]


# Parts


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ((), [1]),
        ((1,), [1]),
        ((5,), [1]),
        ((6,), [1, 2]),
        ((7,), [1]),
        ((12,), [1, 4]),
        ((15,), [1, 5]),
        ((50,), [1, 5]),
        ((50, 8), [1, 2]),
        ((50, 5), [1]),
        ((50, 50, 15), [1, 5]),
    ],
)
def test_numbers_of_parts(hidden: tuple[int, ...], expected: list[int]) -> None:
    assert possible_parts(hidden) == expected


def test_parts_share_out_all_units_of_all_layers() -> None:
    """One network, and as many as can be, of three units at least."""
    single = [(width,) for width in range(1, 130)]
    for hidden in [*single, *product(range(1, 31), repeat=2), *product((6, 15, 30, 50), repeat=3)]:
        found = possible_parts(hidden)
        fitting = [
            parts
            for parts in range(2, max(PARTS) + 1)
            if all(width % parts == 0 and width // parts >= FEWEST_UNITS for width in hidden)
        ]
        assert found == [1, *fitting[-1:]]


# Folds


@pytest.mark.parametrize("enough", [1, 200, 500, 10_000])
def test_folds_of_every_size(enough: int) -> None:
    """Consecutive fifths, until enough rows were held out, and no fold more."""
    for n in (*range(1, 300), 999, 1000, 1001, 2499, 2500, 2501, 4000):
        folds = held_out_folds(n, enough)
        if n < FEWEST_ROWS:
            assert folds == []
            continue
        sizes = [fold.stop - fold.start for fold in folds]
        assert 1 <= len(folds) <= FOLDS
        assert folds[0].start == 0
        assert all(before.stop == after.start for before, after in pairwise(folds))
        assert min(sizes) >= 1
        assert max(sizes) - n / FOLDS < 1.0
        assert min(enough, n) <= sum(sizes) <= n
        assert sum(sizes) - sizes[-1] < enough


# Densities


@pytest.mark.parametrize("exponent", [0.0, 0.4, 1.0, 1.7])
def test_slopes_make_densities_of_standardised_targets(exponent: float) -> None:
    """N(z(u)) |dz/du| is the derivative of the distribution function of u, for two targets."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(50, 2))
    warp = Warp(
        exponent=np.array([exponent, 1.3]),
        low=np.full(2, -3.0),
        high=np.full(2, 3.0),
        center=np.array([0.2, -0.1]),
        scale=np.array([0.7, 1.4]),
    )
    rows = build_rows(np.zeros((50, 1)), u)
    mean, deviation = np.array([0.3, -0.2]), np.array([1.5, 2.0])
    found = norm.logpdf(to_warped(warp, u), mean, deviation).sum(axis=1)
    found += log_slopes(View(warp=warp), rows)
    step = 1e-5
    high, low = (norm.cdf(to_warped(warp, v), mean, deviation) for v in (u + step, u - step))
    expected = np.log((high - low) / (2.0 * step)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_one_forecaster_has_one_density_with_and_without_a_warp() -> None:
    """A warp of exponent 1 is another unit for the same normal forecast."""
    rng = np.random.default_rng(1)
    rows = build_rows(np.zeros((40, 1)), rng.normal(size=(40, 2)))
    mean, deviation = rng.normal(size=(40, 2)), rng.uniform(0.5, 2.0, size=(40, 2))
    warp = replace(identity(2), center=np.array([0.3, -1.0]), scale=np.array([0.1, 7.0]))
    plain = norm.logpdf(rows.targets, mean, deviation).sum(axis=1)
    np.testing.assert_array_equal(log_slopes(PLAIN, rows), 0.0)
    seen = network_rows(View(warp=warp), rows)
    warped = norm.logpdf(seen.targets, to_warped(warp, mean), deviation / warp.scale).sum(axis=1)
    assert np.max(np.abs(warped - plain)) > 0.1
    found = warped + log_slopes(View(warp=warp), rows)
    np.testing.assert_allclose(found, plain, rtol=1e-10)


@pytest.mark.parametrize("parts", [1, 2])
def test_held_out_densities_in_loops(parts: int, rng: np.random.Generator) -> None:
    """Of the mean of each fold's parts, with the one noise that weighted errors ask for."""
    rows = curved_rows(50, weights=rng.uniform(0.2, 2.0, size=50))
    rows = replace(rows, targets=np.column_stack([rows.targets, rows.inputs[:, 1] ** 2]))
    folds = [slice(0, 10), slice(10, 20), slice(20, 30)]
    weights = np.ones((3 * parts, 50))
    networks = random_networks((4,), rows.inputs, rows.targets, weights, rng)
    found = module._held_out_densities(networks, parts, rows, folds)
    each = network_outputs(networks, rows.inputs)
    errors = np.empty((30, 2))
    for row in range(30):
        own = [each[parts * (row // 10) + part, row] for part in range(parts)]
        errors[row] = rows.targets[row] - sum(own) / parts
    noise = np.average(errors**2, axis=0, weights=rows.weights[:30])
    expected = norm.logpdf(errors, 0.0, np.sqrt(noise)).sum(axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# Planted tables


@pytest.mark.parametrize("seed", range(3))
def test_a_step_function_is_seen_in_pieces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 2))
    rows = standardized(x, np.floor(3.0 * x[:, 0]) % 2 + 0.05 * rng.normal(size=300))
    (best, _), *_ = chosen(rows)
    assert best.pieces is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_lognormal_target_is_warped(seed: int) -> None:
    assert all(view.warp is not None for view, _ in chosen(skewed_rows(300, seed)))


def test_a_line_through_few_rows_is_seen_in_plain_columns() -> None:
    """In most of five tables: a column's worth of noise can favour bins in one of them."""
    plain = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(40, 4))
        rows = standardized(x, x @ [1.0, -1.0, 0.5, 0.0] + 0.5 * rng.normal(size=40))
        (best, _), *_ = chosen(rows, target_transform="none")
        plain += best.pieces is None
    assert plain >= 4


# Menus


def test_recipes_are_few_and_distinct_and_follow_the_settings() -> None:
    for seed in range(3):
        found = [recipe for _, recipe in chosen(curved_rows(seed=seed), seed)]
        assert 1 <= len(found) <= MOST_RECIPES
        menu = {(recipe.view, recipe.parts, recipe.init_penalty) for recipe in found}
        assert len(menu) == len(found)
        assert len({recipe.seed for recipe in found}) == len(found)
        for recipe in found:
            assert recipe.gate_temperature == AUTO_TEMPERATURE
            assert recipe.init_penalty in PENALTIES
            assert recipe.parts in possible_parts((10,))
            assert recipe.start_iterations in LENGTHS


def test_a_fixed_penalty_and_temperature_are_respected() -> None:
    found = chosen(curved_rows(), init_penalty=0.31, gate_temperature=0.2)
    assert {recipe.init_penalty for _, recipe in found} == {0.31}
    assert {recipe.gate_temperature for _, recipe in found} == {0.2}


@pytest.mark.parametrize("weighting", ["stacking", "equal", "elbo"])
def test_same_seed_same_recipes(weighting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    first, again, other = (
        [recipe for _, recipe in chosen(curved_rows(), seed, weighting=weighting)]
        for seed in (5, 5, 6)
    )
    assert first == again
    assert {recipe.seed for recipe in first}.isdisjoint({recipe.seed for recipe in other})


@pytest.mark.parametrize("n", [2, FEWEST_ROWS - 1])
def test_of_very_few_rows_the_plain_view_and_the_smoothest_first(n: int) -> None:
    rows = take_rows(skewed_rows(), np.arange(n))
    found = chosen(rows)
    assert kinds([view for view, _ in found]) == [(False, False)] * len(found)
    wanted = [(parts, penalty) for parts in (2, 1) for penalty in sorted(PENALTIES, reverse=True)]
    assert [(recipe.parts, recipe.init_penalty) for _, recipe in found] == wanted
    assert len({recipe.seed for _, recipe in found}) == len(found)


@pytest.mark.parametrize("n", [FEWEST_ROWS - 1, 60])
@pytest.mark.parametrize(
    "settings", [{"init": "laplace"}, {"init": "spike_slab"}, {"hidden_layer_sizes": ()}], ids=str
)
def test_without_a_network_to_start_from_there_is_one_recipe_of_a_view(
    settings: dict[str, Any], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A penalty and parts of networks say nothing of a random start: only views are compared."""
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    rows = take_rows(skewed_rows(), np.arange(n))
    found = [recipe for _, recipe in chosen(rows, **settings)]
    assert len({recipe.view for recipe in found}) == len(found)
    assert {recipe.parts for recipe in found} == {1}
    plain = {"features": "standard", "target_transform": "none"}
    assert len(chosen(rows, **settings, **plain)) == 1


def test_without_a_network_the_best_recipe_of_each_view_is_kept_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = [replace(RECIPE, view=view, seed=seed) for seed, view in enumerate((0, 1, 0))]
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    monkeypatch.setattr(module, "_best", lambda compared, weights: best)
    found = [recipe for _, recipe in chosen(curved_rows(), init="laplace")]
    assert found == best[:2]


def test_rows_of_torch_have_the_recipes_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    rows = skewed_rows(60)
    other = build_rows(*(torch.asarray(values) for values in vars(rows).values()))
    expected, found = chosen(rows), chosen(other)
    assert [recipe for _, recipe in found] == [recipe for _, recipe in expected]
    assert kinds([view for view, _ in found]) == kinds([view for view, _ in expected])


def test_rows_beyond_those_compared_have_no_influence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPARED_ROWS", 50)
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    rows = curved_rows()
    far = np.where(np.arange(80)[:, None] < 50, 1.0, -7.0)
    other = replace(rows, targets=far * rows.targets)
    plain = {"features": "standard", "target_transform": "none"}
    assert chosen(rows, **plain) == chosen(other, **plain)


# Weights of the rows


def compare(rows: Rows, n_folds: int = FOLDS) -> list[Any]:
    """Two penalties, and two parts of one, by their densities of held-out rows."""
    menu = [RECIPE, replace(RECIPE, init_penalty=5.0, seed=2), replace(RECIPE, parts=2, seed=3)]
    size = rows.inputs.shape[0] // n_folds
    folds = [slice(place * size, (place + 1) * size) for place in range(n_folds)]
    return module._compare(rows, folds, [PLAIN], menu, (6,))


def test_a_row_of_weight_zero_has_no_influence(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, whatever stands in it, be it held out or not."""
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    rows = curved_rows(60, weights=weights)
    gone = (weights == 0.0)[:, None]
    other = replace(
        rows,
        inputs=np.where(gone, 30.0, rows.inputs),
        targets=np.where(gone, -40.0, rows.targets),
    )
    views = [PLAIN, View(warp=fit_warp(rows.targets, rows.weights))]
    settings = Settings(hidden_layer_sizes=(6,))
    first, second = (
        choose_recipes(each, views, settings, np.random.default_rng(0)) for each in (rows, other)
    )
    assert first == second


def test_rows_of_weight_zero_are_as_good_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same folds of the others: densities agree as far as single precision does."""
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    rows = curved_rows(50)
    # After every fold of ten rows two that do not count.
    index = np.concatenate([[*range(first, first + 10), 0, 1] for first in range(0, 50, 10)])
    counted = np.tile(np.arange(12) < 10, 5)
    padded = replace(take_rows(rows, index), weights=counted.astype(float))
    for one, other in zip(compare(rows), compare(padded), strict=True):
        assert one.recipe == other.recipe
        np.testing.assert_allclose(
            other.log_densities[counted], one.log_densities, rtol=5 * SINGLE, atol=5 * SINGLE
        )


def test_a_weight_of_two_is_a_row_that_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same folds: densities agree as far as single precision does."""
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    rows = curved_rows(50)
    heavy = replace(rows, weights=np.full(50, 2.0))
    twice = take_rows(rows, np.repeat(np.arange(50), 2))
    for one, other in zip(compare(heavy), compare(twice), strict=True):
        assert one.recipe == other.recipe
        np.testing.assert_allclose(
            other.log_densities,
            np.repeat(one.log_densities, 2),
            rtol=5 * SINGLE,
            atol=5 * SINGLE,
        )


# Halving


def planted(
    recipes: Sequence[Recipe], scores: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Any], list[list[int]]]:
    """Compared recipes and the seeds that reached each length, where scores are (recipes, 3)."""
    reached: dict[int, list[int]] = {length: [] for length in LENGTHS}

    def go_on(rows: Any, folds: Any, view: Any, pairs: Any, length: int, hidden: Any) -> list[Any]:
        reached[length] += [recipe.seed for recipe, _ in pairs]
        return [
            module._Compared(
                recipe=replace(recipe, start_iterations=length),
                networks=Networks(layers=()),
                log_densities=np.full(20, scores[recipe.seed, LENGTHS.index(length)]),
            )
            for recipe, _ in pairs
        ]

    monkeypatch.setattr(module, "_go_on", go_on)
    folds = [slice(0, 10), slice(10, 20)]
    found = module._compare(curved_rows(50), folds, [PLAIN, PLAIN], recipes, (6,))
    return found, [reached[length] for length in LENGTHS]


@pytest.mark.parametrize("seed", range(5))
def test_halving_keeps_the_best(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each length the best of those that reached it, whichever view and parts they have."""
    rng = np.random.default_rng(seed)
    recipes = [
        replace(RECIPE, view=view, parts=parts, init_penalty=penalty)
        for view, parts, penalty in product((0, 1), (1, 2), PENALTIES)
    ]
    recipes = [replace(recipe, seed=place) for place, recipe in enumerate(recipes)]
    scores = rng.normal(size=(len(recipes), len(LENGTHS)))
    found, reached = planted(recipes, scores, monkeypatch)
    alive = list(range(len(recipes)))
    for place, own in enumerate(reached):
        assert sorted(own) == sorted(alive)
        if place < len(KEPT):
            alive = sorted(alive, key=lambda one: -scores[one, place])[: KEPT[place]]
    assert len(found) == len(recipes) + sum(KEPT)
    lengths = [one.recipe.start_iterations for one in found]
    assert lengths == sorted(lengths)
    assert len({(one.recipe.seed, one.recipe.start_iterations) for one in found}) == len(found)


def test_candidates_go_on_from_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of a kept recipe start from its own ones, for the steps that are missing."""
    calls: list[tuple[Networks, Networks, int]] = []

    def note(*arguments: Any, lengths: Sequence[int]) -> list[Networks]:
        [found] = fit_networks(*arguments, lengths=lengths)
        calls.append((arguments[3], found, lengths[0]))
        return [found]

    monkeypatch.setattr(module, "fit_networks", note)
    monkeypatch.setattr(module, "LENGTHS", FEW_STEPS)
    monkeypatch.setattr(module, "KEPT", (2, 1))
    menu = [replace(RECIPE, init_penalty=0.1 * (k + 1), seed=k) for k in range(3)]
    rows, folds = curved_rows(50), [slice(0, 10), slice(10, 20)]
    found = module._compare(rows, folds, [PLAIN], menu, (6,))
    assert [steps for _, _, steps in calls] == [2, 2, 2]
    assert [one.recipe.start_iterations for one in found] == [2, 2, 2, 4, 4, 6]
    for before, after in pairwise(calls):
        ends, starts = (networks.layers[0] for networks in (before[1], after[0]))
        for place in range(0, len(starts), 2):
            same = [np.array_equal(starts[place : place + 2], ends[k : k + 2]) for k in (0, 2, 4)]
            assert sum(same) == 1
    # The best of them, by their densities, in order.
    scores = [one.log_densities.sum() for one in found]
    order = [int(place) for place in np.argsort(scores[:3])[::-1]]
    assert [one.recipe.seed for one in found[3:5]] == order[:2]


@pytest.mark.parametrize("seed", range(20))
def test_the_best_are_distinct_and_few(seed: int) -> None:
    """Those of the largest stacking weights, each view, parting and penalty once."""
    rng = np.random.default_rng(seed)
    row_weights = rng.uniform(0.5, 2.0, size=60)
    compared = [
        module._Compared(
            recipe=replace(
                RECIPE,
                view=int(rng.integers(2)),
                init_penalty=float(rng.choice(PENALTIES)),
                start_iterations=int(rng.choice(LENGTHS)),
                seed=place,
            ),
            networks=Networks(layers=()),
            log_densities=rng.normal(0.0, 2.0, size=60),
        )
        for place in range(14)
    ]
    densities = np.stack([one.log_densities for one in compared], axis=1)
    weights = module.stacking_weights(densities, row_weights)
    found = module._best(compared, row_weights)
    assert 1 <= len(found) <= MOST_RECIPES
    keys = [(recipe.view, recipe.parts, recipe.init_penalty) for recipe in found]
    assert len(set(keys)) == len(keys)
    assert found[0].seed == np.argmax(weights)
    own = [weights[recipe.seed] for recipe in found]
    assert own == sorted(own, reverse=True)
    assert all(weight >= LEAST_WEIGHT for weight in own[1:])
    # Whoever was left out has little weight, or a better one stands for it, or there is no room.
    for place, one in enumerate(compared):
        key = (one.recipe.view, one.recipe.parts, one.recipe.init_penalty)
        if one.recipe not in found and key not in keys and weights[place] >= LEAST_WEIGHT:
            assert len(found) == MOST_RECIPES
            assert weights[place] <= own[-1]


def test_a_candidate_that_breaks_down_is_not_chosen() -> None:
    broken, sound = np.full(30, np.nan), np.zeros(30)
    compared = [
        module._Compared(
            recipe=replace(RECIPE, view=view),
            networks=Networks(layers=()),
            log_densities=module.normal_log_densities(errors[:, None], np.ones((30, 1))),
        )
        for view, errors in enumerate((broken, sound))
    ]
    assert [recipe.view for recipe in module._best(compared, np.ones(30))] == [1]


# Starts


HIDDEN = (6, 8)


def outputs(network: Sequence[np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """By the rectifier of networks side by side, in double precision."""
    values = inputs
    for layer in network[:-1]:
        z = layer[:, 0] + values @ layer[:, 1:].T
        values = 0.5 * (z + np.sqrt(z**2 + SMOOTHING**2))
    return network[-1][:, 0] + values @ network[-1][:, 1:].T


def assert_close(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> None:
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one, other, rtol=SINGLE, atol=SINGLE)


def assert_same_bits(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> None:
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("parts", [1, 2])
def test_held_out_rows_have_no_influence_on_a_start(parts: int) -> None:
    """To the bit; the same rows are seen by the network of another fold."""
    rows = curved_rows()
    fold = slice(20, 40)
    changed = rows.targets.copy()
    changed[fold] = -30.0
    moved = rows.inputs.copy()
    moved[fold] *= -20.0
    recipes = [replace(RECIPE, parts=parts), replace(RECIPE, parts=parts)]
    before, after = (
        start_networks(each, PLAIN, recipes, [fold, None], HIDDEN)
        for each in (rows, replace(rows, inputs=moved, targets=changed))
    )
    assert_same_bits(before[0], after[0])
    assert not np.allclose(before[1][0], after[1][0])


def test_a_start_without_a_fold_is_one_of_the_other_rows() -> None:
    rows = curved_rows()
    [found] = start_networks(rows, PLAIN, [RECIPE], [slice(0, 16)], HIDDEN)
    [alone] = start_networks(take_rows(rows, np.arange(16, 80)), PLAIN, [RECIPE], [None], HIDDEN)
    assert_close(found, alone)


def test_starts_look_at_no_more_rows_than_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that some network is fitted to: what comes after has no influence."""
    monkeypatch.setattr(module, "START_ROWS", 30)
    rows = curved_rows()
    fold = slice(0, 16)
    [found] = start_networks(rows, PLAIN, [RECIPE], [fold], HIDDEN)
    [expected] = start_networks(take_rows(rows, np.arange(16, 46)), PLAIN, [RECIPE], [None], HIDDEN)
    assert_same_bits(found, expected)
    both = start_networks(rows, PLAIN, [RECIPE, RECIPE], [fold, None], HIDDEN)
    first = start_networks(
        take_rows(rows, np.arange(30)), PLAIN, [RECIPE, RECIPE], [fold, None], HIDDEN
    )
    for one, other in zip(both, first, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("hidden", [(6,), HIDDEN])
def test_a_start_in_parts_is_the_mean_of_small_networks(hidden: tuple[int, ...]) -> None:
    """Each fitted by itself, with half of the units, from one stream of random numbers."""
    rows = curved_rows()
    recipe = replace(RECIPE, parts=2, start_iterations=20)
    [found] = start_networks(rows, PLAIN, [recipe], [None], hidden)
    assert [layer.shape[0] for layer in found] == [*hidden, 1]
    weights = np.ones((2, 80))
    half = [width // 2 for width in hidden]
    start = random_networks(half, rows.inputs, rows.targets, weights, np.random.default_rng(1))
    penalties = np.full(2, recipe.init_penalty)
    [small] = fit_networks(rows.inputs, rows.targets, weights, start, penalties, lengths=[20])
    each = [outputs(network, rows.inputs) for network in zip(*small.layers, strict=True)]
    assert not np.allclose(each[0], each[1], atol=0.01)
    np.testing.assert_allclose(outputs(found, rows.inputs), np.mean(each, axis=0), atol=1e-10)


def test_starts_stand_in_the_order_of_their_recipes() -> None:
    """Lengths, parts, penalties and folds mixed: each as it would be alone."""
    rows = curved_rows()
    menu = [(1, 5, 0.5), (2, 3, 0.5), (1, 3, 5.0), (2, 5, 0.05), (1, 5, 5.0), (2, 3, 50.0)]
    recipes = [
        replace(RECIPE, parts=parts, start_iterations=length, init_penalty=penalty, seed=seed)
        for seed, (parts, length, penalty) in enumerate(menu)
    ]
    folds = [None, slice(0, 16), slice(16, 32), None, slice(0, 16), None]
    found = start_networks(rows, PLAIN, recipes, folds, HIDDEN)
    for network, recipe, fold in zip(found, recipes, folds, strict=True):
        [alone] = start_networks(rows, PLAIN, [recipe], [fold], HIDDEN)
        assert_close(network, alone)
    for (place, one), (other_place, other) in product(enumerate(found), repeat=2):
        if place != other_place:
            assert not np.allclose(one[0], other[0], atol=10 * SINGLE)


def test_starts_see_the_rows_through_their_view() -> None:
    rows = skewed_rows()
    pieces = fit_pieces(rows.inputs, rows.weights, 4)
    view = View(pieces=pieces, warp=fit_warp(rows.targets, rows.weights))
    [found] = start_networks(rows, view, [RECIPE], [None], HIDDEN)
    [expected] = start_networks(network_rows(view, rows), PLAIN, [RECIPE], [None], HIDDEN)
    assert_same_bits(found, expected)
    assert found[0].shape == (6, 1 + len(pieces.column))


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_rows_of_other_libraries_have_the_same_starts(name: str) -> None:
    library = pytest.importorskip(name)
    rows = curved_rows()
    other = Rows(**{key: library.asarray(values) for key, values in vars(rows).items()})
    given = (PLAIN, [RECIPE], [slice(0, 16)], HIDDEN)
    [found], [expected] = start_networks(other, *given), start_networks(rows, *given)
    assert_same_bits(found, expected)


def test_weights_of_rows_count_in_a_start() -> None:
    """Weight 0 is absent and weight 2 is twice, as far as single precision goes."""
    weights = np.arange(80) % 3.0
    rows = curved_rows(weights=weights)
    index = np.repeat(np.arange(80), weights.astype(int))
    repeated = replace(take_rows(rows, index), weights=np.ones(len(index)))
    [found] = start_networks(rows, PLAIN, [RECIPE], [None], HIDDEN)
    [expected] = start_networks(repeated, PLAIN, [RECIPE], [None], HIDDEN)
    assert_close(found, expected)
