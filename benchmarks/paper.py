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
from unittest import mock

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks import _methods as others
from benchmarks.data import FIVE_SETS, split_of
from bowtienet import BowTieNetwork, BowTieRegressor
from bowtienet.model import Prior
from bowtienet.networks import penalty

PUBLISHED = Path(__file__).with_name("published.csv")
SCORES = ("rmse", "gaussian_nll", "gaussian_coverage")
"""As in the paper: of a Gaussian with the predictive mean and variance."""
paper = BowTieNetwork.as_in_paper
stochastic = partial(paper, solver="svi", forgetting_rate=0.75, batch_size=64, max_iter=100)


class Other:
    """A method of `_methods` behind the estimators' interface."""

    def __init__(self, name: str, random_state: int) -> None:
        self.name, self.random_state = name, random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit to all rows."""
        self._predict = others.METHODS[self.name](X, y, self.random_state)
        return self

    def predict(self, X: np.ndarray, return_std: bool) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation."""
        found = self._predict(X)
        return found.mean(), found.std()

    def log_score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Mean log density."""
        return float(np.mean(self._predict(X).logpdf(y)))


METHODS: dict[str, Callable[..., Any]] = {
    "VBNN": paper,
    "4VBNN": partial(paper, n_members=4),
    "GVBNN": partial(paper, prior="gaussian"),
    "SVBNN": stochastic,
    "VBNN, spike_slab": partial(paper, init="spike_slab"),
    "VBNN, to convergence": partial(paper, accelerate=True, max_iter=3000),
    "defaults, one member": partial(BowTieNetwork, n_members=1),
    "defaults": BowTieNetwork,
    "BowTieRegressor": BowTieRegressor,
    **{
        name: partial(Other, name) for name in ("CatBoost, uncertainty", "Gaussian process", "BART")
    },
}
"""Rows of the table: the first four are the paper's, named as there; from BowTieRegressor on they
are no variational inference."""


class GatesOnce(BowTieNetwork):
    """Predicts without the variance of the gates, which the learnt hidden noise may hold too."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, and let the temperature go to 0 afterwards."""
        super().fit(X, y, sample_weight)
        self._fitted = replace(self._fitted, model=replace(self._fitted.model, temperature=1e-6))
        return self


class WeakPenalties(BowTieNetwork):
    """Starts from ReLU networks whose penalty may be a tenth of the library's smallest."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit with two more penalties to choose from."""
        with mock.patch.object(penalty, "PENALTIES", (0.003, 0.01, *penalty.PENALTIES)):
            return super().fit(X, y, sample_weight)


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
    "penalties down to 0.003": WeakPenalties,
    "8 members": partial(BowTieNetwork, n_members=8),
    "GVBNN": partial(paper, prior="gaussian"),
    "GVBNN, targets standardised": partial(paper, prior="gaussian", scale_target=True),
    "GVBNN, delta of the Student-t": GaussianOfLine.as_in_paper,
    "GVBNN, delta 10": partial(paper, prior=gaussian(delta_global=10.0)),
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
    about = {"converged": getattr(model, "converged_", None)}
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
used is not known. `BowTieRegressor` is the practical ensemble with its defaults; other methods are
those of [what a default fit costs](fit.md).

"""


WHY = """
## Why where beyond two

- **VBNN and 4VBNN** agree but for three of thirty scores. On energy the printed coverage of VBNN is
  0.98 with hardly any spread over its splits, ours 0.95, the stated share; the losses of VBNN on
  concrete (-2.1) and of 4VBNN on energy (-2.8) are lower than the printed ones. No fit of 200
  sweeps has converged, so that scores depend on where the starts lie.
- **GVBNN** is far worse than printed on all sets but slump. The paper does not state the variance
  of its Gaussian prior. With targets in their own unit a variance of one holds the function back:
  on splits 500 to 504 a tenfold scale lowers the mean loss by 0.74, standardised targets by 0.60
  ([tries](paper_tries.md)), both below the printed 3.00. The printed rows had another scale.
- **SVBNN**: RMSE and loss agree; intervals are wider than printed on yacht, boston and concrete, by
  2 to 3 standard errors. Batch size and steps are those of the authors' configuration files, which
  need not be those of the table.
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
        is_variational = any(run["converged"] is not None for run in everything)
        shares = [bool(run["converged"]) for run in everything]
        tail = f"{loss:.2f} | {seconds:.1f} | {f'{np.mean(shares):.0%}' if is_variational else ''}"
        lines.append(f"| **{method}** | {' | '.join(cells)} | {tail} |")
        if (method, FIVE_SETS[0], "rmse") in known:
            lines.append(_printed_row(f"{method}, printed", method, known))
            z = [
                " / ".join(_distance(values[n][s], *known[method, n, s]) for s in SCORES)
                for n in FIVE_SETS
            ]
            lines.append(f"| difference | {' | '.join(z)} | | | |")
    lines.append(_printed_row("HMC, printed", "HMC", known))
    return HEAD + "\n".join(lines) + "\n" + WHY


TRIES_HEAD = """# Tries inside the paper's family

Written by `python -m benchmarks paper --tries`. RMSE / negative log-likelihood / coverage of 95 %
as in [the paper's table](paper.md), means over splits from 500; the change of the loss against the
defaults (of GVBNN, against its first row) on the same splits, ± its standard error.

Three tries at what limits the posterior: gates and activations counted once in the predictive,
hidden noise held at T² so that it cannot take up the variance of gates, and more units with
stronger shrinkage. None changes the loss beyond chance: the predictive variance is mostly output
noise, and the mean function is that of the start. Weaker penalties of the start gain on yacht and
energy, where noise is small, and lose on slump and boston, whose few rows choose them wrongly. More
members gain 0.01. The rows of GVBNN say why its printed row is not met: the scale of its prior.

"""


def tries_page(records: Iterable[dict[str, Any]]) -> str:
    """Scores of every try, and the paired change of its loss."""
    cases = {(r["method"], r["set"], r["split"]): r for r in records}
    lines = [
        f"| method | {' | '.join(FIVE_SETS)} | splits | mean NLL | change |",
        "|---|" + "---|" * (len(FIVE_SETS) + 3),
    ]
    for method in TRIES:
        first = method.split(",")[0] if method.startswith("GVBNN") else "defaults"
        tried = [s for s in range(*TRY_SPLITS) if all((method, n, s) in cases for n in FIVE_SETS)]
        if not tried:
            continue
        runs, firsts = (
            np.array([[[cases[m, n, s][k] for k in SCORES] for s in tried] for n in FIVE_SETS])
            for m in (method, first)
        )
        cells = " | ".join(_cell(list(values.mean(axis=0))) for values in runs)
        change = (runs - firsts)[..., 1]
        error = np.sqrt(np.mean(change.var(axis=1, ddof=1)) / change.size)
        tail = f"{change.mean():+.2f} ± {error:.2f}" if method != first else ""
        lines.append(f"| {method} | {cells} | {len(tried)} | {runs[..., 1].mean():.2f} | {tail} |")
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
