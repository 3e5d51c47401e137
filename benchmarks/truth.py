"""Whether stated probabilities and rates are true, for both wings, on simulated tables.

python -m benchmarks truth --seeds 500 600 --out truth.jsonl --page docs/measurements/truth.md

A seed takes about five minutes of a core; `--cases` narrows to cases that begin so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from benchmarks import odd, select_features, selection
from benchmarks._run import Record, by, options, run, write
from bowtienet import (
    BowTieClassifier,
    BowTieNetwork,
    BowTieNetworkClassifier,
    BowTieRegressor,
)
from bowtienet import select_features as select
from bowtienet.evaluation.scores import calibration_error, coverage

Floats = np.ndarray
Values = dict[str, float]
ESTIMATORS: dict[str, Any] = {
    each.__name__: each
    for each in (BowTieRegressor, BowTieNetwork, BowTieClassifier, BowTieNetworkClassifier)
}
NUMBERS, CLASSES = tuple(ESTIMATORS)[:2], tuple(ESTIMATORS)[2:]
NEW = 2_000
"""Rows that the fits have not seen."""
LEVELS = (0.5, 0.8, 0.9, 0.95)
RATES = (0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class Check:
    """A question that a table of the page answers."""

    text: str
    cases: tuple[str, ...]
    measure: Callable[[str, int], Values]
    aims: dict[str, tuple[float, float]]
    """Least and most that means over seeds may be."""
    pools: tuple[str, ...] = ()
    """Beginnings of cases that are judged together; without any each case is judged."""


def names(*parts: Iterable[Any]) -> tuple[str, ...]:
    """All combinations of the parts of a case."""
    return tuple(", ".join(map(str, each)) for each in itertools.product(*parts))


# Numbers


def draw(rows: int, noise: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Five uniform columns; a smooth function of three and noise of deviation about 0.4."""
    X = rng.uniform(-2.0, 2.0, size=(rows, 5))
    errors = rng.standard_t(3.0, size=rows) / 3.0**0.5 if noise == "heavy" else None
    errors = rng.normal(size=rows) if errors is None else errors
    scale = 0.4 * np.exp(0.5 * X[:, 0]) if noise == "by row" else 0.4
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + scale * errors


def intervals(case: str, seed: int) -> Values:
    """Shares of new targets inside; 100 more rows for conformal intervals by calibration rows."""
    name, noise, size = case.split(", ")
    rows = int(size)
    X, y = draw(rows + 100 + NEW, noise, np.random.default_rng([seed, rows, len(noise)]))
    model = ESTIMATORS[name](random_state=seed).fit(X[:rows], y[:rows])
    new, truth = X[-NEW:], y[-NEW:]
    shares = {f"{p:.0%}": coverage(truth, model.predict_interval(new, p)) for p in LEVELS}
    if name == "BowTieRegressor":
        apart = slice(rows, rows + 100)
        for how, pair in (("the fit's", None), ("new", (X[apart], y[apart]))):
            found = model.predict_interval(new, 0.9, method="conformal", calibration=pair)
            shares[f"90% conformal, {how} rows"] = coverage(truth, found)
    return shares


def gap(case: str, seed: int) -> Values:
    """As of `benchmarks odd`."""
    columns = ("std over that beside", "share of the truth within 90%", "std at 40 over at 20")
    return dict(zip(columns, odd.gap(seed, ESTIMATORS[case]), strict=True))


# Classes


def chances(X: Floats, table: str) -> Floats:
    """Probabilities of two, four, or two classes of which one is rare."""
    first = 2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    if table == "four":
        return np.exp(log_softmax(np.column_stack([first, X[:, 1], X[:, 2], 0.0 * first]), axis=1))
    shift = -4.0 if table == "rare" else 0.0
    return np.exp(log_softmax(np.column_stack([0.0 * first, first + shift]), axis=1))


def classes(case: str, seed: int) -> Values:
    """Calibration and log loss of probabilities that are known."""
    name, table, size = case.split(", ")
    rows = int(size)
    rng = np.random.default_rng([seed, rows, len(table)])
    X = rng.uniform(-2.0, 2.0, size=(rows + NEW, 5))
    known = chances(X, table)
    y = (rng.random(len(X))[:, None] > np.cumsum(known, axis=1)[:, :-1]).sum(axis=1)
    model = ESTIMATORS[name](random_state=seed).fit(X[:rows], y[:rows])
    shares, labels, new = model.predict_proba(X[rows:]), y[rows:], np.arange(NEW)
    column = np.searchsorted(model.classes_, labels)
    sure = shares.max(axis=1).mean() - np.mean(shares.argmax(axis=1) == column)
    excess = np.log(known[rows:][new, labels] / shares[new, column]).mean()
    error = calibration_error(labels, shares, model.classes_)[0]
    return {"too sure by": sure, "calibration error": error, "log loss over the truth's": excess}


