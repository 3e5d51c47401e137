"""Principal components: orthogonal up to a scale, nothing lost, signs, and rows held out."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.tables.principal import fit_principal, held_out_components, principal_components


def correlated(rng: np.random.Generator, n: int, n_columns: int, rank: int) -> np.ndarray:
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n_columns))
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.parametrize(("n", "n_columns"), [(60, 8), (20, 50)], ids=["tall", "wide"])
def test_directions_are_orthogonal_up_to_a_common_scale(
    n: int, n_columns: int, rng: np.random.Generator
) -> None:
    """Components have mean square one over all of them, in falling order, and not correlated."""
    x = correlated(rng, n, n_columns, 6)
    principal = fit_principal(x, np.ones(n), 4)
    gram = principal.loadings.T @ principal.loadings
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(4), atol=1e-10)
    components = principal_components(principal, x)
    np.testing.assert_array_equal(components, x @ principal.loadings)
    assert np.mean(components**2) == pytest.approx(1.0)
    covariance = components.T @ components / n
    variances = np.diag(covariance)
    np.testing.assert_allclose(covariance, np.diag(variances), atol=1e-10)
    values = np.linalg.svd(x)[1][:4] ** 2
    np.testing.assert_allclose(variances / variances[0], values / values[0], rtol=1e-9)
    largest = np.argmax(np.abs(principal.loadings), axis=0)
    assert np.all(principal.loadings[largest, np.arange(4)] > 0.0)
    mirrored = fit_principal(-x, np.ones(n), 4).loadings
    np.testing.assert_allclose(mirrored, principal.loadings, atol=1e-8)


def test_tall_and_wide_tables_have_the_same_directions(rng: np.random.Generator) -> None:
    """Whichever of the two products is the smaller: rows of weight zero only fill up."""
    x = correlated(rng, 20, 30, 6)
    padded, weights = np.vstack([x, np.ones((20, 30))]), np.repeat([1.0, 0.0], 20)
    wide, tall = fit_principal(x, np.ones(20), 6), fit_principal(padded, weights, 6)
    np.testing.assert_allclose(wide.loadings, tall.loadings, atol=1e-9)


def test_no_more_components_than_directions(rng: np.random.Generator) -> None:
    for n, n_columns, rank, expected in ((40, 12, 3, 3), (6, 30, 20, 5)):
        principal = fit_principal(correlated(rng, n, n_columns, rank), np.ones(n), 10)
        assert principal.loadings.shape == (n_columns, expected)


def test_a_weight_of_two_is_a_row_that_comes_twice(rng: np.random.Generator) -> None:
    x, counts = correlated(rng, 30, 5, 5), np.arange(30) % 3
    weighted = fit_principal(x, counts.astype(float), 5)
    repeated = fit_principal(np.repeat(x, counts, axis=0), np.ones(counts.sum()), 5)
    np.testing.assert_allclose(weighted.loadings, repeated.loadings, atol=1e-9)


def test_of_many_rows_every_so_many_are_looked_at(rng: np.random.Generator) -> None:
    x, weights = correlated(rng, 4001, 4, 4), rng.uniform(0.5, 2.0, size=4001)
    sampled = fit_principal(x, weights, 4)
    expected = fit_principal(x[::3], weights[::3], 4)
    np.testing.assert_array_equal(sampled.loadings, expected.loadings)


@pytest.mark.parametrize(("n", "n_columns", "rank"), [(40, 6, 6), (15, 40, 20), (40, 12, 3)])
def test_linear_functions_of_the_columns_are_kept(
    n: int, n_columns: int, rank: int, rng: np.random.Generator
) -> None:
    """With as many components as directions: any linear function of rows is that of components."""
    x = correlated(rng, n, n_columns, rank)
    components = principal_components(fit_principal(x, np.ones(n), n_columns), x)
    values = x @ rng.normal(size=(n_columns, 3))
    coefficients = np.linalg.lstsq(components, values, rcond=None)[0]
    np.testing.assert_allclose(components @ coefficients, values, atol=1e-8)


@pytest.mark.parametrize(("n", "n_columns"), [(40, 6), (15, 60)], ids=["tall", "wide"])
def test_rows_held_out_are_seen_through_the_rows_of_the_other_folds(
    n: int, n_columns: int, rng: np.random.Generator
) -> None:
    """Their projection onto those: all of a row where there are more rows than columns."""
    x = correlated(rng, n, n_columns, n_columns)
    principal, folds = fit_principal(x, np.ones(n), 5), [slice(0, 6), slice(6, 11)]
    components = held_out_components(principal, x, folds)
    plain = principal_components(principal, x)
    expected = plain.copy()
    for fold in folds:
        others = np.delete(x, fold, axis=0)
        expected[fold] = x[fold] @ np.linalg.pinv(others) @ others @ principal.loadings
    np.testing.assert_allclose(components, expected, atol=1e-8)
    np.testing.assert_array_equal(components[11:], plain[11:])
    assert np.allclose(components[:11], plain[:11], atol=1e-6) == (n > n_columns)


def test_a_table_that_says_nothing_has_a_component_of_zeros() -> None:
    principal = fit_principal(np.zeros((3, 2)), np.ones(3), 5)
    np.testing.assert_array_equal(principal_components(principal, np.zeros((4, 2))), 0.0)
