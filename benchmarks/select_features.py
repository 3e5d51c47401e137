"""Whether `select_features` keeps its rate on planted tables, and what it finds, beside others.

python -m benchmarks select_features --page docs/measurements/select_features.md

The competitors are hidimstat's distilled conditional randomisation test (dCRT, by Benjamini and
Hochberg) and model-X knockoffs, both with their defaults, knockpy's if it is installed, and two
rules without a promise.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from hidimstat import D0CRT, ModelXKnockoff
from scipy.stats import false_discovery_control
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LassoCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._run import Record, by, options, run, write
from bowtienet import select_features

RATE = 0.1
Floats = np.ndarray
SIGNALS: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda x: x[:, 0] - 0.8 * x[:, 1] + 0.6 * x[:, 2],
    "bent": lambda x: np.abs(x[:, 0]) + np.cos(2.0 * x[:, 1]) + (x[:, 2] > 0.3),
    "waves": lambda x: np.sin(3.0 * x[:, :3]).sum(axis=1),
    "interactions": lambda x: x[:, 0] * x[:, 1] + np.where(x[:, 1] > 0.0, x[:, 2], -x[:, 2]),
    "nothing": lambda x: np.zeros(len(x)),
}
"""Of the first three columns, whose noise has half of the signal's variance."""
SIZES = ((200, 20), (500, 50), (200, 100))
"""Rows and columns; neighbours in a random order are correlated at 0.5."""


def planted(signal: str, rows: int, columns: int, seed: int) -> tuple[Floats, Floats]:
    """Features and targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        x[:, j] = 0.5 * x[:, j - 1] + np.sqrt(0.75) * x[:, j]
    x = x[:, rng.permutation(columns)]
    f = SIGNALS[signal](x)
    return x, f + (np.sqrt(0.5) * f.std() or 1.0) * rng.normal(size=rows)


def by_crt(X: Floats, y: Floats) -> Floats:
    """Selected columns of hidimstat's dCRT."""
    test = D0CRT(estimator=LassoCV(), random_state=0)
    test.fit(X, y)
    test.importance(X, y)
    return false_discovery_control(np.nan_to_num(test.pvalues_, nan=1.0)) <= RATE


def by_knockoffs(X: Floats, y: Floats) -> Floats:
    """Selected columns of hidimstat's knockoffs."""
    test = ModelXKnockoff(random_state=0)
    test.fit_importance(X, y)
    return np.asarray(test.fdr_selection(fdr=RATE)) > 0


def by_lasso(X: Floats, y: Floats) -> Floats:
    """Columns that the Lasso keeps at its cross-validated penalty: no rate is promised."""
    return LassoCV(random_state=0).fit(StandardScaler().fit_transform(X), y).coef_ != 0.0


def by_permutation(X: Floats, y: Floats) -> Floats:
    """Columns whose permutation costs a forest more than two deviations: no rate is promised."""
    X_few, X_held, y_few, y_held = train_test_split(X, y, test_size=0.3, random_state=0)
    forest = RandomForestRegressor(200, random_state=0).fit(X_few, y_few)
    found = permutation_importance(forest, X_held, y_held, n_repeats=20, random_state=0)
    return found.importances_mean > 2.0 * found.importances_std


def by_knockpy(X: Floats, y: Floats) -> Floats:
    """Selected columns of knockpy's Gaussian knockoffs with the statistic of the Lasso."""
    from knockpy import KnockoffFilter

    np.random.seed(0)  # noqa: NPY002 (knockpy has no other source)
    return KnockoffFilter(ksampler="gaussian", fstat="lasso").forward(X, y, fdr=RATE) > 0


METHODS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "select_features": lambda X, y: select_features(X, y, false_discovery_rate=RATE).selected,
    "hidimstat dCRT": by_crt,
    "hidimstat knockoffs": by_knockoffs,
    "Lasso": by_lasso,
    "permutation": by_permutation,
}
if find_spec("knockpy") is not None:
    METHODS["knockpy"] = by_knockpy


def case(signal: str, rows: int, columns: int, method: str, seed: int) -> Record:
    """False share, power and processor seconds of a method on a table."""
    X, y = planted(signal, rows, columns, seed)
    began = time.process_time()
    chosen = METHODS[method](X, y)
    seconds = time.process_time() - began
    n_true = 0 if signal == "nothing" else 3
    false = float(chosen[n_true:].sum() / max(chosen.sum(), 1))
    power = float(chosen[:n_true].mean()) if n_true else float("nan")
    return {"false": false, "power": power, "seconds": seconds}


def page(records: list[Record]) -> str:
    """Means by signal, size and method."""
    lines = [
        "# Selected columns on planted tables",
        "",
        f"Written by `python -m benchmarks select_features`, at the stated rate {RATE}. Three",
        "columns matter; neighbours, in a random order, are correlated at 0.5; the noise has half",
        "the variance of the signal. The mean share of false columns among the selected ones ± its",
        "standard error / the share of true columns that are selected / processor seconds.",
        "Where nothing matters, the false share is that of tables with any selected column.",
        "",
        "Knockoffs select ten columns at this rate or none, so that three are never enough.",
        "",
        f"| signal | rows x columns | tables | {' | '.join(METHODS)} |",
        "|---|---|---|" + "---|" * len(METHODS),
    ]
    groups = by(records, "signal", "rows", "columns", "method")
    for signal, (rows, columns) in itertools.product(SIGNALS, SIZES):
        cells, count = [], 0
        for method in METHODS:
            runs = groups.get((signal, rows, columns, method), [])
            count = max(count, len(runs))
            cells.append(cell(runs))
        if count:
            lines.append(f"| {signal} | {rows} x {columns} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cell(runs: list[Record]) -> str:
    """False share, power and seconds of some tables."""
    if not runs:
        return "-"
    means: dict[str, Any] = {
        name: np.mean([run[name] for run in runs]) for name in ("false", "power", "seconds")
    }
    error = np.std([run["false"] for run in runs]) / np.sqrt(len(runs))
    power = "-" if np.isnan(means["power"]) else f"{means['power']:.2f}"
    return f"{means['false']:.2f} ± {error:.2f} / {power} / {means['seconds']:.1f}"


def main() -> None:
    """Run the cases and write the page."""
    given = options("select_features", __doc__, 5).parse_args()
    cases = [
        (signal, rows, columns, method, seed)
        for seed in range(*given.seeds)
        for signal in SIGNALS
        for rows, columns in SIZES
        for method in METHODS
    ]
    names = ("signal", "rows", "columns", "method", "seed")
    write(page(run(case, names, cases, given)), given.page)
