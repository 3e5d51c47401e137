"""Held-out rows, and how well a model predicts them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bowtienet._old.cli.console import Output, number
from bowtienet._old.cli.input_tables import NamedTable
from bowtienet._old.cli.tasks import Task
from bowtienet._old.data.labels import encode_labels
from bowtienet._old.data.parsing import parse
from bowtienet._old.evaluation import (
    ClassScores,
    CountScores,
    Scores,
    evaluate,
    evaluate_classes,
    evaluate_counts,
)
from bowtienet._old.evaluation.class_methods import logistic_probabilities
from bowtienet._old.evaluation.splits import split_rows
from bowtienet._old.prediction.count_mixture import CountMixture
from bowtienet._old.prediction.mixture import build_mixture
from bowtienet._old.representation.columns import encode

FEWEST = 20
"""Rows below which none are held out unless that is asked for: too few would be left to score."""
SHARE = 0.1
_LARGEST_DISPERSION = 1e6
"""Of counts that spread no more than a Poisson distribution does, which this is one of."""
_COVERAGE = "coverage of {:g} % intervals"
_WORDS: dict[type, dict[str, str]] = {
    Scores: {
        "rmse": "RMSE",
        "nll": "negative log density",
        "crps": "CRPS",
        "coverage": _COVERAGE,
        "interval_score": "interval score",
        "calibration_error": "calibration error",
    },
    ClassScores: {
        "log_loss": "log loss",
        "brier_score": "Brier score",
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced accuracy",
        "roc_auc": "area under the ROC curve",
        "calibration_error": "calibration error",
    },
    CountScores: {
        "log_score": "log score",
        "rmse": "RMSE",
        "coverage": _COVERAGE,
        "interval_width": "whole numbers in an interval",
    },
}
"""Scores in the order of a table."""

AnyScores = Scores | ClassScores | CountScores
ByMethod = dict[str, AnyScores]


def hold_out(
    rows: NamedTable, test_size: float | None, seed: int
) -> tuple[NamedTable, NamedTable | None]:
    """Training rows and held-out rows, by scikit-learn's `train_test_split`.

    Of classes both have the same shares, as far as that is possible.
    """
    share = (SHARE if rows.n_rows >= FEWEST else 0.0) if test_size is None else test_size
    if not 0.0 <= share < 1.0:
        raise ValueError(f"--test-size must be at least 0 and below 1, got {share:g}.")
    if share == 0.0:
        return rows, None
    left = rows.n_rows - math.ceil(share * rows.n_rows)
    if left < 2:
        raise ValueError(
            f"--test-size {share:g} leaves {left} of {rows.n_rows} rows to fit: hold out fewer."
        )
    codes = None
    if rows.task == Task.CLASSES:
        codes = np.unique(rows.labels, return_inverse=True)[1]
    train, test = split_rows(rows.n_rows, share, seed, codes)
    return rows.take(train), rows.take(test) if len(test) else None


def score(model: Any, test: NamedTable, train: NamedTable, coverage: float) -> dict[str, ByMethod]:
    """Scores by target: of the model, and beside it of something simpler.

    Of numbers and counts that is one distribution for all rows, as the training targets have it; of
    classes their shares in the training rows, and a logistic regression.
    """
    if test.task == Task.CLASSES:
        return {test.names[0]: _score_classes(model, test, train)}
    if test.task == Task.COUNTS:
        return {test.names[0]: _score_counts(model, test, train, coverage)}
    return _score_numbers(model, test, train, coverage)


def _score_classes(model: Any, test: NamedTable, train: NamedTable) -> ByMethod:
    codes = encode_labels(train.labels, model.classes_)[:, 0].astype(int)
    weights = np.ones(train.n_rows) if train.weights is None else train.weights
    shares = np.bincount(codes, weights=weights, minlength=len(model.classes_)) / weights.sum()
    fitted, new = (
        np.asarray(encode(model.columns_, rows.source(model).block.table)[0], dtype=float)
        for rows in (train, test)
    )
    forecasts = {
        "model": model.predict_proba(test.features),
        "class shares": np.broadcast_to(shares, (test.n_rows, len(shares))),
        "logistic": logistic_probabilities(fitted, codes, train.weights, new, len(shares)),
    }
    return {
        method: evaluate_classes(test.labels, found, model.classes_, sample_weight=test.weights)
        for method, found in forecasts.items()
    }


def _score_counts(model: Any, test: NamedTable, train: NamedTable, coverage: float) -> ByMethod:
    counts = [np.asarray(parse(rows.targets, "y").array)[:, 0] for rows in (train, test)]
    forecasts = {
        "model": model.predict_dist(test.features, exposure=test.exposures),
        "constant": _constant_rate(counts[0], train, test),
    }
    return {
        method: evaluate_counts(counts[1], found, coverage=coverage, sample_weight=test.weights)
        for method, found in forecasts.items()
    }


def _constant_rate(counts: np.ndarray, train: NamedTable, test: NamedTable) -> CountMixture:
    """One rate and dispersion for all rows: means m e, variances m e + (m e)² / r in sum."""
    fitted, new = (
        np.ones(rows.n_rows) if rows.exposures is None else rows.exposures.astype(float)
        for rows in (train, test)
    )
    # A rate of zero has no dispersion: one of rounding stands for it.
    rate = max(
        np.average(counts, weights=train.weights) / np.average(fitted, weights=train.weights),
        np.finfo(float).eps,
    )
    means = rate * fitted
    excess = np.average((counts - means) ** 2 - means, weights=train.weights)
    squares = np.average(means**2, weights=train.weights)
    dispersion = squares / max(excess, squares / _LARGEST_DISPERSION)
    return CountMixture(
        weights=np.ones(1), means=(rate * new)[None], dispersions=np.array([dispersion])
    )


def _score_numbers(
    model: Any, test: NamedTable, train: NamedTable, coverage: float
) -> dict[str, ByMethod]:
    found = model.predict_dist(test.features)
    fitted, held_out = (np.asarray(parse(rows.targets, "y").array) for rows in (train, test))
    scores: dict[str, ByMethod] = {}
    for index, name in enumerate(test.names):
        forecasts = {
            "model": found if len(test.names) == 1 else found.of_target(index),
            "constant": _constant(fitted[:, index], train.weights, test.n_rows),
        }
        scores[name] = {
            method: evaluate(
                held_out[:, index], forecast, coverage=coverage, sample_weight=test.weights
            )
            for method, forecast in forecasts.items()
        }
    return scores


def _constant(fitted: np.ndarray, weights: np.ndarray | None, n_rows: int) -> Any:
    """The normal distribution of the training targets, for every row."""
    mean = np.average(fitted, weights=weights)
    deviation = np.sqrt(np.average((fitted - mean) ** 2, weights=weights))
    # A target that never moves has no deviation: one of rounding stands for it.
    spread = max(deviation, np.spacing(abs(mean)))
    return build_mixture([1.0], np.full((1, n_rows), mean), np.full((1, n_rows), spread))


def show_scores(output: Output, found: Mapping[str, Mapping[str, AnyScores]] | None) -> None:
    """Scores of every target, in its unit."""
    if found is None:
        output.say("no rows were held out: there is nothing to score")
        return
    for target, methods in found.items():
        first = next(iter(methods.values()))
        nominal = 100.0 * getattr(first, "nominal_coverage", 0.0)
        rows = [
            (words.format(nominal), *(number(getattr(each, name)) for each in methods.values()))
            for name, words in _WORDS[type(first)].items()
            if not all(math.isnan(getattr(each, name)) for each in methods.values())
        ]
        output.say()
        output.table((f"{target}, held-out rows", *methods), rows)
