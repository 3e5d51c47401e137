"""Section 3.3: stochastic variational inference, a solver of the one loop.

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
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from bowtienet._old._arrays import map_arrays, slices, to_numpy
from bowtienet._old._validation import non_negative, number, positive, whole
from bowtienet._old.data.rows import Rows, split, take_rows
from bowtienet._old.inference.acceleration import extrapolate
from bowtienet._old.inference.convergence import (
    CONSECUTIVE,
    FEWEST_STEPS,
    Status,
    count_still,
    running_means,
    window_steps,
)
from bowtienet._old.inference.elbo import ElboTerms, elbo
from bowtienet._old.inference.empirical_bayes import renew_outcome, update_hyperparameters
from bowtienet._old.inference.execution import Mapper, block_rows, settled_pass, workers
from bowtienet._old.inference.global_step import global_step, update_shared_covariance
from bowtienet._old.inference.iterate import Callback, FitResult, Progress, iterate
from bowtienet._old.inference.statistics import Statistics
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, check_factors

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
class Position:
    """A fit between two steps: its state, and what it has seen of the rows."""

    state: StochasticState
    elbo_terms: ElboTerms | None = None
    """Of the last batch."""
    n_passes: int = 0
    """Whole passes over the rows."""
    n_visited: int = 0
    visited_weight: float = 0.0
    full_batch: float = 0.0
    """Weight of the heaviest batch so far."""
    still: int = 0
    """Windows in a row over which the bound did not rise."""
    turned: int | None = None
    """The step from which on steps shrink; None before it."""
    moved: bool = False
    """Whether the last step took a batch in, and did not end a pass."""
    status: Status | None = None


@dataclass(frozen=True, kw_only=True)
class PassSnapshot:
    """A fit after a whole pass over the rows: from here it goes on as if it had never stopped."""

    position: Position
    elbo_history: tuple[float, ...]
    """The noisy bound of every step."""


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
    apply: Mapper = map,
) -> tuple[StochasticState, ElboTerms]:
    """Local factors of a batch, blended statistics, and the updates that follow from them."""
    blocks = split(batch, block_rows(state.model.architecture, None, state.model.outcome))
    at, model = state.factors if state.ahead is None else state.ahead, state.model
    model = renew_outcome(model, state.factors, state.statistics, before=True)
    found = settled_pass(model, at, blocks, tolerance, max_iterations, apply)
    scale = n_rows / found.count
    found = blended = map_arrays(lambda x: scale * x, found)
    if state.statistics is not None:
        blended = map_arrays(partial(_blend, amount), state.statistics, found)
    factors = global_step(model, at, blended, repeats)
    model = update_hyperparameters(model, factors)
    terms = elbo(model, factors, found)
    model = renew_outcome(model, factors, blended, before=False)
    ahead = None
    if momentum > 0.0 and state.statistics is not None:
        ahead = extrapolate(factors, state.factors, momentum)
    state = StochasticState(
        model=model, factors=factors, statistics=blended, step=state.step + 1, ahead=ahead
    )
    return state, terms


Batches = Callable[[int], Iterable[Rows]]
"""The batches of a pass, given its number: all rows once, in an order of its own that is the same
whenever it is asked for."""


def minibatches(rows: Rows, batch_size: int, seed: int) -> Batches:
    """Batches of rows in memory, in another random order every pass; the last may be smaller."""

    def one_pass(number: int) -> Iterator[Rows]:
        order = np.random.default_rng((seed, number)).permutation(rows.inputs.shape[0])
        for part in slices(len(order), batch_size):
            yield take_rows(rows, order[part])

    return one_pass


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
    n_threads: int | None = None,
    callback: Callback | None = None,
    after_pass: Callable[[PassSnapshot], None] | None = None,
    resume: PassSnapshot | None = None,
) -> FitResult:
    """Fit a network by stochastic variational inference from given global factors.

    Parameters
    ----------
    model : BowTieModel
        Architecture, prior and temperature.
    batches : callable
        From the number of a pass over the rows to its batches; see `minibatches`.
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
    n_threads, callback :
        As for `fit`, with every step in place of every sweep.
    after_pass : callable, optional
        Called with a `PassSnapshot` after every whole pass over the rows.
    resume : PassSnapshot, optional
        Go on from here, with the arguments of the fit that it is of: the end has the same bits.

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
    with workers(n_threads) as apply:
        advance = partial(
            stochastic_step,
            n_rows=n_rows,
            momentum=momentum,
            repeats=repeats,
            tolerance=local_tolerance,
            max_iterations=local_iterations,
            apply=apply,
        )
        start = StochasticState(
            model=model,
            factors=update_shared_covariance(factors, by_row=model.outcome.by_row),
            statistics=None,
            step=0,
        )
        solver = StochasticInference(
            start=Position(state=start) if resume is None else resume.position,
            advance=advance,
            batches=batches,
            n_rows=n_rows,
            max_iter=max_iter,
            tol=tol,
            size=partial(step_size, forgetting_rate=forgetting_rate, step_delay=step_delay),
            adaptive=adaptive,
            after_pass=after_pass,
        )
        history = () if resume is None else resume.elbo_history
        try:
            return iterate(solver, callback=callback, history=history)
        finally:
            solver.close()


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


