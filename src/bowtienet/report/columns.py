"""Which columns predictions need, and rows where predictions should not be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.inspection import permutation_importance

from bowtienet._format import number, shorten
from bowtienet.evaluation import log_score
from bowtienet.evaluation.competitors import rows_of
from bowtienet.plotting.band import columns_of

REPEATS, ROWS, MOST_COLUMNS = 3, 500, 30
"""Of permutation importance: more take longer and change no ranking that one should rely on."""
LEAST_ROWS, MOST_LEVELS = 10, 30
"""Of groups: the share of fewer rows says nothing; columns of more levels are rather texts."""
FALSE_ALARM = 0.05
"""Probability that any group is doubtful where the model is right in all."""


class Importance(NamedTuple):
    """Mean loss of the log score when a column is permuted."""

    column: Any
    loss: float
    is_clear: bool
    """Whether it is more than two standard deviations of the repeats."""


class Group(NamedTuple):
    """Rows that a column sets apart."""

    name: str
    n_rows: int
    observed: float
    """Share of hits."""
    stated: float
    """Probability of hits as the model has it."""
    is_doubtful: bool
    """Whether there are fewer hits than chance explains."""


def importances(model: Any, X: Any, y: Any, exposure: Any = None) -> list[Importance]:
    """Permutation importance over at most 500 rows, the largest first.

    Of more than 30 columns only those are permuted whose numbers vary most with predictions.
    """
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X, y = rows_of(X, rows), np.asarray(y)[rows]
    names = list(columns_of(X))
    chosen = names if len(names) <= MOST_COLUMNS else _related(model, X, names)

    def score(fitted: Any, some: Any, targets: Any) -> float:
        everything = some
        if len(chosen) < len(names):
            everything = X.copy()
            (everything if hasattr(X, "iloc") else everything.T)[chosen] = (
                some if hasattr(X, "iloc") else some.T
            )
        if exposure is None:
            return log_score(fitted, everything, targets)
        distribution = fitted.predict_dist(everything, exposure=np.asarray(exposure)[rows])
        return float(np.mean(distribution.logpdf(targets)))

    some = X[chosen] if hasattr(X, "iloc") else X[:, chosen]
    found = permutation_importance(model, some, y, scoring=score, n_repeats=REPEATS, random_state=0)
    each = zip(chosen, found.importances_mean, found.importances_std, strict=True)
    result = [Importance(name, float(m), bool(m > 2.0 * s)) for name, m, s in each]
    return sorted(result, key=lambda importance: -importance.loss)


def _related(model: Any, X: Any, names: list[Any]) -> list[Any]:
    """Columns whose standardised numbers have the largest correlations with predictions."""
    inputs, owners = model._inputs(X), model._fitted.representation.owners
    answer = getattr(model, "predict_proba", model.predict)(X)
    answer = np.asarray(answer, dtype=float).reshape(len(inputs), -1)
    answer, inputs = answer - answer.mean(axis=0), inputs - inputs.mean(axis=0)
    size = np.linalg.norm(inputs, axis=0)
    strength = np.linalg.norm(inputs.T @ answer, axis=1) / np.where(size > 0.0, size, np.inf)
    by_column = np.zeros(len(names))
    np.maximum.at(by_column, owners, strength)
    return [names[i] for i in np.sort(np.argsort(-by_column, kind="stable")[:MOST_COLUMNS])]


def groups(X: Any, hits: NDArray[np.bool_], stated: NDArray[np.float64]) -> list[Group]:
    """Thirds of numbers and dates, and levels of categories, those with too few hits first.

    Under the model, hits of a group are Σ p with the variance Σ p (1 - p); a group is doubtful if
    its shortfall has a probability below 5 % over the number of groups.
    """
    named = [(name, rows) for name, rows in _grouped(X) if rows.sum() >= LEAST_ROWS]
    found = []
    for name, rows in named:
        expected, spread = stated[rows].sum(), np.sqrt(np.sum(stated[rows] * (1.0 - stated[rows])))
        # Half a row closer: hits are whole numbers.
        chance = float(ndtr((hits[rows].sum() + 0.5 - expected) / max(float(spread), 1e-9)))
        shares = float(hits[rows].mean()), float(stated[rows].mean())
        doubtful = chance < FALSE_ALARM / len(named)
        found.append((chance, Group(name, int(rows.sum()), *shares, doubtful)))
    return [group for _, group in sorted(found, key=lambda pair: pair[0])]


def _grouped(X: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for key, values in columns_of(X).items():
        name, missing = column_name(key), _missing(values)
        present = np.sort(values[~missing]) if _is_ordered(values) else values
        if _is_ordered(values) and len(np.unique(present)) > 3:
            low, high = present[[len(present) // 3, 2 * len(present) // 3]]
            yield f"{name} below {_text(low)}", values < low
            middle = (values >= low) & (values <= high)
            yield f"{name} from {_text(low)} to {_text(high)}", middle
            yield f"{name} above {_text(high)}", values > high
        else:
            texts = np.array([_text(value) for value in values])
            levels, times = np.unique(texts[~missing], return_counts=True)
            for level in levels[np.argsort(-times, kind="stable")[:MOST_LEVELS]]:
                yield f"{name} = {level}", texts == level
        yield f"{name} missing", missing


def outside(model: Any, X: Any) -> tuple[int, list[tuple[str, int]]]:
    """Rows outside the ranges of the training rows: how many, and by column."""
    representation = model._fitted.representation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what is said here
        inputs = model._inputs(X)
    rounding = 1e-9 * (representation.high - representation.low)
    away = (inputs < representation.low - rounding) | (inputs > representation.high + rounding)
    reasons = [
        (column_name(column.name), int(away[:, representation.owners == i].any(axis=1).sum()))
        for i, column in enumerate(representation.columns)
    ]
    reasons = sorted((reason for reason in reasons if reason[1]), key=lambda reason: -reason[1])
    return int(away.any(axis=1).sum()), reasons


def _is_ordered(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iufM"


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values], dtype=bool)
    return np.asarray(values != values)


def column_name(column: Any) -> str:
    """A column for people: its name, or its number in an array."""
    return shorten(f"x{column}" if isinstance(column, int) else column, 28)


def _text(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[D]"))
    if not isinstance(value, (np.number, float, int)) or isinstance(value, bool):
        return shorten(value, 20)
    text = number(float(value), 4)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
