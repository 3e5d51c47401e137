"""Recipes by held-out densities of ordinary networks: views, parts, folds, and rounds.

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

from bowtienet._old.data.rows import Rows, build_rows, take_rows
from bowtienet._old.distributions.yeo_johnson import Warp, fit_warp, from_warped, identity, to_warped
from bowtienet._old.ensemble import fold_networks
from bowtienet._old.ensemble import recipes as module
from bowtienet._old.ensemble.cross_fit import runner
from bowtienet._old.ensemble.fold_networks import (
    FEWEST_ROWS,
    FOLDS,
    SMALL_FOLDS,
    SMALL_ROWS,
    Candidate,
    SeenRows,
    advance,
    density,
    held_out_folds,
    score,
    see,
    train,
    without,
)
from bowtienet._old.ensemble.recipes import (
    FEWEST_UNITS,
    LEAST_BEND,
    MANY_COLUMNS,
    choose_recipes,
    possible_parts,
    possible_recipes,
    possible_views,
)
from bowtienet._old.ensemble.settings import AUTO_TEMPERATURE, EFFORTS, Effort, Recipe, Settings
from bowtienet._old.inference.start import Networks, fit_networks, network_outputs, random_networks
from bowtienet._old.model.outcomes import Gaussian
from bowtienet._old.representation.pieces import MOST_COMPONENTS, N_BINS, fit_pieces
from bowtienet._old.representation.principal import fit_principal
from bowtienet._old.representation.representation import PLAIN, View, log_slopes, network_rows

SINGLE = 2e-4
RECIPE = Recipe(gate_temperature=0.1, init_penalty=0.5, start_iterations=0, seed=1)
RUN = runner(1)
HIDDEN = (6,)
SMALL = Settings(hidden_layer_sizes=HIDDEN)
SHORT = Effort(
    screens=True,
    penalties=(0.03, 0.3, 3.0),
    parts=(2,),
    lengths=(4, 8, 12),
    kept=(3, 2, 2),
    n_recipes=2,
    sweeps=(1,),
    adapts=False,
    members=4,
)


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
    seen, folds = see(rows, views), held_out_folds(rows.inputs.shape[0])
    recipes = possible_recipes(seen, settings, np.random.default_rng(seed))
    found = choose_recipes(seen, folds, recipes, settings, RUN, lambda *_: None)
    return [(views[one.recipe.view], one.recipe) for one in found]


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
    expected = (
        fit_pieces(rows.inputs, rows.weights, n_bins, MOST_COMPONENTS),
        fit_warp(rows.targets, rows.weights),
    )
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


@pytest.mark.parametrize("features", ["auto", "principal"])
def test_wide_tables_are_seen_by_principal_components(features: str) -> None:
    rng = np.random.default_rng(0)
    wide = build_rows(rng.normal(size=(30, MANY_COLUMNS + 1)), rng.normal(size=30))
    narrow = build_rows(rng.normal(size=(30, 8)), rng.normal(size=30))
    settings = Settings(features=features, target_transform="none")
    [view] = possible_views(wide, settings)
    assert (view.pieces, view.warp) == (None, None)
    expected = fit_principal(wide.inputs, wide.weights, MOST_COMPONENTS)
    np.testing.assert_array_equal(view.principal.loadings, expected.loadings)
    assert view.principal.loadings.shape == (MANY_COLUMNS + 1, 30)
    of_narrow = possible_views(narrow, settings)
    assert all((one.principal is not None) == (features == "principal") for one in of_narrow)
    [plain] = possible_views(wide, replace(settings, features="standard"))
    assert plain == PLAIN


# Parts


@pytest.mark.parametrize(
    ("hidden", "wanted", "expected"),
    [
        ((), (1, 2, 5), [1]),
        ((1,), (1, 2, 5), [1]),
        ((5,), (2, 5), [1]),
        ((6,), (2, 5), [2]),
        ((6,), (1, 2, 5), [1, 2]),
        ((7,), (5,), [1]),
        ((12,), (2, 5), [2, 4]),
        ((15,), (2, 5), [1, 5]),
        ((50,), (2, 5), [2, 5]),
        ((50,), (5,), [5]),
        ((50, 8), (2, 5), [2]),
        ((50, 5), (2, 5), [1]),
        ((50, 50, 15), (1, 2, 5), [1, 5]),
    ],
)
def test_numbers_of_parts(
    hidden: tuple[int, ...], wanted: tuple[int, ...], expected: list[int]
) -> None:
    assert possible_parts(hidden, wanted) == expected


def test_parts_share_out_all_units_of_all_layers() -> None:
    """For each number that is wanted the next lower one that does, of three units at least."""
    single = [(width,) for width in range(1, 130)]
    for hidden in [*single, *product(range(1, 31), repeat=2), *product((6, 15, 30, 50), repeat=3)]:
        fitting = [
            parts
            for parts in range(1, 6)
            if parts == 1
            or all(width % parts == 0 and width // parts >= FEWEST_UNITS for width in hidden)
        ]
        for wanted in ((1,), (5,), (2, 5), (1, 2, 5)):
            best = {max(parts for parts in fitting if parts <= most) for most in wanted}
            assert possible_parts(hidden, wanted) == sorted(best)


# Folds


def test_folds_of_every_size() -> None:
    """Consecutive, nearly equal, and each row in one; more of them where rows are few."""
    for n in (*range(1, 400), 999, 1000, 1001, 2499, 4000):
        folds = held_out_folds(n)
        if n < FEWEST_ROWS:
            assert folds == []
            continue
        count = SMALL_FOLDS if n < SMALL_ROWS else FOLDS
        sizes = [fold.stop - fold.start for fold in folds]
        assert (folds[0].start, folds[-1].stop) == (0, n)
        assert all(before.stop == after.start for before, after in pairwise(folds))
        assert 2 <= len(folds) <= count
        assert min(sizes) >= 1
        assert max(sizes) - n / count < 1.0


def test_the_rows_of_a_fold_have_no_weight() -> None:
    weights = np.arange(1.0, 7.0)
    np.testing.assert_array_equal(without(weights, slice(1, 3)), [1, 0, 0, 4, 5, 6])
    assert without(weights, None) is weights
    np.testing.assert_array_equal(weights, np.arange(1.0, 7.0))


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
    """Of the mean of each fold's parts, with the one noise that weighted errors ask for.

    Rows count by their weight, so that the mean over rows is the weighted one.
    """
    weights = rng.uniform(0.2, 2.0, size=50)
    weights[7] = 0.0
    rows = curved_rows(50, weights=weights)
    rows = replace(rows, targets=np.column_stack([rows.targets, rows.inputs[:, 1] ** 2]))
    folds = [slice(0, 10), slice(10, 20), slice(20, 30)]
    warp = fit_warp(rows.targets, rows.weights)
    [seen] = see(rows, [View(warp=warp)])
    networks = tuple(
        random_networks((4,), rows.inputs, rows.targets, np.ones((parts, 50)), rng) for _ in folds
    )
    candidate = fold_networks._judged(RECIPE, networks, seen, folds, Gaussian())
    found = candidate.log_densities
    errors = np.empty((30, 2))
    for row in range(30):
        own = network_outputs(networks[row // 10], rows.inputs[[row]])[:, 0]
        errors[row] = seen.rows.targets[row] - sum(own) / parts
    noise = np.average(errors**2, axis=0, weights=weights[:30])
    expected = norm.logpdf(errors, 0.0, np.sqrt(noise)).sum(axis=1) + seen.log_slopes[:30]
    mean = np.average(expected, weights=weights[:30])
    assert density(candidate) == pytest.approx(mean, rel=1e-6)
    shares = 30.0 * weights[:30] / weights[:30].sum()
    np.testing.assert_allclose(found, expected * shares, rtol=1e-5, atol=1e-6)
    # The score has as much of the density of normal noise about the means in the user's unit.
    outputs = seen.rows.targets[:30] - errors
    points, chances = np.polynomial.hermite_e.hermegauss(150)
    drawn = [from_warped(warp, outputs + point * np.sqrt(noise)) for point in points]
    means = np.einsum("p,pnd->nd", chances / chances.sum(), drawn)
    errors = rows.targets[:30] - means
    noise = np.average(errors**2, axis=0, weights=weights[:30])
    about = norm.logpdf(errors, 0.0, np.sqrt(noise)).sum(axis=1)
    about_means = np.average(about, weights=weights[:30])
    assert score(candidate) == pytest.approx(0.5 * (mean + about_means), abs=2e-3)
    [plain] = see(rows, [PLAIN])
    other = fold_networks._judged(RECIPE, networks, plain, folds, Gaussian())
    assert score(other) == density(other)


def test_a_warp_that_knows_the_noise_must_have_good_means(rng: np.random.Generator) -> None:
    """A sum of what a warp makes linear and what it bends: plain means are ahead."""
    x = rng.uniform(-1.0, 1.0, size=(400, 2))
    z = 2.0 * x[:, :1] + 0.02 * rng.normal(size=(400, 1))
    rows = build_rows(x, np.exp(z) + np.sin(3.0 * x[:, 1:]))
    warp = fit_warp(rows.targets, rows.weights)
    seen, folds = see(rows, [PLAIN, View(warp=warp)]), held_out_folds(400)
    plain, warped = advance(new(RECIPE, replace(RECIPE, view=1)), seen, folds, 60, SMALL, RUN)
    assert warped.about_means is not None
    assert score(warped) == pytest.approx(0.5 * (density(warped) + warped.about_means))
    assert warped.about_means < density(plain)
    # A lead in density is not enough: here of 0.1, with means that lose 0.3.
    ahead = replace(warped, log_densities=np.full(400, 0.1), about_means=-0.3)
    level = replace(plain, log_densities=np.zeros(400))
    assert [one.recipe.view for one in module._best([ahead, level], 2)] == [0, 1]


def test_members_take_in_their_fold_by_steps_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long training a part of it, of a short one the least number; new networks all of it."""
    rows = curved_rows(60)
    [seen] = see(rows, [PLAIN])
    [candidate] = advanced(rows, new(RECIPE), 4)
    calls: list[tuple[int, int]] = []

    def note(*arguments: Any) -> Networks:
        calls.append((len(arguments[1]), arguments[4]))
        return train(*arguments[:4], 1, *arguments[5:])

    monkeypatch.setattr(fold_networks, "train", note)
    for length, further in ((100, 80), (200, 80), (2000, 800)):
        long = replace(candidate, recipe=replace(RECIPE, start_iterations=length))
        fold_networks.further_networks(long, seen, len(candidate.networks) + 2, SMALL, RUN)
        assert calls[-2:] == [(len(candidate.networks), further), (2, length)]


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


