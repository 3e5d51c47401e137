"""An ensemble by cross-fitting: every row is held out once, and nothing is fitted twice.

    recipes  -> networks of each fold, side by side        which recipes predict held-out rows
    networks -> variational posteriors, a few sweeps       out-of-fold means and variances
    these    -> weights, levels of noise and their gates   stacking
    networks -> further, with all rows, and swept again    the members

The members of a recipe are a group that predicts as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr

from bowtienet._arrays import like, to_numpy
from bowtienet.data.rows import Rows
from bowtienet.ensemble.ensemble import Floats, alone
from bowtienet.ensemble.member import recipe_model
from bowtienet.ensemble.recipes import (
    Candidate,
    SeenRows,
    choose_recipes,
    held_out_folds,
    mean_inputs,
    new_networks,
    on_host,
    possible_recipes,
    see,
    starts_from_networks,
    train,
    without,
)
from bowtienet.ensemble.settings import EFFORTS, Recipe, Settings
from bowtienet.ensemble.stacking import (
    Forecasts,
    normal_log_densities,
    stack_with_levels,
    variance_ratio,
)
from bowtienet.inference.execution import one_blas_thread
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.start import Networks, factors_of_network, initialize, network_outputs
from bowtienet.inference.together import sweep_together
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.initialize import join_networks
from bowtienet.prediction.conformal import HeldOut
from bowtienet.prediction.levels import Levels, gate_inputs, log_gates
from bowtienet.prediction.predictive import errors_and_variances, predict
from bowtienet.representation.representation import View

FURTHER_STEPS = 100
"""Of L-BFGS, by which the networks of a fold take in the rows that they had not seen."""
LEAST_WEIGHT = 0.05
"""Stacking weight of a recipe that is worth its members."""
N_LEVELS = 3
FEWEST_LEVEL_ROWS = 50
"""Held-out rows below which noise has one level."""
MOST_GATE_COLUMNS = 30
ROWS_PER_GATE = 10
"""Held-out rows for each column that gates see, at least."""
LEAST_REST = 0.25
"""Of a group's variance that disagreement of its members may not take the place of."""
REPEATS = 2
"""Rounds of global updates in a sweep: scales that suit the networks are near their end already."""
FEW_MEMBERS = 5
"""Of rows too few to hold any out."""
SWEEP_STEPS = 1.2
"""Steps of L-BFGS, for each input, in the time of a sweep: benchmarks/speed/promise.py."""
LIKELY_STEPS = 0.4
"""Steps of L-BFGS for each row that are mostly worth their time."""
WORTH_SAYING = 5.0
"""Seconds to come from which on users are told."""
FIRST_LENGTH, LENGTHENING = 5, 2
"""Sweeps from a random start: 5, 10, 20, ... as held-out rows ask."""


class Fitted(NamedTuple):
    """Members with their weights, views and groups, and what held-out rows tell of their noise."""

    members: list[FitResult]
    weights: list[float]
    views: list[int]
    groups: list[int]
    levels: Levels | None = None
    held_out: HeldOut | None = None


class Pace:
    """Says how a fit comes along, and of a long one how many seconds are to come.

    A step of a network is work of the order of its inputs + 10, for each row; a sweep is as much as
    `SWEEP_STEPS` (inputs + 10) steps. Rounds so far tell the seconds of a unit of work.
    """

    def __init__(
        self, say: Callable[[str], None], settings: Settings, n_rows: int, n_folds: int
    ) -> None:
        self.say, self.settings, self.n_folds = say, settings, n_folds
        self.longest = LIKELY_STEPS * n_rows
        self.work = 0.0
        """Of rounds that have begun."""
        self.began = time.monotonic()
        self.reached = 0
        """Steps of networks that are in all folds already."""

    def round(self, n_networks: int, length: int, n_inputs: float) -> None:
        """Networks of so many inputs, on average, are trained to a length."""
        work = n_networks * (length - self.reached) * (n_inputs + 10.0)
        text = f"comparing recipes: {n_networks} networks, {length} steps"
        if length in EFFORTS[self.settings.effort].lengths:
            text = self._promise(work + self._to_come(length, n_inputs)) + text
            self.reached = length
        self.say(text)
        self.work += work

    def posteriors(self, n_inputs: float) -> None:
        """All rounds are over."""
        self.say(self._promise(self._to_come(None, n_inputs)) + "posteriors out of fold")

    def _to_come(self, length: int | None, n_inputs: float) -> float:
        """Work after a round to this length: of the rounds that are likely, and of all sweeps."""
        effort, size = EFFORTS[self.settings.effort], n_inputs + 10.0
        found, before = 0.0, length
        for later, n_kept in zip(effort.lengths, effort.kept, strict=True):
            if before is not None and before < later <= self.longest:
                found += n_kept * (later - before) * size
                before = later
        sweeps = 2.0 * sweep_lengths(self.settings)[-1] * SWEEP_STEPS * size
        found += effort.n_recipes * (sweeps + FURTHER_STEPS) * size
        return found * self.n_folds

    def _promise(self, work: float) -> str:
        """Words about the seconds that this work takes, if they are worth it.

        They come first: a narrow terminal shows the beginning of a line.
        """
        if not self.work:
            return ""
        seconds = work * (time.monotonic() - self.began) / self.work
        return f"about {seconds:.0f} s to go, " if seconds > WORTH_SAYING else ""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """A recipe with the posteriors of its folds, and their forecasts of held-out rows."""

    candidate: Candidate
    n_sweeps: int
    errors: Floats
    """Of held-out rows (n, D), in the order of the rows."""
    variances: Floats
    ratio: Floats
    """What the variances are multiplied by to match the errors, (D,)."""
    by_chance: Floats | None = None
    """Variance of networks of this recipe that differ by chance, (D,); None if it is not known."""


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
        weights, levels, held_out = stack_forecasts(
            swept, slopes, np.asarray(on_host(rows).weights), rows.inputs, settings
        )
        say("members with all rows")
        counts = members_of_recipes(weights, settings.n_estimators, len(folds))
        return _with_all_rows(swept, weights, counts, seen, levels, held_out, settings, run)


