"""Slow, obvious truth for the bow tie network: plain loops over observations, layers and units.

Every formula is derived here from the model (E_q of the log joint), not copied from the library:

* moments of the activations of one observation are read off the dense joint Gaussian of the chain;
* the ELBO is written out as E_q[log p] - E_q[log q], term by term, nothing cancelled by hand;
* moments and the normaliser of the GIG are quadratures.

Indices: python layer `l = 0..L` is the paper's layer l + 1, the last one is the output;
K = D_{l-1} + 1 with the bias first. Nothing here mutates its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.oracles import outcome_loops
from tests.oracles.outcome_loops import Local, OracleOutcome

Array = NDArray[np.float64]
Gig = tuple[float, float, float]
GigArray = tuple[float, Array, float]
Terms = dict[str, float]

LOG_2PI = math.log(2.0 * math.pi)
FAMILIES = (
    "student_t",
    "laplace",
    "normal_gamma",
    "normal_inverse_gaussian",
    "gig",
    "horseshoe",
    "regularized_horseshoe",
    "gaussian",
)


@dataclass(frozen=True, kw_only=True)
class Cauchy:
    """Prior of a scale x: x | nu ~ IG(1/2, 1/nu), nu ~ IG(1/2, 1/scale)."""

    scale: float


ScalePrior = Gig | Cauchy


@dataclass(frozen=True, kw_only=True)
class OracleState:
    """All variational factors; lists over layers l = 0..L (global) and [n][l], l < L (local)."""

    widths: list[int]
    temperature: float
    weight_mean: list[Array]  # (D_l, K)
    weight_covariance: list[Array]  # (D_l, K, K)
    noise_concentration: list[Array]  # (D_l,)
    noise_scale: list[Array]  # (D_l,)
    tau: list[Gig | None]  # (order, scale, rate), None: fixed_tau
    psi: list[GigArray | None]  # (order, scale (D_l, D_{l-1}), rate), None: fixed_psi
    fixed_tau: list[float]
    fixed_psi: list[float]
    slab: list[tuple[Array, Array] | None]  # (concentration, scale) (D_l, D_{l-1}) of c^2
    offset: list[list[Array]]  # (D_l,)
    gain: list[list[Array]]  # (D_l, D_{l-1})
    covariance: list[list[Array]]  # (D_l, D_l)
    gate: list[list[Array]]  # (D_l,) rho
    tilt: list[list[Array]]  # (D_l,) A
    outcome: OracleOutcome | None = None  # None: Gaussian
    outcome_local: list[Local] | None = None  # q of every observation's own latent variables


@dataclass(frozen=True, kw_only=True)
class OraclePrior:
    """Hyperparameters; a GIG is (order, scale, rate), None means fixed shrinkage or no slab."""

    global_gig: ScalePrior | None
    local_gig: list[ScalePrior | None]
    hidden_noise: tuple[float, float]
    output_noise: tuple[float, float | Array]
    bias_variance: float
    slab: tuple[float, float] | None = None  # concentration and scale of c^2


def gig_is_proper(order: float, scale: float, rate: float) -> bool:
    """Whether x^(p-1) exp(-s/x - r x) has a finite integral."""
    return (scale > 0 or order > 0) and (rate > 0 or order < 0)


def _gig_log_kernel(u: Array | float, order: float, scale: float, rate: float) -> Array:
    """Log density of u = log x up to a constant: p u - s e^-u - r e^u (concave)."""
    value = order * np.asarray(u, dtype=float)
    if scale > 0:
        value = value - scale * np.exp(-np.asarray(u))
    if rate > 0:
        value = value - rate * np.exp(np.asarray(u))
    return value


def _gig_grid(order: float, scale: float, rate: float) -> tuple[Array, Array, float]:
    """Grid of u = log x, unnormalised density there (peak 1), log of the peak."""
    if rate == 0.0:
        mode = math.log(scale / -order)
    elif scale == 0.0:
        mode = math.log(order / rate)
    else:
        root = math.sqrt(order**2 + 4 * scale * rate)
        x = (order + root) / (2 * rate) if order > 0 else 2 * scale / (root - order)
        mode = math.log(x)
    peak = float(_gig_log_kernel(mode, order, scale, rate))
    left = right = 1e-2
    while _gig_log_kernel(mode - left, order, scale, rate) > peak - 60:
        left *= 1.3
    while _gig_log_kernel(mode + right, order, scale, rate) > peak - 60:
        right *= 1.3
    grid = np.linspace(mode - left, mode + right, 6001)
    return grid, np.exp(_gig_log_kernel(grid, order, scale, rate) - peak), peak


@cache
def _gig_log_integral(order: float, scale: float, rate: float) -> float:
    """Log of the integral of x^(p-1) exp(-s/x - r x), by the trapezoidal rule in u = log x."""
    if not gig_is_proper(order, scale, rate):
        return math.inf
    grid, density, peak = _gig_grid(order, scale, rate)
    return peak + math.log(float(np.sum(density)) * float(grid[1] - grid[0]))


@cache
def gig_mean(order: float, scale: float, rate: float) -> float:
    """E[x] by quadrature; inf when it does not exist."""
    above = _gig_log_integral(order + 1, scale, rate)
    return math.exp(above - _gig_log_integral(order, scale, rate))


@cache
def gig_mean_inverse(order: float, scale: float, rate: float) -> float:
    """E[1/x] by quadrature; inf when it does not exist."""
    below = _gig_log_integral(order - 1, scale, rate)
    return math.exp(below - _gig_log_integral(order, scale, rate))


@cache
def gig_mean_log(order: float, scale: float, rate: float) -> float:
    """E[log x] by quadrature."""
    grid, density, _ = _gig_grid(order, scale, rate)
    return float(np.sum(grid * density) / np.sum(density))


def gig_expected_log_density(p: Gig, q: Gig) -> float:
    """E_q[log p(x)] of a GIG density p under a GIG q."""
    order, scale, rate = p
    value = -_gig_log_integral(*p) + (order - 1) * gig_mean_log(*q)
    if scale > 0:
        value -= scale * gig_mean_inverse(*q)
    if rate > 0:
        value -= rate * gig_mean(*q)
    return value


def mixing(prior: Cauchy, q: Gig) -> Gig:
    """Optimal q(nu) beside q(x): exp(-2 log nu - (1/scale + E[1/x]) / nu), an IG(1, .)."""
    return -1.0, 1 / prior.scale + gig_mean_inverse(*q), 0.0


def expected_log_scale_prior(prior: ScalePrior, q: Gig) -> float:
    """E_q[log p(x)], of a Cauchy E[log p(x, nu) - log q(nu)] under its optimal q(nu)."""
    if not isinstance(prior, Cauchy):
        return gig_expected_log_density(prior, q)
    nu = mixing(prior, q)
    # log IG(x | 1/2, 1/nu), whose log normaliser has E[log nu] in it
    given = (
        -0.5 * gig_mean_log(*nu)
        - math.lgamma(0.5)
        - 1.5 * gig_mean_log(*q)
        - gig_mean_inverse(*nu) * gig_mean_inverse(*q)
    )
    own = gig_expected_log_density((-0.5, 1 / prior.scale, 0.0), nu)
    return given + own - gig_expected_log_density(nu, nu)


def updated_scale(prior: ScalePrior, count: int, half_squares: float) -> Gig:
    """Optimal q(x) beside `count` weights; of a Cauchy q(x) and q(nu) in turn until they stand."""
    if not isinstance(prior, Cauchy):
        order, scale, rate = prior
        return order - 0.5 * count, scale + half_squares, rate
    order, scale = -0.5 - 0.5 * count, 1.0
    for _ in range(100_000):
        inverse_nu = 1 / (1 / prior.scale - order / scale)
        before, scale = scale, inverse_nu + half_squares
        if abs(scale - before) < 1e-15 * scale:
            return order, scale, 0.0
    raise AssertionError("q(x) and q(nu) did not come to rest")


def pg_mean(tilt: float) -> float:
    """E[omega] of PG(1, A)."""
    return 0.25 if abs(tilt) < 1e-8 else math.tanh(tilt / 2) / (2 * tilt)


def log_cosh(value: float) -> float:
    """Log of cosh without overflow."""
    return abs(value) + math.log1p(math.exp(-2 * abs(value))) - math.log(2.0)


def hidden_layers(state: OracleState) -> int:
    """L, the number of hidden layers."""
    return len(state.widths) - 2


def layer_slices(state: OracleState) -> list[slice]:
    """Where x, a_1, ..., a_L stand in v = (1, x, a_1, ..., a_L) of one observation."""
    slices, start = [], 1
    for width in state.widths[:-1]:
        slices.append(slice(start, start + width))
        start += width
    return slices


def joint_moments(state: OracleState, x_n: Array, n: int) -> tuple[Array, Array]:
    """Mean and covariance of v of observation n, block by block; 1 and x are known."""
    slices = layer_slices(state)
    size = slices[-1].stop
    mean, covariance = np.zeros(size), np.zeros((size, size))
    mean[0], mean[slices[0]] = 1.0, x_n
    for layer, (before, here) in enumerate(pairwise(slices)):
        gain = state.gain[n][layer]
        mean[here] = state.offset[n][layer] + gain @ mean[before]
        covariance[here] = gain @ covariance[before]
        covariance[:, here] = covariance[here].T
        covariance[here, here] = (
            state.covariance[n][layer] + gain @ covariance[before, before] @ gain.T
        )
    return mean, covariance


@dataclass(frozen=True, kw_only=True)
class _LayerMoments:
    """Moments that layer l of one observation needs; a~ is the extended vector of layer l-1."""

    a_square: Array  # (D_l,) E[a_d^2], empty for the output
    parent: Array  # (K,) E[a~]
    parent_square: Array  # (K, K) E[a~ a~']
    a_parent: Array  # (D_l, K) E[a_d a~]


def layer_moments(state: OracleState, x_n: Array, n: int, layer: int) -> _LayerMoments:
    """Read the blocks of layers l-1 and l from the dense joint Gaussian of observation n."""
    mean, covariance = joint_moments(state, x_n, n)
    second, slices = covariance + np.outer(mean, mean), layer_slices(state)
    parents = [0, *range(slices[layer].start, slices[layer].stop)]
    here = slices[layer + 1] if layer < hidden_layers(state) else slice(0, 0)
    return _LayerMoments(
        a_square=np.diag(second)[here],
        parent=mean[parents],
        parent_square=second[np.ix_(parents, parents)],
        a_parent=second[here][:, parents],
    )


def weight_second_moment(state: OracleState, layer: int, d: int) -> Array:
    """E[w w'] of the extended row w = (b_d, W_d)."""
    mean = state.weight_mean[layer][d]
    return np.asarray(state.weight_covariance[layer][d] + np.outer(mean, mean))


def mean_preactivation(state: OracleState, moments: _LayerMoments, layer: int, d: int) -> float:
    """E[z_d] = E[w]'E[a~]."""
    return float(state.weight_mean[layer][d] @ moments.parent)


def square_preactivation(state: OracleState, moments: _LayerMoments, layer: int, d: int) -> float:
    """E[z_d^2] = sum_ij E[w_i w_j] E[a~_i a~_j]."""
    second = weight_second_moment(state, layer, d)
    total = 0.0
    for i in range(second.shape[0]):
        for j in range(second.shape[1]):
            total += second[i, j] * moments.parent_square[i, j]
    return float(total)


def cross_preactivation(state: OracleState, moments: _LayerMoments, layer: int, d: int) -> float:
    """E[a_d z_d] = E[w]'E[a_d a~], with the covariance between a_l and a_{l-1}."""
    return float(state.weight_mean[layer][d] @ moments.a_parent[d])


def mean_precision(state: OracleState, layer: int, d: int) -> float:
    """E[1/eta2] of the inverse gamma."""
    return float(state.noise_concentration[layer][d] / state.noise_scale[layer][d])


def mean_log_noise(state: OracleState, layer: int, d: int) -> float:
    """E[log eta2] of the inverse gamma."""
    concentration = float(state.noise_concentration[layer][d])
    return math.log(float(state.noise_scale[layer][d])) - float(special.digamma(concentration))


def expected_square_error(
    state: OracleState, moments: _LayerMoments, y_n: Array | None, n: int, layer: int, d: int
) -> float:
    """E[(a_d - gamma_d z_d)^2] of a hidden unit, E[(y_d - z_d)^2] of an output."""
    z_square = square_preactivation(state, moments, layer, d)
    if layer == hidden_layers(state):
        assert y_n is not None
        y = float(y_n[d])
        return y**2 - 2 * y * mean_preactivation(state, moments, layer, d) + z_square
    rho = float(state.gate[n][layer][d])  # gamma^2 = gamma
    cross = cross_preactivation(state, moments, layer, d)
    return float(moments.a_square[d]) - 2 * rho * cross + rho * z_square


def _tau_moment(state: OracleState, layer: int, kind: str) -> float:
    """E[1/tau] ("inverse") or E[log tau] ("log") of a layer, fixed or not."""
    tau = state.tau[layer]
    if tau is None:
        fixed = float(state.fixed_tau[layer])
        return 1 / fixed if kind == "inverse" else math.log(fixed)
    return gig_mean_inverse(*tau) if kind == "inverse" else gig_mean_log(*tau)


def _psi_moment(state: OracleState, layer: int, d: int, j: int, kind: str) -> float:
    """E[1/psi] ("inverse") or E[log psi] ("log") of weight (d, j), fixed or not."""
    psi = state.psi[layer]
    if psi is None:
        shape = (state.widths[layer + 1], state.widths[layer])
        fixed = float(np.broadcast_to(state.fixed_psi[layer], shape)[d, j])
        return 1 / fixed if kind == "inverse" else math.log(fixed)
    gig = (psi[0], float(psi[1][d, j]), psi[2])
    return gig_mean_inverse(*gig) if kind == "inverse" else gig_mean_log(*gig)


def slab_precision(state: OracleState, layer: int, d: int, j: int) -> float:
    """E[1/c^2] of weight (d, j), 0 without a slab."""
    slab = state.slab[layer]
    return 0.0 if slab is None else float(slab[0][d, j] / slab[1][d, j])


def mean_square_weight(state: OracleState, layer: int, d: int, j: int) -> float:
    """E[W_dj^2], j without the bias."""
    mean = float(state.weight_mean[layer][d, j + 1])
    return mean**2 + float(state.weight_covariance[layer][d, j + 1, j + 1])


def output_parabola(state: OracleState, y_n: Array, n: int, d: int) -> tuple[float, float]:
    """Precision and linear term of z_d in the expected log likelihood of observation n."""
    last = hidden_layers(state)
    if state.outcome is None:
        precision = mean_precision(state, last, d)
        return precision, precision * float(y_n[d])
    weight = mean_precision(state, last, d) if state.outcome.has_noise else 1.0
    assert state.outcome_local is not None
    p, k = outcome_loops.parabola(state.outcome, state.outcome_local[n], y_n, state.widths[-1])
    return weight * float(p[d]), weight * float(k[d])


def output_moments(state: OracleState, x_n: Array, n: int) -> tuple[Array, Array]:
    """E[z] and E[z^2] of all outputs of observation n."""
    last, width = hidden_layers(state), state.widths[-1]
    moments = layer_moments(state, x_n, n, last)
    mean = [mean_preactivation(state, moments, last, d) for d in range(width)]
    square = [square_preactivation(state, moments, last, d) for d in range(width)]
    return np.array(mean), np.array(square)


def output_noise(state: OracleState) -> tuple[Array, Array]:
    """E[1/eta2] and E[log eta2] of all outputs."""
    last, width = hidden_layers(state), state.widths[-1]
    precision = [mean_precision(state, last, d) for d in range(width)]
    return np.array(precision), np.array([mean_log_noise(state, last, d) for d in range(width)])


def outcome_bound(state: OracleState, x_n: Array, y_n: Array, n: int) -> float:
    """Bound on the expected log likelihood of observation n, of an outcome that is not Gaussian."""
    assert state.outcome is not None
    assert state.outcome_local is not None
    moments, noise = output_moments(state, x_n, n), output_noise(state)
    return float(outcome_loops.bound(state.outcome, state.outcome_local[n], y_n, *moments, *noise))


def update_outcome(state: OracleState, x: Array, y: Array) -> OracleState:
    """q of the outcome's own latent variables of every observation."""
    assert state.outcome is not None
    precision, _ = output_noise(state)
    local = [
        outcome_loops.updated(state.outcome, y[n], *output_moments(state, x[n], n), precision)
        for n in range(x.shape[0])
    ]
    return replace(state, outcome_local=local)


def has_noise(state: OracleState, layer: int) -> bool:
    """Whether the layer has noise variances: an output may not."""
    is_output = layer == hidden_layers(state)
    return not is_output or state.outcome is None or state.outcome.has_noise


def noise_prior(state: OracleState, prior: OraclePrior, layer: int, d: int) -> tuple[float, float]:
    """(alpha_0, beta_0) of unit d of a layer."""
    if layer < hidden_layers(state):
        return prior.hidden_noise
    alpha, beta = prior.output_noise
    return alpha, float(np.broadcast_to(beta, (state.widths[-1],))[d])


def local_elbo(state: OracleState, x: Array, y: Array | None, weights: Array) -> Terms:
    """Terms of the observations: likelihood, gates, omega, activations; y None: no output."""
    terms = dict.fromkeys(("likelihood", "activations", "gates", "polya_gamma"), 0.0)
    last = hidden_layers(state)
    temperature = state.temperature
    for n in range(x.shape[0]):
        weight = float(weights[n])
        y_n = None if y is None else y[n]
        if y_n is not None and state.outcome is not None:
            terms["likelihood"] += weight * outcome_bound(state, x[n], y_n, n)
        elif y_n is not None:
            moments = layer_moments(state, x[n], n, last)
            for d in range(state.widths[-1]):
                error = expected_square_error(state, moments, y_n, n, last, d)
                terms["likelihood"] += weight * (
                    -0.5 * LOG_2PI
                    - 0.5 * mean_log_noise(state, last, d)
                    - 0.5 * mean_precision(state, last, d) * error
                )
        for layer in range(last):
            moments = layer_moments(state, x[n], n, layer)
            for d in range(state.widths[layer + 1]):
                rho = float(state.gate[n][layer][d])
                tilt = float(state.tilt[n][layer][d])
                omega = pg_mean(tilt)
                error = expected_square_error(state, moments, None, n, layer, d)
                terms["activations"] += weight * (
                    -0.5 * LOG_2PI
                    - 0.5 * mean_log_noise(state, layer, d)
                    - 0.5 * mean_precision(state, layer, d) * error
                )
                # 1/2 exp((gamma - 1/2) z/T - omega z^2/(2 T^2)), times PG(omega | 1, 0)
                z = mean_preactivation(state, moments, layer, d)
                z_square = square_preactivation(state, moments, layer, d)
                entropy = float(special.entr(rho) + special.entr(1 - rho))
                gate = -math.log(2.0) + (rho - 0.5) * z / temperature + entropy
                terms["gates"] += weight * gate
                # PG(w | 1, A) = cosh(A/2) exp(-A^2 w/2) PG(w | 1, 0)
                ratio = 0.5 * tilt**2 * omega - log_cosh(tilt / 2)
                terms["polya_gamma"] += weight * (ratio - 0.5 * omega * z_square / temperature**2)
        if last > 0:
            known = 1 + state.widths[0]
            covariance = joint_moments(state, x[n], n)[1][known:, known:]
            log_determinant = float(np.linalg.slogdet(covariance)[1])
            size = covariance.shape[0]
            terms["activations"] += weight * (0.5 * log_determinant + 0.5 * size * (1 + LOG_2PI))
    return terms


def global_elbo(state: OracleState, prior: OraclePrior) -> Terms:
    """Terms of the weights, noise and shrinkage.

    E[log tau] and E[log psi] of N(W | 0, tau psi) are booked with tau and psi, a slab with psi.
    """
    names = ("weights", "noise_variance", "global_shrinkage", "local_shrinkage")
    terms = dict.fromkeys(names, 0.0)
    for layer in range(hidden_layers(state) + 1):
        width, width_before = state.widths[layer + 1], state.widths[layer]
        for d in range(width):
            second = weight_second_moment(state, layer, d)
            terms["weights"] += (
                -0.5 * LOG_2PI
                - 0.5 * math.log(prior.bias_variance)
                - 0.5 * float(second[0, 0]) / prior.bias_variance
            )
            for j in range(width_before):
                inverse = _tau_moment(state, layer, "inverse") * _psi_moment(
                    state, layer, d, j, "inverse"
                )
                square = mean_square_weight(state, layer, d, j)
                terms["weights"] += -0.5 * LOG_2PI - 0.5 * inverse * square
                terms["global_shrinkage"] -= 0.5 * _tau_moment(state, layer, "log")
                terms["local_shrinkage"] -= 0.5 * _psi_moment(state, layer, d, j, "log")
            log_determinant = float(np.linalg.slogdet(state.weight_covariance[layer][d])[1])
            terms["weights"] += 0.5 * log_determinant + 0.5 * (width_before + 1) * (1 + LOG_2PI)
            # E_q of log IG(alpha, beta) = alpha log beta - lgamma(alpha) - (alpha+1) log x - beta/x
            own = (
                float(state.noise_concentration[layer][d]),
                float(state.noise_scale[layer][d]),
            )
            for sign, (alpha, beta) in ((1.0, noise_prior(state, prior, layer, d)), (-1.0, own)):
                if not has_noise(state, layer):
                    continue
                terms["noise_variance"] += sign * (
                    alpha * math.log(beta)
                    - math.lgamma(alpha)
                    - (alpha + 1) * mean_log_noise(state, layer, d)
                    - beta * mean_precision(state, layer, d)
                )
        tau = state.tau[layer]
        if tau is not None:
            assert prior.global_gig is not None
            terms["global_shrinkage"] += expected_log_scale_prior(prior.global_gig, tau)
            terms["global_shrinkage"] -= gig_expected_log_density(tau, tau)
        psi = state.psi[layer]
        local_gig = prior.local_gig[layer]
        if psi is not None:
            assert local_gig is not None
            for d in range(width):
                for j in range(width_before):
                    q = (psi[0], float(psi[1][d, j]), psi[2])
                    terms["local_shrinkage"] += expected_log_scale_prior(local_gig, q)
                    terms["local_shrinkage"] -= gig_expected_log_density(q, q)
        terms["local_shrinkage"] += slab_elbo(state, prior, layer)
    return terms


def slab_elbo(state: OracleState, prior: OraclePrior, layer: int) -> float:
    """E[log N(0 | W, c^2) + log p(c^2) - log q(c^2)] less the log Student-t at zero, summed."""
    slab, total = state.slab[layer], 0.0
    if slab is None:
        return 0.0
    assert prior.slab is not None
    a, b = prior.slab
    student = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * math.log(2 * math.pi * b)
    for d in range(state.widths[layer + 1]):
        for j in range(state.widths[layer]):
            q = (-float(slab[0][d, j]), float(slab[1][d, j]), 0.0)
            square = mean_square_weight(state, layer, d, j)
            zero = -0.5 * LOG_2PI - 0.5 * gig_mean_log(*q) - 0.5 * gig_mean_inverse(*q) * square
            total += zero + gig_expected_log_density((-a, b, 0.0), q)
            total -= gig_expected_log_density(q, q) + student
    return total


def elbo(
    state: OracleState,
    prior: OraclePrior,
    x: Array,
    y: Array,
    weights: Array,
) -> Terms:
    """E_q[log p] - E_q[log q] by named terms, and their sum under "total"."""
    terms = local_elbo(state, x, y, weights) | global_elbo(state, prior)
    terms["total"] = sum(terms.values())
    return terms


def optimal_joint(state: OracleState, x_n: Array, y_n: Array | None, n: int) -> tuple[Array, Array]:
    """Mean and covariance of v under the optimal q(a_n), by one dense inverse.

    E_q[log p] is assembled as one quadratic form -1/2 v'Q v, of which 1 and x are then fixed:
    -1/2 a'P a + h'a. Its precision P is block tridiagonal over layers.
    """
    last, slices = hidden_layers(state), layer_slices(state)
    size = slices[-1].stop
    form = np.zeros((size, size))
    for layer in range(last + 1 if y_n is not None else last):
        parents = [0, *range(slices[layer].start, slices[layer].stop)]
        for d in range(state.widths[layer + 1]):
            mean = state.weight_mean[layer][d]
            second = weight_second_moment(state, layer, d)
            if layer == last:
                assert y_n is not None
                curvature, slope = output_parabola(state, y_n, n, d)
            else:
                precision, rho = mean_precision(state, layer, d), float(state.gate[n][layer][d])
                child = slices[layer + 1].start + d
                form[child, child] += precision
                form[child, parents] -= precision * rho * mean
                form[parents, child] -= precision * rho * mean
                omega = pg_mean(float(state.tilt[n][layer][d]))
                curvature = precision * rho + omega / state.temperature**2
                slope = (rho - 0.5) / state.temperature
            form[np.ix_(parents, parents)] += curvature * second
            form[0, parents] -= slope * mean
            form[parents, 0] -= slope * mean
    known = slices[0].stop
    mean, covariance = np.concatenate([[1.0], x_n, np.zeros(size - known)]), np.zeros((size, size))
    covariance[known:, known:] = np.linalg.inv(form[known:, known:])
    mean[known:] = -covariance[known:, known:] @ form[known:, :known] @ mean[:known]
    return mean, covariance


def update_activations(state: OracleState, x: Array, y: Array | None) -> OracleState:
    """S_l = C_ll - M_l C_l-1,l and M_l = C_l,l-1 C_l-1,l-1^{-1} of the optimal q(a).

    The first layer's offset has all of its mean, and its gain is zero: its input is known.
    """
    chains: list[list[tuple[Array, Array, Array]]] = []
    for n in range(x.shape[0]):
        mean, joint = optimal_joint(state, x[n], None if y is None else y[n], n)
        chains.append([])
        for before, here in pairwise(layer_slices(state)):
            gain = joint[here, before] @ np.linalg.pinv(joint[before, before])
            covariance = joint[here, here] - gain @ joint[before, here]
            offset = mean[here] - gain @ mean[before]
            chains[n].append((offset, gain, 0.5 * (covariance + covariance.T)))
    offset, gain, covariance = (
        [[layer[i] for layer in chain] for chain in chains] for i in range(3)
    )
    return replace(state, offset=offset, gain=gain, covariance=covariance)


def update_tilts(state: OracleState, x: Array) -> OracleState:
    """q(omega) ~ exp(-omega E[z^2]/(2 T^2)) PG(omega | 1, 0), so A = sqrt(E[z^2]) / T."""
    tilt = []
    for n in range(x.shape[0]):
        tilt_n = []
        for layer in range(hidden_layers(state)):
            moments = layer_moments(state, x[n], n, layer)
            values = np.zeros(state.widths[layer + 1])
            for d in range(values.size):
                z_square = square_preactivation(state, moments, layer, d)
                values[d] = math.sqrt(z_square) / state.temperature
            tilt_n.append(values)
        tilt.append(tilt_n)
    return replace(state, tilt=tilt)


def update_gates(state: OracleState, x: Array) -> OracleState:
    """rho = sigmoid(E[log p | gamma = 1] - E[log p | gamma = 0])."""
    gate = []
    for n in range(x.shape[0]):
        gate_n = []
        for layer in range(hidden_layers(state)):
            moments = layer_moments(state, x[n], n, layer)
            values = np.zeros(state.widths[layer + 1])
            for d in range(values.size):
                z = mean_preactivation(state, moments, layer, d)
                z_square = square_preactivation(state, moments, layer, d)
                cross = cross_preactivation(state, moments, layer, d)
                precision = mean_precision(state, layer, d)
                log_joint = []
                for gamma in (0.0, 1.0):
                    error = moments.a_square[d] - 2 * gamma * cross + gamma**2 * z_square
                    log_joint.append(
                        -0.5 * precision * error + (gamma - 0.5) * z / state.temperature
                    )
                values[d] = special.expit(log_joint[1] - log_joint[0])
            gate_n.append(values)
        gate.append(gate_n)
    return replace(state, gate=gate)


def update_weights(
    state: OracleState, prior: OraclePrior, x: Array, y: Array, weights: Array
) -> OracleState:
    """Optimal N(m_d, B_d) of every extended row; given the others, layers do not see each other."""
    means, covariances = [], []
    for layer, (width_before, width) in enumerate(pairwise(state.widths)):
        means.append(np.zeros((width, width_before + 1)))
        covariances.append(np.zeros((width, width_before + 1, width_before + 1)))
        for d in range(width):
            precision = np.zeros((width_before + 1, width_before + 1))
            linear = np.zeros(width_before + 1)
            precision[0, 0] = 1 / prior.bias_variance
            for j in range(width_before):
                precision[j + 1, j + 1] = _tau_moment(state, layer, "inverse") * _psi_moment(
                    state, layer, d, j, "inverse"
                )
                precision[j + 1, j + 1] += slab_precision(state, layer, d, j)
            noise = mean_precision(state, layer, d)
            for n in range(x.shape[0]):
                moments = layer_moments(state, x[n], n, layer)
                if layer == hidden_layers(state):
                    curvature, pull = output_parabola(state, y[n], n, d)
                    precision += weights[n] * curvature * moments.parent_square
                    linear += weights[n] * pull * moments.parent
                    continue
                rho = float(state.gate[n][layer][d])
                omega = pg_mean(float(state.tilt[n][layer][d])) / state.temperature**2
                precision += weights[n] * (noise * rho + omega) * moments.parent_square
                linear += weights[n] * noise * rho * moments.a_parent[d]
                linear += weights[n] * (rho - 0.5) / state.temperature * moments.parent
            covariance = np.linalg.inv(precision)
            covariances[layer][d] = 0.5 * (covariance + covariance.T)
            means[layer][d] = covariances[layer][d] @ linear
    return replace(state, weight_mean=means, weight_covariance=covariances)


def update_noise(
    state: OracleState, prior: OraclePrior, x: Array, y: Array, weights: Array
) -> OracleState:
    """Optimal IG of every unit: alpha_0 + sum w / 2, beta_0 + sum w E[(a - gamma z)^2] / 2."""
    concentrations, scales = list(state.noise_concentration), list(state.noise_scale)
    for layer, width in enumerate(state.widths[1:]):
        if not has_noise(state, layer):
            continue
        concentrations[layer], scales[layer] = np.zeros(width), np.zeros(width)
        for d in range(width):
            concentrations[layer][d], scales[layer][d] = noise_prior(state, prior, layer, d)
            for n in range(x.shape[0]):
                moments = layer_moments(state, x[n], n, layer)
                error = expected_square_error(state, moments, y[n], n, layer, d)
                if layer == hidden_layers(state) and state.outcome is not None:
                    assert state.outcome_local is not None
                    local = state.outcome_local[n]
                    error *= outcome_loops.parabola(state.outcome, local, y[n], width)[0][d]
                concentrations[layer][d] += 0.5 * weights[n]
                scales[layer][d] += 0.5 * weights[n] * error
    return replace(state, noise_concentration=concentrations, noise_scale=scales)


def update_global_shrinkage(state: OracleState, prior: OraclePrior) -> OracleState:
    """Optimal GIG of every tau_l; every weight adds -1/2 log tau - W^2 / (2 tau psi)."""
    if prior.global_gig is None:
        return state
    tau: list[Gig | None] = []
    for layer, (width_before, width) in enumerate(pairwise(state.widths)):
        half_squares = 0.0
        for d in range(width):
            for j in range(width_before):
                inverse = _psi_moment(state, layer, d, j, "inverse")
                half_squares += 0.5 * inverse * mean_square_weight(state, layer, d, j)
        tau.append(updated_scale(prior.global_gig, width * width_before, half_squares))
    return replace(state, tau=tau)


def update_local_shrinkage(state: OracleState, prior: OraclePrior) -> OracleState:
    """Optimal GIG of every psi_{l,d,d'}; its one weight adds -1/2 log psi - W^2 / (2 tau psi)."""
    psi = list(state.psi)
    for layer, (width_before, width) in enumerate(pairwise(state.widths)):
        local_gig, scales = prior.local_gig[layer], np.zeros((width, width_before))
        if local_gig is None:
            continue
        inverse = _tau_moment(state, layer, "inverse")
        for d in range(width):
            for j in range(width_before):
                half_square = 0.5 * inverse * mean_square_weight(state, layer, d, j)
                order, scales[d, j], rate = updated_scale(local_gig, 1, half_square)
        psi[layer] = (order, scales, rate)
    return replace(state, psi=psi)


def update_slab(state: OracleState, prior: OraclePrior) -> OracleState:
    """Optimal IG of every c^2; its weight adds -1/2 log c^2 - W^2 / (2 c^2)."""
    if prior.slab is None:
        return state
    slabs: list[tuple[Array, Array] | None] = []
    for layer, (width_before, width) in enumerate(pairwise(state.widths)):
        concentration, scale = (np.full((width, width_before), value) for value in prior.slab)
        for d in range(width):
            for j in range(width_before):
                concentration[d, j] += 0.5
                scale[d, j] += 0.5 * mean_square_weight(state, layer, d, j)
        slabs.append((concentration, scale))
    return replace(state, slab=slabs)


def predict_mean_and_variance(state: OracleState, x: Array) -> tuple[Array, Array, Array]:
    """E[y], Var[z_{L+1}] and E[eta2_{L+1}], each (N, D_out), from the local factors."""
    last = hidden_layers(state)
    shape = (x.shape[0], state.widths[-1])
    mean, signal, noise = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for n in range(shape[0]):
        moments = layer_moments(state, x[n], n, last)
        for d in range(shape[1]):
            mean[n, d] = mean_preactivation(state, moments, last, d)
            signal[n, d] = square_preactivation(state, moments, last, d) - mean[n, d] ** 2
            noise[n, d] = state.noise_scale[last][d] / (state.noise_concentration[last][d] - 1)
    return mean, signal, noise


def random_gig(rng: np.random.Generator, family: str) -> ScalePrior | None:
    """Random hyperparameters of a family; None for "gaussian"."""
    order, scale, rate = (float(v) for v in rng.uniform((-1.8, 0.4, 0.4), (1.8, 1.6, 1.6)))
    match family:
        case "student_t":
            return -1.1 - abs(order), scale, 0.0
        case "laplace":
            return 1.0, 0.0, rate
        case "normal_gamma":
            return 0.3 + abs(order), 0.0, rate
        case "normal_inverse_gaussian":
            return -0.5, scale, rate
        case "gig":
            return order, scale, rate
        case "horseshoe" | "regularized_horseshoe":
            return Cauchy(scale=scale)
        case "gaussian":
            return None
    raise ValueError(f"family must be one of {FAMILIES}, got {family!r}")


def random_covariance(rng: np.random.Generator, size: int, scale: float) -> Array:
    """Random symmetric positive definite matrix of the given order of magnitude."""
    root = rng.standard_normal((size, size))
    return np.asarray(scale * (root @ root.T / size + 0.3 * np.eye(size)))


def random_data(
    rng: np.random.Generator, widths: Sequence[int], count: int
) -> tuple[Array, Array, Array]:
    """Random x (N, D_0), y (N, D_out) and positive row weights (N,)."""
    x = rng.standard_normal((count, widths[0]))
    y = rng.standard_normal((count, widths[-1]))
    return x, y, rng.uniform(0.5, 2.5, count)


def random_state(
    rng: np.random.Generator,
    widths: Sequence[int],
    count: int,
    families: str | tuple[str, str],
    *,
    temperature: float = 0.7,
) -> tuple[OracleState, OraclePrior]:
    """Random valid state of `count` observations and its prior.

    `families` names the prior of tau and psi, (global, local) or one name for both. The orders of
    q(tau), q(psi) are those any exact update gives (the ELBO presumes them); the rate of q(tau),
    where it is positive, differs from the prior's, as after EM.
    """
    global_family, local_family = (families, families) if isinstance(families, str) else families
    layers = len(widths) - 1
    prior = OraclePrior(
        global_gig=random_gig(rng, global_family),
        local_gig=[random_gig(rng, local_family) for _ in range(layers)],
        hidden_noise=(float(rng.uniform(1.5, 3.0)), float(rng.uniform(0.3, 1.0))),
        output_noise=(float(rng.uniform(1.5, 3.0)), rng.uniform(0.3, 1.0, widths[-1])),
        bias_variance=float(rng.uniform(0.5, 2.0)),
        slab=(1.7, 0.9) if local_family == "regularized_horseshoe" else None,
    )
    weight_mean, weight_covariance, concentration, scale = [], [], [], []
    tau: list[Gig | None] = []
    psi: list[GigArray | None] = []
    slab: list[tuple[Array, Array] | None] = []
    for layer in range(layers):
        width, width_before = widths[layer + 1], widths[layer]
        weight_mean.append(rng.standard_normal((width, width_before + 1)))
        weight_covariance.append(
            np.stack([random_covariance(rng, width_before + 1, 0.2) for _ in range(width)])
        )
        concentration.append(rng.uniform(2.0, 5.0, width))
        scale.append(rng.uniform(0.5, 2.0, width))
        tau_scale = float(rng.uniform(0.5, 2.0)) * (1 + 0.5 * width * width_before)
        psi_scale = rng.uniform(0.3, 2.0, (width, width_before))
        rate_factor = float(rng.uniform(0.5, 1.5))
        if prior.global_gig is None:
            tau.append(None)
        else:
            order, _, rate = updated_scale(prior.global_gig, width * width_before, 1.0)
            tau.append((order, tau_scale, rate * rate_factor))
        local_gig = prior.local_gig[layer]
        if local_gig is None:
            psi.append(None)
        else:
            order, _, rate = updated_scale(local_gig, 1, 1.0)
            psi.append((order, psi_scale, rate))
        if prior.slab is None:
            slab.append(None)
        else:
            shape = (width, width_before)
            slab.append((rng.uniform(1.5, 3.0, shape), rng.uniform(0.5, 2.0, shape)))
    hidden = [(widths[k + 1], widths[k]) for k in range(layers - 1)]
    state = OracleState(
        widths=list(widths),
        temperature=temperature,
        weight_mean=weight_mean,
        weight_covariance=weight_covariance,
        noise_concentration=concentration,
        noise_scale=scale,
        tau=tau,
        psi=psi,
        fixed_tau=[float(v) for v in rng.uniform(0.5, 1.5, layers)],
        fixed_psi=[float(v) for v in rng.uniform(0.5, 1.5, layers)],
        slab=slab,
        offset=[[rng.standard_normal(d) for d, _ in hidden] for _ in range(count)],
        gain=[[0.5 * rng.standard_normal(shape) for shape in hidden] for _ in range(count)],
        covariance=[[random_covariance(rng, d, 0.4) for d, _ in hidden] for _ in range(count)],
        gate=[[rng.uniform(0.05, 0.95, d) for d, _ in hidden] for _ in range(count)],
        tilt=[[rng.uniform(0.2, 3.0, d) for d, _ in hidden] for _ in range(count)],
    )
    return state, prior
