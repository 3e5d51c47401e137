"""`BowTieRegressor` from outside: what it learns, what it answers, and what its parameters mean."""

from __future__ import annotations

import itertools
import signal
import threading
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import r2_score

from bowtienet.ensemble import fit as fitting
from bowtienet.ensemble.portfolio import LINEAR
from bowtienet.ensemble.progress import Progress
from bowtienet.estimators.regressor import BowTieRegressor
from bowtienet.outcomes import StudentT

NOISE = 0.1


def wave(X: np.ndarray) -> np.ndarray:
    return np.sin(1.2 * X[:, 0]) + 3.0


def rows(seed: int, n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, wave(X) + NOISE * rng.normal(size=n)


X, Y = rows(0)
NEW, Y_NEW = rows(1, 300)
TABLE = pd.DataFrame(X, columns=["a", "b"]).assign(
    city=np.random.default_rng(2).choice(["Oslo", "Rome", "Lima"], size=100),
    day=np.datetime64("2025-01-01") + np.random.default_rng(3).integers(0, 500, size=100),
    price=Y,
)


def quick(**changes: Any) -> BowTieRegressor:
    return BowTieRegressor(
        **{"hidden_layer_sizes": (8,), "effort": "fast", "random_state": 0, **changes}
    )


def error(model: BowTieRegressor) -> float:
    return float(np.sqrt(np.mean((model.predict(NEW) - wave(NEW)) ** 2)))


def inside(intervals: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((intervals[..., 0] <= y) & (y <= intervals[..., 1])))


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    return quick().fit(X, Y)


# What it learns


def test_weights_count_rows() -> None:
    """Rows of the other half contradict the first; their weight decides."""
    doubled, targets = np.concatenate([X, X]), np.concatenate([Y, Y + 4.0])
    for share in (0.1, 0.9):
        weights = np.repeat([1.0 - share, share], 100)
        found = quick(noise="constant").fit(doubled, targets, weights).predict(X)
        assert_allclose(np.mean(found - wave(X)), 4.0 * share, atol=0.3)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": 6},
        {"hidden_layer_sizes": (6, 4)},
        {"prior": "gaussian"},
        {"prior": "horseshoe"},
        {"encoding": "standard"},
        {"encoding": "piecewise"},
        {"encoding": "principal"},
        {"noise": "constant"},
        {"noise": "student_t"},
        {"target_transform": "none"},
    ],
    ids=str,
)
def test_settings_fit_and_answer(settings: dict[str, Any]) -> None:
    model = quick(**settings).fit(X, Y)
    assert error(model) < 0.3
    views = {recipe.view for recipe in model._fitted.ensemble.recipes} - {LINEAR}
    assert views <= {settings.get("encoding", "standard"), "standard", "piecewise"}
    if "encoding" in settings:
        assert views == {settings["encoding"]}


def test_kinds_of_noise() -> None:
    """One level; as many as rows tell; a loss that hardly follows outliers."""
    loud = NEW[:, 1] > 0.0
    y = wave(NEW) + np.where(loud, 0.5, 0.05) * np.random.default_rng(4).normal(size=300)
    std = quick().fit(NEW, y).predict(NEW, return_std=True)[1]
    assert np.median(std[loud]) > 1.5 * np.median(std[~loud])  # gates are smooth
    constant = quick(noise="constant").fit(X, Y)
    assert len(constant._fitted.ensemble.stacks[0].levels) == 1
    far = Y.copy()
    far[::10] += 30.0
    robust = quick(noise="student_t").fit(X, far)
    assert isinstance(robust._fitted.ensemble.outcome, StudentT)
    assert error(robust) < 0.5 * error(constant.fit(X, far))


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_transformed_targets() -> None:
    """A table whose warped means are good enough to join, which is not sure of 100 rows."""
    y = np.exp(2.0 * wave(X) + 0.2 * np.random.default_rng(0).normal(size=100))
    kept = {}
    for transform in ("auto", "none"):
        model = quick(target_transform=transform).fit(X, y)
        kept[transform] = [recipe.is_warped for recipe in model._fitted.ensemble.recipes]
        assert np.all(np.isfinite(model.predict_interval(3.0 * NEW)))
    assert any(kept["auto"])
    assert not any(kept["none"])


