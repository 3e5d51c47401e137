"""Whether the numbers of a network, such as those of a file, are those of its architecture.

Types and signs are checked where a file is read (`persistence.schema`); here it is shapes, by the
widths D_0, ..., D_{L+1} and the outcome, and that covariances are such.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, packed_size
from bowtienet._old.distributions.generalized_inverse_gaussian import (
    GeneralizedInverseGaussian,
    check_proper,
)
from bowtienet._old.inference.iterate import FitResult
from bowtienet._old.inference.pruning import check_pruning
from bowtienet._old.inference.statistics import Statistics
from bowtienet._old.inference.stochastic import StochasticState
from bowtienet._old.model.outcomes import Binary, Classes, Counts
from bowtienet._old.model.priors import BowTieModel
from bowtienet._old.posterior.factors import GlobalFactors, check_factors

Shape = tuple[int, ...]
Expected = Iterator[tuple[str, Any, tuple[Shape, ...]]]
"""Names, values, and the shapes that each may have."""


def check_network(
    model: BowTieModel, factors: GlobalFactors, statistics: Statistics | None = None
) -> None:
    """Raise a ValueError if a model, its factors and its sums are not of one network."""
    depth = model.architecture.n_layers
    for name, parts in (("prior", model.prior.local_shrinkage), ("factors", factors.layers)):
        if len(parts) != depth:
            raise ValueError(f"the {name} has {len(parts)} layers and the network {depth}")
    if statistics is not None and len(statistics.hidden) != model.architecture.n_hidden:
        raise ValueError("the statistics are of another number of layers")
    _check_shapes(_of_model(model))
    _check_outcome(model)
    _check_shapes(_of_factors(model, factors))
    if statistics is not None:
        _check_shapes(_of_statistics(model, statistics))
    for layer in factors.layers:
        _check_covariance(layer.weights.covariance, "of weights")
    if factors.shared_covariance is not None:
        _check_covariance(factors.shared_covariance, "of activations")


def check_result(result: FitResult) -> None:
    """Raise a ValueError if the parts of a fitted network do not fit together."""
    check_factors(result.model.architecture, result.factors)
    check_network(result.model, result.factors, result.statistics)
    if result.elbo_terms is not None and any(map(np.shape, vars(result.elbo_terms).values())):
        raise ValueError("the terms of the bound are not one number each")
    check_pruning(result.model, result.pruning)


def check_state(state: StochasticState) -> None:
    """Raise a ValueError if the parts of a stochastic fit are not of one network."""
    check_network(state.model, state.factors, state.statistics)
    check_pruning(state.model, None)
    if state.ahead is not None:
        check_network(state.model, state.ahead)


def _check_shapes(expected: Expected) -> None:
    for name, value, shapes in expected:
        if value is None or (np.shape(value) in shapes and np.asarray(value).dtype.kind in "fi"):
            continue
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"{name} has shape {np.shape(value)} and not {wanted}")


def _of_model(model: BowTieModel) -> Expected:
    prior, outputs = model.prior, (model.architecture.n_outputs,)
    for name, family in (("global", prior.global_shrinkage), *_numbered(prior.local_shrinkage)):
        for field, value in vars(family).items():
            yield f"the prior of {name} shrinkage, {field},", value, ((),)
        if isinstance(family, GeneralizedInverseGaussian):
            check_proper(family.order, float(family.scale), float(family.rate), "shrinkage")
    for field, value in vars(prior.hidden_noise).items():
        yield f"the prior of hidden noise, {field},", value, ((),)
    for field, value in vars(prior.output_noise).items():
        yield f"the prior of output noise, {field},", value, ((), outputs)
    if prior.slab is not None:
        for field, value in vars(prior.slab).items():
            yield f"the prior of the slab, {field},", value, ((),)
    for field, value in vars(model.outcome).items():
        yield f"the outcome's {field}", np.float64(value) if _is_plain(value) else value, ((),)


def _numbered(parts: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    return ((f"local ({index})", part) for index, part in enumerate(parts))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _of_factors(model: BowTieModel, factors: GlobalFactors) -> Expected:
    widths = model.architecture.widths
    for index, (layer, (k, d)) in enumerate(zip(factors.layers, pairwise(widths), strict=True)):
        name = f"layer {index}:"
        yield f"{name} the weights' mean", layer.weights.mean, ((d, k + 1),)
        yield f"{name} the weights' covariance", layer.weights.covariance, ((d, k + 1, k + 1),)
        for field, value in vars(layer.noise_variance).items():
            yield f"{name} the noise variance's {field}", value, ((d,),)
        for field, value in vars(layer.global_shrinkage).items():
            yield f"{name} the global shrinkage's {field}", value, ((),)
        for field, value in vars(layer.local_shrinkage).items():
            yield f"{name} the local shrinkage's {field}", value, ((), (d, k))
        if (layer.slab_variance is None) != (model.prior.slab is None):
            raise ValueError("the prior has a slab and the factors have none, or the reverse")
        if layer.slab_variance is not None:
            for field, value in vars(layer.slab_variance).items():
                yield f"{name} the slab's {field}", value, ((), (d, k))
    shared = model.architecture.n_hidden > 0 and not model.outcome.by_row
    if (factors.shared_covariance is not None) != shared:
        raise ValueError("the shared covariance of activations is that of another outcome")
    yield "the shared covariance", factors.shared_covariance, ((widths[-2], widths[-2]),)


def _of_statistics(model: BowTieModel, statistics: Statistics) -> Expected:
    widths, outcome = model.architecture.widths, model.outcome
    for index, sums in enumerate(statistics.hidden):
        k, d = widths[index], widths[index + 1]
        packed, crossed = (d, packed_size(k + 1)), (d, k + 1)
        shapes: tuple[Shape, ...] = (packed, packed, crossed, crossed, (d,), (), (), ())
        for (field, value), shape in zip(vars(sums).items(), shapes, strict=True):
            yield f"statistics of layer {index}: {field}", value, (shape,)
    k, d = widths[-2:]
    moment = (d, packed_size(k + 1)) if outcome.by_row else (packed_size(k + 1),)
    output = statistics.output
    slopes = outcome.linear_parameter is not None
    n_own = _own_size(model) if outcome.by_row else 0
    wanted: dict[str, Shape | None] = {
        "input_moment": moment,
        "target_cross": (d, k + 1),
        "target_square": (d,) if outcome.has_noise else None,
        "constant": () if outcome.by_row else None,
        "own": (n_own,) if n_own else None,
        "slope_moment": (d, packed_size(k + 1)) if slopes else None,
        "slope_cross": (d, k + 1) if slopes else None,
    }
    for field, own in wanted.items():
        value = getattr(output, field)
        if (value is None) != (own is None):
            raise ValueError(f"statistics of the output: {field} is that of another outcome")
        yield f"statistics of the output: {field}", value, (own or (),)
    yield "the number of rows", statistics.count, ((),)


def _own_size(model: BowTieModel) -> int:
    """Q, by a row of zeros."""
    outcome, n_outputs = model.outcome, model.architecture.n_outputs
    zeros = np.zeros((1, n_outputs))
    terms = outcome.row_terms(
        np.zeros((1, outcome.n_columns(n_outputs))), zeros, zeros + 1.0, zeros + 1.0
    )
    return int(terms.own.shape[-1])


def _check_outcome(model: BowTieModel) -> None:
    """Outcomes that say how many outputs they have."""
    outcome, n_outputs = model.outcome, model.architecture.n_outputs
    if isinstance(outcome, Classes) and outcome.n_classes != n_outputs:
        raise ValueError(f"{outcome.n_classes} classes have {n_outputs} outputs")
    if isinstance(outcome, (Binary, Counts)) and n_outputs != 1:
        raise ValueError(f"{outcome.name} targets have {n_outputs} outputs")


def _check_covariance(values: Array, name: str) -> None:
    """Symmetric, and without negative eigenvalues but for rounding; zero for missing weights."""
    values = np.asarray(values)
    variances = np.diagonal(values, axis1=-2, axis2=-1)
    error = ValueError(f"a covariance {name} is none")
    if np.any(variances < 0.0):
        raise error
    with np.errstate(all="ignore"):
        roots = np.where(variances > 0.0, 1.0 / np.sqrt(variances), 1.0)
        correlations = (values * roots[..., :, None] * roots[..., None, :]).astype(np.float64)
    # Far below what a wrong number does, far above what rounding does.
    slack = float(np.sqrt(np.finfo(values.dtype).eps))
    if not np.allclose(correlations, np.swapaxes(correlations, -1, -2), rtol=0.0, atol=slack):
        raise error
    size = values.shape[-1]
    try:
        np.linalg.cholesky(correlations + slack * max(size, 1) * np.eye(size))
    except np.linalg.LinAlgError:
        raise error from None
