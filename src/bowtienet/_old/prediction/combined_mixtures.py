"""Several mixtures as one: rows after rows, forecasts pooled, and the average over rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bowtienet._old._arrays import map_arrays
from bowtienet._old.distributions.yeo_johnson import identity
from bowtienet._old.prediction.mixture import Mixture, build_mixture
from bowtienet._old.prediction.quantiles import beside


def join_mixtures(parts: Sequence[Mixture]) -> Mixture:
    """Mixtures of consecutive rows as one; warps, and weights shared by rows, are the first's."""
    first = parts[0]
    weights = first.weights
    if any(part.weights.ndim > 1 for part in parts):
        weights = np.concatenate([_weights_of_rows(part) for part in parts], axis=1)
    found = build_mixture(
        weights,
        np.concatenate([part.means for part in parts], axis=1),
        np.concatenate([part.deviations for part in parts], axis=1),
    )
    return replace(found, warp=first.warp, origin=first.origin, unit=first.unit)


def pool_mixtures(parts: Sequence[Mixture]) -> Mixture:
    """p(y) = (1/M) Σ_m p_m(y): M forecasts of the same rows as one, with all their components."""
    warped = [part for part in parts if part.warp is not None]
    if warped:
        parts = [_warped_as(warped[0], part) for part in parts]
    shared = all(part.weights.ndim == 1 for part in parts)
    weights = [part.weights if shared else _weights_of_rows(part) for part in parts]
    found = build_mixture(
        np.concatenate(weights) / len(parts),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.deviations for part in parts]),
    )
    warp = map_arrays(lambda *a: np.concatenate(a), *(part.warp for part in parts))
    return replace(found, warp=warp, origin=parts[0].origin, unit=parts[0].unit)


def average_rows(mixture: Mixture, n_rows: int) -> Mixture:
    """p_v(y) = (1/R) Σ_r p_rv(y): R·V rows, value by value inside of R, as V mixtures.

    The mixture over rows of mixtures over components has K·R components.
    """
    base = mixture.means.shape[1:]
    shape = (-1, base[0] // n_rows, *base[1:])
    weights = mixture.weights / n_rows
    return replace(
        mixture,
        weights=np.repeat(weights, n_rows) if weights.ndim == 1 else weights.reshape(shape),
        means=mixture.means.reshape(shape),
        deviations=mixture.deviations.reshape(shape),
        warp=map_arrays(lambda a: np.repeat(a, n_rows, axis=0), mixture.warp),
    )


def _weights_of_rows(mixture: Mixture) -> np.ndarray:
    """Weights ``(K, *base)``, also of a mixture whose rows share them."""
    return np.broadcast_to(beside(mixture.weights, mixture.means), mixture.means.shape)


def _warped_as(other: Mixture, mixture: Mixture) -> Mixture:
    """The mixture in the unit of the other, with warps that change nothing if it has none."""
    origin, unit = other.frame()
    if mixture.warp is None:
        shape = (len(mixture.means), 1, *mixture.means.shape[2:])
        means, deviations = (mixture.means - origin) / unit, mixture.deviations / unit
        warp = identity(shape)
        return Mixture(
            weights=mixture.weights,
            means=means,
            deviations=deviations,
            warp=warp,
            origin=origin,
            unit=unit,
        )
    if all(map(np.array_equal, mixture.frame(), (origin, unit))):
        return mixture
    raise ValueError("mixtures with warps must have one origin and one unit to be pooled.")
