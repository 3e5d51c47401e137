"""What holds for every display of classes: how it is made from a model, and what it keeps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy.stats import nbinom
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old.evaluation.count_metrics import randomized_pit
from bowtienet._old.plotting import (
    CalibrationCurveDisplay,
    ConfusionDisplay,
    PitHistogramDisplay,
    PrecisionRecallCurvesDisplay,
    ReliabilityDisplay,
    RocCurvesDisplay,
)
from tests._old.plotting.test_displays import lies_inside

OF_CLASSES = (
    ConfusionDisplay,
    PrecisionRecallCurvesDisplay,
    ReliabilityDisplay,
    RocCurvesDisplay,
)
every_display = pytest.mark.parametrize("display", OF_CLASSES)


def flowers() -> tuple[Any, np.ndarray, np.ndarray]:
    bunch = load_iris()
    y = bunch.target_names[bunch.target]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(bunch.data[::2], y[::2])
    return model, bunch.data[1::2], y[1::2]


@every_display
def test_a_new_figure_or_the_one_that_is_given(display: Any) -> None:
    model, X, y = flowers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = display.from_estimator(model, X, y)
        made.figure_.canvas.draw()
        assert pyplot.get_fignums() == [made.figure_.number]
        assert lies_inside(made.figure_)
        pyplot.close(made.figure_)
        ax = Figure(layout="constrained").add_subplot()
        assert made.plot(ax=ax) is made
    assert made.ax_ is ax
    assert made.figure_ is ax.figure
    assert pyplot.get_fignums() == []
    text = display.__doc__.split("Attributes")[1]
    documented = [line.split(" : ")[0] for line in text.splitlines() if " : " in line]
    names = [name.strip() for line in documented for name in line.split(",")]
    assert names
    assert [name for name in names if not hasattr(made, name)] == []


@every_display
def test_estimators_and_predictions_give_the_same(display: Any) -> None:
    model, X, y = flowers()
    one = display.from_estimator(model, X, y)
    if display is ConfusionDisplay:
        two = display.from_predictions(y, model.predict(X), model.classes_)
        np.testing.assert_array_equal(one.counts, two.counts)
        assert one.class_names == ["setosa", "versicolor", "virginica"]
        return
    two = display.from_predictions(y, model.predict_proba(X), model.classes_)
    name = "low" if display is ReliabilityDisplay else "areas"
    np.testing.assert_equal(getattr(one, name), getattr(two, name))


@every_display
def test_models_that_cannot_be_drawn(display: Any) -> None:
    _, X, y = flowers()
    with pytest.raises(TypeError, match="LinearRegression"):
        display.from_estimator(LinearRegression().fit(X, np.arange(len(X))), X, y)
    with pytest.raises((TypeError, NotFittedError), match="LogisticRegression"):
        display.from_estimator(LogisticRegression(), X, y)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("display", [CalibrationCurveDisplay, PitHistogramDisplay])
def test_plots_of_counts_use_randomised_values(display: Any) -> None:
    """The same plot every time, and no farther off than Kolmogorov's 99.9 % quantile allows."""
    rng = np.random.default_rng(500)
    found = nbinom(rng.uniform(1.0, 5.0, size=2000), rng.uniform(0.5, 0.9, size=2000))
    y = found.rvs(random_state=rng)
    made, again = (display.from_predictions(y, found) for _ in range(2))
    values = randomized_pit(found, y, np.random.default_rng(0))
    if display is PitHistogramDisplay:
        np.testing.assert_array_equal(made.values, values)
        np.testing.assert_array_equal(made.heights, again.heights)
        return
    shares = [np.mean(np.abs(2.0 * values - 1.0) <= level) for level in made.levels]
    np.testing.assert_allclose(made.observed, shares)
    np.testing.assert_array_equal(made.observed, again.observed)
    farthest = 1.95 / np.sqrt(2000)
    assert np.max(np.abs(made.observed - made.levels)) < farthest
    plain = [np.mean(np.abs(2.0 * found.cdf(y) - 1.0) <= level) for level in made.levels]
    assert np.max(np.abs(plain - made.levels)) > farthest
