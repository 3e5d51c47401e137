"""Sections 3.1 and 3.2: the one loop.

A sweep reads the data once: for each block of rows the local step and its statistics, then the
global step from their sum, then EM. Each part can only raise the ELBO. Between sweeps the state is
moved on by momentum (see `acceleration`); a sweep from there that ends below the last accepted
bound is undone. Every so many sweeps units that do not matter may be taken out (see `pruning`): the
next sweep is then the first of a smaller network, whose bound is another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import non_negative, whole
from bowtienet.data.rows import Rows
from bowtienet.inference.acceleration import extrapolate, momentum
from bowtienet.inference.convergence import Status, check
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import update_hyperparameters
from bowtienet.inference.execution import Mapper, usable_cores, workers
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.pruning import Pruning, build_pruning, combine, shrink
from bowtienet.inference.row_keepers import HeldRows, RowKeeper
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
    """The local factors, as the keeper of the rows holds them."""
    statistics: Statistics | None = None
    """Sums that the factors follow from; None before the first sweep."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A fit between two sweeps: from here it goes on as if it had never stopped."""

    accepted: State
    proposal: GlobalFactors | None
    """Where momentum has moved the accepted factors; None if it has not."""
    elbo_terms: ElboTerms | None
    elbo_history: tuple[float, ...]
    n_sweeps: int
    age: int
    """Sweeps since momentum began."""
    begin: int
    """Where the history of the present network begins."""
    pruning: Pruning | None


Keep = Callable[[Callable[[], Snapshot], bool], None]
"""Is told how to make a snapshot, and whether it is the last one; it may write it down."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback is told after every accepted sweep."""

    sweep: int
    elbo: float
    elbo_terms: ElboTerms
    model: BowTieModel
    factors: GlobalFactors
    pruning: Pruning | None
    n_visited: int
    """Rows visited so far, each as often as it was."""
    n_at_most: int
    """Rows that the fit will have visited if it takes all the sweeps it may."""
    statistics: Statistics | None


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """A fitted network and how its fit went."""

    model: BowTieModel
    factors: GlobalFactors
    elbo_terms: ElboTerms | None
    """The bound by block; None if it never was finite."""
    elbo_history: tuple[float, ...]
    """The bound after every accepted sweep; where units were taken out it may jump."""
    n_sweeps: int
    """All sweeps, also those that were undone."""
    status: Status
    pruning: Pruning | None = None
    """What is left of the network that the fit began with; None if it is all there."""
    statistics: Statistics | None = None
    """The sums that the factors follow from, blended in a stochastic fit: from these it can go on
    with more rows."""
    variance_ratio: np.ndarray | None = None
    """What rows that were held out ask the variance of predictions to be multiplied by, (D_out,);
    None for one."""


def fit(
    model: BowTieModel,
    rows: Rows | RowKeeper,
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
    callback: Callable[[Progress], bool | None] | None = None,
    keep: Keep | None = None,
    resume: Snapshot | None = None,
) -> FitResult:
    """Fit a network by coordinate ascent from given global factors.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature.
    rows : Rows or RowKeeper
        Training rows on a scale of order 1; see `build_rows` and `fit_scaling`. Or who holds them.
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
    keep : callable, optional
        Called before every sweep with a function that makes a `Snapshot` and False, after Ctrl-C
        with the last such function and True.
    resume : Snapshot, optional
        Go on from here, with the arguments of the fit that it is of: the end has the same bits.

    Returns
    -------
    FitResult
        The last accepted state, whatever ended the fit; Ctrl-C ends it after the first sweep.
    """
    check_factors(model.architecture, factors)
    max_iter, repeats = whole(max_iter, "max_iter"), whole(repeats, "repeats")
    tol = non_negative(tol, "tol")
    prune_every = None if prune_every is None else whole(prune_every, "prune_every")
    rate = check_rate(false_sign_rate)
    pruner = None if prune_every is None else _Pruner(prune_every, rate)
    n_threads = usable_cores() if n_threads is None else whole(n_threads, "n_threads")
    architecture = (model if resume is None else resume.accepted.model).architecture
    if isinstance(rows, Rows):
        rows = HeldRows(rows, architecture, block_size)
    rows.check(model.architecture)
    # A proposal of the momentum may overflow; a bound that is not finite is a status here.
    with workers(n_threads) as apply, np.errstate(all="ignore"):
        step = partial(sweep, repeats=repeats, empirical_bayes=empirical_bayes, apply=apply)
        loop = _Loop(step, rows, accelerate, tol, pruner, max_iter)
        loop.callback, loop.keep = callback, keep
        if resume is not None:
            return loop.run(*loop.restore(resume))
        factors = update_shared_covariance(factors)
        start = State(model=model, factors=factors, memory=rows.begin(model, factors, apply))
        return loop.run(start, start)


