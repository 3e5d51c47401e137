"""Predictive bands: what is drawn is what the model predicts, with the other inputs as told."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.dates import ConciseDateFormatter

from bowtienet import BowTieRegressor
from bowtienet.plotting import PredictiveBandDisplay
from bowtienet.plotting._reading import read_columns
from bowtienet.prediction.mixture import GaussianMixture, build_mixture
from bowtienet.representation.kinds import DATE, DURATION

Rows = tuple[pd.DataFrame, pd.Series]


def band_ends(band: Any) -> set[tuple[float, float]]:
    """Corners of a filled band."""
    return {tuple(corner) for corner in band.get_paths()[0].vertices}


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("feature", ["b", 1])
def test_others_fixed_at_their_medians(
    model: BowTieRegressor, rows: Rows, feature: str | int
) -> None:
    X, y = rows
    display = PredictiveBandDisplay.from_estimator(model, X, feature, grid=11, y=y)
    along = np.linspace(X["b"].min(), X["b"].max(), 11)
    new = pd.DataFrame({"a": X["a"].median(), "b": along, "c": X["c"].median()})
    expected = model.predict_interval(new, [0.5, 0.9])
    np.testing.assert_allclose(display.line_.get_xdata(), along)
    np.testing.assert_allclose(display.line_.get_ydata(), model.predict(new))
    np.testing.assert_allclose(display.intervals, expected)
    for k, band in enumerate(display.bands_):
        corners = band_ends(band)
        for side in range(2):
            assert set(zip(along, display.intervals[:, side, k], strict=True)) <= corners
    np.testing.assert_array_equal(display.points_.get_offsets(), np.column_stack([X["b"], y]))
    assert legend(display.ax_) == ["mean", "50 %", "90 %", "data"]
    assert display.ax_.get_xlabel() == "b (others at their medians)"
    assert display.ax_.get_ylabel() == "height"


DAYS = np.array([18300.0, 18301.0, 18420.0, 18600.0])
"""Gaps of 1, 119 and 180 days."""


class _Calendar:
    """N((days / 100)², 1) of the column of dates, N(days, 1) of that of durations."""

    def predict_dist(self, X: pd.DataFrame | pl.DataFrame | pa.Table) -> GaussianMixture:
        moment, span = read_columns(X).contents
        assert (moment.kind, span.kind) == (DATE, DURATION)
        means = np.square(moment.values / 100.0) + span.values
        return build_mixture([1.0], means[None, :], np.ones((1, means.size)))


def calendar(kind: str) -> Any:
    moments = (DAYS * 86_400e6).astype("int64").astype("datetime64[us]")
    spans = np.array([6, 12, 24, 240], dtype="timedelta64[h]")
    pandas = pd.DataFrame({"day": moments, "span": spans.astype("timedelta64[us]")})
    if kind == "zone":
        return pandas.assign(day=pandas["day"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    dates = {"day": moments.astype("datetime64[D]").tolist(), "span": spans.tolist()}
    return {"pandas": pandas, "polars": pl.DataFrame(dates), "pyarrow": pa.table(dates)}[kind]


@pytest.mark.parametrize("others", ["fixed", "average"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "zone"])
def test_dates_lie_on_an_axis_of_dates(kind: str, others: str) -> None:
    """Unequal gaps look unequal, and each line holds what the model says of the day below it."""
    display = PredictiveBandDisplay.from_estimator(
        _Calendar(), calendar(kind), "day", grid=31, y=[1.0, 2.0, 3.0, 4.0], others=others
    )
    display.figure_.draw_without_rendering()
    assert display.x.dtype.kind == "M"
    assert len(display.x) == 31
    days = display.x.astype("datetime64[us]").astype(int) / 86_400e6
    np.testing.assert_allclose(days, np.linspace(18300.0, 18600.0, 31))
    span = 0.5 if others == "fixed" else np.mean([0.25, 0.5, 1.0, 10.0])
    np.testing.assert_allclose(display.mean, np.square(days / 100.0) + span)
    drawn = display.ax_.convert_xunits(display.line_.get_xdata())
    np.testing.assert_allclose(drawn, days)
    np.testing.assert_allclose(
        display.points_.get_offsets(), np.column_stack([DAYS, [1.0, 2.0, 3.0, 4.0]])
    )
    assert isinstance(display.ax_.xaxis.get_major_formatter(), ConciseDateFormatter)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_durations_are_drawn_in_days(kind: str) -> None:
    display = PredictiveBandDisplay.from_estimator(
        _Calendar(), calendar(kind), "span", grid=5, y=[1.0, 2.0, 3.0, 4.0]
    )
    np.testing.assert_allclose(display.x, np.linspace(0.25, 10.0, 5))
    np.testing.assert_allclose(display.mean, 183.01**2 + display.x)
    np.testing.assert_allclose(display.points_.get_offsets()[:, 0], [0.25, 0.5, 1.0, 10.0])
    assert display.ax_.get_xlabel() == "span in days (others at their medians)"


@pytest.mark.parametrize(
    "grid",
    [
        ["2020-05-01", "2020-02-09"],
        [date(2020, 5, 1), date(2020, 2, 9)],
        np.array(["2020-05-01", "2020-02-09"], dtype="datetime64[s]"),
        pd.to_datetime(["2020-05-01", "2020-02-09"]),
        pl.Series([date(2020, 5, 1), date(2020, 2, 9)]),
        [18383.0, 18301.0],
    ],
)
def test_dates_that_are_given(grid: Any) -> None:
    display = PredictiveBandDisplay.from_estimator(
        _Calendar(), calendar("pandas"), "day", grid=grid
    )
    np.testing.assert_allclose(display.mean, np.square([183.83, 183.01]) + 0.5)
    np.testing.assert_allclose(display.line_.get_ydata(), display.mean[::-1])


def test_averages_are_mixtures_over_the_rows(model: BowTieRegressor, rows: Rows) -> None:
    """Quantiles of the mixture: the mean over rows of F at the ends is the level."""
    X, _ = rows
    display = PredictiveBandDisplay.from_estimator(
        model, X, "a", others="average", grid=[-1.0, 0.5], coverages=[0.8]
    )
    for place, value in enumerate((-1.0, 0.5)):
        found = model.predict_dist(X.assign(a=value))
        np.testing.assert_allclose(display.mean[place], found.mean().mean())
        for end, level in zip(display.intervals[place, :, 0], (0.1, 0.9), strict=True):
            np.testing.assert_allclose(np.mean(found.cdf(end)), level)
    assert display.ax_.get_xlabel() == "a (averaged over 61 rows)"


@pytest.mark.parametrize("others", ["fixed", "average"])
@pytest.mark.parametrize("feature", ["city", "area", "new"])
def test_tables_of_all_libraries_give_the_same_picture(
    mixed: BowTieRegressor, flats: pd.DataFrame, feature: str, others: str
) -> None:
    tables = (flats, pl.from_pandas(flats), pa.Table.from_pandas(flats))
    drawn = [
        PredictiveBandDisplay.from_estimator(
            mixed, table, feature, others=others, grid=5 if feature == "area" else 100, y="price"
        )
        for table in tables
    ]
    for other in drawn[1:]:
        np.testing.assert_array_equal(other.x, drawn[0].x)
        np.testing.assert_allclose(other.mean, drawn[0].mean)
        np.testing.assert_allclose(other.intervals, drawn[0].intervals)
        np.testing.assert_array_equal(
            np.asarray(other.points_.get_offsets()), np.asarray(drawn[0].points_.get_offsets())
        )
        assert other.ax_.get_ylabel() == "price"


def test_categories_are_points_with_bars(mixed: BowTieRegressor, flats: pd.DataFrame) -> None:
    display = PredictiveBandDisplay.from_estimator(mixed, flats, "city", y="price")
    ax = display.ax_
    assert [text.get_text() for text in ax.get_xticklabels()] == ["Lima", "Oslo", "Rome"]
    values = np.sort(flats["area"].dropna())
    new = pd.DataFrame(
        {"city": ["Lima", "Oslo", "Rome"], "area": values[(len(values) - 1) // 2], "new": False}
    )
    np.testing.assert_allclose(display.line_.get_ydata(), mixed.predict(new))
    expected = mixed.predict_interval(new, [0.5, 0.9])
    for k, bars in enumerate(display.bands_):
        for place, bar in enumerate(bars.get_segments()):
            np.testing.assert_allclose(bar, [[place, e] for e in expected[place, :, k]])
    spots = np.asarray(display.points_.get_offsets())
    np.testing.assert_array_equal(spots[:, 1], flats["price"])
    names = display.x[np.floor(spots[:, 0]).astype(int)]
    assert names.tolist() == flats["city"].tolist()
    assert ax.get_xlabel() == "city (others at their typical values)"


def test_given_categories_alone(mixed: BowTieRegressor, flats: pd.DataFrame) -> None:
    display = PredictiveBandDisplay.from_estimator(
        mixed, flats, "city", y="price", grid=["Rome", "Oslo"]
    )
    assert display.x.tolist() == ["Rome", "Oslo"]
    assert len(display.points_.get_offsets()) == flats["city"].isin(["Rome", "Oslo"]).sum()
    with pytest.raises(ValueError, match="grid holds 'Paris', which column 'city' does not"):
        PredictiveBandDisplay.from_estimator(mixed, flats, "city", grid=["Paris"])


def test_given_predictions_are_drawn_in_order() -> None:
    display = PredictiveBandDisplay.from_predictions(
        [2.0, 1.0],
        [20.0, 10.0],
        [[15.0, 25.0], [5.0, 15.0]],
        coverages=0.9,
        data=([1.5], [12.0]),
        feature_name="dose",
        target_name="effect",
    ).plot(color="black")
    np.testing.assert_array_equal(display.line_.get_xydata(), [[1.0, 10.0], [2.0, 20.0]])
    assert display.line_.get_color() == "black"
    assert {(1.0, 5.0), (1.0, 15.0), (2.0, 15.0), (2.0, 25.0)} <= band_ends(display.bands_[0])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("dose", "effect")
    assert display.ax_.get_xlim() == (1.0, 2.0)


def test_rows_without_the_number_are_left_out_of_the_dots(
    mixed: BowTieRegressor, flats: pd.DataFrame
) -> None:
    display = PredictiveBandDisplay.from_estimator(mixed, flats, "area", y="price", grid=3)
    kept = flats.dropna()
    np.testing.assert_array_equal(display.points_.get_offsets(), kept[["area", "price"]])


def test_a_constant_input_has_no_line(model: BowTieRegressor, rows: Rows) -> None:
    with pytest.raises(ValueError, match="column 'a' has not two different values"):
        PredictiveBandDisplay.from_estimator(model, rows[0].assign(a=1.0), "a")


class _Unequal:
    """Two members of unequal weight that disagree; any estimator with `predict_dist` will do."""

    def predict_dist(self, X: np.ndarray) -> GaussianMixture:
        means = np.stack([X.sum(axis=1), -X.prod(axis=1)])
        return build_mixture([0.9, 0.1], means, np.stack([1.0 + X[:, 1] ** 2, 0.1 + X[:, 0] ** 2]))


def test_members_of_unequal_weight_keep_it_in_the_average(rng: np.random.Generator) -> None:
    X = rng.normal(size=(7, 2))
    display = PredictiveBandDisplay.from_estimator(
        _Unequal(), X, 0, others="average", grid=[-1.0, 2.0], coverages=[0.6]
    )
    for place, value in enumerate((-1.0, 2.0)):
        found = _Unequal().predict_dist(np.column_stack([np.full(7, value), X[:, 1]]))
        np.testing.assert_allclose(display.mean[place], found.mean().mean())
        for end, level in zip(display.intervals[place, :, 0], (0.2, 0.8), strict=True):
            np.testing.assert_allclose(np.mean(found.cdf(end)), level)