def sweep_lengths(settings: Settings) -> tuple[int, ...]:
    """Numbers of sweeps to choose from: few from a network, more from a random start."""
    if starts_from_networks(settings):
        wanted = EFFORTS[settings.effort].sweeps
        return tuple(sorted({min(length, settings.max_iter) for length in wanted}))
    lengths, length = [], FIRST_LENGTH
    while length < settings.max_iter:
        lengths.append(length)
        length *= LENGTHENING
    return (*lengths, settings.max_iter)


def stack_forecasts(
    swept: Sequence[Swept],
    slopes: Floats,
    row_weights: Floats,
    inputs: Any,
    settings: Settings,
) -> tuple[Floats, Levels | None, HeldOut]:
    """Weights of recipes and levels of noise, from forecasts of held-out rows (n,).

    `inputs` (n, E) are the standardised columns of the rows, `slopes` (R, n) those of the targets.
    """
    forecasts = Forecasts(
        errors=np.stack([one.errors for one in swept]),
        variances=np.stack([one.ratio * one.variances for one in swept]),
        log_slopes=slopes,
        row_weights=row_weights,
    )
    columns = _gate_columns(forecasts, np.asarray(to_numpy(inputs), dtype=np.float64))
    several = settings.noise == "auto" and row_weights.sum() >= FEWEST_LEVEL_ROWS
    seen = gate_inputs(columns, inputs)
    weights, scale, gates = stack_with_levels(forecasts, seen, N_LEVELS if several else 1)
    weights = np.where(weights >= min(LEAST_WEIGHT, weights.max()), weights, 0.0)
    weights = weights / weights.sum()
    values = _distribution_values(forecasts, weights, scale, log_gates(gates, seen))
    kept = row_weights > 0.0
    held_out = HeldOut(values=values[kept], weights=row_weights[kept])
    return weights, Levels(scale=scale, gates=gates, columns=columns), held_out


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


def ratio_of_group(swept: Swept, networks: Sequence[Networks], rows: Rows) -> Floats:
    """The variance ratio (D,) of a group of m members, from that of single networks out of fold.

    Networks that differ by chance with variance τ² err by B + τ² alone and by B + τ² / m together,
    and their disagreement (1 - 1/m) τ² is a part of the group's variance. So the ratio loses it
    twice, as a part of the mean variance v: r - 2 (1 - 1/m) τ² / v. A network of several small ones
    tells τ² by how much these differ on held-out rows; of others it is the spread of the members.
    """
    if len(networks) < 2:
        return swept.ratio
    by_chance = swept.by_chance
    if by_chance is None:
        outputs = np.stack([network_outputs(own, rows.inputs).mean(axis=0) for own in networks])
        by_chance = outputs.var(axis=0, ddof=1).mean(axis=0)
    lost = 2.0 * (1.0 - 1.0 / len(networks)) * by_chance / np.mean(swept.variances, axis=0)
    return np.asarray(np.maximum(swept.ratio - lost, LEAST_REST * swept.ratio))


def _by_chance(candidate: Candidate, rows: Rows, folds: Sequence[slice]) -> Floats | None:
    """τ² (D,): variance of a recipe's networks at held-out rows, if they are of several parts."""
    parts = candidate.recipe.parts
    if parts == 1:
        return None
    spreads = [
        network_outputs(own, rows.inputs[fold, ...]).var(axis=0, ddof=1)
        for own, fold in zip(candidate.networks, folds, strict=True)
    ]
    return np.concatenate(spreads).mean(axis=0) / parts


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
    best, highest = None, -np.inf
    for length, results in zip(lengths, found, strict=True):
        parts = [
            forecast(result, rows, fold, settings)
            for result, fold in zip(results, folds, strict=True)
        ]
        errors, variances = (np.concatenate(column) for column in zip(*parts, strict=True))
        ratio = variance_ratio(errors, variances, weights)
        logs = normal_log_densities(errors, ratio * variances)
        reached = float(logs @ weights / weights.sum())
        if best is None or reached > highest:
            highest = reached
            best = Swept(
                candidate=candidate,
                n_sweeps=length,
                errors=errors,
                variances=variances,
                ratio=ratio,
                by_chance=_by_chance(candidate, rows, folds),
            )
    assert best is not None
    return best


