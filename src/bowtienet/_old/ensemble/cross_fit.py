"""An ensemble by cross-fitting: every row is held out once, and nothing is fitted twice.

    recipes  -> networks of each fold, side by side        which recipes predict held-out rows
    networks -> variational posteriors, a few sweeps       out-of-fold means and variances
    these    -> weights, levels of noise and their gates   stacking
    networks -> further, with all rows, and swept again    the members

The members of a recipe are a group that predicts as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from bowtienet._old._arrays import like, to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.cross_fitted_scores import cross_fitted_scores
from bowtienet._old.ensemble.ensemble import Floats, alone
from bowtienet._old.ensemble.fold_networks import (
    Candidate,
    SeenRows,
    further_networks,
    held_out_folds,
    mean_inputs,
    on_host,
    see,
    without,
)
from bowtienet._old.ensemble.held_out_forecasts import (
    Noise,
    Swept,
    by_chance,
    forecast,
    judged,
    ratio_of_group,
    slope_of_group,
    stack_recipes,
)
from bowtienet._old.ensemble.member import recipe_model
from bowtienet._old.ensemble.pace import Pace
from bowtienet._old.ensemble.recipes import choose_recipes, possible_recipes
from bowtienet._old.ensemble.settings import (
    EFFORTS,
    Recipe,
    Settings,
    starts_from_networks,
    sweep_lengths,
)
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import Networks, factors_of_network, initialize
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.initialize import join_networks
from bowtienet._old.prediction.calibration import Calibration, is_discrete
from bowtienet._old.representation.representation import View

REPEATS = 2
"""Rounds of global updates in a sweep: scales that suit the networks are near their end already."""
FEW_MEMBERS = 5
"""Of rows too few to hold any out."""


class Fitted(NamedTuple):
    """Members with their weights, views and groups, and what held-out rows tell of their noise."""

    members: list[FitResult]
    weights: list[float]
    views: list[int]
    groups: list[int]
    noise: Noise = Noise()


def cross_fit(
    rows: Rows,
    views: Sequence[View],
    settings: Settings,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Fitted:
    """Members fitted to standardised rows, in random order, that are all in memory."""
    folds = held_out_folds(rows.inputs.shape[0])
    seen = see(rows, views, folds)
    pace = Pace(say, settings, rows.inputs.shape[0], len(folds))
    recipes = possible_recipes(seen, settings, rng)
    run = runner(settings.n_jobs)
    with one_blas_thread():
        if not folds:
            return _fit_few(seen, recipes, settings)
        chosen = choose_recipes(seen, folds, recipes, settings, run, pace.round)
        if settings.n_estimators == 1:
            chosen = chosen[:1]
        pace.posteriors(mean_inputs(chosen, seen))
        swept = [_swept(one, seen[one.recipe.view], folds, settings) for one in chosen]
        say("weights and levels of noise")
        slopes = np.stack([seen[one.recipe.view].log_slopes for one in chosen])
        weights, noise = stack_recipes(
            swept, slopes, np.asarray(on_host(rows).weights), rows.inputs, settings
        )
        seen_by = [views[one.recipe.view] for one in chosen]
        scores = cross_fitted_scores(swept, weights, noise, seen_by, rows, settings.outcome)
        noise = replace(noise, cross_fitted=scores)
        say("members with all rows")
        counts = members_of_recipes(weights, settings.n_estimators, len(folds))
        return _with_all_rows(swept, weights, counts, seen, noise, settings, run)


def members_of_recipes(weights: Floats, wanted: int | None, n_folds: int) -> list[int]:
    """Members of each recipe: its folds' networks, or as many as are wanted by its weight."""
    if wanted is None:
        return [n_folds if weight > 0.0 else 0 for weight in weights]
    return [int(count) for count in allocate(weights, wanted)]


def allocate(weights: Floats, count: int) -> np.ndarray:
    """`count` places shared out in proportion to weights, the largest remainders first."""
    quota = weights * count
    places = np.floor(quota).astype(np.intp)
    left = count - places.sum()
    places[np.argsort(places - quota, kind="stable")[:left]] += 1
    return places


def begin(
    recipe: Recipe,
    networks: Sequence[Networks],
    rows: Rows,
    settings: Settings,
    *,
    folds: Sequence[slice] | None = None,
) -> tuple[BowTieModel, list[GlobalFactors]]:
    """The model of a recipe, and where the posteriors of its networks start.

    Each has not seen its fold. Without networks the start is random.
    """
    model = recipe_model(recipe, rows, settings)
    factors = []
    for number, own in enumerate(networks):
        rng = np.random.default_rng((recipe.seed, number))
        fold = None if folds is None else folds[number]
        weights = without(np.asarray(to_numpy(rows.weights), dtype=np.float64), fold)
        seen = replace(rows, weights=like(rows.weights, weights))
        if starts_from_networks(settings):
            joined = join_networks(list(zip(*own.layers, strict=True)))
            factors.append(factors_of_network(model, joined, seen, rng))
        else:
            factors.append(initialize(model, seen, rng, init=settings.init))
    return model, factors


