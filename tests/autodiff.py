"""Gradient of the library's own ELBO, run on JAX arrays, in every free parameter of q.

XLA needs half a minute to compile the quadratures of all Bessel functions of one bound with their
derivatives. Under differentiation their values therefore come from the library's NumPy path and
their derivatives from the recurrences of K; `test_bessel_derivatives` and the slow
`test_gradient_through_quadrature` of `test_stationarity` show that this changes nothing.
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

from bowtienet.distributions import bernoulli, bessel
from bowtienet.distributions import generalized_inverse_gaussian as gig
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.model.model import Rows
from bowtienet.model.shrinkage import Shrinkage
from bowtienet.posterior.factors import (
    Activations,
    LayerFactors,
    LocalFactors,
    Posterior,
)
from tests import builders
from tests.builders import Point

Parameters = dict[str, Any]
"""Free parameters by factor, then by name and layer: what the gradient is taken in."""

quadrature = bessel._log_and_lower_ratio


def free_parameters(point: Point) -> Parameters:
    """Every free parameter of q, and the one hyperparameter, as NumPy arrays."""
    local, factors = point.local, point.factors
    parameters: Parameters = {
        "shared_covariance": {},
        "activations": {},
        "tilts": {f"{i}": tilt for i, tilt in enumerate(local.tilt)},
        "gates": {f"{i}": logit(gates) for i, gates in enumerate(local.gate_probability)},
        "weights": {},
        "noise": {},
        "global_shrinkage": {},
        "local_shrinkage": {},
        "slab": {},
        "hyperparameters": {},
    }
    for index, factor in enumerate(local.activations):
        parameters["activations"][f"offset {index}"] = factor.offset
        if factor.gain is not None:
            parameters["activations"][f"gain {index}"] = factor.gain
        if index + 1 < len(local.activations) or factors.shared_covariance is None:
            parameters["activations"][f"covariance {index}"] = as_matrices(factor.covariance)
    if factors.shared_covariance is not None:
        parameters["shared_covariance"][""] = factors.shared_covariance
    if local.outcome is not None:
        terms = local.outcome
        parameters["outcome"] = {
            "precision": terms.precision,
            "linear": terms.linear,
            "constant": terms.constant,
        }
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
        if layer.slab_variance is not None:
            parameters["slab"][f"concentration {index}"] = layer.slab_variance.concentration
            parameters["slab"][f"scale {index}"] = layer.slab_variance.scale
    prior = point.model.global_shrinkage
    if not isinstance(prior, PointMass):
        name = _hyperparameter(prior)
        parameters["hyperparameters"][name] = getattr(prior, name)
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x, dtype=float)), parameters)


def with_parameters(template: Point, parameters: Parameters, rows: Rows) -> Point:
    """The point with these parameters; covariances are symmetrised, log|S| is made anew."""
    shared = parameters["shared_covariance"].get("")
    shared = None if shared is None else _symmetric(shared)
    activations, layers = [], []
    values = parameters["activations"]
    for index in range(len(template.local.activations)):
        covariance = values.get(f"covariance {index}")
        is_shared = covariance is None
        covariance = shared[:, None] if is_shared else _symmetric(covariance)
        activations.append(
            Activations(
                offset=values[f"offset {index}"],
                gain=values.get(f"gain {index}"),
                covariance=covariance,
                log_determinant=None if is_shared else jnp.linalg.slogdet(covariance)[1],
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
                slab_variance=None
                if layer.slab_variance is None
                else InverseGamma(
                    concentration=parameters["slab"][f"concentration {index}"],
                    scale=parameters["slab"][f"scale {index}"],
                ),
            )
        )
    shrinkage = replace(template.model.global_shrinkage, **parameters["hyperparameters"])
    n_hidden = range(len(activations))
    gates = [bernoulli.probability_and_entropy(parameters["gates"][f"{i}"]) for i in n_hidden]
    return Point(
        model=replace(template.model, global_shrinkage=shrinkage),
        rows=rows,
        factors=Posterior(layers=tuple(layers), shared_covariance=shared),
        local=LocalFactors(
            activations=tuple(activations),
            gate_probability=tuple(gate for gate, _ in gates),
            gate_entropy=tuple(entropy for _, entropy in gates),
            tilt=tuple(parameters["tilts"][f"{i}"] for i in n_hidden),
            outcome=None
            if template.local.outcome is None
            else replace(template.local.outcome, **parameters["outcome"]),
        ),
    )


def bessel_by_recurrence(p: float, argument: Any) -> tuple[Any, Any]:
    """log K_p and R = K_{p-1} / K_p, with (log K)' = -R - p/w and R' = R² + (2p-1) R/w - 1."""
    if not isinstance(argument, jax.Array):
        return quadrature(p, argument)

    @jax.custom_jvp
    def values(w: jax.Array) -> tuple[jax.Array, jax.Array]:
        shape = jax.ShapeDtypeStruct(w.shape, w.dtype)
        return jax.pure_callback(lambda x: quadrature(p, np.asarray(x)), (shape, shape), w)

    @values.defjvp
    def derivatives(primals: Any, tangents: Any) -> Any:
        (w,), (dw,) = primals, tangents
        log_k, ratio = values(w)
        slope = ratio**2 + (2.0 * p - 1.0) * ratio / w - 1.0
        return (log_k, ratio), ((-ratio - p / w) * dw, slope * dw)

    return values(argument)


def bound_value(
    template: Point, moving: Parameters, still: Parameters, rows: Rows, recurrence: bool = True
) -> jax.Array:
    """The ELBO as a function of the parameters that move and of those that do not."""
    with pytest.MonkeyPatch.context() as patch:
        if recurrence:
            patch.setattr(bessel, "_log_and_lower_ratio", bessel_by_recurrence)
        # The networks have no parameter in common: the gradient of the sum is that of each.
        return jnp.sum(builders.bound_of(with_parameters(template, moving | still, rows)).total)


@lru_cache(maxsize=32)
def compiled_gradient(
    hidden: tuple[int, ...], family: str, recurrence: bool = True
) -> Callable[..., Parameters]:
    """Gradient of the ELBO in the moving parameters, compiled once for each shape and family."""
    template = builders.random_point(np.random.default_rng(0), hidden, family)

    def value(moving: Parameters, still: Parameters, *arrays: jax.Array) -> jax.Array:
        rows = Rows(inputs=arrays[0], targets=arrays[1], weights=arrays[2])
        return bound_value(template, moving, still, rows, recurrence)

    return compile_gradient(value)


def compile_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient in the first argument; it runs a few times only, so it is not optimised."""
    options = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    return jax.jit(jax.grad(function), compiler_options=options)


