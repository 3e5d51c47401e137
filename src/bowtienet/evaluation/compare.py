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

from bowtienet._format import number
from bowtienet.evaluation.competitors import (
    OURS,
    default_models,
    features_and_targets,
    rows_of,
    with_distribution,
)
from bowtienet.evaluation.scorers import forecast_of
from bowtienet.evaluation.scores import mean_score, scores_of_rows
from bowtienet.tables.texts import is_missing

Scores = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """What `compare` returns; it prints as a table."""

    columns: dict[str, list[Any]]
    """A list with a value for each model, as data frames take it: "model", mean scores,
    "difference" of the first score from that of the first model, its "standard_error", "seconds" of
    all fits. Scores of models that failed are NaN."""
    notes: dict[str, str]
    """Why models failed, by name."""

    def __repr__(self) -> str:
        rows = zip(*self.columns.values(), strict=True)
        lines = [[name.replace("_", " ") for name in self.columns]]
        lines += [[name, *(number(value) for value in values)] for name, *values in rows]
        widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
        table = [
            "  ".join([name.ljust(widths[0]), *map(str.rjust, texts, widths[1:])])
            for name, *texts in lines
        ]
        return "\n".join([*table, *(f"{name} {note}" for name, note in self.notes.items())])


def compare(
    X: Any,
    y: Any,
    models: Mapping[str, Any] | None = None,
    *,
    outcome: str | None = None,
    cv: Any = 5,
    coverage: float = 0.9,
    random_state: int = 0,
    callback: Callable[[int, int, str], None] | None = None,
) -> Comparison:
    """Fit and score models on the same splits of a table.

    A regressor without `predict_dist` gets a Gaussian (for counts negative binomial) distribution
    around its predictions, as wide as its errors in a fifth of the training rows. Warnings of fits
    are not shown.

    Parameters
    ----------
    X : array or frame (n, columns)
        Features.
    y : array (n,) or name
        Targets, or the name of their column in the frame X.
    models : dict of name and estimator, optional
        Models; the others are compared with the first. `evaluation.default_models` by default.
    outcome : {"numbers", "classes", "counts"}, optional
        Kind of the targets; by default classes if they are texts or truth values, else numbers.
    cv : int, splitter or iterable of (train, test)
        Number of shuffled folds, or what scikit-learn takes as `cv`.
    coverage : float in (0, 1)
        Of the intervals.
    random_state : int
        Seed of the folds and of the default models.
    callback : callable, optional
        Called with the number of fits that are done and to do, and the model's name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from bowtienet import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 2))
    >>> result = compare(X, X[:, 0] + rng.normal(size=80), {"least squares": LinearRegression()})
    >>> list(result.columns)[:4]
    ['model', 'crps', 'difference', 'standard_error']
    """
    X, y = features_and_targets(X, y)
    outcome = outcome or ("classes" if y.dtype.kind in "OUSb" else "numbers")
    y, classes = _targets(y, outcome)
    if isinstance(cv, int):
        folds = KFold if classes is None else StratifiedKFold
        cv = folds(cv, shuffle=True, random_state=random_state)
    splits = list(check_cv(cv, y).split(np.zeros((len(y), 1)), y))
    models = default_models(outcome, random_state) if models is None else dict(models)
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
                scores[name] += [scores_of_rows(y[test], forecast, classes, coverage)]
        except Exception as error:  # a failure of one model is a result of the comparison
            first, *_ = [*str(error).splitlines(), ""]
            notes[name] = f"failed: {type(error).__name__}, {first}"
        if callback is not None:
            callback(done, len(splits) * len(models), name)
    rows = np.concatenate([test for _, test in splits])
    return Comparison(columns=_columns(scores, rows, seconds, notes), notes=notes)


def _targets(y: Any, outcome: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Numbers, or numbers of classes, which every library takes, and all of these."""
    if outcome not in OURS:
        raise ValueError(f"outcome must be one of {', '.join(OURS)}, got {outcome!r}.")
    if y.ndim != 1:
        raise ValueError(f"y must be one column of targets, got shape {y.shape}.")
    if outcome != "classes":
        return check_array(y, dtype=np.float64, ensure_2d=False, input_name="y"), None
    if y.dtype.kind == "O" and any(map(is_missing, y)):
        raise ValueError("y has missing labels: leave their rows out.")
    classes, numbers = np.unique(y, return_inverse=True)
    return numbers, np.arange(len(classes))


def _columns(
    scores: dict[str, list[Scores]],
    rows: NDArray[np.intp],
    seconds: dict[str, float],
    notes: dict[str, str],
) -> dict[str, list[Any]]:
    """Means, and differences in pairs of rows; rows held out more than once count as one."""
    names = next((list(each[0]) for model, each in scores.items() if model not in notes), ["crps"])
    _, places, times = np.unique(rows, return_inverse=True, return_counts=True)
    columns: dict[str, list[Any]] = {"model": list(scores)}
    missing = np.full(len(rows), np.nan)
    for name in names:
        each = [
            missing if model in notes else np.concatenate([split[name] for split in splits])
            for model, splits in scores.items()
        ]
        columns[name] = [mean_score(name, values) for values in each]
        if name == names[0]:
            columns["difference"] = [mean - columns[name][0] for mean in columns[name]]
            apart = np.array([np.bincount(places, values - each[0]) / times for values in each])
            errors = np.std(apart, axis=1, ddof=1) / np.sqrt(len(times))
            columns["standard_error"] = errors.tolist()
    return {**columns, "seconds": list(seconds.values())}
