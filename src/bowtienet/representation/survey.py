"""One reading of all rows of a stream: the scaling of their columns, and a uniform sample of them.

Pieces are surveyed one by one, in any process, and put together.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bowtienet.data.random_rows import RowSample
from bowtienet.data.tables import Block
from bowtienet.posterior.initialize import START_ROWS
from bowtienet.representation.columns import Column
from bowtienet.representation.representation import encoded_rows
from bowtienet.representation.scaling import (
    ColumnMoments,
    Scaling,
    column_moments,
    combine_moments,
    scaling_from,
)

HELD_OUT_ROWS = 5_000
"""Most rows of a stream that are held out."""
_FOLDED = 100
"""Blocks whose moments are put together before the next are read."""


@dataclass(frozen=True, kw_only=True)
class PieceSurvey:
    """What one reading of a piece tells."""

    n_rows: int
    n_counted: int
    """Rows of positive weight."""
    checksum: int
    """Of the encoded features, in their order."""
    features: ColumnMoments | None
    """None if the piece has no rows, as below."""
    targets: ColumnMoments | None
    sample: RowSample


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What one reading of all rows tells."""

    first_rows: NDArray[np.intp]
    """Position of the first row of every piece."""
    n_rows: int
    n_counted: int
    checksum: int | None
    """Of the encoded features, if all rows are in one piece."""
    total_weight: float
    feature_scaling: Scaling
    target_scaling: Scaling
    sample: RowSample
    """Rows with encoded features, in the user's units and in random order."""


def survey_piece(
    blocks: Iterable[Block], seed: Sequence[int], columns: Sequence[Column]
) -> PieceSurvey:
    """Moments and a sample of the encoded rows of a piece."""
    sample = RowSample(START_ROWS + HELD_OUT_ROWS, np.random.default_rng(seed))
    features: list[ColumnMoments] = []
    targets: list[ColumnMoments] = []
    n_rows = n_counted = checksum = 0
    for block in blocks:
        rows, _ = encoded_rows(columns, block)
        for moments, values in ((features, rows.inputs), (targets, rows.targets)):
            moments.append(column_moments(values, rows.weights))
            if len(moments) == _FOLDED:  # blocks may be many
                moments[:] = [combine_moments(moments)]
        sample.add(rows, n_rows)
        n_rows += rows.inputs.shape[0]
        n_counted += int(np.count_nonzero(rows.weights))
        checksum = zlib.crc32(np.ascontiguousarray(rows.inputs).data, checksum)
    return PieceSurvey(
        n_rows=n_rows,
        n_counted=n_counted,
        checksum=checksum,
        features=combine_moments(features) if n_rows else None,
        targets=combine_moments(targets) if n_rows else None,
        sample=sample,
    )


def combine_surveys(pieces: Iterable[PieceSurvey]) -> Survey:
    """What is known of all rows from what is known of their pieces."""
    sizes: list[int] = []
    checksums: list[int] = []
    n_rows = n_counted = 0
    features: list[ColumnMoments] = []
    targets: list[ColumnMoments] = []
    sample: RowSample | None = None
    for piece in pieces:
        if piece.features is not None and piece.targets is not None:
            features.append(piece.features)
            targets.append(piece.targets)
            if sample is None:
                sample = RowSample(piece.sample.size, np.random.default_rng())
            sample.merge(piece.sample, n_rows)
        sizes.append(piece.n_rows)
        checksums.append(piece.checksum)
        n_rows, n_counted = n_rows + piece.n_rows, n_counted + piece.n_counted
    if sample is None:
        raise ValueError("the source has no rows: at least two are needed.")
    all_features, all_targets = combine_moments(features), combine_moments(targets)
    if not float(all_features.weight) > 0.0:
        raise ValueError("the weights are all zero: at least one row must have a positive weight.")
    return Survey(
        first_rows=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp),
        n_rows=n_rows,
        n_counted=n_counted,
        checksum=checksums[0] if len(checksums) == 1 else None,
        total_weight=float(all_features.weight),
        feature_scaling=scaling_from(all_features),
        target_scaling=scaling_from(all_targets),
        sample=sample,
    )
