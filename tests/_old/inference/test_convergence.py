"""The stopping rule and its statuses."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old.inference.convergence import (
    CONSECUTIVE,
    FEWEST_STEPS,
    ROUNDING,
    Status,
    check,
    count_still,
    relative_change,
    running_means,
    window_steps,
)

NAN, INF = float("nan"), float("inf")


def test_relative_change() -> None:
    assert relative_change(-200.0, -100.0) == 0.5
    assert relative_change(200.0, 100.0) == -0.5
    assert relative_change(0.0, 0.25) == 0.25
    assert relative_change(-0.5, 0.5) == 1.0


def test_three_small_changes_in_a_row_converge() -> None:
    assert CONSECUTIVE == 3
    assert check([-100.0, -99.9999, -99.9998, -99.9997], 1e-5) is Status.CONVERGED
    assert check([-500.0, -100.0, -99.9999, -99.9998, -99.9997], 1e-5) is Status.CONVERGED


@pytest.mark.parametrize(
    "history",
    [
        [-100.0],
        [-100.0, -100.0],
        [-100.0, -100.0, -100.0],
        [-101.0, -100.0, -100.0, -100.0],
        [-100.0, -100.0, -100.0, -99.0],
        [-100.0, -100.0, -99.0, -99.0],
    ],
)
def test_fewer_do_not(history: list[float]) -> None:
    assert check(history, 1e-5) is None


def test_the_tolerance_is_strict_so_that_zero_never_converges() -> None:
    assert check([-100.0] * 10, 0.0) is None
    assert check([-100.0] * 10, 1e-300) is Status.CONVERGED


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_non_finite(value: float) -> None:
    assert check([value], 1e-5) is Status.NON_FINITE
    assert check([-100.0, -99.0, -98.0, value], 1e-5) is Status.NON_FINITE


@pytest.mark.parametrize("size", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_fall_beyond_rounding_is_a_decrease(size: float, sign: float) -> None:
    bound = sign * size
    assert check([bound, bound - 2.0 * ROUNDING * size], 1e-5) is Status.DECREASED
    assert check([bound, bound - 0.5 * ROUNDING * size], 1e-5) is None
    flat = [bound] * 3
    assert check([*flat, bound - 2.0 * ROUNDING * size], 1e-5) is Status.DECREASED
    assert check([*flat, bound - 0.5 * ROUNDING * size], 1e-5) is Status.CONVERGED


def test_only_the_last_change_is_judged_a_decrease() -> None:
    assert check([-1.0, -5.0, -4.0], 1e-5) is None


def test_windows() -> None:
    assert window_steps(1e9, 4096.0) == 61  # so many rows
    assert window_steps(400_000.0, 4096.0) == 49  # half of all
    assert window_steps(100.0, 20.0) == FEWEST_STEPS


def test_running_means() -> None:
    values = (1.0, 2.0, 6.0, -3.0, 4.0)
    expected = [np.mean(values[max(0, i - 2) : i + 1]) for i in range(5)]
    np.testing.assert_allclose(running_means(values, 3), expected)
    np.testing.assert_allclose(running_means(values, 100)[-1], np.mean(values))
    assert running_means((), 3) == ()


def still_after(means: list[float], tol: float, window: int = 4) -> list[int]:
    """What is counted at the end of each window of bounds around these means."""
    bounds, counts, still = [], [], 0
    for mean in means:
        for noise in (1.0, -1.0, 1.0, -1.0):
            before, still = still, count_still(still, bounds, mean + noise, window, tol)
            bounds.append(mean + noise)
            assert still == before or len(bounds) % window == 0
        counts.append(still)
    return counts


@pytest.mark.parametrize(
    ("means", "tol", "counts"),
    [
        ([100.0, 110.0, 120.0], 0.0, [0, 0, 0]),
        ([100.0, 100.0, 100.0, 100.0, 150.0], 0.0, [0, 1, 2, 3, 3]),
        # Noise of a difference of means: sqrt((1 + 1) / 4).
        ([100.0, 100.6, 101.4, 102.2], 0.0, [0, 1, 0, 0]),
        ([100.0, 101.0, 102.0, 103.0, 104.0], 0.025, [0, 1, 2, 0, 1]),
        ([100.0, 50.0, 40.0, 30.0], 0.0, [0, 1, 2, 3]),
    ],
    ids=["rising", "standing still", "within noise", "slow gains add up", "falling"],
)
def test_windows_that_stand_still(means: list[float], tol: float, counts: list[int]) -> None:
    assert still_after(means, tol) == counts
