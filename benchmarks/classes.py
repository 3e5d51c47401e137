"""Log loss of `BowTieClassifier` next to other classifiers: four sets and six generated tables.

python -m benchmarks classes --out log_loss.jsonl --page docs/measurements/classes.md
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier, early_stopping
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._before import Before
from benchmarks._methods import categories
from benchmarks._run import Record, by, options, run, write
from bowtienet import BowTieClassifier

Floats = np.ndarray
Split = tuple[Floats, Floats, Floats, Floats]
TEST_ROWS = 3_000
TRUTHS: dict[str, Callable[[Floats], Floats]] = {
    "linear": lambda x: x,
    "smooth": lambda x: np.sin(2.0 * x) + x * np.roll(x, 1, axis=1),
    "steps": lambda x: np.where(x > 0.3, 1.0, 0.0) * np.where(np.roll(x, 1, axis=1) > 0.0, 1.0, -1),
}
"""Of five columns: five numbers, whose random combinations are the classes' log odds."""


def generated(rows: int, columns: int, classes: int, truth: str, rare: float, seed: int) -> Split:
    """Classes drawn from a softmax; `rare` is taken from the log odds of the last class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows + TEST_ROWS, columns))
    log_odds = 1.5 * TRUTHS[truth](X[:, :5]) @ rng.normal(size=(5, classes))
    log_odds[:, -1] -= rare
    y = np.argmax(log_odds + rng.gumbel(size=log_odds.shape), axis=1)
    return X[TEST_ROWS:], X[:TEST_ROWS], y[TEST_ROWS:], y[:TEST_ROWS]


def quarter(load: Callable[..., Any], seed: int) -> Split:
    """A stratified quarter is the test."""
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    return X, X_test, y, y_test


LOADERS = (load_breast_cancer, load_digits, load_iris, load_wine)
TABLES: dict[str, Callable[[int], Split]] = {
    **{load.__name__.removeprefix("load_"): partial(quarter, load) for load in LOADERS},
    "300 x 5, 2 linear": partial(generated, 300, 5, 2, "linear", 0.0),
    "600 x 8, 3 smooth": partial(generated, 600, 8, 3, "smooth", 0.0),
    "1,000 x 10, 2 smooth, one rare": partial(generated, 1_000, 10, 2, "smooth", 4.5),
    "3,000 x 12, 5 steps": partial(generated, 3_000, 12, 5, "steps", 0.0),
    "5,000 x 15, 10 smooth": partial(generated, 5_000, 15, 10, "smooth", 0.0),
    "10,000 x 20, 2 steps": partial(generated, 10_000, 20, 2, "steps", 0.0),
}


def logistic(X: Floats, y: Floats, seed: int) -> Any:
    """Penalty by cross-validation."""
    settings = {"l1_ratios": (0,), "scoring": "neg_log_loss", "max_iter": 2_000}
    model = LogisticRegressionCV(**settings, random_state=seed)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def held_out(X: Any, y: Floats, seed: int) -> Any:
    """A fifth of the rows, stratified where every class has two."""
    strata = y if np.unique(y, return_counts=True)[1].min() > 1 else None
    return train_test_split(X, y, test_size=0.2, stratify=strata, random_state=seed)


def catboost(X: Floats, y: Floats, seed: int) -> Any:
    """The defaults; a fifth of the rows says when to stop."""
    X, X_held, y, y_held = held_out(X, y, seed)
    quiet = {"thread_count": 1, "allow_writing_files": False}
    model = CatBoostClassifier(random_seed=seed, cat_features=categories(X), **quiet)
    held = (X_held, y_held)
    return model.fit(X, y, eval_set=held, early_stopping_rounds=50, verbose=False)


def lightgbm(X: Floats, y: Floats, seed: int) -> Any:
    """Learning rate 0.05; a fifth of the rows says when to stop."""
    X, X_held, y, y_held = held_out(X, y, seed)
    length = {"n_estimators": 2_000, "learning_rate": 0.05}
    model = LGBMClassifier(**length, n_jobs=1, verbose=-1, random_state=seed)
    stop = early_stopping(50, verbose=False)
    return model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[stop])


METHODS: dict[str, Callable[[Floats, Floats, int], Any]] = {
    "bowtienet": lambda X, y, seed: BowTieClassifier(random_state=seed).fit(X, y),
    "before the rebuild": lambda X, y, seed: Before("BowTieClassifier", X, y, random_state=seed),
    "LightGBM": lightgbm,
    "CatBoost": catboost,
    "logistic regression": logistic,
}


def run_case(table: str, method: str, seed: int) -> Record:
    """Log loss of the test rows and processor seconds of the fit."""
    X, X_test, y, y_test = TABLES[table](seed)
    began = time.process_time()
    model = METHODS[method](X, y, seed)
    seconds = getattr(model, "seconds", time.process_time() - began)
    loss = log_loss(y_test, model.predict_proba(X_test), labels=np.unique(y))
    return {"loss": float(loss), "seconds": seconds}


HEAD = """# Classes

Written by `python -m benchmarks classes`. Mean log loss of test rows / processor seconds of the
fit on one core, over seeds from 500 on: a stratified quarter of scikit-learn's sets, 3,000 rows of
generated tables (rows x columns, classes). Where boosted trees stop is said by a fifth of the rows.
The aim is to be best, or within one standard error of the paired difference from the best, on
eight of the ten.

"""


def page(records: Iterable[Record]) -> str:
    """A row for each table, and on how many the aim is reached."""
    lines = [f"| table | seeds | {' | '.join(METHODS)} | |", "|---" * (len(METHODS) + 3) + "|"]
    reached = []
    for (table,), runs in by(records, "table").items():
        found = by(runs, "method")
        if len(found) < len(METHODS):
            continue
        losses = {m: np.array([run["loss"] for run in found[m,]]) for m in METHODS}
        seconds = [np.mean([run["seconds"] for run in found[m,]]) for m in METHODS]
        ours = losses["bowtienet"]
        others = [loss for method, loss in losses.items() if method != "bowtienet"]
        behind = ours - min(others, key=np.mean)
        error = behind.std(ddof=1) / len(ours) ** 0.5 if len(ours) > 1 else 0.0
        reached.append(behind.mean() <= error)
        cells = [f"{x.mean():.3f} / {s:.1f}" for x, s in zip(losses.values(), seconds, strict=True)]
        verdict = "yes" if reached[-1] else f"**no**, {behind.mean():+.3f} ± {error:.3f}"
        lines.append(f"| {table} | {len(ours)} | {' | '.join(cells)} | {verdict} |")
    return (
        HEAD + "\n".join(lines) + f"\n\nThe aim is reached on {sum(reached)} of {len(reached)}.\n"
    )


def main() -> None:
    """Run what is missing and write the page."""
    parser = options("classes", __doc__, seeds=10)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    arguments = parser.parse_args()
    cases = itertools.product(arguments.tables, METHODS, range(*arguments.seeds))
    names = ("table", "method", "seed")
    write(page(run(run_case, names, cases, arguments)), arguments.page)


if __name__ == "__main__":
    main()
