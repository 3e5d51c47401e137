"""Section 3.3: stochastic variational inference of M networks on minibatches.

The natural parameters of every global factor are linear in the statistics, so blending

    statistics <- (1 - l_t) statistics + l_t (N / |S|) Σ_{n in S},   l_t = (t + delay)^(-k),

and updating the factors from them is a step along the natural gradient: the precision of the
weights, their product with the mean, and the scale of the noise are blended (the paper blends the
inverse of the latter, docs/theory/errata, 6), while tau, psi and S_L have their exact updates. What
is blended holds no part of a prior and no noise precision, so those are never out of date.

The local factors of a batch start with a forward pass and are iterated until they settle. The bound
of a batch is a noisy one of all rows; its means over windows of steps say when to stop. With all
rows in the batch, one local step and l_t = 1 a step is a sweep of coordinate ascent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import map_arrays, slices
from bowtienet.inference.ascend import (
    Ascent,
    Callback,
    Mapper,
    Status,
    block_rows,
    unknown_bound,
    workers,
)
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import separate_hyperparameters, update_hyperparameters
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.local_step import FactorsForRows, for_rows, settle
from bowtienet.inference.statistics import Statistics, add, block_statistics
from bowtienet.model.model import BowTieModel, Rows, split, take_rows
from bowtienet.posterior.factors import Posterior, n_networks

WINDOW = 40
"""Fewest steps whose bounds are averaged; half of the rows are visited in a window."""

Batches: TypeAlias = Callable[[int], Iterable[Rows]]
"""The batches of a pass, given its number: all rows once, each pass in another order."""


@dataclass(frozen=True, kw_only=True)
class StochasticState:
    """M networks between two steps."""

    model: BowTieModel
    posterior: Posterior
    statistics: Statistics | None = None
    """Blended; None before the first step."""
    step: int = 0


def begin(model: BowTieModel, posterior: Posterior) -> StochasticState:
    """Where stochastic steps start."""
    return StochasticState(
        model=separate_hyperparameters(model, n_networks(posterior)),
        posterior=update_shared_covariance(posterior, by_row=model.outcome.by_row),
    )


def step_size(step: float, forgetting_rate: float, step_delay: float) -> float:
    """l_t = (t + delay)^(-k), at most 1, for a step counted from 0."""
    return float(min(1.0, max(step + step_delay, 1e-300) ** -forgetting_rate))


def stochastic_step(
    state: StochasticState,
    batch: Rows,
    n_rows: float,
    amount: float,
    *,
    tolerance: float = 1e-3,
    most_steps: int = 20,
    apply: Mapper = map,
) -> tuple[StochasticState, ElboTerms]:
    """Local factors of a batch, blended statistics, and the updates that follow from them.

    Local factors are settled when no gate probability moves by more than `tolerance`.
    """
    model = state.model
    settled = partial(_settled, model, for_rows(state.posterior), tolerance, most_steps)
    blocks = split(batch, block_rows(model, n_networks(state.posterior)))
    sums: Statistics = reduce(add, apply(settled, blocks))
    scale = n_rows / sums.count
    sums = blended = map_arrays(lambda x: scale * x, sums)
    if state.statistics is not None:
        blended = map_arrays(
            lambda old, new: (1.0 - amount) * old + amount * new, state.statistics, sums
        )
    posterior = global_step(model, state.posterior, blended)
    model = update_hyperparameters(model, posterior)
    terms = elbo(model, posterior, sums)
    outcome = model.outcome.renewed(blended.parameter, blended.count)
    model, step = replace(model, outcome=outcome), state.step + 1
    after = StochasticState(model=model, posterior=posterior, statistics=blended, step=step)
    return after, terms


def ascend_stochastic(
    state: StochasticState,
    batches: Batches,
    n_rows: float,
    *,
    max_iter: int = 20,
    tol: float = 1e-4,
    forgetting_rate: float | str = "adaptive",
    step_delay: float = 1.0,
    callback: Callback | None = None,
) -> tuple[Ascent, StochasticState]:
    """Steps on minibatches until the bound stops rising.

    Parameters
    ----------
    state : StochasticState
        See `begin`.
    batches : callable
        From the number of a pass over the rows to its batches; see `minibatches`.
    n_rows : float
        Sum of the weights of all rows.
    max_iter : int
        Most passes over the rows.
    tol : float
        The bound has stopped rising when its mean over a window of steps has gained less than this
        part of it, or less than its own noise, three times in a row.
    forgetting_rate : float in (0.5, 1] or "adaptive"
        k of the paper's steps l_t = (t + delay)^(-k). "adaptive" takes whole steps, l_t = 1, until
        the bound stops rising, and only then steps that shrink, k = 0.7: they average out the noise
        of the batches.
    step_delay : float
        Larger makes the first steps smaller.
    callback : callable, optional
        Called after every step; a true answer ends the fit.

    Returns
    -------
    Ascent, StochasticState
        The history holds the noisy bound of every step. Ctrl-C keeps the last complete step, and is
        raised before the first.
    """
    history: list[NDArray[np.float64]] = []
    status, terms, heaviest, still = Status.ITERATION_LIMIT, None, 0.0, 0
    turned = None if forgetting_rate == "adaptive" else 0
    rate = 0.7 if isinstance(forgetting_rate, str) else forgetting_rate
    start = state.step
    with workers(2) as apply:
        try:
            for batch in (batch for number in range(max_iter) for batch in batches(number)):
                weight = float(batch.weights.sum())
                heaviest = max(heaviest, weight)
                amount = 1.0 if turned is None else step_size(state.step - turned, rate, step_delay)
                # The last batch of a pass may be small, and its sums the noisier for it.
                after, new_terms = stochastic_step(
                    state, batch, n_rows, amount * weight / heaviest, apply=apply
                )
                bound = np.asarray(new_terms.total)
                if not np.all(np.isfinite(bound)):
                    status = Status.NON_FINITE
                    break
                state, terms = after, new_terms
                history.append(bound)
                window = max(WINDOW, round(0.5 * n_rows / heaviest))
                still = _count_still(still, history, window, tol)
                if callback is not None and callback(state.step - start, bound):
                    status = Status.INTERRUPTED
                    break
                if still == 3 and turned is not None:
                    status = Status.CONVERGED
                    break
                if still == 3:
                    turned, still = state.step, 0
        except KeyboardInterrupt:
            if not history:
                raise
            status = Status.INTERRUPTED
    count = n_networks(state.posterior)
    ascent = Ascent(
        model=state.model,
        posterior=state.posterior,
        elbo_terms=terms or unknown_bound(count),
        elbo_history=tuple(tuple(float(b[m]) for b in history) for m in range(count)),
        n_sweeps=(state.step - start,) * count,
        status=(status,) * count,
    )
    return ascent, state


def minibatches(rows: Rows, batch_size: int, seed: int) -> Batches:
    """Batches of rows in memory, in another random order every pass; the last may be smaller."""

    def one_pass(number: int) -> Iterator[Rows]:
        order = np.random.default_rng((seed, number)).permutation(len(rows.inputs))
        for part in slices(len(order), batch_size):
            yield take_rows(rows, order[part])

    return one_pass


def _settled(
    model: BowTieModel, posterior: FactorsForRows, tolerance: float, most_steps: int, block: Rows
) -> Statistics:
    local, moments = settle(model, posterior, block.inputs, block.targets, tolerance, most_steps)
    return block_statistics(local, moments, block.targets, block.weights)


def _count_still(still: int, history: list[NDArray[np.float64]], window: int, tol: float) -> int:
    """Windows in a row over which the mean of the noisy bound did not rise.

    Each is compared with the last one that was a gain: slow gains add up.
    """
    if len(history) % window or len(history) < (still + 2) * window:
        return still
    recent = np.mean(history[-(still + 2) * window :], axis=1)
    before, now = recent[:window], recent[-window:]
    noise = np.sqrt((before.var() + now.var()) / window)
    gain = now.mean() - before.mean()
    return still + 1 if gain < max(tol * abs(before.mean()), noise) else 0
