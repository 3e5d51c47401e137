"""Closed-form moments and the ELBO against plain Monte Carlo under q.

Error bars: every comparison is a z-score, (closed form - average of draws) / standard error. With
seeded draws a test either always passes or always fails; the stated false-alarm rate is the chance
that a correct program would have failed at a seed chosen blindly. A limit of 5 standard errors has
rate 6e-7 for each comparison, hence below 1e-4 for the 150 or fewer of any one test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polyagamma
import pytest
from scipy import stats

from bowtienet._arrays import pack_for_trace, transpose
from bowtienet.distributions.gaussian import second_moment
from bowtienet.inference.global_step import expected_residual
from bowtienet.posterior.moments import (
    covariance_with_preactivation,
    last_covariance,
    preactivation_mean,
)
from tests import oracle_bridge
from tests.oracle_bridge import Case
from tests.oracles import plain_loops as oracle

LIMIT = 5.0
WIDTHS = (2, 3, 2, 2)
LOG_2PI = np.log(2.0 * np.pi)


def assert_within_error(expected, draws) -> None:
    """Closed form of the only network within `LIMIT` standard errors of the average of draws."""
    draws, (expected,) = np.asarray(draws), np.asarray(expected)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert expected.shape == error.shape
    z = (expected - draws.mean(axis=0)) / error
    assert np.all(np.isfinite(z))
    assert np.max(np.abs(z)) < LIMIT, f"z-scores {np.round(z, 1)}"


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Draws from q: lists over layers of arrays (draws, rows, units) or (draws, units, ...)."""

    weights: list[np.ndarray]
    noise: list[np.ndarray]
    activations: list[np.ndarray]
    gates: list[np.ndarray]


def gaussian(rng, mean, covariance, size):
    root = np.linalg.cholesky(covariance)
    return mean + np.einsum("...ij,s...j->s...i", root, rng.standard_normal((size, *mean.shape)))


def draw(case: Case, rng: np.random.Generator, size: int) -> Draws:
    """W, eta², gamma from their own factors; a by walking the chain of every row."""
    state = case.state
    weights = [
        gaussian(rng, m, b, size)
        for m, b in zip(state.weight_mean, state.weight_covariance, strict=True)
    ]
    noise = [
        b / rng.gamma(a, size=(size, a.size))
        for a, b in zip(state.noise_concentration, state.noise_scale, strict=True)
    ]
    offset, gain = oracle_bridge.stack(state.offset), oracle_bridge.stack(state.gain)
    covariance = oracle_bridge.stack(state.covariance)
    below = np.broadcast_to(case.x, (size, *case.x.shape))
    activations = []
    for t, m, s in zip(offset, gain, covariance, strict=True):
        below = np.einsum("nij,snj->sni", m, below) + gaussian(rng, t, s, size)
        activations.append(below)
    gates = [
        (rng.random((size, *rho.shape)) < rho).astype(float)
        for rho in oracle_bridge.stack(state.gate)
    ]
    return Draws(weights=weights, noise=noise, activations=activations, gates=gates)


def preactivations(case: Case, draws: Draws) -> list[np.ndarray]:
    """z (draws, rows, units) of every layer, the output's last."""
    size = draws.weights[0].shape[0]
    inputs = [np.broadcast_to(case.x, (size, *case.x.shape)), *draws.activations]
    return [
        w[:, None, :, 0] + np.einsum("sdj,snj->snd", w[:, :, 1:], a)
        for w, a in zip(draws.weights, inputs, strict=True)
    ]


@pytest.fixture
def case(rng) -> Case:
    return oracle_bridge.random_case(rng, WIDTHS, "gig", count=3)


@pytest.fixture
def draws(case, rng) -> Draws:
    return draw(case, rng, 100_000)


def test_means_and_second_moments_of_activations(case, draws):
    """E[a], E[a a'] of both hidden layers and E[a_2 a_1']: 63 comparisons."""
    moments, activations = case.moments, case.local.activations
    first, second = draws.activations
    mean_1, mean_2 = moments.means
    assert_within_error(mean_1, first)
    assert_within_error(mean_2, second)

    square_1 = oracle_bridge.full_second_moment(moments, 1)[None, :, 1:, 1:]
    assert_within_error(square_1, np.einsum("sni,snj->snij", first, first))
    square_2 = last_covariance(activations, moments) + mean_2[..., :, None] * mean_2[..., None, :]
    assert_within_error(square_2, np.einsum("sni,snj->snij", second, second))
    cross = moments.cross[1] + mean_2[..., :, None] * mean_1[..., None, :]
    assert_within_error(cross, np.einsum("sni,snj->snij", second, first))


