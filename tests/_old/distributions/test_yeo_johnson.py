"""Warps of targets: against SciPy, autodiff, integration and draws; ends, moments, fits."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import (
    MARGIN,
    Warp,
    fit_warp,
    from_warped,
    hermite_coefficients,
    identity,
    log_slope,
    mean_and_deviation,
    moments,
    signal_variance,
    to_warped,
    warped_and_slope,
)

EXPONENTS = [0.0, 1e-9, 0.3, 1.0, 1.4, 2.0 - 1e-9, 2.0]
LOW, HIGH = -2.5, 6.0
every_exponent = pytest.mark.parametrize("exponent", EXPONENTS)
few_examples = settings(max_examples=60, deadline=None, derandomize=True)


def make_warp(
    exponent: float,
    low: float = LOW,
    high: float = HIGH,
    center: float = 0.2,
    scale: float = 0.8,
) -> Warp:
    values = (exponent, low, high, center, scale)
    names = [field.name for field in fields(Warp)]
    return Warp(**{n: np.float64(v) for n, v in zip(names, values, strict=True)})


def integrate(warp: Warp, mean: float, deviation: float) -> tuple[float, float]:
    """E[u] and Var[u] by Gauss-Legendre in 400 pieces that end where g is not smooth."""
    edges = mean + deviation * np.linspace(-12.0, 12.0, 401)
    knots = to_warped(warp, np.array([warp.low, 0.0, warp.high]))
    inside = knots[(edges[0] < knots) & (knots < edges[-1])]
    edges = np.sort(np.concatenate([edges, inside]))
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    z = middle + half * nodes
    density = half * weights * stats.norm.pdf(z, mean, deviation)
    u = from_warped(warp, z)
    first = np.sum(density * u)
    return float(first), float(np.sum(density * (u - first) ** 2))


# The transform


@every_exponent
def test_inside_its_range_it_is_scipys(exponent: float) -> None:
    warp, u = make_warp(exponent), np.linspace(LOW, HIGH, 101)
    expected = (stats.yeojohnson(u, exponent) - 0.2) / 0.8
    np.testing.assert_allclose(to_warped(warp, u), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_closed_forms(exponent: float) -> None:
    """λ = 0: log(1 + u) above 0; λ = 1: u; λ = 2: -log(1 - u) below 0; to rounding."""
    warp, u = make_warp(exponent, center=0.0, scale=1.0), np.linspace(0.0, 2.0, 50)
    if exponent == 0.0:
        np.testing.assert_allclose(to_warped(warp, u), np.log1p(u), rtol=1e-15)
    if exponent == 1.0:
        np.testing.assert_allclose(to_warped(warp, 9.0 * u - 9.0), 9.0 * u - 9.0, atol=4e-15)
    if exponent == 2.0:
        np.testing.assert_allclose(to_warped(warp, -u), -np.log1p(u), rtol=1e-15)


@every_exponent
def test_there_and_back(exponent: float) -> None:
    """Far outside, at both ends, beside them and near zero."""
    warp = make_warp(exponent)
    ends = [end + step for end in (LOW, HIGH) for step in (-1e-9, 0.0, 1e-9)]
    near = [-1e-12, 0.0, 1e-12]
    u = np.concatenate([np.linspace(-4.0, 9.0, 200), ends, near, [-1e6, 1e6, -1e300, 1e300]])
    np.testing.assert_allclose(from_warped(warp, to_warped(warp, u)), u, rtol=1e-13, atol=1e-14)
    z = np.concatenate([np.linspace(-30.0, 30.0, 200), [-1e300, 1e300]])
    np.testing.assert_allclose(to_warped(warp, from_warped(warp, z)), z, rtol=1e-13, atol=1e-14)


@given(
    exponent=st.floats(0.0, 2.0),
    low=st.floats(-5.0, 5.0),
    width=st.floats(0.0, 10.0),
    points=st.lists(st.floats(-20.0, 20.0), min_size=2, max_size=20),
)
@few_examples
def test_it_rises_and_can_be_undone(
    exponent: float, low: float, width: float, points: list[float]
) -> None:
    """Ranges that need not hold zero, and may be a point."""
    warp, u = make_warp(exponent, low, low + width), np.sort(points)
    z = to_warped(warp, u)
    assert np.all(np.diff(z) >= -1e-12)
    np.testing.assert_allclose(from_warped(warp, z), u, rtol=1e-12, atol=1e-12)


@every_exponent
def test_outside_it_is_a_line(exponent: float) -> None:
    warp = make_warp(exponent)
    for end, direction in ((LOW, -1.0), (HIGH, 1.0)):
        z = to_warped(warp, end + direction * np.arange(5.0))
        np.testing.assert_allclose(np.diff(z, n=2), 0.0, atol=1e-12)
        step = np.exp(log_slope(warp, np.float64(end)))
        np.testing.assert_allclose(z[1] - z[0], direction * step, rtol=1e-12)


@every_exponent
def test_slopes_against_differences_and_autodiff(exponent: float) -> None:
    warp = make_warp(exponent)
    u = np.linspace(-4.03, 9.04, 66)
    slope = np.exp(log_slope(warp, u))
    step = 1e-5
    differences = (to_warped(warp, u + step) - to_warped(warp, u - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, differences, rtol=1e-8)
    derivative = jax.vmap(jax.grad(lambda x: to_warped(warp, x)))(jnp.asarray(u))
    np.testing.assert_allclose(slope, derivative, rtol=1e-12)
    back = jax.vmap(jax.grad(lambda z: from_warped(warp, z)))(jnp.asarray(to_warped(warp, u)))
    np.testing.assert_allclose(back, 1.0 / slope, rtol=1e-12)
    np.testing.assert_allclose(warped_and_slope(warp, u)[1], slope, rtol=1e-13)


@every_exponent
def test_no_jump_of_value_or_slope(exponent: float) -> None:
    """At zero and at both ends, within what the step of 1e-9 can change."""
    warp = make_warp(exponent)
    for knot in (LOW, 0.0, HIGH):
        beside = knot + np.array([-1e-9, 0.0, 1e-9])
        assert np.ptp(to_warped(warp, beside)) < 1e-7
        assert np.ptp(log_slope(warp, beside)) < 1e-7


def test_the_identity_changes_no_bit(rng: np.random.Generator) -> None:
    u = rng.normal(size=(3, 50)) * 10.0 ** rng.uniform(-300.0, 300.0, size=(3, 50))
    warp = identity((3, 1))
    np.testing.assert_array_equal(to_warped(warp, u), u)
    np.testing.assert_array_equal(from_warped(warp, u), u)
    np.testing.assert_array_equal(log_slope(warp, u), 0.0)


@every_exponent
def test_infinite_values_stay(exponent: float) -> None:
    warp, ends = make_warp(exponent), np.array([-np.inf, np.inf])
    np.testing.assert_array_equal(to_warped(warp, ends), ends)
    np.testing.assert_array_equal(from_warped(warp, ends), ends)
    assert np.all(np.isfinite(log_slope(warp, ends)))


def test_mirrored_targets_have_the_exponent_two_minus_it() -> None:
    warp = make_warp(0.3)
    mirrored = make_warp(1.7, -HIGH, -LOW, -0.2)
    u = np.linspace(-8.0, 8.0, 50)
    np.testing.assert_allclose(to_warped(mirrored, -u), -to_warped(warp, u), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_arrays(dtype: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    warp = Warp(
        exponent=np.array([0.0, 0.4, 2.0]),
        low=np.full(3, LOW),
        high=np.full(3, HIGH),
        center=np.array([0.1, 0.0, -0.3]),
        scale=np.array([0.7, 1.0, 1.2]),
    )
    values, variance = 2.0 * rng.normal(size=(20, 3)), rng.uniform(0.1, 1.0, size=(20, 3))
    others = [torch.asarray(a, dtype=getattr(torch, dtype)) for a in (values, variance)]
    found: list[Any] = [f(warp, others[0]) for f in (to_warped, from_warped, log_slope)]
    expected: list[Any] = [f(warp, values) for f in (to_warped, from_warped, log_slope)]
    found += [*moments(warp, *others), signal_variance(warp, *others, others[1])]
    expected += [
        *moments(warp, values, variance),
        signal_variance(warp, values, variance, variance),
    ]
    tolerance = 1e-12 if dtype == "float64" else 2e-4
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == others[0].dtype
        np.testing.assert_allclose(one.numpy(), other, rtol=tolerance, atol=tolerance)


# Fits


def loss(exponent: float, values: np.ndarray, weights: np.ndarray) -> float:
    """-log likelihood of an exponent, with mean and variance at their best."""
    z, share = stats.yeojohnson(values, exponent), weights / np.sum(weights)
    spread = share @ (z - share @ z) ** 2
    slope = (exponent - 1.0) * (share @ (np.sign(values) * np.log1p(np.abs(values))))
    return float(0.5 * np.log(spread) - slope)


SAMPLES = {
    "gaussian": lambda rng: rng.normal(size=300),
    "long upper tail": lambda rng: rng.lognormal(size=300),
    "long lower tail": lambda rng: -rng.gamma(0.7, size=300),
    "two peaks": lambda rng: np.concatenate([rng.normal(size=99), rng.normal(5.0, 0.1, size=201)]),
    "counts": lambda rng: rng.poisson(1.0, size=300).astype(float),
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_fits_against_a_grid(sample: Any, rng: np.random.Generator) -> None:
    values = sample(rng)
    values = (values - values.mean()) / values.std()
    weights = rng.uniform(0.5, 3.0, size=values.size)
    warp = fit_warp(values[:, None], weights)
    grid = np.linspace(0.0, 2.0, 401)
    best = min(loss(exponent, values, weights) for exponent in grid)
    assert loss(float(warp.exponent[0]), values, weights) < best + 1e-5
    z = to_warped(warp, values[:, None])[:, 0]
    share = weights / np.sum(weights)
    np.testing.assert_allclose(share @ z, 0.0, atol=1e-12)
    np.testing.assert_allclose(share @ z**2, 1.0, rtol=1e-12)
    width = np.ptp(values)
    np.testing.assert_allclose(warp.low, [values.min() - MARGIN * width])
    np.testing.assert_allclose(warp.high, [values.max() + MARGIN * width])


def test_weights_are_repeated_rows(rng: np.random.Generator) -> None:
    values, counts = rng.gamma(1.0, size=(60, 2)) - 1.0, rng.integers(1, 4, size=60)
    weighted = fit_warp(values, counts.astype(float))
    repeated = np.repeat(values, counts, axis=0)
    plain = fit_warp(repeated, np.ones(len(repeated)))
    for field in fields(Warp):
        one, other = getattr(weighted, field.name), getattr(plain, field.name)
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4, err_msg=field.name)


def test_columns_are_apart(rng: np.random.Generator) -> None:
    values, weights = np.stack([rng.gamma(1.0, size=50), -rng.gamma(1.0, size=50)], 1), np.ones(50)
    both = fit_warp(values, weights)
    alone = [fit_warp(values[:, [d]], weights) for d in range(2)]
    for field in fields(Warp):
        parts = np.concatenate([getattr(one, field.name) for one in alone])
        np.testing.assert_allclose(getattr(both, field.name), parts, rtol=1e-14)
    assert both.exponent[0] < 1.0 < both.exponent[1]


@pytest.mark.parametrize("values", [[0.0], [3.0], [2.0, 2.0, 2.0], [-1.0, 1.0], [-0.5, 2.0, -0.5]])
def test_few_values(values: list[float]) -> None:
    targets = np.array(values)[:, None]
    warp = fit_warp(targets, np.ones(len(values)))
    for field in fields(Warp):
        assert np.all(np.isfinite(getattr(warp, field.name)))
    assert 0.0 <= warp.exponent[0] <= 2.0
    assert warp.scale[0] > 0.0
    if np.ptp(targets) == 0.0:
        assert (warp.exponent[0], warp.scale[0]) == (1.0, 1.0)
        np.testing.assert_allclose(to_warped(warp, targets), 0.0, atol=1e-15)
    far = np.array([[-1e3], [1e3]])
    np.testing.assert_allclose(from_warped(warp, to_warped(warp, far)), far, rtol=1e-12)


# Moments


@every_exponent
@pytest.mark.parametrize(
    ("mean", "deviation", "allowed"),
    [(0.0, 0.1, 1e-5), (1.5, 0.3, 3e-4), (-1.0, 0.5, 1e-3), (0.0, 1.0, 2e-3), (5.0, 3.0, 2e-2)],
)
def test_moments_by_integration(
    exponent: float, mean: float, deviation: float, allowed: float
) -> None:
    """Twenty points see little of the knots; the last distribution is wider than all targets."""
    warp = make_warp(exponent)
    center, variance = moments(warp, np.float64(mean), np.float64(deviation**2))
    first, second = integrate(warp, mean, deviation)
    assert abs(center - first) < allowed * np.sqrt(second)
    assert abs(variance / second - 1.0) < allowed


@pytest.mark.parametrize("exponent", [0.0, 0.6, 2.0])
def test_moments_by_draws(exponent: float) -> None:
    """Five standard errors fail by chance in 6e-7 of runs, for each of two moments."""
    warp, rng, n = make_warp(exponent), np.random.default_rng(4), 400_000
    u = from_warped(warp, rng.normal(0.3, 0.7, size=n))
    center, variance = moments(warp, np.float64(0.3), np.float64(0.49))
    assert abs(u.mean() - center) < 5.0 * u.std() / np.sqrt(n)
    squares = (u - center) ** 2
    assert abs(squares.mean() - variance) < 5.0 * squares.std() / np.sqrt(n) + 1e-3 * variance


def test_moments_of_lines_are_exact(rng: np.random.Generator) -> None:
    warp, mean, variance = make_warp(1.0), rng.normal(size=50), rng.uniform(0.01, 9.0, size=50)
    center, spread = moments(warp, mean, variance)
    np.testing.assert_allclose(center, 0.8 * mean + 0.2, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(spread, 0.64 * variance, rtol=1e-13)


@pytest.mark.parametrize(("mean", "deviation"), [(2.0, 0.1), (3.0, 0.3), (4.0, 0.4)])
def test_moments_of_lognormals(mean: float, deviation: float) -> None:
    """λ = 0, ends far away, nothing below zero: u + 1 = exp(z)."""
    warp = make_warp(0.0, -10.0, 1e6, 0.0, 1.0)
    center, variance = moments(warp, np.float64(mean), np.float64(deviation**2))
    growth = np.exp(mean + 0.5 * deviation**2)
    np.testing.assert_allclose(center, growth - 1.0, rtol=1e-11)
    np.testing.assert_allclose(variance, growth**2 * np.expm1(deviation**2), rtol=1e-9)


@every_exponent
def test_deviations_of_any_size(exponent: float) -> None:
    """Small ones are those of a line with the slope at the mean; none vanishes or overflows."""
    warp, mean = make_warp(exponent), np.float64(1e-3)
    slope = np.exp(log_slope(warp, from_warped(warp, mean)))
    center, deviation = mean_and_deviation(warp, mean, np.float64(1e-9))
    np.testing.assert_allclose((center, deviation), (from_warped(warp, mean), 1e-9 / slope), 1e-6)
    for size in (0.0, 1e-300, 1e200, 1e300):
        found = mean_and_deviation(warp, np.float64(0.0), np.float64(size))
        assert np.all(np.isfinite(found))
    assert found[1] > 1e299
    assert moments(warp, mean, np.float64(0.0))[1] == 0.0


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.8])
def test_signal_variance_by_nested_draws(exponent: float) -> None:
    """Var_f[E[u | f]] = Cov[u, u'] of two draws that share f; five standard errors, 6e-7."""
    warp, rng, n = make_warp(exponent), np.random.default_rng(6), 400_000
    mean, epistemic, noise = 0.4, 0.3, 0.5
    f = rng.normal(mean, np.sqrt(epistemic), size=n)
    one, two = (from_warped(warp, f + rng.normal(0.0, np.sqrt(noise), size=n)) for _ in range(2))
    found = signal_variance(warp, *(np.float64(x) for x in (mean, epistemic, noise)))
    products = (one - one.mean()) * (two - two.mean())
    assert abs(products.mean() - found) < 5.0 * products.std() / np.sqrt(n) + 1e-3 * found


@every_exponent
def test_the_law_of_total_variance(exponent: float) -> None:
    """Var[u] = Var_f[E[u | f]] + E_f[Var[u | f]], and with no noise, or noise alone, all of it."""
    warp, nodes = make_warp(exponent), np.polynomial.hermite_e.hermegauss(60)
    mean, epistemic, noise = np.float64(0.4), np.float64(0.2), np.float64(0.4)
    inner = moments(warp, mean + np.sqrt(epistemic) * nodes[0], np.full(60, noise))[1]
    rest = inner @ nodes[1] / np.sum(nodes[1])
    total = moments(warp, mean, epistemic + noise)[1]
    np.testing.assert_allclose(signal_variance(warp, mean, epistemic, noise) + rest, total, 2e-3)
    none = np.float64(0.0)
    assert signal_variance(warp, mean, none, noise) < 1e-25
    everything = signal_variance(warp, mean, epistemic, none)
    np.testing.assert_allclose(everything, moments(warp, mean, epistemic)[1], rtol=1e-12)
    assert signal_variance(warp, mean, none, none) == 0.0


@pytest.mark.parametrize("correlation", [-0.9, 0.3, 0.99])
def test_covariances_by_draws(correlation: float) -> None:
    """Σ ρ^k c_k c'_k of two targets with warps of their own; five standard errors, 6e-7."""
    rng, n = np.random.default_rng(7), 400_000
    warps = make_warp(0.2), make_warp(1.7)
    means, deviations = (0.3, -0.2), (0.6, 0.8)
    parts = [
        hermite_coefficients(warp, np.float64(m), np.float64(d), 12)
        for warp, m, d in zip(warps, means, deviations, strict=True)
    ]
    powers = correlation ** np.arange(1, 13)
    z = rng.multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]], size=n).T
    one, two = (
        from_warped(warp, m + d * x)
        for warp, m, d, x in zip(warps, means, deviations, z, strict=True)
    )
    products = (one - one.mean()) * (two - two.mean())
    error = abs(np.sum(powers * parts[0] * parts[1]) - products.mean())
    assert error < 5.0 * products.std() / np.sqrt(n)


@every_exponent
def test_coefficients_add_to_the_variance(exponent: float, rng: np.random.Generator) -> None:
    warp, mean = make_warp(exponent), rng.normal(size=4)
    deviation = np.full(4, 0.5)
    found = hermite_coefficients(warp, mean, deviation, 15)
    assert found.shape == (15, 4)
    np.testing.assert_allclose(np.sum(found**2, axis=0), moments(warp, mean, deviation**2)[1], 5e-3)


def test_arrays_are_broadcast(rng: np.random.Generator) -> None:
    """Warps (K, 1) and values (K, n), or (n,), are K warps of n values."""
    warp = Warp(
        exponent=np.array([[0.0], [0.7], [1.6]]),
        low=np.full((3, 1), LOW),
        high=np.full((3, 1), HIGH),
        center=np.array([[0.1], [0.2], [0.3]]),
        scale=np.array([[1.0], [2.0], [3.0]]),
    )
    values = 3.0 * rng.normal(size=7)
    for function in (to_warped, from_warped, log_slope):
        found = function(warp, values)
        assert found.shape == (3, 7)
        for k in range(3):
            alone = function(map_arrays(lambda a, k=k: a[k, 0], warp), values)
            np.testing.assert_array_equal(found[k], alone)
