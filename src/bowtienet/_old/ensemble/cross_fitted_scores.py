"""What the forecasts of held-out rows are worth, once recipes have their weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.rows import Rows
from bowtienet._old.distributions.yeo_johnson import log_slope, moments
from bowtienet._old.ensemble.count_ensemble import LARGEST_LOG_RATE, N_NODES
from bowtienet._old.ensemble.ensemble import Ensemble, Floats, outcome_of
from bowtienet._old.ensemble.held_out_forecasts import Noise, Swept
from bowtienet._old.model.outcomes import Counts, Outcome
from bowtienet._old.prediction.calibration import is_discrete
from bowtienet._old.prediction.class_probabilities import expected_probabilities
from bowtienet._old.prediction.count_mixture import CountMixture
from bowtienet._old.prediction.cross_fitted import (
    COVERAGE,
    OF_CLASSES,
    OF_COUNTS,
    OF_NUMBERS,
    CrossFitted,
    score_classes,
    score_counts,
    score_numbers,
)
from bowtienet._old.prediction.levels import gate_inputs, log_gates
from bowtienet._old.representation.representation import View

_SEED = 0
"""Of the draws that make F(y) of counts uniform: a fit has the same bits every time."""
_WITH_UNIT = ("rmse", "mae")


def cross_fitted_scores(
    swept: Sequence[Swept],
    weights: Floats,
    noise: Noise,
    views: Sequence[View],
    rows: Rows,
    outcome: Outcome,
) -> CrossFitted | None:
    """Scores of the weighted recipes for the held-out rows that they have forecasts of.

    `rows` are standardised, in the order of the forecasts; `views` those of the recipes. None
    where numbers are not finite: a fit that went astray has no scores.
    """
    row_weights = np.asarray(to_numpy(rows.weights), dtype=np.float64)
    targets = np.asarray(to_numpy(rows.targets), dtype=np.float64)
    kept = row_weights > 0.0
    chosen = [place for place, weight in enumerate(weights) if weight > 0.0]
    some, own = [swept[place] for place in chosen], np.asarray(weights)[chosen]
    with np.errstate(all="ignore"):
        if isinstance(outcome, Counts):
            found = _counts(some, own, noise, targets, row_weights, kept)
        elif is_discrete(outcome):
            found = _classes(some, own, noise, targets, row_weights, kept, outcome)
        else:
            seen = [views[place] for place in chosen]
            found = _numbers(some, own, noise, seen, targets, rows, kept)
    return found if np.isfinite(found.scores).all() else None


def target_scores(ensemble: Ensemble) -> list[dict[str, float]]:
    """Scores of held-out rows in the user's units, by name, for each target; none if unknown."""
    found = ensemble.cross_fitted
    if found is None:
        return []
    outcome = outcome_of(ensemble)
    if is_discrete(outcome):
        names = OF_COUNTS if isinstance(outcome, Counts) else OF_CLASSES
        return [dict(zip(names, map(float, row), strict=True)) for row in found.scores]
    units = np.asarray(to_numpy(ensemble.representation.target_scaling.scale), dtype=np.float64)
    scores = []
    for row, unit in zip(found.scores, units, strict=True):
        one = dict(zip(OF_NUMBERS, map(float, row), strict=True))
        one |= {name: one[name] * float(unit) for name in _WITH_UNIT}
        one["log_density"] -= float(np.log(unit))
        scores.append(one)
    return scores


def _numbers(
    swept: Sequence[Swept],
    weights: Floats,
    noise: Noise,
    views: Sequence[View],
    targets: Floats,
    rows: Rows,
    kept: np.ndarray,
) -> CrossFitted:
    levels, held_out = noise.levels, noise.held_out
    assert levels is not None
    assert held_out is not None
    log_shares = log_gates(levels.gates, gate_inputs(levels.columns, rows.inputs))
    mean, logs = np.zeros_like(targets), []
    for one, weight, view in zip(swept, weights, views, strict=True):
        scales = levels.scale[:, None, :] * one.ratio * one.variances
        densities = -0.5 * (np.log(2.0 * np.pi * scales) + one.errors**2 / scales)
        own, log_density = one.means, logsumexp(densities + log_shares, axis=0)
        if view.warp is not None:
            log_density = log_density + log_slope(view.warp, targets)
            spread = np.einsum("knd,knd->nd", np.exp(log_shares), scales)
            own, _ = moments(view.warp, own, spread)
        mean += weight * own
        logs.append(log_density)
    total = logsumexp(np.stack(logs), axis=0, b=weights[:, None, None])
    return score_numbers(targets[kept], mean[kept], total[kept], held_out.values, held_out.weights)


def _counts(
    swept: Sequence[Swept],
    weights: Floats,
    noise: Noise,
    targets: Floats,
    row_weights: Floats,
    kept: np.ndarray,
) -> CrossFitted:
    assert noise.calibration is not None
    nodes, shares = np.polynomial.hermite_e.hermegauss(N_NODES)
    logs = np.stack(
        [one.means[:, 0] + np.sqrt(one.variances[:, 0]) * nodes[:, None] for one in swept]
    )
    logs = logs[..., kept] + targets[kept, 1]
    forecast = CountMixture(
        weights=(weights[:, None] * (shares / shares.sum())).ravel(),
        means=np.exp(np.clip(logs, -LARGEST_LOG_RATE, LARGEST_LOG_RATE)).reshape(-1, kept.sum()),
        dispersions=np.repeat(noise.calibration.dispersion, N_NODES),
    )
    counts = targets[kept, 0]
    below, upto = forecast.cdf(counts - 1.0), forecast.cdf(counts)
    values = below + np.random.default_rng(_SEED).uniform(size=counts.size) * (upto - below)
    return score_counts(
        counts,
        forecast.mean(),
        forecast.logpmf(counts),
        forecast.interval(COVERAGE),
        values,
        row_weights[kept],
    )


def _classes(
    swept: Sequence[Swept],
    weights: Floats,
    noise: Noise,
    targets: Floats,
    row_weights: Floats,
    kept: np.ndarray,
    outcome: Outcome,
) -> CrossFitted:
    assert noise.calibration is not None
    found = [
        weight * expected_probabilities(outcome, slope * one.means, slope**2 * one.variances)
        for one, weight, slope in zip(swept, weights, noise.calibration.slope, strict=True)
    ]
    codes = targets[kept, 0].astype(np.intp)
    return score_classes(codes, np.sum(found, axis=0)[kept], row_weights[kept])
