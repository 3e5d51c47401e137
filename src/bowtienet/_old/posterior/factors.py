"""Section 3.1: the variational family, q(a) q(gamma) q(omega) q(W, b) q(eta²) q(psi) q(tau) q(c²).

Global factors are shared by all observations; local factors belong to the observations of one
block of rows. Shapes: n rows, D units of a layer, K units of the layer before it. The engine's
functions let all of them have leading axes, for several networks side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from bowtienet._old._arrays import Array
from bowtienet._old.distributions.gaussian import GaussianRows
from bowtienet._old.distributions.inverse_gamma import InverseGamma
from bowtienet._old.model.architecture import Architecture
from bowtienet._old.model.outcomes import RowTerms
from bowtienet._old.model.shrinkage import Shrinkage


@dataclass(frozen=True, kw_only=True)
class LayerFactors:
    """q(b, W) q(eta²) q(tau) q(psi) q(c²) of one layer."""

    weights: GaussianRows
    """Mean (D, K+1) and covariance (D, K+1, K+1) of the rows (b, W), bias first."""
    noise_variance: InverseGamma
    """Concentration and scale (D,)."""
    global_shrinkage: Shrinkage
    """tau: a scale of shape ()."""
    local_shrinkage: Shrinkage
    """psi: scales (D, K)."""
    slab_variance: InverseGamma | None = None
    """c² of the regularised horseshoe: concentration and scale (D, K)."""


@dataclass(frozen=True, kw_only=True)
class GlobalFactors:
    """Everything that a fitted network is: one entry for each layer with weights, output last."""

    layers: tuple[LayerFactors, ...]
    shared_covariance: Array | None
    """S_L (D_L, D_L), the conditional covariance of the last hidden layer's activations, which is
    the same for every row with known targets; None without hidden layers, and for outcomes whose
    precision differs between rows."""


def check_factors(architecture: Architecture, factors: GlobalFactors) -> None:
    """Raise a clear error if the factors are not those of a network of this architecture."""
    if not isinstance(factors, GlobalFactors):
        raise ValueError(
            f"factors must come from initialize or a fit, got {type(factors).__name__}."
        )
    found = tuple(layer.weights.mean.shape for layer in factors.layers)
    expected = tuple((width, below + 1) for below, width in pairwise(architecture.widths))
    if found != expected:
        raise ValueError(
            f"factors have weights of shapes {found}, but the model needs {expected}: "
            "initialize them with this model, or take those that were fitted with it."
        )


@dataclass(frozen=True, kw_only=True)
class CommonAxes:
    """S_n = V diag(v_n) V' of n rows: they differ in v alone, and no matrix of a row is formed."""

    axes: Array
    """V (D, D)."""
    variances: Array
    """v (n, D)."""


@dataclass(frozen=True, kw_only=True)
class Activations:
    """q(a_l | a_{l-1}) = N(t + M a_{l-1}, S) of one hidden layer for a block of rows."""

    offset: Array
    """t (n, D); for the first layer t + M x, since its input x is known."""
    gain: Array | None
    """M (n, D, K); None for the first layer."""
    covariance: Array | CommonAxes
    """S (n, D, D), or (1, D, D) where all rows share it; an only hidden layer below one output
    whose precision differs between rows has common axes."""
    log_determinant: Array
    """log|S| (n,) or (1,)."""


@dataclass(frozen=True, kw_only=True)
class LocalMemory:
    """What a block of rows remembers between sweeps."""

    gate_probability: tuple[Array, ...]
    """rho (n, D) of every hidden layer."""
    tilt: tuple[Array, ...]
    """A (n, D) of the hidden layers from the second on; the first layer's is never read again."""
    outcome: tuple[Array, ...] | None = None
    """p and k (n, D_out) of the outcome if they differ between rows; if they are linear in a
    parameter of it, p and k where that is zero, and their slopes in it."""


@dataclass(frozen=True, kw_only=True)
class LocalFactors:
    """q(a) q(gamma) q(omega) of a block of rows, an entry for each hidden layer."""

    activations: tuple[Activations, ...]
    gate_probability: tuple[Array, ...]
    """rho (n, D)."""
    gate_entropy: tuple[Array, ...] | None
    """Entropy of q(gamma) (n,), summed over the units: cheap where rho's log odds are at hand, and
    None where nobody will ask for the bound."""
    tilt: tuple[Array, ...]
    """A (n, D)."""
    outcome: RowTerms | None = None
    """The outcome's parabola of each row, if p differs between rows."""
