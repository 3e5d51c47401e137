"""Everything that the training of a recipe reads: rows as networks see them, targets, folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import threads_of
from bowtienet.ensemble.folds import assign_folds
from bowtienet.ensemble.portfolio import LINEAR, widths
from bowtienet.ensemble.progress import Progress
from bowtienet.ensemble.stacking import LEVELS
from bowtienet.ensemble.streams import StreamedRows
from bowtienet.outcomes import Outcome
from bowtienet.tables.quantiles import in_line
from bowtienet.tables.views import MANY_COLUMNS, View, learn_gates, learn_view, see, whole_columns
from bowtienet.tables.warp import Warp, fit_warp, forward, is_affine

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Rows of a fit, in all forms that recipes ask for."""

    inputs: Floats
    """Standardised columns (n, E)."""
    targets: Floats
    """As the user gave them (n, C): numbers, classes, or counts and the log of their exposure."""
    weights: Floats
    folds: NDArray[np.intp]
    """(n,); -1 for rows that no network holds out."""
    fold_weights: Floats
    """(F + 1,): total weight of each fold; the last is of rows that no network holds out."""
    views: dict[str, View]
    seen: dict[str, NDArray]
    """Inputs of networks by view, and of the linear recipe."""
    warps: tuple[Warp, ...]
    """Plain and, if it differs, warped; none for classes and counts."""
    outcome: Outcome
    hidden: tuple[int, ...]
    prior: str
    """Of the weights of shrinking recipes and of the linear one."""
    gates: View
    """Inputs of the gates of noise levels."""
    levels: tuple[float, ...]
    """Where those of the noise variance start."""
    seed: int
    jobs: int
    """Threads."""
    progress: Progress
    stream: StreamedRows | None = None
    """All rows, where those above are a sample of them."""

    @property
    def n_folds(self) -> int:
        """F."""
        return len(self.fold_weights) - 1

    @property
    def held(self) -> NDArray[np.intp]:
        """Rows that some network holds out."""
        return np.flatnonzero(self.folds >= 0)


def goals(problem: Problem, is_warped: bool) -> Floats:
    """Targets on the scale of a recipe's networks."""
    if not problem.warps:
        return problem.targets
    return forward(problem.warps[int(is_warped)], problem.targets)


def has_outliers(problem: Problem) -> bool:
    """Whether a target is out of line."""
    return bool(problem.warps) and bool(np.any(in_line(problem.targets) != problem.targets))


def pose(
    settings: Any,
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    owners: NDArray[np.intp],
    outcome: Outcome,
    *,
    hidden: tuple[int, ...] | None = None,
    seed: int = 0,
    stream: StreamedRows | None = None,
) -> Problem:
    """The problem of a table's rows, or of a sample of those of a stream.

    `settings` has the parameters of a practical estimator; `hidden` is None for the usual widths.
    """
    if stream is None:
        labels = None if outcome.has_noise or targets.shape[1] != 1 else targets[:, 0].astype(int)
        folds, n_folds = assign_folds(inputs, targets, labels)
        fold_weights: Floats = np.roll(np.bincount(folds + 1, weights, n_folds + 1), -1)
    else:
        folds, fold_weights = stream.folds, stream.fold_weights
    names: tuple[str, ...] = (settings.encoding,)
    if settings.encoding == "auto":
        names = ("standard", "principal" if inputs.shape[1] > MANY_COLUMNS else "piecewise")
    views = {
        name: view
        for name in names
        if (view := learn_view(name, inputs, weights, owners)) is not None
    }
    if not views:
        views = {"standard": whole_columns(owners)}
    transform = getattr(settings, "target_transform", "none")
    is_constant = getattr(settings, "noise", "constant") == "constant"
    return Problem(
        inputs=inputs,
        targets=targets,
        weights=weights,
        folds=folds,
        fold_weights=fold_weights,
        views=views,
        seen={LINEAR: inputs} | {name: see(view, inputs) for name, view in views.items()},
        warps=_warps(targets, weights, transform) if outcome.has_noise else (),
        outcome=outcome,
        hidden=widths(len(inputs), settings.effort) if hidden is None else hidden,
        prior=settings.prior,
        gates=learn_gates(inputs, weights, owners),
        levels=(1.0,) if is_constant else LEVELS,
        seed=seed,
        jobs=threads_of(settings.n_jobs),
        progress=Progress(shown=bool(settings.verbose)),
        stream=stream,
    )


def _warps(targets: Floats, weights: Floats, transform: str) -> tuple[Warp, ...]:
    plain = fit_warp(targets, weights, transformed=False)
    if transform == "none":
        return (plain,)
    warped = fit_warp(targets, weights, transformed=True)
    # Exponents that are so near to one change nothing but the time of a fit.
    if is_affine(warped) or np.all(np.abs(warped.exponent - 1.0) < 0.05):
        return (plain,)
    return (plain, warped)
