"""What pruning saves, and what it costs in accuracy.

Puts a tenth of concrete (`benchmarks.paper.sets`) aside with seeds 130, 131, ... and fits
`BowTieRegressor` to the rest, at its defaults but for the width and `prune_every`. `make
bench-pruning` runs it and prints Markdown; progress goes to standard error. Scores are in the unit
of the target, means over the splits.

The first table compares fits with and without pruning inside training; the two run in turn within a
split. The second takes the plain fits and prunes them afterwards: size in memory and on disk, the
best of five predictions of 100,000 rows, and scores before and after, also with `refit=True`.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.paper.sets import load_set
from bowtienet import BowTieRegressor, FitOptions

FIRST_SEED = 130
WIDTHS = (50, 200, 500)
RATE = 0.01
ROWS = 100_000


def load(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    table = load_set("concrete").to_numpy()
    order = np.random.default_rng(seed).permutation(len(table))
    test, train = np.split(table[order], [len(table) // 10])
    return train[:, :-1], train[:, -1], test[:, :-1], test[:, -1]


def scores(model: BowTieRegressor, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    error = float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return error, -model.log_score(X, y)


def units(model: BowTieRegressor) -> float:
    return float(model.sparsity_.nodes_after.mean())


def file_size(model: BowTieRegressor) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.stat().st_size


def seconds_to_predict(model: BowTieRegressor, X: np.ndarray) -> float:
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        model.predict(X, return_std=True)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits: dict[tuple[int, int | None], list[tuple[float, ...]]] = {}
    after: dict[int, list[tuple[float, ...]]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + options.splits):
        X, y, new_X, new_y = load(seed)
        many = new_X[np.random.default_rng(0).integers(len(new_X), size=ROWS)]
        for width in options.widths:
            for every in (None, options.every):
                print(f"split {seed}, width {width}, prune_every {every}", file=sys.stderr)
                model = BowTieRegressor(
                    (width,),
                    n_jobs=options.jobs,
                    random_state=seed,
                    options=FitOptions(prune_every=every),
                )
                begin = time.perf_counter()
                model.fit(X, y)
                row = (time.perf_counter() - begin, *scores(model, new_X, new_y), units(model))
                fits.setdefault((width, every), []).append(row)
                if every is None:
                    found = after_fit(model, X, y, new_X, new_y, many)
                    after.setdefault(width, []).append(found)
    print_tables(fits, after)


def after_fit(
    model: BowTieRegressor,
    X: np.ndarray,
    y: np.ndarray,
    new_X: np.ndarray,
    new_y: np.ndarray,
    many: np.ndarray,
) -> tuple[float, ...]:
    """Before and after `prune` in pairs: nodes, weights, kB in memory and on disk, ms, scores."""
    pruned = model.prune(RATE)
    refitted = model.prune(RATE, refit=True, X=X, y=y)
    sparsity = pruned.sparsity_
    found: list[float] = [sparsity.nodes_before.sum(), sparsity.nodes_after.sum()]
    found += [sparsity.weights_before.sum(), sparsity.weights_after.sum()]
    found += [len(pickle.dumps(m.ensemble_)) / 1e3 for m in (model, pruned)]
    found += [file_size(m) / 1e3 for m in (model, pruned)]
    found += [seconds_to_predict(m, many) * 1e3 for m in (model, pruned)]
    for m in (model, pruned, refitted):
        found += scores(m, new_X, new_y)
    return tuple(float(value) for value in found)


def print_tables(
    fits: dict[tuple[int, int | None], list[tuple[float, ...]]],
    after: dict[int, list[tuple[float, ...]]],
) -> None:
    print("| width | prune_every | fit, s | RMSE | NLL | units per member |")
    print("|---|---|---|---|---|---|")
    for (width, every), rows in fits.items():
        seconds, error, density, left = np.mean(rows, axis=0)
        print(f"| {width} | {every} | {seconds:.1f} | {error:.2f} | {density:.3f} | {left:.1f} |")
    print()
    print(
        "| width | nodes | weights | kB in memory | kB on disk | ms for 100,000 rows |"
        " RMSE, NLL fitted | pruned | refitted |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for width, rows in after.items():
        v = np.mean(rows, axis=0)
        pairs = [f"{v[i]:,.0f} → {v[i + 1]:,.0f}" for i in range(0, 10, 2)]
        ends = [f"{v[i]:.2f}, {v[i + 1]:.3f}" for i in range(10, 16, 2)]
        print(f"| {width} | " + " | ".join(pairs + ends) + " |")


if __name__ == "__main__":
    main()
