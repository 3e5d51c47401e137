"""Stochastic steps against coordinate ascent on the paper's toy data, by batch size and rate.

The paper's appendix on SVI varies the size of the minibatch and the forgetting rate k, and compares
with coordinate ascent and with five SVI fits together. Here it is again: y = 0.1 x0² + 10 sin(x0) +
noise of variance 0.5, two inputs of which the second has no part, one hidden layer of 20 units.
Every run draws 270 rows to fit (90 % of the paper's 300) and, because the 30 that are left would
say little, 2,000 new ones to score. Scores are in the unit of the target; the noise alone has RMSE
0.71 and NLL 1.07. One thread; seconds are the processor's, for a fit from a given start.

Three methods run from the same starts, for at most 200 passes over the rows:

- SVI, the paper's: `bt.fit_stochastic` at its defaults, steps (t + 1)^-k, local factors settled;
- SVI, whole steps: whole steps with momentum 0.9 until the bound stops rising, then ones that
  shrink; one local step for each batch, and a start with larger hidden noise;
- CAVI: `bt.fit`.

It prints two Markdown tables, the grid and the ensembles (equal weights; also from the start that
the estimator uses), and draws docs/figures/svi_toy.png. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import bowtienet as bt
from bowtienet.data.rows import split
from bowtienet.data.toy import simulate_toy
from bowtienet.evaluation import interval_coverage, negative_log_density, rmse
from bowtienet.inference.elbo import elbo
from bowtienet.inference.execution import settled_pass
from bowtienet.inference.stochastic import loosened
from bowtienet.prediction.mixture import GaussianMixture, build_mixture

FIRST_SEED = 140
ROWS, NEW_ROWS, WIDTH = 270, 2_000, 20
PASSES = 200
BATCHES = (10, 30, 90)
RATES = (0.55, 0.7, 0.85, 1.0)
MEMBERS = 5
STARTS = {"laplace": "the paper's start", "relu_network": "the estimator's start"}
PAPER = "SVI, the paper's steps"
OURS = "SVI, whole steps"
CAVI = "CAVI"
SHOWN = ((PAPER, 10, 0.7), (OURS, 30, 0.7), (CAVI, None, None))
"""Method, batch size and rate of the ensembles and of the curves."""
FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "svi_toy.png"
INK = "#333333"
STYLES = {
    PAPER: {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    OURS: {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    CAVI: {"color": INK, "linestyle": ":", "marker": "^"},
}
BATCH_STYLES = {
    10: {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    30: {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    90: {"color": "#009E73", "linestyle": "-.", "marker": "D"},
}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Rows of a run, standardised, and new ones as they are."""

    seed: int
    rows: bt.Rows
    input_scaling: bt.Scaling
    target_scaling: bt.Scaling
    new: np.ndarray
    new_targets: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fit, its seconds, and what it was worth after every pass, if that was asked for."""

    result: bt.FitResult
    seconds: float
    passes: np.ndarray
    bounds: np.ndarray
    errors: np.ndarray


@cache
def problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    X, y = simulate_toy(ROWS, rng)
    new_X, new_y = simulate_toy(NEW_ROWS, rng)
    of_inputs, of_targets = bt.fit_scaling(X), bt.fit_scaling(y[:, None])
    return Problem(
        seed=seed,
        rows=bt.build_rows(bt.standardize(of_inputs, X), bt.standardize(of_targets, y[:, None])),
        input_scaling=of_inputs,
        target_scaling=of_targets,
        new=new_X,
        new_targets=new_y,
    )


def fit(
    of: Problem,
    scheme: str,
    method: str,
    batch: int | None,
    rate: float | None,
    member: int = 0,
    watched: bool = False,
) -> Fitted:
    architecture = bt.build_architecture(2, (WIDTH,), 1)
    model = bt.default_model(architecture, of.rows.inputs, of.rows.targets)
    factors = bt.initialize(model, of.rows, 1000 * of.seed + member, scheme=scheme)
    watch = Watch(of) if watched else None
    begin = time.process_time()
    if method == CAVI:
        result = bt.fit(model, of.rows, factors, max_sweeps=PASSES, n_threads=1, callback=watch)
    else:
        ours = method == OURS
        result = bt.fit_stochastic(
            model,
            bt.minibatches(of.rows, batch, 1000 * of.seed + member),
            loosened(factors) if ours else factors,
            n_rows=ROWS,
            max_epochs=PASSES,
            forgetting_rate=rate,
            n_threads=1,
            callback=watch,
            **({"adaptive": True, "momentum": 0.9, "local_iterations": 1} if ours else {}),
        )
    seconds = time.process_time() - begin
    if watch is None:
        return Fitted(result=result, seconds=seconds, passes=[], bounds=[], errors=[])
    return Fitted(
        result=result,
        seconds=seconds - watch.seconds,
        passes=np.array(watch.passes),
        bounds=np.array(watch.bounds),
        errors=np.array(watch.errors),
    )


class Watch:
    """Notes the bound of all rows and the error of new ones after every pass."""

    def __init__(self, of: Problem) -> None:
        self.of, self.seconds = of, 0.0
        self.passes: list[float] = []
        self.bounds: list[float] = []
        self.errors: list[float] = []

    def __call__(self, progress: bt.Progress) -> None:
        done = progress.n_visited / ROWS
        if self.passes and int(done) == int(self.passes[-1]):
            return
        begin = time.process_time()
        self.passes.append(done)
        self.bounds.append(bound(self.of, progress.model, progress.factors))
        found = predictive(self.of, [progress], self.of.new)
        self.errors.append(scores(found, self.of.new_targets)[0])
        self.seconds += time.process_time() - begin


def bound(of: Problem, model: bt.BowTieModel, factors: bt.GlobalFactors) -> float:
    """The bound of all rows, their local factors settled."""
    found = settled_pass(model, factors, split(of.rows, ROWS), 1e-4, 50, map)
    return float(elbo(model, factors, found).total)


def predictive(of: Problem, members: Sequence[bt.FitResult], X: np.ndarray) -> GaussianMixture:
    """What members predict together, all with the same weight."""
    inputs = bt.standardize(of.input_scaling, X)
    found = [bt.predict(member.model, member.factors, inputs) for member in members]
    means = [bt.restore_mean(of.target_scaling, each.mean)[:, 0] for each in found]
    deviations = [
        bt.restore_deviation(
            of.target_scaling, np.sqrt(each.signal_variance + each.noise_variance)
        )[:, 0]
        for each in found
    ]
    return build_mixture(
        np.full(len(found), 1.0 / len(found)), np.stack(means), np.stack(deviations)
    )


def scores(found: GaussianMixture, y: np.ndarray) -> tuple[float, float, float]:
    """RMSE, NLL and the share of targets in central intervals of 90 %."""
    return (
        rmse(y, found.mean()),
        negative_log_density(y, found),
        interval_coverage(y, found.interval(0.9)),
    )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run_grid(seeds: Sequence[int]) -> dict[tuple, np.ndarray]:
    """RMSE, NLL, coverage, seconds and passes (runs, 5) of single fits from the paper's start."""
    cells = [(PAPER, batch, rate) for batch in BATCHES for rate in RATES]
    cells += [(OURS, batch, 0.7) for batch in BATCHES] + [(CAVI, None, None)]
    grid: dict[tuple, list] = {cell: [] for cell in cells}
    for seed in seeds:
        of = problem(seed)
        for cell in cells:
            say(f"run {seed}: {cell}")
            fitted = fit(of, "laplace", *cell)
            result = fitted.result
            passes = result.n_sweeps * (1.0 if cell[1] is None else cell[1] / ROWS)
            found = predictive(of, [result], of.new)
            grid[cell].append((*scores(found, of.new_targets), fitted.seconds, passes))
    return {cell: np.array(rows) for cell, rows in grid.items()}


