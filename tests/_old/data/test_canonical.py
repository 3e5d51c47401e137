"""Tables that say the same have one form: order, repetition and weight zero leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.canonical import canonical_rows, column_order, take_columns
from bowtienet._old.data.rows import Rows, build_rows

few_examples = settings(max_examples=40, deadline=None, derandomize=True)


def assert_same(first: Rows, second: Rows) -> None:
    """The same to the last bit."""
    for name in ("inputs", "targets", "weights"):
        np.testing.assert_array_equal(
            to_numpy(getattr(first, name)), to_numpy(getattr(second, name)), err_msg=name
        )


def random_rows(rng: np.random.Generator, n: int = 30, n_targets: int = 2) -> Rows:
    return build_rows(
        rng.normal(size=(n, 4)), rng.normal(size=(n, n_targets)), rng.uniform(0.5, 2.0, size=n)
    )


@st.composite
def coarse_tables(draw: st.DrawFn) -> Rows:
    """Few rows of few values, so that rows, targets and columns repeat; whole weights."""
    n, columns, targets = draw(st.integers(1, 9)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    values = st.integers(-1, 1)
    inputs = draw(st.lists(values, min_size=n * columns, max_size=n * columns))
    outputs = draw(st.lists(values, min_size=n * targets, max_size=n * targets))
    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    weights[0] += 1
    return build_rows(
        np.reshape(inputs, (n, columns)).astype(float),
        np.reshape(outputs, (n, targets)).astype(float),
        np.array(weights, dtype=float),
    )


def taken(rows: Rows, index: Any, weights: Any = None) -> Rows:
    index = np.asarray(index)
    return build_rows(
        rows.inputs[index],
        rows.targets[index],
        rows.weights[index] if weights is None else np.asarray(weights, dtype=float),
    )


@given(rows=coarse_tables(), seed=st.integers(0, 2**16))
@few_examples
def test_shuffling_repeating_and_leaving_out(rows: Rows, seed: int) -> None:
    """Ties everywhere: weight k is k rows of weight one, 0 is none, in any order."""
    rng = np.random.default_rng(seed)
    repeated = rng.permutation(np.repeat(np.arange(len(rows.weights)), rows.weights.astype(int)))
    expected = canonical_rows(rows)
    assert_same(canonical_rows(taken(rows, repeated, np.ones(len(repeated)))), expected)
    assert_same(canonical_rows(taken(rows, rng.permutation(len(rows.weights)))), expected)
    assert_same(canonical_rows(expected), expected)
    table = np.column_stack([expected.inputs, expected.targets])
    assert len(np.unique(table, axis=0)) == len(table)
    assert np.all(expected.weights > 0.0)
    assert expected.weights.sum() == rows.weights.sum()


def test_weights_of_equal_rows_add_up_alike_in_any_order() -> None:
    """0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1 in floating point: they need an order too."""
    weights = np.array([0.1, 0.2, 0.3, 0.7, 1e-9, 1e6])
    inputs, targets = np.ones((6, 2)), np.ones(6)
    rng = np.random.default_rng(0)
    expected = canonical_rows(build_rows(inputs, targets, weights))
    assert expected.weights.shape == (1,)
    for _ in range(20):
        found = canonical_rows(build_rows(inputs, targets, rng.permutation(weights)))
        assert_same(found, expected)


def test_ties_of_the_first_target_are_broken_by_the_rest() -> None:
    rows = build_rows(
        [[2.0, 0.0], [1.0, 5.0], [0.0, 2.0], [1.0, 4.0]],
        [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0], [-1.0, 7.0]],
    )
    found = canonical_rows(rows)
    np.testing.assert_array_equal(found.targets, [[-1.0, 7.0], [0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(found.inputs[:2], [[1.0, 4.0], [1.0, 5.0]])
    # Equal but for the order of their inputs: two rows, of which neither is lost.
    assert {tuple(row) for row in found.inputs[2:]} == {(0.0, 2.0), (2.0, 0.0)}
    np.testing.assert_array_equal(found.weights, np.ones(4))


def test_the_order_of_rows_does_not_follow_from_that_of_columns(rng: np.random.Generator) -> None:
    """Ties are broken by the sorted inputs first: permuted columns give the same rows in order."""
    inputs = rng.normal(size=(20, 3))
    targets = rng.integers(0, 2, size=(20, 1)).astype(float)
    expected = canonical_rows(build_rows(inputs, targets))
    for columns in ([2, 0, 1], [1, 0, 2]):
        found = canonical_rows(build_rows(inputs[:, columns], targets))
        np.testing.assert_array_equal(found.inputs, expected.inputs[:, columns])


@pytest.mark.parametrize("n_targets", [1, 2])
def test_columns_have_an_order_of_their_own(n_targets: int, rng: np.random.Generator) -> None:
    rows = random_rows(rng, n_targets=n_targets)
    expected = take_columns(rows, column_order(rows))
    for _ in range(10):
        permuted = take_columns(rows, rng.permutation(4))
        assert_same(take_columns(permuted, column_order(permuted)), expected)


def test_the_order_of_columns_survives_rounding(rng: np.random.Generator) -> None:
    """Sums over rows in another order, or of rows repeated, differ in the last digits."""
    rows = random_rows(rng)
    expected = column_order(rows)
    np.testing.assert_array_equal(column_order(taken(rows, rng.permutation(30))), expected)
    twice = taken(rows, [*range(30), *range(30)], np.tile(0.5 * rows.weights, 2))
    np.testing.assert_array_equal(column_order(twice), expected)
    nudged = Rows(
        inputs=rows.inputs * (1.0 + 1e-14 * rng.normal(size=(30, 4))),
        targets=rows.targets,
        weights=rows.weights,
    )
    np.testing.assert_array_equal(column_order(nudged), expected)


def test_columns_that_differ_only_beside_the_targets(rng: np.random.Generator) -> None:
    """The same values in another order: only their products with the targets tell them apart."""
    column = rng.normal(size=20)
    inputs = np.column_stack([column, column[::-1], np.roll(column, 7)])
    rows = build_rows(inputs, rng.normal(size=20))
    expected = take_columns(rows, column_order(rows))
    for columns in ([1, 0, 2], [2, 1, 0], [1, 2, 0]):
        permuted = take_columns(rows, np.array(columns))
        assert_same(take_columns(permuted, column_order(permuted)), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_rows(dtype: str, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    inputs = np.round(rng.normal(size=(20, 3))).astype(dtype)
    targets = np.round(rng.normal(size=(20, 1))).astype(dtype)
    weights = rng.integers(0, 3, size=20).astype(dtype)
    expected = canonical_rows(build_rows(inputs, targets, weights))
    tensors = build_rows(*(torch.asarray(values) for values in (inputs, targets, weights)))
    found = canonical_rows(tensors)
    assert_same(found, expected)
    for values in (found.inputs, found.targets, found.weights):
        assert isinstance(values, torch.Tensor)
        assert values.dtype == getattr(torch, dtype)
    order = column_order(found)
    np.testing.assert_array_equal(order, column_order(expected))
    assert isinstance(take_columns(found, order).inputs, torch.Tensor)
