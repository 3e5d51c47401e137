"""Sections 3.1 and 3.2: coordinate ascent of M networks, the only loop of q.

A sweep reads the data once: for each block of rows the local step and its statistics, then the
global step from their sum, then EM. Each part can only raise the bound.

An activation is tied to gate x preactivation with the hidden noise as its only slack, and the
Polya-Gamma bound holds preactivations near their present size, so a plain sweep moves hidden
weights by little, always in much the same direction. Going on in that direction,

    m      <- m + k/(k+2) (m - m_before)
    beta   <- beta (beta / beta_before)^{k/(k+2)}

for the means of all weights and the scales of all noise variances, k sweeps after the last start,
is Nesterov's scheme. The point it reaches is a member of the variational family like any other, so
the next sweep from there has an exact bound: if that is below the last accepted one, the network
goes back to its accepted state, and k starts again at 0.

Nothing of size rows x width x width is ever held: squares of widths exist for one block at a time,
and between sweeps a block keeps only its gate probabilities (and tilts from the second hidden
layer on).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import Array, map_arrays, one_blas_thread, pack_outer, packed_size, with_ones
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import separate_hyperparameters, update_hyperparameters
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.local_step import for_rows, initialize_local, local_memory, local_step
from bowtienet.inference.statistics import Statistics, add, block_statistics
from bowtienet.model.model import BowTieModel, Rows, split
from bowtienet.posterior.factors import LocalMemory, Posterior, n_networks

BLOCK_BYTES = 4_000_000
"""Largest array of a block: large enough for fast products, small enough for the cache."""
KEPT_BYTES = 256_000_000
"""Second moments of the inputs are kept between sweeps if all of them take no more than this."""
ROUNDING = 1e-9
"""A fall of the bound by this relative amount is rounding, not a decrease."""
WINDOW = 100
"""Sweeps whose gain says how much is still to come; see `is_converged`."""

Block: TypeAlias = tuple[Rows, Array | None]
"""Rows that are worked on together, with the packed second moments of (1, x) if they are kept."""
Mapper: TypeAlias = Callable[..., Iterable[Any]]
"""Like the built-in `map`: applies a function to items, answers in their order."""


class Status(StrEnum):
    """Why the ascent of a network ended."""

    CONVERGED = "converged"
    """What the bound may still gain is below the tolerance."""
    ITERATION_LIMIT = "iteration limit"
    """The bound was still rising when max_iter was reached."""
    NON_FINITE = "non-finite"
    """A plain sweep overflowed: scale the data, or look for values far out of line."""
    DECREASED = "decreased"
    """A plain sweep lowered the bound by more than rounding: noise or temperature is so small that
    differences of sums lose their digits."""
    INTERRUPTED = "interrupted"
    """Ctrl-C, or a callback that answered true."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """M networks after a pass over the rows."""

    model: BowTieModel
    posterior: Posterior
    memory: Any
    """What every block of rows remembers, where its `RowProvider` keeps it."""
    elbo_terms: ElboTerms


@dataclass(frozen=True, kw_only=True)
class Ascent:
    """M fitted networks and how their fits went: the last accepted state of each."""

    model: BowTieModel
    posterior: Posterior
    elbo_terms: ElboTerms
    """NaN for networks whose bound never was finite."""
    elbo_history: tuple[tuple[float, ...], ...]
    """The bound of each network after every accepted sweep."""
    n_sweeps: tuple[int, ...]
    """All sweeps of each network, also those that were undone."""
    status: tuple[Status, ...]


class RowProvider:
    """Who has the rows of a fit and the memory of their blocks; `cluster` has another.

    This one has blocks that are here, or are read again in every pass; their memory is here.
    """

    def __init__(self, blocks: Iterable[Block], apply: Mapper = map) -> None:
        self._blocks, self._apply = blocks, apply

    def initialize(self, model: BowTieModel, posterior: Posterior) -> Any:
        """Memory from a forward pass."""
        return tuple(
            initialize_local(model, posterior, rows.inputs, rows.targets)
            for rows, _ in self._blocks
        )

    def local_pass(
        self, model: BowTieModel, posterior: Posterior, memory: Any
    ) -> tuple[Statistics, Any]:
        """Sums over all rows with their local factors updated, and the memory of these."""
        step = partial(block_pass, model, for_rows(posterior))
        # Sums are taken in the order of the blocks, each as soon as it is there.
        pairs, renewed = self._apply(step, self._blocks, memory), []
        total = None
        for sums, kept in pairs:
            total = sums if total is None else add(total, sums)
            renewed.append(kept)
        assert total is not None
        return total, tuple(renewed)

    def choose(self, choose: Callable[[Array, Array], Array], first: Any, second: Any) -> Any:
        """`choose` of all arrays of two memories."""
        return map_arrays(choose, first, second)


Callback: TypeAlias = Callable[[int, NDArray[np.float64]], bool | None]
"""Is told the number of each sweep and the bounds of the networks; a true answer ends the fit."""


def sweep(
    model: BowTieModel,
    posterior: Posterior,
    provider: RowProvider,
    memory: Any,
    *,
    rounds: int = 3,
) -> Sweep:
    """One pass over the rows: local step and sums by block, then W, eta², tau, psi, EM, bound.

    It raises the bound of each network or leaves it. The bound is that of the outcome's parameters
    during the pass; EM moves them after it.
    """
    statistics, memory = provider.local_pass(model, posterior, memory)
    posterior = global_step(model, posterior, statistics, rounds)
    model = update_hyperparameters(model, posterior)
    terms = elbo(model, posterior, statistics)
    outcome = model.outcome.renewed(statistics.parameter, statistics.count)
    model = replace(model, outcome=outcome)
    return Sweep(model=model, posterior=posterior, memory=memory, elbo_terms=terms)


def block_pass(
    model: BowTieModel, posterior: Posterior, block: Block, memory: LocalMemory
) -> tuple[Statistics, LocalMemory]:
    """Local step and statistics of one block."""
    rows, second = block
    local, moments = local_step(
        model, posterior, rows.inputs, rows.targets, memory, input_second=second
    )
    statistics = block_statistics(local, moments, rows.targets, rows.weights)
    return statistics, local_memory(local)


def ascend(
    model: BowTieModel,
    posterior: Posterior,
    rows: Rows | RowProvider,
    *,
    max_iter: int = 500,
    tol: float = 1e-4,
    accelerate: bool = True,
    callback: Callback | None = None,
) -> Ascent:
    """Sweeps with safeguarded momentum until every network has a status.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature of all networks.
    posterior : Posterior
        Where the networks start.
    rows : Rows or RowProvider
        Training rows on a scale of order 1.
    max_iter : int
        Most passes over the rows.
    tol : float
        A network has converged when its bound may still gain less than this part of its size.
    accelerate : bool
        Use momentum between sweeps, and three rounds of global updates within one, which do not
        read the data. Plain coordinate ascent otherwise.
    callback : callable, optional
        Called after every sweep; a true answer ends the fit.

    Returns
    -------
    Ascent
        Whatever ended the fit. Ctrl-C ends it with the last accepted state, and is raised where
        no sweep is complete.
    """
    count = n_networks(posterior)
    blocks = build_blocks(rows, model, count) if isinstance(rows, Rows) else ()
    by_row = model.outcome.by_row
    age, bounds = np.zeros(count), np.full(count, -np.inf)
    history: list[list[float]] = [[] for _ in range(count)]
    status: list[Status | None] = [None] * count
    ended = np.zeros(count, dtype=int)
    number = 0
    with workers(len(blocks) or 1) as apply:
        provider = RowProvider(blocks, apply) if isinstance(rows, Rows) else rows
        posterior = update_shared_covariance(posterior, by_row=by_row)
        memory = provider.initialize(model, posterior)
        model = separate_hyperparameters(model, count)
        accepted = Sweep(
            model=model, posterior=posterior, memory=memory, elbo_terms=unknown_bound(count)
        )
        proposal = accepted
        try:
            while None in status:
                candidate = _tried(proposal, provider, 3 if accelerate else 1)
                values, moved = candidate.elbo_terms.total, age > 0.0
                # A plain sweep may fall by rounding; a step by momentum may not.
                slack = np.where(moved, 0.0, ROUNDING * np.maximum(np.abs(bounds), 1.0))
                going = np.array([each is None for each in status])
                risen = going & np.isfinite(values) & ~(values < bounds - slack)
                before, accepted = accepted, _chosen(risen, candidate, accepted, provider)
                bounds = np.where(risen, values, bounds)
                number += 1
                for m in np.flatnonzero(going):
                    if risen[m]:
                        history[m].append(float(values[m]))
                    stopped = risen[m] and is_converged(history[m], tol)
                    status[m] = _status(values[m], risen[m], moved[m], stopped, number, max_iter)
                    ended[m] = number
                climbs = risen & [each is None for each in status] & accelerate & (number > 1)
                age = np.where(climbs, age + 1.0, 0.0)
                proposal = accepted
                if age.any():
                    ahead = _extrapolated(accepted.posterior, before.posterior, age / (age + 2.0))
                    ahead = update_shared_covariance(ahead, by_row=by_row)
                    proposal = replace(accepted, posterior=ahead)
                if callback is not None and callback(number, bounds.copy()):
                    break
        except KeyboardInterrupt:
            if not any(history):
                raise
    return Ascent(
        model=accepted.model,
        posterior=accepted.posterior,
        elbo_terms=accepted.elbo_terms,
        elbo_history=tuple(map(tuple, history)),
        n_sweeps=tuple(map(int, ended)),
        status=tuple(each or Status.INTERRUPTED for each in status),
    )


def _tried(state: Sweep, provider: RowProvider, rounds: int) -> Sweep:
    """A sweep; one that breaks down leaves the state with a bound that is not finite."""
    try:
        return sweep(state.model, state.posterior, provider, state.memory, rounds=rounds)
    except (ArithmeticError, np.linalg.LinAlgError):
        return replace(state, elbo_terms=unknown_bound(n_networks(state.posterior)))


def _status(
    value: float, risen: bool, moved: bool, stopped: bool, number: int, max_iter: int
) -> Status | None:
    """Why a network ends after this sweep; None to go on."""
    if not risen and not moved:
        return Status.DECREASED if np.isfinite(value) else Status.NON_FINITE
    if stopped:
        return Status.CONVERGED
    return Status.ITERATION_LIMIT if number >= max_iter else None


def is_converged(history: Sequence[float], tol: float) -> bool:
    """Whether the bound may still gain less than `tol` of its size.

    With gains g_1 and g_2 over the last two windows of sweeps, a bound that climbs like a geometric
    series has g_2²/(g_1 - g_2) to come. A plain sweep may gain next to nothing hundreds of nats
    below the optimum; gains that do not fade say so.
    """
    if len(history) <= 2 * WINDOW:
        return False
    before, middle, now = history[-1 - 2 * WINDOW], history[-1 - WINDOW], history[-1]
    first, second = middle - before, now - middle
    if second <= ROUNDING * abs(now):
        return True
    to_come = second**2 / (first - second) if first > second else np.inf
    return second + to_come < tol * max(abs(now), 1.0)


def build_blocks(rows: Rows, model: BowTieModel, count: int = 1) -> tuple[Block, ...]:
    """Consecutive blocks of the rows, small enough for `count` networks."""
    numbers = len(rows.inputs) * packed_size(rows.inputs.shape[1] + 1)
    keep = model.architecture.n_hidden > 0 and 8 * numbers <= KEPT_BYTES
    return tuple(
        (part, pack_outer(with_ones(part.inputs)) if keep else None)
        for part in split(rows, block_rows(model, count))
    )


def block_rows(model: BowTieModel, count: int = 1) -> int:
    """Rows of a block of `count` networks, such that no array has more than `BLOCK_BYTES`."""
    widths = model.architecture.widths
    sizes = [packed_size(widths[0] + 1), 4 * count * max(widths)]
    sizes += [count * max(pair) ** 2 for pair in pairwise(widths[1:-1])]
    if model.outcome.by_row and len(widths) > 2:
        sizes += [count * widths[-1] * (widths[-2] + 1)]
        sizes += [count * widths[-2] ** 2] * (widths[-1] > 1)
    return max(16, BLOCK_BYTES // (8 * max(sizes)))


@contextmanager
def workers(n_tasks: int) -> Iterator[Mapper]:
    """A `Mapper` that works on as many tasks at a time as there are cores.

    The linear algebra library is held to one thread for each: two levels of threads would fight
    for the same cores. Floating-point warnings are off: what overflows has a bound that is not
    finite, which becomes a status.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with one_blas_thread(), np.errstate(all="ignore"):
        if n_tasks == 1 or cores == 1:
            yield map
            return
        with ThreadPoolExecutor(cores, initializer=partial(np.seterr, all="ignore")) as pool:
            yield pool.map


