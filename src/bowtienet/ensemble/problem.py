"""Everything that the training of a recipe reads: rows as networks see them, targets, folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet.ensemble.folds import assign_folds
from bowtienet.ensemble.portfolio import LINEAR, widths
from bowtienet.ensemble.progress import Progress
from bowtienet.ensemble.stacking import LEVELS
from bowtienet.ensemble.streams import StreamedRows
from bowtienet.model.shrinkage import ShrinkagePrior
from bowtienet.networks.column_scales import local_prior
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
    n_folds: int
    views: dict[str, View]
    seen: dict[str, NDArray]
    """Inputs of networks by view, and of the linear recipe."""
    warps: tuple[Warp, ...]
    """Plain and, if it differs, warped; none for classes and counts."""
    outcome: Outcome
    hidden: tuple[int, ...]
    prior: ShrinkagePrior
    """Of the local scales of shrinking recipes."""
    family: str
    """Its name, for the linear recipe."""
    gates: View
    """Inputs of the gates of noise levels."""
    n_levels: int
    seed: int
    jobs: int
    """Threads."""
    progress: Progress
    stream: StreamedRows | None = None
    """All rows, where those above are a sample of them."""

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
    inputs: Floats,
    targets: Floats,
    weights: Floats,
    owners: NDArray[np.intp],
    outcome: Outcome,
    *,
    hidden: tuple[int, ...] | None = None,
    effort: str = "balanced",
    prior: str = "student_t",
    encoding: str = "auto",
    target_transform: str = "auto",
    is_constant: bool = False,
    seed: int = 0,
    jobs: int = 1,
    verbose: bool = False,
    stream: StreamedRows | None = None,
) -> Problem:
    """The problem of a table's rows, or of a sample of those of a stream.

    Parameters are those of the estimators; `is_constant` is whether noise has one level.
    """
    classes = None if outcome.has_noise or targets.shape[1] != 1 else targets[:, 0].astype(int)
    if stream is None:
        folds, n_folds = assign_folds(inputs, targets, classes)
    else:
        folds, n_folds = stream.folds, len(stream.fold_weights) - 1
    views = {
        name: view
        for name in _view_names(encoding, inputs.shape[1])
        if (view := learn_view(name, inputs, weights, owners)) is not None
    }
    if not views:
        views = {"standard": whole_columns(owners)}
    if hidden is None:
        hidden = widths(len(inputs), effort)
    return Problem(
        inputs=inputs,
        targets=targets,
        weights=weights,
        folds=folds,
        n_folds=n_folds,
        views=views,
        seen={LINEAR: inputs} | {name: see(view, inputs) for name, view in views.items()},
        warps=_warps(targets, weights, target_transform) if outcome.has_noise else (),
        outcome=outcome,
        hidden=hidden,
        prior=local_prior(prior),
        family=prior,
        gates=learn_gates(inputs, weights, owners),
        n_levels=1 if is_constant else len(LEVELS),
        seed=seed,
        jobs=jobs,
        progress=Progress(shown=verbose),
        stream=stream,
    )


def _view_names(encoding: str, n_columns: int) -> Sequence[str]:
    if encoding != "auto":
        return (encoding,)
    return ("standard", "principal" if n_columns > MANY_COLUMNS else "piecewise")


def _warps(targets: Floats, weights: Floats, transform: str) -> tuple[Warp, ...]:
    plain = fit_warp(targets, weights, transformed=False)
    if transform == "none":
        return (plain,)
    warped = fit_warp(targets, weights, transformed=True)
    # Exponents that are so near to one change nothing but the time of a fit.
    if is_affine(warped) or np.all(np.abs(warped.exponent - 1.0) < 0.05):
        return (plain,)
    return (plain, warped)
