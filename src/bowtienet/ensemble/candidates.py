"""Recipes by the densities that ordinary networks give to held-out rows.

What a network should see of the rows (columns as they are or in bins, targets as they are or
warped), how strong its penalty and how long its start should be differs from table to table. Many
ordinary networks, trained side by side in little time, tell: each candidate is fitted without a
fold of the rows, and compared by the log density of the targets there, in the user's unit and with
the noise that they ask for. Candidates that are behind after the first steps stop; of the others
stacking takes the few that predict best together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import map_arrays, slices, to_numpy
from bowtienet.data.rows import Rows, take_rows
from bowtienet.distributions.yeo_johnson import Warp, fit_warp
from bowtienet.ensemble.settings import Recipe, Settings, gate_temperature
from bowtienet.ensemble.stacking import normal_log_densities, stacking_weights, variance_ratio
from bowtienet.inference.execution import one_blas_thread
from bowtienet.inference.start import (
    Networks,
    fit_networks,
    network_outputs,
    random_networks,
)
from bowtienet.posterior.initialize import START_ROWS, join_networks
from bowtienet.representation.pieces import N_BINS, Pieces, fit_pieces
from bowtienet.representation.representation import PLAIN, View, log_slopes, network_rows

Floats = NDArray[np.float64]
Network = tuple[Floats, ...]
"""Weights (D, K+1) of every layer, bias first."""

FOLDS = 5
FEWEST_ROWS = 10
"""Below this nothing is held out."""
HELD_OUT_ROWS = 500
"""Folds are held out in turn until this many rows have been."""
COMPARED_ROWS = 4_000
"""Most rows that candidates are compared on."""
PENALTIES = (0.05, 0.5, 5.0)
PARTS = (1, 5)
"""Small networks that share out the units of one: the mean of several errs less on noisy rows."""
FEWEST_UNITS = 3
"""Units that a small network has in each layer, at least."""
LENGTHS = (100, 300, 1000)
"""Steps of L-BFGS after which candidates are compared;"""
KEPT = (6, 3)
"""the best of them go on to the next length."""
MOST_RECIPES = 3
LEAST_WEIGHT = 0.1
"""Stacking weight of a recipe that is worth its time."""
LEAST_BEND = 0.05
"""Distance of all exponents from 1 below which a warp is none."""


def possible_views(rows: Rows, settings: Settings) -> tuple[View, ...]:
    """The views of standardised rows that the settings allow."""
    host = _see(rows, PLAIN)
    pieces: list[Pieces | None] = [None]
    if settings.features != "standard":
        n_bins = N_BINS if isinstance(settings.features, str) else settings.features
        found = fit_pieces(host.inputs, host.weights, n_bins)
        pieces = [None, found] if settings.features == "auto" and found is not None else [found]
    warps: list[Warp | None] = [None]
    if settings.target_transform != "none":
        warp = fit_warp(host.targets, host.weights)
        if settings.target_transform == "yeo-johnson":
            warps = [warp]
        elif np.max(np.abs(warp.exponent - 1.0)) > LEAST_BEND:
            warps = [None, warp]
    return tuple(View(pieces=p, warp=w) for p in pieces for w in warps)


def held_out_folds(n_rows: int, enough: int) -> list[slice]:
    """Fifths of the rows to hold out in turn, until `enough` rows have been."""
    if n_rows < FEWEST_ROWS:
        return []
    folds = slices(n_rows, -(-n_rows // FOLDS))
    return folds[: max(1, -(-enough // (folds[0].stop - folds[0].start)))]


def choose_recipes(
    rows: Rows, views: Sequence[View], settings: Settings, rng: np.random.Generator
) -> list[Recipe]:
    """The recipes that predict held-out rows best, the best first.

    Parameters
    ----------
    rows : Rows
        Standardised, in random order.
    views : sequence of View
        What networks may see of them.
    settings : Settings
        With the width of the networks, and the penalty if it is fixed.
    rng : numpy.random.Generator
        Source of the seeds.
    """
    automatic = settings.init_penalty == "auto"
    penalties = PENALTIES if automatic else (float(settings.init_penalty),)
    recipes = [
        Recipe(
            gate_temperature=gate_temperature(settings),
            init_penalty=penalty,
            start_iterations=LENGTHS[0],
            parts=parts,
            view=view,
            seed=int(rng.integers(2**32)),
        )
        for view in range(len(views))
        for parts in possible_parts(settings.hidden_layer_sizes)
        for penalty in penalties
    ]
    if not starts_from_networks(settings):
        # These only tell what to see.
        recipes = [recipe for recipe in recipes if recipe.parts == 1]
    compared = take_rows(rows, np.arange(min(rows.inputs.shape[0], COMPARED_ROWS)))
    folds = held_out_folds(compared.inputs.shape[0], HELD_OUT_ROWS)
    if folds:
        found = _compare(compared, folds, views, recipes, settings.hidden_layer_sizes)
        best = _best(found, _held_out_weights(compared, folds))
    else:
        # Nothing to compare by: the plainest view and the smoothest start.
        best = [recipe for recipe in reversed(recipes) if recipe.view == 0]
    if starts_from_networks(settings):
        return best
    # Random starts know no penalty: of those with the same view one is enough.
    views_of_best = [recipe.view for recipe in best]
    return [best[views_of_best.index(view)] for view in dict.fromkeys(views_of_best)]


def starts_from_networks(settings: Settings) -> bool:
    """Whether ordinary networks say where fits begin, and not only what they see."""
    return settings.init == "relu_network" and bool(settings.hidden_layer_sizes)


def possible_parts(hidden: Sequence[int]) -> list[int]:
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
        for most in PARTS
    }
    return sorted(found) if hidden else [1]


def start_networks(
    rows: Rows,
    view: View,
    recipes: Sequence[Recipe],
    folds: Sequence[slice | None],
    hidden: Sequence[int],
) -> list[Network]:
    """An ordinary network for each recipe, of one view, fitted to rows without its fold."""
    seen, row_weights = _see(rows, view), _without(rows, folds)
    if row_weights.shape[1] > START_ROWS:
        # Rows are in random order: the first that some network is fitted to say where to begin.
        used = np.flatnonzero(row_weights.any(axis=0))[:START_ROWS]
        seen, row_weights = take_rows(seen, used), row_weights[:, used]
    networks: dict[int, Network] = {}
    for parts, length in sorted({(one.parts, one.start_iterations) for one in recipes}):
        places = [
            place
            for place, one in enumerate(recipes)
            if (one.parts, one.start_iterations) == (parts, length)
        ]
        own = [recipes[place] for place in places]
        found = _train(seen, own, row_weights[places], hidden, length)
        networks |= zip(places, _joined(found, parts), strict=True)
    return [networks[place] for place in range(len(recipes))]


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """A recipe, its small networks of all folds, and the log densities (n,) of held-out rows."""

    recipe: Recipe
    networks: Networks
    log_densities: Floats


def _compare(
    rows: Rows,
    folds: Sequence[slice],
    views: Sequence[View],
    recipes: Sequence[Recipe],
    hidden: Sequence[int],
) -> list[_Compared]:
    """Recipes at all lengths that they reached."""
    found: list[_Compared] = []
    alive: list[tuple[Recipe, Networks | None]] = [(recipe, None) for recipe in recipes]
    row_weights = _held_out_weights(rows, folds)
    for length, n_kept in zip(LENGTHS, (*KEPT, 0), strict=True):
        reached = []
        for place, parts in sorted({(recipe.view, recipe.parts) for recipe, _ in alive}):
            own = [pair for pair in alive if (pair[0].view, pair[0].parts) == (place, parts)]
            reached += _go_on(rows, folds, views[place], own, length, hidden)
        found += reached
        scores = [one.log_densities @ row_weights for one in reached]
        best = np.argsort(scores, kind="stable")[::-1][:n_kept]
        alive = [(reached[place].recipe, reached[place].networks) for place in best]
    return found


def _go_on(
    rows: Rows,
    folds: Sequence[slice],
    view: View,
    pairs: Sequence[tuple[Recipe, Networks | None]],
    length: int,
    hidden: Sequence[int],
) -> list[_Compared]:
    """Recipes of one view and number of parts, with their networks taken to a length."""
    seen = _see(rows, view)
    recipes = [recipe for recipe, _ in pairs for _ in folds]
    known = [networks for _, networks in pairs if networks is not None]
    steps = length - (recipes[0].start_iterations if known else 0)
    row_weights = np.tile(_without(rows, folds), (len(pairs), 1))
    networks = _train(seen, recipes, row_weights, hidden, steps, _stack(known) if known else None)
    slopes = log_slopes(view, rows)[: folds[-1].stop]
    found = []
    for place, (recipe, _) in enumerate(pairs):
        size = len(folds) * recipe.parts
        own = _part(networks, slice(place * size, (place + 1) * size))
        densities = _held_out_densities(own, recipe.parts, seen, folds)
        longer = replace(recipe, start_iterations=length)
        found.append(_Compared(recipe=longer, networks=own, log_densities=densities + slopes))
    return found


def _held_out_densities(
    networks: Networks, parts: int, seen: Rows, folds: Sequence[slice]
) -> Floats:
    """Log densities (n,) of held-out rows under each fold's network, with one noise for all."""
    stop = folds[-1].stop
    outputs = network_outputs(networks, seen.inputs[:stop])
    outputs = outputs.reshape(len(folds), parts, *outputs.shape[1:]).mean(axis=1)
    errors = np.concatenate(
        [seen.targets[fold] - outputs[place, fold] for place, fold in enumerate(folds)]
    )
    unit = np.ones_like(errors)
    noise = variance_ratio(errors, unit, seen.weights[:stop], prior_rows=0.0)
    return normal_log_densities(errors, noise * unit)


