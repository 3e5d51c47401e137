import importlib.metadata
import importlib.util
import math
import sys

import numpy as np
import pytest
from scipy import stats

from bowtienet.experiments.methods import backprop as bbb
from bowtienet.experiments.methods import deep_ensemble as ensembles
from bowtienet.experiments.methods import laplace as approximations
from bowtienet.experiments.methods import torch_network as network

torch = pytest.importorskip("torch")

needs_laplace = pytest.mark.skipif(
    importlib.util.find_spec("laplace") is None, reason="laplace-torch is not installed"
)
SMALL = {
    "backprop": (bbb.backprop, {"epochs": 3, "draws": 7}),
    "deep_ensemble": (ensembles.deep_ensemble, {"epochs": 2, "networks": 2}),
    "laplace": (approximations.laplace, {"epochs": 4, "every": 2, "rounds": 2}),
}
METHODS = ["backprop", "deep_ensemble", pytest.param("laplace", marks=needs_laplace)]
NEAR = {"rtol": 1e-4, "atol": 1e-5}


def small(name, hidden=(4,)):
    make, settings = SMALL[name]
    return make(hidden, **settings)


def line(rng, n=200, noise=0.5):
    X = rng.normal(size=(n, 1)) * 3.0 + 5.0
    return X, 100.0 + 4.0 * X[:, 0] + noise * rng.standard_normal(n)


def tensor(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64)


# What all three keep to


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("hidden", [(4,), (4, 3)])
def test_forecast_has_a_density_and_an_interval_for_each_row(name, hidden, rng):
    X, y = line(rng, n=30)
    forecast = small(name, hidden).fit(X, y, 3, 0.8)(X[:5])
    assert forecast.intervals.shape == (5, 2)
    np.testing.assert_allclose(forecast.intervals, forecast.distribution.interval(0.8))
    assert np.all(np.isfinite(forecast.distribution.logpdf(y[:5])))


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_gives_one_forecast_and_another_seed_another(name, rng):
    X, y = line(rng, n=30)

    def mean(seed):
        return small(name).fit(X, y, seed, 0.9)(X).distribution.mean()

    np.testing.assert_array_equal(mean(3), mean(3))
    assert np.abs(mean(3) - mean(4)).max() > 1e-6


@pytest.mark.parametrize("name", METHODS)
def test_a_forecaster_says_the_same_twice(name, rng):
    X, y = line(rng, n=30)
    forecaster = small(name).fit(X, y, 3, 0.9)
    np.testing.assert_array_equal(forecaster(X).intervals, forecaster(X).intervals)


@pytest.mark.parametrize("name", METHODS)
def test_the_state_of_torch_stays_and_does_not_matter(name, rng):
    X, y = line(rng, n=30)
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    usual = small(name).fit(X, y, 3, 0.9)(X).distribution.mean()
    try:
        torch.set_num_threads(2)
        torch.set_default_dtype(torch.float64)
        before = torch.random.get_rng_state()
        with torch.no_grad():
            forecaster = small(name).fit(X, y, 3, 0.9)
            changed = forecaster(X).distribution.mean()
            assert not torch.is_grad_enabled()
        assert torch.get_num_threads() == 2
        assert torch.get_default_dtype() == torch.float64
        assert torch.equal(torch.random.get_rng_state(), before)
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
    np.testing.assert_allclose(changed, usual, rtol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_the_unit_of_data_does_not_matter(name, rng):
    X, y = line(rng, n=32)
    plain = small(name).fit(X, y, 3, 0.9)(X).distribution
    other = small(name).fit(1000.0 * X - 7.0, 50.0 * y + 3.0, 3, 0.9)(1000.0 * X - 7.0).distribution
    np.testing.assert_allclose(other.mean(), 50.0 * plain.mean() + 3.0, rtol=1e-3)
    np.testing.assert_allclose(other.std(), 50.0 * plain.std(), rtol=1e-2)


@pytest.mark.parametrize("name", METHODS)
def test_columns_that_never_change_are_no_trouble(name, rng):
    X, y = line(rng, n=30)
    X = np.column_stack([X, np.full(30, 4.0)])
    assert np.all(np.isfinite(small(name).fit(X, y, 3, 0.9)(X).distribution.mean()))


@pytest.mark.parametrize("name", ["backprop", "deep_ensemble", "laplace"])
@pytest.mark.parametrize(
    ("setting", "value"), [("epochs", 0), ("epochs", 1.5), ("learning_rate", -1.0)]
)
def test_bad_settings_are_named(name, setting, value):
    with pytest.raises(ValueError, match=f"{setting} must be"):
        SMALL[name][0]((4,), **{setting: value})


@pytest.mark.parametrize("name", ["backprop", "deep_ensemble", "laplace"])
def test_bad_widths_are_named(name):
    with pytest.raises(ValueError, match="hidden must be"):
        SMALL[name][0]((4, 0))


# The shared network


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
    with network.quiet_torch(0):
        parts = list(network.shuffled_batches(torch.arange(10), torch.arange(10) + 100, 4))
    assert [len(rows) for rows, _ in parts] == [4, 4, 2]
    rows = torch.cat([part for part, _ in parts])
    assert sorted(rows.tolist()) == list(range(10))
    assert rows.tolist() != list(range(10))
    assert torch.equal(torch.cat([targets for _, targets in parts]), rows + 100)


def test_threads_return_after_an_error():
    before = torch.get_num_threads(), torch.random.get_rng_state()
    with pytest.raises(RuntimeError, match="shape"), network.quiet_torch(1):
        torch.rand(3).reshape(2, 2)
    assert torch.get_num_threads() == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])


