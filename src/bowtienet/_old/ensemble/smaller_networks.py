"""Networks that lose columns and weights for as long as held-out rows do not miss them.

A recipe has one network for each fold of the rows, fitted without it, and one for all rows. They go
the same way: the columns that held-out rows miss least are taken out of all of them, then of each
network the weights with the least strength of paths,

    s(W_ij) = F_j |W_ij| B_i,   F = |W| F below,   B = |W|'B above,

a sum over the paths from inputs, by their deviation, to outputs that go through a weight. After
each step all networks are trained further, a little or not at all. A step that takes weights counts
if out of fold neither the root mean squared error in the user's unit, with one standard error
added, nor the geometric mean of densities is worse than before all steps by more than a tolerance,
and if predictions have moved little; columns go only without any such loss, and for sure if
predictions move far. Otherwise a smaller step is tried. No training is long: it would lead to
another network, whose errors in new rows may be far from those of the one that it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.data.rows import Rows
from bowtienet._old.distributions.yeo_johnson import Warp, from_warped
from bowtienet._old.ensemble.fold_networks import (
    Floats,
    SeenRows,
    adapted_penalties,
    part,
    without,
)
from bowtienet._old.ensemble.settings import Recipe
from bowtienet._old.ensemble.stacking import normal_log_densities, variance_ratio
from bowtienet._old.inference.start import Networks, fit_networks, network_outputs

Mask = NDArray[np.bool_]

LENGTHS = (30, 120)
"""Steps of L-BFGS after columns or weights went, or none; held-out rows choose."""
FIRST_SHARE = 0.5
"""Of the weights that a step leaves; its square root after a step that went too far,"""
LAST_SHARE = 0.95
"""until it is above this."""
COLUMNS_AT_ONCE = 4
"""The first step takes this part of the columns."""
COLUMN_MOVE = 0.1
"""E[m²] / E[e²] up to which a move m of predictions is short: 5 % in the root of E[e²], at most."""
SURE = 2.0
"""Standard errors that a long move has to gain."""
MOST_MISSES = 3
"""Columns in a row that held-out rows would miss, after which the others stay."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the networks of a recipe are trained and judged by."""

    recipe: Recipe
    seen: SeenRows
    folds: Sequence[slice]
    owners: NDArray[np.intp]
    """The user's column that each input belongs to; of principal components each its own."""
    targets: Floats
    """Standardised, not warped (n, D)."""
    warp: Warp | None


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Networks of all folds, and of all rows at the end, with the weights that they have."""

    networks: Networks
    kept: Networks
    """1 for a weight that exists, 0 for others."""
    columns: Mask
    """Columns of the owners that are left."""
    means: Floats
    """Predictions (n, D) of held-out rows, in standardised targets."""
    squares: Floats
    """Squared errors (n,) of held-out rows, in variances of the targets, averaged over them."""
    rmse: float
    log_density: float
    """Mean log density of held-out rows."""

    @property
    def n_weights(self) -> int:
        """Weights of one network, on average, without biases."""
        count = sum(float(layer[:, :, 1:].sum()) for layer in self.kept.layers)
        return round(count / len(self.kept.layers[0]))


def whole_stage(trial: Trial, networks: Networks) -> Stage:
    """The networks before anything goes."""
    kept = Networks(layers=tuple(np.ones_like(layer) for layer in networks.layers))
    columns = np.ones(int(trial.owners.max()) + 1, dtype=bool)
    return _judged(trial, networks, kept, columns)


def shrink_networks(trial: Trial, start: Stage, tolerance: float) -> list[Stage]:
    """Stages within the tolerance, from the whole networks to the smallest ones."""
    return _without_weights(trial, _without_columns(trial, [start]), tolerance)


def _without_columns(trial: Trial, found: list[Stage]) -> list[Stage]:
    start, needed, misses = found[0], np.zeros(len(found[0].columns), dtype=bool), 0
    size = max(1, int(start.columns.sum()) // COLUMNS_AT_ONCE)
    while misses < MOST_MISSES:
        now = found[-1]
        free = np.flatnonzero(now.columns & ~needed)
        size = min(size, len(free), int(now.columns.sum()) - 1)
        if size < 1:
            break
        missed = _missed(trial, now, free)
        columns = now.columns.copy()
        columns[free[np.argsort(missed, kind="stable")[:size]]] = False
        first = now.kept.layers[0].copy()
        first[:, :, 1:] *= columns[trial.owners]
        kept = replace(now.kept, layers=(first, *now.kept.layers[1:]))
        after = max(_trained(trial, now.networks, kept, columns), key=_log_density)
        if _is_as_good(trial, start, after):
            found, misses = [*found, after], 0
        elif size > 1:
            size //= 2
        else:
            needed[free[np.argmin(missed)]] = True
            misses += 1
    return found


def _without_weights(trial: Trial, found: list[Stage], tolerance: float) -> list[Stage]:
    start, whole, share = found[0], found[-1], FIRST_SHARE
    while share < LAST_SHARE:
        now = found[-1]
        kept = _strongest(trial, now, share)
        if not _all_have_paths(trial, kept):
            share = np.sqrt(share)
            continue
        columns = now.columns & _used(trial, kept, len(now.columns))
        good = [
            after
            for after in _trained(trial, now.networks, kept, columns)
            if after.n_weights < now.n_weights
            and _is_near(trial, whole, after, tolerance)
            and _is_close(trial, start, after, tolerance)
        ]
        if good:
            found = [*found, max(good, key=_log_density)]
        else:
            share = np.sqrt(share)
    return found


def _all_have_paths(trial: Trial, kept: Networks) -> bool:
    """Whether each network still sees an input."""
    there = kept.layers[0][:, :, 1:].any(axis=(1, 2)).reshape(-1, trial.recipe.parts)
    return bool(there.any(axis=1).all())


def _used(trial: Trial, kept: Networks, count: int) -> Mask:
    """Columns that any network has a weight of."""
    inputs = kept.layers[0][:, :, 1:].any(axis=(0, 1))
    return np.bincount(trial.owners[inputs], minlength=count) > 0


def _is_as_good(trial: Trial, start: Stage, now: Stage) -> bool:
    """Whether held-out rows lose nothing, for sure if predictions have moved far.

    Columns go by many trials, and the luckiest looks better than it is. With a short move it cannot
    be worse by much; a long one has to gain more than chance does.
    """
    near = _is_near(trial, start, now, COLUMN_MOVE)
    return _is_close(trial, start, now, 0.0, n_errors=1.0 if near else SURE)


def _is_close(
    trial: Trial, start: Stage, now: Stage, tolerance: float, n_errors: float = 1.0
) -> bool:
    """Whether held-out rows lose no more than the tolerance, with standard errors to spare.

    The same rows choose among many steps, which makes losses look smaller than they are. With the
    ratio r of root mean squared errors, its error is that of Σ (e²_now - r² e²_start) / (2 r Σ
    e²_start).
    """
    weights = np.asarray(trial.seen.rows.weights, dtype=np.float64)
    ratio = now.rmse / start.rmse
    excess = now.squares - ratio**2 * start.squares
    error = np.sqrt(weights @ excess**2) / (2.0 * ratio * (weights @ start.squares))
    near = now.log_density >= start.log_density - np.log1p(tolerance)
    return bool(ratio + n_errors * error <= 1.0 + tolerance and near)


def _is_near(trial: Trial, whole: Stage, now: Stage, tolerance: float) -> bool:
    """Whether predictions of held-out rows have moved little: E[m²] <= tolerance E[e²].

    A move m that has nothing to do with the errors e adds E[m²] to E[e²], which is half the
    tolerance in their root. It is known without the noise of the targets, so that no choice among
    steps makes it look small; and the network of all rows, whose errors are smaller, moves as far.
    """
    weights = np.asarray(trial.seen.rows.weights, dtype=np.float64)
    moved = np.mean((now.means - whole.means) ** 2, axis=1)
    return bool(weights @ moved <= tolerance * (weights @ whole.squares))


def _log_density(stage: Stage) -> float:
    return stage.log_density


def _trained(trial: Trial, networks: Networks, kept: Networks, columns: Mask) -> list[Stage]:
    """Networks that have lost some weights, as they are and trained further.

    Where training had not come to its end, more of it moves predictions further than losing the
    weights does.
    """
    recipe, rows = trial.recipe, trial.seen.rows
    weights = np.asarray(rows.weights, dtype=np.float64)
    row_weights = np.stack([without(weights, fold) for fold in (*trial.folds, None)])
    row_weights = np.repeat(row_weights, recipe.parts, axis=0)
    penalties = None
    if recipe.adaptive:
        penalties = adapted_penalties(networks, recipe.parts, trial.seen.groups)
    found = fit_networks(
        rows.inputs,
        rows.targets,
        row_weights,
        networks,
        np.full(len(row_weights), recipe.init_penalty),
        lengths=LENGTHS,
        input_penalties=penalties,
        kept=kept,
    )
    layers = zip(networks.layers, kept.layers, strict=True)
    cut = Networks(layers=tuple(layer * mask for layer, mask in layers))
    return [_judged(trial, own, kept, columns) for own in (cut, *found)]


def _judged(trial: Trial, networks: Networks, kept: Networks, columns: Mask) -> Stage:
    outputs = _held_out_outputs(trial, networks, trial.seen.rows.inputs)
    weights = np.asarray(trial.seen.rows.weights, dtype=np.float64)
    errors = np.asarray(trial.seen.rows.targets) - outputs
    noise = variance_ratio(errors, np.ones_like(errors), weights, prior_rows=0.0)
    logs = normal_log_densities(errors, noise * np.ones_like(errors))
    means = outputs if trial.warp is None else from_warped(trial.warp, outputs)
    squares = np.mean((trial.targets - means) ** 2, axis=1)
    total = weights.sum()
    return Stage(
        networks=networks,
        kept=kept,
        columns=columns,
        means=np.asarray(means),
        squares=squares,
        rmse=float(np.sqrt(weights @ squares / total)),
        log_density=float(weights @ logs / total),
    )


def _held_out_outputs(trial: Trial, networks: Networks, inputs: Floats) -> Floats:
    """Outputs (n, D) of each fold's networks for its rows."""
    parts = trial.recipe.parts
    return np.concatenate(
        [
            network_outputs(
                part(networks, slice(place * parts, (place + 1) * parts)), inputs[fold]
            ).mean(axis=0)
            for place, fold in enumerate(trial.folds)
        ]
    )


