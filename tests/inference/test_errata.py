"""One test for each erratum of the paper that concerns code: the paper's formula fails, ours holds.

Numbers are those of docs/theory/errata. 6 (stochastic steps), 10, 12 and 13 (pruning) are tested
with their code.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from bowtienet._arrays import transpose
from bowtienet.distributions import polya_gamma
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.inference import global_step
from bowtienet.inference.elbo import elbo
from bowtienet.inference.empirical_bayes import update_hyperparameters
from bowtienet.inference.global_step import update_noise
from bowtienet.inference.local_step import settle, update_activations
from bowtienet.inference.statistics import block_statistics
from bowtienet.posterior.moments import preactivation_mean
from bowtienet.prediction.variational import without_targets
from tests import builders, oracle_bridge
from tests.autodiff import gradient
from tests.builders import Point
from tests.oracle_bridge import Case, assert_close
from tests.oracles import plain_loops as oracle

WIDTHS = (2, 3, 2, 2)


@pytest.fixture
def case(rng) -> Case:
    return oracle_bridge.random_case(rng, WIDTHS, "gig")


def with_weights(case: Case, layer: int, **changes) -> Case:
    """The case with other weights in one layer."""
    values = {name: list(getattr(case.state, name)) for name in changes}
    for name, value in changes.items():
        values[name][layer] = value
    return replace(case, state=replace(case.state, **values))


def printed_noise(point: Point) -> Point:
    """q(eta²) from sums Σ rho E[a_d a~] without the covariance between a_l and a_{l-1}."""
    statistics, moments = builders.statistics_of(point), builders.moments_of(point)
    *hidden, output = statistics.layers
    for index, sums in enumerate(hidden):
        gates = point.local.gate_probability[index] * point.rows.weights[:, None]
        cross = transpose(gates * moments.means[index]) @ moments.inputs[index]
        hidden[index] = replace(sums, cross=cross)
    printed = replace(statistics, layers=(*hidden, output))
    return replace(point, factors=update_noise(point.model, point.factors, printed))


def scale_gradient(point: Point, index: int) -> np.ndarray:
    """Gradient of the ELBO in the logarithms of the scales of q(eta²) of one layer."""
    scale = point.factors.layers[index].noise_variance.scale
    return scale * gradient(point, "student_t", ("noise",))["noise"][f"scale {index}"]


def test_erratum_1_the_printed_noise_leaves_a_gradient_from_the_second_layer_on(rng):
    """A fit with it can climb all the way: watching the bound rise does not find the mistake."""
    point = builders.random_point(rng, (4, 3), "student_t")
    printed, exact = printed_noise(point), builders.UPDATES["noise"](point)
    for index in range(3):
        np.testing.assert_allclose(scale_gradient(exact, index), 0.0, atol=1e-10)
    # Inputs are known and the output has no chain behind it: there the formulas agree.
    for index in (0, 2):
        np.testing.assert_allclose(scale_gradient(printed, index), 0.0, atol=1e-10)
    assert np.all(np.abs(scale_gradient(printed, 1)).max(axis=1) > 1e-2)
    assert np.all(builders.bound_of(exact).total > builders.bound_of(printed).total + 1e-4)


def test_erratum_2_second_moment_of_activations_is_symmetric(rng):
    """E[a a'] = S + M E[b b'] M' + t t' + M E[b] t' + t E[b]'M', not + 2 M E[b] t'."""
    widths = (2, 3, 4, 2, 1)  # a layer with a gain that is itself the input of a hidden layer
    case = oracle_bridge.random_case(rng, widths)
    actual = oracle_bridge.full_second_moment(case.moments, 2)[:, 1:, 1:]
    for n in range(case.x.shape[0]):
        below = oracle.layer_moments(case.state, case.x[n], n, 1)
        t, m, s = (getattr(case.state, k)[n][1] for k in ("offset", "gain", "covariance"))
        plain = s + m @ below.parent_square[1:, 1:] @ m.T + np.outer(t, t)
        product = np.outer(m @ below.parent[1:], t)
        assert_close(actual[n], plain + product + product.T)
        assert not np.allclose(actual[n], plain + 2.0 * product, rtol=1e-3)


def one_step_covariance(case: Case, n: int, gates) -> np.ndarray:
    """S_1 of a prediction (L = 2) with the given gates in the sums over layer 2."""
    state, precision = case.state, np.zeros((3, 3))
    for d in range(3):
        noise = oracle.mean_precision(state, 1, d)
        omega = oracle.pg_mean(state.tilt[n][1][d]) / state.temperature**2
        second = oracle.weight_second_moment(state, 1, d)[1:, 1:]
        precision += (noise * gates[d] + omega) * second
        # M_2'S_2^{-1}M_2 with S_2 = eta²: always the gates of layer 2.
        row = state.weight_mean[1][d, 1:]
        precision -= noise * state.gate[n][1][d] ** 2 * np.outer(row, row)
        precision[d, d] += oracle.mean_precision(state, 0, d)
    return np.linalg.inv(precision)


def test_erratum_3_prediction_takes_the_gates_of_the_layer_above(rng):
    """In the sums over layer l+1 the gates are layer l+1's; the paper prints l."""
    case = oracle_bridge.random_case(rng, (2, 3, 3, 2))
    factors = without_targets(case.factors)
    activations = update_activations(case.model, factors, case.x, None, case.memory)
    for n in range(case.x.shape[0]):
        actual = activations[0].covariance[0, n]
        assert_close(actual, one_step_covariance(case, n, case.state.gate[n][1]))
        papers = one_step_covariance(case, n, case.state.gate[n][0])
        assert not np.allclose(actual, papers, rtol=1e-2)


