"""The recipe without a hidden layer, fitted once without each fold and once with all rows.

Gaussian targets have a shrinkage prior, y ~ N(b + w'x, s²) and w_j ~ N(0, tau psi_j), with psi_j of
`model.shrinkage` and a flat prior of b. With d_j = tau / E[1/psi_j],

    q(w) = N(m, V),   V = (X'X / s² + D^{-1})^{-1},   g_j = 1 - V_jj / d_j,
    q(psi_j) by conjugacy from E[w_j²] = m_j² + d_j (1 - g_j),
    tau <- tau Σ m_j² / d_j / Σ g_j,   s² <- |y - Xm|² / (n - 1 - Σ g_j).

The last two are MacKay's: they rest where EM does and get there sooner. Other outcomes, which have
no closed form, have a ridge penalty that is chosen by held-out loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.optimize import minimize

from bowtienet._arrays import with_ones
from bowtienet.model.shrinkage import (
    ShrinkagePrior,
    build_shrinkage,
    conjugate_update,
    mean_inverse,
)
from bowtienet.outcomes import Gaussian, Outcome

Floats: TypeAlias = NDArray[np.float64]
Solution: TypeAlias = tuple[Floats, Floats, float]
"""m (K,), g (K,) and |y - Xm|²."""
Solve: TypeAlias = Callable[[Floats, float], Solution]
"""The solution for d (K,) and s²."""

PENALTIES = (5e3, 1e3, 200.0, 50.0, 10.0, 2.0, 0.5, 0.1, 0.02)
"""On ½ Σ w² next to the sum of the losses of other outcomes; each fit starts from that of the one
before."""
ROUNDING = 1e-12
"""Below this share of the largest, eigenvalues are those of repeated and constant columns."""


def cross_fit_linear(
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    folds: NDArray[np.integer],
    n_folds: int,
    outcome: Outcome,
    prior: str = "student_t",
) -> Floats:
    """Layers (F+1, C, K+1), bias first, without each fold and at last with all rows.

    Columns (n, K) are standardised, targets (n, C); `folds` is -1 for rows that are never held out.
    The prior is that of psi by name, for Gaussian targets alone.
    """
    present = weights > 0.0
    inputs, targets, weights = inputs[present], targets[present], weights[present]
    # Row f of `kept` has the groups of rows of fit f; the last group is never held out.
    kept = np.vstack([~np.eye(n_folds, n_folds + 1, dtype=bool), np.full(n_folds + 1, True)])
    groups = np.where(folds < 0, n_folds, folds)[present]
    by_fit = weights * kept[:, groups]
    if not isinstance(outcome, Gaussian):
        return _fit_by_loss(inputs, targets, by_fit, outcome)
    local = build_shrinkage(prior)
    # Origin and unit are common to all fits: rounding apart they have no influence.
    share = weights / weights.sum()
    center, level = share @ inputs, share @ targets
    size = np.sqrt(share @ (targets - level) ** 2)
    size = np.where(size > 0.0, size, 1.0)
    inputs, targets = inputs - center, (targets - level) / size
    if inputs.shape[1] > len(inputs):
        layers = np.stack([_fit_wide(inputs, targets, each, local) for each in by_fit])
    else:
        design = with_ones(inputs)
        rows = np.hstack([design, targets])
        chosen = [np.flatnonzero(groups == group) for group in range(n_folds + 1)]
        parts = [(weights[each, None] * rows[each]).T @ rows[each] for each in chosen]
        # Not the total less a part: rows of any size have no influence where they are left out.
        moments = np.tensordot(kept.astype(float), np.stack(parts), 1)
        pairs = zip(by_fit, moments, strict=True)
        layers = np.stack([_fit_tall(design, targets, *pair, local) for pair in pairs])
    layers *= size[:, None]
    layers[:, :, 0] += level - layers[:, :, 1:] @ center
    return layers


def _fit_tall(
    design: Floats, targets: Floats, weights: Floats, moment: Floats, prior: ShrinkagePrior
) -> Floats:
    """Layer (C, K+1) from the sums (K+1+C, K+1+C) over (1, x, y).

    What is fitted are residuals of least squares, so that tiny noise keeps its digits.
    """
    size = design.shape[1]
    count, mean = moment[0, 0], moment[0] / moment[0, 0]
    centered = moment - count * np.outer(mean, mean)
    scatter = centered[1:size, 1:size]
    values, vectors = np.linalg.eigh(scatter)
    # Nothing varies where all that is left of the moments is rounding, as of one row.
    varies = values.max(initial=0.0) > ROUNDING * np.diag(moment)[1:size].max(initial=0.0)
    full = varies & (values > ROUNDING * values.max(initial=0.0))
    values = np.where(full, values, 1.0)
    along = full[:, None] * (vectors.T @ centered[1:size, size:]) / values[:, None]
    values, start = np.where(full, values, 0.0), vectors @ along
    residuals = targets - mean[size:] - (design[:, 1:] - mean[1:size]) @ start
    cross = design.T @ (weights[:, None] * residuals)
    squares = weights @ residuals**2 - cross[0] ** 2 / count
    cross = cross[1:] - np.outer(mean[1:size], cross[0])
    layer = np.empty((targets.shape[1], size))
    for c, (rest, energy) in enumerate(zip(squares, (values[:, None] * along**2).T, strict=True)):
        solve = _primal(scatter, cross[:, c], rest, start[:, c])
        layer[c, 1:] = _shrink(solve, prior, size - 1, count, values, energy, rest)
    layer[:, 0] = mean[size:] - layer[:, 1:] @ mean[1:size]
    return layer


def _fit_wide(inputs: Floats, targets: Floats, weights: Floats, prior: ShrinkagePrior) -> Floats:
    """Layer (C, K+1) by matrices (n, n)."""
    rows = weights > 0.0
    weights = weights[rows]
    count, root = weights.sum(), np.sqrt(weights)[:, None]
    mean, level = weights @ inputs[rows] / count, weights @ targets[rows] / count
    x, y = root * (inputs[rows] - mean), root * (targets[rows] - level)
    values, vectors = np.linalg.eigh(x @ x.T)
    values = np.maximum(values, 0.0)
    layer = np.empty((targets.shape[1], inputs.shape[1] + 1))
    for c, energy in enumerate((vectors.T @ y).T ** 2):
        solve = _dual(x, y[:, c], root)
        layer[c, 1:] = _shrink(solve, prior, x.shape[1], count, values, energy, 0.0)
    layer[:, 0] = level - layer[:, 1:] @ mean
    return layer


def _primal(scatter: Floats, cross: Floats, squares: float, start: Floats) -> Solve:
    """m = w0 + (X'X + s² D^{-1})^{-1} (X'r - s² D^{-1} w0) for the residuals r of w0."""
    rounding = ROUNDING * np.diag(scatter)

    def solve(d: Floats, noise: float) -> Solution:
        ratio = noise / d
        root = _inverse_root(scatter + np.diag(ratio + rounding))
        move = root.T @ (root @ (cross - ratio * start))
        used = np.clip(1.0 - ratio * np.einsum("ij,ij->j", root, root), 0.0, 1.0)
        left = squares - 2.0 * move @ cross + move @ scatter @ move
        return start + move, used, float(left)

    return solve


def _dual(x: Floats, y: Floats, root: Floats) -> Solve:
    """m = D X'a and y - Xm = s² a, with (X D X' + s² I) a = y."""

    def solve(d: Floats, noise: float) -> Solution:
        scaled = x * np.sqrt(d)
        gram = scaled @ scaled.T
        size = np.trace(gram) / len(x)
        # The last term, a bias of large variance, changes nothing: rows are centred.
        gram += (noise + ROUNDING * size) * np.eye(len(x)) + size * (root @ root.T) / len(x)
        inverse = _inverse_root(gram)
        a = inverse.T @ (inverse @ y)
        whitened = inverse @ x
        used = np.clip(d * np.einsum("ij,ij->j", whitened, whitened), 0.0, 1.0)
        return d * (a @ x), used, noise**2 * float(a @ a)

    return solve


def _inverse_root(x: Floats) -> Floats:
    """R with x^{-1} = R'R, the inverse of the lower Cholesky factor."""
    return dtrtri(dpotrf(x, lower=1)[0], lower=1)[0] if x.size else x


