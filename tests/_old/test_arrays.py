"""The array helpers against plain NumPy, on every array library at hand."""

from __future__ import annotations

from typing import Any

import array_api_compat
import array_api_strict
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from bowtienet._old import _arrays

LIBRARIES: dict[str, Any] = {"numpy": np, "jax": jnp, "array_api_strict": array_api_strict}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    """Array library under test."""
    return LIBRARIES[request.param]


def symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Symmetric matrices (*shape, K, K) from (*shape, K), not positive definite."""
    x = rng.normal(size=(*shape, shape[-1]))
    return x + np.swapaxes(x, -1, -2)


def same_library(x: Any, library: Any) -> bool:
    return array_api_compat.array_namespace(x) is array_api_compat.array_namespace(
        library.asarray(0.0)
    )


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_pack_and_unpack(
    library: Any, batch: tuple[int, ...], size: int, rng: np.random.Generator
) -> None:
    matrices = symmetric(rng, *batch, size)
    packed = _arrays.pack(library.asarray(matrices))
    assert packed.shape == (*batch, _arrays.packed_size(size))
    rows, columns = np.triu_indices(size)
    np.testing.assert_array_equal(_arrays.to_numpy(packed), matrices[..., rows, columns])
    restored = _arrays.unpack(packed, size)
    assert same_library(restored, library)
    np.testing.assert_array_equal(_arrays.to_numpy(restored), matrices)


def test_packed_outer_product(library: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4))
    packed = _arrays.to_numpy(_arrays.pack_outer(library.asarray(x)))
    np.testing.assert_array_equal(packed, _arrays.pack(x[:, :, None] * x[:, None, :]))


def test_traces(library: Any, rng: np.random.Generator) -> None:
    x, y = symmetric(rng, 3, 4), symmetric(rng, 3, 4)
    expected = np.trace(x @ y, axis1=-2, axis2=-1)
    a, b = library.asarray(x), library.asarray(y)
    full = _arrays.to_numpy(_arrays.trace_of_product(a, b))
    np.testing.assert_allclose(full, expected, rtol=1e-12, atol=1e-12)
    packed = _arrays.to_numpy(_arrays.pack_for_trace(a)) * _arrays.to_numpy(_arrays.pack(b))
    np.testing.assert_allclose(packed.sum(axis=-1), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 6])
def test_inverse_and_log_determinant(library: Any, size: int, rng: np.random.Generator) -> None:
    root = rng.normal(size=(2, 3, size, size))
    matrices = root @ np.swapaxes(root, -1, -2) + np.eye(size)
    inverse, log_determinant = _arrays.inverse_and_log_determinant(library.asarray(matrices))
    assert inverse.shape == (2, 3, size, size)
    assert log_determinant.shape == (2, 3)
    np.testing.assert_allclose(
        _arrays.to_numpy(inverse), np.linalg.inv(matrices), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        _arrays.to_numpy(log_determinant), np.linalg.slogdet(matrices)[1], rtol=1e-10, atol=1e-12
    )


def test_inverse_of_a_badly_scaled_matrix(library: Any, rng: np.random.Generator) -> None:
    """Diagonal from 1e-12 to 1e12: no entry of the inverse loses digits (unscaled it loses two).

    Scaling by powers of 2 is exact, so the inverse is known from the well scaled matrix.
    """
    root = rng.normal(size=(30, 9, 9))
    correlated = root @ np.swapaxes(root, -1, -2) / 9.0 + np.eye(9)
    scale = rng.permuted(np.tile(np.exp2(np.arange(-20.0, 21.0, 5.0)), (30, 1)), axis=-1)
    outer = scale[:, :, None] * scale[:, None, :]
    inverse, log_determinant = _arrays.inverse_and_log_determinant(
        library.asarray(correlated * outer)
    )
    inverse, log_determinant = _arrays.to_numpy(inverse), _arrays.to_numpy(log_determinant)
    expected = np.linalg.inv(correlated)
    deviation = np.sqrt(np.diagonal(expected, axis1=-2, axis2=-1))
    error = (inverse * outer - expected) / (deviation[:, :, None] * deviation[:, None, :])
    np.testing.assert_allclose(error, 0.0, atol=1e-14)
    np.testing.assert_allclose(inverse, np.swapaxes(inverse, -1, -2), rtol=1e-14)
    expected_log = np.linalg.slogdet(correlated)[1] + 2.0 * np.log(scale).sum(axis=-1)
    np.testing.assert_allclose(log_determinant, expected_log, rtol=1e-12, atol=1e-12)


def test_with_ones(library: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 4))
    result = _arrays.with_ones(library.asarray(x))
    assert same_library(result, library)
    np.testing.assert_array_equal(
        _arrays.to_numpy(result), np.concatenate([np.ones((2, 3, 1)), x], axis=-1)
    )


def test_diagonals(library: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3))
    matrices = _arrays.diagonal_matrix(library.asarray(x))
    np.testing.assert_array_equal(_arrays.to_numpy(matrices), [np.diag(row) for row in x])
    np.testing.assert_array_equal(_arrays.to_numpy(_arrays.diagonal(matrices)), x)


def test_namespace(library: Any) -> None:
    array = library.asarray([1.0, 2.0])
    expected = array_api_compat.array_namespace(array)
    for arguments in ((array,), (2, array, 1.5), (None, array, array)):
        assert _arrays.namespace(*arguments) is expected


@pytest.mark.parametrize("arguments", [(), (1.0,), (1, 2.5, None), (True,), (np.float64(2.0),)])
def test_namespace_of_numbers_is_numpy(arguments: tuple[Any, ...]) -> None:
    assert _arrays.namespace(*arguments) is array_api_compat.numpy


@pytest.mark.parametrize("name", ["gammaln", "digamma", "expit"])
def test_special_functions(library: Any, name: str) -> None:
    x = np.asarray([0.3, 1.0, 2.5, 40.0])
    result = _arrays.special(name, library.asarray(x))
    assert same_library(result, library)
    expected = getattr(scipy.special, name)(x)
    np.testing.assert_allclose(_arrays.to_numpy(result), expected, rtol=1e-13, atol=1e-14)


def test_like(library: Any) -> None:
    reference = library.asarray([1.0, 2.0], dtype=library.float32)
    for value in (3.5, [3.5, 4.5], np.asarray([3.5, 4.5]), library.asarray([3, 4]), jnp.ones(2)):
        result = _arrays.like(reference, value)
        assert same_library(result, library)
        assert result.dtype == library.float32
        np.testing.assert_array_equal(_arrays.to_numpy(result), np.asarray(_arrays.to_numpy(value)))
