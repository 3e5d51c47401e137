"""Random tables and settings: what people may give, odd but right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from scipy import sparse

from bowtienet import (
    BowTieClassifier,
    BowTieCountRegressor,
    BowTieNetwork,
    BowTieNetworkClassifier,
    BowTieRegressor,
)
from bowtienet.model.model import Prior
from bowtienet.model.shrinkage import FAMILIES

COLUMNS = ("normal", "skewed", "constant", "few", "missing", "truth", "category", "date", "copy")
CONTAINERS = (
    *("array", "fortran", "strided", "read-only", "swapped", "single", "list", "sparse", "tensor"),
    *("objects", "pandas", "nullable", "polars", "pyarrow", "batches"),
)
OF_NUMBERS = CONTAINERS[:9]
ODD_NAMES = ["mean", "<b>é", "[x]", "", "=1+1"]
SIZES: dict[str, Any] = {
    "hidden_layer_sizes": st.sampled_from(((), (3,), [3, 2], 4)),
    "random_state": st.integers(0, 1000),
}
SHARED = {"max_categories": (1, 3), "prior": FAMILIES}
NETWORK: dict[str, tuple[Any, ...]] = {
    **SHARED,
    "prior": (*FAMILIES, Prior("laplace", lambda_local=3.0), Prior("student_t", nu_global=-0.6)),
    "temperature": (1e-3, 0.1, 1.0),
    "hidden_noise": ((0.5, 1e-3), (5.0, 10.0)),
    "bias_variance": ("intercept", 1e-3, 1e3),
    "init": ("laplace", "spike_slab"),
    "solver": ("svi",),
    "accelerate": (False,),
    "elbo_tempering": (0.01, 10.0),
    "propagation": ("variational",),
    "tol": (0.0, 0.1),
    "batch_size": (1, 7),
    "forgetting_rate": (0.6, 1.0),
    "step_delay": (0.0, 10.0),
}
NETWORK_OF_NUMBERS = {
    **NETWORK,
    "output_noise": ((2.0, 0.1), (0.5, 1e-3)),
    "noise": ("student_t",),
    "scale_target": (False,),
}
PRACTICAL: dict[str, tuple[Any, ...]] = {
    **SHARED,
    "encoding": ("standard", "piecewise", "principal"),
    "n_jobs": (2, -1),
}
OF_TASK: dict[str, dict[str, tuple[Any, ...]]] = {
    "numbers": {"noise": ("constant", "student_t"), "target_transform": ("none",)},
    "classes": {"class_weight": ("balanced",)},
    "counts": {},
}
CLASSES = {"numbers": BowTieRegressor, "classes": BowTieClassifier, "counts": BowTieCountRegressor}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, its targets, and an estimator for them."""

    estimator: Any
    frame: pd.DataFrame
    """The columns; of arrays with the names that they get."""
    X: Any
    """The same in some container."""
    y: Any
    fit: dict[str, Any]
    """Targets or their names, weights and exposure."""
    predict: dict[str, Any]
    """Exposure."""
    unit: float
    """Size of the targets."""


