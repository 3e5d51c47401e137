"""Members of an ensemble: how each is fitted, and how the fit chooses among them.

The ELBO does not say which temperature, start or length predicts best; rows that were held out do.
So every recipe is first fitted to a part of the rows, with its held-out log density noted after
20, 80, 320, ... sweeps until that stops rising; stacking weighs all recipes and lengths; and
members are fitted to all rows by those that got weight, in proportion to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices, to_numpy
from bowtienet.data.canonical import take_columns
from bowtienet.data.rows import Rows, take_rows
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import FitResult, Progress, fit
from bowtienet.inference.execution import one_blas_thread
from bowtienet.inference.pruning import Pruning, combine
from bowtienet.model.architecture import build_architecture
from bowtienet.model.priors import BowTieModel, default_model
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction.ensemble import member_inputs
from bowtienet.prediction.predictive import log_density, predict
from bowtienet.prediction.weighting import elbo_weights, equal_weights, stacking_weights

Floats = NDArray[np.float64]
Callback = Callable[[Progress], bool | None]

START_ITERATIONS = 1000
"""L-BFGS steps of the network that a fit starts from."""
FOLDS = 5
HELD_OUT_ROWS = 200
"""Folds are held out in turn until so many rows have been: few rows need all of them."""
FEWEST_ROWS = 10
"""Below this nothing is held out."""
FIRST_LENGTH, LENGTHENING = 20, 4
WORTHWHILE = 0.01
"""Gain in log density per row for which the next length is worth its time."""
UNFINISHED = 0.05
"""Gain of the last length allowed from which the fit is said to have been cut short."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What may differ from member to member."""

    temperature: float
    penalty: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What all members share."""

    hidden: tuple[int, ...]
    family: str
    scheme: str
    max_sweeps: int
    tolerance: float
    route: str
    n_threads: int | None
    prune_every: int | None = None
    false_discovery_rate: float = 0.01


@dataclass(frozen=True, kw_only=True)
class Task:
    """One fit: of a recipe (or from an earlier result) to rows, seen after given lengths."""

    rows: Rows
    recipe: Recipe | None = None
    held_out: Rows | None = None
    lengths: tuple[int, ...] = ()
    start: FitResult | None = None
    chosen: bool = False
    """Its length is the one it is meant to have: a fit that reaches it was not cut short."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a task gave."""

    results: tuple[FitResult, ...]
    """The fit after each length; of a fit with rows held out only its end."""
    densities: Floats | None = None
    """Log density of the held-out rows after each length, (lengths, n)."""
    interrupted: bool = False
    """Ctrl-C ended it: the fits that would follow are not wanted."""


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


def run_task(task: Task, settings: Settings, callback: Callback | None = None) -> Outcome:
    """Fit one member."""
    # One thread, so that the start has the same bits in a process that was given fewer cores.
    with one_blas_thread():
        model, factors = _begin(task, settings)
    recorder = _Recorder(task, settings, callback)
    end = fit(
        model,
        task.rows,
        factors,
        max_sweeps=max(task.lengths, default=settings.max_sweeps),
        tolerance=settings.tolerance,
        prune_every=settings.prune_every,
        false_discovery_rate=settings.false_discovery_rate,
        n_threads=settings.n_threads,
        callback=recorder,
    )
    outcome = recorder.finish(replace(end, pruning=recorder.pruning(end)))
    if not task.chosen:
        return outcome
    return replace(outcome, results=tuple(map(_as_chosen, outcome.results)))


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
    rows: Rows, recipes: Sequence[Recipe], run: Run, combine: str, tempering: float
) -> tuple[list[FitResult], Floats]:
    """Members fitted to all rows, weighed by their ELBO or equally."""
    tasks = [Task(recipe=recipe, rows=rows) for recipe in recipes]
    outcomes = list(run(tasks))
    if combine == "equal" or not outcomes:
        return _as_they_are(outcomes)
    members = [outcome.results[-1] for outcome in outcomes]
    bounds = np.asarray([last_bound(member) for member in members])
    return members, elbo_weights(bounds, tempering)