def test_erratum_4_omega_term_of_the_prediction_bound_is_negative(case):
    """The local bound without targets is the oracle's; with + E[omega] E[z²] / 2T² it is not."""
    factors = without_targets(case.factors)
    local, moments = settle(case.model, factors, case.x, None, 0.0, 3)
    ones = np.ones(case.x.shape[0])
    terms = elbo(case.model, factors, block_statistics(local, moments, 0.0 * case.y, ones))
    [actual] = terms.activations + terms.gates + terms.polya_gamma

    lower, upper = oracle_bridge.single(local.activations)
    state = replace(
        case.state,
        gate=oracle_bridge.unstack(oracle_bridge.single(local.gate_probability), 3),
        tilt=oracle_bridge.unstack(oracle_bridge.single(local.tilt), 3),
        # The first layer's offset already holds M x.
        offset=oracle_bridge.unstack((lower.offset, upper.offset), 3),
        gain=[[np.zeros((3, 2)), upper.gain[n]] for n in range(3)],
        covariance=[[lower.covariance[n], upper.covariance[0]] for n in range(3)],
    )
    expected = sum(oracle.local_elbo(state, case.x, None, ones).values())
    assert actual == pytest.approx(expected, rel=1e-10)
    # Tilts are fresh: A² = E[z²] / T².
    papers = actual + sum(float(np.sum(polya_gamma.mean(a) * a**2)) for a in local.tilt)
    assert papers != pytest.approx(expected, rel=1e-2)


def test_erratum_5_em_of_the_inverse_gaussian(rng):
    """lambda = (L+1) delta / Σ E[tau]. The paper has 2 (L+1) delta and nu for lambda below it."""
    case = oracle_bridge.random_case(rng, WIDTHS, "normal_inverse_gaussian")
    updated = update_hyperparameters(case.model, case.factors).global_shrinkage
    assert updated.order == -0.5  # Table 1 prints +1/2
    taus, delta = case.state.tau, math.sqrt(2.0 * updated.scale)

    def slope(rate: float) -> float:
        """Derivative in log rate of Σ E[log p(tau)] by central differences."""
        up, down = (
            sum(oracle.gig_expected_log_density((-0.5, updated.scale, r), q) for q in taus)
            for r in (rate * math.exp(1e-4), rate * math.exp(-1e-4))
        )
        return (up - down) / 2e-4

    assert abs(slope(float(updated.rate[0]))) < 1e-6
    papers_sum = 0.0
    for order, scale, rate in taus:
        w = 2.0 * math.sqrt(scale * rate)
        ratio = special.kve(order + 1, w) / special.kve(order, w)
        papers_sum += math.sqrt(2.0 * scale) * ratio / order
    for total in (papers_sum, abs(papers_sum), sum(oracle.gig_mean(*q) for q in taus)):
        papers = 2.0 * len(taus) * delta / total
        assert abs(slope(papers**2 / 2.0)) > 1e-2


