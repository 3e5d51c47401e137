"""An exported model answers as Python does: the same formulas in double precision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieClassifier, BowTieRegressor
from tests._old.estimators import models
from tests._old.estimators.models import rows, stacked

CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}
"""What docs/guide/libraries.md promises; the sums are the same but for their order."""
LEVELS = (0.01, 0.5, 0.999)


def small(**changes: Any) -> BowTieRegressor:
    """Two members that call themselves converged."""
    return models.small(**({"tol": 1.0} | changes))


def session(path: Path) -> onnxruntime.InferenceSession:
    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def exported(model: Any, folder: Path, feeds: dict[str, Any], **settings: Any) -> dict[str, Any]:
    path = folder / "model.onnx"
    model.to_onnx(path, **settings)
    running = session(path)
    names = [one.name for one in running.get_outputs()]
    return dict(zip(names, running.run(None, feeds), strict=True))


def far_rows(seed: int = 1) -> np.ndarray:
    """Rows inside and outside the range of training, some with missing values."""
    X = np.random.default_rng(seed).uniform(-6.0, 6.0, size=(23, 3))
    X[::5, 1] = np.nan
    return X


@pytest.mark.parametrize(
    "settings",
    [
        {"target_transform": "none"},
        {"target_transform": "yeo-johnson"},
        {"features": "piecewise", "hidden_layer_sizes": (4, 3)},
        {"features": "principal", "outcome": "student_t"},
        {"hidden_layer_sizes": (), "noise": "constant"},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_mean_deviation_and_quantiles(settings: dict[str, Any], tmp_path: Path) -> None:
    X, y = rows(120)
    y = np.exp(0.3 * y)
    model = stacked(**settings).fit(X, y)
    if settings == {"target_transform": "yeo-johnson"}:  # or it would say nothing of these stages
        assert model.ensemble_.levels is not None
        assert model.ensemble_.outside is not None
        assert model.ensemble_.representation.views[0].warp is not None
    new = far_rows()
    found = exported(model, tmp_path, {"X": new}, quantiles=LEVELS)
    mean, deviation = model.predict(new, return_std=True)
    assert_allclose(found["mean"], mean, **CLOSE)
    assert_allclose(found["std"], deviation, **CLOSE)
    assert_allclose(found["quantiles"], model.predict_quantiles(new, LEVELS), **CLOSE)


def test_a_table_with_texts_dates_and_gaps_by_the_names_of_its_columns(tmp_path: Path) -> None:
    X, y = rows(90)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0.0, "constant": 1.0})
    frame["kind"] = np.where(X[:, 1] > 0.7, "high", "other, with a comma")
    frame["day"] = pd.Timestamp("2020-02-03") + pd.to_timedelta(np.arange(90), unit="D")
    frame.loc[::8, ["a", "kind"]] = None
    model = small().fit(frame, np.column_stack([y, X[:, 2]]))
    new = frame.iloc[:30].copy()
    new.loc[2, "kind"] = "never seen"
    texts = [text if isinstance(text, str) else "" for text in new["kind"]]
    days = (new["day"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    columns = {"a": new["a"], "b": new["b"], "day": days}
    feeds = {name: np.asarray(values, dtype=float)[:, None] for name, values in columns.items()}
    feeds["kind"] = np.array(texts, dtype=object)[:, None]
    # The column that says nothing is no input.
    found = exported(model, tmp_path, feeds, quantiles=LEVELS)
    with pytest.warns(UserWarning, match="never seen"):
        mean, deviation = model.predict(new, return_std=True)
    with pytest.warns(UserWarning, match="never seen"):
        quantiles = model.predict_quantiles(new, LEVELS)
    assert found["quantiles"].shape == (30, 2, 3)
    assert_allclose(found["mean"], mean, **CLOSE)
    assert_allclose(found["std"], deviation, **CLOSE)
    assert_allclose(found["quantiles"].reshape(30, 6), quantiles, **CLOSE)


@pytest.mark.parametrize("labels", [["no", "yes"], [3, 7], ["a", "b", "c"]], ids=str)
def test_probabilities_and_labels(labels: list[Any], tmp_path: Path) -> None:
    X, y = rows(90)
    classes = np.asarray(labels)[np.searchsorted([-1.0, 3.0][: len(labels) - 1], y)]
    model = BowTieClassifier((4,), n_estimators=2, effort="fast", random_state=0).fit(X, classes)
    new = far_rows()
    found = exported(model, tmp_path, {"X": new})
    assert_allclose(found["probabilities"], model.predict_proba(new), **CLOSE)
    assert_array_equal(found["label"], model.predict(new))
    assert len(set(found["label"].tolist())) == len(labels)


def test_counts_have_mean_and_deviation_and_no_quantiles(tmp_path: Path) -> None:
    X, y = rows(90)
    counts = np.random.default_rng(2).poisson(np.exp(0.3 * y))
    model = BowTieRegressor((4,), n_estimators=2, effort="fast", outcome="counts", random_state=0)
    model.fit(X, counts)
    new = far_rows()
    found = exported(model, tmp_path, {"X": new})
    mean, deviation = model.predict(new, return_std=True)
    assert_allclose(found["mean"], mean, **CLOSE)
    assert_allclose(found["std"], deviation, **CLOSE)
    with pytest.raises(ValueError, match="quantiles of counts"):
        model.to_onnx(tmp_path / "counts.onnx", quantiles=[0.5])
    assert not (tmp_path / "counts.onnx").exists()


@pytest.mark.slow
def test_a_pruned_model(tmp_path: Path) -> None:
    X, y = rows(40)
    pruned = stacked().fit(X, y).prune(X, y)
    assert any(member.pruning is not None for member in pruned.ensemble_.members)
    found = exported(pruned, tmp_path, {"X": X})
    assert_allclose(found["std"], pruned.predict(X, return_std=True)[1], **CLOSE)


def test_what_cannot_be_exported_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    path = tmp_path / "model.onnx"
    iterated = small(propagation="variational").fit(X, y)
    with pytest.raises(ValueError, match="propagation"):
        iterated.to_onnx(path)
    model = small().fit(X, y)
    with pytest.raises(ValueError, match="quantiles"):
        model.to_onnx(path, quantiles=[0.0])
    monkeypatch.setattr("bowtienet._old.onnx_export.export.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="bytes"):
        model.to_onnx(path)

    for name in [name for name in sys.modules if name.startswith("bowtienet._old.onnx_export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install 'bowtienet"):
        model.to_onnx(path)
    assert not path.exists()


def test_the_file_says_what_it_takes_and_gives(tmp_path: Path) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    small().fit(frame, y).to_onnx(tmp_path / "model.onnx", quantiles=(0.1, 0.9))
    model = onnx.load(tmp_path / "model.onnx")
    assert [one.name for one in model.graph.input] == ["a", "b", "c"]
    assert all("NaN" in one.doc_string for one in model.graph.input)
    facts = {one.key: one.value for one in model.metadata_props}
    assert facts["quantiles"] == "0.1 0.9"
    assert [one.name for one in session(tmp_path / "model.onnx").get_outputs()] == [
        "mean",
        "std",
        "quantiles",
    ]
