"""Tables and sources for the tests, without the readers of `bowtienet.data`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from bowtienet._arrays import Array, to_numpy
from bowtienet.data.source import Source
from bowtienet.data.tables import Block, Table
from bowtienet.representation.columns import Column, encode, encoded_names
from bowtienet.representation.facts import gather_facts
from bowtienet.representation.learning import decide


def matrix_table(matrix: Array) -> Table:
    n_rows, n_columns = matrix.shape
    return Table(n_rows=n_rows, n_columns=n_columns, names=None, matrix=matrix, columns=None)


def as_table(given: Any) -> Table:
    """A frame or an array as columns of what it holds; floats as a matrix."""
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "f":
            return matrix_table(given)
        columns: tuple[Any, ...] = tuple(given.T)
        return Table(
            n_rows=len(given), n_columns=len(columns), names=None, matrix=None, columns=columns
        )
    frame = nw.from_native(given, eager_only=True)
    columns = tuple(frame.get_column(name) for name in frame.columns)
    return Table(
        n_rows=len(frame),
        n_columns=len(columns),
        names=tuple(frame.columns),
        matrix=None,
        columns=columns,
    )


def learn(given: Any, max_categories: int = 100) -> tuple[Column, ...]:
    return decide(gather_facts(as_table(given)), max_categories)


def encoded(columns: Sequence[Column], given: Any) -> dict[str, list[float]]:
    """Encoded columns by name; there must be nothing to warn of."""
    values, surprises = encode(columns, as_table(given))
    assert surprises == []
    assert np.isfinite(to_numpy(values)).all()
    return dict(zip(encoded_names(columns), to_numpy(values).T.tolist(), strict=True))


def learnt_and_encoded(given: Any) -> dict[str, list[float]]:
    return encoded(learn(given), given)


def one(values: Any, *, like: Any = None) -> dict[str, list[float]]:
    """A single pandas column `x`, encoded as one that was learnt from `like`."""
    columns = learn(pd.DataFrame({"x": values if like is None else like}))
    return encoded(columns, pd.DataFrame({"x": values}))


class ListSource(Source):
    """Blocks that are in a list, each of them a piece."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.feature_names, self.target_names = blocks[0].table.names, None
        self.n_features, self.n_targets = blocks[0].table.n_columns, blocks[0].targets.shape[1]
        self.single_target, self.n_pieces = True, len(blocks)

    def read(self, piece: int) -> Iterator[Block]:
        yield self.blocks[piece]

    def check_unchanged(self) -> None:
        pass


def block_of(given: Any, weights: Any = None) -> Block:
    table = as_table(given)
    weights = np.ones(table.n_rows) if weights is None else np.asarray(weights, dtype=float)
    targets = np.arange(float(table.n_rows))[:, None]
    return Block(table=table, targets=targets, weights=weights)
