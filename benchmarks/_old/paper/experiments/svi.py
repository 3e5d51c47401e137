"""Stochastic steps against coordinate ascent on the paper's toy data: its appendix on SVI.

The appendix varies the size of the minibatch and the forgetting rate k, and compares with
coordinate ascent and with five SVI fits together. Every run draws 270 rows to fit (90 % of the
paper's 300) and, because the 30 that are left would say little, 2,000 new ones to score. Scores are
in the unit of the target. One thread; seconds are the processor's, for a fit from a given start.

Three methods run from the same starts, for at most 200 passes over the rows:

- SVI, the paper's: `fit_stochastic` at its defaults, steps (t + 1)^-k, local factors settled;
- SVI, whole steps: whole steps with momentum 0.9 until the bound stops rising, then ones that
  shrink; one local step for each batch, and a start with larger hidden noise;
- CAVI: `fit`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks._old.paper import drawing, tables
from benchmarks._old.paper.drawing import Report
from benchmarks._old.paper.experiments import svi_figure
from bowtienet._old.data.rows import Rows, build_rows, split
from bowtienet._old.data.toy import NOISE_VARIANCE, simulate_toy
from bowtienet._old.evaluation import interval_coverage, negative_log_density, rmse
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.coordinate_ascent import fit
from bowtienet._old.inference.elbo import elbo
from bowtienet._old.inference.execution import settled_pass
from bowtienet._old.inference.iterate import FitResult, Progress
from bowtienet._old.inference.start import initialize
from bowtienet._old.inference.stochastic import fit_stochastic, loosened, minibatches
from bowtienet._old.model.architecture import build_architecture
from bowtienet._old.model.priors import default_model
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from bowtienet._old.prediction.predictive import predict

PAPER, OURS, CAVI = "SVI, the paper's steps", "SVI, whole steps", "CAVI"
STARTS = {"laplace": "the paper's start", "relu_network": "the estimator's start"}
COVERAGE = 0.9
RATE = 0.7
"""Forgetting rate of the ensembles, the curves and whole steps."""
GRID = np.column_stack([np.linspace(-2.0, 2.0, 200), np.zeros(200)])
"""Points of a predictive band, along the first input."""
SCORES = {"rmse": "RMSE", "nll": "NLL", "coverage": "coverage of 90 %"}


class Cell(NamedTuple):
    """What is fitted: method, batch size and forgetting rate."""

    method: str
    batch: int | None = None
    rate: float | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """Size of the study."""

    seeds: tuple[int, ...] = (140, 141, 142, 143, 144)
    """One for each run."""
    rows: int = 270
    new_rows: int = 2_000
    width: int = 20
    passes: int = 200
    batches: tuple[int, ...] = (10, 30, 90)
    rates: tuple[float, ...] = (0.55, 0.7, 0.85, 1.0)
    members: int = 5

    def cells(self) -> list[Cell]:
        """Single fits."""
        paper = [Cell(PAPER, batch, rate) for batch in self.batches for rate in self.rates]
        return [*paper, *(Cell(OURS, batch, RATE) for batch in self.batches), Cell(CAVI)]

    def shown(self) -> tuple[Cell, Cell, Cell]:
        """Of the ensembles and of the curves: the smallest batch, and the next for whole steps."""
        return Cell(PAPER, self.batches[0], RATE), Cell(OURS, self.batches[1], RATE), Cell(CAVI)


class Problem:
    """Rows of a run, standardised, and new ones as they are."""

    def __init__(self, study: Study, seed: int) -> None:
        rng = np.random.default_rng(seed)
        X, y = simulate_toy(study.rows, rng)
        self.new, self.new_targets = simulate_toy(study.new_rows, rng)
        self.center, self.unit = X.mean(axis=0), X.std(axis=0)
        self.target_center, self.target_unit = y.mean(), y.std()
        targets = (y[:, None] - self.target_center) / self.target_unit
        self.rows: Rows = build_rows((X - self.center) / self.unit, targets)

    def predict(self, fitted: FitResult | Progress, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation (n,) of the targets of new rows."""
        found = predict(fitted.model, fitted.factors, (X - self.center) / self.unit)
        deviation = np.sqrt(found.signal_variance + found.noise_variance)[:, 0]
        return (
            self.target_center + self.target_unit * found.mean[:, 0],
            self.target_unit * deviation,
        )


