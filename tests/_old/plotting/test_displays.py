"""What holds for every display: how it is made and drawn, what it keeps, and what it refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import (
    ActivationDisplay,
    CalibrationCurveDisplay,
    ElboDisplay,
    ImportanceDisplay,
    NetworkDisplay,
    OverviewDisplay,
    PitHistogramDisplay,
    PredictedActualDisplay,
    PredictiveBandDisplay,
    RelevanceDisplay,
    ShrinkageDisplay,
    WeightsDisplay,
)
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from tests._old.plotting.fits import quick

Rows = tuple[pd.DataFrame, pd.Series]

OF_ROWS = (CalibrationCurveDisplay, PitHistogramDisplay, PredictedActualDisplay)
OF_FIGURES = (ActivationDisplay, ElboDisplay, ShrinkageDisplay, WeightsDisplay)
OF_BOTH = (OverviewDisplay,)
DISPLAYS = (
    *OF_ROWS,
    ImportanceDisplay,
    PredictiveBandDisplay,
    NetworkDisplay,
    RelevanceDisplay,
    *OF_FIGURES,
    *OF_BOTH,
)
OF_NETWORKS = list(DISPLAYS[5:-1])


def draw(display: Any, model: Any, rows: Rows, **settings: Any) -> Any:
    """A display of a fitted estimator, with the fewest arguments that it needs."""
    X, y = rows
    given: tuple[Any, ...] = ()
    if display in (*OF_ROWS, *OF_BOTH, ImportanceDisplay):
        given = (X, y)
    if display is PredictiveBandDisplay:
        given, settings = (X, 0), {"grid": 5, "y": y} | settings
    return display.from_estimator(model, *given, **settings)


def place(display: Any) -> dict[str, Any]:
    """Somewhere to draw that no window knows of."""
    figure = Figure(layout="constrained")
    return {"fig": figure} if display in (*OF_FIGURES, *OF_BOTH) else {"ax": figure.add_subplot()}


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_new_figure_or_the_one_that_is_given(
    display: Any, model: BowTieRegressor, rows: Rows
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = draw(display, model, rows)
        made.figure_.canvas.draw()
        assert pyplot.get_fignums() == [made.figure_.number]
        assert lies_inside(made.figure_)
        pyplot.close(made.figure_)
        where = place(display)
        assert made.plot(**where) is made
        FigureCanvasAgg(made.figure_).draw()
    assert pyplot.get_fignums() == []
    assert made.figure_ is where.get("fig", getattr(where.get("ax"), "figure", None))
    axes = [made.ax_] if hasattr(made, "ax_") else np.ravel(made.axes_)
    assert all(ax.figure is made.figure_ for ax in axes)
    assert any(ax.get_title() for ax in axes) or made.figure_.get_suptitle()
    text = display.__doc__.split("Attributes")[1].split("Examples")[0]
    documented = [line.split(" : ")[0] for line in text.splitlines() if " : " in line]
    names = [name.strip() for line in documented for name in line.split(",")]
    assert names
    assert [name for name in names if not hasattr(made, name)] == []


def lies_inside(figure: Any) -> bool:
    """Whether all that is drawn lies inside the figure."""
    drawn, whole = figure.get_tightbbox(), figure.bbox_inches
    inside = drawn.x0 >= whole.x0 - 0.02 and drawn.y0 >= whole.y0 - 0.02
    return bool(inside and drawn.x1 <= whole.x1 + 0.02 and drawn.y1 <= whole.y1 + 0.02)


@pytest.mark.parametrize(
    "made",
    [
        lambda: WeightsDisplay(
            before=[np.ones((50, 51)), np.ones((3, 51))], input_names=["W" * 60] * 50
        ),
        lambda: NetworkDisplay(
            weights=[np.ones((3, 21)), np.ones((2, 4))],
            input_names=["W" * 60] * 20,
            output_names=["out" * 20] * 2,
        ),
        lambda: ImportanceDisplay(
            names=["W" * 60] * 60, losses=np.arange(60.0), errors=np.ones(60), label="loss"
        ),
        lambda: RelevanceDisplay(
            names=["W" * 60] * 60, strength=np.arange(60.0), p_value=np.full(60, 0.5)
        ),
    ],
)
def test_long_names_lie_inside_the_figure_and_apart(made: Callable[[], Any]) -> None:
    figure = made().plot().figure_
    figure.canvas.draw()
    assert lies_inside(figure)
    texts = figure.findobj(lambda artist: str(getattr(artist, "get_text", str)()).startswith("WW"))
    boxes = sorted((text.get_window_extent() for text in texts), key=lambda box: box.y0)
    assert len(boxes) >= 20
    assert all(upper.y0 >= lower.y1 - 1.0 for lower, upper in pairwise(boxes))


@pytest.mark.parametrize("display", DISPLAYS)
def test_pipelines_that_end_with_a_network(display: Any, rows: Rows) -> None:
    X, y = rows
    piped = make_pipeline(StandardScaler(), quick(tol=1.0)).fit(X.to_numpy(), y)
    made = draw(display, piped, (X.to_numpy(), y.to_numpy()), **place(display))
    assert made.figure_ is not None


@pytest.mark.parametrize("display", DISPLAYS)
def test_models_that_cannot_be_drawn(display: Any, rows: Rows) -> None:
    with pytest.raises(TypeError, match="LinearRegression"):
        draw(display, LinearRegression().fit(*rows), rows)
    with pytest.raises(NotFittedError):
        draw(display, BowTieRegressor(), rows)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("display", [*OF_ROWS, ImportanceDisplay, PredictiveBandDisplay])
def test_one_of_several_targets(display: Any, deep: BowTieRegressor, rows: Rows) -> None:
    X, y = rows
    targets = np.column_stack([y, 10.0 + X["c"]])
    one, two = (
        draw(display, deep, (X, targets), target=target, **place(display)) for target in range(2)
    )
    name = next(k for k in ("observed", "values", "actual", "mean", "losses") if hasattr(one, k))
    assert not np.array_equal(getattr(one, name), getattr(two, name))
    with pytest.raises(ValueError, match="target"):
        draw(display, deep, (X, targets), target=2)


@pytest.mark.parametrize("display", OF_ROWS)
def test_predictions_names_and_estimators_give_the_same(
    display: Any, mixed: BowTieRegressor, flats: pd.DataFrame
) -> None:
    one = display.from_estimator(mixed, flats, "price", **place(display))
    two = display.from_predictions(flats["price"], mixed.predict_dist(flats), **place(display))
    for name in ("observed", "low", "values", "heights", "actual", "intervals"):
        if hasattr(one, name):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("display", [CalibrationCurveDisplay, PitHistogramDisplay])
def test_rows_count_by_their_weights(display: Any, rng: np.random.Generator) -> None:
    """Three of each row are those rows three times, but no more is known: Σ w² counts."""
    y, times = rng.normal(size=40), np.repeat([1, 3], 20)
    again = np.repeat(y, times)
    one = display.from_predictions(y, standard(40), sample_weight=times, **place(display))
    two = display.from_predictions(again, standard(80), **place(display))
    name = "observed" if display is CalibrationCurveDisplay else "heights"
    np.testing.assert_allclose(getattr(one, name), getattr(two, name))
    equal = display.from_predictions(y[:32], standard(32), **place(display))
    np.testing.assert_array_equal(one.low, equal.low)  # 80² / (20 + 180) = 32
    with pytest.raises(ValueError, match="sample_weight"):
        display.from_predictions(y, standard(40), sample_weight=times[:3])


@pytest.mark.parametrize("display", [PredictedActualDisplay, PredictiveBandDisplay])
def test_large_numbers_are_written_in_full(
    display: Any, model: BowTieRegressor, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    found = model.predict_dist(X)
    large = build_mixture(found.weights, 8e5 + 1e4 * found.means, 1e4 * found.deviations)
    ends = large.interval(0.9)
    if display is PredictedActualDisplay:
        made = display.from_predictions(8e5 + 1e4 * y, large)
    else:
        made = display.from_predictions(1e5 * X["a"], large.mean(), ends, coverages=0.9)
    made.figure_.canvas.draw()
    labels = [text.get_text() for text in made.ax_.get_yticklabels()]
    assert "800,000" in labels
    assert made.ax_.yaxis.get_offset_text().get_text() == ""
    assert "100,000" in [text.get_text() for text in made.ax_.get_xticklabels()] or (
        display is PredictedActualDisplay
    )


@pytest.mark.parametrize("display", [*OF_NETWORKS[:1], WeightsDisplay, ShrinkageDisplay])
@pytest.mark.parametrize("member", [2, -1, 0.5, True])
def test_members_that_are_not_there(display: Any, model: BowTieRegressor, member: Any) -> None:
    with pytest.raises(ValueError, match="member"):
        display.from_estimator(model, member=member)
    assert pyplot.get_fignums() == []


def standard(n: int) -> Mixture:
    return build_mixture([1.0], np.zeros((1, n)), np.ones((1, n)))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: PredictedActualDisplay.from_predictions(np.zeros(9), standard(8)), "y has shape"),
        (lambda: PitHistogramDisplay.from_predictions([np.nan] * 9, standard(9)), "targets"),
        (lambda: CalibrationCurveDisplay.from_predictions([0.0], standard(1), levels=[2]), "level"),
        (lambda: PitHistogramDisplay(values=[0.5], bins=0), "bins"),
        (lambda: NetworkDisplay(weights=[np.ones((1, 3))], input_names=["a"]), "input_names"),
        (lambda: WeightsDisplay(before=[np.ones((1, 3))], output_names=[]), "output_names"),
        (lambda: RelevanceDisplay(names=[], strength=[1.0]), "names"),
        (lambda: ImportanceDisplay(names=[], losses=[1.0], errors=[1.0], label=""), "names"),
        (lambda: ImportanceDisplay(names=["a"], losses=[1.0], errors=[], label=""), "errors"),
        (lambda: ActivationDisplay.from_parameters([-1.0]), "temperatures"),
        (lambda: ActivationDisplay.from_parameters([1.0], [0.0]), "noise_deviations"),
    ],
)
def test_wrong_numbers_are_refused_by_name(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        make()
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"others": "median"}, "others"),
        ({"feature": "d"}, "'d'"),
        ({"feature": 3}, "feature"),
        ({"feature": True}, "feature"),
        ({"coverages": [90]}, "coverage"),
        ({"grid": 1}, "grid"),
        ({"grid": 2.5}, "grid"),
        ({"y": np.ones(3)}, "y"),
        ({"target": 1}, "target"),
    ],
)
def test_wrong_questions_are_refused_by_name(
    model: BowTieRegressor, rows: Rows, given: dict[str, Any], name: str
) -> None:
    with pytest.raises(ValueError, match=name):
        PredictiveBandDisplay.from_estimator(model, rows[0], **{"feature": "a"} | given)
    assert pyplot.get_fignums() == []


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(TypeError, match="distribution"):
        CalibrationCurveDisplay.from_predictions(np.zeros(3), np.zeros(3))
