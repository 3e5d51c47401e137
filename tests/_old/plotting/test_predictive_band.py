"""Predictive bands: what is drawn is what the model predicts, with the other features as told."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.dates import ConciseDateFormatter

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import PredictiveBandDisplay
from tests._old.plotting.fits import quick

Rows = tuple[pd.DataFrame, pd.Series]


def band_ends(band: Any) -> set[tuple[float, float]]:
    """Corners of a filled band."""
    return {tuple(corner) for corner in band.get_paths()[0].vertices}


def ends(model: BowTieRegressor, table: pd.DataFrame) -> np.ndarray:
    """Intervals (n, 2, 2) of two coverages."""
    return np.stack([model.predict_interval(table, share) for share in (0.5, 0.9)], axis=2)


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("feature", ["b", 1])
def test_others_fixed_at_their_medians(
    model: BowTieRegressor, rows: Rows, feature: str | int
) -> None:
    X, y = rows
    display = PredictiveBandDisplay.from_estimator(model, X, feature, grid=11, y=y)
    along = np.linspace(*X["b"].quantile([0.01, 0.99]), 11)
    new = pd.DataFrame({"a": X["a"].median(), "b": along, "c": X["c"].median()})
    expected = ends(model, new)
    np.testing.assert_allclose(display.line_.get_xdata(), along)
    np.testing.assert_allclose(display.line_.get_ydata(), model.predict(new))
    np.testing.assert_allclose(display.intervals, expected)
    for k, band in enumerate(display.bands_):
        corners = band_ends(band)
        for side in range(2):
            assert set(zip(along, display.intervals[:, side, k], strict=True)) <= corners
    typical = X.assign(a=X["a"].median(), c=X["c"].median())
    dots = np.asarray(display.points_.get_offsets())
    np.testing.assert_array_equal(dots[:, 0], X["b"])
    residuals = model.predict(typical) + y - model.predict(X)
    # Between 40 quantiles the mean is taken for a line.
    np.testing.assert_allclose(dots[:, 1], residuals, atol=0.05)
    assert legend(display.ax_) == ["mean", "50 %", "90 %", "partial residuals"]
    assert display.ax_.get_title() == "Predicted height along b"
    assert display.ax_.get_xlabel() == "b (others at typical values)"
    assert display.ax_.get_ylabel() == "height"


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Days with gaps of 0 to 39 days between them, lengths of stay, and what they cost."""
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2020-02-01") + pd.to_timedelta(rng.integers(40, size=40).cumsum(), "D")
    stay = pd.to_timedelta(rng.integers(6, 240, size=40), "h")
    cost = 0.01 * (day - day[0]).days + stay / pd.Timedelta("2D") + rng.normal(size=40)
    return pd.DataFrame({"day": day, "stay": stay, "cost": cost})


@pytest.fixture(scope="module")
def costs(visits: pd.DataFrame) -> BowTieRegressor:
    return quick().fit(visits, "cost")


def test_dates_lie_on_an_axis_of_dates(costs: BowTieRegressor, visits: pd.DataFrame) -> None:
    """Unequal gaps look unequal, and each line holds what the model says of the day below it."""
    display = PredictiveBandDisplay.from_estimator(costs, visits, "day", grid=31, y="cost")
    display.figure_.draw_without_rendering()
    stay = visits["stay"].sort_values().iloc[19]
    new = pd.DataFrame({"day": display.x, "stay": stay})
    np.testing.assert_allclose(display.mean, costs.predict(new), rtol=1e-6)
    days = display.ax_.convert_xunits(display.line_.get_xdata())
    np.testing.assert_allclose(np.diff(days), np.ptp(days) / 30)
    seen = (visits["day"] - pd.Timestamp("1970-01-01")).dt.days
    dots = np.asarray(display.points_.get_offsets())
    np.testing.assert_allclose(dots[:, 0], seen)
    residuals = costs.predict(visits.assign(stay=stay)) + visits["cost"] - costs.predict(visits)
    np.testing.assert_allclose(dots[:, 1], residuals, rtol=1e-6)
    assert isinstance(display.ax_.xaxis.get_major_formatter(), ConciseDateFormatter)


