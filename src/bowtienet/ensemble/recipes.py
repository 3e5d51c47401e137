"""Recipes by the densities that ordinary networks give to held-out rows.

What a network should see of the rows (columns as they are, in bins or as principal components;
targets as they are or warped), how strong its penalty and how long its training should be differs
from table to table. Many ordinary networks, trained side by side in little time, tell: a recipe has
a network for each fold of the rows, fitted without it, and is judged by the log density of the
targets there, in the user's unit and with the noise that they ask for. Views are screened first,
then penalties and numbers of small networks, on a few folds and steps; the best go on in all folds
for as long as held-out rows gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import like, map_arrays, slices, to_numpy
from bowtienet.data.rows import Rows
from bowtienet.distributions.yeo_johnson import Warp, fit_warp
from bowtienet.ensemble.settings import EFFORTS, Effort, Recipe, Settings, gate_temperature
from bowtienet.ensemble.stacking import normal_log_densities, variance_ratio
from bowtienet.inference.start import Networks, fit_networks, network_outputs, random_networks
from bowtienet.representation.pieces import MOST_COMPONENTS, N_BINS, fit_pieces
from bowtienet.representation.principal import fit_principal, held_out_components
from bowtienet.representation.representation import View, log_slopes, network_rows

Floats = NDArray[np.float64]

FOLDS = 5
SMALL_FOLDS, SMALL_ROWS = 10, 150
"""Of fewer rows there are more folds, so that networks see nearly all of them."""
FEWEST_ROWS = 10
"""Below this nothing is held out."""
SCREENED_ROWS = 300
"""Folds are held out in turn until this many rows have been, to screen recipes."""
FEWEST_UNITS = 3
"""Units that a small network has in each layer, at least."""
SCREEN_STEPS = (40, 80)
"""Steps of L-BFGS after which views, and then recipes, are compared."""
MIDDLE_PENALTY = 0.3
CLOSE = 0.03
"""Log density per row by which a view may be behind and still be tried."""
MOST_VIEWS = 2
WORTHWHILE = 0.01
"""Gain in log density per row for which the next length is worth its time."""
ADAPTING_STEPS = 40
"""Steps after which adaptive penalties are renewed."""
STRONGEST = 1e3
"""Largest factor of an adaptive penalty."""
LEAST_BEND = 0.05
"""Distance of all exponents from 1 below which a warp is none."""
MANY_COLUMNS = 128
"""Of more columns networks see principal components."""
WIDE = 0.4
"""Inputs for each row above which penalties are ten times as strong."""
MANY_ROWS, FEW_COMPONENTS = 5_000, 64
"""Of more rows each component costs more: they have fewer of them."""

Run = Callable[[Callable[..., Networks], Sequence[tuple[object, ...]]], Iterable[Networks]]
"""Applies a function to each tuple of arguments, perhaps on several cores; answers in order."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A recipe at a length, its networks, and what they say of held-out rows."""

    recipe: Recipe
    networks: tuple[Networks, ...] = ()
    """For each fold its small networks, fitted without it."""
    log_densities: Floats | None = None
    """(n,), of the rows of these folds."""


@dataclass(frozen=True, kw_only=True)
class SeenRows:
    """Rows as the networks of one view see them."""

    rows: Rows
    log_slopes: Floats
    """log |dz/du| (n,) of the networks' targets in standardised ones."""
    groups: NDArray[np.intp]
    """The column that each input of the networks belongs to."""


def possible_views(rows: Rows, settings: Settings) -> tuple[View, ...]:
    """The views of standardised rows that the settings allow."""
    host = on_host(rows)
    n_rows, n_columns = host.inputs.shape
    most = MOST_COMPONENTS if n_rows <= MANY_ROWS else FEW_COMPONENTS
    features = settings.features
    columns: list[View] = []
    if features == "principal" or (features == "auto" and n_columns > MANY_COLUMNS):
        columns = [View(principal=fit_principal(host.inputs, host.weights, MOST_COMPONENTS))]
    elif features == "standard":
        columns = [View()]
    else:
        n_bins = N_BINS if isinstance(features, str) else features
        found = fit_pieces(host.inputs, host.weights, n_bins, most)
        pieces = View(pieces=found)
        columns = [View(), pieces] if features == "auto" and found is not None else [pieces]
    warps: list[Warp | None] = [None]
    if settings.target_transform != "none":
        warp = fit_warp(host.targets, host.weights)
        if settings.target_transform == "yeo-johnson":
            warps = [warp]
        elif np.max(np.abs(warp.exponent - 1.0)) > LEAST_BEND:
            warps = [None, warp]
    return tuple(replace(view, warp=warp) for view in columns for warp in warps)


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
        )
        for view in views
    ]


