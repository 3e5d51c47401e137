"""How good a fitted model is on rows that it has not seen, compared with simple models.

Proper scores decide: the CRPS for numbers and counts, the log loss for classes. The gain over a
simple model b is

    1 - Σ_i s_i(model) / Σ_i s_i(b),

with a 90 % interval by the bootstrap over rows i, the same rows for both models.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from bowtienet.evaluation import calibration_error, chance_band, default_models
from bowtienet.evaluation.competitors import outcome_of, rows_of, with_distribution
from bowtienet.evaluation.scorers import forecast_of
from bowtienet.evaluation.scores import mean_score, scores_of_rows

Floats = NDArray[np.float64]
Interval = dict[str, float]
"""A "value", and "low" and "high" ends of an interval that belongs to it."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Scores of n held-out rows."""

    outcome: str
    """Numbers, classes or counts."""
    n_rows: int
    means: dict[str, dict[str, float]]
    """Scores of the bow tie model, the linear one and the constant; the first decides."""
    gains: dict[str, Interval]
    """Over each simple model in the score that decides; positive is better."""
    sureness: Interval
    """Share of targets inside their intervals, and the ends of what chance allows; for classes the
    calibration error, and zero and twice what chance has on average."""
    hits: NDArray[np.bool_]
    """(n,): whether each target lies in its interval, or each predicted class is right."""
    stated: Floats
    """(n,): the stated probability of that."""
    seconds: dict[str, float]
    """Of the fits of simple models."""


class _AtExposure:
    """A model of counts with the exposures of given rows, to predict exactly these rows."""

    def __init__(self, model: Any, exposure: Floats) -> None:
        self._model, self._exposure = model, exposure

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        return partial(value, exposure=self._exposure) if name.startswith("predict") else value


def at_exposure(model: Any, exposure: Any, rows: Any = slice(None)) -> Any:
    """The model, of counts with the exposures of some rows."""
    if exposure is None:
        return model
    return _AtExposure(model, np.asarray(exposure, dtype=float)[rows])


def assess(model: Any, X: Any, y: Any, *, exposure: Any = None, training: Any = None) -> Assessment:
    """Score a fitted model on rows that it has not seen.

    Parameters
    ----------
    model : fitted practical estimator
        With one target.
    X, y : frame or array, and array (n,)
        Held-out rows.
    exposure : array (n,), optional
        Of counts.
    training : (X, y, exposure), optional
        Rows of the fit, to which simple models are fitted; else these are cross-validated.
    """
    targets, outcome, classes = np.asarray(y), outcome_of(model), None
    if outcome == "classes":
        classes = np.unique(np.concatenate([model.classes_, targets]))
    forecast = forecast_of(at_exposure(model, exposure), X, classes)
    ours = scores_of_rows(targets, forecast, classes)
    scores, seconds, decides = {"bow tie": ours}, {}, next(iter(ours))
    X, models = _with_exposure(X, exposure), default_models(outcome)
    if training is None:
        folds = KFold(min(5, len(targets)), shuffle=True, random_state=0).split(targets)
        splits = [(rows_of(X, train), targets[train], test) for train, test in folds]
    else:
        rows, known = _with_exposure(training[0], training[2]), np.asarray(training[1])
        splits = [(rows, known, np.arange(len(targets)))]
    for name in ("linear", "constant"):
        by_row: dict[str, Floats] = {}
        simple = with_distribution(models[name], outcome, fifths=5)
        began = time.perf_counter()
        for rows, known, test in splits:
            other = forecast_of(clone(simple).fit(rows, known), rows_of(X, test), classes)
            for each, values in scores_of_rows(targets[test], other, classes).items():
                by_row.setdefault(each, np.empty(len(targets)))[test] = values
        scores[name], seconds[name] = by_row, time.perf_counter() - began
    if classes is None:
        low, high = map(float, chance_band(0.9, len(targets)))
        sureness = {"value": float(np.mean(ours["coverage"])), "low": low, "high": high}
    else:
        error, by_chance = calibration_error(targets, forecast, classes)
        sureness = {"value": error, "low": 0.0, "high": 2.0 * by_chance}
    return Assessment(
        outcome=outcome,
        n_rows=len(targets),
        means={
            name: {each: mean_score(each, values) for each, values in by_row.items()}
            for name, by_row in scores.items()
        },
        gains={name: _gain(ours[decides], scores[name][decides]) for name in seconds},
        sureness=sureness,
        hits=ours["coverage" if classes is None else "accuracy"] > 0.0,
        stated=np.full(len(targets), 0.9) if classes is None else forecast.max(axis=1),
        seconds=seconds,
    )


def _gain(ours: Floats, theirs: Floats) -> Interval:
    def share(model: Any, simple: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(1.0 - model / simple, posinf=0.0, neginf=-1e9)

    # Of 2,000 samples the ends of intervals are good to a few per cent of their width.
    equal = np.full(len(ours), 1.0 / len(ours))
    counts = np.random.default_rng(0).multinomial(len(ours), equal, size=2_000)
    low, high = np.quantile(share(counts @ ours, counts @ theirs), [0.05, 0.95])
    return {"value": float(share(ours.sum(), theirs.sum())), "low": float(low), "high": float(high)}


def _with_exposure(X: Any, exposure: Any) -> Any:
    """Simple models of counts see the logarithm of the exposure as one more column."""
    if exposure is None:
        return X
    logs = np.log(np.asarray(exposure, dtype=float))
    if hasattr(X, "assign"):
        return X.assign(**{"log exposure": logs})
    return np.column_stack([X, logs])
