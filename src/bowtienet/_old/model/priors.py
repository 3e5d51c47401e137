"""Sections 2.2 and 2.4: the complete prior of a network, by name, scaled with its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, to_numpy
from bowtienet._old._validation import positive
from bowtienet._old.data.rows import Rows, build_rows
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import GAUSSIAN, Outcome
from bowtienet._old.model.shrinkage import SLAB_FAMILY, ShrinkagePrior, build_shrinkage, scaled


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Priors of everything that is shared by all observations."""

    global_shrinkage: ShrinkagePrior
    local_shrinkage: tuple[ShrinkagePrior, ...]
    hidden_noise: InverseGamma
    output_noise: InverseGamma
    bias_variance: float
    slab: InverseGamma | None = None
    """c² of each weight, of the regularised horseshoe alone."""

    def noise(self, layer: int) -> InverseGamma:
        """Prior of the noise variances of a layer, counted from 0."""
        return self.output_noise if layer == len(self.local_shrinkage) - 1 else self.hidden_noise


@dataclass(frozen=True, kw_only=True)
class RemovedWeights:
    """Weights of a layer that pruning took out, but that still say how small tau is.

    A unit that nobody listens to rests near z = 0, where each weight of its inputs is held to a
    variance `held`; with the prior's precision, that is E[W²] = 1 / (E[1/tau] p + 1 / held)
    for a local precision p, and a bound of -½ log(E[1/tau] p + 1 / held) - ½ E[log tau].
    """

    count: int
    held: float


@dataclass(frozen=True, kw_only=True)
class BowTieModel:
    """Architecture, prior, temperature and outcome.

    EM moves the global shrinkage's prior and the outcome's own parameters, nothing else.
    """

    architecture: Architecture
    prior: Prior
    gate_temperature: float
    connections: tuple[Array, ...] | None = None
    """Weights (D, K) of every layer that exist, by booleans; None for all, as before pruning."""
    removed: tuple[RemovedWeights, ...] | None = None
    """Weights that every layer has lost to pruning; None if it never was."""
    outcome: Outcome = GAUSSIAN
    """The likelihood of the targets given the network's outputs."""

    def n_weights(self, layer: int | None = None) -> int:
        """Weights of a layer, counted from 0, or of all; without biases."""
        if layer is None:
            return sum(self.n_weights(index) for index in range(self.architecture.n_layers))
        if self.connections is None:
            return self.architecture.widths[layer] * self.architecture.widths[layer + 1]
        return int(to_numpy(self.connections[layer]).sum())

    def removed_weights(self, layer: int) -> RemovedWeights:
        """Weights that a layer has lost to pruning."""
        return RemovedWeights(count=0, held=1.0) if self.removed is None else self.removed[layer]


def build_model(
    architecture: Architecture,
    *,
    prior: str = "student_t",
    global_parameters: Mapping[str, float] | None = None,
    local_parameters: Mapping[str, float] | None = None,
    hidden_noise: tuple[float, float] = (2.0, 1e-4),
    output_noise: tuple[float, float] | tuple[float, Array] = (2.0, 0.1),
    bias_variance: float = 1.0,
    slab: tuple[float, float] = (4.0, 2.0),
    gate_temperature: float = 0.1,
    scale_with_size: bool = True,
    outcome: Outcome = GAUSSIAN,
) -> BowTieModel:
    """Put a model together from the name of its shrinkage prior.

    Parameters
    ----------
    architecture : Architecture
        Widths of the network.
    prior : str
        Shrinkage prior of the weights; see `build_shrinkage`.
    global_parameters, local_parameters : mapping, optional
        Parameters of the prior of tau (one per layer) and of psi (one per weight).
    hidden_noise, output_noise : pair of float
        Concentration and scale of the inverse gamma priors of the noise variances; the output's
        scale may be one number for each output.
    bias_variance : float
        Variance of the Gaussian prior of the biases.
    slab : pair of float
        Degrees of freedom v and scale s of the slab of "regularized_horseshoe": weights that the
        horseshoe leaves free are held as by a Student-t, c² ~ IG(v/2, v s²/2). Other priors have
        none.
    gate_temperature : float
        Softness of the gates; ReLU in the limit 0.
    scale_with_size : bool
        Divide tau by the number of hidden layers and psi by the number of inputs of its layer, so
        that deeper and wider networks shrink more. The slab is that of a single weight and stays.
    outcome : Outcome
        The likelihood of the targets; `output_noise` is read by those with a noise variance alone.
    """
    shared = build_shrinkage(prior, **(global_parameters or {}))
    local = build_shrinkage(prior, **(local_parameters or {}))
    depth = max(architecture.n_hidden, 1) if scale_with_size else 1
    fan_in = architecture.widths[:-1] if scale_with_size else (1,) * architecture.n_layers
    built = Prior(
        global_shrinkage=scaled(shared, 1.0 / depth),
        local_shrinkage=tuple(scaled(local, 1.0 / width) for width in fan_in),
        hidden_noise=_noise(hidden_noise, "hidden_noise", 1),
        output_noise=_noise(output_noise, "output_noise", architecture.n_outputs),
        bias_variance=positive(bias_variance, "bias_variance"),
        slab=_slab(slab) if prior == SLAB_FAMILY else None,
    )
    return BowTieModel(
        architecture=architecture,
        prior=built,
        gate_temperature=positive(gate_temperature, "gate_temperature"),
        outcome=outcome,
    )