# False discoveries


def rates(counts: dict[float, tuple[int, int, float]]) -> Values:
    """Columns of a table from kept, falsely kept columns and power at each rate."""
    shares = {f"false at {rate}": f / max(k, 1) for rate, (k, f, _) in counts.items()}
    return shares | {f"power at {rate}": power for rate, (_, _, power) in counts.items()}


def of_networks(case: str, seed: int) -> Values:
    """`BowTieNetwork.selection` of converged fits."""
    record = selection.run_case((case, "laplace", seed))
    keys = ("columns", "false_columns", "power")
    counts = {rate: tuple(record[str(rate)][key] for key in keys) for rate in RATES}
    return rates(counts) | {"converged": float(record["converged"])}


def of_tests(case: str, seed: int) -> Values:
    """`select_features`."""
    signal, rows, columns = case.split(", ")
    X, y = select_features.planted(signal, int(rows), int(columns), seed)
    n_true, counts = 3 * (signal != "nothing"), {}
    for rate in RATES:
        kept = select(X, y, false_discovery_rate=rate).selected
        power = kept[:n_true].mean() if n_true else np.nan
        counts[rate] = int(kept.sum()), int(kept[n_true:].sum()), float(power)
    return rates(counts)


# Adversarial tables: 400 rows and new ones, and what a good answer is


