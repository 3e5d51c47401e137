"""Piecewise linear components: against loops, far outside, and odd columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.tables.pieces import FEW_VALUES, ROWS_PER_BIN, Pieces, components, fit_pieces

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


def fitted(inputs: np.ndarray = X, weights: Any = None, n_bins: int = N_BINS) -> Pieces:
    pieces = fit_pieces(inputs, np.ones(len(inputs)) if weights is None else weights, n_bins)
    assert pieces is not None
    return pieces


def edges(pieces: Pieces, column: int = 0) -> np.ndarray:
    index = np.flatnonzero(pieces.column == column)
    np.testing.assert_array_equal(pieces.low[index[1:]], pieces.high[index[:-1]])
    return np.array([pieces.low[index[0]], *pieces.high[index]])


def quantiles(x: np.ndarray, count: int) -> np.ndarray:
    return np.quantile(x, np.linspace(0.0, 1.0, count), method="averaged_inverted_cdf")


def by_loops(pieces: Pieces, inputs: np.ndarray, *, standardized: bool = True) -> np.ndarray:
    """Bin by bin and row by row, as the module's docstring has it."""
    values = np.empty((len(inputs), len(pieces.column)))
    for j, column in enumerate(pieces.column):
        mates = np.flatnonzero(pieces.column == column)
        for row, x in enumerate(inputs[:, column]):
            t = (x - pieces.low[j]) / (pieces.high[j] - pieces.low[j])
            if j != mates[0]:
                t = max(t, 0.0)
            if j != mates[-1]:
                t = min(t, 1.0)
            if standardized:
                t = (t - pieces.center[j]) / pieces.scale[j]
            values[row, j] = t
    return values


def test_components_against_loops(rng: np.random.Generator) -> None:
    pieces = fitted()
    for inputs in (X, 50.0 * rng.normal(size=(20, X.shape[1]))):
        np.testing.assert_allclose(components(pieces, inputs), by_loops(pieces, inputs), rtol=1e-12)


def test_components_are_centred_and_on_a_common_scale(rng: np.random.Generator) -> None:
    """By the weights of the rows: their root mean square is a half, and steps of bins are alike."""
    weights = rng.uniform(0.5, 3.0, size=N_ROWS)
    share = weights / weights.sum()
    pieces = fitted(weights=weights)
    values = components(pieces, X)
    np.testing.assert_allclose(share @ values, 0.0, atol=1e-12)
    assert np.mean(share @ values**2) == pytest.approx(0.25, rel=1e-12)
    assert np.ptp(pieces.scale) == 0.0
    np.testing.assert_array_equal(values[:, pieces.column == NAMES.index("constant")], 0.0)


def test_a_straight_line_is_a_sum_of_components() -> None:
    """Σ_j t_j (e_j - e_{j-1}) = x - e_0, inside the data and far outside."""
    pieces = fitted()
    inputs = np.vstack([X, 1e3 * X, [[-1e6] * X.shape[1], [1e6] * X.shape[1]]])
    raw = pieces.center + pieces.scale * components(pieces, inputs)
    widths = pieces.high - pieces.low
    for column in range(X.shape[1]):
        mine = pieces.column == column
        expected = inputs[:, column] - pieces.low[mine][0]
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [("two values", [-0.7, 1.4]), ("constant", [0.0, 1.0]), ("few", [-1.5, -0.5, 0.5, 1.5])],
)
def test_a_column_with_few_values_has_an_edge_at_each(name: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(edges(fitted(), NAMES.index(name)), expected)


def test_values_that_differ_by_rounding_are_a_single_edge(rng: np.random.Generator) -> None:
    x = np.repeat([-1.0, 0.0, 1.0], 120)[:, None] + 1e-9 * rng.normal(size=(360, 1))
    np.testing.assert_allclose(edges(fitted(x, n_bins=8)), [-1.0, 0.0, 1.0], atol=1e-8)


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
        assert fit_pieces(rng.normal(size=(n, 3)), np.ones(n), N_BINS) is None
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
    pieces = fitted(x, n_bins=n_bins)
    np.testing.assert_array_equal(edges(pieces, 1), levels)
    assert np.bincount(pieces.column).tolist() == [1, 9, *[1] * 60]


@pytest.mark.parametrize(("n", "expected"), [(FEW_VALUES, FEW_VALUES - 1), (FEW_VALUES + 1, 2)])
def test_how_many_values_are_few(n: int, expected: int) -> None:
    assert len(fitted(np.arange(600.0)[:, None] % n, n_bins=2).column) == expected


def test_a_weight_of_two_is_two_rows(rng: np.random.Generator) -> None:
    """Also for the number of bins: a hundred rows of weight two have as many as two hundred."""
    counts, x = rng.integers(1, 4, size=300), X[:300]
    expected, weighted = fitted(np.repeat(x, counts, axis=0)), fitted(x, counts.astype(float))
    for name, value in vars(weighted).items():
        bar = 0.0 if name in ("column", "low", "high") else 1e-13
        np.testing.assert_allclose(value, getattr(expected, name), rtol=10.0 * bar, atol=bar)


# Many columns


@pytest.mark.parametrize(
    ("n_columns", "n_bins"), [(1, 16), (6, 16), (7, 13), (17, 5), (48, 2), (49, None)]
)
def test_of_more_columns_each_has_fewer_bins(n_columns: int, n_bins: int | None) -> None:
    x = np.random.default_rng(1).normal(size=(800, n_columns))
    pieces = fit_pieces(x, np.ones(800), N_BINS)
    assert (pieces is None) == (n_bins is None)
    if pieces is not None:
        assert np.bincount(pieces.column).tolist() == [n_bins] * n_columns
        assert len(pieces.column) <= 96


def test_columns_in_another_order_have_the_same_components() -> None:
    order = np.array([4, 0, 5, 2, 1, 3])
    whole, other = fitted(), fitted(X[:, order])
    index = np.concatenate([np.flatnonzero(whole.column == column) for column in order])
    np.testing.assert_array_equal(components(whole, X)[:, index], components(other, X[:, order]))
    assert np.all(np.diff(other.column) >= 0)
