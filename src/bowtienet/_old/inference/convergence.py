"""When to stop, and why a fit stopped.

The bound of coordinate ascent is exact, and three small changes of it in a row are enough. That of
a stochastic fit is noisy: means over windows of steps are compared, and their noise is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from itertools import pairwise
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

CONSECUTIVE = 3
"""So many small changes in a row count as convergence."""
ROUNDING = 1e-9
"""A fall of the bound by this relative amount is rounding, not a decrease."""
FEWEST_STEPS = 40
"""Of a window over which the noisy bound is averaged: so many steps at least, and otherwise"""
WINDOW_ROWS = 250_000
"""so many rows, or half of all if they are fewer."""


class Status(StrEnum):
    """Why a fit stopped."""

    CONVERGED = "converged"
    """Three changes in a row were small."""
    ITERATION_LIMIT = "iteration limit"
    """The bound was still rising when max_iter was reached."""
    EARLY_STOPPED = "stopped early (validation)"
    """Of the lengths tried, held-out rows are predicted best at this one."""
    NON_FINITE = "non-finite"
    """A plain sweep overflowed: scale the data, or look for values far out of line."""
    DECREASED = "decreased"
    """A plain sweep lowered the bound by more than rounding: noise or temperature is so small that
    differences of sums lose their digits."""
    ARRIVING = "rows arriving"
    """Rows are taken in as they come: such a fit has no end of its own."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or a callback that answered true."""


class BreakdownError(ArithmeticError):
    """Numbers of which an update can make nothing; the loop knows it as `Status.NON_FINITE`."""


def numerical(update: Callable[P, R]) -> Callable[P, R]:
    """An update whose errors of arithmetic are a `BreakdownError`.

    It reads no rows: errors of those who give the rows are not taken for errors of arithmetic.
    """

    @wraps(update)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return update(*args, **kwargs)
        except Exception as error:
            # The error of a matrix without an inverse is another class in every library.
            if isinstance(error, ArithmeticError) or "LinAlgError" in type(error).__name__:
                raise BreakdownError(str(error)) from error
            raise

    return guarded


def relative_change(before: float, after: float) -> float:
    """(after - before) / |before|, with 1 in place of a |before| below 1."""
    return (after - before) / max(abs(before), 1.0)


def check(history: Sequence[float], tolerance: float) -> Status | None:
    """Status of a fit with this history of the bound, or None to go on."""
    if not math.isfinite(history[-1]):
        return Status.NON_FINITE
    if len(history) < 2:
        return None
    recent = history[-CONSECUTIVE - 1 :]
    changes = [relative_change(before, after) for before, after in pairwise(recent)]
    if changes[-1] < -ROUNDING:
        return Status.DECREASED
    if len(changes) == CONSECUTIVE and all(abs(change) < tolerance for change in changes):
        return Status.CONVERGED
    return None


def window_steps(n_rows: float, batch_rows: float) -> int:
    """Steps of a window over which the noisy bound is averaged."""
    return max(FEWEST_STEPS, round(min(0.5 * n_rows, WINDOW_ROWS) / batch_rows))


def running_means(values: Sequence[float], window: int) -> tuple[float, ...]:
    """Mean of each value and those before it, `window` at most."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return tuple(((sums[ends] - sums[starts]) / (ends - starts)).tolist())


def count_still(still: int, history: Sequence[float], value: float, window: int, tol: float) -> int:
    """Windows in a row over which the mean of the noisy bound did not rise, with its next value.

    Each is compared with the last one that was a gain: slow gains add up. It stays where it is once
    it has counted enough of them.
    """
    n_steps = len(history) + 1
    if still >= CONSECUTIVE or n_steps % window or n_steps < 2 * window:
        return still
    recent = [*history[1 - (still + 2) * window :], value]
    windows = np.reshape(recent, (-1, window))
    before, now = windows[0], windows[-1]
    noise = np.sqrt((before.var() + now.var()) / window)
    gain = now.mean() - before.mean()
    return still + 1 if gain < max(tol * abs(before.mean()), noise) else 0