def test_preactivations(case, draws):
    """E[z], E[z²], E[a z] of both hidden layers, E[z] of the output: 51 comparisons."""
    moments, layers = case.moments, case.factors.layers
    z = preactivations(case, draws)
    for index in range(2):
        weights = layers[index].weights
        mean = preactivation_mean(weights, moments.inputs[index])
        assert_within_error(mean, z[index])
        square = moments.second[index] @ transpose(pack_for_trace(second_moment(weights)))
        assert_within_error(square, z[index] ** 2)
        product = moments.means[index] * mean
        if index:
            product += covariance_with_preactivation(weights, moments.cross[index])
        assert_within_error(product, draws.activations[index] * z[index])
    output = preactivation_mean(layers[2].weights, moments.inputs[2])
    assert_within_error(output, z[2])


def test_expected_residuals(case, draws):
    """Sum over weighted rows of E[(a - gamma z)²], of E[(y - z)²] for the output: 7."""
    z = preactivations(case, draws)
    for index in range(3):
        if index < 2:
            squares = (draws.activations[index] - draws.gates[index] * z[index]) ** 2
        else:
            squares = (case.y - z[index]) ** 2
        summed = np.einsum("n,snd->sd", case.weights, squares)
        assert_within_error(expected_residual(case.factors, case.statistics, index), summed)


def log_normal(x, mean, variance):
    return -0.5 * (LOG_2PI + np.log(variance) + (x - mean) ** 2 / variance)


def log_gaussian_rows(x, mean, covariance):
    """Log density of vectors (..., K) under N(mean, covariance), over leading axes of both."""
    root = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(root)
    white = np.einsum("...ij,s...j->s...i", inverse, x - mean)
    log_root = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * np.sum(white**2 + LOG_2PI, axis=-1) - log_root


def gig_distribution(order, scale, rate):
    """scipy's GIG, an implementation that shares nothing with ours."""
    if rate == 0.0:
        return stats.invgamma(-order, scale=scale)
    return stats.geninvgauss(order, 2 * np.sqrt(scale * rate), scale=np.sqrt(scale / rate))


def scale_draws(rng, prior, q, size):
    """Draws of a scale x from q, and of log p(x) - log q(x), nu of a Cauchy prior included."""
    law = gig_distribution(*q)
    x = law.rvs(size=size, random_state=rng)
    if not isinstance(prior, oracle.Cauchy):
        return x, gig_distribution(*prior).logpdf(x) - law.logpdf(x)
    mixing = stats.invgamma(1.0, scale=1 / prior.scale - q[0] / q[1])
    nu = mixing.rvs(size=size, random_state=rng)
    log_p = stats.invgamma(0.5, scale=1 / nu).logpdf(x)
    log_p = log_p + stats.invgamma(0.5, scale=1 / prior.scale).logpdf(nu)
    return x, log_p - law.logpdf(x) - mixing.logpdf(nu)


def slab_draws(rng, prior, q, weight):
    """Draws of log N(0 | W, c²) + log p(c²) - log q(c²) less the log Student-t at zero."""
    concentration, scale = prior
    law = stats.invgamma(q[0], scale=q[1])
    slab = law.rvs(size=weight.size, random_state=rng)
    student = stats.t(2 * concentration, scale=np.sqrt(scale / concentration)).logpdf(0.0)
    log_p = stats.invgamma(concentration, scale=scale).logpdf(slab)
    return log_normal(0.0, weight, slab) + log_p - law.logpdf(slab) - student


