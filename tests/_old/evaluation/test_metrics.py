"""Scores against integrals, closed forms, other libraries and repeated rows."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import binom, norm
from sklearn.metrics import root_mean_squared_error

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import Warp
from bowtienet._old.evaluation import metrics
from bowtienet._old.evaluation.metrics import (
    binomial_band,
    calibration_curve,
    calibration_error,
    crps,
    evaluate,
    interval_coverage,
    interval_score,
    negative_log_density,
    pit,
    rmse,
)
from bowtienet._old.prediction.mixture import Mixture, build_mixture

few_examples = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)

Metric = Callable[..., float]
OF_DISTRIBUTIONS: dict[str, Metric] = {
    "nll": negative_log_density,
    "crps": crps,
    "calibration_error": calibration_error,
    "rmse": lambda y, found, **kw: rmse(y, found.mean(), **kw),
    "coverage": lambda y, found, **kw: interval_coverage(y, found.interval(0.8), **kw),
    "interval_score": lambda y, found, **kw: interval_score(y, found.interval(0.8), 0.8, **kw),
}
every_metric = pytest.mark.parametrize("metric", OF_DISTRIBUTIONS.values(), ids=OF_DISTRIBUTIONS)


def forecast(
    seed: int = 0, n: int = 12, n_targets: int | None = None, n_members: int = 3
) -> tuple[np.ndarray, Mixture]:
    """Targets, and mixtures that are about right for them."""
    rng = np.random.default_rng(seed)
    base = (n,) if n_targets is None else (n, n_targets)
    means = rng.normal(size=(n_members, *base))
    found = build_mixture(
        rng.dirichlet(np.ones(n_members)), means, rng.uniform(0.3, 2.0, size=means.shape)
    )
    return found.rvs(random_state=rng) + 0.3, found


def warped_forecast(
    seed: int = 0, n: int = 8, n_targets: int | None = None, exponent: float | None = None
) -> tuple[np.ndarray, Mixture]:
    """Targets, and mixtures of three components with warps of their own (or one exponent)."""
    rng = np.random.default_rng(seed)
    targets = () if n_targets is None else (n_targets,)
    shape = (3, *targets)
    warp = Warp(
        exponent=rng.uniform(0.0, 2.0, size=shape)
        if exponent is None
        else np.full(shape, exponent),
        low=np.full(shape, -2.0),
        high=np.full(shape, 5.0),
        center=rng.uniform(-0.2, 0.2, size=shape),
        scale=rng.uniform(0.7, 1.3, size=shape),
    )
    means = rng.normal(size=(3, n, *targets))
    deviations = 10.0 ** rng.uniform(-1.5, 0.3, size=means.shape)
    weights = rng.dirichlet(np.ones(3))
    found = build_mixture(weights, means, deviations, warp=warp, origin=3.0, unit=2.0)
    return found.rvs(random_state=rng) + 0.3, found


def scaled(found: Mixture, factor: float, shift: float = 0.0) -> Mixture:
    return build_mixture(
        found.weights, factor * found.means + shift, abs(factor) * found.deviations
    )


def rows_of(found: Mixture, index: Any) -> Mixture:
    return build_mixture(found.weights, found.means[:, index], found.deviations[:, index])


# What the scores are


def test_crps_is_the_integral_of_squared_distances_of_distribution_functions() -> None:
    y, found = forecast(n=6)
    integrals = []
    for row, target in enumerate(y):
        single = rows_of(found, [row])

        def below(x: float, single: Mixture = single) -> float:
            return float(single.cdf([x])[0]) ** 2

        def above(x: float, single: Mixture = single) -> float:
            return float(single.sf([x])[0]) ** 2

        left, _ = quad(below, target - 30.0, target, limit=200, epsabs=1e-11)
        right, _ = quad(above, target, target + 30.0, limit=200, epsabs=1e-11)
        integrals.append(left + right)
    assert crps(y, found) == pytest.approx(np.mean(integrals), rel=1e-8)


def test_crps_of_one_gaussian_is_the_closed_form() -> None:
    """d [z (2 Φ(z) - 1) + 2 φ(z) - 1/√π], z = (y - m) / d."""
    y, found = forecast(n_members=1)
    mean, deviation = found.means[0], found.deviations[0]
    z = (y - mean) / deviation
    closed = deviation * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    assert crps(y, found) == pytest.approx(closed.mean(), rel=1e-12)


def test_crps_of_a_sharp_forecast_is_the_absolute_error() -> None:
    found = build_mixture([1.0], [[1.0, 2.0]], [[1e-12, 1e-12]])
    assert crps([3.0, -2.0], found) == pytest.approx(3.0, rel=1e-10)


@pytest.mark.parametrize("n_targets", [None, 2])
def test_crps_does_not_depend_on_the_blocks(
    n_targets: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, found = forecast(n=17, n_targets=n_targets)
    whole = crps(y, found)
    sizes = []
    original = scoringrules.crps_mixnorm

    def watched(obs: np.ndarray, *args: Any, **settings: Any) -> np.ndarray:
        sizes.append(len(obs))
        assert settings == {"backend": "numpy"}
        return original(obs, *args, **settings)

    monkeypatch.setattr(scoringrules, "crps_mixnorm", watched)
    monkeypatch.setattr(metrics, "_BLOCK", 4 * 9 * (n_targets or 1))
    assert crps(y, found) == pytest.approx(whole, rel=1e-14)
    assert sizes == [4, 4, 4, 4, 1]


def test_members_without_weight_have_no_part_in_crps() -> None:
    y, found = forecast(n_members=2)
    widened = build_mixture(
        [*found.weights, 0.0],
        np.concatenate([found.means, np.full((1, len(y)), 1e300)]),
        np.concatenate([found.deviations, np.full((1, len(y)), 1e300)]),
    )
    assert crps(y, widened) == pytest.approx(crps(y, found), rel=1e-14)


@pytest.mark.parametrize("distance", [0.0, 30.0, -1e5])
def test_crps_of_warped_forecasts_that_are_gaussian(distance: float) -> None:
    """λ = 1: y is Gaussian with mean o + s (m scale + center) and deviation s d scale."""
    y, found = warped_forecast(n=50, exponent=1.0)
    warp = found.warp
    assert warp is not None
    means = 3.0 + 2.0 * (found.means * warp.scale + warp.center)
    plain = build_mixture(found.weights, means, 2.0 * found.deviations * warp.scale)
    assert crps(y + distance, found) == pytest.approx(crps(y + distance, plain), rel=1e-7)


def test_crps_of_warped_forecasts_is_the_integral() -> None:
    """Trapezoids of width 2e-4 in y; the narrowest component has a deviation near 0.05."""
    y, found = warped_forecast()
    x = np.linspace(-60.0, 100.0, 800_001)
    expected = []
    for row, target in enumerate(y):
        single = replace(found, means=found.means[:, [row]], deviations=found.deviations[:, [row]])
        lower = single.cdf(x[None])[0]
        squares = np.where(x < target, lower, 1.0 - lower) ** 2
        expected.append(np.trapezoid(squares, x))
    assert crps(y, found) == pytest.approx(np.mean(expected), rel=1e-4)


def test_crps_of_warped_forecasts_by_draws() -> None:
    """E|X - y| - ½ E|X - X'| of 200,000 pairs; five standard errors, 6e-7, for each row."""
    y, found = warped_forecast(3, n=4)
    one, two = found.rvs(200_000, 1), found.rvs(200_000, 2)
    terms = np.abs(one - y) - 0.5 * np.abs(one - two)
    error = np.abs(terms.mean(axis=0) - metrics._crps(y, found))
    assert np.all(error < 5.0 * terms.std(axis=0) / np.sqrt(len(terms)))


