"""Principal components: orthogonal up to a scale, nothing lost, and signs."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.tables.principal import fit_principal


def correlated(rng: np.random.Generator, n: int, n_columns: int, rank: int) -> np.ndarray:
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n_columns))
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.parametrize(("n", "n_columns"), [(60, 8), (20, 50)], ids=["tall", "wide"])
def test_directions_are_orthogonal_up_to_a_common_scale(
    n: int, n_columns: int, rng: np.random.Generator
) -> None:
    """Components have mean square one over all of them, in falling order, and not correlated."""
    x = correlated(rng, n, n_columns, 6)
    loadings = fit_principal(x, np.ones(n), 4)
    gram = loadings.T @ loadings
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(4), atol=1e-10)
    components = x @ loadings
    assert np.mean(components**2) == pytest.approx(1.0)
    covariance = components.T @ components / n
    variances = np.diag(covariance)
    np.testing.assert_allclose(covariance, np.diag(variances), atol=1e-10)
    values = np.linalg.svd(x)[1][:4] ** 2
    np.testing.assert_allclose(variances / variances[0], values / values[0], rtol=1e-9)
    assert np.all(loadings[np.argmax(np.abs(loadings), axis=0), np.arange(4)] > 0.0)
    np.testing.assert_allclose(fit_principal(-x, np.ones(n), 4), loadings, atol=1e-8)


@pytest.mark.parametrize(("n", "n_columns", "rank"), [(40, 6, 6), (15, 40, 14), (40, 12, 3)])
def test_linear_functions_of_the_columns_are_kept(
    n: int, n_columns: int, rank: int, rng: np.random.Generator
) -> None:
    """By no more components than directions: any linear function of rows is that of components."""
    x = correlated(rng, n, n_columns, rank)
    loadings = fit_principal(x, np.ones(n), n_columns)
    assert loadings.shape == (n_columns, rank)
    values = x @ rng.normal(size=(n_columns, 3))
    coefficients = np.linalg.lstsq(x @ loadings, values, rcond=None)[0]
    np.testing.assert_allclose(x @ loadings @ coefficients, values, atol=1e-8)


@pytest.mark.parametrize("n_columns", [5, 40])
def test_a_weight_of_two_is_a_row_that_comes_twice(
    n_columns: int, rng: np.random.Generator
) -> None:
    """Also where that makes more rows than columns."""
    x, counts = correlated(rng, 30, n_columns, 5), np.arange(30) % 3
    weighted = fit_principal(x, counts.astype(float), 5)
    repeated = fit_principal(np.repeat(x, 2 * counts, axis=0), np.ones(2 * counts.sum()), 5)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


def test_of_many_rows_every_so_many_are_looked_at(rng: np.random.Generator) -> None:
    x, weights = correlated(rng, 4001, 4, 4), rng.uniform(0.5, 2.0, size=4001)
    expected = fit_principal(x[::3], weights[::3], 4)
    np.testing.assert_array_equal(fit_principal(x, weights, 4), expected)


def test_a_table_that_says_nothing_has_a_component_of_zeros() -> None:
    np.testing.assert_array_equal(fit_principal(np.zeros((3, 2)), np.ones(3), 5), [[0.0], [0.0]])
