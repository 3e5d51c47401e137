"""Networks of recipes, one for each fold of the rows that it has not seen, trained side by side.

A recipe is judged by the log density that its networks give to held-out rows, in the user's unit
and with the noise that they ask for. A warp of the targets can raise that by the shape of the noise
alone, and have worse means: its recipes must convince by their means as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import like, map_arrays, slices, to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.distributions.yeo_johnson import Warp, from_warped, moments
from bowtienet._old.ensemble.settings import Recipe, Settings, hidden_of
from bowtienet._old.ensemble.stacking import heavy_log_densities, normal_log_densities, variance_ratio
from bowtienet._old.inference.start import Networks, fit_networks, network_outputs, random_networks
from bowtienet._old.model.outcomes import Gaussian, Outcome, StudentT
from bowtienet._old.model.outcomes.counts import log_rates
from bowtienet._old.prediction.calibration import calibrate, is_discrete
from bowtienet._old.representation.principal import held_out_components
from bowtienet._old.representation.representation import View, log_slopes, network_rows

Floats = NDArray[np.float64]
FOLDS = 5
SMALL_FOLDS, SMALL_ROWS = 10, 150
"""Of fewer rows there are more folds, so that networks see nearly all of them."""
FEWEST_ROWS = 10
"""Below this nothing is held out."""
ADAPTING_STEPS = 40
"""Steps after which adaptive penalties are renewed."""
STRONGEST = 1e3
"""Largest factor of an adaptive penalty."""
Run = Callable[[Callable[..., Networks], Sequence[tuple[object, ...]]], Iterable[Networks]]
"""Applies a function to each tuple of arguments, perhaps on several cores; answers in order."""
FURTHER_STEPS, FURTHER_PART = 80, 0.4
"""Steps of L-BFGS by which the networks of a fold take in the rows that they had not seen: so many,
or this part of their training if that is more."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A recipe at a length, its networks, and what they say of held-out rows."""

    recipe: Recipe
    networks: tuple[Networks, ...] = ()
    """For each fold its small networks, fitted without it."""
    log_densities: Floats | None = None
    """(n,), of the rows of these folds."""
    about_means: float | None = None
    """Their mean under normal noise about the means in the user's unit; None without a warp, where
    it is the same."""


@dataclass(frozen=True, kw_only=True)
class SeenRows:
    """Rows as the networks of one view see them."""

    rows: Rows
    log_slopes: Floats
    """log |dz/du| (n,) of the networks' targets in standardised ones."""
    groups: NDArray[np.intp]
    """The column that each input of the networks belongs to."""
    warp: Warp | None = None
    """Of the targets."""


