"""Stochastic steps against coordinate ascent on the paper's toy data: the fits and their scores.

The paper's appendix on SVI varies the size of the minibatch and the forgetting rate k, and compares
with coordinate ascent and with five SVI fits together. Every run draws 270 rows to fit (90 % of the
paper's 300) and, because the 30 that are left would say little, 2,000 new ones to score. Scores are
in the unit of the target. One thread; seconds are the processor's, for a fit from a given start.

Three methods run from the same starts, for at most 200 passes over the rows:

- SVI, the paper's: `fit_stochastic` at its defaults, steps (t + 1)^-k, local factors settled;
- SVI, whole steps: whole steps with momentum 0.9 until the bound stops rising, then ones that
  shrink; one local step for each batch, and a start with larger hidden noise;
- CAVI: `fit`.

Results are lines of JSON, one for each fit or ensemble, after one for each run that says with what
they were made; a second run does what is left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bowtienet.data.rows import Rows, build_rows, split
from bowtienet.data.toy import simulate_toy
from bowtienet.evaluation.metrics import interval_coverage, negative_log_density, rmse
from bowtienet.experiments.drawing import Report
from bowtienet.experiments.provenance import describe_run
from bowtienet.experiments.records import Run, append_line, mend_lines, numbers, parse_run
from bowtienet.inference.convergence import Status
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.inference.elbo import elbo
from bowtienet.inference.execution import settled_pass
from bowtienet.inference.iterate import FitResult, Progress
from bowtienet.inference.stochastic import fit_stochastic, loosened, minibatches
from bowtienet.model.architecture import build_architecture
from bowtienet.model.priors import BowTieModel, default_model
from bowtienet.posterior.factors import GlobalFactors
from bowtienet.posterior.initialize import initialize
from bowtienet.prediction.mixture import GaussianMixture, build_mixture
from bowtienet.prediction.predictive import predict
from bowtienet.representation.scaling import (
    Scaling,
    fit_scaling,
    restore_deviation,
    restore_mean,
    standardize,
)

PAPER, OURS, CAVI = "SVI, the paper's steps", "SVI, whole steps", "CAVI"
STARTS = {"laplace": "the paper's start", "relu_network": "the estimator's start"}
COVERAGE = 0.9
RATE = 0.7
"""Forgetting rate of the ensembles, the curves and whole steps."""
FILE = "svi.jsonl"
COMMAND = "bowtienet reproduce svi"
GRID = 200
"""Points of a predictive band."""


class Cell(NamedTuple):
    """What is fitted: method, batch size and forgetting rate."""

    method: str
    batch: int | None = None
    rate: float | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """Size of the study."""

    first_seed: int = 140
    runs: int = 5
    rows: int = 270
    new_rows: int = 2_000
    width: int = 20
    passes: int = 200
    batches: tuple[int, ...] = (10, 30, 90)
    rates: tuple[float, ...] = (0.55, 0.7, 0.85, 1.0)
    members: int = 5

    @property
    def seeds(self) -> range:
        """One for each run."""
        return range(self.first_seed, self.first_seed + self.runs)

    def cells(self) -> list[Cell]:
        """Single fits."""
        paper = [Cell(PAPER, batch, rate) for batch in self.batches for rate in self.rates]
        return [*paper, *(Cell(OURS, batch, RATE) for batch in self.batches), Cell(CAVI)]

    def shown(self) -> tuple[Cell, Cell, Cell]:
        """Of the ensembles and of the curves: the smallest batch, and the next for whole steps."""
        return Cell(PAPER, self.batches[0], RATE), Cell(OURS, self.batches[1], RATE), Cell(CAVI)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Rows of a run, standardised, and new ones as they are."""

    seed: int
    rows: Rows
    input_scaling: Scaling
    target_scaling: Scaling
    new: np.ndarray
    new_targets: np.ndarray


Result = dict[str, Any]
"""Scores and curves of a fit or an ensemble, as JSON holds them."""
Key = tuple[str, str, Cell, int]
""""single" or "together", start, cell and seed."""


