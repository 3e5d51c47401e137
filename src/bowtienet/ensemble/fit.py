"""The five steps of a fit: cross-fit the portfolio, stack, rounds, members, their disagreement."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet.ensemble.ensemble import Ensemble, member_outputs, seen_of
from bowtienet.ensemble.forecasts import (
    FIRST,
    LAST,
    Course,
    Forecasts,
    cross_fit,
    forecasts_of,
    train_recipes,
    work_of,
)
from bowtienet.ensemble.hinges import UNITS, Hinges, learn_hinges, variances
from bowtienet.ensemble.judgement import (
    Judgement,
    conformal_scores_of,
    joining,
    judge,
)
from bowtienet.ensemble.portfolio import LINEAR, portfolio
from bowtienet.ensemble.problem import Problem, goals, has_outliers
from bowtienet.networks.networks import Networks, random_networks, take

Floats = NDArray[np.float64]

KEPT = 4
"""Recipes that are kept, by weight: more are slower and no better."""
WORTH_OF_WARP = 0.2
"""Gain in log density for which a warped recipe joins whatever its mean."""
ENOUGH_GAIN = 0.02
"""Gain of a round in log density below which there is no further one."""
LEAST_NOISE = 0.3
"""Share of a recipe's noise variance that remains whatever its members disagree."""


def fit_ensemble(problem: Problem, rounds: int) -> Ensemble:
    """Members, weights, levels and gates."""
    recipes = portfolio(
        tuple(problem.views),
        max(1, len(problem.warps)),
        problem.outcome,
        shrinks=problem.family != "gaussian",
        outliers=has_outliers(problem),
    )
    # One round and a half is usual, of twice the work, and the members have their last steps.
    later = 2.0 * min(float(rounds), 1.5) + LAST.steps / FIRST.steps
    first = work_of(problem, recipes, FIRST)
    problem.progress.expect(first * (1.0 + later * min(1.0, KEPT / len(recipes))))
    try:
        forecasts = cross_fit(problem, recipes)
        forecasts, judgement = joined(problem, forecasts)
        forecasts = chosen(forecasts, np.sort(np.argsort(-judgement.weights)[:KEPT]))
        forecasts, judgement = needed(problem, forecasts, judge(problem, forecasts))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "the fit was interrupted before its held-out forecasts: nothing is fitted."
        ) from None
    try:
        forecasts, judgement = go_on(problem, forecasts, judgement, rounds)
        forecasts, judgement = needed(problem, forecasts, judgement)
        networks = train_recipes(
            problem, forecasts.recipes, forecasts.networks, LAST, seed=len("members") + rounds
        )
    except KeyboardInterrupt:
        warnings.warn(
            "the fit was interrupted: the networks of the held-out forecasts are its members.",
            UserWarning,
            stacklevel=4,
        )
        networks = forecasts.networks
    return ensemble_of(problem, forecasts, judgement, networks)


def joined(problem: Problem, forecasts: Forecasts) -> tuple[Forecasts, Judgement]:
    """Forecasts without warped recipes whose means suffer, unless the density would suffer more."""
    index = joining(problem, forecasts)
    few = chosen(forecasts, index)
    judgement = judge(problem, few)
    if len(index) < len(forecasts.recipes):
        everything = judge(problem, forecasts)
        if everything.log_density > judgement.log_density + WORTH_OF_WARP:
            return forecasts, everything
    return few, judgement


def chosen(forecasts: Forecasts, index: NDArray[np.intp]) -> Forecasts:
    """Some of the recipes."""
    return Forecasts(
        recipes=tuple(forecasts.recipes[i] for i in index),
        networks=tuple(forecasts.networks[i] for i in index),
        outputs=forecasts.outputs[index],
    )


def needed(
    problem: Problem, forecasts: Forecasts, judgement: Judgement
) -> tuple[Forecasts, Judgement]:
    """Forecasts without recipes of negligible weight."""
    index = np.flatnonzero(judgement.weights >= 0.02)  # others are not worth their training
    if len(index) == len(forecasts.recipes):
        return forecasts, judgement
    forecasts = chosen(forecasts, index)
    return forecasts, judge(problem, forecasts)


