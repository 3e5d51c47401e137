"""What holds for every fitted estimator, whatever it was fitted to."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bowtienet._old import load
from bowtienet._old.estimators.predictor import Components
from tests._old.fuzz.attempts import Refusal, attempt, must, require
from tests._old.fuzz.tables import Table

LEVELS = (0.001, 0.05, 0.5, 0.95, 0.999)
CLOSE = 1e-6
"""Relative to the size of a prediction and its deviation: rounding in matrix products of other
shapes, through a network."""


def rows_of(table: Table) -> dict[str, Any]:
    """What `fit` takes beside the features and the target."""
    found = {"sample_weight": table.weights, "exposure": table.exposure}
    return {name: value for name, value in found.items() if value is not None}


def exposed(table: Table) -> dict[str, Any]:
    """What predictions take."""
    return {} if table.exposure is None else {"exposure": table.exposure}


def predictions(model: Any, X: Any, **more: Any) -> dict[str, np.ndarray]:
    """Everything that a model says of rows, each with the rows first."""
    outputs = () if model._single_target else (model.n_outputs_,)
    parts = model.predict_components(X, **more)
    framed = hasattr(parts, "columns")
    if hasattr(model, "predict_proba"):
        return {
            "probabilities": model.predict_proba(X),
            "log probabilities": model.predict_log_proba(X),
            "epistemic": np.asarray(parts["epistemic"] if framed else parts.epistemic),
            "aleatoric": np.asarray(parts["aleatoric"] if framed else parts.aleatoric),
        }
    mean, std = model.predict(X, return_std=True, **more)
    if framed:  # columns go by target, then by part
        values = np.asarray(parts).reshape(len(mean), *outputs, -1)
        parts = Components(*np.moveaxis(values, -1, 0))

    def whole(found: Any) -> np.ndarray:
        return np.asarray(found).reshape(len(mean), *outputs, -1)

    return {
        "mean": mean,
        "std": std,
        "quantiles": whole(model.predict_quantiles(X, LEVELS, **more)),
        "interval": whole(model.predict_interval(X, **more)),
        "epistemic": parts.epistemic_variance,
        "noise": parts.noise_variance,
    }


def check_predictions(model: Any, found: dict[str, np.ndarray], n: int) -> None:
    """Shapes, signs, order, sums; everything finite."""
    for name, values in found.items():
        require(len(values) == n, f"{name} have other rows", lambda v=values: v.shape)
        require(np.isfinite(values).all(), f"{name} are not finite", lambda v=values: v[:5])
    for name in ("std", "epistemic", "aleatoric", "noise"):
        if name in found:
            require((found[name] >= 0.0).all(), f"negative {name}", lambda k=name: found[k].min())
    if "probabilities" in found:
        probabilities = found["probabilities"]
        require((probabilities >= 0.0).all(), "negative probabilities")
        sums = probabilities.sum(axis=1)
        require(np.abs(sums - 1.0).max() < 1e-9, "probabilities do not sum to 1", lambda: sums)
        require(probabilities.shape == (n, len(model.classes_)), "probabilities of other classes")
        return
    outputs = () if model._single_target else (model.n_outputs_,)
    require(found["mean"].shape == (n, *outputs), "means of another shape")
    require(found["quantiles"].shape == (n, *outputs, 5), "quantiles of another shape")
    require((np.diff(found["quantiles"], axis=-1) >= 0.0).all(), "quantiles cross")
    require((np.diff(found["interval"], axis=-1) >= 0.0).all(), "ends of intervals cross")
    with np.errstate(all="ignore"):
        together = np.sqrt(found["epistemic"] + found["noise"])
        apart = np.abs(together - found["std"]) > 1e-4 * found["std"]
    require(not apart.any(), "components do not add up", lambda: (together, found["std"]))


def assert_close(
    what: str, found: dict[str, np.ndarray], expected: dict[str, np.ndarray], within: float = CLOSE
) -> None:
    """The same predictions, but for rounding; for `within` 0 the same bits."""
    for name, values in expected.items():
        other = found[name]
        require(other.shape == values.shape, f"{what}: {name} of another shape")
        size = _size(name, expected)
        far = np.abs(other - values) > within * size
        require(not far.any(), f"{what}: other {name}", lambda v=values, o=other: (v[:5], o[:5]))


def _size(name: str, expected: dict[str, np.ndarray]) -> np.ndarray:
    """What differences are relative to."""
    values = expected[name]
    if "probabilities" in expected:
        return np.abs(values) + 1.0
    if name in ("epistemic", "noise"):
        return expected["epistemic"] + expected["noise"]
    std = expected["std"]
    return np.abs(values) + std.reshape(std.shape + (1,) * (values.ndim - std.ndim))


def _some(X: Any, places: np.ndarray) -> Any:
    return X.iloc[places] if isinstance(X, pd.DataFrame) else X[places]


def check_rows(
    rng: np.random.Generator, model: Any, X: Any, found: dict[str, np.ndarray], **more: Any
) -> None:
    """A row alone, and rows in another order, are predicted as among the others."""
    n = len(next(iter(found.values())))
    for what, places in {
        "a row alone": rng.integers(n, size=1),
        "rows in another order": rng.permutation(n),
    }.items():
        others = {name: np.asarray(value)[places] for name, value in more.items()}
        again = must(what, lambda p=places, o=others: predictions(model, _some(X, p), **o))
        assert_close(what, again, {name: values[places] for name, values in found.items()})


def check_copies(
    folder: Path, model: Any, X: Any, found: dict[str, np.ndarray], **more: Any
) -> None:
    """Pickled or saved and loaded, a model predicts the same bits."""
    again = must("unpickled", lambda: predictions(pickle.loads(pickle.dumps(model)), X, **more))
    assert_close("unpickled", again, found, within=0.0)
    place = folder / "model.btn"
    saved = attempt("save", lambda: model.save(place))
    require(not isinstance(saved, Refusal), "save refuses", saved)
    again = must("loaded", lambda: predictions(load(place), X, **more))
    assert_close("loaded", again, found, within=0.0)
    check_left(folder, {"model.btn"})


def check_left(folder: Path, expected: set[str]) -> None:
    """No file is left but those expected."""
    left = {place.name for place in folder.iterdir()} - expected
    require(not left, "files are left behind", sorted(left))


def check_whole(
    rng: np.random.Generator, folder: Path, model: Any, X: Any, **more: Any
) -> dict[str, np.ndarray]:
    """All of the above; the predictions."""
    n = len(X)
    found = must("predict", lambda: predictions(model, X, **more))
    check_predictions(model, found, n)
    check_rows(rng, model, X, found, **more)
    check_copies(folder, model, X, found, **more)
    if not hasattr(model, "predict_proba"):
        draws = must("sample_y", lambda: model.sample_y(X, 3, **more))
        require(np.isfinite(draws).all(), "draws are not finite")
    return found