def runner(n_jobs: int | None) -> Callable[..., Iterable[Networks]]:
    """Applies a function to tuples of arguments on as many threads as there are jobs."""

    def run(function: Callable[..., Networks], arguments: Sequence[Any]) -> Iterable[Networks]:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads")
        return parallel(delayed(_quietly)(function, own) for own in arguments)

    return run


def _quietly(function: Callable[..., Networks], arguments: Sequence[Any]) -> Networks:
    with one_blas_thread(), np.errstate(all="ignore"):
        return function(*arguments)


def _swept(
    candidate: Candidate, seen: SeenRows, folds: Sequence[slice], settings: Settings
) -> Swept:
    """Posteriors of a recipe's folds, with the start and the sweeps that held-out rows ask for."""
    rows, lengths = seen.rows, sweep_lengths(settings)
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)
    row_weights = np.stack([without(weights, fold) for fold in folds])
    model, factors = begin(candidate.recipe, candidate.networks, rows, settings, folds=folds)
    found = sweep_together(
        model,
        rows,
        row_weights,
        factors,
        lengths=lengths,
        n_threads=1,
        repeats=REPEATS,
        bounded=False,
    )
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    tried = []
    for length, results in zip(lengths, found, strict=True):
        parts = [
            forecast(result, rows, fold, settings)
            for result, fold in zip(results, folds, strict=True)
        ]
        means, variances = (np.concatenate(column) for column in zip(*parts, strict=True))
        tried.append(
            judged(candidate, length, targets, (means, variances), weights, settings.outcome)
        )
    best = max(tried, key=lambda one: float(one.log_densities @ weights))
    return replace(best, by_chance=by_chance(candidate, rows, folds, settings.outcome))


def _with_all_rows(
    swept: Sequence[Swept],
    weights: Floats,
    counts: Sequence[int],
    seen: Sequence[SeenRows],
    noise: Noise,
    settings: Settings,
    run: Callable[..., Iterable[Networks]],
) -> Fitted:
    """The networks of the folds go on with all rows; what comes of them are the members."""
    fitted = Fitted([], [], [], [], noise)
    kept: list[int] = []
    slopes: list[float] = []
    # The calibration has an entry for each recipe with weight, whether it gets members or not.
    weighted = np.cumsum(np.asarray(weights) > 0.0) - 1
    for one, weight, count, place in zip(swept, weights, counts, weighted, strict=True):
        if not count:
            continue
        recipe, rows = one.candidate.recipe, seen[one.candidate.recipe.view].rows
        networks = further_networks(one.candidate, seen[recipe.view], count, settings, run)
        model, factors = begin(recipe, networks, rows, settings)
        row_weights = np.tile(np.asarray(to_numpy(rows.weights), dtype=np.float64), (count, 1))
        [results] = sweep_together(
            model, rows, row_weights, factors, lengths=[one.n_sweeps], n_threads=1, repeats=REPEATS
        )
        ratio: Floats | None = one.ratio
        if is_discrete(settings.outcome):
            ratio = None
            assert noise.calibration is not None
            slope = float(noise.calibration.slope[place])
            kept.append(int(place))
            slopes.append(slope_of_group(one, slope, networks, rows, settings.outcome))
        elif starts_from_networks(settings):
            ratio = ratio_of_group(one, networks, rows)
        add_group(fitted, results, ratio, recipe.view, float(weight))
    if noise.calibration is None:
        return fitted
    dispersion = noise.calibration.dispersion[kept]
    calibration = Calibration(slope=np.asarray(slopes), dispersion=dispersion)
    return fitted._replace(noise=replace(noise, calibration=calibration))


def add_group(
    fitted: Fitted, members: Sequence[FitResult], ratio: Floats | None, view: int, weight: float
) -> None:
    """Add members of one recipe that share its weight, and the ratio of their variances."""
    count = len(members)
    group = max(fitted.groups, default=-1) + 1
    fitted.members.extend(replace(member, variance_ratio=ratio) for member in members)
    fitted.weights.extend([weight / count] * count)
    fitted.views.extend([view] * count)
    fitted.groups.extend([group] * count)


def _fit_few(seen: Sequence[SeenRows], recipes: Sequence[Recipe], settings: Settings) -> Fitted:
    """Members fitted to rows too few to hold any out: the plainest view, the largest penalty."""
    effort = EFFORTS[settings.effort]
    plain = [recipe for recipe in recipes if recipe.view == 0 and not recipe.linear]
    recipe = replace(
        max(plain, key=lambda one: (one.init_penalty, -one.parts)),
        start_iterations=effort.lengths[0],
    )
    rows = seen[recipe.view].rows
    count = settings.n_estimators or FEW_MEMBERS
    networks = further_networks(
        Candidate(recipe=recipe), seen[recipe.view], count, settings, runner(None)
    )
    model, factors = begin(recipe, networks, rows, settings)
    row_weights = np.tile(np.asarray(to_numpy(rows.weights), dtype=np.float64), (count, 1))
    [results] = sweep_together(
        model, rows, row_weights, factors, lengths=sweep_lengths(settings)[-1:], n_threads=1
    )
    views = [recipe.view] * count
    return Fitted(list(results), [1.0 / count] * count, views, list(alone(count)))
