"""Displays: what is drawn is what the estimators predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from matplotlib import pyplot

from bowtienet import BowTieNetwork
from bowtienet.evaluation import chance_band, pit
from bowtienet.plotting import (
    CalibrationDisplay,
    NetworkDisplay,
    OverviewDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
)
from bowtienet.plotting._display import ORANGE, plain_numbers, shortened
from bowtienet.plotting.calibration import BINS
from tests.evaluation.conftest import NAMES, Fitted

REGRESSORS = ("numbers", "counts", "network")


def hulls(ax: Any) -> list[np.ndarray]:
    """Lowest and highest y of each filled band, by x."""
    bands = []
    for band in ax.collections:
        points = band.get_paths()[0].vertices
        xs = np.unique(points[:, 0])
        bands.append(
            np.array([[f(points[points[:, 0] == x, 1]) for f in (np.min, np.max)] for x in xs])
        )
    return bands


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
    assert outside_dots.get_facecolor()[0, :3] == pytest.approx(
        [int(ORANGE[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    )
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
    _, axes = pyplot.subplots(1, 4)
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
