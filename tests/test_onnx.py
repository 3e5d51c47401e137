"""ONNX graphs: what onnxruntime makes of them is what `predict` says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor

FAST: dict[str, Any] = {"effort": "fast", "random_state": 0}
LEVELS = (0.001, 0.05, 0.5, 0.999)
CLOSE = 1e-5
TYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}


def run(path: Path, X: Any, **more: Any) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    kinds = {each.name: each.type for each in session.get_inputs()}
    given = {name: np.asarray(values, TYPES[kinds[name]]) for name, values in more.items()}
    if "X" in kinds:
        return session.run(None, {"X": np.asarray(X, TYPES[kinds["X"]]), **given})
    for name in X:
        if kinds[name] == "tensor(string)":
            values = X[name].fillna("").astype(str).to_numpy(object)
        elif kinds[name] == "tensor(int64)":
            values = X[name].astype("datetime64[us]").astype("int64").to_numpy()
        else:
            values = X[name].astype(TYPES[kinds[name]]).to_numpy()
        given[name] = values[:, None]
    return session.run(None, given)


def assert_equal_to_predict(model: Any, path: Path, X: Any, scale: Any) -> None:
    expected = *model.predict(X, return_std=True), model.predict_quantiles(X, LEVELS)
    scale = np.asarray(scale)
    for found, known, unit in zip(
        run(path, X), expected, (scale, scale, scale[..., None]), strict=True
    ):
        np.testing.assert_allclose(found / unit, known / unit, rtol=CLOSE, atol=CLOSE)


def skewed(rng: np.random.Generator, unit: float, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(250, 3))
    y = np.exp(np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=250))
    return (unit * X).astype(dtype), unit * y


@pytest.fixture
def mixed(rng: np.random.Generator) -> pd.DataFrame:
    """Every kind of column, with values missing, constant columns and levels of few rows."""
    n = 300
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "level": rng.choice(["x", "yy", "é"], n),
            "two": rng.choice(["m", "f"], n),
            "date": pd.Timestamp("1965-01-01")
            + pd.to_timedelta(rng.integers(0, 90_000, n), unit="h"),
            "truth": rng.random(n) < 0.5,
            "constant": 7.0,
            "same": "text",
        }
    )
    frame.loc[:20, "number"] = np.nan
    frame.loc[10:30, "level"] = None
    frame.loc[40:45, "date"] = pd.NaT
    return frame


def signal(frame: pd.DataFrame) -> np.ndarray:
    season = np.sin(frame["date"].dt.dayofyear.fillna(0.0).to_numpy() / 58.1)
    return (frame["level"] == "x") + frame["number"].fillna(0.0).to_numpy() + season


def changed(frame: pd.DataFrame) -> pd.DataFrame:
    """New rows: unknown levels, and values missing where none was in training."""
    frame = frame.copy()
    frame.loc[50:60, ["level", "two", "same"]] = "unknown"
    frame.loc[55:65, "constant"] = np.nan
    return frame


@pytest.mark.parametrize(("unit", "dtype"), [(1e-6, np.float32), (1e6, np.float64)])
def test_units_and_precisions(
    unit: float, dtype: Any, rng: np.random.Generator, tmp_path: Path
) -> None:
    X, y = skewed(rng, unit, dtype)
    model = BowTieRegressor(**FAST).fit(X, y)
    assert len(model._fitted.ensemble.warps) == 2
    model.to_onnx(tmp_path / "m.onnx", quantiles=LEVELS)
    assert run(tmp_path / "m.onnx", X)[0].dtype == dtype
    assert_equal_to_predict(model, tmp_path / "m.onnx", X, y.std())


def test_targets_that_are_constant(tmp_path: Path) -> None:
    """No hinge is left open, and what the graph says of nothing is not left to chance."""
    X, y = np.ones((3, 1)), np.zeros((3, 2))
    model = BowTieRegressor((), **FAST).fit(X, y)
    model.to_onnx(tmp_path / "m.onnx", quantiles=LEVELS)
    for _ in range(3):
        assert_equal_to_predict(model, tmp_path / "m.onnx", X, 1e-6)


def test_warps_of_any_exponent(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = skewed(rng, 1.0, np.float64)
    model = BowTieRegressor(**FAST).fit(X, y)
    fitted = model._fitted
    plain, warped = fitted.ensemble.warps
    recipes = tuple(replace(each, is_warped=True) for each in fitted.ensemble.recipes[1:])
    recipes = (replace(fitted.ensemble.recipes[0], is_warped=False), *recipes)
    for exponent in (0.0, 1.7, 2.0):
        warps = (plain, replace(warped, exponent=np.full(1, exponent)))
        model._fitted = replace(
            fitted, ensemble=replace(fitted.ensemble, warps=warps, recipes=recipes)
        )
        model.to_onnx(tmp_path / "m.onnx", quantiles=LEVELS)
        width = np.diff(model.predict_quantiles(X, (0.01, 0.99)), axis=1).mean()
        assert_equal_to_predict(model, tmp_path / "m.onnx", X, width)


@pytest.mark.parametrize(
    ("encoding", "noise"),
    [("standard", "auto"), ("piecewise", "student_t"), ("principal", "constant")],
)
def test_views_of_mixed_columns_and_several_targets(
    encoding: str, noise: str, mixed: pd.DataFrame, rng: np.random.Generator, tmp_path: Path
) -> None:
    y = signal(mixed)
    targets = np.column_stack([1e-6 * y, 1e6 * np.exp(y)]) + [1e-7, 1e5] * rng.normal(
        size=(len(y), 2)
    )
    model = BowTieRegressor((8, 6), encoding=encoding, noise=noise, **FAST).fit(mixed, targets)
    model.to_onnx(tmp_path / "m.onnx", quantiles=LEVELS, dtype="float64")
    new = changed(mixed)
    assert_equal_to_predict(model, tmp_path / "m.onnx", new, targets.std(axis=0))


@pytest.mark.parametrize(
    "label",
    [
        lambda y: np.where(y > 1.0, "é", np.where(y < 0.0, "lo", "mid")),
        lambda y: y > 1.0,
        lambda y: np.clip(np.round(y), 0, 2).astype(int),
        lambda y: np.clip(np.round(y), 0.0, 2.0),
    ],
    ids=["texts", "truth", "whole", "float"],
)
def test_classes(label: Any, mixed: pd.DataFrame, tmp_path: Path) -> None:
    model = BowTieClassifier(**FAST).fit(mixed, label(signal(mixed)))
    model.to_onnx(tmp_path / "m.onnx", dtype=np.float32)
    new = changed(mixed)
    probabilities, labels = run(tmp_path / "m.onnx", new)
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=CLOSE)
    assert labels.tolist() == model.predict(new).tolist()
    with pytest.raises(ValueError, match="quantiles"):
        model.to_onnx(tmp_path / "m.onnx", quantiles=[0.5])


@pytest.mark.parametrize("is_exposed", [False, True])
def test_counts(
    is_exposed: bool, mixed: pd.DataFrame, rng: np.random.Generator, tmp_path: Path
) -> None:
    exposure = rng.uniform(0.1, 9.0, len(mixed)) if is_exposed else None
    rate = np.exp(signal(mixed)) * (1.0 if exposure is None else exposure)
    model = BowTieCountRegressor(**FAST).fit(mixed, rng.poisson(rate), exposure=exposure)
    model.to_onnx(tmp_path / "m.onnx")
    more = {} if exposure is None else {"exposure": exposure[:, None]}
    mean, std = model.predict(mixed, return_std=True, exposure=exposure)
    result = run(tmp_path / "m.onnx", mixed, **more)
    np.testing.assert_allclose(result[0], mean, rtol=CLOSE)
    np.testing.assert_allclose(result[1], std, rtol=CLOSE)


def test_refusals(rng: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    frame = pd.DataFrame({"mean": rng.normal(size=50), "word": rng.choice(["a", "b", "c"], 50)})
    model = BowTieRegressor(**FAST).fit(frame, frame["mean"])
    for settings, word in (
        ({}, "name"),
        ({"quantiles": [1.0]}, "quantiles"),
        ({"dtype": "int64"}, "dtype"),
    ):
        with pytest.raises(ValueError, match=word):
            model.to_onnx(path, **settings)
    representation = model._fitted.representation
    odd = replace(representation.columns[1], kind="words")
    columns = (replace(representation.columns[0], name="number"), odd)
    model._fitted = replace(model._fitted, representation=replace(representation, columns=columns))
    with pytest.raises(ValueError, match="'word'"):
        model.to_onnx(path)
    assert not path.exists()