@pytest.mark.parametrize(
    ("origin", "unit"), [(1e300, 1e300), (0.0, 1e-300), (1e10, 1.0), (-1e-300, 1e-305)]
)
def test_crps_of_warped_forecasts_in_any_unit(origin: float, unit: float) -> None:
    _, found = warped_forecast(n=20)
    u = np.random.default_rng(1).normal(size=20)
    plain = replace(found, origin=np.zeros(1), unit=np.ones(1))
    other = replace(found, origin=np.array([origin]), unit=np.array([unit]))
    y = origin + unit * u
    expected = unit * metrics._crps((y - origin) / unit, plain)
    np.testing.assert_allclose(metrics._crps(y, other), expected, rtol=1e-12)


def test_crps_far_from_warped_forecasts_is_the_distance() -> None:
    """Also where u = (y - origin) / unit is no double."""
    _, found = warped_forecast(n=3)
    for unit, distance in ((2.0, 1e200), (1e-300, 1e10), (1e-300, -1e300)):
        other = replace(found, unit=np.array([unit]))
        score = metrics._crps(np.full(3, 3.0 + distance), other)
        np.testing.assert_allclose(score, abs(distance), rtol=1e-14)


def test_crps_of_warped_forecasts_by_targets_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    y, found = warped_forecast(n=17, n_targets=2)
    parts = [crps(y[:, d], found.of_target(d)) for d in range(2)]
    assert crps(y, found) == pytest.approx(np.mean(parts), rel=1e-14)
    whole = metrics._crps(y, found)
    monkeypatch.setattr(metrics, "_BLOCK", 500)
    np.testing.assert_array_equal(metrics._crps(y, found), whole)
    widened = replace(found, weights=np.array([*found.weights[:2] / found.weights[:2].sum(), 0.0]))
    alone = build_mixture(widened.weights[:2], found.means[:2], found.deviations[:2])
    warp = map_arrays(lambda a: a[:2], found.warp)
    alone = replace(alone, warp=warp, origin=found.origin, unit=found.unit)
    np.testing.assert_allclose(metrics._crps(y, widened), metrics._crps(y, alone), rtol=1e-13)


