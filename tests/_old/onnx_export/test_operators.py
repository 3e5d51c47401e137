"""Functions that ONNX does not have, or not in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from bowtienet._old.onnx_export import operators
from bowtienet._old.onnx_export.graph import Graph, Traced, broadcast


def run(function: Callable[[Traced], Traced], x: np.ndarray) -> np.ndarray:
    graph = Graph()
    found = function(graph.input("X", x.shape[1], np.float64, ""))
    data = graph.model({"answer": found}, "", {}).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    [answer] = session.run(None, {"X": x})
    return answer


@pytest.mark.parametrize(
    ("function", "expected", "values"),
    [
        (operators.ndtr, ndtr, np.linspace(-9.0, 9.0, 701)),
        (operators.expm1, np.expm1, np.r_[-50.0, np.geomspace(1e-20, 20.0, 60), -1e-9, 0.0]),
        (operators.log1p, np.log1p, np.r_[-0.9, np.geomspace(1e-30, 1e9, 60), -1e-9, 0.0]),
    ],
    ids=["ndtr", "expm1", "log1p"],
)
def test_functions_are_right_to_thirteen_digits(function, expected, values) -> None:
    x = values[:, None]
    assert_allclose(run(function, x), expected(x), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, 1:3] * x[..., :1] - 2.0 / x[..., 2:],
        lambda x: x @ (np.arange(8.0).reshape(2, 4, 1) + 1.0),
        lambda x: (np.ones((4, 3)) + x[..., None]).T,
    ],
)
def test_arrays_of_a_graph_are_those_of_numpy(function) -> None:
    x = np.random.default_rng(0).uniform(1.0, 2.0, size=(2, 4))
    assert_allclose(run(function, x), function(x), rtol=1e-15)


def test_a_loop_and_what_stands_in_it_and_after_it() -> None:
    """Nodes of the step are not known outside it: the same expression is computed again."""

    def newton(x: Traced) -> Traced:
        [root] = x.device.loop(30, [x], lambda r: [0.5 * (r + x / r)])
        return root + 0.5 * (x + x / x)

    x = np.array([[2.0, 9.0]])
    assert_allclose(run(newton, x), np.sqrt(x) + 0.5 * (x + 1.0), rtol=1e-15)


def test_shapes_that_do_not_fit_are_noticed() -> None:
    assert broadcast((None, 1), (3,), (2, 1, 1)) == (2, None, 3)
    with pytest.raises(ValueError, match="shapes"):
        broadcast((None, 2), (3, 2))
