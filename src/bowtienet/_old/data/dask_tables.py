"""Dask arrays and data frames as a source of rows, checked where they are computed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self

import narwhals as nw
import numpy as np

from bowtienet._old.data.labels import names_or_labels
from bowtienet._old.data.parsing import check_lengths, check_rank, check_unique, text_names
from bowtienet._old.data.source import BLOCK_ROWS, Source, read_part, read_part_classes
from bowtienet._old.data.tables import (
    Block,
    Layout,
    Table,
    choose_columns,
    is_names,
    names_of,
    split_block,
)
from bowtienet._old.data.targets import NUMBERS, Reading


class DaskSource(Source):
    """Rows of a Dask table; a piece is a partition, and messages count partitions from 0.

    Lengths of chunks and partitions need not be known. Targets, weights and exposures are names of
    columns of a data frame, or what has the same partitions as X, or arrays in memory if the
    lengths of those are known.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        features: Sequence[str] | None = None,
        exposure: Any = None,
        reading: Reading = NUMBERS,
    ) -> None:
        if reading.target == "label":
            y = names_or_labels(y, getattr(X, "columns", ()))
        X, layout = _chosen(X, y, sample_weight, features, exposure, reading)
        self.set_layout(layout)
        given = {"y": y, "sample_weight": sample_weight, "exposure": exposure}
        self._layout, self.reading = layout, reading
        self._tables = [_delayed(X), *(_beside(X, values, name) for name, values in given.items())]
        if reading.target == "label" and is_names(y):
            # Dask then reads the one column, if it can.
            self._labels = [_delayed(X[list(names_of(y))]), self._tables[1]]
        else:
            self._labels = [[None] * X.npartitions, self._tables[1]]
        self._build()

    def partitions(self) -> list[Any]:
        """For each partition a Dask Delayed of its rows, one checked `Block`."""
        return list(self._parts)

    def read(self, piece: int) -> Iterator[Block]:
        """The rows of a partition, computed anew."""
        block = self._parts[piece].compute()
        if block.table.n_rows > 0:
            yield from split_block(block, BLOCK_ROWS)

    def part_classes(self) -> Iterator[np.ndarray]:
        """Classes of each partition, computed together."""
        dask = importlib.import_module("dask")
        find = dask.delayed(_classes, pure=False, traverse=False)
        parts = zip(*self._labels, strict=True)
        found = dask.compute(*(find(number, *part) for number, part in enumerate(parts)))
        return (classes for classes in found if classes is not None)

    def with_classes(self, classes: np.ndarray) -> Self:
        """The same rows, with labels coded by these classes."""
        other = super().with_classes(classes)
        other._build()
        return other

    def _build(self) -> None:
        build = importlib.import_module("dask").delayed(_build, pure=False, traverse=False)
        parts = zip(*self._tables, strict=True)
        self._parts = [
            build(number, self._layout, self.reading, *part) for number, part in enumerate(parts)
        ]
        self.n_pieces = len(self._parts)


def is_dask(values: Any) -> bool:
    """Whether `values` is an array or a data frame of Dask."""
    arrays = sys.modules.get("dask.array")
    is_array = arrays is not None and isinstance(values, arrays.Array)
    return is_array or nw.dependencies.is_dask_dataframe(values)


def _chosen(
    X: Any,
    y: Any,
    sample_weight: Any,
    features: Sequence[str] | None,
    exposure: Any,
    reading: Reading,
) -> tuple[Any, Layout]:
    """The columns of `X` that are used, and what is known of them before they are read."""
    names = None
    if hasattr(X, "columns"):
        check_unique(list(X.columns), "X")
        names = text_names(list(X.columns))
    elif X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    check_rank(X.shape, "X")
    n_features = int(X.shape[1])
    if names is not None:
        y_name, weight, exposed = (
            values if is_names(values) else None for values in (y, sample_weight, exposure)
        )
        chosen = choose_columns(names, y_name, weight, features, exposed)
        X, names, n_features = X[list(chosen.all)], chosen.features, len(chosen.features)
    layout = Layout(
        feature_names=names,
        n_features=n_features,
        target_names=_target_names(y),
        n_targets=_n_targets(y),
        single_target=isinstance(y, str) or getattr(y, "ndim", 2) == 1,
        has_exposure=reading.target == "count" or exposure is not None,
    )
    if n_features == 0:
        raise ValueError("X has 0 feature(s) while a minimum of 1 is required.")
    return X, layout


def _n_targets(y: Any) -> int:
    if y is None or is_names(y):
        return len(names_of(y))
    check_rank(np.shape(y) if not hasattr(y, "ndim") else (0,) * y.ndim, "y")
    return int(y.shape[1]) if getattr(y, "ndim", 1) == 2 else 1


def _target_names(y: Any) -> tuple[str, ...] | None:
    if hasattr(y, "columns"):
        return tuple(str(label) for label in y.columns)
    name = getattr(y, "name", None) if _is_frame(y) else None
    return names_of(y) or (None if name is None else (str(name),))


def _is_frame(values: Any) -> bool:
    """Whether `values` is a data frame or series rather than an array of Dask."""
    return hasattr(values, "npartitions") and not hasattr(values, "chunks")


def _beside(X: Any, values: Any, name: str) -> list[Any]:
    """Partitions of targets or weights to go with those of `X`; names are the same for all."""
    if values is None or (is_names(values) and hasattr(X, "columns")):
        return [values] * X.npartitions
    known = not _is_frame(X) and not np.isnan(X.chunks[0]).any()
    if not hasattr(values, "npartitions"):
        if not known:
            raise ValueError(
                f"{name} is an array in memory, but the lengths of the partitions of X are not "
                "known: give the name of a column, or a Dask array with the same partitions."
            )
        values = importlib.import_module("dask.array").asarray(values)
    if not _is_frame(values):
        if known and not np.isnan(values.chunks[0]).any():
            check_lengths(values.shape[0], X.shape[0], name)
            values = values.rechunk({0: X.chunks[0]})
        values = values.rechunk({1: -1}) if values.ndim == 2 else values
    if values.npartitions != X.npartitions:
        raise ValueError(
            f"{name} has {values.npartitions} partitions, but X has {X.npartitions}: give both the "
            "same, for example as columns of one Dask table."
        )
    return _delayed(values)


def _delayed(values: Any) -> list[Any]:
    """The partitions of a Dask collection."""
    return list(np.ravel(values.to_delayed()))


def _build(
    number: int,
    layout: Layout,
    reading: Reading,
    X: Any,
    y: Any,
    sample_weight: Any,
    exposure: Any,
) -> Block:
    """Checked rows of a partition, which may have none."""
    if len(X) > 0:
        settings = {"exposure": exposure, "reading": reading}
        return read_part(f"partition {number}", X, y, sample_weight, **settings)[0]
    table = Table(
        n_rows=0,
        n_columns=layout.n_features,
        names=layout.feature_names,
        matrix=np.empty((0, layout.n_features)),
        columns=None,
    )
    n_columns = layout.n_targets + layout.has_exposure
    return Block(table=table, targets=np.empty((0, n_columns)), weights=np.empty(0))


def _classes(number: int, X: Any, y: Any) -> np.ndarray | None:
    """Classes of a partition; None if it has no rows."""
    if len(y if X is None else X) == 0:
        return None
    return read_part_classes(f"partition {number}", X, y)