def test_durations_are_drawn_in_days(costs: BowTieRegressor, visits: pd.DataFrame) -> None:
    display = PredictiveBandDisplay.from_estimator(costs, visits, "stay", grid=[0.5, 2.0], y="cost")
    middle = visits["day"].sort_values().iloc[19]
    new = pd.DataFrame({"day": middle, "stay": pd.to_timedelta([0.5, 2.0], "D")})
    np.testing.assert_allclose(display.mean, costs.predict(new))
    days = visits["stay"] / pd.Timedelta("1D")
    np.testing.assert_allclose(display.points_.get_offsets()[:, 0], days)
    assert display.ax_.get_xlabel() == "stay in days (others at typical values)"


@pytest.mark.parametrize(
    "grid",
    [
        ["2020-05-01", "2020-02-09"],
        [date(2020, 5, 1), date(2020, 2, 9)],
        pd.to_datetime(["2020-05-01", "2020-02-09"]),
        pl.Series([date(2020, 5, 1), date(2020, 2, 9)]),
        [18383.0, 18301.0],
    ],
)
def test_dates_that_are_given(costs: BowTieRegressor, visits: pd.DataFrame, grid: Any) -> None:
    display = PredictiveBandDisplay.from_estimator(costs, visits, "day", grid=grid)
    assert display.x.astype("datetime64[D]").tolist() == [date(2020, 5, 1), date(2020, 2, 9)]
    np.testing.assert_allclose(display.line_.get_ydata(), display.mean[::-1])


@pytest.mark.parametrize("fixture", ["model", "deep"])
def test_averages_are_mixtures_over_the_rows(
    fixture: str, request: pytest.FixtureRequest, rows: Rows
) -> None:
    """Quantiles of the mixture: the mean over rows of F at the ends is the level."""
    fitted, (X, _) = request.getfixturevalue(fixture), rows
    target = fitted.n_outputs_ - 1
    display = PredictiveBandDisplay.from_estimator(
        fitted, X, "a", others="average", grid=[-1.0, 0.5], coverages=[0.8], target=target
    )
    for place, value in enumerate((-1.0, 0.5)):
        found = fitted.predict_dist(X.assign(a=value))
        found = found.of_target(1) if target else found
        np.testing.assert_allclose(display.mean[place], found.mean().mean())
        for end, level in zip(display.intervals[place, :, 0], (0.1, 0.9), strict=True):
            np.testing.assert_allclose(np.mean(found.cdf(end)), level)
    assert display.ax_.get_xlabel() == "a (averaged over 61 rows)"


def test_members_of_unequal_weight_keep_it_in_the_average(rows: Rows) -> None:
    fitted, (X, y) = quick(tol=1.0), rows
    fitted.fit(X, y)
    fitted.ensemble_ = replace(fitted.ensemble_, weights=np.array([0.9, 0.1]))
    display = PredictiveBandDisplay.from_estimator(
        fitted, X, "b", others="average", grid=[50.0], coverages=[0.6]
    )
    found = fitted.predict_dist(X.assign(b=50.0))
    np.testing.assert_allclose(display.mean, found.mean().mean())
    ends = display.intervals[0, :, 0]
    np.testing.assert_allclose([np.mean(found.cdf(end)) for end in ends], [0.2, 0.8])