def test_recipes_are_few_and_distinct_and_follow_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    for seed in range(3):
        found = [recipe for _, recipe in chosen(curved_rows(seed=seed), seed, effort="short")]
        assert 1 <= len(found) <= SHORT.n_recipes
        menu = {(recipe.view, recipe.parts, recipe.init_penalty) for recipe in found}
        assert len(menu) == len(found)
        assert len({recipe.seed for recipe in found}) == len(found)
        for recipe in found:
            assert recipe.gate_temperature == AUTO_TEMPERATURE
            assert recipe.init_penalty in SHORT.penalties
            assert recipe.parts in possible_parts((10,), SHORT.parts)
            assert recipe.start_iterations in SHORT.lengths


@pytest.mark.parametrize("effort", EFFORTS)
def test_all_recipes_to_compare(effort: str) -> None:
    settings = Settings(hidden_layer_sizes=(30,), effort=effort)
    found = possible_recipes(see(curved_rows(), [PLAIN] * 2), settings, np.random.default_rng(0))
    own = EFFORTS[effort]
    adaptive = (False, True) if own.adapts else (False,)
    wanted = product((0, 1), own.parts, adaptive, own.penalties)
    menu = [(one.view, one.parts, one.adaptive, one.init_penalty) for one in found]
    assert menu == list(wanted)
    assert len({one.seed for one in found}) == len(found)
    assert len(EFFORTS[effort].lengths) == len(EFFORTS[effort].kept)


