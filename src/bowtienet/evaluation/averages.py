"""Averages over rows that count by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet.evaluation.checks import read_sample_weight

_ROUNDING = 1e-9
"""n equal weights are n rows, also where their sums are a little less."""


def average(values: np.ndarray, weights: np.ndarray) -> float:
    """Σ w_n s_n / Σ w_n, over rows and targets; of k in n it is k / n to the last bit."""
    counted = weights > 0.0
    values, weights = values[counted], weights[counted]
    return float(np.sum(weights @ values) / (np.sum(weights) * (values.size // len(values))))


def effective_rows(n_rows: int, sample_weight: Any) -> int:
    """(Σ w)² / Σ w², the number of rows of equal weight that say as much; n without weights."""
    if sample_weight is None:
        return n_rows
    weights = read_sample_weight(sample_weight, np.zeros(n_rows))
    return max(1, int(np.sum(weights) ** 2 / np.sum(weights**2) + _ROUNDING))