def one_row(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """A target that is constant but in the first row; a good answer is its mean."""
    X, y = rng.normal(size=(400 + NEW, 3)), np.zeros(400 + NEW)
    y[0] = 1.0
    return X, y, np.full(len(y), 1.0 / 400.0)


def one_value(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """A column that is constant but in the first row, and a line."""
    X = rng.normal(size=(400 + NEW, 3))
    X[:, 2] = 0.0
    X[0, 2] = 1e6
    return X, X[:, 0] + 0.3 * rng.normal(size=len(X)), X[:, 0]


def clusters(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Two clusters at a distance of a million deviations, with other levels; a line in another."""
    X, far = rng.normal(size=(400 + NEW, 2)), rng.integers(0, 2, 400 + NEW)
    X[:, 0] += 1e6 * far
    mean = 3.0 * far + X[:, 1]
    return X, mean + 0.3 * rng.normal(size=len(X)), mean


def row_number(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """The row number is a column, and new rows go on counting."""
    X = rng.normal(size=(400 + NEW, 3))
    X[:, 2] = np.arange(len(X))
    return X, X[:, 0] + 0.3 * rng.normal(size=len(X)), X[:, 0]


def xor(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """No column alone says anything."""
    X = rng.choice([-1.0, 1.0], size=(400 + NEW, 5)) + 0.1 * rng.normal(size=(400 + NEW, 5))
    mean = np.sign(X[:, 0] * X[:, 1])
    return X, mean + 0.3 * rng.normal(size=len(X)), mean


def truth_values(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Targets of 0 and 1; a good answer is the probability."""
    X = rng.uniform(-2.0, 2.0, size=(400 + NEW, 3))
    share = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    return X, 1.0 * (rng.random(len(X)) < share), share


TABLES: dict[str, Callable[[np.random.Generator], tuple[Floats, Floats, Floats]]] = {
    "constant target but one row": one_row,
    "constant column but one row": one_value,
    "two clusters 10^6 apart": clusters,
    "the row number as a column": row_number,
    "XOR": xor,
    "0/1 targets": truth_values,
}


def adversarial(case: str, seed: int) -> Values:
    """Coverage, and the error next to that of a good answer."""
    table, name = case.split(", ")
    X, y, good = TABLES[table](np.random.default_rng([seed, list(TABLES).index(table)]))
    model = ESTIMATORS[name](random_state=seed).fit(X[:400], y[:400])
    new, truth = X[400:], y[400:]
    mean, std = model.predict(new, return_std=True)
    inside = coverage(truth, model.predict_interval(new, 0.9))
    error = np.sqrt(np.mean((mean - truth) ** 2) / np.mean((good[400:] - truth) ** 2))
    is_finite = np.isfinite(mean).all() and np.isfinite(std).all()
    return {"finite": float(is_finite), "90%": inside, "RMSE over a good answer's": error}


CHECKS = {
    "Intervals by noise and size": Check(
        text="""Shares of 2,000 new targets inside central intervals, and inside conformal ones by
held-out rows of the fit or by 100 rows that it has not seen, which shall hold 0.89 at least.""",
        cases=names(NUMBERS, ("constant", "by row", "heavy"), (100, 400, 3_000)),
        measure=intervals,
        aims={
            **{f"{p:.0%}": (p - 0.03, min(p + 0.03, 1.0)) for p in LEVELS},
            "90% conformal, the fit's rows": (0.87, 0.93),
            "90% conformal, new rows": (0.89, 0.93),
        },
        pools=NUMBERS,
    ),
    "Classes": Check(
        text="""The mean of the largest probability less the share of hits, the expected
calibration error of 2,000 rows, and the mean log loss beyond that of the true probabilities.""",
        cases=names(CLASSES, ("two", "four", "rare"), (400,)),
        measure=classes,
        aims={"too sure by": (-0.03, 0.03), "calibration error": (0.0, 0.05)},
    ),
    "Gap and outside": Check(
        text="""A sine without rows in [-1, 1] and beyond 4: the standard deviation in the gap over
that beside it, the share of the truth inside 90% intervals there, and how the epistemic standard
deviation grows from a distance of 20 to one of 40.""",
        cases=NUMBERS,
        measure=gap,
        aims={
            "std over that beside": (2.0, 100.0),
            "share of the truth within 90%": (0.9, 1.0),
            "std at 40 over at 20": (1.5, 2.5),
        },
    ),
    "False discoveries of `BowTieNetwork.selection`": Check(
        text="""Tables of `python -m benchmarks selection`: shares of false columns among the kept
ones at two stated rates, and of true columns that are kept. Converged fits with the paper's
settings. Mean-field variances are too small, so the rate is optimistic: by so much.""",
        cases=tuple(selection.TABLES),
        measure=of_networks,
        aims={f"false at {rate}": (0.0, rate) for rate in RATES},
    ),
    "False discoveries of `select_features`": Check(
        text="""Tables of `python -m benchmarks select_features` by signal, rows and columns. Where
nothing matters the false share is that of tables with any selected column.""",
        cases=tuple(
            ", ".join(map(str, (signal, *size)))
            for signal in select_features.SIGNALS
            for size in select_features.SIZES
        ),
        measure=of_tests,
        aims={f"false at {rate}": (0.0, rate) for rate in RATES},
        pools=("",),
    ),
    "Adversarial tables": Check(
        text="""400 rows: what is predicted is finite, 90% intervals hold new targets, and the RMSE
is near that of a good answer (the true mean; of a target that is constant but in one row, the
mean of all rows).""",
        cases=names(TABLES, NUMBERS),
        measure=adversarial,
        aims={"finite": (1.0, 1.0), "90%": (0.85, 1.0), "RMSE over a good answer's": (0.0, 1.25)},
    ),
}
HEAD = """# Truth

Written by `python -m benchmarks truth`, whose file says how tables are drawn. Fits with the
defaults; means over seeds from 500 on ± their standard errors. Bold: outside the aim by more than
two standard errors. Rows in bold are the means of the rows above.
"""


def run_case(check: str, case: str, seed: int) -> Record:
    """What a check measures of a case."""
    return {"values": CHECKS[check].measure(case, seed)}


def page(records: list[Record]) -> str:
    """A table for each check."""
    parts = [HEAD]
    for (title,), runs in by(records, "check").items():
        check = CHECKS[title]
        columns = list(dict.fromkeys(name for each in runs for name in each["values"]))
        groups = {case: each for (case,), each in by(runs, "case").items()}
        for pool in check.pools:
            groups[f"**{pool or 'all'}**"] = [r for r in runs if r["case"].startswith(pool)]
        aims = [aim(check.aims.get(name)) for name in columns]
        lines = [f"| | seeds | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
        lines.append(f"| aim | | {' | '.join(aims)} |")
        for case, each in groups.items():
            judged = not check.pools or case.startswith("**")
            cells = [cell(each, name, check.aims.get(name) if judged else None) for name in columns]
            seeds = len({run["seed"] for run in each})
            lines.append(f"| {case} | {seeds} | {' | '.join(cells)} |")
        parts.append(f"## {title}\n\n{check.text}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def aim(ends: tuple[float, float] | None) -> str:
    """What is wanted."""
    if ends is None:
        return ""
    least, most = ends
    return f"at most {most:g}" if least == 0.0 else f"{least:g} to {most:g}"


def cell(runs: list[Record], name: str, ends: tuple[float, float] | None) -> str:
    """Mean and standard error, bold where they are outside."""
    found = np.array([each["values"].get(name, np.nan) for each in runs], dtype=float)
    found = found[~np.isnan(found)]
    if not found.size:
        return ""
    mean, error = found.mean(), found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else 0.0
    text = f"{mean:.3g} ± {error:.2g}"
    least, most = ends or (-np.inf, np.inf)
    return text if least - 2.0 * error <= mean <= most + 2.0 * error else f"**{text}**"


def main() -> None:
    """Run what is missing and write the page."""
    parser = options("truth", __doc__, seeds=100)
    parser.add_argument("--cases", default="", help="how the cases begin that are run")
    given = parser.parse_args()
    cases = [
        (title, case, seed)
        for seed in range(*given.seeds)
        for title, check in CHECKS.items()
        for case in check.cases
        if case.startswith(given.cases)
    ]
    write(page(run(run_case, ("check", "case", "seed"), cases, given)), given.page)
