"""Cases with an exact answer: Bayesian linear regression and single conjugate blocks.

Without hidden layers and with fixed scales the model is y = Phi w + noise with w ~ N(0, S0) for
each output. Held noise makes q the exact posterior and the bound the exact evidence. Two networks
that start apart stand side by side.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, special, stats

from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference import global_step
from bowtienet.inference.ascend import ascend
from bowtienet.model import Prior
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import Rows, build_model
from bowtienet.model.shrinkage import build_shrinkage
from bowtienet.posterior.initialize import build_posterior, initialize, stacked
from bowtienet.prediction.variational import PROPAGATIONS, output_moments, output_noise
from tests.builders import M, weight_block, where_there, with_bias

HELD = 1e8
"""Concentration that holds the noise: it then moves by N/HELD, and the bound rounds at 1e-7."""
TAU, PSI, BIAS_VARIANCE = 2.0, 0.3, 1.7
NOISE = np.array([0.3, 0.8])
ALL = np.ones((2, 3), dtype=bool)
SOME = np.array([[True, False, True], [True, True, False]])
"""Weights of the two outputs that exist."""


def regression_data(rng, count=30):
    inputs = rng.normal(size=(count, 3))
    true = rng.normal(size=(2, 4))
    targets = true[:, 0] + inputs @ true[:, 1:].T + rng.normal(size=(count, 2)) * np.sqrt(NOISE)
    return inputs, targets


def linear_model(concentration=HELD, scale=HELD * NOISE, mask=ALL):
    """Weights ~ N(0, 2.0 · 0.3): tau and psi fixed at different values, psi for three inputs."""
    model = build_model(
        build_architecture(3, (), 2),
        prior=Prior("gaussian", delta_global=TAU**0.5, delta_local=(3 * PSI) ** 0.5),
        output_noise=(concentration, scale),
        bias_variance=BIAS_VARIANCE,
    )
    return model if mask is ALL else replace(model, connections=(mask,))


def fit_lines(model, inputs, targets, weights=None):
    weights = np.ones(len(inputs)) if weights is None else weights
    rows = Rows(inputs=inputs, targets=targets, weights=weights)
    start = initialize(model, rows, np.random.default_rng(0), M, "laplace")
    return ascend(model, start, rows, max_iter=60, tol=1e-14, accelerate=False)


def design(inputs):
    return np.column_stack([np.ones(len(inputs)), inputs])


def prior_covariance():
    return np.diag([BIAS_VARIANCE] + [TAU * PSI] * 3)


def exact_posterior(inputs, target, noise, there):
    """Mean, covariance and log evidence log N(y | 0, noise I + Phi S0 Phi').

    Those of weights that are not there are zero.
    """
    phi, prior = design(inputs)[:, there], prior_covariance()[np.ix_(there, there)]
    covariance = np.zeros((4, 4))
    within = np.linalg.inv(np.linalg.inv(prior) + phi.T @ phi / noise)
    covariance[np.ix_(there, there)] = within
    marginal = noise * np.eye(len(inputs)) + phi @ prior @ phi.T
    log_evidence = stats.multivariate_normal(np.zeros(len(inputs)), marginal).logpdf(target)
    return covariance @ design(inputs).T @ target / noise, covariance, float(log_evidence)


@pytest.mark.parametrize(("mask", "weighted"), [(ALL, False), (ALL, True), (SOME, False)])
def test_held_noise_is_exact_bayesian_regression(rng, mask, weighted):
    """Posterior and prediction to 1e-6: the noise itself moves by about N / HELD = 3e-7.

    Evidence to 1e-5 in about -70: log-gamma functions of 1e8 are differences of 1e9, good to 1e-6.
    A row of weight two is two rows.
    """
    inputs, targets = regression_data(rng, count=24)
    weights = np.array([1.0, 2.0] * 12) if weighted else np.ones(24)
    ascent = fit_lines(linear_model(mask=mask), inputs, targets, weights)
    new = rng.normal(size=(5, 3))
    rows = np.repeat(np.arange(24), weights.astype(int))
    exact = [
        exact_posterior(inputs[rows], targets[rows, d], NOISE[d], with_bias(mask)[d])
        for d in range(2)
    ]
    found = ascent.posterior.layers[0].weights
    moments = [output_moments(ascent.model, ascent.posterior, new, p) for p in PROPAGATIONS]
    noise = output_noise(ascent.model, ascent.posterior)
    for m in range(M):
        evidence = sum(log_evidence for _, _, log_evidence in exact)
        assert ascent.elbo_history[m][-1] == pytest.approx(evidence, abs=1e-5)
        assert ascent.elbo_terms.total[m] == ascent.elbo_history[m][-1]
        np.testing.assert_allclose(noise[m, 0], NOISE, rtol=1e-6)
        for d, (mean, covariance, _) in enumerate(exact):
            np.testing.assert_allclose(found.mean[m, d], mean, rtol=1e-6)
            np.testing.assert_allclose(found.covariance[m, d], covariance, rtol=1e-6, atol=1e-9)
            spread = np.einsum("ni,ij,nj->n", design(new), covariance, design(new))
            for each in moments:
                np.testing.assert_allclose(each.mean[m, :, d], design(new) @ mean, rtol=1e-6)
                np.testing.assert_allclose(each.epistemic[m, :, d], spread, rtol=1e-6)
                assert not each.chance.any()


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
    inputs, targets = regression_data(rng, count=400)
    concentration, scale = 2.0, np.array([0.4, 0.9])
    gaps = []
    for count in (40, 100, 400):
        x, y = inputs[:count], targets[:count]
        bounds = [h[-1] for h in fit_lines(linear_model(concentration, scale), x, y).elbo_history]
        assert bounds[1] == pytest.approx(bounds[0], rel=1e-9)
        exact = [learned_log_evidence(x, y[:, d], concentration, scale[d]) for d in range(2)]
        gaps.append(sum(exact) - bounds[0])
    assert 0.2 > gaps[0] > gaps[1] > gaps[2] > 0.0
    assert gaps[2] < 0.03


SHARP = 1e-14
"""Variance of q(W) that makes the weights known: it adds SHARP / tau to the bound."""
FAMILIES = ("student_t", "laplace", "normal_gamma", "normal_inverse_gaussian", "gig")


def known_weights(rng, mask=ALL, **shrinkage):
    """A model of one layer (2, 3) whose weights q knows exactly; scales fixed but for those given.

    Returns the model, the factors and the weights (M, count) that exist, without biases.
    """
    model = linear_model(2.0, 0.5, mask)
    model = replace(model, **shrinkage)
    means = rng.normal(size=(M, 2, 4))
    networks = [build_posterior(model, [mean], rng, variance=SHARP) for mean in means]
    factors = stacked(networks)
    (layer,) = factors.layers
    layer = replace(layer, weights=where_there(layer.weights, mask))
    return model, replace(factors, layers=(layer,)), means[..., 1:][:, mask]


def log_marginal(prior, scaled_squares):
    """log ∫ Π_j N(W_j | 0, x) GIG(x) dx for Σ of W², by quadrature; the GIG normalised likewise."""
    count, total = scaled_squares.size, float(scaled_squares.sum())

    def log_kernel(u, order, scale):
        return order * u - scale * np.exp(-u) - prior.rate * np.exp(u)

    def log_integral(order, scale):
        grid = np.linspace(-30.0, 30.0, 6001)
        values = log_kernel(grid, order, scale)
        peak = float(np.max(values))
        value, _ = integrate.quad(
            lambda u: np.exp(log_kernel(u, order, scale) - peak),
            -60.0,
            60.0,
            points=[float(grid[np.argmax(values)])],
            epsabs=0.0,
            epsrel=1e-12,
            limit=500,
        )
        return peak + np.log(value)

    after = log_integral(prior.order - 0.5 * count, prior.scale + 0.5 * total)
    return after - log_integral(prior.order, prior.scale) - 0.5 * count * np.log(2 * np.pi)


@pytest.mark.parametrize("mask", [ALL, SOME], ids=["all", "some"])
@pytest.mark.parametrize("family", FAMILIES)
def test_one_scale_alone_is_conjugate(rng, family, mask):
    """With W and psi known q(tau) is exact, so the block of the bound is log p(W | psi).

    And the same the other way round.
    """
    prior = build_shrinkage(family)
    model, factors, weights = known_weights(rng, mask, global_shrinkage=prior)
    updated = global_step.update_global_shrinkage(model, factors)
    expected = sum(log_marginal(prior, w**2 / PSI) - 0.5 * w.size * np.log(PSI) for w in weights)
    assert weight_block(model, updated) == pytest.approx(expected, abs=1e-8)
    assert weight_block(model, factors) < expected - 1e-3

    model, factors, weights = known_weights(rng, mask, local_shrinkage=(prior,))
    updated = global_step.update_local_shrinkage(model, factors)
    expected = sum(log_marginal(prior, w**2 / TAU) - 0.5 * np.log(TAU) for w in weights.ravel())
    assert weight_block(model, updated) == pytest.approx(expected, abs=1e-8)
    assert weight_block(model, factors) < expected - 1e-3


def test_slab_alone_is_conjugate(rng):
    """With the weights known it adds log t(W) - log t(0), t the Student-t that c² makes."""
    model, factors, weights = known_weights(rng)
    without = weight_block(model, factors)
    slab = InverseGamma(concentration=1.5, scale=0.9)
    model = replace(model, slab=slab)
    found = weight_block(model, global_step.update_slab(model, factors))
    student = stats.t(3.0, scale=np.sqrt(0.6))
    expected = np.sum(student.logpdf(weights) - student.logpdf(0.0))
    assert found - without == pytest.approx(expected, abs=1e-8)


def test_a_slab_without_an_end_is_the_horseshoe(rng):
    """Bound, weights and EM of the regularised horseshoe tend to those of the horseshoe."""
    inputs, targets = regression_data(rng)
    rows = Rows(inputs=inputs, targets=targets, weights=np.ones(30))
    architecture = build_architecture(3, (4,), 2)
    plain = build_model(architecture, prior="horseshoe")
    start = initialize(plain, rows, rng, M, "laplace")
    expected = ascend(plain, start, rows, max_iter=10)
    gaps = []
    for scale in (1.0, 100.0, 1e6):
        model = build_model(architecture, prior=Prior("regularized_horseshoe", slab=(4.0, scale)))
        found = ascend(model, global_step.update_slab(model, start), rows, max_iter=10)
        gaps.append(expected.elbo_terms.total - found.elbo_terms.total)
    assert np.all(gaps[0] > 100.0 * np.abs(gaps[1]))
    np.testing.assert_allclose(found.elbo_history, expected.elbo_history, rtol=1e-9)
    for a, b in zip(found.posterior.layers, expected.posterior.layers, strict=True):
        np.testing.assert_allclose(a.weights.mean, b.weights.mean, rtol=1e-6, atol=1e-9)
    scales = (ascent.model.global_shrinkage.scale for ascent in (found, expected))
    np.testing.assert_allclose(*scales, rtol=1e-8)
