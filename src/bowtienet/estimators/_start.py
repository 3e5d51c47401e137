"""Where a fit of a bow tie network begins: the model with scales from the data, and the first q."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import one_blas_thread
from bowtienet._format import warn
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.estimators._base import sizes_of
from bowtienet.estimators._streams import Prepare
from bowtienet.inference.stochastic import StochasticState
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, Rows, build_model, default_scales
from bowtienet.networks.penalty import choose_penalty, fit_networks
from bowtienet.outcomes import Outcome
from bowtienet.posterior.factors import Posterior
from bowtienet.posterior.initialize import around, initialize
from bowtienet.tables.door import TrainingTable
from bowtienet.tables.representation import (
    Representation,
    Scaling,
    fit_scaling,
    learn_representation,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class FittedNetwork:
    """M fitted networks and what leads from a table to them and back."""

    representation: Representation
    target_scaling: Scaling
    model: BowTieModel
    posterior: Posterior
    member_weights: Floats
    """(M,), with sum one."""
    inputs: NDArray[np.intp] | None = None
    """Standardised columns that a pruned network sees; None for all."""
    stochastic: StochasticState | None = None
    """Where `partial_fit` goes on."""


def begin_fit(
    estimator: Any,
    rows: TrainingTable,
    prepare: Prepare,
    outcome: Outcome,
    rng: np.random.Generator,
) -> tuple[FittedNetwork, Rows]:
    """How the columns are read, the networks before their fit, and standardised rows."""
    prepared = prepare(rows)
    representation, inputs = learn_representation(rows, estimator.max_categories)
    n_targets = prepared.targets.shape[1]
    scaling: Scaling = np.zeros(n_targets), np.ones(n_targets)
    if getattr(estimator, "scale_target", False):
        scaling = fit_scaling(prepared.targets, prepared.weights)
    elif estimator.init == "relu_network" and outcome.has_noise:
        # Errors grew from there on; at a mean of 100 deviations R² fell from 0.99 to 0.75.
        center, scale = fit_scaling(prepared.targets, prepared.weights)
        if np.any((np.abs(center) > 10.0) | (scale > 10.0) | (scale < 0.1)):
            warn("ReLU networks start badly on targets far from scale 1: use scale_target=True.")
    known = scaled_rows(prepared, inputs, scaling)
    with one_blas_thread():
        model, start = start_of(estimator, known, outcome, rng)
    fitted = FittedNetwork(
        representation=representation,
        target_scaling=scaling,
        model=model,
        posterior=start,
        member_weights=np.ones(estimator.n_members),
    )
    return fitted, known


def start_of(
    estimator: Any, rows: Rows, outcome: Outcome, rng: np.random.Generator
) -> tuple[BowTieModel, Posterior]:
    """The model with scales from the data, and the initial posterior."""
    hidden = sizes_of(estimator.hidden_layer_sizes) or ()
    n_outputs = outcome.working_targets(rows.targets[:1]).shape[1]
    delta, intercept, noise_scale = default_scales(rows, outcome)
    given = getattr(estimator, "output_noise", None)
    bias_variance = estimator.bias_variance
    if bias_variance == "intercept":
        bias_variance = max(intercept, 1e-2)
    model = build_model(
        build_architecture(rows.inputs.shape[1], hidden, n_outputs),
        prior=estimator.prior,
        hidden_noise=estimator.hidden_noise,
        output_noise=given or (2.0, noise_scale),
        bias_variance=bias_variance,
        temperature=estimator.temperature,
        outcome=outcome,
        default_delta=delta,
    )
    _check_noise(model, float(rows.weights.sum()))
    if estimator.init == "relu_network" and hidden:
        data = rows.inputs, rows.targets, rows.weights
        penalty, noise_variance = choose_penalty(*data, hidden, outcome, rng)
        penalties = np.full(estimator.n_members, penalty)
        networks = fit_networks(*data, hidden, penalties, outcome, rng)
        layers: Sequence[Floats] = [layer.astype(np.float64) for layer in networks.layers]
        if given is None and not outcome.by_row:
            # Residuals of a flexible network are too small: held-out ones say as much about
            # the noise as the rows do. Outliers would have all the say in their squares.
            # With fewer than four rows the noise would have no mean.
            half = max(0.5 * float(rows.weights.sum()), 2.0)
            scales = half * np.maximum(noise_variance, 1e-6)
            model = replace(model, output_noise=InverseGamma(concentration=half, scale=scales))
        return model, around(model, layers, rows, rng)
    init = "laplace" if estimator.init == "relu_network" else estimator.init
    return model, initialize(model, rows, rng, estimator.n_members, init)


def scaled_rows(training: TrainingTable, inputs: Floats, scaling: Scaling) -> Rows:
    """Standardised rows from prepared ones, whose inputs are standardised already."""
    center, scale = scaling
    targets = (training.targets - center) / scale
    return Rows(inputs=inputs, targets=targets, weights=training.weights)


def _check_noise(model: BowTieModel, total: float) -> None:
    """Posterior concentrations a + n/2 must exceed one, or variances have no mean."""
    noises = {"output_noise": model.output_noise} if model.outcome.has_noise else {}
    if model.architecture.hidden:
        noises["hidden_noise"] = model.hidden_noise
    for name, noise in noises.items():
        if np.min(noise.concentration) + 0.5 * total <= 1.0:
            raise ValueError(
                f"{name} has a concentration of {np.min(noise.concentration):g}, and the weights "
                f"of the rows add up to {total:g}: such variances have no mean, give a "
                "concentration above 1."
            )
