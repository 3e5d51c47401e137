"""What a default fit of `BowTieRegressor` costs and reaches, next to other methods in the same run.

python -m benchmarks fit --out fit.jsonl --page docs/measurements/fit.md
python -m benchmarks fit --out fit_seconds.jsonl --figure docs/figures/fit_seconds.png
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks._methods import METHODS
from benchmarks._run import Record, by, options, run, write
from benchmarks.data import FIVE_SETS, rows_of, split_of
from bowtienet import BowTieRegressor

Floats = np.ndarray
Split = tuple[Floats, Floats, Floats, Floats]


def smooth(x: Floats) -> Floats:
    """Smooth with interactions; five columns matter."""
    curves = np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 3] ** 2
    return curves + x[:, 1] * x[:, 2] + np.tanh(x[:, 3] * x[:, 4])


def steps(x: Floats) -> Floats:
    """Steps and products of steps; six columns matter."""
    above = x[:, :6] > np.array([0.0, 0.5, -0.5, 1.0, 0.0, -1.0])
    return above @ np.array([1.0, 0.5, 0.5, 1.0, 0.0, 0.0]) + 1.5 * (above[:, 4] & above[:, 5])


def generated(truth: Any, rows: int, columns: int, noise: float, seed: int) -> Split:
    """Normal features; the truth has deviation one; 5,000 test rows that `rows` do not change."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5_000 + rows, columns))
    y = truth(X)
    y = (y - y.mean()) / y.std() + noise * np.random.default_rng([seed, 1]).normal(size=len(y))
    return X[5_000:], X[:5_000], y[5_000:], y[:5_000]


def kin40k(seed: int) -> Split:
    """Half of the rows."""
    X, y = rows_of("kin40k")
    X, X_test, y, y_test = train_test_split(X, y, train_size=20_000, random_state=seed)
    return X, X_test, y, y_test


def first_rows(split: Callable[[int], Split], rows: int, seed: int) -> Split:
    """Fewer training rows of a split."""
    X, X_test, y, y_test = split(seed)
    return X[:rows], X_test, y[:rows], y_test


largest = partial(generated, smooth, 100_000, 20, 0.3)
TABLES: dict[str, Callable[[int], Split]] = {
    **{name: partial(split_of, name) for name in FIVE_SETS},
    "200 x 7": partial(generated, smooth, 200, 7, 0.3),
    "3,000 x 26": partial(generated, smooth, 3_000, 26, 0.3),
    "power": partial(split_of, "power"),
    "kin40k": kin40k,
    "15,000 x 26, smooth": partial(generated, smooth, 15_000, 26, 0.1),
    "15,000 x 26, steps": partial(generated, steps, 15_000, 26, 0.2),
    "20,000 of 100,000 x 20": partial(first_rows, largest, 20_000),
    "100,000 x 20": largest,
}
SIZES = (
    [(rows, 10) for rows in (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)],
    [(1_000, columns) for columns in (5, 20, 50, 200, 500, 2_000)],
)
"""Rows and columns of the figure's tables."""
SMALL = (*FIVE_SETS, "200 x 7")
LARGE = ("power", "kin40k", "15,000 x 26, smooth", "15,000 x 26, steps")


FOR_SMALL = ("Gaussian process", "BART")
TREES = ("CatBoost", "LightGBM", "CatBoost, uncertainty")
OLD = ("before the rebuild",)
SCORES = ("rmse", "nll", "coverage", "seconds")


def run_case(table: str, method: str, seed: int) -> Record:
    """Scores of the test rows and processor seconds of the fit."""
    if table in ANSWERS:
        return run_answer(table, method, seed)
    if table in TABLES:
        X, X_test, y, y_test = TABLES[table](seed)
    else:
        sizes = (int(size) for size in table.split(" x "))
        X, X_test, y, y_test = generated(smooth, *sizes, 0.3, seed)
    began = time.process_time()
    predict = METHODS[method](X, y, seed)
    seconds = getattr(predict, "seconds", time.process_time() - began)
    found = predict(X_test)
    return {
        "rmse": float(np.sqrt(np.mean((found.mean() - y_test) ** 2))),
        "nll": -float(np.mean(found.logpdf(y_test))),
        "coverage": float(np.mean(np.abs(found.cdf(y_test) - 0.5) <= 0.45)),
        "seconds": seconds,
    }


