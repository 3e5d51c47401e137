"""Small estimators, what they answer, and how their fits are watched and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old._arrays import map_arrays

OPTIONS = set(FitOptions().get_params())


def small(**changes: Any) -> BowTieRegressor:
    """Two members of four units, fitted in 50 ms; changes of parameters and of options."""
    settings: dict[str, Any] = {"hidden_layer_sizes": (4,), "n_estimators": 2, "max_iter": 8}
    settings |= {"random_state": 0, "weighting": "equal", "gate_temperature": 0.05} | changes
    options = FitOptions(**{name: settings.pop(name) for name in OPTIONS & settings.keys()})
    return BowTieRegressor(**settings, options=options)


def stacked(**changes: Any) -> BowTieRegressor:
    """Members weighted by held-out rows: one penalty on up to five folds, then two members."""
    return small(**({"weighting": "stacking", "init_penalty": 1.0} | changes))


def rows(n: int = 60, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Three columns, of which the last has no part in the target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 3))
    return X, 2.0 * np.abs(X[:, 0]) + 2.0 * X[:, 1] + noise * rng.normal(size=n)


def answers(model: BowTieRegressor, X: Any) -> np.ndarray:
    """Mean and standard deviation, stacked."""
    return np.stack(model.predict(X, return_std=True))


def assert_same(first: BowTieRegressor, second: BowTieRegressor) -> None:
    """The same members, weights and scalings, to the bit."""
    for a, b in zip(first.ensemble_.members, second.ensemble_.members, strict=True):
        map_arrays(assert_array_equal, a.factors, b.factors)
        assert_array_equal(a.variance_ratio, b.variance_ratio)
        assert a.elbo_history == b.elbo_history
        assert (a.status, a.n_sweeps) == (b.status, b.n_sweeps)
    assert_array_equal(first.member_weights_, second.member_weights_)
    one, other = first.ensemble_.representation, second.ensemble_.representation
    map_arrays(assert_array_equal, one.feature_scaling, other.feature_scaling)
    map_arrays(assert_array_equal, one.target_scaling, other.target_scaling)
    assert_array_equal(one.column_order, other.column_order)


class Recorder:
    """A callback of scikit-learn that notes its calls; `at_end` chooses what it answers."""

    def __init__(self, at_end: Callable[..., Any] = lambda *_: None) -> None:
        self.at_end = at_end
        self.calls: list[tuple[str, str]] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> bool | None:
        self.calls.append(("end", context.task_name))
        return self.at_end(self, context, fitted_estimator)

    def count(self, hook: str, task: str) -> int:
        return Counter(self.calls)[hook, task]


def watched(model: BowTieRegressor, at_end: Callable[..., Any] = lambda *_: None) -> Recorder:
    """A recorder that is told of all fits of the model."""
    pytest.importorskip("sklearn.callback")
    recorder = Recorder(at_end)
    model.set_callbacks(recorder)
    return recorder


def at_sweep(number: int, error: type[BaseException]) -> Callable[..., None]:
    """Raise after a sweep, counted over all members."""

    def at_end(recorder: Recorder, context: Any, fitted: Any) -> None:
        if context.task_name == "sweep" and recorder.count("end", "sweep") == number:
            raise error

    return at_end
