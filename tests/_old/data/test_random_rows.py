"""Random minibatches and samples of a stream of rows."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet._old.data.random_rows import RowSample, shuffled
from bowtienet._old.data.rows import Rows, join_rows, split


def assert_same(first: Rows, second: Rows) -> None:
    np.testing.assert_array_equal(first.inputs, second.inputs)
    np.testing.assert_array_equal(first.targets, second.targets)
    np.testing.assert_array_equal(first.weights, second.weights)


class Cut:
    """Rows 0 ... n - 1 in pieces and blocks of given lengths; all columns are the row's number."""

    def __init__(self, pieces: list[list[int]]) -> None:
        self.n_pieces = len(pieces)
        self.n_rows = sum(map(sum, pieces))
        self.blocks: list[list[Rows]] = []
        start = 0
        for piece in pieces:
            self.blocks.append([])
            for length in piece:
                x = np.arange(float(start), start + length)
                self.blocks[-1].append(Rows(inputs=x[:, None], targets=x[:, None], weights=x + 1.0))
                start += length

    def read(self, piece: int) -> Iterator[Rows]:
        return iter(self.blocks[piece])


cuts = st.lists(st.lists(st.integers(1, 9), max_size=4), min_size=1, max_size=8).map(Cut)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(cuts, st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32))
def test_an_epoch_has_each_row_once(cut: Cut, size: int, pool: int, seed: int) -> None:
    batches = list(shuffled(cut, size, np.random.default_rng(seed), pool))
    lengths = [len(rows.weights) for rows in batches]
    assert all(length == size for length in lengths[:-1])
    assert all(0 < length <= size for length in lengths)
    found = np.concatenate([rows.inputs[:, 0] for rows in batches] or [np.empty(0)])
    np.testing.assert_array_equal(np.sort(found), np.arange(cut.n_rows))
    for rows in batches:
        np.testing.assert_array_equal(rows.targets, rows.inputs)
        np.testing.assert_array_equal(rows.weights, rows.inputs[:, 0] + 1.0)
    again = list(shuffled(cut, size, np.random.default_rng(seed), pool))
    for first, second in zip(batches, again, strict=True):
        assert_same(first, second)


def test_every_place_is_equally_likely() -> None:
    """Position of row 0 among 40, 4000 epochs: the 39-degree chi-square stays below its 1e-6."""
    rng = np.random.default_rng(7)
    cut = Cut([[5], [5], [5], [5], [5], [5], [5], [5]])
    counts = np.zeros(40)
    for _ in range(4000):
        order = join_rows(list(shuffled(cut, 10, rng, pool_rows=15))).inputs[:, 0]
        counts[np.flatnonzero(order == 0.0)[0]] += 1
    assert np.sum((counts - 100.0) ** 2 / 100.0) < 96.1


def test_a_pool_mixes_pieces_and_epochs_differ(rng: np.random.Generator) -> None:
    cut = Cut([[4096]] * 5)
    first = next(shuffled(cut, 256, rng)).inputs[:, 0]
    assert len(np.unique(first // 4096)) == 5
    assert not np.array_equal(first, next(shuffled(cut, 256, rng)).inputs[:, 0])


def test_the_pool_bounds_what_is_read_ahead(rng: np.random.Generator) -> None:
    read: list[int] = []

    class Watched(Cut):
        def read(self, piece: int) -> Iterator[Rows]:
            read.append(piece)
            return super().read(piece)

    next(shuffled(Watched([[10]] * 100), 5, rng, pool_rows=40))
    assert len(read) == 4


# Samples


def sampled(blocks: list[Rows], size: int, seed: int) -> RowSample:
    sample, start = RowSample(size, np.random.default_rng(seed)), 0
    for rows in blocks:
        sample.add(rows, start)
        start += len(rows.weights)
    return sample


def numbered(n: int, absent: tuple[int, ...] = ()) -> Rows:
    x = np.arange(float(n))
    weights = np.ones(n)
    weights[list(absent)] = 0.0
    return Rows(inputs=x[:, None], targets=2.0 * x[:, None], weights=weights)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(1, 60),
    st.integers(1, 20),
    st.integers(1, 70),
    st.integers(0, 2**32),
    st.data(),
)
def test_a_sample_does_not_depend_on_the_blocks(
    n: int, size: int, length: int, seed: int, data: st.DataObject
) -> None:
    absent = tuple(data.draw(st.sets(st.integers(0, n - 1), max_size=n)))
    rows = numbered(n, absent)
    whole, cut = sampled([rows], size, seed), sampled(split(rows, length), size, seed)
    assert_same(whole.rows, cut.rows)
    np.testing.assert_array_equal(whole.positions, cut.positions)
    np.testing.assert_array_equal(whole.rows.inputs[:, 0], whole.positions)
    np.testing.assert_array_equal(whole.rows.targets[:, 0], 2.0 * whole.positions)
    assert len(set(whole.positions)) == len(whole.positions) == min(size, n - len(absent))
    assert not set(whole.positions) & set(absent)
    larger = sampled([rows], size + 5, seed)
    np.testing.assert_array_equal(larger.positions[:size], whole.positions)


def test_samples_and_their_first_parts_are_uniform() -> None:
    """20 rows, 6 sampled, 4000 times: chi-squares of 19 degrees stay below their 1e-6."""
    rows, counts, firsts = numbered(20), np.zeros(20), np.zeros(20)
    for seed in range(4000):
        found = sampled(split(rows, 7), 6, seed).positions
        counts[found] += 1
        firsts[found[0]] += 1
    # Counts without replacement have variance n p (1 - p) and sum to a constant.
    assert np.sum((counts - 1200.0) ** 2) / (4000 * 0.3 * 0.7) * 19 / 20 < 63.6
    assert np.sum((firsts - 200.0) ** 2 / 200.0) < 63.6


def test_samples_of_parts_make_a_sample_of_the_whole() -> None:
    """Keys drawn from one generator: merged parts are what one sample of all rows would be."""
    rows = numbered(50, absent=(3, 30))
    whole = sampled([rows], 8, 5)
    rng, total = np.random.default_rng(5), RowSample(8, np.random.default_rng(0))
    for number, block in enumerate(split(rows, 20)):
        part = RowSample(8, rng)
        part.add(block, 0)
        total.merge(pickle.loads(pickle.dumps(part)), 20 * number)
    assert_same(total.rows, whole.rows)
    np.testing.assert_array_equal(total.positions, whole.positions)
    total.merge(RowSample(8, rng), 50)
    assert_same(total.rows, whole.rows)
    with pytest.raises(ValueError, match="size 7"):
        total.merge(RowSample(7, rng), 50)


def test_a_sample_of_nothing(rng: np.random.Generator) -> None:
    sample = RowSample(3, rng)
    with pytest.raises(ValueError, match="no rows"):
        _ = sample.rows
    sample.add(numbered(2, absent=(0, 1)), 0)
    assert sample.rows.inputs.shape == (0, 1)
