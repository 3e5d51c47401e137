"""Mixtures of Gaussians: against mpmath, SciPy and draws; order, nesting, invariances, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bowtienet._old.prediction import mixture as module
from bowtienet._old.prediction import quantiles
from bowtienet._old.prediction.mixture import Mixture, build_mixture

ACCURACY = 1e-12
"""Promised relative error of min(F, 1 - F) at a quantile, where doubles lie that close."""
LEVELS = [1e-300, 1e-30, 1e-12, 1e-3, 0.05, 0.3, 0.5, 0.62, 0.95, 0.999, 1.0 - 1e-12]
BASES = [(1,), (5,), (4, 1), (3, 2)]


def random_mixture(
    rng: np.random.Generator,
    n_components: int = 4,
    base: tuple[int, ...] = (5,),
    spread: float = 2.0,
    ratio: float = 10.0,
) -> Mixture:
    shape = (n_components, *base)
    means = spread * rng.normal(size=shape)
    deviations = ratio ** rng.uniform(-0.5, 0.5, size=shape)
    return build_mixture(rng.dirichlet(np.ones(n_components)), means, deviations)


def transformed(mixture: Mixture, factor: float, shift: float = 0.0) -> Mixture:
    means, deviations = factor * mixture.means + shift, abs(factor) * mixture.deviations
    return replace(mixture, means=means, deviations=deviations)


def in_order(y: np.ndarray) -> bool:
    return bool(np.all(y[..., :-1] <= y[..., 1:]))


def assert_quantiles(mixture: Mixture, y: np.ndarray, levels: Any) -> None:
    upper = np.asarray(levels) > 0.5
    assert_tails(mixture, y, np.where(upper, 1.0 - np.asarray(levels), levels), upper)


def assert_tails(mixture: Mixture, y: np.ndarray, tail: Any, upper: Any) -> None:
    """The tail at y is right to the promised accuracy, or a neighbour of y is on its other side."""

    def tails(points: np.ndarray) -> np.ndarray:
        return np.where(upper, mixture.sf(points), mixture.cdf(points))

    # Below 1e-19 the rounding of (y - m)/d alone moves the tail by z² 2^-52.
    allowed = np.where(np.asarray(tail) < 1e-19, 2e-11, ACCURACY) * tail
    near = np.abs(tails(y) - tail) <= allowed
    before, after = tails(np.nextafter(y, -np.inf)), tails(np.nextafter(y, np.inf))
    least, most = np.minimum(before, after), np.maximum(before, after)
    between = (least <= tail + allowed) & (most >= tail - allowed)
    assert np.all(near | between), (y[~(near | between)], np.max(np.abs(tails(y) - tail) / tail))


@st.composite
def mixtures(draw: st.DrawFn, max_components: int = 6) -> Mixture:
    """Up to six components with means to ±1000, deviations from 1e-3 to 1e3, weights down to 0."""
    n_components = draw(st.integers(1, max_components))
    n_rows = draw(st.integers(1, 3))
    size = n_components * n_rows
    means = draw(st.lists(st.floats(-1e3, 1e3), min_size=size, max_size=size))
    powers = draw(st.lists(st.floats(-3.0, 3.0), min_size=size, max_size=size))
    counts = draw(st.lists(st.integers(0, 50), min_size=n_components, max_size=n_components))
    weights = np.array([counts[0] + 1, *counts[1:]], dtype=float)
    shape = (n_components, n_rows)
    return build_mixture(
        weights / np.sum(weights), np.reshape(means, shape), 10.0 ** np.reshape(powers, shape)
    )


def levels(smallest: float = 1e-12) -> st.SearchStrategy[float]:
    """Levels in the middle and, by their logarithm, in both tails."""
    tails = st.floats(np.log(smallest), np.log(0.5)).map(lambda x: float(np.exp(x)))
    return st.one_of(st.floats(smallest, 1.0 - 1e-12), tails, tails.map(lambda x: 1.0 - x))


examples = settings(max_examples=80, deadline=None, derandomize=True)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_shapes(base: tuple[int, ...], rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, base=base)
    for result in (mixture.mean(), mixture.var(), mixture.std(), mixture.rvs(random_state=1)):
        assert result.shape == base
    for function in (mixture.pdf, mixture.logpdf, mixture.cdf, mixture.sf):
        assert function(0.0).shape == base
        assert function(np.zeros(base[-1])).shape == base
        assert function(np.zeros(base)).shape == base
        assert function(np.zeros((*base, 7))).shape == (*base, 7)
        assert function(np.zeros((*[1] * len(base), 7))).shape == (*base, 7)
        assert function(np.zeros((*base, 0))).shape == (*base, 0)
    assert mixture.ppf(0.3).shape == base
    assert mixture.ppf([0.3]).shape == (*base, 1)
    assert mixture.ppf([0.3, 0.1, 0.3]).shape == (*base, 3)
    assert mixture.interval(0.9).shape == (*base, 2)
    assert mixture.interval([0.9]).shape == (*base, 2, 1)
    assert mixture.interval([0.5, 0.9, 0.7]).shape == (*base, 2, 3)
    assert mixture.rvs(6, random_state=1).shape == (6, *base)


def test_points_meet_their_rows(rng: np.random.Generator) -> None:
    """Every entry against the sum over components written out, for each way of giving points."""
    mixture = random_mixture(rng, base=(3, 2))

    def slow(y: float, i: int, j: int) -> float:
        parts = zip(
            mixture.weights, mixture.means[:, i, j], mixture.deviations[:, i, j], strict=True
        )
        return float(sum(w * stats.norm.cdf(y, m, d) for w, m, d in parts))

    each, row, many = rng.normal(size=(3, 2)), rng.normal(size=2), rng.normal(size=(3, 2, 4))
    for i in range(3):
        for j in range(2):
            np.testing.assert_allclose(mixture.cdf(each)[i, j], slow(each[i, j], i, j), rtol=1e-14)
            np.testing.assert_allclose(mixture.cdf(row)[i, j], slow(row[j], i, j), rtol=1e-14)
            for k in range(4):
                found = mixture.cdf(many)[i, j, k]
                np.testing.assert_allclose(found, slow(many[i, j, k], i, j), rtol=1e-14)


def test_quantiles_stand_where_their_levels_do(rng: np.random.Generator) -> None:
    mixture, q = random_mixture(rng, base=(3, 2)), [0.8, 0.1, 0.5]
    together = mixture.ppf(q)
    for k, level in enumerate(q):
        np.testing.assert_array_equal(together[..., k], mixture.ppf(level))
    coverages = [0.9, 0.5]
    ends = mixture.interval(coverages)
    for k, coverage in enumerate(coverages):
        np.testing.assert_array_equal(ends[..., k], mixture.interval(coverage))
        np.testing.assert_allclose(
            ends[..., k], mixture.ppf([0.5 - coverage / 2, 0.5 + coverage / 2]), rtol=1e-13
        )


def test_one_component_is_a_gaussian(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components=1, base=(4, 2))
    gaussian = stats.norm(mixture.means[0], mixture.deviations[0])
    np.testing.assert_array_equal(mixture.mean(), gaussian.mean())
    np.testing.assert_array_equal(mixture.std(), gaussian.std())
    np.testing.assert_allclose(mixture.var(), gaussian.var(), rtol=1e-15)
    y = mixture.means[0] + rng.normal(size=(4, 2)) * 5.0 * mixture.deviations[0]
    for name in ("pdf", "logpdf", "cdf", "sf"):
        found, expected = getattr(mixture, name)(y), getattr(gaussian, name)(y)
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)
    for q in (0.0, 1e-300, 1e-12, 0.05, 0.25, 0.5, 0.7, 0.95, 1.0 - 1e-12, 1.0):
        np.testing.assert_array_equal(mixture.ppf(q), gaussian.ppf(q))
    lower, upper = np.moveaxis(mixture.interval(0.9), -1, 0)
    np.testing.assert_allclose((lower, upper), gaussian.interval(0.9), rtol=1e-14)


def test_components_without_weight_are_left_out(rng: np.random.Generator) -> None:
    kept = random_mixture(rng, n_components=3, base=(4, 2))
    shape = (1, 4, 2)
    means = np.concatenate([np.full(shape, 1e5), kept.means, np.full(shape, -1e200)])
    deviations = np.concatenate([np.full(shape, 1e9), kept.deviations, np.full(shape, 1e-9)])
    mixture = build_mixture([0.0, *kept.weights, 0.0], means, deviations)
    for name in ("pdf", "logpdf", "cdf", "sf"):
        expected = getattr(kept, name)(0.3)
        np.testing.assert_allclose(getattr(mixture, name)(0.3), expected, rtol=1e-14)
    np.testing.assert_array_equal(mixture.std(), kept.std())
    np.testing.assert_array_equal(mixture.ppf(LEVELS), kept.ppf(LEVELS))
    np.testing.assert_array_equal(mixture.rvs(50, 3), kept.rvs(50, 3))
    alone = build_mixture([0.0, 1.0], mixture.means[:2], mixture.deviations[:2])
    gaussian = stats.norm(mixture.means[1], mixture.deviations[1])
    np.testing.assert_array_equal(alone.ppf(0.95), gaussian.ppf(0.95))


def test_moments_by_integration(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, base=(1,))

    def moment(power: int, centre: float) -> float:
        def integrand(y: float) -> float:
            return float((y - centre) ** power * mixture.pdf(y)[0])

        return float(integrate.quad(integrand, -60.0, 60.0, points=[centre], limit=500)[0])

    mean = moment(1, 0.0)
    np.testing.assert_allclose(moment(0, 0.0), 1.0, rtol=1e-8)
    np.testing.assert_allclose(mixture.mean(), mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(mixture.var(), moment(2, mean), rtol=1e-8)


def test_variance_without_cancellation() -> None:
    """Var = 1e-10 (d²) + 2.5e-11 (means 1e-5 apart) beside a mean of 1e6."""
    step = np.float64(1e6 + 1e-5) - np.float64(1e6)
    mixture = build_mixture([0.5, 0.5], [[1e6], [1e6 + 1e-5]], [[1e-5], [1e-5]])
    # Half a unit in the last place of the mean itself, 6e-11, is all that is lost.
    np.testing.assert_allclose(mixture.var(), 1e-10 + step**2 / 4.0, rtol=1e-10)
    np.testing.assert_allclose(mixture.std(), np.sqrt(mixture.var()), rtol=1e-15)


def slow_sum(function: Callable[..., Any], mixture: Mixture, row: int, y: Any) -> Any:
    """Σ w f((y - m)/d, d) with 60 digits."""
    total, y = mpmath.mpf(0), mpmath.mpf(float(y))
    for w, m, d in zip(
        mixture.weights, mixture.means[:, row], mixture.deviations[:, row], strict=True
    ):
        scale = mpmath.mpf(float(d))
        total += mpmath.mpf(float(w)) * function((y - mpmath.mpf(float(m))) / scale, scale)
    return total


@pytest.fixture
def digits() -> Any:
    with mpmath.workdps(60):
        yield


@pytest.mark.usefixtures("digits")
def test_tails_against_mpmath(rng: np.random.Generator) -> None:
    """To 30 deviations; rounding of z alone changes a tail by z² 2^-52, 2e-13 there."""
    mixture = random_mixture(rng, base=(3,), ratio=1e6)
    width = np.max(mixture.deviations, axis=0)
    for distance in (-30.0, -12.0, -3.0, -0.1, 0.0, 2.0, 9.0, 25.0):
        y = mixture.mean() + distance * width
        for row in range(3):
            cdf = slow_sum(lambda z, d: mpmath.ncdf(z), mixture, row, y[row])
            sf = slow_sum(lambda z, d: mpmath.ncdf(-z), mixture, row, y[row])
            np.testing.assert_allclose(mixture.cdf(y)[row], float(cdf), rtol=1e-12)
            np.testing.assert_allclose(mixture.sf(y)[row], float(sf), rtol=1e-12)


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize("distance", [0.0, 1.0, -20.0, 1e3, -1e8, 1e100, -1.8e154])
def test_log_density_against_mpmath(distance: float, rng: np.random.Generator) -> None:
    """The last is -z²/2 = -1.6e308: near the largest double, and beyond it if z² were formed."""
    mixture = random_mixture(rng, base=(2,))
    y = distance * np.max(mixture.deviations, axis=0)
    for row in range(2):
        density = slow_sum(lambda z, d: mpmath.npdf(z) / d, mixture, row, y[row])
        expected = float(mpmath.log(density))
        assert np.isfinite(expected)
        np.testing.assert_allclose(mixture.logpdf(y)[row], expected, rtol=1e-13)
        np.testing.assert_allclose(mixture.pdf(y)[row], float(density), rtol=1e-12)


@pytest.mark.usefixtures("digits")
@pytest.mark.parametrize("q", LEVELS[2:])
def test_quantiles_against_mpmath(q: float, rng: np.random.Generator) -> None:
    """F with 60 digits at the quantile. Means are small beside deviations: doubles are close."""
    mixture = random_mixture(rng, n_components=5, base=(4,), spread=0.5)
    y = mixture.ppf(q)
    for row in range(4):
        sign, tail = (-1, 1 - mpmath.mpf(q)) if q > 0.5 else (1, mpmath.mpf(q))
        found = slow_sum(lambda z, d, sign=sign: mpmath.ncdf(sign * z), mixture, row, y[row])
        assert abs(found / tail - 1) <= ACCURACY, float(found / tail - 1)


@pytest.mark.parametrize("n_components", [2, 7, 64])
@pytest.mark.parametrize(("spread", "ratio"), [(1.0, 3.0), (1e4, 10.0), (1.0, 1e6), (1e3, 1e12)])
def test_quantiles_of_hard_mixtures(
    n_components: int, spread: float, ratio: float, rng: np.random.Generator
) -> None:
    mixture = random_mixture(rng, n_components, (200,), spread, ratio)
    y = mixture.ppf(LEVELS)
    assert np.all(np.isfinite(y))
    assert in_order(y)
    assert_quantiles(mixture, y, LEVELS)
    q = np.cumsum(mixture.weights)[:-1]
    assert_quantiles(mixture, mixture.ppf(q), q)


@pytest.mark.parametrize("offset", [1e3, -1e7, 1e10, 1e16])
def test_quantiles_far_from_zero(offset: float, rng: np.random.Generator) -> None:
    """Doubles grow sparse beside the deviations, at last wider apart than they are."""
    mixture = transformed(random_mixture(rng, base=(100,)), 1.0, offset)
    y = mixture.ppf(LEVELS)
    assert in_order(y)
    assert_quantiles(mixture, y, LEVELS)


def test_the_smallest_double_that_reaches_its_level(rng: np.random.Generator) -> None:
    """Beside 1e10 a double is 1e-6 of a deviation: F passes a level between two of them."""
    mixture = transformed(random_mixture(rng, base=(100,)), 1.0, 1e10)
    q = np.linspace(0.01, 0.99, 50)
    y = mixture.ppf(q)
    assert np.all(mixture.cdf(y) > q - 1e-13)
    assert np.all(mixture.cdf(np.nextafter(y, -np.inf)) < q + 1e-13)


def count_evaluations(mixture: Mixture, q: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many quantiles were still sought in each iteration."""
    sought, original = [], quantiles._newton

    def counting(*arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sought.append(arguments[3].size)
        return original(*arguments)

    monkeypatch.setattr(quantiles, "_newton", counting)
    mixture.ppf(q)
    return sought


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_a_handful_of_evaluations(
    offset: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that nearly agree, as those of an ensemble: 3 to 5 evaluations were seen."""
    means, deviations = 0.3 * rng.normal(size=(8, 500)), np.exp(0.2 * rng.normal(size=(8, 500)))
    mixture = build_mixture(np.full(8, 0.125), means + offset, deviations)
    sought = count_evaluations(mixture, [1e-9, 0.05, 0.5, 0.95], monkeypatch)
    assert sum(sought) < 6 * 500 * 4
    assert len(sought) < 15


def test_no_quantile_is_sought_for_long(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that differ: a few of Newton's searches would circle until they are stopped."""
    mixture = random_mixture(rng, 16, (4000,), spread=3.0, ratio=50.0)
    sought = count_evaluations(mixture, 0.3, monkeypatch)
    assert len(sought) < 40
    assert sum(sought) < 8 * 4000


@pytest.mark.parametrize("power", [-1000, -300, 990, 1000])
def test_any_size_of_numbers(power: int, rng: np.random.Generator) -> None:
    """A power of two changes no digit of anything, and nothing overflows on the way."""
    plain = random_mixture(rng, base=(20,))
    factor = 2.0**power
    scaled = transformed(plain, factor)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(scaled.ppf(LEVELS), factor * plain.ppf(LEVELS))
        np.testing.assert_array_equal(scaled.interval(0.9), factor * plain.interval(0.9))
        np.testing.assert_array_equal(scaled.std(), factor * plain.std())
        y = plain.rvs(3, 0).T
        np.testing.assert_array_equal(scaled.cdf(factor * y), plain.cdf(y))
        shift = power * np.log(2.0)
        np.testing.assert_allclose(scaled.logpdf(factor * y), plain.logpdf(y) - shift, rtol=1e-13)
        assert not np.any(np.isnan(scaled.var()))


def test_distances_beyond_the_largest_double() -> None:
    mixture = build_mixture([0.5, 0.5], [[-1.5e308], [1.5e308]], [[1e308], [1e308]])
    np.testing.assert_allclose(mixture.cdf(1.5e308), 0.25 + 0.5 * stats.norm.cdf(3.0))
    np.testing.assert_array_equal(mixture.ppf([0.0, 1e-12, 1.0]), [[-np.inf, -np.inf, np.inf]])
    np.testing.assert_allclose(mixture.ppf(0.5), 0.0, atol=1e293)


@pytest.mark.parametrize("narrow", [1e-6, 1e-30, 1e-300])
def test_a_needle_in_a_haystack(narrow: float) -> None:
    """Half the weight on a needle at 0: quantiles inside it are those of the needle alone.

    F(y) = ½ Φ(y / narrow) + ½ Φ(y) is ½ Φ(y / narrow) + ¼ to within the needle's width.
    """
    mixture = build_mixture([0.5, 0.5], [[0.0], [0.0]], [[narrow], [1.0]])
    q = np.array([0.3, 0.4, 0.6, 0.7])
    expected = stats.norm.ppf(2.0 * (q - 0.25))
    np.testing.assert_allclose(mixture.ppf(q)[0] / narrow, expected, rtol=10.0 * narrow + 1e-12)
    outside = np.array([0.1, 0.9])
    expected = stats.norm.ppf([0.2, 0.8])
    np.testing.assert_allclose(mixture.ppf(outside)[0], expected, rtol=1e-12)


def test_a_search_that_starts_on_a_needle() -> None:
    """0 = Σ w m is where the search for the median starts, and where (x - m)/d would be 0/0.

    The median solves ⅛ + ⅛ Φ(z + 6) + ¾ Φ(z - 1) = ½ with Φ(z + 6) = 1 to 1e-9.
    """
    means, deviations = [[0.0], [-6e300], [1e300]], [[1e-100], [1e300], [1e300]]
    mixture = build_mixture([0.125, 0.125, 0.75], means, deviations)
    expected = 1e300 * (1.0 + stats.norm.ppf(1.0 / 3.0))
    np.testing.assert_allclose(mixture.ppf(0.5), expected, rtol=1e-8)


def test_plateaus() -> None:
    """Between far components F stands still at w_1; the levels beside it lie at either end."""
    mixture = build_mixture([0.25, 0.75], [[0.0], [1e6]], [[1.0], [1.0]])
    before, on, after = mixture.ppf([0.25 - 1e-6, 0.25, 0.25 + 1e-6])[0]
    np.testing.assert_allclose(before, stats.norm.ppf(1.0 - 4e-6), rtol=1e-9)
    np.testing.assert_allclose(after, 1e6 + stats.norm.ppf(1e-6 / 0.75), rtol=1e-12)
    assert before < on < after
    np.testing.assert_allclose(mixture.cdf(on), 0.25, rtol=1e-15)


def test_ends_of_the_line(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components=16)
    q = mixture.ppf([0.0, 1.0, 0.5, 0])
    assert np.all(q[:, [0, 3]] == -np.inf)
    assert np.all(q[:, 1] == np.inf)
    assert np.all(np.isfinite(q[:, 2]))
    assert np.all(mixture.cdf(np.inf) == 1.0)
    assert np.all(mixture.sf(-np.inf) == 1.0)
    assert np.all(mixture.cdf(-np.inf) == 0.0)
    assert np.all(mixture.sf(np.inf) == 0.0)
    assert np.all(mixture.pdf([[np.inf, -np.inf]]) == 0.0)
    assert np.all(mixture.logpdf(np.inf) == -np.inf)
    assert np.all(np.isnan(mixture.logpdf(np.nan)))
    assert np.all(np.isnan(mixture.cdf(np.nan)))
    smallest = mixture.ppf(5e-324)
    assert np.all(np.isfinite(smallest))
    assert np.all(smallest < mixture.ppf(1e-300))


@given(mixture=mixtures(), q=st.lists(levels(1e-300), min_size=2, max_size=6))
@examples
def test_quantiles_are_in_order_and_right(mixture: Mixture, q: list[float]) -> None:
    ordered = np.sort(q)
    y = mixture.ppf(ordered)
    assert in_order(y)
    assert_quantiles(mixture, y, ordered)


@given(mixture=mixtures(), q=levels(1e-18), steps=st.integers(1, 60))
@examples
def test_nearly_equal_levels_do_not_cross(mixture: Mixture, q: float, steps: int) -> None:
    """Neighbouring doubles, steps of the grid levels are rounded to, and both sides of them."""
    tail = min(q, 1.0 - q)
    near = q + np.arange(-20, 20) * np.spacing(q)
    wider = q + np.arange(-20, 20) * steps * 2.0**-50 * tail
    both = np.sort(np.clip(np.concatenate([near, wider]), 0.0, 1.0))
    assert in_order(mixture.ppf(both))


@pytest.mark.parametrize("n_components", [2, 16])
@pytest.mark.parametrize("centre", [0.5, 0.16, 0.9, 1e-12, 1e-100])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_separate_calls_do_not_cross(
    n_components: int, centre: float, offset: float, rng: np.random.Generator
) -> None:
    """Consecutive points of the grid of levels, where rounding errors would show."""
    mixture = transformed(random_mixture(rng, n_components, (300,)), 1.0, offset)
    _, slack = quantiles.round_tail(np.array([min(centre, 1.0 - centre)]))
    q = centre + 8.0 * slack * np.arange(-3, 4)
    assert np.unique(quantiles.round_tail(np.minimum(q, 1.0 - q))[0]).size > 3
    apart = np.stack([mixture.ppf(level) for level in q], axis=-1)
    assert in_order(apart)
    np.testing.assert_array_equal(apart, mixture.ppf(q))


@pytest.mark.parametrize("power", [-1, -2, -3, -24, -100])
def test_levels_that_are_rounded_to_a_power_of_two(power: int, rng: np.random.Generator) -> None:
    """Doubles on both sides of it are one level, with one quantile."""
    tail = 2.0**power + np.arange(-4, 5) * 2.0 ** (power - 51)
    rounded, slack = quantiles.round_tail(tail)
    assert np.all(rounded == 2.0**power)
    assert np.ptp(slack) == 0.0
    if power < -1:
        y = random_mixture(rng, 5, (500,)).ppf(tail)
        np.testing.assert_array_equal(y, np.repeat(y[:, :1], tail.size, axis=1))


@given(
    mixture=mixtures(), coverages=st.lists(st.floats(1e-17, 1.0 - 1e-12), min_size=1, max_size=6)
)
@examples
def test_intervals_nest(mixture: Mixture, coverages: list[float]) -> None:
    near = [np.nextafter(c, 1.0) for c in coverages]
    ends = mixture.interval(np.sort([*coverages, *near]))
    lower, upper = ends[:, 0], ends[:, 1]
    assert np.all(lower <= upper)
    assert np.all(np.diff(lower, axis=-1) <= 0.0)
    assert np.all(np.diff(upper, axis=-1) >= 0.0)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e9])