def sweep(
    state: State,
    rows: RowKeeper,
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


@dataclass(frozen=True)
class _Pruner:
    """Takes units out of a state; its keeper holds the rows for what is left."""

    every: int
    rate: float

    def __call__(self, state: State, rows: RowKeeper) -> tuple[State, RowKeeper, Pruning] | None:
        present = existing(state.model, state.factors)
        selection = select(state.model, state.factors, self.rate)
        if not selection.inputs.any() or all(unit.all() for unit in selection.units):
            return None
        selection = keep_between(selection, present)
        model, factors = shrink(state.model, state.factors, selection)
        if state.model.connections is None:
            model = replace(model, connections=None)
        rows, memory = rows.shrunk(model, factors, state.memory, selection)
        pruning = build_pruning(state.model.architecture, selection)
        return State(model=model, factors=factors, memory=memory), rows, pruning


class _Loop:
    """The mutable part of a fit: the last accepted state and the age of the momentum."""

    callback: Callable[[Progress], bool | None] | None = None
    keep: Keep | None = None

    def __init__(
        self,
        step: Callable[..., tuple[State, ElboTerms]],
        rows: RowKeeper,
        accelerate: bool,
        tol: float,
        pruner: _Pruner | None,
        max_iter: int,
    ) -> None:
        self.step = step
        self.rows = rows
        self.pruner = pruner
        self.pruning: Pruning | None = None
        self.accelerate = accelerate
        self.tol = tol
        self.max_iter = max_iter
        self.history: list[float] = []
        self.terms: ElboTerms | None = None
        self.age = 0
        self.n_sweeps = 0
        self.begin = 0  # where the history of the present network begins

    def restore(self, snapshot: Snapshot) -> tuple[State, State]:
        """Accepted state and proposal of a fit that was stopped."""
        self.history, self.terms = list(snapshot.elbo_history), snapshot.elbo_terms
        self.n_sweeps, self.age, self.begin = snapshot.n_sweeps, snapshot.age, snapshot.begin
        self.pruning = snapshot.pruning
        accepted, moved = snapshot.accepted, snapshot.proposal
        return accepted, accepted if moved is None else replace(accepted, factors=moved)

    def snapshot(self, proposal: State) -> Snapshot:
        return Snapshot(
            accepted=self.accepted,
            proposal=None if proposal is self.accepted else proposal.factors,
            elbo_terms=self.terms,
            elbo_history=tuple(self.history),
            n_sweeps=self.n_sweeps,
            age=self.age,
            begin=self.begin,
            pruning=self.pruning,
        )

    def run(self, accepted: State, proposal: State) -> FitResult:
        self.accepted = accepted
        status: Status | None = None
        snapshot: Snapshot | None = None
        try:
            while status is None and self.n_sweeps < self.max_iter:
                if self.keep is not None and self.history:
                    snapshot = self.snapshot(proposal)
                    self.keep(partial(_itself, snapshot), False)
                proposal, status = self._advance(proposal)
        except KeyboardInterrupt:
            if not self.history:
                raise
            self._keep_last(snapshot)
            status = Status.INTERRUPTED
        except Exception:
            # Rows may be out of reach for a while: what is done is kept.
            self._keep_last(snapshot)
            raise
        return FitResult(
            model=self.accepted.model,
            factors=self.accepted.factors,
            elbo_terms=self.terms,
            elbo_history=tuple(self.history),
            n_sweeps=self.n_sweeps,
            status=status or Status.SWEEP_LIMIT,
            pruning=self.pruning,
            statistics=self.accepted.statistics,
        )

    def _keep_last(self, snapshot: Snapshot | None) -> None:
        if self.keep is not None and snapshot is not None:
            self.keep(partial(_itself, snapshot), True)

    def _advance(self, proposal: State) -> tuple[State, Status | None]:
        """One sweep from `proposal`: accept it and move on, or go back to the accepted state."""
        if self.pruner is not None and self.n_sweeps and self.n_sweeps % self.pruner.every == 0:
            smaller = self.pruner(self.accepted, self.rows)
            if smaller is not None:
                return self._go_on_smaller(proposal, *smaller)
        candidate, terms = self.step(proposal, rows=self.rows)
        self.n_sweeps += 1
        value = float(to_numpy(terms.total))
        if self.rows.rebuilt and math.isfinite(value):
            # Gates from a forward pass are another place to climb from, not a failed sweep.
            return self._begin_anew(candidate, terms, value)
        moved = proposal is not self.accepted
        if moved and not value >= self.history[-1]:
            self.age = 0
            return self.accepted, None
        status = check([*self.history[self.begin :], value], self.tol)
        if status in (Status.NON_FINITE, Status.DECREASED):
            return proposal, status
        before, self.accepted, self.terms = self.accepted, candidate, terms
        self.history.append(value)
        if self._stopped_by_callback(value):
            return candidate, Status.INTERRUPTED
        if not self.accelerate or len(self.history) < self.begin + 2:
            return candidate, status
        self.age += 1
        factors = extrapolate(candidate.factors, before.factors, momentum(self.age))
        return replace(candidate, factors=factors), status

    def _go_on_smaller(
        self, proposal: State, state: State, rows: RowKeeper, pruning: Pruning
    ) -> tuple[State, Status | None]:
        """The first sweep without units that do not matter; they stay if it comes to nothing."""
        candidate, terms = self.step(state, rows=rows)
        self.n_sweeps += 1
        value = float(to_numpy(terms.total))
        if not math.isfinite(value):
            return proposal, None
        self.rows = rows
        self.pruning = combine(self.pruning, pruning)
        return self._begin_anew(candidate, terms, value)

    def _begin_anew(
        self, candidate: State, terms: ElboTerms, value: float
    ) -> tuple[State, Status | None]:
        """Accept a state whose bound cannot be compared with those before."""
        self.accepted, self.terms = candidate, terms
        self.begin, self.age = len(self.history), 0
        self.history.append(value)
        return candidate, Status.INTERRUPTED if self._stopped_by_callback(value) else None

    def _stopped_by_callback(self, value: float) -> bool:
        if self.callback is None or self.terms is None:
            return False
        progress = Progress(
            sweep=self.n_sweeps,
            elbo=value,
            elbo_terms=self.terms,
            model=self.accepted.model,
            factors=self.accepted.factors,
            pruning=self.pruning,
            n_visited=self.n_sweeps * self.rows.n_rows,
            n_at_most=self.max_iter * self.rows.n_rows,
            statistics=self.accepted.statistics,
        )
        return bool(self.callback(progress))


def _itself(snapshot: Snapshot) -> Snapshot:
    return snapshot
