"""What `prune` saves and what it loses on real sets.

Puts a tenth of each set (`benchmarks._old.paper.sets`) aside with seeds 500, 501, ... (`--first`) and
fits three models to the rest: a single network (`n_estimators=1`), the default ensemble, and what
`prune` makes of the ensemble with the same rows. Prints Markdown with means over the splits; `make
bench-prune` runs it.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import NamedTuple

import numpy as np

from benchmarks._old.paper.sets import load_set
from bowtienet._old import BowTieRegressor

SETS = ("slump", "yacht", "boston", "energy", "concrete")
FIRST_SEED = 500


class Row(NamedTuple):
    """One split of one set."""

    single_rmse: float
    single_nll: float
    pruned_rmse: float
    pruned_nll: float
    ensemble_rmse: float
    ensemble_nll: float
    columns_before: float
    columns_after: float
    units_single: float
    units_after: float
    weights_single: float
    weights_after: float
    kilobytes_before: float
    kilobytes_after: float
    fit_seconds: float
    prune_seconds: float
    coverage: float
    held_out_ratio: float


def scores(model: BowTieRegressor, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """RMSE and negative log density."""
    error = float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
    return error, -model.log_score(X, y)


def one_split(name: str, seed: int) -> Row:
    """All three models on one split."""
    table = load_set(name).to_numpy()
    order = np.random.default_rng(seed).permutation(len(table))
    test, train = np.split(table[order], [len(table) // 10])
    X, y, new_X, new_y = train[:, :-1], train[:, -1], test[:, :-1], test[:, -1]
    single = BowTieRegressor(n_estimators=1, random_state=seed).fit(X, y)
    begin = time.perf_counter()
    ensemble = BowTieRegressor(random_state=seed).fit(X, y)
    seconds = time.perf_counter() - begin
    pruned = ensemble.prune(X, y)
    low, high = pruned.predict_interval(new_X, coverage=0.9).T
    found, of_single = pruned.pruning_, single.sparsity_
    return Row(
        *scores(single, new_X, new_y),
        *scores(pruned, new_X, new_y),
        *scores(ensemble, new_X, new_y),
        len(found.columns),
        len(found.columns_after),
        int(of_single.nodes_after.sum()),
        found.units_after,
        int(of_single.weights_after.sum()),
        found.weights_after,
        found.bytes_before / 1e3,
        found.bytes_after / 1e3,
        seconds,
        found.seconds,
        float(np.mean((low <= new_y) & (new_y <= high))),
        found.rmse_after / found.rmse_before,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    print(
        "| set | RMSE, NLL single | pruned | RMSE ratio, out of fold | ensemble | columns | units "
        "| weights | kB of file | 90 % intervals cover | s to fit, to prune |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in options.sets:
        rows = []
        for seed in range(options.first, options.first + options.splits):
            rows.append(one_split(name, seed))
            print(name, seed, rows[-1], file=sys.stderr)
        mean = Row(*np.mean(rows, axis=0))
        print(
            f"| {name} | {mean.single_rmse:.3f}, {mean.single_nll:.3f} "
            f"| {mean.pruned_rmse:.3f}, {mean.pruned_nll:.3f} "
            f"| {mean.pruned_rmse / mean.single_rmse:.3f}, {mean.held_out_ratio:.3f} "
            f"| {mean.ensemble_rmse:.3f}, {mean.ensemble_nll:.3f} "
            f"| {mean.columns_before:.0f} → {mean.columns_after:.1f} "
            f"| {mean.units_single:.0f} → {mean.units_after:.0f} "
            f"| {mean.weights_single:,.0f} → {mean.weights_after:,.0f} "
            f"| {mean.kilobytes_before:,.0f} → {mean.kilobytes_after:,.0f} "
            f"| {mean.coverage:.2f} | {mean.fit_seconds:.1f}, {mean.prune_seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
