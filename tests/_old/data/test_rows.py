"""Rows at the door: what is let in, and the message that turns the rest away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet._old.data.rows import Rows, build_inputs, build_rows, concatenate, split, subsample

INPUTS = np.arange(6.0).reshape(3, 2)
TARGETS = np.array([1.0, 2.0, 3.0])


def with_entry(values: np.ndarray, index: tuple[int, ...], entry: float) -> np.ndarray:
    changed = np.array(values, dtype=float)
    changed[index] = entry
    return changed


BAD_INPUTS: list[Any] = [
    *(np.ones(3), 3.0, np.ones((3, 2, 1)), np.ones((0, 2)), np.ones((3, 0)), None),
    *([[1.0, 2.0], [3.0], [4.0, 5.0]], [["a", "b"]] * 3, [[1.0, None]] * 3),
    *(INPUTS.astype(complex), INPUTS.astype("datetime64[s]")),
    np.ma.masked_array(INPUTS, mask=INPUTS > 4.0),
    *(with_entry(INPUTS, (2, 1), value) for value in (np.nan, np.inf, -np.inf)),
]
BAD_TARGETS: list[Any] = [
    *(5.0, np.ones((3, 1, 1)), np.ones((3, 0)), np.ones(4), np.ones((2, 1))),
    *([[1.0], [2.0, 3.0], [4.0]], ["a", "b", "c"], TARGETS + 0j),
    *(with_entry(TARGETS, (1,), value) for value in (np.nan, -np.inf)),
]
BAD_WEIGHTS: list[Any] = [
    *(2.0, np.ones((3, 1)), np.ones(2), [1.0, -1e-9, 1.0], np.zeros(3)),
    *([1.0, np.nan, 1.0], [1.0, 1.0, np.inf], [1.0, None, 1.0], ["a", "b", "c"]),
    np.ones(3, dtype=complex),
]


@pytest.mark.parametrize("inputs", BAD_INPUTS)
def test_bad_inputs(inputs: Any) -> None:
    for build in (build_inputs, lambda values: build_rows(values, TARGETS)):
        with pytest.raises(ValueError, match="inputs"):
            build(inputs)


@pytest.mark.parametrize("targets", BAD_TARGETS)
def test_bad_targets(targets: Any) -> None:
    with pytest.raises(ValueError, match="targets"):
        build_rows(INPUTS, targets)


@pytest.mark.parametrize("weights", BAD_WEIGHTS)
def test_bad_weights(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights"):
        build_rows(INPUTS, TARGETS, weights)


def test_wrong_number_of_columns_names_both() -> None:
    with pytest.raises(ValueError, match=r"inputs have 2 columns.* 3"):
        build_inputs(INPUTS, n_columns=3)
    assert build_inputs(INPUTS, n_columns=2).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", "float16", "longdouble", "float32"])
def test_inputs_decide_the_precision_of_all(dtype: str) -> None:
    """Single precision stays, all other real types become double; lists are welcome."""
    values = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    rows = build_rows(values, [0, 1, 1], values[:, 1].astype(np.float32))
    for array in (rows.inputs, rows.targets, rows.weights):
        assert array.dtype == (np.float32 if dtype == "float32" else np.float64)
    np.testing.assert_array_equal(rows.inputs, [[0, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(rows.targets, [[0], [1], [1]])
    np.testing.assert_array_equal(rows.weights, [1, 1, 0])
    assert build_rows(values, values).targets.shape == (3, 2)
    np.testing.assert_array_equal(build_rows(values, values).weights, np.ones(3))


def numbered_rows(n: int, weights: np.ndarray | None = None) -> Rows:
    inputs = np.arange(2.0 * n).reshape(n, 2)
    return build_rows(inputs, np.arange(float(n)), weights)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11])
def test_split_covers_all_rows_in_order(size: int) -> None:
    rows = numbered_rows(10, np.linspace(0.5, 2.0, 10))
    blocks = split(rows, size)
    assert [len(block.inputs) for block in blocks[:-1]] == [size] * (len(blocks) - 1)
    assert 1 <= len(blocks[-1].inputs) <= size
    for name in ("inputs", "targets", "weights"):
        parts = [getattr(block, name) for block in blocks]
        np.testing.assert_array_equal(concatenate(parts), getattr(rows, name))


def test_subsample_leaves_out_rows_of_weight_zero(rng: np.random.Generator) -> None:
    weights = np.tile([0.0, 1.5, 2.0], 10)
    rows = numbered_rows(30, weights)
    everything = subsample(rows, 100, rng)
    np.testing.assert_array_equal(everything.targets[:, 0], np.flatnonzero(weights))
    few = subsample(rows, 7, rng)
    chosen = few.targets[:, 0].astype(int)
    assert len(set(chosen)) == 7
    assert np.all(weights[chosen] > 0.0)
    np.testing.assert_array_equal(few.inputs, rows.inputs[chosen])
    np.testing.assert_array_equal(few.weights, weights[chosen])


def test_subsample_is_uniform(rng: np.random.Generator) -> None:
    """Each of 10 rows is in a draw of 5 with probability ½: 6 sigma, false alarm below 1e-7."""
    rows, draws = numbered_rows(10), 2000
    counts = np.zeros(10)
    for _ in range(draws):
        counts[subsample(rows, 5, rng).targets[:, 0].astype(int)] += 1
    assert np.all(np.abs(counts / draws - 0.5) < 6.0 * 0.5 / np.sqrt(draws))
