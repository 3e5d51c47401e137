"""Which way an ensemble is fitted.

Rows in memory are cross-fitted, many rows by minibatches. Of more rows than are held in memory
coordinate ascent fits a sample in one of these ways, and sweeps its members over all rows. Members
with weights from their ELBO, or equal ones, are fits of their own that start from networks of the
recipe that predicts best; and the members of an earlier ensemble go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bowtienet._old.data.rows import take_rows
from bowtienet._old.ensemble.cross_fit import Fitted, cross_fit, runner
from bowtienet._old.ensemble.ensemble import Ensemble, alone
from bowtienet._old.ensemble.fold_networks import Candidate, further_networks, held_out_folds, see
from bowtienet._old.ensemble.held_out_forecasts import Noise
from bowtienet._old.ensemble.large_tables import fit_large
from bowtienet._old.ensemble.member import Run, Task, last_bound
from bowtienet._old.ensemble.recipes import MANY_ROWS, choose_recipes, possible_recipes
from bowtienet._old.ensemble.settings import EFFORTS, Settings, starts_from_networks
from bowtienet._old.ensemble.stacking import elbo_weights, equal_weights
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.posterior.initialize import join_networks
from bowtienet._old.representation.representation import View


def fit_members(
    task: Task,
    views: Sequence[View],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Fitted:
    """New members. `task` has the rows, or those of a stream to start from, and the stream."""
    if settings.weighting != "stacking":
        return fit_alike(task, views, settings, run, rng, say)
    if task.stream is not None and not task.stochastic:
        return _fit_sample_first(task, views, settings, run, rng, say)
    n_rows = task.rows.inputs.shape[0]
    many = task.stream is not None or n_rows > MANY_ROWS
    if many and starts_from_networks(settings) and held_out_folds(n_rows):
        return fit_large(task, views, settings, run, rng, say)
    if task.stream is not None:
        return fit_alike(task, views, settings, run, rng, say)
    return cross_fit(task.rows, views, settings, rng, say)


def is_cross_fitted(task: Task, settings: Settings) -> bool:
    """Whether rows are in memory and few enough that networks are fitted side by side."""
    few = task.rows.inputs.shape[0] <= MANY_ROWS
    return settings.weighting == "stacking" and task.stream is None and few


def fit_further(task: Task, ensemble: Ensemble, run: Run) -> Fitted:
    """The members of an ensemble, each fitted further, with the weights that they had."""
    views = [ensemble.representation.views[place] for place in ensemble.views]
    tasks = [
        replace(task, view=view, start=member)
        for member, view in zip(ensemble.members, views, strict=True)
    ]
    members = [outcome.result for outcome in run(tasks)]
    return Fitted(
        [*members, *ensemble.members[len(members) :]],
        list(ensemble.weights),
        list(ensemble.views),
        list(ensemble.groups),
        Noise(
            levels=ensemble.levels,
            held_out=ensemble.held_out,
            calibration=ensemble.calibration,
            cross_fitted=ensemble.cross_fitted,
        ),
    )


def fit_alike(
    task: Task,
    views: Sequence[View],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Fitted:
    """Members fitted to all rows, with weights from their ELBO or equal ones."""
    chosen = _best_recipe(task, views, settings, rng, say)
    count = settings.n_estimators or EFFORTS[settings.effort].members
    recipe = chosen.recipe
    seeds = rng.integers(2**32, size=count)
    tasks = [
        replace(task, recipe=replace(recipe, seed=int(seed)), view=views[recipe.view])
        for seed in seeds
    ]
    if starts_from_networks(settings):
        [seen] = see(task.rows, [views[recipe.view]])
        new = replace(chosen, networks=())
        with one_blas_thread():
            networks = further_networks(new, seen, count, settings, runner(settings.n_jobs))
        tasks = [
            replace(one, network=tuple(join_networks(list(zip(*own.layers, strict=True)))))
            for one, own in zip(tasks, networks, strict=True)
        ]
    outcomes = list(run(tasks))
    members = [outcome.result for outcome in outcomes]
    weights = equal_weights(len(members)) if members else np.empty(0)
    if settings.weighting == "elbo" and members:
        bounds = [last_bound(member) for member in members]
        known = np.asarray([-np.inf if bound is None else bound for bound in bounds])
        weights = elbo_weights(known, settings.elbo_tempering)
    places = [recipe.view] * len(members)
    return Fitted(members, list(weights), places, list(alone(len(members))))


def _best_recipe(
    task: Task,
    views: Sequence[View],
    settings: Settings,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Candidate:
    """The recipe whose networks predict held-out rows best; of few rows the smoothest one."""
    rows = _first(task, MANY_ROWS).rows
    folds = held_out_folds(rows.inputs.shape[0])
    seen = see(rows, views, folds)
    recipes = possible_recipes(seen, settings, rng)
    if not folds:
        plain = [one for one in recipes if one.view == 0 and not one.linear]
        smoothest = max(plain, key=lambda one: (one.init_penalty, -one.parts))
        length = EFFORTS[settings.effort].lengths[0]
        return Candidate(recipe=replace(smoothest, start_iterations=length))
    say("comparing recipes")
    with one_blas_thread():
        return choose_recipes(
            seen,
            folds,
            recipes,
            settings,
            runner(settings.n_jobs),
            lambda *_: None,
        )[0]


def _fit_sample_first(
    task: Task,
    views: Sequence[View],
    settings: Settings,
    run: Run,
    rng: np.random.Generator,
    say: Callable[[str], None],
) -> Fitted:
    """Members that a sample has settled, swept over all rows."""
    fitted = fit_members(replace(task, stream=None), views, settings, run, rng, say)
    say("members with all rows")
    tasks = [
        replace(task, start=member, lengths=(member.n_sweeps,), chosen=True, view=views[place])
        for member, place in zip(fitted.members, fitted.views, strict=True)
    ]
    members = [outcome.result for outcome in run(tasks)]
    return fitted._replace(members=[*members, *fitted.members[len(members) :]])


def _first(task: Task, most: int) -> Task:
    """The task with no more rows than these."""
    size = min(task.rows.inputs.shape[0], most)
    return replace(task, rows=take_rows(task.rows, np.arange(size)), stream=None)
