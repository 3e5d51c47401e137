"""Drawn networks: a line for each weight, names of columns and outputs; draws for ArviZ."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.plotting import NetworkDisplay
from bowtienet.plotting._display import BLUE, ORANGE, PALE

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.abs(X[:, 0]) + X[:, 1]
CITIES = RNG.choice(["Lima", "Oslo", "Rome"], size=60)
TABLE = pd.DataFrame({"city": CITIES, "age": X[:, 0], "height": X[:, 1], "weight": Y})
SMALL: dict[str, Any] = {"n_members": 2, "init": "laplace", "max_iter": 5, "random_state": 0}


@pytest.fixture(scope="module")
def model() -> BowTieNetwork:
    return BowTieNetwork((4, 3), **SMALL).fit(TABLE, "weight")


def names(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def greys(ax: Any) -> list[list[bool]]:
    """Which circles of each layer are grey."""
    layers = [circles.get_facecolors() for circles in ax.collections]
    return [[to_rgb(face[:3]) == to_rgb(PALE) for face in faces] for faces in layers]


def test_every_weight_is_one_line_between_its_units() -> None:
    first = np.array([[1.0, -4.0, 0.0], [0.0, 2.0, 0.0]])
    last = np.array([[0.5, 0.0]])
    ax = NetworkDisplay(weights=[first, last], input_names="abc", output_names=["y"]).plot().ax_
    heights = [circles.get_offsets()[:, 1].data for circles in ax.collections]
    expected = {
        (
            layer,
            heights[layer][k],
            heights[layer + 1][d],
            BLUE if matrix[d, k] > 0 else ORANGE,
        )
        for layer, matrix in enumerate((first, last))
        for d, k in zip(*np.nonzero(matrix), strict=True)
    }
    drawn = [(*line.get_xdata()[:1], *line.get_ydata(), line.get_color()) for line in ax.lines]
    assert len(drawn) == len(expected) == 4
    assert set(drawn) == expected
    widths = {line.get_ydata()[0]: line.get_linewidth() for line in ax.lines[:2]}
    assert widths[heights[0][1]] > widths[heights[0][0]]
    assert greys(ax) == [[False, False, True], [False, False], [False]]
    assert names(ax) == ["a", "b", "c", "y"]


def test_a_whole_network(model: BowTieNetwork) -> None:
    """The weights are those of the best member; the city has a column for each level."""
    display = NetworkDisplay.from_estimator(model)
    inputs = ["city=Lima", "city=Oslo", "city=Rome", "age", "height"]
    assert names(display.ax_) == [*inputs, "weight"]
    assert len(display.ax_.lines) == 5 * 4 + 4 * 3 + 3
    assert "4-3 hidden units, 35 weights" in display.ax_.get_title(loc="left")
    best = model._fitted.posterior.layers[0].weights.mean[model._best][:, 1:]
    np.testing.assert_array_equal(display.weights[0], best)
    _, ax = pyplot.subplots()
    assert display.plot(ax=ax).ax_ is ax
    assert display.figure_ is ax.figure
    assert NetworkDisplay.from_estimator(model, ax=ax).ax_ is ax


@pytest.mark.filterwarnings("ignore:the false discovery rate")
def test_pruned_networks() -> None:
    model = BowTieNetwork((4,), **{**SMALL, "max_iter": 150}).fit(TABLE, "weight")
    pruned = model.prune(0.01)
    ax = NetworkDisplay.from_estimator(pruned).ax_
    shown = names(ax)
    assert "height" in shown
    assert "city=Lima" not in shown
    assert len(ax.lines) == model.selection(0.01).weights
    assert {name.split("=")[0] for name in shown[:-1]} == {
        TABLE.columns[i] for i in pruned.kept_columns_
    }
    assert not any(map(any, greys(ax)))
    constant = BowTieNetwork((4,), **SMALL).fit(X, RNG.normal(size=60)).prune(1e-9)
    ax = NetworkDisplay.from_estimator(constant).ax_
    assert len(ax.lines) == 0
    assert names(ax) == ["y"]
    assert "no hidden layer" in ax.get_title(loc="left")


@pytest.mark.parametrize("n_outputs", [1, 2, 3])
def test_names_of_outputs(n_outputs: int) -> None:
    targets = Y if n_outputs == 1 else np.column_stack([Y] * n_outputs)
    ax = NetworkDisplay.from_estimator(BowTieNetwork((3,), **SMALL).fit(X, targets)).ax_
    assert len(names(ax)) == 3 + n_outputs
    labels = np.array(["low", "mid", "top"])[np.arange(60) % n_outputs]
    if n_outputs > 1:
        classifier = BowTieNetworkClassifier((3,), **SMALL).fit(X, labels)
        ax = NetworkDisplay.from_estimator(classifier).ax_
        assert names(ax)[3:] == (["low", "mid", "top"] if n_outputs == 3 else ["y"])


def test_of_many_weights_the_largest_are_drawn(rng: np.random.Generator) -> None:
    """Sizes are relative to the largest of their layer, so that no layer is empty."""
    weights = [rng.normal(size=(40, 20)), 1e-3 * rng.normal(size=(1, 40)), np.zeros((1, 1))]
    ax = NetworkDisplay(weights=weights, input_names=range(20), output_names=["y"]).plot().ax_
    assert len(ax.lines) == 400
    assert "400 largest" in ax.get_title(loc="left")
    shares = np.concatenate([np.abs(w).ravel() / np.abs(w).max() for w in weights[:2]])
    of_output = np.abs(weights[1]) / np.abs(weights[1]).max() >= np.sort(shares)[-400]
    assert sum(line.get_xdata()[0] == 1 for line in ax.lines) == of_output.sum()


def test_draws_for_arviz(model: BowTieNetwork) -> None:
    """A chain for each member, whose means are those of q."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ says once a day that it will change
        pytest.importorskip("arviz")
    found = model.to_arviz(draws=400).posterior
    assert dict(found.sizes)["chain"] == 2
    assert found["weights_1"].shape == (2, 400, 4, 6)
    assert found["weights_3"].shape == (2, 400, 1, 4)
    assert found["noise_variance_2"].shape == (2, 400, 3)
    assert (found["noise_variance_1"] > 0.0).all()
    for layer, q in enumerate(model._fitted.posterior.layers):
        draws = found[f"weights_{layer + 1}"].to_numpy()
        deviations = np.sqrt(np.diagonal(q.weights.covariance, axis1=-2, axis2=-1))
        error = np.abs(draws.mean(axis=1) - q.weights.mean) / deviations
        assert error.max() < 4.5 / np.sqrt(400)
    again = model.to_arviz(draws=400).posterior
    np.testing.assert_array_equal(again["weights_1"], found["weights_1"])
