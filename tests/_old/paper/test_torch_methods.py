"""Methods on torch: their densities by hand, and exact cases."""

import importlib.util
import math

import numpy as np
import pytest
from scipy import stats

from benchmarks._old.paper.methods import backprop as bbb
from benchmarks._old.paper.methods import deep_ensemble as ensembles
from benchmarks._old.paper.methods import laplace as approximations
from benchmarks._old.paper.methods import mlp_piecewise as mlp
from benchmarks._old.paper.methods import torch_network as network

torch = pytest.importorskip("torch")
needs_laplace = pytest.mark.skipif(
    importlib.util.find_spec("laplace") is None, reason="laplace-torch is not installed"
)


def tensor(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64)


def test_network_against_loops(rng):
    shapes = network.layer_shapes(2, (3, 4), outputs=2)
    assert shapes == ((3, 3), (4, 4), (5, 2))
    weights, inputs = rng.normal(size=network.count(shapes)), rng.normal(size=(6, 2))
    expected = np.empty((6, 2))
    for n in range(6):
        signal, start = list(inputs[n]), 0
        for layer, (rows, columns) in enumerate(shapes):
            given = [1.0] + [max(s, 0.0) if layer else s for s in signal]
            signal = [
                sum(given[i] * weights[start + i * columns + j] for i in range(rows))
                for j in range(columns)
            ]
            start += rows * columns
        expected[n] = signal
    np.testing.assert_allclose(network.evaluate(weights, shapes, inputs), expected)
    found = network.evaluate(tensor(weights), shapes, tensor(inputs))
    np.testing.assert_allclose(found.numpy(), expected)


def test_batches_hold_each_row_once(rng):
    with network.seeded_torch(0):
        parts = list(network.shuffled_batches(torch.arange(10), torch.arange(10) + 100, 4))
    assert [len(rows) for rows, _ in parts] == [4, 4, 2]
    rows = torch.cat([part for part, _ in parts])
    assert sorted(rows.tolist()) == list(range(10))
    assert rows.tolist() != list(range(10))
    assert torch.equal(torch.cat([targets for _, targets in parts]), rows + 100)


def test_prior_is_a_mixture_of_two_normals(rng):
    weights = np.concatenate([rng.normal(size=20), 0.002 * rng.normal(size=20), [0.0, 60.0]])
    first, second = stats.norm(0.0, math.exp(-0.5)), stats.norm(0.0, math.exp(-6.0))
    expected = np.logaddexp(
        math.log(0.25) + first.logpdf(weights), math.log(0.75) + second.logpdf(weights)
    ).sum()
    found = bbb.log_prior(tensor(weights), (0.25, -0.5, -6.0))
    np.testing.assert_allclose(float(found), expected)


def test_distance_is_log_posterior_less_log_prior_at_the_draw(rng):
    mean, raw, noise = rng.normal(size=(3, 8))
    prior = (0.5, 0.0, -6.0)
    found, weights = bbb.prior_distance(tensor(mean), tensor(raw), tensor(noise), prior)
    deviation = np.log1p(np.exp(raw))
    np.testing.assert_allclose(weights.numpy(), mean + deviation * noise)
    expected = stats.norm(mean, deviation).logpdf(weights.numpy()).sum()
    np.testing.assert_allclose(float(found), expected - float(bbb.log_prior(weights, prior)))


def test_distance_averages_to_the_divergence_of_two_normals(rng):
    """Equal scales make the prior one normal distribution, whose divergence is known.

    Five standard errors, estimated from 50 blocks of 1000 draws: a false alarm in 100000.
    """
    mean, raw, scale = np.array([0.3, -1.0]), np.array([-1.0, 0.5]), 0.8
    deviation = np.log1p(np.exp(raw))
    exact = np.sum(np.log(scale / deviation) + (deviation**2 + mean**2) / (2.0 * scale**2) - 0.5)
    prior = (0.3, math.log(scale), math.log(scale))
    many = [tensor(np.tile(values, (1000, 1))) for values in (mean, raw)]
    sums = [
        float(bbb.prior_distance(*many, tensor(noise), prior)[0])
        for noise in rng.standard_normal((50, 1000, 2))
    ]
    averages = np.array(sums) / 1000.0
    assert abs(averages.mean() - exact) < 5.0 * averages.std(ddof=1) / math.sqrt(50.0)


def test_likelihood_of_errors(rng):
    errors = rng.normal(size=7)
    expected = stats.norm(0.0, math.exp(-0.7)).logpdf(errors).sum()
    found = bbb.log_likelihood(tensor(errors), tensor(-0.7))
    np.testing.assert_allclose(float(found), expected)


