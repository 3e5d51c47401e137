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
from bowtienet.distributions.yeo_johnson import Warp, fit_warp, log_slope
from bowtienet.ensemble.settings import Recipe, Settings, gate_temperature
from bowtienet.ensemble.stacking import normal_log_densities, stacking_weights, variance_ratio
from bowtienet.inference.execution import one_blas_thread
from bowtienet.inference.side_by_side import (
    Networks,
    fit_networks,
    network_outputs,
    random_networks,
)
from bowtienet.posterior.initialize import START_ROWS
from bowtienet.representation.pieces import N_BINS, Pieces, fit_pieces
from bowtienet.representation.representation import View, network_rows

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
PENALTIES = (0.2, 1.0, 5.0)
LENGTHS = (100, 300, 1000)
"""Steps of L-BFGS after which candidates are compared;"""
KEPT = (4, 2)
"""the best of them go on to the next length."""
MOST_RECIPES = 3
LEAST_WEIGHT = 0.1
"""Stacking weight of a recipe that is worth its time."""
LEAST_BEND = 0.05
"""Distance of all exponents from 1 below which a warp is none."""


def possible_views(rows: Rows, settings: Settings) -> tuple[View, ...]:
    """The views of standardised rows that the settings allow."""
    inputs, targets, weights = _on_host(rows)
    pieces: list[Pieces | None] = [None]
    if settings.features != "standard":
        n_bins = N_BINS if isinstance(settings.features, str) else settings.features
        found = fit_pieces(inputs, weights, n_bins)
        pieces = [None, found] if settings.features == "auto" and found is not None else [found]
    warps: list[Warp | None] = [None]
    if settings.target_transform != "none":
        warp = fit_warp(targets, weights)
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


def log_slopes(view: View, rows: Rows) -> Floats:
    """log |dz/du| (n,) of the networks' targets z in standardised ones u, summed over targets.

    Densities of warped targets are compared in the user's unit, or not at all.
    """
    targets = to_numpy(rows.targets).astype(float)
    if view.warp is None:
        return np.zeros(len(targets))
    return np.asarray(log_slope(view.warp, targets).sum(axis=1))


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
            view=view,
            seed=int(rng.integers(2**32)),
        )
        for view in range(len(views))
        for penalty in penalties
    ]
    compared = take_rows(rows, np.arange(min(rows.inputs.shape[0], COMPARED_ROWS)))
    folds = held_out_folds(compared.inputs.shape[0], HELD_OUT_ROWS)
    if not folds:
        # Nothing to compare by: the plainest view and the smoothest start.
        return [recipe for recipe in reversed(recipes) if recipe.view == 0]
    if settings.init != "relu_network":
        # No network is fitted to start from, and a short one tells what to see.
        recipes = [recipe for recipe in recipes if recipe.init_penalty == penalties[0]]
    with one_blas_thread():
        return _best(_compare(compared, folds, views, recipes, settings), compared, folds)


def start_networks(
    rows: Rows,
    view: View,
    recipes: Sequence[Recipe],
    folds: Sequence[slice | None],
    hidden: Sequence[int],
) -> list[Network]:
    """An ordinary network for each recipe, of one view, fitted to rows without its fold."""
    standardized = network_rows(view, map_arrays(to_numpy, rows))
    inputs, targets, weights = _on_host(standardized)
    row_weights = np.tile(weights, (len(recipes), 1))
    for one, fold in zip(row_weights, folds, strict=True):
        if fold is not None:
            one[fold] = 0.0
    if len(weights) > START_ROWS:
        # Rows are in random order: the first that some network is fitted to say where to begin.
        used = np.flatnonzero(row_weights.any(axis=0))[:START_ROWS]
        inputs, targets, row_weights = inputs[used], targets[used], row_weights[:, used]
    lengths = sorted({recipe.start_iterations for recipe in recipes})
    penalties = np.array([recipe.init_penalty for recipe in recipes])
    with one_blas_thread():
        start = _random(recipes, inputs, targets, row_weights, hidden)
        found = fit_networks(inputs, targets, row_weights, start, penalties, lengths=lengths)
    at = dict(zip(lengths, found, strict=True))
    return [
        tuple(layer[place] for layer in at[recipe.start_iterations].layers)
        for place, recipe in enumerate(recipes)
    ]


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """A recipe, its networks of all folds, and the log densities (n,) of held-out rows."""

    recipe: Recipe
    networks: Networks
    log_densities: Floats


