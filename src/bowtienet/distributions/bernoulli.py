"""Bernoulli distribution of a gate, by its log odds."""

from __future__ import annotations

from bowtienet._arrays import Array, namespace, sum_of_logs

_CERTAIN = 700.0
"""Log odds beyond which a gate counts as certain; exponentials that underflow are slow."""


def probability_and_entropy(log_odds: Array) -> tuple[Array, Array]:
    """Probability (..., D), and the sum of the entropies over the last axis.

    With u = e^{-|log odds|} and t = 1 / (1 + u) the larger of p and 1-p, the entropy
    -p log p - (1-p) log(1-p) is log(1 + u) + |log odds| u t: one exponential serves all.
    """
    xp = namespace(log_odds)
    size = xp.minimum(xp.abs(log_odds), xp.full_like(log_odds, _CERTAIN))
    decay = xp.exp(-size)
    larger = 1.0 / (1.0 + decay)
    is_positive = xp.astype(log_odds >= 0.0, log_odds.dtype)
    probability = xp.maximum(decay, is_positive) * larger
    entropy = xp.sum(size * (decay * larger), axis=-1) + sum_of_logs(1.0 + decay)
    return probability, entropy
