"""Classes: probabilities of an ensemble, what of their entropy is epistemic, and draws of them.

    P(c) = Σ_g w_g E[p_c(z_g)],        z_g ~ N(m_g, v_g + s_g)

over groups g of members, with what the weights leave open, v, and chance, s: gates and hidden
noise. The entropy of P is the mean entropy given the function, which is aleatoric, and the mutual
information of class and function, which is epistemic: more rows would take it away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.ensemble.draws import draw_outputs
from bowtienet._old.ensemble.ensemble import (
    Ensemble,
    Floats,
    Moments,
    group_moments,
    group_weights,
    outcome_of,
)
from bowtienet._old.prediction.class_probabilities import (
    MODERATION,
    expected_probabilities,
    probabilities,
    probability_moments,
)


@dataclass(frozen=True, kw_only=True)
class ClassMoments:
    """Predictions of n rows and C classes."""

    mean: Floats
    """Probabilities (n, C)."""
    deviation: Floats
    """Epistemic standard deviations of the probabilities (n, C)."""
    entropy: Floats
    """Of the predicted class (n,), in nats;"""
    aleatoric_entropy: Floats
    """and what would be left of it if the function were known (n,)."""


def class_probabilities(ensemble: Ensemble, inputs: Array) -> Floats:
    """Probabilities (n, C) for encoded features (n, E)."""
    return mixed_probabilities(ensemble, map_arrays(to_numpy, group_moments(ensemble, inputs)))


def mixed_probabilities(ensemble: Ensemble, found: Moments) -> Floats:
    """Probabilities (n, C) from the moments of groups."""
    outcome, variances = outcome_of(ensemble), found.epistemic_variances + found.noise_variances
    parts = [
        weight * expected_probabilities(outcome, mean, variance)
        for weight, mean, variance in zip(
            group_weights(ensemble), found.means, variances, strict=True
        )
    ]
    return np.asarray(sum(parts))


def class_moments(ensemble: Ensemble, found: Moments) -> ClassMoments:
    """Probabilities and the parts of their uncertainty from the moments of groups."""
    outcome, weights = outcome_of(ensemble), group_weights(ensemble)
    mean = mixed_probabilities(ensemble, found)
    variance, aleatoric = np.zeros_like(mean), np.zeros(len(mean))
    for group, weight in enumerate(weights):
        # Given the function, chance flattens the probabilities as a probit of variance s would.
        flat = 1.0 / np.sqrt(1.0 + MODERATION * found.noise_variances[group])
        epistemic = flat**2 * found.epistemic_variances[group]
        own = probability_moments(outcome, flat * found.means[group], epistemic)
        variance += weight * (own.variance + (own.mean - mean) ** 2)
        aleatoric += weight * own.entropy
    entropy = entr(mean).sum(axis=1)
    return ClassMoments(
        mean=mean,
        deviation=np.sqrt(variance),
        entropy=entropy,
        aleatoric_entropy=np.minimum(aleatoric, entropy),
    )


def draw_probabilities(
    ensemble: Ensemble, inputs: Array, n_draws: int, rng: np.random.Generator, *, joint: bool
) -> Floats:
    """Draws (n_draws, n, C) of the probabilities given the function.

    With `joint` a draw is one function over all rows: a member and its weights.
    """
    outcome = outcome_of(ensemble)
    if joint:
        return probabilities(outcome, draw_outputs(ensemble, inputs, n_draws, rng)[0])
    found = map_arrays(to_numpy, group_moments(ensemble, inputs))
    weights = group_weights(ensemble)
    chosen = rng.choice(len(weights), size=(n_draws, found.means.shape[1]), p=weights)
    rows = np.arange(found.means.shape[1])
    deviations = np.sqrt(found.epistemic_variances[chosen, rows])
    outputs = found.means[chosen, rows] + deviations * rng.standard_normal(deviations.shape)
    return probabilities(outcome, outputs)
