"""Conditional randomisation tests: whether a column says more of the target than chance would.

    H_j: y is independent of x_j given all other columns

Under H_j the column could have been drawn anew from its distribution given the others, so that
whatever is computed of it is exchangeable with the same of draws. With residuals r that know
nothing of x_j, the share of draws whose statistic is as large as the column's is a p-value. It is
the evidence for effects of several shapes g, lines, bends and steps, products with other columns,

    T = log Σ_g pi_g exp(½ v / (1 + v) u_g²),   u_g = Σ_n r_n g(x_nj), standardised by draws.

Draws end when enough of them have been as large (Besag and Clifford, 1991: the p-value stays
valid). References: Candès, Fan, Janson and Lv (2018); residuals in place of refits are by Liu,
Katsevich, Janson and Ramdas (2022).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bowtienet.selection.conditional import Conditional, draw

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

FIRST_DRAWS = 200
"""That centre and scale the sums."""
ENOUGH_LARGE = 10
"""Draws as large as the column after which there are no more."""
FIRST_BATCH, LARGEST_BATCH, BATCH_NUMBERS = 100, 2_000, 2**22
"""Draws at a time, and numbers in them."""
PRIOR_VARIANCE = 9.0
"""v: of a sum in units of its deviation under chance, if there is an effect."""
N_STEPS = 5
LEAST_DEVIATION = 1e-2
"""Of a sum, in units of |r|: below it a shape does not vary, and single precision is all of it."""


def p_value(
    values: Floats,
    is_bent: NDArray[np.bool_],
    conditional: Conditional,
    residuals: Floats,
    partners: Floats,
    rng: np.random.Generator,
    most_draws: int,
) -> float:
    """The p-value of H_j for inputs (n, d) of a column and residuals (n,) of mean zero.

    Inputs that are bent have bends and steps, and products are with `partners` (n, P). It is at
    least 1 / (1 + most_draws).
    """
    steps = [_steps_of(x) if bent else None for x, bent in zip(values.T, is_bent, strict=True)]
    products = np.column_stack([residuals, residuals[:, None] * partners]).astype(np.float32)
    first, log_shares = _sums(draw(conditional, FIRST_DRAWS, rng), products, steps)
    least = max(LEAST_DEVIATION**2 * float(residuals @ residuals), np.finfo(float).tiny)
    center, deviation = first.mean(axis=0), np.sqrt(first.var(axis=0) + least)
    gain = 0.5 * PRIOR_VARIANCE / (1.0 + PRIOR_VARIANCE)

    def statistic(drawn: Singles) -> Floats:
        u = (_sums(drawn, products, steps)[0] - center) / deviation
        return np.asarray(logsumexp(log_shares + gain * u * u, axis=1))

    observed = statistic(values.T.astype(np.float32)[:, None])[0]
    largest = max(FIRST_BATCH, min(LARGEST_BATCH, BATCH_NUMBERS // values.size))
    n_drawn, n_large, size = 0, 0, FIRST_BATCH
    while n_drawn < most_draws:
        size = min(size, most_draws - n_drawn)
        counts = n_large + np.cumsum(statistic(draw(conditional, size, rng)) >= observed)
        if counts[-1] >= ENOUGH_LARGE:
            return ENOUGH_LARGE / (n_drawn + 1.0 + float(np.argmax(counts >= ENOUGH_LARGE)))
        n_large, n_drawn = int(counts[-1]), n_drawn + size
        size = min(2 * size, largest)
    return (1.0 + n_large) / (1.0 + n_drawn)


def _steps_of(values: Floats) -> Singles:
    """Quantiles of an input at which it may have a step."""
    steps = np.unique(np.quantile(values, np.arange(1, N_STEPS + 1) / (N_STEPS + 1.0)))
    return steps[steps < values.max()].astype(np.float32)


def _sums(drawn: Singles, products: Singles, steps: list[Singles | None]) -> tuple[Floats, Floats]:
    """Sums (R, shapes) of draws (d, R, n), and the logs of the shapes' shares pi.

    Lines, products and bends are as likely.
    """
    lines, pairs, bends = [], [], []
    for values, at in zip(drawn, steps, strict=True):
        both = values @ products
        lines.append(both[:, :1])
        pairs.append(both[:, 1:])
        if at is not None:
            shapes = (values * values, *((values > step).astype(np.float32) for step in at))
            bends += [(shape @ products[:, 0])[:, None] for shape in shapes]
    groups = [np.concatenate(each, axis=1) for each in (lines, pairs, bends) if each]
    shares = [np.full(each.shape[1], 1.0 / max(each.shape[1], 1)) for each in groups]
    return np.concatenate(groups, axis=1).astype(np.float64), np.log(np.concatenate(shares))
