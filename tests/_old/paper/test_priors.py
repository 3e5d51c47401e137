"""The priors' densities against integrals, the shrinkage against its formula, and the figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, special, stats

from benchmarks._old.paper.experiments import priors
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.model.shrinkage import build_shrinkage, scaled

SHRINKING = ["student_t", "laplace", "normal_gamma", "normal_inverse_gaussian"]


@pytest.mark.parametrize("family", SHRINKING)
@pytest.mark.parametrize("w", [0.05, 0.7, 4.0])
def test_marginal_is_the_integral_over_the_scale(family: str, w: float) -> None:
    prior = build_shrinkage(family)

    def integrand(t: float) -> float:
        psi = np.exp(t)
        return float(
            stats.norm.pdf(w, scale=np.sqrt(psi)) * np.exp(gig.log_density(prior, psi)) * psi
        )

    expected = integrate.quad(integrand, -40.0, 40.0, points=[-5.0, 0.0, 5.0], limit=400)[0]
    assert np.exp(priors.log_marginal(prior, np.array([w]))[0]) == pytest.approx(expected, rel=1e-7)


def test_marginals_that_have_names() -> None:
    w = np.array([-3.0, -0.2, 0.4, 8.0])
    student = priors.log_marginal(build_shrinkage("student_t", order=-1.5, scale=0.5), w)
    np.testing.assert_allclose(student, stats.t.logpdf(w, df=3, scale=1.0 / np.sqrt(3.0)))
    laplace = priors.log_marginal(build_shrinkage("laplace", rate=0.5), w)
    np.testing.assert_allclose(laplace, stats.laplace.logpdf(w))
    gaussian = priors.log_marginal(build_shrinkage("gaussian", variance=4.0), w)
    np.testing.assert_allclose(gaussian, stats.norm.logpdf(w, scale=2.0))
    inverse = build_shrinkage("normal_inverse_gaussian", scale=0.5, rate=0.5)
    np.testing.assert_allclose(
        priors.log_marginal(inverse, w), stats.norminvgauss.logpdf(w, 1.0, 0.0)
    )


@pytest.mark.parametrize("family", priors.FAMILIES)
def test_median_one(family: str) -> None:
    prior = priors.with_median_one(priors.build_prior(family))
    inside = (
        2.0
        * integrate.quad(
            lambda w: float(np.exp(priors.log_marginal(prior, np.array([w]))[0])),
            0.0,
            1.0,
            limit=200,
        )[0]
    )
    assert inside == pytest.approx(0.5, abs=1e-6)
    assert priors.mass_within(prior, 1.0) + priors.mass_beyond(prior, 1.0) == pytest.approx(1.0)


def test_horseshoes_are_their_closed_forms() -> None:
    """e^u E_1(u) for the horseshoe, times the Student's factor of the slab (4, 2)."""
    w = np.array([0.01, 0.3, 1.0, 5.0, 20.0])
    u = 0.5 * w**2
    expected = special.exp1(u) * np.exp(u) / np.sqrt(2.0 * np.pi**3)
    plain = np.exp(priors.log_marginal(priors.build_prior("horseshoe"), w))
    np.testing.assert_allclose(plain, expected, rtol=1e-6)
    slabbed = np.exp(priors.log_marginal(priors.build_prior("regularized_horseshoe"), w))
    factor = (1.0 + w**2 / 16.0) ** -2.0
    ratio = slabbed / (expected * factor)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    assert ratio[0] > 1.0


@pytest.mark.parametrize(("family", "power"), [("horseshoe", 2.0), ("regularized_horseshoe", 6.0)])
def test_horseshoes_leave_large_values_alone(family: str, power: float) -> None:
    """Tails as w^-p leave 1 - p / y² of a large y, p being 2, and 4 more with the default slab."""
    y = np.array([0.3, 100.0])
    small, large = priors.kept_share(priors.with_median_one(priors.build_prior(family)), y)
    assert small < 0.6
    assert (1.0 - large) * y[1] ** 2 == pytest.approx(power, rel=0.02)


def test_mass_beyond_of_known_tails() -> None:
    laplace = build_shrinkage("laplace", rate=0.5)
    assert priors.mass_beyond(laplace, 20.0) == pytest.approx(np.exp(-20.0), rel=1e-6)
    student = build_shrinkage("student_t", order=-1.5, scale=1.5)
    assert priors.mass_beyond(student, 50.0) == pytest.approx(2.0 * stats.t.sf(50.0, 3), rel=1e-6)


def test_shrinkage_of_a_gaussian_is_constant_and_of_a_student_fades() -> None:
    y = np.array([0.5, 3.0, 40.0])
    gaussian = priors.kept_share(build_shrinkage("gaussian", variance=3.0), y)
    np.testing.assert_allclose(gaussian, 0.75)
    student = priors.kept_share(build_shrinkage("student_t"), y)
    assert np.all(np.diff(student) > 0.0)
    assert student[-1] > 0.99


def test_shrinkage_is_the_posterior_mean() -> None:
    prior, y = build_shrinkage("laplace", rate=0.8), 1.7
    w = np.linspace(-30.0, 30.0, 200_001)
    density = np.exp(priors.log_marginal(prior, w)) * stats.norm.pdf(y - w)
    expected = np.sum(w * density) / np.sum(density) / y
    assert priors.kept_share(prior, np.array([y]))[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("family", priors.JOINT)
def test_weights_of_a_layer_depend_on_each_other_through_tau(family: str) -> None:
    shared, local = build_shrinkage(family), scaled(build_shrinkage(family), 0.25)
    first, second = np.array([0.3, 2.0]), np.array([0.2, 3.0])
    joint = priors.joint_density(shared, local, first, second)
    for i, a in enumerate(first):
        for j, b in enumerate(second):

            def integrand(t: float, a: float = float(a), b: float = float(b)) -> float:
                tau = float(np.exp(t))
                both = priors.log_marginal(scaled(local, tau), np.array([a, b])).sum()
                return float(np.exp(both + gig.log_density(shared, tau)) * tau)

            expected = integrate.quad(integrand, -25.0, 15.0, points=[-2.0, 2.0], limit=200)[0]
            assert joint[i, j] == pytest.approx(expected, rel=1e-4)
    apart = np.outer(*(priors.layer_density(shared, local, w) for w in (first, second)))
    assert joint[1, 1] > 1.2 * apart[1, 1]  # large together
    assert joint[1, 0] < apart[1, 0]


def test_density_of_a_weight_integrates_to_one() -> None:
    shared, local = build_shrinkage("student_t"), build_shrinkage("student_t")
    t = np.linspace(-12.0, 16.0, 3000)
    mass = 2.0 * np.sum(priors.layer_density(shared, local, np.exp(t)) * np.exp(t)) * (t[1] - t[0])
    assert mass == pytest.approx(1.0, abs=1e-4)