def _seen(rows: Rows, view: View, folds: Sequence[slice]) -> Rows:
    seen = network_rows(view, rows)
    n_rows, n_columns = rows.inputs.shape
    if view.principal is None or not folds or n_columns <= n_rows // 2:
        return seen
    host = on_host(rows)
    components = held_out_components(view.principal, host.inputs, folds)
    return replace(seen, inputs=like(seen.inputs, components))


def input_groups(view: View, n_columns: int) -> NDArray[np.intp]:
    """The standardised column, or the component, that each input of a network belongs to."""
    if view.principal is not None:
        return np.arange(view.principal.loadings.shape[1])
    return np.arange(n_columns) if view.pieces is None else view.pieces.column


def possible_recipes(
    seen: Sequence[SeenRows], settings: Settings, rng: np.random.Generator
) -> list[Recipe]:
    """All recipes to compare, each with a seed."""
    effort = EFFORTS[settings.effort]
    parts = possible_parts(settings.hidden_layer_sizes, effort.parts)
    adapts = effort.adapts and bool(settings.hidden_layer_sizes)
    if not starts_from_networks(settings) or settings.weighting != "stacking":
        # These only tell what to see; or one network goes on to convergence, and its prior shrinks
        # what is not needed.
        parts, adapts = [1], False
    return [
        Recipe(
            gate_temperature=gate_temperature(settings),
            init_penalty=penalty,
            start_iterations=0,
            parts=count,
            adaptive=adaptive,
            view=view,
            seed=int(rng.integers(2**32)),
        )
        for view, own in enumerate(seen)
        for count in parts
        for adaptive in ((False, True) if adapts else (False,))
        for penalty in _penalties(own.rows, settings)
    ]


def _penalties(rows: Rows, settings: Settings) -> tuple[float, ...]:
    """Penalties to compare: stronger ones where there are many inputs for each row."""
    if settings.init_penalty != "auto":
        return (float(settings.init_penalty),)
    n_rows, n_inputs = rows.inputs.shape
    factor = 10.0 if n_inputs > WIDE * n_rows else 1.0
    return tuple(factor * penalty for penalty in EFFORTS[settings.effort].penalties)


def choose_recipes(
    seen: Sequence[SeenRows],
    folds: Sequence[slice],
    recipes: Sequence[Recipe],
    settings: Settings,
    run: Run,
    say: Callable[[int, int, float], None],
    *,
    longest: int | None = None,
) -> list[Candidate]:
    """The recipes that predict held-out rows best, the best first, with networks of all folds.

    Parameters
    ----------
    seen : sequence of SeenRows
        The rows, in random order, through each view.
    folds : sequence of slice
        Parts of the rows, each held out once.
    recipes : sequence of Recipe
        What to compare.
    settings : Settings
        With the widths of the networks and the effort.
    run : callable
        Trains groups of networks, perhaps on several cores.
    say : callable
        Is told before each round how many networks take how many steps, and of how many inputs
        they are on average.
    longest : int, optional
        Most steps.
    """
    effort = EFFORTS[settings.effort]

    def reach(some: Sequence[Candidate], own: Sequence[slice], length: int) -> list[Candidate]:
        say(len(some) * len(own), length, mean_inputs(some, seen))
        return advance(some, seen, own, length, settings.hidden_layer_sizes, run)

    alive = [Candidate(recipe=recipe) for recipe in recipes]
    few = _few_folds(folds)
    if effort.screens and len(seen) > 1:
        alive = _screened_views(alive, lambda some: reach(some, few, SCREEN_STEPS[0]))
    if effort.screens and len(alive) > effort.kept[0]:
        most = max(one.recipe.parts for one in alive)
        tried = [one for one in alive if one.recipe.parts == most]
        alive = _with_twins(_best(reach(tried, few, SCREEN_STEPS[1]), len(tried)), alive)
        alive = alive[: effort.kept[0]]
    found: list[Candidate] = []
    highest = -np.inf
    for length, n_kept in zip(effort.lengths, (*effort.kept[1:], 0), strict=True):
        if longest is not None and length > longest:
            break
        reached = _best(reach(alive, folds, length), len(alive))
        found += reached
        if score(reached[0]) < highest + WORTHWHILE:
            break
        highest, alive = score(reached[0]), _diverse(reached, n_kept)
    return _distinct(_best(found, len(found)), effort)