def _missed(trial: Trial, stage: Stage, columns: NDArray[np.intp]) -> Floats:
    """Squared error of held-out rows, over all targets, if a column is at its mean everywhere."""
    rows: Rows = trial.seen.rows
    weights = np.asarray(rows.weights, dtype=np.float64)
    found = []
    for column in columns:
        inputs = np.where(trial.owners == column, 0.0, rows.inputs)
        errors = np.asarray(rows.targets) - _held_out_outputs(trial, stage.networks, inputs)
        found.append(weights @ np.sum(errors**2, axis=1))
    return np.asarray(found)


def _strongest(trial: Trial, stage: Stage, share: float) -> Networks:
    """Weights to keep: in each network a share of those it has, of the strongest paths."""
    strengths = path_strengths(stage.networks, np.std(trial.seen.rows.inputs, axis=0))
    parts = trial.recipe.parts
    flat = [
        np.where(kept[:, :, 1:] > 0.0, own, 0.0).reshape(-1, parts * own[0].size)
        for own, kept in zip(strengths, stage.kept.layers, strict=True)
    ]
    together = np.concatenate(flat, axis=1)
    counts = np.floor(share * np.count_nonzero(together, axis=1)).astype(np.intp)
    ordered = np.sort(together, axis=1)[:, ::-1]
    least = np.maximum(ordered[np.arange(len(ordered)), np.maximum(counts, 1) - 1], 0.0)
    least = np.repeat(least, parts)[:, None, None]
    layers = []
    for own, kept in zip(strengths, stage.kept.layers, strict=True):
        layer = kept.copy()
        layer[:, :, 1:] *= (own >= least) & (own > 0.0)
        layers.append(layer)
    return _on_paths(Networks(layers=tuple(layers)))


def path_strengths(networks: Networks, deviations: Floats) -> list[Floats]:
    """Sums (R, D, K) over the paths through each weight of the products of sizes."""
    sizes = [np.abs(layer[:, :, 1:]) for layer in networks.layers]
    below = [np.tile(deviations, (len(sizes[0]), 1))]
    for layer in sizes:
        below.append((layer @ below[-1][:, :, None])[:, :, 0])
    above = [np.ones(below[-1].shape)]
    for layer in reversed(sizes):
        above.insert(0, (above[0][:, None, :] @ layer)[:, 0, :])
    return [
        up[:, :, None] * layer * down[:, None, :]
        for up, layer, down in zip(above[1:], sizes, below, strict=False)
    ]


def _on_paths(kept: Networks) -> Networks:
    """The weights on paths from an input to an output."""
    masks = Networks(layers=tuple((layer != 0.0).astype(np.float64) for layer in kept.layers))
    n_inputs = kept.layers[0].shape[2] - 1
    strengths = path_strengths(masks, np.ones(n_inputs))
    layers = []
    for layer, own in zip(kept.layers, strengths, strict=True):
        found = layer.copy()
        found[:, :, 1:] *= own > 0.0
        layers.append(found)
    return Networks(layers=tuple(layers))
