"""Section 3.4: which weights, units and inputs of a fitted network matter.

A weight W ~ N(m, v) has the sign of its mean with probability Q = Phi(|m| / sqrt(v)), and 1 - Q is
what keeping it risks. Keeping those with the largest Q, the estimated Bayesian false discovery rate

    FDR(k) = (1/k) Σ_{i<=k} (1 - Q_(i))

grows with k, so the largest set below a given rate is found from one cumulative mean. What is kept
then matters only on a path from an input to an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bowtienet._arrays import diagonal
from bowtienet._params import number
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.model.model import BowTieModel
from bowtienet.posterior.factors import Posterior

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class NetworkSelection:
    """The part of a network that matters."""

    inputs: Mask
    """Inputs (D_0,) that are kept: those that reach an output."""
    connections: tuple[Mask, ...]
    """Weights (D, K) of every layer that were chosen and lie on a path from input to output."""
    varying: tuple[Mask, ...]
    """Hidden units (D,) that chosen weights connect with an input; the others are constants."""
    keep_threshold: float
    """Weights with Q from here on were chosen."""
    estimated_rate: float
    """The estimated false discovery rate of the chosen weights; 0 of none."""

    @property
    def units(self) -> tuple[Mask, ...]:
        """Hidden units (D,) that lie on a path from input to output."""
        return tuple(np.any(mask, axis=1) for mask in self.connections[:-1])


def select(
    model: BowTieModel, posterior: Posterior, false_discovery_rate: float
) -> NetworkSelection:
    """The weights of a single network (M = 1) to keep at a given rate, and what they leave alive.

    Parameters
    ----------
    model, posterior : BowTieModel, Posterior
        A fitted network.
    false_discovery_rate : float in (0, 1)
        Share of kept weights that have the wrong sign, by what q says of them. From ½ on nothing
        is dropped.
    """
    rate = number(false_discovery_rate, "false_discovery_rate")
    if not 0.0 < rate < 1.0:
        raise ValueError(
            f"false_discovery_rate must lie strictly between 0 and 1, got {rate!r}: 0.01 keeps "
            "weights of which about one in a hundred has the wrong sign."
        )
    doubts = [sign_error(layer.weights)[0] for layer in posterior.layers]
    present = model.connections or tuple(np.ones(d.shape, dtype=bool) for d in doubts)
    pooled = np.concatenate([d[mask] for d, mask in zip(doubts, present, strict=True)])
    largest = largest_doubt(pooled, rate)
    chosen = [mask & (d <= largest) for d, mask in zip(doubts, present, strict=True)]
    connections, varying = on_paths(chosen)
    kept = pooled[pooled <= largest]
    return NetworkSelection(
        inputs=np.any(connections[0], axis=0),
        connections=connections,
        varying=varying,
        keep_threshold=1.0 - max(largest, 0.0),
        estimated_rate=float(kept.mean()) if kept.size else 0.0,
    )


def sign_error(weights: GaussianRows) -> Floats:
    """1 - Q = Phi(-|m| / sqrt(v)) (M, D, K), from 0 to ½, without the biases; ½ where v is 0."""
    mean = weights.mean[..., 1:]
    deviation = np.sqrt(diagonal(weights.covariance)[..., 1:])
    safe = np.where(deviation > 0.0, deviation, 1.0)
    return np.asarray(ndtr(-np.where(deviation > 0.0, np.abs(mean) / safe, 0.0)))


def largest_doubt(doubts: Floats, rate: float) -> float:
    """Largest 1 - Q that may be kept; below zero if not even the surest weight may.

    Equal values are kept or dropped together, so that the order of the weights has no part.
    """
    ascending = np.sort(doubts)
    below = np.cumsum(ascending) < rate * np.arange(1, ascending.size + 1)
    count = int(np.sum(below))
    if count == 0:
        return -1.0
    if count < ascending.size and ascending[count] == ascending[count - 1]:
        count = int(np.searchsorted(ascending, ascending[count], side="left"))
    return float(ascending[count - 1]) if count else -1.0


def on_paths(chosen: Sequence[Mask]) -> tuple[tuple[Mask, ...], tuple[Mask, ...]]:
    """Chosen weights on a path from input to output, and the hidden units that vary at all.

    A unit lives if inputs reach it and it reaches an output. Removing units without weights on one
    side until nothing changes ends at the same set: both are all the weights on such paths.
    """
    varying: list[Mask] = [np.ones(chosen[0].shape[1], dtype=bool)]
    for mask in chosen[:-1]:
        varying.append(np.any(mask & varying[-1], axis=1))
    useful: list[Mask] = [np.ones(chosen[-1].shape[0], dtype=bool)]
    for mask in reversed(chosen):
        useful.insert(0, np.any(mask & useful[0][:, None], axis=0))
    alive = [a & b for a, b in zip(varying, useful, strict=False)]
    connections = tuple(
        mask & below & above[:, None]
        for mask, below, above in zip(chosen, alive, [*alive[1:], useful[-1]], strict=True)
    )
    return connections, tuple(varying[1:])
