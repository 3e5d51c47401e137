"""What a table says of a target without some column: E[y | other columns].

Columns are screened by how much a shape of theirs (a line, a bend, a step, a product with a chosen
column) says of the residuals so far, round by round; then a ridge regression on these shapes
predicts each row from all others,

    f = U diag(s) U't,   s = d² / (d² + penalty),   e_n = (t_n - f_n) / (1 - h_n)

for features A = U d V' of mean zero and h = diag(U diag(s) U') + 1/n, with the penalty of the least
errors e. If a column is not chosen, the result is what it would be without it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ridge:
    """A fitted regression of targets (n, T)."""

    basis: Floats
    """U (n, k)."""
    shrinkage: Floats
    """s (k,)."""
    fitted: Floats
    """f (n, T)."""
    errors: Floats
    """e (n, T), of each row when the others are fitted."""


def fit_ridge(features: Floats, targets: Floats) -> Ridge:
    """Regression of targets (n, T) on features (n, F), with one penalty for all targets."""
    n_rows, center = len(features), targets.mean(axis=0)
    A, wide = features - features.mean(axis=0), features.shape[1] > len(features)
    squares, vectors = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    kept = squares > max(1e-9 * squares.max(initial=0.0), np.finfo(float).tiny)
    squares, vectors = squares[kept], vectors[:, kept]
    basis = vectors if wide else A @ (vectors / np.sqrt(squares))
    along, fits = basis.T @ (targets - center), []
    for penalty in n_rows * 10.0 ** np.linspace(-3.0, 2.0, 11):
        shrinkage = squares / (squares + penalty)
        fitted = center + basis @ (shrinkage[:, None] * along)
        # Nearer to one an error and what it is divided by are both rounding.
        leverage = np.minimum(basis**2 @ shrinkage + 1.0 / n_rows, 1.0 - 1e-7)
        errors = (targets - fitted) / (1.0 - leverage)[:, None]
        fits.append(Ridge(basis=basis, shrinkage=shrinkage, fitted=fitted, errors=errors))
    return min(fits, key=lambda fit: float(np.sum(fit.errors**2)))


def standardized(values: Floats) -> Floats:
    """Columns of mean zero and variance one, or zero."""
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0.0, spread, np.inf))


def shapes_of(scores: Floats, is_bent: NDArray[np.bool_]) -> Floats:
    """Shapes (S, n, E) of all inputs, lines first; those of indicators are lines alone."""
    held = np.clip(scores, -3.0, 3.0)
    bends = [held**2, np.abs(held), *((held > step).astype(float) for step in (-0.6, 0.0, 0.6))]
    return np.stack([held, *(standardized(values) * is_bent for values in bends)])


def regress(
    shapes: Floats, owners: NDArray[np.intp], targets: Floats, left_out: int = -1
) -> tuple[Floats, list[int]]:
    """Predictions (n,) by all columns but one, of inputs of `owners` (E,), and the chosen ones.

    Inputs that do not vary have the owner -1. At most 40 columns are chosen, with five rows for
    each at least; products are of the first 30 inputs of these.
    """
    most = min(40, len(targets) // 5)
    chosen: list[int] = []
    predicted = np.zeros_like(targets)
    for _ in range(20):
        strength = _strength(shapes, standardized(targets - predicted), np.isin(owners, chosen))
        strength[np.isin(owners, [*chosen, left_out, -1])] = 0.0
        order = np.argsort(-strength, kind="stable")
        strong = order[strength[order] >= max(1.0, 0.95 * strength.max())]
        new = list(dict.fromkeys(owners[strong].tolist()))[: most - len(chosen)]
        if not new:
            break
        chosen += new
        places = np.concatenate([np.flatnonzero(owners == column) for column in chosen])
        first, second = np.triu_indices(min(len(places), 30), 1)
        products = standardized(shapes[0][:, places[first]] * shapes[0][:, places[second]])
        features = np.concatenate([*shapes[:, :, places], products], axis=1)
        predicted = targets - fit_ridge(features, targets[:, None]).errors[:, 0]
    return predicted, chosen


def _strength(shapes: Floats, residuals: Floats, is_chosen: NDArray[np.bool_]) -> Floats:
    """What inputs (E,) say of residuals (n,), over the most that chance would give."""
    n_shapes, n_rows, n_inputs = shapes.shape
    lines = np.abs(residuals @ shapes[0])
    bends = np.abs(residuals @ shapes[1:]).max(axis=0)
    products = np.abs((residuals[:, None] * shapes[0][:, is_chosen]).T @ shapes[0])
    searched = np.array([1, n_shapes, n_shapes + is_chosen.sum()]) * n_inputs
    by_chance = np.sqrt(2.0 * n_rows * np.log(np.maximum(searched, 2)))
    sizes = np.stack([lines, bends, products.max(axis=0, initial=0.0)])
    return np.asarray((sizes / by_chance[:, None]).max(axis=0))
