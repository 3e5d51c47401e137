"""Piecewise linear components: against loops, far outside, odd columns, and parts of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.representation import pieces as module
from bowtienet._old.representation.pieces import (
    MOST_COMPONENTS,
    N_BINS,
    ROWS_PER_BIN,
    Pieces,
    check_pieces,
    components,
    first_and_last,
    fit_pieces,
)

RNG = np.random.default_rng(0)
N_ROWS = 80
COLUMNS = {
    "normal": RNG.normal(size=N_ROWS),
    "two values": np.where(np.arange(N_ROWS) % 3 == 0, 1.4, -0.7),
    "heavy": RNG.standard_t(1.5, size=N_ROWS),
    "constant": np.zeros(N_ROWS),
    "few": RNG.integers(0, 4, size=N_ROWS) - 1.5,
    "tied": np.where(np.arange(N_ROWS) < 30, 0.25, RNG.normal(size=N_ROWS)),
}
NAMES = list(COLUMNS)
X = np.column_stack(list(COLUMNS.values()))


def fitted(inputs: np.ndarray = X, weights: Any = None, n_bins: int = N_BINS) -> Pieces:
    found = fit_pieces(inputs, np.ones(len(inputs)) if weights is None else weights, n_bins)
    assert found is not None
    check_pieces(found, inputs.shape[1])
    return found


def own(found: Pieces, name: str) -> np.ndarray:
    return found.column == NAMES.index(name)


def edges(found: Pieces, column: int = 0) -> np.ndarray:
    places = np.flatnonzero(found.column == column)
    return np.array([found.low[places[0]], *found.high[places]])


def by_loops(found: Pieces, inputs: np.ndarray, *, standardized: bool = True) -> np.ndarray:
    """Bin by bin and row by row, as the module's docstring has it."""
    values = np.empty((len(inputs), len(found.column)))
    for place, column in enumerate(found.column):
        mates = [k for k in range(len(found.column)) if found.column[k] == column]
        for row, x in enumerate(inputs[:, column]):
            t = (x - found.low[place]) / (found.high[place] - found.low[place])
            if place != mates[0]:
                t = max(t, 0.0)
            if place != mates[-1]:
                t = min(t, 1.0)
            if standardized:
                t = (t - found.center[place]) / found.scale[place]
            values[row, place] = t
    return values


def test_components_against_loops() -> None:
    found = fitted()
    inside, outside = X, 50.0 * RNG.normal(size=(20, X.shape[1]))
    for inputs in (inside, outside):
        np.testing.assert_allclose(components(found, inputs), by_loops(found, inputs), rtol=1e-12)


def test_components_are_centred_and_on_one_scale_by_the_weights_of_the_rows() -> None:
    """The root mean square of their deviations is 1, and steps of all bins are alike."""
    weights = RNG.uniform(0.5, 3.0, size=N_ROWS)
    share = weights / weights.sum()
    found = fitted(weights=weights)
    seen = components(found, X)
    np.testing.assert_allclose(share @ seen, 0.0, atol=1e-12)
    deviation = np.sqrt(share @ seen**2)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-12, atol=1e-15)
    assert np.mean(deviation**2) == pytest.approx(1.0, rel=1e-12)
    assert np.unique(found.scale).size == 1
    raw = by_loops(found, X, standardized=False)
    np.testing.assert_allclose(found.center, share @ raw, rtol=1e-12)
    spread = np.sqrt(share @ (raw - share @ raw) ** 2)
    np.testing.assert_allclose(found.scale, np.sqrt(np.mean(spread**2)), rtol=1e-12)
    constant = own(found, "constant")
    np.testing.assert_array_equal(seen[:, constant], 0.0)
    np.testing.assert_array_equal(found.deviation[constant], 0.0)
    assert np.all(found.deviation[~constant] > 0.0)


def test_a_straight_line_is_a_sum_of_components() -> None:
    """Σ_j t_j (e_j - e_{j-1}) = x - e_0, inside the data and far outside."""
    found = fitted()
    inputs = np.vstack([X, 1e3 * X, [[-1e6] * X.shape[1], [1e6] * X.shape[1]]])
    raw = found.center + found.scale * components(found, inputs)
    widths = found.high - found.low
    for column in range(X.shape[1]):
        mine = found.column == column
        total = raw[:, mine] @ widths[mine]
        expected = inputs[:, column] - found.low[mine][0]
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-9)


def test_components_go_on_linearly_outside_and_are_held_inside() -> None:
    found = fitted()
    first, last = first_and_last(found)
    raw = by_loops(found, X, standardized=False)
    assert np.all((raw >= 0.0) | first)
    assert np.all((raw <= 1.0) | last)
    for sign, moving in ((-1.0, first), (1.0, last)):
        far = sign * np.array([[100.0], [1e4], [1e6]]) * np.ones(X.shape[1])
        seen = components(found, far)
        slopes = np.diff(seen, axis=0) / np.diff(far[:, :1], axis=0)
        expected = np.where(moving, 1.0 / (found.scale * (found.high - found.low)), 0.0)
        np.testing.assert_allclose(slopes, np.stack([expected] * 2), rtol=1e-9)


