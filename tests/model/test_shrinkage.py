"""Priors of scales: names, parameters, what is improper, and the scaling of the variable."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from bowtienet.distributions import generalized_inverse_gaussian as gig
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
from tests.builders import log_density

EXPECTED: dict[str, tuple[dict[str, float], Any]] = {
    "student_t": ({"order": -2.0, "scale": 3.0}, (-2.0, 3.0, 0.0)),
    "laplace": ({"rate": 3.0}, (1.0, 0.0, 3.0)),
    "normal_gamma": ({"order": 2.0, "rate": 3.0}, (2.0, 0.0, 3.0)),
    "normal_inverse_gaussian": ({"scale": 2.0, "rate": 3.0}, (-0.5, 2.0, 3.0)),
    "gig": ({"order": 4.0, "scale": 2.0, "rate": 3.0}, (4.0, 2.0, 3.0)),
    "horseshoe": ({"scale": 2}, HalfCauchy(scale=2.0)),
    "regularized_horseshoe": ({"scale": 2}, HalfCauchy(scale=2.0)),
    "gaussian": ({"variance": 4}, PointMass(value=4.0)),
}
X = np.array([0.05, 0.3, 1.0, 2.5, 9.0])


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_by_family(family):
    parameters, expected = EXPECTED[family]
    if isinstance(expected, tuple):
        names = ("order", "scale", "rate")
        expected = GeneralizedInverseGaussian(**dict(zip(names, expected, strict=True)))
    assert build_shrinkage(family, **parameters) == expected
    default = build_shrinkage(family)
    assert type(default) is type(expected)
    if isinstance(default, GeneralizedInverseGaussian):
        assert np.isfinite(gig.log_normalizer(default))


@pytest.mark.parametrize("bad", ["horse", None, ["laplace"]])
def test_an_unknown_name_is_named(bad):
    with pytest.raises(ValueError, match=re.escape(repr(bad))):
        build_shrinkage(bad)


@pytest.mark.parametrize(
    ("family", "parameters", "words"),
    [
        ("student_t", {"rate": 1.0}, "rate"),
        ("laplace", {"order": 1.0}, "order"),
        ("gig", {"variance": 1.0}, "variance"),
        ("gaussian", {"scale": 1.0}, "scale"),
        ("horseshoe", {"order": 1.0}, "order"),
        ("student_t", {"order": 0.0}, "student_t"),
        ("student_t", {"scale": 0.0}, "student_t"),
        ("laplace", {"rate": -1.0}, "laplace"),
        ("normal_gamma", {"order": 0.0}, "normal_gamma"),
        ("normal_inverse_gaussian", {"scale": float("nan")}, "normal_inverse_gaussian"),
        ("gig", {"scale": 0.0, "rate": 0.0}, "gig"),
        ("horseshoe", {"scale": 0.0}, "horseshoe"),
        ("regularized_horseshoe", {"scale": float("inf")}, "regularized_horseshoe"),
        ("gaussian", {"variance": 0.0}, "gaussian"),
        ("gaussian", {"variance": float("inf")}, "gaussian"),
        ("laplace", {"rate": None}, "rate of prior 'laplace'"),
        ("laplace", {"rate": [1.0, 2.0]}, "rate of prior 'laplace'"),
    ],
)
def test_unknown_parameters_and_improper_priors(family, parameters, words):
    with pytest.raises(ValueError, match=words):
        build_shrinkage(family, **parameters)


@pytest.mark.parametrize("family", FAMILIES)
def test_scaled_is_the_density_of_the_scaled_variable(family):
    """p(factor · x) by the change of variables, p_scaled(c x) = p(x) / c, at several points."""
    prior, factor = build_shrinkage(family), 0.3
    if isinstance(prior, PointMass):
        assert scaled(prior, factor) == PointMass(value=factor * prior.value)
        return
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
    difference = log_density(prior, X) + likelihood - log_density(q, X)
    np.testing.assert_allclose(difference, np.tile(difference[:, :1], 5), rtol=1e-11)
    np.testing.assert_array_equal(mean_inverse(q), gig.mean_inverse(q))


@pytest.mark.parametrize("family", ["student_t", "horseshoe", "gaussian"])
def test_term_of_the_bound_counts_scales_that_are_present(family, rng):
    """That of a fixed scale is the determinant of its prior."""
    prior, there = build_shrinkage(family), np.array([[True, False, True], [True, True, False]])
    q = conjugate_update(prior, 1, rng.uniform(0.1, 2.0, size=(2, 2, 3)))
    terms = elbo_term(q, prior, 1, n_scales=4, present=there, axes=(-2, -1))
    if isinstance(prior, PointMass):
        assert terms == pytest.approx(-0.5 * 4 * np.log(prior.value))
        prior = PointMass(value=3.0)
        assert elbo_term(prior, prior, 5, n_scales=4) == pytest.approx(-0.5 * 20 * np.log(3.0))
        return
    ratios = elbo_term(q, prior, 1)
    assert ratios.shape == (2, 2, 3)
    np.testing.assert_allclose(terms, ratios[:, there].sum(axis=-1), rtol=1e-13)
