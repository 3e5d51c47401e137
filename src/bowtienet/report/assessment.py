"""How good a fitted model is on held-out rows, compared with simple models.

Proper scores decide: the CRPS for numbers and counts, the log loss for classes. The gain over a
simple model b is

    1 - Σ_i s_i(model) / Σ_i s_i(b),

with a 90 % interval from the paired bootstrap over rows i.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from bowtienet.evaluation import calibration_error, chance_band, default_models
from bowtienet.evaluation.competitors import outcome_of, rows_of, with_distribution
from bowtienet.evaluation.scores import forecast_of, mean_score, scores_of_rows

Floats = NDArray[np.float64]
Interval = dict[str, float]
"""A "value" and the ends "low" and "high" of its interval."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Scores of n held-out rows."""

    outcome: str
    """Numbers, classes or counts."""
    n_rows: int
    means: dict[str, dict[str, float]]
    """Scores of the bow tie model, the linear one and the constant; the first score decides."""
    gains: dict[str, Interval]
    """Over each simple model in the score that decides; positive is better than it."""
    sureness: Interval
    """Share of targets in their 90 % intervals and its range by chance; for classes the calibration
    error, with a range from zero to twice its mean by chance."""
    hits: NDArray[np.bool_]
    """(n,): whether a target lies in its interval, or a predicted class is right."""
    stated: Floats
    """(n,): the stated probability of that."""


def at_exposure(model: Any, exposure: Any, rows: Any = slice(None)) -> Any:
    """The model; for counts one that predicts at the exposures of some rows."""
    if exposure is None:
        return model
    known = {"exposure": np.asarray(exposure, dtype=float)[rows]}
    names = ("predict", "predict_dist", "predict_interval")
    methods = {name: partial(getattr(model, name), **known) for name in names}
    return SimpleNamespace(_target_names=model._target_names, **methods)


def assess(model: Any, X: Any, y: Any, *, exposure: Any = None, training: Any = None) -> Assessment:
    """Score a fitted model on held-out rows; the arguments are those of `write_report`."""
    targets, outcome, classes = np.asarray(y), outcome_of(model), None
    if outcome == "classes":
        classes = np.unique(np.concatenate([model.classes_, targets]))
    forecast = forecast_of(at_exposure(model, exposure), X, classes)
    ours = scores_of_rows(targets, forecast, classes)
    scores = {"bow tie": ours, "linear": dict[str, Floats](), "constant": dict[str, Floats]()}
    X, models = _with_exposure(X, exposure), default_models(outcome)
    if training is None:
        folds = KFold(min(5, len(targets)), shuffle=True, random_state=0).split(targets)
        splits = [(rows_of(X, train), targets[train], test) for train, test in folds]
    else:
        rows, known = _with_exposure(training[0], training[2]), np.asarray(training[1])
        splits = [(rows, known, np.arange(len(targets)))]
    for name, (rows, known, test) in product(("linear", "constant"), splits):
        simple = with_distribution(models[name], outcome, fifths=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of folds and rows already warned about
            other = forecast_of(clone(simple).fit(rows, known), rows_of(X, test), classes)
        for each, values in scores_of_rows(targets[test], other, classes).items():
            scores[name].setdefault(each, np.empty(len(targets)))[test] = values
    if classes is None:
        low, high = map(float, chance_band(0.9, len(targets)))
        sureness = {"value": float(np.mean(ours["coverage"])), "low": low, "high": high}
    else:
        error, by_chance = calibration_error(targets, forecast, classes)
        sureness = {"value": error, "low": 0.0, "high": 2.0 * by_chance}
    decides = next(iter(ours))
    return Assessment(
        outcome=outcome,
        n_rows=len(targets),
        means={
            name: {each: mean_score(each, values) for each, values in by_row.items()}
            for name, by_row in scores.items()
        },
        gains={
            name: _gain(ours[decides], scores[name][decides]) for name in ("linear", "constant")
        },
        sureness=sureness,
        hits=ours["coverage" if classes is None else "accuracy"] > 0.0,
        stated=np.full(len(targets), 0.9) if classes is None else forecast.max(axis=1),
    )


def _gain(ours: Floats, theirs: Floats) -> Interval:
    def share(model: Any, simple: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(1.0 - model / simple, posinf=0.0, neginf=-1e9)

    # With 2,000 samples the ends of an interval are good to a few per cent of its width.
    equal = np.full(len(ours), 1.0 / len(ours))
    counts = np.random.default_rng(0).multinomial(len(ours), equal, size=2_000)
    low, high = np.quantile(share(counts @ ours, counts @ theirs), [0.05, 0.95])
    return {"value": float(share(ours.sum(), theirs.sum())), "low": float(low), "high": float(high)}


def _with_exposure(X: Any, exposure: Any) -> Any:
    """For simple models of counts, the logarithm of the exposure as one more column."""
    if exposure is None:
        return X
    logs = np.log(np.asarray(exposure, dtype=float))
    return X.assign(log_exposure=logs) if hasattr(X, "assign") else np.column_stack([X, logs])
