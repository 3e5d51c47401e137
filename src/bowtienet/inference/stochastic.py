"""Section 3.3: stochastic variational inference.

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

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bowtienet._arrays import map_arrays, slices, to_numpy
from bowtienet._validation import non_negative, number, positive, whole
from bowtienet.data.rows import Rows, split, take_rows
from bowtienet.inference.acceleration import extrapolate
from bowtienet.inference.convergence import CONSECUTIVE, Status
from bowtienet.inference.coordinate_ascent import FitResult, Progress
from bowtienet.inference.elbo import ElboTerms, elbo
from bowtienet.inference.empirical_bayes import update_hyperparameters
from bowtienet.inference.execution import (
    Mapper,
    block_rows,
    settled_pass,
    usable_cores,
    workers,
)
from bowtienet.inference.global_step import global_step, update_shared_covariance
from bowtienet.inference.statistics import Statistics
from bowtienet.model.priors import BowTieModel
from bowtienet.posterior.factors import GlobalFactors, check_factors

FEWEST_STEPS = 40
"""Of a window over which the noisy bound is averaged: so many steps at least, and otherwise"""
WINDOW_ROWS = 250_000
"""so many rows, or half of all if they are fewer."""
RISING = 5 / 6
"""Most of the rows a fit may visit before its steps shrink."""
FADING = 1 / 5
"""Steps that shrink, as a part of those before."""


@dataclass(frozen=True, kw_only=True)
class StochasticState:
    """All that a step needs."""

    model: BowTieModel
    factors: GlobalFactors
    statistics: Statistics | None
    """Blended; None before the first step."""
    step: int
    ahead: GlobalFactors | None = None
    """Where momentum has moved the factors, and the next batch is looked at; None: at them."""


@dataclass(frozen=True, kw_only=True)
class StochasticSnapshot:
    """A fit between two steps: from here it goes on as if it had never stopped."""

    state: StochasticState
    elbo_terms: ElboTerms
    elbo_history: tuple[float, ...]
    """The noisy bound of every step."""
    still: int
    """Windows in a row over which the bound did not rise."""
    epoch: int
    n_batches: int
    """Batches of the epoch that are done."""
    n_visited: int
    visited_weight: float
    full_batch: float
    """Weight of the heaviest batch so far."""
    turned: int | None
    """The step from which on steps shrink; None before it."""


Keep = Callable[[Callable[[], StochasticSnapshot], bool], None]
"""Is told how to make a snapshot, and whether it is the last one; it may write it down."""


def step_size(step: int, forgetting_rate: float, step_delay: float) -> float:
    """l_t = (t + delay)^(-k), at most 1, for a step counted from 0."""
    return float(min(1.0, max(step + step_delay, 1e-300) ** -forgetting_rate))


def stochastic_step(
    state: StochasticState,
    batch: Rows,
    n_rows: float,
    *,
    amount: float,
    momentum: float = 0.0,
    repeats: int = 3,
    tolerance: float = 1e-3,
    max_iterations: int = 20,
    block_size: int | None = None,
    apply: Mapper = map,
) -> tuple[StochasticState, ElboTerms]:
    """Local factors of a batch, blended statistics, and the updates that follow from them."""
    blocks = split(batch, block_rows(state.model.architecture, block_size))
    at = state.factors if state.ahead is None else state.ahead
    found = settled_pass(state.model, at, blocks, tolerance, max_iterations, apply)
    scale = n_rows / found.count
    found = blended = map_arrays(lambda x: scale * x, found)
    if state.statistics is not None:
        blended = map_arrays(partial(_blend, amount), state.statistics, found)
    factors = global_step(state.model, at, blended, repeats)
    model = update_hyperparameters(state.model, factors)
    ahead = None
    if momentum > 0.0 and state.statistics is not None:
        ahead = extrapolate(factors, state.factors, momentum)
    state = StochasticState(
        model=model, factors=factors, statistics=blended, step=state.step + 1, ahead=ahead
    )
    return state, elbo(model, factors, found)


Batches = Callable[[int], Iterable[Rows]]
"""The batches of an epoch, given its number: rows without replacement, in an order of its own."""


def minibatches(rows: Rows, batch_size: int, seed: int) -> Batches:
    """Batches of rows in memory, in another random order every epoch; the last may be smaller."""

    def epoch(number: int) -> Iterator[Rows]:
        order = np.random.default_rng((seed, number)).permutation(rows.inputs.shape[0])
        for part in slices(len(order), batch_size):
            yield take_rows(rows, order[part])

    return epoch


def fit_stochastic(
    model: BowTieModel,
    batches: Batches,
    factors: GlobalFactors,
    *,
    n_rows: float,
    max_iter: int = 20,
    tol: float = 1e-4,
    forgetting_rate: float = 0.7,
    step_delay: float = 1.0,
    adaptive: bool = False,
    momentum: float = 0.0,
    repeats: int = 3,
    local_tolerance: float = 1e-3,
    local_iterations: int = 20,
    block_size: int | None = None,
    n_threads: int | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    keep: Keep | None = None,
    resume: StochasticSnapshot | None = None,
) -> FitResult:
    """Fit a network by stochastic variational inference from given global factors.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature.
    batches : callable
        From the number of an epoch to its batches of rows; see `minibatches`.
    factors : GlobalFactors
        Where to start; see `initialize`.
    n_rows : float
        Sum of the weights of all rows.
    max_iter : int
        Most passes over the rows.
    tol : float
        The bound has stopped rising when its mean over a window of steps has gained less than this
        part of it, or less than its own noise, three times in a row.
    forgetting_rate : float in (0.5, 1]
        k of the steps l_t = (t + delay)^(-k): the higher, the longer early batches are remembered.
    step_delay : float
        Larger makes the first steps smaller.
    adaptive : bool
        Take whole steps, l_t = 1, until the bound stops rising, and only then ones that shrink, for
        a fifth as many steps: they average out the noise of the batches. Otherwise steps shrink
        from the first on, as in the paper, and the fit ends when the bound stops rising.
    momentum : float in [0, 1)
        Look at each batch with the factors moved on by this part of the last step.
    repeats : int
        Rounds of global updates within a step.
    local_tolerance, local_iterations : float, int
        When the local factors of a batch count as settled.
    block_size, n_threads, callback, keep, resume :
        As for `fit`, with every step in place of every sweep.

    Returns
    -------
    FitResult
        Its sweeps are steps, its history the mean of the noisy bounds over a window of steps.
    """
    check_factors(model.architecture, factors)
    if not 0.5 < number(forgetting_rate, "forgetting_rate") <= 1.0:
        raise ValueError(f"forgetting_rate must lie in (0.5, 1], got {forgetting_rate!r}: try 0.7.")
    step_delay = non_negative(step_delay, "step_delay")
    max_iter, repeats = whole(max_iter, "max_iter"), whole(repeats, "repeats")
    tol = non_negative(tol, "tol")
    n_rows = positive(n_rows, "n_rows")
    if not 0.0 <= number(momentum, "momentum") < 1.0:
        raise ValueError(f"momentum must lie in [0, 1), got {momentum!r}: try 0.9.")
    n_threads = usable_cores() if n_threads is None else whole(n_threads, "n_threads")
    with workers(n_threads) as apply, np.errstate(all="ignore"):
        advance = partial(
            stochastic_step,
            n_rows=n_rows,
            momentum=momentum,
            repeats=repeats,
            tolerance=local_tolerance,
            max_iterations=local_iterations,
            block_size=block_size,
            apply=apply,
        )
        loop = _StochasticLoop(advance, batches, n_rows, max_iter, tol, adaptive)
        loop.size = partial(step_size, forgetting_rate=forgetting_rate, step_delay=step_delay)
        loop.callback, loop.keep = callback, keep
        if resume is not None:
            return loop.run(loop.restore(resume))
        start = update_shared_covariance(factors)
        return loop.run(StochasticState(model=model, factors=start, statistics=None, step=0))


def loosened(factors: GlobalFactors, by: float = 100.0) -> GlobalFactors:
    """The factors with larger hidden noise variances, from which stochastic steps learn faster.

    Local factors that start with a forward pass say that activations are gate x preactivation, so
    hidden noise only falls; where it starts small it holds the weights.
    """
    layers = [
        replace(layer, noise_variance=replace(layer.noise_variance, scale=by * scale))
        for layer in factors.layers[:-1]
        for scale in [layer.noise_variance.scale]
    ]
    return replace(factors, layers=(*layers, factors.layers[-1]))


class _StochasticLoop:
    """The mutable part of a fit: the last good state, and where in the data it stands."""

    size: Callable[[int], float]
    callback: Callable[[Progress], bool | None] | None = None
    keep: Keep | None = None

    def __init__(
        self,
        advance: Callable[..., tuple[StochasticState, ElboTerms]],
        batches: Batches,
        n_rows: float,
        max_iter: int,
        tolerance: float,
        adaptive: bool,
    ) -> None:
        self.advance, self.batches, self.adaptive = advance, batches, adaptive
        self.n_rows, self.max_iter = n_rows, max_iter
        self.watch = _Watch(tolerance)
        self.terms: ElboTerms | None = None
        self.epoch = self.n_batches = self.n_visited = 0
        self.visited_weight = self.full_batch = 0.0
        self.turned: int | None = None

    def restore(self, snapshot: StochasticSnapshot) -> StochasticState:
        """State of a fit that was stopped."""
        self.watch.history, self.watch.still = list(snapshot.elbo_history), snapshot.still
        self.terms = snapshot.elbo_terms
        self.epoch, self.n_batches = snapshot.epoch, snapshot.n_batches
        self.n_visited, self.turned = snapshot.n_visited, snapshot.turned
        self.visited_weight, self.full_batch = snapshot.visited_weight, snapshot.full_batch
        self.watch.window = window_steps(self.n_rows, self.full_batch)
        return snapshot.state

    def run(self, state: StochasticState) -> FitResult:
        self.state = state
        make: Callable[[], StochasticSnapshot] | None = None
        status: Status | None = None
        try:
            for batch in self._all_batches():
                status = self._step(batch)
                if status is not None:
                    break
                if self.keep is not None and self.terms is not None:
                    make = self._snapshot(self.terms)
                    self.keep(make, False)
        except KeyboardInterrupt:
            if self.terms is None:
                raise
            self._keep_last(make)
            status = Status.INTERRUPTED
        except Exception:
            # Rows may be out of reach for a while: what is done is kept.
            self._keep_last(make)
            raise
        return FitResult(
            model=self.state.model,
            factors=self.state.factors,
            elbo_terms=self.terms,
            elbo_history=running_means(self.watch.history, self.watch.window),
            n_sweeps=self.state.step,
            status=status or Status.SWEEP_LIMIT,
            statistics=self.state.statistics,
        )

    def _keep_last(self, make: Callable[[], StochasticSnapshot] | None) -> None:
        if self.keep is not None and make is not None:
            self.keep(make, True)

    def _all_batches(self) -> Iterator[Rows]:
        """Batches still to come, each counted when it is done."""
        while self.epoch < self.max_iter:
            # The batches of an epoch are the same every time it is asked for.
            done = self.n_batches
            for index, batch in enumerate(self.batches(self.epoch)):
                if index >= done:
                    yield batch
            self.epoch, self.n_batches = self.epoch + 1, 0

    def _step(self, batch: Rows) -> Status | None:
        weight = float(np.sum(to_numpy(batch.weights)))
        if weight > self.full_batch:
            self.full_batch = weight
            self.watch.window = window_steps(self.n_rows, weight)
        # The last batch of an epoch may be small, and its sums the noisier for it.
        amount = self._amount() * weight / self.full_batch
        found, terms = self.advance(self.state, batch, amount=amount)
        value = float(to_numpy(terms.total))
        if not math.isfinite(value) and self.state.ahead is not None:
            # Momentum went too far: the same batch without it.
            self.state = replace(self.state, ahead=None)
            found, terms = self.advance(self.state, batch, amount=amount)
            value = float(to_numpy(terms.total))
        if not math.isfinite(value):
            return Status.NON_FINITE
        self.state, self.terms = found, terms
        self.n_batches += 1
        self.n_visited += batch.inputs.shape[0]
        self.visited_weight += weight
        self.watch.note(value)
        if self.callback is not None and self.callback(self._progress(terms, value)):
            return Status.INTERRUPTED
        return self._end_or_turn()

    def _amount(self) -> float:
        """l_t."""
        if not self.adaptive:
            return self.size(self.state.step)
        return 1.0 if self.turned is None else self.size(self.state.step - self.turned)

    def _end_or_turn(self) -> Status | None:
        """Whether the fit is over, or has come to where its steps begin to shrink."""
        step = self.state.step
        if not self.adaptive:
            return Status.CONVERGED if self.watch.settled else None
        if self.turned is None:
            late = self.visited_weight >= RISING * self.max_iter * self.n_rows
            if self.watch.settled or late:
                self.turned = step
            return None
        if not self.watch.settled or step < self.turned + max(FEWEST_STEPS, FADING * self.turned):
            return None
        return Status.CONVERGED

    def _snapshot(self, terms: ElboTerms) -> Callable[[], StochasticSnapshot]:
        """What is now, put together only when it is wanted: the history may be long."""
        state, still, length = self.state, self.watch.still, len(self.watch.history)
        epoch, n_batches, n_visited = self.epoch, self.n_batches, self.n_visited
        visited_weight, full_batch, turned = self.visited_weight, self.full_batch, self.turned
        return lambda: StochasticSnapshot(
            state=state,
            elbo_terms=terms,
            elbo_history=tuple(self.watch.history[:length]),
            still=still,
            epoch=epoch,
            n_batches=n_batches,
            n_visited=n_visited,
            visited_weight=visited_weight,
            full_batch=full_batch,
            turned=turned,
        )

    def _progress(self, terms: ElboTerms, value: float) -> Progress:
        return Progress(
            sweep=self.state.step,
            elbo=value,
            elbo_terms=terms,
            model=self.state.model,
            factors=self.state.factors,
            pruning=None,
            n_visited=self.n_visited,
            n_at_most=round(self.n_visited * self.max_iter * self.n_rows / self.visited_weight),
            statistics=self.state.statistics,
        )


def window_steps(n_rows: float, batch_rows: float) -> int:
    """Steps of a window over which the noisy bound is averaged."""
    return max(FEWEST_STEPS, round(min(0.5 * n_rows, WINDOW_ROWS) / batch_rows))


def running_means(values: Sequence[float], window: int) -> tuple[float, ...]:
    """Mean of each value and those before it, `window` at most."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - window, 0)
    return tuple(((sums[ends] - sums[starts]) / (ends - starts)).tolist())


def _blend(amount: float, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return (1.0 - amount) * old + amount * new


class _Watch:
    """Means of the noisy bound over windows of steps, and whether they still rise."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.history: list[float] = []
        self.still = 0
        self.window = FEWEST_STEPS

    def note(self, value: float) -> None:
        self.history.append(value)
        window = self.window
        if self.settled or len(self.history) % window or len(self.history) < 2 * window:
            return
        # Against the last window that was a gain: slow ones add up.
        windows = np.reshape(self.history[-(self.still + 2) * window :], (-1, window))
        before, now = windows[0], windows[-1]
        noise = np.sqrt((before.var() + now.var()) / window)
        gain = now.mean() - before.mean()
        small = gain < max(self.tolerance * abs(before.mean()), noise)
        self.still = self.still + 1 if small else 0

    @property
    def settled(self) -> bool:
        return self.still >= CONSECUTIVE
