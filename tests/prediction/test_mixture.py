"""Mixtures of Gaussians: SciPy for one component, brute force for several, tails, units, shapes."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from bowtienet.prediction import mixture as module
from bowtienet.prediction.components import _rough_ndtr
from bowtienet.prediction.mixture import Mixture
from bowtienet.tables.warp import fit_warp, forward, inverse

BASES = [(5,), (4, 1), (3, 2)]
LEVELS = np.array([1e-300, 1e-30, 1e-12, 1e-3, 0.05, 0.3, 0.5, 0.62, 0.95, 0.999, 1.0 - 1e-12])
FUNCTIONS = ("pdf", "logpdf", "cdf", "sf")


def random_mixture(
    rng: np.random.Generator, count: int = 4, base: tuple[int, ...] = (5,), ratio: float = 10.0
) -> Mixture:
    shape = (count, *base)
    return Mixture(
        weights=rng.dirichlet(np.ones(count)) if count > 1 else np.ones(1),
        means=2.0 * rng.normal(size=shape),
        epistemic=ratio ** rng.uniform(-0.5, 0.5, size=shape),
        noise=ratio ** rng.uniform(-0.5, 0.5, size=shape),
    )


def in_unit(mixture: Mixture, unit: float, shift: float = 0.0) -> Mixture:
    return replace(
        mixture,
        means=unit * mixture.means + shift,
        epistemic=unit * mixture.epistemic,
        noise=unit * mixture.noise,
    )


def assert_quantiles(mixture: Mixture, levels: np.ndarray, rtol: float = 1e-8) -> None:
    """The smaller tail at each quantile has its level."""
    y = mixture.ppf(levels)
    levels = levels.reshape(-1, *[1] * (y.ndim - 1))
    upper = levels > 0.5
    tails = np.where(upper, mixture.sf(y), mixture.cdf(y))
    wanted = np.where(upper, 1.0 - levels, levels) * np.ones_like(y)
    np.testing.assert_allclose(tails, wanted, rtol=rtol)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_one_component_is_a_gaussian(base, rng):
    mixture = random_mixture(rng, 1, base)
    gaussian = stats.norm(mixture.means[0], np.hypot(mixture.epistemic[0], mixture.noise[0]))
    np.testing.assert_array_equal(mixture.mean(), mixture.means[0])
    np.testing.assert_allclose(mixture.std(), gaussian.std(), rtol=1e-15)
    epistemic, noise = mixture.parts()
    np.testing.assert_allclose(epistemic, mixture.epistemic[0], rtol=1e-15)
    np.testing.assert_allclose(noise, mixture.noise[0], rtol=1e-15)
    y = mixture.means[0] + 5.0 * rng.normal(size=base) * gaussian.std()
    for name in FUNCTIONS:
        np.testing.assert_allclose(
            getattr(mixture, name)(y), getattr(gaussian, name)(y), rtol=1e-12
        )
    for q in (0.0, *LEVELS, 1.0):
        np.testing.assert_allclose(mixture.ppf(q), gaussian.ppf(q), rtol=1e-12)
    np.testing.assert_allclose(mixture.interval(0.9), gaussian.interval(0.9), rtol=1e-13)


def test_several_components_written_out(rng):
    """Every entry, for a point, a point of each row, and several points of each row."""
    mixture = random_mixture(rng, base=(3, 2))
    y = 3.0 * rng.normal(size=(4, 3, 2))
    results = {name: getattr(mixture, name)(y) for name in FUNCTIONS}
    for i, j in np.ndindex(3, 2):
        scale = np.sqrt(mixture.epistemic[:, i, j] ** 2 + mixture.noise[:, i, j] ** 2)
        each = stats.norm(mixture.means[:, i, j], scale)
        for k in range(4):
            point, w = y[k, i, j], mixture.weights
            expected = {
                "pdf": w @ each.pdf(point),
                "logpdf": logsumexp(each.logpdf(point), b=w),
                "cdf": w @ each.cdf(point),
                "sf": w @ each.sf(point),
            }
            for name in FUNCTIONS:
                np.testing.assert_allclose(results[name][k, i, j], expected[name], rtol=1e-12)
    for name in FUNCTIONS:
        np.testing.assert_allclose(getattr(mixture, name)(y[2]), results[name][2], rtol=1e-14)
        np.testing.assert_array_equal(
            getattr(mixture, name)(0.7), getattr(mixture, name)(np.full((3, 2), 0.7))
        )


def test_parts_of_the_variance(rng):
    """Means that differ are epistemic; nothing cancels beside a large mean."""
    mixture = random_mixture(rng, base=(3, 2))
    epistemic, noise = mixture.parts()
    w, m = mixture.weights[:, None, None], mixture.means
    mean = np.sum(w * m, axis=0)
    between = np.sum(w * (mixture.epistemic**2 + (m - mean) ** 2), axis=0)
    np.testing.assert_allclose(epistemic**2, between, rtol=1e-13)
    np.testing.assert_allclose(noise**2, np.sum(w * mixture.noise**2, axis=0), rtol=1e-13)
    np.testing.assert_allclose(mixture.std() ** 2, epistemic**2 + noise**2, rtol=1e-13)
    step = (1e6 + 1e-5) - 1e6
    far = Mixture(
        weights=np.array([0.5, 0.5]),
        means=np.array([[1e6], [1e6 + 1e-5]]),
        epistemic=np.zeros((2, 1)),
        noise=np.full((2, 1), 1e-5),
    )
    np.testing.assert_allclose(far.parts(), [[0.5 * step], [1e-5]], rtol=1e-6)


# Quantiles


@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e6, 1e12])
def test_quantiles_have_their_levels(ratio, rng):
    """Also where deviations differ by many orders, and far out in both tails."""
    for _ in range(20):
        mixture = random_mixture(rng, 5, (4,), ratio)
        levels = np.concatenate([LEVELS[2:], rng.random(10), 10.0 ** rng.uniform(-12.0, -1.0, 5)])
        assert_quantiles(mixture, levels)
        ordered = mixture.ppf(np.sort(levels))
        assert np.all(np.diff(ordered, axis=0) >= 0.0)


@pytest.mark.parametrize("level", [1e-12, 0.02, 0.5, 0.99, 1.0 - 1e-12])
def test_quantiles_in_fifty_digits(level, rng):
    mixture = random_mixture(rng, 3, (2,))
    y = mixture.ppf(level)
    with mpmath.workdps(50):
        for row in range(2):
            components = [
                (mpmath.mpf(w), mpmath.mpf(m), mpmath.mpf(d))
                for w, m, d in zip(
                    mixture.weights, mixture.means[:, row], mixture.deviations[:, row], strict=True
                )
            ]

            def tail(x: mpmath.mpf, components: list = components) -> mpmath.mpf:
                sign = -1 if level > 0.5 else 1
                wanted = 1 - mpmath.mpf(level) if level > 0.5 else mpmath.mpf(level)
                reached = sum(w * mpmath.ncdf(sign * (x - m) / d) for w, m, d in components)
                return reached / wanted - 1

            exact = mpmath.findroot(tail, (y[row] - 0.01, y[row] + 0.01), solver="anderson")
            assert abs(y[row] - float(exact)) < 1e-10


def test_rough_distribution_function_of_first_steps():
    z = np.linspace(-40.0, 40.0, 100_001)
    found = _rough_ndtr(z, np.exp(-0.5 * z**2))
    np.testing.assert_allclose(found, stats.norm.cdf(z), rtol=0.0, atol=7.6e-8)


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2.0], [[0.5]]], ids=str)
def test_levels_that_are_none_are_refused(q, rng):
    with pytest.raises(ValueError, match="levels"):
        random_mixture(rng).ppf(q)


# Weights, units, draws


@pytest.mark.parametrize("y", [1e160, -1e300, np.inf, -np.inf])
def test_beyond_all_doubles(y, rng):
    mixture = in_unit(random_mixture(rng), 1e-10)
    assert np.all(mixture.logpdf(y) == -np.inf)
    assert np.all(mixture.pdf(y) == 0.0)
    assert np.all(mixture.cdf(y) == pytest.approx(float(y > 0.0)))
    assert np.all(mixture.sf(y) == pytest.approx(float(y < 0.0)))


def test_far_tails_keep_their_digits(rng):
    """Where densities underflow their logarithm does not, and no tail is a difference from one."""
    mixture = random_mixture(rng, base=(3,))
    y = mixture.mean() + 200.0
    expected = logsumexp(
        stats.norm(mixture.means, mixture.deviations).logpdf(y), b=mixture.weights[:, None], axis=0
    )
    np.testing.assert_allclose(mixture.logpdf(y), expected, rtol=1e-12)
    near = mixture.means.max(axis=0) + 12.0 * mixture.deviations.max(axis=0)
    tails = stats.norm(mixture.means, mixture.deviations).sf(near)
    np.testing.assert_allclose(mixture.sf(near), mixture.weights @ tails, rtol=1e-12)


def test_draws_follow_the_mixture(rng):
    """Kolmogorov and Smirnov's test in every row, and no two rows share their components."""
    mixture = random_mixture(rng, 3, (2, 2))
    draws = mixture.rvs(4000, rng)
    levels = mixture.cdf(draws)
    for i, j in np.ndindex(2, 2):
        assert stats.kstest(levels[:, i, j], "uniform").pvalue > 1e-4
    correlation = np.corrcoef(draws.reshape(4000, 4).T) - np.eye(4)
    assert np.abs(correlation).max() < 5.0 / np.sqrt(4000)
    again = (mixture.rvs(3, np.random.default_rng(1)), mixture.rvs(3, np.random.default_rng(1)))
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-4])
def test_narrow_components_do_not_catch_the_search(share, width, warped, rng):
    """Newton's method goes to and fro over a narrow component until the bracket decides."""
    base = (400,)
    mixture = warped_mixture(rng, base) if warped else random_mixture(rng, 4, base, 2.0)
    narrow = np.array([width, 1.0, 1.0, 1.0])[:, None]
    mixture = replace(
        mixture,
        weights=np.array([share, *(np.array([0.2, 0.5, 0.3]) * (1.0 - share))]),
        epistemic=mixture.epistemic * narrow,
        noise=mixture.noise * narrow,
    )
    levels = np.array([0.01, 0.05, 0.3, 0.5, 0.9, 0.99])
    reached = mixture.cdf(mixture.ppf(levels))
    np.testing.assert_allclose(reached - levels[:, None], 0.0, atol=1e-8)


