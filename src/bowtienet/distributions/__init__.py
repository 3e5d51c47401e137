"""Families of distributions: parameters to moments, entropies and log-normalisers.

One module per family, each a frozen container and pure functions of it; none knows a network.
"""

from bowtienet.distributions import (
    bernoulli,
    bessel,
    gated,
    gaussian,
    generalized_inverse_gaussian,
    inverse_gamma,
    polya_gamma,
)
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma

__all__ = [
    "GaussianRows",
    "GeneralizedInverseGaussian",
    "InverseGamma",
    "bernoulli",
    "bessel",
    "gated",
    "gaussian",
    "generalized_inverse_gaussian",
    "inverse_gamma",
    "polya_gamma",
]
