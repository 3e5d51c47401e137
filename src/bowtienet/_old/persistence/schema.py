"""Values against the annotations of the dataclasses that hold them.

    int    float    bool    str    Status    X | None    tuple[X, ...]    list[X]    dict[str, X]
    NDArray[np.float64]    Array (of floats or booleans)    a dataclass

An annotation is all that a container has to say of its fields, here as for readers. Besides, all
numbers are finite but those of `MAY_BE_NON_FINITE`, and those of `RANGES` are in their range.
Shapes, which no annotation tells, are checked where the architecture is known
(`inference.network_checks`).
"""

from __future__ import annotations

import math
import types
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np

from bowtienet._old._arrays import is_number

POSITIVE = math.ulp(0.0)
MAY_BE_NON_FINITE = {"elbo_history", "elbo_terms", "gate_entropy", "polya_gamma_ratio"}
"""Bounds, which a fit may have had none of."""
RANGES: dict[str, dict[str, float]] = {
    "Architecture": {"n_inputs": 0, "hidden": 1, "n_outputs": 1},
    "BowTieModel": {"gate_temperature": POSITIVE},
    "Column": {"n_missing": 0},
    "Counts": {"dispersion": POSITIVE},
    "FitResult": {"n_sweeps": 0, "variance_ratio": POSITIVE},
    "GeneralizedInverseGaussian": {"scale": 0.0, "rate": 0.0},
    "HalfCauchy": {"scale": POSITIVE},
    "InverseGamma": {"concentration": POSITIVE, "scale": POSITIVE},
    "Pieces": {"scale": POSITIVE, "deviation": 0.0},
    "PointMass": {"value": POSITIVE},
    "Position": {"n_passes": 0, "n_visited": 0, "visited_weight": 0.0, "full_batch": 0.0},
    "Prior": {"bias_variance": POSITIVE},
    "RemovedWeights": {"count": 0, "held": POSITIVE},
    "Scaling": {"scale": POSITIVE},
    "Statistics": {"count": POSITIVE},
    "StochasticState": {"step": 0},
    "Structure": {"n_rows": 0, "variance_share": 0.0},
    "StudentT": {"freedom": POSITIVE},
    "Warp": {"scale": POSITIVE},
}
"""The least value of fields that have one, by their class."""
_NUMBERS = (int, float, np.integer, np.floating)
_ARRAY_KINDS = {"f": "floats", "i": "whole numbers", "b": "truth values"}


def check_content(value: Any, place: str = "content") -> None:
    """Raise a ValueError, naming the place, if a container in `value` holds what it may not.

    Lists, tuples and dicts are looked into; what they may hold is for the reader of the content to
    say, by `check_type`.
    """
    if is_dataclass(value):
        check_fields(value, place)
    elif isinstance(value, dict):
        for key, part in value.items():
            check_content(part, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            check_content(part, f"{place}[{index}]")


def check_fields(container: Any, place: str) -> None:
    """Raise a ValueError if a field of a dataclass is not what its annotation says."""
    kind: type = type(container)
    hints, least = _hints(kind), RANGES.get(kind.__name__, {})
    for field in fields(container):
        value, own = getattr(container, field.name), f"{place}.{field.name}"
        check_type(value, hints[field.name], own)
        if field.name in MAY_BE_NON_FINITE:
            continue
        _check_finite(value, own)
        if field.name in least and value is not None and np.any(np.less(value, least[field.name])):
            limit = "are not positive" if least[field.name] == POSITIVE else "are too small"
            _refuse(own, f"has values that {limit}")


def check_type(value: Any, hint: Any, place: str) -> None:
    """Raise a ValueError unless a value is what an annotation says."""
    origin = get_origin(hint)
    if hint is Any:
        _check_array(value, "fb", place)
    elif origin in (Union, types.UnionType):
        _check_union(value, get_args(hint), place)
    elif hint is np.ndarray:
        _check_array(value, "f", place)
    elif origin is np.ndarray:
        [dtype] = get_args(get_args(hint)[1])
        _check_array(value, np.dtype(dtype).kind, place)
    elif is_typeddict(hint):
        _check_keys(value, hint, place)
    elif origin in (tuple, list):
        if type(value) is not origin:
            _refuse(place, f"is {_kind(value)} and not a {origin.__name__}")
        for index, part in enumerate(value):
            check_type(part, get_args(hint)[0], f"{place}[{index}]")
    elif is_dataclass(hint):
        if type(value) is not hint:
            _refuse(place, f"is {_kind(value)} and not a {_name(hint)}")
        check_fields(value, place)
    elif isinstance(hint, type) and is_dataclass(value) and isinstance(value, hint):
        check_fields(value, place)  # one of several outcomes
    elif not _is_plain(value, hint):
        _refuse(place, f"is {_kind(value)} and not {_name(hint)}")


def _check_union(value: Any, options: tuple[Any, ...], place: str) -> None:
    """Fine if it is one of the options; if not, what is wrong with the one that is nearest."""
    if value is None and type(None) in options:
        return
    rest = [option for option in options if option is not type(None)]
    exact = [option for option in rest if type(value) is option]
    for option in exact or rest:
        try:
            return check_type(value, option, place)
        except ValueError:
            if option is (exact or rest)[-1]:
                raise
    return None


def _check_keys(value: Any, hint: Any, place: str) -> None:
    hints = _hints(hint)
    if type(value) is not dict or set(value) != set(hints):
        found = sorted(value) if type(value) is dict else _kind(value)
        _refuse(place, f"is not the dict of {', '.join(hints)}, but {found!s:.80}")
    for key, part in value.items():
        check_type(part, hints[key], f"{place}[{key!r}]")


def _check_array(value: Any, kinds: str, place: str) -> None:
    """A NumPy array of single or double floats, of whole numbers or of truth values."""
    # A half has no linear algebra, and a longer integer is what places are counted in.
    sizes = {"f": (4, 8), "i": (8,), "b": (1,)}
    if not isinstance(value, (np.ndarray, np.generic)):
        _refuse(place, f"is {_kind(value)} and not an array")
    if not any(value.dtype.kind == k and value.dtype.itemsize in sizes[k] for k in kinds):
        wanted = " or ".join(_ARRAY_KINDS[kind] for kind in kinds)
        _refuse(place, f"has dtype {value.dtype} and not that of {wanted}")


def _check_finite(value: Any, place: str) -> None:
    """Numbers and arrays that stand in a field, or in a tuple there, are finite."""
    if isinstance(value, tuple):
        for index, part in enumerate(value):
            _check_finite(part, f"{place}[{index}]")
    elif (isinstance(value, np.ndarray) or is_number(value)) and not np.all(np.isfinite(value)):
        _refuse(place, "holds numbers that are not finite")


def _is_plain(value: Any, hint: Any) -> bool:
    """Whether a value is a plain one of this type; NumPy's numbers are numbers, too."""
    if hint is float:
        return isinstance(value, _NUMBERS) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if get_origin(hint) is dict or hint is dict:
        return type(value) is dict
    if isinstance(hint, type) and issubclass(hint, Enum):
        return isinstance(value, hint)
    return type(value) is hint


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _kind(value: Any) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _refuse(place: str, reason: str) -> NoReturn:
    raise ValueError(f"{place} {reason}")
