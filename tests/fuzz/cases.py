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
LAYOUTS = ("array", "fortran", "strided", "read-only", "swapped", "single")
OF_NUMBERS = (*LAYOUTS, "list", "sparse", "tensor")
CONTAINERS = (*OF_NUMBERS, "objects", "pandas", "nullable", "polars", "pyarrow", "batches")
ODD_NAMES = ["mean", "<b>é", "[x]", "", "=1+1"]
NETWORK: dict[str, tuple[Any, ...]] = {
    "max_categories": (1, 3),
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
OF_NUMBERS_ALONE = {
    "output_noise": ((2.0, 0.1), (0.5, 1e-3)),
    "noise": ("student_t",),
    "scale_target": (False,),
}
PRACTICAL: dict[str, tuple[Any, ...]] = {
    "max_categories": (1, 3),
    "prior": tuple(FAMILIES),
    "encoding": ("standard", "piecewise", "principal"),
    "n_jobs": (2, -1),
}
OF_TASK: dict[str, dict[str, tuple[Any, ...]]] = {
    "numbers": {"noise": ("constant", "student_t"), "target_transform": ("none",)},
    "classes": {"class_weight": ("balanced",)},
}
TASKS = ("numbers", "classes", "counts")
CLASSES = dict(zip(TASKS, (BowTieRegressor, BowTieClassifier, BowTieCountRegressor), strict=True))


@dataclass(frozen=True, kw_only=True)
class Case:
    """An estimator, and a frame, the same in some container, and targets of some size."""

    estimator: Any
    frame: pd.DataFrame
    X: Any
    y: Any
    fit: dict[str, Any]
    predict: dict[str, Any]
    unit: float


@st.composite
def cases(draw: Any) -> Case:
    """A case of any of the five estimators."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    task = draw(st.sampled_from(TASKS))
    n = draw(st.sampled_from((2, 3, 7, 20, 60)))
    container = draw(st.sampled_from(CONTAINERS))
    frame = _frame(draw, n, container, rng)
    first = np.unique(frame.iloc[:, 0].to_numpy().astype(str), return_inverse=True)[1] / n
    signal = np.sin(5.0 * first) + draw(st.sampled_from((0.0, 1e-6, 0.1, 1.0))) * rng.normal(size=n)
    weights = draw(st.sampled_from((np.ones(n), rng.integers(0, 3, n), rng.random(n) * 1e-3)))
    fit: dict[str, Any] = {"sample_weight": weights}
    predict: dict[str, Any] = {}
    unit, y = 1.0, signal
    if task == "numbers":
        unit = 10.0 ** draw(st.integers(-6, 6))
        y = unit * (signal + draw(st.sampled_from((0.0, 1e3))))
        if draw(st.booleans()):
            y = np.column_stack([y, -y])
    elif task == "classes":
        ends = draw(st.sampled_from(((-0.5, 0.3, 0.9), np.linspace(-2.0, 2.0, 25))))
        y = np.array([*"baé", *(f"class {i}" for i in range(23))])[np.digitize(signal, ends)]
    else:
        if draw(st.booleans()) and container != "batches":
            fit["exposure"] = predict["exposure"] = 10.0 ** rng.uniform(-3.0, 3.0, n)
        y = rng.poisson(np.exp(2.0 * signal))
    fit["y"] = y
    X, estimator = _contained(frame, container), draw(_estimators(task))
    if container == "batches":
        fit = {"y": ["y0", "y1"] if y.ndim == 2 else "y"}
        whole = frame.copy()
        whole[fit["y"]] = y
        X = [whole[:2], whole[2:]]
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
    kinds: dict[str, Any] = {
        "skewed": lambda: np.exp(rng.normal(0.0, 5.0, n)),
        "constant": lambda: np.full(n, values[0]),
        "few": lambda: rng.integers(0, 3, n) * 1.0,
        "missing": lambda: np.where(rng.random(n) < 0.5, np.nan, values),
        "truth": lambda: rng.random(n) < 0.5,
        "category": lambda: rng.choice(np.array(["x", "y y", "ü", None], dtype=object), n),
        "date": lambda: np.datetime64("1960-01-01", "us") + rng.integers(0, 10**15, n) * 3,
    }
    return kinds.get(kind, lambda: values)()


class Tensor:
    """An array of another library: no more than the protocol."""

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


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
        # By column: a whole frame would lose an empty name.
        "polars": lambda: pl.DataFrame({name: pl.from_pandas(frame[name]) for name in frame}),
        "pyarrow": lambda: pa.Table.from_pandas(frame, preserve_index=False),
    }
    return builders.get(container, lambda: values)()


@st.composite
def _estimators(draw: Any, task: str) -> Any:
    """An estimator of the task with a few random settings."""

    def drawn(values: dict[str, tuple[Any, ...]], **required: Any) -> Any:
        required["hidden_layer_sizes"] = st.sampled_from(((), (3,), [3, 2], 4))
        required["random_state"] = st.integers(0, 1000)
        optional = {name: st.sampled_from(each) for name, each in values.items()}
        return draw(st.fixed_dictionaries(required, optional=optional))

    if task == "counts" or draw(st.booleans()):
        effort = st.sampled_from(("fast", "fast", "balanced", "best"))
        settings = drawn(PRACTICAL | OF_TASK.get(task, {}), effort=effort)
        return CLASSES[task](**settings)
    small = {"n_members": st.integers(1, 2), "max_iter": st.sampled_from((1, 5, 40))}
    if task == "classes":
        return BowTieNetworkClassifier(**drawn(NETWORK, **small))
    settings = drawn(NETWORK | OF_NUMBERS_ALONE, **small)
    build = draw(st.sampled_from((BowTieNetwork, BowTieNetwork.as_in_paper)))
    return build(**settings)