def advance(
    candidates: Sequence[Candidate],
    seen: Sequence[SeenRows],
    folds: Sequence[slice],
    length: int,
    hidden: Sequence[int],
    run: Run,
) -> list[Candidate]:
    """The candidates with networks of these folds, all taken to a length.

    Networks of one view and size that go equally far are trained side by side.
    """
    tasks: dict[tuple[int, int, bool, int], list[tuple[int, int]]] = {}
    for place, candidate in enumerate(candidates):
        recipe = candidate.recipe
        for fold in range(len(folds)):
            known = fold < len(candidate.networks)
            steps = length - recipe.start_iterations if known else length
            key = (recipe.view, recipe.parts, recipe.adaptive, steps)
            tasks.setdefault(key, []).append((place, fold))
    trained: dict[tuple[int, int], Networks] = {}
    arguments = []
    for (view, _, adaptive, steps), pairs in tasks.items():
        rows = seen[view].rows
        starts = [_start(candidates[place], fold, rows, folds, hidden) for place, fold in pairs]
        held_out = [folds[fold] for _, fold in pairs]
        penalties = [candidates[place].recipe.init_penalty for place, _ in pairs]
        groups = seen[view].groups if adaptive else None
        arguments.append((rows, starts, held_out, penalties, steps, groups))
    for pairs, networks in zip(tasks.values(), run(train, arguments), strict=True):
        size = len(networks.layers[0]) // len(pairs)
        for index, pair in enumerate(pairs):
            trained[pair] = part(networks, slice(index * size, (index + 1) * size))
    found = []
    for place, candidate in enumerate(candidates):
        own_networks = tuple(trained[place, fold] for fold in range(len(folds)))
        recipe = replace(candidate.recipe, start_iterations=length)
        own = seen[recipe.view]
        logs = _log_densities(own_networks, own, folds)
        found.append(Candidate(recipe=recipe, networks=own_networks, log_densities=logs))
    return found


def mean_inputs(candidates: Sequence[Candidate], seen: Sequence[SeenRows]) -> float:
    """Inputs of the candidates' networks, on average."""
    return float(np.mean([seen[one.recipe.view].rows.inputs.shape[1] for one in candidates]))


def score(candidate: Candidate) -> float:
    """Mean log density of held-out rows."""
    assert candidate.log_densities is not None
    return float(np.mean(candidate.log_densities))


def starts_from_networks(settings: Settings) -> bool:
    """Whether ordinary networks say where fits begin, and not only what they see."""
    return settings.init == "relu_network" and bool(settings.hidden_layer_sizes)


