"""Content as a tree of JSON beside a list of arrays, and the classes that it may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

import array_api_compat
import numpy as np

from bowtienet._old._arrays import pack, packed_size, to_numpy, unpack
from bowtienet._old.distributions import (
    gaussian,
    generalized_inverse_gaussian,
    half_cauchy,
    inverse_gamma,
    point_mass,
    yeo_johnson,
)
from bowtienet._old.inference import elbo, iterate, pruning, statistics, stochastic
from bowtienet._old.inference.convergence import Status
from bowtienet._old.model import architecture, outcomes, priors
from bowtienet._old.posterior import factors
from bowtienet._old.prediction import calibration, conformal, cross_fitted, levels, outside
from bowtienet._old.representation import columns, pieces, principal, representation, scaling

SCHEMA = 1
"""Raised when the tree or a class in it changes after the first release."""
CONTAINERS: tuple[type, ...] = (
    architecture.Architecture,
    outcomes.Binary,
    priors.BowTieModel,
    calibration.Calibration,
    outcomes.Classes,
    columns.Column,
    outcomes.Counts,
    cross_fitted.CrossFitted,
    elbo.ElboTerms,
    iterate.FitResult,
    outcomes.Gaussian,
    gaussian.GaussianRows,
    generalized_inverse_gaussian.GeneralizedInverseGaussian,
    factors.GlobalFactors,
    half_cauchy.HalfCauchy,
    conformal.HeldOut,
    statistics.HiddenStatistics,
    inverse_gamma.InverseGamma,
    factors.LayerFactors,
    levels.Levels,
    statistics.OutputStatistics,
    outside.Outside,
    stochastic.PassSnapshot,
    pieces.Pieces,
    point_mass.PointMass,
    stochastic.Position,
    principal.Principal,
    priors.Prior,
    pruning.Pruning,
    priors.RemovedWeights,
    representation.Representation,
    scaling.Scaling,
    statistics.Statistics,
    stochastic.StochasticState,
    outcomes.StudentT,
    representation.View,
    yeo_johnson.Warp,
)
"""The dataclasses that a file may hold, by their names; no other class is ever built."""

_BY_NAME = {container.__name__: container for container in CONTAINERS}


def to_nodes(value: Any, place: tuple[str, ...], arrays: list[np.ndarray]) -> Any:
    """Tree of `value`, which stands at `place`; its arrays are added to `arrays`.

    Types are compared, not instances: a subclass would come back as something else.
    """
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is Status:
        return {"Status": value.value}
    if type(value) in (list, tuple):
        items = [to_nodes(v, (*place, f"[{i}]"), arrays) for i, v in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if type(value) is dict:
        return {
            "dict": {k: to_nodes(v, (*place, _key(k, place)), arrays) for k, v in value.items()}
        }
    if type(value) in CONTAINERS:
        names = [field.name for field in fields(value)]
        parts = {n: to_nodes(getattr(value, n), (*place, f".{n}"), arrays) for n in names}
        return {type(value).__name__: parts}
    array = _plain_array(value, place)
    symmetric = _is_symmetric(array)
    arrays.append(pack(array) if symmetric else array)
    if symmetric:
        return {"symmetric": len(arrays) - 1}
    return {"scalar" if isinstance(value, np.generic) else "array": len(arrays) - 1}


def from_nodes(node: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Content of a tree; nothing but plain Python and the classes of `CONTAINERS` is built."""
    if isinstance(node, list):
        return [from_nodes(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    [(tag, value)] = node.items()
    if tag == "tuple":
        return tuple(from_nodes(item, arrays) for item in value)
    if tag == "float":
        return float(value)
    if tag == "Status":
        return Status(value)
    if tag == "array":
        return arrays[str(value)]
    if tag == "scalar":
        return arrays[str(value)][()]
    if tag == "symmetric":
        return _unpacked(arrays[str(value)])
    parts = {name: from_nodes(part, arrays) for name, part in value.items()}
    return parts if tag == "dict" else _BY_NAME[tag](**parts)


def _key(key: Any, place: tuple[str, ...]) -> str:
    if type(key) is not str:
        _refuse(place, f"is a dict with the key {key!r}; keys must be strings")
    return f"[{key!r}]"


def _plain_array(value: Any, place: tuple[str, ...]) -> np.ndarray:
    """`value` as an array in C order with a native dtype that a file can hold."""
    is_array = array_api_compat.is_array_api_obj(value) or isinstance(value, np.generic)
    if not is_array or isinstance(value, np.ma.MaskedArray):
        kind = type(value).__qualname__
        _refuse(place, f"is a {kind}; convert it to lists, dicts, strings, numbers or arrays")
    array = to_numpy(value)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        _refuse(place, f"has dtype {array.dtype}; convert it to real numbers, or text to lists")
    return np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")


def _is_symmetric(array: np.ndarray) -> bool:
    """Whether an array holds matrices that equal their transposes bit for bit."""
    if array.ndim < 2 or array.dtype.kind != "f" or not 1 < array.shape[-1] == array.shape[-2]:
        return False
    # Signs of zeros and NaN count, too.
    bits = array.view(f"u{array.dtype.itemsize}")
    return bool(np.array_equal(bits, np.swapaxes(bits, -1, -2)))


def _unpacked(array: np.ndarray) -> np.ndarray:
    """Symmetric matrices from their upper triangles."""
    length = array.shape[-1] if array.ndim else 0
    size = (math.isqrt(8 * length + 1) - 1) // 2
    if packed_size(size) != length:
        raise ValueError(f"{length} numbers are no triangle of a matrix")
    return unpack(array, size)


def _refuse(place: tuple[str, ...], reason: str) -> NoReturn:
    raise TypeError(f"content{''.join(place)} cannot be saved: it {reason}.")
