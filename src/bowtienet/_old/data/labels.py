"""Labels of classes: a column of texts, booleans or whole numbers in, numbers of classes out.

code_n = the place of the label of row n among the sorted classes, as ``np.unique(y,
return_inverse=True)`` has it, for columns of every library.

The words "Unknown label type: continuous" in an error are those of scikit-learn, whose contract
tests look for them.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import listed
from bowtienet._old.data.parsing import as_array, as_frame, check_rank, frame_labels, refuse_nested

_FAMILIES = {
    **dict.fromkeys("biuf", "numbers"),
    **{"U": "text", "T": "text", "S": "bytes"},
}
_GAPS = ("NoneType", "NAType", "NaTType")
"""Types whose values stand for a missing label."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """A column of labels, none of which is missing."""

    values: np.ndarray
    """(n,) booleans, numbers or texts, or Python objects that are all texts."""
    names: tuple[str, ...] | None
    single: bool
    """Whether they came as a column, not as a table with one column."""


def read_labels(y: Any, name: str = "y") -> Labels:
    """The labels in an array, a list or a frame, called `name` in errors."""
    frame = as_frame(y, name)
    given = as_array(y, name) if frame is None else frame
    check_rank(given.shape, name)
    single = len(given.shape) == 1
    if not single and given.shape[1] != 1:
        raise ValueError(
            f"{name} has {given.shape[1]} columns, but labels are one: give one column."
        )
    if frame is not None:
        names = frame_labels(frame)
        values = _column_values(frame if single else frame.get_column(frame.columns[0]), name)
        texts = None if names is None else tuple(str(label) for label in names)
        return Labels(values=_checked(values, name), names=texts, single=single)
    values = _checked(np.ravel(to_numpy(given)), name)
    if values.dtype.kind == "O" and isinstance(y, (list, tuple)):
        values = np.array(values.tolist())  # as NumPy reads a list of texts
    return Labels(values=values, names=None, single=single)


def names_or_labels(y: Any, columns: Iterable[Any]) -> Any:
    """A list of texts as an array of labels, unless all of them are names of `columns`."""
    if not isinstance(y, (list, tuple)) or not y or not all(isinstance(v, str) for v in y):
        return y
    different = set(y)
    is_names = len(different) == len(y) and different <= set(columns)
    return y if is_names else np.asarray(y)


def distinct(values: np.ndarray) -> np.ndarray:
    """The classes among `values`, sorted."""
    if _is_text(values):
        return np.array(sorted(set(values.tolist())), dtype=values.dtype)
    return np.unique(values)


def join_classes(parts: Iterable[np.ndarray]) -> np.ndarray:
    """The classes of several parts of a table together, sorted."""
    joined: np.ndarray | None = None
    for part in parts:
        if joined is not None:
            _refuse_mixture({_family(joined), _family(part)}, "y")
            part = distinct(np.concatenate([joined, part]))
        joined = part
    if joined is None:
        raise ValueError("y has 0 label(s): give at least one row.")
    return joined


def encode_labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Numbers (n, 1) of the classes of `values`, as floats."""
    if _family(values) != _family(classes):
        raise ValueError(
            f"y holds {_family(values)}, but the classes are {_family(classes)}, "
            f"{_listed(classes)}: give labels of that type."
        )
    if _is_text(values):
        places = {label: place for place, label in enumerate(classes.tolist())}
        codes = np.array([places.get(label, -1) for label in values.tolist()], dtype=np.float64)
    else:
        found = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
        codes = np.where(classes[found] == values, found, -1.0)
    unknown = np.flatnonzero(codes < 0.0)
    if unknown.size:
        row = int(unknown[0])
        raise ValueError(
            f"y has the label {values[row : row + 1].tolist()[0]!r} in row {row}, which is not one "
            f"of the {len(classes)} classes, {_listed(classes)}: correct it or leave the row out."
        )
    return codes[:, None]


