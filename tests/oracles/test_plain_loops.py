"""The oracle checks itself: the dense joint, quadrature, an exact case and Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import polyagamma
import pytest
from scipy import stats

from tests.oracles import plain_loops as oracle

COUNT = 2


def case(widths: list[int], families: tuple[str, str], seed: int = 1):
    rng = np.random.default_rng(seed)
    state, prior = oracle.random_state(rng, widths, COUNT, families)
    return state, prior, *oracle.random_data(rng, widths, COUNT)


@pytest.mark.parametrize("predict", [False, True])
@pytest.mark.parametrize("widths", [[2, 3, 2, 2], [3, 2, 1], [2, 2, 3, 2, 1]])
def test_chain_equals_dense_joint(widths: list[int], predict: bool) -> None:
    state, _, x, y, _ = case(widths, ("gig", "gig"), seed=3)
    updated = oracle.update_activations(state, x, None if predict else y)
    for n in range(COUNT):
        precision, linear = oracle.dense_joint_precision(state, x[n], None if predict else y[n], n)
        np.testing.assert_array_equal(precision, precision.T)
        mean, covariance = oracle.joint_moments(updated, x[n], n)
        np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mean, np.linalg.solve(precision, linear), rtol=1e-9, atol=1e-12)


def test_gig_quadrature_against_formulas() -> None:
    rng = np.random.default_rng(5)
    for family in oracle.FAMILIES[:-1]:
        for _ in range(5):
            gig = oracle.random_gig(rng, family)
            assert gig is not None
            order, scale, rate = gig
            assert oracle.gig_log_normaliser(*gig) == pytest.approx(
                oracle._gig_log_integral(*gig), rel=1e-12, abs=1e-12
            )
            if scale > 0 and rate > 0:
                w = 2 * mpmath.sqrt(scale * rate)
                k = [mpmath.besselk(order + shift, w) for shift in (-1, 0, 1)]
                mean, inverse = math.sqrt(scale / rate), math.sqrt(rate / scale)
                mean, inverse = mean * float(k[2] / k[1]), inverse * float(k[0] / k[1])
                assert oracle.gig_mean(*gig) == pytest.approx(mean, rel=1e-12)
                assert oracle.gig_mean_inverse(*gig) == pytest.approx(inverse, rel=1e-12)
            derivative = mpmath.diff(
                lambda p, s=scale, r=rate: oracle.gig_log_normaliser(float(p), s, r), order, h=1e-4
            )
            assert oracle.gig_mean_log(*gig) == pytest.approx(float(derivative), abs=1e-3)
    assert oracle.gig_mean_log(-2.0, 3.0, 0.0) == pytest.approx(
        math.log(3.0) - float(mpmath.digamma(2)), rel=1e-12
    )
    assert oracle.gig_mean(-0.5, 1.0, 0.0) == math.inf


def test_em_rate_can_end_at_zero() -> None:
    """Order < -1: where even an inverse gamma has too small a mean the best rate is 0."""
    state, prior, x, y, _ = case([3, 2, 1], ("gig", "gig"), seed=7)
    prior = replace(prior, global_gig=(-3.0, 0.1, 0.5))
    new = oracle.em_global(prior, state)
    assert new.global_gig == (-3.0, 0.1, 0.0)
    best = oracle.elbo(state, new, x, y)["total"]
    for rate in (1e-3, 1e-2, 0.1, 1.0):
        other = replace(prior, global_gig=(-3.0, 0.1, rate))
        assert oracle.elbo(state, other, x, y)["total"] < best


def test_no_hidden_layer_is_bayesian_linear_regression() -> None:
    """Fixed shrinkage, noise all but known: the ELBO is the Gaussian log evidence."""
    rng = np.random.default_rng(9)
    state, prior = oracle.random_state(rng, [3, 1], 5, "gaussian")
    x, y, _ = oracle.random_data(rng, [3, 1], 5)
    noise, firm = 0.4, 1e9
    prior = replace(prior, output_noise=(firm, firm * noise))
    state = oracle.update_noise(state, prior, x, y, None, 0)
    state = oracle.update_weights(state, prior, x, y, None, 0)
    state = oracle.update_noise(state, prior, x, y, None, 0)
    slope = state.fixed_tau[0] * state.fixed_psi[0]
    marginal = prior.bias_variance + slope * x @ x.T + noise * np.eye(5)
    evidence = stats.multivariate_normal(np.zeros(5), marginal).logpdf(y[:, 0])
    assert oracle.elbo(state, prior, x, y)["total"] == pytest.approx(evidence, abs=1e-5)


def test_polya_gamma_ratio_and_mean() -> None:
    """log PG(w|1,0) - log PG(w|1,c) = c^2 w/2 - log cosh(c/2), against the package's density."""
    omega = np.array([0.02, 0.1, 0.3, 1.0])
    for tilt in (0.3, 1.0, 2.5):
        ratio = polyagamma.polyagamma_pdf(omega, h=1, z=0, return_log=True)
        ratio = ratio - polyagamma.polyagamma_pdf(omega, h=1, z=tilt, return_log=True)
        want = tilt**2 * omega / 2 - oracle.log_cosh(tilt / 2)
        np.testing.assert_allclose(ratio, want, atol=1e-9)
        draws = polyagamma.random_polyagamma(
            1, tilt, size=20_000, method="devroye", random_state=np.random.default_rng(10)
        )
        assert abs(draws.mean() - oracle.pg_mean(tilt)) < 4 * draws.std() / math.sqrt(draws.size)


def test_prediction_against_monte_carlo() -> None:
    """Converged prediction: the ELBO without the output rises, moments of y equal sampled ones."""
    state, _, x, _, _ = case([2, 3, 2, 2], ("student_t", "student_t"), seed=13)
    value = -math.inf
    for _ in range(40):
        state = oracle.update_activations(state, x, None)
        state = oracle.update_tilts(state, x)
        state = oracle.update_gates(state, x)
        new = sum(oracle.local_elbo(state, x, None).values())
        assert new >= value - 1e-9
        value = new
    mean, signal, noise = oracle.predict_mean_and_variance(state, x)
    rng, size = np.random.default_rng(14), 100_000
    for n in range(COUNT):
        a = np.broadcast_to(x[n], (size, x.shape[1]))
        for layer in range(2):
            covariance = state.covariance[n][layer]
            error = rng.multivariate_normal(np.zeros(len(covariance)), covariance, size)
            a = state.offset[n][layer] + a @ state.gain[n][layer].T + error
        for d in range(2):
            row = rng.multivariate_normal(
                state.weight_mean[2][d], state.weight_covariance[2][d], size
            )
            z = row[:, 0] + np.sum(row[:, 1:] * a, axis=1)
            assert abs(z.mean() - mean[n, d]) < 4.5 * z.std() / math.sqrt(size)
            square = (z - mean[n, d]) ** 2
            assert abs(square.mean() - signal[n, d]) < 4.5 * square.std() / math.sqrt(size)
            eta2 = stats.invgamma(state.noise_concentration[2][d], scale=state.noise_scale[2][d])
            assert noise[n, d] == pytest.approx(eta2.mean())
