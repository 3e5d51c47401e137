"""The array helpers against plain NumPy, on NumPy and on JAX arrays."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import joblib
import numpy as np
import pytest
import scipy.special

from bowtienet import _arrays
from bowtienet._arrays import hash_rows
from bowtienet.distributions.gaussian import GaussianRows


@pytest.fixture(params=[np, jnp], ids=["numpy", "jax"])
def library(request) -> Any:
    """Array library under test."""
    return request.param


def symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Symmetric matrices (*shape, K, K) from (*shape, K), not positive definite."""
    x = rng.normal(size=(*shape, shape[-1]))
    return x + np.swapaxes(x, -1, -2)


def test_threads_that_are_asked_for():
    """Below threads, too, where joblib grants one process, with a warning."""

    def found(_: int = 0) -> list[int]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return [_arrays.threads_of(n_jobs) for n_jobs in (None, 3, -1)]

    expected = [1, 3, joblib.cpu_count()]
    assert found() == expected
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(found).result() == expected
    with joblib.parallel_config(n_jobs=4):
        assert found() == [4, *expected[1:]]


@pytest.mark.parametrize(("batch", "size"), [((), 5), ((3,), 1), ((2, 3), 2)])
def test_packing(library, batch, size, rng):
    matrices = symmetric(rng, *batch, size)
    packed = _arrays.pack(library.asarray(matrices))
    assert packed.shape == (*batch, _arrays.packed_size(size))
    rows, columns = np.triu_indices(size)
    np.testing.assert_array_equal(packed, matrices[..., rows, columns])
    unpacked = _arrays.unpack(packed, size)
    assert isinstance(unpacked, type(library.asarray(0.0)[None]))
    np.testing.assert_array_equal(unpacked, matrices)
    x = rng.normal(size=(*batch, size))
    outer = _arrays.pack(x[..., :, None] * x[..., None, :])
    np.testing.assert_array_equal(_arrays.pack_outer(library.asarray(x)), outer)


def test_traces(library, rng):
    x, y = symmetric(rng, 3, 4), symmetric(rng, 3, 4)
    expected = np.trace(x @ y, axis1=-2, axis2=-1)
    a, b = library.asarray(x), library.asarray(y)
    packed = library.sum(_arrays.pack_for_trace(a) * _arrays.pack(b), axis=-1)
    for trace in (_arrays.trace_of_product(a, b), packed):
        np.testing.assert_allclose(trace, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("library", "size", "batch"),
    [
        *[(np, 1, (12,)), (np, 6, (2, 3)), (np, 17, (4, 3)), (np, 70, (2,)), (np, 70, (12,))],
        *[(jnp, 6, (2, 3)), (jnp, 17, (12,))],
    ],
)
def test_inverse_and_log_determinant(library, size, batch, rng):
    """Whole or by halves, matrix by matrix or all at once."""
    root = rng.normal(size=(*batch, size, size))
    matrices = root @ np.swapaxes(root, -1, -2) / size + np.eye(size)
    inverse, log_determinant = _arrays.inverse_and_log_determinant(library.asarray(matrices))
    assert inverse.shape == matrices.shape
    np.testing.assert_allclose(inverse, np.linalg.inv(matrices), rtol=1e-10, atol=1e-12)
    alone = _arrays.log_determinant(library.asarray(matrices))
    for values in (log_determinant, alone):
        expected = np.linalg.slogdet(matrices)[1]
        np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("library", "size"), [(np, 9), (np, 40), (jnp, 9)])
def test_inverse_of_a_badly_scaled_matrix(library, size, rng):
    """Diagonal from 1e-12 to 1e12: no entry of the inverse loses digits (unscaled it loses two).

    Scaling by powers of 2 is exact, so the inverse is known from the well scaled matrix.
    """
    root = rng.normal(size=(30, size, size))
    correlated = root @ np.swapaxes(root, -1, -2) / size + np.eye(size)
    powers = np.exp2(np.round(np.linspace(-20.0, 20.0, size)))
    scale = rng.permuted(np.tile(powers, (30, 1)), axis=-1)
    outer = scale[:, :, None] * scale[:, None, :]
    inverse, log_determinant = map(
        np.asarray, _arrays.inverse_and_log_determinant(library.asarray(correlated * outer))
    )
    expected = np.linalg.inv(correlated)
    deviation = np.sqrt(np.diagonal(expected, axis1=-2, axis2=-1))
    error = (inverse * outer - expected) / (deviation[:, :, None] * deviation[:, None, :])
    np.testing.assert_allclose(error, 0.0, atol=1e-14)
    np.testing.assert_allclose(inverse, np.swapaxes(inverse, -1, -2), rtol=1e-14)
    expected_log = np.linalg.slogdet(correlated)[1] + 2.0 * np.log(scale).sum(axis=-1)
    np.testing.assert_allclose(log_determinant, expected_log, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [3, 20])
