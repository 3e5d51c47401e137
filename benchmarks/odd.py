"""Tables at the edge: little noise, many columns, odd rows and columns, gaps; each line has an aim.

python -m benchmarks odd --out odd.jsonl --page docs/measurements/odd.md
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LassoCV, LinearRegression

from benchmarks._before import Before
from benchmarks._methods import METHODS, Floats
from benchmarks._run import Record, by, options, run, write
from bowtienet import BowTieRegressor

Values = tuple[float, ...]
"""What was reached, one number for each aim of a case."""


def fitted(X: Any, y: Floats, seed: int) -> BowTieRegressor:
    """The defaults."""
    return BowTieRegressor(random_state=seed).fit(X, y)


def rmse(model: Any, X: Any, y: Floats) -> float:
    """Of its means."""
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def coverage(model: Any, X: Any, y: Floats) -> float:
    """Of 90 % intervals."""
    low, high = model.predict_interval(X, 0.9).T
    return float(np.mean((low <= y) & (y <= high)))


def curves(rng: np.random.Generator, rows: int) -> tuple[Floats, Floats]:
    """Five uniform columns and a smooth function of three, of deviation about one."""
    X = rng.uniform(-2.0, 2.0, size=(rows, 5))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]


def linear(seed: int) -> Values:
    """X = 1.19 y + 0.001 e with heavy-tailed y, 1,350 rows."""
    rng = np.random.default_rng(seed)
    y = rng.standard_t(2.5, size=2_350)
    X = (1.19 * y + 0.001 * rng.normal(size=len(y)))[:, None]
    model, line = fitted(X[:1_350], y[:1_350], seed), LinearRegression().fit(X[:1_350], y[:1_350])
    std = model.predict(X[1_350:], return_std=True)[1]
    ratio = rmse(model, X[1_350:], y[1_350:]) / rmse(line, X[1_350:], y[1_350:])
    return ratio, float(np.median(std)) * 1.19 / 0.001


NOISELESS: tuple[Callable[[Floats], Floats], ...] = (
    lambda x: np.sin(3.0 * x[:, 0]),
    lambda x: x[:, 0] * x[:, 1],
    lambda x: np.exp(-np.sum(x**2, axis=1)),
    lambda x: np.hypot(x[:, 0], x[:, 1] * x[:, 2]) + x[:, 3],
    lambda x: np.sin(np.pi * x[:, 0] * x[:, 1]) + 2.0 * x[:, 2] ** 2 + x[:, 3] + 0.5 * x[:, 4],
    lambda x: x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + np.tanh(2.0 * x[:, 4] * x[:, 5]),
)
"""Of one to six columns that are uniform in [-1, 1]."""


def noiseless(seed: int) -> Values:
    """500 rows of each function, with noise of 0.001 deviations."""
    values = []
    for n_columns, truth in enumerate(NOISELESS, start=1):
        rng = np.random.default_rng([seed, n_columns])
        X = rng.uniform(-1.0, 1.0, size=(1_500, n_columns))
        y = truth(X) / truth(X).std() + 0.001 * rng.normal(size=1_500)
        model = fitted(X[:500], y[:500], seed)
        old = Before("BowTieRegressor", X[:500], y[:500], effort="best", random_state=seed)
        before = float(np.sqrt(np.mean((old(X[500:]).mean() - y[500:]) ** 2)))
        values.append(coverage(model, X[500:], y[500:]))
        values.append(rmse(model, X[500:], y[500:]) / before)
    return tuple(values)


def wide(seed: int) -> Values:
    """Three true columns of 2,000."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1_300, 2_000))
    y = X[:, :3] @ np.array([2.0, -1.5, 1.0]) + 0.5 * rng.normal(size=len(X))
    model, lasso = fitted(X[:270], y[:270], seed), LassoCV().fit(X[:270], y[:270])
    began = time.process_time()
    fitted(X[:300], y[:300], seed)
    seconds = time.process_time() - began
    return rmse(model, X[300:], y[300:]) / rmse(lasso, X[300:], y[300:]), seconds


def nearly_constant(seed: int) -> Values:
    """Two columns that are constant up to rounding, and a target of few values."""
    X, y = curves(rng := np.random.default_rng(seed), 2_000)
    y = np.round(10.0 * y) / 10.0
    rounding = np.array([288.0, 0.998]) * (1.0 + 1e-15 * rng.normal(size=(2_000, 2)))
    more = np.column_stack([X, rounding])
    model, plain = fitted(more[:1_000], y[:1_000], seed), fitted(X[:1_000], y[:1_000], seed)
    loss = rmse(model, more[1_000:], y[1_000:]) / rmse(plain, X[1_000:], y[1_000:])
    return loss, -model.log_score(more[1_000:], y[1_000:])


def totals_row(seed: int) -> Values:
    """The last row has a hundred times the mean of the others."""
    X, y = curves(rng := np.random.default_rng(seed), 1_500)
    X, y = X + 3.0, y + 5.0 + 0.3 * rng.normal(size=1_500)
    clean = rmse(fitted(X[:499], y[:499], seed), X[500:], y[500:])
    X[499], y[499] = 100.0 * X[:499].mean(axis=0), 100.0 * y[:499].mean()
    return (rmse(fitted(X[:500], y[:500], seed), X[500:], y[500:]) / clean,)


