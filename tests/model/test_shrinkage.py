"""Priors of scales: names, parameters, what is improper, and the scaling of the variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.shrinkage import (
    FAMILIES,
    build_shrinkage,
    conjugate_update,
    elbo_term,
    mean_inverse,
    scaled,
)

EXPECTED = {
    "student_t": ({"order": -2.0, "scale": 3.0}, (-2.0, 3.0, 0.0)),
    "laplace": ({"rate": 3.0}, (1.0, 0.0, 3.0)),
    "normal_gamma": ({"order": 2.0, "rate": 3.0}, (2.0, 0.0, 3.0)),
    "normal_inverse_gaussian": ({"scale": 2.0, "rate": 3.0}, (-0.5, 2.0, 3.0)),
    "gig": ({"order": 4.0, "scale": 2.0, "rate": 3.0}, (4.0, 2.0, 3.0)),
}


def test_the_names_are_those_of_the_issue() -> None:
    assert set(FAMILIES) == {*EXPECTED, "gaussian"}


@pytest.mark.parametrize("family", EXPECTED)
def test_parameters_by_family(family: str) -> None:
    parameters, (order, scale, rate) = EXPECTED[family]
    expected = GeneralizedInverseGaussian(order=order, scale=scale, rate=rate)
    assert build_shrinkage(family, **parameters) == expected


def test_gaussian_is_a_fixed_scale() -> None:
    assert build_shrinkage("gaussian", variance=4) == PointMass(value=4.0)
    assert mean_inverse(build_shrinkage("gaussian", variance=4.0)) == 0.25


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_are_proper(family: str) -> None:
    prior = build_shrinkage(family)
    if isinstance(prior, GeneralizedInverseGaussian):
        assert np.isfinite(gig.log_normalizer(prior))


def test_the_papers_default_is_nu_minus_one_and_a_half() -> None:
    assert build_shrinkage("student_t").order == -1.5


@pytest.mark.parametrize("bad", ["horseshoe", "", "Laplace", None, 3])
def test_an_unknown_name_is_told_the_known_ones(bad: Any) -> None:
    with pytest.raises(ValueError, match="unknown prior") as error:
        build_shrinkage(bad)
    assert all(name in str(error.value) for name in FAMILIES)


def test_a_name_that_cannot_be_looked_up() -> None:
    with pytest.raises(ValueError, match="unknown prior"):
        build_shrinkage(["laplace"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "parameter", "known"),
    [
        ("student_t", "rate", ["order", "scale"]),
        ("laplace", "order", ["rate"]),
        ("laplace", "scale", ["rate"]),
        ("normal_gamma", "scale", ["order", "rate"]),
        ("normal_inverse_gaussian", "order", ["scale", "rate"]),
        ("gig", "variance", ["order", "scale", "rate"]),
        ("gaussian", "scale", ["variance"]),
        ("student_t", "delta", ["order", "scale"]),
    ],
)
def test_an_unknown_parameter_is_told_the_known_ones(
    family: str, parameter: str, known: list[str]
) -> None:
    with pytest.raises(ValueError, match=f"no parameter {parameter}") as error:
        build_shrinkage(family, **{parameter: 1.0})
    assert all(name in str(error.value) for name in [family, *known])


IMPROPER = [
    ("student_t", {"order": 0.0}, "order negative"),
    ("student_t", {"order": 0.5}, "order negative"),
    ("student_t", {"scale": 0.0}, "positive"),
    ("student_t", {"scale": -1.0}, "negative"),
    ("student_t", {"order": 1.0, "scale": 0.0}, "positive"),
    ("laplace", {"rate": 0.0}, "positive"),
    ("laplace", {"rate": -1.0}, "negative"),
    ("normal_gamma", {"order": 0.0}, "order positive"),
    ("normal_gamma", {"order": -1.0}, "order positive"),
    ("normal_gamma", {"rate": 0.0}, "positive"),
    ("normal_gamma", {"rate": -1.0}, "negative"),
    ("normal_inverse_gaussian", {"scale": 0.0}, "positive scale"),
    ("normal_inverse_gaussian", {"scale": -1.0}, "negative"),
    ("normal_inverse_gaussian", {"rate": -1.0}, "negative"),
    ("gig", {"order": 1.0, "rate": 0.0}, "positive rate"),
    ("gig", {"order": 0.0, "rate": 0.0}, "positive rate"),
    ("gig", {"order": -1.0, "scale": 0.0}, "positive scale"),
    ("gig", {"order": 0.0, "scale": 0.0}, "positive scale"),
    ("gig", {"scale": 0.0, "rate": 0.0}, "positive"),
    ("gaussian", {"variance": 0.0}, "positive"),
    ("gaussian", {"variance": -1.0}, "positive"),
]


@pytest.mark.parametrize(("family", "parameters", "remedy"), IMPROPER)
def test_improper_priors(family: str, parameters: dict[str, float], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy) as error:
        build_shrinkage(family, **parameters)
    message = str(error.value)
    assert family in message
    assert all(str(value) in message for value in parameters.values())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_must_be_finite(family: str, bad: float) -> None:
    parameters = EXPECTED.get(family, ({"variance": 1.0},))[0]
    for name in parameters:
        with pytest.raises(ValueError, match="finite") as error:
            build_shrinkage(family, **{name: bad})
        assert name in str(error.value)
        assert family in str(error.value)


@pytest.mark.parametrize("bad", [None, "a", [1.0, 2.0]])
def test_parameters_must_be_numbers(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"laplace.*rate|rate.*laplace"):
        build_shrinkage("laplace", rate=bad)


def test_limits_may_be_reached_from_gig() -> None:
    """With the order on the right side, scale 0 or rate 0 is the gamma or inverse gamma case."""
    assert build_shrinkage("gig", order=2.0, scale=0.0, rate=1.0).scale == 0.0
    assert build_shrinkage("gig", order=-2.0, scale=1.0, rate=0.0).rate == 0.0


@pytest.mark.parametrize("family", EXPECTED)
@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_scaled_is_the_density_of_the_scaled_variable(family: str, factor: float) -> None:
    """p(factor · x) by the change of variables, p_scaled(c x) = p(x) / c, at several points."""
    prior = build_shrinkage(family)
    x = np.array([0.05, 0.4, 1.0, 3.0, 20.0])
    np.testing.assert_allclose(
        gig.log_density(scaled(prior, factor), factor * x),
        gig.log_density(prior, x) - np.log(factor),
        rtol=1e-10,
        atol=1e-12,
    )


def test_scaled_gaussian() -> None:
    assert scaled(PointMass(value=2.0), 0.25) == PointMass(value=0.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_conjugate_update_is_prior_times_likelihood(family: str, rng: np.random.Generator) -> None:
    """log p(x) + Σ log N(w | 0, x) and log q(x) differ by a constant in x."""
    prior = build_shrinkage(family)
    weights = rng.normal(size=6)
    q = conjugate_update(prior, 6, np.asarray(0.5 * np.sum(weights**2)))
    if isinstance(prior, PointMass):
        assert q == prior
        return
    assert isinstance(q, GeneralizedInverseGaussian)
    x = np.array([0.05, 0.3, 1.0, 2.5, 9.0])
    likelihood = -3.0 * np.log(x) - 0.5 * np.sum(weights**2) / x
    difference = gig.log_density(prior, x) + likelihood - gig.log_density(q, x)
    np.testing.assert_allclose(difference, difference[0], rtol=1e-11)


def test_bound_of_a_fixed_scale_is_the_determinant_of_its_prior() -> None:
    prior = PointMass(value=3.0)
    assert elbo_term(prior, prior, 5, n_scales=4) == pytest.approx(-0.5 * 20 * np.log(3.0))