def test_a_fixed_penalty_and_temperature_are_respected() -> None:
    settings = Settings(init_penalty=0.31, gate_temperature=0.2)
    found = possible_recipes(see(curved_rows(), [PLAIN] * 2), settings, np.random.default_rng(0))
    assert {recipe.init_penalty for recipe in found} == {0.31}
    assert {recipe.gate_temperature for recipe in found} == {0.2}


@pytest.mark.parametrize(
    "changes", [{"init": "laplace"}, {"init": "spike_slab"}, {"hidden_layer_sizes": ()}], ids=str
)
def test_networks_that_only_tell_what_to_see_are_whole(changes: dict[str, Any]) -> None:
    found = possible_recipes(
        see(curved_rows(), [PLAIN] * 2), Settings(**changes), np.random.default_rng(0)
    )
    assert {recipe.parts for recipe in found} == {1}


def test_same_seed_same_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    first, again, other = (
        [recipe for _, recipe in chosen(curved_rows(), seed, effort="short")] for seed in (5, 5, 6)
    )
    assert first == again
    assert {recipe.seed for recipe in first}.isdisjoint({recipe.seed for recipe in other})


def test_rows_of_torch_have_the_recipes_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for lengths of equal worth, which rounding decides between."""
    torch = pytest.importorskip("torch")
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    rows = skewed_rows(60)
    other = build_rows(*(torch.asarray(values) for values in vars(rows).values()))
    expected, found = chosen(rows, effort="short"), chosen(other, effort="short")
    own = [replace(recipe, start_iterations=0) for _, recipe in found]
    assert own == [replace(recipe, start_iterations=0) for _, recipe in expected]
    assert kinds([view for view, _ in found]) == kinds([view for view, _ in expected])


# Networks of the folds


def advanced(
    rows: Rows, candidates: Sequence[Candidate], length: int, views: Sequence[View] = (PLAIN,)
) -> list[Candidate]:
    folds = held_out_folds(rows.inputs.shape[0])[:3]
    return advance(candidates, see(rows, views), folds, length, SMALL, RUN)


def new(*recipes: Recipe) -> list[Candidate]:
    return [Candidate(recipe=recipe) for recipe in recipes]


def assert_networks(first: Networks, second: Networks, *, exact: bool = False) -> None:
    for one, other in zip(first.layers, second.layers, strict=True):
        if exact:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=SINGLE, atol=SINGLE)


def loss(networks: Networks, rows: Rows, fold: slice | None, penalty: float) -> np.ndarray:
    """½ Σ c |e|² + ½ penalty |w|² without biases, of each network."""
    errors = rows.targets - network_outputs(networks, rows.inputs)
    weights = without(np.asarray(rows.weights), fold)
    sizes = sum(np.sum(layer[:, :, 1:] ** 2, axis=(1, 2)) for layer in networks.layers)
    return 0.5 * np.einsum("n,knd->k", weights, errors**2) + 0.5 * penalty * sizes


@pytest.mark.parametrize("parts", [1, 2])
def test_networks_have_not_seen_their_fold(parts: int) -> None:
    """To the bit, whatever stands in it; the other folds' networks have."""
    rows, recipe = curved_rows(60), replace(RECIPE, parts=parts)
    folds = held_out_folds(60)
    targets = rows.targets.copy()
    targets[folds[1]] = 5.0
    [before] = advanced(rows, new(recipe), 6)
    [after] = advanced(replace(rows, targets=targets), new(recipe), 6)
    assert_networks(before.networks[1], after.networks[1], exact=True)
    for fold in (0, 2):
        assert not np.allclose(before.networks[fold].layers[0], after.networks[fold].layers[0])
    assert len(before.networks[0].layers[0]) == parts
    assert before.networks[0].layers[0].shape[1] == HIDDEN[0] // parts


