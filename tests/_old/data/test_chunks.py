"""Rows cut by their position, whatever they come in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowtienet._old.data import chunks
from bowtienet._old.data.chunks import chunk_rows, overlaps, rechunk
from bowtienet._old.data.random_rows import KEY_ROWS, row_keys
from bowtienet._old.data.rows import Rows, join_rows


def numbered(sizes: list[int], dtype: str = "float64") -> list[Rows]:
    """Parts of these sizes, with the number of the row in all columns."""
    ends = np.cumsum([0, *sizes])
    return [
        Rows(
            inputs=np.asfortranarray(np.stack([x, x], axis=1)), targets=x[:, None], weights=x + 1.0
        )
        for x in (np.arange(low, high).astype(dtype) for low, high in pairwise(ends))
    ]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=9), st.integers(1, 12))
def test_chunks_do_not_depend_on_the_parts(sizes: list[int], size: int) -> None:
    total = sum(sizes)
    parts = numbered(sizes)
    found = list(rechunk(parts, size))
    assert [len(rows.weights) for rows in found] == [
        min(size, total - start) for start in range(0, total, size)
    ]
    cut = [
        [
            Rows(inputs=p.inputs[some], targets=p.targets[some], weights=p.weights[some])
            for p, some in ((parts[part], some) for part, some in cuts)
        ]
        for cuts in overlaps(sizes, size)
    ]
    assert all(len(rows.weights) for chunk in cut for rows in chunk)
    for chunks_ in (found, [join_rows(chunk) for chunk in cut]):
        assert len(chunks_) == len(found)
        if total:
            whole = join_rows(chunks_)
            np.testing.assert_array_equal(whole.inputs[:, 0], np.arange(total))
            np.testing.assert_array_equal(whole.weights, np.arange(total) + 1.0)


def test_chunks_are_plain_arrays() -> None:
    for rows in rechunk(numbered([3, 4], "float32"), 2):
        for array in (rows.inputs, rows.targets, rows.weights):
            assert array.dtype == np.float64
            assert array.flags.c_contiguous


def test_chunks_of_many_columns_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chunk_rows(1) == chunk_rows(20) == chunks.CHUNK_ROWS
    assert 8 * 1_000 * chunk_rows(1_000) <= chunks.CHUNK_BYTES < 9 * 1_000 * chunk_rows(1_000)
    assert chunk_rows(10**6) == chunks.FEWEST_ROWS


def test_a_key_follows_from_the_position_alone() -> None:
    whole = row_keys(3, 0, 3 * KEY_ROWS)
    assert len(np.unique(whole)) == len(whole)
    for start, count in ((0, 5), (KEY_ROWS - 2, 4), (KEY_ROWS, KEY_ROWS), (17, 2 * KEY_ROWS)):
        np.testing.assert_array_equal(row_keys(3, start, count), whole[start : start + count])
    assert row_keys(3, 40, 0).shape == (0,)
    assert not np.array_equal(row_keys(4, 0, 5), whole[:5])
    # Uniform: the mean of 12,288 keys is within 5 standard errors of 1/2 (one run in 2 million).
    assert abs(whole.mean() - 0.5) < 5.0 / np.sqrt(12.0 * len(whole))
