"""What the defaults of `BowTieRegressor` are worth: each setting changed alone, on several sets.

Takes the sets from `benchmarks.paper.sets`, puts a tenth of
each aside with split seeds 110, 111, ..., fits every variant to the rest and scores it on the
tenth: RMSE and mean negative log density in the target's unit, share of targets inside the central
90 % interval, seconds of one process. `make study-defaults` runs it and prints Markdown;
docs/measurements/accuracy.md holds a run and says which splits were looked at while the defaults
were chosen.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.paper.sets import load_set
from bowtienet import BowTieRegressor, FitOptions
from bowtienet.evaluation import interval_coverage, negative_log_density, rmse

SETS = ("slump", "yacht", "boston", "energy", "concrete")
FIRST_SEED = 110

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "n_estimators=1": {"n_estimators": 1},
    "n_estimators=4": {"n_estimators": 4},
    "weighting=equal": {"options": FitOptions(weighting="equal")},
    "weighting=elbo": {"options": FitOptions(weighting="elbo")},
    "gate_temperature=0.1": {"options": FitOptions(gate_temperature=0.1)},
    "max_iter=20": {"max_iter": 20},
    "prior=gaussian": {"prior": "gaussian"},
    "init=laplace": {"options": FitOptions(init="laplace")},
}


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to predict."""
    table = load_set(name).to_numpy()
    order = np.random.default_rng(seed).permutation(len(table))
    test, train = np.split(table[order], [len(table) // 10])
    return train, test


def score(name: str, seed: int, variant: str) -> tuple[float, ...]:
    """RMSE, NLL, coverage and seconds of one fit."""
    train, test = split(name, seed)
    model = BowTieRegressor(random_state=seed, **VARIANTS[variant])
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train[:, :-1], train[:, -1])
    seconds = time.process_time() - begin
    x, y = test[:, :-1], test[:, -1]
    found = model.predict_dist(x)
    print(f"{variant}, {name}, {seed}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return (
        rmse(y, found.mean()),
        negative_log_density(y, found),
        interval_coverage(y, found.interval(0.9)),
        seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.splits)
    cases = [(v, n, s) for v in arguments.variants for n in arguments.sets for s in seeds]
    found = Parallel(n_jobs=arguments.n_jobs)(
        delayed(score)(name, seed, variant) for variant, name, seed in cases
    )
    table = np.asarray(found).reshape(
        len(arguments.variants), len(arguments.sets), arguments.splits, 4
    )
    report(arguments.variants, arguments.sets, table)
    print(f"\nSplit seeds {seeds.start} to {seeds.stop - 1}; cells are RMSE / NLL / coverage.")


def report(variants: list[str], sets: list[str], table: np.ndarray) -> None:
    """A row for each variant: means over the splits, and NLL over the sets beside the first row."""
    print(f"| setting | {' | '.join(sets)} | mean NLL | NLL above the first | seconds |")
    print("|---" * (len(sets) + 4) + "|")
    means = table.mean(axis=2)
    difference = table[..., 1].mean(axis=1) - table[0, ..., 1].mean(axis=0)
    for variant, row, above in zip(variants, means, difference, strict=True):
        cells = [f"{error:.3g} / {nll:.2f} / {inside:.2f}" for error, nll, inside, _ in row]
        spread = above.std(ddof=1) / np.sqrt(len(above)) if len(above) > 1 else float("nan")
        print(
            f"| {variant} | {' | '.join(cells)} | {row[:, 1].mean():.3f} "
            f"| {above.mean():+.3f} ± {spread:.3f} | {row[:, 3].mean():.0f} |"
        )


if __name__ == "__main__":
    main()
