"""Models on the same splits, against scores computed by hand."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bowtienet import compare
from bowtienet.evaluation import crps, default_models
from bowtienet.evaluation.competitors import Widened
from tests.evaluation.conftest import Fitted

BOOSTED = {"LightGBM", "CatBoost"}


@pytest.mark.parametrize("outcome", ["numbers", "classes", "counts"])
def test_default_models(fitted: dict[str, Fitted], outcome: str) -> None:
    """Every model takes categories and dates, and the constant is worst."""
    model, X, y = fitted[outcome]
    models = {**default_models(outcome), "bow tie": model}
    expected = {"bow tie", "linear", "constant", "gradient boosting"}
    assert set(models) == expected | {name for name in BOOSTED if find_spec(name.lower())}
    calls: list[Any] = []
    result = compare(X, y, models, outcome=outcome, cv=2, callback=lambda *args: calls.append(args))
    assert calls[-1] == (2 * len(models), 2 * len(models), list(models)[-1])
    assert not result.notes
    frame = pd.DataFrame(result.columns).set_index("model")
    assert np.isfinite(frame.to_numpy()).all()
    first = "log_score" if outcome == "classes" else "crps"
    worst = frame[first].idxmin() if first == "log_score" else frame[first].idxmax()
    assert worst == "constant"
    lines = repr(result).splitlines()
    assert len(lines) == len(models) + 1
    assert lines[1].startswith("bow tie")
    assert max(map(len, lines)) <= 110


def test_scores_and_paired_differences(rng: np.random.Generator) -> None:
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + rng.normal(size=90)
    models = {"constant": DummyRegressor(), "linear": LinearRegression()}
    cv = KFold(3)
    columns = compare(X, y, models, cv=cv).columns
    by_row = {name: np.zeros(90) for name in models}
    squares = {name: np.zeros(90) for name in models}
    for train, test in cv.split(X):
        for name, model in models.items():
            distribution = Widened(clone(model)).fit(X[train], y[train]).predict_dist(X[test])
            by_row[name][test] = crps(y[test], distribution)
            squares[name][test] = (y[test] - distribution.mean()) ** 2
    assert columns["crps"] == pytest.approx([by_row[name].mean() for name in models])
    assert columns["rmse"] == pytest.approx([np.sqrt(squares[name].mean()) for name in models])
    apart = by_row["linear"] - by_row["constant"]
    assert columns["difference"] == pytest.approx([0.0, apart.mean()])
    assert columns["standard_error"] == pytest.approx([0.0, apart.std(ddof=1) / np.sqrt(90)])
    # The same rows held out again are no more evidence.
    splits = list(cv.split(X))
    twice = compare(X, y, models, cv=splits + splits).columns
    assert twice["standard_error"] == pytest.approx(columns["standard_error"])


def test_widened_models_have_the_spread_of_held_out_errors(rng: np.random.Generator) -> None:
    X = rng.normal(size=(4000, 1))
    numbers = Widened(LinearRegression()).fit(X, X[:, 0] + rng.normal(0.0, 0.7, size=4000))
    np.testing.assert_allclose(numbers.predict_dist(X[:2]).std(), 0.7, rtol=0.1)
    counts = rng.negative_binomial(2.0, 2.0 / (2.0 + 5.0), size=4000)
    constant = Widened(DummyRegressor(), counts=True).fit(X, counts).predict_dist(X[:2])
    np.testing.assert_allclose(constant.std(), np.sqrt(5.0 + 0.5 * 25.0), rtol=0.15)


def test_distributions_inside_pipelines_and_searches_are_kept(fitted: dict[str, Fitted]) -> None:
    model, X, y = fitted["numbers"]
    X = X[["size", "rooms"]].to_numpy()
    behind = make_pipeline(FunctionTransformer(), model)
    search = GridSearchCV(model, {"prior": ["student_t"]}, cv=2)
    models = {"alone": model, "pipeline": behind, "search": search}
    columns = compare(X, y, models, cv=2).columns
    assert columns["difference"] == [0.0, 0.0, 0.0]
    assert columns["crps"][0] != compare(X, y, {"wide": Widened(model)}, cv=2).columns["crps"][0]


def test_tables_failures_and_doors(fitted: dict[str, Fitted]) -> None:
    """A column named as target, another library's frame, and a model that cannot take texts."""
    _, X, y = fitted["classes"]
    models = {"plain": LogisticRegression(), "linear": default_models("classes")["linear"]}
    split = ShuffleSplit(1, random_state=0)
    named = compare(polars.from_pandas(X.assign(grade=y)), "grade", models, cv=split)
    apart = compare(X, y, models, cv=split)
    assert named.columns["log_score"][1] == apart.columns["log_score"][1]
    assert list(apart.notes) == ["plain"]
    assert "ValueError" in repr(apart)
    assert np.isnan(apart.columns["log_score"][0])
    truth = compare(X, y == "low", {"linear": models["linear"]}, cv=split).columns
    boosted = default_models("classes")
    chosen = {name: boosted[name] for name in boosted if name not in ("bow tie", "constant")}
    assert not compare(X, y == "low", chosen, cv=split).notes
    assert truth["accuracy"][0] > 0.5
    with pytest.raises(ValueError, match="'weight'"):
        compare(X, "weight")
    with pytest.raises(ValueError, match="read_table"):
        compare("rows.csv", "weight")
    with pytest.raises(ValueError, match="numbers, classes, counts"):
        compare(X, y, outcome="ranks")
    with pytest.raises(ValueError, match="missing labels"):
        compare(X, [None, *y[1:]])
    with pytest.raises(ValueError, match="one column"):
        compare(X, np.ones((len(X), 2)))
