"""Scores of class probabilities against scikit-learn, hand-made bins and repeated rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sklearn_metrics

from bowtienet._old.evaluation import class_metrics
from bowtienet._old.evaluation.class_metrics import (
    accuracy,
    balanced_accuracy,
    brier_score,
    evaluate_classes,
    expected_calibration_error,
    log_loss,
    reliability_curve,
    roc_auc,
)

Forecast = tuple[np.ndarray, np.ndarray, np.ndarray]
SCORES: dict[str, Callable[..., float]] = {
    "log_loss": log_loss,
    "brier_score": brier_score,
    "calibration_error": expected_calibration_error,
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "roc_auc": roc_auc,
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
n_classes = pytest.mark.parametrize("k", [2, 3, 7])


def forecast(k: int, n: int = 60, seed: int = 0) -> Forecast:
    """Labels, probabilities that are about right for them, and classes."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n)
    classes = np.array([f"class {c}" for c in range(k)])
    return classes[[rng.choice(k, p=row) for row in p]], p, classes


# What the scores are


@n_classes
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_scikit_learn(k: int, weighted: bool, rng: np.random.Generator) -> None:
    y, p, classes = forecast(k)
    weight = rng.uniform(size=60) if weighted else None
    taken = classes[np.argmax(p, axis=1)]
    found = evaluate_classes(y, p, classes, sample_weight=weight)
    assert found.n_rows == 60
    expected = {
        "log_loss": sklearn_metrics.log_loss(y, p, labels=classes, sample_weight=weight),
        "accuracy": sklearn_metrics.accuracy_score(y, taken, sample_weight=weight),
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(
            y, taken, sample_weight=weight
        ),
    }
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
    if k > 2:
        assert math.isnan(found.roc_auc)
        return
    second = y == classes[1]
    brier = sklearn_metrics.brier_score_loss(second, p[:, 1], sample_weight=weight)
    assert found.brier_score == pytest.approx(brier)
    area = sklearn_metrics.roc_auc_score(second, p[:, 1], sample_weight=weight)
    assert found.roc_auc == pytest.approx(area)


def test_the_brier_score_of_several_classes_is_the_sum_over_them() -> None:
    """By hand: (0.5 - 1)² + 0.3² + 0.2², and 0.1² + (0.1 - 1)² + 0.8²."""
    p = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    rows = [0.25 + 0.09 + 0.04, 0.01 + 0.81 + 0.64]
    assert brier_score(["a", "b"], p, ["a", "b", "c"]) == pytest.approx(np.mean(rows))


def test_with_two_classes_it_is_half_of_that_sum() -> None:
    y, p, classes = forecast(2)
    truth = (y[:, None] == classes).astype(float)
    assert brier_score(y, p, classes) == pytest.approx(0.5 * np.mean(np.sum((p - truth) ** 2, 1)))


def test_impossible_labels_cost_the_floor_and_not_more() -> None:
    assert log_loss([1, 0], [0.0, 0.0], [0, 1]) == pytest.approx(0.5 * 52.0 * math.log(2.0))
    ours = log_loss([1, 0], [0.0, 0.0], [0, 1])
    assert ours == pytest.approx(sklearn_metrics.log_loss([1, 0], [0.0, 0.0]))


# Calibration


def test_the_calibration_error_by_hand() -> None:
    """Three bins of two rows each: confidences 0.5, 0.6 | 0.7, 0.7 | 0.8, 0.9."""
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]])
    p = np.concatenate([p, [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.9, 0.1, 0.0]]])
    y = ["c", "b", "c", "a", "a", "c"]  # wrong, right | right, right | wrong, wrong
    gaps = [abs(0.5 - 0.55), abs(1.0 - 0.7), abs(0.0 - 0.85)]
    found = expected_calibration_error(y, p, ["a", "b", "c"], bins=3)
    assert found == pytest.approx(np.mean(gaps))
    weight = [
        1.0,
        1.0,
        1.0,
        1.0,
        4.0,
        0.0,
    ]  # of eight: the middle of 0.8 is at six, in the last bin
    gaps = [2 / 8 * 0.05, 2 / 8 * 0.3, 4 / 8 * 0.8]
    # Middles of the confidences are at 0.5, 1.5, 3 and 6 of 8: bins 0, 0, 1 and 2.
    found = expected_calibration_error(y, p, ["a", "b", "c"], bins=3, sample_weight=weight)
    assert found == pytest.approx(sum(gaps))


