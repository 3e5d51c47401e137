"""Section 3.1: the variational family, q(a) q(gamma) q(omega) q(W, b) q(eta²) q(psi) q(tau) q(c²).

Global factors are shared by all observations; local factors belong to the observations of one
block of rows. Shapes: n rows, D units of a layer, K units of the layer before it. M networks of one
architecture stand side by side: every array here has a leading axis M, also for a single network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bowtienet._arrays import Array, map_arrays
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.model.shrinkage import Shrinkage
from bowtienet.outcomes import RowTerms


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
class Posterior:
    """q(W, b) q(eta²) q(tau) q(psi) of M networks: one entry for each layer, output last."""

    layers: tuple[LayerFactors, ...]
    shared_covariance: Array | None = None
    """S_L (D_L, D_L), the conditional covariance of the last hidden layer's activations, which is
    the same for every row with known targets; None before the first step, without hidden layers,
    and for outcomes whose precision differs between rows."""


def n_networks(posterior: Posterior) -> int:
    """M."""
    return len(posterior.layers[0].weights.mean)


def network(posterior: Posterior, index: int) -> Posterior:
    """One of the networks, with a leading axis of 1."""
    taken: Posterior = map_arrays(lambda x: x[index : index + 1], posterior)
    return taken


Covariances: TypeAlias = Array | tuple[Array, Array]
"""S_n of n rows as matrices (n, D, D), or (1, D, D) where all rows share them; or as (V, v) with
common axes V (D, D) and v (n, D): S_n = V diag(v_n) V', and no matrix of a row is formed."""


@dataclass(frozen=True, kw_only=True)
class Activations:
    """q(a_l | a_{l-1}) = N(t + M a_{l-1}, S) of one hidden layer for a block of rows."""

    offset: Array
    """t (n, D); for the first layer t + M x, since its input x is known."""
    gain: Array | None
    """M (n, D, K); None for the first layer."""
    covariance: Covariances
    """S; an only hidden layer below one output whose precision differs between rows has axes."""
    log_determinant: Array | None
    """log|S| (n,); None where all rows share S, whose entropy is added up elsewhere."""


LocalMemory: TypeAlias = tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]
"""What a block of rows remembers between sweeps: rho (n, D) of every hidden layer; A (n, D) of
those from the second on, for the first layer's is never read again; p and k (n, D_out) of the
outcome if they differ between rows, else nothing."""


@dataclass(frozen=True, kw_only=True)
class LocalFactors:
    """q(a) q(gamma) q(omega) of a block of rows, an entry for each hidden layer."""

    activations: tuple[Activations, ...]
    gate_probability: tuple[Array, ...]
    """rho (n, D)."""
    gate_entropy: tuple[Array, ...]
    """Entropy of q(gamma) (n,), summed over the units: cheap where rho's log odds are known."""
    tilt: tuple[Array, ...]
    """A (n, D)."""
    outcome: RowTerms | None = None
    """The outcome's parabola of each row, if p differs between rows."""