def read_classes(classes: Any) -> np.ndarray:
    """The classes that a user gives, sorted."""
    found = distinct(read_labels(classes, "classes").values)
    if not found.size:
        raise ValueError("classes is empty: give all labels that may occur.")
    return found


def check_classes(classes: np.ndarray) -> None:
    """Raise if there are fewer than the two classes that a classifier needs."""
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {_listed(classes)}: a classifier needs at least two; give rows "
            "of another class too."
        )


def _column_values(column: Any, name: str) -> np.ndarray:
    """Labels of a narwhals Series; pyarrow's own conversion fills the gaps of dictionaries."""
    if column.dtype.is_nested():
        refuse_nested(name)
    _check_missing(np.asarray(column.is_null().to_numpy(), dtype=bool), name)
    return np.asarray(column.to_numpy())


def _checked(values: np.ndarray, name: str) -> np.ndarray:
    """Labels (n,) of a type that can be sorted, without missing ones."""
    kind = values.dtype.kind
    if kind == "O":
        return _checked_objects(values, name)
    if kind not in _FAMILIES:
        raise ValueError(
            f"{name} holds values of type {values.dtype}: give labels that are text, booleans or "
            "whole numbers."
        )
    if kind == "f":
        _check_missing(np.isnan(values), name)
        other = np.flatnonzero(values != np.floor(values))
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise ValueError(
                f"{name} contains infinity in row {row}: give labels that are whole numbers."
            )
        if other.size:
            raise ValueError(
                f"Unknown label type: continuous. {name} has {float(values[other[0]])!r} in row "
                f"{other[0]}, which is not a whole number: use BowTieRegressor for numbers, or "
                "give labels as text."
            )
    return values.astype(object) if kind == "T" else values


def _checked_objects(values: np.ndarray, name: str) -> np.ndarray:
    kinds = set(map(type, values))
    if any(not issubclass(kind, (str, bytes, numbers.Integral)) for kind in kinds):
        gaps = [type(v).__name__ in _GAPS or (isinstance(v, _REAL) and v != v) for v in values]
        _check_missing(np.array(gaps), name)
    families = {_object_family(kind) for kind in kinds}
    _refuse_mixture(families, name)
    if families <= {"text", "bytes"}:
        return values
    if families != {"numbers"}:
        raise ValueError(
            f"{name} holds objects of type {families.pop()}: give labels that are text, booleans "
            "or whole numbers."
        )
    found = np.array(values.tolist())
    if found.dtype.kind == "O":  # decimals, or whole numbers that no type of NumPy can hold
        found = found.astype(np.float64)
    return _checked(found, name)


_REAL = (float, np.floating, Decimal)


def _object_family(kind: type) -> str:
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bytes):
        return "bytes"
    return "numbers" if issubclass(kind, (numbers.Real, np.bool_, Decimal)) else kind.__name__


def _family(values: np.ndarray) -> str:
    """What checked labels are: numbers, text or bytes."""
    if values.dtype.kind == "O":
        return _object_family(type(values[0])) if values.size else "text"
    return _FAMILIES[values.dtype.kind]


def _is_text(values: np.ndarray) -> bool:
    return values.dtype.kind in "OUS"


def _refuse_mixture(families: set[str], name: str) -> None:
    if len(families) > 1:
        raise ValueError(
            f"{name} mixes {' and '.join(sorted(families))}, which cannot be sorted together: give "
            "all labels as text, or all as numbers."
        )


def _check_missing(missing: np.ndarray, name: str) -> None:
    rows = np.flatnonzero(missing)
    if rows.size:
        raise ValueError(
            f"{name} has {rows.size} missing label{'s' if rows.size > 1 else ''} (None or NaN), "
            f"the first in row {rows[0]}: leave those rows out, or give them a class of their own."
        )


def _listed(classes: np.ndarray) -> str:
    return listed([repr(label) for label in classes.tolist()])
