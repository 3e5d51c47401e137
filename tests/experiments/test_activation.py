"""The local factors behind the figure against a dense Gaussian, and the figures themselves."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bowtienet import BowTieRegressor
from bowtienet.data.rows import build_rows
from bowtienet.data.toy import simulate_toy
from bowtienet.experiments import activation
from bowtienet.inference.local_step import settle
from bowtienet.prediction.ensemble import network_inputs
from bowtienet.representation.scaling import standardize

TINY = {"n_estimators": 1, "combine": "equal", "max_iter": 4, "random_state": 0}


@pytest.fixture(scope="module")
def fitted() -> tuple[BowTieRegressor, np.ndarray, np.ndarray]:
    X, y = simulate_toy(40, np.random.default_rng(3))
    with pytest.warns(ConvergenceWarning):  # so few sweeps are not enough
        return BowTieRegressor((5, 4), **TINY).fit(X, y), X, y


def test_posterior_of_the_unit(fitted: tuple[BowTieRegressor, np.ndarray, np.ndarray]) -> None:
    model, X, y = fitted
    found = activation.unit_posterior(model, X, y)
    ensemble, member = model.ensemble_, model.ensemble_.members[0]
    rows = build_rows(network_inputs(ensemble, X), standardize(ensemble.target_scaling, y[:, None]))
    local, _ = settle(member.model, member.factors, rows.inputs, rows.targets, 1e-8, 500)
    first, second = local.activations
    unit, partner, row = found.unit, found.other_unit, found.row
    np.testing.assert_array_equal(found.gates, local.gate_probability[0][:, unit])
    np.testing.assert_allclose(found.mean, first.offset[:, unit])
    # a_1 ~ N(t_1, S_1) and a_2 | a_1 ~ N(t_2 + M a_1, S_2), row by row.
    correlations = np.zeros((len(X), 4))
    for n in range(len(X)):
        S1 = first.covariance[n % len(first.covariance)]
        S2, M = second.covariance[n % len(second.covariance)], second.gain[n]
        dense = np.block([[S1, S1 @ M.T], [M @ S1, S2 + M @ S1 @ M.T]])
        assert found.deviation[n] == pytest.approx(np.sqrt(dense[unit, unit]))
        for d in range(4):
            pair = dense[np.ix_([unit, 5 + d], [unit, 5 + d])]
            correlations[n, d] = pair[0, 1] / np.sqrt(pair[0, 0] * pair[1, 1])
            if (n, d) == (row, partner):
                mean = [first.offset[n, unit], (second.offset[n] + M @ first.offset[n])[d]]
                np.testing.assert_allclose(found.joint_mean, mean)
                np.testing.assert_allclose(found.joint_covariance, pair)
    assert abs(found.correlation) == pytest.approx(np.abs(correlations).max())
    assert found.correlation == pytest.approx(correlations[row, partner])


def test_figures(tmp_path: Path) -> None:
    assert activation.cases(3, ["single"]) == []
    said: list[str] = []
    paths = activation.write([], tmp_path, said.append)
    paths += activation.write_fits(tmp_path, said.append, n_jobs=1, fit=TINY, hidden=(4, 4))
    assert [path.name for path in paths] == ["activation.png", "activation_posterior.png"]
    assert all(plt.imread(path).std() > 0.01 for path in paths)
    assert "fitting activation" in said
    assert len(list((tmp_path / "models").glob("activation-*.btn"))) == 1
