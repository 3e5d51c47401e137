"""Bernoulli distribution of a gate, by its log odds."""

from __future__ import annotations

import math

from bowtienet._arrays import Array, namespace, sum_of_logs


def probability_and_entropy(log_odds: Array) -> tuple[Array, Array]:
    """Probability p (..., D), and the sum of the entropies over the last axis.

    With l the lesser of p and q = 1 - p, and g the greater, the entropy -p log p - q log q is
    |log odds| l - log g: both terms are positive, and no logarithm of a small number is needed.
    """
    xp = namespace(log_odds)
    # Beyond 695 in double precision and 86 in single a gate counts as certain, for exponentials
    # over- or underflow.
    certain = -0.98 * math.log(float(xp.finfo(log_odds.dtype).smallest_normal))
    odds_against = xp.exp(xp.clip(-log_odds, -certain, certain))
    p = 1.0 / (1.0 + odds_against)
    lesser = xp.minimum(p, odds_against * p)
    size = xp.minimum(xp.abs(log_odds), certain)
    entropy = xp.sum(size * lesser, axis=-1) - sum_of_logs(xp.maximum(p, 1.0 - p))
    return p, entropy
