"""The one door: whatever holds rows in, a checked `Source` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet.data.in_memory import InMemory
from bowtienet.data.memory_map import MemoryMap
from bowtienet.data.source import Source


def open_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    features: Sequence[str] | None = None,
    min_rows: int = 1,
) -> Source:
    """Rows with targets and weights."""
    source = _open(X, y, sample_weight, features)
    if source.n_targets == 0:
        raise ValueError(
            "a fit requires y to be passed, but the target y is None: name it, as in "
            "fit(frame, 'price'), or give it, as in fit(X, y)."
        )
    if isinstance(source, InMemory) and source.block.table.n_rows < min_rows:
        raise ValueError(
            f"X has {source.block.table.n_rows} sample(s), but at least {min_rows} are needed."
        )
    return source


def open_features(X: Any, *, features: Sequence[str] | None = None) -> Source:
    """Features alone."""
    return _open(X, None, None, features)


def _open(X: Any, y: Any, sample_weight: Any, features: Sequence[str] | None) -> Source:
    if isinstance(X, np.memmap):
        return MemoryMap(X, y, sample_weight)
    return InMemory(X, y, sample_weight, features=features)
