"""Ensembles of classes and counts with few members, and with linear ones beside networks."""

from __future__ import annotations

import numpy as np
import pytest

from bowtienet._old import BowTieClassifier, BowTieRegressor, load
from bowtienet._old.ensemble.ensemble import original


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose class is nearly a linear function of them."""
    rng = np.random.default_rng(500)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=120)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_calibrations_are_those_of_the_members(table, count, tmp_path) -> None:
    """Fewer members than recipes: those without members take no part."""
    X, z = table
    models = [
        (BowTieClassifier((8,), n_estimators=count, random_state=0), (z > 0.0).astype(int)),
        (
            BowTieRegressor((8,), outcome="counts", n_estimators=count, random_state=0),
            np.floor(np.exp(1.0 + 0.5 * z)),
        ),
    ]
    for model, y in models:
        model.fit(X, y)
        groups = len(set(model.ensemble_.groups))
        assert len(model.ensemble_.members) == count
        assert model.ensemble_.calibration.slope.shape == (groups,)
        assert model.ensemble_.calibration.dispersion.shape == (groups,)
        model.save(tmp_path / "model.btn")
        np.testing.assert_array_equal(load(tmp_path / "model.btn").predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_linear_members_stand_beside_networks(table) -> None:
    """Warm starts, exports to ArviZ and draws know both."""
    X, z = table
    y = (z > 0.0).astype(int)
    model = BowTieClassifier((8,), random_state=0, warm_start=True, max_iter=2).fit(X, y)
    depths = {len(original(member).hidden) for member in model.ensemble_.members}
    assert 0 in depths
    drawn = model.to_arviz(10)
    assert drawn.posterior["weights_1"].shape[:2] == (1, 10)
    assert model.sample_proba(X[:3], 4, joint=True).shape == (3, 2, 4)
    model.fit(X, y)
    with pytest.raises(ValueError, match="hidden_layer_sizes"):
        model.set_params(hidden_layer_sizes=(5,)).fit(X, y)


def test_a_class_of_weight_zero_is_no_class(table) -> None:
    X, z = table
    y = (z > 0.0).astype(int)
    with pytest.raises(ValueError, match="one class of positive weight"):
        BowTieClassifier((8,)).fit(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match="one class of positive weight"):
        BowTieClassifier((8,), class_weight={0: 0.0}).fit(X, y)


def test_rates_of_counts_are_those_of_the_rows() -> None:
    """Predicted over actual counts of training: EM must not move rates after the fit."""
    ratios = []
    for seed in range(500, 504):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, size=(300, 2))
        y = rng.poisson(np.exp(1.0 + X[:, 0]) * rng.gamma(2.0, 0.5, size=300))
        model = BowTieRegressor((10,), outcome="counts", effort="fast", random_state=0).fit(X, y)
        ratios.append(model.predict(X).sum() / y.sum())
    assert abs(np.mean(ratios) - 1.0) < 0.04


def test_importance_and_structure_know_exposures() -> None:
    rng = np.random.default_rng(500)
    X, exposure = rng.normal(size=(200, 2)), rng.uniform(0.1, 10.0, size=200)
    y = rng.poisson(exposure * np.exp(0.5 * X[:, 0]))
    model = BowTieRegressor((8,), outcome="counts", effort="fast", random_state=0)
    model.fit(X, y, exposure=exposure)
    known = model.importance(X, y, exposure=exposure)
    assert known.log_density == pytest.approx(model.log_score(X, y, exposure=exposure))
    found = model.structure(X, y, exposure=exposure)
    assert found.p_values[0] < 0.05
