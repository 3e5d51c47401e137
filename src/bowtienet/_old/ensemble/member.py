"""One fit of an ensemble: what it is given, how it runs, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowtienet._old.data.canonical import take_columns
from bowtienet._old.data.rows import Rows
from bowtienet._old.ensemble.cluster_reader import ClusterStream
from bowtienet._old.ensemble.ensemble import Floats, member_inputs
from bowtienet._old.ensemble.settings import Recipe, Settings, hidden_of
from bowtienet._old.ensemble.streams import SourceStream
from bowtienet._old.inference.blas_threads import one_blas_thread
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.pruning import Pruning
from bowtienet._old.inference.start import factors_of_network, initialize
from bowtienet._old.inference.stochastic import PassSnapshot, fit_stochastic, loosened
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import BowTieModel, default_model
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.prediction.predictive import outputs_and_variances, predict
from bowtienet._old.representation.representation import PLAIN, View, network_rows

WHOLE_STEP_ROWS = 1000
"""Rows of a minibatch from which on a step may forget those before it."""
MOMENTUM = 0.9
"""Momentum of such steps."""
DEEP_ITERATIONS = 5
"""Local steps for a batch with several hidden layers; one does with a single one."""
HIDDEN_NOISE = (2.0, 0.01)
"""Concentration and scale of the prior of hidden noise variances; docs/measurements/accuracy.md."""

Callback = Callable[[Progress], bool | None]


Network = tuple[Floats, ...]
"""Weights (D, K+1) of every layer, bias first."""
Stream = SourceStream | ClusterStream
"""Rows that are not in memory, as the networks see them."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One fit: of a recipe, or from an earlier result, to rows."""

    rows: Rows
    """All rows, or those of a stream to start from; standardised."""
    view: View = PLAIN
    """What the network sees of them."""
    stream: Stream | None = None
    stochastic: bool = False
    """Whether the stream is fitted in minibatches."""
    batch_size: int = 4096
    n_threads: int | None = None
    recipe: Recipe | None = None
    network: Network | None = None
    """The ordinary network that the fit starts from; None for a random start, or none at all."""
    held_out: Rows | None = None
    """Forecast at the end."""
    lengths: tuple[int, ...] = ()
    """The most sweeps that it may take; empty for `max_iter`."""
    most_rows: int | None = None
    """Rows that a stochastic fit visits, each as often as it does; None for `max_iter` passes."""
    start: FitResult | None = None
    chosen: bool = False
    """Its length was chosen by held-out rows: a fit that reaches it was not cut short."""


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """What a task gave."""

    result: FitResult
    forecasts: Floats | None = None
    """Means and variances of the held-out rows, (2, n, D_out)."""
    interrupted: bool = False
    """Ctrl-C ended it: the fits that would follow are not wanted."""


Run = Callable[[Sequence[Task]], Iterable[TaskResult]]
"""Runs tasks and answers in their order; it may stop early."""


def run_task(
    task: Task,
    settings: Settings,
    callback: Callback | None = None,
    after_pass: Callable[[PassSnapshot], None] | None = None,
    resume: PassSnapshot | None = None,
) -> TaskResult:
    """Fit one member; a stochastic fit can go on from what `after_pass` was told of it."""
    task = _seen(task)
    recorder = _Recorder(task, settings, callback)
    if resume is None:
        # One thread, so that the start has the same bits in a process that was given fewer cores.
        with one_blas_thread():
            model, factors = _begin(task, settings)
    else:
        model, factors = resume.position.state.model, resume.position.state.factors
    if task.stochastic:
        end = _stochastic_fit(model, task, factors, settings, recorder, after_pass, resume)
    else:
        end = fit(
            model,
            task.rows if task.stream is None else task.stream.provider(model),
            factors,
            max_iter=max(task.lengths, default=settings.max_iter),
            tol=settings.tol,
            n_threads=task.n_threads,
            callback=recorder,
        )
    return recorder.finish(end)


def _seen(task: Task) -> Task:
    """The task with rows as its network sees them."""
    rows, stream, held_out = network_rows(task.view, task.rows), task.stream, task.held_out
    pruning = None if task.start is None else task.start.pruning
    inputs = None if pruning is None else pruning.inputs
    return replace(
        task,
        rows=rows if inputs is None else take_columns(rows, inputs),
        stream=None if stream is None else stream.seen_by(task.view, inputs),
        held_out=None if held_out is None else network_rows(task.view, held_out),
    )


def last_bound(result: FitResult) -> float | None:
    """The bound that a fit reached; None if it never had one."""
    return result.elbo_history[-1] if result.elbo_history else None


