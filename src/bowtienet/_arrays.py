"""The linear algebra that everything else uses, in one place.

Functions run on NumPy arrays; those that the evidence lower bound is made of run on JAX arrays too,
so that tests can differentiate it. Symmetric matrices that are summed over many rows are kept
packed: the upper triangle, row by row, K(K+1)/2 numbers instead of K².
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy.special
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from scipy.linalg.lapack import dtrtri
from threadpoolctl import ThreadpoolController

Array = Any
"""A NumPy array, or a JAX array where tests differentiate."""

_NOT_JAX = (np.ndarray, np.generic, int, float, type(None))
_FEW = 8
"""Up to this many triangular matrices are inverted one by one; see `_inverse_lower`."""


class _Limit:
    """The one limit of the process, and how many hold it."""

    lock = threading.Lock()
    n_holders = 0
    original: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the linear algebra library to one thread.

    Their number belongs to the process: of holders at the same time the first sets it and the last
    puts it back, or what one found would be the other's limit.
    """
    with _Limit.lock:
        if not _Limit.n_holders:
            _Limit.original = _controller().limit(limits=1, user_api="blas")
        _Limit.n_holders += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.n_holders -= 1
            if not _Limit.n_holders:
                _Limit.original.restore_original_limits()


def threads_of(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for; None leaves it to the context of joblib."""
    asked = get_active_backend()[1] if n_jobs is None else n_jobs
    # Of processes joblib grants but one to threads and daemons, and warns.
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(asked))


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """The libraries of the process, which take milliseconds to find."""
    return ThreadpoolController()


def namespace(*arrays: Array) -> Any:
    """NumPy, or jax.numpy if one of the arguments is a JAX array."""
    for a in arrays:
        if not isinstance(a, _NOT_JAX):
            return a.__array_namespace__()
    return np


def special(name: str, x: Array) -> Array:
    """Special function `name` (gammaln, digamma, expit, ...) of `x`."""
    home = scipy.special if namespace(x) is np else import_module("jax.scipy.special")
    return getattr(home, name)(x)


def is_number(value: Any) -> bool:
    """Whether `value` is a Python or NumPy number (or a NumPy array without axes)."""
    return isinstance(value, (int, float, np.generic)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    )


def as_arrays(*values: Any) -> list[Array]:
    """The arguments as arrays of one library."""
    xp = namespace(*values)
    return [xp.asarray(value, dtype=xp.float64) for value in values]


def map_arrays(function: Callable[..., Any], *containers: Any) -> Any:
    """`function` of the arrays at the same place of equal containers.

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


def hash_rows(values: Array) -> Array:
    """A number for each row (n, E) that depends on its values alone."""
    # Adding zero makes -0.0 and 0.0 one value.
    bits = np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)
    return hash_columns(list(bits.T), len(values))


