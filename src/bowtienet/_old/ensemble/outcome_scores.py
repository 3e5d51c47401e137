"""Means and scores of predictions, whatever the outcome, for importance and explanations."""

from __future__ import annotations

import numpy as np

from bowtienet._old._arrays import map_arrays, to_numpy
from bowtienet._old.ensemble.class_ensemble import class_moments, mixed_probabilities
from bowtienet._old.ensemble.count_ensemble import is_counts, rate_mixture
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    Moments,
    combine_groups,
    group_weights,
    level_mixture,
    outcome_of,
    split_variance,
    standardized_moments,
)
from bowtienet._old.prediction.calibration import LEAST_PROBABILITY, is_discrete


def log_and_squared(
    ensemble: Ensemble, found: Moments, inputs: Floats, targets: Floats
) -> tuple[Floats, Floats]:
    """Log density and squared error (n, D) of targets from the moments of groups.

    Of classes the log probability and the Brier score, Σ_c (1{y = c} - p_c)², of counts the log
    probability and the squared error of the mean.
    """
    if not is_discrete(outcome_of(ensemble)):
        own = level_mixture(ensemble, found, inputs)
        return own.logpdf(targets), (targets - own.mean()) ** 2
    if is_counts(ensemble):
        rates = rate_mixture(ensemble, found, targets[:, 1:])
        counts = targets[:, 0]
        return rates.logpmf(counts)[:, None], ((counts - rates.mean()) ** 2)[:, None]
    p = mixed_probabilities(ensemble, found)
    codes = targets[:, :1].astype(np.intp)
    of_class = np.take_along_axis(p, codes, axis=1)
    brier = np.sum(p**2, axis=1, keepdims=True) - 2.0 * of_class + 1.0
    return np.log(np.maximum(of_class, LEAST_PROBABILITY)), brier


def mean_and_spread(ensemble: Ensemble, found: Moments, inputs: Floats) -> tuple[Floats, Floats]:
    """Predictive mean and standard deviation (n, D) from the moments of groups.

    Of classes the probabilities (n, C) and their epistemic deviations; of counts those of exposure
    1.
    """
    if not is_discrete(outcome_of(ensemble)):
        return combine_groups(ensemble, found, inputs)
    if is_counts(ensemble):
        rates = rate_mixture(ensemble, found, np.zeros((len(inputs), 1)))
        return rates.mean()[:, None], rates.std()[:, None]
    moments = class_moments(ensemble, map_arrays(to_numpy, found))
    return moments.mean, moments.deviation


def effect_means(ensemble: Ensemble, found: Moments, inputs: Floats) -> Floats:
    """Predictive means (n, D) on the scale of standardised targets, or probabilities."""
    if is_discrete(outcome_of(ensemble)):
        if is_counts(ensemble):
            return mean_and_spread(ensemble, found, inputs)[0]
        return mixed_probabilities(ensemble, map_arrays(to_numpy, found))
    found = standardized_moments(ensemble, found, inputs)
    return np.asarray(split_variance(group_weights(ensemble), found)[0])
