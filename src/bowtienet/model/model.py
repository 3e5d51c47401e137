"""Sections 2.1, 2.2 and 2.4: rows, the complete prior of a network by name, and the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices
from bowtienet._params import positive
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.model.architecture import Architecture
from bowtienet.model.shrinkage import Prior, ShrinkagePrior, build_shrinkage, scaled
from bowtienet.outcomes import GAUSSIAN, Outcome

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Inputs (n, D_0), targets (n, C) and non-negative weights (n,) of n observations."""

    inputs: Floats
    targets: Floats
    weights: Floats


def take_rows(rows: Rows, index: slice | NDArray[np.intp]) -> Rows:
    """Some of the rows, in the given order; a view for a slice."""
    return Rows(inputs=rows.inputs[index], targets=rows.targets[index], weights=rows.weights[index])


def split(rows: Rows, size: int) -> list[Rows]:
    """Consecutive blocks of at most `size` rows."""
    return [take_rows(rows, part) for part in slices(len(rows.inputs), size)]


@dataclass(frozen=True, kw_only=True)
class BowTieModel:
    """p(y, a, gamma, W, eta², tau, psi | x): what stays fixed while q moves.

    EM gives a new one, with another global prior and other parameters of the outcome.
    """

    architecture: Architecture
    temperature: float
    global_shrinkage: ShrinkagePrior
    """Prior of tau. EM moves its free hyperparameter: a number, or (M,) for M networks."""
    local_shrinkage: tuple[ShrinkagePrior, ...]
    """Priors of psi, layer by layer."""
    hidden_noise: InverseGamma
    output_noise: InverseGamma
    bias_variance: float
    slab: InverseGamma | None = None
    """Prior of c² of each weight, for the regularised horseshoe alone."""
    outcome: Outcome = GAUSSIAN
    """The likelihood of the targets given the network's outputs."""
    connections: tuple[NDArray[np.bool_], ...] | None = None
    """Weights (D, K) of every layer that exist; None for all, as before pruning."""

    def noise(self, layer: int) -> InverseGamma:
        """Prior of the noise variances of a layer, counted from 0."""
        return self.output_noise if layer == len(self.local_shrinkage) - 1 else self.hidden_noise

    def n_weights(self, layer: int) -> int:
        """Weights of a layer, counted from 0, without biases."""
        if self.connections is None:
            return self.architecture.widths[layer] * self.architecture.widths[layer + 1]
        return int(self.connections[layer].sum())


def build_model(
    architecture: Architecture,
    *,
    prior: str | Prior = "student_t",
    hidden_noise: tuple[float, float] = (2.0, 1e-4),
    output_noise: tuple[float, float | Sequence[float] | Floats] = (2.0, 0.1),
    bias_variance: float = 1.0,
    temperature: float = 0.1,
    outcome: Outcome = GAUSSIAN,
    default_delta: float = 1.0,
) -> BowTieModel:
    """Put a model together from the name of its shrinkage prior.

    Parameters
    ----------
    architecture : Architecture
        Widths of the network.
    prior : str or Prior
        Shrinkage prior of the weights.
    hidden_noise, output_noise : pair of float
        Concentration and scale of the inverse gamma priors of the noise variances; the output's
        scale may be one number for each output.
    bias_variance : float
        Variance of the Gaussian prior of the biases.
    temperature : float
        Softness of the gates; ReLU in the limit 0.
    outcome : Outcome
        The likelihood of the targets; `output_noise` is read by those with a noise variance alone.
    default_delta : float
        delta_global of a Student-t prior that has none; see `default_scales`.
    """
    prior = Prior(prior) if isinstance(prior, str) else prior
    if prior.family == "student_t" and prior.delta_global is None:
        prior = replace(prior, delta_global=default_delta)
    shared, local = build_shrinkage(prior, "global"), build_shrinkage(prior, "local")
    slab = None
    if prior.family == "regularized_horseshoe":
        half = 0.5 * positive(prior.slab[0], "the degrees of freedom of slab")
        scale = half * positive(prior.slab[1], "the scale of slab") ** 2
        slab = InverseGamma(concentration=half, scale=scale)
    return BowTieModel(
        architecture=architecture,
        temperature=positive(temperature, "temperature"),
        global_shrinkage=scaled(shared, 1.0 / max(architecture.n_hidden, 1)),
        local_shrinkage=tuple(scaled(local, 1.0 / k) for k in architecture.widths[:-1]),
        hidden_noise=_noise(hidden_noise, "hidden_noise", 1),
        output_noise=_noise(output_noise, "output_noise", architecture.n_outputs),
        bias_variance=positive(bias_variance, "bias_variance"),
        slab=slab,
        outcome=outcome,
    )


def default_scales(rows: Rows, outcome: Outcome = GAUSSIAN) -> tuple[float, float, Floats]:
    """The paper's scales from a linear fit of the outcome's working targets, weights counted.

    delta_global = min(max |coefficient|^½, 10) where a prior has none, max |intercept|, and the
    scales (D_out,) of the authors' IG(2, min(residual variance / 4, 30)) of the output noise. The
    first and the last are kept from 0: priors stay proper for targets that a line fits exactly.
    """
    present = rows.weights > 0.0
    total = float(rows.weights.sum())
    share = rows.weights[present, None] / total
    x, y = rows.inputs[present], outcome.working_targets(rows.targets)[present]
    design, root = np.column_stack([np.ones(len(x)), x]), np.sqrt(share)
    coefficients = np.linalg.lstsq(root * design, root * y, rcond=None)[0]
    # A line through few rows leaves little over, whatever the noise: only their spread counts.
    few = total <= 2 * design.shape[1]
    line = np.sum(share * y, axis=0) if few else design @ coefficients
    residual_variance = np.sum(share * (y - line) ** 2, axis=0)
    largest = float(np.clip(np.abs(coefficients[1:]).max(initial=0.0), 1e-2, 10.0**2))
    intercept = float(np.abs(coefficients[0]).max())
    return math.sqrt(largest), intercept, np.clip(residual_variance / 4.0, 1e-6, 30.0)


def _noise(
    value: tuple[float, float | Sequence[float] | Floats], name: str, n_outputs: int
) -> InverseGamma:
    if len(value) != 2:
        raise ValueError(f"{name} must be a pair, concentration and scale, got {value!r}.")
    concentration, scale = value
    scales = np.asarray(scale, dtype=float)
    if scales.shape not in ((), (n_outputs,)) or not np.all((scales > 0.0) & np.isfinite(scales)):
        raise ValueError(
            f"the scale of {name} must be a positive, finite number, or for output_noise one for "
            f"each output, got {scale!r}."
        )
    return InverseGamma(
        concentration=positive(concentration, f"the concentration of {name}"),
        scale=float(scales) if scales.ndim == 0 else scales,
    )
