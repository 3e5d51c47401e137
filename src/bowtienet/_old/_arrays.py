"""The array namespace and the few linear-algebra helpers that everything else uses.

The core is written against the array API, so the same functions run on NumPy, torch and JAX
arrays; autodiff tests hand it JAX arrays. Symmetric matrices that are summed over many rows are
kept packed: the upper triangle, row by row, K(K+1)/2 numbers instead of K².
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
from scipy.linalg.lapack import dtrtri, strtri

Array = Any
"""An array of any library that follows the array API."""

_NUMPY_OR_NUMBER = (np.ndarray, np.generic, int, float, type(None))
_LEAF = 16
"""Matrices up to this size are factorised by the library in one call; see `_leaf`."""
_FEW = 8
"""So few triangular matrices are inverted one by one; see `_inverse_lower`."""
_FACTORS = 500
"""So many factors of at least ¼ and at most 4 have a product within floating point."""
_HEAVIEST = 1e12
"""Largest weighted sum of squares of `bounded_weights`."""
_SPECIAL_MODULES = {
    "torch": "torch.special",
    "jax": "jax.scipy.special",
    "bowtienet": "bowtienet._old.onnx_export.operators",
}


def namespace(*arrays: Array) -> Any:
    """Array namespace shared by the arguments that are arrays; Python numbers are passed over."""
    for a in arrays:
        # The look-up below costs more than a small NumPy operation: spare it where it is clear.
        if not isinstance(a, _NUMPY_OR_NUMBER):
            break
    else:
        return array_api_compat.numpy
    present = [a for a in arrays if not isinstance(a, (int, float)) and a is not None]
    return array_api_compat.array_namespace(*present)


def special(name: str, x: Array) -> Array:
    """Special function `name` (gammaln, digamma, expit, ...) of `x` in the library `x` lives in."""
    xp = namespace(x)
    library = xp.__name__.removeprefix("array_api_compat.").split(".")[0]
    if library in _SPECIAL_MODULES:
        return getattr(importlib.import_module(_SPECIAL_MODULES[library]), name)(x)
    function = getattr(importlib.import_module("scipy.special"), name)
    if library == "numpy":
        return function(x)
    return xp.asarray(function(to_numpy(x)))


def to_numpy(x: Array) -> np.ndarray:
    """`x` as a NumPy array on the host (a copy only where the library needs one)."""
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu()
    return np.asarray(x)


def like(reference: Array, value: Any) -> Array:
    """`value` as an array with the library, dtype and device of `reference`."""
    xp = namespace(reference)
    if array_api_compat.is_array_api_obj(value):
        value = to_numpy(value)
        if not value.flags.writeable and array_api_compat.is_torch_array(reference):
            value = value.copy()  # torch warns of memory that it must not write to
    return xp.asarray(value, dtype=reference.dtype, device=array_api_compat.device(reference))


def take(x: Array, index: np.ndarray, axis: int = 0) -> Array:
    """Entries of `x` along an axis, at indices that live on the host."""
    xp = namespace(x)
    return xp.take(x, xp.asarray(index, device=array_api_compat.device(x)), axis=axis)


def where_needed(
    needed: Array,
    function: Callable[..., tuple[Array, ...]],
    arguments: tuple[Array, ...],
    otherwise: tuple[Array, ...],
) -> tuple[Array, ...]:
    """`function(*arguments)` where `needed`, the fresh arrays `otherwise` elsewhere.

    Libraries whose arrays can be written to work on the needed entries alone.
    """
    xp = namespace(needed)
    if not (array_api_compat.is_numpy_array(needed) or array_api_compat.is_torch_array(needed)):
        found = function(*arguments)
        return tuple(xp.where(needed, a, b) for a, b in zip(found, otherwise, strict=True))
    for target, values in zip(otherwise, function(*(x[needed] for x in arguments)), strict=True):
        target[needed] = values
    return otherwise


def is_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number (or a NumPy array without axes)."""
    return isinstance(value, (int, float, np.generic)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def as_arrays(*values: Any) -> list[Array]:
    """The arguments as arrays of one library; numbers take the dtype of the arrays beside them."""
    arrays = [value for value in values if not is_number(value)]
    if not arrays:
        return [np.asarray(value, dtype=np.float64) for value in values]
    return [like(arrays[0], float(value)) if is_number(value) else value for value in values]


def map_arrays(function: Callable[..., Any], *containers: Any) -> Any:
    """`function` of the arrays that stand at the same place of equal containers.

    Containers are dataclasses and tuples, nested in any way; Python numbers and booleans, and None,
    stay.
    """
    first = containers[0]
    if is_dataclass(first):
        names = [field.name for field in fields(first)]
        parts = ([getattr(container, name) for container in containers] for name in names)
        values = [map_arrays(function, *part) for part in parts]
        build: Callable[..., Any] = type(first)
        return build(**dict(zip(names, values, strict=True)))
    if isinstance(first, tuple):
        return tuple(map_arrays(function, *parts) for parts in zip(*containers, strict=True))
    # A NumPy number is an instance of float, but an array to us: compare the type itself.
    if first is None or type(first) in (int, float, bool):
        return first
    return function(*containers)


def slices(count: int, size: int) -> list[slice]:
    """Consecutive pieces of at most `size` of `count` items."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def with_ones(x: Array) -> Array:
    """(1, x): a leading column of ones before the last axis of `x`."""
    xp = namespace(x)
    ones = xp.ones((*x.shape[:-1], 1), dtype=x.dtype, device=array_api_compat.device(x))
    return xp.concat([ones, x], axis=-1)


def bordered(x: Array) -> Array:
    """[0 0; 0 x] (..., K+1, K+1): a row and a column for the constant before (..., K, K)."""
    xp = namespace(x)
    x = xp.concat([xp.zeros_like(x[..., :1, :]), x], axis=-2)
    return xp.concat([xp.zeros_like(x[..., :, :1]), x], axis=-1)


def diagonal_matrix(x: Array) -> Array:
    """Matrices (..., K, K) with the vectors `x` (..., K) on their diagonals."""
    xp = namespace(x)
    identity = xp.eye(x.shape[-1], dtype=x.dtype, device=array_api_compat.device(x))
    return x[..., None] * identity


def diagonal(x: Array) -> Array:
    """Diagonals (..., K) of the matrices `x` (..., K, K)."""
    return namespace(x).linalg.diagonal(x)


def transpose(x: Array) -> Array:
    """Last two axes exchanged."""
    return namespace(x).matrix_transpose(x)


def packed_size(size: int) -> int:
    """Length of a packed symmetric matrix with `size` rows."""
    return size * (size + 1) // 2


@lru_cache(maxsize=64)
def _packing(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the packed entries, and the packed position of every entry."""
    rows, columns = np.triu_indices(size)
    position = np.empty((size, size), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    return rows, columns, position.ravel()


@lru_cache(maxsize=64)
def _trace_factors(size: int) -> np.ndarray:
    """1 for a packed entry on the diagonal, 2 for one off it."""
    rows, columns, _ = _packing(size)
    return np.where(rows == columns, 1.0, 2.0)


def pack(x: Array) -> Array:
    """Packed upper triangles (..., K(K+1)/2) of the symmetric matrices `x` (..., K, K)."""
    xp = namespace(x)
    return xp.concat([x[..., i, i:] for i in range(x.shape[-1])], axis=-1)


def unpack(x: Array, size: int) -> Array:
    """Symmetric matrices (..., size, size) from their packed form; inverse of `pack`."""
    return namespace(x).reshape(take(x, _packing(size)[2], axis=-1), (*x.shape[:-1], size, size))


def pack_outer(x: Array) -> Array:
    """Packed outer products x x' (..., K(K+1)/2) of the vectors `x` (..., K)."""
    size = x.shape[-1]
    if not array_api_compat.is_numpy_array(x):
        xp = namespace(x)
        return xp.concat([x[..., i : i + 1] * x[..., i:] for i in range(size)], axis=-1)
    packed = np.empty((*x.shape[:-1], packed_size(size)), dtype=x.dtype)
    end = 0
    for i in range(size):
        start, end = end, end + size - i
        np.multiply(x[..., i : i + 1], x[..., i:], out=packed[..., start:end])
    return packed


def pack_for_trace(x: Array) -> Array:
    """Packed form whose dot product with a packed symmetric P is Tr(x P): off-diagonals doubled."""
    return pack(x) * like(x, _trace_factors(x.shape[-1]))


def trace_of_product(x: Array, y: Array) -> Array:
    """Tr(x y) of symmetric matrices (..., K, K)."""
    return namespace(x, y).sum(x * y, axis=(-2, -1))


def inverse_and_log_determinant(x: Array) -> tuple[Array, Array]:
    """Symmetric inverse and log determinant of positive definite matrices (..., K, K).

    With R the inverse of the Cholesky factor, x^{-1} = R'R and log|x| = -2 Σ log diag R. Like the
    Cholesky factor, R loses no digits where the entries of x differ by many orders of magnitude (a
    shrunk weight beside a free one).
    """
    xp = namespace(x)
    if x.shape[-1] <= _leaf(x):
        root = _inverse_cholesky(x)
        return transpose(root) @ root, -2.0 * xp.sum(xp.log(diagonal(root)), axis=-1)
    first, below, second = _inverse_cholesky_parts(x)
    corner = transpose(below) @ second
    upper = [transpose(first) @ first + transpose(below) @ below, corner]
    lower = [transpose(corner), transpose(second) @ second]
    inverse = xp.concat([xp.concat(upper, axis=-1), xp.concat(lower, axis=-1)], axis=-2)
    roots = xp.concat([diagonal(first), diagonal(second)], axis=-1)
    return inverse, -2.0 * xp.sum(xp.log(roots), axis=-1)


def _inverse_cholesky(x: Array) -> Array:
    """Inverse R of the lower Cholesky factor, by halves."""
    xp = namespace(x)
    if x.shape[-1] <= _leaf(x):
        # Scaled to a unit diagonal: the library's inverse pivots, and bad scales would mislead it.
        scale = 1.0 / xp.sqrt(diagonal(x))
        scaled = x * scale[..., :, None] * scale[..., None, :]
        return _inverse_lower(_cholesky(scaled)) * scale[..., None, :]
    first, below, second = _inverse_cholesky_parts(x)
    upper = xp.concat([first, xp.zeros_like(transpose(below))], axis=-1)
    return xp.concat([upper, xp.concat([below, second], axis=-1)], axis=-2)


def _inverse_lower(x: Array) -> Array:
    """Inverse R of lower triangular matrices (..., K, K), by forward substitution.

        R_ii = 1 / x_ii,   R_i = -R_ii Σ_{j<i} x_ij R_j

    NumPy's inverse is a general one that treats matrix after matrix; here every step is done for
    many small matrices at once, which stand along the last axis for it.
    """
    if not array_api_compat.is_numpy_array(x):
        return namespace(x).linalg.inv(x)
    size, count = x.shape[-1], math.prod(x.shape[:-2])
    flat = np.reshape(x, (count, size, size))
    if count <= _FEW:
        return np.reshape([_inverse_of_one(matrix) for matrix in flat], x.shape)
    lower = np.ascontiguousarray(np.moveaxis(flat, 0, -1))
    root = np.zeros_like(lower)
    inverse = 1.0 / lower[range(size), range(size)]
    root[range(size), range(size)] = inverse
    for i in range(1, size):
        sums = np.einsum("jb,jkb->kb", lower[i, :i], root[:i, :i])
        np.multiply(sums, -inverse[i], out=root[i, :i])
    return np.reshape(np.ascontiguousarray(np.moveaxis(root, -1, 0)), x.shape)


def _inverse_of_one(x: np.ndarray) -> np.ndarray:
    """Inverse of one lower triangular matrix; NaN where there is none."""
    routine = dtrtri if x.dtype == np.float64 else strtri
    found, failed = routine(x, lower=1)
    return np.full_like(x, np.nan) if failed else found


def _inverse_cholesky_parts(x: Array) -> tuple[Array, Array, Array]:
    """R_A, -R_S B'R_A'R_A and R_S of x = [A B; B' C] with S = C - B'R_A'R_A B.

    They are the blocks of R. Nearly all the work is in matrix products, which libraries batch
    well; their triangular solves of many small matrices are several times slower.
    """
    half = x.shape[-1] // 2
    first = _inverse_cholesky(x[..., :half, :half])
    product = first @ x[..., :half, half:]
    second = _inverse_cholesky(x[..., half:, half:] - transpose(product) @ product)
    return first, -(second @ (transpose(product) @ first)), second


def _leaf(x: Array) -> int:
    """Size up to which the library factorises in one call: larger for a few matrices alone."""
    return _LEAF if math.prod(x.shape[:-2]) > _FEW else 4 * _LEAF


def log_determinant(x: Array) -> Array:
    """Log determinants (...) of positive definite matrices (..., K, K).

    As in `inverse_and_log_determinant`, the Cholesky factor is that of matrices with a unit
    diagonal; a third of the work without the inverse.
    """
    xp = namespace(x)
    scale = 1.0 / xp.sqrt(diagonal(x))
    factor = _cholesky(x * scale[..., :, None] * scale[..., None, :])
    return 2.0 * xp.sum(xp.log(diagonal(factor)) - xp.log(scale), axis=-1)


def eigenvalues_and_vectors(x: Array) -> tuple[Array, Array]:
    """l (..., K) and U (..., K, K) with x = U diag(l) U'; NaN where there are none, as below."""
    xp = namespace(x)
    try:
        found = xp.linalg.eigh(x)
        return found[0], found[1]
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        if x.ndim == 2:
            return xp.full_like(x[0, :], float("nan")), xp.full_like(x, float("nan"))
        parts = [eigenvalues_and_vectors(x[i, ...]) for i in range(x.shape[0])]
        values, vectors = zip(*parts, strict=True)
        return xp.stack(values, axis=0), xp.stack(vectors, axis=0)


def bounded_weights(weights: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Weights (n,) of the rows x of a design (n, K), such that Σ w x x' drowns no penalty of one.

    No row has more than its share of a sum of squares of 1e12, beside which a penalty keeps some
    digits and the equations of a ridge regression have a solution.
    """
    squares = np.sum(design**2, axis=1)
    largest = np.divide(
        _HEAVIEST / len(design), squares, out=np.full_like(squares, np.inf), where=squares > 0.0
    )
    return np.minimum(weights, largest)


def sum_of_logs(x: Array) -> Array:
    """Σ log x over the last axis, for entries in [¼, 4]: few logarithms of many products."""
    xp = namespace(x)
    parts = [xp.log(xp.prod(x[..., part], axis=-1)) for part in slices(x.shape[-1], _FACTORS)]
    return sum(parts[1:], parts[0])


def _cholesky(x: Array) -> Array:
    """Lower factor, or NaN where the matrices are not positive definite.

    Libraries disagree: some raise, some return NaN. The engine treats a bound that is not finite as
    a status, so NaN it is.
    """
    xp = namespace(x)
    try:
        return xp.linalg.cholesky(x)
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        if x.ndim == 2:
            return xp.full_like(x, float("nan"))
        # One by one: a matrix must not suffer from those beside it.
        return xp.stack([_cholesky(x[i, ...]) for i in range(x.shape[0])], axis=0)
