"""Members of an ensemble: how each is fitted, and how the fit chooses among them.

The ELBO does not say which temperature, start or length predicts best; rows that were held out do.
So every recipe is first fitted to a part of the rows, with its held-out log density noted after
20, 80, 320, ... sweeps until that stops rising; stacking weighs all recipes and lengths; and
members are fitted to all rows by those that got weight, in proportion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices, to_numpy
from bowtienet.data.canonical import take_columns
from bowtienet.data.rows import Rows, take_rows
from bowtienet.estimators.tasks import (
    Floats,
    Outcome,
    Recipe,
    Stream,
    Task,
    held_out_score,
    last_bound,
)
from bowtienet.inference.iterate import FitResult
from bowtienet.prediction.weighting import (
    elbo_weights,
    equal_weights,
    stack_forecasts,
    variance_ratio,
)

FOLDS = 5
HELD_OUT_ROWS = 200
"""Folds are held out in turn until so many rows have been: few rows need all of them."""
FEWEST_ROWS = 10
"""Below this nothing is held out."""
FIRST_LENGTH, LENGTHENING = 20, 4
UNFINISHED = 0.05
"""Gain of the last length allowed from which the fit is said to have been cut short."""


Run = Callable[[Sequence[Task]], Iterable[Outcome]]
"""Runs tasks and answers in their order; it may stop early."""

GoOn = Callable[[FitResult, Rows], Task]
"""From a fitted member and all rows to the fit that goes on from it."""


def continued(member: FitResult, rows: Rows, length: int | None = None) -> Task:
    """Fit a member further, as far as the settings allow or by a length that was chosen for it."""
    if member.pruning is not None:
        rows = take_columns(rows, member.pruning.inputs)
    lengths = () if length is None else (length,)
    return Task(rows=rows, start=member, lengths=lengths, chosen=length is not None)


def lengths_up_to(max_sweeps: int) -> tuple[int, ...]:
    """20, 80, 320, ... and the last one allowed."""
    lengths = []
    length = FIRST_LENGTH
    while length < max_sweeps:
        lengths.append(length)
        length *= LENGTHENING
    return (*lengths, max_sweeps)


def held_out_folds(n_rows: int) -> list[slice]:
    """Fifths of the rows to hold out in turn; no more of them than it takes to compare recipes."""
    if n_rows < FEWEST_ROWS:
        return []
    folds = slices(n_rows, -(-n_rows // FOLDS))
    return folds[: max(1, -(-HELD_OUT_ROWS // (folds[0].stop - folds[0].start)))]


def fit_alike(
    rows: Rows,
    recipes: Sequence[Recipe],
    run: Run,
    combine: str,
    tempering: float,
    stream: Stream | None = None,
) -> tuple[list[FitResult], Floats]:
    """Members fitted to all rows, weighed by their ELBO or equally."""
    tasks = [Task(recipe=recipe, rows=rows, stream=stream) for recipe in recipes]
    outcomes = list(run(tasks))
    if combine == "equal" or not outcomes:
        return _as_they_are(outcomes)
    members = [outcome.results[-1] for outcome in outcomes]
    bounds = np.asarray([last_bound(member) for member in members])
    return members, elbo_weights(bounds, tempering)


def fit_stacked(
    rows: Rows,
    recipes: Sequence[Recipe],
    n_members: int,
    run: Run,
    max_sweeps: int,
    rng: np.random.Generator,
    stream: Stream | None = None,
) -> tuple[list[FitResult], Floats]:
    """Members of the recipes and lengths that predict held-out rows best, fitted to all rows.

    Of a stream, `rows` are a sample: recipes are compared on it, and members fitted to the stream.
    If the fits are interrupted, what there is counts equally.
    """
    folds = held_out_folds(rows.inputs.shape[0])
    if not folds:
        # Too few rows to compare: all recipes in turn, from the smoothest on.
        recipes = repeat(recipes[::-1], n_members, rng)
        return fit_alike(rows, recipes, run, "equal", 0.0, stream)
    lengths = lengths_up_to(max_sweeps)
    parts = [_parted(rows, fold) for fold in folds]
    tasks = [
        Task(recipe=recipe, rows=rest, held_out=held_out, lengths=lengths)
        for recipe in recipes
        for rest, held_out in parts
    ]
    trials = list(run(tasks))
    if len(trials) < len(tasks) or trials[-1].interrupted:
        return _as_they_are(trials)
    row_weights = to_numpy(rows.weights).astype(float)[: folds[-1].stop]
    forecasts = _forecast_table(trials, len(recipes))
    weights, ratios = weigh(forecasts, row_weights, n_members)
    unfinished = _still_rising(forecasts, row_weights)
    chosen = np.repeat(np.arange(weights.size), allocate(weights.ravel(), n_members))
    shares = weights.ravel()[chosen] / np.bincount(chosen)[chosen]
    tasks = [
        Task(
            recipe=replace(recipes[recipe], seed=int(rng.integers(2**32))),
            rows=rows,
            stream=stream,
            lengths=(lengths[length],),
            chosen=not unfinished[recipe, length],
            variance_ratio=ratios[recipe, length],
        )
        for recipe, length in (divmod(int(index), len(lengths)) for index in chosen)
    ]
    members = [outcome.results[-1] for outcome in run(tasks)]
    if not members:
        return _as_they_are(trials)
    shares = shares[: len(members)]
    return members, shares / shares.sum()


def _as_they_are(trials: Sequence[Outcome]) -> tuple[list[FitResult], Floats]:
    """What an interruption left: the fits to parts of the rows, all alike."""
    members = [outcome.results[-1] for outcome in trials]
    return members, equal_weights(len(members)) if members else np.empty(0)


def allocate(weights: Floats, count: int) -> NDArray[np.intp]:
    """`count` places shared out in proportion to weights, the largest remainders first."""
    quota = weights * count
    places = np.floor(quota).astype(np.intp)
    left = count - places.sum()
    places[np.argsort(places - quota, kind="stable")[:left]] += 1
    return places


def repeat(recipes: Sequence[Recipe], count: int, rng: np.random.Generator) -> list[Recipe]:
    """Recipes in turn, each with a seed of its own."""
    seeds = rng.integers(2**32, size=count)
    return [
        replace(recipes[index % len(recipes)], seed=int(seed)) for index, seed in enumerate(seeds)
    ]


def _parted(rows: Rows, fold: slice) -> tuple[Rows, Rows]:
    """Rows to fit and rows held out; made once and shared by all recipes."""
    everything = np.arange(rows.inputs.shape[0])
    return take_rows(rows, np.delete(everything, fold)), take_rows(rows, everything[fold])


def _forecast_table(trials: Sequence[Outcome], n_recipes: int) -> Floats:
    """Held-out errors and variances (2, recipes, lengths, rows, D_out); recipe by recipe."""
    n_folds = len(trials) // n_recipes
    parts = [trial.forecasts for trial in trials if trial.forecasts is not None]
    return np.stack(
        [
            np.concatenate(parts[first : first + n_folds], axis=2)
            for first in range(0, len(parts), n_folds)
        ],
        axis=1,
    )


def weigh(forecasts: Floats, row_weights: Floats, n_members: int) -> tuple[Floats, Floats]:
    """Weights (recipes, lengths) and variance ratios (recipes, lengths, D_out) of what to fit.

    Each candidate first gets the variance that rows held out ask for. One member is then the best
    of them alone; for several, stacking weighs them and sets the variances of their mixture.
    """
    _, n_recipes, n_lengths, n_rows, n_outputs = forecasts.shape
    errors, variances = forecasts.reshape(2, -1, n_rows, n_outputs)
    ratios = np.stack(
        [variance_ratio(e, v, row_weights) for e, v in zip(errors, variances, strict=True)]
    )
    if n_members == 1:
        scores = _scores(forecasts, row_weights).ravel()
        weights = np.where(np.arange(scores.size) == np.argmax(scores), 1.0, 0.0)
    else:
        weights, factor = stack_forecasts(errors, ratios[:, None] * variances, row_weights)
        ratios = ratios * factor
    weights = weights.reshape(n_recipes, n_lengths)
    # Where no fold ran on, longer is the same fit: its weight belongs to the shortest.
    for length in reversed(range(1, n_lengths)):
        same = np.all(forecasts[:, :, length] == forecasts[:, :, length - 1], axis=(0, 2, 3))
        weights[:, length - 1] += np.where(same, weights[:, length], 0.0)
        weights[:, length] = np.where(same, 0.0, weights[:, length])
    return weights, ratios.reshape(n_recipes, n_lengths, n_outputs)


def _scores(forecasts: Floats, row_weights: Floats) -> Floats:
    """Held-out log densities per row (recipes, lengths), each with the variances it should have."""
    errors, variances = forecasts
    return np.array(
        [
            [held_out_score(e, v, row_weights) for e, v in zip(*recipe, strict=True)]
            for recipe in zip(errors, variances, strict=True)
        ]
    )


def _still_rising(forecasts: Floats, row_weights: Floats) -> NDArray[np.bool_]:
    """Whether a longer fit seems worthwhile (recipes, lengths): only at the last length."""
    scores = _scores(forecasts, row_weights)
    rising = np.zeros(scores.shape, dtype=bool)
    if scores.shape[1] > 1:
        rising[:, -1] = scores[:, -1] > scores[:, :-1].max(axis=1) + UNFINISHED
    return rising