@pytest.mark.parametrize("warped", [False, True])
def test_upper_tails_are_as_precise_as_lower_ones(warped, rng):
    mixture = warped_mixture(rng, (6,)) if warped else random_mixture(rng)
    tails = np.array([1e-300, 1e-100, 1e-17, 0.01, 0.5, 0.9])
    reached = mixture.sf(mixture.isf(tails))
    np.testing.assert_allclose(reached, tails[:, None] * np.ones_like(reached), rtol=1e-8)
    np.testing.assert_array_equal(mixture.isf([0.0, 1.0])[:, 0], [np.inf, -np.inf])
    np.testing.assert_allclose(mixture.isf(0.25), mixture.ppf(0.75), rtol=1e-12)


# Weights by row


@pytest.mark.parametrize("warped", [False, True])
def test_weights_by_row_are_those_of_rows_one_by_one(warped, rng):
    base = (6, 2)
    plain = warped_mixture(rng, base) if warped else random_mixture(rng, 4, base)
    mixture = replace(plain, weights=np.moveaxis(rng.dirichlet(np.ones(4), size=base), -1, 0))
    y = mixture.ppf(0.4) + 0.3
    whole = answers(mixture, y)
    for row in range(6):
        for target in range(2):
            at = (slice(None), slice(row, row + 1), slice(target, target + 1))
            alone = replace(
                mixture,
                weights=mixture.weights[:, row, target],
                means=mixture.means[at],
                epistemic=mixture.epistemic[at],
                noise=mixture.noise[at],
                warps=tuple(of_target(warp, target) for warp in mixture.warps),
            )
            for found, expected in zip(whole, answers(alone, y[at[1:]]), strict=True):
                np.testing.assert_allclose(found[at[1:]], expected, rtol=1e-11)