def test_bins_hold_equally_many_rows() -> None:
    x = RNG.gamma(2.0, size=(400, 1))
    found = edges(fitted(x, n_bins=8))
    np.testing.assert_allclose(np.histogram(x, found)[0], 50, atol=1)
    assert (found[0], found[-1]) == (x.min(), x.max())


# Odd columns


def test_columns_with_two_values_or_one_are_one_component() -> None:
    """From one value to the other: a step of it is penalised like that of a bin."""
    found = fitted()
    for name, ends in (("two values", (-0.7, 1.4)), ("constant", (0.0, 1.0))):
        [place] = np.flatnonzero(own(found, name))
        assert (found.low[place], found.high[place]) == ends
        seen = components(found, X)[:, place]
        x = (COLUMNS[name] - ends[0]) / (ends[1] - ends[0])
        np.testing.assert_allclose(seen, (x - x.mean()) / found.scale[place], atol=1e-12)


def test_a_column_with_few_values_has_an_edge_at_each() -> None:
    found = edges(fitted(), NAMES.index("few"))
    np.testing.assert_array_equal(found, [-1.5, -0.5, 0.5, 1.5])
    whole = np.arange(90.0)[:, None] % 9
    np.testing.assert_array_equal(edges(fitted(whole, n_bins=8)), np.arange(9.0))


def test_whole_numbers() -> None:
    """Of more values than bins the quantiles are taken, which may fall between two of them."""
    found = edges(fitted(np.arange(100.0)[:, None], n_bins=4))
    np.testing.assert_array_equal(found, [0.0, 24.5, 49.5, 74.5, 99.0])


def test_edges_that_are_tied_become_one() -> None:
    found = edges(fitted(), NAMES.index("tied"))
    assert np.count_nonzero(found == 0.25) == 1
    assert np.all(np.diff(found) > 0.0)
    # Rows of the value that many share take no quantiles from the others.
    x = COLUMNS["tied"]
    others = np.quantile(
        x[x != 0.25], np.linspace(0.0, 1.0, N_BINS), method="averaged_inverted_cdf"
    )
    np.testing.assert_allclose(found[found != 0.25], others, rtol=1e-12)
    # Without enough rows to be a bin of its own, a value is one among the others.
    x = np.where(np.arange(N_ROWS) < N_ROWS // N_BINS - 1, 0.25, RNG.normal(size=N_ROWS))
    found = edges(fitted(x[:, None]))
    np.testing.assert_allclose(
        found,
        np.quantile(x, np.linspace(0.0, 1.0, N_BINS + 1), method="averaged_inverted_cdf"),
        rtol=1e-12,
    )


def test_values_that_many_rows_share_end_a_bin_each() -> None:
    """By weight: at least 1 / n_bins of it, and quantiles of the other rows end the rest."""
    x = np.concatenate([np.full(30, 2.0), np.full(10, -0.5), RNG.normal(size=40)])
    weights = np.concatenate([np.full(30, 1.0), np.full(10, 3.0), np.ones(40)])
    found = edges(fitted(x[:, None], weights, n_bins=8))
    others = np.quantile(x[40:], np.linspace(0.0, 1.0, 7), method="averaged_inverted_cdf")
    np.testing.assert_allclose(found, np.sort([2.0, -0.5, *others]), rtol=1e-12)
    for weight, shared in ((3.0, [-0.5, 2.0]), (1.0, [-0.5, 2.0]), (0.9, [2.0])):
        weights = np.where(x == -0.5, weight, 1.0)
        np.testing.assert_array_equal(module._shared_values(x, weights, 8), shared)


def test_a_column_that_is_nearly_always_the_same_has_bins_for_the_others() -> None:
    x = np.zeros((100, 1))
    x[:12, 0] = np.arange(1.0, 13.0)
    found = edges(fitted(x, n_bins=8))
    assert (found[0], found[1], found[-1]) == (0.0, 1.0, 12.0)
    assert len(found) == 9
    beside = np.column_stack([x, np.arange(100.0)])
    assert np.bincount(fitted(beside).column).tolist() == [12, 16]


def test_values_that_differ_by_rounding_are_one_edge() -> None:
    x = np.repeat([-1.0, 0.0, 1.0], 20)[:, None] + 1e-9 * RNG.normal(size=(60, 1))
    np.testing.assert_allclose(edges(fitted(x, n_bins=8)), [-1.0, 0.0, 1.0], atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 2 * ROWS_PER_BIN - 1])