def _shrink(
    solve: Solve,
    prior: ShrinkagePrior,
    n_columns: int,
    count: float,
    values: Floats,
    energy: Floats,
    rest: float,
) -> Floats:
    """m after nine solutions, from the ridge of highest evidence.

    Its evidence follows from the eigenvalues of X'X, the squares |y|² along each of them, and the
    rest of |y|².
    """
    if not values.any():  # No column varies among the rows, and weights would be rounding.
        return np.zeros(n_columns)
    degrees = max(count - 1.0, 0.5 * count)  # The bias takes one.
    # s² / tau where a fit may start.
    ratios = np.logspace(-24.0, 4.0, 281) * values.max()
    shares = ratios[:, None] / (values + ratios[:, None])
    smallest = 1e-30  # of s²: standardised targets without noise
    noises = np.maximum((shares @ energy + rest) / degrees, smallest)
    best = np.argmax(np.sum(np.log(shares), axis=1) - degrees * np.log(noises))
    noise, tau = float(noises[best]), float(noises[best] / ratios[best])
    d = np.full(n_columns, tau)
    tau *= float(mean_inverse(conjugate_update(prior, 1, np.array(0.5))))
    # More solutions shrink too much: on 270 rows of 2,000 columns nine are as good as LassoCV, and
    # sixty two to six per cent worse.
    for _ in range(8):
        mean, used, square = solve(d, noise)
        total = used.sum()
        half_squares = 0.5 * (mean**2 + d * (1.0 - used)) / tau
        local_precision = mean_inverse(conjugate_update(prior, 1, half_squares))
        # At most a factor of a hundred, where columns or targets are constant.
        tau *= float(np.clip(np.sum(mean**2 / d) / max(total, 1e-300), 0.01, 100.0))
        noise = max(square / max(degrees - total, 0.01 * degrees), smallest)
        d = tau / local_precision * np.ones(n_columns)
    return solve(d, noise)[0]


