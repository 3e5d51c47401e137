"""Views: pieces against loops, directions, whose they are, and that new rows see the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.tables.views import (
    FEW_VALUES,
    MANY_BINS,
    MANY_COLUMNS,
    ROWS_PER_BIN,
    View,
    fit_principal,
    learn_gates,
    learn_pieces,
    learn_view,
    pieces,
    see,
)

N_BINS = 16
RNG = np.random.default_rng(0)
N_ROWS = 800
COLUMNS = {
    "normal": RNG.normal(size=N_ROWS),
    "two values": np.where(np.arange(N_ROWS) % 3 == 0, 1.4, -0.7),
    "heavy": RNG.standard_t(1.5, size=N_ROWS),
    "constant": np.zeros(N_ROWS),
    "few": RNG.integers(0, 4, size=N_ROWS) - 1.5,
    "tied": np.where(np.arange(N_ROWS) < 300, 0.25, RNG.normal(size=N_ROWS)),
}
NAMES = list(COLUMNS)
X = np.column_stack(list(COLUMNS.values()))


def fitted(inputs: np.ndarray = X, weights: Any = None, n_bins: int = N_BINS) -> View:
    weights = np.ones(len(inputs)) if weights is None else weights
    return learn_pieces(inputs, weights, np.arange(inputs.shape[1]), n_bins)


def edges(view: View, column: int = 0) -> np.ndarray:
    index = np.flatnonzero(view.column == column)
    np.testing.assert_array_equal(view.low[index[1:]], view.high[index[:-1]])
    return np.array([view.low[index[0]], *view.high[index]])


def quantiles(x: np.ndarray, count: int) -> np.ndarray:
    return np.quantile(x, np.linspace(0.0, 1.0, count), method="averaged_inverted_cdf")


def test_pieces_against_loops(rng: np.random.Generator) -> None:
    """Piece by piece, as the module's docstring has it, also far outside."""
    view = fitted()
    for inputs in (X, 50.0 * rng.normal(size=(20, X.shape[1]))):
        values = pieces(view, inputs)
        for j, column in enumerate(view.column):
            t = (inputs[:, column] - view.low[j]) / (view.high[j] - view.low[j])
            mates = np.flatnonzero(view.column == column)
            t = t if j == mates[0] else np.maximum(t, 0.0)
            t = t if j == mates[-1] else np.minimum(t, 1.0)
            expected = (t - view.center[j]) / view.scale[j]
            np.testing.assert_allclose(values[:, j], expected, rtol=1e-12)


def test_components_are_centred_and_on_a_common_scale(rng: np.random.Generator) -> None:
    """By the weights of the rows: their root mean square is a half, and steps of bins are alike."""
    weights = rng.uniform(0.5, 3.0, size=N_ROWS)
    share = weights / weights.sum()
    view = fitted(weights=weights)
    values = pieces(view, X)
    np.testing.assert_allclose(share @ values, 0.0, atol=1e-12)
    assert np.mean(share @ values**2) == pytest.approx(0.25, rel=1e-12)
    assert np.ptp(view.scale) == 0.0
    np.testing.assert_array_equal(values[:, view.column == NAMES.index("constant")], 0.0)


def test_a_straight_line_is_a_sum_of_components() -> None:
    """Σ_j t_j (e_j - e_{j-1}) = x - e_0, inside the data and far outside."""
    view = fitted()
    inputs = np.vstack([X, 1e3 * X, [[-1e6] * X.shape[1], [1e6] * X.shape[1]]])
    raw = view.center + view.scale * pieces(view, inputs)
    widths = view.high - view.low
    for column in range(X.shape[1]):
        mine = view.column == column
        expected = inputs[:, column] - view.low[mine][0]
        np.testing.assert_allclose(raw[:, mine] @ widths[mine], expected, rtol=1e-9, atol=1e-9)


