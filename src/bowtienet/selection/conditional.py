"""Conditional randomisation tests: whether a column says more of the target than chance would.

    H_j: y is independent of x_j given all other columns

Under H_j the column could have been drawn anew from its distribution given the others: whatever is
computed of it is exchangeable with the same of draws. With residuals r that know nothing of x_j,
the share of draws whose statistic is as large as the column's is a p-value. It is the evidence for
effects of shapes g: lines, bends and steps, products with other columns, all but these together,

    T = log Σ_g pi_g BF_g,   log BF_g = ½ v / (1 + v) u_g'u_g - ½ dim_g log(1 + v),

with u_g = Σ_n r_n g(x_nj) standardised by draws. Numbers are drawn as z_j = m_j(z_others) + e with
z their normal scores, m_j a ridge regression and e the errors of all rows; categories, truth values
and numbers with few values from the probabilities of their levels, by a regression of indicators.
References: Candès, Fan, Janson and Lv (2018); residuals in place of refits: Liu, Katsevich, Janson
and Ramdas (2022); draws that end early: Besag and Clifford (1991).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri
from scipy.stats import rankdata

from bowtienet.selection.regression import Ridge, fit_ridge, standardized

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Indices = NDArray[np.intp]
Draw: TypeAlias = Callable[[int, np.random.Generator], Singles]
"""A number of draws (d, draws, n) of the d inputs of a column."""


def scores_of(inputs: Floats, owners: Indices) -> tuple[Floats, Indices, NDArray[np.bool_]]:
    """Normal scores and standardised indicators (n, E) of encoded inputs (n, E), and two of each.

    Its owner, -1 where it does not vary, and whether it has more than two values, so that it may
    act by more than a line. Owners are the user's columns.
    """
    counts = _counts(inputs)
    ranks = ndtri((rankdata(inputs, axis=0) - 0.5) / len(inputs))
    scores = standardized(np.where(counts > 10, ranks, inputs))
    return scores, np.where(scores.any(axis=0), owners, -1), counts > 2


def fit_conditional(scores: Floats, is_own: NDArray[np.bool_]) -> tuple[Ridge, Draw]:
    """The distribution of the inputs `is_own` (E,) of a column given all others, to draw from.

    What the regression explains of residuals is not looked at.
    """
    chosen = np.flatnonzero(is_own)
    values, others = scores[:, chosen], scores[:, _neighbours(scores, chosen)]
    n_rows, bounds, mean = len(values), None, np.zeros((1, len(chosen)))
    if np.any(_counts(values) > 10):
        ridge = fit_ridge(others, values)
        degrees = max(1.0, n_rows - 1.0 - ridge.shrinkage.sum())
        mean, values = ridge.fitted, (values - ridge.fitted) * np.sqrt(n_rows / degrees)
    else:  # numbers with few values are drawn as levels
        values, codes = np.unique(values, axis=0, return_inverse=True)
        ridge = fit_ridge(others, np.eye(len(values))[codes.ravel()])
        held = np.maximum(ridge.fitted, 1e-3)  # a linear probability may be negative
        cumulative = np.cumsum(held, axis=1)
        bounds = (cumulative / cumulative[:, -1:]).T[:-1].astype(np.float32)
    singles, center = values.astype(np.float32), mean.T[:, None].astype(np.float32)

    def draw(n_draws: int, rng: np.random.Generator) -> Singles:
        shape = n_draws, n_rows
        if bounds is None:
            codes = rng.integers(0, n_rows, size=shape, dtype=np.int32)
        else:
            chance, codes = rng.random(shape, dtype=np.float32), np.zeros(shape, dtype=np.int32)
            for bound in bounds:
                codes += chance > bound
        return np.stack([column[codes] for column in singles.T]) + center

    return ridge, draw


def _counts(inputs: Floats) -> Indices:
    """Values that each column has."""
    return np.array([len(np.unique(column)) for column in inputs.T])


def _neighbours(scores: Floats, chosen: Indices) -> Indices:
    """Inputs that others are regressed on: all, or of many the more correlated than by chance."""
    n_rows, n_inputs = scores.shape
    closeness = np.abs(scores[:, chosen].T @ scores).max(axis=0) / n_rows
    closeness[chosen] = -1.0
    most = min(64, max(1, n_rows // 3))
    least = np.sqrt(2.0 * np.log(n_inputs) / n_rows) if n_inputs - len(chosen) > most else 0.0
    order = np.argsort(-closeness, kind="stable")[:most]
    return order[closeness[order] >= least]


def p_value(
    values: Floats,
    is_bent: NDArray[np.bool_],
    draw: Draw,
    residuals: Floats,
    partners: Floats,
    rng: np.random.Generator,
    most_draws: int,
) -> float:
    """The p-value of H_j for inputs (n, d) of a column and residuals (n,) of mean zero.

    Inputs that are bent have bends and steps, and products are with `partners` (n, P).
    """
    steps = [_steps_of(x) if bent else None for x, bent in zip(values.T, is_bent, strict=True)]
    products = np.column_stack([residuals, residuals[:, None] * partners]).astype(np.float32)
    n_first, n_enough = 200, 10  # draws that scale the sums; draws as large that end the test
    first, log_shares = _sums(draw(n_first, rng), products, steps)
    # Below a hundredth of |r| a shape does not vary, and single precision is all of its sum.
    least = max(1e-4 * float(residuals @ residuals), np.finfo(float).tiny)
    center, deviation = first.mean(axis=0), np.sqrt(first.var(axis=0) + least)
    n_pairs = values.shape[1] * partners.shape[1]
    alone = ((first - center) / deviation)[:, n_pairs:]
    sizes, vectors = np.linalg.eigh(alone.T @ alone / n_first)
    kept = sizes > 0.05  # the others are the same shapes again
    directions = vectors[:, kept] / np.sqrt(sizes[kept])
    v = 9.0  # an effect, if there is one, is some three deviations of what chance gives
    gain, cost = 0.5 * v / (1.0 + v), 0.5 * np.log1p(v)

    def statistic(drawn: Singles) -> Floats:
        u = (_sums(drawn, products, steps)[0] - center) / deviation
        together = np.sum((u[:, n_pairs:] @ directions) ** 2, axis=1, keepdims=True)
        joint = gain * together - cost * directions.shape[1]
        single = log_shares + gain * u * u - cost
        return np.asarray(logsumexp(np.concatenate([single, joint], axis=1), axis=1))

    observed = statistic(values.T.astype(np.float32)[:, None])[0]
    largest = max(100, min(2_000, 2**22 // values.size))  # draws at a time, for little memory
    n_drawn, n_large, size = 0, 0, 100
    while n_drawn < most_draws:
        size = min(size, most_draws - n_drawn)
        counts = n_large + np.cumsum(statistic(draw(size, rng)) >= observed)
        if counts[-1] >= n_enough:
            return n_enough / (n_drawn + 1.0 + float(np.argmax(counts >= n_enough)))
        n_large, n_drawn = int(counts[-1]), n_drawn + size
        size = min(2 * size, largest)
    return (1.0 + n_large) / (1.0 + n_drawn)


def _steps_of(values: Floats) -> Singles:
    """Quantiles of an input at which it may have a step."""
    steps = np.unique(np.quantile(values, np.arange(1, 6) / 6.0))
    return steps[steps < values.max()].astype(np.float32)


def _sums(drawn: Singles, products: Singles, steps: list[Singles | None]) -> tuple[Floats, Floats]:
    """Sums (R, shapes) of draws (d, R, n), and logs of the shares pi: each sort is as likely."""
    lines, pairs, bends = [], [], []
    for values, at in zip(drawn, steps, strict=True):
        both = values @ products
        lines.append(both[:, :1])
        pairs.append(both[:, 1:])
        if at is not None:
            shapes = (values * values, *((values > step).astype(np.float32) for step in at))
            bends += [(shape @ products[:, 0])[:, None] for shape in shapes]
    groups = [np.concatenate(each, axis=1) for each in (pairs, lines, bends) if each]
    shares = [np.full(each.shape[1], 1.0 / max(each.shape[1], 1)) for each in groups]
    return np.concatenate(groups, axis=1).astype(np.float64), np.log(np.concatenate(shares))
