"""Mixtures of components that are Gaussian after a warp: integrals, draws, order, sizes, parts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import Warp, from_warped, identity, to_warped
from bowtienet._old.prediction import mixture as module
from bowtienet._old.prediction import quantiles
from bowtienet._old.prediction.combined_mixtures import average_rows, join_mixtures, pool_mixtures
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from tests._old.prediction.test_mixture import assert_tails, in_order, peak_memory

LEVELS = [1e-300, 1e-30, 1e-12, 1e-3, 0.05, 0.3, 0.5, 0.62, 0.95, 0.999, 1.0 - 1e-12]
BASES = [(1,), (5,), (4, 1), (3, 2)]
UNITS = [(0.0, 1.0), (1e300, 1e300), (-1e300, 1e-300), (1e10, 1.0), (0.0, 1e-300), (1e-300, 1e-305)]
examples = settings(max_examples=60, deadline=None, derandomize=True)


def random_warp(rng: np.random.Generator, shape: tuple[int, ...]) -> Warp:
    """Some are lines, some have the largest bend; ends hold most of N(0, 1)."""
    exponent = rng.choice([0.0, 1.0, 2.0, *rng.uniform(0.0, 2.0, size=5)], size=shape)
    return Warp(
        exponent=exponent,
        low=rng.uniform(-4.0, -1.0, size=shape),
        high=rng.uniform(1.0, 8.0, size=shape),
        center=rng.uniform(-0.3, 0.3, size=shape),
        scale=rng.uniform(0.6, 1.5, size=shape),
    )


def random_mixture(
    rng: np.random.Generator,
    n_components: int = 4,
    base: tuple[int, ...] = (5,),
    *,
    ratio: float = 10.0,
    origin: Any = 3.0,
    unit: Any = 2.0,
) -> Mixture:
    shape = (n_components, *base)
    return build_mixture(
        rng.dirichlet(np.ones(n_components)),
        rng.normal(size=shape),
        0.5 * ratio ** rng.uniform(-0.5, 0.5, size=shape),
        warp=random_warp(rng, (n_components, *base[1:])),
        origin=origin,
        unit=unit,
    )


def one_component(mixture: Mixture, k: int) -> Warp:
    """Warp of one component of a mixture (n,)."""
    found: Warp = map_arrays(lambda a: a[k], mixture.warp)
    return found


def grid_of(mixture: Mixture, row: int) -> np.ndarray:
    """Points of y, dense where components are, with all knots of their warps among them."""
    assert mixture.warp is not None
    parts = []
    for k in range(len(mixture.weights)):
        z = mixture.means[k, row] + mixture.deviations[k, row] * np.linspace(-9.0, 9.0, 181)
        warp = one_component(mixture, k)
        parts += [from_warped(warp, z), warp.low, warp.high, np.zeros(1)]
    return mixture._in_unit(np.unique(np.concatenate(parts)))


def integrate(function: Any, edges: np.ndarray) -> np.ndarray:
    """∫ f between neighbouring edges, by Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    y = middle + half * nodes
    return np.sum(half * weights * function(y.ravel()).reshape(y.shape), axis=1)


def assert_quantiles(mixture: Mixture, y: np.ndarray, levels: Any) -> None:
    """F(y) is the level, to 1e-12 or to what a few doubles of y change."""
    upper = np.asarray(levels) > 0.5
    tail = np.where(upper, 1.0 - np.asarray(levels), levels)

    def tails(points: np.ndarray) -> np.ndarray:
        return np.where(upper, mixture.sf(points), mixture.cdf(points))

    origin, unit = mixture.frame()
    few = 64.0 * (np.spacing(np.abs(y)) + unit * np.spacing(np.abs(y - origin) / unit + 1.0))
    around = np.stack([tails(y - few), tails(y + few)])
    allowed = np.where(tail < 1e-19, 2e-11, 1e-12) * tail
    right = np.abs(tails(y) - tail) <= allowed
    right |= (around.min(axis=0) <= tail + allowed) & (around.max(axis=0) >= tail - allowed)
    assert np.all(right), (y[~right], np.max(np.abs(tails(y) - tail) / tail))


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    seed = draw(st.integers(0, 2**20))
    return random_mixture(
        np.random.default_rng(seed),
        draw(st.integers(1, 5)),
        (3,),
        ratio=10.0 ** draw(st.floats(0.0, 4.0)),
        origin=draw(st.sampled_from([0.0, 3.0, -1e3])),
    )