def test_a_network_without_a_fold_is_one_of_the_other_rows() -> None:
    rows = curved_rows(60)
    fold = held_out_folds(60)[0]
    [found] = advanced(rows, new(RECIPE), 4)
    others = take_rows(rows, np.arange(fold.stop, 60))
    start = fold_networks.new_networks(RECIPE, 0, others, SMALL)
    alone = train(others, [start], [None], [RECIPE.init_penalty], 4, None)
    assert_networks(found.networks[0], alone)


def test_networks_go_on_from_where_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the steps that are missing, from their own ends; their loss falls and falls."""
    calls: list[tuple[Networks, int]] = []

    def note(*arguments: Any, lengths: Sequence[int], **given: Any) -> list[Networks]:
        calls.append((arguments[3], lengths[0]))
        return fit_networks(*arguments, lengths=lengths, **given)

    monkeypatch.setattr(fold_networks, "fit_networks", note)
    rows, folds = curved_rows(60), held_out_folds(60)
    candidates, losses = new(RECIPE), []
    for length in (3, 8, 20, 60):
        candidates = advanced(rows, candidates, length)
        [one] = candidates
        assert one.recipe == replace(RECIPE, start_iterations=length)
        losses.append(
            [
                float(loss(own, rows, fold, RECIPE.init_penalty)[0])
                for own, fold in zip(one.networks, folds[:3], strict=True)
            ]
        )
        if length == 8:
            ends = one.networks
        if length == 20:
            for fold, end in enumerate(ends):
                assert_networks(
                    Networks(layers=tuple(layer[[fold]] for layer in calls[2][0].layers)),
                    end,
                    exact=True,
                )
    assert [steps for _, steps in calls] == [3, 5, 12, 40]
    assert np.all(np.diff(losses, axis=0) < 0.0)
    # As low as without stopping.
    [whole] = advanced(rows, new(RECIPE), 60)
    for fold, own, reached in zip(folds, whole.networks, losses[-1], strict=False):
        assert reached == pytest.approx(
            float(loss(own, rows, fold, RECIPE.init_penalty)[0]), rel=0.2
        )


def test_candidates_of_fewer_folds_get_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, folds = curved_rows(60), held_out_folds(60)
    seen = see(rows, [PLAIN])
    first = advance(new(RECIPE), seen, folds[:2], 4, SMALL, RUN)
    [more] = advance(first, seen, folds, 6, SMALL, RUN)
    assert len(more.networks) == len(folds)
    assert more.log_densities is not None
    assert len(more.log_densities) == 60
    [alone] = advance(new(RECIPE), seen, folds, 6, SMALL, RUN)
    for fold in range(2, len(folds)):
        assert_networks(more.networks[fold], alone.networks[fold])


def test_candidates_stand_in_their_order() -> None:
    """Views, parts, penalties and lengths mixed: each as it would be alone."""
    rows = skewed_rows(60)
    views = [PLAIN, View(warp=fit_warp(rows.targets, rows.weights))]
    menu = [
        replace(RECIPE, view=view, parts=parts, init_penalty=penalty, seed=seed)
        for seed, (view, parts, penalty) in enumerate(
            [(1, 1, 0.5), (0, 2, 0.5), (0, 1, 5.0), (1, 2, 0.05), (0, 1, 50.0)]
        )
    ]
    candidates = new(*menu)
    candidates[2:3] = advanced(rows, candidates[2:3], 2, views)
    found = advanced(rows, candidates, 4, views)
    for one, candidate in zip(found, candidates, strict=True):
        [alone] = advanced(rows, [candidate], 4, views)
        assert one.recipe == alone.recipe == replace(candidate.recipe, start_iterations=4)
        for own, other in zip(one.networks, alone.networks, strict=True):
            assert_networks(own, other)
        np.testing.assert_allclose(one.log_densities, alone.log_densities, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_rows_of_other_libraries_have_the_same_networks(name: str) -> None:
    library = pytest.importorskip(name)
    rows = curved_rows(60)
    other = Rows(**{key: library.asarray(values) for key, values in vars(rows).items()})
    [found], [expected] = (advanced(each, new(RECIPE), 4) for each in (other, rows))
    for own, wanted in zip(found.networks, expected.networks, strict=True):
        assert_networks(own, wanted)
    np.testing.assert_allclose(found.log_densities, expected.log_densities, rtol=1e-2, atol=1e-2)


# Weights of the rows


def test_a_row_of_weight_zero_has_no_influence() -> None:
    """To the bit, whatever stands in it, be it held out or not."""
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    rows = curved_rows(60, weights=weights)
    gone = (weights == 0.0)[:, None]
    other = replace(
        rows,
        inputs=np.where(gone, 30.0, rows.inputs),
        targets=np.where(gone, -40.0, rows.targets),
    )
    [first], [second] = (advanced(each, new(RECIPE), 6) for each in (rows, other))
    for own, wanted in zip(first.networks, second.networks, strict=True):
        assert_networks(own, wanted, exact=True)
    assert score(first) == score(second)


def test_a_weight_of_two_is_a_row_that_comes_twice() -> None:
    """With the same folds: networks and scores agree as far as single precision does."""
    rows = curved_rows(50)
    heavy = replace(rows, weights=np.full(50, 2.0))
    twice = take_rows(rows, np.repeat(np.arange(50), 2))
    folds = [slice(0, 10), slice(10, 20)]
    doubled = [slice(0, 20), slice(20, 40)]
    [one] = advance(new(RECIPE), see(heavy, [PLAIN]), folds, 4, SMALL, RUN)
    [other] = advance(new(RECIPE), see(twice, [PLAIN]), doubled, 4, SMALL, RUN)
    for own, wanted in zip(one.networks, other.networks, strict=True):
        assert_networks(own, wanted)
    assert score(one) == pytest.approx(score(other), rel=5 * SINGLE, abs=5 * SINGLE)


# Rounds


def planted(
    scores: dict[int, Sequence[float]], recipes: Sequence[Recipe], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Candidate], list[tuple[list[int], int, int]]]:
    """What is chosen where a recipe of a seed has these scores at all lengths, and the rounds."""
    rounds: list[tuple[list[int], int, int]] = []

    def reach(
        some: Sequence[Candidate], seen: Any, folds: Any, length: int, settings: Any, run: Any
    ) -> list[Candidate]:
        rounds.append(([one.recipe.seed for one in some], len(folds), length))
        place = SHORT.lengths.index(length) if length in SHORT.lengths else 0
        return [
            Candidate(
                recipe=replace(one.recipe, start_iterations=length),
                log_densities=np.full(20, scores[one.recipe.seed][place]),
            )
            for one in some
        ]

    monkeypatch.setitem(EFFORTS, "short", SHORT)
    monkeypatch.setattr(module, "advance", reach)
    rows = curved_rows(400)
    seen, folds = see(rows, [PLAIN] * 2), held_out_folds(400)
    settings = Settings(hidden_layer_sizes=HIDDEN, effort="short")
    found = choose_recipes(seen, folds, recipes, settings, RUN, lambda *_: None)
    return found, rounds


MENU = [
    replace(RECIPE, view=view, parts=parts, init_penalty=penalty, seed=seed)
    for seed, (view, parts, penalty) in enumerate(product((0, 1), (1, 2), SHORT.penalties))
]


def test_rounds_keep_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views first, by the recipe of most parts and middle penalty; then recipes, then all folds."""
    scores = {seed: [0.1 * seed, 0.1 * seed + 1.0, 0.1 * seed + 2.0] for seed in range(12)}
    found, rounds = planted(scores, MENU, monkeypatch)
    n_few = len(module._few_folds(held_out_folds(400)))
    assert rounds[0] == ([4, 10], n_few, module.SCREEN_STEPS[0])
    # View 0 is behind by more than is close.
    assert rounds[1] == ([9, 10, 11], n_few, module.SCREEN_STEPS[1])
    # The best, its twin with fewer parts, the others; at last its networks and a weaker penalty.
    assert rounds[2:] == [([11, 8, 10], 5, 4), ([11, 8], 5, 8), ([11, 11], 5, 12)]
    chosen = [(one.recipe.init_penalty, one.recipe.start_iterations) for one in found]
    assert chosen == [(SHORT.penalties[2], 12), (SHORT.penalties[1], 12)]