def held_out_folds(n_rows: int) -> list[slice]:
    """Parts of the rows to hold out in turn; none of very few rows."""
    if n_rows < FEWEST_ROWS:
        return []
    count = SMALL_FOLDS if n_rows < SMALL_ROWS else FOLDS
    return slices(n_rows, -(-n_rows // count))


def see(rows: Rows, views: Sequence[View], folds: Sequence[slice] = ()) -> list[SeenRows]:
    """Standardised rows through each of the views, in the array library that holds them.

    With folds, principal components are those that each row would have if it were new.
    """
    return [
        SeenRows(
            rows=_seen(rows, view, folds),
            log_slopes=log_slopes(view, rows),
            groups=input_groups(view, rows.inputs.shape[1]),
            warp=view.warp,
        )
        for view in views
    ]


def input_groups(view: View, n_columns: int) -> NDArray[np.intp]:
    """The standardised column, or the component, that each input of a network belongs to."""
    if view.principal is not None:
        return np.arange(view.principal.loadings.shape[1])
    return np.arange(n_columns) if view.pieces is None else view.pieces.column


def advance(
    candidates: Sequence[Candidate],
    seen: Sequence[SeenRows],
    folds: Sequence[slice],
    length: int,
    settings: Settings,
    run: Run,
) -> list[Candidate]:
    """The candidates with networks of these folds, all taken to a length.

    Networks of one view and size that go equally far are trained side by side.
    """
    outcome = settings.outcome
    tasks: dict[tuple[int, int, bool, bool, int], list[tuple[int, int]]] = {}
    for place, candidate in enumerate(candidates):
        recipe = candidate.recipe
        for fold in range(len(folds)):
            known = fold < len(candidate.networks)
            steps = length - recipe.start_iterations if known else length
            key = (recipe.view, recipe.parts, recipe.adaptive, recipe.linear, steps)
            tasks.setdefault(key, []).append((place, fold))
    trained: dict[tuple[int, int], Networks] = {}
    arguments = []
    for (view, _, adaptive, _, steps), pairs in tasks.items():
        rows = seen[view].rows
        starts = [_start(candidates[place], fold, rows, folds, settings) for place, fold in pairs]
        held_out = [folds[fold] for _, fold in pairs]
        penalties = [candidates[place].recipe.init_penalty for place, _ in pairs]
        groups = seen[view].groups if adaptive else None
        arguments.append((rows, starts, held_out, penalties, steps, groups, outcome))
    for pairs, networks in zip(tasks.values(), run(train, arguments), strict=True):
        size = len(networks.layers[0]) // len(pairs)
        for index, pair in enumerate(pairs):
            trained[pair] = part(networks, slice(index * size, (index + 1) * size))
    found = []
    for place, candidate in enumerate(candidates):
        own_networks = tuple(trained[place, fold] for fold in range(len(folds)))
        recipe = replace(candidate.recipe, start_iterations=length)
        found.append(_judged(recipe, own_networks, seen[recipe.view], folds, outcome))
    return found


def mean_inputs(candidates: Sequence[Candidate], seen: Sequence[SeenRows]) -> float:
    """Inputs of the candidates' networks, on average."""
    return float(np.mean([seen[one.recipe.view].rows.inputs.shape[1] for one in candidates]))


def score(candidate: Candidate) -> float:
    """What recipes are compared by: the log density of held-out rows, of a warp also of its means.

    That is ½ (E[log p(y)] + E[log N(y | E[y], s²)]) with one s² for all rows, in the user's unit;
    without a warp both are the same.
    """
    own = density(candidate)
    return own if candidate.about_means is None else 0.5 * (own + candidate.about_means)


def density(candidate: Candidate) -> float:
    """Mean log density of held-out rows."""
    assert candidate.log_densities is not None
    return float(np.mean(candidate.log_densities))


def new_networks(recipe: Recipe, number: int, rows: Rows, settings: Settings) -> Networks:
    """Small networks to start from, of a recipe's seed and a number."""
    host, parts = on_host(rows), recipe.parts
    return random_networks(
        [width // parts for width in hidden_of(recipe, settings)],
        host.inputs,
        host.targets,
        np.tile(host.weights, (parts, 1)),
        np.random.default_rng((recipe.seed, number)),
        outcome=settings.outcome,
    )


def stack(several: Sequence[Networks]) -> Networks:
    """All networks, one after the other."""
    layers = zip(*(networks.layers for networks in several), strict=True)
    return Networks(layers=tuple(map(np.concatenate, layers)))


def part(networks: Networks, some: slice) -> Networks:
    """Some of the networks."""
    return Networks(layers=tuple(layer[some] for layer in networks.layers))


def on_host(rows: Rows) -> Rows:
    """Rows as NumPy arrays in double precision."""
    return map_arrays(lambda x: to_numpy(x).astype(np.float64, copy=False), rows)


def without(weights: Floats, fold: slice | None) -> Floats:
    """Weights of the rows that are fitted: those of a fold are held out."""
    if fold is None:
        return weights
    found = weights.copy()
    found[fold] = 0.0
    return found


def train(
    rows: Rows,
    starts: Sequence[Networks],
    held_out: Sequence[slice | None],
    penalties: Sequence[float],
    steps: int,
    groups: NDArray[np.intp] | None,
    outcome: Outcome = Gaussian(),  # noqa: B008 (it cannot change)
) -> Networks:
    """Networks of one size after some steps, each fitted without its fold.

    With the groups of inputs, penalties adapt to the weights of each.
    """
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)
    sizes = [len(networks.layers[0]) for networks in starts]
    row_weights = np.stack([without(weights, fold) for fold in held_out])
    row_weights = np.repeat(row_weights, sizes, axis=0)
    strengths = np.repeat(np.asarray(penalties, dtype=np.float64), sizes)
    found, own = stack(starts), None
    for length in [steps] if groups is None else _chunks(steps):
        if groups is not None:
            own = adapted_penalties(found, sizes[0], groups)
        [found] = fit_networks(
            rows.inputs,
            rows.targets,
            row_weights,
            found,
            strengths,
            lengths=[length],
            input_penalties=own,
            outcome=outcome,
        )
    return found


def adapted_penalties(networks: Networks, parts: int, groups: NDArray[np.intp]) -> Floats:
    """Factors (R, D_0) of the penalties of inputs: mean |w|² over |w|² of their groups.

    The squares are those of all weights of a group of inputs, in all small networks of one: columns
    with small weights are pulled further down, as by a prior with heavy tails.
    """
    first = networks.layers[0][:, :, 1:]
    squares = (first**2).sum(axis=1).reshape(-1, parts, first.shape[2]).sum(axis=1)
    sums = np.zeros((len(squares), groups.max() + 1))
    np.add.at(sums.T, groups, squares.T)
    counts = np.bincount(groups)
    sizes = sums / counts
    typical = (sizes * counts).sum(axis=1, keepdims=True) / counts.sum()
    with np.errstate(all="ignore"):
        factors = np.nan_to_num(typical / sizes, nan=1.0, posinf=STRONGEST)
    factors = np.clip(factors, 1.0 / STRONGEST, STRONGEST)
    return np.repeat(factors[:, groups], parts, axis=0)


def further_steps(length: int) -> int:
    """Steps by which networks that were trained to a length take in the rows of their fold."""
    return max(FURTHER_STEPS, int(FURTHER_PART * length))


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
    new = [new_networks(recipe, number, rows, settings) for number in range(len(known), count)]
    outcome = settings.outcome
    length = recipe.start_iterations
    groups = [(known, further_steps(length)), (new, length)]
    arguments = [
        (
            rows,
            starts,
            [None] * len(starts),
            [recipe.init_penalty] * len(starts),
            steps,
            own,
            outcome,
        )
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


def _seen(rows: Rows, view: View, folds: Sequence[slice]) -> Rows:
    seen = network_rows(view, rows)
    n_rows, n_columns = rows.inputs.shape
    if view.principal is None or not folds or n_columns <= n_rows // 2:
        return seen
    host = on_host(rows)
    components = held_out_components(view.principal, host.inputs, folds)
    return replace(seen, inputs=like(seen.inputs, components))


def _start(
    candidate: Candidate,
    fold: int,
    rows: Rows,
    folds: Sequence[slice],
    settings: Settings,
) -> Networks:
    """Where the networks of a fold go on, or begin."""
    if fold < len(candidate.networks):
        return candidate.networks[fold]
    host = on_host(rows)
    fitted = replace(host, weights=without(host.weights, folds[fold]))
    return new_networks(candidate.recipe, fold, fitted, settings)


def _chunks(steps: int) -> list[int]:
    """Steps between which penalties adapt."""
    count = max(1, round(steps / ADAPTING_STEPS))
    return [len(part) for part in np.array_split(np.arange(steps), count)]


def _judged(
    recipe: Recipe,
    networks: tuple[Networks, ...],
    seen: SeenRows,
    folds: Sequence[slice],
    outcome: Outcome,
) -> Candidate:
    """A recipe with what each fold's networks say of its rows.

    Noise is the same for all rows, and outputs of classes and counts are calibrated.
    """
    rows = seen.rows
    outputs = np.concatenate(
        [
            network_outputs(own, rows.inputs[fold, ...]).mean(axis=0)
            for own, fold in zip(networks, folds, strict=True)
        ]
    )
    stop = folds[len(networks) - 1].stop
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)[:stop]
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)[:stop]
    about_means = None
    if is_discrete(outcome):
        outputs = log_rates(outcome, outputs)
        _, _, logs = calibrate(outcome, targets, outputs, np.zeros_like(outputs), weights)
    else:
        heavy = isinstance(outcome, StudentT)
        logs, noise = _constant_noise(targets - outputs, weights, heavy=heavy)
        if seen.warp is not None:
            means, _ = moments(seen.warp, outputs, np.broadcast_to(noise, outputs.shape))
            errors = from_warped(seen.warp, targets) - means
            about_means = float(np.average(_constant_noise(errors, weights)[0], weights=weights))
    logs = (logs + seen.log_slopes[:stop]) * weights * (len(weights) / weights.sum())
    return Candidate(recipe=recipe, networks=networks, log_densities=logs, about_means=about_means)


def _constant_noise(
    errors: Floats, weights: Floats, *, heavy: bool = False
) -> tuple[Floats, Floats]:
    """Log densities (n,) of errors (n, D) with the same noise for all rows, and its variance."""
    unit = np.ones_like(errors)
    noise = variance_ratio(errors, unit, weights, prior_rows=0.0, heavy=heavy)
    logs = (heavy_log_densities if heavy else normal_log_densities)(errors, noise * unit)
    return logs, noise
