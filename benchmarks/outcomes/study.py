"""Classes, counts and outliers: the default estimators beside others.

- Classification: the sets of `benchmarks.outcomes.sets`, five repeats each (seeds 500, 501, ...);
  log loss, Brier score, expected calibration error of the predicted class (15 bins of equal
  counts), accuracy and processor seconds. `benchmarks.outcomes.class_methods` has the methods.

Records go to a file, line by line, so that a run goes on where it was stopped. The tables of
docs/measurements/outcomes.md are written from them. `make bench-outcomes` runs all of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

from benchmarks.outcomes.class_methods import CLASS_METHODS, runs_on
from benchmarks.outcomes.records import Record, append, key_of, read
from benchmarks.outcomes.sets import FIRST_SEED, ClassSet, classification_sets
from benchmarks.outcomes.tables import class_tables
from bowtienet import __version__
from bowtienet.evaluation.class_metrics import evaluate_classes

REPEATS = 5


def classification_record(name: str, draw: ClassSet, method: str, seed: int) -> Record:
    """One fit of a method to a set, scored on its test rows."""
    X_train, y_train, X_test, y_test = draw(seed)
    begin = time.process_time()
    classes, probabilities = CLASS_METHODS[method](X_train, y_train, X_test, seed)
    seconds = time.process_time() - begin
    scores = evaluate_classes(y_test, probabilities, classes)
    return {
        "task": "classification",
        "set": name,
        "seed": seed,
        "method": method,
        "n_train": len(y_train),
        "n_test": len(y_test),
        "scores": {
            "log_loss": scores.log_loss,
            "brier_score": scores.brier_score,
            "calibration_error": scores.calibration_error,
            "accuracy": scores.accuracy,
        },
        "seconds": seconds,
        "version": __version__,
    }


def run_classification(
    sets: Iterable[str], seeds: Iterable[int], methods: Iterable[str], out: Path
) -> None:
    """Add the records that are not there yet."""
    known, draws, methods = (
        {key_of(record) for record in read(out)},
        classification_sets(),
        [*methods],
    )
    for seed in seeds:
        for name in sets:
            for method in methods:
                if ("classification", name, seed, method) in known:
                    continue
                if not runs_on(method, len(draws[name](seed)[1])):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    record = classification_record(name, draws[name], method, seed)
                append(out, record)
                print(
                    f"{name}, {method}, {seed}: log loss {record['scores']['log_loss']:.4f}, "
                    f"{record['seconds']:.1f} s",
                    flush=True,
                )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sets = list(classification_sets())
    parser.add_argument("--sets", nargs="+", default=sets, choices=sets)
    parser.add_argument("--methods", nargs="+", default=list(CLASS_METHODS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=Path("outcomes.jsonl"))
    chosen = parser.parse_args(given)
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.repeats)
    run_classification(chosen.sets, seeds, chosen.methods, chosen.out)
    for text in class_tables(read(chosen.out)).values():
        print(text, end="\n\n")


if __name__ == "__main__":
    main()
