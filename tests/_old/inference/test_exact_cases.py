"""Cases with an exact answer: Bayesian linear regression and single conjugate blocks.

Without hidden layers and with fixed scales the model is y = Phi w + noise with w ~ N(0, S0) for
each output. Held noise makes q the exact posterior and the bound the exact evidence.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special, stats

from bowtienet._old import engine as bt
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.half_cauchy import HalfCauchy
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.inference import global_step
from bowtienet._old.inference.statistics import block_statistics
from bowtienet._old.model.shrinkage import build_shrinkage
from bowtienet._old.posterior.factors import LocalFactors
from bowtienet._old.posterior.initialize import build_factors
from bowtienet._old.posterior.moments import chain_moments
from tests._old import builders

HELD = 1e8
"""Concentration that holds the noise: it then moves by N/HELD, and the bound rounds at 1e-7."""
WEIGHT_VARIANCE, BIAS_VARIANCE = 0.6, 1.7
NOISE = np.array([0.3, 0.8])


def regression_data(rng, count=30):
    inputs = rng.normal(size=(count, 3))
    true = rng.normal(size=(2, 4))
    targets = true[:, 0] + inputs @ true[:, 1:].T + rng.normal(size=(count, 2)) * np.sqrt(NOISE)
    return inputs, targets


def linear_model(output_noise):
    """Weights ~ N(0, 2.0 · 0.3): tau and psi fixed at different values."""
    return bt.build_model(
        bt.build_architecture(3, (), 2),
        prior="gaussian",
        global_parameters={"variance": 2.0},
        local_parameters={"variance": WEIGHT_VARIANCE / 2.0},
        output_noise=output_noise,
        bias_variance=BIAS_VARIANCE,
        scale_with_size=False,
    )


def held_noise_model():
    return linear_model((HELD, HELD * NOISE))


def fit_linear(model, inputs, targets, weights=None):
    rows = bt.build_rows(inputs, targets, weights)
    start = bt.initialize(model, rows, np.random.default_rng(0), init="laplace")
    return bt.fit(model, rows, start, max_iter=60, tol=1e-14, accelerate=False)


def design(inputs):
    return np.column_stack([np.ones(len(inputs)), inputs])


def prior_covariance():
    return np.diag([BIAS_VARIANCE] + [WEIGHT_VARIANCE] * 3)


def exact_posterior(inputs, target, noise):
    phi = design(inputs)
    covariance = np.linalg.inv(np.linalg.inv(prior_covariance()) + phi.T @ phi / noise)
    return covariance @ phi.T @ target / noise, covariance


def exact_log_evidence(inputs, target, noise):
    """log N(y | 0, noise I + Phi S0 Phi')."""
    phi = design(inputs)
    covariance = noise * np.eye(len(inputs)) + phi @ prior_covariance() @ phi.T
    return float(stats.multivariate_normal(np.zeros(len(inputs)), covariance).logpdf(target))


# ------------------------------------------------------------------------------------------------
# Noise held
# ------------------------------------------------------------------------------------------------


def test_held_noise_gives_the_exact_posterior(rng):
    """To 1e-6: the noise itself moves by about N / HELD = 3e-7."""
    inputs, targets = regression_data(rng)
    weights = fit_linear(held_noise_model(), inputs, targets).factors.layers[0].weights
    for d in range(2):
        mean, covariance = exact_posterior(inputs, targets[:, d], NOISE[d])
        np.testing.assert_allclose(weights.mean[d], mean, rtol=1e-6)
        np.testing.assert_allclose(weights.covariance[d], covariance, rtol=1e-6, atol=1e-9)


def test_held_noise_gives_the_exact_predictive(rng):
    inputs, targets = regression_data(rng)
    new = rng.normal(size=(5, 3))
    result = fit_linear(held_noise_model(), inputs, targets)
    predictive = bt.predict(result.model, result.factors, new)
    for d in range(2):
        mean, covariance = exact_posterior(inputs, targets[:, d], NOISE[d])
        signal = np.einsum("ni,ij,nj->n", design(new), covariance, design(new))
        np.testing.assert_allclose(predictive.mean[:, d], design(new) @ mean, rtol=1e-6)
        np.testing.assert_allclose(predictive.signal_variance[:, d], signal, rtol=1e-6)
        np.testing.assert_allclose(predictive.noise_variance[:, d], NOISE[d], rtol=1e-6)


def test_held_noise_makes_the_bound_the_exact_evidence(rng):
    """To 1e-5 in about -70: log-gamma functions of 1e8 are differences of 1e9, good to 1e-6."""
    inputs, targets = regression_data(rng)
    result = fit_linear(held_noise_model(), inputs, targets)
    expected = sum(exact_log_evidence(inputs, targets[:, d], NOISE[d]) for d in range(2))
    assert result.elbo_history[-1] == pytest.approx(expected, abs=1e-5)
    assert float(result.elbo_terms.total) == result.elbo_history[-1]


def test_a_row_of_weight_two_is_two_rows_in_the_evidence(rng):
    inputs, targets = regression_data(rng, count=12)
    weights = np.array([1.0, 2.0] * 6)
    twice = np.repeat(np.arange(12), weights.astype(int))
    result = fit_linear(held_noise_model(), inputs, targets, weights)
    posterior = result.factors.layers[0].weights
    evidence = 0.0
    for d in range(2):
        data = inputs[twice], targets[twice, d], NOISE[d]
        evidence += exact_log_evidence(*data)
        mean, covariance = exact_posterior(*data)
        np.testing.assert_allclose(posterior.mean[d], mean, rtol=1e-6)
        np.testing.assert_allclose(posterior.covariance[d], covariance, rtol=1e-6, atol=1e-9)
    assert result.elbo_history[-1] == pytest.approx(evidence, abs=1e-5)


# ------------------------------------------------------------------------------------------------
# Noise learned
# ------------------------------------------------------------------------------------------------


def learned_log_evidence(inputs, target, concentration, scale):
    """log ∫ N(y | 0, s² I + Phi S0 Phi') IG(s²) ds², a quadrature over log s²."""
    prior = stats.invgamma(concentration, scale=scale)
    grid = np.linspace(np.log(1e-3), np.log(1e3), 4001)
    eigenvalues, vectors = np.linalg.eigh(design(inputs) @ prior_covariance() @ design(inputs).T)
    variances = np.exp(grid)[:, None] + eigenvalues
    rotated = vectors.T @ target
    log_likelihood = -0.5 * np.sum(np.log(2 * np.pi * variances) + rotated**2 / variances, axis=1)
    log_integrand = log_likelihood + prior.logpdf(np.exp(grid)) + grid
    return float(special.logsumexp(log_integrand) + np.log(grid[1] - grid[0]))


def test_learned_noise_bound_lies_just_below_the_exact_evidence(rng):
    """The gap is that of q(W) q(eta²), of the order of (number of weights)²/N: small, not zero."""
    inputs, targets = regression_data(rng, count=40)
    concentration, scale = 2.0, np.array([0.4, 0.9])
    result = fit_linear(linear_model((concentration, scale)), inputs, targets)
    expected = sum(
        learned_log_evidence(inputs, targets[:, d], concentration, scale[d]) for d in range(2)
    )
    gap = expected - result.elbo_history[-1]
    assert 0.0 < gap < 0.2


def test_gap_to_the_exact_evidence_closes_with_more_rows(rng):
    inputs, targets = regression_data(rng, count=400)
    gaps = []
    for count in (25, 100, 400):
        data = inputs[:count], targets[:count]
        bound = fit_linear(linear_model((2.0, 0.5)), *data).elbo_history[-1]
        exact = sum(learned_log_evidence(data[0], data[1][:, d], 2.0, 0.5) for d in range(2))
        gaps.append(exact - bound)
    assert gaps[0] > gaps[1] > gaps[2] > 0.0
    assert gaps[2] < 0.03


# ------------------------------------------------------------------------------------------------
# One conjugate block: the shrinkage scales, given weights that are known exactly
# ------------------------------------------------------------------------------------------------

SHARP = 1e-14
"""Variance of q(W) that makes the weights known: it adds SHARP / tau to the bound."""
FAMILIES = ("student_t", "laplace", "normal_gamma", "normal_inverse_gaussian", "gig")


def known_weights(rng, **shrinkage):
    """A model of one layer (2, 3) whose weights q knows exactly; scales fixed but for those given.

    Returns the model, the factors and the weights without biases.
    """
    model = linear_model((2.0, 0.5))
    model = replace(model, prior=replace(model.prior, **shrinkage))
    mean = rng.normal(size=(2, 4))
    factors = build_factors(model, [mean], rng)
    covariance = np.broadcast_to(SHARP * np.eye(4), (2, 4, 4)).copy()
    layer = replace(factors.layers[0], weights=GaussianRows(mean=mean, covariance=covariance))
    return model, replace(factors, layers=(layer,)), mean[:, 1:]


def log_marginal(prior, scaled_squares):
    """log ∫ Π_j N(W_j | 0, x) GIG(x) dx for Σ of W², by quadrature; the GIG normalised likewise."""
    count, total = scaled_squares.size, float(scaled_squares.sum())

    def log_kernel(u, order, scale):
        return order * u - scale * np.exp(-u) - prior.rate * np.exp(u)

    def log_integral(order, scale):
        grid = np.linspace(-30.0, 30.0, 6001)
        peak = float(np.max(log_kernel(grid, order, scale)))
        value, _ = integrate.quad(
            lambda u: np.exp(log_kernel(u, order, scale) - peak),
            -60.0,
            60.0,
            points=[float(grid[np.argmax(log_kernel(grid, order, scale))])],
            epsabs=0.0,
            epsrel=1e-12,
            limit=500,
        )
        return peak + np.log(value)

    after = log_integral(prior.order - 0.5 * count, prior.scale + 0.5 * total)
    return after - log_integral(prior.order, prior.scale) - 0.5 * count * np.log(2 * np.pi)


@pytest.mark.parametrize("family", FAMILIES)
def test_tau_alone_is_conjugate(rng, family):
    """With W and psi known, q(tau) is exact, so the block of the bound is log p(W | psi)."""
    prior = build_shrinkage(family)
    model, factors, weights = known_weights(rng, global_shrinkage=prior)
    updated = global_step.update_global_shrinkage(model, factors)
    psi = WEIGHT_VARIANCE / 2.0
    expected = log_marginal(prior, weights**2 / psi) - 0.5 * weights.size * np.log(psi)
    assert builders.weight_block(model, updated) == pytest.approx(expected, abs=1e-8)
    assert builders.weight_block(model, factors) < expected - 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_psi_alone_is_conjugate(rng, family):
    prior = build_shrinkage(family)
    model, factors, weights = known_weights(rng, local_shrinkage=(prior,))
    updated = global_step.update_local_shrinkage(model, factors)
    expected = sum(
        log_marginal(prior, np.array([w**2 / 2.0])) - 0.5 * np.log(2.0) for w in weights.ravel()
    )
    assert builders.weight_block(model, updated) == pytest.approx(expected, abs=1e-8)
    assert builders.weight_block(model, factors) < expected - 1e-3


HORSESHOE = HalfCauchy(scale=0.6)


def log_horseshoe(weights, prior, variance):
    """log ∫ Π_j N(W_j | 0, x · variance) p(x) dx of a half-Cauchy scale, by quadrature."""

    def product(log_x):
        x = np.exp(log_x)
        log_p = stats.norm(0.0, np.sqrt(x * variance)).logpdf(weights).sum()
        return np.exp(log_p + stats.f(1, 1, scale=prior.scale).logpdf(x) + log_x)

    points = [float(np.log(np.mean(weights**2) / variance))]
    return float(np.log(integrate.quad(product, -50.0, 50.0, points=points, limit=500)[0]))


def test_half_cauchy_scales_are_below_their_marginals(rng):
    """q(x) q(nu) is not exact: the block lies below log p(W), by less than 0.5 for each scale."""
    model, factors, weights = known_weights(rng, global_shrinkage=HORSESHOE)
    updated = global_step.update_global_shrinkage(model, factors)
    exact = log_horseshoe(weights.ravel(), HORSESHOE, WEIGHT_VARIANCE / 2.0)
    assert exact - 0.5 < builders.weight_block(model, updated) < exact
    model, factors, weights = known_weights(rng, local_shrinkage=(HORSESHOE,))
    updated = global_step.update_local_shrinkage(model, factors)
    exact = sum(log_horseshoe(np.array([w]), HORSESHOE, 2.0) for w in weights.ravel())
    assert exact - 0.5 * weights.size < builders.weight_block(model, updated) < exact


def with_slab(model, factors, slab):
    model = replace(model, prior=replace(model.prior, slab=slab))
    return model, global_step.update_slab(model, factors)


def test_slab_alone_is_conjugate(rng):
    """With the weights known it adds log t(W) - log t(0), t the Student-t that c² makes."""
    model, factors, weights = known_weights(rng)
    without = builders.weight_block(model, factors)
    model, factors = with_slab(model, factors, InverseGamma(concentration=1.5, scale=0.9))
    student = stats.t(3.0, scale=np.sqrt(0.6))
    expected = np.sum(student.logpdf(weights) - student.logpdf(0.0))
    assert builders.weight_block(model, factors) - without == pytest.approx(expected, abs=1e-8)


def test_a_slab_without_an_end_is_the_horseshoe(rng):
    """Bound, weights and EM of the regularised horseshoe tend to those of the horseshoe."""
    inputs, targets = regression_data(rng)
    rows, architecture = bt.build_rows(inputs, targets), bt.build_architecture(3, (4,), 2)
    plain = bt.build_model(architecture, prior="horseshoe")
    start = bt.initialize(plain, rows, np.random.default_rng(0), init="laplace")
    expected = bt.fit(plain, rows, start, max_iter=10)
    gaps = []
    for scale in (1.0, 100.0, 1e6):
        model = bt.build_model(architecture, prior="regularized_horseshoe", slab=(4.0, scale))
        found = bt.fit(model, rows, global_step.update_slab(model, start), max_iter=10)
        gaps.append(expected.elbo_history[-1] - found.elbo_history[-1])
    assert gaps[0] > 100.0 * abs(gaps[1])
    assert found.elbo_history == pytest.approx(expected.elbo_history, rel=1e-9)
    for a, b in zip(found.factors.layers, expected.factors.layers, strict=True):
        np.testing.assert_allclose(a.weights.mean, b.weights.mean, rtol=1e-6, atol=1e-9)
    scale = found.model.prior.global_shrinkage.scale
    assert scale == pytest.approx(expected.model.prior.global_shrinkage.scale, rel=1e-8)


def test_tau_of_the_student_t_in_closed_form(rng):
    """tau ~ IG(1.5, 0.5) and six weights N(0, tau psi): IG(4.5, 0.5 + Σ W²/(2 psi))."""
    prior = build_shrinkage("student_t", order=-1.5, scale=0.5)
    model, factors, weights = known_weights(rng, global_shrinkage=prior)
    tau = global_step.update_global_shrinkage(model, factors).layers[0].global_shrinkage
    assert (tau.order, tau.rate) == (-4.5, 0.0)
    expected = 0.5 + 0.5 * np.sum(weights**2) / (WEIGHT_VARIANCE / 2.0)
    assert float(tau.scale) == pytest.approx(expected, rel=1e-12)
    # The marginal of the weights is then a multivariate t.
    shape = (0.5 / 1.5) * (WEIGHT_VARIANCE / 2.0) * np.eye(6)
    student = stats.multivariate_t(np.zeros(6), shape, df=3.0).logpdf(weights.ravel())
    updated = global_step.update_global_shrinkage(model, factors)
    assert builders.weight_block(model, updated) == pytest.approx(float(student), abs=1e-8)


def test_noise_alone_is_conjugate(rng):
    """With the weights known, eta² ~ IG(a + N/2, b + ½ Σ (y - z)²)."""
    model, factors, _ = known_weights(rng)
    inputs, targets = regression_data(rng)
    empty = LocalFactors(activations=(), gate_probability=(), gate_entropy=(), tilt=())
    statistics = block_statistics(empty, chain_moments((), inputs), targets, np.ones(30))
    noise = global_step.update_noise(model, factors, statistics).layers[0].noise_variance
    residual = targets - design(inputs) @ factors.layers[0].weights.mean.T
    np.testing.assert_allclose(noise.concentration, 2.0 + 15.0)
    np.testing.assert_allclose(noise.scale, 0.5 + 0.5 * np.sum(residual**2, axis=0), rtol=1e-11)
