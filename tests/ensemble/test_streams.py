"""Minibatches of rows that are read again: every row once a pass, held-out rows with weight 0."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from bowtienet.ensemble.streams import Chunk, streamed_minibatches
from bowtienet.networks.train import minibatches
from bowtienet.tables.views import FARTHEST_SEEN, whole_columns
from bowtienet.tables.warp import fit_warp, forward

N, SIZE = 600, 20
VIEW = whole_columns(np.arange(2))
X = np.arange(2.0 * N).reshape(N, 2)
FOLDS = np.arange(N) % 5 - 1


def read(share: float, rng: np.random.Generator) -> Iterator[Chunk]:
    """Chunks of a hundred rows; the targets say which rows they are."""
    for begin in range(0, N, 100):
        rows = begin + np.flatnonzero(rng.random(100) < share)
        yield X[rows].astype(np.float32), rows[:, None].astype(float), 1.0 + rows, FOLDS[rows]


def batches(needed: int, seed: int = 0, **options: Any) -> Iterator[Any]:
    given: dict[str, Any] = {"warp": None, "held_out": np.array([0, 3]), **options}
    return streamed_minibatches(read, N, needed, VIEW, given["warp"], SIZE, seed, given["held_out"])


def test_a_pass_has_every_row_once_with_its_weights() -> None:
    taken = list(islice(batches(10 * N), N // SIZE))
    rows = np.concatenate([targets[:, 0] for _, targets, _ in taken]).astype(int)
    np.testing.assert_array_equal(np.sort(rows), np.arange(N))
    assert np.mean(np.diff(rows) == 1) < 0.05
    for inputs, targets, weights in taken:
        at = targets[:, 0].astype(int)
        seen = np.clip(X[at], -FARTHEST_SEEN, FARTHEST_SEEN)
        np.testing.assert_array_equal(inputs, np.column_stack([np.ones(SIZE), seen]))
        expected = np.where(FOLDS[at] == np.array([[0], [3]]), 0.0, 1.0 + at)
        np.testing.assert_array_equal(weights, expected)
    again = np.concatenate([t[:, 0] for _, t, _ in islice(batches(10 * N), N // SIZE, 60)])
    np.testing.assert_array_equal(np.sort(again), np.arange(N))
    assert np.any(again != rows)


def test_trainings_of_few_rows_draw_them_from_everywhere() -> None:
    taken = list(islice(batches(100, held_out=None), 5))
    rows = np.concatenate([targets[:, 0] for _, targets, _ in taken])
    assert len(np.unique(rows)) == 100
    # Of a hundred rows drawn from six chunks none has fewer than six: 1 in 10^4.
    assert np.histogram(rows, bins=6, range=(0, N))[0].min() >= 6
    np.testing.assert_array_equal(taken[0][2], 1.0 + taken[0][1].T)


def test_targets_are_warped_and_shapes_those_of_memory(rng: np.random.Generator) -> None:
    warp = fit_warp(np.exp(np.linspace(0.0, 3.0, N))[:, None], np.ones(N), transformed=True)
    plain, bent = next(batches(10 * N)), next(batches(10 * N, warp=warp))
    np.testing.assert_allclose(bent[1], forward(warp, plain[1].astype(float)), rtol=1e-5)
    held = next(minibatches(X, X, np.ones(N), SIZE, rng, FOLDS, np.array([0, 3])))
    assert [part.shape[0] for part in plain] == [part.shape[0] for part in held]
    assert all(part.dtype == np.float32 for part in (*plain, *held))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_seed_is_the_same_training(seed: int) -> None:
    first, second = (next(batches(10 * N, seed))[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.any(first != next(batches(10 * N, seed + 1))[1])