def test_the_narrowest_intervals_have_two_ends_in_order(
    offset: float, rng: np.random.Generator
) -> None:
    """Both ends come from different tails, and meet at the median."""
    mixture = transformed(random_mixture(rng, base=(500,)), 1.0, offset)
    ends = mixture.interval(10.0 ** np.linspace(-17.0, -11.0, 60))
    assert np.all(ends[:, 0] <= ends[:, 1])
    assert np.all(np.diff(ends[:, 1] - ends[:, 0], axis=-1) >= 0.0)
    median = mixture.ppf(0.5)
    assert np.all(ends[:, 0, 0] <= median)
    assert np.all(median <= ends[:, 1, 0])


@given(mixture=mixtures(), q=levels(), seed=st.integers(0, 2**16))
@examples
def test_components_have_no_order(mixture: Mixture, q: float, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(mixture.weights.size)
    other = build_mixture(mixture.weights[order], mixture.means[order], mixture.deviations[order])
    size = np.max(np.abs(mixture.means) + mixture.deviations, axis=0)
    np.testing.assert_allclose(other.mean(), mixture.mean(), rtol=0.0, atol=1e-14 * np.max(size))
    np.testing.assert_allclose(other.std(), mixture.std(), rtol=1e-11)
    y = mixture.ppf(q)
    np.testing.assert_allclose(other.logpdf(y), mixture.logpdf(y), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(other.cdf(y), mixture.cdf(y), rtol=1e-13)
    assert_quantiles(mixture, other.ppf([q]), [q])


@given(mixture=mixtures(), q=levels(), power=st.integers(-30, 30))
@examples
def test_scaling(mixture: Mixture, q: float, power: int) -> None:
    """a y has the quantiles a F^{-1}(q): exactly, for a power of two."""
    factor = 2.0**power
    other = transformed(mixture, factor)
    np.testing.assert_array_equal(other.mean(), factor * mixture.mean())
    np.testing.assert_array_equal(other.std(), factor * mixture.std())
    np.testing.assert_array_equal(other.ppf(q), factor * mixture.ppf(q))


@given(mixture=mixtures(), coverage=st.floats(1e-6, 1.0 - 1e-12))
@examples
def test_mirroring(mixture: Mixture, coverage: float) -> None:
    """The central interval of -y is that of y, turned round."""
    other = transformed(mixture, -1.0)
    turned = -other.interval(coverage)
    tail = 0.5 * (1.0 - coverage)
    assert_tails(mixture, turned, tail, np.array([True, False]))
    np.testing.assert_array_equal(other.mean(), -mixture.mean())
    np.testing.assert_array_equal(other.std(), mixture.std())
    np.testing.assert_array_equal(other.sf(-turned), mixture.cdf(turned))


@given(mixture=mixtures(), q=levels(), shift=st.integers(-(2**20), 2**20))
@examples
def test_shifting(mixture: Mixture, q: float, shift: int) -> None:
    """y + b has the quantiles F^{-1}(q) + b; means on a coarse grid, so that the sum is exact."""
    coarse = np.round(mixture.means * 2.0**10) / 2.0**10
    first = build_mixture(mixture.weights, coarse, mixture.deviations)
    other = build_mixture(mixture.weights, coarse + shift, mixture.deviations)
    np.testing.assert_allclose(other.std(), first.std(), rtol=1e-6)
    assert_quantiles(other, other.ppf([q]), [q])
    y = np.round(first.ppf(q) * 2.0**10) / 2.0**10
    np.testing.assert_array_equal(other.cdf(y + shift), first.cdf(y))
    np.testing.assert_array_equal(other.logpdf(y + shift), first.logpdf(y))


@given(mixture=mixtures(), points=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5))
@examples
def test_cdf_and_sf_are_complements(mixture: Mixture, points: list[float]) -> None:
    y = np.sort(points)[None, :]
    cdf, sf = mixture.cdf(y), mixture.sf(y)
    np.testing.assert_allclose(cdf + sf, 1.0, rtol=1e-14)
    # The library's Φ may fall by a few units in the last place.
    assert np.all(np.diff(cdf, axis=-1) >= -1e-14)
    np.testing.assert_array_equal(mixture.pdf(y), np.exp(mixture.logpdf(y)))


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_do_not_matter(
    block: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = random_mixture(rng, n_components=12, base=(9, 2), ratio=1e3)
    y = rng.normal(size=(9, 2, 5))

    def everything() -> list[np.ndarray]:
        return [
            mixture.ppf(LEVELS),
            mixture.interval([0.5, 0.9]),
            mixture.cdf(y),
            mixture.logpdf(y),
            mixture.std(),
            mixture.rvs(4, 11),
        ]

    whole = everything()
    monkeypatch.setattr(module, "_BLOCK", block)
    for first, second in zip(whole, everything(), strict=True):
        np.testing.assert_array_equal(first, second)


def test_rows_are_apart(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components=10, base=(40,), ratio=1e3)
    some = slice(7, 8)
    means, deviations = mixture.means[:, some], mixture.deviations[:, some]
    alone = replace(mixture, means=means, deviations=deviations)
    np.testing.assert_array_equal(alone.ppf(LEVELS), mixture.ppf(LEVELS)[some])
    np.testing.assert_array_equal(alone.std(), mixture.std()[some])


def peak_memory(function: Callable[[], np.ndarray]) -> int:
    """Most bytes held at a time beyond what was there before and what is returned."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function()
        return tracemalloc.get_traced_memory()[1] - before - result.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["ppf", "logpdf", "std", "rvs"])
def test_memory_is_bounded(name: str, rng: np.random.Generator) -> None:
    """Six blocks of 1 MB were seen at a time; one array of all rows and components has 13 MB."""
    shape = (16, 100_000)
    means, deviations = rng.normal(size=shape), rng.uniform(0.5, 2.0, size=shape)
    mixture = build_mixture(np.full(16, 1.0 / 16.0), means, deviations)
    arguments = {"ppf": (0.9,), "logpdf": (0.3,), "rvs": (10, 1)}
    used = peak_memory(lambda: getattr(mixture, name)(*arguments.get(name, ())))
    assert used < 9 * 8 * module._BLOCK


@pytest.mark.parametrize("base", [(3,), (2, 2)], ids=str)
def test_draws_follow_the_distribution(base: tuple[int, ...]) -> None:
    """Kolmogorov-Smirnov: sqrt(n) D < 2.8 fails by chance in 3e-7 of runs, for each of 4 cells.

    The mean and the variance are held to 5 standard errors (6e-7 each); draws of different cells
    and neighbouring draws are uncorrelated to 5/sqrt(n).
    """
    rng = np.random.default_rng(5)
    mixture = random_mixture(rng, 4, base, spread=3.0)
    n = 40_000
    draws = mixture.rvs(n, random_state=8).reshape(n, -1)
    flat = build_mixture(
        mixture.weights, mixture.means.reshape(4, -1), mixture.deviations.reshape(4, -1)
    )
    levels = np.sort(flat.cdf(draws.T), axis=-1)
    steps = np.arange(n + 1) / n
    distance = np.maximum(steps[1:] - levels, levels - steps[:-1]).max(axis=-1)
    assert np.all(np.sqrt(n) * distance < 2.8)
    centred = draws - flat.mean()
    assert np.all(np.abs(centred.mean(axis=0)) < 5.0 * flat.std() / np.sqrt(n))
    squares = centred**2
    assert np.all(np.abs(squares.mean(axis=0) - flat.var()) < 5.0 * squares.std(0) / np.sqrt(n))
    between = np.corrcoef(draws.T)[np.triu_indices(draws.shape[1], 1)]
    assert np.all(np.abs(between) < 5.0 / np.sqrt(n))
    assert abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 5.0 / np.sqrt(n)


def test_draws_choose_components_by_their_weights() -> None:
    """Far components can be told apart: binomial counts within 5 standard errors."""
    weights = np.array([0.1, 0.0, 0.6, 0.3])
    mixture = build_mixture(weights, 100.0 * np.arange(4.0)[:, None], np.ones((4, 1)))
    n = 20_000
    member = np.round(mixture.rvs(n, random_state=2)[:, 0] / 100.0).astype(int)
    counts = np.bincount(member, minlength=4)
    assert counts[1] == 0
    assert np.all(np.abs(counts - n * weights) <= 5.0 * np.sqrt(n * weights * (1.0 - weights)))


def test_random_states(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng)
    np.testing.assert_array_equal(mixture.rvs(2, 7), mixture.rvs(2, np.random.default_rng(7)))
    old, same = np.random.RandomState(3), np.random.RandomState(3)
    first = mixture.rvs(2, old)
    np.testing.assert_array_equal(first, mixture.rvs(2, same))
    assert np.all(first != mixture.rvs(2, old))


GOOD: dict[str, Any] = {
    "weights": [0.5, 0.5],
    "means": np.zeros((2, 3)),
    "deviations": np.ones((2, 3)),
}


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("weights", [0.5, 0.6]),
        ("weights", [1.5, -0.5]),
        ("weights", [0.5, np.nan]),
        ("weights", [0.2, 0.3, 0.5]),
        ("means", np.zeros(2)),
        ("means", np.full((2, 3), np.inf)),
        ("deviations", np.ones((2, 4))),
        ("deviations", np.zeros((2, 3))),
        ("deviations", np.full((2, 3), np.nan)),
    ],
)
def test_bad_components_are_named(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        build_mixture(**{**GOOD, name: bad})


@pytest.mark.parametrize(
    ("method", "name", "bad"),
    [
        *[("ppf", "q", bad) for bad in (-0.1, np.nan, [0.5, 2], "a", None, [[0.5]])],
        ("interval", "coverage", 90),
        ("cdf", "y", np.zeros(4)),
        ("rvs", "size", 0),
    ],
)
def test_bad_arguments_are_named(method: str, name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(build_mixture(**GOOD), method)(bad)


def test_equal_components_are_one(rng: np.random.Generator) -> None:
    one = random_mixture(rng, n_components=1)
    three = build_mixture(
        [0.2, 0.5, 0.3], np.repeat(one.means, 3, 0), np.repeat(one.deviations, 3, 0)
    )
    y, q = rng.normal(size=(5, 6)), [1e-12, 0.2, 0.5, 0.9]
    np.testing.assert_allclose(three.std(), one.std(), rtol=1e-15)
    np.testing.assert_allclose(three.logpdf(y), one.logpdf(y), rtol=1e-14)
    np.testing.assert_allclose(three.ppf(q), one.ppf(q), rtol=1e-12, atol=1e-12)
