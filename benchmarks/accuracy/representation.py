"""What the networks see: columns as they are or in bins, targets as they are or warped, or "auto".

Takes tables (a line of names, then numbers, the target last) from the folder that the environment
variable BOWTIENET_DATA names, puts a tenth of each aside with split seeds 540, 541, ... (of more
than 10,000 rows, 5,000 are fitted and 5,000 put aside), fits every variant to the rest and scores
it there: RMSE, mean negative log density in the target's unit, CRPS, share of targets inside the
central 95 % interval, and seconds of one process. `make study-representation` runs it and prints
Markdown; docs/measurements/representation.md holds a run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from bowtienet import BowTieRegressor
from bowtienet.evaluation import crps, interval_coverage, negative_log_density, rmse

SETS = ("slump", "yacht", "boston", "energy", "concrete", "autompg", "airfoil", "kin40k")
FIRST_SEED = 540
LARGE, FITTED = 10_000, 5_000

VARIANTS: dict[str, dict[str, Any]] = {
    "auto": {},
    "standard, none": {"features": "standard", "target_transform": "none"},
    "standard, yeo-johnson": {"features": "standard", "target_transform": "yeo-johnson"},
    "piecewise, none": {"features": "piecewise", "target_transform": "none"},
    "piecewise, yeo-johnson": {"features": "piecewise", "target_transform": "yeo-johnson"},
}
SCORES = ("RMSE", "NLL", "CRPS", "95 %", "seconds")


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to predict."""
    path = Path(os.environ["BOWTIENET_DATA"]) / f"{name}.csv"
    table = pd.read_csv(path).to_numpy(dtype=float)
    order = np.random.default_rng(seed).permutation(len(table))
    if len(table) > LARGE:
        return table[order[FITTED : 2 * FITTED]], table[order[:FITTED]]
    test, train = np.split(table[order], [len(table) // 10])
    return train, test


def score(name: str, seed: int, variant: str) -> tuple[float, ...]:
    """The scores of one fit."""
    train, test = split(name, seed)
    model = BowTieRegressor(random_state=seed, **VARIANTS[variant])
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train[:, :-1], train[:, -1])
    seconds = time.process_time() - begin
    y, found = test[:, -1], model.predict_dist(test[:, :-1])
    scores = (
        rmse(y, found.mean()),
        negative_log_density(y, found),
        crps(y, found),
        interval_coverage(y, found.interval(0.95)),
        seconds,
    )
    words = ", ".join(f"{word} {value:.3g}" for word, value in zip(SCORES, scores, strict=True))
    print(f"{variant}, {name}, {seed}: {words}", file=sys.stderr, flush=True)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.splits)
    cases = [(n, s, v) for n in arguments.sets for v in arguments.variants for s in seeds]
    found = Parallel(n_jobs=arguments.n_jobs)(delayed(score)(*case) for case in cases)
    shape = (len(arguments.sets), len(arguments.variants), arguments.splits, len(SCORES))
    report(arguments.sets, arguments.variants, np.asarray(found).reshape(shape))
    print(f"\nMeans of the splits {seeds.start} to {seeds.stop - 1}.")


def report(sets: list[str], variants: list[str], table: np.ndarray) -> None:
    """A row for each set and variant, with the NLL above that of the first variant."""
    print(f"| set | features, target | {' | '.join(SCORES)} | NLL above {variants[0]} |")
    print("|---" * (len(SCORES) + 3) + "|")
    for name, of_set in zip(sets, table, strict=True):
        for variant, rows in zip(variants, of_set, strict=True):
            error, nll, ranked, inside, seconds = rows.mean(axis=0)
            above = rows[:, 1] - of_set[0][:, 1]
            spread = above.std(ddof=1) / np.sqrt(len(above)) if len(above) > 1 else float("nan")
            print(
                f"| {name} | {variant} | {error:.3g} | {nll:.3f} | {ranked:.3g} | {inside:.2f} "
                f"| {seconds:.0f} | {above.mean():+.3f} ± {spread:.3f} |"
            )


if __name__ == "__main__":
    main()