@pytest.mark.parametrize(("effort", "rounds"), [("fast", 0), ("balanced", 2), ("best", 4)])
def test_effort_trains_on(effort: str, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rounds if each is worth another one, and the members' last steps."""
    train, calls = fitting.train_recipes, []

    def counted(*arguments: Any, **settings: Any) -> Any:
        calls.append(settings["seed"])
        return train(*arguments, **settings)

    monkeypatch.setattr(fitting, "train_recipes", counted)
    monkeypatch.setattr(fitting, "ENOUGH_GAIN", -np.inf)
    quick(effort=effort).fit(X, Y)
    assert len(calls) == len(set(calls)) == rounds + 1


# Tables


def test_a_frame_with_its_target(model: BowTieRegressor) -> None:
    frame = TABLE[["a", "b", "price"]]
    named = quick().fit(frame, "price")
    assert list(named.feature_names_in_) == ["a", "b"]
    assert_array_equal(named.predict(frame), model.predict(X))
    assert_array_equal(named.predict(frame[["a", "b"]]), model.predict(X))
    apart = quick().fit(frame[["a", "b"]], frame["price"], np.ones(100))
    assert_array_equal(apart.predict(frame[["a", "b"]]), model.predict(X))
    lazy = quick().fit(pl.DataFrame(frame.to_dict("list")), "price")
    assert_array_equal(lazy.predict(pl.DataFrame(X, schema=["a", "b"])), model.predict(X))
    both = quick().fit(TABLE.assign(more=-Y), ["price", "more"])
    assert both.predict(TABLE).shape == (100, 2)


def test_mixed_columns_and_missing_values(rng: np.random.Generator) -> None:
    table = TABLE.copy()
    table["price"] += np.where(table["city"] == "Rome", 2.0, 0.0)
    table.loc[rng.uniform(size=100) < 0.1, "a"] = np.nan
    model = quick().fit(table, "price")
    new = table.drop(columns="price")
    before = model.predict(new)
    assert r2_score(table["price"], before) > 0.8
    rome = model.predict(new.assign(city="Rome")) - model.predict(new.assign(city="Oslo"))
    assert 1.0 < rome.mean() < 3.0
    assert np.all(np.isfinite(model.predict(new.assign(a=np.nan, city=None))))
    shuffled = new[["day", "city", "b", "a"]]
    np.testing.assert_array_equal(model.predict(shuffled), before)


@pytest.mark.parametrize(
    "stream",
    [pl.DataFrame(X).lazy(), {"a": [1.0]}, None],
    ids=["lazy frame", "dict", "nothing"],
)
def test_rows_that_are_not_in_memory(model: BowTieRegressor, stream: Any) -> None:
    for ask in (lambda: quick().fit(stream, "y"), lambda: model.predict(stream)):
        with pytest.raises(ValueError, match="load the rows into a frame"):
            ask()


# Answers


def test_covariance(model: BowTieRegressor) -> None:
    """Its diagonal is the variance; rows next to each other share what is epistemic."""
    table = np.concatenate([NEW[:30], NEW[:1] + 1e-9])
    mean, covariance = model.predict(table, return_cov=True)
    assert_array_equal(mean, model.predict(table))
    assert_allclose(np.sqrt(np.diag(covariance)), model.predict(table, return_std=True)[1])
    assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    assert_allclose(covariance[0, -1], model.predict_components(table).epistemic[0] ** 2, rtol=0.05)
    with pytest.raises(ValueError, match="not both"):
        model.predict(table, return_std=True, return_cov=True)


def test_conformal_intervals(model: BowTieRegressor) -> None:
    """Held-out rows, or rows of the user, move the ends: 150 of them are good to 0.05."""
    half = slice(0, 150), slice(150, 300)
    own = model.predict_interval(NEW, 0.9, method="conformal")
    assert 0.8 < inside(own, Y_NEW) <= 1.0
    wrong = NEW[half[0]], Y_NEW[half[0]] + 1.0
    moved = model.predict_interval(NEW[half[1]], 0.8, method="conformal", calibration=wrong)
    assert 0.65 < inside(moved, Y_NEW[half[1]] + 1.0) < 0.95
    few = model.predict_interval(NEW, 0.99, method="conformal", calibration=(NEW[:9], Y_NEW[:9]))
    assert np.all(np.isinf(few))
    with pytest.raises(ValueError, match="method"):
        model.predict_interval(NEW, method="guess")


@pytest.mark.parametrize("sizes", [(0,), (5, -1), (2.5,), -3])
def test_bad_sizes_are_named(sizes: Any) -> None:
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        quick(hidden_layer_sizes=sizes).fit(X, Y)


@pytest.mark.filterwarnings("ignore:rows lie far outside")
def test_one_row_is_too_few() -> None:
    with pytest.raises(ValueError, match="one sample"):
        quick().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="one sample"):
        quick().fit(X, Y, np.arange(100) == 3)
    assert np.all(np.isfinite(quick().fit(X[:2], Y[:2]).predict(X, return_std=True)))


