"""Batches as a source of rows: a list of them, or an object that gives them anew at each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from numbers import Number
from typing import Any

import numpy as np

from bowtienet._old.data.source import BLOCK_ROWS, Source, read_part, read_part_classes
from bowtienet._old.data.tables import Block, Layout, is_names, split_block
from bowtienet._old.data.targets import NUMBERS, Reading

_FORM = "(X, y) or (X, y, weights), or X alone to predict"
_TABLE_LIKE = ("shape", "dtype", "columns", "__array__", "__dataframe__", "__arrow_c_stream__")


class BatchSource(Source):
    """Rows of batches, each (X, y) or (X, y, weights), or X alone; messages count them from 0.

    Batches are a list, or an object whose ``__iter__`` starts anew each time and gives the same
    rows in the same order; those without rows are passed over. `y`, `sample_weight` and `exposure`
    are names of columns of batches that are frames. ``with_targets=False`` passes over targets and
    weights.
    """

    n_pieces = 1

    def __init__(
        self,
        batches: Iterable[Any],
        y: Any = None,
        sample_weight: Any = None,
        *,
        features: Sequence[str] | None = None,
        exposure: str | None = None,
        reading: Reading = NUMBERS,
        with_targets: bool = True,
    ) -> None:
        first = iter(batches)
        if first is batches or first is iter(batches):
            raise ValueError(
                f"X is of type {type(batches).__name__}, which can be read only once, but rows are "
                "read several times: give a list of batches, or an object of a class whose "
                "__iter__ starts anew."
            )
        self._batches = batches
        self._names = (y, sample_weight)
        self._features, self._exposure, self.reading = features, exposure, reading
        self._with_targets = with_targets
        found = next(self._blocks(first), None)
        if found is None:
            raise ValueError(f"X gave 0 sample(s): let it give batches {_FORM}.")
        self._layout = found[2]
        self.set_layout(self._layout)

    def read(self, piece: int) -> Iterator[Block]:
        """All batches from the beginning, cut where they are longer than a block."""
        for where, block, layout in self._blocks(iter(self._batches)):
            _compare(layout, self._layout, where)
            yield from split_block(block, BLOCK_ROWS)

    def part_classes(self) -> Iterator[np.ndarray]:
        """Classes of each batch."""
        for where, X, y, _ in self._with_rows(iter(self._batches)):
            yield read_part_classes(where, X, y)

    def _blocks(self, batches: Iterator[Any]) -> Iterator[tuple[str, Block, Layout]]:
        """Name, rows and layout of the batches that have rows."""
        settings = {"features": self._features, "exposure": self._exposure, "reading": self.reading}
        for where, X, y, weights in self._with_rows(batches):
            yield where, *read_part(where, X, y, weights, **settings)

    def _with_rows(self, batches: Iterator[Any]) -> Iterator[tuple[str, Any, Any, Any]]:
        """Name, X, y and weights of the batches that have rows."""
        for number, batch in enumerate(batches):
            where = f"batch {number}"
            X, y, weights = _parts(batch, where, self._names)
            if not self._with_targets:
                y = weights = None
            if _length(X) > 0 or _length(y) > 0:
                yield where, X, y, weights


def gives_batches(X: Any) -> bool:
    """Whether `X` gives batches rather than being a table itself."""
    if isinstance(X, (list, tuple)):
        if not X or not isinstance(X[0], (list, tuple)):
            return len(X) > 0 and _is_table(X[0])
        return len(X[0]) > 0 and _is_table(X[0][0])
    if isinstance(X, (str, bytes, range, Mapping, Set, type)):
        return False
    return hasattr(X, "__iter__") and not any(hasattr(X, name) for name in _TABLE_LIKE)


def _compare(found: Layout, first: Layout, where: str) -> None:
    """Raise if a batch is not laid out as the first one."""
    for field in fields(Layout):
        now, before = getattr(found, field.name), getattr(first, field.name)
        if field.compare and now != before:
            raise ValueError(
                f"{where} has {field.name} = {now!r}, but the first one has {before!r}: let all "
                "batches have the same columns in one order."
            )


def _parts(batch: Any, where: str, names: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """X, y and weights of a batch."""
    if not isinstance(batch, (list, tuple)):
        if not _is_table(batch):
            raise ValueError(f"{where} is of type {type(batch).__name__}: let it be {_FORM}.")
        return batch, *names
    if not 1 <= len(batch) <= 3:
        raise ValueError(f"{where} has {len(batch)} parts: let it be {_FORM}.")
    return (*batch, *names[len(batch) - 1 :]) if len(batch) < 3 else tuple(batch)


def _length(values: Any) -> int:
    """Number of rows; 1 of a lone number, whose reading says what is wrong with it."""
    if values is None or is_names(values):
        return 0
    shape = getattr(values, "shape", None)
    if shape is None:
        return len(values) if hasattr(values, "__len__") else 1
    return int(shape[0]) if len(shape) > 0 else 1


def _is_table(values: Any) -> bool:
    """Whether `values` has rows and columns: an array, a frame, or rows of values in lists."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return len(shape) == 2
    if not isinstance(values, (list, tuple)) or not values:
        return False
    row = values[0]
    return isinstance(row, (list, tuple)) and len(row) > 0 and isinstance(row[0], (Number, str))
