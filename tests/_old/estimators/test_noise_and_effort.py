"""Noise that differs between rows, how much is tried, and tables with more columns than rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from bowtienet._old import BowTieRegressor, load, plotting
from bowtienet._old.ensemble.descriptions import describe_levels, describe_views
from bowtienet._old.ensemble.settings import EFFORTS
from tests._old.estimators.models import answers, assert_same, rows

QUICK: dict[str, Any] = {"effort": "fast", "random_state": 0, "target_transform": "none"}


# Noise


def step_of_noise(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten times the noise where the first column is positive."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n, 3))
    return x, x[:, 1] + np.where(x[:, 0] > 0.0, 1.0, 0.1) * rng.normal(size=n)


@pytest.fixture(scope="module")
def of_noise() -> dict[str, BowTieRegressor]:
    data = step_of_noise(400, seed=0)
    return {
        noise: BowTieRegressor((6,), noise=noise, features="standard", **QUICK).fit(*data)
        for noise in ("auto", "constant")
    }


def test_noise_that_differs_is_predicted_better(of_noise: dict[str, BowTieRegressor]) -> None:
    """Mean log density of 2,000 new rows; its difference has an error of about 0.02."""
    test = step_of_noise(2000, seed=1)
    auto, constant = (of_noise[noise].log_score(*test) for noise in ("auto", "constant"))
    assert auto > constant + 0.2


def test_intervals_follow_the_noise(of_noise: dict[str, BowTieRegressor]) -> None:
    x, y = step_of_noise(2000, seed=1)
    loud = x[:, 0] > 0.0
    ratio = {}
    for noise, model in of_noise.items():
        ends = model.predict_interval(x, 0.9)
        widths = ends[:, 1] - ends[:, 0]
        ratio[noise] = np.median(widths[loud]) / np.median(widths[~loud])
    assert ratio["auto"] > 3.0
    assert ratio["constant"] < 1.5
    ends = of_noise["auto"].predict_interval(x, 0.9)
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    # Half of the rows each: an error of 0.01, and gates that are no step.
    assert 0.85 < np.mean(inside[loud]) < 0.95
    assert np.mean(inside[~loud]) > 0.85
    parts = of_noise["auto"].predict_components(x)
    assert np.median(parts.noise_variance[loud]) > 5.0 * np.median(parts.noise_variance[~loud])


def test_levels_are_told_in_words(of_noise: dict[str, BowTieRegressor]) -> None:
    words = describe_levels(of_noise["auto"].ensemble_)
    assert words.startswith("3 levels, variances times ")
    assert words.endswith(", chosen by the features")
    levels = [float(level) for level in words.split("times ")[1].split(", chosen")[0].split(", ")]
    assert levels == sorted(levels)
    assert len(levels) == 3
    constant = describe_levels(of_noise["constant"].ensemble_)
    assert constant == "1 level, the same for all rows"


# Effort


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("n_estimators", [None, 1, 7])
def test_every_effort_fits_and_brings_its_members(effort: str, n_estimators: int | None) -> None:
    X, y = rows(40)
    settings = QUICK | {"effort": effort, "n_estimators": n_estimators, "features": "standard"}
    model = BowTieRegressor((3,), **settings).fit(X, y)
    count = len(model.ensemble_.members)
    if n_estimators is None:
        # Ten folds of few rows, for each recipe that got weight.
        assert count in [10 * recipes for recipes in range(1, EFFORTS[effort].n_recipes + 1)]
    else:
        assert count == n_estimators
    assert np.sum(model.member_weights_) == pytest.approx(1.0)
    assert np.isfinite(answers(model, X)).all()
    assert model.score(X, y) > 0.5


def test_of_many_rows_members_are_those_of_the_effort() -> None:
    X, y = rows(5200)
    model = BowTieRegressor((3,), features="standard", **QUICK).fit(X, y)
    assert len(model.ensemble_.members) == EFFORTS["fast"].members
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_bit(n_jobs: int) -> None:
    X, y = rows()
    one, several = (
        BowTieRegressor((6,), random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, n_jobs)
    )
    assert_same(one, several)
    assert one.ensemble_.levels is not None
    assert_array_equal(one.ensemble_.levels.gates, several.ensemble_.levels.gates)


# More columns than rows


def wide(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Three hundred columns with ten common factors, of which the first is that of the target."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).normal(size=(10, 300))
    factors = rng.normal(size=(n, 10))
    table = factors @ loadings + 0.5 * rng.normal(size=(n, 300))
    names = [f"gene {place}" for place in range(300)]
    y = 2.0 * factors[:, 0] + 0.2 * rng.normal(size=n)
    return pd.DataFrame(table, columns=names).assign(y=y)


@pytest.fixture(scope="module")
def of_many_columns() -> BowTieRegressor:
    return BowTieRegressor((6,), **QUICK).fit(wide(), "y")


def test_many_columns_are_seen_as_principal_components(of_many_columns: BowTieRegressor) -> None:
    assert describe_views(of_many_columns.ensemble_) == "principal components"
    assert of_many_columns.ensemble_.members[0].model.architecture.n_inputs < 60
    test = wide(400, seed=1)
    assert of_many_columns.score(test, "y") > 0.9
    ends = of_many_columns.predict_interval(test, 0.9)
    assert test["y"].between(ends["lower"], ends["upper"]).mean() > 0.75
    draws = of_many_columns.sample_y(test[:3], 5, joint=True)
    assert draws.shape == (3, 5)


def test_relevance_has_one_number_for_a_column(of_many_columns: BowTieRegressor) -> None:
    relevance = of_many_columns.feature_relevance_
    assert relevance.name.tolist() == list(wide().columns[:300])
    assert relevance.strength.shape == relevance.p_value.shape == (300,)
    assert np.isfinite(relevance.strength).all()
    assert np.all(relevance.strength > 0.0)


def test_many_columns_are_pruned_saved_and_warm_started(
    of_many_columns: BowTieRegressor, tmp_path: Path
) -> None:
    table = wide()
    of_many_columns.save(tmp_path / "model", updatable=True)
    loaded = load(tmp_path / "model")
    assert_array_equal(answers(loaded, table), answers(of_many_columns, table))
    pruned = of_many_columns.prune(table, "y")
    assert pruned.pruning_.columns_after == pruned.pruning_.columns  # all have components
    assert np.isfinite(answers(pruned, table)).all()
    assert pruned.sparsity_.weights_after.sum() < pruned.sparsity_.weights_before.sum()
    loaded.partial_fit(wide(20, seed=2), "y")
    assert np.isfinite(answers(loaded, table)).all()


def test_plots_a_report_and_draws_of_many_columns(
    of_many_columns: BowTieRegressor, tmp_path: Path
) -> None:
    test = wide(40, seed=1)
    x, y = test.drop(columns="y"), test["y"]
    plt.switch_backend("agg")
    for display in (
        plotting.RelevanceDisplay,
        plotting.NetworkDisplay,
        plotting.WeightsDisplay,
        plotting.ShrinkageDisplay,
        plotting.ActivationDisplay,
    ):
        display.from_estimator(of_many_columns).figure_.canvas.draw()
    band = plotting.PredictiveBandDisplay.from_estimator(of_many_columns, x, "gene 0")
    band.figure_.canvas.draw()
    plt.close("all")
    of_many_columns.report(x, y, tmp_path / "report.html")
    assert "principal components" in (tmp_path / "report.html").read_text()
    pytest.importorskip("arviz")
    posterior = of_many_columns.to_arviz(draws=10)["posterior"]
    assert np.isfinite(posterior["weights_1"].values).all()


def test_principal_components_may_be_asked_for() -> None:
    X, y = rows()
    model = BowTieRegressor((4,), features="principal", **QUICK).fit(X, y)
    assert describe_views(model.ensemble_) == "principal components"
    assert model.score(X, y) > 0.5
    assert model.feature_relevance_.strength.shape == (3,)
