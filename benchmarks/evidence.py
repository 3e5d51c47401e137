"""From the paper to the strongest: every method on every table, one record a case, one page.

    python -m benchmarks evidence --out docs/measurements/evidence.jsonl.gz \\
        --page docs/measurements/evidence.md --readme README.md --jobs 2 --hours 10

Cases that have a record are not run again; the most valuable come first. Tables that took part in
no choice are the files of `evidence_only` in the folder of the environment variable BOWTIENET_DATA.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder

from benchmarks import classes, fit, portfolio, select_features, selection
from benchmarks._ladder import METHODS, QUOTED, own
from benchmarks._run import Record, options, read, rewrite, run
from benchmarks.data import FIVE_SETS, split_of
from benchmarks.paper import gaussian_scores
from bowtienet import BowTieNetwork
from bowtienet.evaluation.scores import calibration_error, crps, pit
from bowtienet.inference import ascend

Floats = np.ndarray
Split = tuple[Any, Any, Floats, Floats]
"""X, X_test, y, y_test."""
NAMES = ("part", "table", "method", "seed")
"""What a record is of."""


class Table(NamedTuple):
    """A table that every method of its kind is fitted to."""

    kind: str
    """ "numbers", "classes" or "counts": what the target is."""
    group: str
    """ "evidence-only", "five", "real" or "generated"."""
    split: Callable[[int], Split]
    rows: int
    """For training."""

    @property
    def splits(self) -> int:
        """Ten, of large tables three."""
        return 10 if self.rows <= 9_000 else 3


def table_of(kind: str, group: str, function: Callable[..., Split], *arguments: Any) -> Table:
    """A table by its splits, function(*arguments, seed)."""
    split = partial(function, *arguments)
    return Table(kind, group, split, len(split(0)[2]))


# Tables


@cache
def evidence_only() -> tuple[dict[str, Table], tuple[str, ...]]:
    """Tables that took part in no choice, by folders of their kind, and what is missing of them."""
    folder, tables, missing = given_folder() / "evidence_only", {}, []
    for path in sorted(folder.glob("*/*.csv.gz")):
        name = path.name.removesuffix(".csv.gz")
        kind = "classes" if path.parent.name == "classification" else "numbers"
        try:
            X, y = read_table(path)
            y = LabelEncoder().fit_transform(y) if kind == "classes" else y.astype(float)
            tables[name] = table_of(kind, "evidence-only", part, X, y)
        except (ValueError, OSError) as error:
            missing.append(f"{name} cannot be read: {error}"[:150].replace("\n", " "))
    if not tables:
        missing.append("no table of evidence_only is here: set BOWTIENET_DATA")
    return tables, tuple(missing)


def given_folder() -> Path:
    """Of tables for studies."""
    return Path(os.environ.get("BOWTIENET_DATA", ""))


def read_table(path: Path) -> tuple[Any, Floats]:
    """Columns, an array where all are numbers, and the one named "target", or else the last."""
    frame = pd.read_csv(path)
    if pd.to_numeric(frame.columns, errors="coerce").notna().all():  # no names, a first row
        frame = pd.read_csv(path, header=None)
    target = "target" if "target" in frame else frame.columns[-1]
    X, y = frame.drop(columns=target).rename(columns=str), frame[target].to_numpy()
    texts = X.select_dtypes(exclude="number").columns
    X = X.astype(dict.fromkeys(texts, object))
    return (X if len(texts) else X.to_numpy(dtype=float)), y


def part(X: Any, y: Floats, seed: int) -> Split:
    """A random tenth as the test."""
    return tuple(train_test_split(X, y, test_size=0.1, random_state=seed))


def few_tests(split: Callable[[int], Split], seed: int) -> Split:
    """The first 2,000 test rows."""
    X, X_test, y, y_test = split(seed)
    return X, X_test[:2_000], y, y_test[:2_000]


def with_gaps(rows: int, seed: int) -> Split:
    """Steps of twelve columns; a fifth of the cells is missing."""
    X, X_test, y, y_test = fit.generated(fit.steps, rows, 12, 0.3, seed)
    rng = np.random.default_rng([seed, 2])
    for each in (X, X_test):
        each[rng.random(each.shape) < 0.2] = np.nan
    return X, X_test, y, y_test


def with_categories(rows: int, seed: int) -> Split:
    """Three numbers and categories of 6 and 100 levels with effects of their own."""
    rng = np.random.default_rng(seed)
    n = rows + 5_000
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    few, many = rng.integers(0, 6, n), rng.integers(0, 100, n)
    X["few"], X["many"] = [f"f{i}" for i in few], [f"m{i}" for i in many]
    y = np.sin(2.0 * X["a"]) + rng.normal(size=6)[few] * X["b"] + 0.7 * rng.normal(size=100)[many]
    y = y.to_numpy() + 0.3 * rng.normal(size=n)
    return X[5_000:], X[:5_000], y[5_000:], y[:5_000]


def counts(rows: int, dispersion: float, seed: int) -> Split:
    """Log-smooth means around two; gamma rates of this variance make them negative binomial."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows + 5_000, 8))
    rate = np.exp(0.7 + 0.5 * np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1] * (X[:, 2] > 0.0))
    if dispersion:
        rate = rate * rng.gamma(1.0 / dispersion, dispersion, size=len(rate))
    y = rng.poisson(rate).astype(float)
    return X[5_000:], X[:5_000], y[5_000:], y[:5_000]


