"""`compare`: models fitted and scored on the same splits of a table."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_array

from bowtienet._format import SCORES, duration, number, score
from bowtienet.evaluation.competitors import (
    OURS,
    default_models,
    features_and_targets,
    rows_of,
    with_distribution,
)
from bowtienet.evaluation.scores import forecast_of, mean_score, scores_of_rows
from bowtienet.tables.texts import is_missing

Scores = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """What `compare` returns; it prints as a table."""

    columns: dict[str, list[Any]]
    """A list with a value for each model, as data frames take it: "model", mean scores,
    "difference" of the first score from that of the first model, its "standard_error", and
    "seconds" of all fits. Scores of failed models are NaN."""
    notes: dict[str, str]
    """Why models failed, by name."""

    def lines(self) -> list[list[str]]:
        """The header and a line for each model as texts; without interval scores."""
        texts: dict[str, list[str]] = {"model": self.columns["model"]}
        for name, values in self.columns.items():
            if name in SCORES and name != "interval_score":
                texts[SCORES[name]] = [score(name, value) for value in values]
            if name == "difference":
                pairs = zip(values, self.columns["standard_error"], strict=True)
                apart = [f"{'+' * (d > 0.0)}{number(d, 2)} ± {number(e, 2)}" for d, e in pairs]
                texts[name] = ["", *apart[1:]]
        texts["seconds"] = [duration(value) for value in self.columns["seconds"]]
        return [list(texts), *map(list, zip(*texts.values(), strict=True))]

    def __repr__(self) -> str:
        lines = self.lines()
        first, *widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
        table = ["  ".join([n.ljust(first), *map(str.rjust, t, widths)]) for n, *t in lines]
        return "\n".join([*table, *(f"{name} {note}" for name, note in self.notes.items())])


def compare(
    X: Any,
    y: Any,
    models: Mapping[str, Any] | None = None,
    *,
    outcome: str = "auto",
    cv: Any = 5,
    random_state: int = 0,
    callback: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Fit and score models on the same splits of a table.

    A regressor without `predict_dist` gets a Gaussian (for counts negative binomial) distribution
    around its predictions, as wide as its errors in a fifth of the training rows. Intervals are
    90 % intervals. Warnings of fits are not shown.

    Parameters
    ----------
    X : array or frame (n, columns)
        Features.
    y : array (n,) or name
        Targets, or the name of their column in the frame X.
    models : dict of name and estimator, optional
        Models; the others are compared with the first. `evaluation.default_models` by default.
    outcome : {"auto", "numbers", "classes", "counts"}
        Kind of the targets; "auto": classes if they are texts or truth values, numbers otherwise.
    cv : int, splitter or iterable of (train, test)
        Number of shuffled folds, or what scikit-learn takes as `cv`.
    random_state : int
        Seed of the folds and of the default models.
    callback : callable, optional
        Called after each fit with the number done, the number of all, and the model's name.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 80, 2))
    >>> result = compare(X, X[:, 0] + noise[:, 0], {"least squares": LinearRegression()})
    >>> list(result.columns)[:4]
    ['model', 'crps', 'difference', 'standard_error']
    """
    X, y = features_and_targets(X, y)
    if outcome == "auto":
        outcome = "classes" if y.dtype.kind in "OUSb" else "numbers"
    if outcome not in OURS:
        raise ValueError(f"outcome must be one of auto, {', '.join(OURS)}, got {outcome!r}.")
    if y.ndim != 1:
        raise ValueError(f"y must be one column of targets, got shape {y.shape}.")
    classes = None
    if outcome != "classes":
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    elif y.dtype.kind == "O" and any(map(is_missing, y)):
        raise ValueError("y has missing labels: leave their rows out.")
    else:  # numbers of classes, which every library takes
        labels, y = np.unique(y, return_inverse=True)
        classes = np.arange(len(labels))
    if isinstance(cv, int):
        folds = KFold if classes is None else StratifiedKFold
        cv = folds(cv, shuffle=True, random_state=random_state)
    splits = list(check_cv(cv, y).split(np.zeros((len(y), 1)), y))
    models = models or default_models(outcome, random_state)
    scores: dict[str, list[Scores]] = {name: [] for name in models}
    seconds, notes = dict.fromkeys(models, 0.0), {}
    runs = itertools.product(splits, models.items())
    for done, ((train, test), (name, model)) in enumerate(runs, 1):
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = clone(with_distribution(model, outcome)).fit(rows_of(X, train), y[train])
                seconds[name] += time.perf_counter() - began
                forecast = forecast_of(fitted, rows_of(X, test), classes)
                scores[name] += [scores_of_rows(y[test], forecast, classes)]
        except Exception as error:  # a failure of one model is a result of the comparison
            first, *_ = [*str(error).splitlines(), ""]
            notes[name] = f"failed: {type(error).__name__}, {first}"
        if callback is not None:
            callback(done, len(splits) * len(models), name)
    rows = np.concatenate([test for _, test in splits])
    columns = {**_columns(scores, rows, notes), "seconds": list(seconds.values())}
    return Comparison(columns=columns, notes=notes)


def _columns(
    scores: dict[str, list[Scores]], rows: NDArray[np.intp], failed: Mapping[str, str]
) -> dict[str, list[Any]]:
    """Means, and paired differences; a row held out more than once counts as one."""
    names = next((list(each[0]) for model, each in scores.items() if model not in failed), ["crps"])
    missing = [dict.fromkeys(names, np.full(len(rows), np.nan))]
    by_model = [missing if model in failed else each for model, each in scores.items()]
    columns: dict[str, list[Any]] = {"model": list(scores)}
    for name in names:
        values = [np.concatenate([split[name] for split in splits]) for splits in by_model]
        columns[name] = [mean_score(name, each) for each in values]
        if name == names[0]:
            columns["difference"] = [mean - columns[name][0] for mean in columns[name]]
            _, positions, times = np.unique(rows, return_inverse=True, return_counts=True)
            apart = [np.bincount(positions, each - values[0]) / times for each in values]
            errors = np.std(apart, axis=1, ddof=1) / np.sqrt(len(times))
            columns["standard_error"] = errors.tolist()
    return columns