def test_one_bin_compares_accuracy_with_mean_confidence() -> None:
    y, p, classes = forecast(3)
    gap = abs(accuracy(y, p, classes) - np.mean(np.max(p, axis=1)))
    assert expected_calibration_error(y, p, classes, bins=1) == pytest.approx(gap)


def test_bins_have_equal_counts_and_average_to_the_whole() -> None:
    y, p, classes = forecast(2, n=150)
    found = reliability_curve(y, p, classes)
    np.testing.assert_array_equal(found.n_rows, np.full(15, 10))
    assert np.all(np.diff(found.predicted) > 0.0)
    assert found.share @ found.predicted == pytest.approx(np.mean(p[:, 1]))
    assert found.share @ found.observed == pytest.approx(np.mean(y == classes[1]))
    order = np.argsort(p[:, 1])
    np.testing.assert_allclose(found.predicted, np.mean(p[order, 1].reshape(15, 10), axis=1))


@pytest.mark.parametrize("weight", [1.0, 0.1, 1.0 / 3.0, 7.0])
def test_rows_at_a_border_belong_to_the_upper_bin(weight: float) -> None:
    """Ranks i + 1/2 of 15 in 10 bins: every third lies at a border, whatever the rounding."""
    p = np.arange(1, 16) / 16
    found = reliability_curve(
        np.arange(15) % 2, p, [0, 1], bins=10, sample_weight=np.full(15, weight)
    )
    places = (2 * np.arange(15) + 1) * 10 // 30
    np.testing.assert_array_equal(found.n_rows, np.bincount(places))


def test_equal_probabilities_share_a_bin() -> None:
    found = reliability_curve([1, 0, 0, 1, 1, 1], [0.2, 0.2, 0.2, 0.2, 0.9, 0.9], [0, 1], bins=6)
    np.testing.assert_allclose(found.predicted, [0.2, 0.9])
    np.testing.assert_allclose(found.observed, [0.5, 1.0])
    np.testing.assert_array_equal(found.n_rows, [4, 2])


def test_which_class_a_curve_is_of() -> None:
    y, p, classes = forecast(3)
    top = reliability_curve(y, p, classes, bins=1)
    assert top.predicted[0] == pytest.approx(np.mean(np.max(p, axis=1)))
    assert top.observed[0] == pytest.approx(accuracy(y, p, classes))
    one = reliability_curve(y, p, classes, label="class 0", bins=1)
    assert one.predicted[0] == pytest.approx(np.mean(p[:, 0]))
    assert one.observed[0] == pytest.approx(np.mean(y == "class 0"))


def test_chance_lifts_the_calibration_error_as_the_docstring_says() -> None:
    """Over 400 tables of 300 rows at p = 0.8 the mean has a standard error below 0.001."""
    rng = np.random.default_rng(500)
    p = 0.8 + 1e-6 * rng.uniform(size=300)
    errors = [
        expected_calibration_error(rng.uniform(size=300) < p, p, [False, True]) for _ in range(400)
    ]
    assert np.mean(errors) == pytest.approx(0.8 * math.sqrt(0.16 * 15 / 300), abs=0.004)


# Rows, weights, shapes


@n_classes
def test_a_weight_of_three_is_three_rows(k: int, rng: np.random.Generator) -> None:
    y, p, classes = forecast(k)
    times = rng.integers(0, 4, size=60)
    weighted = asdict(evaluate_classes(y, p, classes, sample_weight=times))
    repeated = asdict(evaluate_classes(np.repeat(y, times), np.repeat(p, times, axis=0), classes))
    del weighted["n_rows"], repeated["n_rows"]
    assert weighted == pytest.approx(repeated, nan_ok=True)


