"""Section 2.2: shrinkage of weights, W ~ N(0, tau psi), by the priors of tau and psi.

They are GIG, squares of half-Cauchy variables, or held fixed.

tau (one per layer) and psi (one per weight) play the same part: given the other, a set of
`count` squared weights is Gaussian with the scale x, and the conjugate update is

    prior GIG(p, s, r)  ->  posterior GIG(p - count/2, s + ½ Σ (scaled squares), r).

The orders of the posteriors are therefore known from the start and never move, which is why no
E[log x] is ever needed: in the ELBO those of the weights' prior cancel those of p and q exactly.
The half-Cauchy is an inverse gamma, order -½, whose scale has a distribution of its own.

The regularised horseshoe multiplies the prior of each weight by exp(-W²/(2c²)), c² a slab of its
own: a pseudo-observation of zero.
"""

from __future__ import annotations

from math import log
from typing import TypeAlias

from bowtienet._arrays import Array, namespace
from bowtienet._params import number, positive
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions import half_cauchy
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass

Shrinkage: TypeAlias = GeneralizedInverseGaussian | PointMass
"""q of a scale."""
ShrinkagePrior: TypeAlias = Shrinkage | HalfCauchy

FAMILIES: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "student_t": ({"order": -1.5, "scale": 0.5}, {"rate": 0.0}),
    "laplace": ({"rate": 0.5}, {"order": 1.0, "scale": 0.0}),
    "normal_gamma": ({"order": 0.5, "rate": 0.5}, {"scale": 0.0}),
    "normal_inverse_gaussian": ({"scale": 0.5, "rate": 0.5}, {"order": -0.5}),
    "gig": ({"order": -1.0, "scale": 0.5, "rate": 0.5}, {}),
    "horseshoe": ({"scale": 1.0}, {}),
    "regularized_horseshoe": ({"scale": 1.0}, {}),
    "gaussian": ({"scale": 1.0}, {}),
}
"""By name: the parameters that are free, with their defaults, and those that make the family."""


def build_shrinkage(family: str, **parameters: float) -> ShrinkagePrior:
    """Prior of a scale by the name of the prior that it gives a weight.

    Parameters
    ----------
    family : {"student_t", "laplace", "normal_gamma", "normal_inverse_gaussian", "gig", \
            "horseshoe", "regularized_horseshoe", "gaussian"}
        Name of the marginal prior of a weight.
    **parameters : float
        Those of `order`, `scale`, `rate` (in the paper's letters nu, delta²/2, lambda²/2) that the
        family leaves free; for the horseshoes `scale` is the median, for "gaussian" the value.

    Examples
    --------
    >>> build_shrinkage("laplace", rate=2.0)
    GeneralizedInverseGaussian(order=1.0, scale=0.0, rate=2.0)
    """
    free, fixed = free_parameters(family), FAMILIES[family][1]
    unknown = sorted(set(parameters) - set(free))
    if unknown:
        raise ValueError(
            f"prior {family!r} has no parameter {', '.join(unknown)}: it takes {', '.join(free)}."
        )
    values = {
        name: number(value, f"{name} of prior {family!r}")
        for name, value in {**free, **parameters}.items()
    }
    if set(free) == {"scale"}:
        scale = positive(values["scale"], f"scale of prior {family!r}")
        return PointMass(value=scale) if family == "gaussian" else HalfCauchy(scale=scale)
    gig.check_proper(**values, **fixed, name=f"prior {family!r}")
    return GeneralizedInverseGaussian(**values, **fixed)


def free_parameters(family: str) -> dict[str, float]:
    """The parameters that a family leaves free, with their defaults."""
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"unknown prior {family!r}: choose one of {', '.join(FAMILIES)}.")
    return FAMILIES[family][0]


def scaled(prior: ShrinkagePrior, factor: float) -> ShrinkagePrior:
    """Prior of factor·x when x has the given prior: GIG(p, factor·s, r/factor).

    For the Student-t this is the paper's delta -> delta / sqrt(L) or delta / sqrt(D_{l-1}); scaling
    the variable itself carries the rule over to the families whose delta is zero.
    """
    if isinstance(prior, PointMass):
        return PointMass(value=prior.value * factor)
    if isinstance(prior, HalfCauchy):
        return HalfCauchy(scale=prior.scale * factor)
    return GeneralizedInverseGaussian(
        order=prior.order, scale=prior.scale * factor, rate=prior.rate / factor
    )


def mean_inverse(q: Shrinkage) -> Array:
    """E[1/x]."""
    return 1.0 / q.value if isinstance(q, PointMass) else gig.mean_inverse(q)


def conjugate_update(prior: ShrinkagePrior, count: int, half_squares: Array) -> Shrinkage:
    """q(x) from the prior and ½ Σ of `count` squared weights, each over its other scale."""
    if isinstance(prior, PointMass):
        return prior
    if isinstance(prior, HalfCauchy):
        return half_cauchy.update(prior, count, half_squares)
    return GeneralizedInverseGaussian(
        order=prior.order - 0.5 * count, scale=prior.scale + half_squares, rate=prior.rate
    )


def slab_update(prior: InverseGamma, squares: Array) -> InverseGamma:
    """q(c²) = IG(a + ½, b + ½ E[W²]) from the prior IG(a, b), one for each weight."""
    scale = prior.scale + 0.5 * squares
    ones = namespace(scale).ones_like(scale)
    return InverseGamma(concentration=(prior.concentration + 0.5) * ones, scale=scale)


def elbo_term(
    q: Shrinkage,
    prior: ShrinkagePrior,
    n_weights: int,
    present: Array | None = None,
    axes: tuple[int, ...] = (),
) -> Array:
    """E_q[log p(x) - log q(x)] with the -½ E[log x] of the prior of each of `n_weights` weights.

    A GIG factor may hold many scales, of which only those `present` count, summed over `axes`.
    """
    if isinstance(prior, PointMass):
        return -0.5 * n_weights * log(prior.value)
    assert isinstance(q, GeneralizedInverseGaussian)
    if isinstance(prior, HalfCauchy):
        terms = half_cauchy.expected_log_ratio(q, prior)
    else:
        terms = gig.expected_log_ratio(q, prior)
    xp = namespace(terms)
    if present is not None:
        terms = xp.where(present, terms, xp.zeros_like(terms))
    return xp.sum(terms, axis=axes) if axes else terms
