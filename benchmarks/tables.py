"""Tables as people have them: scores on messy tables, categories of many levels, and speed.

Messy tables are those of the tests, read, encoded and fitted by a ridge regression beside the same
tables cleaned by hand. The category has 500 levels with effects of their own, beside three numbers;
CatBoost has its own handling of categories there.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from bowtienet import BowTieRegressor
from bowtienet.tables.door import open_known, open_rows
from bowtienet.tables.representation import learn_representation, standardize
from tests.tables.test_messy import CASES, scores

SEEDS = (500, 501, 502)
ROWS, LEVELS = 5_000, 500


def main() -> None:
    warnings.simplefilter("ignore")
    page = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/measurements/tables.md")
    text = "\n".join(
        [
            "# Messy tables",
            "",
            "`python -m benchmarks tables` prints this page.",
            "",
            *_messy(),
            *_levels(),
            *_speed(),
        ]
    )
    page.write_text(text + "\n", encoding="utf-8")
    print(text)


def _messy() -> list[str]:
    lines = [
        "A ridge regression on the encoded columns of the file as it is, and on columns made by",
        "hand from the clean table: R² on 100 fresh rows (`tests/tables/test_messy.py`).",
        "",
        "| table | as it is | by hand |",
        "|---|---|---|",
    ]
    close = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            score, reference = scores(case, Path(folder))
        close += score > reference - 0.05
        lines.append(f"| {case} | {score:.3f} | {reference:.3f} |")
    return [*lines, "", f"Within 0.05 or better on {close} of {len(CASES)}.", ""]


def _levels() -> list[str]:
    lines = [
        f"A category of {LEVELS} levels beside three numbers, {ROWS:,} rows, held-out RMSE on",
        f"{ROWS:,} more (the noise is 1):",
        "",
        "| seed | BowTieRegressor | CatBoost | seconds | seconds of CatBoost |",
        "|---|---|---|---|---|",
    ]
    for seed in SEEDS:
        X, y = _table_of_levels(np.random.default_rng(seed))
        models: dict[str, Any] = {
            "ours": BowTieRegressor(random_state=seed),
            "catboost": _catboost(seed),
        }
        errors, seconds = [], []
        for model in models.values():
            start = time.process_time()
            model.fit(X[:ROWS], y[:ROWS])
            seconds.append(time.process_time() - start)
            errors.append(np.sqrt(np.mean((y[ROWS:] - model.predict(X[ROWS:])) ** 2)))
        lines.append(
            f"| {seed} | {errors[0]:.3f} | {errors[1]:.3f} | {seconds[0]:.1f} | {seconds[1]:.1f} |"
        )
    return [*lines, ""]


def _table_of_levels(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    levels = rng.integers(0, LEVELS, 2 * ROWS)
    X = pd.DataFrame(rng.normal(size=(2 * ROWS, 3)), columns=list("abc"))
    X["shop"] = [f"shop {i}" for i in levels]
    effects = 1.5 * rng.normal(size=LEVELS)
    y = effects[levels] + np.sin(2.0 * X["a"]) + X["b"] * (X["c"] > 0.0)
    return X, (y + rng.normal(size=2 * ROWS)).to_numpy()


def _catboost(seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        cat_features=["shop"],
        random_seed=seed,
        verbose=False,
        thread_count=1,
        allow_writing_files=False,
    )


def _speed() -> list[str]:
    X, y = _mixed(100_000)
    estimator = BaseEstimator()
    training = open_rows(estimator, X, y)
    start = time.process_time()
    representation, _ = learn_representation(training, 30)
    learnt = time.process_time() - start
    start = time.process_time()
    standardize(representation, open_known(estimator, X))
    encoded = time.process_time() - start
    start = time.process_time()
    for i in range(50):
        standardize(representation, open_known(estimator, X.iloc[[i]]))
    alone = (time.process_time() - start) / 50
    return [
        "100,000 rows of 50 columns (25 numbers, 12 categories of 4 levels, 4 of 500, 4 dates,",
        "2 prices in euros, 3 truth values in words), processor seconds of one core:",
        "",
        "| step | seconds |",
        "|---|---|",
        f"| learning the columns in a fit | {learnt:.2f} |",
        f"| encoding all rows for a prediction | {encoded:.2f} |",
        f"| encoding a row alone | {alone:.4f} |",
    ]


def _mixed(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(2_000), unit="D")
    prices = [f"{price:.2f} EUR" for price in rng.uniform(1.0, 1e3, n)]
    columns = {f"number {i}": rng.normal(size=n) for i in range(25)}
    columns |= {f"colour {i}": rng.choice(["red", "blue", "green", "grey"], n) for i in range(12)}
    columns |= {f"shop {i}": rng.choice([f"shop {j}" for j in range(500)], n) for i in range(4)}
    columns |= {f"day {i}": rng.choice(days, n) for i in range(4)}
    columns |= {f"price {i}": rng.permutation(prices) for i in range(2)}
    columns |= {f"new {i}": rng.choice(["Yes", "no", "yes"], n) for i in range(3)}
    return pd.DataFrame(columns), columns["number 0"] + rng.normal(size=n)
