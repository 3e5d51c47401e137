"""`compare`: models fitted and scored on the same splits of a table."""

from __future__ import annotations

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
from bowtienet.evaluation.scores import crps, interval_score, log_density, log_probability

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """What `compare` returns; it prints as a table."""

    columns: dict[str, list[Any]]
    """A list with a value for each model, as data frames take it: "model", mean scores,
    "difference" of the first score from that of the first model, its "standard_error", "seconds" of
    all fits. NaN for models that failed."""
    notes: dict[str, str]
    """Why models failed, by name."""
    n_rows: int
    """Held-out rows."""

    def __repr__(self) -> str:
        names = [name for name in self.columns if name != "standard_error"]
        errors = iter(self.columns["standard_error"])
        lines = [[name.replace("_", " ") for name in names]]
        for row in zip(*(self.columns[name] for name in names), strict=True):
            texts = [value if isinstance(value, str) else number(value) for value in row]
            texts[names.index("difference")] += f" ± {number(next(errors), 2)}"
            lines.append(texts)
        lines[1][names.index("difference")] = ""
        widths = [max(map(len, texts)) for texts in zip(*lines, strict=True)]
        table = [
            "  ".join([texts[0].ljust(widths[0]), *map(str.rjust, texts[1:], widths[1:])])
            for texts in lines
        ]
        first = names[1].replace("_", " ")
        table.append(
            f"Means of {self.n_rows:,} held-out rows; difference of the {first} from the first "
            "model, ± its standard error; scores are better when "
            + ("higher" if first == "log score" else "lower, the log score when higher")
            + "."
        )
        return "\n".join([*table, *(f"{name}: {note}" for name, note in self.notes.items())])


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
        What to compare, the first with the others; `default_models` by default.
    outcome : {"numbers", "classes", "counts"}, optional
        What targets are; by default classes if they are texts or truth values, else numbers.
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
    if outcome not in OURS:
        raise ValueError(f"outcome must be one of {', '.join(OURS)}, got {outcome!r}.")
    labels = np.unique(y) if outcome == "classes" else None
    if labels is None:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if y.ndim != 1:
        raise ValueError(f"y must be one column of targets, got shape {y.shape}.")
    models = default_models(outcome, random_state) if models is None else dict(models)
    splits = _splits(cv, X, y, labels is not None, random_state)
    scores: dict[str, list[dict[str, Floats]]] = {name: [] for name in models}
    seconds, notes = dict.fromkeys(models, 0.0), {}
    for done, (train, test) in enumerate(splits):
        for position, (name, model) in enumerate(models.items(), 1):
            began = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = clone(with_distribution(model, outcome))
                    fitted.fit(rows_of(X, train), y[train])
                    seconds[name] += time.perf_counter() - began
                    scores[name].append(_score(fitted, rows_of(X, test), y[test], labels, coverage))
            except Exception as error:  # a failure of one model is a result of the comparison
                notes[name] = f"failed, {type(error).__name__}: {str(error).splitlines()[0]}"
            if callback is not None:
                callback(done * len(models) + position, len(splits) * len(models), name)
    rows = np.concatenate([test for _, test in splits])
    joined = {name: _joined(each) for name, each in scores.items() if name not in notes}
    return Comparison(
        columns=_columns(list(models), joined, rows, seconds),
        notes=notes,
        n_rows=len(np.unique(rows)),
    )


def _score(fitted: Any, X: Any, y: Any, labels: Any, coverage: float) -> dict[str, Floats]:
    """Scores of held-out rows, the most telling first."""
    if labels is not None:
        shares = np.zeros((len(y), len(labels)))
        shares[:, np.searchsorted(labels, fitted.classes_)] = fitted.predict_proba(X)
        correct = y[:, None] == labels
        return {
            "log_score": log_probability(y, shares, labels),
            "brier_score": np.sum((shares - correct) ** 2, axis=1),
            "accuracy": correct[np.arange(len(y)), np.argmax(shares, axis=1)].astype(float),
        }
    distribution = fitted.predict_dist(X)
    ends = np.stack(distribution.interval(coverage), axis=-1)
    return {
        "crps": crps(y, distribution),
        "rmse": (y - distribution.mean()) ** 2,
        "log_score": log_density(y, distribution),
        "interval_score": interval_score(y, ends, coverage),
        "coverage": ((ends[:, 0] <= y) & (y <= ends[:, 1])).astype(float),
    }


def _joined(splits: list[dict[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([each[name] for each in splits]) for name in splits[0]}


def _columns(
    models: list[str],
    scores: dict[str, dict[str, Floats]],
    rows: NDArray[np.intp],
    seconds: dict[str, float],
) -> dict[str, list[Any]]:
    """Means and paired differences; rows that were held out more than once count as one."""
    columns: dict[str, list[Any]] = {"model": models}
    for name in next(iter(scores.values()), {"score": None}):
        means = [np.mean(scores[m][name]) if m in scores else np.nan for m in models]
        columns[name] = [float(np.sqrt(m) if name == "rmse" else m) for m in means]
        if "difference" not in columns:
            pairs = [
                _paired(scores[m][name] - scores[models[0]][name], rows)
                if m in scores and models[0] in scores
                else (np.nan, np.nan)
                for m in models
            ]
            columns["difference"] = [mean for mean, _ in pairs]
            columns["standard_error"] = [error for _, error in pairs]
    columns["seconds"] = [seconds[m] for m in models]
    return columns


def _paired(differences: Floats, rows: NDArray[np.intp]) -> tuple[float, float]:
    """Mean difference and its standard error."""
    _, places, times = np.unique(rows, return_inverse=True, return_counts=True)
    by_row = np.bincount(places, weights=differences) / times
    return float(np.mean(differences)), float(np.std(by_row, ddof=1) / np.sqrt(len(by_row)))


def _splits(cv: Any, X: Any, y: Any, stratified: bool, seed: int) -> list[Any]:
    if isinstance(cv, int):
        folds = StratifiedKFold if stratified else KFold
        cv = folds(cv, shuffle=True, random_state=seed)
    return list(check_cv(cv, y, classifier=stratified).split(np.zeros((len(y), 1)), y))