def equal_values(seed: int) -> Values:
    """Zero where a smooth function with noise is low: 40 % of 1,000 rows."""
    X, y = curves(rng := np.random.default_rng(seed), 2_000)
    y = y + 0.3 * rng.normal(size=len(y))
    y = np.maximum(y - np.quantile(y, 0.4), 0.0)
    model = fitted(X[:1_000], y[:1_000], seed)
    trees = METHODS["CatBoost"](X[:1_000], y[:1_000], seed)(X[1_000:]).mean()
    loss = rmse(model, X[1_000:], y[1_000:]) / float(np.sqrt(np.mean((trees - y[1_000:]) ** 2)))
    return loss, coverage(model, X[1_000:], y[1_000:])


def ten_rows(seed: int) -> Values:
    """A line with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1_010, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=len(X))
    model = fitted(X[:10], y[:10], seed)
    constant = float(np.sqrt(np.mean((y[10:] - y[:10].mean()) ** 2)))
    return rmse(model, X[10:], y[10:]) / constant, coverage(model, X[10:], y[10:])


def ten_levels(seed: int) -> Values:
    """A category is all of the signal; 500 rows, three more columns."""
    rng = np.random.default_rng(seed)
    level = rng.integers(10, size=1_500)
    frame = pd.DataFrame(rng.normal(size=(1_500, 3)), columns=["a", "b", "c"])
    frame["level"] = np.array(list("abcdefghij"))[level]
    y = 2.0 * rng.normal(size=10)[level] + 0.3 * rng.normal(size=1_500)
    return (rmse(fitted(frame[:500], y[:500], seed), frame[500:], y[500:]) / 0.3,)


def gap(seed: int, kind: Any = BowTieRegressor) -> Values:
    """A sine of one column without rows in [-1, 1] and beyond 4."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(1.0, 4.0, size=300) * rng.choice([-1.0, 1.0], size=300)
    y = np.sin(x) + 0.1 * rng.normal(size=300)
    model = kind(random_state=seed).fit(x[:, None], y)
    inside, beside = np.linspace(-0.5, 0.5, 21)[:, None], np.linspace(1.5, 2.5, 21)[:, None]
    mean, std = model.predict(inside, return_std=True)
    within = np.abs(mean - np.sin(inside[:, 0])) <= 1.645 * std
    ratio = np.median(std) / np.median(model.predict(beside, return_std=True)[1])
    near, far = model.predict_components([[24.0], [44.0]]).epistemic
    return float(ratio), float(within.mean()), float(far / near)


CASES: dict[str, tuple[Callable[[int], Values], dict[str, tuple[float, float]]]] = {
    "linear": (linear, {"RMSE over that of a line": (0, 3), "median std over the truth": (0.5, 2)}),
    "wide": (wide, {"RMSE over LassoCV's": (0, 1.2), "seconds of 300 rows": (0, 40)}),
    "nearly constant columns": (nearly_constant, {
        "RMSE over that without them": (0, 1.1), "NLL": (-np.inf, 2),
    }),
    "a totals row": (totals_row, {"RMSE of other rows over that without it": (0, 2)}),
    "40 % equal targets": (equal_values, {"RMSE over CatBoost's": (0, 1), "coverage": (0.85, 1)}),
    "ten rows": (ten_rows, {"RMSE over a constant's": (0, 1), "coverage": (0.8, 1)}),
    "ten levels": (ten_levels, {"RMSE over the noise": (0, 1.1)}),
    "gap": (gap, {
        "std over that beside it": (2, 100),
        "share of the truth within 90 %": (0.9, 1),
        "std at 40 from the rows over that at 20": (1.5, 2.5),
    }),
    "noiseless": (noiseless, {
        f"{n} columns: {what}": aim
        for n in range(1, 7)
        for what, aim in (("coverage", (0.8, 1)), ('RMSE over that before, effort="best"', (0, 1)))
    }),
}  # fmt: skip
"""Cases, and the least and the most that means of their values over seeds may be."""
HEAD = """# Tables at the edge

Written by `python -m benchmarks odd`, whose file says how tables are drawn. Fits with the defaults
on one core, scores of rows that they did not see, means over seeds from 500 on and the range over
them; coverage is that of 90 % intervals, "before" the library before the rebuild.

| table | what | aim | reached | range | seeds | |
|---|---|---|---|---|---|---|
"""


def run_case(case: str, seed: int) -> Record:
    """The values of one case."""
    return {"values": CASES[case][0](seed)}


def page(records: Iterable[Record]) -> str:
    """A line for each aim."""
    lines = []
    for (case,), runs in by(records, "case").items():
        table = np.array([run["values"] for run in runs])
        for (what, (least, most)), values in zip(CASES[case][1].items(), table.T, strict=True):
            aim = f"at most {most:g}" if least <= 0.0 else f"{least:g} to {most:g}"
            verdict = "yes" if least <= values.mean() <= most else "**no**"
            extent = f"{values.min():.3g} to {values.max():.3g} | {len(values)}"
            lines.append(
                f"| {case} | {what} | {aim} | {values.mean():.3g} | {extent} | {verdict} |"
            )
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing and write the page."""
    arguments = options("odd", __doc__, seeds=3).parse_args()
    cases = itertools.product(CASES, range(*arguments.seeds))
    write(page(run(run_case, ("case", "seed"), cases, arguments)), arguments.page)


if __name__ == "__main__":
    main()