# Bayes by Backprop


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
    with network.quiet_torch(5):
        weights, noise = bbb.draw_networks(mean, raw, tensor(-1.0), 40000)
    deviation = np.log1p(np.exp(raw.numpy()))
    assert noise == pytest.approx(math.exp(-1.0))
    assert np.all(np.abs(weights.mean(axis=0) - mean.numpy()) < 5.0 * deviation / 200.0)
    np.testing.assert_allclose(weights.std(axis=0), deviation, rtol=5.0 / math.sqrt(80000.0))


def test_backprop_finds_a_line_and_its_noise(rng):
    X, y = line(rng)
    method = bbb.backprop((), epochs=400, batch_size=50, draws=50)
    distribution = method.fit(X, y, 1, 0.9)(X).distribution
    assert distribution.means.shape == (50, 200)
    np.testing.assert_allclose(distribution.mean(), 100.0 + 4.0 * X[:, 0], atol=0.6)
    assert 0.35 < distribution.deviations[0, 0] < 0.75


def test_backprop_draws_are_equal_parts_of_one_noise(rng):
    X, y = line(rng, n=30)
    mixture = small("backprop").fit(X, y, 3, 0.9)(X).distribution
    np.testing.assert_allclose(mixture.weights, 1.0 / 7.0)
    assert np.ptp(mixture.deviations) == 0.0
    assert np.ptp(mixture.means, axis=0).min() > 0.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 1.0}, "share must be a number strictly between 0 and 1, got 1.0"),
        ({"log_scales": (0.0,)}, "log_scales must be two numbers"),
        ({"draws": 0}, "draws must be"),
        ({"batch_size": 0}, "batch_size must be"),
    ],
)
def test_bad_settings_of_backprop_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        bbb.backprop((4,), **settings)


# Deep ensembles


def test_loss_is_that_of_normal_targets(rng):
    outputs, targets = rng.normal(size=(9, 2)), rng.normal(size=9)
    deviation = np.sqrt(np.log1p(np.exp(outputs[:, 1])) + 1e-6)
    expected = -stats.norm(outputs[:, 0], deviation).logpdf(targets).mean()
    found = float(ensembles.loss(tensor(outputs), tensor(targets)))
    np.testing.assert_allclose(found + 0.5 * math.log(2.0 * math.pi), expected)


def test_adversarial_rows_move_by_their_steps_and_are_worse(rng):
    shapes = network.layer_shapes(3, (6,), outputs=2)
    weights, rows = tensor(rng.normal(size=network.count(shapes))), tensor(rng.normal(size=(20, 3)))
    targets, steps = tensor(rng.normal(size=20)), tensor([1e-4, 2e-4, 0.0])
    moved = ensembles.worsen(weights, shapes, rows, targets, steps)
    np.testing.assert_allclose((moved - rows).abs().numpy(), np.tile(steps, (20, 1)), atol=1e-12)
    costs = [ensembles.loss(network.evaluate(weights, shapes, x), targets) for x in (moved, rows)]
    assert costs[0] > costs[1]


def test_adversarial_training_changes_the_fit(rng):
    X, y = line(rng, n=30)
    means = [
        ensembles.deep_ensemble((4,), networks=1, epochs=2, adversarial=step)
        .fit(X, y, 3, 0.9)(X)
        .distribution.mean()
        for step in (0.0, 0.01)
    ]
    assert np.abs(means[0] - means[1]).max() > 1e-6


