"""Whether `BowTieNetwork.selection` keeps its false discovery rate on planted tables.

    python -m benchmarks selection --seeds 500 540 --page docs/measurements/selection.md

Two columns of ten matter (one of two in the paper's simulated example). Columns that matter and
weights of the first layer from them are true, others false: shares of false ones among those that
are kept, and of true columns that are kept.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bowtienet import BowTieNetwork
from bowtienet.posterior.factors import network
from bowtienet.posterior.selection import select

RATES = (0.01, 0.05, 0.1)
ROWS, COLUMNS, TRUE = 300, 10, 2
TABLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda x: x[:, 0] - 0.5 * x[:, 1],
    "smooth": lambda x: np.sin(2.0 * x[:, 0]) + x[:, 1] ** 2,
    "interaction": lambda x: x[:, 0] * x[:, 1],
    "steps": lambda x: (x[:, 0] > 0.0) + 0.5 * (x[:, 1] > 0.5),
    "paper": lambda x: 0.1 * x[:, 0] ** 2 + 10.0 * np.sin(x[:, 0]),
}
"""Targets without noise, of columns that are uniform on [-2, 2]."""
STARTS: dict[str, dict[str, Any]] = {
    "laplace": {"init": "laplace"},
    "spike_slab": {"init": "spike_slab"},
    "defaults": {"init": "relu_network", "temperature": 0.01, "max_iter": 3, "scale_target": True},
}
"""Converged fits with the paper's settings, and the start of the defaults."""


def draw(table: str, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Features, targets with noise, and how many of the first columns matter."""
    rng = np.random.default_rng(seed)
    n_columns, n_true = (2, 1) if table == "paper" else (COLUMNS, TRUE)
    X = rng.uniform(-2.0, 2.0, size=(ROWS, n_columns))
    signal = TABLES[table](X)
    noise = 0.7 if table == "paper" else 0.3 * signal.std()
    return X, signal + rng.normal(0.0, noise, size=ROWS), n_true


def run_case(case: tuple[str, str, int]) -> dict[str, Any]:
    """Kept and false columns and weights at each rate."""
    table, start, seed = case
    X, y, n_true = draw(table, seed)
    settings = {"hidden_layer_sizes": (20,), "accelerate": True, "max_iter": 3000}
    settings |= {"random_state": seed, **STARTS[start]}
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = BowTieNetwork.as_in_paper(**settings).fit(X, y)
    record = {"table": table, "start": start, "seed": seed, "converged": bool(model.converged_)}
    record["seconds"] = time.process_time() - began
    fitted = model._fitted
    for rate in RATES:
        chosen = select(fitted.model, network(fitted.posterior, model._best), rate)
        first = chosen.connections[0]
        record[str(rate)] = {
            "columns": int(chosen.inputs.sum()),
            "false_columns": int(chosen.inputs[n_true:].sum()),
            "weights": int(first.sum()),
            "false_weights": int(first[:, n_true:].sum()),
            "power": float(chosen.inputs[:n_true].mean()),
        }
    return record


def page(records: list[dict[str, Any]]) -> str:
    """Mean false shares and power by table and start."""
    lines = [
        "# Selection on planted tables",
        "",
        "Written by `python -m benchmarks selection`. 300 rows; 2 of 10 columns matter, 1 of 2 in",
        "the paper's simulated example; 20 units, the paper's settings with momentum, at most 3000",
        "sweeps; and the start of the defaults. At each stated rate: the mean share of false",
        "columns among the kept ones / of false weights of the first layer among the kept ones /",
        "the share of true columns that are kept. q is too sure of its signs (mean-field variances",
        "are too small), so the stated rate is optimistic; the table says by how much.",
        "",
        f"| table | start | fits | converged | {' | '.join(f'rate {rate}' for rate in RATES)} |",
        "|---|---|---|---|" + "---|" * len(RATES),
    ]
    for table, start in itertools.product(TABLES, STARTS):
        runs = [r for r in records if r["table"] == table and r["start"] == start]
        if not runs:
            continue
        cells = []
        for rate in RATES:
            values = [run[str(rate)] for run in runs]
            columns = np.mean([v["false_columns"] / max(v["columns"], 1) for v in values])
            weights = np.mean([v["false_weights"] / max(v["weights"], 1) for v in values])
            power = np.mean([v["power"] for v in values])
            cells.append(f"{columns:.2f} / {weights:.2f} / {power:.2f}")
        share = np.mean([run["converged"] for run in runs])
        lines.append(f"| {table} | {start} | {len(runs)} | {share:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the cases and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks selection", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(500, 540), metavar=("FROM", "TO"))
    parser.add_argument("--out", type=Path, default=Path("selection.jsonl"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    records = []
    if arguments.out.is_file():
        records = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    done = {(r["table"], r["start"], r["seed"]) for r in records}
    seeds = range(*arguments.seeds)
    cases = [(t, s, seed) for seed in seeds for t in TABLES for s in STARTS]
    cases = [case for case in cases if case not in done]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as file:
        for record in pool.map(run_case, cases):
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
    text = page(records)
    if arguments.page is not None:
        arguments.page.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
