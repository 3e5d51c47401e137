"""The paper's table of five sets: its printed numbers next to those of `BowTieNetwork`.

    python -m benchmarks paper --out paper.jsonl --page docs/measurements/paper.md
    python -m benchmarks paper --tries --out tries.jsonl --page docs/measurements/paper_tries.md

Fits that are in the file already are not repeated. Splits are random ones of the same proportion
(nine tenths for training); which splits the paper used is not known.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.data import FIVE_SETS, split_of
from bowtienet import BowTieNetwork
from bowtienet.model import Prior

PUBLISHED = Path(__file__).with_name("published.csv")
SCORES = ("rmse", "gaussian_nll", "gaussian_coverage")
"""As in the paper: of a Gaussian with the predictive mean and variance."""
paper = BowTieNetwork.as_in_paper
stochastic = partial(paper, solver="svi", forgetting_rate=0.75, batch_size=64, max_iter=100)
METHODS: dict[str, Callable[..., BowTieNetwork]] = {
    "VBNN": paper,
    "4VBNN": partial(paper, n_members=4),
    "GVBNN": partial(paper, prior="gaussian"),
    "SVBNN": stochastic,
    "VBNN, spike_slab": partial(paper, init="spike_slab"),
    "VBNN, to convergence": partial(paper, accelerate=True, max_iter=3000),
    "defaults, one member": partial(BowTieNetwork, n_members=1),
    "defaults": BowTieNetwork,
}
"""Rows of the table: the first four are the paper's, named as there."""


class GatesOnce(BowTieNetwork):
    """Predicts without the variance of the gates, which the learnt hidden noise may hold too."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, and let the temperature go to 0 afterwards."""
        super().fit(X, y, sample_weight)
        self._fitted = replace(self._fitted, model=replace(self._fitted.model, temperature=1e-6))
        return self


class GaussianOfLine(BowTieNetwork):
    """A Gaussian prior whose variance is the mean of the paper's Student-t prior of that table."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit with delta_global = min(√max |coefficient|, 10), as the authors have it."""
        largest = np.abs(LinearRegression().fit(StandardScaler().fit_transform(X), y).coef_).max()
        self.prior = Prior("gaussian", delta_global=min(np.sqrt(largest), 10.0))
        return super().fit(X, y, sample_weight)


gaussian = partial(Prior, "gaussian")
TRIES: dict[str, Callable[..., BowTieNetwork]] = {
    "defaults": BowTieNetwork,
    "predictive without the variance of gates": GatesOnce,
    "hidden noise held at T²": partial(BowTieNetwork, hidden_noise=(1e5, 10.0)),
    "100 units, delta_local halved": partial(
        BowTieNetwork, hidden_layer_sizes=(100,), prior=Prior("student_t", delta_local=0.5)
    ),
    "two layers of 50": partial(BowTieNetwork, hidden_layer_sizes=(50, 50)),
    "8 members": partial(BowTieNetwork, n_members=8),
    "GVBNN": partial(paper, prior="gaussian"),
    "GVBNN, targets standardised": partial(paper, prior="gaussian", scale_target=True),
    "GVBNN, delta of the Student-t": GaussianOfLine.as_in_paper,
    "GVBNN, delta 10": partial(paper, prior=gaussian(delta_global=10.0)),
    "SVBNN": stochastic,
    "SVBNN, batches of 100, 20 passes": partial(stochastic, batch_size=100, max_iter=20),
}
"""What may close the gap to HMC, and what may explain differences from the printed rows."""
TRY_SPLITS = (500, 505)


