"""How good a fitted model is on rows that it has not seen, compared with simple models.

Proper scores decide: the CRPS for numbers and counts, the log loss for classes. The gain over a
simple model b is

    1 - Σ_i s_i(model) / Σ_i s_i(b),

with a 90 % interval by the bootstrap over rows i, the same rows for both models.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from bowtienet.evaluation import (
    calibration_error,
    chance_band,
    crps,
    default_models,
    log_density,
    log_probability,
)
from bowtienet.evaluation.competitors import rows_of, with_distribution

Floats = NDArray[np.float64]

COVERAGE = 0.9
"""Of the intervals that are looked at."""
RESAMPLES = 2_000
"""Of the bootstrap: the ends of intervals are then good to a few per cent of their width."""
FOLDS = 5
"""For the width of simple models, and for themselves where the rows of the fit are not at hand."""
OURS, LINEAR, CONSTANT = "bow tie", "linear", "constant"
"""Models, as `default_models` names them."""
HIT, RIGHT = "in 90 % intervals", "accuracy"
"""Scores that are shares of rows."""


class Interval(NamedTuple):
    """A value, and the ends of an interval that belongs to it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Scores of n held-out rows."""

    outcome: str
    """Numbers, classes or counts."""
    n_rows: int
    main: str
    """Name of the score that decides; the lower, the better."""
    means: dict[str, dict[str, float]]
    """Scores of each model."""
    gains: dict[str, Interval]
    """Of the main score over each simple model; positive is better."""
    sureness: Interval
    """Share of targets inside their intervals, and the ends of what chance allows; for classes the
    calibration error, and zero and twice what chance has on average."""
    hits: NDArray[np.bool_]
    """(n,): whether each target lies in its interval, or each predicted class is right."""
    stated: Floats
    """(n,): the stated probability of that."""
    seconds: dict[str, float]
    """Of the fits of simple models."""


def assess(
    model: Any, X: Any, y: Any, *, exposure: Any = None, training: Any = None, seed: int = 0
) -> Assessment:
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
    seed : int
        Of the bootstrap and the folds.
    """
    targets, labels, outcome = np.asarray(y), None, "numbers"
    if hasattr(model, "predict_proba"):
        labels, outcome = np.unique(np.concatenate([model.classes_, targets])), "classes"
        forecast = _forecast(model, X, labels)
    else:
        outcome = "counts" if type(model).__name__ == "BowTieCountRegressor" else outcome
        forecast = model.predict_dist(X, **({} if exposure is None else {"exposure": exposure}))
    scores, seconds = {OURS: _scores(targets, forecast, labels)}, {}
    X, models = _with_exposure(X, exposure), default_models(outcome, seed)
    for name in (LINEAR, CONSTANT):
        simple = with_distribution(models[name], outcome, fifths=FOLDS)
        began = time.perf_counter()
        if training is None:
            scores[name] = _cross_validated(simple, X, targets, labels, seed)
        else:
            rows, known, exposures = training
            fitted = simple.fit(_with_exposure(rows, exposures), np.asarray(known))
            scores[name] = _scores(targets, _forecast(fitted, X, labels), labels)
        seconds[name] = time.perf_counter() - began
    ours, rng = scores[OURS], np.random.default_rng(seed)
    main = next(iter(ours))
    if labels is None:
        low, high = chance_band(COVERAGE, len(targets))
        sureness = Interval(float(np.mean(ours[HIT])), float(low), float(high))
    else:
        found = calibration_error(targets, forecast, labels)
        sureness = Interval(found.error, 0.0, 2.0 * found.by_chance)
    return Assessment(
        outcome=outcome,
        n_rows=len(targets),
        main=main,
        means={name: _means(each) for name, each in scores.items()},
        gains={name: _gain(ours[main], scores[name][main], rng) for name in (LINEAR, CONSTANT)},
        sureness=sureness,
        hits=ours[HIT if labels is None else RIGHT] > 0.0,
        stated=np.full(len(targets), COVERAGE) if labels is None else forecast.max(axis=1),
        seconds=seconds,
    )


def _scores(targets: Any, forecast: Any, labels: Any) -> dict[str, Floats]:
    """Scores by row, that which decides first."""
    if labels is not None:
        return {
            "log loss": -log_probability(targets, forecast, labels),
            "Brier score": np.sum((forecast - (labels == targets[:, None])) ** 2, axis=1),
            RIGHT: (labels[np.argmax(forecast, axis=1)] == targets).astype(float),
        }
    low, high = forecast.interval(COVERAGE)
    return {
        "CRPS": crps(targets, forecast),
        "RMSE": (targets - forecast.mean()) ** 2,
        "log density": log_density(targets, forecast),
        "width of 90 % intervals": high - low,
        HIT: ((low <= targets) & (targets <= high)).astype(float),
    }


def _means(scores: dict[str, Floats]) -> dict[str, float]:
    means = {name: float(np.mean(each)) for name, each in scores.items()}
    return {name: mean**0.5 if name == "RMSE" else mean for name, mean in means.items()}


def _gain(ours: Floats, theirs: Floats, rng: np.random.Generator) -> Interval:
    def share(model: Any, simple: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(1.0 - model / simple, posinf=0.0, neginf=-1e9)

    counts = rng.multinomial(len(ours), np.full(len(ours), 1.0 / len(ours)), size=RESAMPLES)
    low, high = np.quantile(share(counts @ ours, counts @ theirs), [0.05, 0.95])
    return Interval(float(share(ours.sum(), theirs.sum())), float(low), float(high))


def _forecast(fitted: Any, X: Any, labels: Any) -> Any:
    """A distribution, or probabilities (n, C) of all labels: zero for those that are unknown."""
    if labels is None:
        return fitted.predict_dist(X)
    known = fitted.predict_proba(X)
    shares = np.zeros((len(known), len(labels)))
    shares[:, np.searchsorted(labels, fitted.classes_)] = known
    return shares


def _cross_validated(
    simple: Any, X: Any, targets: Any, labels: Any, seed: int
) -> dict[str, Floats]:
    """Scores by row of models that were fitted to other rows."""
    folds = KFold(min(FOLDS, len(targets)), shuffle=True, random_state=seed)
    scores: dict[str, Floats] = {}
    for train, test in folds.split(targets):
        fitted = clone(simple).fit(rows_of(X, train), targets[train])
        forecast = _forecast(fitted, rows_of(X, test), labels)
        for name, values in _scores(targets[test], forecast, labels).items():
            scores.setdefault(name, np.empty(len(targets)))[test] = values
    return scores


def _with_exposure(X: Any, exposure: Any) -> Any:
    """Simple models of counts see the logarithm of the exposure as one more column."""
    if exposure is None:
        return X
    logs = np.log(np.asarray(exposure, dtype=float))
    if hasattr(X, "assign"):
        return X.assign(**{"log exposure": logs})
    return np.column_stack([X, logs])