# Warps


def warped_mixture(
    rng: np.random.Generator, base: tuple[int, ...] = (5,), unit: float = 1.0
) -> Mixture:
    """Two affine components and two of exponents near 0 and 2, for lognormal targets."""
    n_targets = base[1] if len(base) > 1 else 1
    targets = unit * (3.0 + np.exp(rng.normal(size=(200, n_targets)) * 0.9))
    targets[:, 1:] *= -1.0
    warps = tuple(fit_warp(targets, np.ones(200), transformed=case) for case in (False, True))
    shape = (4, *base)
    return Mixture(
        weights=rng.dirichlet(np.ones(4)),
        means=rng.normal(size=shape),
        epistemic=rng.uniform(0.05, 0.3, size=shape),
        noise=rng.uniform(0.1, 0.6, size=shape),
        warps=warps,
        warp_of=(0, 1, 1, 0),
    )


def of_target(warp: module.Warp, target: int) -> module.Warp:
    return module.Warp(**{name: value[[target]] for name, value in vars(warp).items()})


def answers(mixture: Mixture, y: np.ndarray) -> list[np.ndarray]:
    functions = [getattr(mixture, name)(y) for name in FUNCTIONS]
    return [mixture.mean(), mixture.std(), *mixture.parts(), *mixture.interval(0.8), *functions]


