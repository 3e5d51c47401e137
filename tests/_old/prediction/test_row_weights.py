"""Mixtures whose weights belong to rows: row by row, limits, zeros, integrals, draws, bad input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bowtienet._old._arrays import map_arrays
from bowtienet._old.prediction import mixture as module
from bowtienet._old.prediction.combined_mixtures import average_rows, join_mixtures, pool_mixtures
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from tests._old.prediction import test_mixture as plain
from tests._old.prediction import test_warped_mixture as warped

LEVELS = [0.0, 1e-300, 1e-12, 1e-3, 0.05, 0.5, 0.62, 0.95, 1.0 - 1e-12, 1.0]
BASES = [(1,), (6,), (5, 1), (4, 3)]
KINDS: dict[str, Callable[..., Mixture]] = {
    "plain": plain.random_mixture,
    "warped": warped.random_mixture,
}
both_kinds = pytest.mark.parametrize("kind", list(KINDS))


def random_weights(
    rng: np.random.Generator, shape: tuple[int, ...], *, zeros: bool = True
) -> np.ndarray:
    """Dirichlet over the first axis; some are zero, some 1e-30, and in some rows one has all."""
    weights = np.moveaxis(rng.dirichlet(np.ones(shape[0]), size=shape[1:]), -1, 0)
    if zeros:
        factor = rng.choice([0.0, 1e-30, 1.0, 1.0], size=shape)
        alone = rng.random(shape[1:]) < 0.2
        factor = np.where(alone, 0.0, factor)
        np.put_along_axis(factor, rng.integers(shape[0], size=(1, *shape[1:])), 1.0, axis=0)
        weights = weights * factor
    return weights / weights.sum(axis=0)


def random_mixture(
    kind: str,
    rng: np.random.Generator,
    n_components: int = 5,
    base: tuple[int, ...] = (6,),
    *,
    zeros: bool = True,
    **kwargs: Any,
) -> Mixture:
    shared = KINDS[kind](rng, n_components, base, **kwargs)
    return replace(shared, weights=random_weights(rng, shared.means.shape, zeros=zeros))


def alone(mixture: Mixture, cell: tuple[int, ...]) -> Mixture:
    """The mixture of one row (and target) with the weights of that row, shared by its one row."""
    target = cell[1:]
    arrays = (mixture.warp, mixture.origin, mixture.unit)
    warp, origin, unit = map_arrays(lambda a: a[(..., *target)], arrays)
    return Mixture(
        weights=mixture.weights[(slice(None), *cell)],
        means=mixture.means[(slice(None), *cell)][:, None],
        deviations=mixture.deviations[(slice(None), *cell)][:, None],
        warp=warp,
        origin=origin,
        unit=unit,
    )


def everything(mixture: Mixture, y: np.ndarray) -> dict[str, np.ndarray]:
    """Results of all methods but draws, for points y ``(*base, m)``."""
    return {
        "mean": mixture.mean(),
        "std": mixture.std(),
        "var": mixture.var(),
        "pdf": mixture.pdf(y),
        "logpdf": mixture.logpdf(y),
        "logpdf of one": mixture.logpdf(y[..., 0]),
        "cdf": mixture.cdf(y),
        "sf": mixture.sf(y),
        "ppf": mixture.ppf(LEVELS),
        "one ppf": mixture.ppf(0.3),
        "interval": mixture.interval([0.5, 0.9]),
    }


def assert_same(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    """To the last bit, but for moments: those of a line need no quadrature if it has no company."""
    if name in ("mean", "std", "var"):
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14, err_msg=name)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


@both_kinds
@pytest.mark.parametrize("n_components", [1, 2, 9])
@pytest.mark.parametrize("base", BASES, ids=str)
def test_every_row_is_its_own_mixture(
    kind: str, n_components: int, base: tuple[int, ...], rng: np.random.Generator
) -> None:
    """A component without weight adds an exact zero."""
    mixture = random_mixture(kind, rng, n_components, base)
    y = np.moveaxis(mixture.rvs(3, 1), 0, -1)
    y[..., 2] = 1e3
    found = everything(mixture, y)
    for cell in np.ndindex(base):
        for name, expected in everything(alone(mixture, cell), y[cell][None]).items():
            assert_same(found[name][cell], expected[0], name)


@both_kinds
@pytest.mark.parametrize("base", BASES, ids=str)
def test_equal_weights_in_all_rows_are_shared_weights(
    kind: str, base: tuple[int, ...], rng: np.random.Generator
) -> None:
    shared = KINDS[kind](rng, 5, base)
    weights = shared.weights.copy()
    weights[2] = 0.0
    shared = replace(shared, weights=weights / weights.sum())
    rows = np.broadcast_to(shared.weights.reshape(-1, *[1] * len(base)), shared.means.shape)
    mixture = replace(shared, weights=rows.copy())
    y = np.moveaxis(shared.rvs(2, 1), 0, -1)
    expected = everything(shared, y)
    for name, found in everything(mixture, y).items():
        np.testing.assert_array_equal(found, expected[name], err_msg=name)
    np.testing.assert_array_equal(mixture.rvs(50, 3), shared.rvs(50, 3))


@both_kinds
def test_against_sums_written_out(kind: str, rng: np.random.Generator) -> None:
    """F = Σ w_nk F_k(y_n), with mixtures of one component each."""
    mixture = random_mixture(kind, rng, 4, (5, 2))
    y = mixture.rvs(random_state=2)
    sums: dict[str, Any] = dict.fromkeys(("pdf", "cdf", "sf", "mean", "square"), 0.0)
    for k in range(4):
        warp = map_arrays(lambda a, k=k: a[k : k + 1], mixture.warp)
        one = replace(
            mixture,
            weights=np.ones(1),
            means=mixture.means[k : k + 1],
            deviations=mixture.deviations[k : k + 1],
            warp=warp,
        )
        for name in ("pdf", "cdf", "sf"):
            sums[name] = sums[name] + mixture.weights[k] * getattr(one, name)(y)
        sums["mean"] = sums["mean"] + mixture.weights[k] * one.mean()
        sums["square"] = sums["square"] + mixture.weights[k] * (one.var() + one.mean() ** 2)
    for name in ("pdf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(mixture, name)(y), sums[name], rtol=1e-12)
    np.testing.assert_allclose(mixture.mean(), sums["mean"], rtol=1e-12, atol=1e-12)
    variance = sums["square"] - sums["mean"] ** 2
    np.testing.assert_allclose(mixture.var(), variance, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("kind", "rtol"), [("plain", 1e-8), ("warped", 1e-2)])
def test_moments_by_integration(kind: str, rtol: float, rng: np.random.Generator) -> None:
    """Trapezoids between far quantiles; moments of warped components are quadratures of 1e-3."""
    mixture = random_mixture(kind, rng, 4, (5,), ratio=2.0)
    ends = mixture.ppf([1e-13, 1.0 - 1e-13])
    y = np.linspace(ends[:, 0], ends[:, 1], 40_001, axis=-1)
    density = mixture.pdf(y)
    np.testing.assert_allclose(np.trapezoid(density, y), 1.0, rtol=max(1e-6, 1e-3 * rtol))
    mean = np.trapezoid(y * density, y)
    variance = np.trapezoid((y - mean[:, None]) ** 2 * density, y)
    assert np.all(np.abs(mixture.mean() - mean) < rtol * np.sqrt(variance))
    np.testing.assert_allclose(mixture.var(), variance, rtol=rtol)


@pytest.mark.parametrize("n_components", [2, 24])
@pytest.mark.parametrize("ratio", [3.0, 1e4])
def test_quantiles_invert_the_distribution(
    n_components: int, ratio: float, rng: np.random.Generator
) -> None:
    mixture = random_mixture("plain", rng, n_components, (200,), ratio=ratio)
    y = mixture.ppf(plain.LEVELS)
    assert plain.in_order(y)
    plain.assert_quantiles(mixture, y, plain.LEVELS)
    mixture = random_mixture("warped", rng, n_components, (200,), ratio=ratio)
    y = mixture.ppf(warped.LEVELS)
    assert plain.in_order(y)
    warped.assert_quantiles(mixture, y, warped.LEVELS)


@given(
    kind=st.sampled_from(list(KINDS)),
    seed=st.integers(0, 2**20),
    q=st.lists(st.floats(1e-12, 1.0 - 1e-12), min_size=2, max_size=6),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_quantiles_keep_their_order_and_intervals_nest(
    kind: str, seed: int, q: list[float]
) -> None:
    mixture = random_mixture(kind, np.random.default_rng(seed))
    near = [level + k * 2.0**-50 * min(level, 1.0 - level) for level in q for k in range(-3, 4)]
    assert plain.in_order(mixture.ppf(np.sort(near)))
    ends = mixture.interval(np.sort(q))
    assert np.all(np.diff(ends[:, 0], axis=-1) <= 0.0)
    assert np.all(np.diff(ends[:, 1], axis=-1) >= 0.0)
    assert np.all(ends[:, 0] <= ends[:, 1])


@both_kinds
@pytest.mark.parametrize("size", [1e-90, 1e90])
def test_components_have_no_part_in_rows_without_weight(
    kind: str, size: float, rng: np.random.Generator
) -> None:
    """Of any size: not in brackets, not in the unit of a row, not in an overflow."""
    mixture = random_mixture(kind, rng, 5, (30,))
    missing = mixture.weights == 0.0
    assert missing.any()
    means = np.where(missing, -size, mixture.means)
    other = replace(mixture, means=means, deviations=np.where(missing, size, mixture.deviations))
    y = np.moveaxis(mixture.rvs(3, 1), 0, -1)
    expected = everything(mixture, y)
    with np.errstate(all="raise", under="ignore"):
        for name, found in everything(other, y).items():
            np.testing.assert_array_equal(found, expected[name], err_msg=name)
    np.testing.assert_array_equal(other.rvs(9, 3), mixture.rvs(9, 3))


def test_sizes_at_the_ends_of_the_doubles() -> None:
    """A component of 1e308 in one row beside components of 1e-300 in another."""
    weights = [[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]
    means = [[1e308, -1e308], [1e-300, 1e-300], [1e308, 3e-300]]
    deviations = [[1e307, 1e308], [1e-300, 1e-300], [1e308, 1e-300]]
    mixture = build_mixture(weights, means, deviations)
    np.testing.assert_allclose(mixture.mean(), [1e308, 2e-300], rtol=1e-15)
    np.testing.assert_allclose(mixture.std(), [1e307, np.sqrt(2.0) * 1e-300], rtol=1e-14)
    np.testing.assert_allclose(mixture.ppf(0.5), [1e308, 2e-300], rtol=1e-12)
    np.testing.assert_allclose(mixture.cdf([1e308, 2e-300]), 0.5, rtol=1e-14)


@both_kinds
def test_draws_follow_the_distribution(kind: str) -> None:
    """Kolmogorov-Smirnov: sqrt(n) D < 2.8 fails by chance in 3e-7 of runs, for each of 6 cells."""
    mixture = random_mixture(kind, np.random.default_rng(3), 4, (3, 2))
    n = 20_000
    draws = np.moveaxis(mixture.rvs(n, random_state=8), 0, -1)
    levels = np.sort(mixture.cdf(draws), axis=-1)
    steps = np.arange(n + 1) / n
    distance = np.maximum(steps[1:] - levels, levels - steps[:-1]).max(axis=-1)
    assert np.all(np.sqrt(n) * distance < 2.8)


def test_draws_choose_components_by_the_weights_of_their_row() -> None:
    """Far components can be told apart: binomial counts within 5 standard errors, 6e-7 each."""
    weights = np.array([[0.1, 0.0, 1.0], [0.0, 0.7, 0.0], [0.6, 0.3, 0.0], [0.3, 0.0, 0.0]])
    means = np.repeat(100.0 * np.arange(4.0)[:, None], 3, axis=1)
    mixture, n = build_mixture(weights, means, np.ones((4, 3))), 20_000
    member = np.round(mixture.rvs(n, random_state=2) / 100.0).astype(int)
    counts = np.stack([np.bincount(column, minlength=4) for column in member.T], axis=1)
    assert np.all(np.abs(counts - n * weights) <= 5.0 * np.sqrt(n * weights * (1.0 - weights)))


def test_a_draw_beyond_the_sum_is_of_the_last_component_with_weight() -> None:
    weights = np.array([[0.5, 1.0], [0.5 - 1e-9, 0.0], [0.0, 0.0]])
    member = module._drawn_components(weights, np.array([1.0 - 1e-12, 0.9]), np.array([0, 1]))
    np.testing.assert_array_equal(member, [1, 0])


@both_kinds
@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_do_not_matter(
    kind: str, block: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixture = random_mixture(kind, rng, 6, (9, 2))
    y = mixture.rvs(4, 1)[0][..., None] + np.arange(3.0)
    whole = everything(mixture, y)
    monkeypatch.setattr(module, "_BLOCK", block)
    for name, found in everything(mixture, y).items():
        np.testing.assert_array_equal(found, whole[name], err_msg=name)


@pytest.mark.parametrize(("kind", "blocks"), [("plain", 10), ("warped", 15)])
@pytest.mark.parametrize("name", ["ppf", "logpdf", "std", "rvs"])
def test_memory_is_bounded(kind: str, blocks: int, name: str, rng: np.random.Generator) -> None:
    """Blocks of 1 MB; one array of all rows and components has 13 MB."""
    mixture = random_mixture(kind, rng, 16, (100_000,))
    arguments = {"ppf": (0.9,), "logpdf": (0.3,), "rvs": (2, 1)}
    used = plain.peak_memory(lambda: getattr(mixture, name)(*arguments.get(name, ())))
    assert used < blocks * 8 * module._BLOCK


@both_kinds
def test_rows_and_targets_of_a_mixture(kind: str, rng: np.random.Generator) -> None:
    mixture = random_mixture(kind, rng, 4, (6, 3))
    y = mixture.rvs(2, 1)[0][..., None]
    whole = everything(mixture, y)
    for name, found in everything(mixture.of_rows(slice(1, 4)), y[1:4]).items():
        np.testing.assert_array_equal(found, whole[name][1:4], err_msg=name)
    for target in range(3):
        for name, found in everything(mixture.of_target(target), y[:, target]).items():
            assert_same(found, whole[name][:, target], name)


@both_kinds
def test_joined_rows(kind: str, rng: np.random.Generator) -> None:
    """Parts with weights of rows, and one whose rows share theirs."""
    mixture = random_mixture(kind, rng, 4, (6, 2))
    parts = [mixture.of_rows(slice(0, 2)), mixture.of_rows(slice(2, 6))]
    found = join_mixtures(parts)
    np.testing.assert_allclose(found.weights, mixture.weights, rtol=1e-15)
    np.testing.assert_allclose(found.ppf(0.3), mixture.ppf(0.3), rtol=1e-12)
    shared = replace(parts[1], weights=mixture.weights[:, 0, 0])
    found = join_mixtures([parts[0], shared])
    np.testing.assert_allclose(found.mean()[:2], parts[0].mean(), rtol=1e-13)
    np.testing.assert_allclose(found.mean()[2:], shared.mean(), rtol=1e-13)


@both_kinds
def test_pooled_forecasts(kind: str, rng: np.random.Generator) -> None:
    first, other = random_mixture(kind, rng, 3, (5, 2)), KINDS[kind](rng, 2, (5, 2))
    y = first.rvs(random_state=1)
    expected = 0.5 * (first.cdf(y) + other.cdf(y))
    np.testing.assert_allclose(pool_mixtures([first, other]).cdf(y), expected, rtol=1e-13)
    expected = 0.5 * (first.mean() + other.mean())
    np.testing.assert_allclose(pool_mixtures([first, other]).mean(), expected, rtol=1e-12)


@both_kinds
def test_average_over_rows(kind: str, rng: np.random.Generator) -> None:
    mixture = random_mixture(kind, rng, 3, (8, 2))
    y = rng.normal(size=(4, 2))
    expected = np.mean(mixture.cdf(np.tile(y, (2, 1))).reshape(2, 4, 2), axis=0)
    np.testing.assert_allclose(average_rows(mixture, 2).cdf(y), expected, rtol=1e-12)


def test_one_row_with_one_component_is_a_gaussian() -> None:
    weights = [[0.0, 0.5], [1.0, 0.5]]
    mixture = build_mixture(weights, [[9.0, 0.0], [1.0, 2.0]], [[9.0, 1.0], [3.0, 1.0]])
    for q in (1e-300, 0.05, 0.7):
        assert mixture.ppf(q)[0] == stats.norm.ppf(q, 1.0, 3.0)
        assert mixture.ppf([q, 0.5])[0, 0] == stats.norm.ppf(q, 1.0, 3.0)


def test_weights_are_brought_to_sum_one() -> None:
    """Single precision is near enough."""
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=50).T.astype(np.float32)
    mixture = build_mixture(weights, np.zeros((7, 50)), np.ones((7, 50)))
    np.testing.assert_allclose(mixture.weights.sum(axis=0), 1.0, rtol=1e-15)
    assert mixture.weights.shape == (7, 50)


GOOD = np.full((2, 3), 0.5)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.full((2, 4), 0.5), r"weights must be \(2,\).*or \(2, 3\).*got \(2, 4\)"),
        (np.full((2, 3, 1), 0.5), r"got \(2, 3, 1\)"),
        (GOOD + np.array([[0.0, 0.0, 0.1]] * 2), "sum 1 over the 2 components.*1.2 in row 2"),
        ([[0.5, 1.5, 0.5], [0.5, -0.5, 0.5]], "negative or NaN, got -0.5 for component 1 of row 1"),
        ([[np.nan, 0.5, 0.5], [0.5, 0.5, 0.5]], "negative or NaN, got nan for component 0 of row"),
        (np.zeros((2, 3)), "sum 1 .* got 0 in row 0"),
    ],
)
def test_bad_weights_are_explained(weights: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        build_mixture(weights, np.zeros((2, 3)), np.ones((2, 3)))


def test_weights_of_rows_need_all_targets() -> None:
    with pytest.raises(ValueError, match=r"or \(2, 3, 4\), as means are, got \(2, 3\)"):
        build_mixture(GOOD, np.zeros((2, 3, 4)), np.ones((2, 3, 4)))