def run(study: Study, folder: Path, report: Report) -> dict[Key, Result]:
    """All results of a study: those in the folder, and what is left, which is added to them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    kept, mended = _read(path)
    if mended:
        report(f"svi: {mended}")
    results: dict[Key, Result] = {}
    this_run: Run | None = None
    for key in keys(study):
        text = _key_text(study, key)
        if text not in kept:
            kind, start, cell, seed = key
            report(f"svi: run {seed}, {_words(cell)}, {kind}, from {STARTS[start]}")
            kept[text] = (single if kind == "single" else together)(study, start, cell, seed)
            if this_run is None:
                this_run = describe_run(COMMAND)
                append_line(path, {"kind": "run", **asdict(this_run)})
            line = {"kind": "result", "key": text, "result": kept[text], "run": this_run.id}
            append_line(path, line)
        results[key] = kept[text]
    return results


def keys(study: Study) -> Iterator[Key]:
    """Single fits of every cell from the paper's start, then ensembles from both starts."""
    for seed in study.seeds:
        yield from (("single", "laplace", cell, seed) for cell in study.cells())
    for start in STARTS:
        for seed in study.seeds:
            yield from (("together", start, cell, seed) for cell in study.shown())


def single(study: Study, start: str, cell: Cell, seed: int) -> Result:
    """Scores, seconds and passes of one fit."""
    of = problem(study, seed)
    result, seconds = _fit(study, of, start, cell)
    passes = result.n_sweeps * (1.0 if cell.batch is None else cell.batch / study.rows)
    found = predictive(of, [result], of.new)
    return {**scores(found, of.new_targets), "seconds": seconds, "passes": passes}


def together(study: Study, start: str, cell: Cell, seed: int) -> Result:
    """Scores, seconds and bands of one member and of all; the bound and error of the first."""
    of = problem(study, seed)
    watch = Watch(study, of)
    # The first is watched for the curves; what that takes is not in its seconds.
    fits = [_fit(study, of, start, cell, 0, watch)]
    fits += [_fit(study, of, start, cell, member) for member in range(1, study.members)]
    along = np.column_stack([np.linspace(-2.0, 2.0, GRID), np.zeros(GRID)])
    sizes = {}
    for name, size in (("one", 1), ("all", study.members)):
        members = [result for result, _ in fits[:size]]
        found, line = predictive(of, members, of.new), predictive(of, members, along)
        sizes[name] = {
            **scores(found, of.new_targets),
            "seconds": sum(seconds for _, seconds in fits[:size]),
            "mean": line.mean().tolist(),
            "intervals": line.interval(COVERAGE).tolist(),
        }
    return {**sizes, "passes": watch.passes, "bounds": watch.bounds, "errors": watch.errors}


@lru_cache(maxsize=2)
def problem(study: Study, seed: int) -> Problem:
    """The rows of a run."""
    rng = np.random.default_rng(seed)
    X, y = simulate_toy(study.rows, rng)
    new_X, new_y = simulate_toy(study.new_rows, rng)
    of_inputs, of_targets = fit_scaling(X), fit_scaling(y[:, None])
    return Problem(
        seed=seed,
        rows=build_rows(standardize(of_inputs, X), standardize(of_targets, y[:, None])),
        input_scaling=of_inputs,
        target_scaling=of_targets,
        new=new_X,
        new_targets=new_y,
    )