def test_summary(model: BowTieRegressor) -> None:
    text = model.summary()
    stack = model._fitted.ensemble.stacks[0]
    for word in ("BowTieRegressor of y", "2 columns", "10 of 8", f"{stack.log_density:.3f}"):
        assert word in text
    assert len(text.splitlines()) == 4 + len(stack.weights)
    assert f"{stack.weights.max():.3f}" in text.splitlines()[3]
    # The noise is in the unit of the target.
    scaled = quick(noise="constant").fit(X, 1000.0 * Y).summary()
    best = float(scaled.splitlines()[3].split()[4].replace(",", ""))
    assert 50.0 < best < 200.0


# Fits again, threads, progress, interruption


def test_clones_threads_and_weights_of_one_change_nothing(model: BowTieRegressor) -> None:
    assert_array_equal(clone(model).fit(X, Y).predict(NEW), model.predict(NEW))
    assert_array_equal(quick(n_jobs=2).fit(X, Y, 1.0).predict(NEW), model.predict(NEW))


def test_progress_is_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Progress, "seconds_between", 0.0)
    quick(verbose=1).fit(X, Y)
    out, said = capsys.readouterr()
    assert not out
    assert "%" in said
    assert "left" in said
    assert said.splitlines()[-1].strip().startswith("fitted in")
    quick().fit(X, Y)
    assert not any(capsys.readouterr())


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_late_interruption_leaves_a_fitted_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "train_recipes", interrupt)
    with pytest.warns(UserWarning, match="interrupted") as caught:
        model = quick(effort="best").fit(X, Y)
    assert caught[0].filename == __file__
    assert error(model) < 0.15
    assert 0.8 < inside(model.predict_interval(NEW), Y_NEW) <= 1.0


def test_threads_end_when_a_fit_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at the second update of any thread; the threads that then go on raise."""
    numbers, calls, advance = itertools.count(1), [], Progress.advance

    def pressed(self: Progress, work: float) -> None:
        number = next(numbers)  # in one step, so that a thread is the second whatever the others do
        calls.append(number)
        if number == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        if number >= 2:
            self.interrupted.wait(20.0)
        advance(self, work)

    monkeypatch.setattr(Progress, "advance", pressed)
    with pytest.raises(KeyboardInterrupt, match="nothing is fitted"):
        quick(n_jobs=2).fit(X, Y)
    assert len(calls) <= 4
