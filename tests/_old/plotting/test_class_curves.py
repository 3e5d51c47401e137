"""ROC and precision-recall curves: those of scikit-learn, by class, and readable when many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from bowtienet._old.plotting import PrecisionRecallCurvesDisplay, RocCurvesDisplay
from bowtienet._old.plotting.class_curves import line_of

both = pytest.mark.parametrize("display", [RocCurvesDisplay, PrecisionRecallCurvesDisplay])


def table(k: int, n: int = 80, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, of which every class has some, probabilities and classes."""
    rng = np.random.default_rng(0)
    classes = np.array([f"class {c}" for c in range(k)])
    places = np.arange(n) % k
    scores = np.exp(rng.normal(size=(n, k)) + sharpness * np.eye(k)[places])
    return classes[places], scores / np.sum(scores, axis=1, keepdims=True), classes


def scikit_learn(display: Any, truths: Any, scores: Any, weight: Any) -> tuple[Any, Any, float]:
    settings = {"sample_weight": weight}
    if display is RocCurvesDisplay:
        x, y, _ = roc_curve(truths, scores, **settings)
        return x, y, float(roc_auc_score(truths, scores, **settings))
    y, x, _ = precision_recall_curve(truths, scores, **settings)
    return x, y, float(average_precision_score(truths, scores, **settings))


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@both
@pytest.mark.parametrize("k", [2, 3])
def test_curves_are_those_of_scikit_learn(display: Any, k: int, rng: np.random.Generator) -> None:
    y, p, classes = table(k)
    weight = rng.uniform(size=80)
    made = display.from_predictions(y, p, classes, sample_weight=weight)
    drawn = classes if k > 2 else classes[1:]
    assert list(made.lines_) == list(drawn)
    for name in drawn:
        scores = p[:, list(classes).index(name)]
        x, height, area = scikit_learn(display, y == name, scores, weight)
        np.testing.assert_allclose(made.lines_[name].get_xdata(), x)
        np.testing.assert_allclose(made.lines_[name].get_ydata(), height)
        assert made.areas[name] == pytest.approx(area)
        assert f"{made._area_name} {area:.3f}" in made.lines_[name].get_label()


def test_the_lines_of_chance() -> None:
    y, p, classes = table(2, n=81)
    assert "chance" in legend(RocCurvesDisplay.from_predictions(y, p, classes).ax_)
    made = PrecisionRecallCurvesDisplay.from_predictions(y, p, classes)
    (chance,) = [line for line in made.ax_.lines if line.get_label() == "chance"]
    np.testing.assert_allclose(chance.get_ydata(), 40 / 81)
    several = PrecisionRecallCurvesDisplay.from_predictions(*table(3))
    assert "chance" not in legend(several.ax_)


@both
def test_chosen_classes_and_models_that_share_axes(display: Any) -> None:
    y, p, classes = table(4)
    ax = Figure().add_subplot()
    for name in ("first", "second"):
        display.from_predictions(y, p, classes, labels=["class 2", "class 0"], name=name, ax=ax)
    names = [word.split(" (")[0] for word in legend(ax) if word != "chance"]
    assert names == [f"{model}, class {c}" for model in ("first", "second") for c in (2, 0)]
    looks = [(line.get_color(), line.get_linestyle()) for line in ax.lines if line.get_gid()]
    assert len(set(looks)) == 4


@both
def test_of_many_classes_the_worst_are_named(display: Any) -> None:
    y, p, classes = table(30, n=300)
    made = display.from_predictions(y, p, classes)
    worst = set(sorted(made.areas, key=lambda name: made.areas[name])[:4])
    words = [word for word in legend(made.ax_) if word != "chance"]
    assert {word.split(" (")[0] for word in words[:-1]} == worst
    rest = [area for name, area in made.areas.items() if name not in worst]
    span = f"{min(rest):.3f} to {max(rest):.3f}"
    assert words[-1] == f"26 more classes ({made._area_name} {span})"
    assert len(made.lines_) == 30


def test_sixteen_lines_differ() -> None:
    assert len({line_of(number) for number in range(16)}) == 16


@both
def test_classes_without_rows_are_left_out(display: Any) -> None:
    y, p, classes = table(3)
    kept = y != "class 1"
    made = display.from_predictions(y[kept], p[kept], classes)
    assert list(made.areas) == ["class 0", "class 2"]
    weighted = display.from_predictions(y, p, classes, sample_weight=kept)
    assert weighted.areas == pytest.approx(made.areas)
    with pytest.raises(ValueError, match="'class 1', but y has no such row"):
        display.from_predictions(y[kept], p[kept], classes, labels=["class 1"])
    with pytest.raises(ValueError, match="labels must be one"):
        display.from_predictions(y, p, classes, labels=["class 9"])
    with pytest.raises(ValueError, match="one class only"):
        display.from_predictions(["class 1"] * 80, p, classes)
