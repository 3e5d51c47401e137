"""`BowTieCountRegressor`: rates, exposures and intervals of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet.estimators.counts import BowTieCountRegressor


def rate(X: np.ndarray) -> np.ndarray:
    return np.exp(1.0 + X[:, 0])


def rows(seed: int, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, counts and their exposures."""
    rng = np.random.default_rng(seed)
    X, exposure = rng.uniform(-1.0, 1.0, size=(n, 2)), rng.uniform(0.5, 4.0, size=n)
    return X, rng.poisson(exposure * rate(X)), exposure


X, Y, EXPOSURE = rows(0)
NEW, Y_NEW, LATER = rows(1, 400)


def quick(**changes: Any) -> BowTieCountRegressor:
    return BowTieCountRegressor(
        **{"hidden_layer_sizes": (8,), "effort": "fast", "random_state": 0, **changes}
    )


@pytest.fixture(scope="module")
def model() -> BowTieCountRegressor:
    return quick().fit(X, Y, exposure=EXPOSURE)


def inside(intervals: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((intervals[:, 0] <= y) & (y <= intervals[:, 1])))


def test_rates_are_near_the_truth(model: BowTieCountRegressor) -> None:
    """Poisson counts of mean 6 by 120 rows: about 4 % each for three parameters that matter."""
    mean, std = model.predict(NEW, return_std=True, exposure=LATER)
    assert np.sqrt(np.mean((mean / (LATER * rate(NEW)) - 1.0) ** 2)) < 0.15
    assert np.all(std > 0.8 * np.sqrt(mean))
    assert 0.86 < inside(model.predict_interval(NEW, exposure=LATER), Y_NEW) <= 1.0


def test_twice_the_exposure_is_twice_the_mean(model: BowTieCountRegressor) -> None:
    one = model.predict(NEW, exposure=1.0)
    assert_allclose(model.predict(NEW, exposure=2.0), 2.0 * one)
    assert_allclose(model.predict(NEW, exposure=np.full(400, 2.0)), 2.0 * one)
    assert_allclose(model.predict_components(NEW, exposure=3.0).mean, 3.0 * one)
    wider = np.subtract(*(model.predict_interval(NEW, exposure=each) for each in (3.0, 1.0)))
    assert np.all(wider[:, 1] > 0.0)


def test_the_exposure_of_a_fit_has_a_unit(model: BowTieCountRegressor) -> None:
    """Hours for days: rates are of a day. The hash of rows that gives their folds has exposures in
    it, so that fits are those of other folds."""
    hours = quick().fit(X, Y, exposure=24.0 * EXPOSURE)
    one, none = quick().fit(X, Y, exposure=1.0), quick().fit(X, Y)
    for rates, others in (
        (hours.predict(NEW, exposure=24.0), model.predict(NEW, exposure=1.0)),
        (one.predict(NEW, exposure=1.0), none.predict(NEW)),
    ):
        apart = np.log(rates / others)
        assert abs(apart.mean()) < 0.05
        assert np.sqrt(np.mean(apart**2)) < 0.1


def test_exposures_by_name() -> None:
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, days=EXPOSURE)
    model = quick().fit(table, "y", exposure="days")
    whole = model.predict(table, exposure="days")
    assert_array_equal(whole, model.predict(table[["a", "b"]], exposure=EXPOSURE))
    with pytest.warns(UserWarning, match="take exposure") as caught:
        assert_allclose(whole, EXPOSURE * model.predict(table))
    assert caught[0].filename == __file__


def test_conformal_intervals(model: BowTieCountRegressor) -> None:
    """By held-out rows of the fit, 120 of them good to 0.04, or by rows of exposure one."""
    own = model.predict_interval(NEW, 0.8, method="conformal", exposure=LATER)
    assert_array_equal(own, np.round(own))
    assert 0.68 < inside(own, Y_NEW) <= 1.0
    rng = np.random.default_rng(3)
    known = NEW, rng.poisson(rate(NEW))
    shifted = NEW, known[1] + 30  # none of them is where the model expects it
    how: Any = {"method": "conformal", "exposure": 1.0}
    plain = model.predict_interval(NEW, 0.8, calibration=known, **how)
    assert 0.75 < inside(plain, rng.poisson(rate(NEW))) <= 1.0
    wide = model.predict_interval(NEW, 0.8, calibration=shifted, **how)
    assert wide[:, 1].mean() > plain[:, 1].mean() + 10.0


def test_counts_that_are_all_zero() -> None:
    model = quick().fit(X, np.zeros(120))
    assert np.all(model.predict(NEW) < 0.5)
    assert_array_equal(model.predict_interval(NEW)[:, 0], 0.0)


@pytest.mark.parametrize("bad", [-1.0, 0.5])
def test_targets_that_are_no_counts(bad: float) -> None:
    y = Y.astype(float)
    y[7] = bad
    with pytest.raises(ValueError, match=f"got {bad:g}: use BowTieRegressor"):
        quick().fit(X, y)
    quick().fit(X, y, np.arange(120) != 7)  # a row of weight zero has no say
    with pytest.raises(ValueError, match="one column"):
        quick().fit(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, [1.0, 2.0]])
def test_bad_exposures_are_named(model: BowTieCountRegressor, bad: Any) -> None:
    for ask in (lambda: quick().fit(X, Y, exposure=bad), lambda: model.predict(NEW, exposure=bad)):
        with pytest.raises(ValueError, match="exposure"):
            ask()
