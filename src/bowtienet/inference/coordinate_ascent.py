"""Sections 3.1 and 3.2: the one loop.

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

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet._validation import non_negative, whole
from bowtienet.data.rows import Rows, split
from bowtienet.inference.acceleration import extrapolate, momentum
from bowtienet.inference.convergence import Status, check
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import update_hyperparameters
from bowtienet.inference.execution import (
    Mapper,
    block_rows,
    initialize_memory,
    local_pass,
    usable_cores,
    workers,
)
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.pruning import Pruning, build_pruning, combine, shrink, shrink_memory
from bowtienet.model.priors import BowTieModel, check_rows
from bowtienet.posterior.factors import GlobalFactors, LocalMemory, check_factors
from bowtienet.posterior.selection import check_rate, existing, keep_between, select

DEFAULT_REPEATS = 3
"""Global updates within a sweep; docs/convergence.md has the measurements behind it."""


@dataclass(frozen=True, kw_only=True)
class State:
    """All that a sweep needs: the model (EM moves its prior), global factors, local memory."""

    model: BowTieModel
    factors: GlobalFactors
    memory: Sequence[LocalMemory]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback is told after every accepted sweep."""

    sweep: int
    elbo: float
    elbo_terms: ElboTerms
    model: BowTieModel
    factors: GlobalFactors
    pruning: Pruning | None


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


def fit(
    model: BowTieModel,
    rows: Rows,
    factors: GlobalFactors,
    *,
    max_sweeps: int = 500,
    tolerance: float = 1e-5,
    repeats: int = DEFAULT_REPEATS,
    empirical_bayes: bool = True,
    accelerate: bool = True,
    prune_every: int | None = None,
    false_discovery_rate: float = 0.01,
    block_size: int | None = None,
    n_threads: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
) -> FitResult:
    """Fit a network by coordinate ascent from given global factors.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature.
    rows : Rows
        Training rows on a scale of order 1; see `build_rows` and `fit_scaling`.
    factors : GlobalFactors
        Where to start; see `initialize`.
    max_sweeps : int
        Most passes over the data.
    tolerance : float
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
    false_discovery_rate : float in (0, 1)
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
    check_rows(model.architecture, rows)
    check_factors(model.architecture, factors)
    max_sweeps, repeats = whole(max_sweeps, "max_sweeps"), whole(repeats, "repeats")
    tolerance = non_negative(tolerance, "tolerance")
    prune_every = None if prune_every is None else whole(prune_every, "prune_every")
    rate = check_rate(false_discovery_rate)
    n_threads = usable_cores() if n_threads is None else whole(n_threads, "n_threads")
    blocks = split(rows, block_rows(model.architecture, block_size))
    # A proposal of the momentum may overflow; a bound that is not finite is a status here.
    with workers(min(n_threads, len(blocks))) as apply, np.errstate(all="ignore"):
        step = partial(sweep, repeats=repeats, empirical_bayes=empirical_bayes, apply=apply)
        factors = update_shared_covariance(factors)
        memory = initialize_memory(model, factors, blocks, apply)
        pruner = None if prune_every is None else _Pruner(rows, block_size, prune_every, rate)
        loop = _Loop(step, blocks, accelerate, tolerance, callback, pruner)
        return loop.run(State(model=model, factors=factors, memory=memory), max_sweeps)


def sweep(
    state: State,
    blocks: Sequence[Rows],
    *,
    repeats: int,
    empirical_bayes: bool,
    apply: Mapper = map,
) -> tuple[State, ElboTerms]:
    """One pass over the data and the updates that follow from it, with the bound they reach."""
    statistics, memory = local_pass(state.model, state.factors, blocks, state.memory, apply)
    factors = global_step(state.model, state.factors, statistics, repeats)
    model = update_hyperparameters(state.model, factors) if empirical_bayes else state.model
    return State(model=model, factors=factors, memory=memory), elbo(model, factors, statistics)


@dataclass(frozen=True)
class _Pruner:
    """Takes units out of a state, and cuts the rows into blocks that suit what is left."""

    rows: Rows
    block_size: int | None
    every: int
    rate: float

    def __call__(self, state: State) -> tuple[State, list[Rows], Pruning] | None:
        present = existing(state.model, state.factors)
        selection = select(state.model, state.factors, self.rate)
        if not selection.inputs.any() or all(unit.all() for unit in selection.units):
            return None
        selection = keep_between(selection, present)
        model, factors = shrink(state.model, state.factors, selection)
        if state.model.connections is None:
            model = replace(model, connections=None)
        blocks = split(self.rows, block_rows(model.architecture, self.block_size))
        sizes = [block.inputs.shape[0] for block in blocks]
        memory = shrink_memory(state.memory, selection, sizes)
        pruning = build_pruning(state.model.architecture, selection)
        return State(model=model, factors=factors, memory=memory), blocks, pruning


class _Loop:
    """The mutable part of a fit: the last accepted state and the age of the momentum."""

    def __init__(
        self,
        step: Callable[..., tuple[State, ElboTerms]],
        blocks: Sequence[Rows],
        accelerate: bool,
        tolerance: float,
        callback: Callable[[Progress], bool | None] | None,
        pruner: _Pruner | None,
    ) -> None:
        self.step = step
        self.blocks = blocks
        self.pruner = pruner
        self.pruning: Pruning | None = None
        self.accelerate = accelerate
        self.tolerance = tolerance
        self.callback = callback
        self.history: list[float] = []
        self.terms: ElboTerms | None = None
        self.age = 0
        self.n_sweeps = 0
        self.begin = 0  # where the history of the present network begins

    def run(self, start: State, max_sweeps: int) -> FitResult:
        self.accepted = proposal = start
        status: Status | None = None
        try:
            while status is None and self.n_sweeps < max_sweeps:
                proposal, status = self._advance(proposal)
        except KeyboardInterrupt:
            if not self.history:
                raise
            status = Status.INTERRUPTED
        return FitResult(
            model=self.accepted.model,
            factors=self.accepted.factors,
            elbo_terms=self.terms,
            elbo_history=tuple(self.history),
            n_sweeps=self.n_sweeps,
            status=status or Status.SWEEP_LIMIT,
            pruning=self.pruning,
        )

    def _advance(self, proposal: State) -> tuple[State, Status | None]:
        """One sweep from `proposal`: accept it and move on, or go back to the accepted state."""
        if self.pruner is not None and self.n_sweeps and self.n_sweeps % self.pruner.every == 0:
            smaller = self.pruner(self.accepted)
            if smaller is not None:
                return self._go_on_smaller(proposal, *smaller)
        candidate, terms = self.step(proposal, blocks=self.blocks)
        self.n_sweeps += 1
        value = float(to_numpy(terms.total))
        moved = proposal is not self.accepted
        if moved and not value >= self.history[-1]:
            self.age = 0
            return self.accepted, None
        status = check([*self.history[self.begin :], value], self.tolerance)
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
        self, proposal: State, state: State, blocks: Sequence[Rows], pruning: Pruning
    ) -> tuple[State, Status | None]:
        """The first sweep without units that do not matter; they stay if it comes to nothing."""
        candidate, terms = self.step(state, blocks=blocks)
        self.n_sweeps += 1
        value = float(to_numpy(terms.total))
        if not math.isfinite(value):
            return proposal, None
        self.accepted, self.terms, self.blocks = candidate, terms, blocks
        self.pruning = combine(self.pruning, pruning)
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
        )
        return bool(self.callback(progress))
