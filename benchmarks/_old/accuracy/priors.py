"""What the families of priors differ in: prediction of a default fit and of one network, structure.

Prediction fits sets of the paper with the split seeds 500, 501, ... and scores the rows put aside
(`benchmarks._old.accuracy.study`): once with the defaults, whose few sweeps leave a prior little time,
once one network that is swept to convergence. Structure fits one network to convergence to tables
of 300 rows with 20 features of which four matter, and counts the weights of the first layer whose
sign is sure (`posterior/selection.py`, rate 0.01), those of features that matter and the others.
`make study-priors` runs it and prints Markdown; docs/guide/priors.md holds a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from joblib import Parallel, delayed, parallel_config

from benchmarks._old.accuracy.study import Variant, options, ours, report, run, with_error
from bowtienet._old import FitOptions, engine
from bowtienet._old.model.shrinkage import FAMILIES
from bowtienet._old.posterior.selection import select

SETS = ("yacht", "boston", "concrete")
FIRST_SEED = 500
PARTS = ("default", "converged", "structure")
MOST_SWEEPS = 1000
TOLERANCE = 1e-6
GATE_TEMPERATURE = 0.1
RATE = 0.01
N_ROWS, N_FEATURES, N_RELEVANT, N_UNITS = 300, 20, 4, 20

Truth = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, Truth] = {
    "bends": lambda x: np.sin(2.0 * x[:, 0]) + np.abs(x[:, 1]) + x[:, 2] - np.maximum(x[:, 3], 0.0),
    "interaction": lambda x: np.sin(2.0 * x[:, 0]) + np.abs(x[:, 1]) + x[:, 2] * x[:, 3],
}
"""Functions of the first four features."""
COUNTS = ("relevant weights", "noise weights", "relevant features", "noise features")


def converged(family: str) -> Variant:
    """One network of standardised columns and targets, swept to convergence."""
    return ours(
        prior=family,
        n_estimators=1,
        features="standard",
        target_transform="none",
        noise="constant",
        max_iter=MOST_SWEEPS,
        options=FitOptions(weighting="equal", gate_temperature=GATE_TEMPERATURE),
    )


def planted(truth: Truth, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal features; a target with noise of 0.3 standard deviations of the truth."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(N_ROWS, N_FEATURES))
    values = truth(inputs)
    targets = values / values.std() + 0.3 * rng.normal(size=N_ROWS)
    return inputs, (targets - targets.mean()) / targets.std()


def structure(family: str, kind: str, seed: int) -> tuple[float, ...]:
    """`COUNTS` of what one network keeps, and whether its bound converged."""
    inputs, targets = planted(TRUTHS[kind], seed)
    rows = engine.build_rows(inputs, targets)
    architecture = engine.build_architecture(N_FEATURES, (N_UNITS,), 1)
    model = engine.default_model(
        architecture, inputs, targets, prior=family, gate_temperature=GATE_TEMPERATURE
    )
    start = engine.initialize(model, rows, seed)
    found = engine.fit(model, rows, start, max_iter=MOST_SWEEPS, tol=TOLERANCE)
    kept = select(found.model, found.factors, RATE).connections[0]
    matter, others = kept[:, :N_RELEVANT], kept[:, N_RELEVANT:]
    counts = [matter.sum(), others.sum(), matter.any(axis=0).sum(), others.any(axis=0).sum()]
    words = ", ".join(f"{word} {value}" for word, value in zip(COUNTS, counts, strict=True))
    print(f"{family}, {kind}, {seed}: {words}", file=sys.stderr, flush=True)
    return (*map(float, counts), float(found.n_sweeps < MOST_SWEEPS))


def structure_report(families: Sequence[str], seeds: Sequence[int], n_jobs: int) -> str:
    """A row for each kind of table and family: means ± standard errors over the tables."""
    cases = list(product(TRUTHS, families, seeds))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        found = Parallel(n_jobs=n_jobs)(
            delayed(structure)(family, kind, seed) for kind, family, seed in cases
        )
    table = np.asarray(found).reshape(len(TRUTHS), len(families), len(seeds), -1)
    lines = [f"| table | prior | {' | '.join(COUNTS)} | converged |", "|---" * 7 + "|"]
    for kind, of_kind in zip(TRUTHS, table, strict=True):
        for family, rows in zip(families, of_kind, strict=True):
            *counts, done = rows.T
            cells = [with_error(values, ".1f") for values in counts]
            cells.append(f"{int(done.sum())} of {len(done)}")
            lines.append(f"| {kind} | {family} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(given: list[str] | None = None) -> None:
    parser = options(__doc__, list(FAMILIES), SETS, first_seed=FIRST_SEED, splits=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tables", type=int, default=6, help="planted tables of each kind")
    chosen = parser.parse_args(given)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.splits)
    for part, variant in (("default", lambda family: ours(prior=family)), ("converged", converged)):
        if part in chosen.parts:
            variants = {family: variant(family) for family in chosen.variants}
            table = run(variants, chosen.sets, seeds, chosen.n_jobs)
            print(f"\n{part}, splits {seeds.start} to {seeds.stop - 1}\n")
            print(report(chosen.sets, chosen.variants, table), flush=True)
    if "structure" in chosen.parts:
        tables = range(chosen.first_seed, chosen.first_seed + chosen.tables)
        print(f"\nstructure, seeds {tables.start} to {tables.stop - 1}\n")
        print(structure_report(chosen.variants, tables, chosen.n_jobs))


if __name__ == "__main__":
    main()
