"""One test for each erratum of the paper that concerns code: the paper's formula fails, ours holds.

Numbers are those of docs/theory/errata. 6 (stochastic steps) and 10 (pruning) are tested with their
own code.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from bowtienet._old._arrays import unpack
from bowtienet._old.distributions import generalized_inverse_gaussian as gig
from bowtienet._old.distributions import inverse_gamma, polya_gamma
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.point_mass import PointMass
from bowtienet._old.inference import global_step
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.empirical_bayes import update_hyperparameters
from bowtienet._old.inference.local_step import settle, update_activations
from bowtienet._old.inference.statistics import block_statistics
from bowtienet._old.model.shrinkage import build_shrinkage
from bowtienet._old.model.simulate import sample_shrinkage
from bowtienet._old.posterior.initialize import _draw
from bowtienet._old.posterior.moments import chain_moments, preactivation_mean, preactivation_square
from bowtienet._old.prediction.predictive import without_targets
from tests._old import oracle_bridge
from tests._old.oracle_bridge import Case, assert_close
from tests._old.oracles import plain_loops as oracle

WIDTHS = (2, 3, 2, 2)


@pytest.fixture
def case(rng) -> Case:
    return oracle_bridge.random_case(rng, WIDTHS, "gig")


def with_weights(case: Case, layer: int, **changes) -> Case:
    """The case with other weights in one layer."""
    values = {}
    for name, value in changes.items():
        listed = list(getattr(case.state, name))
        listed[layer] = value
        values[name] = listed
    return replace(case, state=replace(case.state, **values))


def oracle_residual(case: Case, layer: int):
    total = np.zeros(case.state.widths[layer + 1])
    for n in range(case.x.shape[0]):
        moments = oracle.layer_moments(case.state, case.x[n], n, layer)
        for d in range(total.size):
            error = oracle.expected_square_error(case.state, moments, case.y[n], n, layer, d)
            total[d] += case.weights[n] * error
    return total


def test_erratum_1_residual_keeps_the_covariance_between_layers(case):
    """E[(a - gamma z)²] holds -2 rho E[W] Cov(a_l, a_{l-1}), which the paper drops, for l > 1."""
    for layer in (0, 1):
        actual = global_step.expected_residual(case.factors, case.statistics, layer)
        np.testing.assert_allclose(actual, oracle_residual(case, layer), rtol=1e-10)
        cross, dropped = case.moments.cross[layer], 0.0
        if cross is not None:
            rho = case.weights[:, None] * case.local.gate_probability[layer]
            mean = case.state.weight_mean[layer][:, 1:]
            dropped = -2.0 * np.einsum("nd,ndj,dj->d", rho, cross, mean)
        papers = actual - dropped
        assert np.allclose(papers, oracle_residual(case, layer), rtol=1e-3) == (layer == 0)


def test_erratum_2_second_moment_of_activations_is_symmetric():
    """E[a a'] = S + M E[b b'] M' + t t' + M E[b] t' + t E[b]'M', not + 2 M E[b] t'."""
    widths = (2, 3, 4, 2, 1)  # a layer with a gain that is itself the input of a hidden layer
    case = oracle_bridge.random_case(np.random.default_rng(2), widths)
    actual = oracle_bridge.full_second_moment(case.moments, 2)
    for n in range(case.x.shape[0]):
        below = oracle.layer_moments(case.state, case.x[n], n, 1)
        t, m, s = (getattr(case.state, k)[n][1] for k in ("offset", "gain", "covariance"))
        plain = s + m @ below.parent_square[1:, 1:] @ m.T + np.outer(t, t)
        product = np.outer(m @ below.parent[1:], t)
        assert_close(actual[n, 1:, 1:], plain + product + product.T)
        assert not np.allclose(actual[n, 1:, 1:], plain + 2.0 * product, rtol=1e-3)


def one_step_covariance(case: Case, n: int, gates) -> np.ndarray:
    """S_1 of a prediction (L = 2) with the given gates in the sums over layer 2."""
    state, precision = case.state, np.zeros((3, 3))
    for d in range(3):
        noise = oracle.mean_precision(state, 1, d)
        omega = oracle.pg_mean(state.tilt[n][1][d]) / state.gate_temperature**2
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
    actual = update_activations(case.model, factors, case.x, None, case.memory)
    expected = oracle.update_activations(case.state, case.x, None)
    for n in range(case.x.shape[0]):
        assert_close(actual[0].covariance[n], expected.covariance[n][0])
        right = one_step_covariance(case, n, case.state.gate[n][1])
        papers = one_step_covariance(case, n, case.state.gate[n][0])
        assert_close(actual[0].covariance[n], right)
        assert not np.allclose(actual[0].covariance[n], papers, rtol=1e-2)
        dense, linear = oracle.dense_joint_precision(case.state, case.x[n], None, n)
        mean = np.linalg.solve(dense, linear)
        moments = chain_moments(actual, case.x)
        assert_close(moments.inputs[1][n, 1:], mean[:3])
        assert_close(moments.inputs[2][n, 1:], mean[3:])


def test_erratum_4_omega_term_of_the_prediction_bound_is_negative(case):
    """The local bound without targets is the oracle's; with + E[omega] E[z²] / 2T² it is not."""
    factors = without_targets(case.factors)
    local, moments = settle(case.model, factors, case.x, None, 0.0, 3)
    ones = np.ones(case.x.shape[0])
    terms = elbo(case.model, factors, block_statistics(local, moments, 0.0 * case.y, ones))
    actual = float(terms.activations + terms.gates + terms.polya_gamma)

    activations = local.activations
    noise = np.diag(np.asarray(factors.shared_covariance))
    state = replace(
        case.state,
        gate=oracle_bridge.unstack(local.gate_probability, 3),
        tilt=oracle_bridge.unstack(local.tilt, 3),
        # The first layer's offset already holds M x.
        offset=oracle_bridge.unstack(tuple(a.offset for a in activations), 3),
        gain=[[np.zeros((3, 2)), activations[1].gain[n]] for n in range(3)],
        covariance=[[activations[0].covariance[n], np.diag(noise)] for n in range(3)],
    )
    expected = sum(oracle.local_elbo(state, case.x, None).values())
    assert actual == pytest.approx(expected, rel=1e-10)
    omega = sum(
        float(np.sum(polya_gamma.mean(tilt) * preactivation_square(layer.weights, second)))
        for tilt, layer, second in zip(local.tilt, factors.layers, moments.second, strict=False)
    )
    papers = actual + omega / case.model.gate_temperature**2
    assert papers != pytest.approx(expected, rel=1e-2)