def test_every_score_of_warped_forecasts() -> None:
    y, found = warped_forecast(n=40)
    scores = evaluate(y, found)
    assert scores.crps == crps(y, found)
    assert scores.nll == pytest.approx(-np.mean(found.logpdf(y)), rel=1e-14)
    assert scores.rmse == rmse(y, found.mean())
    assert np.all((pit(y, found) >= 0.0) & (pit(y, found) <= 1.0))


def test_negative_log_density_is_that_of_scipy() -> None:
    y, found = forecast()
    terms = norm.logpdf(y, found.means, found.deviations)
    expected = -logsumexp(terms, axis=0, b=found.weights[:, None]).mean()
    assert negative_log_density(y, found) == pytest.approx(expected, rel=1e-13)


def test_rmse_is_that_of_scikit_learn(rng: np.random.Generator) -> None:
    for shape in ((9,), (9, 2)):
        y, mean, weight = rng.normal(size=shape), rng.normal(size=shape), rng.uniform(size=9)
        assert rmse(y, mean) == pytest.approx(root_mean_squared_error(y, mean), rel=1e-14)
        assert rmse(y, mean, sample_weight=weight) == pytest.approx(
            root_mean_squared_error(y, mean, sample_weight=weight), rel=1e-14
        )


def test_interval_score_is_that_of_scoringrules(rng: np.random.Generator) -> None:
    y = rng.normal(size=40)
    ends = np.sort(rng.normal(size=(40, 2)), axis=1)
    expected = scoringrules.interval_score(y, ends[:, 0], ends[:, 1], 0.3, backend="numpy")
    assert interval_score(y, ends, 0.7) == pytest.approx(np.mean(expected), rel=1e-13)
    below, above = np.mean(y < ends[:, 0]), np.mean(y > ends[:, 1])
    assert min(below, above) > 0.1  # both kinds of misses were there


def test_ends_belong_to_their_interval() -> None:
    assert interval_coverage([0.0, 1.0, 2.0], [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]) == 2 / 3
    assert interval_score([0.0, 1.0], [[0.0, 1.0], [0.0, 1.0]], 0.9) == 1.0


@pytest.mark.parametrize("shape", [(49,), (49, 3)])
def test_shares_are_exact(shape: tuple[int, ...]) -> None:
    """k of n is k / n to the last bit: it may stand at the end of a binomial band, or be 1."""
    n = math.prod(shape)
    intervals = np.broadcast_to([-1.0, 1.0], (*shape, 2))
    for held in range(n + 1):
        y = np.where(np.arange(n) < held, 0.0, 2.0).reshape(shape)
        assert interval_coverage(y, intervals) == held / n


def test_pit_is_the_distribution_function_at_the_targets() -> None:
    y, found = forecast(n_targets=2)
    expected = np.einsum("k,knd->nd", found.weights, norm.cdf(y, found.means, found.deviations))
    np.testing.assert_allclose(pit(y, found), expected, rtol=1e-12)


@pytest.mark.parametrize("n_targets", [None, 2])
def test_calibration_curve_counts_targets_in_central_intervals(n_targets: int | None) -> None:
    """The same from the quantiles, which the curve does without."""
    y, found = forecast(n=60, n_targets=n_targets)
    levels, observed = calibration_curve(y, found)
    np.testing.assert_allclose(levels, np.arange(1, 20) / 20)
    expected = [interval_coverage(y, found.interval(level)) for level in levels]
    np.testing.assert_allclose(observed, expected, rtol=1e-12)
    assert calibration_error(y, found) == pytest.approx(np.mean(np.abs(expected - levels)))


def test_calibration_curve_at_given_levels() -> None:
    found = build_mixture([1.0], [[0.0] * 4], [[1.0] * 4])
    y = norm.ppf([0.5, 0.7, 0.2, 0.99])
    levels, observed = calibration_curve(y, found, [0.0, 0.5, 0.9, 1.0])
    np.testing.assert_array_equal(levels, [0.0, 0.5, 0.9, 1.0])
    np.testing.assert_array_equal(observed, [0.25, 0.5, 0.75, 1.0])
    assert calibration_error(y, found, [0.5, 0.9]) == pytest.approx(0.075)


