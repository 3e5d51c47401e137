"""The oracle checks itself: gradients, monotone ascent, the dense joint and Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import mpmath
import numpy as np
import polyagamma
import pytest
from scipy import integrate, special, stats

from tests.oracles import plain_loops as oracle
from tests.oracles.plain_loops import Array, OraclePrior, OracleState

Move = Callable[[float], OracleState]
Update = Callable[[OracleState], OracleState]

# (widths, (family of tau, family of psi)); unequal widths, two outputs, one and two hidden layers
NETWORKS = [
    ([2, 3, 2, 2], ("student_t", "student_t")),
    ([3, 2, 1], ("gig", "normal_inverse_gaussian")),
    ([3, 2, 1], ("normal_gamma", "laplace")),
    ([3, 2, 1], ("gaussian", "gaussian")),
    ([3, 2, 1], ("horseshoe", "regularized_horseshoe")),
]
WIDTHS = ([2, 3, 2, 2], [3, 2, 1], [2, 2, 3, 2, 1], [3, 2])
COUNT = 2
GIG_FAMILIES = ("student_t", "laplace", "normal_gamma", "normal_inverse_gaussian", "gig")


def case(widths: list[int], families: tuple[str, str], seed: int = 1):
    rng = np.random.default_rng(seed)
    state, prior = oracle.random_state(rng, widths, COUNT, families)
    return state, prior, *oracle.random_data(rng, widths, COUNT)


def updates(
    state: OracleState, prior: OraclePrior, x: Array, y: Array, weights: Array
) -> dict[str, Update]:
    """Every single update of the state by name."""
    found: dict[str, Update] = {
        "activations": lambda s: oracle.update_activations(s, x, y),
        "tilts": lambda s: oracle.update_tilts(s, x),
        "gates": lambda s: oracle.update_gates(s, x),
    }
    for layer in range(len(state.widths) - 1):
        found |= {
            f"weights {layer}": lambda s, l=layer: oracle.update_weights(
                s, prior, x, y, weights, l
            ),
            f"noise {layer}": lambda s, l=layer: oracle.update_noise(s, prior, x, y, weights, l),
        }
        if prior.global_gig is not None:
            found[f"tau {layer}"] = lambda s, l=layer: oracle.update_global_shrinkage(s, prior, l)
        if prior.local_gig[layer] is not None:
            found[f"psi {layer}"] = lambda s, l=layer: oracle.update_local_shrinkage(s, prior, l)
        if prior.slab is not None:
            found[f"slab {layer}"] = lambda s, l=layer: oracle.update_slab(s, prior, l)
    return found


def array_moves(
    array: Array,
    put: Callable[[Array], OracleState],
    symmetric: bool = False,
    logit: bool = False,
) -> Iterator[Move]:
    """Moves of every entry of an array (of its logit), of a symmetric pair of entries if asked."""
    for index in np.ndindex(array.shape):
        if symmetric and index[-1] < index[-2]:
            continue

        def move(step: float, index: tuple[int, ...] = index) -> OracleState:
            moved = array.copy()
            if logit:
                moved[index] = special.expit(special.logit(moved[index]) + step)
                return put(moved)
            moved[index] += step
            if symmetric and index[-1] != index[-2]:
                moved[(*index[:-2], index[-1], index[-2])] += step
            return put(moved)

        yield move


def put_local(state: OracleState, field: str, n: int, layer: int, value: Array) -> OracleState:
    values = [list(row) for row in getattr(state, field)]
    values[n][layer] = value
    return replace(state, **{field: values})


def put_global(state: OracleState, field: str, layer: int, value: object) -> OracleState:
    values = list(getattr(state, field))
    values[layer] = value
    return replace(state, **{field: values})


def moves(state: OracleState, factor: str) -> Iterator[Move]:
    """Every free parameter of a factor as a function step -> state."""
    fields = {
        "activations": ("offset", "gain", "covariance"),
        "tilts": ("tilt",),
        "gates": ("gate",),
    }
    if factor in fields:
        for field in fields[factor]:
            for n in range(COUNT):
                for layer in range(len(state.widths) - 2):
                    yield from array_moves(
                        getattr(state, field)[n][layer],
                        lambda v, f=field, n=n, l=layer: put_local(state, f, n, l, v),
                        symmetric=field == "covariance",
                        logit=field == "gate",
                    )
        return
    name, layer = factor.split()[0], int(factor.split()[1])
    if name in ("weights", "noise"):
        fields = {
            "weights": ("weight_mean", "weight_covariance"),
            "noise": ("noise_concentration", "noise_scale"),
        }
        for field in fields[name]:
            yield from array_moves(
                getattr(state, field)[layer],
                lambda v, f=field: put_global(state, f, layer, v),
                symmetric=field == "weight_covariance",
            )
        return
    if name == "slab":
        both = state.slab[layer]
        for place in range(2):

            def put(value: Array, place: int = place) -> OracleState:
                pair = (value, both[1]) if place == 0 else (both[0], value)
                return put_global(state, "slab", layer, pair)

            yield from array_moves(both[place], put)
        return
    order, scale, rate = getattr(state, name)[layer]
    yield lambda step: put_global(state, name, layer, (order + step, scale, rate))
    if rate > 0:
        yield lambda step: put_global(state, name, layer, (order, scale, rate + step))
    if name == "tau":
        yield lambda step: put_global(state, name, layer, (order, scale + step, rate))
    else:
        yield from array_moves(scale, lambda v: put_global(state, name, layer, (order, v, rate)))


def gradient(state: OracleState, factor: str, value: Callable[[OracleState], float]) -> Array:
    """Fourth-order central differences of the ELBO in every free parameter of a factor."""
    step = 2e-4
    found = []
    for move in moves(state, factor):
        near = value(move(step)) - value(move(-step))
        far = value(move(2 * step)) - value(move(-2 * step))
        found.append((8 * near - far) / (12 * step))
    return np.array(found)


@pytest.mark.parametrize(("widths", "families"), NETWORKS)
def test_every_update_is_stationary(widths: list[int], families: tuple[str, str]) -> None:
    state, prior, x, y, weights = case(widths, families)

    def value(s: OracleState) -> float:
        return oracle.elbo(s, prior, x, y, weights)["total"]

    for factor, update in updates(state, prior, x, y, weights).items():
        before = gradient(state, factor, value)
        after = gradient(update(state), factor, value)
        assert np.max(np.abs(before)) > 1e-2, factor
        np.testing.assert_allclose(after, 0, atol=1e-6, err_msg=factor)


@pytest.mark.parametrize(
    ("widths", "family"),
    [(WIDTHS[i % 4], family) for i, family in enumerate(oracle.FAMILIES)],
)
def test_no_update_lowers_the_elbo(widths: list[int], family: str) -> None:
    state, prior, x, y, weights = case(widths, (family, family), seed=2)
    value = oracle.elbo(state, prior, x, y, weights)["total"]
    for _ in range(2):
        for factor, update in updates(state, prior, x, y, weights).items():
            state = update(state)
            new = oracle.elbo(state, prior, x, y, weights)["total"]
            assert new >= value - 1e-9 * abs(value), factor
            value = new
        # `updates` reads the prior again in the next round
        prior = oracle.em_global(prior, state)
        new = oracle.elbo(state, prior, x, y, weights)["total"]
        assert new >= value - 1e-9 * abs(value), "em"
        value = new


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


def test_weight_stands_for_repeated_rows() -> None:
    state, prior, x, y, _ = case([2, 3, 2, 2], ("student_t", "laplace"), seed=4)
    rows = [0, 0, 0, 1, 1]
    local = ("offset", "gain", "covariance", "gate", "tilt")
    repeated = replace(state, **{f: [getattr(state, f)[n] for n in rows] for f in local})
    weights = np.array([3.0, 2.0])
    heavy, light = (state, x, y, weights), (repeated, x[rows], y[rows], None)
    for layer in range(3):
        for name in ("update_weights", "update_noise"):
            got, want = (getattr(oracle, name)(s, prior, *d, layer) for s, *d in (heavy, light))
            for field in ("weight_mean", "weight_covariance", "noise_scale", "noise_concentration"):
                np.testing.assert_allclose(
                    getattr(got, field)[layer], getattr(want, field)[layer], rtol=1e-10
                )
    terms = [oracle.elbo(s, prior, *d) for s, *d in (heavy, light)]
    for name in terms[0]:
        assert terms[0][name] == pytest.approx(terms[1][name], rel=1e-11), name


def test_gig_quadrature_against_formulas() -> None:
    rng = np.random.default_rng(5)
    for family in GIG_FAMILIES:
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


def test_a_cauchy_scale_is_a_mixture_of_inverse_gammas() -> None:
    """Its density by quadrature over nu, and its bound beside a q(x) below the one without nu."""
    prior, q = oracle.Cauchy(scale=0.7), (-1.5, 0.8, 0.0)

    def density(x: float) -> float:
        def product(log_nu: float) -> float:
            nu = math.exp(log_nu)
            law = stats.invgamma(0.5, scale=1 / nu).pdf(x)
            return float(law * stats.invgamma(0.5, scale=1 / prior.scale).pdf(nu) * nu)

        return integrate.quad(product, -40.0, 60.0, limit=400, points=[0.0])[0]

    for x in (0.05, 0.7, 4.0):
        root = stats.halfcauchy(scale=math.sqrt(prior.scale)).pdf(math.sqrt(x))
        assert density(x) == pytest.approx(root / (2 * math.sqrt(x)), rel=1e-7)
    law = stats.invgamma(1.5, scale=0.8)
    marginal = stats.halfcauchy(scale=math.sqrt(prior.scale))

    def log_marginal(x: float) -> float:
        return float(marginal.logpdf(math.sqrt(x)) - 0.5 * math.log(4 * x))

    exact = law.expect(log_marginal, epsabs=1e-10)
    found = oracle.expected_log_scale_prior(prior, q)
    assert exact - 0.2 < found < exact


def test_em_of_a_cauchy_scale() -> None:
    state, prior, x, y, weights = case([2, 3, 2, 2], ("horseshoe", "horseshoe"), seed=6)
    new = oracle.em_global(prior, state)

    def value(factor: float) -> float:
        moved = oracle.Cauchy(scale=new.global_gig.scale * factor)
        return oracle.elbo(state, replace(prior, global_gig=moved), x, y, weights)["total"]

    assert abs(value(1 + 1e-4) - value(1 - 1e-4)) / 2e-4 < 1e-5
    assert value(1.0) > max(value(0.9), value(1.1))


@pytest.mark.parametrize("family", GIG_FAMILIES)
def test_em_closed_forms_and_stationarity(family: str) -> None:
    """Section 6: closed forms, and the gradient of the ELBO in the hyperparameter."""
    state, prior, x, y, weights = case([2, 3, 2, 2], (family, "student_t"), seed=6)
    order, scale, rate = prior.global_gig
    if family == "gig":
        order = 0.7
        prior = replace(prior, global_gig=(order, scale, rate))
    new = oracle.em_global(prior, state)
    taus = state.tau
    layers = len(taus)
    if family == "student_t":
        want = layers * -order / sum(oracle.gig_mean_inverse(*t) for t in taus)
        assert new.global_gig == pytest.approx((order, want, 0.0), rel=1e-10)
    mean = sum(oracle.gig_mean(*t) for t in taus)
    if family in ("laplace", "normal_gamma"):
        assert new.global_gig == pytest.approx((order, 0.0, layers * order / mean), rel=1e-10)
    if family == "normal_inverse_gaussian":
        delta = math.sqrt(2 * scale)
        want = (layers * delta / mean) ** 2 / 2
        assert new.global_gig == pytest.approx((order, scale, want), rel=1e-10)

    def slope(p: OraclePrior) -> float:
        values = []
        for factor in (1 + 1e-4, 1 - 1e-4):
            order, scale, rate = p.global_gig
            moved = (order, scale * factor, 0.0) if rate == 0 else (order, scale, rate * factor)
            moved_prior = replace(p, global_gig=moved)
            values.append(oracle.elbo(state, moved_prior, x, y, weights)["total"])
        return (values[0] - values[1]) / 2e-4

    assert abs(slope(prior)) > 1e-2
    assert abs(slope(new)) < 1e-5


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


# ------------------------------------------------------------------------------------------------
# Monte Carlo
# ------------------------------------------------------------------------------------------------


def draw_gig(rng: np.random.Generator, gig: oracle.Gig, size: int) -> Array:
    order, scale, rate = gig
    if rate == 0:
        return scale / rng.gamma(-order, 1.0, size)
    b, unit = 2 * math.sqrt(scale * rate), math.sqrt(scale / rate)
    return stats.geninvgauss.rvs(order, b, scale=unit, size=size, random_state=rng)


def log_gig(x: Array, gig: oracle.Gig) -> Array:
    order, scale, rate = gig
    if rate == 0:
        return stats.invgamma.logpdf(x, -order, scale=scale)
    if scale == 0:
        return stats.gamma.logpdf(x, order, scale=1 / rate)
    b, unit = 2 * math.sqrt(scale * rate), math.sqrt(scale / rate)
    return stats.geninvgauss.logpdf(x, order, b, scale=unit)


def log_normal(x: Array, mean: Array | float, variance: Array | float) -> Array:
    return stats.norm.logpdf(x, mean, np.sqrt(variance))


def sampled_terms(
    rng: np.random.Generator,
    state: OracleState,
    prior: OraclePrior,
    data: tuple[Array, Array, Array],
    size: int,
) -> dict[str, Array]:
    """Draws of log p and -log q, under the oracle's names; Polya-Gamma densities as a ratio."""
    x, y, weights = data
    last = len(state.widths) - 2
    terms = dict.fromkeys(oracle.elbo(state, prior, x, y, weights), np.zeros(size))
    del terms["total"]

    def add(name: str, value: Array) -> None:
        terms[name] = terms[name] + value

    rows, noises = [], []
    for layer in range(last + 1):
        tau, psi = state.tau[layer], state.psi[layer]
        tau_draw = draw_gig(rng, tau, size)
        add("tau_prior", log_gig(tau_draw, prior.global_gig))
        add("tau_entropy", -log_gig(tau_draw, tau))
        layer_rows, layer_noises = [], []
        for d in range(state.widths[layer + 1]):
            normal = stats.multivariate_normal(
                state.weight_mean[layer][d], state.weight_covariance[layer][d], seed=rng
            )
            row = normal.rvs(size)
            layer_rows.append(row)
            add("weight_entropy", -normal.logpdf(row))
            add("bias_prior", log_normal(row[:, 0], 0.0, prior.bias_variance))
            for j in range(state.widths[layer]):
                q = (psi[0], float(psi[1][d, j]), psi[2])
                draw = draw_gig(rng, q, size)
                add("psi_prior", log_gig(draw, prior.local_gig[layer]))
                add("psi_entropy", -log_gig(draw, q))
                add("weight_prior", log_normal(row[:, j + 1], 0.0, tau_draw * draw))
            own = stats.invgamma(
                state.noise_concentration[layer][d], scale=state.noise_scale[layer][d]
            )
            noise = own.rvs(size, random_state=rng)
            alpha, beta = oracle.noise_prior(state, prior, layer, d)
            add("noise_prior", stats.invgamma.logpdf(noise, alpha, scale=beta))
            add("noise_entropy", -own.logpdf(noise))
            layer_noises.append(noise)
        rows.append(layer_rows)
        noises.append(layer_noises)

    for n in range(x.shape[0]):
        parent = np.broadcast_to(x[n], (size, x.shape[1]))
        for layer in range(last):
            residual = stats.multivariate_normal(
                np.zeros(state.widths[layer + 1]), state.covariance[n][layer], seed=rng
            )
            error = residual.rvs(size).reshape(size, -1)
            add("activation_entropy", -weights[n] * residual.logpdf(error))
            a = state.offset[n][layer] + parent @ state.gain[n][layer].T + error
            for d in range(state.widths[layer + 1]):
                row = rows[layer][d]
                z = row[:, 0] + np.sum(row[:, 1:] * parent, axis=1)
                rho, tilt = state.gate[n][layer][d], state.tilt[n][layer][d]
                gamma = (rng.random(size) < rho).astype(float)
                omega = polyagamma.random_polyagamma(
                    1, tilt, size=size, method="devroye", random_state=rng
                )
                scaled = z / state.temperature
                gate = -math.log(2) + (gamma - 0.5) * scaled - omega * scaled**2 / 2
                add("gate_likelihood", weights[n] * gate)
                ratio = tilt**2 * omega / 2 - math.log(math.cosh(tilt / 2))
                add("tilt_ratio", weights[n] * ratio)
                add("gate_entropy", -weights[n] * stats.bernoulli.logpmf(gamma, rho))
                likelihood = log_normal(a[:, d], gamma * z, noises[layer][d])
                add("activation_likelihood", weights[n] * likelihood)
            parent = a
        for d in range(state.widths[-1]):
            row = rows[last][d]
            z = row[:, 0] + np.sum(row[:, 1:] * parent, axis=1)
            add("output_likelihood", weights[n] * log_normal(y[n, d], z, noises[last][d]))
    return terms


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


@pytest.mark.parametrize(
    ("widths", "families"),
    [([2, 2, 2, 1], ("student_t", "laplace")), ([2, 3, 1], ("gig", "student_t"))],
)
def test_elbo_against_monte_carlo(widths: list[int], families: tuple[str, str]) -> None:
    """Total within 4 standard errors (false alarm 6e-5), each term within 5 (seeded)."""
    state, prior, *data = case(widths, families, seed=11)
    size = 100_000
    terms = sampled_terms(np.random.default_rng(12), state, prior, tuple(data), size)
    exact = oracle.elbo(state, prior, *data)
    for name, draws in terms.items():
        error = float(draws.std()) / math.sqrt(size)
        assert abs(draws.mean() - exact[name]) < 5 * error + 1e-12, name
    total = sum(terms.values())
    error = float(total.std()) / math.sqrt(size)
    assert error < 0.5
    assert abs(total.mean() - exact["total"]) < 4 * error


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