def test_erratum_5_em_of_the_inverse_gaussian(rng):
    """lambda = (L+1) delta / Σ E[tau]. The paper has 2 (L+1) delta and nu for lambda below it."""
    case = oracle_bridge.random_case(rng, WIDTHS, "normal_inverse_gaussian")
    updated = update_hyperparameters(case.model, case.factors).prior.global_shrinkage
    assert updated.order == -0.5  # Table 1 prints +1/2

    def slope(rate: float) -> float:
        """Derivative in log rate of Σ E[log p(tau)] by central differences."""
        up, down = (
            sum(oracle.gig_expected_log_density((-0.5, updated.scale, r), q) for q in state_tau)
            for r in (rate * math.exp(1e-4), rate * math.exp(-1e-4))
        )
        return (up - down) / 2e-4

    state_tau = case.state.tau
    assert abs(slope(updated.rate)) < 1e-6
    delta = math.sqrt(2.0 * updated.scale)
    papers_sum = 0.0
    for order, scale, rate in state_tau:
        w = 2.0 * math.sqrt(scale * rate)
        ratio = special.kve(order + 1, w) / special.kve(order, w)
        papers_sum += math.sqrt(2.0 * scale) * ratio / order
    for papers in (
        2.0 * len(state_tau) * delta / papers_sum,
        2.0 * len(state_tau) * delta / abs(papers_sum),
        2.0 * len(state_tau) * delta / sum(oracle.gig_mean(*q) for q in state_tau),
    ):
        assert abs(slope(papers**2 / 2.0)) > 1e-2