def test_few_rows_have_no_bins(n: int) -> None:
    assert fit_pieces(X[:n], np.ones(n), 8) is None


def test_every_bin_has_rows() -> None:
    for n in range(2 * ROWS_PER_BIN, 60, 7):
        found = edges(fitted(RNG.normal(size=(n, 1))))
        assert len(found) - 1 == min(N_BINS, n // ROWS_PER_BIN)


def test_a_weight_of_two_is_two_rows() -> None:
    """Also for the number of bins: thirty rows of weight two have as many as sixty."""
    counts = RNG.integers(1, 4, size=30)
    x = X[:30]
    expected, found = fitted(np.repeat(x, counts, axis=0)), fitted(x, counts.astype(float))
    np.testing.assert_array_equal(found.column, expected.column)
    for name in ("low", "high"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("center", "scale", "deviation"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-13)


# Many columns


@pytest.mark.parametrize(
    ("n_columns", "n_bins"),
    [(1, 16), (6, 16), (7, 13), (9, 10), (16, 6), (17, 5), (32, 3), (48, 2), (49, None)],
)
def test_of_more_columns_each_has_fewer_bins(n_columns: int, n_bins: int | None) -> None:
    x = RNG.normal(size=(80, n_columns))
    found = fit_pieces(x, np.ones(80), N_BINS)
    assert (found is None) == (n_bins is None)
    if found is not None:
        assert np.bincount(found.column).tolist() == [n_bins] * n_columns
        assert len(found.column) <= MOST_COMPONENTS


def test_columns_that_stay_as_they_are_count_too() -> None:
    """Seventy of two values leave 26 components for the others."""
    x = np.column_stack([RNG.normal(size=(60, 5)), RNG.integers(0, 2, size=(60, 70))])
    found = fitted(x)
    assert np.bincount(found.column).tolist() == [5] * 5 + [1] * 70
    x = np.column_stack([RNG.normal(size=(60, 5)), RNG.integers(0, 2, size=(60, 95))])
    assert fit_pieces(x, np.ones(60), N_BINS) is None


def test_columns_in_another_order_have_the_same_components() -> None:
    order = np.array([4, 0, 5, 2, 1, 3])
    whole, other = fitted(), fitted(X[:, order])
    places = np.concatenate([np.flatnonzero(whole.column == column) for column in order])
    np.testing.assert_array_equal(components(whole, X)[:, places], components(other, X[:, order]))
    assert np.all(np.diff(other.column) >= 0)


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_other_libraries_agree(name: str) -> None:
    library = pytest.importorskip(name)
    found = fitted()
    other = library.asarray(X)
    seen = components(found, other)
    assert type(seen) is type(other)
    np.testing.assert_allclose(np.asarray(seen), components(found, X), rtol=1e-14)


def test_single_precision() -> None:
    found = fitted()
    seen = components(found, X.astype(np.float32))
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, components(found, X), rtol=1e-4, atol=1e-5)


# Parts of a file


SOUND = fitted()


def changed(name: str, place: int, value: float) -> dict[str, Any]:
    values = getattr(SOUND, name).copy()
    values[place] = value
    return {name: values}


@pytest.mark.parametrize(
    "change",
    [
        {"column": SOUND.column[::-1]},
        {"column": SOUND.column[1:]},
        {"column": SOUND.column + 1},
        {"column": SOUND.column.reshape(1, -1)},
        {"column": np.zeros_like(SOUND.column)},
        changed("column", 0, -1),
        changed("column", -1, 100),
        {"low": SOUND.low[1:]},
        changed("scale", 3, 0.0),
        changed("scale", 3, -1.0),
        changed("scale", 3, 5e-324),
        {"deviation": SOUND.deviation[1:]},
        changed("low", 0, SOUND.high[0]),
        changed("low", 0, SOUND.high[0] + 1.0),
        changed("low", 1, SOUND.low[1] + 1e-3),
        {"low": SOUND.low - 1e308, "high": SOUND.high + 1e308},
        {"low": SOUND.high, "high": SOUND.low},
    ],
    ids=lambda change: next(iter(change)),
)
def test_components_of_a_file_that_are_none(change: dict[str, Any]) -> None:
    check_pieces(SOUND, X.shape[1])
    with pytest.raises(ValueError, match="components"):
        check_pieces(replace(SOUND, **change), X.shape[1])


@pytest.mark.parametrize("n_columns", [0, X.shape[1] - 1, X.shape[1] + 1])
def test_components_of_other_columns(n_columns: int) -> None:
    with pytest.raises(ValueError, match="other columns"):
        check_pieces(SOUND, n_columns)


def test_limits_that_others_rely_on() -> None:
    assert (module.N_BINS, module.MOST_COMPONENTS) == (16, 96)