def test_weaker_penalties_go_on_with_the_same_networks() -> None:
    """The next weaker of the penalties, if there is one that is not tried yet."""
    networks = (Networks(layers=(np.ones((1, 2, 3)),)),)
    of = {recipe.init_penalty: Candidate(recipe=recipe, networks=networks) for recipe in MENU[:3]}
    best = [of[3.0], of[0.03]]
    found = module._with_weaker_penalty(best, MENU)
    assert [one.recipe.init_penalty for one in found] == [3.0, 0.3, 0.03]
    assert found[1].networks is networks
    for known in ([of[3.0], of[0.3]], [of[0.03]]):
        assert module._with_weaker_penalty(known, MENU) == known


def test_large_networks_far_ahead_ask_for_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1, 2 and 4 parts 4 are screened, 2 are tried beside, 1 only if these are far ahead."""
    menu = [
        replace(RECIPE, parts=parts, init_penalty=penalty, seed=int(parts + 10 * penalty))
        for parts in (1, 2, 4)
        for penalty in (0.0, 1.0)
    ]
    others = {seed: [-9.0] * 3 for seed in (11, 12, 14)}
    for lead, expected in ((0.5 * module.FAR, [2, 4]), (2.0 * module.FAR, [2, 1])):
        scores = others | {1: [2.0] * 3, 2: [lead, 1.0, 2.0], 4: [0.0, 0.5, 0.5]}
        _, rounds = planted(scores, menu, monkeypatch)
        assert rounds[-2][0] == expected


def test_the_best_recipe_of_other_inputs_stands_second_if_it_is_near() -> None:
    """Views 0 and 1 have the same inputs, view 2 has others."""
    groups = [np.arange(3), np.arange(3), np.array([0, 0, 1, 2])]
    rows = curved_rows(20)
    seen = [SeenRows(rows=rows, log_slopes=np.zeros(20), groups=own) for own in groups]

    def candidates(behind: float) -> list[Candidate]:
        scores = {0: 1.0, 1: 0.99, 2: 1.0 - behind}
        return [
            Candidate(recipe=replace(RECIPE, view=view), log_densities=np.full(20, value))
            for view, value in scores.items()
        ]

    for behind, expected in (
        (0.5 * module.COMPANION, [0, 2, 1]),
        (2 * module.COMPANION, [0, 1, 2]),
    ):
        found = module._companion_second(candidates(behind), seen)
        assert [one.recipe.view for one in found] == expected


def test_the_warp_of_the_best_recipe_joins_it_in_small_tables() -> None:
    """Views 0 and 1 are of columns, 2 and 3 of others; 1 and 3 have a warp."""
    rows = skewed_rows(20)
    groups, warp = [np.arange(2), np.array([0, 0, 1])], fit_warp(rows.targets, rows.weights)
    seen = [
        SeenRows(rows=rows, log_slopes=np.zeros(20), groups=groups[view // 2], warp=own)
        for view, own in enumerate([None, warp] * 2)
    ]
    menu = [
        replace(RECIPE, view=view, init_penalty=penalty, seed=10 * view + place)
        for view in range(4)
        for place, penalty in enumerate((0.3, 3.0))
    ]
    for places, expected in (((4, 0), [6]), ((5, 0), [7]), ((4, 6), []), ((6, 0), [])):
        chosen = new(*(replace(menu[place], start_iterations=9) for place in places))
        twins = module._warped_twins(chosen, menu, seen)
        assert [one.recipe for one in twins] == [menu[place] for place in expected]


def test_views_that_are_close_are_both_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {seed: [0.0] * 3 for seed in range(12)} | {4: [0.9 * module.CLOSE] * 3}
    _, rounds = planted(scores, MENU, monkeypatch)
    assert rounds[1][0] == [3, 4, 5, 9, 10, 11]


def test_longer_training_ends_where_it_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length that is not worth its time is seen, and chosen only if it is the best."""
    for gain, length in ((0.5 * module.WORTHWHILE, 8), (-1.0, 4)):
        scores = {seed: [0.0, gain, 9.0] for seed in range(12)}
        found, rounds = planted(scores, MENU, monkeypatch)
        assert [one[2] for one in rounds[2:]] == [4, 8]
        assert found[0].recipe.start_iterations == length


def test_a_longest_length_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "short", SHORT)
    rows = curved_rows(60)
    settings = Settings(hidden_layer_sizes=HIDDEN, effort="short")
    said: list[tuple[Any, ...]] = []
    found = choose_recipes(
        see(rows, [PLAIN]),
        held_out_folds(60),
        MENU[:6],
        settings,
        RUN,
        lambda *told: said.append(told),
        longest=8,
    )
    assert max(one.recipe.start_iterations for one in found) <= 8
    assert max(told[1] for told in said[1:]) <= 8
    assert all(len(one.networks) == len(held_out_folds(60)) for one in found)


def test_a_candidate_that_breaks_down_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {seed: [0.0] * 3 for seed in range(12)} | {3: [-1e6] * 3}
    found, _ = planted(scores, MENU, monkeypatch)
    assert 3 not in {one.recipe.seed for one in found}