def run_ensembles(seeds: Sequence[int]) -> tuple[dict[tuple, np.ndarray], dict[tuple, list]]:
    """Scores and seconds (runs, 4) of one member and of five, and the members themselves."""
    table: dict[tuple, list] = {}
    members: dict[tuple, list] = {}
    for scheme in STARTS:
        for seed in seeds:
            of = problem(seed)
            for cell in SHOWN:
                say(f"run {seed}, {scheme}: {MEMBERS} x {cell}")
                # The first is watched for the curves; what that takes is not in its seconds.
                fits = [fit(of, scheme, *cell, member=m, watched=m == 0) for m in range(MEMBERS)]
                members.setdefault((scheme, *cell), []).append(fits)
                for size in (1, MEMBERS):
                    found = predictive(of, [each.result for each in fits[:size]], of.new)
                    seconds = sum(each.seconds for each in fits[:size])
                    row = (*scores(found, of.new_targets), seconds)
                    table.setdefault((scheme, *cell, size), []).append(row)
    return {key: np.array(rows) for key, rows in table.items()}, members


def spread(values: np.ndarray, digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) if len(values) > 1 else 0:.{digits}f}"


def print_grid(grid: dict[tuple, np.ndarray]) -> None:
    print(f"Single fits from {STARTS['laplace']}.\n")
    print("| method | batch | rate | RMSE | NLL | coverage of 90 % | passes | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for (method, batch, rate), v in grid.items():
        print(
            f"| {method} | {batch or 'all'} | {rate or ''} | {spread(v[:, 0], 2)} "
            f"| {spread(v[:, 1], 2)} | {spread(v[:, 2], 2)} | {v[:, 4].mean():.0f} "
            f"| {v[:, 3].mean():.2f} |"
        )
    print()


def print_ensembles(table: dict[tuple, np.ndarray]) -> None:
    print("| start | method | batch | fits | RMSE | NLL | coverage of 90 % | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for (scheme, method, batch, _, size), v in table.items():
        print(
            f"| `{scheme}` | {method} | {batch or 'all'} | {size} | {spread(v[:, 0], 2)} "
            f"| {spread(v[:, 1], 2)} | {spread(v[:, 2], 2)} | {v[:, 3].mean():.2f} |"
        )


def draw_grid(axes: Sequence[plt.Axes], grid: dict[tuple, np.ndarray]) -> None:
    """Scores by rate and batch, and seconds."""
    names = ("RMSE", "NLL", "coverage of 90 % intervals")
    apart = RATES[-1] + 0.12
    for column, (ax, name) in enumerate(zip(axes[:3], names, strict=True)):
        for batch, style in BATCH_STYLES.items():
            values = [grid[PAPER, batch, rate][:, column] for rate in RATES]
            draw_errors(ax, np.array(RATES), values, style, f"batches of {batch}")
            at = apart + 0.025 * (BATCHES.index(batch) - 1)
            draw_errors(ax, np.array([at]), [grid[OURS, batch, 0.7][:, column]], style, None)
        ax.axhline(grid[CAVI, None, None][:, column].mean(), color=INK, linestyle=":", label=CAVI)
        ax.axvline(RATES[-1] + 0.05, color="#B5B5B5", linewidth=0.8)
        ax.set_xticks([*RATES, apart], [*map(str, RATES), "whole steps"])
        ax.set_xlabel("forgetting rate of the paper's steps")
        ax.set_title(name)
    axes[2].axhline(0.9, color="#B5B5B5", linewidth=0.8)
    axes[2].set_ylim(0.8, 1.0)
    axes[0].set_yscale("log")
    ticks = (0.7, 0.8, 1, 1.5, 2, 3)
    axes[0].set_yticks(ticks, map(str, ticks))
    axes[0].minorticks_off()
    axes[0].legend(frameon=False, fontsize=8)
    draw_seconds(axes[3], grid)


def draw_errors(
    ax: plt.Axes, x: np.ndarray, values: Sequence[np.ndarray], style: dict, label: str | None
) -> None:
    """Means with standard errors."""
    means = [each.mean() for each in values]
    errors = [each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0 for each in values]
    ax.errorbar(x, means, errors, **style, markersize=5, linewidth=1.3, capsize=2, label=label)


def draw_seconds(ax: plt.Axes, grid: dict[tuple, np.ndarray]) -> None:
    """Bars with how many times faster than CAVI each is."""
    whole = grid[CAVI, None, None][:, 3].mean()
    bars = [(f"paper, {batch}", grid[PAPER, batch, 0.7][:, 3].mean(), PAPER) for batch in BATCHES]
    bars += [(f"whole, {batch}", grid[OURS, batch, 0.7][:, 3].mean(), OURS) for batch in BATCHES]
    bars += [(CAVI, whole, CAVI)]
    for place, (_, seconds, method) in enumerate(bars):
        hatch = {PAPER: "//", OURS: "", CAVI: ".."}[method]
        color = STYLES[method]["color"]
        ax.barh(place, seconds, color="white" if hatch else color, edgecolor=color, hatch=hatch)
        note = "" if method == CAVI else f" {whole / seconds:.1f}x"
        ax.text(seconds, place, note, va="center", fontsize=8)
    ax.set_yticks(range(len(bars)), [name for name, *_ in bars])
    ax.invert_yaxis()
    ax.margins(x=0.18)
    ax.set_xlabel("seconds (times as fast as CAVI)")
    ax.set_title("time of a fit, rate 0.7")


def draw_curves(axes: Sequence[plt.Axes], members: dict[tuple, list]) -> None:
    """Bound of all rows and error of new ones after each pass: medians over the runs."""
    grid = np.unique(np.round(np.geomspace(1, PASSES, 60)))
    pick: tuple[Callable[[Fitted], np.ndarray], ...] = (lambda f: f.bounds, lambda f: f.errors)
    for ax, values in zip(axes, pick, strict=True):
        for method, batch, rate in SHOWN:
            runs = [fits[0] for fits in members["laplace", method, batch, rate]]
            curves = [
                values(run)[np.searchsorted(run.passes, grid, side="right").clip(1) - 1]
                for run in runs
            ]
            style = {**STYLES[method], "marker": ""}
            label = f"{method}, {batch}" if batch else method
            ax.plot(grid, np.median(curves, axis=0), **style, linewidth=1.5, label=label)
            ends = np.median([run.passes[-1] for run in runs])
            last = np.median([values(run)[-1] for run in runs])
            ax.plot(ends, last, color=style["color"], marker=STYLES[method]["marker"], markersize=6)
        ax.set_xscale("log")
        ax.set_xticks((1, 10, 100), ("1", "10", "100"))
        ax.set_xlabel("passes over the rows (mark: median end)")
    axes[0].set_title("bound of all rows")
    axes[1].axhline(np.sqrt(0.5), color="#B5B5B5", linewidth=0.8)
    axes[1].set_title("RMSE of new rows (line: the noise)")
    axes[1].legend(frameon=False, fontsize=8)


def draw_functions(axes: Sequence[plt.Axes], members: dict[tuple, list], seed: int) -> None:
    """Mean and central 90 % along the first input for one fit and for five, in the first run."""
    of = problem(seed)
    along = np.linspace(-2.0, 2.0, 200)
    new = np.column_stack([along, np.zeros(200)])
    X, y = simulate_toy(ROWS, np.random.default_rng(seed))
    for ax, size in zip(axes, (1, MEMBERS), strict=True):
        ax.plot(X[:, 0], y, ".", color="#BBBBBB", markersize=3)
        for method, batch, rate in SHOWN:
            fits = members["laplace", method, batch, rate][0][:size]
            found = predictive(of, [each.result for each in fits], new)
            low, high = found.interval(0.9).T
            style = {**STYLES[method], "marker": ""}
            ax.plot(along, found.mean(), **style, linewidth=1.5)
            ax.fill_between(along, low, high, color=style["color"], alpha=0.12, linewidth=0)
        ax.set_xlabel("x0 (x1 = 0)")
        ax.set_title("one fit" if size == 1 else f"{size} fits, equal weights")


def draw_figure(
    path: Path, grid: dict[tuple, np.ndarray], members: dict[tuple, list], seed: int
) -> None:
    fig, axes = plt.subplots(2, 4, figsize=(16, 7.5), layout="constrained")
    draw_grid(axes[0], grid)
    draw_curves(axes[1, :2], members)
    draw_functions(axes[1, 2:], members, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)
    seeds = range(options.seed, options.seed + options.runs)
    grid = run_grid(seeds)
    print(f"{options.runs} runs from seed {options.seed} on, mean ± standard deviation.\n")
    print_grid(grid)
    table, members = run_ensembles(seeds)
    print_ensembles(table)
    draw_figure(options.figure, grid, members, options.seed)


if __name__ == "__main__":
    main()
