"""An ensemble for many rows: recipes by a sample, networks by minibatches of all rows.

What is compared in all folds of a small table is compared on a sample of a large one. The networks
of the recipes that predict best go on from there with all rows, in minibatches, side by side; some
rows are held out by all of them and tell about weights and noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows, split, take_rows
from bowtienet._old.ensemble.cross_fit import Fitted, add_group, allocate, begin, runner
from bowtienet._old.ensemble.cross_fitted_scores import cross_fitted_scores
from bowtienet._old.ensemble.ensemble import Floats
from bowtienet._old.ensemble.fold_networks import (
    Candidate,
    adapted_penalties,
    held_out_folds,
    new_networks,
    part,
    see,
    stack,
    without,
)
from bowtienet._old.ensemble.held_out_forecasts import (
    LEAST_REST,
    Noise,
    Swept,
    forecast,
    judged,
    stack_recipes,
)
from bowtienet._old.ensemble.member import Run, Task
from bowtienet._old.ensemble.recipes import choose_recipes, possible_recipes
from bowtienet._old.ensemble.settings import EFFORTS, Settings, sweep_lengths
from bowtienet._old.ensemble.stacking import equal_weights
from bowtienet._old.ensemble.streams import SourceStream
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import LEARNING_RATE, Networks, RowBatch, fit_networks_by_batches
from bowtienet._old.inference.stochastic import Batches, minibatches
from bowtienet._old.inference.together import sweep_together
from bowtienet._old.model.outcomes import Outcome
from bowtienet._old.posterior.initialize import join_networks
from bowtienet._old.prediction.calibration import aligned, is_discrete
from bowtienet._old.representation.representation import View, log_slopes, network_rows

SAMPLE_ROWS = 3_000
"""Rows that recipes are compared on."""
LONGEST = 400
"""Steps of L-BFGS on the sample: minibatches of all rows do the rest."""
HELD_OUT_ROWS = 2_000
"""Rows that all networks hold out, at most a fifth."""
BATCH = 256
"""Rows of a minibatch of networks."""
VISITS = 6_000_000
"""Rows that a network visits, each as often as it does,"""
PASSES = (5, 60)
"""in so many passes over all rows."""
FURTHER = 0.2
"""Passes with the rows that were held out, as a part of those without,"""
FURTHER_RATE = 0.3 * LEARNING_RATE
"""and their learning rate."""
POSTERIOR_ROWS = 100_000
"""Rows that a member's posterior is fitted to in minibatches."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Members of one recipe, with their networks one after the other."""

    candidate: Candidate
    view: View
    count: int
    networks: Networks
    groups: NDArray[np.intp]
    """The column that each input belongs to."""

    def each(self) -> list[Networks]:
        """The small networks of every member."""
        size = self.candidate.recipe.parts
        return [part(self.networks, slice(k * size, (k + 1) * size)) for k in range(self.count)]