def test_affine_warps_are_another_unit(rng):
    """z = (y - center) / scale: everything in closed form, as without warps."""
    mixture = warped_mixture(rng, (40, 2))
    affine = mixture.warps[0]
    slope = affine.scale * affine.size
    mixture = replace(mixture, warps=(affine,), warp_of=(0,) * 4)
    plain = Mixture(
        weights=mixture.weights,
        means=inverse(affine, mixture.means),
        epistemic=slope * mixture.epistemic,
        noise=slope * mixture.noise,
    )
    y = plain.mean() + rng.normal(size=(3, 40, 2))
    for found, expected in zip(answers(mixture, y), answers(plain, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_allclose(mixture.ppf(LEVELS), plain.ppf(LEVELS), rtol=1e-10)
    draws = (case.rvs(3, np.random.default_rng(1)) for case in (mixture, plain))
    np.testing.assert_allclose(*draws, rtol=1e-12)


def test_warped_moments_by_integration(rng):
    mixture = warped_mixture(rng, (3,))
    grid = np.concatenate([np.linspace(-40.0, 60.0, 400_001), np.geomspace(60.0, 1e4, 10_001)[1:]])
    density = mixture.pdf(grid[:, None])
    mass = integrate.trapezoid(density, grid, axis=0)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-6)
    mean = integrate.trapezoid(grid[:, None] * density, grid, axis=0)
    variance = integrate.trapezoid((grid[:, None] - mean) ** 2 * density, grid, axis=0)
    np.testing.assert_allclose(mixture.mean(), mean, atol=3e-3 * np.sqrt(variance).min())
    np.testing.assert_allclose(mixture.std(), np.sqrt(variance), rtol=1e-2)
    part = (grid > -2.0) & (grid < 8.0)
    inside = integrate.trapezoid(density[part], grid[part], axis=0)
    ends = grid[part][[0, -1], None]
    np.testing.assert_allclose(np.diff(mixture.cdf(ends), axis=0)[0], inside, rtol=1e-6)
    np.testing.assert_allclose(mixture.cdf(ends) + mixture.sf(ends), 1.0, rtol=1e-14)


@pytest.mark.parametrize("base", [(50,), (50, 1), (20, 3)], ids=str)
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-8])
def test_warped_quantiles_have_their_levels(base, spread, rng):
    """Far out in both tails, beyond the ends of the warps, and where components are far apart."""
    mixture = warped_mixture(rng, base)
    mixture = replace(mixture, epistemic=mixture.epistemic * spread, noise=mixture.noise * spread)
    rtol = 1e-8 if spread > 1e-4 else 1e-5
    assert_quantiles(mixture, np.array([1e-12, 1e-5, 0.05, 0.3, 0.5, 0.8, 0.95, 0.99999]), rtol)
    np.testing.assert_array_equal(np.abs(mixture.ppf([0.0, 1.0])), np.inf)
    assert np.all(np.diff(mixture.ppf(np.linspace(0.0, 1.0, 21)[1:-1]), axis=0) > 0.0)


