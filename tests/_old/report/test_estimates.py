"""Scores have the values of `evaluation`, and intervals that chance makes them need."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score

from bowtienet._old.evaluation import evaluate, evaluate_classes
from bowtienet._old.prediction.mixture import build_mixture
from bowtienet._old.report.estimates import (
    chance_calibration_error,
    class_scores,
    number_scores,
    reweighted_averages,
)

RNG = np.random.default_rng(500)
Y = RNG.normal(size=200)
WEIGHTS = RNG.integers(1, 4, size=200).astype(float)


def forecast(noise: float):
    """Means that are off by so much."""
    mean = Y + np.random.default_rng(501).normal(0.0, noise, size=Y.size)
    return build_mixture([1.0], mean[None], np.full((1, Y.size), noise))


def test_values_are_those_of_evaluation():
    found = number_scores(Y, forecast(0.5), forecast(0.8), WEIGHTS, 0.8)
    for of, noise in (("model", 0.5), ("baseline", 0.8)):
        own = forecast(noise)
        known = asdict(evaluate(Y, own, coverage=0.8, sample_weight=WEIGHTS))
        known["r2"] = r2_score(Y, own.mean(), sample_weight=WEIGHTS)
        known["mae"] = mean_absolute_error(Y, own.mean(), sample_weight=WEIGHTS)
        for name, score in found.items():
            assert getattr(score, of).value == pytest.approx(known[name]), (of, name)
    rmse, nll = found["rmse"], found["nll"]
    assert rmse.difference.value == pytest.approx(rmse.model.value / rmse.baseline.value - 1.0)
    assert nll.difference.value == pytest.approx(nll.model.value - nll.baseline.value)


def test_intervals_are_as_wide_as_standard_errors_ask_for():
    values = np.random.default_rng(502).normal(3.0, 2.0, size=(400, 1))
    drawn = reweighted_averages(values, np.ones(400))[1:, 0]
    # The standard deviation of 1000 draws is known to 2.2 %; 10 % is more than four times that.
    assert drawn.std() == pytest.approx(values.std() / 20.0, rel=0.1)
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.02)


def test_differences_are_of_the_same_rows():
    """Two forecasts with the same errors differ by nothing, whatever the weights."""
    found = number_scores(Y, forecast(0.5), forecast(0.5), WEIGHTS, 0.9)
    for score in found.values():
        change = score.difference
        assert (change.low, change.value, change.high) == pytest.approx((0.0, 0.0, 0.0))
        if score.model.value not in (0.0, 1.0):
            assert score.model.low < score.model.value < score.model.high
    better = number_scores(Y, forecast(0.3), forecast(0.6), WEIGHTS, 0.9)["rmse"].difference
    assert better.high < 0.0


def test_without_a_baseline_and_with_a_constant_target():
    found = number_scores(
        np.ones(30), build_mixture([1.0], [[1.0] * 30], [[1.0] * 30]), None, np.ones(30), 0.9
    )
    assert found["rmse"].baseline is None
    assert found["rmse"].difference is None
    assert np.isnan(found["r2"].model.value)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes(n_classes):
    rng = np.random.default_rng(503)
    p, q = (rng.dirichlet(np.ones(n_classes), size=200) for _ in range(2))
    codes = np.array([rng.choice(n_classes, p=row) for row in p])
    found = class_scores(codes, p, q, WEIGHTS, 1e-12)
    for of, own in (("model", p), ("baseline", q)):
        known = evaluate_classes(codes, own, np.arange(n_classes), sample_weight=WEIGHTS)
        for name, score in found.items():
            assert getattr(score, of).value == pytest.approx(getattr(known, name))
    assert found["log_loss"].difference.high < 0.0


def test_chance_makes_calibration_errors_of_calibrated_forecasts():
    p = np.random.default_rng(504).dirichlet(np.ones(3), size=300)
    seen: list[np.ndarray] = []

    def first_share(codes: np.ndarray) -> float:
        seen.append(codes)
        return float(abs(np.mean(codes == 0) - p[:, 0].mean()))

    limit = chance_calibration_error(p, first_share)
    shares = np.array([np.bincount(codes, minlength=3) / 300 for codes in seen])
    # Labels follow the probabilities: the mean of so many has an error of 0.003.
    np.testing.assert_allclose(shares.mean(axis=0), p.mean(axis=0), atol=0.015)
    assert 0.02 < limit < 0.06  # 1.96 standard errors of a share are 0.045
