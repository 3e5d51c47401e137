"""Content as a tree of strict JSON beside a list of arrays, and the classes that it may hold."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NoReturn

import array_api_compat
import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet.distributions import (
    gaussian,
    generalized_inverse_gaussian,
    inverse_gamma,
    point_mass,
)
from bowtienet.inference import elbo, iterate, pruning, statistics, stochastic
from bowtienet.inference.convergence import Status
from bowtienet.model import architecture, priors
from bowtienet.persistence.layout import DTYPES, FORMAT, damaged
from bowtienet.posterior import factors
from bowtienet.representation import columns, representation, scaling

SCHEMA = 1
"""Raised, with a migration, when the tree or a class in it changes after the first release."""
CONTAINERS: tuple[type, ...] = (
    architecture.Architecture,
    priors.BowTieModel,
    elbo.ElboTerms,
    columns.Column,
    iterate.FitResult,
    gaussian.GaussianRows,
    generalized_inverse_gaussian.GeneralizedInverseGaussian,
    factors.GlobalFactors,
    statistics.HiddenStatistics,
    inverse_gamma.InverseGamma,
    factors.LayerFactors,
    statistics.OutputStatistics,
    stochastic.PassSnapshot,
    point_mass.PointMass,
    stochastic.Position,
    priors.Prior,
    pruning.Pruning,
    priors.RemovedWeights,
    representation.Representation,
    scaling.Scaling,
    statistics.Statistics,
    stochastic.StochasticState,
)
"""The dataclasses that a file may hold, by their names; no other class is ever built."""
MIGRATIONS: dict[int, Callable[[Any], Any]] = {}
"""From the tree of a schema to that of the next one, without trust in what is found there."""

_DEEPEST = 100  # levels of nesting: more than any model has, far below Python's own limit
_LONGEST_WHOLE_NUMBER = 2048
"""Bits, 617 digits: Python's own limit for text can be set as low as 640 digits."""


def encode(value: Any, place: tuple[str, ...], arrays: list[np.ndarray]) -> Any:
    """Tree of `value`, which stands at `place`; its arrays are added to `arrays`.

    Types are compared, not instances: a subclass would come back as something else.
    """
    if len(place) > _DEEPEST:
        _refuse(place, f"lies deeper than {_DEEPEST} levels, or holds itself")
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        if value.bit_length() > _LONGEST_WHOLE_NUMBER:
            _refuse(place, f"is a whole number of more than {_LONGEST_WHOLE_NUMBER} bits")
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if type(value) is Status:
        return {"Status": value.value}
    if type(value) in (list, tuple):
        items = [encode(v, (*place, f"[{i}]"), arrays) for i, v in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if type(value) is dict:
        return {"dict": {k: encode(v, (*place, _key(k, place)), arrays) for k, v in value.items()}}
    if type(value) in CONTAINERS:
        names = [field.name for field in fields(value)]
        parts = {n: encode(getattr(value, n), (*place, f".{n}"), arrays) for n in names}
        return {type(value).__name__: parts}
    arrays.append(_plain_array(value, place))
    return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}


def decode(node: Any, arrays: dict[int, np.ndarray]) -> Any:
    """Content of a tree; every array is taken out of `arrays` once."""
    if isinstance(node, list):
        return [decode(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    if len(node) != 1:
        raise damaged(f"an object has {len(node)} keys in place of 1")
    [(tag, value)] = node.items()
    if tag == "dict" and isinstance(value, dict):
        return {key: decode(item, arrays) for key, item in value.items()}
    if tag == "tuple" and isinstance(value, list):
        return tuple(decode(item, arrays) for item in value)
    if tag == "float" and isinstance(value, str):
        return _float(value)
    if tag == "Status" and value in list(Status):
        return Status(value)
    if tag in ("array", "scalar"):
        return _take_array(tag, value, arrays)
    for container in CONTAINERS:
        if tag == container.__name__:
            return _build(container, value, arrays)
    raise damaged(f"it names {tag!r}, which {FORMAT} does not know")


def _key(key: Any, place: tuple[str, ...]) -> str:
    if type(key) is not str:
        _refuse(place, f"is a dict with the key {key!r}; keys must be strings")
    return f"[{key!r}]"


def _plain_array(value: Any, place: tuple[str, ...]) -> np.ndarray:
    """`value` as an array in C order with a native dtype that a file can hold."""
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        _refuse(place, f"is a {type(value).__name__}; convert it to a plain array")
    if not array_api_compat.is_array_api_obj(value) and not isinstance(value, np.generic):
        kind = type(value).__qualname__
        _refuse(place, f"is a {kind}; convert it to lists, dicts, strings, numbers or arrays")
    try:
        array = to_numpy(value)
    except (TypeError, ValueError, RuntimeError) as error:
        _refuse(place, f"cannot be converted to a NumPy array ({error})")
    if array.dtype.name not in {dtype.name for dtype in DTYPES.values()}:
        _refuse(place, f"has dtype {array.dtype}; convert it to real numbers, or text to lists")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _refuse(place: tuple[str, ...], reason: str) -> NoReturn:
    # The end of a deep place says nothing: it repeats the loop.
    name = "content" + "".join(place[:10]) + ("..." if len(place) > 10 else "")
    raise TypeError(f"{name} cannot be saved: it {reason}.")


def _float(text: str) -> float:
    try:
        return float(struct.unpack(">d", bytes.fromhex(text))[0])
    except (ValueError, struct.error):
        raise damaged("a number is not readable") from None


def _take_array(tag: str, index: Any, arrays: dict[int, np.ndarray]) -> Any:
    if type(index) is not int or index not in arrays:
        raise damaged(f"its content names the array {index!r}, which is missing or used twice")
    array = arrays.pop(index)
    if tag == "array":
        return array
    if array.ndim > 0:
        raise damaged(f"its array {index} is no scalar")
    return array[()]


def _build(container: type, parts: Any, arrays: dict[int, np.ndarray]) -> Any:
    """A dataclass from exactly its fields."""
    names = {field.name for field in fields(container)}
    if not isinstance(parts, dict) or set(parts) != names:
        wrong = sorted(names ^ set(parts)) if isinstance(parts, dict) else sorted(names)
        raise damaged(f"its {container.__name__} lacks, or should not have, the fields {wrong}")
    return container(**{name: decode(part, arrays) for name, part in parts.items()})
