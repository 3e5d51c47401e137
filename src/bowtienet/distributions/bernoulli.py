"""Bernoulli distribution of a gate, by its probability."""

from __future__ import annotations

from bowtienet._arrays import Array, namespace


def entropy(probability: Array) -> Array:
    """-p log p - (1-p) log(1-p), elementwise; exactly 0 at p = 0 and p = 1."""
    return -_xlogx(probability) - _xlogx(1.0 - probability)


def _xlogx(x: Array) -> Array:
    """x log x, with 0 log 0 = 0 and no infinite derivative hidden behind the other branch."""
    xp = namespace(x)
    x = xp.asarray(x)
    positive = x > 0.0
    return xp.where(positive, x * xp.log(xp.where(positive, x, xp.ones_like(x))), 0.0 * x)
