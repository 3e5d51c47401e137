"""Conditional randomisation tests: whether a column says more of the target than chance would.

    H_j: y is independent of x_j given all other columns

Under H_j the column could have been drawn anew from its distribution given the others, so that
whatever is computed of it is exchangeable with the same of draws. With residuals r that know
nothing of x_j, the share of draws whose statistic T is as large as the column's is a p-value. T
compares the evidence for effects of several shapes g (a line, bends and steps, products with other
columns, all shapes of the column together),

    T = log Σ_g pi_g BF_g,   log BF_g = ½ τ / (1 + τ) u_g'u_g - ½ dim_g log(1 + τ),

where u_g are sums Σ_n r_n g(x_nj), centred and made uncorrelated by a first batch of draws. Draws
end when enough of them have been as large (Besag and Clifford, 1991: the p-value stays valid), so
that columns without effect cost little. References: Candès, Fan, Janson and Lv (2018); residuals in
place of refits are by Liu, Katsevich, Janson and Ramdas (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Draw = Callable[[int, np.random.Generator], Singles]
"""Draws (d, n_draws, n) of the inputs of a column."""

FIRST_DRAWS = 200
"""That centre and scale the sums."""
ENOUGH_LARGE = 10
"""Draws as large as the column after which there are no more."""
FIRST_BATCH, LARGEST_BATCH, BATCH_NUMBERS = 100, 2000, 2**22
PRIOR_VARIANCE = 9.0
"""τ: of a sum in units of its deviation under chance, if there is an effect."""
N_STEPS = 5
LEAST_DEVIATION = 1e-2
"""Of a sum, in units of |r|: below it a shape does not vary, and single precision is all of it."""
SAME_DIRECTION = 0.05
"""Eigenvalue below which shapes of a column are the same."""


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Shapes of effects that are looked for."""

    steps: tuple[Floats, ...]
    """Of each input its steps; none of an indicator, which has no bends either."""
    partners: Floats
    """(n, P) what products are taken with."""


@dataclass(frozen=True, kw_only=True)
class _Scale:
    center: Floats
    deviation: Floats
    directions: Floats  # (lines and bends, k): uncorrelated ones
    log_shares: Floats  # of single shapes
    n_own: int  # shapes of the column alone


def steps_of(values: Floats) -> Floats:
    """Quantiles of a column at which it may have a step."""
    levels = np.arange(1, N_STEPS + 1) / (N_STEPS + 1.0)
    found = np.unique(np.quantile(values, levels))
    return found[found < values.max()]


def randomization_p_value(
    own: Singles,
    draw: Draw,
    residuals: Floats,
    effects: Effects,
    rng: np.random.Generator,
    most_draws: int,
) -> float:
    """The p-value of H_j.

    Parameters
    ----------
    own : array (d, n)
        The inputs of the column.
    draw : callable
        The same, drawn given all other columns.
    residuals : array (n,)
        Of the target, known without the column; of mean zero.
    effects : Effects
        What to look for.
    rng : numpy.random.Generator
        Source of the draws.
    most_draws : int
        The smallest p-value is 1 / (1 + most_draws).
    """
    weights = np.column_stack([residuals, residuals[:, None] * effects.partners])
    products = weights.astype(np.float32)
    scale = _scale_of(_sums(draw(FIRST_DRAWS, rng), products, effects), residuals, effects)
    observed = _statistic(_sums(own[:, None, :], products, effects), scale)[0]
    n_drawn = n_large = 0
    largest = max(FIRST_BATCH, min(LARGEST_BATCH, BATCH_NUMBERS // own.size))
    size = FIRST_BATCH
    while n_drawn < most_draws:
        size = min(size, most_draws - n_drawn)
        drawn = _statistic(_sums(draw(size, rng), products, effects), scale)
        counts = n_large + np.cumsum(drawn >= observed)
        if counts[-1] >= ENOUGH_LARGE:
            return ENOUGH_LARGE / (n_drawn + 1.0 + float(np.argmax(counts >= ENOUGH_LARGE)))
        n_large, n_drawn = int(counts[-1]), n_drawn + size
        size = min(2 * size, largest)
    return (1.0 + n_large) / (1.0 + n_drawn)


def false_discoveries_controlled(p_values: Floats, rate: float) -> NDArray[np.bool_]:
    """Which of the p-values are discoveries by Benjamini and Hochberg (1995) at a rate."""
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    passed = np.flatnonzero(p_values[order] <= rate * np.arange(1, count + 1) / count)
    chosen = np.zeros(count, dtype=bool)
    if passed.size:
        chosen[order[: passed[-1] + 1]] = True
    return chosen


def _sums(drawn: Singles, products: Singles, effects: Effects) -> Floats:
    """Sums (R, own shapes + products) of draws (d, R, n): lines, bends and steps, products."""
    residuals = products[:, 0]
    lines, bends, pairs = [], [], []
    for values, steps in zip(drawn, effects.steps, strict=True):
        found = values @ products
        lines.append(found[:, 0])
        pairs.append(found[:, 1:])
        if steps.size:
            bends.append((values * values) @ residuals)
            bends += [(values > np.float32(step)).astype(np.float32) @ residuals for step in steps]
    return np.column_stack([*lines, *bends, *pairs]).astype(np.float64)


def _scale_of(sums: Floats, residuals: Floats, effects: Effects) -> _Scale:
    n_lines = len(effects.steps)
    n_bends = sum(1 + len(steps) for steps in effects.steps if steps.size)
    n_pairs = sums.shape[1] - n_lines - n_bends
    center = sums.mean(axis=0)
    least = LEAST_DEVIATION**2 * float(residuals @ residuals)
    deviation = np.sqrt(sums.var(axis=0) + max(least, np.finfo(float).tiny))
    n_own = n_lines + n_bends
    own = (sums[:, :n_own] - center[:n_own]) / deviation[:n_own]
    sizes, vectors = np.linalg.eigh(own.T @ own / len(own))
    kept = sizes > SAME_DIRECTION
    # Lines, bends, products, and all shapes of the column together, are as likely.
    shares = [np.full(count, 0.25 / count) for count in (n_lines, n_bends, n_pairs) if count]
    return _Scale(
        center=center,
        deviation=deviation,
        directions=vectors[:, kept] / np.sqrt(sizes[kept]),
        log_shares=np.log(np.concatenate(shares)),
        n_own=n_own,
    )


def _statistic(sums: Floats, scale: _Scale) -> Floats:
    """T (R,) of sums (R, shapes)."""
    gain, cost = 0.5 * PRIOR_VARIANCE / (1.0 + PRIOR_VARIANCE), 0.5 * np.log1p(PRIOR_VARIANCE)
    relative = (sums - scale.center) / scale.deviation
    single = scale.log_shares + gain * relative**2 - cost
    together = (relative[:, : scale.n_own] @ scale.directions) ** 2
    n_directions = scale.directions.shape[1]
    joint = np.log(0.25) + gain * together.sum(axis=1) - cost * n_directions
    return np.asarray(logsumexp(np.column_stack([single, joint]), axis=1))