def go_on(
    problem: Problem, forecasts: Forecasts, judgement: Judgement, rounds: int
) -> tuple[Forecasts, Judgement]:
    """Rounds: networks train on from where they are, each time with twice the steps.

    A round that does not gain is thrown away, and one that gains little is the last.
    """
    recipes = forecasts.recipes
    for number in range(1, rounds + 1):
        course = Course(steps=FIRST.steps * 2**number, rate=0.5)
        work = work_of(problem, recipes, course) + work_of(problem, recipes, LAST)
        problem.progress.expect(work)
        networks = train_recipes(problem, recipes, forecasts.networks, course, seed=number)
        further = forecasts_of(problem, recipes, networks)
        newer = judge(problem, further)
        gain = newer.log_density - judgement.log_density
        if gain > 0.0:
            forecasts, judgement = further, newer
        if gain < ENOUGH_GAIN:
            break
    problem.progress.expect(work_of(problem, recipes, LAST))
    return forecasts, judgement


def ensemble_of(
    problem: Problem,
    forecasts: Forecasts,
    judgement: Judgement,
    networks: tuple[Networks, ...],
) -> Ensemble:
    """What predictions need; of the linear recipe only the function of all rows."""
    last = slice(problem.n_folds, problem.n_folds + 1)
    hinges = hinges_of(problem, forecasts, judgement) if problem.warps else None
    views = {recipe.view for recipe in forecasts.recipes} & set(problem.views)
    if hinges is not None:
        views |= {hinges.view}
    ensemble = Ensemble(
        recipes=forecasts.recipes,
        members=tuple(
            replace(take(each, last if recipe.view == LINEAR else slice(None)), factors=None)
            for recipe, each in zip(forecasts.recipes, networks, strict=True)
        ),
        views={name: problem.views[name] for name in sorted(views)},
        gates=problem.gates,
        stacks=judgement.stacks,
        warps=problem.warps,
        spread=judgement.spread,
        outcome=problem.outcome,
        hinges=hinges,
        scores=conformal_scores_of(problem, forecasts, judgement),
    )
    return without_epistemic(ensemble, problem.inputs) if problem.warps else ensemble


def hinges_of(problem: Problem, forecasts: Forecasts, judgement: Judgement) -> Hinges:
    """Hinges along the units of the networks with most weight, for the noise of all."""
    rng = np.random.default_rng([problem.seed, len("hinges")])
    bent = [i for i, recipe in enumerate(forecasts.recipes) if recipe.view != LINEAR]
    if bent and problem.hidden:
        best = max(bent, key=lambda i: judgement.weights[i])
        view, networks = forecasts.recipes[best].view, forecasts.networks[best]
    else:
        view = next(iter(problem.views))
        networks = random_networks(rng, problem.seen[view], (UNITS,), 1, 1)
    first = networks.layers[0].astype(np.float64)
    noise = np.einsum("rd,rd->d", judgement.weights[:, None], judgement.spread)
    return learn_hinges(
        view,
        first.reshape(-1, first.shape[2])[:, 1:],
        problem.seen[view],
        np.stack([goals(problem, bool(w)) for w in range(len(problem.warps))]),
        problem.weights,
        np.stack([noise for _ in problem.warps]),
        rng,
    )


def without_epistemic(ensemble: Ensemble, inputs: Floats) -> Ensemble:
    """Noise variances less what is epistemic: the forecasts were of one network each."""
    sample = inputs[:: -(-len(inputs) // 2_000)]  # so many rows are enough
    assert ensemble.hinges is not None
    left_open = variances(ensemble.hinges, seen_of(ensemble, sample)[ensemble.hinges.view])
    apart = np.stack(
        [
            values.var(axis=0, ddof=min(1, len(values) - 1)).mean(axis=0)
            + left_open[int(recipe.is_warped)].mean(axis=0)
            for recipe, values in zip(
                ensemble.recipes, member_outputs(ensemble, sample), strict=True
            )
        ]
    )
    left = np.maximum(ensemble.spread - apart, LEAST_NOISE * ensemble.spread)
    return replace(ensemble, spread=left)
