"""Counts: the predictive distribution of an ensemble whose outputs are logs of rates.

A group of members has log rates N(m, v) and a dispersion r; its counts are a mixture of negative
binomial distributions, with rates e^{m + sqrt(v) ξ} at the nodes ξ of Gauss-Hermite quadrature.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.ensemble.draws import draw_outputs
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    Moments,
    group_moments,
    group_shares,
    group_weights,
    outcome_of,
)
from bowtienet._old.model.outcomes import Counts
from bowtienet._old.prediction.count_mixture import CountMixture

N_NODES = 8
LARGEST_LOG_RATE = 36.0
"""Rates up to e^36: counts beyond are no whole numbers in double precision."""


def is_counts(ensemble: Ensemble) -> bool:
    """Whether the targets are counts."""
    return isinstance(outcome_of(ensemble), Counts)


def count_mixture(ensemble: Ensemble, inputs: Array, log_exposures: Floats) -> CountMixture:
    """Distribution of the counts of rows with encoded features (n, E) and log exposures (n, 1)."""
    return rate_mixture(
        ensemble, map_arrays(to_numpy, group_moments(ensemble, inputs)), log_exposures
    )


def count_components(
    ensemble: Ensemble, inputs: Array, log_exposures: Floats
) -> tuple[Floats, Floats, Floats]:
    """Mean, epistemic variance (of the rate) and noise variance of the counts, (n,) each."""
    found = map_arrays(to_numpy, group_moments(ensemble, inputs))
    total = rate_mixture(ensemble, found, log_exposures)
    certain = replace(found, noise_variances=np.zeros_like(found.noise_variances))
    rates = rate_mixture(ensemble, certain, log_exposures)
    epistemic = rates.weights @ (rates.means - rates.mean()) ** 2
    epistemic = np.minimum(epistemic, total.var())
    return total.mean(), epistemic, total.var() - epistemic


def draw_counts(
    ensemble: Ensemble,
    inputs: Array,
    log_exposures: Floats,
    n_draws: int,
    rng: np.random.Generator,
    *,
    joint: bool,
    noise: bool,
) -> Floats:
    """Draws (n_draws, n) of counts, or without noise of their rates; whole functions if joint."""
    if not joint and noise:
        return count_mixture(ensemble, inputs, log_exposures).rvs(n_draws, rng)
    if joint:
        outputs, groups = draw_outputs(ensemble, inputs, n_draws, rng)
    else:
        outputs, groups = _row_outputs(ensemble, inputs, n_draws, rng)
    logs = outputs[..., 0] + log_exposures[:, 0]
    rates = np.exp(np.clip(logs, -LARGEST_LOG_RATE, LARGEST_LOG_RATE))
    if not noise:
        return rates
    dispersions = group_dispersions(ensemble)[groups]
    dispersions = dispersions if dispersions.ndim == 2 else dispersions[:, None]
    return rng.poisson(rng.gamma(dispersions, rates / dispersions)).astype(float)


def _row_outputs(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, np.ndarray]:
    """Outputs (n_draws, n, 1) of groups that are drawn for each row, and the groups."""
    found, weights = (
        map_arrays(to_numpy, group_moments(ensemble, inputs)),
        group_weights(ensemble),
    )
    n_rows = found.means.shape[1]
    groups, rows = rng.choice(len(weights), size=(n_draws, n_rows), p=weights), np.arange(n_rows)
    deviations = np.sqrt(found.epistemic_variances[groups, rows])
    return found.means[groups, rows] + deviations * rng.standard_normal(deviations.shape), groups


def rate_mixture(ensemble: Ensemble, found: Moments, log_exposures: Floats) -> CountMixture:
    """The same from the moments (G, n, 1) of groups."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(N_NODES)
    variances = (found.epistemic_variances + found.noise_variances)[..., 0]
    logs = found.means[..., 0] + log_exposures[:, 0]
    logs = logs[:, None] + np.sqrt(variances)[:, None] * nodes[:, None]
    rates = np.exp(np.clip(logs, -LARGEST_LOG_RATE, LARGEST_LOG_RATE))
    weights = group_weights(ensemble)[:, None] * (shares / shares.sum())
    return CountMixture(
        weights=weights.ravel(),
        means=rates.reshape(-1, rates.shape[-1]),
        dispersions=np.repeat(group_dispersions(ensemble), N_NODES),
    )


def group_dispersions(ensemble: Ensemble) -> Floats:
    """r (G,) of the groups: by held-out rows, or those of the members on average."""
    if ensemble.calibration is not None:
        return ensemble.calibration.dispersion
    outcomes = [member.model.outcome for member in ensemble.members]
    own = [float(one.dispersion) for one in outcomes if isinstance(one, Counts)]
    return group_shares(ensemble) @ np.asarray(own)