@st.composite
def cases(draw: Any) -> Case:
    """A case of any of the five estimators."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    task = draw(st.sampled_from(tuple(CLASSES)))
    n = draw(st.sampled_from((2, 3, 7, 20, 60)))
    container = draw(st.sampled_from(CONTAINERS))
    frame = _frame(draw, n, container, rng)
    first = np.unique(frame.iloc[:, 0].to_numpy().astype(str), return_inverse=True)[1] / n
    signal = np.sin(5.0 * first) + draw(st.sampled_from((0.0, 1e-6, 0.1, 1.0))) * rng.normal(size=n)
    fit: dict[str, Any] = {}
    weights = draw(st.sampled_from((None, rng.integers(0, 3, n) * 1.0, rng.random(n) * 1e-3)))
    if weights is not None and weights.any():
        fit["sample_weight"] = weights
    predict: dict[str, Any] = {}
    unit, y = 1.0, signal
    if task == "numbers":
        unit = 10.0 ** draw(st.integers(-6, 6))
        y = unit * (signal + draw(st.sampled_from((0.0, 1e3))))
        if draw(st.booleans()):
            y = np.column_stack([y, -y])
    elif task == "classes":
        many = draw(st.booleans())
        ends = np.linspace(-2.0, 2.0, 25) if many else (-0.5, 0.3, 0.9)
        y = np.array([*"baé", *(f"class {i}" for i in range(23))])[np.digitize(signal, ends)]
    else:
        if draw(st.booleans()) and container != "batches":
            fit["exposure"] = predict["exposure"] = 10.0 ** rng.uniform(-3.0, 3.0, n)
        y = rng.poisson(np.exp(2.0 * signal))
    fit["y"] = y
    if container == "batches":
        fit = {"y": [f"y{i}" for i in range(y.shape[1])] if y.ndim == 2 else "y"}
        X = _batches(frame, y, fit["y"])
    else:
        X = _contained(frame, container)
    estimator = draw(_estimators(task))
    return Case(estimator=estimator, frame=frame, X=X, y=y, fit=fit, predict=predict, unit=unit)


def _frame(draw: Any, n: int, container: str, rng: np.random.Generator) -> pd.DataFrame:
    kinds = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5))
    names = [f"x{i}" for i in range(5)]
    if container in OF_NUMBERS:
        kinds = [kind if kind not in ("category", "date") else "normal" for kind in kinds]
    elif container != "objects" and draw(st.booleans()):
        names = ODD_NAMES
    frame = pd.DataFrame({names[i]: _column(kind, n, rng) for i, kind in enumerate(kinds)})
    if "copy" in kinds:
        frame[names[kinds.index("copy")]] = frame.iloc[:, 0]
    if draw(st.booleans()):
        frame = frame.iloc[rng.integers(0, max(n // 2, 1), n)].reset_index(drop=True)
    return frame


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


def _batches(frame: pd.DataFrame, y: Any, names: Any) -> list[pd.DataFrame]:
    whole = frame.copy()
    whole[names] = y
    return [whole[:2], whole[2:]] if len(whole) > 2 else [whole]


class Tensor(list):
    """An array of another library: no more than the protocol."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(list(self), dtype=dtype)


def _contained(frame: pd.DataFrame, container: str) -> Any:
    values = frame.to_numpy(dtype=float if container in OF_NUMBERS else object)
    values.setflags(write=container != "read-only")
    builders: dict[str, Any] = {
        "fortran": lambda: np.asfortranarray(values),
        "strided": lambda: np.repeat(values, 2, axis=0)[::2],
        "swapped": lambda: values.astype(values.dtype.newbyteorder()),
        "single": lambda: values.astype(np.float32),
        "list": values.tolist,
        "sparse": lambda: sparse.csr_matrix(values),
        "tensor": lambda: Tensor(values),
        "pandas": lambda: frame,
        "nullable": frame.convert_dtypes,
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
    }
    return builders.get(container, lambda: values)()


@st.composite
def _estimators(draw: Any, task: str) -> Any:
    """An estimator of the task with a few random settings."""

    def drawn(values: dict[str, tuple[Any, ...]], **required: Any) -> dict[str, Any]:
        optional = {name: st.sampled_from(each) for name, each in values.items()}
        few: dict[str, Any] = draw(st.fixed_dictionaries({**SIZES, **required}, optional=optional))
        return few

    if task == "counts" or draw(st.booleans()):
        effort = st.sampled_from(("fast", "fast", "balanced", "best"))
        settings = drawn(PRACTICAL | OF_TASK[task], effort=effort)
        return CLASSES[task](**settings)
    small = {"n_members": st.integers(1, 2), "max_iter": st.sampled_from((1, 5, 40))}
    if task == "classes":
        return BowTieNetworkClassifier(**drawn(NETWORK, **small))
    settings = drawn(NETWORK_OF_NUMBERS, **small)
    build = draw(st.sampled_from((BowTieNetwork, BowTieNetwork.as_in_paper)))
    return build(**settings)
