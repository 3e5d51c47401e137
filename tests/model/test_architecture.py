"""Widths of a network and what may stand for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.model.architecture import build_architecture


def test_widths_and_counts() -> None:
    architecture = build_architecture(3, [5, 4], 2)
    assert architecture.widths == (3, 5, 4, 2)
    assert architecture.hidden == (5, 4)
    assert architecture.n_hidden == 2


def test_no_hidden_layer_is_linear_regression() -> None:
    architecture = build_architecture(3, (), 1)
    assert architecture.widths == (3, 1)
    assert architecture.n_hidden == 0


def test_whole_numbers_of_any_kind() -> None:
    architecture = build_architecture(np.int64(3), np.array([4, 2]), np.int32(1))
    assert architecture == build_architecture(3, (w for w in (4, 2)), 1)
    assert all(type(width) is int for width in architecture.widths)


@pytest.mark.parametrize("bad", [0, -1, 2.0, 1.5, "3", None, float("nan")])
def test_a_bad_width_is_named_with_its_value(bad: Any) -> None:
    for name, arguments in {
        "n_inputs": (bad, (4,), 1),
        r"hidden_layer_sizes\[1\]": (2, (4, bad), 1),
        "n_outputs": (2, (4,), bad),
    }.items():
        with pytest.raises(ValueError, match=rf"{name}.*at least 1.*{bad!r}"):
            build_architecture(*arguments)


@pytest.mark.parametrize("bad", [50, 5.0, None, "50", b"50"])
def test_hidden_must_be_a_sequence(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"hidden.*such as \(50,\)"):
        build_architecture(2, bad, 1)
