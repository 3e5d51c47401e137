"""Conformal intervals hold their share of targets, also where the model is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bowtienet._old import BowTieRegressor, load
from bowtienet._old.prediction.conformal import split_coverage
from tests._old.estimators.models import rows, small, stacked

COVERAGE = 0.9
N_CALIBRATION, N_TEST, REPEATS = 99, 150, 30
STANDARD_ERRORS = 4.5
"""Allowed below and above: a false alarm in 1e5 of each."""
Data = tuple[np.ndarray, np.ndarray]


def heavy_tails(n: int, rng: np.random.Generator) -> Data:
    """Noise with two degrees of freedom: it has no variance."""
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    return x, x[:, 0] + rng.standard_t(2.0, size=n)


def hidden_noise(n: int, rng: np.random.Generator) -> Data:
    """Noise whose size nobody sees: ten times as large, and to one side, for a fifth of rows."""
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    noise = 0.2 * rng.normal(size=n)
    return x, x[:, 0] + np.where(rng.uniform(size=n) < 0.2, np.abs(10.0 * noise), noise)


def bends(n: int, rng: np.random.Generator) -> Data:
    """A function that is no line, and hardly any noise."""
    x = rng.uniform(-2.0, 2.0, size=(n, 2))
    return x, np.abs(3.0 * x[:, 0]) + np.sin(4.0 * x[:, 1]) + 0.05 * rng.normal(size=n)


WRONG: dict[str, tuple[Callable[..., Data], dict[str, Any]]] = {
    "heavy tails": (heavy_tails, {}),
    "heavy tails, constant noise": (heavy_tails, {"noise": "constant"}),
    "noise of unknown size": (hidden_noise, {"noise": "constant"}),
    "a line for bends": (bends, {"hidden_layer_sizes": (), "features": "standard"}),
}


def fitted(make: Callable[..., Data], changes: dict[str, Any], n: int = 200) -> BowTieRegressor:
    settings: dict[str, Any] = {"effort": "fast", "target_transform": "none", "random_state": 0}
    model = BowTieRegressor(**({"hidden_layer_sizes": (6,)} | settings | changes))
    return model.fit(*make(n, np.random.default_rng(1)))


def share_inside(found: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((found[:, 0] <= y) & (y <= found[:, 1])))


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_the_fit_has_not_seen_guarantee_the_coverage(name: str) -> None:
    """On average over calibration rows, with the error of the mean over repeats."""
    make, changes = WRONG[name]
    model, rng = fitted(make, changes), np.random.default_rng(2)
    shares = []
    for _ in range(REPEATS):
        calibration, (x, y) = make(N_CALIBRATION, rng), make(N_TEST, rng)
        found = model.predict_interval(x, COVERAGE, method="conformal", calibration=calibration)
        shares.append(share_inside(found, y))
    error = np.std(shares) / np.sqrt(REPEATS)
    expected = float(split_coverage(N_CALIBRATION, COVERAGE))
    assert expected >= COVERAGE
    assert abs(np.mean(shares) - expected) < STANDARD_ERRORS * error
    assert error < 0.015


@pytest.mark.parametrize("name", WRONG)
def test_the_fits_own_held_out_rows_come_near_it(name: str) -> None:
    """Within error bars of 200 held-out rows and 2,000 new ones, and 0.02 that nobody promised."""
    make, changes = WRONG[name]
    x, y = make(2000, np.random.default_rng(3))
    found = fitted(make, changes).predict_interval(x, COVERAGE, method="conformal")
    error = np.sqrt(COVERAGE * (1.0 - COVERAGE) * (1.0 / 200 + 1.0 / 2000))
    assert abs(share_inside(found, y) - COVERAGE) < STANDARD_ERRORS * error + 0.02


def test_shapes_weights_and_files(tmp_path: Any) -> None:
    X, y = rows()
    both = np.column_stack([y, -y])
    model, single = (stacked(effort="fast").fit(X, target) for target in (both, y))
    new = rows(7, seed=3)
    assert model.predict_interval(X[:5], method="conformal").shape == (5, 2, 2)
    assert single.predict_interval(X[:5], [0.5, 0.9], method="conformal").shape == (5, 2, 2)
    assert model.predict_interval(X[:5], [0.5, 0.8, 0.9], method="conformal").shape == (5, 2, 2, 3)
    single.save(tmp_path / "model")
    expected = single.predict_interval(X, method="conformal")
    assert_array_equal(load(tmp_path / "model").predict_interval(X, method="conformal"), expected)
    # A weight is a repetition, and a row of weight zero is absent.
    counts = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    repeated = tuple(np.repeat(values, counts.astype(int), axis=0) for values in new)
    weighted, longer = (
        single.predict_interval(X, 0.5, method="conformal", calibration=given)
        for given in ((*new, counts), repeated)
    )
    assert_allclose(weighted, longer, rtol=1e-9, atol=1e-9)
    # Seven rows cannot vouch for 90 %.
    few = single.predict_interval(X, method="conformal", calibration=new)
    assert_array_equal(few, np.tile([-np.inf, np.inf], (60, 1)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_misuse_is_told_in_a_sentence() -> None:
    X, y = rows()
    model = small().fit(X, y)
    with pytest.raises(ValueError, match=r"held no rows out.*calibration=\(X, y\)"):
        model.predict_interval(X, method="conformal")
    assert model.predict_interval(X, method="conformal", calibration=(X, y)).shape == (60, 2)
    few = stacked(effort="fast").fit(X[:8], y[:8])
    with pytest.raises(ValueError, match="held no rows out"):
        few.predict_interval(X, method="conformal")
    for method in ("central", "highest_density"):
        with pytest.raises(ValueError, match="calibration rows are for method='conformal'"):
            model.predict_interval(X, method=method, calibration=(X, y))
    with pytest.raises(ValueError, match="'widest'"):
        model.predict_interval(X, method="widest")
    for wrong in (X, (X,), (X, y, None, None)):
        with pytest.raises(ValueError, match=r"calibration must be \(X, y\)"):
            model.predict_interval(X, method="conformal", calibration=wrong)
    with pytest.raises(ValueError, match="2 features"):
        model.predict_interval(X, method="conformal", calibration=(X[:, :2], y))