def test_draws_have_the_moments_of_the_posterior():
    """Five standard errors of 40000 draws of three weights: a false alarm in a million."""
    mean, raw = tensor([0.0, -2.0, 3.0]), tensor([-3.0, 0.0, 2.0])
    with network.seeded_torch(5):
        weights, noise = bbb.draw_networks(mean, raw, tensor(-1.0), 40000)
    deviation = np.log1p(np.exp(raw.numpy()))
    assert noise == pytest.approx(math.exp(-1.0))
    assert np.all(np.abs(weights.mean(axis=0) - mean.numpy()) < 5.0 * deviation / 200.0)
    np.testing.assert_allclose(weights.std(axis=0), deviation, rtol=5.0 / math.sqrt(80000.0))


def test_loss_is_that_of_normal_targets(rng):
    outputs, targets = rng.normal(size=(9, 2)), rng.normal(size=9)
    deviation = np.sqrt(np.log1p(np.exp(outputs[:, 1])) + 1e-6)
    expected = -stats.norm(outputs[:, 0], deviation).logpdf(targets).mean()
    found = float(ensembles.loss(tensor(outputs), tensor(targets)))
    np.testing.assert_allclose(found + 0.5 * math.log(2.0 * math.pi), expected)


def test_ensemble_finds_noise_that_grows(rng):
    X = rng.uniform(-1.0, 1.0, size=(600, 1))
    y = 10.0 + 2.0 * X[:, 0] + np.exp(X[:, 0] - 1.0) * rng.standard_normal(600)
    make = ensembles.deep_ensemble((10,), networks=3)
    new = np.array([[-0.8], [0.0], [0.8]])
    mixture = make(X, y, 2).predict(new)
    np.testing.assert_allclose(mixture.mean(), 10.0 + 2.0 * new[:, 0], atol=0.5)
    np.testing.assert_allclose(np.log(mixture.std()), new[:, 0] - 1.0, atol=0.4)


@needs_laplace
@pytest.mark.parametrize("structure", ["full", "kron", "diag"])
def test_laplace_without_hidden_layers_is_bayesian_linear_regression(structure, rng):
    """Cov[θ] = (J'J / s² + δ)^{-1} with J = (x, 1); Kronecker factors keep each block."""
    inputs = rng.normal(size=(50, 2)).astype(np.float32)
    targets = (inputs @ [1.0, -0.5] + 0.3 * rng.standard_normal(50)).astype(np.float32)
    settings = {
        "hessian_structure": structure,
        "n_epochs": 200,
        "marglik_frequency": 20,
        "optimizer_kwargs": {"lr": 0.05},
    }
    with network.seeded_torch(2):
        found = approximations.approximate(inputs, targets, (), settings)
        mean, deviation = approximations.moments(found, inputs)
        noise, prior = float(found.sigma_noise), found.prior_precision.detach().numpy()
        theta = found.mean.detach().numpy()
    design = np.column_stack([inputs, np.ones(50)])
    np.testing.assert_allclose(mean, design @ theta, rtol=1e-4, atol=1e-5)
    curvature = design.T @ design / noise**2
    if structure == "diag":
        curvature = np.diag(np.diag(curvature))
    if structure == "kron":
        curvature[:2, 2], curvature[2, :2] = 0.0, 0.0
    covariance = np.linalg.inv(curvature + np.diag(prior[[0, 0, 1]]))
    expected = np.sqrt(np.einsum("ni,ij,nj->n", design, covariance, design) + noise**2)
    np.testing.assert_allclose(deviation, expected, rtol=1e-3)


@needs_laplace
def test_laplace_is_less_sure_far_from_the_rows(rng):
    X = rng.normal(size=(40, 1)) * 3.0 + 5.0
    y = 100.0 + 4.0 * X[:, 0] + 0.5 * rng.standard_normal(40)
    fitted = approximations.laplace((5,), epochs=60, every=20)(X, y, 1)
    near, far = fitted.predict(np.array([[5.0], [60.0]])).std()
    assert far > 2.0 * near


def test_tuned_networks_choose_bins_where_steps_need_them(rng):
    """A step within one column: eight bins see it, and no network of two units does."""
    X = rng.uniform(-1.0, 1.0, size=(400, 1))
    y = np.floor(4.0 * X[:, 0]) % 2.0 + 0.05 * rng.standard_normal(400)
    grid = [mlp.Choice(bins, (2,), 0.01, 0.0) for bins in (0, 8)]
    fitted = mlp.mlp_piecewise(grid=grid, networks=2, epochs=150)(X, y, 1)
    assert fitted.note == "8 bins, widths 2 chosen"
    held_out = mlp.tenth(57, rng)
    assert (held_out.sum(), held_out.shape) == (5, (57,))
