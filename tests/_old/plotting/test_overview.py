"""The one figure of new rows: its panels, for numbers, counts and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import OverviewDisplay
from tests._old.estimators.shown_fits import FEATURES, fitted, table
from tests._old.plotting.fits import quick

Rows = tuple[pd.DataFrame, pd.Series]


def titles(display: Any) -> list[str]:
    return [ax.get_title().replace("\n", " ") for ax in np.ravel(display.axes_)]


def test_numbers_have_four_panels(model: BowTieRegressor, rows: Rows) -> None:
    X, y = rows
    display = model.plot(X, y, coverage=0.8)
    assert titles(display) == [
        "Actual against predicted height",
        f"Predicted height along {model.columns_[strongest(model)].name}",
        "Calibration of central intervals",
        "PIT histogram: flat if calibrated",
    ]
    actual, band, calibration, _ = display.displays
    np.testing.assert_allclose(actual.predicted, model.predict(X))
    assert band.coverages.tolist() == [0.5, 0.8]
    assert band.points_ is not None
    assert calibration.n_rows == len(X)
    assert display.figure_.get_suptitle() == "BowTieRegressor of height: 61 rows"


def strongest(model: BowTieRegressor) -> int:
    return int(np.argmax(model.feature_relevance_.strength))


def test_names_features_targets_and_figures(deep: BowTieRegressor, rows: Rows) -> None:
    X, y = rows
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    targets = np.column_stack([y, 10.0 + X["c"]])
    display = OverviewDisplay.from_estimator(deep, X, targets, target=1, feature="c", fig=figure)
    assert display.figure_ is figure
    assert pyplot.get_fignums() == []
    np.testing.assert_allclose(display.displays[0].predicted, deep.predict(X)[:, 1])
    assert "along c" in titles(display)[1]
    other = Figure(figsize=(9.0, 7.0), layout="constrained")
    assert display.plot(fig=other).figure_ is other
    assert len(other.axes) == 4


def test_columns_of_a_table_may_hold_the_targets(mixed: BowTieRegressor, flats: Any) -> None:
    display = mixed.plot(flats, "price")
    np.testing.assert_array_equal(display.displays[0].actual, flats["price"])
    with pytest.raises(ValueError, match="y"):
        mixed.plot(flats[["city", "area", "new"]])


def test_counts_have_the_panels_of_numbers() -> None:
    model, rows = fitted("visits"), table()
    hours = np.full(len(rows), 2.0)
    display = model.plot(rows[FEATURES], rows["visits"], exposure=hours)
    actual, band, *_ = display.displays
    np.testing.assert_allclose(actual.predicted, model.predict(rows[FEATURES], exposure=hours))
    at = pd.DataFrame({"area": band.x, "city": "Rome", FEATURES[2]: 0.0})
    assert band.mean == pytest.approx(model.predict(at), rel=0.5)
    assert np.all(band.intervals % 1.0 == 0.0)
    residuals = (rows["visits"] - model.predict(rows[FEATURES], exposure=hours)) / 2.0
    along = np.interp(rows["area"], band.x, band.mean)
    np.testing.assert_allclose(band.data[1], along + residuals, atol=0.2)


def test_classes_have_three_panels_or_two() -> None:
    model, rows = fitted("grade"), table()
    display = model.plot(rows[FEATURES], rows["grade"])
    assert titles(display) == [
        "Reliability of class probabilities",
        "Confusion matrix",
        "ROC curves",
    ]
    assert display.displays[1].counts.sum() == len(rows)
    own = rows[rows["grade"] == "low"]
    assert len(model.plot(own[FEATURES], own["grade"]).displays) == 2


def test_pipelines(rows: Rows) -> None:
    X, y = rows
    chain = make_pipeline(StandardScaler(), quick(n_estimators=1, tol=1.0)).fit(X, y)
    display = OverviewDisplay.from_estimator(chain, X, y)
    np.testing.assert_allclose(display.displays[0].predicted, chain.predict(X))
