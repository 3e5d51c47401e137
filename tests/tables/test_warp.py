"""Warps of targets: against SciPy's transform, inverses, differences, ends, units, weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bowtienet.tables.warp import (
    Warp,
    fit_warp,
    forward,
    forward_and_slopes,
    inverse,
    is_affine,
    log_slope,
)

EXPONENTS = [0.0, 1e-12, 1e-5, 0.3, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1.7, 2.0 - 1e-5, 2.0 - 1e-12, 2.0]


def warp_of(exponent: float) -> Warp:
    """A warp of one target between u = -3 and u = 5."""
    values = {"center": 2.0, "scale": 3.0, "low": -3.0, "high": 5.0, "shift": 0.4, "size": 1.3}
    return Warp(exponent=np.array([exponent]), **{k: np.array([v]) for k, v in values.items()})


def skewed(rng: np.random.Generator, n: int = 200) -> np.ndarray:
    """Targets with a long upper tail, a long lower one, and of two values."""
    bent = np.exp(0.8 * rng.normal(size=(n, 2)))
    return np.column_stack([bent[:, 0], -bent[:, 1], rng.integers(0, 2, n)])


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_formula_of_yeo_and_johnson(exponent: float) -> None:
    warp, u = warp_of(exponent), np.linspace(-3.0, 5.0, 41)
    expected = (stats.yeojohnson(u, exponent) - 0.4) / 1.3
    z = forward(warp, (2.0 + 3.0 * u)[:, None])[:, 0]
    # SciPy forms (1 + u)^λ - 1, which has few digits for λ near 0.
    tolerance = 1e-3 if 0.0 < min(exponent, 2.0 - exponent) < 1e-9 else 1e-10
    np.testing.assert_allclose(z, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_inverse_and_slopes(exponent: float) -> None:
    """Inverse of forward, and slopes against differences, within the ends and outside."""
    warp = warp_of(exponent)
    y = np.linspace(-30.0, 60.0, 900)[:, None]
    z, slope, curvature = forward_and_slopes(warp, y)
    assert np.all(np.diff(z, axis=0) > 0.0)
    np.testing.assert_allclose(inverse(warp, z), y, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(log_slope(warp, y), np.log(slope))
    h = 1e-4
    difference = (forward(warp, y + h) - forward(warp, y - h)) / (2.0 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-5)
    bending = (log_slope(warp, y + h) - log_slope(warp, y - h)) / (2.0 * h)
    ends = np.min(np.abs(y - np.array([-7.0, 17.0])), axis=1, keepdims=True) < 2.0 * h
    np.testing.assert_allclose(np.where(ends, 0.0, curvature - bending), 0.0, atol=1e-7)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_lines_beyond_the_ends(exponent: float) -> None:
    warp = warp_of(exponent)
    for end, side in ((-7.0, -1.0), (17.0, 1.0)):
        points = np.array([[end], [end + side], [end + 1e6 * side]])
        z, slope, curvature = forward_and_slopes(warp, points)
        np.testing.assert_array_equal(slope[1:], slope[0, 0])
        np.testing.assert_array_equal(curvature[1:], 0.0)
        np.testing.assert_allclose(z[2] - z[0], 1e6 * side * slope[0], rtol=1e-9)
    assert np.isfinite(forward(warp, 1e300))
    assert inverse(warp, -1e300) < -1e299


@pytest.mark.parametrize("transformed", [False, True])
def test_fitted_targets_are_standardised(transformed: bool, rng: np.random.Generator) -> None:
    y, weights = skewed(rng), rng.uniform(0.1, 3.0, 200)
    warp = fit_warp(y, weights, transformed=transformed)
    z = forward(warp, y)
    np.testing.assert_allclose(np.average(z, axis=0, weights=weights), 0.0, atol=1e-13)
    np.testing.assert_allclose(np.average(z**2, axis=0, weights=weights), 1.0, rtol=1e-12)
    assert is_affine(warp) == (not transformed)
    half = 0.5 * np.ptp(y, axis=0)
    ends = np.array([y.min(axis=0) - half, y.max(axis=0) + half])
    np.testing.assert_allclose(warp.center + warp.scale * np.array([warp.low, warp.high]), ends)


def test_exponent_of_largest_likelihood(rng: np.random.Generator) -> None:
    """Of the Gaussian density of y, normalised, no exponent of a grid has a larger one."""
    y = skewed(rng)[:, :1]
    warp = fit_warp(y, np.ones(200), transformed=True)
    assert 0.0 <= warp.exponent[0] < 0.5
    assert fit_warp(-y, np.ones(200), transformed=True).exponent[0] == pytest.approx(
        2.0 - warp.exponent[0], abs=1e-4
    )
    u = (y[:, 0] - warp.center) / warp.scale
    best = stats.yeojohnson_llf(warp.exponent[0], u)
    assert best >= max(stats.yeojohnson_llf(grid, u) for grid in np.linspace(0.0, 2.0, 81)) - 1e-7


def test_weights_are_repeated_rows(rng: np.random.Generator) -> None:
    y, counts = skewed(rng, 60), rng.integers(1, 5, 60)
    weighted = fit_warp(y, 0.1 * counts, transformed=True)
    repeated = fit_warp(np.repeat(y, counts, axis=0), np.ones(counts.sum()), transformed=True)
    for name, value in vars(weighted).items():
        np.testing.assert_allclose(value, getattr(repeated, name), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-300, 1e-6, 1e6, 1e300])
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    y, weights = skewed(rng), np.ones(200)
    plain = fit_warp(y, weights, transformed=True)
    warp = fit_warp(unit * y, weights, transformed=True)
    z = forward(plain, y)
    np.testing.assert_allclose(warp.exponent, plain.exponent, atol=1e-6)
    np.testing.assert_allclose(forward(warp, unit * y), z, atol=1e-6)
    np.testing.assert_allclose(inverse(warp, z) / unit, y, atol=1e-5)
    np.testing.assert_allclose(log_slope(warp, unit * y) + np.log(unit), log_slope(plain, y))


@pytest.mark.parametrize("value", [0.0, 0.1, -7e300])
def test_constant_target(value: float) -> None:
    warp = fit_warp(np.full((7, 1), value), np.linspace(0.3, 1.0, 7), transformed=True)
    assert is_affine(warp)
    assert (warp.scale, warp.size, warp.shift) == (1.0, 1.0, 0.0)
    np.testing.assert_allclose(inverse(warp, np.array([0.0])), value)
    assert forward(replace(warp, center=np.zeros(1)), np.array([2.0])) == pytest.approx(2.0)
