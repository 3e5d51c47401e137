"""Random splits of rows into those to fit and those to score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split


def split_rows(
    n_rows: int, test_size: Any, seed: int, codes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Places of training and test rows, by scikit-learn's `train_test_split`.

    With numbers of classes, `codes` (n,), their shares are the same in both parts where that is
    possible, and no class has test rows alone.
    """
    everything = np.arange(n_rows)
    if codes is None:
        train, test = train_test_split(everything, test_size=test_size, random_state=seed)
        return train, test
    sizes = np.unique(codes, return_counts=True)[1]
    n_test = test_size if isinstance(test_size, int) else math.ceil(test_size * n_rows)
    possible = sizes.min() > 1 and min(n_test, n_rows - n_test) >= sizes.size
    train, test = train_test_split(
        everything, test_size=test_size, random_state=seed, stratify=codes if possible else None
    )
    known = np.isin(codes[test], codes[train])
    return np.concatenate([train, test[~known]]), test[known]
