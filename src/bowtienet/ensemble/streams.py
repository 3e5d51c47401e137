"""Minibatches of rows that are read again and again, for tables of which only a sample is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet._arrays import slices, with_ones
from bowtienet.networks.networks import Networks, Single
from bowtienet.networks.train import Batch
from bowtienet.tables.sources import mixed
from bowtienet.tables.views import View, see
from bowtienet.tables.warp import Warp, forward

Chunk: TypeAlias = tuple[Single, NDArray, NDArray, NDArray[np.intp]]
"""Standardised columns (n, E), targets (n, C), weights (n,) and folds (n,) of some rows."""
Read: TypeAlias = Callable[[float, np.random.Generator], Iterator[Chunk]]
"""A pass over the rows that gives this share of them, drawn at random."""
Training: TypeAlias = Callable[[], Networks]


@dataclass(frozen=True, kw_only=True)
class StreamedRows:
    """All rows of a fit whose `Problem` has no more than a sample."""

    read: Read
    n_rows: int
    folds: NDArray[np.intp]
    """Of the sample."""
    fold_weights: NDArray[np.float64]
    """(F + 1,): total weight of each fold; the last is of rows that no network holds out."""
    run: Callable[[Sequence[Training]], list[Networks]] | None = None
    """Trainings on a cluster; None for threads."""


def streamed_minibatches(
    read: Read,
    n_rows: int,
    needed: int,
    view: View,
    warp: Warp | None,
    size: int,
    seed: int,
    held_out: NDArray[np.integer] | None,
) -> Iterator[Batch]:
    """Endless minibatches of rows drawn from all passes, shuffled within buffers.

    A pass of `n_rows` gives no more rows than the training needs, so that they come from everywhere
    in the source. The `view` is what networks see, the `warp` that of the targets, and `held_out`
    (R,) the fold that each network holds out.
    """
    rng = np.random.default_rng(seed)
    # Four standard deviations more than needed, so that a second pass is hardly ever begun.
    share = min(1.0, (needed + 4.0 * np.sqrt(needed)) / n_rows)
    while True:
        for inputs, targets, weights, folds in mixed(read(share, rng), rng):
            goals: NDArray = targets if warp is None else forward(warp, targets)
            goals, weights = goals.astype(np.float32), weights.astype(np.float32)
            # Pieces of 32 minibatches together: fast products, little memory.
            for part in slices(len(inputs), 32 * size):
                seen = with_ones(see(view, inputs[part].astype(np.float64)))
                for begin in range(0, len(seen) - size + 1, size):
                    rows = slice(part.start + begin, part.start + begin + size)
                    row_weights: Single = weights[None, rows]
                    if held_out is not None:
                        row_weights = row_weights * (folds[rows] != held_out[:, None])
                    yield seen[begin : begin + size], goals[rows], row_weights