def _best(compared: Sequence[_Compared], row_weights: Floats) -> list[Recipe]:
    """The recipes with the largest stacking weights, each view, penalty and parting once."""
    densities = np.stack([one.log_densities for one in compared], axis=1)
    weights = stacking_weights(densities, row_weights)
    chosen: dict[tuple[int, int, float], Recipe] = {}
    for place in np.argsort(-weights, kind="stable"):
        recipe = compared[place].recipe
        if weights[place] >= LEAST_WEIGHT or not chosen:
            chosen.setdefault((recipe.view, recipe.parts, recipe.init_penalty), recipe)
    return list(chosen.values())[:MOST_RECIPES]


def _train(
    seen: Rows,
    recipes: Sequence[Recipe],
    row_weights: Floats,
    hidden: Sequence[int],
    steps: int,
    start: Networks | None = None,
) -> Networks:
    """Small networks, one after the other for each recipe; all recipes have as many."""
    parts = recipes[0].parts
    row_weights = np.repeat(row_weights, parts, axis=0)
    penalties = np.repeat([recipe.init_penalty for recipe in recipes], parts)
    if start is None:
        widths = [width // parts for width in hidden]
        start = _stack(
            [
                random_networks(
                    widths,
                    seen.inputs,
                    seen.targets,
                    row_weights[place * parts : (place + 1) * parts],
                    np.random.default_rng(recipe.seed),
                )
                for place, recipe in enumerate(recipes)
            ]
        )
    with one_blas_thread():
        [found] = fit_networks(
            seen.inputs, seen.targets, row_weights, start, penalties, lengths=[steps]
        )
    return found


def _joined(networks: Networks, parts: int) -> list[Network]:
    """One network for every `parts` small ones."""
    each = list(zip(*networks.layers, strict=True))
    return [
        tuple(join_networks(each[first : first + parts])) for first in range(0, len(each), parts)
    ]


def _stack(several: Sequence[Networks]) -> Networks:
    layers = zip(*(networks.layers for networks in several), strict=True)
    return Networks(layers=tuple(map(np.concatenate, layers)))


def _part(networks: Networks, part: slice) -> Networks:
    return Networks(layers=tuple(layer[part] for layer in networks.layers))


def _see(rows: Rows, view: View) -> Rows:
    """What networks see of standardised rows, computed on the host in double precision.

    Starts multiply rounding: they must not depend on the library that holds the rows.
    """
    return network_rows(view, map_arrays(lambda x: to_numpy(x).astype(np.float64), rows))


def _without(rows: Rows, folds: Sequence[slice | None]) -> Floats:
    """Weights (folds, n) of the rows that are fitted: those of a fold are held out."""
    weights = np.tile(to_numpy(rows.weights).astype(np.float64), (len(folds), 1))
    for own, fold in zip(weights, folds, strict=True):
        if fold is not None:
            own[fold] = 0.0
    return weights


def _held_out_weights(rows: Rows, folds: Sequence[slice]) -> Floats:
    return to_numpy(rows.weights).astype(np.float64)[: folds[-1].stop]
