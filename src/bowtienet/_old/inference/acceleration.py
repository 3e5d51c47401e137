"""Momentum for coordinate ascent, taken only where it does not lower the bound.

An activation is tied to gate x preactivation with the hidden noise as its only slack, and the
Polya-Gamma bound holds preactivations near their present size, so a plain sweep moves hidden
weights by little, always in much the same direction. Going on in that direction,

    m      <- m + k/(k+2) (m - m_before)
    beta   <- beta (beta / beta_before)^{k/(k+2)}

for the means of all weights and the scales of all noise variances, k sweeps after the last start,
is Nesterov's scheme. The point it reaches is a member of the variational family like any other, so
the next sweep from there has an exact bound: if that is below the last accepted one, the step is
not taken, the state before it is restored, and k starts again at 0.
"""

from __future__ import annotations

from dataclasses import replace

from bowtienet._old._arrays import namespace
from bowtienet._old.inference.global_step import update_shared_covariance
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors


def momentum(age: int) -> float:
    """k/(k+2), the part of the last move that is added to it."""
    return age / (age + 2.0)


def extrapolate(factors: GlobalFactors, before: GlobalFactors, amount: float) -> GlobalFactors:
    """`factors` moved on by `amount` times their difference from `before`."""
    layers = tuple(
        _extrapolate_layer(now, then, amount)
        for now, then in zip(factors.layers, before.layers, strict=True)
    )
    moved = replace(factors, layers=layers)
    return update_shared_covariance(moved, by_row=factors.shared_covariance is None)


def _extrapolate_layer(now: LayerFactors, then: LayerFactors, amount: float) -> LayerFactors:
    mean = now.weights.mean + amount * (now.weights.mean - then.weights.mean)
    scale = now.noise_variance.scale
    xp = namespace(scale)
    growth = amount * (xp.log(scale) - xp.log(then.noise_variance.scale))
    return replace(
        now,
        weights=replace(now.weights, mean=mean),
        noise_variance=replace(now.noise_variance, scale=scale * xp.exp(growth)),
    )