@cache
def tables() -> dict[str, Table]:
    """All of them by name."""
    found = {}
    for name in (*FIVE_SETS, "airfoil", "autompg", "power"):
        found[name] = table_of("numbers", "five" if name in FIVE_SETS else "real", split_of, name)
    found["kin40k"] = table_of("numbers", "real", few_tests, fit.kin40k)
    for rows in (300, 3_000, 30_000):
        made: dict[str, Callable[[int], Split]] = {
            "interactions": partial(fit.generated, fit.smooth, rows, 10, 0.3),
            "irrelevant columns": partial(fit.generated, fit.smooth, rows, 50, 0.3),
            "categories": partial(with_categories, rows),
            "missing values": partial(with_gaps, rows),
            "Poisson": partial(counts, rows, 0.0),
            "overdispersed": partial(counts, rows, 0.5),
        }
        for name, split in made.items():
            kind = "counts" if name in ("Poisson", "overdispersed") else "numbers"
            found[f"{name}, {rows:,}"] = table_of(kind, "generated", few_tests, split)
    largest = partial(classes.generated, 30_000, 20, 3, "smooth", 0.0)
    for name, split in {**classes.TABLES, "30,000 x 20, 3 smooth": largest}.items():
        found[name] = table_of("classes", "generated" if " x " in name else "real", split)
    for name, table in evidence_only()[0].items():
        found[name if name not in found else f"{name}, evidence-only"] = table
    return found


# Cases


def measured(method: Any, X: Any, y: Floats, X_test: Any, seed: int, answer: Any) -> Any:
    """What `answer` makes of predictions, and seconds, memory and the size of the file."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = memory("VmRSS")
    began = time.process_time()
    predict = method(X, y, seed)
    fitted = time.process_time()
    found = predict(X_test)
    asked = answer(found)
    ended = time.process_time()
    costs = {"seconds": fitted - began, "predict_seconds": ended - fitted}
    costs["mb"] = memory("VmHWM") - before
    model = getattr(predict, "__self__", None)
    if hasattr(model, "save"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.btn"
            model.save(path)
            costs["file_mb"] = path.stat().st_size / 2**20
    return found, asked, costs


def memory(name: str) -> float:
    """ "VmRSS", what this process has now, or "VmHWM", its peak, in MB; NaN but on Linux."""
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))
    return math.nan


def ladder_case(table: str, method: str, seed: int) -> Record:
    """Scores of a method on a split of a table."""
    kind, _, split, _ = tables()[table]
    X, X_test, y, y_test = split(seed)
    fitted = METHODS[kind][method]
    if kind == "classes":
        shares, _, costs = measured(fitted, X, y, X_test, seed, np.asarray)
        labels = np.unique(y)
        # A class that no training row has gets no share, from no method.
        absent = np.setdiff1d(y_test, labels)
        shares = np.column_stack([shares, np.zeros((len(shares), len(absent)))])
        order = np.argsort(np.append(labels, absent))
        shares, labels = shares[:, order], np.append(labels, absent)[order]
        hits = y_test[:, None] == labels
        scores = {
            "loss": float(log_loss(y_test, shares, labels=labels)),
            "brier": float(np.mean(np.sum((shares - hits) ** 2, axis=1))),
            "ece": calibration_error(y_test, shares, labels)[0],
            "error": float(np.mean(labels[np.argmax(shares, axis=1)] != y_test)),
        }
    else:
        found, asked, costs = measured(
            fitted, X, y, X_test, seed, lambda d: (d.mean(), d.std(), d.interval(0.9))
        )
        mean, std, (low, high) = asked
        scores = gaussian_scores(y_test, mean, std) | {
            "nll": -float(np.mean(found.logpdf(y_test))),
            "crps": float(np.mean(crps(y_test, found))),
            "coverage": float(np.mean((low <= y_test) & (y_test <= high))),
            "width": float(np.mean(high - low)),
            "scale": float(np.std(y)),
            "pit": np.histogram(pit(y_test, found), 20, (0.0, 1.0))[0].tolist(),
        }
    return {"rows": len(y), "columns": X.shape[1], **scores, **costs}


@cache
def protocol(table: str) -> Split:
    """The split that the authors of Bayesian deep ensembles published, of their package's files."""
    files = importlib.resources.files("bde") / "data"
    if table == "airfoil":
        frame = pd.read_csv(str(files / "airfoil.csv"))
    else:
        frame = pd.read_csv(str(files / "bike_sharing_dataset" / "hour.csv"))
        frame = frame.drop(columns=["casual", "registered", "instant", "dteday"])
    rows = frame.to_numpy(dtype=float)
    X, X_test, y, y_test = train_test_split(
        rows[:, :-1], rows[:, -1], test_size=0.2, random_state=0
    )
    center, scale = y.mean(), y.std()
    return X, X_test, (y - center) / scale, (y_test - center) / scale


