"""`next_points`: candidates that a fitted estimator would learn most from."""

from __future__ import annotations

from typing import Any

import numpy as np

from bowtienet._arrays import Array
from bowtienet._validation import whole
from bowtienet.ensemble.next_rows import next_labels, next_rows


def batch_to_measure(
    estimator: Any, candidates: Any, n: Any, to_predict: Any, rng: np.random.Generator
) -> np.ndarray:
    """Places (n,) among the candidates of a regressor."""
    features, count = _candidates(estimator, candidates, n)
    others = None
    if to_predict is not None:
        others = estimator._in_memory(estimator._features(to_predict))
    return next_rows(estimator.ensemble_, features, count, rng, others)


def batch_to_label(estimator: Any, candidates: Any, n: Any, rng: np.random.Generator) -> np.ndarray:
    """Places (n,) among the candidates of a classifier."""
    features, count = _candidates(estimator, candidates, n)
    return next_labels(estimator.ensemble_, features, count, rng)


def _candidates(estimator: Any, candidates: Any, n: Any) -> tuple[Array, int]:
    """Encoded features, and how many of them are wanted."""
    features = estimator._in_memory(estimator._features(candidates))
    count = whole(n, "n")
    if count > features.shape[0]:
        raise ValueError(
            f"n is {count}, but there are {features.shape[0]} candidates: ask for fewer rows."
        )
    return features, count