def test_erratum_7_gates_enter_the_bound_once(rng):
    """With z known, gates and omega give E[log Bernoulli(gamma | sigmoid(z/T))] + entropy, once.

    The paper's joint also carries the Bernoulli factor itself beside its Polya-Gamma form.
    """
    case = oracle_bridge.random_case(rng, (2, 3, 2))
    tiny = np.broadcast_to(1e-16 * np.eye(3), (3, 3, 3))
    case = with_weights(case, 0, weight_covariance=tiny)
    z = preactivation_mean(case.factors.layers[0].weights, case.moments.inputs[0])
    scaled = z / case.model.gate_temperature
    state = replace(case.state, tilt=[[np.abs(row)] for row in scaled])
    case = replace(case, state=state)
    rho = case.local.gate_probability[0]
    bernoulli = rho * special.log_expit(scaled) + (1 - rho) * special.log_expit(-scaled)
    entropy = special.entr(rho) + special.entr(1 - rho)
    actual = float(case.elbo.gates + case.elbo.polya_gamma)
    expected = float(case.weights @ (bernoulli + entropy).sum(axis=1))
    assert actual == pytest.approx(expected, rel=1e-9)
    twice = expected + float(case.weights @ bernoulli.sum(axis=1))
    assert actual != pytest.approx(twice, rel=1e-2)


def test_erratum_7_products_over_weights_reach_the_output(case):
    """The prior of the output's weights (l = L+1) is in the bound, the update and the oracle."""
    last = len(WIDTHS) - 2
    wider = with_weights(case, last, weight_mean=2.0 * case.state.weight_mean[last])
    change = float(wider.elbo.weights - case.elbo.weights)
    a, b = oracle_bridge.oracle_elbo_terms(wider), oracle_bridge.oracle_elbo_terms(case)
    assert change == pytest.approx(a["weights"] - b["weights"], rel=1e-9)
    assert abs(change) > 0.1


def test_erratum_8_divergence_of_q_equal_to_the_prior_is_zero(rng):
    """With q(W), q(eta²) at the prior every constant must cancel: D_l (D_{l-1}+1)/2, log 2pi..."""
    case = oracle_bridge.random_case(rng, WIDTHS, "gaussian")
    model, layers = case.model, []
    for index, layer in enumerate(case.factors.layers):
        width, size = layer.weights.mean.shape
        variance = model.prior.global_shrinkage.value * model.prior.local_shrinkage[index].value
        diagonal = np.array([model.prior.bias_variance] + [variance] * (size - 1))
        weights = GaussianRows(
            mean=np.zeros((width, size)), covariance=np.stack([np.diag(diagonal)] * width)
        )
        noise = model.prior.noise(index)
        noise = replace(
            noise,
            concentration=np.full(width, noise.concentration),
            scale=np.ones(width) * noise.scale,
        )
        layers.append(replace(layer, weights=weights, noise_variance=noise))
    terms = elbo(model, replace(case.factors, layers=tuple(layers)), case.statistics)
    # log tau + log psi of fixed scales stand in the shrinkage terms.
    total = terms.weights + terms.global_shrinkage + terms.local_shrinkage
    assert float(total) == pytest.approx(0.0, abs=1e-10)
    assert float(terms.noise_variance) == pytest.approx(0.0, abs=1e-10)


def test_erratum_8_terms_have_their_own_layers_parameters(rng):
    """lambda_loc in psi's normaliser and eta_{l,d} in layer l, where the paper has others."""
    case = oracle_bridge.random_case(rng, WIDTHS, "gig")
    expected = oracle_bridge.oracle_elbo_terms(case)
    assert float(case.elbo.total) == pytest.approx(expected["total"], rel=1e-10)
    assert float(case.elbo.local_shrinkage) == pytest.approx(expected["local_shrinkage"], rel=1e-10)
    papers = 0.0  # log K of q(psi) at the global rate instead of the local one
    for layer in case.factors.layers:
        psi = layer.local_shrinkage
        for rate, sign in ((psi.rate, -1.0), (case.model.prior.global_shrinkage.rate, 1.0)):
            papers += sign * np.sum(np.log(special.kv(psi.order, 2 * np.sqrt(psi.scale * rate))))
    assert abs(papers) > 1e-2
    residual = global_step.expected_residual(case.factors, case.statistics, 1)
    own, first = (
        inverse_gamma.mean_inverse(case.factors.layers[l].noise_variance)[:2] for l in (1, 0)
    )
    assert abs(0.5 * np.sum((own - first) * residual)) > 1e-2


