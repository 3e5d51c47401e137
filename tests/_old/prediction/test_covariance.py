"""Covariance between rows: a covariance matrix, exact where it can be, near joint draws elsewhere.

Error bars: a comparison with draws is held to 5 standard errors, a false-alarm rate of 6e-7 for
each entry and below 1e-4 for the 100 or fewer of any one test. Seeds are fixed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.distributions import gaussian
from bowtienet._old.distributions.gated import PROBIT_SLOPES, PROBIT_WEIGHTS, gated_moments
from bowtienet._old.inference.convergence import Status
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, LayerFactors
from bowtienet._old.prediction import covariance as module
from bowtienet._old.prediction.covariance import gated_derivatives, output_covariance
from bowtienet._old.prediction.push_forward import push_forward
from bowtienet._old.prediction.sampling import sample_functions
from tests._old import builders

LIMIT = 5.0
LEFT_OUT = 0.016
"""Most of a preactivation's variance that the terms after the second hold: ReLU, mean 0.8 sd."""
HIDDEN = [(), (4,), (4, 3), (3, 5, 2)]
tiny_fits = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def network(
    hidden: tuple[int, ...], gate_temperature: float = 0.1, seed: int = 1
) -> tuple[BowTieModel, GlobalFactors, np.ndarray]:
    """A random network of two outputs, and rows of which some are close to each other."""
    rng = np.random.default_rng(seed)
    model = builders.fixed_model(hidden, gate_temperature=gate_temperature)
    factors = builders.random_factors(rng, model)
    inputs = rng.normal(0.0, 1.5, size=(5, 3))
    return model, factors, np.vstack([inputs, inputs[:2] + 0.05 * rng.normal(size=(2, 3))])


def quiet(layer: LayerFactors) -> LayerFactors:
    noise = layer.noise_variance
    return replace(layer, noise_variance=replace(noise, scale=0.05 * noise.scale))


def gate(x: np.ndarray) -> np.ndarray:
    terms = zip(PROBIT_WEIGHTS, PROBIT_SLOPES, strict=True)
    return sum((weight * ndtr(slope * x) for weight, slope in terms), np.zeros_like(x))


def covariance_of_gated(
    mean: tuple[float, float], covariance: np.ndarray, gate_temperature: float
) -> float:
    """Cov(g(z), g(z')), g(z) = gate(z/T) z: by quadrature over z, in closed form over z' given z.

    A fine trapezium rule: the error is that of its edges, exp(-12²/2).
    """
    u = np.linspace(-12.0, 12.0, 20_001)
    share = np.exp(-0.5 * u**2) / np.sqrt(2.0 * np.pi) * (u[1] - u[0])
    z = mean[0] + np.sqrt(covariance[0, 0]) * u
    slope = covariance[0, 1] / covariance[0, 0]
    left = np.full_like(z, covariance[1, 1] - slope * covariance[0, 1])
    given = gated_moments(mean[1] + slope * (z - mean[0]), left, gate_temperature)[0]
    averages = gated_moments(np.array(mean), np.diagonal(covariance).copy(), gate_temperature)[0]
    gated = gate(z / gate_temperature) * z
    return float(np.sum(share * (gated - averages[0]) * (given - averages[1])))