def test_right_forecasts_lie_in_the_band_and_wrong_ones_do_not(rng: np.random.Generator) -> None:
    """Band of 1 - 1e-5 at 19 levels: a false alarm in less than 2 of 10,000 seeds."""
    _, found = forecast(n=2000)
    y = found.rvs(random_state=rng)
    levels, observed = calibration_curve(y, found)
    low, high = binomial_band(levels, 2000, probability=1.0 - 1e-5)
    assert np.all((low <= observed) & (observed <= high))
    too_narrow = build_mixture(found.weights, found.means, 0.5 * found.deviations)
    observed = calibration_curve(y, too_narrow)[1]
    assert np.sum(observed < low) > 10


def test_binomial_band_holds_its_probability_and_no_narrower_one_does() -> None:
    levels = np.array([0.1, 0.5, 0.93])
    low, high = (np.round(40 * end) for end in binomial_band(levels, 40, probability=0.8))
    assert np.all(binom.cdf(low - 1, 40, levels) < 0.1)
    assert np.all(binom.cdf(low, 40, levels) >= 0.1)
    assert np.all(binom.sf(high, 40, levels) <= 0.1)
    assert np.all(binom.sf(high - 1, 40, levels) > 0.1)
    inside = binom.cdf(high, 40, levels) - binom.cdf(low - 1, 40, levels)
    assert np.all(inside >= 0.8)


def test_binomial_band_of_certain_levels_has_no_width() -> None:
    low, high = binomial_band([0.0, 1.0], 7)
    np.testing.assert_array_equal(low, [0.0, 1.0])
    np.testing.assert_array_equal(high, [0.0, 1.0])


# What must hold for all of them


@every_metric
def test_weights_are_repeats(metric: Metric) -> None:
    y, found = forecast(n=9)
    counts = np.array([0, 1, 2, 3, 1, 0, 5, 1, 2])
    repeated = np.repeat(np.arange(9), counts)
    expected = metric(y[repeated], rows_of(found, repeated))
    assert metric(y, found, sample_weight=counts) == pytest.approx(expected, rel=1e-12)
    assert metric(y, found, sample_weight=3e307 * counts) == pytest.approx(expected)
    assert metric(y, found) != pytest.approx(expected, rel=1e-3)


@every_metric
def test_several_targets_are_averaged(metric: Metric) -> None:
    y, found = forecast(n=15, n_targets=3)
    weight = np.arange(15.0)
    each = [
        metric(
            y[:, d],
            build_mixture(found.weights, found.means[..., d], found.deviations[..., d]),
            sample_weight=weight,
        )
        for d in range(3)
    ]
    together = metric(y, found, sample_weight=weight)
    if metric is calibration_error:  # pooled: errors of targets may cancel
        assert together <= np.mean(each) + 1e-12
    else:
        assert together == pytest.approx(np.mean(each), rel=1e-12)


@every_metric
def test_the_order_of_rows_does_not_matter(metric: Metric, rng: np.random.Generator) -> None:
    y, found = forecast(n=20)
    order = rng.permutation(20)
    assert metric(y[order], rows_of(found, order)) == pytest.approx(metric(y, found), rel=1e-12)


@few_examples
@given(seeds, st.floats(-6.0, 6.0), st.sampled_from([-1.0, 1.0]), st.floats(-3.0, 3.0))
def test_scores_have_the_unit_of_the_target(
    seed: int, exponent: float, sign: float, shift: float
) -> None:
    y, found = forecast(seed)
    factor = sign * 10.0**exponent
    moved = scaled(found, factor, factor * shift)
    before, after = evaluate(y, found), evaluate(factor * (y + shift), moved)
    for name in ("rmse", "crps", "interval_score"):
        assert getattr(after, name) == pytest.approx(abs(factor) * getattr(before, name), rel=1e-8)
    assert after.nll == pytest.approx(before.nll + math.log(abs(factor)), abs=1e-8)
    assert after.coverage == before.coverage
    assert after.calibration_error == pytest.approx(before.calibration_error)


@few_examples
@given(seeds, st.integers(1, 6))
def test_crps_is_no_larger_than_the_expected_distance(seed: int, n_members: int) -> None:
    """0 <= CRPS <= E|X - y| <= √(Var X + (E X - y)²), and it is least for the truth."""
    y, found = forecast(seed, n=5, n_members=n_members)
    bound = np.mean(np.sqrt(found.var() + (found.mean() - y) ** 2))
    assert 0.0 <= crps(y, found) <= bound


