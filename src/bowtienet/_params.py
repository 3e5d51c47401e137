"""Checks of single parameters: one sentence that names the parameter, its value and the remedy."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any


def positive(value: Any, name: str) -> float:
    """`value` as a float if it is a positive, finite number."""
    if not _is_number(value) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}.")
    return float(value)


def number(value: Any, name: str) -> float:
    """`value` as a float if it is a real number."""
    if not _is_number(value):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    return float(value)


def share(value: Any, name: str) -> float:
    """`value` as a float if it lies strictly between 0 and 1."""
    if not 0.0 < number(value, name) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return float(value)


def whole(value: Any, name: str) -> int:
    """`value` as an int if it is a whole number of at least 1."""
    try:
        index = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        index = 0
    if index < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return index


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
