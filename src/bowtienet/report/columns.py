"""Which columns predictions need, and rows where predictions should not be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from bowtienet._format import number, shorten
from bowtienet.evaluation import log_score
from bowtienet.evaluation.competitors import rows_of
from bowtienet.plotting.band import columns_of, gather
from bowtienet.report.assessment import at_exposure


def importances(
    model: Any, X: Any, y: Any, exposure: Any = None, most: int = 30
) -> list[dict[str, Any]]:
    """Permutation importance over at most 500 rows, the largest first.

    It is the mean "loss" of log score over three permutations of a "column", and "is_clear" above
    two standard deviations. More rows or permutations take longer and change no ranking that one
    should rely on. With many columns, those `most` correlated with the predictions are permuted.
    """
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:500]
    fitted, X, y = at_exposure(model, exposure, rows), rows_of(X, rows), np.asarray(y)[rows]
    names = list(columns_of(X))
    score, result = log_score(fitted, X, y), []
    for name in names if len(names) <= most else _related(model, X, names, most):
        orders = [rng.permutation(len(rows)) for _ in range(3)]
        tables = [gather(X, {name: order}, np.arange(len(rows))) for order in orders]
        losses = [score - log_score(fitted, table, y) for table in tables]
        loss = float(np.mean(losses))
        result.append({"column": name, "loss": loss, "is_clear": loss > 2.0 * np.std(losses)})
    return sorted(result, key=lambda importance: -importance["loss"])


def _related(model: Any, X: Any, names: list[Any], most: int) -> list[Any]:
    """Columns whose standardised numbers have the largest correlations with predictions."""
    inputs, owners = model._inputs(X), model._fitted.representation.owners
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the fit had exposures")  # rates are related
        answer = getattr(model, "predict_proba", model.predict)(X)
    answer = np.asarray(answer, dtype=float).reshape(len(inputs), -1)
    answer, inputs = answer - answer.mean(axis=0), inputs - inputs.mean(axis=0)
    size = np.linalg.norm(inputs, axis=0)
    strength = np.linalg.norm(inputs.T @ answer, axis=1) / np.where(size > 0.0, size, np.inf)
    by_column = np.zeros(len(names))
    np.maximum.at(by_column, owners, strength)
    return [names[i] for i in np.sort(np.argsort(-by_column, kind="stable")[:most])]


def groups(X: Any, hits: NDArray[np.bool_], stated: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Thirds of numbers and dates, and levels of categories, the least plausible first.

    Each has a "name", "n_rows", the "observed" and the "stated" share of hits. Under the model,
    the hits of a group have the mean Σ p and the variance Σ p (1 - p); a group "is_doubtful" if so
    few or fewer have a "chance" below 5 % over the number of groups.
    """
    # The share of fewer than ten rows says nothing.
    named = [(name, rows) for name, rows in _grouped(X) if rows.sum() >= 10]
    result: list[dict[str, Any]] = []
    for name, rows in named:
        inside, p = hits[rows], stated[rows]
        # Half a row closer, because hits are whole numbers.
        apart = (inside.sum() + 0.5 - p.sum()) / max(np.sqrt(np.sum(p * (1.0 - p))), 1e-9)
        shares = {"observed": inside.mean(), "stated": p.mean(), "chance": ndtr(apart)}
        is_doubtful = shares["chance"] < 0.05 / len(named)
        result.append({"name": name, "n_rows": len(p), "is_doubtful": is_doubtful, **shares})
    return sorted(result, key=lambda group: group["chance"])


def _grouped(X: Any) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for key, values in columns_of(X).items():
        name, missing = column_name(key), pd.isna(values)
        present = values[~missing]
        if values.dtype.kind in "iufM" and len(np.unique(present)) > 3:
            low, high = np.sort(present)[[len(present) // 3, 2 * len(present) // 3]]
            yield f"{name} below {_text(low)}", values < low
            middle = (values >= low) & (values <= high)
            yield f"{name} from {_text(low)} to {_text(high)}", middle
            yield f"{name} above {_text(high)}", values > high
        else:
            texts = np.array([_text(value) for value in values])
            levels, times = np.unique(texts[~missing], return_counts=True)
            # A column with more than thirty levels is rather text.
            for level in levels[np.argsort(-times, kind="stable")[:30]]:
                yield f"{name} = {level}", texts == level
        yield f"{name} missing", missing


def outside(model: Any, X: Any) -> tuple[int, list[tuple[str, int]]]:
    """How many rows lie outside the ranges of the training rows, in all and by column."""
    representation = model._fitted.representation
    inputs = model._inputs(X)
    rounding = 1e-9 * (representation.high - representation.low)
    away = (inputs < representation.low - rounding) | (inputs > representation.high + rounding)
    reasons = [
        (column_name(column.name), int(away[:, representation.owners == i].any(axis=1).sum()))
        for i, column in enumerate(representation.columns)
    ]
    reasons = sorted((reason for reason in reasons if reason[1]), key=lambda reason: -reason[1])
    return int(away.any(axis=1).sum()), reasons


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