def _compare(
    rows: Rows,
    folds: Sequence[slice],
    views: Sequence[View],
    recipes: Sequence[Recipe],
    settings: Settings,
) -> list[_Compared]:
    """Recipes at all lengths that they reached."""
    found: list[_Compared] = []
    alive: list[tuple[Recipe, Networks | None]] = [(recipe, None) for recipe in recipes]
    for length, n_kept in zip(LENGTHS, (*KEPT, 0), strict=True):
        reached = []
        for place, view in enumerate(views):
            own = [pair for pair in alive if pair[0].view == place]
            if own:
                reached += _go_on(rows, folds, view, own, length, settings.hidden_layer_sizes)
        found += reached
        scores = [one.log_densities @ _held_out_weights(rows, folds) for one in reached]
        best = sorted(np.argsort(scores, kind="stable")[::-1][:n_kept])
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
    """Recipes of one view, with their networks taken to a length."""
    seen = network_rows(view, map_arrays(to_numpy, rows))
    inputs, targets, weights = _on_host(seen)
    apart = np.tile(weights, (len(folds), 1))
    for one, fold in zip(apart, folds, strict=True):
        one[fold] = 0.0
    row_weights = np.tile(apart, (len(pairs), 1))
    recipes = [recipe for recipe, _ in pairs for _ in folds]
    known = [networks for _, networks in pairs if networks is not None]
    if known:
        start = Networks(
            layers=tuple(map(np.concatenate, zip(*(n.layers for n in known), strict=True)))
        )
    else:
        start = _random(recipes, inputs, targets, row_weights, hidden)
    steps = length - (pairs[0][0].start_iterations if known else 0)
    penalties = np.array([recipe.init_penalty for recipe in recipes])
    [networks] = fit_networks(inputs, targets, row_weights, start, penalties, lengths=[steps])
    slopes = log_slopes(view, rows)[: folds[-1].stop]
    found = []
    for place, (recipe, _) in enumerate(pairs):
        part = slice(place * len(folds), (place + 1) * len(folds))
        own = Networks(layers=tuple(layer[part] for layer in networks.layers))
        densities = _held_out_densities(own, inputs, targets, weights, folds)
        found.append(
            _Compared(
                recipe=replace(recipe, start_iterations=length),
                networks=own,
                log_densities=densities + slopes,
            )
        )
    return found


def _held_out_densities(
    networks: Networks,
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    folds: Sequence[slice],
) -> Floats:
    """Log densities (n,) of held-out rows under each fold's network, with one noise for all."""
    stop = folds[-1].stop
    outputs = network_outputs(networks, inputs[:stop])
    errors = np.concatenate(
        [targets[fold] - outputs[place, fold] for place, fold in enumerate(folds)]
    )
    unit = np.ones_like(errors)
    noise = variance_ratio(errors, unit, weights[:stop], prior_rows=0.0)
    return normal_log_densities(errors, noise * unit)


def _held_out_weights(rows: Rows, folds: Sequence[slice]) -> Floats:
    return to_numpy(rows.weights).astype(float)[: folds[-1].stop]


def _best(compared: Sequence[_Compared], rows: Rows, folds: Sequence[slice]) -> list[Recipe]:
    """The recipes with the largest stacking weights, each view and penalty once."""
    densities = np.stack([one.log_densities for one in compared], axis=1)
    weights = stacking_weights(densities, _held_out_weights(rows, folds))
    chosen: dict[tuple[int, float], Recipe] = {}
    for place in np.argsort(-weights, kind="stable"):
        recipe = compared[place].recipe
        if weights[place] >= LEAST_WEIGHT or not chosen:
            chosen.setdefault((recipe.view, recipe.init_penalty), recipe)
    return list(chosen.values())[:MOST_RECIPES]


def _random(
    recipes: Sequence[Recipe],
    inputs: Floats,
    targets: Floats,
    row_weights: Floats,
    hidden: Sequence[int],
) -> Networks:
    """Where each network starts, by the seed of its recipe."""
    found = [
        random_networks(
            hidden, inputs, targets, row_weights[[place]], np.random.default_rng(recipe.seed)
        )
        for place, recipe in enumerate(recipes)
    ]
    return Networks(layers=tuple(map(np.concatenate, zip(*(n.layers for n in found), strict=True))))


def _on_host(rows: Rows) -> tuple[Floats, Floats, Floats]:
    inputs, targets, weights = (
        to_numpy(values).astype(np.float64) for values in (rows.inputs, rows.targets, rows.weights)
    )
    return inputs, targets, weights