def gaussian_scores(targets: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """`SCORES` of Gaussian predictions."""
    error = (targets - mean) / std
    return {
        "rmse": float(np.sqrt(np.mean((targets - mean) ** 2))),
        "gaussian_nll": float(np.mean(0.5 * np.log(2.0 * np.pi * std**2) + 0.5 * error**2)),
        "gaussian_coverage": float(np.mean(np.abs(error) < 1.96)),
    }


def run_case(case: tuple[str, str, int]) -> dict[str, Any]:
    """Scores and processor seconds of one method on one split."""
    method, name, split = case
    X, X_test, y, y_test = split_of(name, split)
    began = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = {**METHODS, **TRIES}[method](random_state=split).fit(X, y)
        seconds = time.process_time() - began
        mean, std = model.predict(X_test, return_std=True)
    scores = {**gaussian_scores(y_test, mean, std), "nll": -model.log_score(X_test, y_test)}
    about = {"converged": bool(model.converged_), "iterations": int(model.n_iter_)}
    return {"method": method, "set": name, "split": split, "seconds": seconds, **scores, **about}


def published() -> dict[tuple[str, str, str], tuple[float, float]]:
    """The paper's mean and deviation over its ten splits, by method, set and score."""
    with PUBLISHED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = {
        (row["method"], row["dataset"], row["score"]): (float(row["mean"]), row["deviation"])
        for row in rows
    }
    return {key: (mean, float(deviation or "nan")) for key, (mean, deviation) in numbers.items()}


HEAD = """# The paper's table

Written by `python -m benchmarks paper`. RMSE / negative log-likelihood / coverage of 95 %,
the last two of a Gaussian with the predictive mean and variance as in the paper; means over random
splits 0 to 9, processor seconds of a fit on one core. Where the paper has a row, its printed one
stands below ours, and then the differences in standard errors of both means: which splits the paper
used is not known.

"""


def page(records: Iterable[dict[str, Any]]) -> str:
    """The table, with the difference from the paper in standard errors."""
    known = published()
    by_case: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        by_case.setdefault((record["method"], record["set"]), []).append(record)
    lines = [
        f"| method | {' | '.join(FIVE_SETS)} | mean NLL | seconds | converged |",
        "|---|" + "---|" * (len(FIVE_SETS) + 3),
    ]
    for method in METHODS:
        runs = {name: by_case[method, name] for name in FIVE_SETS if (method, name) in by_case}
        if len(runs) < len(FIVE_SETS):
            continue
        values = {
            name: {score: np.array([run[score] for run in runs[name]]) for score in SCORES}
            for name in FIVE_SETS
        }
        cells = [_cell([v.mean() for v in values[name].values()]) for name in FIVE_SETS]
        everything = [run for name in FIVE_SETS for run in runs[name]]
        loss = np.mean([values[name]["gaussian_nll"].mean() for name in FIVE_SETS])
        seconds = np.mean([run["seconds"] for run in everything])
        share = np.mean([run["converged"] for run in everything])
        tail = f"{loss:.2f} | {seconds:.1f} | {share:.0%}"
        lines.append(f"| **{method}** | {' | '.join(cells)} | {tail} |")
        if (method, FIVE_SETS[0], "rmse") in known:
            lines.append(_printed_row(f"{method}, printed", method, known))
            z = [
                " / ".join(_distance(values[n][s], *known[method, n, s]) for s in SCORES)
                for n in FIVE_SETS
            ]
            lines.append(f"| difference | {' | '.join(z)} | | | |")
    lines.append(_printed_row("HMC, printed", "HMC", known))
    return HEAD + "\n".join(lines) + "\n"


TRIES_HEAD = """# Tries inside the paper's family

"""


def tries_page(records: Iterable[dict[str, Any]]) -> str:
    """RMSE and loss of every try, and the paired change of the loss."""
    cases = {(r["method"], r["set"], r["split"]): r for r in records}
    splits = range(*TRY_SPLITS)
    lines = [
        f"| method | {' | '.join(FIVE_SETS)} | mean NLL | change | seconds |",
        "|---|" + "---|" * (len(FIVE_SETS) + 3),
    ]
    losses: dict[str, np.ndarray] = {}
    for method in TRIES:
        runs = [[cases.get((method, name, split)) for split in splits] for name in FIVE_SETS]
        if None in itertools.chain(*runs):
            continue
        value = {s: np.array([[r[s] for r in row] for row in runs]) for s in (*SCORES, "seconds")}
        losses[method] = value["gaussian_nll"]
        first = method.split(",")[0]
        change = losses[method] - losses[first if first in TRIES else "defaults"]
        error = np.sqrt(np.sum(change.var(axis=1, ddof=1))) / change.size**0.5 / len(change) ** 0.5
        cells = [
            _cell(list(each)) for each in zip(*(value[s].mean(1) for s in SCORES), strict=True)
        ]
        tail = f"{change.mean():+.2f} ± {error:.2f}" if change.any() else ""
        lines.append(
            f"| {method} | {' | '.join(cells)} | {losses[method].mean():.2f} | {tail} | "
            f"{value['seconds'].mean():.1f} |"
        )
    return TRIES_HEAD + "\n".join(lines) + "\n"


def _printed_row(label: str, method: str, known: dict[tuple[str, str, str], Any]) -> str:
    cells = [_cell([known[method, name, score][0] for score in SCORES]) for name in FIVE_SETS]
    loss = np.mean([known[method, name, "gaussian_nll"][0] for name in FIVE_SETS])
    return f"| {label} | {' | '.join(cells)} | {loss:.2f} | | |"


def _cell(values: list[float]) -> str:
    return " / ".join("" if np.isnan(value) else f"{value:.2f}" for value in values)


def _distance(ours: np.ndarray, mean: float, deviation: float) -> str:
    """(ours - theirs) over the standard error of the difference of means of ten splits."""
    if not np.isfinite(deviation):
        return "-"
    error = np.sqrt((ours.var(ddof=1) + deviation**2) / len(ours))
    return f"{(ours.mean() - mean) / error:+.1f}"


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks paper", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("paper.jsonl"))
    parser.add_argument("--page", type=Path)
    parser.add_argument("--tries", action="store_true", help="the tries on splits 500 to 504")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, nargs=2, default=(0, 10), metavar=("FROM", "TO"))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    methods, splits = arguments.methods, arguments.splits
    if arguments.tries:
        methods, splits = TRIES, TRY_SPLITS
    records = []
    if arguments.out.is_file():
        records = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    done = {(record["method"], record["set"], record["split"]) for record in records}
    wanted = itertools.product(methods, FIVE_SETS, range(*splits))
    cases = [case for case in wanted if case not in done]
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as file:
        for record in pool.map(run_case, cases):
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
    text = tries_page(records) if arguments.tries else page(records)
    if arguments.page is not None:
        arguments.page.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
