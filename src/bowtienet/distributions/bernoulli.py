"""Bernoulli distribution of a gate, by its log odds."""

from __future__ import annotations

import math

from bowtienet._arrays import Array, namespace, sum_of_logs


def probability(log_odds: Array) -> Array:
    """p = 1 / (1 + e^{-log odds}), elementwise."""
    return _probability_and_odds(log_odds)[0]


def probability_and_entropy(log_odds: Array) -> tuple[Array, Array]:
    """Probability p (..., D), and the sum of the entropies over the last axis.

    With l the lesser of p and q = 1 - p, and g the greater, the entropy -p log p - q log q is
    |log odds| l - log g: both terms are positive, and no logarithm of a small number is needed.
    """
    xp = namespace(log_odds)
    p, odds_against = _probability_and_odds(log_odds)
    lesser = xp.minimum(p, odds_against * p)
    size = xp.minimum(xp.abs(log_odds), _certain(log_odds))
    entropy = xp.sum(size * lesser, axis=-1) - sum_of_logs(xp.maximum(p, 1.0 - p))
    return p, entropy


def _probability_and_odds(log_odds: Array) -> tuple[Array, Array]:
    """p and (1 - p) / p = e^{-log odds}."""
    xp = namespace(log_odds)
    certain = _certain(log_odds)
    odds_against = xp.exp(xp.minimum(xp.maximum(-log_odds, -certain), certain))
    return 1.0 / (1.0 + odds_against), odds_against


def _certain(log_odds: Array) -> float:
    """Log odds beyond which a gate counts as certain, for their exponentials over- or underflow.

    695 in double precision and 86 in single.
    """
    smallest = float(namespace(log_odds).finfo(log_odds.dtype).smallest_normal)
    return -0.98 * math.log(smallest)
