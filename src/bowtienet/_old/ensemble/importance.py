"""How much predictions lose when a column is permuted.

A permuted column has its values from other rows, all other columns stay: what the column says of a
row is gone, and its distribution is not. With donors π_r(i) of rows i, repeats r = 1..R and a score
s(i, k) of row i with the column of row k,

    loss = Σ_i w_i d_i / W,   d_i = Σ_r (s(i, i) - s(i, π_r(i))) / R.

Rows are drawn twice, to be predicted and to give values, and both make the loss uncertain. Row k
moves it by

    I_k = w_k (d_k - loss) / W + Σ_{i, r : π_r(i) = k} w_i (d_ir - d_i) / ((R - 1) W),

by the projection of a sum over pairs onto its rows (Hoeffding 1948), and the standard error is
sqrt(Σ_k I_k²). The first part alone, as one would have it from the differences of the rows, can be
half of it: a row that is far out in a column gives much and takes much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bowtienet._old._arrays import slices
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.ensemble import Ensemble, Floats, group_moments
from bowtienet._old.ensemble.mixed_rows import Indices, mixed_moments, mixed_rows
from bowtienet._old.ensemble.outcome_scores import effect_means, log_and_squared
from bowtienet._old.representation.background import Background
from bowtienet._old.representation.columns import owners

CHUNK_ROWS = 32_768
"""Rows with permuted columns that are predicted at a time."""
EFFECT_REPEATS = 5
"""Permutations that total effects come from."""
EFFECT_PREDICTIONS = 20_000
"""Rows that are predicted for them, about: of many columns few rows are looked at,"""
FEWEST_EFFECT_ROWS = 10
"""but so many at least."""


class Losses(NamedTuple):
    """What permuted columns cost; G groups of columns, D targets."""

    log_density: Floats
    """Of the rows as they are, the mean over rows (D,)."""
    rmse: Floats
    """(D,)."""
    log_density_drop: Floats
    """(G, D)."""
    log_density_error: Floats
    """Standard error, (G, D)."""
    rmse_rise: Floats
    rmse_error: Floats

    def changes(self) -> tuple[Floats, ...]:
        """Those by groups of columns."""
        return self[2:]


def draw_donors(weights: Floats, n_repeats: int, rng: np.random.Generator) -> Indices:
    """Rows (n_repeats, n) that give their values to each row; equal weights make permutations.

    Rows in random order are arcs of a circle, as long as their weights; the donor of a row is the
    one that stands a random angle from its middle. So each row gives to every other with a
    probability in proportion to its weight, and about as often as its weight says.
    """
    found = np.empty((n_repeats, len(weights)), dtype=np.intp)
    for repeat in found:
        order = rng.permutation(len(weights))
        ends = np.cumsum(weights[order])
        middles = ends - 0.5 * weights[order]
        turned = (middles + rng.uniform(0.0, ends[-1])) % ends[-1]
        places = np.minimum(np.searchsorted(ends, turned, side="right"), len(order) - 1)
        repeat[order] = order[places]
    return found


def permutation_losses(
    ensemble: Ensemble,
    rows: Rows,
    groups: Indices,
    n_repeats: int,
    rng: np.random.Generator,
) -> Losses:
    """Drop in log density and rise in RMSE by groups of the user's columns.

    Parameters
    ----------
    ensemble : Ensemble
    rows : Rows
        Encoded features and targets in the user's units, with positive weights; NumPy arrays. Of
        classes and counts see `outcome_scores`.
    groups : array (columns,)
        The group of each of the user's columns, counted from 0.
    n_repeats : int
        Permutations of each, at least 2.
    rng : numpy Generator
    """
    inputs, targets, weights = rows.inputs, rows.targets, rows.weights
    before = np.stack(log_and_squared(ensemble, group_moments(ensemble, inputs), inputs, targets))
    donors = draw_donors(weights, n_repeats, rng)
    used = np.unique(groups[owners(ensemble.representation.columns)])
    coalitions = np.eye(int(groups.max()) + 1, dtype=bool)
    n_scores = before.shape[-1]
    means = np.zeros((2, len(used), len(targets), n_scores))
    given = np.zeros((len(targets), 2, len(used), n_scores))
    for part in slices(len(inputs), max(1, CHUNK_ROWS // (n_repeats * max(len(used), 1)))):
        mixing = (inputs[part], inputs[donors[:, part]], groups, coalitions[used])
        mixed, moments = mixed_rows(ensemble, *mixing), mixed_moments(ensemble, *mixing)
        shape = (len(used), n_repeats, part.stop - part.start)
        y = np.broadcast_to(targets[part], (*shape, targets.shape[1]))
        scores = log_and_squared(ensemble, moments, mixed, y.reshape(-1, targets.shape[1]))
        after = np.stack(scores).reshape(2, *shape, n_scores)
        change = after - before[:, None, None, part]
        means[:, :, part] = change.mean(axis=2)
        apart = weights[part, None] * (change - means[:, :, None, part]) / (n_repeats - 1)
        for repeat, own in enumerate(donors[:, part]):
            np.add.at(given, own, np.moveaxis(apart[:, :, repeat], 2, 0))
    losses = _losses(before, means, np.moveaxis(given, 0, 2), weights)
    # A column that networks do not see loses nothing.
    shown = [np.zeros((len(coalitions), n_scores)) for _ in losses.changes()]
    for whole, own in zip(shown, losses.changes(), strict=True):
        whole[used] = own
    return Losses(losses.log_density, losses.rmse, *shown)


def _losses(before: Floats, means: Floats, given: Floats, weights: Floats) -> Losses:
    """From scores (2, n, D), their changes (2, G, n, D) and what rows did to these as donors."""
    share = weights / weights.sum()
    log_density, squared = np.einsum("n,snd->sd", share, before)
    change = np.einsum("n,sgnd->sgd", share, means)
    # I_k of the log density and of the squared error.
    influence = share[:, None] * (means - change[:, :, None]) + given / weights.sum()
    own = share[:, None] * (before[1] - squared)
    rmse, after = np.sqrt(squared), np.sqrt(np.maximum(squared + change[1], 0.0))
    # d sqrt(s) = ds / (2 sqrt(s)), of the error after and of the error before.
    rise = _halved_over(influence[1] + own, after[:, None]) - _halved_over(own, rmse)
    return Losses(
        log_density=log_density,
        rmse=rmse,
        log_density_drop=-change[0],
        log_density_error=np.sqrt(np.sum(influence[0] ** 2, axis=1)),
        rmse_rise=after - rmse,
        rmse_error=np.sqrt(np.sum(rise**2, axis=1)),
    )


def _halved_over(change: Floats, root: Floats) -> Floats:
    """change / (2 root); 0 where there is no error at all."""
    return np.divide(0.5 * change, root, out=np.zeros_like(change), where=root > 0.0)


def total_effects(ensemble: Ensemble, background: Background, rng: np.random.Generator) -> Floats:
    """½ E[(f(x) - f(x'))²] (columns,) of the mean f, with the column of x' permuted.

    It is the part of the variance of f that is gone once all other columns are known, for
    independent columns: the total effect of Sobol's indices. Were f the truth, permuting the column
    would add twice as much to the mean squared error. In the variance of each target, averaged.
    """
    features, weights = background.features, background.weights
    n_columns = len(ensemble.representation.columns)
    used = np.unique(owners(ensemble.representation.columns))
    groups, coalitions = np.arange(n_columns), np.eye(n_columns, dtype=bool)[used]
    donors, found = draw_donors(weights, EFFECT_REPEATS, rng), np.zeros(n_columns)
    n_moved = EFFECT_REPEATS * max(len(used), 1)
    stop = min(len(features), max(FEWEST_EFFECT_ROWS, EFFECT_PREDICTIONS // n_moved))
    for part in slices(stop, max(1, CHUNK_ROWS // n_moved)):
        before = effect_means(ensemble, group_moments(ensemble, features[part]), features[part])
        mixing = (features[part], features[donors[:, part]], groups, coalitions)
        mixed, moments = mixed_rows(ensemble, *mixing), mixed_moments(ensemble, *mixing)
        after = effect_means(ensemble, moments, mixed)
        after = after.reshape(len(used), EFFECT_REPEATS, *before.shape)
        squared = np.mean((after - before) ** 2, axis=(1, 3))
        found[used] += 0.5 * squared @ weights[part]
    return found / weights[:stop].sum()