def default_model(
    architecture: Architecture,
    inputs: Array,
    targets: Array,
    weights: Array | None = None,
    **settings: Any,
) -> BowTieModel:
    """`build_model` with the authors' data-driven choices for whatever `settings` leave open.

    From an ordinary linear fit: output noise IG(2, min(residual variance / 4, 30)) for each output
    (that of the targets themselves where there are no two rows for each coefficient) and a global
    scale ``delta = min(sqrt(max |coefficient|), 10)``, so scale = delta²/2. The paper's bias
    variance, ``|intercept|``, is zero for centred targets; 1 is used instead, their own spread.
    For an outcome that is not Gaussian the fit is to its working targets.
    """
    outcome = settings.get("outcome", GAUSSIAN)
    rows = build_rows(inputs, targets, weights)
    check_rows(architecture, rows, outcome)
    share = to_numpy(rows.weights).astype(float)
    present = share > 0.0
    x = to_numpy(rows.inputs).astype(float)
    y = outcome.working_targets(to_numpy(rows.targets).astype(float))
    x, y, share = x[present], y[present], share[present, None] / share.sum()
    design, root = np.column_stack([np.ones(len(x)), x]), np.sqrt(share)
    coefficients = np.linalg.lstsq(root * design, root * y, rcond=None)[0]
    with np.errstate(over="ignore"):  # unscaled targets may overflow here, and the clip holds them
        # A line through few rows leaves little over, whatever the noise: only their spread counts.
        few = float(to_numpy(rows.weights).sum()) <= 2 * design.shape[1]
        line = np.sum(share * y, axis=0) if few else design @ coefficients
        residual = np.sum(share * (y - line) ** 2, axis=0)
    # A target that a line fits exactly would give a noise prior at zero: the floor keeps it proper.
    noise_scale = np.clip(np.nan_to_num(residual / 4.0, nan=np.inf), 1e-6, 30.0)
    largest = np.abs(coefficients[1:]).max(initial=0.0)
    settings.setdefault("output_noise", (2.0, noise_scale))
    if settings.get("prior", "student_t") == "student_t":
        delta_squared = min(max(float(largest), 1e-2), 100.0)
        settings.setdefault("global_parameters", {"scale": delta_squared / 2.0})
    return build_model(architecture, **settings)


def check_rows(architecture: Architecture, rows: Rows, outcome: Outcome = GAUSSIAN) -> None:
    """Raise a clear error if the rows are not those of a network of this architecture."""
    if not isinstance(rows, Rows):
        raise ValueError(f"rows must come from build_rows, got {type(rows).__name__}.")
    found = (rows.inputs.shape[1], rows.targets.shape[1])
    expected = (architecture.n_inputs, outcome.n_columns(architecture.n_outputs))
    if found != expected:
        raise ValueError(
            f"rows have {found[0]} inputs and {found[1]} targets, but the architecture has "
            f"{expected[0]} and {expected[1]}: build it for these rows."
        )


def _noise(value: tuple[float, Array], name: str, n_outputs: int) -> InverseGamma:
    concentration, scale = value
    scales = np.asarray(scale, dtype=float)
    if scales.shape not in ((), (n_outputs,)) or not np.all((scales > 0.0) & np.isfinite(scales)):
        raise ValueError(
            f"the scale of {name} must be a positive, finite number, or of output_noise one for "
            f"each output, got {scale!r}."
        )
    return InverseGamma(
        concentration=positive(concentration, f"the concentration of {name}"),
        scale=float(scales) if scales.ndim == 0 else scales,
    )


def _slab(value: tuple[float, float]) -> InverseGamma:
    freedom = positive(value[0], "the degrees of freedom of slab")
    half = 0.5 * freedom
    return InverseGamma(
        concentration=half, scale=half * positive(value[1], "the scale of slab") ** 2
    )