def test_erratum_7_gates_enter_the_bound_once(rng):
    """With z known, gates and omega give E[log Bernoulli(gamma | sigmoid(z/T))] + entropy, once.

    The paper's joint also carries the Bernoulli factor itself beside its Polya-Gamma form.
    """
    case = oracle_bridge.random_case(rng, (2, 3, 2))
    tiny = np.broadcast_to(1e-16 * np.eye(3), (3, 3, 3))
    case = with_weights(case, 0, weight_covariance=tiny)
    z = preactivation_mean(case.factors.layers[0].weights, case.moments.inputs[0])[0]
    scaled = z / case.model.temperature
    case = replace(case, state=replace(case.state, tilt=[[np.abs(row)] for row in scaled]))
    rho = case.local.gate_probability[0][0]
    bernoulli = rho * special.log_expit(scaled) + (1 - rho) * special.log_expit(-scaled)
    entropy = special.entr(rho) + special.entr(1 - rho)
    [actual] = case.elbo.gates + case.elbo.polya_gamma
    expected = float(case.weights @ (bernoulli + entropy).sum(axis=1))
    assert actual == pytest.approx(expected, rel=1e-9)
    twice = expected + float(case.weights @ bernoulli.sum(axis=1))
    assert actual != pytest.approx(twice, rel=1e-2)


def test_erratum_8_divergence_of_q_equal_to_the_prior_is_zero(rng):
    """With q(W), q(eta²) at the prior every constant must cancel: D_l (D_{l-1}+1)/2, log 2pi..."""
    case = oracle_bridge.random_case(rng, WIDTHS, "gaussian")
    prior, layers = case.model, []
    for index, layer in enumerate(case.factors.layers):
        shape = layer.weights.mean.shape
        variance = prior.global_shrinkage.value * prior.local_shrinkage[index].value
        variances = np.full(shape, variance)
        variances[..., 0] = prior.bias_variance
        covariance = variances[..., None] * np.eye(shape[-1])
        weights = GaussianRows(mean=np.zeros(shape), covariance=covariance)
        noise, ones = prior.noise(index), np.ones(shape[:2])
        noise = replace(noise, concentration=noise.concentration * ones, scale=noise.scale * ones)
        layers.append(replace(layer, weights=weights, noise_variance=noise))
    terms = elbo(case.model, replace(case.factors, layers=tuple(layers)), case.statistics)
    # log tau + log psi of fixed scales stand in the shrinkage terms.
    total = terms.weights + terms.global_shrinkage + terms.local_shrinkage
    np.testing.assert_allclose(total, 0.0, atol=1e-10)
    np.testing.assert_allclose(terms.noise_variance, 0.0, atol=1e-10)


def test_erratum_9_output_sum_of_squares(case):
    """Σ E[(y - z)²] = Σ (y - E[z])² + Var[z]; the appendix doubles a part of the variance."""
    last = len(WIDTHS) - 2
    actual = global_step.expected_residual(case.factors, case.statistics, last)[0]
    rows = [oracle.layer_moments(case.state, x_n, n, last) for n, x_n in enumerate(case.x)]
    moment = np.einsum("n,nij->ij", case.weights, [row.parent_square for row in rows])
    means = np.stack([row.parent for row in rows])
    for d in range(2):
        m = case.state.weight_mean[last][d]
        second = oracle.weight_second_moment(case.state, last, d)
        outer = np.einsum("n,ni,nj->ij", case.weights, means, means)
        error = float(case.weights @ (case.y[:, d] - means @ m) ** 2)
        variance = float(np.sum(second * moment) - m @ outer @ m)
        assert actual[d] == pytest.approx(error + variance, rel=1e-10)
        weights_only = np.sum((second * moment)[1:, 1:]) - m[1:] @ outer[1:, 1:] @ m[1:]
        assert actual[d] != pytest.approx(error + variance + float(weights_only), rel=1e-2)


def test_erratum_11_each_output_row_is_fitted_to_its_own_target(case):
    """y_n in m_{L+1,d} means y_{n,d}."""
    other = replace(case, y=case.y + np.array([0.0, 1.0]))
    before, after = (
        global_step.update_weights(c.model, c.factors, c.statistics).layers[-1].weights
        for c in (case, other)
    )
    np.testing.assert_array_equal(after.mean[:, 0], before.mean[:, 0])
    assert np.max(np.abs(after.mean[:, 1] - before.mean[:, 1])) > 1e-2
    np.testing.assert_array_equal(after.covariance, before.covariance)
    state = oracle.update_weights(case.state, case.prior, case.x, case.y, case.weights)
    assert_close(before.mean, [state.weight_mean[2]])
