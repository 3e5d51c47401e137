"""After each update the autodiff gradient of the ELBO in that factor is zero; before, it is not.

The strongest test of the updates: the bound is the library's own, run on JAX arrays and
differentiated in every free parameter of the variational distribution at once. An update that is
merely uphill fails here. Points are generic (see `builders`): L = 1, 2, 3, unequal widths, two
outputs, row weights that are not 1, and no factor at its optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logit

from bowtienet.data.rows import Rows
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.shrinkage import Shrinkage
from bowtienet.posterior.factors import Activations, GlobalFactors, LayerFactors, LocalFactors
from tests import builders
from tests.builders import Point

Parameters = dict[str, Any]
"""Free parameters by factor, then by name and layer: what the gradient is taken in."""

TOLERANCE = 1e-10
"""Largest gradient after an update, relative to 1 + the largest before it, of each parameter."""
SEARCH_TOLERANCE = 1e-6
"""The same for the rate of a general GIG: a minimum is only known to the root of rounding."""
CLEARLY_NOT_ZERO = 1e-2

MOVED_BY = {
    "shared_covariance": ("shared_covariance",),
    "activations": ("activations", "shared_covariance"),
    "tilts": ("tilts",),
    "gates": ("gates",),
    "weights": ("weights",),
    "noise": ("noise",),
    "global_shrinkage": ("global_shrinkage",),
    "local_shrinkage": ("local_shrinkage",),
    "hyperparameters": ("hyperparameters",),
}
"""The parameters that each update sets to their joint optimum."""

LOCAL = ("shared_covariance", "activations", "tilts", "gates", "noise")
SHRINKAGE = ("weights", "global_shrinkage", "local_shrinkage", "hyperparameters")


def free_parameters(point: Point) -> Parameters:
    """Every free parameter of q, and the one hyperparameter, as NumPy arrays."""
    local, factors = point.local, point.factors
    parameters: Parameters = {
        "shared_covariance": {"": factors.shared_covariance},
        "activations": {},
        "tilts": {f"{i}": tilt for i, tilt in enumerate(local.tilt)},
        "gates": {f"{i}": logit(gates) for i, gates in enumerate(local.gate_probability)},
        "weights": {},
        "noise": {},
        "global_shrinkage": {},
        "local_shrinkage": {},
        "hyperparameters": {},
    }
    for index, factor in enumerate(local.activations):
        parameters["activations"][f"offset {index}"] = factor.offset
        if factor.gain is not None:
            parameters["activations"][f"gain {index}"] = factor.gain
        if index + 1 < len(local.activations):
            parameters["activations"][f"covariance {index}"] = factor.covariance
    for index, layer in enumerate(factors.layers):
        parameters["weights"][f"mean {index}"] = layer.weights.mean
        parameters["weights"][f"covariance {index}"] = layer.weights.covariance
        parameters["noise"][f"concentration {index}"] = layer.noise_variance.concentration
        parameters["noise"][f"scale {index}"] = layer.noise_variance.scale
        for name in ("global_shrinkage", "local_shrinkage"):
            q = getattr(layer, name)
            if isinstance(q, PointMass):
                continue
            parameters[name][f"scale {index}"] = q.scale
            if _has_rate(q):
                # A rate shared by all scales of a layer is still one for each in the family.
                parameters[name][f"rate {index}"] = np.broadcast_to(q.rate, np.shape(q.scale))
    prior = point.model.prior.global_shrinkage
    if isinstance(prior, GeneralizedInverseGaussian):
        name = _hyperparameter(prior)
        parameters["hyperparameters"][name] = getattr(prior, name)
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x, dtype=float)), parameters)


def with_parameters(template: Point, parameters: Parameters, rows: Rows) -> Point:
    """The point with these parameters; covariances are symmetrised, log|S| is made anew."""
    shared = _symmetric(parameters["shared_covariance"][""])
    activations, layers = [], []
    values = parameters["activations"]
    for index in range(len(template.local.activations)):
        covariance = values.get(f"covariance {index}")
        covariance = shared[None] if covariance is None else _symmetric(covariance)
        activations.append(
            Activations(
                offset=values[f"offset {index}"],
                gain=values.get(f"gain {index}"),
                covariance=covariance,
                log_determinant=jnp.linalg.slogdet(covariance)[1],
            )
        )
    for index, layer in enumerate(template.factors.layers):
        weights, noise = parameters["weights"], parameters["noise"]
        layers.append(
            LayerFactors(
                weights=GaussianRows(
                    mean=weights[f"mean {index}"],
                    covariance=_symmetric(weights[f"covariance {index}"]),
                ),
                noise_variance=InverseGamma(
                    concentration=noise[f"concentration {index}"], scale=noise[f"scale {index}"]
                ),
                global_shrinkage=_with_scale_and_rate(
                    layer.global_shrinkage, parameters["global_shrinkage"], index
                ),
                local_shrinkage=_with_scale_and_rate(
                    layer.local_shrinkage, parameters["local_shrinkage"], index
                ),
            )
        )
    prior = template.model.prior
    shrinkage = replace(prior.global_shrinkage, **parameters["hyperparameters"])
    n_hidden = range(len(activations))
    return Point(
        model=replace(template.model, prior=replace(prior, global_shrinkage=shrinkage)),
        rows=rows,
        factors=GlobalFactors(layers=tuple(layers), shared_covariance=shared),
        local=LocalFactors(
            activations=tuple(activations),
            gate_probability=tuple(jax.nn.sigmoid(parameters["gates"][f"{i}"]) for i in n_hidden),
            tilt=tuple(parameters["tilts"][f"{i}"] for i in n_hidden),
        ),
    )


@lru_cache(maxsize=32)
def compiled_gradient(hidden: tuple[int, ...], family: str) -> Callable[..., Parameters]:
    """Gradient of the ELBO in all parameters, compiled once for each shape and family."""
    template = builders.random_point(np.random.default_rng(0), hidden, family)

    def value(
        parameters: Parameters, inputs: jax.Array, targets: jax.Array, weights: jax.Array
    ) -> jax.Array:
        rows = Rows(inputs=inputs, targets=targets, weights=weights)
        return builders.bound_of(with_parameters(template, parameters, rows)).total

    return jax.jit(jax.grad(value))


def gradient(point: Point, family: str) -> Parameters:
    """Gradient of the ELBO at the point, as NumPy arrays."""
    rows = point.rows
    compiled = compiled_gradient(point.model.architecture.hidden, family)
    result = compiled(free_parameters(point), rows.inputs, rows.targets, rows.weights)
    return jax.tree.map(np.asarray, result)


def check_stationary(point: Point, family: str, name: str) -> None:
    """The update `name` zeroes the gradient of what it moves, which was not zero before."""
    before, updated = gradient(point, family), builders.UPDATES[name](point)
    after = gradient(updated, family)
    tolerance = SEARCH_TOLERANCE if name == "hyperparameters" and family == "gig" else TOLERANCE
    checked = 0
    for factor in MOVED_BY[name]:
        assert before[factor].keys() == after[factor].keys()
        for key in before[factor]:
            scale = np.abs(before[factor][key]).max()
            assert scale > CLEARLY_NOT_ZERO, f"{factor} {key} starts at its optimum"
            left = np.abs(after[factor][key]).max()
            assert left <= tolerance * (1.0 + scale), f"{factor} {key}: {left} of {scale} left"
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("family", ["student_t", "laplace"])
@pytest.mark.parametrize("hidden", builders.HIDDEN)
def test_local_factors_and_noise(
    hidden: tuple[int, ...], family: str, name: str, rng: np.random.Generator
) -> None:
    check_stationary(builders.random_point(rng, hidden, family), family, name)


@pytest.mark.parametrize("name", SHRINKAGE)
@pytest.mark.parametrize("family", builders.GIG_FAMILIES)
@pytest.mark.parametrize("hidden", builders.HIDDEN)
def test_weights_and_shrinkage(
    hidden: tuple[int, ...], family: str, name: str, rng: np.random.Generator
) -> None:
    check_stationary(builders.random_point(rng, hidden, family), family, name)


def _symmetric(x: jax.Array) -> jax.Array:
    return 0.5 * (x + jnp.swapaxes(x, -1, -2))


def _has_rate(q: GeneralizedInverseGaussian) -> bool:
    return not (isinstance(q.rate, float) and q.rate == 0.0)


def _with_scale_and_rate(q: Shrinkage, values: Parameters, index: int) -> Shrinkage:
    if isinstance(q, PointMass):
        return q
    return replace(q, scale=values[f"scale {index}"], rate=values.get(f"rate {index}", 0.0))


def _hyperparameter(prior: GeneralizedInverseGaussian) -> str:
    """The free parameter of a global prior: the scale if there is no rate."""
    return "scale" if prior.rate == 0.0 else "rate"
