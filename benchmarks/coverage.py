"""Whether intervals hold the share of new targets that they promise, on simulated tables.

python -m benchmarks coverage --out coverage.jsonl --page docs/measurements/coverage.md
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from benchmarks._run import Record, by, options, run, write
from bowtienet import BowTieRegressor

LEVELS = (0.5, 0.8, 0.9, 0.95)
KINDS = ("central", "conformal")
TABLES = {
    "100 rows, constant": (100, "constant"),
    "100 rows, heavy tails": (100, "heavy"),
    "400 rows, constant": (400, "constant"),
    "400 rows, by row": (400, "by row"),
    "3,000 rows, by row": (3_000, "by row"),
    "3,000 rows, heavy tails": (3_000, "heavy"),
}
"""Rows and noise."""
TEST_ROWS = 2_000
CLOSE = 0.03
"""How far pooled shares may be from the promise."""


def draw(rows: int, noise: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Five uniform columns; a smooth function of three and noise of deviation about 0.4."""
    X = rng.uniform(-2.0, 2.0, size=(rows, 5))
    errors = (
        rng.standard_t(3.0, size=rows) / 3.0**0.5 if noise == "heavy" else rng.normal(size=rows)
    )
    scale = 0.4 * np.exp(0.5 * X[:, 0]) if noise == "by row" else 0.4
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + scale * errors


def run_case(table: str, seed: int) -> Record:
    """Shares of the test targets inside, by kind of interval and level."""
    rng = np.random.default_rng([seed, list(TABLES).index(table)])
    rows, noise = TABLES[table]
    X, y = draw(rows + TEST_ROWS, noise, rng)
    model = BowTieRegressor(random_state=seed).fit(X[:rows], y[:rows])
    record = {}
    for kind in KINDS:
        ends = [model.predict_interval(X[rows:], level, method=kind).T for level in LEVELS]
        record[kind] = [float(np.mean((a <= y[rows:]) & (y[rows:] <= b))) for a, b in ends]
    return record


HEAD = """# Coverage

Written by `python -m benchmarks coverage`. Shares of 2,000 new targets inside the intervals of a
default fit, means over seeds from 500 on. Pooled is the mean over the six tables; it shall be
within 0.03 of the promise. Conformal intervals are those of the fit's own held-out rows.

"""


def page(records: Iterable[Record]) -> str:
    """A row for each table and kind of interval, and the pooled ones."""
    heads = " | ".join(f"{level:.0%}" for level in LEVELS)
    lines = [f"| table | intervals | seeds | {heads} |", "|---" * (len(LEVELS) + 3) + "|"]
    tables = by(records, "table")
    for kind in KINDS:
        shares = {t: np.mean([run[kind] for run in runs], axis=0) for (t,), runs in tables.items()}
        for table, values in shares.items():
            cells = " | ".join(f"{value:.3f}" for value in values)
            lines.append(f"| {table} | {kind} | {len(tables[table,])} | {cells} |")
        pooled = np.mean(list(shares.values()), axis=0)
        cells = " | ".join(
            f"{value:.3f} {'yes' if abs(value - level) <= CLOSE else '**no**'}"
            for value, level in zip(pooled, LEVELS, strict=True)
        )
        lines.append(f"| **pooled** | {kind} | | {cells} |")
    return HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing and write the page."""
    arguments = options("coverage", __doc__, seeds=40).parse_args()
    cases = itertools.product(TABLES, range(*arguments.seeds))
    write(page(run(run_case, ("table", "seed"), cases, arguments)), arguments.page)


if __name__ == "__main__":
    main()
