"""Priors of scales: names, parameters, what is improper, and the scaling of the variable."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions import half_cauchy
from bowtienet._old.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.model.shrinkage import (
    FAMILIES,
    build_shrinkage,
    conjugate_update,
    elbo_term,
    mean_inverse,
    resting_precision,
    scaled,
    slab_update,
)
from bowtienet._old.model.simulate import sample_shrinkage

EXPECTED = {
    "student_t": ({"order": -2.0, "scale": 3.0}, (-2.0, 3.0, 0.0)),
    "laplace": ({"rate": 3.0}, (1.0, 0.0, 3.0)),
    "normal_gamma": ({"order": 2.0, "rate": 3.0}, (2.0, 0.0, 3.0)),
    "normal_inverse_gaussian": ({"scale": 2.0, "rate": 3.0}, (-0.5, 2.0, 3.0)),
    "gig": ({"order": 4.0, "scale": 2.0, "rate": 3.0}, (4.0, 2.0, 3.0)),
}
HORSESHOES = ("horseshoe", "regularized_horseshoe")


@pytest.mark.parametrize("family", EXPECTED)
def test_parameters_by_family(family: str) -> None:
    parameters, (order, scale, rate) = EXPECTED[family]
    expected = GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)
    assert build_shrinkage(family, **parameters) == expected


@pytest.mark.parametrize("family", HORSESHOES)
def test_horseshoes_have_half_cauchy_scales(family: str) -> None:
    assert build_shrinkage(family, scale=2) == HalfCauchy(scale=2.0)
    assert build_shrinkage(family) == HalfCauchy(scale=1.0)


def test_gaussian_is_a_fixed_scale() -> None:
    assert build_shrinkage("gaussian", variance=4) == PointMass(value=4.0)
    assert mean_inverse(build_shrinkage("gaussian", variance=4.0)) == 0.25


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_are_proper(family: str) -> None:
    prior = build_shrinkage(family)
    if isinstance(prior, GeneralizedInverseGaussian):
        assert np.isfinite(gig.log_normalizer(prior))


@pytest.mark.parametrize("bad", ["horse", None, ["laplace"]])
def test_an_unknown_name_is_named(bad: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(bad))):
        build_shrinkage(bad)


@pytest.mark.parametrize(
    ("family", "parameter"),
    [("student_t", "rate"), ("laplace", "order"), ("gig", "variance"), ("gaussian", "scale")]
    + [(family, "order") for family in HORSESHOES],
)
def test_an_unknown_parameter_is_named(family: str, parameter: str) -> None:
    with pytest.raises(ValueError, match=parameter):
        build_shrinkage(family, **{parameter: 1.0})


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("student_t", {"order": 0.5}),
        ("student_t", {"scale": 0.0}),
        ("laplace", {"rate": -1.0}),
        ("normal_gamma", {"order": 0.0}),
        ("normal_inverse_gaussian", {"scale": float("nan")}),
        ("gig", {"scale": 0.0, "rate": 0.0}),
        ("horseshoe", {"scale": 0.0}),
        ("regularized_horseshoe", {"scale": float("inf")}),
        ("gaussian", {"variance": 0.0}),
        ("gaussian", {"variance": float("inf")}),
    ],
)
def test_improper_priors(family: str, parameters: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=family):
        build_shrinkage(family, **parameters)


@pytest.mark.parametrize("bad", [None, "a", [1.0, 2.0]])
def test_parameters_must_be_numbers(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"laplace.*rate|rate.*laplace"):
        build_shrinkage("laplace", rate=bad)


@pytest.mark.parametrize("family", [*EXPECTED, "horseshoe"])
@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_scaled_is_the_density_of_the_scaled_variable(family: str, factor: float) -> None:
    """p(factor · x) by the change of variables, p_scaled(c x) = p(x) / c, at several points."""
    prior = build_shrinkage(family)
    x = np.array([0.05, 0.4, 1.0, 3.0, 20.0])
    log_density = half_cauchy.log_density if family == "horseshoe" else gig.log_density
    np.testing.assert_allclose(
        log_density(scaled(prior, factor), factor * x),
        log_density(prior, x) - np.log(factor),
        rtol=1e-10,
        atol=1e-12,
    )


def test_scaled_gaussian() -> None:
    assert scaled(PointMass(value=2.0), 0.25) == PointMass(value=0.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_conjugate_update_is_prior_times_likelihood(family: str, rng: np.random.Generator) -> None:
    """log p(x) + Σ log N(w | 0, x) and log q(x) differ by a constant in x.

    Of a half-Cauchy p(x) is the inverse gamma that 1/nu makes, at the mean of 1/nu.
    """
    prior = build_shrinkage(family)
    weights = rng.normal(size=6)
    q = conjugate_update(prior, 6, np.asarray(0.5 * np.sum(weights**2)))
    if isinstance(prior, PointMass):
        assert q == prior
        return
    if isinstance(prior, HalfCauchy):
        precision = 1.0 / (1.0 / prior.scale + float(gig.mean_inverse(q)))
        prior = GeneralizedInverseGaussian(order=-0.5, scale=precision, rate=0.0)
    assert isinstance(q, GeneralizedInverseGaussian)
    x = np.array([0.05, 0.3, 1.0, 2.5, 9.0])
    likelihood = -3.0 * np.log(x) - 0.5 * np.sum(weights**2) / x
    difference = gig.log_density(prior, x) + likelihood - gig.log_density(q, x)
    np.testing.assert_allclose(difference, difference[0], rtol=1e-11)


@pytest.mark.parametrize("family", FAMILIES)
def test_resting_precision_is_one_over_a_scale_of_the_prior(family: str) -> None:
    """Scaled with it, and between the quartiles of 1/x."""
    prior = build_shrinkage(family)
    precision = resting_precision(prior)
    assert resting_precision(scaled(prior, 0.1)) == pytest.approx(10.0 * precision)
    inverse = 1.0 / sample_shrinkage(prior, np.random.default_rng(0), (4001,))
    low, high = np.quantile(inverse, [0.1, 0.9])
    assert low <= precision <= high


def test_slab_update(rng: np.random.Generator) -> None:
    """N(0 | W, c²) IG(c² | a, b) is IG(a + ½, b + W²/2) up to a constant in c²."""
    weight, x = 1.3, np.array([0.05, 0.3, 1.0, 2.5, 9.0])
    q = slab_update(InverseGamma(concentration=1.7, scale=0.6), np.array([[weight**2]]))
    assert q.concentration.shape == q.scale.shape == (1, 1)
    log_joint = stats.norm(0.0, np.sqrt(x)).logpdf(weight)
    log_joint = log_joint + stats.invgamma(1.7, scale=0.6).logpdf(x)
    law = stats.invgamma(float(q.concentration[0, 0]), scale=float(q.scale[0, 0]))
    difference = log_joint - law.logpdf(x)
    np.testing.assert_allclose(difference, difference[0], rtol=1e-11)


def test_bound_of_a_fixed_scale_is_the_determinant_of_its_prior() -> None:
    prior = PointMass(value=3.0)
    assert elbo_term(prior, prior, 5, n_scales=4) == pytest.approx(-0.5 * 20 * np.log(3.0))
