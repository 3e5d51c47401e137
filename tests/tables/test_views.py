"""Views: which columns, pieces or directions, whose they are, and that new rows see the same."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.tables import views as module
from bowtienet.tables.pieces import components, fit_pieces
from bowtienet.tables.principal import fit_principal
from bowtienet.tables.views import (
    FEW_BINS,
    GATE_BINS,
    GATE_COLUMNS,
    MANY_BINS,
    MANY_COLUMNS,
    learn_gates,
    learn_view,
    see,
)

OWNERS = np.array([0, 0, 2, 3])
"""Two columns from the user's first, none of its second."""


def test_standard_columns_are_themselves(rng: np.random.Generator) -> None:
    x = rng.normal(size=(30, 4))
    # Gates of few rows see the same.
    for view in (
        learn_view("standard", x, np.ones(30), OWNERS),
        learn_gates(x, np.ones(30), OWNERS),
    ):
        assert view is not None
        np.testing.assert_array_equal(view.owners, OWNERS)
        np.testing.assert_array_equal(see(view, x), x.astype(np.float32))


def test_pieces_belong_to_the_owners_of_their_columns(rng: np.random.Generator) -> None:
    x, weights = rng.normal(size=(400, 4)), rng.uniform(0.5, 2.0, size=400)
    x[:, 1] = rng.integers(0, 2, size=400)
    weights *= 200.5 / weights.sum()
    view = learn_view("piecewise", x, weights, OWNERS)
    pieces = fit_pieces(x, weights, FEW_BINS)
    assert view is not None
    assert pieces is not None
    # Ten bins of twenty rows, and a single component of two values.
    assert np.bincount(view.owners).tolist() == [11, 0, 10, 10]
    new = 3.0 * rng.normal(size=(20, 4))
    np.testing.assert_allclose(see(view, new), components(pieces, new), rtol=1e-6)
    gates = learn_gates(x, weights, OWNERS)
    assert np.bincount(gates.owners).tolist() == [GATE_BINS + 1, 0, GATE_BINS, GATE_BINS]
    assert learn_view("piecewise", x[:, 1:2], weights, OWNERS) is None  # nothing new


@pytest.mark.parametrize(
    ("n", "n_columns", "n_bins"), [(2_999, 1, FEW_BINS), (3_000, 1, MANY_BINS), (3_000, 4, 32)]
)
def test_with_many_rows_there_are_more_bins(
    n: int, n_columns: int, n_bins: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not more components of all columns together."""
    monkeypatch.setattr(module, "ROWS_OF_MANY_BINS", 3_000)
    view = learn_view("piecewise", rng.normal(size=(n, n_columns)), np.ones(n), np.arange(4))
    assert view is not None
    assert np.bincount(view.owners).tolist() == [n_bins] * n_columns


@pytest.mark.parametrize(
    ("n_columns", "n_directions"), [(5, 5), (MANY_COLUMNS + 9, MANY_COLUMNS), (50, GATE_COLUMNS)]
)
def test_directions_have_an_owner_each(
    n_columns: int, n_directions: int, rng: np.random.Generator
) -> None:
    x, weights = rng.normal(size=(200, n_columns)), rng.uniform(0.5, 2.0, size=200)
    view = learn_view("principal", x, weights, np.arange(n_columns))
    if n_directions == GATE_COLUMNS:
        view = learn_gates(x, weights, np.arange(n_columns))
    assert view is not None
    np.testing.assert_array_equal(view.owners, np.arange(n_directions))
    expected = x @ fit_principal(x, weights, n_directions)
    np.testing.assert_allclose(see(view, x), expected, rtol=1e-5, atol=1e-5)
