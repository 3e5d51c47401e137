"""The oracle checks itself: gradients, monotone ascent, the dense joint and Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import mpmath
import numpy as np
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