def possible_parts(hidden: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Numbers of small networks to compare: those that share out all units of all layers."""
    found = {
        max(
            parts
            for parts in range(1, most + 1)
            if all(
                width % parts == 0 and (parts == 1 or width >= FEWEST_UNITS * parts)
                for width in hidden
            )
        )
        for most in wanted
    }
    return sorted(found) if hidden else [1]


def new_networks(recipe: Recipe, number: int, rows: Rows, hidden: Sequence[int]) -> Networks:
    """Small networks to start from, of a recipe's seed and a number."""
    host, parts = on_host(rows), recipe.parts
    return random_networks(
        [width // parts for width in hidden],
        host.inputs,
        host.targets,
        np.tile(host.weights, (parts, 1)),
        np.random.default_rng((recipe.seed, number)),
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


def _few_folds(folds: Sequence[slice]) -> list[slice]:
    """The first folds, two at least, with rows enough to screen by."""
    size = folds[0].stop - folds[0].start
    return list(folds[: max(2, -(-SCREENED_ROWS // size))])


def _screened_views(
    alive: Sequence[Candidate], reach: Callable[[Sequence[Candidate]], list[Candidate]]
) -> list[Candidate]:
    """The recipes of the views whose recipe of middle penalty predicts best."""

    def middle(view: int) -> Candidate:
        own = [one for one in alive if one.recipe.view == view]
        distance = [
            (-one.recipe.parts, abs(np.log((one.recipe.init_penalty + 1e-3) / MIDDLE_PENALTY)))
            for one in own
        ]
        return own[min(range(len(own)), key=distance.__getitem__)]

    views = sorted({one.recipe.view for one in alive})
    tried = _best(reach([middle(view) for view in views]), len(views))
    close = [one for one in tried if score(one) > score(tried[0]) - CLOSE][:MOST_VIEWS]
    chosen = {one.recipe.view for one in close}
    return [one for one in alive if one.recipe.view in chosen]


def _best(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    scores = [-score(candidate) for candidate in candidates]
    return [candidates[place] for place in np.argsort(scores, kind="stable")[:count]]


def _with_twins(ordered: Sequence[Candidate], known: Sequence[Candidate]) -> list[Candidate]:
    """Screened candidates, after the best of which stand its twins with other numbers of parts.

    Several small networks learn faster than a large one, so a screen would always take them.
    """
    best = ordered[0].recipe
    twins = [
        one
        for one in known
        if one.recipe.parts != best.parts
        and (one.recipe.view, one.recipe.adaptive, one.recipe.init_penalty)
        == (best.view, best.adaptive, best.init_penalty)
    ]
    return [ordered[0], *twins, *ordered[1:]]


def _diverse(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """The best candidates, those with each number of parts first.

    Some tables want large networks in the end, which learn more slowly.
    """
    ordered = _best(candidates, len(candidates))
    firsts: dict[int, Candidate] = {}
    for one in ordered:
        firsts.setdefault(one.recipe.parts, one)
    kept = {id(one) for one in firsts.values()}
    rest = [one for one in ordered if id(one) not in kept]
    return [*firsts.values(), *rest][:count]


def _distinct(candidates: Sequence[Candidate], effort: Effort) -> list[Candidate]:
    """The first candidates of different view, parting and penalty."""
    chosen: dict[Recipe, Candidate] = {}
    for one in candidates:
        chosen.setdefault(replace(one.recipe, start_iterations=0, seed=0), one)
    return list(chosen.values())[: effort.n_recipes]


def _start(
    candidate: Candidate,
    fold: int,
    rows: Rows,
    folds: Sequence[slice],
    hidden: Sequence[int],
) -> Networks:
    """Where the networks of a fold go on, or begin."""
    if fold < len(candidate.networks):
        return candidate.networks[fold]
    host = on_host(rows)
    fitted = replace(host, weights=without(host.weights, folds[fold]))
    return new_networks(candidate.recipe, fold, fitted, hidden)


def train(
    rows: Rows,
    starts: Sequence[Networks],
    held_out: Sequence[slice | None],
    penalties: Sequence[float],
    steps: int,
    groups: NDArray[np.intp] | None,
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


def _chunks(steps: int) -> list[int]:
    """Steps between which penalties adapt."""
    count = max(1, round(steps / ADAPTING_STEPS))
    return [len(part) for part in np.array_split(np.arange(steps), count)]


def _log_densities(networks: Sequence[Networks], seen: SeenRows, folds: Sequence[slice]) -> Floats:
    """Log densities (n,) of held-out rows under each fold's networks, with one noise for all."""
    rows = seen.rows
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    errors = np.concatenate(
        [
            targets[fold] - network_outputs(own, rows.inputs[fold, ...]).mean(axis=0)
            for own, fold in zip(networks, folds, strict=True)
        ]
    )
    stop = folds[len(networks) - 1].stop
    weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)[:stop]
    unit = np.ones_like(errors)
    noise = variance_ratio(errors, unit, weights, prior_rows=0.0)
    logs = normal_log_densities(errors, noise * unit) + seen.log_slopes[:stop]
    return np.asarray(logs * weights * (len(weights) / weights.sum()))
