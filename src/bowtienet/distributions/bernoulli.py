"""Bernoulli distribution of a gate, by its log odds."""

from __future__ import annotations

from bowtienet._arrays import Array, namespace, special, sum_of_logs


def probability_and_entropy(log_odds: Array) -> tuple[Array, Array]:
    """Probability (..., D), and the sum of the entropies over the last axis.

    With t the larger of p and 1-p, the entropy -p log p - (1-p) log(1-p) is
    -log t + |log odds| (1-t).
    """
    xp = namespace(log_odds)
    probability = special("expit", log_odds)
    larger = xp.maximum(probability, 1.0 - probability)
    entropy = xp.sum(xp.abs(log_odds) * (1.0 - larger), axis=-1) - sum_of_logs(larger)
    return probability, entropy
