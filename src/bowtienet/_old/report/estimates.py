"""Scores with intervals: what other rows of the same kind could have given.

Rows are weighted anew many times, by exponential weights (the Bayesian bootstrap), and a score is
computed from averages over rows each time; its interval holds the middle 95 % of what comes out.
Differences of two models are of the same rows, and so of the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old._arrays import slices
from bowtienet._old.evaluation.metrics import crps_of_rows
from bowtienet._old.prediction.mixture import Mixture

Floats = NDArray[np.float64]

DRAWS = 1000
_BLOCK = 2**21
"""Weights that are held at a time."""
_SEED = 0
_ENDS = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ComparedScore:
    """A score of the model and of a baseline."""

    model: Estimate
    baseline: Estimate | None
    difference: Estimate | None
    """Model less baseline; as a share of the baseline's for errors in the unit of the target."""


def reweighted_averages(values: Floats, weights: Floats) -> Floats:
    """Σ w_n s_n / Σ w_n of columns (n, k), and with `DRAWS` new weights, (1 + DRAWS, k)."""
    rng = np.random.default_rng(_SEED)
    found = [(weights @ values / weights.sum())[None]]
    for part in slices(DRAWS, max(1, _BLOCK // len(values))):
        drawn = weights * rng.standard_exponential((part.stop - part.start, len(values)))
        found.append(drawn @ values / drawn.sum(axis=1, keepdims=True))
    return np.concatenate(found)


def estimate(drawn: Floats) -> Estimate:
    """A score (1 + DRAWS,), the first of which is that of the rows as they are."""
    low, high = np.quantile(drawn[1:], _ENDS)
    return Estimate(value=float(drawn[0]), low=float(low), high=float(high))


def number_scores(
    y: Floats, model: Mixture, baseline: Mixture | None, weights: Floats, coverage: float
) -> dict[str, ComparedScore]:
    """R², MAE, RMSE, negative log density, CRPS, coverage and interval score of targets (n,)."""
    with np.errstate(all="ignore"):  # units whose squares overflow
        return _number_scores(y, model, baseline, weights, coverage)


def _number_scores(
    y: Floats, model: Mixture, baseline: Mixture | None, weights: Floats, coverage: float
) -> dict[str, ComparedScore]:
    columns = [_row_scores(y, one, coverage) for one in (model, baseline) if one is not None]
    centered = y - np.average(y, weights=weights)
    averages = reweighted_averages(
        np.column_stack([centered, centered**2, *(own for own in columns)]), weights
    )
    variance = averages[:, 1] - averages[:, 0] ** 2
    size = columns[0].shape[1]
    parts = [averages[:, 2 + k * size : 2 + (k + 1) * size] for k in range(len(columns))]
    named = [
        {
            "r2": np.where(variance > 0.0, 1.0 - own[:, 0] / variance, np.nan),
            "mae": own[:, 1],
            "rmse": np.sqrt(own[:, 0]),
            "nll": own[:, 2],
            "crps": own[:, 3],
            "coverage": own[:, 4],
            "interval_score": own[:, 5],
        }
        for own in parts
    ]
    relative = ("mae", "rmse", "crps", "interval_score")
    return {name: _compared(name, named, name in relative) for name in named[0]}


def class_scores(
    codes: NDArray[np.intp], model: Floats, baseline: Floats | None, weights: Floats, floor: float
) -> dict[str, ComparedScore]:
    """Log loss, Brier score and accuracy of probabilities (n, C)."""
    given = [one for one in (model, baseline) if one is not None]
    columns = [_class_row_scores(codes, one, floor) for one in given]
    averages = reweighted_averages(np.concatenate(columns, axis=1), weights)
    named = [
        dict(zip(("log_loss", "brier_score", "accuracy"), averages[:, 3 * k :].T, strict=False))
        for k in range(len(columns))
    ]
    return {name: _compared(name, named, False) for name in named[0]}


def _compared(name: str, named: list[dict[str, Floats]], relative: bool) -> ComparedScore:
    ours = named[0][name]
    if len(named) == 1:
        return ComparedScore(model=estimate(ours), baseline=None, difference=None)
    line = named[1][name]
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = ours / line - 1.0 if relative and np.all(line > 0.0) else ours - line
    return ComparedScore(
        model=estimate(ours), baseline=estimate(line), difference=estimate(difference)
    )


def _row_scores(y: Floats, forecast: Mixture, coverage: float) -> Floats:
    """Squared and absolute errors, -log p, CRPS, 1[inside] and interval scores, (n, 6)."""
    ends, error = forecast.interval(coverage), y - forecast.mean()
    low, high = ends[:, 0], ends[:, 1]
    missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.column_stack(
        [
            error**2,
            np.abs(error),
            -forecast.logpdf(y),
            crps_of_rows(y, forecast),
            (low <= y) & (y <= high),
            (high - low) + 2.0 / (1.0 - coverage) * missed,
        ]
    )


def _class_row_scores(codes: NDArray[np.intp], found: Floats, floor: float) -> Floats:
    """-log p, Brier scores and hits, (n, 3)."""
    truth = np.eye(found.shape[1])[codes]
    own = found[np.arange(codes.size), codes]
    squares = np.square(found - truth)
    brier = squares[:, 1] if found.shape[1] == 2 else squares.sum(axis=1)
    return np.column_stack(
        [-np.log(np.maximum(own, floor)), brier, np.argmax(found, axis=1) == codes]
    )


def chance_calibration_error(
    probabilities: Floats, score: Callable[[NDArray[np.intp]], float], draws: int = 100
) -> float:
    """The calibration error that chance alone exceeds once in 20 times.

    Labels are drawn from the probabilities themselves, and so are calibrated.
    """
    rng = np.random.default_rng(_SEED)
    cumulative = np.cumsum(probabilities, axis=1)
    found = []
    for _ in range(draws):
        above = rng.uniform(size=(len(probabilities), 1)) * cumulative[:, -1:] > cumulative
        found.append(score(np.minimum(above.sum(axis=1), probabilities.shape[1] - 1)))
    return float(np.quantile(found, 0.95))