@dataclass(kw_only=True)
class StochasticInference:
    """Batches as steps of `iterate`; see `fit_stochastic` for the settings."""

    start: Position
    advance: Callable[..., tuple[StochasticState, ElboTerms]]
    batches: Batches
    n_rows: float
    max_iter: int
    tol: float
    size: Callable[[int], float]
    """From a number of steps to l_t."""
    adaptive: bool
    after_pass: Callable[[PassSnapshot], None] | None
    _to_come: Iterator[Rows] = field(init=False, default=iter(()))
    """Batches of the present pass."""

    def init(self) -> Position:
        """Where a pass begins."""
        self._to_come = self._one_pass(self.start.n_passes)
        return self.start

    def close(self) -> None:
        """Let go of the rows that a pass holds."""
        self._to_come = iter(())

    def step(self, at: Position, history: Sequence[float]) -> Position:
        """Take in the next batch, or end the pass if there is none."""
        batch = next(self._to_come, None)
        if batch is None:
            return self._end_pass(at, history)
        weight = float(np.sum(to_numpy(batch.weights)))
        full_batch = max(at.full_batch, weight)
        # The last batch of a pass may be small, and its sums the noisier for it.
        amount = self._step_size(at) * weight / full_batch
        state, terms, value = self._advance(at.state, batch, amount)
        if not math.isfinite(value):
            return replace(at, moved=False, status=Status.NON_FINITE)
        at = replace(
            at,
            state=state,
            elbo_terms=terms,
            n_visited=at.n_visited + batch.inputs.shape[0],
            visited_weight=at.visited_weight + weight,
            full_batch=full_batch,
            moved=True,
        )
        window = window_steps(self.n_rows, full_batch)
        at = replace(at, still=count_still(at.still, history, value, window, self.tol))
        return self._end_or_turn(at)

    def broken(self, at: Position) -> Position:
        """The next batch without momentum, if there was some; else the end."""
        if at.state.ahead is not None:
            return replace(at, state=replace(at.state, ahead=None), moved=False)
        return replace(at, moved=False, status=Status.NON_FINITE)

    def finished(self, at: Position) -> Status | None:
        """Whether the bound stands still, is not finite, or the passes are used up."""
        if at.status is None and at.n_passes >= self.max_iter:
            return Status.ITERATION_LIMIT
        return at.status

    def progress(self, at: Position) -> Progress | None:
        """What the last batch reached; None where a pass ended."""
        if not at.moved or at.elbo_terms is None:
            return None
        return Progress(
            sweep=at.state.step,
            elbo=float(to_numpy(at.elbo_terms.total)),
            elbo_terms=at.elbo_terms,
            model=at.state.model,
            factors=at.state.factors,
            n_visited=at.n_visited,
            n_at_most=round(at.n_visited * self.max_iter * self.n_rows / at.visited_weight),
            statistics=at.state.statistics,
        )

    def result(self, at: Position, history: Sequence[float], status: Status) -> FitResult:
        """The last good state, with a history whose noise is averaged out."""
        means: tuple[float, ...] = ()
        if history:
            means = running_means(history, window_steps(self.n_rows, at.full_batch))
        return FitResult(
            model=at.state.model,
            factors=at.state.factors,
            elbo_terms=at.elbo_terms,
            elbo_history=means,
            n_sweeps=at.state.step,
            status=status,
            statistics=at.state.statistics,
        )

    def _one_pass(self, number: int) -> Iterator[Rows]:
        is_empty = True
        for batch in self.batches(number):
            is_empty = False
            yield batch
        if is_empty:
            raise ValueError(
                f"batches({number}) gave no rows: it must give all of them whenever it is called."
            )

    def _end_pass(self, at: Position, history: Sequence[float]) -> Position:
        at = replace(at, n_passes=at.n_passes + 1, moved=False)
        if self.after_pass is not None:
            self.after_pass(PassSnapshot(position=at, elbo_history=tuple(history)))
        self._to_come = self._one_pass(at.n_passes)
        return at

    def _advance(
        self, state: StochasticState, batch: Rows, amount: float
    ) -> tuple[StochasticState, ElboTerms, float]:
        found, terms = self.advance(state, batch, amount=amount)
        value = float(to_numpy(terms.total))
        if math.isfinite(value) or state.ahead is None:
            return found, terms, value
        # Momentum went too far: the same batch without it.
        return self._advance(replace(state, ahead=None), batch, amount)

    def _step_size(self, at: Position) -> float:
        """l_t."""
        if not self.adaptive:
            return self.size(at.state.step)
        return 1.0 if at.turned is None else self.size(at.state.step - at.turned)

    def _end_or_turn(self, at: Position) -> Position:
        """Whether the fit is over, or has come to where its steps begin to shrink."""
        step, settled = at.state.step, at.still >= CONSECUTIVE
        if self.adaptive and at.turned is None:
            late = at.visited_weight >= RISING * self.max_iter * self.n_rows
            return replace(at, turned=step) if settled or late else at
        faded = at.turned is None or step >= at.turned + max(FEWEST_STEPS, FADING * at.turned)
        return replace(at, status=Status.CONVERGED) if settled and faded else at


def _blend(amount: float, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return (1.0 - amount) * old + amount * new
