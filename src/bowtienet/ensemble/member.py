"""One fit of an ensemble: what it is given, how it runs, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet.data.canonical import take_columns
from bowtienet.data.rows import Rows
from bowtienet.ensemble.candidates import Network
from bowtienet.ensemble.cluster_reader import ClusterStream
from bowtienet.ensemble.ensemble import Floats, member_inputs
from bowtienet.ensemble.settings import Recipe, Settings
from bowtienet.ensemble.stacking import normal_log_densities, variance_ratio
from bowtienet.ensemble.streams import SourceStream
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.inference.execution import one_blas_thread
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.inference.pruning import Pruning, combine
from bowtienet.inference.start import initialize
from bowtienet.inference.stochastic import PassSnapshot, fit_stochastic, loosened
from bowtienet.model.architecture import build_architecture
from bowtienet.model.priors import BowTieModel, default_model
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.initialize import build_factors
from bowtienet.prediction.predictive import errors_and_variances, predict
from bowtienet.representation.representation import PLAIN, View, network_rows

HIDDEN_NOISE = (2.0, 0.01)
"""Concentration and scale of the prior of hidden noise variances; docs/measurements/accuracy.md."""
NETWORK_VARIANCE = 1e-4
"""Of the weights of a network that a fit starts from: little, or the first sweeps forget it."""
WHOLE_STEP_ROWS = 1000
"""Rows of a minibatch from which on a step may forget those before it."""
MOMENTUM = 0.9
"""Momentum of such steps."""
DEEP_ITERATIONS = 5
"""Local steps for a batch with several hidden layers; one does with a single one."""
WORTHWHILE = 0.01
"""Gain in log density per row for which the next length is worth its time."""

Callback = Callable[[Progress], bool | None]


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
    lengths: tuple[int, ...] = ()
    """Sweeps after which held-out rows are forecast; the last is the most that it may take."""
    start: FitResult | None = None
    chosen: bool = False
    """Its length was chosen by held-out rows: a fit that reaches it was not cut short."""
    variance_ratio: Floats | None = None
    """What held-out rows of trials of the same fit ask of its variances."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a task gave."""

    result: FitResult
    forecasts: Floats | None = None
    """Errors and variances of the held-out rows after each length, (2, lengths, n, D_out)."""
    interrupted: bool = False
    """Ctrl-C ended it: the fits that would follow are not wanted."""


def run_task(
    task: Task,
    settings: Settings,
    callback: Callback | None = None,
    after_pass: Callable[[PassSnapshot], None] | None = None,
    resume: PassSnapshot | None = None,
) -> Outcome:
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
            task.rows if task.stream is None else task.stream.provider(model.architecture),
            factors,
            max_iter=max(task.lengths, default=settings.max_iter),
            tol=settings.tol,
            prune_every=settings.prune_every,
            false_sign_rate=settings.false_sign_rate,
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


def held_out_score(errors: Floats, variances: Floats, row_weights: Floats) -> float:
    """Mean log density of held-out rows (n, D_out), with the variances that they ask for."""
    ratio = variance_ratio(errors, variances, row_weights)
    logs = normal_log_densities(errors, ratio * variances)
    return float(logs @ row_weights / row_weights.sum())


def _begin(task: Task, settings: Settings) -> tuple[BowTieModel, GlobalFactors]:
    if task.start is not None:
        return task.start.model, task.start.factors
    rows, recipe = task.rows, task.recipe
    assert recipe is not None
    architecture = build_architecture(
        rows.inputs.shape[1], settings.hidden_layer_sizes, rows.targets.shape[1]
    )
    model = default_model(
        architecture,
        rows.inputs,
        rows.targets,
        rows.weights,
        prior=settings.prior,
        gate_temperature=recipe.gate_temperature,
        hidden_noise=HIDDEN_NOISE,
    )
    if task.network is None:
        factors = initialize(model, rows, recipe.seed, init=settings.init)
    else:
        rng = np.random.default_rng(recipe.seed)
        factors = build_factors(model, task.network, rng, variance=NETWORK_VARIANCE)
    if task.stochastic and task.batch_size >= WHOLE_STEP_ROWS:
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
    if task.batch_size >= WHOLE_STEP_ROWS:
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
    """Forecasts held-out rows at the lengths of a task; stops it where longer is not better."""

    def __init__(self, task: Task, settings: Settings, callback: Callback | None) -> None:
        self.task, self.settings, self.callback = task, settings, callback
        self.forecasts: list[Floats] = []
        self.enough = self.asked = False
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> bool:
        progress = replace(progress, pruning=self._pruning(progress))
        self.asked = bool(self.callback(progress)) if self.callback is not None else False
        due = self.task.lengths[len(self.forecasts) : -1]
        if self.task.held_out is not None and due and progress.sweep >= due[0]:
            # A sweep that was undone leaves the state before it.
            missed = self.last is not None and progress.sweep > due[0]
            self._forecast(self.last if self.last is not None and missed else progress)
            self.enough = not self._still_gains()
        self.last = progress
        return self.asked or self.enough

    def finish(self, end: FitResult) -> Outcome:
        """What a task gave: a length that was not reached has the forecasts of the end.

        A fit that ended at the length it was meant to have was not cut short.
        """
        task, status, ratio = self.task, end.status, self.task.variance_ratio
        if self.enough or (task.chosen and status is Status.ITERATION_LIMIT):
            status = Status.EARLY_STOPPED
        if ratio is None and task.start is not None:
            ratio = task.start.variance_ratio
        end = replace(end, status=status, pruning=self._pruning(end), variance_ratio=ratio)
        forecasts = None
        if task.held_out is not None:
            if not self.enough:
                self._forecast(end)
            missing = max(len(task.lengths), 1) - len(self.forecasts)
            forecasts = np.stack(self.forecasts + self.forecasts[-1:] * missing, axis=1)
        interrupted = status is Status.INTERRUPTED and not self.asked
        return Outcome(result=end, forecasts=forecasts, interrupted=interrupted)

    def _pruning(self, found: Progress | FitResult) -> Pruning | None:
        """What a fit has left of the network that it, or an earlier one, began with."""
        before = None if self.task.start is None else self.task.start.pruning
        return before if found.pruning is None else combine(before, found.pruning)

    def _forecast(self, found: Progress | FitResult) -> None:
        assert self.task.held_out is not None
        predicted = predict(
            found.model,
            found.factors,
            member_inputs(found, self.task.held_out.inputs),
            propagation=self.settings.propagation,
            n_threads=self.task.n_threads,
        )
        errors = errors_and_variances(predicted, self.task.held_out.targets)
        self.forecasts.append(np.stack(errors))

    def _still_gains(self) -> bool:
        """Whether the last lengthening was worth its time."""
        assert self.task.held_out is not None
        share = to_numpy(self.task.held_out.weights).astype(float)
        *before, now = (held_out_score(e, v, share) for e, v in self.forecasts)
        return not before or now > max(before) + WORTHWHILE