class Watch:
    """Notes the bound of all rows and the error of new ones after every pass."""

    def __init__(self, study: Study, of: Problem) -> None:
        self.study, self.of, self.seconds = study, of, 0.0
        self.passes: list[float] = []
        self.bounds: list[float] = []
        self.errors: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Note them, once for each pass."""
        done = progress.n_visited / self.study.rows
        if self.passes and int(done) == int(self.passes[-1]):
            return
        begin = time.process_time()
        self.passes.append(done)
        self.bounds.append(bound(self.of, progress.model, progress.factors))
        found = predictive(self.of, [progress], self.of.new)
        self.errors.append(rmse(self.of.new_targets, found.mean()))
        self.seconds += time.process_time() - begin


def bound(of: Problem, model: BowTieModel, factors: GlobalFactors) -> float:
    """The bound of all rows, their local factors settled."""
    blocks = split(of.rows, of.rows.inputs.shape[0])
    found = settled_pass(model, factors, blocks, 1e-4, 50, map)
    return float(elbo(model, factors, found).total)


def predictive(
    of: Problem, members: Sequence[FitResult | Progress], X: np.ndarray
) -> GaussianMixture:
    """What members predict together, all with the same weight."""
    inputs = standardize(of.input_scaling, X)
    found = [predict(member.model, member.factors, inputs) for member in members]
    means = [restore_mean(of.target_scaling, each.mean)[:, 0] for each in found]
    spreads = [np.sqrt(each.signal_variance + each.noise_variance) for each in found]
    deviations = [restore_deviation(of.target_scaling, each)[:, 0] for each in spreads]
    weights = np.full(len(found), 1.0 / len(found))
    return build_mixture(weights, np.stack(means), np.stack(deviations))


def scores(found: GaussianMixture, y: np.ndarray) -> dict[str, float]:
    """RMSE, NLL and the share of targets in central intervals of 90 %."""
    return {
        "rmse": float(rmse(y, found.mean())),
        "nll": float(negative_log_density(y, found)),
        "coverage": float(interval_coverage(y, found.interval(COVERAGE))),
    }


def _fit(
    study: Study, of: Problem, start: str, cell: Cell, member: int = 0, watch: Watch | None = None
) -> tuple[FitResult, float]:
    """A fit and its seconds, without those of who watches it; one that was cut short is no fit."""
    architecture = build_architecture(2, (study.width,), 1)
    model = default_model(architecture, of.rows.inputs, of.rows.targets)
    seed = 1000 * of.seed + member
    factors = initialize(model, of.rows, seed, init=start)
    begin = time.process_time()
    if cell.batch is None:
        result = fit(model, of.rows, factors, max_iter=study.passes, n_threads=1, callback=watch)
    else:
        result = _fit_batches(study, of, cell, model, factors, seed, watch)
    seconds = time.process_time() - begin
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result, seconds - (0.0 if watch is None else watch.seconds)


def _fit_batches(
    study: Study,
    of: Problem,
    cell: Cell,
    model: BowTieModel,
    factors: GlobalFactors,
    seed: int,
    watch: Watch | None,
) -> FitResult:
    assert cell.batch is not None
    assert cell.rate is not None
    whole = cell.method == OURS
    steps: dict[str, Any] = {"adaptive": True, "momentum": 0.9, "local_iterations": 1}
    return fit_stochastic(
        model,
        minibatches(of.rows, cell.batch, seed),
        loosened(factors) if whole else factors,
        n_rows=study.rows,
        max_iter=study.passes,
        forgetting_rate=cell.rate,
        n_threads=1,
        callback=watch,
        **(steps if whole else {}),
    )


def _words(cell: Cell) -> str:
    return cell.method if cell.batch is None else f"{cell.method}, {cell.batch} rows, {cell.rate}"


def _key_text(study: Study, key: Key) -> str:
    """A result depends on the size of a fit, and not on which others are made."""
    listed = ("first_seed", "runs", "batches", "rates")
    size = {name: value for name, value in asdict(study).items() if name not in listed}
    return json.dumps([size, *key], sort_keys=True)


def _read(path: Path) -> tuple[dict[str, Result], str | None]:
    """Results by key, and what was done about a last line that was cut short."""
    lines, mended = mend_lines(path, _parse)
    return dict(filter(None, lines)), mended


def _parse(line: bytes) -> tuple[str, Result] | None:
    """Key and result of a line; None of a run."""
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError("it is neither a run nor a result")
    if content.get("kind") == "run":
        parse_run(content)
        return None
    return content["key"], numbers(content["result"])
