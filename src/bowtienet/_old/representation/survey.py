"""One reading of all rows of a stream: the scaling of their columns, and a uniform sample of them.

Chunks are surveyed one by one, in any process, and put together in their order. What is found
follows from the rows, their order and the seed, not from what holds them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet._old.data.random_rows import RowSample, row_keys
from bowtienet._old.data.rows import Rows
from bowtienet._old.representation.scaling import (
    ColumnMoments,
    Scaling,
    column_moments,
    combine_moments,
    scaling_from,
)

HELD_OUT_ROWS = 5_000
"""Most rows of a stream that are held out."""
_FOLDED = 100
"""Chunks whose moments are put together before the next are read."""


@dataclass(frozen=True, kw_only=True)
class ChunkSurvey:
    """What one reading of a chunk tells."""

    n_rows: int
    n_counted: int
    """Rows of positive weight."""
    features: ColumnMoments
    targets: ColumnMoments
    sample: RowSample


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What one reading of all rows tells."""

    n_rows: int
    n_counted: int
    total_weight: float
    feature_scaling: Scaling
    target_scaling: Scaling
    sample: RowSample
    """Rows with encoded features, in the user's units and in random order."""
    first_rows: NDArray[np.intp] | None = None
    """Position of the first row of every piece, where pieces are read again."""
    checksum: int | None = None
    """Of the encoded features, if all rows are in one piece."""


def survey_chunk(rows: Rows, start: int, seed: int, size: int, limit: float = 1.0) -> ChunkSurvey:
    """Moments of encoded rows, of which the first is at `start`, and a sample of at most `size`.

    Rows whose keys are not below `limit` are left out of the sample; see `key_limit`.
    """
    n_rows = int(rows.inputs.shape[0])
    sample = RowSample(size, np.random.default_rng(seed))
    keys = row_keys(seed, start, n_rows)
    sample.add(rows, start, np.where(keys < limit, keys, 1.0))
    return ChunkSurvey(
        n_rows=n_rows,
        n_counted=int(np.count_nonzero(rows.weights)),
        features=column_moments(rows.inputs, rows.weights),
        targets=column_moments(rows.targets, rows.weights),
        sample=sample,
    )


def key_limit(size: int, n_counted: int) -> float:
    """Below it are the keys of `size` of the rows, but for a chance of 1e-15.

    Chunks that know it need not offer rows that have no prospect.
    """
    return min(1.0, (size + 8.0 * math.sqrt(size) + 64.0) / max(n_counted, 1))


def combine_surveys(chunks: Iterable[ChunkSurvey]) -> Survey:
    """What is known of all rows from what is known of their chunks, which come in their order."""
    n_rows = n_counted = 0
    features: list[ColumnMoments] = []
    targets: list[ColumnMoments] = []
    sample: RowSample | None = None
    for chunk in chunks:
        for moments, own in ((features, chunk.features), (targets, chunk.targets)):
            moments.append(own)
            if len(moments) == _FOLDED:  # chunks may be many
                moments[:] = [combine_moments(moments)]
        if sample is None:
            sample = RowSample(chunk.sample.size, np.random.default_rng())
        sample.merge(chunk.sample, 0)
        n_rows, n_counted = n_rows + chunk.n_rows, n_counted + chunk.n_counted
    if sample is None:
        raise ValueError("the source has no rows: at least two are needed.")
    all_features, all_targets = combine_moments(features), combine_moments(targets)
    if not float(all_features.weight) > 0.0:
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")
    return Survey(
        n_rows=n_rows,
        n_counted=n_counted,
        total_weight=float(all_features.weight),
        feature_scaling=scaling_from(all_features),
        target_scaling=scaling_from(all_targets),
        sample=sample,
    )
