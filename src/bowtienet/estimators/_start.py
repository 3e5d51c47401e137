"""Where a fit of bow tie networks starts: the model's scales from the data, and the networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import (
    BowTieModel,
    Rows,
    build_model,
    default_scales,
)
from bowtienet.networks.penalty import choose_penalty, fit_networks
from bowtienet.outcomes import Outcome
from bowtienet.posterior.factors import Posterior
from bowtienet.posterior.initialize import around, initialize

Floats = NDArray[np.float64]


def start_of(
    estimator: Any, rows: Rows, outcome: Outcome, rng: np.random.Generator
) -> tuple[BowTieModel, Posterior]:
    """The model with scales from the data, and the initial posterior."""
    hidden = estimator.hidden_layer_sizes
    hidden = (hidden,) if np.ndim(hidden) == 0 else tuple(hidden)
    n_outputs = outcome.working_targets(rows.targets[:1]).shape[1]
    architecture = build_architecture(rows.inputs.shape[1], hidden, n_outputs)
    delta, intercept, noise_scale = default_scales(rows, outcome)
    noise = getattr(estimator, "output_noise", None) or (2.0, noise_scale)
    layers: Sequence[Floats] = ()
    if estimator.init == "relu_network" and hidden:
        data = rows.inputs, rows.targets
        penalty, noise_variance = choose_penalty(*data, rows.weights, hidden, outcome, rng)
        penalties = np.full(estimator.n_members, penalty)
        networks = fit_networks(*data, rows.weights, hidden, penalties, outcome, rng)
        layers = [layer.astype(np.float64) for layer in networks.layers]
        if getattr(estimator, "output_noise", None) is None and not outcome.by_row:
            # Residuals of a flexible network are too small: held-out ones say as much about
            # the noise as the rows do. Outliers would have all the say in their squares.
            # Of fewer than four rows the noise would have no mean.
            half = max(0.5 * float(rows.weights.sum()), 2.0)
            noise = (half, half * np.maximum(noise_variance, 1e-6))
    bias_variance = estimator.bias_variance
    if bias_variance == "intercept":
        bias_variance = max(intercept, 1e-2)
    model = build_model(
        architecture,
        prior=estimator.prior,
        hidden_noise=estimator.hidden_noise,
        output_noise=noise,
        bias_variance=bias_variance,
        temperature=estimator.temperature,
        outcome=outcome,
        default_delta=delta,
    )
    _check_noise(model, float(rows.weights.sum()))
    if layers:
        return model, around(model, layers, rows, rng)
    init = "laplace" if estimator.init == "relu_network" else estimator.init
    return model, initialize(model, rows, rng, estimator.n_members, init)


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
