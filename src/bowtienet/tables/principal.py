"""Principal components: tables with many columns in the size of few.

Standardised columns x (E,) become P components V'x / c, with V the leading principal directions of
the training rows and c one scale for all, so that the components have a mean square of one. With no
fewer components than rows nothing is lost: rows lie in the space of their principal directions,
and so does every network that is fitted with a penalty on its squared weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAMPLED_ROWS = 2_000
"""Rows that principal directions are found on, about."""
LEAST_VARIANCE = 1e-10
"""Of a direction, as a part of the largest, below which it is rounding."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Components of standardised columns."""

    loadings: Floats
    """V / c (E, P)."""


def fit_principal(inputs: Floats, weights: Floats, most: int) -> Principal:
    """Leading principal directions of standardised inputs (n, E), `most` of them or fewer.

    Of many rows every so many are looked at; row weights (n,) say how many times each counts.
    """
    if not inputs.any():
        return Principal(loadings=np.zeros((inputs.shape[1], 1)))
    apart = -(-len(inputs) // SAMPLED_ROWS)
    sample, share = inputs[::apart], weights[::apart]
    rooted = np.sqrt(share / share.sum())[:, None] * sample
    if rooted.shape[0] < rooted.shape[1]:
        values, left = np.linalg.eigh(rooted @ rooted.T)
        values, left = values[::-1][:most], left[:, ::-1][:, :most]
        kept = values > LEAST_VARIANCE * values[0]
        directions = rooted.T @ (left[:, kept] / np.sqrt(values[kept]))
    else:
        values, directions = np.linalg.eigh(rooted.T @ rooted)
        values, directions = values[::-1][:most], directions[:, ::-1][:, :most]
        kept = values > LEAST_VARIANCE * values[0]
        directions = directions[:, kept]
    # The sign of a direction is nobody's choice: its largest loading is positive.
    largest = np.argmax(np.abs(directions), axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    scale = np.sqrt(np.mean(values[kept]))
    return Principal(loadings=np.ascontiguousarray(directions * signs / scale))


def principal_components(principal: Principal, inputs: Floats) -> Floats:
    """Components (n, P) of standardised columns (n, E)."""
    return np.asarray(inputs @ principal.loadings)


def held_out_components(principal: Principal, inputs: Floats, folds: Sequence[slice]) -> Floats:
    """Components (n, P) of training rows as those of new rows would be.

    Of more columns than rows, each row has a part that is its own and that new rows cannot have in
    common with the directions. Each row is therefore projected first onto the rows of the other
    folds: with G = X X' its components are Σ_j a_j z_j, a = G_{-f,-f}^{-1} G_{-f,i}, a sum over the
    components z_j of those.
    """
    components = principal_components(principal, inputs)
    found, gram = components.copy(), inputs @ inputs.T
    for fold in folds:
        others = np.delete(np.arange(len(inputs)), fold)
        values, vectors = np.linalg.eigh(gram[np.ix_(others, others)])
        kept = values > LEAST_VARIANCE * values[-1]
        across = (vectors[:, kept].T @ gram[others, fold]) / values[kept, None]
        found[fold] = across.T @ (vectors[:, kept].T @ components[others])
    return found