def methods_of(table: str) -> Sequence[str]:
    """Methods that a table is for."""
    if table in ANSWERS:
        return ("bowtienet",)
    return [method for method in METHODS if table in SMALL or method not in FOR_SMALL]


ANSWERS: dict[str, Callable[[BowTieRegressor, Floats], Any]] = {
    "a million rows, mean": lambda model, X: model.predict(X),
    "a million rows, std and interval": lambda model, X: (
        model.predict(X, return_std=True),
        model.predict_interval(X),
    ),
}


def run_answer(table: str, method: str, seed: int) -> Record:
    """Seconds on the wall for predictions with two threads; ten columns, 50 units."""
    X, _, y, _ = generated(smooth, 2_000, 10, 0.3, seed)
    model = BowTieRegressor(50, n_jobs=2, random_state=seed).fit(X, y)
    many = np.random.default_rng(seed).normal(size=(1_000_000, 10))
    began = time.perf_counter()
    ANSWERS[table](model, many)
    return {"seconds": time.perf_counter() - began}


EVERY = [*TABLES, *ANSWERS]
AIMS: tuple[tuple[str, str, tuple[str, ...], float], ...] = (
    ("200 x 7", "seconds", (), 1.5),
    ("concrete", "seconds", (), 3.0),
    *((table, "seconds", FOR_SMALL, 1.0) for table in ("200 x 7", "concrete")),
    *((table, "seconds", TREES[2:], 3.0) for table in ("200 x 7", "concrete")),
    ("3,000 x 26", "seconds", (), 25.0),
    ("3,000 x 26", "nll", OLD, 0.0),
    *((table, "seconds", TREES[:1], 8.0) for table in LARGE),
    *zip(LARGE, ("rmse",) * 4, (TREES,) * 4, (1.1, 1.0, 1.0, 1.2), strict=True),
    *((table, "nll", TREES, 0.0) for table in LARGE),
    ("100,000 x 20", "seconds", (), 40.0),
    *((table, "seconds", (), most) for table, most in zip(ANSWERS, (2.0, 6.0), strict=True)),
)
"""Table, score, the methods whose best it is compared with (a ratio; of NLL a difference), most."""
Runs = dict[tuple[str, str], list[Record]]


def mean(runs: Runs, table: str, method: str, score: str) -> float:
    """Over seeds; NaN for what was not run."""
    return float(np.mean([run[score] for run in runs.get((table, method), [])] or [np.nan]))


def reached(runs: Runs) -> Iterable[tuple[str, float, float]]:
    """What is asked, what was reached (NaN where runs are missing), and the most it may be."""
    for table, score, others, most in AIMS:
        value = mean(runs, table, "bowtienet", score)
        if not others:
            yield f"{table}: {score}", value, most
            continue
        known = [mean(runs, table, other, score) for other in others]
        best = min((each for each in known if np.isfinite(each)), default=np.nan)
        value = value - best if score == "nll" else value / best
        sign = "less" if score == "nll" else "over"
        yield f"{table}: {score} {sign} the least of {', '.join(others)}", value, most
    sizes = ("100,000 x 20", "20,000 of 100,000 x 20")
    all_rows, some = (mean(runs, size, "bowtienet", "rmse") for size in sizes)
    yield "100,000 x 20: rmse over that of 20,000 of the rows", all_rows / some, 1.0
    for score in ("nll", "rmse"):
        changes = [_changes(runs, table, score) for table in FIVE_SETS]
        yield f"five sets: mean {score} less that before", np.mean([c.mean() for c in changes]), 0.0
        if min(len(c) for c in changes) > 1:
            z = np.max([c.mean() / c.std(ddof=1) * len(c) ** 0.5 for c in changes])
            yield f"five sets: the worst change of {score}, in standard errors", z, 2.0


