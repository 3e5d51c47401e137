"""Slopes of members against differences of their predictions, and what they do outside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.ensemble.ensemble import member_moments, member_views
from bowtienet._old.ensemble.slopes import column_slopes
from bowtienet._old.representation.representation import standardized_features
from tests._old.ensemble.fits import bent_table

QUICK: dict[str, Any] = {"hidden_layer_sizes": (6,), "effort": "fast", "random_state": 0}


@pytest.mark.parametrize("features", ["standard", 4, "principal"])
@pytest.mark.parametrize("hidden", [(6,), (6, 6)])
def test_slopes_are_those_of_the_means(features: Any, hidden: tuple[int, ...]) -> None:
    """Where neither a unit nor a bin begins within the step: nearly everywhere."""
    X, y = bent_table(80)
    settings = QUICK | {"features": features, "hidden_layer_sizes": hidden}
    model = BowTieRegressor(target_transform="none", **settings).fit(X, y)
    ensemble = model.ensemble_
    standardized = standardized_features(ensemble.representation, X)
    found = column_slopes(ensemble.members[0], member_views(ensemble)[0], standardized)
    assert found.shape == (80, 2, 1)
    scale = ensemble.representation.feature_scaling.scale
    order = ensemble.representation.column_order
    for place in range(2):
        step = np.zeros(2)
        step[order[place]] = 1e-4 * scale[order[place]]
        ahead, behind = (member_moments(ensemble, X + s * step).means[0] for s in (1.0, -1.0))
        near = np.isclose(found[:, place], (ahead - behind) / 2e-4, rtol=0.02, atol=0.02)
        assert near.mean() > 0.8


def test_far_outside_the_data_little_is_known_and_lines_stay_lines() -> None:
    rng = np.random.default_rng(500)
    X = rng.uniform(-2.0, 2.0, size=(200, 2))
    noise = 0.1 * rng.normal(size=200)
    far = np.array([[1.0, 0.0], [6.0, 0.0], [1.0, 6.0]])
    bent = BowTieRegressor(**QUICK).fit(X, np.sin(2.0 * X[:, 0]) + noise)
    _, std = bent.predict(far, return_std=True)
    assert std[1] > 10.0 * std[0]
    assert std[2] < std[1] / 3.0
    line = BowTieRegressor(**QUICK).fit(X, X[:, 0] + noise)
    _, std_of_line = line.predict(far, return_std=True)
    assert std_of_line[1] < std[1] / 3.0


def test_all_answers_know_of_it() -> None:
    """Components, draws and covariances agree with the deviations within six standard errors."""
    X, y = bent_table(80)
    model = BowTieRegressor(noise="constant", target_transform="none", **QUICK).fit(X, y)
    far = np.array([[0.5, 0.5], [4.0, 0.0], [5.0, -4.0]])
    _, std = model.predict(far, return_std=True)
    plain = BowTieRegressor(noise="constant", target_transform="none", **QUICK).fit(X, y)
    plain.ensemble_ = replace(model.ensemble_, outside=None)
    _, without = plain.predict(far, return_std=True)
    np.testing.assert_allclose(std[0], without[0], rtol=1e-12)
    assert np.all(std[1:] > 1.5 * without[1:])
    parts, before = model.predict_components(far), plain.predict_components(far)
    np.testing.assert_allclose(parts.noise_variance, before.noise_variance, rtol=1e-12)
    np.testing.assert_allclose(parts.epistemic_variance + parts.noise_variance, std**2, rtol=1e-12)
    _, covariance = model.predict(far, return_cov=True)
    np.testing.assert_allclose(np.diagonal(covariance), std**2, rtol=1e-9)
    assert covariance[1, 2] > plain.predict(far, return_cov=True)[1][1, 2]
    for joint in (False, True):
        draws = model.sample_y(far, 4000, random_state=1, joint=joint)
        np.testing.assert_allclose(draws.std(axis=1), std, rtol=6.0 / np.sqrt(2 * 4000))


def test_ensembles_of_the_paper_go_on_as_they_are() -> None:
    X, y = bent_table(60)
    model = BowTieRegressor(
        hidden_layer_sizes=(5,),
        n_estimators=2,
        random_state=0,
        options=FitOptions(weighting="equal", tol=0.1),
    )
    assert model.fit(X, y).ensemble_.outside is None