def fit_large(
    task: Task,
    views: Sequence[View],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Fitted:
    """Members of the recipes that predict a sample best, fitted to all rows.

    The rows of the task, standardised and in random order, are all of them, or a sample of its
    stream.
    """
    rows = task.rows
    groups = _groups(rows, views, settings, rng, say)
    if task.stream is not None:
        return _fit_stream(task, groups, settings, run, say)
    n_rows = rows.inputs.shape[0]
    fold = slice(n_rows - min(HELD_OUT_ROWS, n_rows // 5), n_rows)
    apart = take_rows(rows, np.arange(fold.start, fold.stop))
    passes = n_passes(n_rows)
    fitted, swept = [], []
    for number, group in enumerate(groups):
        say(f"training networks on {n_rows:,} rows: recipe {number + 1} of {len(groups)}")
        seen = network_rows(group.view, rows)
        kept = replace(seen, weights=without(_weights(seen), fold))
        trained = _trained(group, minibatches(kept, BATCH, number), kept, passes, settings.outcome)
        swept.append(_swept(trained, seen, fold, settings))
        more = max(1, round(FURTHER * passes))
        batches = minibatches(seen, BATCH, len(groups) + number)
        fitted.append(_trained(trained, batches, seen, more, settings.outcome, FURTHER_RATE))
    stacked = _stacked(swept, groups, apart, settings)
    members: list[Sequence[FitResult]] = []
    for group, one, weight in zip(fitted, swept, stacked[0], strict=True):
        results: Sequence[FitResult] = ()
        if weight > 0.0:
            say("posteriors with all rows")
            seen = network_rows(group.view, rows)
            model, factors = begin(group.candidate.recipe, group.each(), seen, settings)
            weights = np.tile(_weights(seen), (group.count, 1))
            [results] = sweep_together(model, seen, weights, factors, lengths=[one.n_sweeps])
        members.append(results)
    return _fitted(groups, swept, members, *stacked)


def n_passes(n_rows: int) -> int:
    """Passes of minibatches over the rows."""
    least, most = PASSES
    return int(np.clip(round(VISITS / n_rows), least, most))


def _groups(
    rows: Rows,
    views: Sequence[View],
    settings: Settings,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> list[Group]:
    """The best recipes of a sample, with networks to go on from: of the folds, then new ones."""
    sample = take_rows(rows, np.arange(min(rows.inputs.shape[0], SAMPLE_ROWS)))
    seen, folds = see(sample, views), held_out_folds(sample.inputs.shape[0])
    recipes = possible_recipes(seen, settings, rng)

    def pace(n_networks: int, length: int, n_inputs: float) -> None:
        say(f"comparing recipes on a sample: {n_networks} networks, {length} steps")

    with one_blas_thread():
        chosen = choose_recipes(
            seen, folds, recipes, settings, runner(settings.n_jobs), pace, longest=LONGEST
        )
    wanted = settings.n_estimators or EFFORTS[settings.effort].members
    found = []
    for one, count in zip(chosen, allocate(equal_weights(len(chosen)), wanted), strict=True):
        networks = list(one.networks[:count])
        networks += [
            new_networks(one.recipe, k, seen[one.recipe.view].rows, settings)
            for k in range(len(networks), count)
        ]
        if count:
            view = views[one.recipe.view]
            found.append(
                Group(
                    candidate=one,
                    view=view,
                    count=int(count),
                    networks=stack(networks),
                    groups=seen[one.recipe.view].groups,
                )
            )
    return found


def _trained(
    group: Group,
    batches: Batches,
    rows: Rows | SourceStream,
    passes: int,
    outcome: Outcome,
    learning_rate: float = LEARNING_RATE,
) -> Group:
    """The group with its networks after some passes over all rows."""
    size = group.count * group.candidate.recipe.parts
    total = rows.total_weight if isinstance(rows, SourceStream) else float(_weights(rows).sum())

    def parts(number: int) -> Iterator[RowBatch]:
        for whole in batches(number):
            for batch in split(whole, BATCH):
                yield batch.inputs, batch.targets, np.tile(_weights(batch), (size, 1))

    recipe = group.candidate.recipe
    penalties, own = np.full(size, recipe.init_penalty), None
    if recipe.adaptive:
        own = adapted_penalties(group.networks, recipe.parts, group.groups)
    with one_blas_thread(), np.errstate(all="ignore"):
        [networks] = fit_networks_by_batches(
            parts,
            group.networks,
            penalties,
            np.full(size, total),
            lengths=[passes],
            learning_rate=learning_rate,
            input_penalties=own,
            outcome=outcome,
        )
    return replace(group, networks=networks)


def _swept(group: Group, seen: Rows, fold: slice, settings: Settings) -> Swept:
    """Posteriors without the rows of a fold, and what they say of these together."""
    folds = [fold] * group.count
    model, factors = begin(group.candidate.recipe, group.each(), seen, settings, folds=folds)
    weights = np.tile(without(_weights(seen), fold), (group.count, 1))
    length = sweep_lengths(settings)[0]
    [results] = sweep_together(model, seen, weights, factors, lengths=[length])
    forecasts = [np.stack(forecast(result, seen, fold, settings)) for result in results]
    targets = np.asarray(to_numpy(seen.targets), dtype=np.float64)[fold]
    return _together(group, targets, forecasts, _weights(seen)[fold], length, settings)


def _fit_stream(
    task: Task,
    groups: Sequence[Group],
    settings: Settings,
    run: Run,
    say: Callable[[str], None],
) -> Fitted:
    """Networks by minibatches of a stream, posteriors by the stochastic solver."""
    stream, held_out = task.stream, task.held_out
    assert isinstance(stream, SourceStream)
    tasks = []
    for number, group in enumerate(groups):
        say(f"training networks on {stream.n_rows:,} rows: recipe {number + 1} of {len(groups)}")
        seen = stream.seen_by(group.view, None)
        batches = seen.batches(max(task.batch_size, BATCH), number)
        trained = _trained(group, batches, seen, n_passes(stream.n_rows), settings.outcome)
        for networks in trained.each():
            joined = tuple(join_networks(list(zip(*networks.layers, strict=True))))
            tasks.append(
                replace(
                    task,
                    recipe=group.candidate.recipe,
                    view=group.view,
                    network=joined,
                    most_rows=POSTERIOR_ROWS,
                )
            )
    outcomes = list(run(tasks))
    members, swept, first = [], [], 0
    for group in groups:
        own = outcomes[first : first + group.count]
        first += group.count
        members.append([outcome.result for outcome in own])
        forecasts = [one.forecasts for one in own if one.forecasts is not None]
        if forecasts and held_out is not None:
            apart = network_rows(group.view, held_out)
            targets = np.asarray(to_numpy(apart.targets), dtype=np.float64)
            n_sweeps = own[0].result.n_sweeps
            swept.append(
                _together(group, targets, forecasts, _weights(held_out), n_sweeps, settings)
            )
    if held_out is None or len(outcomes) < len(tasks) or outcomes[-1].interrupted:
        return _as_they_are(groups, members)
    return _fitted(groups, swept, members, *_stacked(swept, groups, held_out, settings))


def _together(
    group: Group,
    targets: Floats,
    forecasts: Sequence[Floats],
    row_weights: Floats,
    n_sweeps: int,
    settings: Settings,
) -> Swept:
    """What the members of a group say of held-out rows as one.

    Their variance is r v + spread; r is such that it is on average the one that errors ask for.
    """
    means, variances = np.stack(forecasts, axis=1)
    means = aligned(settings.outcome, means)
    mean, spread, own = means.mean(axis=0), means.var(axis=0), variances.mean(axis=0)
    found = judged(
        group.candidate, n_sweeps, targets, (mean, own + spread), row_weights, settings.outcome
    )
    if is_discrete(settings.outcome):
        return found
    asked, typical, apart = found.ratio, own.mean(axis=0), spread.mean(axis=0)
    ratio = np.maximum(asked + (asked - 1.0) * apart / typical, LEAST_REST * asked)
    return replace(found, variances=ratio * own + spread, ratio=ratio)


def _stacked(
    swept: Sequence[Swept], groups: Sequence[Group], apart: Rows, settings: Settings
) -> tuple[Floats, Noise]:
    """Weights of the groups and levels of noise, by the rows that all members hold out."""
    slopes = np.stack([log_slopes(group.view, apart) for group in groups])
    # The variances are those of the groups already.
    whole = [replace(one, ratio=np.ones_like(one.ratio)) for one in swept]
    weights, noise = stack_recipes(whole, slopes, _weights(apart), apart.inputs, settings)
    views = [group.view for group in groups]
    scores = cross_fitted_scores(whole, weights, noise, views, apart, settings.outcome)
    return weights, replace(noise, cross_fitted=scores)


def _fitted(
    groups: Sequence[Group],
    swept: Sequence[Swept],
    members: Sequence[Sequence[FitResult]],
    weights: Floats,
    noise: Noise,
) -> Fitted:
    found = Fitted([], [], [], [], noise)
    for group, one, own, weight in zip(groups, swept, members, weights, strict=True):
        if weight > 0.0:
            ratio = one.ratio if noise.calibration is None else None
            add_group(found, own, ratio, group.candidate.recipe.view, float(weight))
    return found


def _as_they_are(groups: Sequence[Group], members: Sequence[Sequence[FitResult]]) -> Fitted:
    """The fits that there are after an interruption, or without held-out rows, all alike."""
    found, total = Fitted([], [], [], []), sum(map(len, members))
    for group, own in zip(groups, members, strict=True):
        if own:
            share = len(own) / total
            add_group(found, own, None, group.candidate.recipe.view, share)
    return found


def _weights(rows: Rows) -> Floats:
    return np.asarray(to_numpy(rows.weights), dtype=np.float64)