def protocol_case(table: str, method: str, seed: int) -> Record:
    """Scores of a seed on that split."""
    X, X_test, y, y_test = protocol(table)
    fitted = METHODS["numbers"][method]
    found, (mean, std), costs = measured(fitted, X, y, X_test, seed, lambda d: (d.mean(), d.std()))
    own_nll = -float(np.mean(found.logpdf(y_test)))
    return gaussian_scores(y_test, mean, std) | {"nll": own_nll} | costs


WING: dict[str, dict[str, Any]] = {
    "defaults": {},
    "temperature 0.1": {"temperature": 0.1},
    "temperature 0.001": {"temperature": 0.001},
    "start: laplace": {"init": "laplace", "max_iter": 200},
    "start: spike_slab": {"init": "spike_slab", "max_iter": 200},
    "hidden noise held at T²": {"hidden_noise": (1e5, 10.0)},
    "without EM": {},
    "one member": {"n_members": 1},
    "eight members": {"n_members": 8},
}
"""Changes of `BowTieNetwork`."""
WITHOUT_EM = [(ascend, "update_hyperparameters", lambda model, factors: model)]


def wing_case(table: str, method: str, seed: int) -> Record:
    """Scores of a change of the paper's wing on one of the paper's sets."""
    X, X_test, y, y_test = split_of(table, seed)
    changed = own(BowTieNetwork, **WING[method])
    with portfolio.changed(WITHOUT_EM if method == "without EM" else []):
        found, _, costs = measured(changed, X, y, X_test, seed, lambda d: d.mean())
    rmse = float(np.sqrt(np.mean((found.mean() - y_test) ** 2)) / y_test.std())
    return {"rmse": rmse, "nll": -float(np.mean(found.logpdf(y_test))), **costs}


def growth_case(table: str, method: str, seed: int) -> Record:
    """Seconds and memory of a fit to a generated table, "rows x columns"."""
    rows, columns = map(int, table.split(" x "))
    X, X_test, y, y_test = fit.generated(fit.smooth, rows, columns, 0.3, seed)
    found, _, costs = measured(
        METHODS["numbers"][method], X, y, X_test, seed, lambda d: (d.mean(), d.interval())
    )
    return {"rmse": float(np.sqrt(np.mean((found.mean() - y_test) ** 2))), **costs}


def selection_case(table: str, method: str, seed: int) -> Record:
    """False share, power and seconds of a rule on a planted table, "signal, rows x columns"."""
    signal, size = table.split(", ")
    rows, columns = map(int, size.split(" x "))
    return select_features.case(signal, rows, columns, method, seed)


def network_selection_case(table: str, method: str, seed: int) -> Record:
    """The same of `BowTieNetwork.selection`, by its start."""
    record = selection.run_case((table, method, seed))
    at = record[str(select_features.RATE)]
    false = at["false_columns"] / max(at["columns"], 1)
    return {"false": false, "power": at["power"], "seconds": record["seconds"]}


PARTS: dict[str, Callable[[str, str, int], Record]] = {
    "ladder": ladder_case,
    "ablation": portfolio.run_case,
    "wing": wing_case,
    "growth": growth_case,
    "protocol": protocol_case,
    "selection": selection_case,
    "network selection": network_selection_case,
}
PROTOCOL = ("BowTieRegressor", "BowTieRegressor, best", "BowTieNetwork")
GROWTH = ("BowTieRegressor", "LightGBM", "Gaussian process")


