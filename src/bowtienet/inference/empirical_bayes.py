"""Section 3.2 of the paper, "VI with EM": the hyperparameter of the global shrinkage.

One number, shared by all layers, is set to the maximum of Σ_l E[log p(tau_l)]; the local priors
stay fixed. q(tau) keeps its parameters: only the prior moves.

    inverse gamma      scale = (L+1)(-p) / Σ E[1/tau]
    gamma              rate  = (L+1) p / Σ E[tau]
    inverse Gaussian   lambda = (L+1) delta / Σ E[tau], delta fixed   (docs/theory/errata, 5)
    any other GIG      rate by a safeguarded search in one dimension
    half-Cauchy        scale where Σ A² E[1/tau] / (1 + A² E[1/tau]) = (L+1)/2, with its q(nu)

M networks on the leading axis have a hyperparameter each. With it moves the parameter that an
outcome has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, isfinite, log, nan
from typing import Any

import numpy as np
from scipy.special import expit

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.model import BowTieModel
from bowtienet.model.shrinkage import ShrinkagePrior
from bowtienet.outcomes import StudentT
from bowtienet.posterior.factors import Posterior


def update_hyperparameters(model: BowTieModel, factors: Posterior) -> BowTieModel:
    """The model with the global prior that fits the present q(tau) best."""
    prior = model.global_shrinkage
    if isinstance(prior, PointMass):
        return model
    scales = [layer.global_shrinkage for layer in factors.layers]
    return replace(model, global_shrinkage=_maximize(prior, scales))


def separate_hyperparameters(model: BowTieModel, count: int) -> BowTieModel:
    """The model with the numbers that EM moves as arrays (M,), one for each network."""
    prior, outcome = model.global_shrinkage, model.outcome
    if not isinstance(prior, PointMass) and gig.is_zero(prior.rate):
        prior = replace(prior, scale=np.full(count, prior.scale))
    elif isinstance(prior, GeneralizedInverseGaussian):
        prior = replace(prior, rate=np.full(count, prior.rate))
    if isinstance(outcome, StudentT):
        outcome = replace(outcome, freedom=np.full(count, outcome.freedom))
    return replace(model, global_shrinkage=prior, outcome=outcome)


def _maximize(
    prior: GeneralizedInverseGaussian | HalfCauchy, scales: Sequence[Any]
) -> ShrinkagePrior:
    """The prior that fits q(tau) of the L+1 layers."""
    count = len(scales)
    if gig.is_zero(prior.rate):
        inverse = np.stack([gig.mean_inverse(q) for q in scales])
        if isinstance(prior, HalfCauchy):
            return HalfCauchy(scale=_half_cauchy_scale(np.log(inverse)))
        return replace(prior, scale=count * -prior.order / inverse.sum(axis=0))
    assert isinstance(prior, GeneralizedInverseGaussian)
    total = np.sum([gig.mean(q) for q in scales], axis=0)
    if gig.is_zero(prior.scale):
        return replace(prior, rate=count * prior.order / total)
    if prior.order == -0.5:
        # lambda = count · delta / total in the paper's letters; rate = lambda²/2, scale = delta²/2.
        return replace(prior, rate=prior.scale * (count / total) ** 2)
    rates = np.broadcast_to(prior.rate, total.shape)
    members = zip(rates, total, strict=True)
    best = [_search_rate(replace(prior, rate=float(r)), count, float(t)) for r, t in members]
    return replace(prior, rate=np.asarray(best))


def _half_cauchy_scale(shifts: np.ndarray) -> np.ndarray:
    """argmax over A² of Σ ½ log A² - log(1 + A² E[1/tau]), from the logarithms of E[1/tau].

    It is concave in log A², and its derivative there is half the number of layers less a sum of
    logistic functions: Newton steps, replaced by bisection where they leave the bracket. Of two
    layers the start is the end.
    """
    low, high = -np.max(shifts, axis=0), -np.min(shifts, axis=0)
    log_scale = -np.mean(shifts, axis=0)
    # Bisection alone narrows any bracket to rounding in 60 steps; Newton usually needs 5.
    for _ in range(60):
        share = expit(log_scale + shifts)
        excess = np.mean(share - 0.5, axis=0)
        if np.all(np.abs(excess) < 1e-14):
            break
        low, high = np.where(excess > 0.0, low, log_scale), np.where(excess > 0.0, log_scale, high)
        slope = np.mean(share * (1.0 - share), axis=0)
        newton = log_scale - excess / np.maximum(slope, np.finfo(float).tiny)
        inside = (newton >= low) & (newton <= high)
        log_scale = np.where(inside, newton, 0.5 * (low + high))
    return np.exp(log_scale)


def _search_rate(prior: GeneralizedInverseGaussian, count: int, total: float) -> float:
    """argmin over the rate of count · log Z(order, scale, rate) + rate · Σ E[tau], convex."""
    if not (isfinite(total) and 0.0 < prior.rate < inf):
        return nan

    def loss(log_rate: float) -> float:
        candidate = replace(prior, rate=exp(log_rate))
        return count * float(gig.log_normalizer(candidate)) + exp(log_rate) * total

    from scipy.optimize import minimize_scalar  # heavy to load, and needed for this family alone

    center = log(prior.rate)
    # Where the best rate is 0 (an order below -1 and large tau), the prior is an inverse gamma to
    # rounding at scale · rate = 1e-16, and still a member of its own family.
    lowest = max(center - 20.0, min(center, log(1e-16 / prior.scale)))
    found = minimize_scalar(
        loss, bounds=(lowest, center + 20.0), method="bounded", options={"xatol": 1e-10}
    )
    return exp(float(found.x)) if found.fun <= loss(center) else float(prior.rate)
