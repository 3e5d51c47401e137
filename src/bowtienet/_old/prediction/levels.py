"""Noise that differs between rows: levels that multiply variances, and gates that choose one.

    p(y | x) = Σ_k π_k(x) N(y | m(x), s_k v(x)),   π_k = σ(β_k'x~) Π_{j<k} (1 - σ(β_j'x~)),

with the last level taking what the sticks before it leave, and x~ = (1, x) the standardised
columns, held within a few deviations so that rows far outside the data do not force a gate. Several
levels with the same gates everywhere are heavy tails; gates that follow x make noise that differs
between rows. One level is a single factor of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from bowtienet._old._arrays import Array, to_numpy

Floats = NDArray[np.float64]

FURTHEST = 3.0
"""Deviations of a column beyond which gates do not follow it."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """K levels of noise for each of D targets."""

    scale: Floats
    """s (K, D): what variances are multiplied by."""
    gates: Floats
    """β (K - 1, 1 + Q, D): of the logit of each stick, the constant first."""
    columns: NDArray[np.intp]
    """The Q standardised columns that the gates see."""


def gate_inputs(columns: NDArray[np.intp], standardized: Array) -> Floats:
    """x~ (n, 1 + Q): a one, and the columns that gates see, held within `FURTHEST` deviations."""
    seen = np.asarray(to_numpy(standardized), dtype=np.float64)[:, columns]
    ones = np.ones((len(seen), 1))
    return np.concatenate([ones, np.clip(seen, -FURTHEST, FURTHEST)], axis=1)


def log_gates(gates: Floats, inputs: Floats) -> Floats:
    """log π (K, n, D) of stick-breaking logits β (K - 1, 1 + Q, D) at x~ (n, 1 + Q)."""
    n_sticks, _, n_targets = gates.shape
    found = np.zeros((n_sticks + 1, len(inputs), n_targets))
    rest = np.zeros((len(inputs), n_targets))
    for stick, own in enumerate(gates):
        logits = inputs @ own
        found[stick] = rest + log_expit(logits)
        rest = rest + log_expit(-logits)
    found[-1] = rest
    return found


def level_probabilities(levels: Levels, standardized: Array) -> Floats:
    """π (K, n, D) of rows with standardised columns (n, E)."""
    return np.exp(log_gates(levels.gates, gate_inputs(levels.columns, standardized)))


def check_levels(levels: Levels, n_columns: int, n_outputs: int) -> None:
    """Raise a ValueError if levels, such as those of a file, are not of these columns."""
    if not isinstance(levels, Levels):
        raise ValueError("the levels of noise are none")
    scale, gates = np.asarray(levels.scale), np.asarray(levels.gates)
    columns = np.asarray(levels.columns)
    if scale.ndim != 2 or scale.shape[1] != n_outputs or not len(scale):
        raise ValueError("the levels of noise are of other targets")
    if scale.dtype.kind != "f" or not np.all((scale > 0.0) & np.isfinite(scale)):
        raise ValueError("the levels of noise are not positive numbers")
    if columns.ndim != 1 or columns.dtype.kind not in "iu":
        raise ValueError("the columns that gates see are not whole numbers")
    if np.any((columns < 0) | (columns >= n_columns)):
        raise ValueError("gates see columns that there are not")
    if gates.shape != (len(scale) - 1, 1 + columns.size, n_outputs) or gates.dtype.kind != "f":
        raise ValueError("the gates are of other levels or columns")
    if not np.isfinite(gates).all():
        raise ValueError("the gates hold numbers that are not finite")
