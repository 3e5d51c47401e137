"""Folds: equal rows together, any order of rows, parts of equal size, classes in each."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet.ensemble.folds import assign_folds
from bowtienet.networks.train import FEW_ROWS


def table(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 1))


@pytest.mark.parametrize(
    ("n", "expected"), [(60, 10), (FEW_ROWS - 1, 10), (FEW_ROWS, 5), (10_000, 5)]
)
def test_folds_are_of_equal_size(n: int, expected: int, rng: np.random.Generator) -> None:
    folds, n_folds = assign_folds(*table(rng, n))
    assert n_folds == expected
    sizes = np.bincount(folds, minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1


def test_of_many_rows_a_fifth_is_held_out_in_five_equal_parts(rng: np.random.Generator) -> None:
    n = 10_000 + 1
    folds, n_folds = assign_folds(*table(rng, n))
    assert n_folds == 5
    assert set(folds) == {-1, 0, 1, 2, 3, 4}
    sizes = np.bincount(folds[folds >= 0])
    assert np.ptp(sizes) <= 1
    assert abs(sizes.sum() - n / 5.0) <= 5.0


def test_the_order_of_rows_does_not_matter(rng: np.random.Generator) -> None:
    for n in (101, 10_000 + 50):
        x, y = table(rng, n)
        order = rng.permutation(n)
        folds, _ = assign_folds(x, y)
        np.testing.assert_array_equal(assign_folds(x[order], y[order])[0], folds[order])


def test_equal_rows_are_held_out_together(rng: np.random.Generator) -> None:
    """Up to half a part of them, in any place of the table."""
    x, y = table(rng, 90)
    copies = np.repeat(np.arange(90), rng.integers(1, 6, size=90))
    rows = rng.permutation(copies)
    assert 180 < len(rows) < FEW_ROWS
    folds, n_folds = assign_folds(x[rows], y[rows])
    for row in range(90):
        assert len(set(folds[rows == row])) == 1
    # A group of five may come to lie over the end of a part.
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 10


def test_a_frequent_row_is_split(rng: np.random.Generator) -> None:
    """Of more than half a part: it would make folds unequal."""
    x, y = table(rng, 200)
    x[:150], y[:150] = 0.0, 1.0
    folds, n_folds = assign_folds(x, y)
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    assert len(set(folds[:150])) >= 7
    # Eleven of two hundred are more than half of twenty, ten are not.
    for count, together in ((11, False), (10, True)):
        x, y = table(rng, 200)
        x[:count], y[:count] = 0.0, 1.0
        splits = {len(set(assign_folds(x + shift, y)[0][:count])) for shift in range(40)}
        assert (splits == {1}) == together


# Classes


@pytest.mark.parametrize("n", [300, 1_000])
def test_every_fold_has_its_share_of_each_class(n: int, rng: np.random.Generator) -> None:
    x, classes = rng.normal(size=(n, 3)), rng.choice(4, size=n, p=[0.7, 0.2, 0.07, 0.03])
    folds, n_folds = assign_folds(x, classes[:, None], classes)
    for label in range(4):
        assert np.ptp(np.bincount(folds[classes == label], minlength=n_folds)) <= 1


def test_small_classes_do_not_all_begin_in_a_fold(rng: np.random.Generator) -> None:
    """Thirty of one row each fill ten folds."""
    x, classes = rng.normal(size=(30, 2)), np.arange(30)
    folds, n_folds = assign_folds(x, classes[:, None], classes)
    np.testing.assert_array_equal(np.bincount(folds), [3] * n_folds)


# Few rows


@pytest.mark.parametrize("n", [1, 2, 7])
def test_with_few_rows_each_is_a_fold(n: int, rng: np.random.Generator) -> None:
    folds, n_folds = assign_folds(*table(rng, n))
    assert n_folds == n
    np.testing.assert_array_equal(np.sort(folds), np.arange(n))
    equal, n_folds = assign_folds(np.ones((n, 2)), np.ones((n, 1)))
    assert n_folds == n
    np.testing.assert_array_equal(np.sort(equal), np.arange(n))
