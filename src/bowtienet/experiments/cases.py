"""One method on one split of one data set: what an experiment is made of.

A case names what to run, so that any process can run it. Its record holds the scores of the
forecast itself and those of the paper, which take the forecast for N(mean, variance).
"""

from __future__ import annotations

import importlib
import math
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from bowtienet.data.sets import load_set
from bowtienet.evaluation.methods import Forecast, Forecaster, Method
from bowtienet.evaluation.metrics import (
    calibration_curve,
    crps,
    interval_coverage,
    negative_log_density,
    rmse,
)
from bowtienet.experiments.methods import METHODS, missing
from bowtienet.experiments.records import DONE, FAILED, MISSING, Record, build_key
from bowtienet.prediction.mixture import build_mixture

COVERAGE = 0.95
"""Probability of the intervals of all experiments, as in the paper."""
TEST_SIZE = 0.1
SEED_STEP = 1000
"""From one member to the next, so that members of different splits share no seed."""
_LONGEST = 1000
"""Letters of an error's message that a note keeps; what to do often stands at its end."""
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:/|[A-Za-z]:\\)(?:[^\s/\\'\"]+[/\\])+")
"""Of files on this machine, whose names are enough."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What to run, by names."""

    experiment: str
    dataset: str
    """For `load_set`."""
    method: str
    """Of `METHODS`."""
    seed: int
    """Of the split, and of the method on it."""
    hidden: tuple[int, ...] = (50,)
    members: int = 1
    """More than one: the equal mixture of so many fits."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Given to the method when it is made."""

    @property
    def key(self) -> str:
        """The text by which a case and its record are found again."""
        return build_key(self)


class Split(NamedTuple):
    """Rows to fit and rows to forecast, in the units of the data."""

    train_inputs: np.ndarray
    train_targets: np.ndarray
    test_inputs: np.ndarray
    test_targets: np.ndarray


class _Fitted(NamedTuple):
    """A forecast, and the CPU and wall time of the fits and the CPU time of the prediction."""

    forecast: Forecast
    seconds: float
    wall_seconds: float
    predict_seconds: float


def load_split(case: Case) -> Split:
    """The split of a case: a tenth of the rows, drawn with its seed, is to be forecast."""
    data = load_set(case.dataset)
    train_inputs, test_inputs, train_targets, test_targets = train_test_split(
        data.inputs, data.targets, test_size=TEST_SIZE, random_state=case.seed
    )
    return Split(train_inputs, train_targets, test_inputs, test_targets)


def lacks_data(dataset: str) -> str | None:
    """Why a data set is not to be had here, or None if it is."""
    try:
        load_set(dataset)
    except (OSError, ImportError) as error:
        return _described(error)
    return None


def run_case(case: Case) -> Record:
    """Fit, forecast and score; whatever goes wrong on the way is a record, too."""
    reason = missing(case.method) or lacks_data(case.dataset)
    if reason is not None:
        return unscored(case, MISSING, reason)
    split = load_split(case)
    sizes = {"n_train": len(split.train_targets), "n_test": len(split.test_targets)}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fitted = _fit(case, split)
            scores, curve = score(split.test_targets, fitted.forecast)
        except Exception as error:
            return unscored(case, FAILED, _described(error), **sizes)
    return _record(
        case,
        status=DONE,
        scores=scores,
        curve=curve,
        seconds=fitted.seconds,
        wall_seconds=fitted.wall_seconds,
        predict_seconds=fitted.predict_seconds,
        note=fitted.forecast.note,
        **sizes,
    )


def unscored(case: Case, status: str, note: str, *, n_train: int = 0, n_test: int = 0) -> Record:
    """The record of a case that failed or could not be run, and why."""
    return _record(
        case,
        status=status,
        scores={},
        curve=(),
        seconds=math.nan,
        wall_seconds=math.nan,
        predict_seconds=math.nan,
        n_train=n_train,
        n_test=n_test,
        note=note,
    )


def score(targets: np.ndarray, forecast: Forecast) -> tuple[dict[str, float], tuple[float, ...]]:
    """Scores of a forecast, and the curve of shares inside the intervals of N(mean, variance).

    Those called gaussian are the paper's: they know of a forecast its mean and variance alone.
    """
    mixture, ends = forecast.distribution, forecast.intervals
    mean = mixture.mean()
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
    return scores, tuple(calibration_curve(targets, normal)[1].tolist())


def mix(forecasts: Sequence[Forecast]) -> Forecast:
    """p(y) = (1/M) Σ_m p_m(y): forecasts of the same rows as one, with its central intervals."""
    if len(forecasts) == 1:
        return forecasts[0]
    parts = [forecast.distribution for forecast in forecasts]
    mixture = build_mixture(
        np.concatenate([part.weights for part in parts]) / len(parts),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.deviations for part in parts]),
    )
    notes = dict.fromkeys(forecast.note for forecast in forecasts if forecast.note)
    return Forecast(
        distribution=mixture,
        intervals=mixture.interval(COVERAGE),
        note="; ".join(notes) or None,
    )


def member_seeds(case: Case) -> list[int]:
    """Seeds of the fits of a case: that of the split, and then steps of `SEED_STEP`."""
    return [case.seed + SEED_STEP * member for member in range(case.members)]


def _fit(case: Case, split: Split) -> _Fitted:
    method = _make(case)
    fits = [
        _timed(method.fit, split.train_inputs, split.train_targets, seed, COVERAGE)
        for seed in member_seeds(case)
    ]
    seconds, wall_seconds = (sum(times) for times in zip(*(fit[1:] for fit in fits), strict=True))
    forecasters: list[Forecaster] = [fit[0] for fit in fits]
    forecast, predict_seconds, _ = _timed(
        lambda: mix([forecaster(split.test_inputs) for forecaster in forecasters])
    )
    return _Fitted(forecast, seconds, wall_seconds, predict_seconds)


def _make(case: Case) -> Method:
    entry = METHODS[case.method]
    # First, for it may know how to load a library that cannot be imported as it stands.
    method = entry.make(hidden=case.hidden, **dict(case.settings))
    for module in entry.modules:
        importlib.import_module(module)  # or the first fit of a process would seem slow
    return method


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float, float]:
    """What a function gives, and its CPU and wall time."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = function(*arguments)
    return result, time.process_time() - cpu, time.perf_counter() - wall


def _record(case: Case, **found: Any) -> Record:
    return Record(
        experiment=case.experiment,
        dataset=case.dataset,
        method=case.method,
        seed=case.seed,
        hidden=case.hidden,
        members=case.members,
        settings=dict(case.settings),
        **found,
    )


def _described(error: BaseException) -> str:
    message = " ".join(_FOLDERS.sub("", str(error)).split())
    if len(message) > _LONGEST:
        message = message[:_LONGEST] + " ..."
    return f"{type(error).__name__}: {message}"