def test_erratum_9_output_sum_of_squares(case):
    """Σ E[(y - z)²] = Σ (y - E[z])² + Var[z]; the appendix doubles a part of the variance."""
    last = len(WIDTHS) - 2
    actual = global_step.expected_residual(case.factors, case.statistics, last)
    np.testing.assert_allclose(actual, oracle_residual(case, last), rtol=1e-10)
    moment = unpack(case.statistics.output.input_moment, 3)
    shared = float(case.statistics.count) * case.factors.shared_covariance
    moment[1:, 1:] += shared
    means = case.moments.inputs[last]
    for d in range(2):
        m = case.state.weight_mean[last][d]
        second = oracle.weight_second_moment(case.state, last, d)
        outer = np.einsum("n,ni,nj->ij", case.weights, means, means)
        error = float(case.weights @ (case.y[:, d] - means @ m) ** 2)
        variance = float(np.sum(second * moment) - m @ outer @ m)
        assert actual[d] == pytest.approx(error + variance, rel=1e-10)
        weights_only = np.sum((second * moment)[1:, 1:]) - m[1:] @ outer[1:, 1:] @ m[1:]
        assert actual[d] != pytest.approx(error + variance + float(weights_only), rel=1e-2)


@pytest.mark.parametrize("family", ["student_t", "normal_inverse_gaussian", "gig", "gaussian"])
@pytest.mark.parametrize(("count", "shape"), [(6, ()), (1, (4, 3))])
def test_erratum_11_shrinkage_starts_at_a_draw_from_the_prior(family, count, shape):
    """The mean of q is the draw; the paper's nu - 1 with nu = -1.5 would be a negative scale."""
    prior = build_shrinkage(family)
    q = _draw(prior, count, shape, np.random.default_rng(5))
    expected = sample_shrinkage(prior, np.random.default_rng(5), shape)
    if isinstance(prior, PointMass):
        assert q is prior
        return
    assert (q.order, q.rate) == (prior.order - 0.5 * count, prior.rate)
    assert np.shape(q.scale) == shape
    assert np.all(q.scale > 0.0)
    np.testing.assert_allclose(gig.mean(q), expected, rtol=1e-9)


def test_erratum_11_student_t_draws_are_inverse_gamma_with_minus_nu():
    """1/x ~ Gamma(1.5) / 0.5 has mean 3; 20,000 draws, limit 5 standard errors, alarm rate 6e-7."""
    draws = sample_shrinkage(
        build_shrinkage("student_t", order=-1.5, scale=0.5), np.random.default_rng(0), (20_000,)
    )
    inverse = 1.0 / draws
    error = inverse.std() / np.sqrt(inverse.size)
    assert abs(inverse.mean() - 3.0) < 5.0 * error
    assert 5.0 * error < 0.1


def test_erratum_11_each_output_row_is_fitted_to_its_own_target(case):
    """y_n in m_{L+1,d} means y_{n,d}."""
    other = replace(case, y=case.y + np.array([0.0, 1.0]))
    before, after = (
        global_step.update_weights(c.model, c.factors, c.statistics).layers[-1].weights
        for c in (case, other)
    )
    np.testing.assert_array_equal(after.mean[0], before.mean[0])
    assert np.max(np.abs(after.mean[1] - before.mean[1])) > 1e-2
    np.testing.assert_array_equal(after.covariance, before.covariance)
    state = oracle.update_weights(case.state, case.prior, case.x, case.y, case.weights, 2)
    assert_close(before.mean, state.weight_mean[2])
