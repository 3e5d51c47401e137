"""Targets of a table: numbers, labels of classes, or counts with the logs of their exposures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old.data.labels import distinct, encode_labels, read_labels
from bowtienet._old.data.parsing import (
    Parsed,
    check_finite,
    check_lengths,
    label_of,
    parse,
    refuse_texts,
)

TARGETS = ("number", "label", "count")
"""What targets may be."""
LARGEST_COUNT = 2.0**53
"""Beyond it not every whole number is a double."""
_CLASSES = "use BowTieClassifier for classes"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How targets are read."""

    target: str = "number"
    """One of TARGETS."""
    classes: np.ndarray | None = None
    """Sorted classes of labels; None as long as they are not known."""


NUMBERS = Reading()


@dataclass(frozen=True, kw_only=True)
class Targets:
    """Targets of some rows, checked."""

    values: Array
    """(n, k) finite floats."""
    names: tuple[str, ...] | None = None
    single: bool = False
    """Whether they came as one column, not as a table."""
    classes: np.ndarray | None = None
    """What labels were coded by."""


def read_targets(y: Any, n_rows: int, reading: Reading) -> Targets:
    """Finite numbers, numbers of classes or counts; no columns if `y` is None."""
    if y is None:
        return Targets(values=np.empty((n_rows, 0)))
    if reading.target == "label":
        labels = read_labels(y)
        check_lengths(len(labels.values), n_rows, "y")
        classes = distinct(labels.values) if reading.classes is None else reading.classes
        codes = encode_labels(labels.values, classes)
        return Targets(values=codes, names=labels.names, single=labels.single, classes=classes)
    parsed = parse(y, "y")
    values = _numbers(parsed, n_rows)
    names = None if parsed.labels is None else tuple(str(label) for label in parsed.labels)
    single = values.ndim == 1
    values = values[:, None] if single else values
    if reading.target == "count":
        values = _counts(values)
    return Targets(values=values, names=names, single=single)


def read_log_exposure(exposure: Any, n_rows: int) -> np.ndarray:
    """log(exposure) (n, 1); zeros without one."""
    if exposure is None:
        return np.zeros((n_rows, 1))
    parsed = parse(exposure, "exposure")
    if parsed.array is None:
        refuse_texts(parsed, "exposure")
    check_lengths(parsed.shape[0], n_rows, "exposure")
    values = to_numpy(parsed.array).astype(np.float64, copy=False)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0.0)))
    if bad.size:
        raise ValueError(
            f"exposure must be positive and finite, but row {bad[0]} has "
            f"{float(values[bad[0]])!r}: leave out rows without exposure."
        )
    return np.log(values)[:, None]


def _numbers(parsed: Parsed, n_rows: int) -> Array:
    """Finite floats of the shape they came in."""
    if parsed.array is None:
        refuse_texts(parsed, "y", f"; {_CLASSES}")
    if 0 in parsed.shape[1:]:
        raise ValueError("y has no columns: give one number, or a row of them, for each row of X.")
    if parsed.booleans:
        where = label_of("y", parsed.booleans[0], parsed.labels)
        raise ValueError(f"y must hold numbers, but {where} holds booleans: {_CLASSES}.")
    check_lengths(parsed.shape[0], n_rows, "y")
    check_finite(parsed, "y", allow_nan=False)
    return parsed.array


def _counts(values: Array) -> np.ndarray:
    """Counts (n, 1): whole numbers from 0 on."""
    if values.shape[1] != 1:
        raise ValueError(f"y has {values.shape[1]} columns, but counts are one: give one column.")
    counts = to_numpy(values).astype(np.float64, copy=False)
    bad = np.flatnonzero((counts < 0.0) | (counts != np.floor(counts)))
    if bad.size:
        raise ValueError(
            f"y must hold counts, whole numbers from 0 on, but row {bad[0]} has "
            f"{float(counts[bad[0], 0])!r}: use BowTieRegressor for other numbers."
        )
    large = np.flatnonzero(counts > LARGEST_COUNT)
    if large.size:
        raise ValueError(
            f"y must hold counts, but row {large[0]} has {float(counts[large[0], 0]):.3g}, beyond "
            "which doubles tell no two counts apart: drop it, or fit its logarithm."
        )
    return counts
