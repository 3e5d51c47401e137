"""What the studies of this folder share: sets and splits, variants, fits side by side, tables.

A study names its variants, each a function that fits a model to rows. A tenth of every set is put
aside with each split seed (of more than 10,000 rows, 5,000 are fitted and 5,000 put aside), every
variant is fitted to the rest, and its forecasts of the rows put aside are scored: RMSE, mean
negative log density in the target's unit, CRPS, share of targets inside the central 95 % interval,
and processor seconds of the fit on one core. Models without a distribution have their RMSE alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, parallel_config

from benchmarks._old.paper.sets import FOLDER, PUBLISHED, load_set
from bowtienet._old import BowTieRegressor
from bowtienet._old.evaluation import crps, interval_coverage, negative_log_density, rmse

LARGE, FITTED = 10_000, 5_000
"""Rows above which a fixed number is fitted, and that number."""
SCORES = ("RMSE", "NLL", "CRPS", "95 %", "seconds")
COVERAGE = 0.95

Variant = Callable[[np.ndarray, np.ndarray, int], Any]
"""Features, targets and a seed to a fitted model."""


def ours(**settings: Any) -> Variant:
    """The estimator with some settings changed."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> BowTieRegressor:
        return BowTieRegressor(random_state=seed, **settings).fit(X, y)

    return fit


def load_table(name: str) -> np.ndarray:
    """A set as one array, the target last: a published one, or any table of the data folder."""
    if name in PUBLISHED:
        return load_set(name).to_numpy()
    if not os.environ.get(FOLDER):
        raise FileNotFoundError(f"{name} is looked for in the folder that {FOLDER} names: set it.")
    return pd.read_csv(Path(os.environ[FOLDER]) / f"{name}.csv").to_numpy(dtype=float)


def split(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to predict."""
    order = np.random.default_rng(seed).permutation(len(table))
    if len(table) > LARGE:
        return table[order[FITTED : 2 * FITTED]], table[order[:FITTED]]
    test, train = np.split(table[order], [len(table) // 10])
    return train, test


def score(fit: Variant, train: np.ndarray, test: np.ndarray, seed: int) -> tuple[float, ...]:
    """The `SCORES` of one fit; NaN for those of a distribution that a model does not have."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(train[:, :-1], train[:, -1], seed)
    seconds = time.process_time() - begin
    x, y = test[:, :-1], test[:, -1]
    if not hasattr(model, "predict_dist"):
        return (rmse(y, model.predict(x)), np.nan, np.nan, np.nan, seconds)
    found = model.predict_dist(x)
    return (
        rmse(y, found.mean()),
        negative_log_density(y, found),
        crps(y, found),
        interval_coverage(y, found.interval(COVERAGE)),
        seconds,
    )


def options(
    description: str | None,
    variants: Sequence[str],
    sets: Sequence[str],
    *,
    first_seed: int,
    splits: int,
    default: Sequence[str] | None = None,
) -> argparse.ArgumentParser:
    """A parser that knows what all studies can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=splits, help="number of splits")
    parser.add_argument("--first-seed", type=int, default=first_seed, help="of the first split")
    parser.add_argument("--sets", nargs="+", default=list(sets))
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=variants,
        metavar="VARIANT",
        default=list(variants if default is None else default),
        help=f"among: {'; '.join(variants).replace('%', '%%')}",
    )
    parser.add_argument("--n-jobs", type=int, default=2, help="fits at the same time")
    return parser


def run(
    variants: Mapping[str, Variant], sets: Sequence[str], seeds: Sequence[int], n_jobs: int
) -> np.ndarray:
    """Scores (sets, variants, seeds, scores), each fit on one thread of a process."""
    cases = [(name, variant, seed) for name in sets for variant in variants for seed in seeds]
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=n_jobs)(
            delayed(_score_case)(name, variant, variants[variant], seed)
            for name, variant, seed in cases
        )
    return np.asarray(found).reshape(len(sets), len(variants), len(seeds), len(SCORES))


def _score_case(name: str, variant: str, fit: Variant, seed: int) -> tuple[float, ...]:
    found = score(fit, *split(load_table(name), seed), seed)
    words = ", ".join(f"{word} {value:.3g}" for word, value in zip(SCORES, found, strict=True))
    print(f"{variant}, {name}, {seed}: {words}", file=sys.stderr, flush=True)
    return found


def report(sets: Sequence[str], variants: Sequence[str], table: np.ndarray) -> str:
    """A row for each set and variant: means ± standard errors over the splits.

    The last column, of several variants, is the NLL above that of the first, split by split.
    """
    several = len(variants) > 1
    header = ["set", "variant", *SCORES, *([f"NLL above {variants[0]}"] if several else [])]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for name, of_set in zip(sets, table, strict=True):
        for variant, rows in zip(variants, of_set, strict=True):
            if np.isnan(rows).all():
                continue
            error, nll, ranked, inside, seconds = rows.T
            cells = [
                with_error(error, ".3g"),
                with_error(nll, ".3f"),
                with_error(ranked, ".3g"),
                with_error(inside, ".3f"),
                f"{seconds.mean():.1f}",
            ]
            if several:
                cells.append(with_error(nll - of_set[0][:, 1], "+.3f"))
            lines.append(f"| {' | '.join([name, variant, *cells])} |")
    return "\n".join(lines)


def with_error(values: np.ndarray, form: str) -> str:
    """Mean ± standard error; the mean alone of one value, a dash of none."""
    if np.isnan(values).all():
        return "–"
    mean = format(float(values.mean()), form)
    if len(values) < 2:
        return mean
    return f"{mean} ± {format(standard_error(values), form.removeprefix('+'))}"


def standard_error(values: np.ndarray) -> float:
    """Of the mean; NaN of a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def seeds_in_words(seeds: range) -> str:
    """Which splits a table is of."""
    if len(seeds) == 1:
        return f"Split {seeds.start}."
    return f"Means ± standard errors over the splits {seeds.start} to {seeds.stop - 1}."
