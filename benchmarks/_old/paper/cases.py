"""One method on one split of one data set, and many of them in processes of their own.

A record holds the scores of the forecast itself and those of the paper, which take the forecast
for N(mean, variance).
"""

from __future__ import annotations

import importlib
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.model_selection import train_test_split

from benchmarks._old.paper.memory import forget_peak_memory, peak_memory
from benchmarks._old.paper.methods import METHODS, missing
from benchmarks._old.paper.records import DONE, FAILED, MISSING, Journal, Record, key_of
from benchmarks._old.paper.sets import load_set, rows_of
from bowtienet._old.evaluation import (
    calibration_curve,
    crps,
    interval_coverage,
    negative_log_density,
    rmse,
)
from bowtienet._old.prediction.combined_mixtures import pool_mixtures
from bowtienet._old.prediction.mixture import Mixture, build_mixture

COVERAGE = 0.95
"""Probability of the intervals of all experiments, as in the paper."""
_SEED_STEP = 1000
"""From one member to the next, so that members of different splits share no seed."""
_LONGEST = 1000
"""Letters of an error's message that a note keeps; what to do often stands at its end."""
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:/|[A-Za-z]:\\)(?:[^\s/\\'\"]+[/\\])+")
"""Of files on this machine, whose names are enough."""
_XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What to run, by names."""

    experiment: str
    dataset: str
    method: str
    seed: int
    """Of the split, and of the method on it."""
    hidden: tuple[int, ...] = (50,)
    members: int = 1
    """More than one: the equal mixture of several fits."""
    settings: dict[str, Any] = field(default_factory=dict)
    train_rows: int | None = None
    """Rows to fit, with as many others to score; None for nine tenths and one."""

    @property
    def key(self) -> str:
        """The text by which its record is found."""
        return key_of(asdict(self))


def run_case(case: Case) -> Record:
    """Fit, predict and score; whatever goes wrong on the way is a record, too."""
    if reason := why_not(case):
        return unscored(case, MISSING, reason)
    X, y = rows_of(case.dataset)
    sizes = {"test_size": 0.1}
    if case.train_rows is not None:
        sizes = {"train_size": case.train_rows, "test_size": case.train_rows}
    train, test, train_y, test_y = train_test_split(X, y, **sizes, random_state=case.seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = _fit_and_predict(case, train, train_y, test, test_y)
        except Exception as error:
            sizes = {"n_train": len(train), "n_test": len(test)}
            return unscored(case, FAILED, _described(error)) | sizes
    return {**asdict(case), "status": DONE, **found}


def why_not(case: Case) -> str | None:
    """Why a case cannot run here, for want of a library or of data; None if it can."""
    return missing(case.method) or lacks_data(case.dataset)


@cache
def lacks_data(dataset: str) -> str | None:
    """Why a data set is not to be had here, or None if it is."""
    try:
        load_set(dataset)
    except OSError as error:
        return _described(error)
    return None


def unscored(case: Case, status: str, note: str) -> Record:
    """The record of a case that failed or could not be run, and why."""
    times = dict.fromkeys(("seconds", "wall_seconds", "predict_seconds"), math.nan)
    empty = {"scores": {}, "curve": [], **times, "n_train": 0, "n_test": 0}
    return {**asdict(case), "status": status, **empty, "note": note}


def _fit_and_predict(
    case: Case, X: np.ndarray, y: np.ndarray, new: np.ndarray, targets: np.ndarray
) -> Record:
    method = METHODS[case.method]
    fit = method.make(case.hidden, **case.settings)
    for module in method.needs:
        importlib.import_module(module)  # or the first fit of a process would seem slow
    seeds = [case.seed + _SEED_STEP * member for member in range(case.members)]
    forget_peak_memory()
    fitted, seconds, wall_seconds = _timed(lambda: [fit(X, y, seed) for seed in seeds])
    mixture, predict_seconds, _ = _timed(
        lambda: pool_mixtures([each.predict(new) for each in fitted])
    )
    points = [each.mean(new) for each in fitted if each.mean is not None]
    mean = np.mean(points, axis=0) if points else mixture.mean()
    scores, curve = score(targets, mixture, mean)
    return {
        "scores": scores,
        "curve": curve,
        "seconds": seconds,
        "wall_seconds": wall_seconds,
        "predict_seconds": predict_seconds,
        "peak_mb": peak_memory(),
        "n_train": len(X),
        "n_test": len(new),
        "note": "; ".join(dict.fromkeys(each.note for each in fitted if each.note)) or None,
    }


def score(
    targets: np.ndarray, mixture: Mixture, mean: np.ndarray
) -> tuple[dict[str, float], list[float]]:
    """Scores of a forecast, and the curve of shares inside the intervals of N(mean, variance).

    Those called gaussian are the paper's: they know of a forecast its mean and variance alone.
    """
    ends = mixture.interval(COVERAGE)
    normal = build_mixture([1.0], mean[None], mixture.std()[None])
    scores = {
        "rmse": rmse(targets, mean),
        "nll": negative_log_density(targets, mixture),
        "crps": crps(targets, mixture),
        "coverage": interval_coverage(targets, ends),
        "gaussian_nll": negative_log_density(targets, normal),
        "gaussian_coverage": interval_coverage(targets, normal.interval(COVERAGE)),
        "interval_width": float(np.mean(ends[:, 1] - ends[:, 0])),
    }
    return scores, calibration_curve(targets, normal)[1].tolist()


def run_cases(
    cases: Iterable[Case],
    journal: Journal,
    report: Callable[[str], None],
    *,
    n_jobs: int = -1,
    again: bool = False,
) -> bool:
    """Run what is to do and add the records to the journal; False if a process died."""
    waiting, count, all_well = [], 0, True
    for case in to_do(cases, journal, again=again):
        if reason := why_not(case):
            journal.append(unscored(case, MISSING, reason))
        else:
            waiting.append(case)
    for method in dict.fromkeys(case.method for case in waiting):
        try:
            for record in _run_method([c for c in waiting if c.method == method], n_jobs):
                journal.append(record)
                count += 1
                report(
                    f"{count}/{len(waiting)} {record['experiment']}, {method} on "
                    f"{record['dataset']}, split {record['seed']}: {record['status']}"
                )
        except TerminatedWorkerError as error:
            all_well = False
            report(f"a process of {method} died, which leaves cases to do: {_described(error)}")
    return all_well


def to_do(cases: Iterable[Case], journal: Journal, *, again: bool = False) -> list[Case]:
    """Cases without a record, missing ones that can run now, and if `again` failed ones."""

    def is_left(case: Case, before: Record | None) -> bool:
        if before is None:
            return True
        if before["status"] == MISSING:
            return why_not(case) is None
        return before["status"] == FAILED and again

    unique = {case.key: case for case in cases}
    return [case for key, case in unique.items() if is_left(case, journal.records.get(key))]


def _run_method(cases: list[Case], n_jobs: int) -> Iterator[Record]:
    """Records in the order in which cases end.

    Processes serve one method, so that libraries never meet in them, and have one thread, so that
    a fit has a core for itself.
    """
    os.environ.setdefault("XLA_FLAGS", _XLA)  # for the processes that start now
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        yield from pool(delayed(run_case)(case) for case in cases)
    get_reusable_executor().shutdown(wait=True)


def _timed(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function gives, and its CPU and wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _described(error: BaseException) -> str:
    message = " ".join(_FOLDERS.sub("", str(error)).split())
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + " ..."
    return f"{type(error).__name__}: {message}"