def test_bins_hold_equally_many_rows(rng: np.random.Generator) -> None:
    x = rng.gamma(2.0, size=(400, 1))
    ends = edges(fitted(x, n_bins=8))
    np.testing.assert_allclose(np.histogram(x, ends)[0], 50, atol=1)
    assert (ends[0], ends[-1]) == (x.min(), x.max())
    # Of more whole numbers than bins, quantiles may fall between two of them.
    ends = edges(fitted(np.arange(200.0)[:, None], n_bins=4))
    np.testing.assert_array_equal(ends, [0.0, 49.5, 99.5, 149.5, 199.0])


# Odd columns


def test_a_column_with_few_values_has_an_edge_at_each(rng: np.random.Generator) -> None:
    view, expected = fitted(), {"two values": [-0.7, 1.4], "constant": [0.0, 1.0]}
    for name, ends in (expected | {"few": [-1.5, -0.5, 0.5, 1.5]}).items():
        np.testing.assert_array_equal(edges(view, NAMES.index(name)), ends)
    # Values that differ by rounding are a single one.
    x = np.repeat([-1.0, 0.0, 1.0], 120)[:, None] + 1e-9 * rng.normal(size=(360, 1))
    np.testing.assert_allclose(edges(fitted(x, n_bins=8)), [-1.0, 0.0, 1.0], atol=1e-8)
    for n, n_pieces in ((FEW_VALUES, FEW_VALUES - 1), (FEW_VALUES + 1, 2)):
        assert len(fitted(np.arange(600.0)[:, None] % n, n_bins=2).column) == n_pieces