def elbo_draws(case: Case, rng: np.random.Generator, size: int) -> dict[str, np.ndarray]:
    """Draws of log p - log q under q, split as far as the split has a density on both sides.

    log PG(w|1,0) - log PG(w|1,c) = c²w/2 - log cosh(c/2), so no Polya-Gamma density is needed.
    """
    state, prior, draws = case.state, case.prior, draw(case, rng, size)
    z, last = preactivations(case, draws), len(state.widths) - 2
    temperature, rows = state.temperature, case.weights
    out = dict.fromkeys(("likelihood", "activations", "gates and omega", "noise", "weights"), 0.0)

    variance = draws.noise[last][:, None, :]
    out["likelihood"] = log_normal(case.y, z[last], variance).sum(axis=2) @ rows
    covariance = oracle_bridge.stack(state.covariance)
    offset, gain = oracle_bridge.stack(state.offset), oracle_bridge.stack(state.gain)
    below = np.broadcast_to(case.x, (size, *case.x.shape))
    for l in range(last):
        a, gamma = draws.activations[l], draws.gates[l]
        log_p = log_normal(a, gamma * z[l], draws.noise[l][:, None, :]).sum(axis=2)
        center = offset[l] + np.einsum("nij,snj->sni", gain[l], below)
        log_q = log_gaussian_rows(a - center, np.zeros_like(offset[l]), covariance[l])
        out["activations"] = out["activations"] + (log_p - log_q) @ rows
        below = a

        rho, tilt = oracle_bridge.stack(state.gate)[l], oracle_bridge.stack(state.tilt)[l]
        omega = polyagamma.random_polyagamma(
            1.0, tilt, size=(size, *tilt.shape), method="devroye", random_state=rng
        )
        scaled = z[l] / temperature
        log_p = -np.log(2.0) + (gamma - 0.5) * scaled - 0.5 * omega * scaled**2
        log_ratio = 0.5 * tilt**2 * omega - np.log(np.cosh(tilt / 2))
        log_q = gamma * np.log(rho) + (1 - gamma) * np.log1p(-rho)
        both = (log_p + log_ratio - log_q).sum(axis=2) @ rows
        out["gates and omega"] = out["gates and omega"] + both

    for l in range(last + 1):
        width, fan_in = state.widths[l + 1], state.widths[l]
        alpha, beta = prior.hidden_noise if l < last else prior.output_noise
        own = stats.invgamma(state.noise_concentration[l], scale=state.noise_scale[l])
        ratio = stats.invgamma(alpha, scale=beta).logpdf(draws.noise[l]) - own.logpdf(
            draws.noise[l]
        )
        out["noise"] = out["noise"] + ratio.sum(axis=1)

        tau, total = scale_draws(rng, prior.global_gig, state.tau[l], size)
        order, scales, rate = state.psi[l]
        for d in range(width):
            total = total + log_normal(draws.weights[l][:, d, 0], 0.0, prior.bias_variance)
            for j in range(fan_in):
                psi_q = (order, scales[d, j], rate)
                psi, ratio = scale_draws(rng, prior.local_gig[l], psi_q, size)
                weight = draws.weights[l][:, d, j + 1]
                total = total + ratio + log_normal(weight, 0.0, tau * psi)
                if state.slab[l] is not None:
                    q = [values[d, j] for values in state.slab[l]]
                    total = total + slab_draws(rng, prior.slab, q, weight)
        log_q = log_gaussian_rows(
            draws.weights[l], state.weight_mean[l], state.weight_covariance[l]
        )
        out["weights"] = out["weights"] + total - log_q.sum(axis=1)
    out["total"] = sum(out.values())
    return out


@pytest.mark.parametrize(
    ("family", "sweeps"),
    [("gig", 0), ("horseshoe", 10), ("regularized_horseshoe", 0), ("regularized_horseshoe", 10)],
)
def test_elbo(rng, family, sweeps):
    """At a random state, where no term is at an optimum, and near one, where draws vary less.

    Six comparisons each, false-alarm rate 4e-6.
    """
    case = oracle_bridge.random_case(rng, WIDTHS, family, count=3)
    case = oracle_bridge.swept(case, sweeps)
    terms = case.elbo
    draws = elbo_draws(case, rng, 40_000)
    expected = {
        "likelihood": terms.likelihood,
        "activations": terms.activations,
        "gates and omega": terms.gates + terms.polya_gamma,
        "noise": terms.noise_variance,
        "weights": terms.weights + terms.global_shrinkage + terms.local_shrinkage,
        "total": terms.total,
    }
    for name, value in expected.items():
        assert_within_error(value, draws[name])
    # Power: of a fitted network even a lost log 2 or ½ log 2pi of one factor would be seen.
    error = draws["total"].std() / np.sqrt(draws["total"].size)
    assert sweeps == 0 or LIMIT * error < 0.3