def hash_columns(columns: Iterable[Array], n_rows: int) -> Array:
    """A number for each of n rows of unsigned whole numbers, column by column."""
    state = np.full(n_rows, 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in columns:
        # The finaliser of SplitMix64, a column after the other.
        state = (state ^ column) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def with_ones(x: Array) -> Array:
    """(1, x): a leading column of ones before the last axis of `x`."""
    xp = namespace(x)
    return xp.concat([xp.ones((*x.shape[:-1], 1), dtype=x.dtype), x], axis=-1)


def bordered(x: Array) -> Array:
    """[0 0; 0 x] (..., K+1, K+1): a row and a column for the constant before (..., K, K)."""
    xp = namespace(x)
    x = xp.concat([xp.zeros_like(x[..., :1, :]), x], axis=-2)
    return xp.concat([xp.zeros_like(x[..., :, :1]), x], axis=-1)


def diagonal_matrix(x: Array) -> Array:
    """Matrices (..., K, K) with the vectors `x` (..., K) on their diagonals."""
    return x[..., None] * namespace(x).eye(x.shape[-1])


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
def _packing(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Packed position of every entry, and 1 for packed entries on the diagonal, 2 off it."""
    rows, columns = np.triu_indices(size)
    position = np.empty((size, size), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(rows.size)
    return position.ravel(), np.where(rows == columns, 1.0, 2.0)


def pack(x: Array) -> Array:
    """Packed upper triangles (..., K(K+1)/2) of the symmetric matrices `x` (..., K, K)."""
    return namespace(x).concat([x[..., i, i:] for i in range(x.shape[-1])], axis=-1)


def unpack(x: Array, size: int) -> Array:
    """Symmetric matrices (..., size, size) from their packed form; inverse of `pack`."""
    xp = namespace(x)
    return xp.reshape(xp.take(x, _packing(size)[0], axis=-1), (*x.shape[:-1], size, size))


def pack_outer(x: Array) -> Array:
    """Packed outer products x x' (..., K(K+1)/2) of the vectors `x` (..., K)."""
    size = x.shape[-1]
    if not isinstance(x, np.ndarray):
        products = [x[..., i : i + 1] * x[..., i:] for i in range(size)]
        return namespace(x).concat(products, axis=-1)
    packed = np.empty((*x.shape[:-1], packed_size(size)), dtype=x.dtype)
    end = 0
    for i in range(size):
        start, end = end, end + size - i
        np.multiply(x[..., i : i + 1], x[..., i:], out=packed[..., start:end])
    return packed


def pack_for_trace(x: Array) -> Array:
    """Packed form whose dot product with a packed symmetric P is Tr(x P): off-diagonals doubled."""
    return pack(x) * _packing(x.shape[-1])[1]


def trace_of_product(x: Array, y: Array) -> Array:
    """Tr(x y) of symmetric matrices (..., K, K)."""
    return namespace(x, y).sum(x * y, axis=(-2, -1))


def inverse_and_log_determinant(x: Array) -> tuple[Array, Array]:
    """Symmetric inverse and log determinant of positive definite matrices (..., K, K).

    With R the inverse of the Cholesky factor, x^{-1} = R'R and log|x| = -2 Σ log diag R. Like the
    Cholesky factor, R loses no digits where the entries of x differ by many orders of magnitude (a
    shrunk weight next to a free one). Both are NaN where there is no Cholesky factor.
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
    """l (..., K) and U (..., K, K) with x = U diag(l) U'; NaN where there are none."""
    try:
        values, vectors = namespace(x).linalg.eigh(x)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return np.full_like(x[0, :], np.nan), np.full_like(x, np.nan)
        values, vectors = map(
            np.stack, zip(*(eigenvalues_and_vectors(part) for part in x), strict=True)
        )
    return values, vectors


def sum_of_logs(x: Array) -> Array:
    """Σ log x over the last axis, for entries in [¼, 4]: few logarithms of many products."""
    xp = namespace(x)
    # The product of 500 such factors is within floating point.
    parts = [xp.log(xp.prod(x[..., part], axis=-1)) for part in slices(x.shape[-1], 500)]
    return sum(parts[1:], parts[0])


def _inverse_cholesky(x: Array) -> Array:
    """Inverse R of the lower Cholesky factor, by halves."""
    xp = namespace(x)
    if x.shape[-1] <= _leaf(x):
        # Scaled to a unit diagonal: a library's inverse may pivot, and bad scales mislead it.
        scale = 1.0 / xp.sqrt(diagonal(x))
        scaled = x * scale[..., :, None] * scale[..., None, :]
        return _inverse_lower(_cholesky(scaled)) * scale[..., None, :]
    first, below, second = _inverse_cholesky_parts(x)
    upper = xp.concat([first, xp.zeros_like(transpose(below))], axis=-1)
    return xp.concat([upper, xp.concat([below, second], axis=-1)], axis=-2)


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
    return 16 if math.prod(x.shape[:-2]) > _FEW else 64


def _inverse_lower(x: Array) -> Array:
    """Inverse R of lower triangular matrices (..., K, K), by forward substitution.

        R_ii = 1 / x_ii,   R_i = -R_ii Σ_{j<i} x_ij R_j

    NumPy's inverse is a general one that treats matrix after matrix; here every step is done for
    many small matrices at once, which stand along the last axis for it.
    """
    if not isinstance(x, np.ndarray):
        return namespace(x).linalg.inv(x)
    size, count = x.shape[-1], math.prod(x.shape[:-2])
    flat = np.reshape(x, (count, size, size))
    if count <= _FEW:
        solved = (dtrtri(matrix, lower=1) for matrix in flat)
        inverses = [np.full_like(root, np.nan) if failed else root for root, failed in solved]
        return np.reshape(inverses, x.shape)
    lower = np.ascontiguousarray(np.moveaxis(flat, 0, -1))
    root = np.zeros_like(lower)
    inverse = 1.0 / lower[range(size), range(size)]
    root[range(size), range(size)] = inverse
    for i in range(1, size):
        sums = np.einsum("jb,jkb->kb", lower[i, :i], root[:i, :i])
        np.multiply(sums, -inverse[i], out=root[i, :i])
    return np.reshape(np.ascontiguousarray(np.moveaxis(root, -1, 0)), x.shape)


def _cholesky(x: Array) -> Array:
    """Lower factor, or NaN where the matrices are not positive definite.

    The engine treats a bound that is not finite as a status, so nothing is raised.
    """
    try:
        return namespace(x).linalg.cholesky(x)
    except np.linalg.LinAlgError:
        # One by one: a matrix must not suffer from those next to it.
        return np.full_like(x, np.nan) if x.ndim == 2 else np.stack([_cholesky(part) for part in x])