def case(part: str, table: str, method: str, seed: int) -> Record:
    """The record of a case."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    return PARTS[part](table, method, seed)


# The order

Turn = tuple[float, int, int]
"""When a case comes: its turn, then the place of its method and the rows of its table."""
TURNS = {"evidence-only": (0.0, 1.0), "five": (0.5, 0.25), "real": (1.5, 1.0)}
TURNS |= {"generated": (1.6, 2.0)}
"""The turn of the first split of a group, and how much later the next one comes."""


def plan(given: Any) -> list[tuple[Turn, tuple[str, str, str, int]]]:
    """All cases with their turns, in order."""
    return sorted(itertools.chain(_ladder(given), _others(given)))


def _ladder(given: Any) -> Iterator[tuple[Turn, tuple[str, str, str, int]]]:
    for name, table in tables().items():
        first, later = TURNS[table.group]
        for place, (method, how) in enumerate(METHODS[table.kind].items()):
            if not how.is_here or table.rows > how.most_rows:
                continue
            for split in range(min(given.splits, table.splits, how.splits)):
                if how.splits < 10:  # slow: after the next group's first split, small tables first
                    turn = (first + later * split + 0.6, table.rows, place)
                else:
                    turn = (first + later * split, place, table.rows)
                yield turn, ("ladder", name, method, split)


def _others(given: Any) -> Iterator[tuple[Turn, tuple[str, str, str, int]]]:
    for seed in range(given.ablation_seeds):
        for place, variant in enumerate(portfolio.VARIANTS):
            for table in portfolio.TABLES:
                yield (1.7 + seed, place, 0), ("ablation", table, variant, 500 + seed)
    for seed, (place, change) in itertools.product(range(5), enumerate(WING)):
        for table in FIVE_SETS:
            yield (1.3 + 0.1 * seed, place, 0), ("wing", table, change, 500 + seed)
    if importlib.util.find_spec("bde"):
        for table, (place, method) in itertools.product(QUOTED, enumerate(PROTOCOL)):
            for seed in range(5):
                yield (0.4, place, seed), ("protocol", table, method, seed)
    sizes = [(10**k, 10) for k in range(2, 8)] + [(3 * 10**k, 10) for k in range(2, 7)]
    sizes += [(1_000, columns) for columns in (5, 20, 50, 200, 500, 2_000)]
    for (rows, columns), method in itertools.product(sizes, GROWTH):
        if rows <= min(given.rows, METHODS["numbers"][method].most_rows):
            turn = (1.4 if rows * columns <= 10**6 else 2.4, 0, rows)
            yield turn, ("growth", f"{rows} x {columns}", method, 500)
    planted = itertools.product(select_features.SIGNALS, select_features.SIZES)
    for signal, (rows, columns) in planted:
        for (place, method), seed in itertools.product(
            enumerate(select_features.METHODS), range(given.selection_seeds)
        ):
            turn = (1.8 + 0.2 * seed, place, rows)
            yield turn, ("selection", f"{signal}, {rows} x {columns}", method, 500 + seed)
    for table, start in itertools.product(selection.TABLES, selection.STARTS):
        for seed in range(given.selection_seeds):
            yield (1.9 + 0.2 * seed, 0, 0), ("network selection", table, start, 500 + seed)


def main() -> None:
    """Run what is missing, in order, and write the page, its figures and README's table."""
    parser = options("evidence", __doc__, seeds=1)
    parser.add_argument("--readme", type=Path, help="whose table is written")
    parser.add_argument("--hours", type=float, default=math.inf, help="no case starts after them")
    parser.add_argument("--limit", type=float, default=1_200.0, help="seconds of a case")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--ablation-seeds", type=int, default=3)
    parser.add_argument("--selection-seeds", type=int, default=10)
    parser.add_argument("--rows", type=float, default=1e7, help="the largest table of growth")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--methods", nargs="+", help="of the ladder, none but these")
    parser.add_argument("--tables", nargs="+", help="of the ladder, none but these")
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    given = parser.parse_args()
    for line in evidence_only()[1]:
        print(line)
    cases = [each for _, each in plan(given) if each[0] in given.parts and _is_wanted(given, each)]
    known = read(given.out)
    rewrite([each for each in known if not (given.retry and "failed" in each)], given.out)
    limits = {"limit": given.limit, "hours": given.hours, "may_fail": True}
    records = run(case, NAMES, cases, given, **limits)
    rewrite(records, given.out)
    if given.page is not None:
        from benchmarks import _evidence_page

        _evidence_page.write_page(records, cases, tables(), evidence_only()[1], given)


def _is_wanted(given: Any, case: tuple[str, str, str, int]) -> bool:
    part, table, method, _ = case
    if part != "ladder":
        return True
    return (not given.methods or method in given.methods) and (
        not given.tables or table in given.tables
    )


if __name__ == "__main__":
    main()