def local_iterations(model: BowTieModel) -> int:
    """Local steps for a batch before a whole step."""
    return DEEP_ITERATIONS if model.architecture.n_hidden > 1 else 1


def recipe_model(recipe: Recipe, rows: Rows, settings: Settings) -> BowTieModel:
    """The model of a recipe's networks, for rows as they see them."""
    return default_model(
        build_architecture(
            rows.inputs.shape[1],
            hidden_of(recipe, settings),
            settings.outcome.n_outputs(rows.targets.shape[1]),
        ),
        rows.inputs,
        rows.targets,
        rows.weights,
        prior=settings.prior,
        gate_temperature=recipe.gate_temperature,
        hidden_noise=HIDDEN_NOISE,
        outcome=settings.outcome,
    )


def _begin(task: Task, settings: Settings) -> tuple[BowTieModel, GlobalFactors]:
    if task.start is not None:
        return task.start.model, task.start.factors
    rows, recipe = task.rows, task.recipe
    assert recipe is not None
    model = recipe_model(recipe, rows, settings)
    if task.network is None:
        factors = initialize(model, rows, recipe.seed, init=settings.init)
    else:
        rng = np.random.default_rng(recipe.seed)
        factors = factors_of_network(model, task.network, rows, rng)
    if task.stochastic and task.batch_size >= WHOLE_STEP_ROWS and task.network is None:
        factors = loosened(factors)
    return model, factors


def _stochastic_fit(
    model: BowTieModel,
    task: Task,
    factors: GlobalFactors,
    settings: Settings,
    callback: Callback,
    after_pass: Callable[[PassSnapshot], None] | None,
    resume: PassSnapshot | None,
) -> FitResult:
    assert isinstance(task.stream, SourceStream)
    seed = 0 if task.recipe is None else task.recipe.seed
    steps: dict[str, Any] = {}
    if task.network is not None:
        # Near its end already: steps that shrink average out the noise of the batches.
        steps = {"local_iterations": local_iterations(model)}
    elif task.batch_size >= WHOLE_STEP_ROWS:
        # Small batches are noisy: the paper's steps suit them; see docs/guide/bigdata.md.
        steps = {
            "adaptive": True,
            "momentum": MOMENTUM,
            "local_iterations": local_iterations(model),
        }
    return fit_stochastic(
        model,
        task.stream.batches(task.batch_size, seed),
        factors,
        n_rows=task.stream.total_weight,
        max_iter=settings.max_iter,
        tol=settings.tol,
        forgetting_rate=settings.forgetting_rate,
        step_delay=settings.step_delay,
        n_threads=task.n_threads,
        callback=callback,
        after_pass=after_pass,
        resume=resume,
        **steps,
    )


class _Recorder:
    """Stops a fit that has visited rows enough, and forecasts held-out rows at its end."""

    def __init__(self, task: Task, settings: Settings, callback: Callback | None) -> None:
        self.task, self.settings, self.callback = task, settings, callback
        self.enough = self.asked = False

    def __call__(self, progress: Progress) -> bool:
        progress = replace(progress, pruning=self._pruning())
        self.asked = bool(self.callback(progress)) if self.callback is not None else False
        most = self.task.most_rows
        self.enough = most is not None and progress.n_visited >= most
        return self.asked or self.enough

    def finish(self, end: FitResult) -> TaskResult:
        """What a task gave; a fit that ended at the length it was meant to have was not cut short.

        One that goes on keeps the ratio of its variances.
        """
        task, status, ratio = self.task, end.status, None
        met = status is Status.ITERATION_LIMIT and (task.chosen or task.most_rows is not None)
        if (self.enough and not self.asked) or met:
            status = Status.EARLY_STOPPED
        if task.start is not None:
            ratio = task.start.variance_ratio
        end = replace(end, status=status, pruning=self._pruning(), variance_ratio=ratio)
        forecasts = None if task.held_out is None else self._forecast(end, task.held_out)
        interrupted = status is Status.INTERRUPTED and not self.asked
        return TaskResult(result=end, forecasts=forecasts, interrupted=interrupted)

    def _pruning(self) -> Pruning | None:
        """What is left of the network that an earlier fit began with."""
        return None if self.task.start is None else self.task.start.pruning

    def _forecast(self, found: FitResult, held_out: Rows) -> Floats:
        predicted = predict(
            found.model,
            found.factors,
            member_inputs(found, held_out.inputs),
            propagation=self.settings.propagation,
            n_threads=self.task.n_threads,
        )
        return np.stack(outputs_and_variances(found.model.outcome, predicted))
