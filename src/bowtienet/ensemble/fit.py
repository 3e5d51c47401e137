"""The five steps of a fit: cross-fit the portfolio, stack, rounds, members, their disagreement."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet.ensemble.ensemble import Ensemble, moments
from bowtienet.ensemble.forecasts import (
    FIRST_STEPS,
    LAST_STEPS,
    cross_fit,
    forecasts_of,
    train_recipes,
    work_of,
)
from bowtienet.ensemble.hinges import UNITS, Hinges, learn_hinges
from bowtienet.ensemble.judgement import Forecasts, chosen, conformal_scores_of, joining
from bowtienet.ensemble.portfolio import LINEAR, portfolio
from bowtienet.ensemble.problem import Problem, goals, has_outliers
from bowtienet.networks.networks import Networks, random_networks, take

Floats = NDArray[np.float64]

KEPT = 4
"""Recipes that are kept, by weight: more are slower and no better."""
ENOUGH_GAIN = 0.02
"""Gain of a round in log density below which there is no further one."""


def fit_ensemble(problem: Problem, rounds: int) -> Ensemble:
    """Members, weights, levels and gates."""
    recipes = portfolio(
        tuple(problem.views),
        max(1, len(problem.warps)),
        problem.outcome,
        shrinks=problem.prior != "gaussian",
        outliers=has_outliers(problem),
    )
    # One round and a half is usual, of twice the work, and the members have their last steps.
    later = 2.0 * min(float(rounds), 1.5) + LAST_STEPS / FIRST_STEPS
    first = work_of(problem, recipes, FIRST_STEPS)
    problem.progress.expect(first * (1.0 + later * min(1.0, KEPT / len(recipes))))
    try:
        forecasts = joined(problem, cross_fit(problem, recipes))
        largest = np.sort(np.argsort(-forecasts.weights)[:KEPT])
        forecasts = needed(problem, chosen(problem, forecasts, largest))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "the fit was interrupted before its held-out forecasts: nothing is fitted."
        ) from None
    try:
        forecasts = needed(problem, go_on(problem, forecasts, rounds))
        seed = len("members") + rounds
        networks = train_recipes(
            problem, forecasts.recipes, forecasts.networks, LAST_STEPS, seed=seed, all_rows=True
        )
    except KeyboardInterrupt:
        warnings.warn(
            "the fit was interrupted: the networks of the held-out forecasts are its members.",
            UserWarning,
            stacklevel=4,
        )
        networks = forecasts.networks
    return ensemble_of(problem, forecasts, networks)


def joined(problem: Problem, forecasts: Forecasts) -> Forecasts:
    """Without warped recipes whose means suffer, unless the density would suffer more."""
    few = chosen(problem, forecasts, joining(problem, forecasts))
    return forecasts if forecasts.log_density > few.log_density + 0.2 else few


def needed(problem: Problem, forecasts: Forecasts) -> Forecasts:
    """Without recipes of negligible weight, which are not worth their training."""
    return chosen(problem, forecasts, np.flatnonzero(forecasts.weights >= 0.02))


def go_on(problem: Problem, forecasts: Forecasts, rounds: int) -> Forecasts:
    """Rounds: networks train on from where they are, each time with twice the steps.

    A round that does not gain is thrown away, and one that gains little is the last.
    """
    recipes = forecasts.recipes
    last = work_of(problem, recipes, LAST_STEPS)
    for number in range(1, rounds + 1):
        steps = FIRST_STEPS * 2**number
        # Nobody knows whether a further round of twice the work follows: a third of this one keeps
        # the time left within a factor of two either way for the most part.
        following = 1.0 / 3.0 if number < rounds else 0.0
        problem.progress.expect((1.0 + following) * work_of(problem, recipes, steps) + last)
        networks = train_recipes(problem, recipes, forecasts.networks, steps, seed=number)
        further = forecasts_of(problem, recipes, networks)
        gain = further.log_density - forecasts.log_density
        if gain > 0.0:
            forecasts = further
        if gain < ENOUGH_GAIN:
            break
    problem.progress.expect(last)
    return forecasts


def ensemble_of(problem: Problem, forecasts: Forecasts, networks: tuple[Networks, ...]) -> Ensemble:
    """What predictions need; of the linear recipe only the function of all rows."""
    last = slice(problem.n_folds, problem.n_folds + 1)
    hinges = hinges_of(problem, forecasts) if problem.warps else None
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
        stacks=forecasts.stacks,
        warps=problem.warps,
        spread=forecasts.spread,
        outcome=problem.outcome,
        hinges=hinges,
        scores=conformal_scores_of(problem, forecasts),
    )
    return without_epistemic(ensemble, problem.inputs) if problem.warps else ensemble


def hinges_of(problem: Problem, forecasts: Forecasts) -> Hinges:
    """Hinges along the units of the networks with most weight, for the noise of all."""
    rng = np.random.default_rng([problem.seed, len("hinges")])
    bent = [i for i, recipe in enumerate(forecasts.recipes) if recipe.view != LINEAR]
    if bent and problem.hidden:
        best = max(bent, key=lambda i: forecasts.weights[i])
        view, networks = forecasts.recipes[best].view, forecasts.networks[best]
    else:
        view = next(iter(problem.views))
        networks = random_networks(rng, problem.seen[view], (UNITS,), 1, 1)
    first = networks.layers[0].astype(np.float64)
    directions = first.reshape(-1, first.shape[2])[:, 1:]
    targets = np.stack([goals(problem, bool(w)) for w in range(len(problem.warps))])
    noise = np.einsum("rd,rd->d", forecasts.weights[:, None], forecasts.spread)
    noise = np.stack([noise for _ in problem.warps])
    rows = problem.seen[view], targets, problem.weights
    return learn_hinges(view, directions, *rows, noise, rng)


def without_epistemic(ensemble: Ensemble, inputs: Floats) -> Ensemble:
    """Noise variances less what is epistemic: the forecasts were of one network each."""
    sample = inputs[:: -(-len(inputs) // 2_000)]  # so many rows are enough
    _, apart, left_open = moments(ensemble, sample)
    epistemic = apart.mean(axis=1) + left_open.mean(axis=1)
    # A part of the noise remains whatever the members disagree.
    left = np.maximum(ensemble.spread - epistemic, 0.3 * ensemble.spread)
    return replace(ensemble, spread=left)