def gradient(
    point: Point, family: str, names: tuple[str, ...] | None = None, recurrence: bool = True
) -> Parameters:
    """Gradient of the ELBO at the point in the named factors (all of them if None), in NumPy."""
    rows, still = point.rows, free_parameters(point)
    moving = {name: still.pop(name) for name in names or tuple(still)}
    compiled = compiled_gradient(point.model.architecture.hidden, family, recurrence)
    result = compiled(moving, still, rows.inputs, rows.targets, rows.weights)
    return jax.tree.map(np.asarray, result)


def outcome_gradient(template: Point, names: tuple[str, ...]) -> Callable[[Point], Parameters]:
    """`gradient` in the named factors, at points with the rows and the outcome of the template."""
    inputs, targets, weights = (
        jnp.asarray(x) for x in (template.rows.inputs, template.rows.targets, template.rows.weights)
    )
    rows = Rows(inputs=inputs, targets=targets, weights=weights)
    compiled = compile_gradient(lambda moving, still: bound_value(template, moving, still, rows))

    def slopes(point: Point) -> Parameters:
        still = free_parameters(point)
        moving = {name: still.pop(name) for name in names}
        return jax.tree.map(np.asarray, compiled(moving, still))

    return slopes


def assert_stationary(before: Parameters, after: Parameters, tolerance: float = 1e-10) -> None:
    """Gradients (M, ...) by parameter were not zero in any network, and are after an update.

    The tolerance is relative to 1 + the largest slope before.
    """
    assert before.keys() == after.keys() != set()
    for key in before:
        for slopes, left in zip(before[key], after[key], strict=True):
            scale, largest = np.abs(slopes).max(), np.abs(left).max()
            assert scale > 1e-4, f"{key} starts at its optimum"
            assert largest <= tolerance * (1.0 + scale), f"{key}: {largest} of {scale} left"


def as_matrices(covariance: Any) -> Any:
    """Covariances (M, n, D, D) of rows that may have common axes."""
    if not isinstance(covariance, tuple):
        return covariance
    axes, variances = covariance
    return np.einsum("mij,mnj,mkj->mnik", axes, variances, axes)


def _symmetric(x: jax.Array) -> jax.Array:
    return 0.5 * (x + jnp.swapaxes(x, -1, -2))


def _has_rate(q: GeneralizedInverseGaussian) -> bool:
    return not gig.is_zero(q.rate)


def _with_scale_and_rate(q: Shrinkage, values: Parameters, index: int) -> Shrinkage:
    if isinstance(q, PointMass):
        return q
    return replace(q, scale=values[f"scale {index}"], rate=values.get(f"rate {index}", 0.0))


def _hyperparameter(prior: GeneralizedInverseGaussian | HalfCauchy) -> str:
    """The free parameter of a global prior: the scale if there is no rate."""
    return "scale" if gig.is_zero(prior.rate) else "rate"