def test_one_warped_component_and_draws(rng):
    """Quantiles are those of a Gaussian behind the warp; mean and deviation those of draws."""
    mixture = warped_mixture(rng, (4,))
    mixture = replace(mixture, weights=np.array([0.0, 1.0, 0.0, 0.0]))
    warp = mixture.warps[1]
    gaussian = stats.norm(mixture.means[1], np.hypot(mixture.epistemic[1], mixture.noise[1]))
    for level in (0.01, 0.5, 0.9):
        z = forward(warp, mixture.ppf(level)[:, None])[:, 0]
        np.testing.assert_allclose(z, gaussian.ppf(level), rtol=1e-8, atol=1e-9)
    draws = inverse(warp, gaussian.rvs((200_000, 4), random_state=rng)[..., None])[..., 0]
    error = draws.std(axis=0) / np.sqrt(200_000)
    assert np.all(np.abs(draws.mean(axis=0) - mixture.mean()) < 5.0 * error)
    # Heavy tails: a fourth moment of some ten times the squared variance.
    np.testing.assert_allclose(mixture.std(), draws.std(axis=0), rtol=0.03)
    epistemic, noise = mixture.parts()
    ratio = mixture.epistemic[1] / mixture.noise[1]
    np.testing.assert_allclose(epistemic / noise, ratio, rtol=1e-10)
    levels = mixture.cdf(mixture.rvs(2000, rng))
    assert all(stats.kstest(column, "uniform").pvalue > 1e-4 for column in levels.T)


@pytest.mark.parametrize(
    ("warped", "unit"), [(False, 1e-150), (False, 1e150), (True, 1e-200), (True, 1e200)]
)
def test_units_do_not_matter(warped, unit, rng):
    if warped:
        plain, mixture = (warped_mixture(np.random.default_rng(0), (7, 2), u) for u in (1.0, unit))
    else:
        plain = random_mixture(rng, base=(3, 2))
        mixture = in_unit(plain, unit)
    y = plain.ppf(0.3)
    factors = [unit] * 6 + [1.0 / unit, 0.0, 1.0, 1.0]
    for found, expected, factor in zip(
        answers(mixture, unit * y), answers(plain, y), factors, strict=True
    ):
        expected = expected - np.log(unit) if factor == 0.0 else factor * expected
        np.testing.assert_allclose(found, expected, rtol=1e-4 if warped else 1e-11)


def test_blocks_of_warped_rows_change_nothing(rng, monkeypatch):
    mixture = warped_mixture(rng, (13, 3))
    whole = [*mixture.parts(), mixture.ppf([0.1, 0.6])]
    monkeypatch.setattr(module, "_CACHED", 24)
    again = replace(mixture)
    for found, expected in zip([*again.parts(), again.ppf([0.1, 0.6])], whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
