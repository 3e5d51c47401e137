"""Gates of the levels of noise: sticks, rows far away, and what does not fit together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old.prediction.levels import (
    FURTHEST,
    Levels,
    check_levels,
    gate_inputs,
    level_probabilities,
    log_gates,
)

LEVELS = Levels(
    scale=np.array([[0.2, 1.0], [1.0, 0.7], [3.0, 5.0]]),
    gates=np.random.default_rng(0).normal(size=(2, 3, 2)),
    columns=np.array([3, 1]),
)


def test_probabilities_are_those_of_sticks_and_sum_to_one() -> None:
    x = np.random.default_rng(1).normal(size=(20, 4))
    found = level_probabilities(LEVELS, x)
    assert found.shape == (3, 20, 2)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, rtol=1e-13)
    for n, d in np.ndindex(20, 2):
        seen = np.array([1.0, *np.clip(x[n, LEVELS.columns], -3.0, 3.0)])
        left = 1.0
        for k in range(2):
            part = 1.0 / (1.0 + np.exp(-seen @ LEVELS.gates[k, :, d]))
            np.testing.assert_allclose(found[k, n, d], left * part, rtol=1e-12)
            left *= 1.0 - part
        np.testing.assert_allclose(found[2, n, d], left, rtol=1e-12)


def test_rows_far_away_are_held() -> None:
    """Beyond some deviations nothing changes, in either direction."""
    edge = np.array([[FURTHEST] * 4, [-FURTHEST] * 4])
    for factor in (1.0, 1.5, 1e6, np.inf):
        found = level_probabilities(LEVELS, factor * edge)
        np.testing.assert_array_equal(found, level_probabilities(LEVELS, edge))
    assert np.any(level_probabilities(LEVELS, 0.9 * edge) != level_probabilities(LEVELS, edge))


def test_columns_that_gates_do_not_see_do_not_matter() -> None:
    x = np.random.default_rng(2).normal(size=(6, 4))
    other = x.copy()
    other[:, [0, 2]] = 7.0
    np.testing.assert_array_equal(
        level_probabilities(LEVELS, x), level_probabilities(LEVELS, other)
    )
    np.testing.assert_array_equal(gate_inputs(LEVELS.columns, x)[:, 0], 1.0)


def test_one_level_has_all_rows() -> None:
    one = Levels(scale=np.ones((1, 2)), gates=np.empty((0, 1, 2)), columns=np.empty(0, dtype=int))
    np.testing.assert_array_equal(level_probabilities(one, np.ones((4, 3))), np.ones((1, 4, 2)))


def test_extreme_logits_have_finite_logarithms() -> None:
    gates = np.array([[[1e5]], [[-1e5]]])
    found = log_gates(gates, np.ones((1, 1)))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 0, 0], [0.0, -2e5, -1e5])


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_columns_of_other_libraries(name: str) -> None:
    library = pytest.importorskip(name)
    x = np.random.default_rng(3).normal(size=(6, 4))
    found = level_probabilities(LEVELS, library.asarray(x))
    np.testing.assert_array_equal(found, level_probabilities(LEVELS, x))


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (None, "the levels of noise are none"),
        (replace(LEVELS, scale=LEVELS.scale[:, :1]), "of other targets"),
        (replace(LEVELS, scale=LEVELS.scale[0]), "of other targets"),
        (replace(LEVELS, scale=np.empty((0, 2))), "of other targets"),
        (replace(LEVELS, scale=-LEVELS.scale), "not positive numbers"),
        (replace(LEVELS, scale=np.full((3, 2), np.inf)), "not positive numbers"),
        (replace(LEVELS, scale=np.full((3, 2), np.nan)), "not positive numbers"),
        (replace(LEVELS, scale=np.ones((3, 2), dtype=int)), "not positive numbers"),
        (replace(LEVELS, columns=np.array([0.0, 1.0])), "not whole numbers"),
        (replace(LEVELS, columns=np.array([[0, 1]])), "not whole numbers"),
        (replace(LEVELS, columns=np.array([0, 4])), "columns that there are not"),
        (replace(LEVELS, columns=np.array([0, -1])), "columns that there are not"),
        (replace(LEVELS, columns=np.array([0])), "of other levels or columns"),
        (replace(LEVELS, gates=LEVELS.gates[:1]), "of other levels or columns"),
        (replace(LEVELS, gates=LEVELS.gates.astype(int)), "of other levels or columns"),
        (replace(LEVELS, gates=np.full((2, 3, 2), np.nan)), "not finite"),
    ],
)
def test_levels_that_do_not_fit(levels: Any, words: str) -> None:
    check_levels(LEVELS, 4, 2)
    with pytest.raises(ValueError, match=words) as raised:
        check_levels(levels, 4, 2)
    assert "\n" not in str(raised.value)
