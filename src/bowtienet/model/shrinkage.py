"""Section 2.2: shrinkage of weights, W ~ N(0, tau psi), by the priors of tau and psi.

They are GIG, squares of half-Cauchy variables, or held fixed.

tau (one per layer) and psi (one per weight) play the same part: given the other, a set of
`count` squared weights is Gaussian with the scale x, and the conjugate update is

    prior GIG(p, s, r)  ->  posterior GIG(p - count/2, s + ½ Σ (scaled squares), r).

The orders of the posteriors are therefore known from the start and never move, which is why no
E[log x] is ever needed: in the ELBO those of the weights' prior cancel those of p and q exactly.
The half-Cauchy is an inverse gamma, order -½, whose scale is random.

The regularised horseshoe multiplies the prior of each weight by exp(-W²/(2c²)), c² a slab of its
own: a pseudo-observation of zero.
"""

from __future__ import annotations

from dataclasses import dataclass
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
"""Free parameters of each name, with their defaults, and those that make the family."""


@dataclass(frozen=True)
class Prior:
    """A shrinkage prior of the weights, W ~ N(0, tau psi), in the paper's letters.

    tau (one for each layer) and psi (one for each weight) are GIG(nu, delta, lambda) with density
    proportional to x^(nu-1) exp(-(delta²/x + lambda² x)/2), or squares of half-Cauchy variables.

    Parameters
    ----------
    family : {"student_t", "laplace", "normal_gamma", "normal_inverse_gaussian", "gig", \
            "gaussian", "horseshoe", "regularized_horseshoe"}
        Name of the marginal prior of a weight.
    nu_global, nu_local : float, optional
        Orders of "student_t" (negative), "normal_gamma" (positive) and "gig".
    delta_global, delta_local : float, optional
        Scales of the families that have one; for the horseshoes the half-Cauchy's scale, for
        "gaussian" the (fixed) root of tau and psi. The default `delta_global` of "student_t"
        follows the data as in the paper, min(√max abs(coefficient), 10) of a linear fit.
    lambda_global, lambda_local : float, optional
        Rates of "laplace", "normal_gamma", "normal_inverse_gaussian" and "gig".
    slab : (float, float)
        Degrees of freedom and scale of the Student-t slab of "regularized_horseshoe".

    Notes
    -----
    delta_global is divided by the root of the number of hidden layers and delta_local by the root
    of the number of inputs of a layer, so that deeper and wider networks shrink more; lambda is
    multiplied by the same roots.

    Examples
    --------
    >>> Prior("student_t", nu_local=-2.0, delta_local=0.5).delta_local
    0.5
    """

    family: str
    nu_global: float | None = None
    delta_global: float | None = None
    lambda_global: float | None = None
    nu_local: float | None = None
    delta_local: float | None = None
    lambda_local: float | None = None
    slab: tuple[float, float] = (4.0, 2.0)


def build_shrinkage(prior: str | Prior, which: str = "local") -> ShrinkagePrior:
    """Prior of tau ("global") or psi ("local") of a layer with one input.

    scale = delta²/2 and rate = lambda²/2, but the scale of a half-Cauchy and the value of a fixed
    variance are delta². Parameters that are not given have the defaults of the family.

    Examples
    --------
    >>> build_shrinkage(Prior("laplace", lambda_local=2.0))
    GeneralizedInverseGaussian(order=1.0, scale=0.0, rate=2.0)
    """
    prior = Prior(prior) if isinstance(prior, str) else prior
    family = prior.family
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"unknown prior {family!r}: choose one of {', '.join(FAMILIES)}.")
    free, fixed = FAMILIES[family]
    values, half = {**free, **fixed}, 1.0 if set(free) == {"scale"} else 0.5
    for letter, name in (("nu", "order"), ("delta", "scale"), ("lambda", "rate")):
        value = getattr(prior, f"{letter}_{which}")
        if value is None:
            continue
        if name not in free:
            raise ValueError(f"prior {family!r} has no {letter}_{which}: leave it out.")
        check = positive if letter == "delta" else number
        value = check(value, f"{letter}_{which}")
        values[name] = value if letter == "nu" else half * value**2
    if family == "gaussian":
        return PointMass(value=values["scale"])
    if set(free) == {"scale"}:
        return HalfCauchy(scale=values["scale"])
    gig.check_proper(**values, name=f"prior {family!r}")
    return GeneralizedInverseGaussian(**values)


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