def test_a_matrix_without_a_factor_spoils_no_other(size, rng):
    matrices = np.tile(2.0 * np.eye(size), (12, 1, 1))
    matrices[3, 1, 1], matrices[5] = -1.0, np.nan
    well = np.delete(np.arange(12), [3, 5])
    with np.errstate(invalid="ignore"):
        inverse, log_determinant = _arrays.inverse_and_log_determinant(matrices)
        alone = _arrays.log_determinant(matrices)
    for values in (log_determinant, alone):
        np.testing.assert_allclose(values[well], size * np.log(2.0))
        assert np.isnan(values[[3, 5]]).all()
    np.testing.assert_allclose(inverse[well], 0.5 * np.tile(np.eye(size), (10, 1, 1)))
    values, vectors = _arrays.eigenvalues_and_vectors(matrices)
    assert np.isnan(values[5]).all()
    rebuilt = (vectors * values[:, None, :]) @ _arrays.transpose(vectors)
    np.testing.assert_allclose(rebuilt[:5], matrices[:5], atol=1e-12)


def test_shapes_of_matrices(library, rng):
    x = rng.normal(size=(2, 3, 4))
    ones = np.concatenate([np.ones((2, 3, 1)), x], axis=-1)
    np.testing.assert_array_equal(_arrays.with_ones(library.asarray(x)), ones)
    diagonals = _arrays.diagonal_matrix(library.asarray(x[0]))
    np.testing.assert_array_equal(diagonals, [np.diag(row) for row in x[0]])
    np.testing.assert_array_equal(_arrays.diagonal(diagonals), x[0])
    np.testing.assert_array_equal(_arrays.transpose(library.asarray(x)), np.swapaxes(x, 1, 2))
    matrices = symmetric(rng, 2, 3)
    expected = np.pad(matrices, ((0, 0), (1, 0), (1, 0)))
    np.testing.assert_array_equal(_arrays.bordered(library.asarray(matrices)), expected)


def test_namespace_and_special_functions(library):
    x = np.asarray([0.3, 1.0, 2.5, 40.0])
    array = library.asarray(x)
    for arguments in ((array,), (2, array, 1.5), (None, array, array)):
        assert _arrays.namespace(*arguments) is library
    for arguments in ((), (1, 2.5, None), (True,), (np.float64(2.0),)):
        assert _arrays.namespace(*arguments) is np
    for name in ("gammaln", "digamma", "expit"):
        value = _arrays.special(name, array)
        assert type(value) is type(array)
        expected = getattr(scipy.special, name)(x)
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-14)


def test_sum_of_logs_of_many_factors(library, rng):
    x = 4.0 ** rng.uniform(-1.0, 1.0, size=(2, 1700))
    x[1] = 0.25
    total = _arrays.sum_of_logs(library.asarray(x))
    np.testing.assert_allclose(total, np.log(x).sum(axis=-1), rtol=1e-12, atol=1e-11)


def test_map_arrays_through_containers():
    rows = GaussianRows(mean=np.ones(2), covariance=3.0)
    nested = (rows, (None, np.float64(5.0)), True)
    mapped = _arrays.map_arrays(lambda x, y: x + 2.0 * y, nested, nested)
    np.testing.assert_array_equal(mapped[0].mean, [3.0, 3.0])
    assert mapped[0].covariance == 3.0
    assert mapped[1:] == ((None, 15.0), True)


def test_slices_cover_everything_once():
    for count, size in ((10, 3), (9, 3), (2, 5), (0, 4)):
        parts = [np.arange(count)[part] for part in _arrays.slices(count, size)]
        np.testing.assert_array_equal(np.concatenate([[], *parts]), np.arange(count))
        assert all(0 < len(part) <= size for part in parts)


def test_the_sign_of_zero_is_no_value() -> None:
    x = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])
    hashes = hash_rows(x)
    assert hashes[0] == hashes[1] != hashes[2]
    np.testing.assert_array_equal(np.signbit(x[:, 0]), [False, True, False])


def test_hashes_are_of_the_values_in_their_columns(rng: np.random.Generator) -> None:
    """Different for rows that share values or have few different bits; uniform in all bits."""
    x = rng.integers(0, 3, size=(2_000, 8)).astype(float)
    assert len(set(hash_rows(x))) == len(np.unique(x, axis=0))
    assert len(set(hash_rows(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]])))) == 3
    assert hash_rows(x[:5]).tolist() == hash_rows(x)[:5].tolist()
    # A mean of 2,000 bits has a deviation of 0.011: five of them, for 64 bits.
    bits = hash_rows(np.arange(2_000.0)[:, None])[:, None] >> np.arange(64, dtype=np.uint64) & 1
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.056