def test_ensemble_has_the_moments_of_its_members(rng):
    X, y = line(rng, n=30)
    make = ensembles.deep_ensemble((4,), networks=3, epochs=2)
    mixture = make.fit(X, y, 3, 0.9)(X).distribution
    assert mixture.means.shape == (3, 30)
    assert np.ptp(mixture.means, axis=0).min() > 0.0
    mean = mixture.means.mean(axis=0)
    variance = (mixture.deviations**2 + mixture.means**2).mean(axis=0) - mean**2
    np.testing.assert_allclose(mixture.mean(), mean)
    np.testing.assert_allclose(mixture.var(), variance, rtol=1e-6)


def test_the_first_network_of_an_ensemble_is_the_single_one(rng):
    X, y = line(rng, n=30)
    one, three = (
        ensembles.deep_ensemble((4,), networks=count, epochs=2).fit(X, y, 3, 0.9)(X).distribution
        for count in (1, 3)
    )
    np.testing.assert_array_equal(one.means[0], three.means[0])
    np.testing.assert_array_equal(one.deviations[0], three.deviations[0])


def test_ensemble_finds_noise_that_grows(rng):
    X = rng.uniform(-1.0, 1.0, size=(600, 1))
    y = 10.0 + 2.0 * X[:, 0] + np.exp(X[:, 0] - 1.0) * rng.standard_normal(600)
    make = ensembles.deep_ensemble((10,), networks=3)
    new = np.array([[-0.8], [0.0], [0.8]])
    mixture = make.fit(X, y, 2, 0.9)(new).distribution
    np.testing.assert_allclose(mixture.mean(), 10.0 + 2.0 * new[:, 0], atol=0.5)
    np.testing.assert_allclose(np.log(mixture.std()), new[:, 0] - 1.0, atol=0.4)


def test_bad_settings_of_ensembles_are_named():
    with pytest.raises(ValueError, match="adversarial must be"):
        ensembles.deep_ensemble((4,), adversarial=-0.1)
    with pytest.raises(ValueError, match="networks must be"):
        ensembles.deep_ensemble((4,), networks=0)


# Laplace


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
    with network.quiet_torch(2):
        found = approximations.approximate(inputs, targets, (), settings)
        mean, deviation = approximations.moments(found, inputs)
        noise, prior = float(found.sigma_noise), found.prior_precision.detach().numpy()
        theta = found.mean.detach().numpy()
    design = np.column_stack([inputs, np.ones(50)])
    np.testing.assert_allclose(mean, design @ theta, **NEAR)
    curvature = design.T @ design / noise**2
    if structure == "diag":
        curvature = np.diag(np.diag(curvature))
    if structure == "kron":
        curvature[:2, 2], curvature[2, :2] = 0.0, 0.0
    covariance = np.linalg.inv(curvature + np.diag(prior[[0, 0, 1]]))
    expected = np.sqrt(np.einsum("ni,ij,nj->n", design, covariance, design) + noise**2)
    np.testing.assert_allclose(deviation, expected, rtol=1e-3)


@needs_laplace
def test_laplace_finds_a_line_and_its_noise(rng):
    X, y = line(rng)
    method = approximations.laplace((), epochs=400, learning_rate=0.05)
    distribution = method.fit(X, y, 1, 0.9)(X).distribution
    np.testing.assert_allclose(distribution.mean(), 100.0 + 4.0 * X[:, 0], atol=0.3)
    assert 0.4 < distribution.std().mean() < 0.6


@needs_laplace
def test_laplace_is_less_sure_far_from_the_rows(rng):
    X, y = line(rng, n=40)
    forecaster = approximations.laplace((5,), epochs=60, every=20).fit(X, y, 1, 0.9)
    near, far = forecaster(np.array([[5.0], [60.0]])).distribution.std()
    assert far > 2.0 * near


def test_bad_structures_are_named():
    with pytest.raises(ValueError, match=r"got 'kronecker'.*did you mean 'kron'"):
        approximations.laplace((4,), structure="kronecker")


def test_a_hidden_package_is_neither_module_nor_distribution_until_the_end():
    package, version = sys.modules["scipy"], importlib.metadata.version("scipy")
    with approximations.hidden_package("scipy"):
        assert importlib.util.find_spec("scipy") is None
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("scipy.stats")
        with pytest.raises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("scipy")
        assert importlib.metadata.version("numpy") == np.__version__
    assert importlib.import_module("scipy") is package
    assert importlib.import_module("scipy.stats") is stats
    assert importlib.metadata.version("scipy") == version


def test_a_package_that_was_not_imported_is_not_left_behind():
    with approximations.hidden_package("no_such_package"):
        assert importlib.util.find_spec("no_such_package") is None
    assert "no_such_package" not in sys.modules


def test_without_the_library_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.delitem(sys.modules, "laplace", raising=False)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ImportError, match=r"needs laplace-torch.*pip install laplace-torch"):
        approximations.load_laplace()
