"""Random tables and settings: what people may give, odd but right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

from bowtienet import BowTieNetwork, BowTieNetworkClassifier
from bowtienet.estimators.classifier import BowTieClassifier
from bowtienet.estimators.counts import BowTieCountRegressor
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.model.shrinkage import FAMILIES

COLUMNS = ("normal", "skewed", "constant", "few", "missing", "truth", "category", "date", "copy")
CONTAINERS = ("array", "fortran", "strided", "read-only", "swapped", "single", "objects", "list")
FRAMES = ("pandas", "polars")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its targets, and an estimator for them."""

    estimator: Any
    X: Any
    y: Any
    fit: dict[str, Any]
    """Weights and exposure."""
    predict: dict[str, Any]
    """Exposure."""
    unit: float
    """Size of the targets."""


@st.composite
def cases(draw: Any) -> Case:
    """A case of any of the five estimators."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    task = draw(st.sampled_from(("numbers", "classes", "counts")))
    n = draw(st.sampled_from((2, 3, 7, 20, 60)))
    kinds = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5))
    container = draw(st.sampled_from((*CONTAINERS, *FRAMES)))
    if container not in (*FRAMES, "objects"):
        kinds = [kind if kind not in ("category", "date") else "normal" for kind in kinds]
    frame = pd.DataFrame({f"c{i}": _column(kind, n, rng) for i, kind in enumerate(kinds)})
    if "copy" in kinds:
        frame[f"c{kinds.index('copy')}"] = frame.iloc[:, 0]
    first = np.unique(frame.iloc[:, 0].to_numpy().astype(str), return_inverse=True)[1] / n
    signal = np.sin(5.0 * first) + draw(st.sampled_from((0.0, 0.1, 1.0))) * rng.normal(size=n)
    weights = draw(st.sampled_from((None, rng.integers(0, 3, n) * 1.0, rng.random(n) * 1e-3)))
    fit: dict[str, Any] = {} if weights is None or not weights.any() else {"sample_weight": weights}
    predict: dict[str, Any] = {}
    unit, y = 1.0, signal
    if task == "numbers":
        unit = 10.0 ** draw(st.integers(-6, 6))
        y = unit * (signal + draw(st.sampled_from((0.0, 1e3))))
        if draw(st.booleans()):
            y = np.column_stack([y, -y])
    elif task == "classes":
        y = np.array(["b", "a", "é", "dd"])[np.digitize(signal, (-0.5, 0.3, 0.9))]
    else:
        if draw(st.booleans()):
            fit["exposure"] = predict["exposure"] = 10.0 ** rng.uniform(-3.0, 3.0, n)
        y = rng.poisson(np.exp(2.0 * signal))
    estimator = draw(_estimators(task, int(rng.integers(1000))))
    X = _contained(frame, container)
    return Case(estimator=estimator, X=X, y=y, fit=fit, predict=predict, unit=unit)


def _column(kind: str, n: int, rng: np.random.Generator) -> Any:
    values = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7) + rng.choice([0.0, 1e6])
    if kind == "skewed":
        return np.exp(rng.normal(0.0, 5.0, n))
    if kind == "constant":
        return np.full(n, values[0])
    if kind == "few":
        return rng.integers(0, 3, n) * 1.0
    if kind == "missing":
        return np.where(rng.random(n) < 0.5, np.nan, values)
    if kind == "truth":
        return rng.random(n) < 0.5
    if kind == "category":
        return rng.choice(np.array(["x", "y y", "ü", None], dtype=object), n)
    if kind == "date":
        return np.datetime64("1960-01-01", "us") + rng.integers(0, 10**15, n) * 3
    return values


def _contained(frame: pd.DataFrame, container: str) -> Any:
    if container == "pandas":
        return frame
    if container == "polars":
        return pl.from_pandas(frame)
    if container == "objects":
        return frame.to_numpy(dtype=object)
    values = frame.to_numpy(dtype=float)
    if container == "fortran":
        return np.asfortranarray(values)
    if container == "strided":
        return np.repeat(values, 2, axis=0)[::2]
    if container == "swapped":
        return values.astype(values.dtype.newbyteorder())
    if container == "single":
        return values.astype(np.float32)
    if container == "list":
        return values.tolist()
    values.setflags(write=container != "read-only")
    return values


@st.composite
def _estimators(draw: Any, task: str, seed: int) -> Any:
    """An estimator of the task with small random settings."""
    layers = draw(st.sampled_from(((3,), (3, 2))))
    family = draw(st.sampled_from(list(FAMILIES)))
    shared: dict[str, Any] = {"prior": family, "random_state": seed, "max_categories": 3}
    if task != "counts" and draw(st.booleans()):
        shared |= {
            "hidden_layer_sizes": draw(st.sampled_from(((), *[layers]))),
            "n_members": draw(st.integers(1, 2)),
            "init": draw(st.sampled_from(("relu_network", "laplace", "spike_slab"))),
            "solver": draw(st.sampled_from(("cavi", "svi"))),
            "accelerate": draw(st.booleans()),
            "max_iter": draw(st.integers(1, 5)),
            "propagation": draw(st.sampled_from(("push_forward", "variational"))),
        }
        if task == "classes":
            return BowTieNetworkClassifier(**shared)
        return BowTieNetwork(**shared, noise=draw(st.sampled_from(("gaussian", "student_t"))))
    shared |= {
        "hidden_layer_sizes": draw(st.sampled_from((layers, "auto"))),
        "effort": draw(st.sampled_from(("fast", "balanced"))),
        "encoding": draw(st.sampled_from(("auto", "standard", "piecewise", "principal"))),
    }
    if task == "numbers":
        return BowTieRegressor(
            **shared,
            noise=draw(st.sampled_from(("auto", "constant", "student_t"))),
            target_transform=draw(st.sampled_from(("auto", "none"))),
        )
    return (BowTieClassifier if task == "classes" else BowTieCountRegressor)(**shared)