def _fit_by_loss(inputs: Floats, targets: Floats, weights: Floats, outcome: Outcome) -> Floats:
    """Layers (F+1, C, K+1) for row weights (F+1, n), with the penalty of least held-out loss."""
    basis = None
    if inputs.shape[1] > len(inputs):
        # Ridge weights are combinations of rows, so rotated columns lose nothing.
        basis, triangle = np.linalg.qr(inputs.T)
        inputs = triangle.T
    design, goals = with_ones(inputs), outcome.working_targets(targets)
    held_out = weights[-1] - weights[:-1]
    layers = np.zeros((len(weights), goals.shape[1], design.shape[1]))
    layers[:, :, 0] = weights @ goals / weights.sum(axis=1, keepdims=True)
    least, path, losses = np.inf, layers[:-1], []
    best, chosen = PENALTIES[0], path
    for penalty in PENALTIES:
        pairs = zip(path, weights[:-1], strict=True)
        path = np.stack([_minimize(*pair, design, targets, outcome, penalty) for pair in pairs])
        outputs = np.einsum("np,fcp->fnc", design, path)
        losses.append(float(np.sum(held_out * outcome.loss(targets, outputs)[0])))
        if losses[-1] < least:
            least, best, chosen = losses[-1], penalty, path
        # The path ends where two penalties gain next to nothing of what all before them have.
        if len(losses) > 2 and losses[-3] - min(losses[-2:]) <= 1e-3 * (losses[0] - least):
            break
    last = _minimize(layers[-1], weights[-1], design, targets, outcome, best)
    layers = np.concatenate([chosen, last[None]])
    if basis is None:
        return layers
    return np.concatenate([layers[:, :, :1], layers[:, :, 1:] @ basis.T], axis=2)


def _minimize(
    start: Floats,
    weights: Floats,
    design: Floats,
    targets: Floats,
    outcome: Outcome,
    penalty: float,
) -> Floats:
    """Layer (C, K+1) at the minimum of Σ c l(y, z) + ½ λ Σ w²."""
    total = weights.sum()

    def objective(flat: Floats) -> tuple[float, Floats]:
        layer = flat.reshape(start.shape)
        shrunk = layer * (penalty * (np.arange(start.shape[1]) > 0))
        # Outputs stand side by side in memory, the fast order for sums over few classes.
        loss, slope = outcome.loss(targets, (layer @ design.T).T)
        gradient = (weights * slope.T) @ design + shrunk
        return (weights @ loss + 0.5 * np.sum(layer * shrunk)) / total, gradient.ravel() / total

    options = {"maxiter": 500, "ftol": 1e-11, "gtol": 1e-6}
    solved = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return solved.x.reshape(start.shape)