def exact_covariance(
    model: BowTieModel, factors: GlobalFactors, inputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cov of the outputs (n, n, D) of one hidden layer, and Σ E[W²] sqrt(v v') beside it."""
    hidden, output = (layer.weights for layer in factors.layers)
    design = np.column_stack([np.ones(len(inputs)), inputs])
    mean = design @ hidden.mean.T
    between = np.stack([design @ b @ design.T for b in hidden.covariance], axis=-1)
    means = np.column_stack(
        [
            np.ones(len(inputs)),
            gated_moments(mean, np.einsum("iid->id", between), model.gate_temperature)[0],
        ]
    )
    total = np.stack([means @ b @ means.T for b in output.covariance], axis=-1)
    size = np.zeros_like(total)
    squares = gaussian.squares(output)[:, 1:]
    for i, j in np.ndindex(*total.shape[:2]):
        if i == j:
            continue
        for d in range(mean.shape[1]):
            c = between[[i, i, j, j], [i, j, i, j], d].reshape(2, 2)
            found = covariance_of_gated((mean[i, d], mean[j, d]), c, model.gate_temperature)
            total[i, j] += squares[:, d] * found
            size[i, j] += squares[:, d] * np.sqrt(c[0, 0] * c[1, 1])
    return total, size


def total_variance(model: BowTieModel, factors: GlobalFactors, inputs: np.ndarray) -> np.ndarray:
    _, spread = push_forward(model, factors, inputs)
    return spread.epistemic + spread.chance


def with_exact_diagonal(
    model: BowTieModel, factors: GlobalFactors, inputs: np.ndarray
) -> np.ndarray:
    total = output_covariance(model, factors, inputs)
    rows = np.arange(len(inputs))
    total[rows, rows, :] = total_variance(model, factors, inputs)
    return total


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize("gate_temperature", [1.0, 0.01])
def test_it_is_a_covariance_matrix(hidden: tuple[int, ...], gate_temperature: float) -> None:
    """Symmetric and positive semi-definite, also where rows nearly repeat and lie far out."""
    model, factors, inputs = network(hidden, gate_temperature)
    rng = np.random.default_rng(2)
    inputs = np.vstack([inputs, inputs, inputs + 1e-6, 30.0 * rng.normal(size=(20, 3))])
    expansion = output_covariance(model, factors, inputs)
    assert expansion.shape == (len(inputs), len(inputs), 2)
    size = np.sqrt(np.einsum("iid->id", expansion))
    size = size[:, None, :] * size[None, :, :]
    assert np.all(np.abs(expansion - np.swapaxes(expansion, 0, 1)) <= 1e-12 * size)
    total = with_exact_diagonal(model, factors, inputs)
    for matrix in (*np.moveaxis(expansion, -1, 0), *np.moveaxis(total, -1, 0)):
        values = np.linalg.eigvalsh(matrix)
        assert values[0] >= -1e-12 * values[-1]


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize("gate_temperature", [1.0, 0.01])
def test_the_expansion_is_no_larger_than_the_exact_diagonal(
    hidden: tuple[int, ...], gate_temperature: float
) -> None:
    model, factors, inputs = network(hidden, gate_temperature)
    inputs = np.vstack([inputs, 100.0 * inputs])
    exact = total_variance(model, factors, inputs)
    expansion = np.einsum("iid->id", output_covariance(model, factors, inputs))
    assert np.all(expansion <= exact * (1.0 + 1e-12))


def test_linear_models_are_exact() -> None:
    """x~'B x~' of every output, the diagonal too."""
    model, factors, inputs = network(())
    total = output_covariance(model, factors, inputs)
    design = np.column_stack([np.ones(len(inputs)), inputs])
    for output, b in enumerate(factors.layers[0].weights.covariance):
        for i, x in enumerate(design):
            for j, other in enumerate(design):
                assert total[i, j, output] == pytest.approx(x @ b @ other, rel=1e-11)
    exact = total_variance(model, factors, inputs)
    np.testing.assert_allclose(np.einsum("iid->id", total), exact, rtol=1e-12)


def test_one_hidden_layer_against_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    """What two terms leave out is at most `LEFT_OUT` Σ_k E[W_k²] sqrt(v_k v_k'); one is too few."""
    model, factors, inputs = network((4,))
    exact, size = exact_covariance(model, factors, inputs[2:])
    total = output_covariance(model, factors, inputs[2:])
    apart = ~np.eye(len(inputs) - 2, dtype=bool)
    assert np.all((np.abs(total - exact) <= LEFT_OUT * size)[apart])
    monkeypatch.setattr(
        module, "gated_derivatives", lambda *of: (gated_derivatives(*of)[0], np.zeros_like(of[0]))
    )
    first_term = output_covariance(model, factors, inputs[2:])
    assert np.any((np.abs(first_term - exact) > 2.0 * LEFT_OUT * size)[apart])


@pytest.mark.parametrize(
    ("hidden", "error"), [((), 0.0), ((4,), 0.02), ((6, 5), 0.15), ((4, 3), 0.15)], ids=str
)
def test_joint_draws_have_this_covariance(hidden: tuple[int, ...], error: float) -> None:
    """Within an error of the closed form and the error bar of 3000 draws, in deviations squared.

    One hidden layer: what two terms leave out, at most 2 %. Two: also that preactivations are
    taken for Gaussian and units of the second layer for uncorrelated; 12 % was seen. The noise of
    hidden layers is small: draws of functions go without, and what is above it would feel it.
    """
    model, factors, inputs = network(hidden)
    factors = replace(factors, layers=tuple(quiet(layer) for layer in factors.layers))
    fitted = FitResult(
        model=model,
        factors=factors,
        elbo_terms=None,
        elbo_history=(),
        n_sweeps=0,
        status=Status.CONVERGED,
    )
    draws = sample_functions(fitted, inputs, 3000, np.random.default_rng(3), noise=False)
    centred = draws - draws.mean(axis=0)
    products = centred[:, :, None, :] * centred[:, None, :, :]
    deviation = draws.std(axis=0)
    size = deviation[:, None, :] * deviation[None, :, :]
    bar = LIMIT * products.std(axis=0) / np.sqrt(len(draws))
    difference = np.abs(output_covariance(model, factors, inputs) - products.mean(axis=0))
    apart = ~np.eye(len(inputs), dtype=bool)
    assert np.all((difference <= error * size + bar)[apart])
    # Not by chance: rows are correlated by many error bars.
    assert np.max((np.abs(products.mean(axis=0)) / bar)[apart]) > 3.0


@pytest.mark.parametrize("tile", [1, 700, 1000])
def test_tiles_do_not_matter(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, factors, inputs = network((4, 3))
    whole = output_covariance(model, factors, inputs)
    seen = []
    part_of = module._preactivation_covariance

    def watched(weights: Any, mean: Any, part: slice, between: Any) -> np.ndarray:
        seen.append(part)
        return part_of(weights, mean, part, between)

    monkeypatch.setattr(module, "TILE_BYTES", tile)
    monkeypatch.setattr(module, "_preactivation_covariance", watched)
    tiled = output_covariance(model, factors, inputs)
    assert len({part.start for part in seen}) > 1
    np.testing.assert_allclose(tiled, whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("gate_temperature", [0.02, 0.5, 5.0])
def test_derivatives_against_finite_differences(gate_temperature: float) -> None:
    """Central differences of fourth order, with steps of 0.01 r where r² = v + T²: good to 1e-6."""
    mean, variance = np.meshgrid(np.linspace(-4.0, 4.0, 17), [1e-8, 0.01, 0.5, 4.0])
    slope, curvature = gated_derivatives(mean, variance, gate_temperature)
    r = np.sqrt(variance + gate_temperature**2)
    step = 0.01 * r
    values = [gated_moments(mean + k * step, variance, gate_temperature)[0] for k in range(-2, 3)]
    first = (values[0] - 8.0 * values[1] + 8.0 * values[3] - values[4]) / (12.0 * step)
    second = (-values[0] + 16.0 * values[1] - 30.0 * values[2] + 16.0 * values[3] - values[4]) / (
        12.0 * step**2
    )
    np.testing.assert_allclose(slope, first, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(curvature * r, second * r, rtol=1e-5, atol=1e-5)


def test_the_slope_is_the_covariance_with_the_preactivation(rng: np.random.Generator) -> None:
    """Stein: E[g'(z)] v = Cov(g(z), z) = E[g z] - m E[g]."""
    mean, variance = 2.0 * rng.normal(size=(30, 4)), rng.uniform(0.1, 4.0, size=(30, 4))
    first, varied, gates = gated_moments(mean, variance, 0.3)
    second = varied + gates + first**2
    slope, _ = gated_derivatives(mean, variance, 0.3)
    np.testing.assert_allclose(slope * variance, second - mean * first, rtol=1e-8, atol=1e-8)


def table(n_targets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-2.0, 2.0, size=(40, 3))
    targets = np.sin(2.0 * inputs[:, :n_targets]) + 10.0 * inputs[:, 1:2]
    targets = targets + 0.1 * rng.normal(size=targets.shape)
    new = np.linspace(-6.0, 6.0, 60)[:, None] * np.array([1.0, 0.5, -0.3])
    return inputs, targets[:, 0] if n_targets == 1 else targets, new


@tiny_fits
@pytest.mark.parametrize("propagation", ["push_forward", "variational"])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_the_estimator_answers_with_the_covariance(propagation: str, n_targets: int) -> None:
    inputs, targets, new = table(n_targets)
    model = BowTieRegressor(
        (5,),
        n_estimators=2,
        max_iter=10,
        random_state=0,
        options=FitOptions(weighting="equal", propagation=propagation),
    ).fit(inputs, targets)
    mean, total = model.predict(new, return_cov=True)
    np.testing.assert_array_equal(mean, model.predict(new))
    # Between rows there is the push-forward only, so its deviations are on the diagonal.
    model.ensemble_ = replace(model.ensemble_, propagation="push_forward")
    _, deviation = model.predict(new, return_std=True)
    assert total.shape == ((60, 60) if n_targets == 1 else (60, 60, 2))
    np.testing.assert_allclose(np.einsum("ii...->i...", total), deviation**2, rtol=1e-12)
    few = model.predict(new[:7], return_cov=True)[1]
    np.testing.assert_allclose(few, total[:7, :7], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="return_std and return_cov exclude each other"):
        model.predict(new, return_std=True, return_cov=True)


@tiny_fits
@pytest.mark.parametrize("propagation", ["push_forward", "variational"])
@pytest.mark.parametrize("hidden", [(), (5,), (8, 5)], ids=str)
def test_the_estimator_s_covariance_is_positive_semi_definite(
    propagation: str, hidden: tuple[int, ...]
) -> None:
    inputs, targets, new = table(1)
    model = BowTieRegressor(
        hidden,
        n_estimators=2,
        max_iter=10,
        random_state=0,
        options=FitOptions(weighting="equal", propagation=propagation),
    ).fit(inputs, targets)
    total = model.predict(new, return_cov=True)[1]
    values = np.linalg.eigvalsh(total)
    assert values[0] >= -1e-12 * values[-1]