@n_classes
def test_the_order_of_rows_and_of_classes_does_not_matter(k: int, rng: np.random.Generator) -> None:
    y, p, classes = forecast(k)
    rows = rng.permutation(60)
    expected = asdict(evaluate_classes(y, p, classes))
    assert asdict(evaluate_classes(y[rows], p[rows], classes)) == pytest.approx(
        expected, nan_ok=True
    )
    turned = evaluate_classes(y, p[:, ::-1], classes[::-1])
    assert asdict(turned) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "labels", [[False, True], [0, 1], [-1.5, 2.5], ["no", "yes"], ["yes", None], [0, "one"]]
)
def test_labels_of_any_kind(labels: list[Any]) -> None:
    y = [labels[place] for place in (0, 1, 1, 0)]
    p = [0.1, 0.8, 0.4, 0.3]
    expected = evaluate_classes([0, 1, 1, 0], p, [0, 1])
    classes = np.array(labels, dtype=object)
    assert evaluate_classes(np.array(y, dtype=object), p, classes) == expected
    series = pd.Series(y, dtype=object)
    both = pd.DataFrame({"first": 1.0 - np.array(p), "second": p})
    assert evaluate_classes(series, both, classes) == expected


@every_score
def test_every_score_is_a_field_of_the_container(score: Callable[..., float]) -> None:
    y, p, classes = forecast(2)
    (name,) = [name for name, found in SCORES.items() if found is score]
    weight = np.arange(60.0)
    found = asdict(evaluate_classes(y, p, classes, sample_weight=weight))
    assert score(y, p, classes, sample_weight=weight) == found[name]
    assert score(y, p[:, 1], classes) != found[name]


def test_a_class_without_rows() -> None:
    """Three classes are known, two occur: recalls are averaged over those two."""
    p = [[0.6, 0.2, 0.2], [0.5, 0.4, 0.1], [0.3, 0.5, 0.2]]
    found = evaluate_classes(["a", "b", "b"], p, ["a", "b", "c"])
    assert found.balanced_accuracy == 0.75
    assert math.isnan(evaluate_classes([1, 1], [0.4, 0.6], [0, 1]).roc_auc)
    with pytest.raises(ValueError, match="one class only"):
        roc_auc([1, 1], [0.4, 0.6], [0, 1])


def test_single_precision_is_precise_enough() -> None:
    y, p, classes = forecast(7)
    single = evaluate_classes(y, p.astype(np.float32), classes)
    assert single.log_loss == pytest.approx(log_loss(y, p, classes), rel=1e-5)


# What is refused


@every_score
@pytest.mark.parametrize(
    ("y", "p", "classes", "name"),
    [
        (["a", "d"], [0.5, 0.5], ["a", "b"], "'d' in row 1"),
        ([0.0, np.nan], [0.5, 0.5], [0, 1], "nan in row 1"),
        ([[0], [1]], [0.5, 0.5], [0, 1], "y must have shape"),
        ([], [], [0, 1], "y must have shape"),
        ([0, 1], [0.5, 0.5, 0.5], [0, 1], "probabilities must have shape"),
        ([0, 1], [0.5, 0.5], [0, 1, 2], "probabilities must have shape"),
        ([0, 1], [0.5, 1.5], [0, 1], "between 0 and 1"),
        ([0, 1], [0.5, np.nan], [0, 1], "between 0 and 1"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.4]], [0, 1], "row 1 sum to 0.9"),
        ([0, 1], [0.5, 0.5], [0], "classes"),
        ([0, 1], [0.5, 0.5], [0, 0], "classes must differ"),
    ],
)
def test_wrong_arguments(
    score: Callable[..., float], y: Any, p: Any, classes: Any, name: str
) -> None:
    with pytest.raises(ValueError, match=name):
        score(y, p, classes)


def test_wrong_settings() -> None:
    y, p, classes = forecast(3)
    with pytest.raises(ValueError, match="two classes, got 3"):
        roc_auc(y, p, classes)
    with pytest.raises(ValueError, match="bins"):
        expected_calibration_error(y, p, classes, bins=0)
    with pytest.raises(ValueError, match="label must be one"):
        reliability_curve(y, p, classes, label="class 9")
    with pytest.raises(ValueError, match="sample_weight"):
        log_loss(y, p, classes, sample_weight=np.ones(3))
    assert class_metrics.BINS == 15
