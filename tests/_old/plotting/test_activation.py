"""The bow tie: densities against the normal mixture, means, limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from scipy.special import expit
from scipy.stats import norm

from bowtienet._old import BowTieRegressor
from bowtienet._old.plotting import ActivationDisplay
from bowtienet._old.plotting.activation import activation_density
from tests._old.plotting.fits import quick


@pytest.mark.parametrize(("gate_temperature", "deviation"), [(0.5, 0.3), (0.01, 0.5), (2.0, 0.2)])
def test_density_against_the_two_normals(gate_temperature: float, deviation: float) -> None:
    z, edges = np.linspace(-2.0, 2.0, 9), np.linspace(-3.0, 3.0, 3001)
    a = 0.5 * (edges[1:] + edges[:-1])[:, None]
    gate = expit(z / gate_temperature)
    expected = gate * norm.pdf(a, z, deviation) + (1.0 - gate) * norm.pdf(a, 0.0, deviation)
    found = activation_density(z, edges, gate_temperature, deviation)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_noise_finer_than_a_cell_is_not_lost() -> None:
    """All mass stays, half of it at 0 and half at z, since the gate of a huge T is even."""
    edges = np.linspace(-1.0, 1.0, 11)
    found = activation_density(np.array([0.55]), edges, 1e9, 1e-6)[:, 0] * 0.2
    np.testing.assert_allclose(found[[4, 5, 7]], [0.25, 0.25, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.sum(), 1.0)


def test_panels_lines_and_titles() -> None:
    display = ActivationDisplay.from_parameters([0.1, 1.0], [0.2, 0.4], limit=2.0)
    assert display.axes_.shape == (2, 2)
    assert display.axes_[1, 1].get_title() == "T = 1, η = 0.4"
    for place, ax in enumerate(display.axes_.flat):
        mean, relu = ax.lines
        z = mean.get_xdata()
        np.testing.assert_allclose(mean.get_ydata(), z * expit(z / [0.1, 1.0][place % 2]))
        np.testing.assert_array_equal(relu.get_ydata(), np.maximum(z, 0.0))
        assert relu.is_dashed()
        np.testing.assert_allclose(ax.images[0].get_array().max(axis=0), 1.0)


def test_the_temperature_and_the_noise_of_a_fit(
    rows: tuple[pd.DataFrame, pd.Series], mixed: BowTieRegressor
) -> None:
    fitted = quick(hidden_layer_sizes=(4, 3), gate_temperature=0.25, tol=1.0).fit(*rows)
    for member in range(2):
        display = ActivationDisplay.from_estimator(fitted, member=member)
        layers = fitted.ensemble_.members[member].factors.layers[:-1]
        variance = [q.scale / q.concentration for q in (layer.noise_variance for layer in layers)]
        assert display.temperatures == [0.25]
        expected = 1.0 / np.sqrt(np.median(1.0 / np.concatenate(variance)))
        np.testing.assert_allclose(display.noise_deviations, [expected])
        assert display.limit == 6.0 * 0.25
    assert ActivationDisplay.from_estimator(mixed).axes_.shape == (1, 1)


def test_a_linear_model_has_no_activation(rows: tuple[pd.DataFrame, pd.Series]) -> None:
    line = quick(hidden_layer_sizes=(), n_estimators=1, tol=1.0).fit(*rows)
    with pytest.raises(ValueError, match="model has no hidden units"):
        ActivationDisplay.from_estimator(line)
    assert pyplot.get_fignums() == []