class Watch:
    """Notes the bound of all rows and the error of new ones after every pass."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.seconds = problem, 0.0
        self.passes: list[float] = []
        self.bounds: list[float] = []
        self.errors: list[float] = []

    def __call__(self, progress: Progress) -> None:
        """Note them, once for each pass."""
        n_rows = len(self.problem.rows.inputs)
        done = progress.n_visited / n_rows
        if self.passes and int(done) == int(self.passes[-1]):
            return
        begin = time.process_time()
        blocks = split(self.problem.rows, n_rows)
        found = settled_pass(progress.model, progress.factors, blocks, 1e-4, 50, map)
        mean, _ = self.problem.predict(progress, self.problem.new)
        self.passes.append(done)
        self.bounds.append(float(elbo(progress.model, progress.factors, found).total))
        self.errors.append(rmse(self.problem.new_targets, mean))
        self.seconds += time.process_time() - begin


def fit_one(
    study: Study, start: str, cell: Cell, seed: int, member: int, watched: bool
) -> dict[str, Any]:
    """Predictions, seconds and passes of a fit, and its curves if it is watched.

    Seconds are those of the fit alone. A fit that was interrupted raises.
    """
    problem = Problem(study, seed)
    rows, own_seed = problem.rows, 1000 * seed + member
    model = default_model(build_architecture(2, (study.width,), 1), rows.inputs, rows.targets)
    factors = initialize(model, rows, own_seed, init=start)
    watch = Watch(problem) if watched else None
    common = {"max_iter": study.passes, "n_threads": 1, "callback": watch}
    begin = time.process_time()
    if cell.batch is None:
        result = fit(model, rows, factors, **common)
    else:
        whole = {"adaptive": True, "momentum": 0.9, "local_iterations": 1}
        result = fit_stochastic(
            model,
            minibatches(rows, cell.batch, own_seed),
            loosened(factors) if cell.method == OURS else factors,
            n_rows=study.rows,
            forgetting_rate=cell.rate,
            **common,
            **(whole if cell.method == OURS else {}),
        )
    seconds = time.process_time() - begin
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return {
        "new": problem.predict(result, problem.new),
        "grid": problem.predict(result, GRID),
        "seconds": seconds - (watch.seconds if watch else 0.0),
        "passes": result.n_sweeps * (1.0 if cell.batch is None else cell.batch / study.rows),
        "curves": (watch.passes, watch.bounds, watch.errors) if watch else None,
    }


def mixture(fits: list[dict[str, Any]], where: str) -> Mixture:
    """What fits predict together, all with the same weight."""
    means, deviations = (np.stack(parts) for parts in zip(*(f[where] for f in fits), strict=True))
    return build_mixture(np.full(len(fits), 1.0 / len(fits)), means, deviations)


class Results:
    """Fits of a study, each made once and kept in the folder."""

    def __init__(self, study: Study, folder: Path, report: Report) -> None:
        self.study, self._report = study, report
        # A fit depends on the sizes of the study, and not on which others are made.
        self._sizes = replace(study, seeds=(), rates=(), batches=(), members=0)
        self._fit_one = drawing.remembered(fit_one, folder)

    def fits(self, start: str, cell: Cell, seed: int, count: int = 1) -> list[dict[str, Any]]:
        """The first fits of a cell in a run; the first is watched if the cell is shown."""
        if not all(
            self._fit_one.check_call_in_cache(*arguments)
            for arguments in self._arguments(start, cell, seed, count)
        ):
            self._report(f"svi: run {seed}, {tuple(cell)}, {count} fits from {STARTS[start]}")
        return [self._fit_one(*each) for each in self._arguments(start, cell, seed, count)]

    def _arguments(self, start: str, cell: Cell, seed: int, count: int) -> list[tuple[Any, ...]]:
        shown = cell in self.study.shown()
        return [
            (self._sizes, start, cell, seed, member, shown and member == 0)
            for member in range(count)
        ]

    def frame(self) -> pd.DataFrame:
        """Scores, seconds and passes of single fits and of several together."""
        singles = [("laplace", cell, 1) for cell in self.study.cells()]
        several = [
            (start, cell, count)
            for start in STARTS
            for cell in self.study.shown()
            for count in (1, self.study.members)
        ]
        rows = [
            {"start": start, "cell": cell, "fits": count, "seed": seed}
            | self._scores(start, cell, seed, count)
            for start, cell, count in dict.fromkeys(singles + several)
            for seed in self.study.seeds
        ]
        return pd.DataFrame(rows)

    def _scores(self, start: str, cell: Cell, seed: int, count: int) -> dict[str, float]:
        fits = self.fits(start, cell, seed, count)
        found, y = mixture(fits, "new"), Problem(self.study, seed).new_targets
        return {
            "rmse": rmse(y, found.mean()),
            "nll": negative_log_density(y, found),
            "coverage": interval_coverage(y, found.interval(COVERAGE)),
            "seconds": sum(each["seconds"] for each in fits),
            "passes": fits[0]["passes"],
        }


def write_fits(
    folder: Path, report: Report, *, n_jobs: int = 1, study: Study | None = None
) -> None:
    """Run what is left of the study, and write its tables and its figure.

    Fits are timed, so they come one after another on one thread, whatever `n_jobs`.
    """
    study = Study() if study is None else study
    results = Results(study, folder, report)
    frame = results.frame()
    drawing.save_table(_table(study, frame), folder, "svi")
    drawing.save_figure(svi_figure.draw(study, results, frame), folder, "svi")


def _table(study: Study, frame: pd.DataFrame) -> str:
    noise = 0.5 * (1.0 + np.log(2.0 * np.pi * NOISE_VARIANCE))
    words = (
        f"One hidden layer of {study.width} units, {study.rows} rows to fit, {study.new_rows:,} "
        f"new rows to score, {len(study.seeds)} runs from seed {study.seeds[0]} on, at most "
        f"{study.passes} passes over the rows, one thread. Noise alone has RMSE "
        f"{np.sqrt(NOISE_VARIANCE):.2f} and NLL {noise:.2f}. Seconds are the processor's. Mean ± "
        "standard deviation over the runs."
    )
    claim = (
        "The paper reports that an ensemble of five SVI fits with batches of 10 predicts about as "
        "well as coordinate ascent, in less than a fifth of its time."
    )
    return tables.page(
        "Stochastic variational inference",
        words,
        f"Single fits from {STARTS['laplace']}:",
        _single_table(study, frame),
        f"{study.members} fits with equal weights beside one:",
        _ensemble_table(study, frame),
        claim,
    )


def _single_table(study: Study, frame: pd.DataFrame) -> str:
    singles = frame[(frame["start"] == "laplace") & (frame["fits"] == 1)]
    singles = dict(iter(singles.groupby("cell")))
    cavi = singles[Cell(CAVI)]["seconds"].mean()
    header = ["method", "batch", "rate", *SCORES.values(), "passes", "seconds"]
    rows = []
    for cell in study.cells():
        passes, seconds = singles[cell][["passes", "seconds"]].mean()
        rows.append([cell.method, str(cell.batch or "all"), str(cell.rate or "")])
        rows[-1] += [*_texts(singles[cell]), f"{passes:.0f}", f"{seconds:.2f}"]
        rows[-1].append(f"{cavi / seconds:.2g}")
    return tables.markdown([*header, "times as fast as CAVI"], rows)


def _ensemble_table(study: Study, frame: pd.DataFrame) -> str:
    rows = []
    for start in STARTS:
        for cell in study.shown():
            for fits in (1, study.members):
                chosen = (frame["start"] == start) & frame["cell"].map(cell.__eq__)
                found = frame[chosen & (frame["fits"] == fits)]
                rows.append([f"`{start}`", cell.method, str(cell.batch or "all"), str(fits)])
                rows[-1] += [*_texts(found), f"{found['seconds'].mean():.2f}"]
    header = ["start", "method", "batch", "fits", *SCORES.values(), "seconds"]
    return tables.markdown(header, rows)


def _texts(found: pd.DataFrame) -> list[str]:
    return [tables.mean_and_spread(found[score].to_numpy(), 2) for score in SCORES]