def _changes(runs: Runs, table: str, score: str) -> Floats:
    """Split by split, from before the rebuild."""
    methods = ("bowtienet", *OLD)
    new, old = ({r["seed"]: r[score] for r in runs.get((table, m), [])} for m in methods)
    return np.array([new[seed] - old[seed] for seed in new if seed in old] or [np.nan])


HEAD = """# What a default fit costs and reaches

Written by `python -m benchmarks fit`; plot by its option `--figure`. One core, one run, processor
seconds of the fit, means over random splits or seeds from 500 on (their number stands in the
table); every tenth row of the five sets and of power is a test row, of kin40k the half that is not
trained on, of generated tables 5,000 more rows. Coverage is that of 90 % intervals. CatBoost has
its defaults, and a mean alone; with its variances a fifth of the rows says how many trees are then
fitted to all, with LightGBM (learning rate 0.05) when to stop. Gaussian process: scikit-learn, a
length for each column. BART: stochtree, four chains of 100 forests, five steps apart. "Before the
rebuild" is the code of the commit in `benchmarks/before-rebuild`.

![Seconds of a fit](../figures/fit_seconds.png)

"""


def page(records: Iterable[Record]) -> str:
    """The aims, then a table for each set."""
    runs = by(records, "table", "method")
    lines = ["## Aims", "", "| | reached | at most | |", "|---|---|---|---|"]
    for what, value, most in reached(runs):
        if np.isfinite(value):
            verdict = "yes" if value <= most else "**no**"
            lines.append(f"| {what} | {value:.3g} | {most:g} | {verdict} |")
    lines += ["", "## Scores", "", "| table | method | runs | RMSE | NLL | coverage | seconds |"]
    lines.append("|---" * 7 + "|")
    for table, method in itertools.product(TABLES, METHODS):
        if (table, method) in runs:
            error, loss, share, seconds = (mean(runs, table, method, score) for score in SCORES)
            density = " | " if np.isnan(loss) else f"{loss:.3f} | {share:.2f}"
            count = len(runs[table, method])
            lines.append(
                f"| {table} | {method} | {count} | {error:.3g} | {density} | {seconds:.1f} |"
            )
    return HEAD + "\n".join(lines) + "\n"


def draw(records: Iterable[Record], path: Path) -> None:
    """Seconds against rows and columns."""
    from matplotlib import pyplot as plt

    runs = by(records, "table", "method")
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True, layout="constrained")
    labels = ("rows, of 10 columns", "columns, of 1,000 rows")
    for index, (axis, label, sizes) in enumerate(zip(axes, labels, SIZES, strict=True)):
        for method in ("bowtienet", *TREES):
            values = [mean(runs, f"{r} x {c}", method, "seconds") for r, c in sizes]
            axis.loglog([size[index] for size in sizes], values, "o-", label=method)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("processor seconds")
    axes[1].legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run what is missing, and write the page or draw the figure."""
    parser = options("fit", __doc__, seeds=10)
    parser.add_argument("--tables", nargs="+", choices=EVERY, default=EVERY)
    parser.add_argument("--figure", type=Path, help="draw seconds against sizes, of one seed")
    arguments = parser.parse_args()
    names = ("table", "method", "seed")
    if arguments.figure is not None:
        sizes = [f"{rows} x {columns}" for rows, columns in (*SIZES[0], *SIZES[1])]
        cases = itertools.product(sizes, ("bowtienet", *TREES), arguments.seeds[:1])
        draw(run(run_case, names, cases, arguments), arguments.figure)
        return
    cases = itertools.product(arguments.tables, METHODS, range(*arguments.seeds))
    wanted = [case for case in cases if case[1] in methods_of(case[0])]
    write(page(run(run_case, names, wanted, arguments)), arguments.page)


if __name__ == "__main__":
    main()
