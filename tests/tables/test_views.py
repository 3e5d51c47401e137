"""Views: which columns, pieces or directions, whose they are, and that new rows see the same."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.tables import views as module
from bowtienet.tables.pieces import components, fit_pieces
from bowtienet.tables.principal import fit_principal, principal_components
from bowtienet.tables.views import (
    FEW_BINS,
    GATE_BINS,
    GATE_COLUMNS,
    MANY_BINS,
    MOST_DIRECTIONS,
    MOST_PIECES,
    ROWS_OF_MANY_BINS,
    View,
    learn_gates,
    learn_view,
    see,
)

OWNERS = np.array([0, 0, 2, 3])
"""Two columns from the user's first, none of its second."""


def learnt(name: str, x: np.ndarray, owners: np.ndarray = OWNERS) -> View:
    view = learn_view(name, x, np.ones(len(x)), owners)
    assert view is not None
    return view


def test_standard_columns_are_themselves(rng: np.random.Generator) -> None:
    x = rng.normal(size=(50, 4))
    view = learnt("standard", x)
    np.testing.assert_array_equal(view.owners, OWNERS)
    seen = see(view, x)
    assert seen.dtype == np.float32
    np.testing.assert_array_equal(seen, x.astype(np.float32))


def test_pieces_belong_to_the_owners_of_their_columns(rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(400, 4)), rng.uniform(0.5, 2.0, size=400)
    x[:, 1] = rng.integers(0, 2, size=400)
    weights *= 200.5 / weights.sum()
    view = learn_view("piecewise", x, weights, OWNERS)
    assert view is not None
    pieces = fit_pieces(x, weights, FEW_BINS, MOST_PIECES)
    assert pieces is not None
    # Ten bins of twenty rows, and a single component of two values.
    assert np.bincount(view.owners).tolist() == [11, 0, 10, 10]
    new = 3.0 * rng.normal(size=(20, 4))
    np.testing.assert_allclose(see(view, new), components(pieces, new), rtol=1e-6)


def test_pieces_that_say_nothing_new_are_no_view(rng: np.random.Generator) -> None:
    """Few rows of many values, or columns of two values."""
    two = rng.integers(0, 2, size=(500, 4)).astype(float)
    for x in (rng.normal(size=(30, 4)), two):
        assert learn_view("piecewise", x, np.ones(len(x)), OWNERS) is None


def test_with_many_rows_there_are_more_bins(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not more components of all columns together."""
    monkeypatch.setattr(module, "ROWS_OF_MANY_BINS", 3_000)
    x = rng.normal(size=(3_000, 4))
    assert ROWS_OF_MANY_BINS > 3_000
    sizes = [
        np.bincount(learnt("piecewise", x[:n, :k], OWNERS[:k]).owners, minlength=4).tolist()
        for n, k in ((2_999, 1), (3_000, 1), (3_000, 4))
    ]
    each = min(MANY_BINS, MOST_PIECES // 4)
    assert sizes == [[FEW_BINS, 0, 0, 0], [MANY_BINS, 0, 0, 0], [2 * each, 0, each, each]]


@pytest.mark.parametrize("n_columns", [5, 150])
def test_directions_have_an_owner_each(n_columns: int, rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(200, n_columns)), rng.uniform(0.5, 2.0, size=200)
    view = learn_view("principal", x, weights, np.arange(n_columns))
    assert view is not None
    np.testing.assert_array_equal(view.owners, np.arange(min(n_columns, MOST_DIRECTIONS)))
    new = rng.normal(size=(7, n_columns))
    expected = principal_components(fit_principal(x, weights, MOST_DIRECTIONS), new)
    np.testing.assert_allclose(see(view, new), expected, rtol=1e-5, atol=1e-6)


# Gates


def test_gates_see_each_column_in_few_pieces(rng: np.random.Generator) -> None:
    x = rng.normal(size=(400, 4))
    gates = learn_gates(x, np.ones(400), OWNERS)
    assert np.bincount(gates.owners).tolist() == [2 * GATE_BINS, 0, GATE_BINS, GATE_BINS]
    assert see(gates, x[:3]).shape == (3, 4 * GATE_BINS)


def test_gates_see_directions_of_many_columns(rng: np.random.Generator) -> None:
    x = rng.normal(size=(100, GATE_COLUMNS + 5))
    gates = learn_gates(x, np.ones(100), np.arange(GATE_COLUMNS + 5))
    expected = principal_components(fit_principal(x, np.ones(100), GATE_COLUMNS), x)
    np.testing.assert_allclose(see(gates, x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(gates.owners, np.arange(GATE_COLUMNS))


def test_gates_of_few_rows_see_the_columns(rng: np.random.Generator) -> None:
    x = rng.normal(size=(30, 4))
    gates = learn_gates(x, np.ones(30), OWNERS)
    np.testing.assert_array_equal(gates.owners, OWNERS)
    np.testing.assert_array_equal(see(gates, x), x.astype(np.float32))
