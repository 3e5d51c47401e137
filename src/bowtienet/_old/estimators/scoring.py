"""Scores of a fitted estimator over the rows of a source, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old.data.rows import concatenate
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.class_ensemble import class_probabilities
from bowtienet._old.ensemble.count_ensemble import count_mixture, is_counts
from bowtienet._old.ensemble.ensemble import chunks, mean_and_deviation, mixture
from bowtienet._old.estimators.known_columns import encoded_blocks, open_known
from bowtienet._old.prediction.calibration import LEAST_PROBABILITY
from bowtienet._old.prediction.combined_mixtures import join_mixtures
from bowtienet._old.prediction.conformal import HeldOut
from bowtienet._old.representation.scaling import column_moments, combine_moments


def mean_log_density(estimator: Any, source: Source) -> float:
    """Weighted mean over rows of the mean log density of their targets."""
    ensemble = estimator.ensemble_

    def densities(features: Array, targets: np.ndarray) -> np.ndarray:
        if is_counts(ensemble):
            return count_mixture(ensemble, features, targets[:, 1:]).logpmf(targets[:, 0])
        parts = [mixture(ensemble, part) for part in chunks(features)]
        return join_mixtures(parts).logpdf(targets).mean(axis=1)

    return _weighted_mean(estimator, source, densities)


def mean_log_probability(estimator: Any, source: Source) -> float:
    """Weighted mean over rows of the log probability of their label."""

    def logs(features: Array, targets: np.ndarray) -> np.ndarray:
        found, codes = _probabilities(estimator, features), targets.astype(np.intp)
        own = np.take_along_axis(found, codes, axis=1)[:, 0]
        return np.asarray(np.log(np.maximum(own, LEAST_PROBABILITY)))

    return _weighted_mean(estimator, source, logs)


def accuracy(estimator: Any, source: Source) -> float:
    """Weighted share of rows whose most probable label is theirs."""

    def hits(features: Array, targets: np.ndarray) -> np.ndarray:
        most_probable = np.argmax(_probabilities(estimator, features), axis=1)
        return (most_probable == targets[:, 0]).astype(float)

    return _weighted_mean(estimator, source, hits)


def _probabilities(estimator: Any, features: Array) -> np.ndarray:
    return np.concatenate(
        [class_probabilities(estimator.ensemble_, part) for part in chunks(features)]
    )


def _weighted_mean(
    estimator: Any, source: Source, score: Callable[[Array, np.ndarray], np.ndarray]
) -> float:
    """Mean of a score (n,) of encoded features and targets."""
    total = weight = 0.0
    for block, features in encoded_blocks(estimator, source):
        share = _host(block.weights)
        total += float(share @ score(features, _host(block.targets)))
        weight += float(share.sum())
    _check_weight(weight)
    return total / weight


def held_out_scores(estimator: Any, calibration: tuple[Any, ...] | None = None) -> HeldOut:
    """Scores of conformal intervals: of the fit's own held-out rows, or of rows (X, y)."""
    if calibration is not None:
        if not isinstance(calibration, (tuple, list)) or len(calibration) not in (2, 3):
            raise ValueError("calibration must be (X, y) or (X, y, sample_weight).")
        return _distribution_values(estimator, open_known(estimator, *calibration))
    found: HeldOut | None = estimator.ensemble_.held_out
    if found is None:
        raise ValueError(
            "the fit held no rows out (too few rows, or weights that are not from stacking): "
            "give rows that it has not seen, calibration=(X, y)."
        )
    return found


def _distribution_values(estimator: Any, source: Source) -> HeldOut:
    """F(y) (n, D) of the targets of rows that count, and their weights (n,)."""
    values, weights = [], []
    for block, features in encoded_blocks(estimator, source):
        found = join_mixtures([mixture(estimator.ensemble_, part) for part in chunks(features)])
        share = _host(block.weights)
        counted = share > 0.0
        values.append(found.cdf(_host(block.targets))[counted])
        weights.append(share[counted])
    return HeldOut(values=np.concatenate(values), weights=np.concatenate(weights))


def determination(estimator: Any, source: Source) -> float:
    """Mean R² over targets; of a constant one it is 1 if all is right and else 0, by convention."""
    moments, errors = [], []
    for block, features in encoded_blocks(estimator, source):
        targets, weights = _host(block.targets), _host(block.weights)
        if is_counts(estimator.ensemble_):
            found = count_mixture(estimator.ensemble_, features, targets[:, 1:]).mean()[:, None]
            targets = targets[:, :1]
        else:
            parts = [mean_and_deviation(estimator.ensemble_, part)[0] for part in chunks(features)]
            found = _host(concatenate(parts))
        moments.append(column_moments(targets, weights))
        errors.append(weights @ (targets - found) ** 2)
    joined, missed = combine_moments(moments), np.sum(errors, axis=0)
    _check_weight(float(joined.weight))
    spread = (joined.spread * joined.unit) ** 2 * joined.weight
    constant = spread == 0.0
    share = np.where(constant, missed > 0.0, missed / np.where(constant, 1.0, spread))
    return float(np.mean(1.0 - share))


def _host(values: Array) -> np.ndarray:
    return to_numpy(values).astype(np.float64)


def _check_weight(total: float) -> None:
    if not total > 0.0:
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")
