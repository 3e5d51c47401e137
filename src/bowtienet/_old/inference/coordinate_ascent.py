"""Sections 3.1 and 3.2: coordinate ascent, a solver of the one loop.

A sweep reads the data once: for each block of rows the local step and its statistics, then the
global step from their sum, then EM. Each part can only raise the ELBO. Between sweeps the state is
moved on by momentum (see `acceleration`); a sweep from there that ends below the last accepted
bound is undone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import non_negative, whole
from bowtienet._old.data.rows import Rows
from bowtienet._old.inference.acceleration import extrapolate, momentum
from bowtienet._old.inference.convergence import Status, check
from bowtienet._old.inference.elbo import ElboTerms, elbo
from bowtienet._old.inference.empirical_bayes import renew_outcome, update_hyperparameters
from bowtienet._old.inference.execution import Mapper, workers
from bowtienet._old.inference.global_step import global_step, update_shared_covariance
from bowtienet._old.inference.iterate import Callback, FitResult, Progress, iterate
from bowtienet._old.inference.row_providers import HeldRows, RowProvider
from bowtienet._old.inference.statistics import Statistics
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, check_factors

DEFAULT_REPEATS = 3
"""Global updates within a sweep; docs/measurements/convergence.md has what is behind it."""


@dataclass(frozen=True, kw_only=True)
class State:
    """All that a sweep needs: the model (EM moves its prior), global factors, local memory."""

    model: BowTieModel
    factors: GlobalFactors
    memory: Any
    """The local factors, as the row provider holds them."""
    statistics: Statistics | None = None
    """Sums that the factors follow from; None before the first sweep."""


def fit(
    model: BowTieModel,
    rows: Rows | RowProvider,
    factors: GlobalFactors,
    *,
    max_iter: int = 500,
    tol: float = 1e-5,
    repeats: int = DEFAULT_REPEATS,
    empirical_bayes: bool = True,
    accelerate: bool = True,
    block_size: int | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> FitResult:
    """Fit a network by coordinate ascent from given global factors.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature.
    rows : Rows or RowProvider
        Training rows on a scale of order 1; see `build_rows` and `fit_scaling`.
    factors : GlobalFactors
        Where to start; see `initialize`.
    max_iter : int
        Most passes over the data.
    tol : float
        Stop when the relative change of the bound was below it three times in a row.
    repeats : int
        Rounds of global updates within a sweep; they do not read the data.
    empirical_bayes : bool
        Set the hyperparameter of the global shrinkage, and the outcome's own parameters, by EM
        after every sweep.
    accelerate : bool
        Use momentum between sweeps. Plain coordinate ascent otherwise.
    block_size : int, optional
        Rows worked on at a time; by default so many that a block's largest array has a few MB.
    n_threads : int, optional
        Blocks worked on at the same time; all usable cores by default. It changes no result.
    callback : callable, optional
        Called with a `Progress` after every accepted sweep; a true answer stops the fit.

    Returns
    -------
    FitResult
        The last accepted state, whatever ended the fit; Ctrl-C ends it after the first sweep.
    """
    check_factors(model.architecture, factors)
    if isinstance(rows, Rows):
        rows = HeldRows(rows, model.architecture, block_size, model.outcome)
    rows.check(model)
    repeats = whole(repeats, "repeats")
    with workers(n_threads) as apply:
        step = partial(sweep, repeats=repeats, empirical_bayes=empirical_bayes, apply=apply)
        solver = CoordinateAscent(
            model=model,
            rows=rows,
            factors=factors,
            sweep=step,
            max_iter=whole(max_iter, "max_iter"),
            tol=non_negative(tol, "tol"),
            accelerate=accelerate,
            apply=apply,
        )
        return iterate(solver, callback=callback)


def sweep(
    state: State,
    rows: RowProvider,
    *,
    repeats: int,
    empirical_bayes: bool,
    apply: Mapper = map,
) -> tuple[State, ElboTerms]:
    """One pass over the data and the updates that follow from it, with the bound they reach.

    The bound is that of the outcome's parameters during the pass: EM moves them before it, by the
    sums of the pass before, or after it (`renew_outcome`).
    """
    model = state.model
    if empirical_bayes:
        model = renew_outcome(model, state.factors, state.statistics, before=True)
    statistics, memory = rows.local_pass(model, state.factors, state.memory, apply)
    factors = global_step(model, state.factors, statistics, repeats)
    model = update_hyperparameters(model, factors) if empirical_bayes else model
    terms = elbo(model, factors, statistics)
    if empirical_bayes:
        model = renew_outcome(model, factors, statistics, before=False)
    return State(model=model, factors=factors, memory=memory, statistics=statistics), terms


@dataclass(frozen=True, kw_only=True)
class Climb:
    """A fit between two sweeps."""

    rows: RowProvider
    accepted: State
    proposal: State
    """Where the next sweep begins: at the accepted state, or where momentum has moved it."""
    elbo_terms: ElboTerms | None = None
    """Of the accepted state."""
    n_sweeps: int = 0
    age: int = 0
    """Sweeps since momentum began."""
    begin: int = 0
    """Where the history of bounds that can be compared begins."""
    rose: bool = False
    """Whether the last sweep was accepted."""
    status: Status | None = None


@dataclass(frozen=True, kw_only=True)
class CoordinateAscent:
    """Sweeps with momentum as steps of `iterate`; see `fit` for the settings."""

    model: BowTieModel
    rows: RowProvider
    factors: GlobalFactors
    sweep: Callable[..., tuple[State, ElboTerms]]
    """From a state and its rows to the next state."""
    max_iter: int
    tol: float
    accelerate: bool
    apply: Mapper

    def init(self) -> Climb:
        """A forward pass."""
        by_row = self.model.outcome.by_row
        factors = update_shared_covariance(self.factors, by_row=by_row)
        memory = self.rows.begin(self.model, factors, self.apply)
        start = State(model=self.model, factors=factors, memory=memory)
        return Climb(rows=self.rows, accepted=start, proposal=start)

    def step(self, climb: Climb, history: Sequence[float]) -> Climb:
        """One sweep: accept it and move on, or go back to the accepted state."""
        candidate, terms = self.sweep(climb.proposal, rows=climb.rows)
        value = float(to_numpy(terms.total))
        moved = climb.proposal is not climb.accepted
        climb = replace(climb, n_sweeps=climb.n_sweeps + 1, rose=False)
        if climb.rows.rebuilt and math.isfinite(value):
            # Gates from a forward pass are another place to climb from, not a failed sweep.
            return _begin_anew(climb, candidate, terms, history)
        if moved and not value >= history[-1]:
            return replace(climb, proposal=climb.accepted, age=0)
        status = check([*history[climb.begin :], value], self.tol)
        if status in (Status.NON_FINITE, Status.DECREASED):
            return replace(climb, status=status)
        before = climb.accepted.factors
        climb = replace(_accept(climb, candidate, terms), status=status)
        is_first = len(history) == climb.begin
        return climb if is_first or not self.accelerate else _move_on(climb, before)

    def broken(self, climb: Climb) -> Climb:
        """Back to the accepted state if momentum had moved on from it; else the end."""
        moved = climb.proposal is not climb.accepted
        climb = replace(climb, n_sweeps=climb.n_sweeps + 1, rose=False)
        if moved:
            return replace(climb, proposal=climb.accepted, age=0)
        return replace(climb, status=Status.NON_FINITE)

    def finished(self, climb: Climb) -> Status | None:
        """Whether the bound stands still, cannot be trusted, or the sweeps are used up."""
        if climb.status is None and climb.n_sweeps >= self.max_iter:
            return Status.ITERATION_LIMIT
        return climb.status

    def progress(self, climb: Climb) -> Progress | None:
        """What the last sweep reached; None if it was undone."""
        if not climb.rose or climb.elbo_terms is None:
            return None
        return Progress(
            sweep=climb.n_sweeps,
            elbo=float(to_numpy(climb.elbo_terms.total)),
            elbo_terms=climb.elbo_terms,
            model=climb.accepted.model,
            factors=climb.accepted.factors,
            n_visited=climb.n_sweeps * climb.rows.n_rows,
            n_at_most=self.max_iter * climb.rows.n_rows,
            statistics=climb.accepted.statistics,
        )

    def result(self, climb: Climb, history: Sequence[float], status: Status) -> FitResult:
        """The last accepted state."""
        return FitResult(
            model=climb.accepted.model,
            factors=climb.accepted.factors,
            elbo_terms=climb.elbo_terms,
            elbo_history=tuple(history),
            n_sweeps=climb.n_sweeps,
            status=status,
            statistics=climb.accepted.statistics,
        )


def _accept(climb: Climb, candidate: State, terms: ElboTerms) -> Climb:
    return replace(climb, accepted=candidate, proposal=candidate, elbo_terms=terms, rose=True)


def _begin_anew(
    climb: Climb, candidate: State, terms: ElboTerms, history: Sequence[float]
) -> Climb:
    """Accept a state whose bound cannot be compared with those before."""
    return replace(_accept(climb, candidate, terms), begin=len(history), age=0)


def _move_on(climb: Climb, before: GlobalFactors) -> Climb:
    """Let the next sweep begin where momentum leads from the accepted state."""
    now, age = climb.accepted, climb.age + 1
    factors = extrapolate(now.factors, before, momentum(age))
    return replace(climb, proposal=replace(now, factors=factors), age=age)