def _extrapolated(now: Posterior, then: Posterior, amount: NDArray[np.float64]) -> Posterior:
    """Networks moved on by `amount` (M,) times their last move; 0 where they stay."""
    layers = []
    for layer, old in zip(now.layers, then.layers, strict=True):
        mean, scale = layer.weights.mean, layer.noise_variance.scale
        mean = mean + amount[:, None, None] * (mean - old.weights.mean)
        growth = amount[:, None] * (np.log(scale) - np.log(old.noise_variance.scale))
        weights = replace(layer.weights, mean=mean)
        noise = replace(layer.noise_variance, scale=scale * np.exp(growth))
        layers.append(replace(layer, weights=weights, noise_variance=noise))
    return replace(now, layers=tuple(layers))


def taken_model(model: BowTieModel, index: Sequence[int]) -> BowTieModel:
    """The model of some of M networks: hyperparameters that EM moved are arrays (M,)."""
    return _with_hyperparameters(model, operator.itemgetter(list(index)))


def _with_hyperparameters(
    model: BowTieModel, function: Callable[..., Any], *others: BowTieModel
) -> BowTieModel:
    """`function` of the parameters that EM moves, those of the other models included."""
    shared = [m.global_shrinkage for m in (model, *others)]
    return replace(
        model,
        global_shrinkage=map_arrays(function, *shared),
        outcome=map_arrays(function, *(m.outcome for m in (model, *others))),
    )


def _chosen(mask: NDArray[np.bool_], first: Sweep, second: Sweep, provider: RowProvider) -> Sweep:
    """The networks of the first where the mask (M,) says so, those of the second elsewhere."""
    if mask.all():
        return first
    choose = partial(_where, mask)
    return Sweep(
        model=_with_hyperparameters(first.model, choose, second.model),
        posterior=map_arrays(choose, first.posterior, second.posterior),
        memory=provider.choose(choose, first.memory, second.memory),
        elbo_terms=map_arrays(choose, first.elbo_terms, second.elbo_terms),
    )


def _where(mask: NDArray[np.bool_], x: Array, y: Array) -> Array:
    """Networks of x where the mask (M,) says so, those of y elsewhere."""
    return np.where(mask.reshape(-1, *[1] * (np.ndim(x) - 1)), x, y)


def unknown_bound(count: int) -> ElboTerms:
    """The bound of networks that have none yet."""
    nothing = np.full(count, np.nan)
    return ElboTerms(**dict.fromkeys(ElboTerms.__dataclass_fields__, nothing))
