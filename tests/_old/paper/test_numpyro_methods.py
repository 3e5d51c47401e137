"""Networks in NumPyro: their densities by hand, and what is said of a chain."""

import numpy as np
import pytest
from scipy import stats

from benchmarks._old.paper.methods.horseshoe import horseshoe, horseshoe_network, structured_guide
from benchmarks._old.paper.methods.numpyro_network import Prior, relu_network
from benchmarks._old.paper.methods.relu_posterior import mean_field, nuts

jax = pytest.importorskip("jax")


def inverse_gamma(value, concentration, scale):
    return stats.invgamma.logpdf(value, concentration, scale=scale)


def log_joint(model, arguments, sites):
    pytest.importorskip("numpyro")
    from numpyro.infer.util import log_density

    with jax.enable_x64(True):
        return float(log_density(model, arguments, {}, sites)[0])


def test_log_joint_of_the_network_is_the_formula(rng):
    prior = Prior(hidden=(3, 2), weight_scale=1.3, bias_scale=0.7, noise_scale=0.4)
    x, y = rng.standard_normal((6, 4)), rng.standard_normal(6)
    sites = {"scale": 0.8, "noise_variance": 0.3}
    for layer, (before, after) in enumerate([(4, 3), (3, 2), (2, 1)]):
        sites[f"weights_{layer}"] = rng.standard_normal((before, after))
        sites[f"bias_{layer}"] = rng.standard_normal(after)

    signal, expected = x, inverse_gamma(0.8, 2.0, 1.0) + inverse_gamma(0.3, 2.0, 0.4)
    for layer, before in enumerate((4, 3, 2)):
        W = 1.3 * np.sqrt(0.8 / before) * sites[f"weights_{layer}"]
        b = 0.7 * np.sqrt(0.8) * sites[f"bias_{layer}"]
        # The prior is on W and b; sites hold multiples of them, hence the Jacobian.
        deviations = 1.3 * np.sqrt(0.8 / before), 0.7 * np.sqrt(0.8)
        expected += np.sum(stats.norm.logpdf(W, 0.0, deviations[0]) + np.log(deviations[0]))
        expected += np.sum(stats.norm.logpdf(b, 0.0, deviations[1]) + np.log(deviations[1]))
        signal = (np.maximum(signal, 0.0) if layer else signal) @ W + b
    expected += np.sum(stats.norm.logpdf(y, signal[:, 0], np.sqrt(0.3)))

    assert log_joint(relu_network, (prior, x, y), sites) == pytest.approx(expected, rel=1e-9)


def test_log_joint_of_the_horseshoe_is_the_formula(rng):
    prior = Prior(hidden=(3,), noise_scale=0.4)
    x, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    sites = {
        "weights_0": rng.standard_normal((3, 3)),
        "unit_scale_0": rng.uniform(0.5, 2.0, 3),
        "layer_scale_0": 0.6,
        "slab_0": 1.7,
        "output": rng.standard_normal(4),
        "output_scale": 1.2,
        "noise_variance": 0.3,
    }

    wide = (sites["unit_scale_0"] * 0.6) ** 2
    W = np.sqrt(1.0 / (1.0 / 1.7 + 1.0 / wide))[:, None] * sites["weights_0"]
    hidden = np.maximum(np.column_stack([x, np.ones(6)]) @ W.T, 0.0)
    mean = np.column_stack([hidden, np.ones(6)]) @ (1.2 * sites["output"])
    expected = np.sum(stats.norm.logpdf(y, mean, np.sqrt(0.3)))
    expected += np.sum(stats.norm.logpdf(sites["weights_0"]))
    expected += np.sum(stats.norm.logpdf(sites["output"]))
    expected += np.sum(stats.halfcauchy.logpdf(sites["unit_scale_0"]))
    expected += stats.halfcauchy.logpdf(0.6, scale=0.1) + stats.halfcauchy.logpdf(1.2, scale=5.0)
    expected += inverse_gamma(1.7, 2.0, 6.0) + inverse_gamma(0.3, 2.0, 0.4)

    found = log_joint(horseshoe_network, (prior, 0.1, x, y), sites)
    assert found == pytest.approx(expected, rel=1e-9)


def test_guide_of_the_horseshoe_has_the_density_of_its_units(rng):
    """log q of a draw, the log scales' Jacobian included, from dense covariances."""
    pytest.importorskip("numpyro")
    from numpyro import handlers
    from numpyro.distributions.util import sum_rightmost

    prior, x = Prior(hidden=(3,)), np.zeros((5, 2))
    params = {
        "centre_0": rng.standard_normal((3, 4)),
        "width_0": rng.uniform(0.2, 1.0, (3, 1)),
        "own_0": rng.uniform(0.5, 1.5, 4),
        "shared_0": rng.standard_normal(4),
    }
    with jax.enable_x64(True):
        guide = handlers.seed(handlers.substitute(structured_guide, params), jax.random.PRNGKey(1))
        trace = handlers.trace(guide).get_trace(prior, x)
        names = ("units_0", "weights_0", "unit_scale_0")
        found = sum(
            float(sum_rightmost(trace[name]["fn"].log_prob(trace[name]["value"]), 0))
            for name in names
        )
    log_scale = np.log(trace["unit_scale_0"]["value"])
    draw = np.column_stack([trace["weights_0"]["value"], log_scale])
    shape = np.diag(params["own_0"] ** 2) + np.outer(params["shared_0"], params["shared_0"])
    expected = -np.sum(log_scale) + sum(
        stats.multivariate_normal.logpdf(draw[k], params["centre_0"][k], width**2 * shape)
        for k, width in enumerate(params["width_0"][:, 0])
    )
    assert found == pytest.approx(expected, rel=1e-9)


def test_another_shape_follows_and_jax_keeps_its_precision(rng):
    """What was compiled for one shape is not taken for another."""
    pytest.importorskip("numpyro")
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    short = {"n_warmup": 10, "n_draws": 10, "max_tree_depth": 2}
    few = {"n_steps": 20, "n_draws": 5}
    methods = (nuts((3,), **short), mean_field((3, 2), **few), horseshoe((3, 2), **few))
    for double in (False, True):
        with jax.enable_x64(double):
            for fit in methods:
                for n, columns in ((40, 2), (25, 1)):
                    found = fit(X[:n, :columns], y[:n], 0)
                    assert found.predict(X[:7, :columns]).mean().shape == (7,)
            assert np.asarray(jax.numpy.ones(1)).itemsize == (8 if double else 4)
    assert "were cut short after 3 gradients" in methods[0](X, y, 0).note
