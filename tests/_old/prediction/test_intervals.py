"""Highest-density intervals of draws: against every interval tried in turn, and known truths."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bowtienet._old.prediction import intervals
from bowtienet._old.prediction.intervals import check_coverage, highest_density

examples = settings(max_examples=200, deadline=None, derandomize=True)


def shortest(draws: list[float], count: int) -> tuple[float, float]:
    """Of all intervals between two draws that hold at least `count`, the shortest, lowest first."""
    pairs = combinations_with_replacement(sorted(draws), 2)
    holding = [(a, b) for a, b in pairs if sum(a <= y <= b for y in draws) >= count]
    return min(holding, key=lambda pair: (pair[1] - pair[0], pair[0]))


@given(
    draws=st.lists(st.integers(-30, 30).map(float), min_size=1, max_size=14),
    percent=st.integers(1, 99),
)
@examples
def test_against_every_interval(draws: list[float], percent: int) -> None:
    """Whole numbers: ties, and widths without rounding."""
    count = -(-percent * len(draws) // 100)
    found = highest_density(np.array(draws), percent / 100.0)
    assert tuple(found) == shortest(draws, count)


@given(
    draws=st.lists(st.integers(-1000, 1000).map(float), min_size=1, max_size=30),
    power=st.integers(-20, 20),
    shift=st.integers(-1000, 1000),
    coverage=st.floats(0.01, 0.99),
)
@examples
def test_scaling_and_shifting(draws: list[float], power: int, shift: int, coverage: float) -> None:
    samples = np.array(draws)
    expected = 2.0**power * (highest_density(samples, coverage) + shift)
    found = highest_density(2.0**power * (samples + shift), coverage)
    np.testing.assert_array_equal(found, expected)


def test_cells_and_coverages_are_apart(rng: np.random.Generator) -> None:
    samples, coverages = rng.gamma(2.0, size=(31, 3, 2)), [0.8, 0.3]
    together = highest_density(samples, coverages)
    for i in range(3):
        for j in range(2):
            for k, coverage in enumerate(coverages):
                expected = shortest(list(samples[:, i, j]), math.ceil(coverage * 31))
                np.testing.assert_array_equal(together[i, j, :, k], expected)


def test_wider_coverage_may_move_to_another_peak() -> None:
    samples = np.array([0.0, 0.1, 0.2, 10.0, 10.5, 11.0, 11.5, 12.0, 12.5])
    ends = highest_density(samples, [0.3, 0.6])
    np.testing.assert_array_equal(ends[:, 0], [0.0, 0.2])
    np.testing.assert_array_equal(ends[:, 1], [10.0, 12.5])


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_exponential_draws(coverage: float) -> None:
    """The density falls, so the truth is [0, -log(1 - c)].

    For draws of density e^{-y} the error bar of the upper end is sqrt(c / ((1 - c) n)); 5 of them
    are allowed (false alarm 6e-7), and as much again for the place of the lower end, which the
    search draws upwards: with n = 1e5 both lie below 0.05.
    """
    n = 100_000
    draws = np.random.default_rng(12).exponential(size=n)
    lower, upper = highest_density(draws, coverage)
    bar = 5.0 * math.sqrt(coverage / ((1.0 - coverage) * n))
    assert 0.0 <= lower < bar
    assert abs(upper + math.log(1.0 - coverage)) < 2.0 * bar


def test_normal_draws() -> None:
    """The width 2 z is found to 2 %: the ends wander like n^{-1/3}, their distance much less."""
    draws = np.random.default_rng(3).normal(size=(50_000, 3))
    ends = highest_density(draws, 0.95)
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2.0 * stats.norm.ppf(0.975), rtol=0.02)
    np.testing.assert_allclose(ends.mean(axis=1), 0.0, atol=0.25)


def test_large_numbers_do_not_overflow() -> None:
    samples = np.array([-1.7e308, -1.6e308, 0.0, 1.0, 1.7e308])
    np.testing.assert_array_equal(highest_density(samples, 0.4), [0.0, 1.0])
    assert np.all(np.isfinite(highest_density(samples, 0.9)))


@pytest.mark.parametrize("block", [1, 30, 77])
def test_blocks_do_not_matter(
    block: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = rng.normal(size=(30, 5, 2))
    whole = highest_density(samples, [0.5, 0.9])
    monkeypatch.setattr(intervals, "_BLOCK", block)
    np.testing.assert_array_equal(highest_density(samples, [0.5, 0.9]), whole)


def test_memory_is_bounded(rng: np.random.Generator) -> None:
    """Besides the ends, three blocks of 1 MB and one byte a draw; the draws have 40 MB."""
    samples = rng.normal(size=(100, 50_000))
    tracemalloc.start()
    try:
        ends = highest_density(samples, 0.9)
        used = tracemalloc.get_traced_memory()[1] - ends.nbytes
    finally:
        tracemalloc.stop()
    assert used < 5 * 8 * intervals._BLOCK + samples.size


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_shapes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    samples = rng.normal(size=(20, *shape))
    assert highest_density(samples, 0.5).shape == (*shape, 2)
    assert highest_density(samples, [0.5, 0.9, 0.1]).shape == (*shape, 2, 3)


def test_the_number_of_draws_held() -> None:
    """Of 100 draws, as many as the percentage says, whatever the double 0.55 times 100 is."""
    for percent in range(1, 100):
        lower, upper = highest_density(np.arange(100.0), percent / 100.0)
        assert (lower, upper) == (0.0, percent - 1.0)


@pytest.mark.parametrize("bad", [90, [0.5, 95], 0, 1.0, math.nan, "0.9", True, None, [], [[0.5]]])
def test_bad_coverage_is_named(bad: Any) -> None:
    with pytest.raises(ValueError, match="coverage"):
        check_coverage(bad)
