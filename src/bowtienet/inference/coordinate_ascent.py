"""Sections 3.1 and 3.2: coordinate ascent, a solver of the one loop.

A sweep reads the data once: for each block of rows the local step and its statistics, then the
global step from their sum, then EM. Each part can only raise the ELBO. Between sweeps the state is
moved on by momentum (see `acceleration`); a sweep from there that ends below the last accepted
bound is undone. Every so many sweeps units that do not matter may be taken out (see `pruning`): the
next sweep is then the first of a smaller network, whose bound is another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bowtienet._arrays import to_numpy
from bowtienet._validation import non_negative, whole
from bowtienet.data.rows import Rows
from bowtienet.inference.acceleration import extrapolate, momentum
from bowtienet.inference.convergence import Status, check
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import update_hyperparameters
from bowtienet.inference.execution import Mapper, workers
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.iterate import Callback, FitResult, Progress, iterate
from bowtienet.inference.pruning import Pruning, build_pruning, combine, shrink
from bowtienet.inference.row_providers import HeldRows, RowProvider
from bowtienet.inference.statistics import Statistics
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors, check_factors
from bowtienet.posterior.selection import check_rate, existing, keep_between, select

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
    prune_every: int | None = None,
    false_sign_rate: float = 0.01,
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
        Set the hyperparameter of the global shrinkage by EM after every sweep.
    accelerate : bool
        Use momentum between sweeps. Plain coordinate ascent otherwise.
    prune_every : int, optional
        After every so many sweeps take out the hidden units that no input reaches, or that reach no
        output, by weights whose sign is sure. Nothing is taken out that would leave a constant.
    false_sign_rate : float in (0, 1)
        How sure: estimated share of such weights that have the wrong sign.
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
        rows = HeldRows(rows, model.architecture, block_size)
    rows.check(model.architecture)
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
            prune_every=None if prune_every is None else whole(prune_every, "prune_every"),
            false_sign_rate=check_rate(false_sign_rate),
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
    """One pass over the data and the updates that follow from it, with the bound they reach."""
    statistics, memory = rows.local_pass(state.model, state.factors, state.memory, apply)
    factors = global_step(state.model, state.factors, statistics, repeats)
    model = update_hyperparameters(state.model, factors) if empirical_bayes else state.model
    state = State(model=model, factors=factors, memory=memory, statistics=statistics)
    return state, elbo(model, factors, statistics)


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
    """Where the history of the present network begins."""
    pruning: Pruning | None = None
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
    prune_every: int | None
    false_sign_rate: float
    apply: Mapper

    def init(self) -> Climb:
        """A forward pass."""
        factors = update_shared_covariance(self.factors)
        memory = self.rows.begin(self.model, factors, self.apply)
        start = State(model=self.model, factors=factors, memory=memory)
        return Climb(rows=self.rows, accepted=start, proposal=start)

    def step(self, climb: Climb, history: Sequence[float]) -> Climb:
        """One sweep: accept it and move on, or go back to the accepted state."""
        smaller = self._pruned(climb)
        if smaller is not None:
            return self._go_on_smaller(climb, *smaller, history)
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
            pruning=climb.pruning,
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
            pruning=climb.pruning,
            statistics=climb.accepted.statistics,
        )

    def _pruned(self, climb: Climb) -> tuple[State, RowProvider, Pruning] | None:
        """The accepted state without units that do not matter, if it is time and there are any."""
        if self.prune_every is None or not climb.n_sweeps or climb.n_sweeps % self.prune_every:
            return None
        state = climb.accepted
        selection = select(state.model, state.factors, self.false_sign_rate)
        if not selection.inputs.any() or all(unit.all() for unit in selection.units):
            return None
        selection = keep_between(selection, existing(state.model, state.factors))
        model, factors = shrink(state.model, state.factors, selection)
        if state.model.connections is None:
            model = replace(model, connections=None)
        rows, memory = climb.rows.shrunk(model, factors, state.memory, selection)
        pruning = build_pruning(state.model.architecture, selection)
        return State(model=model, factors=factors, memory=memory), rows, pruning

    def _go_on_smaller(
        self,
        climb: Climb,
        state: State,
        rows: RowProvider,
        pruning: Pruning,
        history: Sequence[float],
    ) -> Climb:
        """The first sweep without units that do not matter; they stay if it comes to nothing."""
        candidate, terms = self.sweep(state, rows=rows)
        value = float(to_numpy(terms.total))
        climb = replace(climb, n_sweeps=climb.n_sweeps + 1, rose=False)
        if not math.isfinite(value):
            return climb
        climb = replace(climb, rows=rows, pruning=combine(climb.pruning, pruning))
        return _begin_anew(climb, candidate, terms, history)


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
