"""The one loop: a solver steps until it is finished, a callback stops it, or Ctrl-C does.

Coordinate ascent and stochastic variational inference are solvers of it. A solver's state is
immutable and the loop holds the last complete one, so that an interruption in the middle of a step
leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import numpy as np

from bowtienet._old.inference.convergence import BreakdownError, Status
from bowtienet._old.inference.elbo import ElboTerms
from bowtienet._old.inference.pruning import Pruning
from bowtienet._old.inference.statistics import Statistics
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback is told after every accepted step."""

    sweep: int
    elbo: float
    elbo_terms: ElboTerms
    model: BowTieModel
    factors: GlobalFactors
    pruning: Pruning | None = None
    n_visited: int
    """Rows visited so far, each as often as it was."""
    n_at_most: int
    """Rows that the fit will have visited if it takes all the steps it may."""
    statistics: Statistics | None


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """A fitted network and how its fit went."""

    model: BowTieModel
    factors: GlobalFactors
    elbo_terms: ElboTerms | None
    """The bound by block; None if it never was finite."""
    elbo_history: tuple[float, ...]
    """The bound after every accepted step, empty if it never was finite; where units were taken out
    it may jump. Of a stochastic fit the mean of the noisy bounds over a window of steps."""
    n_sweeps: int
    """All steps, also those that were undone."""
    status: Status
    pruning: Pruning | None = None
    """What is left of the network that the fit began with; None if it is all there."""
    statistics: Statistics | None = None
    """The sums that the factors follow from, blended in a stochastic fit: from these it can go on
    with more rows."""
    variance_ratio: np.ndarray | None = None
    """What the variance of predictions is multiplied by to match held-out errors, (D_out,); None
    for one."""


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Is told of every accepted step; a true answer stops the fit."""

S = TypeVar("S")


class Solver(Protocol[S]):
    """An algorithm that climbs the bound step by step; S is all it knows between two steps."""

    def init(self) -> S:
        """Where the fit begins."""

    def step(self, state: S, history: Sequence[float]) -> S:
        """The next state, given the bounds of all accepted steps so far."""

    def broken(self, state: S) -> S:
        """The state after a step from this one broke down: finished, or with a safer step next."""

    def finished(self, state: S) -> Status | None:
        """Why the fit is over, or None to go on."""

    def progress(self, state: S) -> Progress | None:
        """What the last step reached; None if it was undone or did not move the network."""

    def result(self, state: S, history: Sequence[float], status: Status) -> FitResult:
        """The fitted network."""


def iterate(
    solver: Solver[S], *, callback: Callback | None = None, history: Sequence[float] = ()
) -> FitResult:
    """Step until the solver is finished.

    Parameters
    ----------
    solver : Solver
        See `coordinate_ascent` and `stochastic`.
    callback : callable, optional
        Called with a `Progress` after every accepted step; a true answer stops the fit.
    history : sequence of float
        Bounds of the steps before, if the solver begins in the middle of a fit.

    Returns
    -------
    FitResult
        The last complete state, whatever ended the fit. Ctrl-C ends it too, but is raised where
        no step has been accepted yet; errors are the caller's.
    """
    state, bounds = solver.init(), list(history)
    try:
        while (status := solver.finished(state)) is None:
            try:
                state = solver.step(state, bounds)
            except BreakdownError:
                state = solver.broken(state)
            progress = solver.progress(state)
            if progress is None:
                continue
            bounds.append(progress.elbo)
            if callback is not None and callback(progress):
                status = Status.INTERRUPTED
                break
    except KeyboardInterrupt:
        if not bounds:
            raise
        status = Status.INTERRUPTED
    return solver.result(state, bounds, status)