def forecast(
    result: FitResult, rows: Rows, fold: slice, settings: Settings
) -> tuple[Floats, Floats]:
    """Errors and variances of the rows of a fold, (n, D) each."""
    found = predict(
        result.model,
        result.factors,
        rows.inputs[fold, ...],
        propagation=settings.propagation,
        n_threads=1,
    )
    return errors_and_variances(found, rows.targets[fold, ...])


def _with_all_rows(
    swept: Sequence[Swept],
    weights: Floats,
    counts: Sequence[int],
    seen: Sequence[SeenRows],
    levels: Levels | None,
    held_out: HeldOut,
    settings: Settings,
    run: Callable[..., Iterable[Networks]],
) -> Fitted:
    """The networks of the folds go on with all rows; what comes of them are the members."""
    fitted = Fitted([], [], [], [], levels, held_out)
    for one, weight, count in zip(swept, weights, counts, strict=True):
        if not count:
            continue
        recipe, rows = one.candidate.recipe, seen[one.candidate.recipe.view].rows
        networks = further_networks(one.candidate, seen[recipe.view], count, settings, run)
        model, factors = begin(recipe, networks, rows, settings)
        row_weights = np.tile(np.asarray(to_numpy(rows.weights), dtype=np.float64), (count, 1))
        [results] = sweep_together(
            model, rows, row_weights, factors, lengths=[one.n_sweeps], n_threads=1, repeats=REPEATS
        )
        ratio = one.ratio
        if starts_from_networks(settings):
            ratio = ratio_of_group(one, networks, rows)
        add_group(fitted, results, ratio, recipe.view, float(weight))
    return fitted


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


def further_networks(
    candidate: Candidate,
    seen: SeenRows,
    count: int,
    settings: Settings,
    run: Callable[..., Iterable[Networks]],
) -> list[Networks]:
    """Networks of a recipe that have seen all rows: those of the folds first, then new ones."""
    recipe, known = candidate.recipe, list(candidate.networks[:count])
    rows, own = seen.rows, seen.groups if recipe.adaptive else None
    hidden = settings.hidden_layer_sizes
    new = [new_networks(recipe, number, rows, hidden) for number in range(len(known), count)]
    groups = [(known, FURTHER_STEPS), (new, recipe.start_iterations)]
    arguments = [
        (rows, starts, [None] * len(starts), [recipe.init_penalty] * len(starts), steps, own)
        for starts, steps in groups
        if starts
    ]
    found: list[Networks] = []
    for networks in run(train, arguments):
        size = recipe.parts
        found += [
            Networks(layers=tuple(layer[first : first + size] for layer in networks.layers))
            for first in range(0, len(networks.layers[0]), size)
        ]
    return found


def _fit_few(seen: Sequence[SeenRows], recipes: Sequence[Recipe], settings: Settings) -> Fitted:
    """Members fitted to rows too few to hold any out: the plainest view, the largest penalty."""
    effort = EFFORTS[settings.effort]
    plain = [recipe for recipe in recipes if recipe.view == 0]
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


def _gate_columns(forecasts: Forecasts, inputs: Floats) -> np.ndarray:
    """The columns that the size of errors follows most, few where there are few rows."""
    n_columns = inputs.shape[1]
    most = min(MOST_GATE_COLUMNS, int(forecasts.row_weights.sum() / ROWS_PER_GATE))
    if n_columns <= most:
        return np.arange(n_columns)
    with np.errstate(all="ignore"):
        sizes = np.log(np.mean(forecasts.errors**2 / forecasts.variances, axis=(0, 2)))
    known = np.isfinite(sizes)
    sizes = np.where(known, sizes - sizes[known].mean() if known.any() else 0.0, 0.0)
    followed = np.abs((forecasts.row_weights * sizes) @ np.clip(inputs, -3.0, 3.0))
    return np.sort(np.argsort(-followed, kind="stable")[:most])


def _distribution_values(
    forecasts: Forecasts, weights: Floats, scale: Floats, log_levels: Floats
) -> Floats:
    """F(y) (n, D) of held-out rows: Σ_r w_r Σ_k π_k Φ(e / sqrt(s_k v))."""
    total = np.zeros(forecasts.errors.shape[1:])
    with np.errstate(all="ignore"):
        z = forecasts.errors / np.sqrt(forecasts.variances)
    for own, shares in zip(scale, np.exp(log_levels), strict=True):
        total += np.einsum("r,rnd->nd", weights, ndtr(np.nan_to_num(z / np.sqrt(own)))) * shares
    return np.clip(total, 0.0, 1.0)