@pytest.mark.parametrize("others", ["fixed", "average"])
@pytest.mark.parametrize("feature", ["city", "area", "new"])
def test_tables_of_all_libraries_give_the_same_picture(
    mixed: BowTieRegressor, flats: pd.DataFrame, feature: str, others: str
) -> None:
    drawn = [
        PredictiveBandDisplay.from_estimator(
            mixed, table, feature, others=others, grid=5 if feature == "area" else 100, y="price"
        )
        for table in (flats, pl.from_pandas(flats), pa.Table.from_pandas(flats))
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
    area = flats["area"].fillna(flats["area"].median()).sort_values().iloc[29]
    new = pd.DataFrame({"city": ["Lima", "Oslo", "Rome"], "area": area, "new": False})
    np.testing.assert_allclose(display.line_.get_ydata(), mixed.predict(new))
    expected = ends(mixed, new)
    for k, bars in enumerate(display.bands_):
        for place, bar in enumerate(bars.get_segments()):
            np.testing.assert_allclose(bar, [[place, e] for e in expected[place, :, k]])
    spots = np.asarray(display.points_.get_offsets())
    at = mixed.predict(flats.assign(area=area, new=False))
    np.testing.assert_allclose(spots[:, 1], at + flats["price"] - mixed.predict(flats))
    names = display.x[np.floor(spots[:, 0]).astype(int)]
    assert names.tolist() == flats["city"].tolist()


def test_given_categories_alone(mixed: BowTieRegressor, flats: pd.DataFrame) -> None:
    display = PredictiveBandDisplay.from_estimator(
        mixed, flats, "city", y="price", grid=["Rome", "Oslo"]
    )
    assert display.x.tolist() == ["Rome", "Oslo"]
    assert len(display.points_.get_offsets()) == flats["city"].isin(["Rome", "Oslo"]).sum()
    with pytest.raises(ValueError, match=r"'Paris'.*'city'"):
        PredictiveBandDisplay.from_estimator(mixed, flats, "city", grid=["Paris"])


def test_of_many_categories_the_frequent_ones_are_shown(rng: np.random.Generator) -> None:
    letters = [letter * 2 for letter in "abcdefghijklmnopqrstuvwxyz"]
    table = pd.DataFrame({"word": [*letters, *letters[:20]], "y": rng.normal(size=46)})
    fitted = quick(n_estimators=1, tol=1.0).fit(table, "y")
    display = PredictiveBandDisplay.from_estimator(fitted, table, "word")
    assert display.x.tolist() == letters[:20]


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
    np.testing.assert_array_equal(display.points_.get_offsets()[:, 0], kept["area"])


def test_a_constant_feature_has_no_line(model: BowTieRegressor, rows: Rows) -> None:
    with pytest.raises(ValueError, match="column 'a'"):
        PredictiveBandDisplay.from_estimator(model, rows[0].assign(a=1.0), "a")
    left_out = quick(n_estimators=1, tol=1.0).fit(rows[0].assign(d=1.0), rows[1])
    with pytest.raises(ValueError, match="column 'd'"):
        PredictiveBandDisplay.from_estimator(left_out, rows[0].assign(d=1.0), "d")


def test_truth_values_are_two_points(mixed: BowTieRegressor, flats: pd.DataFrame) -> None:
    display = PredictiveBandDisplay.from_estimator(mixed, flats, "new", y="price")
    assert display.x.tolist() == ["0", "1"]
    spots = np.asarray(display.points_.get_offsets())
    np.testing.assert_array_equal(np.floor(spots[:, 0]), flats["new"])


def test_the_only_feature_has_the_data_themselves(rng: np.random.Generator) -> None:
    table = pd.DataFrame({"x": rng.normal(size=30), "y": rng.normal(size=30)})
    fitted = quick(n_estimators=1, tol=1.0).fit(table, "y")
    display = PredictiveBandDisplay.from_estimator(fitted, table, "x", y="y")
    np.testing.assert_allclose(display.points_.get_offsets(), table)
    assert legend(display.ax_)[-1] == "data"


def test_long_categories_are_turned_and_cut(rng: np.random.Generator) -> None:
    names = [f"a category with the number {place} and a long name" for place in range(4)]
    table = pd.DataFrame({"kind": names * 10, "y": rng.normal(size=40)})
    fitted = quick(n_estimators=1, tol=1.0).fit(table, "y")
    display = PredictiveBandDisplay.from_estimator(fitted, table, "kind")
    labels = display.ax_.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {35.0}
    assert max(len(label.get_text()) for label in labels) == 22