# What the methods are


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
    assert mixture.ppf([0.3, 0.1, 0.3]).shape == (*base, 3)
    assert mixture.interval([0.5, 0.9, 0.7]).shape == (*base, 2, 3)
    assert mixture.rvs(6, random_state=1).shape == (6, *base)


def test_against_sums_written_out(rng: np.random.Generator) -> None:
    """Several targets, each with its warps, origin and unit."""
    origin, unit = np.array([3.0, -20.0]), np.array([2.0, 0.1])
    mixture = random_mixture(rng, base=(3, 2), origin=origin, unit=unit)
    assert mixture.warp is not None
    y = origin + unit * rng.normal(size=(3, 2))
    step = 1e-6 * unit
    for i in range(3):
        for j in range(2):
            total = slope = 0.0
            for k, w in enumerate(mixture.weights):
                warp = map_arrays(lambda a, k=k, j=j: a[k, 0, j], mixture.warp)
                u = (y[i, j] + np.array([-step[j], 0.0, step[j]]) - origin[j]) / unit[j]
                z = (to_warped(warp, u) - mixture.means[k, i, j]) / mixture.deviations[k, i, j]
                total += w * stats.norm.cdf(z[1])
                slope += w * stats.norm.pdf(z[1]) * (z[2] - z[0]) / (2.0 * step[j])
            np.testing.assert_allclose(mixture.cdf(y)[i, j], total, rtol=1e-13)
            np.testing.assert_allclose(mixture.pdf(y)[i, j], slope, rtol=1e-7)
    np.testing.assert_allclose(mixture.cdf(y) + mixture.sf(y), 1.0, rtol=1e-14)


def test_density_function_and_moments_by_integration(rng: np.random.Generator) -> None:
    """p integrates to one and to F; means and variances to the accuracy of their quadrature."""
    mixture = random_mixture(rng, base=(4,))
    for row in range(4):
        alone = replace(
            mixture, means=mixture.means[:, [row]], deviations=mixture.deviations[:, [row]]
        )

        def density(y: np.ndarray, alone: Mixture = alone) -> np.ndarray:
            return alone.pdf(y[None])[0]

        edges = grid_of(alone, 0)
        pieces = integrate(density, edges)
        np.testing.assert_allclose(np.sum(pieces), 1.0, rtol=1e-9)
        np.testing.assert_allclose(np.cumsum(pieces), alone.cdf(edges[None])[0, 1:], atol=1e-9)
        first = np.sum(integrate(lambda y: y * density(y), edges))
        square = np.sum(integrate(lambda y: y**2 * density(y), edges))
        second = square - first**2
        assert abs(alone.mean()[0] - first) < 5e-3 * np.sqrt(second)
        np.testing.assert_allclose(alone.var()[0], second, rtol=1e-2)
        np.testing.assert_allclose(alone.std() ** 2, alone.var(), rtol=1e-14)