def last_bound(result: FitResult) -> float:
    """The bound that a fit reached; minus infinity if it never had one."""
    return result.elbo_history[-1] if result.elbo_history else -np.inf


def fit_stacked(
    rows: Rows,
    recipes: Sequence[Recipe],
    n_members: int,
    run: Run,
    max_sweeps: int,
    rng: np.random.Generator,
) -> tuple[list[FitResult], Floats]:
    """Members of the recipes and lengths that predict held-out rows best, fitted to all rows.

    If the fits are interrupted, what there is counts equally.
    """
    folds = held_out_folds(rows.inputs.shape[0])
    if not folds:
        # Too few rows to compare: all recipes in turn, from the smoothest on.
        return fit_alike(rows, _repeat(recipes[::-1], n_members, rng), run, "equal", 0.0)
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
    table = _density_table(trials, len(recipes))
    weights = _weigh(table, row_weights).ravel()
    unfinished = _still_rising(table, row_weights)
    chosen = np.repeat(np.arange(weights.size), allocate(weights, n_members))
    shares = weights[chosen] / np.bincount(chosen)[chosen]
    tasks = [
        Task(
            recipe=replace(recipes[index // len(lengths)], seed=int(rng.integers(2**32))),
            rows=rows,
            lengths=(lengths[index % len(lengths)],),
            chosen=not unfinished.flat[index],
        )
        for index in map(int, chosen)
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


def _repeat(recipes: Sequence[Recipe], count: int, rng: np.random.Generator) -> list[Recipe]:
    """Recipes in turn, each with a seed of its own."""
    seeds = rng.integers(2**32, size=count)
    return [
        replace(recipes[index % len(recipes)], seed=int(seed)) for index, seed in enumerate(seeds)
    ]


def _begin(task: Task, settings: Settings) -> tuple[BowTieModel, GlobalFactors]:
    if task.start is not None:
        return task.start.model, task.start.factors
    rows, recipe = task.rows, task.recipe
    assert recipe is not None
    architecture = build_architecture(rows.inputs.shape[1], settings.hidden, rows.targets.shape[1])
    model = default_model(
        architecture,
        rows.inputs,
        rows.targets,
        rows.weights,
        family=settings.family,
        temperature=recipe.temperature,
    )
    factors = initialize(
        model,
        rows,
        recipe.seed,
        scheme=settings.scheme,
        penalty=recipe.penalty,
        start_iterations=START_ITERATIONS,
    )
    return model, factors


class _Recorder:
    """Notes a fit at the lengths of its task and stops it where longer does not predict better."""

    def __init__(self, task: Task, settings: Settings, callback: Callback | None) -> None:
        self.task, self.settings, self.callback = task, settings, callback
        self.results: list[FitResult] = []
        self.densities: list[Floats] = []
        self.history: list[float] = []
        self.enough = self.asked = False
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> bool:
        progress = replace(progress, pruning=self.pruning(progress))
        self.history.append(progress.elbo)
        self.asked = bool(self.callback(progress)) if self.callback is not None else False
        due = self.task.lengths[len(self.results) :]
        if due and progress.sweep >= due[0]:
            # A sweep that was undone leaves the state before it.
            missed = self.last is not None and progress.sweep > due[0]
            self._note(self._result(self.last if self.last and missed else progress, missed))
            self.enough = len(due) == 1 or not self._still_gains()
        self.last = progress
        return self.asked or self.enough

    def finish(self, end: FitResult) -> Outcome:
        """Every length has an entry: one that was not reached has that of the end."""
        if not self.enough:
            self._note(end)
        stopped = self.enough or self.asked
        interrupted = end.status is Status.INTERRUPTED and not stopped
        missing = max(len(self.task.lengths), 1) - len(self.results)
        if self.task.held_out is None:
            results = (*self.results, *self.results[-1:] * missing)
            return Outcome(results=results, interrupted=interrupted)
        densities = self.densities + self.densities[-1:] * missing
        return Outcome(
            results=(self.results[-1],), densities=np.stack(densities), interrupted=interrupted
        )

    def _result(self, progress: Progress, is_last: bool) -> FitResult:
        history = self.history[:-1] if is_last else self.history
        return FitResult(
            model=progress.model,
            factors=progress.factors,
            elbo_terms=progress.elbo_terms,
            elbo_history=tuple(history),
            n_sweeps=progress.sweep,
            status=Status.SWEEP_LIMIT,
            pruning=progress.pruning,
        )

    def pruning(self, found: Progress | FitResult) -> Pruning | None:
        """What a fit has left of the network that it, or an earlier one, began with."""
        before = None if self.task.start is None else self.task.start.pruning
        return before if found.pruning is None else combine(before, found.pruning)

    def _note(self, result: FitResult) -> None:
        self.results.append(result)
        rows = self.task.held_out
        if rows is not None:
            found = predict(
                result.model,
                result.factors,
                member_inputs(result, rows.inputs),
                route=self.settings.route,
                n_threads=self.settings.n_threads,
            )
            self.densities.append(log_density(found, rows.targets))

    def _still_gains(self) -> bool:
        """Whether the last lengthening was worth its time."""
        if self.task.held_out is None or len(self.densities) < 2:
            return True
        share = to_numpy(self.task.held_out.weights).astype(float)
        scores = np.stack(self.densities) @ (share / share.sum())
        return bool(scores[-1] > scores[:-1].max() + WORTHWHILE)


def _parted(rows: Rows, fold: slice) -> tuple[Rows, Rows]:
    """Rows to fit and rows held out; made once and shared by all recipes."""
    everything = np.arange(rows.inputs.shape[0])
    return take_rows(rows, np.delete(everything, fold)), take_rows(rows, everything[fold])


def _density_table(trials: Sequence[Outcome], n_recipes: int) -> Floats:
    """Held-out log densities (recipes, lengths, rows); trials come by recipe, then by fold."""
    n_folds = len(trials) // n_recipes
    return np.stack(
        [
            np.concatenate([_densities(trial) for trial in trials[first : first + n_folds]], axis=1)
            for first in range(0, len(trials), n_folds)
        ]
    )


def _weigh(table: Floats, row_weights: Floats) -> Floats:
    """Stacking weights (recipes, lengths)."""
    n_recipes, n_lengths, n_rows = table.shape
    weights = stacking_weights(table.reshape(-1, n_rows).T, row_weights)
    weights = weights.reshape(n_recipes, n_lengths)
    # Where no fold ran on, longer is the same fit: its weight belongs to the shortest.
    for length in reversed(range(1, n_lengths)):
        same = np.all(table[:, length] == table[:, length - 1], axis=1)
        weights[:, length - 1] += np.where(same, weights[:, length], 0.0)
        weights[:, length] = np.where(same, 0.0, weights[:, length])
    return weights


def _still_rising(table: Floats, row_weights: Floats) -> NDArray[np.bool_]:
    """Whether a longer fit seems worthwhile (recipes, lengths): only at the last length."""
    scores = table @ (row_weights / row_weights.sum())
    rising = np.zeros(scores.shape, dtype=bool)
    if scores.shape[1] > 1:
        rising[:, -1] = scores[:, -1] > scores[:, :-1].max(axis=1) + UNFINISHED
    return rising


def _densities(trial: Outcome) -> Floats:
    assert trial.densities is not None
    # A fit that broke down has no density: it shall count for nothing, and not spoil the others.
    return np.nan_to_num(trial.densities, nan=-1e6, neginf=-1e6)


def _as_chosen(result: FitResult) -> FitResult:
    """A fit that ended at the length it was meant to have has not run out of sweeps."""
    if result.status is Status.SWEEP_LIMIT:
        return replace(result, status=Status.HELD_OUT)
    return result
