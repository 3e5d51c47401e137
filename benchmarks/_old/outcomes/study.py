"""Classes, counts and outliers: the default estimators beside others.

- Classification: fifteen sets (`sets`); log loss, Brier score, expected calibration error of the
  predicted class (15 bins of equal counts), accuracy. Methods are those of `class_methods`.
- Counts: three drawn sets (`count_sets`); mean log probability, RMSE, coverage of 90 % intervals.
- Outliers: a planted function with and without wild targets (`outliers`); RMSE of the function.

Every set has five repeats (seeds 500, 501, ...); seeds from 0 on are for the table of
docs/measurements/evidence.md alone. Seconds are processor seconds of fit and
prediction. Records go to a file, line by line, so that a run goes on where it was stopped.
`make bench-outcomes` runs it and writes the tables of docs/measurements/outcomes.md from the
records. Methods whose library cannot be imported are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks._old.outcomes.class_methods import CLASS_METHODS, runs_on
from benchmarks._old.outcomes.count_methods import COUNT_METHODS
from benchmarks._old.outcomes.count_sets import count_sets
from benchmarks._old.outcomes.outliers import OUTLIER_METHODS, UNITS, draw_outliers
from benchmarks._old.outcomes.records import Record, append, key_of, read
from benchmarks._old.outcomes.sets import FIRST_SEED, classification_sets
from benchmarks._old.outcomes.tables import all_tables, write_page
from bowtienet._old import __version__
from bowtienet._old.evaluation.class_metrics import evaluate_classes
from bowtienet._old.evaluation.count_metrics import evaluate_counts
from bowtienet._old.evaluation.metrics import rmse

REPEATS = 5
LIBRARIES = {"deep ensemble": "torch", "Laplace": "laplace", "NGBoost, Poisson": "ngboost"}
"""What methods need beside the library's own requirements."""
Measured = tuple[int, int, dict[str, float], float]
"""Training rows, test rows, scores and seconds."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One of the three parts of the study."""

    sets: tuple[str, ...]
    methods: tuple[str, ...]
    measure: Callable[[str, str, int], Measured | None]
    """Of a set, a method and a seed; None if the method is not for the set."""


def classification(name: str, method: str, seed: int) -> Measured | None:
    """One fit of a classifier."""
    X_train, y_train, X_test, y_test = classification_sets()[name](seed)
    if not runs_on(method, len(y_train)):
        return None
    begin = time.process_time()
    classes, probabilities = CLASS_METHODS[method](X_train, y_train, X_test, seed)
    seconds = time.process_time() - begin
    found = evaluate_classes(y_test, probabilities, classes)
    names = ("log_loss", "brier_score", "calibration_error", "accuracy")
    return len(y_train), len(y_test), {name: getattr(found, name) for name in names}, seconds


def counts(name: str, method: str, seed: int) -> Measured:
    """One forecast of counts."""
    train, test = count_sets()[name](seed)
    begin = time.process_time()
    forecast = COUNT_METHODS[method](train, test, seed)
    seconds = time.process_time() - begin
    intervals = np.stack([forecast.ppf(0.05), forecast.ppf(0.95)], axis=1)
    found = evaluate_counts(test.counts, forecast, coverage=0.9, intervals=intervals)
    names = ("log_score", "rmse", "coverage")
    scores = {name: getattr(found, name) for name in names}
    return len(train.counts), len(test.counts), scores, seconds


def outliers(name: str, method: str, seed: int) -> Measured:
    """One regression under wild targets."""
    X_train, y_train, X_test, function = draw_outliers(name, seed)
    begin = time.process_time()
    predicted = OUTLIER_METHODS[method](seed).fit(X_train, y_train).predict(X_test)
    seconds = time.process_time() - begin
    return len(y_train), len(function), {"rmse": rmse(function, predicted)}, seconds


TASKS = {
    "classification": Task(
        sets=tuple(classification_sets()), methods=tuple(CLASS_METHODS), measure=classification
    ),
    "counts": Task(sets=tuple(count_sets()), methods=tuple(COUNT_METHODS), measure=counts),
    "outliers": Task(sets=tuple(UNITS), methods=tuple(OUTLIER_METHODS), measure=outliers),
}


def cases(
    tasks: Sequence[str], sets: Sequence[str], methods: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[str, str, int, str]]:
    """Keys of the records that are asked for, repeat by repeat; empty sets or methods mean all."""
    for seed in seeds:
        for task in tasks:
            for name in TASKS[task].sets:
                for method in TASKS[task].methods:
                    if name in (sets or [name]) and method in (methods or [method]):
                        yield task, name, seed, method


def run(keys: Iterator[tuple[str, str, int, str]], out: Path, *, anew: bool = False) -> None:
    """Add the records that are not there yet, or with `anew` all; the last of a case counts."""
    known = set() if anew else {key_of(record) for record in read(out)}
    for key in keys:
        task, name, seed, method = key
        if key in known or not is_available(method):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = TASKS[task].measure(name, method, seed)
        if measured is None:
            continue
        n_train, n_test, scores, seconds = measured
        record: Record = {
            "task": task,
            "set": name,
            "seed": seed,
            "method": method,
            "n_train": n_train,
            "n_test": n_test,
            "scores": {name: float(value) for name, value in scores.items()},
            "seconds": seconds,
            "version": __version__,
        }
        append(out, record)
        found = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
        print(f"{name}, {method}, {seed}: {found}, {seconds:.1f} s", flush=True)


def is_available(method: str) -> bool:
    """Whether the library of a method can be imported."""
    library = LIBRARIES.get(method)
    return library is None or importlib.util.find_spec(library) is not None


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--sets", nargs="+", default=[], help="some sets only")
    parser.add_argument("--methods", nargs="+", default=[], help="some methods only")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--first-seed",
        type=int,
        default=FIRST_SEED,
        help="seed of the first repeat; 0 is for the published table alone",
    )
    parser.add_argument("--out", type=Path, default=Path("outcomes.jsonl"))
    parser.add_argument("--anew", action="store_true", help="measure again what has a record")
    parser.add_argument("--page", type=Path, help="page whose tables are written anew")
    chosen = parser.parse_args(given)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.repeats)
    run(cases(chosen.tasks, chosen.sets, chosen.methods, seeds), chosen.out, anew=chosen.anew)
    tables = all_tables(read(chosen.out))
    if chosen.page:
        write_page(chosen.page, tables)
    print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