def test_the_identity_is_no_warp(rng: np.random.Generator) -> None:
    shape = (4, 30)
    means, deviations = rng.normal(size=shape), 10.0 ** rng.uniform(-1.0, 1.0, size=shape)
    weights = rng.dirichlet(np.ones(4))
    plain = build_mixture(weights, means, deviations)
    warped = build_mixture(weights, means, deviations, warp=identity((4,)))
    y = rng.normal(size=(30, 3))
    for name in ("pdf", "logpdf", "cdf", "sf"):
        found, expected = getattr(warped, name)(y), getattr(plain, name)(y)
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14, err_msg=name)
    for name in ("mean", "std", "var"):
        np.testing.assert_array_equal(getattr(warped, name)(), getattr(plain, name)())
    np.testing.assert_allclose(warped.ppf(LEVELS), plain.ppf(LEVELS), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(warped.rvs(5, 3), plain.rvs(5, 3))


def test_an_exponent_of_one_is_another_unit(rng: np.random.Generator) -> None:
    """λ = 1 with any center, scale, origin and unit: y is Gaussian."""
    mixture = random_mixture(rng, base=(6,))
    assert mixture.warp is not None
    linear = replace(mixture, warp=replace(mixture.warp, exponent=np.ones((4, 1))))
    warp = mixture.warp
    plain = build_mixture(
        mixture.weights,
        3.0 + 2.0 * (mixture.means * warp.scale + warp.center),
        2.0 * mixture.deviations * warp.scale,
    )
    y = rng.normal(3.0, 2.0, size=6)
    for name in ("pdf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(linear, name)(y), getattr(plain, name)(y), rtol=1e-11)
    for name in ("mean", "std", "var"):
        np.testing.assert_allclose(getattr(linear, name)(), getattr(plain, name)(), rtol=1e-13)
    np.testing.assert_allclose(linear.ppf(LEVELS), plain.ppf(LEVELS), rtol=1e-11, atol=1e-11)


def test_one_component_has_the_quantiles_of_its_warp(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components=1, base=(6,))
    for q in (1e-300, 1e-12, 0.05, 0.5, 0.7, 1.0 - 1e-12):
        z = stats.norm.ppf(q, mixture.means[0], mixture.deviations[0])
        expected = 3.0 + 2.0 * from_warped(one_component(mixture, 0), z)
        np.testing.assert_array_equal(mixture.ppf(q), expected)
    np.testing.assert_array_equal(mixture.ppf([0.0, 1.0]), [[-np.inf, np.inf]] * 6)


def test_components_without_weight_are_left_out(rng: np.random.Generator) -> None:
    kept = random_mixture(rng, n_components=3, base=(4, 2))
    other = random_mixture(rng, n_components=1, base=(4, 2), ratio=1e3)
    both = pool_mixtures([kept, other])
    mixture = replace(both, weights=np.array([*kept.weights, 0.0]))
    for name in ("pdf", "logpdf", "cdf", "sf"):
        np.testing.assert_array_equal(getattr(mixture, name)(3.0), getattr(kept, name)(3.0))
    for name in ("mean", "std", "var"):
        np.testing.assert_array_equal(getattr(mixture, name)(), getattr(kept, name)())
    np.testing.assert_array_equal(mixture.ppf(LEVELS), kept.ppf(LEVELS))
    np.testing.assert_array_equal(mixture.rvs(50, 3), kept.rvs(50, 3))


# Quantiles


@pytest.mark.parametrize("n_components", [2, 7, 64])
@pytest.mark.parametrize("ratio", [3.0, 1e3, 1e6])
def test_quantiles_are_right(n_components: int, ratio: float, rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components, (100,), ratio=ratio)
    y = mixture.ppf(LEVELS)
    assert np.all(np.isfinite(y))
    assert in_order(y)
    assert_quantiles(mixture, y, LEVELS)


def test_quantiles_to_the_promised_accuracy(rng: np.random.Generator) -> None:
    """Where u is of the size of the deviations, 1e-12 of the tail is reached."""
    mixture = random_mixture(rng, 5, (50,), ratio=1.5, origin=0.0, unit=4.0)
    levels = np.array([1e-9, 1e-3, 0.1, 0.5, 0.8, 0.999])
    upper = levels > 0.5
    assert_tails(mixture, mixture.ppf(levels), np.where(upper, 1.0 - levels, levels), upper)


@given(mixture=mixtures(), q=st.lists(st.floats(1e-12, 1.0 - 1e-12), min_size=2, max_size=6))
@examples
def test_quantiles_are_in_order(mixture: Mixture, q: list[float]) -> None:
    near = [level + k * 2.0**-50 * min(level, 1.0 - level) for level in q for k in range(-5, 6)]
    y = mixture.ppf(np.sort(near))
    assert in_order(y)
    assert_quantiles(mixture, mixture.ppf(q), q)


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


def test_quantiles_stand_where_their_levels_do(rng: np.random.Generator) -> None:
    mixture, q = random_mixture(rng, base=(3, 2)), [0.8, 0.1, 0.5]
    for k, level in enumerate(q):
        np.testing.assert_array_equal(mixture.ppf(q)[..., k], mixture.ppf(level))
    for k, coverage in enumerate([0.9, 0.5]):
        alone, both = mixture.interval(coverage), mixture.interval([0.9, 0.5])
        np.testing.assert_array_equal(both[..., k], alone)
        levels = [0.5 - coverage / 2, 0.5 + coverage / 2]
        np.testing.assert_allclose(alone, mixture.ppf(levels), rtol=1e-12)


def test_a_handful_of_evaluations(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that nearly agree, with warps of their own: about 4 evaluations were seen."""
    sought, original = [], quantiles._newton

    def counting(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        sought.append(arguments[3].size)
        return original(*arguments)

    monkeypatch.setattr(quantiles, "_newton", counting)
    shape = (8, 500)
    means = rng.normal(size=500) + 0.3 * rng.normal(size=shape)
    build_mixture(
        np.full(8, 0.125),
        means,
        0.3 * np.exp(0.2 * rng.normal(size=shape)),
        warp=random_warp(rng, (8,)),
    ).ppf([1e-9, 0.05, 0.5, 0.95])
    assert sum(sought) < 7 * 500 * 4
    assert len(sought) < 40


@pytest.mark.parametrize("narrow", [1e-6, 1e-300])
def test_a_needle(narrow: float) -> None:
    """Half the weight on a needle at u = 0: F(u) = ½ Φ(u / narrow) + ¼ near it."""
    warp = Warp(
        exponent=np.array([1.0, 0.5]),
        low=np.array([-2.0, -2.0]),
        high=np.array([2.0, 2.0]),
        center=np.zeros(2),
        scale=np.ones(2),
    )
    mixture = build_mixture([0.5, 0.5], [[0.0], [0.0]], [[narrow], [1.0]], warp=warp)
    q = np.array([0.3, 0.4, 0.6, 0.7])
    expected = stats.norm.ppf(2.0 * (q - 0.25))
    np.testing.assert_allclose(mixture.ppf(q)[0] / narrow, expected, rtol=10.0 * narrow + 1e-12)


# Sizes of numbers


@pytest.mark.parametrize(("origin", "unit"), UNITS)
def test_any_unit(origin: float, unit: float, rng: np.random.Generator) -> None:
    """Everything is that of u, brought to the unit; nothing overflows or is not a number."""
    plain = random_mixture(rng, base=(10,), origin=0.0, unit=1.0)
    mixture = replace(plain, origin=np.array([origin]), unit=np.array([unit]))
    u = plain.ppf(LEVELS[2:])
    with np.errstate(all="raise", under="ignore"):
        y = mixture.ppf(LEVELS[2:])
        np.testing.assert_allclose(y, origin + unit * u, rtol=1e-15)
        np.testing.assert_allclose(mixture.mean(), origin + unit * plain.mean(), rtol=1e-15)
        np.testing.assert_allclose(mixture.std(), unit * plain.std(), rtol=1e-15)
        draws = mixture.rvs(4, 1)
        np.testing.assert_allclose(draws, origin + unit * plain.rvs(4, 1), rtol=1e-15)
        assert not np.any(np.isnan(mixture.var()))
        assert in_order(y)
        points = np.array([[-1.7e308, -1.0, 0.0, origin, origin + unit, 1.7e308]])
        cdf, sf, logpdf = (f(points) for f in (mixture.cdf, mixture.sf, mixture.logpdf))
    np.testing.assert_allclose(cdf + sf, 1.0, rtol=1e-13)
    assert not np.any(np.isnan(logpdf))
    expected = plain.logpdf((origin + 0.0 - origin) / unit) - np.log(unit)
    np.testing.assert_allclose(logpdf[:, 3], expected, rtol=1e-13)


def test_distances_beyond_the_largest_double(rng: np.random.Generator) -> None:
    """u = (y - origin) / unit = 3 though y - origin is more than any double."""
    plain = random_mixture(rng, base=(4,), origin=0.0, unit=1.0)
    mixture = replace(plain, origin=np.array([-1.5e308]), unit=np.array([1e308]))
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(mixture.cdf(1.5e308), plain.cdf(3.0), rtol=1e-14)
    u = plain.ppf(0.99)
    half = -0.75e308 + 0.5e308 * u
    expected = np.where(np.abs(half) < 0.89e308, 2.0 * np.clip(half, -0.89e308, 0.89e308), np.inf)
    np.testing.assert_allclose(mixture.ppf(0.99), expected, rtol=1e-14)


def test_ends_of_the_line(rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, n_components=16)
    q = mixture.ppf([0.0, 1.0, 0.5, 0])
    assert np.all(q[:, [0, 3]] == -np.inf)
    assert np.all(q[:, 1] == np.inf)
    assert np.all(np.isfinite(q[:, 2]))
    assert np.all(mixture.cdf(np.inf) == 1.0)
    assert np.all(mixture.sf(np.inf) == 0.0)
    assert np.all(mixture.pdf([[np.inf, -np.inf]]) == 0.0)
    assert np.all(np.isnan(mixture.logpdf(np.nan)))
    assert np.all(np.isfinite(mixture.ppf(5e-324)))


@pytest.mark.parametrize("deviation", [1e-320, 1e-200, 1e150, 1e300])
def test_any_deviation(deviation: float, rng: np.random.Generator) -> None:
    found = random_mixture(rng, base=(5,))
    mixture = replace(found, deviations=np.full_like(found.deviations, deviation))
    for result in (mixture.mean(), mixture.std(), mixture.ppf([1e-9, 0.3, 0.9]), mixture.rvs(9, 0)):
        assert np.all(np.isfinite(result))
    assert not np.any(np.isnan(mixture.logpdf([[0.0, 3.0, 1e300]])))
    assert in_order(mixture.ppf([1e-9, 0.3, 0.9]))


# Draws


@pytest.mark.parametrize("base", [(3,), (2, 2)], ids=str)
def test_draws_follow_the_distribution(base: tuple[int, ...]) -> None:
    """Kolmogorov-Smirnov: sqrt(n) D < 2.8 fails by chance in 3e-7 of runs, for each of 4 cells.

    The mean and the variance are held to 5 standard errors (6e-7 each) beside the quadrature's.
    """
    mixture = random_mixture(np.random.default_rng(5), base=base, ratio=3.0)
    n = 40_000
    draws = mixture.rvs(n, random_state=8)
    levels = np.sort(mixture.cdf(np.moveaxis(draws, 0, -1)), axis=-1)
    steps = np.arange(n + 1) / n
    distance = np.maximum(steps[1:] - levels, levels - steps[:-1]).max(axis=-1)
    assert np.all(np.sqrt(n) * distance < 2.8)
    centred = draws - mixture.mean()
    allowed = 5.0 / np.sqrt(n) + 2e-3
    assert np.all(np.abs(centred.mean(axis=0)) < allowed * mixture.std())
    squares = centred**2
    error = np.abs(squares.mean(axis=0) - mixture.var())
    assert np.all(error < 5.0 * squares.std(axis=0) / np.sqrt(n) + 5e-3 * mixture.var())


# Parts and wholes


def test_targets_and_rows(rng: np.random.Generator) -> None:
    origin, unit = np.array([3.0, -20.0]), np.array([2.0, 0.1])
    mixture = random_mixture(rng, base=(6, 2), origin=origin, unit=unit)
    y = origin + unit * rng.normal(size=(6, 2))
    for target in range(2):
        one = mixture.of_target(target)
        assert one.warp is not None
        assert one.warp.scale.shape == (4, 1)
        for name in ("pdf", "cdf"):
            both = getattr(mixture, name)(y)[:, target]
            np.testing.assert_array_equal(getattr(one, name)(y[:, target]), both)
        np.testing.assert_array_equal(one.std(), mixture.std()[:, target])
        np.testing.assert_array_equal(one.ppf([0.1, 0.9]), mixture.ppf([0.1, 0.9])[:, target])
    parts = [
        replace(mixture, means=mixture.means[:, rows], deviations=mixture.deviations[:, rows])
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6))
    ]
    joined = join_mixtures(parts)
    np.testing.assert_array_equal(joined.ppf(LEVELS), mixture.ppf(LEVELS))
    np.testing.assert_array_equal(joined.mean(), mixture.mean())
    alone = [part.ppf(LEVELS) for part in parts]
    np.testing.assert_array_equal(np.concatenate(alone), mixture.ppf(LEVELS))


def test_pooled_densities_are_averages(rng: np.random.Generator) -> None:
    """Also of a forecast with warps and one without."""
    first, second = (random_mixture(rng, k, (5, 2)) for k in (2, 3))
    plain = build_mixture([0.25, 0.75], 3.0 + rng.normal(size=(2, 5, 2)), np.full((2, 5, 2), 2.0))
    y = rng.normal(3.0, 2.0, size=(5, 2))
    for parts in ([first, second], [plain, plain], [plain, first], [first, plain, second]):
        expected = np.mean([part.pdf(y) for part in parts], axis=0)
        np.testing.assert_allclose(pool_mixtures(parts).pdf(y), expected, rtol=1e-12)
        expected = np.mean([part.mean() for part in parts], axis=0)
        np.testing.assert_allclose(pool_mixtures(parts).mean(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="origin"):
        pool_mixtures([first, random_mixture(rng, 2, (5, 2), unit=5.0)])


@pytest.mark.parametrize("warped", [False, True])
def test_rows_that_are_averaged(warped: bool, rng: np.random.Generator) -> None:
    mixture = random_mixture(rng, 3, (8, 2))
    if not warped:
        mixture = replace(mixture, warp=None, origin=None, unit=None)
    found = average_rows(mixture, 2)
    y = rng.normal(3.0, 2.0, size=(4, 2))
    expected = mixture.pdf(np.concatenate([y, y])).reshape(2, 4, 2).mean(axis=0)
    np.testing.assert_allclose(found.pdf(y), expected, rtol=1e-13)
    np.testing.assert_allclose(found.mean(), mixture.mean().reshape(2, 4, 2).mean(axis=0), 1e-13)


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_do_not_matter(
    block: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = random_mixture(rng, n_components=6, base=(9, 2), ratio=1e3)
    y = rng.normal(size=(9, 2, 5))

    def everything() -> list[np.ndarray]:
        return [
            mixture.ppf(LEVELS),
            mixture.interval([0.5, 0.9]),
            mixture.cdf(y),
            mixture.logpdf(y),
            mixture.mean(),
            mixture.std(),
            mixture.rvs(4, 11),
        ]

    whole = everything()
    monkeypatch.setattr(module, "_BLOCK", block)
    for first, second in zip(whole, everything(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["ppf", "logpdf", "std", "rvs"])
def test_memory_is_bounded(name: str, rng: np.random.Generator) -> None:
    """Ten blocks of 1 MB were seen at a time; one array of all rows and components has 13 MB."""
    mixture = random_mixture(rng, 16, (100_000,))
    arguments = {"ppf": (0.9,), "logpdf": (0.3,), "rvs": (10, 1)}
    used = peak_memory(lambda: getattr(mixture, name)(*arguments.get(name, ())))
    assert used < 14 * 8 * module._BLOCK


# The door


def good() -> dict[str, Any]:
    return {
        "weights": [0.5, 0.5],
        "means": np.zeros((2, 3)),
        "deviations": np.ones((2, 3)),
        "warp": identity((2,)),
        "origin": 1.0,
        "unit": 2.0,
    }


@pytest.mark.parametrize("field", [field.name for field in fields(Warp)])
@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 3)), [np.nan, 1.0], [1.0, np.inf]])
def test_bad_warps_are_named(field: str, bad: Any) -> None:
    warp = replace(identity((2,)), **{field: np.asarray(bad)})
    with pytest.raises(ValueError, match=field):
        build_mixture(**{**good(), "warp": warp})


@pytest.mark.parametrize(
    ("field", "bad"),
    [("exponent", -0.1), ("exponent", 2.1), ("scale", 0.0), ("scale", -1.0), ("low", 3.0)],
)
def test_senseless_warps_are_named(field: str, bad: float) -> None:
    warp = replace(identity((2,)), **{field: np.array([1.0 if field != "low" else 0.0, bad])})
    with pytest.raises(ValueError, match=field):
        build_mixture(**{**good(), "warp": warp})


@pytest.mark.parametrize(
    ("name", "bad"),
    [("origin", np.inf), ("origin", [1.0, 2.0]), ("unit", 0.0), ("unit", -1.0), ("unit", np.nan)],
)
def test_bad_units_are_named(name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=name):
        build_mixture(**{**good(), name: bad})
    with pytest.raises(ValueError, match="warp"):
        build_mixture(**{**good(), "warp": None})
    for part in ("means", "deviations"):
        with pytest.raises(ValueError, match=part):
            build_mixture(**{**good(), part: np.full((2, 3), 1e101)})


def test_units_by_default_and_by_target() -> None:
    found = build_mixture(**{**good(), "origin": None, "unit": None})
    np.testing.assert_array_equal(found.mean(), np.zeros(3))
    several = {"means": np.zeros((2, 3, 4)), "deviations": np.ones((2, 3, 4))}
    warp = identity((2, 4))
    found = build_mixture(**{**good(), **several, "warp": warp, "unit": np.arange(1.0, 5.0)})
    assert found.origin is not None
    assert found.origin.shape == (1, 4)
    np.testing.assert_array_equal(found.std(), np.tile(np.arange(1.0, 5.0), (3, 1)))
