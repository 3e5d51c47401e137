"""Checks of labels and of class probabilities, with one sentence for what is wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import listed
from bowtienet._old.evaluation.checks import read_sample_weight

_SUM_TOLERANCE = 1e-5
"""Rounding of a sum of probabilities, single precision included."""


class ClassForecast(NamedTuple):
    """Labels and probabilities of n rows, checked."""

    places: np.ndarray
    """Which of the classes each row is of (n,)."""
    probabilities: np.ndarray
    """(n, C)."""
    classes: list[Any]
    weights: np.ndarray
    """(n,), the largest of them one."""


def read_forecast(y: Any, probabilities: Any, classes: Any, sample_weight: Any) -> ClassForecast:
    """All that scores and plots of classes are given."""
    known = read_classes(classes)
    places = read_labels(y, known)
    found = read_probabilities(probabilities, places, len(known))
    return ClassForecast(places, found, known, read_sample_weight(sample_weight, found[:, 0]))


def read_classes(classes: Any) -> list[Any]:
    """Two or more different classes, in the order of the columns of the probabilities."""
    known = to_numpy(classes)
    if known.ndim != 1 or known.size < 2:
        raise ValueError(f"classes must be a list of two or more classes, got {classes!r}.")
    listed = known.tolist()
    if len(set(listed)) < len(listed):
        raise ValueError(f"classes must differ from each other, got {classes!r}.")
    return listed


def read_labels(y: Any, classes: list[Any], name: str = "y") -> np.ndarray:
    """Places (n,) of labels among the classes."""
    labels = to_numpy(y)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(f"{name} must have shape (rows,), with a row or more, got {labels.shape}.")
    place = {label: number for number, label in enumerate(classes)}
    places = np.array([place.get(label, -1) for label in labels.tolist()])
    unknown = labels[places < 0].tolist()
    if unknown:
        raise ValueError(
            f"{name} holds {unknown[0]!r} in row {int(np.argmax(places < 0))} ({len(unknown)} rows "
            f"in all are of unknown classes); the classes are {listed(list(map(repr, classes)))}."
        )
    return places


def read_probabilities(probabilities: Any, places: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities (n, C) that sum to one; (n,) are those of the second of two classes."""
    found = to_numpy(probabilities).astype(np.float64, copy=False)
    if found.ndim == 1 and n_classes == 2:
        found = np.stack([1.0 - found, found], axis=1)
    wanted = (places.size, n_classes)
    if found.shape != wanted:
        raise ValueError(
            f"probabilities must have shape {wanted}, a row for each label and a column for each "
            f"class, got {found.shape}."
        )
    if not np.all((found >= 0.0) & (found <= 1.0 + _SUM_TOLERANCE)):
        raise ValueError("probabilities must lie between 0 and 1: give those of predict_proba.")
    sums = np.sum(found, axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"probabilities must sum to 1 over the classes, but those of row {worst} sum to "
            f"{sums[worst]:g}."
        )
    return found


def find_class(label: Any, classes: list[Any], name: str = "label") -> int:
    """Place of a class that is named."""
    if label not in classes:
        raise ValueError(f"{name} must be one of the classes {classes!r}, got {label!r}.")
    return classes.index(label)