def test_proper_scores_are_least_for_the_truth(rng: np.random.Generator) -> None:
    """Differences of 4,000 pairs are above 12 standard errors: no false alarm to speak of."""
    truth = build_mixture([1.0], np.zeros((1, 4000)), np.ones((1, 4000)))
    y = truth.rvs(random_state=rng)
    right = evaluate(y, truth)
    for wrong in (scaled(truth, 2.0), scaled(truth, 0.5), scaled(truth, 1.0, 0.7)):
        found = evaluate(y, wrong)
        for name in ("nll", "crps", "interval_score", "calibration_error"):
            assert getattr(found, name) > 1.02 * getattr(right, name)


# All at once


def test_evaluate_is_the_single_scores() -> None:
    y, found = forecast(n_targets=2)
    weight = np.arange(1.0, 13.0)
    scores = evaluate(y, found, coverage=0.8, sample_weight=weight)
    assert scores.n_rows == 12
    assert scores.nominal_coverage == 0.8
    for name, metric in OF_DISTRIBUTIONS.items():
        assert getattr(scores, name) == metric(y, found, sample_weight=weight)


def test_given_intervals_take_the_place_of_the_central_ones() -> None:
    y, found = forecast()
    intervals = np.stack([y - 1.0, y + 2.0], axis=1)
    intervals[:3] += 10.0
    scores = evaluate(y, found, intervals=intervals)
    assert scores.coverage == 0.75
    assert scores.interval_score == pytest.approx(3.0 + 0.25 * 20.0 * 9.0)
    assert scores.nll == negative_log_density(y, found)


@pytest.mark.parametrize("kind", [list, pd.Series, np.float32])
def test_targets_of_other_kinds(kind: Callable[[np.ndarray], Any]) -> None:
    y, found = forecast()
    y = y.astype(np.float32).astype(float)
    given = y.astype(np.float32) if kind is np.float32 else kind(y)
    assert evaluate(given, found) == evaluate(y, found)


def test_crps_without_scoringrules(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def without(name: str, *args: Any) -> Any:
        if name == "scoringrules":
            raise ImportError(name)
        return original(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    y, found = forecast()
    with pytest.raises(ImportError, match="scoringrules"):
        crps(y, found)
    assert negative_log_density(y, found) > 0.0


# Bad input


@every_metric
@pytest.mark.parametrize(
    ("targets", "weight", "named"),
    [
        (np.zeros(11), None, "targets"),
        (np.zeros((12, 1)), None, "targets"),
        (np.zeros((12, 1, 1)), None, "targets"),
        (np.zeros(0), None, "targets"),
        ([0.0] * 11 + [np.nan], None, "targets"),
        (["a"] * 12, None, "'a'"),
        (np.zeros(12), np.ones(11), "sample_weight"),
        (np.zeros(12), -np.ones(12), "sample_weight"),
        (np.zeros(12), np.zeros(12), "sample_weight"),
    ],
)
def test_bad_targets_and_weights(metric: Metric, targets: Any, weight: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        metric(targets, forecast()[1], sample_weight=weight)


@pytest.mark.parametrize("metric", [negative_log_density, crps, pit, calibration_curve, evaluate])
def test_bad_distributions(metric: Callable[..., Any]) -> None:
    y, found = forecast()
    with pytest.raises(TypeError, match="Mixture"):
        metric(y, y)
    with pytest.raises(ValueError, match="distribution"):
        metric(y[:5], found)


@pytest.mark.parametrize(
    "intervals",
    [[[0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, np.nan], [0.0, 1.0]]],
)
def test_bad_means_and_intervals(intervals: Any) -> None:
    with pytest.raises(ValueError, match="mean"):
        rmse([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="intervals"):
        interval_coverage([0.5, 0.5], intervals)


@pytest.mark.parametrize("coverage", [90, 0.0, 1.0, [0.5, 0.9], "0.9"])
def test_bad_coverage(coverage: Any) -> None:
    y, found = forecast()
    with pytest.raises(ValueError, match="coverage"):
        evaluate(y, found, coverage=coverage)
    with pytest.raises(ValueError, match="coverage"):
        interval_score(y, found.interval(0.9), coverage)


def test_bad_levels() -> None:
    y, found = forecast()
    for level in (1.5, np.nan):
        with pytest.raises(ValueError, match="levels"):
            calibration_curve(y, found, [0.5, level])
    with pytest.raises(ValueError, match="n must be"):
        binomial_band([0.5], 0)