def test_values_that_many_rows_share_end_a_bin_each(rng: np.random.Generator) -> None:
    """By weight: at least 1 / n_bins of it, and quantiles of the other rows end the rest."""
    ends, x = edges(fitted(), NAMES.index("tied")), COLUMNS["tied"]
    assert np.count_nonzero(ends == 0.25) == 1
    np.testing.assert_allclose(ends[ends != 0.25], quantiles(x[x != 0.25], N_BINS), rtol=1e-12)
    # Without enough rows to be a bin of its own, a value is among the others.
    x = np.where(np.arange(N_ROWS) < N_ROWS // N_BINS - 1, 0.25, rng.normal(size=N_ROWS))
    np.testing.assert_allclose(edges(fitted(x[:, None])), quantiles(x, N_BINS + 1), rtol=1e-12)
    x = np.concatenate([np.full(300, 2.0), np.full(100, -0.5), rng.normal(size=400)])
    weights = np.where(x == -0.5, 3.0, 1.0)
    ends = edges(fitted(x[:, None], weights, n_bins=8))
    np.testing.assert_allclose(ends, np.sort([2.0, -0.5, *quantiles(x[400:], 7)]), rtol=1e-12)


def test_every_bin_has_rows(rng: np.random.Generator) -> None:
    """But for columns of few values."""
    for n in (FEW_VALUES + 1, 2 * ROWS_PER_BIN - 1):
        assert len(fitted(rng.normal(size=(n, 3))).column) == 3
    for n in range(2 * ROWS_PER_BIN, 20 * ROWS_PER_BIN, 67):
        ends = edges(fitted(rng.normal(size=(n, 1))))
        assert len(ends) - 1 == min(N_BINS, n // ROWS_PER_BIN)


@pytest.mark.parametrize("n", [60, 500])
@pytest.mark.parametrize("n_bins", [2, N_BINS])
def test_a_column_of_ten_levels_keeps_a_bin_for_each(
    n: int, n_bins: int, rng: np.random.Generator
) -> None:
    """Whatever the rows, the bins that are asked for and the columns beside it."""
    levels = np.sort(rng.normal(size=10))
    x = np.column_stack([rng.normal(size=n), levels[np.arange(n) % 10], rng.normal(size=(n, 60))])
    view = fitted(x, n_bins=n_bins)
    np.testing.assert_array_equal(edges(view, 1), levels)
    assert np.bincount(view.column).tolist() == [1, 9, *[1] * 60]


def test_a_weight_of_two_is_two_rows(rng: np.random.Generator) -> None:
    """Also for the number of bins: a hundred rows of weight two have as many as two hundred."""
    counts, x = rng.integers(1, 4, size=300), X[:300]
    expected, weighted = fitted(np.repeat(x, counts, axis=0)), fitted(x, counts.astype(float))
    for name in ("column", "low", "high", "center", "scale"):
        bar = 0.0 if name in ("column", "low", "high") else 1e-13
        a, b = getattr(weighted, name), getattr(expected, name)
        np.testing.assert_allclose(a, b, rtol=10.0 * bar, atol=bar)


# Many columns


@pytest.mark.parametrize(
    ("n_columns", "n_bins"), [(1, 16), (6, 16), (7, 13), (17, 5), (48, 2), (49, 1)]
)
def test_of_more_columns_each_has_fewer_bins(n_columns: int, n_bins: int) -> None:
    view = fitted(np.random.default_rng(1).normal(size=(800, n_columns)))
    assert np.bincount(view.column).tolist() == [n_bins] * n_columns


def test_columns_in_another_order_have_the_same_components() -> None:
    order = np.array([4, 0, 5, 2, 1, 3])
    whole, other = fitted(), fitted(X[:, order])
    index = np.concatenate([np.flatnonzero(whole.column == column) for column in order])
    np.testing.assert_array_equal(pieces(whole, X)[:, index], pieces(other, X[:, order]))
    assert np.all(np.diff(other.column) >= 0)


# Directions


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


# Views


OWNERS = np.array([0, 0, 2, 3])
"""Two columns from the user's first, none of its second."""


def test_standard_columns_are_themselves(rng: np.random.Generator) -> None:
    x, ones = rng.normal(size=(30, 4)), np.ones(30)
    # Gates of few rows see the same.
    for view in (learn_view("standard", x, ones, OWNERS), learn_gates(x, ones, OWNERS)):
        assert view is not None
        np.testing.assert_array_equal(view.owners, OWNERS)
        np.testing.assert_array_equal(see(view, x), x.astype(np.float32))


def test_pieces_belong_to_the_owners_of_their_columns(rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(400, 4)), rng.uniform(0.5, 2.0, size=400)
    x[:, 1] = rng.integers(0, 2, size=400)
    weights *= 200.5 / weights.sum()
    view = learn_view("piecewise", x, weights, OWNERS)
    assert view is not None
    # Ten bins of twenty rows, and a single piece of two values.
    assert np.bincount(view.owners).tolist() == [11, 0, 10, 10]
    new = 3.0 * rng.normal(size=(20, 4))
    np.testing.assert_allclose(see(view, new), pieces(fitted(x, weights), new), rtol=1e-6)
    gates = learn_gates(x, weights, OWNERS)
    assert np.bincount(gates.owners).tolist() == [5, 0, 4, 4]
    assert learn_view("piecewise", x[:, 1:2], weights, OWNERS[1:2]) is None  # nothing new


@pytest.mark.parametrize(
    ("n", "n_columns", "n_bins"), [(4_999, 1, 16), (5_000, 1, MANY_BINS), (5_000, 4, 32)]
)
def test_with_many_rows_there_are_more_bins(
    n: int, n_columns: int, n_bins: int, rng: np.random.Generator
) -> None:
    """But not more pieces of all columns together."""
    owners = np.arange(n_columns)
    view = learn_view("piecewise", rng.normal(size=(n, n_columns)), np.ones(n), owners)
    assert view is not None
    assert np.bincount(view.owners).tolist() == [n_bins] * n_columns


def test_directions_have_an_owner_each(rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(200, MANY_COLUMNS + 9)), rng.uniform(0.5, 2.0, size=200)
    owners = np.arange(MANY_COLUMNS + 9)
    few = learn_view("principal", x[:, :5], weights, owners[:5])
    many = learn_view("principal", x, weights, owners)
    gates = learn_gates(x, weights, owners)
    for view, n_columns, most in ((few, 5, 5), (many, None, MANY_COLUMNS), (gates, None, 32)):
        assert view is not None
        np.testing.assert_array_equal(view.owners, np.arange(most))
        expected = x[:, :n_columns] @ fit_principal(x[:, :n_columns], weights, most)
        np.testing.assert_allclose(see(view, x[:, :n_columns]), expected, rtol=1e-5, atol=1e-5)
