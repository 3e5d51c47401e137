"""Ridge regression with the penalty and the errors that left-out rows ask for, in closed form.

    f = U diag(s) U' t,   s = d² / (d² + penalty),   e_n = (t_n - f_n) / (1 - h_n)

for features A = U d V' of mean zero and h = diag(U diag(s) U') + 1/n; e are the errors of each row
when the others are fitted. The factor comes from the smaller of A'A and A A', so that wide tables
cost the square of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PENALTIES = 10.0 ** np.linspace(-3.0, 2.0, 11)
"""For each row, compared by left-out errors."""
LEAST_EIGENVALUE = 1e-9
"""Directions that have less of the largest one's are rounding."""
HIGHEST_LEVERAGE = 1.0 - 1e-7
"""Above it, an error and what it is divided by are both rounding."""


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """A fitted regression of targets (n, T)."""

    basis: Floats  # U (n, k)
    shrinkage: Floats  # s (k,)
    fitted: Floats  # (n, T)
    left_out_errors: Floats  # (n, T)
    noise: float
    """Standard deviation of the errors, over all targets: residuals for each degree of freedom."""


def fit_ridge(features: Floats, targets: Floats) -> Ridge:
    """Regression of targets (n, T) on features (n, F), with one penalty for all targets."""
    n_rows = len(features)
    center = targets.mean(axis=0)
    centered = targets - center
    basis, squares = _factor(features - features.mean(axis=0))
    coefficients = basis.T @ centered
    best, lowest = np.zeros(len(squares)), np.inf
    for penalty in n_rows * PENALTIES:
        shrinkage = squares / (squares + penalty)
        error = float(np.sum(_left_out(basis, shrinkage, coefficients, centered) ** 2))
        if error < lowest:
            best, lowest = shrinkage, error
    fitted = basis @ (best[:, None] * coefficients)
    freedom = max(1.0, n_rows - 1.0 - float(best.sum()))
    return Ridge(
        basis=basis,
        shrinkage=best,
        fitted=center + fitted,
        left_out_errors=_left_out(basis, best, coefficients, centered),
        noise=float(np.sqrt(np.sum((centered - fitted) ** 2) / freedom)),
    )


def without_fit(ridge: Ridge, values: Floats) -> Floats:
    """What the same regression leaves of other targets (n,) of mean zero."""
    return np.asarray(values - ridge.basis @ (ridge.shrinkage * (ridge.basis.T @ values)))


def _left_out(basis: Floats, shrinkage: Floats, coefficients: Floats, targets: Floats) -> Floats:
    leverage = basis**2 @ shrinkage + 1.0 / len(basis)
    errors = targets - basis @ (shrinkage[:, None] * coefficients)
    return np.asarray(errors / (1.0 - np.minimum(leverage, HIGHEST_LEVERAGE))[:, None])


def _factor(features: Floats) -> tuple[Floats, Floats]:
    """U (n, k) and d² (k,) of the directions that are more than rounding."""
    n_rows, n_features = features.shape
    if n_features == 0:
        return np.zeros((n_rows, 0)), np.zeros(0)
    wide = n_features > n_rows
    squares, vectors = np.linalg.eigh(features @ features.T if wide else features.T @ features)
    kept = squares > max(LEAST_EIGENVALUE * squares[-1], np.finfo(float).tiny)
    squares, vectors = squares[kept], vectors[:, kept]
    return (vectors if wide else features @ (vectors / np.sqrt(squares))), squares
