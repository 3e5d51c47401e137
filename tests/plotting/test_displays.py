"""Displays: what is drawn is what the estimators predict, and the weights of networks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.evaluation import chance_band, pit
from bowtienet.plotting import (
    CalibrationDisplay,
    NetworkDisplay,
    OverviewDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
)
from bowtienet.plotting._display import BLUE, ORANGE, PALE, plain_numbers, shortened
from bowtienet.plotting.calibration import BINS
from tests.evaluation.conftest import NAMES, Fitted

REGRESSORS = ("numbers", "counts", "network")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.abs(X[:, 0]) + X[:, 1]
CITIES = RNG.choice(["Lima", "Oslo", "Rome"], size=60)
TABLE = pd.DataFrame({"city": CITIES, "age": X[:, 0], "height": X[:, 1], "weight": Y})
SMALL: dict[str, Any] = {"n_members": 2, "init": "laplace", "max_iter": 5, "random_state": 0}


def hulls(ax: Any) -> list[np.ndarray]:
    """Lowest and highest y of each filled band, by x."""
    bands = [pd.DataFrame(band.get_paths()[0].vertices) for band in ax.collections]
    return [band.groupby(0)[1].agg(["min", "max"]).to_numpy() for band in bands]


@pytest.mark.parametrize("name", REGRESSORS)
def test_band_along_a_number(fitted: dict[str, Fitted], name: str) -> None:
    model, X, _ = fitted[name]
    display = PredictiveBandDisplay.from_estimator(model, X, "size")
    assert set(display.values) <= set(X["size"])
    assert {X["size"].min(), X["size"].max()} <= set(display.values)
    rows = X.iloc[: len(display.values)].assign(
        size=display.values, city=X["city"].mode()[0], day=X["day"].sort_values().iloc[80], rooms=3
    )
    assert np.median(X["rooms"]) == 3
    line, (outer, inner) = display.ax_.lines[0], hulls(display.ax_)
    np.testing.assert_allclose(line.get_ydata(), model.predict(rows))
    np.testing.assert_allclose(outer, model.predict_interval(rows), rtol=1e-6)
    parts = model.predict_components(rows)
    np.testing.assert_allclose((inner[:, 1] - inner[:, 0]) / 2.0, 1.6448536 * parts.epistemic)


def test_band_along_categories_and_dates(fitted: dict[str, Fitted]) -> None:
    """Points with two bars each."""
    model, X, y = fitted["counts"]
    display = PredictiveBandDisplay.from_estimator(model, X, "city", y)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["Lima", "Oslo", "Rome"]
    outer = [path.vertices[:, 1] for path in display.ax_.collections[0].get_paths()]
    np.testing.assert_array_equal(outer, display.interval)
    dates = PredictiveBandDisplay.from_estimator(model, X, "day", y)
    assert dates.values.dtype.kind == "M"
    assert 2 < len(dates.values) <= 12
    np.testing.assert_array_equal(dates.ax_.lines[0].get_ydata(), dates.mean)


def test_dots_are_residuals_about_the_mean(fitted: dict[str, Fitted]) -> None:
    model, X, y = fitted["numbers"]
    display = PredictiveBandDisplay.from_estimator(model, X, "size", y)
    values, dots = display.points
    along = np.interp(values, display.values, display.mean)
    order, rows = np.argsort(values), np.argsort(X["size"].to_numpy())
    residuals = (y - model.predict(X))[rows]
    np.testing.assert_allclose((dots - along)[order], residuals, atol=0.05)


def test_frames_and_arrays_are_the_same(fitted: dict[str, Fitted], rng: Any) -> None:
    model, X, _ = fitted["numbers"]
    pandas = PredictiveBandDisplay.from_estimator(model, X, "rooms")
    other = PredictiveBandDisplay.from_estimator(model, polars.from_pandas(X), "rooms")
    np.testing.assert_array_equal(pandas.mean, other.mean)
    array = rng.normal(size=(60, 2))
    network = BowTieNetwork((), n_members=1, init="laplace").fit(array, array[:, 1])
    display = PredictiveBandDisplay.from_estimator(network, array, 1, array[:, 1])
    held = np.column_stack([np.full_like(display.values, np.sort(array[:, 0])[30]), display.values])
    np.testing.assert_array_equal(display.mean, network.predict(held))
    assert display.ax_.get_xlabel() == "x1"
    named = PredictiveBandDisplay.from_estimator(network, array, "x1", array[:, 1])
    np.testing.assert_array_equal(named.mean, display.mean)
    with pytest.raises(TypeError, match=r"BowTieNetwork.*BowTieRegressor"):
        NetworkDisplay.from_estimator(model)
    empty = X.assign(size=np.nan)
    with pytest.raises(ValueError, match="'size'"):
        PredictiveBandDisplay.from_estimator(model, empty, "size")
    with pytest.raises(ValueError, match="feature"):
        PredictiveBandDisplay.from_estimator(model, X, "sizes")


def test_band_of_classes(fitted: dict[str, Fitted]) -> None:
    """A line for each class, and of two the second."""
    for name, shown in (("classes", [0, 1, 2]), ("network classes", [1])):
        model, X, _ = fitted[name]
        display = PredictiveBandDisplay.from_estimator(model, X, "size")
        lines = [line.get_ydata() for line in display.ax_.lines]
        np.testing.assert_array_equal(lines, display.mean.T[shown])
        np.testing.assert_allclose(display.mean.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", REGRESSORS)
def test_predicted_and_actual(fitted: dict[str, Fitted], name: str) -> None:
    model, X, y = fitted[name]
    display = PredictedActualDisplay.from_estimator(model, X, y, coverage=0.5)
    low, high = model.predict_interval(X, 0.5).T
    outside = (y < low) | (y > high)
    bars, inside_dots, outside_dots = display.ax_.collections
    assert len(bars.get_paths()) == len(y)
    expected = np.column_stack([model.predict(X), y])
    np.testing.assert_allclose(inside_dots.get_offsets(), expected[~outside])
    np.testing.assert_allclose(outside_dots.get_offsets(), expected[outside])
    assert to_rgb(outside_dots.get_facecolor()[0]) == pytest.approx(to_rgb(ORANGE))
    assert f"{100 * outside.mean():.0f} % of 160" in display.ax_.get_title(loc="left")


@pytest.mark.parametrize("name", REGRESSORS)
def test_coverage_and_histogram(fitted: dict[str, Fitted], name: str) -> None:
    model, X, y = fitted[name]
    display = CalibrationDisplay.from_estimator(model, X, y)
    values = pit(y, model.predict_dist(X))
    observed = [
        np.mean(np.abs(2.0 * values - 1.0) <= level) for level in np.linspace(0.0, 1.0, 101)
    ]
    np.testing.assert_array_equal(display.ax_.lines[1].get_ydata(), observed)
    (inset,) = display.ax_.child_axes
    heights = [bar.get_height() for bar in inset.patches]
    np.testing.assert_allclose(heights, BINS * np.histogram(values, BINS, (0, 1))[0] / len(y))


def test_reliability(fitted: dict[str, Fitted]) -> None:
    model, X, y = fitted["network classes"]
    display = CalibrationDisplay.from_estimator(model, X, y)
    stated = np.sort(model.predict_proba(X)[:, 1]).reshape(BINS, -1).mean(axis=1)
    np.testing.assert_allclose(display.ax_.lines[1].get_xdata(), stated)
    hits = y[np.argsort(model.predict_proba(X)[:, 1], kind="stable")].reshape(BINS, -1)
    np.testing.assert_allclose(display.ax_.lines[1].get_ydata(), hits.mean(axis=1))
    first = display.ax_.collections[0].get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(first, chance_band(stated[0], 16))
    model, X, y = fitted["classes"]
    display = CalibrationDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(display.hits, model.predict(X) == y)
    np.testing.assert_array_equal(display.probabilities, model.predict_proba(X).max(axis=1))


@pytest.mark.parametrize("name", NAMES)
def test_overview(fitted: dict[str, Fitted], name: str, tmp_path: Path) -> None:
    """Four plots that can be drawn again; the strongest column comes first."""
    model, X, y = fitted[name]
    display = model.plot(X, y)
    kinds = [type(each) for each in display.displays]
    assert len(kinds) == len(display.ax_) == 4
    assert (PredictedActualDisplay in kinds) == (name in REGRESSORS)
    assert (NetworkDisplay in kinds) == name.startswith("network")
    assert CalibrationDisplay in kinds
    assert display.displays[kinds.index(PredictiveBandDisplay)].feature == "size"
    display.figure_.savefig(tmp_path / "overview.png", dpi=50)
    assert (tmp_path / "overview.png").stat().st_size > 10_000
    axes = pyplot.subplots(1, 4)[1]
    again = OverviewDisplay.from_estimator(model, X, y, ax=axes)
    assert again.figure_ is axes[0].figure
    assert again.plot().figure_ is not axes[0].figure


def test_long_names_keep_their_ends() -> None:
    names = {shortened(f"the district of number {i}", 12) for i in range(20)}
    assert len(names) == 20
    assert max(map(len, names)) == 12
    assert shortened("short", 12) == "short"


def test_ticks_have_no_exponents() -> None:
    _, ax = pyplot.subplots()
    ax.set(xlim=(0.0, 2.5e6), ylim=(-0.02, 0.02))
    plain_numbers(ax.xaxis, ax.yaxis)
    ax.figure.canvas.draw()
    texts = [text.get_text() for axis in (ax.xaxis, ax.yaxis) for text in axis.get_ticklabels()]
    assert "2,000,000" in texts
    assert "−0.02" in texts
    assert not any("e" in text for text in texts)


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
        (i, heights[i][k], heights[i + 1][d], BLUE if matrix[d, k] > 0 else ORANGE)
        for i, matrix in enumerate((first, last))
        for d, k in np.argwhere(matrix)
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
