"""Forecasts of held-out rows, and what they say: weights of recipes, levels of noise, ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from bowtienet._arrays import to_numpy
from bowtienet.data.rows import Rows
from bowtienet.ensemble.fold_networks import Candidate, Floats
from bowtienet.ensemble.settings import Settings
from bowtienet.ensemble.stacking import Forecasts, stack_with_levels
from bowtienet.inference.iterate import FitResult
from bowtienet.inference.start import Networks, network_outputs
from bowtienet.prediction.conformal import HeldOut
from bowtienet.prediction.levels import Levels, gate_inputs, log_gates
from bowtienet.prediction.predictive import errors_and_variances, predict

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
