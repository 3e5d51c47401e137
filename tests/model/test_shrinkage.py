"""Priors of scales: names, parameters, what is improper, and the scaling of the variable."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions import half_cauchy
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.shrinkage import (
    FAMILIES,
    build_shrinkage,
    conjugate_update,
    elbo_term,
    mean_inverse,
    scaled,
)

X = np.array([0.05, 0.3, 1.0, 2.5, 9.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_scaled_is_the_density_of_the_scaled_variable(family):
    """p(factor · x) by the change of variables, p_scaled(c x) = p(x) / c, at several points."""
    prior, factor = build_shrinkage(family), 0.3
    if isinstance(prior, PointMass):
        assert scaled(prior, factor) == PointMass(value=factor * prior.value)
        return
    log_density = half_cauchy.log_density if isinstance(prior, HalfCauchy) else gig.log_density
    np.testing.assert_allclose(
        log_density(scaled(prior, factor), factor * X),
        log_density(prior, X) - np.log(factor),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_conjugate_update_is_prior_times_likelihood(family, rng):
    """log p(x) + Σ log N(w | 0, x) and log q(x) differ by a constant in x, for two networks.

    Of a half-Cauchy p(x) is the inverse gamma that 1/nu makes, at the mean of 1/nu.
    """
    prior = build_shrinkage(family)
    half_squares = 0.5 * np.sum(rng.normal(size=(2, 6)) ** 2, axis=-1)[:, None]
    q = conjugate_update(prior, 6, half_squares)
    if isinstance(prior, PointMass):
        assert q == prior
        assert mean_inverse(q) == 1.0 / prior.value
        return
    if isinstance(prior, HalfCauchy):
        precision = 1.0 / (1.0 / prior.scale + gig.mean_inverse(q))
        prior = GeneralizedInverseGaussian(order=-0.5, scale=precision, rate=0.0)
    assert isinstance(q, GeneralizedInverseGaussian)
    likelihood = -3.0 * np.log(X) - half_squares / X
    difference = gig.log_density(prior, X) + likelihood - gig.log_density(q, X)
    np.testing.assert_allclose(difference, np.tile(difference[:, :1], 5), rtol=1e-11)
    np.testing.assert_array_equal(mean_inverse(q), gig.mean_inverse(q))


@pytest.mark.parametrize("family", ["student_t", "horseshoe", "gaussian"])
def test_term_of_the_bound_counts_scales_that_are_present(family, rng):
    """That of a fixed scale is the determinant of its prior."""
    prior, there = build_shrinkage(family), np.array([[True, False, True], [True, True, False]])
    q = conjugate_update(prior, 1, rng.uniform(0.1, 2.0, size=(2, 2, 3)))
    terms = elbo_term(q, prior, 4, there, axes=(-2, -1))
    if isinstance(prior, PointMass):
        assert terms == pytest.approx(-0.5 * 4 * np.log(prior.value))
        prior = PointMass(value=3.0)
        assert elbo_term(prior, prior, 20) == pytest.approx(-0.5 * 20 * np.log(3.0))
        return
    ratios = elbo_term(q, prior, 1)
    assert ratios.shape == (2, 2, 3)
    np.testing.assert_allclose(terms, ratios[:, there].sum(axis=-1), rtol=1e-13)
