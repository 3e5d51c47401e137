"""Held-out rows, and how well a model predicts them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from bowtienet.cli.console import Output, number
from bowtienet.cli.input_tables import NamedTable
from bowtienet.data.parsing import parse
from bowtienet.evaluation import Scores, evaluate
from bowtienet.prediction.mixture import build_mixture

FEWEST = 20
"""Rows below which none are held out unless that is asked for: too few would be left to score."""
SHARE = 0.1
_WORDS = {
    "rmse": "RMSE",
    "nll": "negative log density",
    "crps": "CRPS",
    "coverage": "coverage of {:g} % intervals",
    "interval_score": "interval score",
    "calibration_error": "calibration error",
}


def hold_out(
    rows: NamedTable, test_size: float | None, seed: int
) -> tuple[NamedTable, NamedTable | None]:
    """Training rows and held-out rows, by scikit-learn's `train_test_split`."""
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
    train, test = train_test_split(np.arange(rows.n_rows), test_size=share, random_state=seed)
    return rows.take(train), rows.take(test)


def score(
    model: Any, test: NamedTable, train: NamedTable, coverage: float
) -> dict[str, dict[str, Scores]]:
    """Scores by target: of the model, and of the mean and deviation of the training targets."""
    found = model.predict_dist(test.features)
    fitted, held_out = (np.asarray(parse(rows.targets, "y").array) for rows in (train, test))
    scores = {}
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


def show_scores(output: Output, found: Mapping[str, Mapping[str, Scores]] | None) -> None:
    """Scores of every target, in its unit."""
    if found is None:
        output.say("no rows were held out: there is nothing to score")
        return
    for target, methods in found.items():
        nominal = 100.0 * next(iter(methods.values())).nominal_coverage
        rows = [
            (words.format(nominal), *(number(getattr(each, name)) for each in methods.values()))
            for name, words in _WORDS.items()
        ]
        output.say()
        output.table((f"{target}, held-out rows", *methods), rows)
