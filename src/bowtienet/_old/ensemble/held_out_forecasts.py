"""Forecasts of held-out rows, and what they say: weights of recipes, levels of noise, ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.fold_networks import Candidate, Floats
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.ensemble.stacking import (
    HEAVY_LEVELS,
    Forecasts,
    heavy_log_densities,
    normal_log_densities,
    stack_with_levels,
    stacking_weights,
    variance_ratio,
)
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.start import Networks, network_outputs
from bowtienet._old.model.outcomes import Binary, Classes, Outcome, StudentT
from bowtienet._old.prediction.calibration import (
    Calibration,
    aligned,
    calibrate,
    common_slope,
    is_discrete,
)
from bowtienet._old.prediction.class_probabilities import MODERATION
from bowtienet._old.prediction.conformal import HeldOut
from bowtienet._old.prediction.cross_fitted import CrossFitted
from bowtienet._old.prediction.levels import Levels, gate_inputs, log_gates
from bowtienet._old.prediction.predictive import outputs_and_variances, predict

LEAST_WEIGHT = 0.05
"""Stacking weight of a recipe that is worth its members."""
STACKING_ROWS = 10.0
"""Rows that speak for equal weights of the recipes of classes and counts."""
N_LEVELS = 3
FEWEST_LEVEL_ROWS = 50
"""Held-out rows below which noise has one level."""
MOST_GATE_COLUMNS = 30
ROWS_PER_GATE = 10
"""Held-out rows for each column that gates see, at least."""
LEAST_REST = 0.25
"""Of a group's variance that disagreement of its members may not take the place of."""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What held-out rows say of the noise of an ensemble, or of its probabilities."""

    levels: Levels | None = None
    held_out: HeldOut | None = None
    calibration: Calibration | None = None
    """Of classes and counts, for the recipes that have weight."""
    cross_fitted: CrossFitted | None = None
    """Scores of the weighted recipes."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """A recipe with the posteriors of its folds, and their forecasts of held-out rows."""

    candidate: Candidate
    n_sweeps: int
    targets: Floats
    """Of held-out rows (n, C), in the order of the rows, as the networks see them."""
    means: Floats
    """Of the outputs (n, D);"""
    variances: Floats
    """and of new targets where these have a noise variance."""
    ratio: Floats
    """What the variances are multiplied by to match the errors, (D,)."""
    log_densities: Floats
    """(n,), of the targets as the networks see them."""
    slope: float = 1.0
    """What the outputs of classes are multiplied by;"""
    dispersion: float = 1.0
    """and the dispersion of counts: see `prediction.calibration`."""
    by_chance: Floats | None = None
    """Variance of networks of this recipe that differ by chance, (D,); None if it is not known."""

    @property
    def errors(self) -> Floats:
        """Targets minus means (n, D), of outcomes with a noise variance."""
        return self.targets - self.means


def judged(
    candidate: Candidate,
    n_sweeps: int,
    targets: Floats,
    forecasts: tuple[Floats, Floats],
    row_weights: Floats,
    outcome: Outcome,
) -> Swept:
    """A recipe with its forecasts, means and variances (n, D), calibrated by the held-out rows."""
    means, variances = forecasts
    found = partial(
        Swept,
        candidate=candidate,
        n_sweeps=n_sweeps,
        targets=targets,
        means=means,
        variances=variances,
    )
    if is_discrete(outcome):
        slope, dispersion, logs = calibrate(outcome, targets, means, variances, row_weights)
        ratio = np.ones(means.shape[1])
        return found(ratio=ratio, log_densities=logs, slope=slope, dispersion=dispersion)
    heavy = isinstance(outcome, StudentT)
    ratio = variance_ratio(targets - means, variances, row_weights, heavy=heavy)
    density = heavy_log_densities if heavy else normal_log_densities
    return found(ratio=ratio, log_densities=density(targets - means, ratio * variances))


def stack_recipes(
    swept: Sequence[Swept],
    slopes: Floats,
    row_weights: Floats,
    inputs: Any,
    settings: Settings,
) -> tuple[Floats, Noise]:
    """Weights of recipes, and what held-out rows say of noise and probabilities; see `Noise`."""
    if is_discrete(settings.outcome):
        logs = np.stack([one.log_densities for one in swept], axis=1)
        weights = _worthwhile(stacking_weights(logs, row_weights, prior_rows=STACKING_ROWS))
        return weights, Noise(calibration=_calibration(swept, weights, row_weights, settings))
    weights, levels, held_out = stack_forecasts(swept, slopes, row_weights, inputs, settings)
    return weights, Noise(levels=levels, held_out=held_out)


def _calibration(
    swept: Sequence[Swept], weights: Floats, row_weights: Floats, settings: Settings
) -> Calibration:
    """Slopes and dispersions of the recipes that have weight."""
    chosen = [one for one, weight in zip(swept, weights, strict=True) if weight > 0.0]
    slopes = np.array([one.slope for one in chosen])
    if len(chosen) > 1 and isinstance(settings.outcome, (Binary, Classes)):
        forecasts = [(one.slope * one.means, one.slope**2 * one.variances) for one in chosen]
        targets, shares = chosen[0].targets, weights[weights > 0.0]
        slopes *= common_slope(settings.outcome, targets, forecasts, shares, row_weights)
    return Calibration(slope=slopes, dispersion=np.array([one.dispersion for one in chosen]))


def _worthwhile(weights: Floats) -> Floats:
    """Weights without those that are not worth their members."""
    weights = np.where(weights >= min(LEAST_WEIGHT, weights.max()), weights, 0.0)
    return np.asarray(weights / weights.sum())


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
    heavy = several and isinstance(settings.outcome, StudentT)
    weights, scale, gates = stack_with_levels(
        forecasts, seen, N_LEVELS if several else 1, first=HEAVY_LEVELS if heavy else None
    )
    weights = _worthwhile(weights)
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
    apart = swept.by_chance
    if apart is None:
        outputs = np.stack([network_outputs(own, rows.inputs).mean(axis=0) for own in networks])
        apart = outputs.var(axis=0, ddof=1).mean(axis=0)
    lost = 2.0 * (1.0 - 1.0 / len(networks)) * apart / np.mean(swept.variances, axis=0)
    return np.asarray(np.maximum(swept.ratio - lost, LEAST_REST * swept.ratio))


def slope_of_group(
    swept: Swept, slope: float, networks: Sequence[Networks], rows: Rows, outcome: Outcome
) -> float:
    """The slope of a group of m members, from that of single networks out of fold.

    Outputs z of single networks are those of a function with variance V over the rows and a noise
    by chance of variance τ². Given z, the function is N(k z, s²) with k = V / (V + τ²) and
    s² = k τ², so for the slope a* of the function that of z is a* k / sqrt(1 + c a*² s²), c = π/8.
    This is solved for a*; the mean of m networks has τ² / m in place of τ². And the disagreement of
    members, a part of the variance of their group, is no reason to be less sure on average: the
    slope b of the mean becomes b / sqrt(1 - c b² τ²).
    """
    if len(networks) < 2 or not isinstance(outcome, (Binary, Classes)):
        return slope
    apart = swept.by_chance
    if apart is None:
        outputs = np.stack([network_outputs(own, rows.inputs).mean(axis=0) for own in networks])
        apart = aligned(outcome, outputs).var(axis=0, ddof=1).mean(axis=0)
    chance = float(np.mean(apart))
    single = swept.means
    if isinstance(outcome, Classes):
        single = single - single.mean(axis=1, keepdims=True)  # as `aligned` for the members
    total = float(np.mean(np.var(single, axis=0)))
    function = max(total - chance, LEAST_REST * total)
    if not function > 0.0:
        return slope
    share = function / (function + chance)
    rest = share**2 - MODERATION * slope**2 * share * chance
    of_function = slope**2 / max(rest, LEAST_REST * share**2)
    share = function / (function + chance / len(networks))
    flattened = 1.0 + MODERATION * of_function * share * chance / len(networks)
    of_mean = of_function * share**2 / flattened
    return math.sqrt(of_mean / max(1.0 - MODERATION * of_mean * chance, LEAST_REST))


def by_chance(
    candidate: Candidate, rows: Rows, folds: Sequence[slice], outcome: Outcome
) -> Floats | None:
    """τ² (D,): variance of a recipe's networks at held-out rows, if they are of several parts."""
    parts = candidate.recipe.parts
    if parts == 1:
        return None
    spreads = [
        aligned(outcome, network_outputs(own, rows.inputs[fold, ...])).var(axis=0, ddof=1)
        for own, fold in zip(candidate.networks, folds, strict=True)
    ]
    return np.concatenate(spreads).mean(axis=0) / parts


def forecast(
    result: FitResult, rows: Rows, fold: slice, settings: Settings
) -> tuple[Floats, Floats]:
    """Means and variances of the rows of a fold, (n, D) each; logs of rates of counts."""
    found = predict(
        result.model,
        result.factors,
        rows.inputs[fold, ...],
        propagation=settings.propagation,
        n_threads=1,
    )
    return outputs_and_variances(result.model.outcome, found)


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
