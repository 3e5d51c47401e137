"""Dask tables as a source of rows, checked where they are computed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bowtienet.data.blocks import BLOCK_ROWS, Source, check_block, check_unique
from bowtienet.data.rows import Rows, split
from bowtienet.estimators.cluster.link import library


def is_dask(values: Any) -> bool:
    """Whether `values` is a table or an array of Dask."""
    return type(values).__module__.split(".")[0] in ("dask", "dask_expr")


def partitions(source: DaskSource) -> list[Any]:
    """Delayed `Rows` of each partition in the user's units, checked where they are computed."""
    return list(source.parts)


class DaskSource(Source):
    """Rows of a Dask table; a piece is a partition, and messages count partitions from 0.

    Parameters
    ----------
    X : dask.array.Array (rows, columns) or dask.dataframe.DataFrame
        Lengths of chunks and partitions need not be known.
    y : name, list of names, Dask table or array, or array; optional
        The targets: names of columns if `X` is a data frame, or what has the same partitions as
        `X`, or an array in memory if the lengths of those are known.
    weights : name, Dask table or array, or array; optional
        How many times each row counts, in the same way; 1 by default.
    inputs : list of names, optional
        The columns of a data frame that are inputs; by default all others.
    """

    def __init__(
        self, X: Any, y: Any = None, weights: Any = None, *, inputs: Sequence[str] | None = None
    ) -> None:
        if hasattr(X, "columns"):
            X, names = _chosen(X, y, weights, inputs)
        else:
            X, names = _one_column_chunk(X), _Names()
        self.n_inputs = int(X.shape[1]) if names.inputs is None else len(names.inputs)
        if self.n_inputs == 0:
            raise ValueError("X has no columns left for inputs: give more columns.")
        y, weights = None if names.targets else y, None if names.weights else weights
        self.input_names = names.inputs
        self.target_names = names.targets or _column_names(y)
        self.n_targets = len(names.targets or ()) or _n_columns(y, "y", (1, 2))
        self.single_target = names.single or (y is not None and y.ndim == 1)
        _n_columns(weights, "weights", (1,))
        tables = [_delayed(X), _beside(X, y, "y"), _beside(X, weights, "weights")]
        names = replace(names, labels=self.target_names)
        build = library("dask").delayed(partial(_build, names), pure=False, traverse=False)
        self.parts = [
            build(number, *parts) for number, parts in enumerate(zip(*tables, strict=True))
        ]
        self.n_pieces = len(self.parts)

    def read(self, piece: int) -> Iterator[Rows]:
        """The rows of a partition, computed anew."""
        yield from split(self.parts[piece].compute(), BLOCK_ROWS)

    def check_unchanged(self) -> None:
        """Dask has no means to tell; that partitions agree in length is checked while reading."""


@dataclass(frozen=True, kw_only=True)
class _Names:
    """Names of the columns of a data frame that are used, None for an array."""

    inputs: tuple[str, ...] | None = None
    targets: tuple[str, ...] | None = None
    weights: str | None = None
    single: bool = False
    """Whether the target was given as one name."""
    labels: tuple[str, ...] | None = None
    """What messages call the targets."""


def _chosen(X: Any, y: Any, weights: Any, inputs: Sequence[str] | None) -> tuple[Any, _Names]:
    """The columns of a data frame that are used, and what for."""
    known = {str(label): label for label in X.columns}
    check_unique([str(label) for label in X.columns], "X")
    targets = (y,) if isinstance(y, str) else tuple(y) if _is_names(y) else ()
    weight = (weights,) if isinstance(weights, str) else ()
    others = tuple(name for name in known if name not in (*targets, *weight))
    chosen = others if inputs is None else tuple(inputs)
    for purpose, names in (("y", targets), ("weights", weight), ("inputs", chosen)):
        for name in names:
            if name not in known:
                shown = ", ".join(map(repr, list(known)[:10])) + ", ..." * (len(known) > 10)
                raise ValueError(
                    f"X has no column {name!r}, which {purpose} names: its columns are {shown}."
                )
    used = (*chosen, *targets, *weight)
    check_unique(used, "the choice of inputs, y and weights")
    X = X[[known[name] for name in used]]
    _check_types(X)
    return X, _Names(
        inputs=chosen,
        targets=targets or None,
        weights=weight[0] if weight else None,
        single=isinstance(y, str),
    )


def _is_names(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(name, str) for name in values)


def _check_types(frame: Any) -> None:
    """Refuse columns that cannot hold numbers; Python objects are looked at when they are there."""
    types = importlib.import_module("pandas").api.types
    bad = [
        f"{str(label)!r} ({dtype})"
        for label, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if dtype != np.dtype(object)
        and (not types.is_numeric_dtype(dtype) or types.is_complex_dtype(dtype))
    ]
    if bad:
        raise ValueError(
            f"X must hold numbers, but these columns do not: {', '.join(bad)}; encode them as "
            "numbers first, or leave them out."
        )


def _one_column_chunk(X: Any) -> Any:
    """A Dask array (rows, columns) whose chunks have all columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (rows, columns), got {tuple(X.shape)}: reshape it."
        )
    _check_dtype(X, "X")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _check_dtype(values: Any, name: str) -> None:
    if values.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be an array of real numbers, got dtype {values.dtype}: convert or "
            "encode it first."
        )


def _n_columns(values: Any, name: str, ranks: tuple[int, ...]) -> int:
    """Columns of targets or weights that are a table of their own; 0 for None."""
    if values is None:
        return 0
    if not hasattr(values, "ndim"):
        raise ValueError(
            f"{name} must be an array or a Dask table, or name columns if X is a data frame, got "
            f"{type(values).__name__}."
        )
    if values.ndim not in ranks:
        wanted = "(rows,)" + " or (rows, outputs)" * (2 in ranks)
        raise ValueError(f"{name} must have shape {wanted}, got {values.ndim} dimensions.")
    return 1 if values.ndim == 1 else int(values.shape[1])


def _column_names(values: Any) -> tuple[str, ...] | None:
    """Names of the columns of a Dask data frame or series, None if they have none."""
    if hasattr(values, "columns") and values.ndim == 2:
        return tuple(map(str, values.columns))
    name = getattr(values, "name", None)
    return (str(name),) if _is_frame(values) and name is not None else None


def _is_frame(values: Any) -> bool:
    return hasattr(values, "npartitions") and not hasattr(values, "chunks")


def _beside(X: Any, values: Any, name: str) -> list[Any]:
    """Partitions of targets or weights to go with those of `X`."""
    n_parts = X.npartitions
    if values is None:
        return [None] * n_parts
    lengths = None if _is_frame(X) else X.chunks[0]
    known = lengths is not None and not np.isnan(lengths).any()
    if not is_dask(values):
        return _cut(np.asarray(values), lengths if known else None, name)
    if not _is_frame(values):
        _check_dtype(values, name)
        if known and not np.isnan(values.chunks[0]).any():
            _check_lengths(values.shape[0], sum(lengths or ()), name)
            values = values.rechunk({0: lengths})
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
    if values.npartitions != n_parts:
        raise ValueError(
            f"{name} has {values.npartitions} partitions, but X has {n_parts}: give both the same, "
            "for example as columns of one Dask table."
        )
    return _delayed(values)


def _cut(values: np.ndarray, lengths: Sequence[int] | None, name: str) -> list[np.ndarray]:
    """An array in memory cut like `X`."""
    if lengths is None:
        raise ValueError(
            f"{name} is an array in memory, but the lengths of the partitions of X are not known: "
            "give the name of a column, or a Dask array with the same partitions."
        )
    _check_dtype(values, name)
    _check_lengths(values.shape[0], sum(lengths), name)
    return np.split(values, np.cumsum(lengths)[:-1])


def _check_lengths(found: int, wanted: int, name: str, where: str = "") -> None:
    if found != wanted:
        raise ValueError(
            f"{where}{name} has {found} rows, but X has {wanted}: the numbers must be equal."
        )


def _delayed(values: Any) -> list[Any]:
    """The partitions of a Dask collection."""
    return list(np.ravel(values.to_delayed()))


def _build(names: _Names, number: int, X: Any, y: Any, weights: Any) -> Rows:
    """Checked rows of a partition."""
    where = f"partition {number}"
    if names.inputs is not None:
        # By place: labels may be of any type, names are text.
        n_inputs, n_targets = len(names.inputs), len(names.targets or ())
        y = X.iloc[:, n_inputs : n_inputs + n_targets] if n_targets else y
        weights = X.iloc[:, n_inputs + n_targets] if names.weights else weights
        X = X.iloc[:, :n_inputs]
    n_rows = len(X)
    for values, name in ((y, "y"), (weights, "weights")):
        if values is not None:
            _check_lengths(len(values), n_rows, name, f"{where}: ")
    targets = np.empty((n_rows, 0)) if y is None else _floats(y, where)
    rows = Rows(
        inputs=_floats(X, where),
        targets=targets if targets.ndim == 2 else targets[:, None],
        weights=np.ones(n_rows) if weights is None else _floats(weights, where),
    )
    return check_block(rows, where, names.inputs, names.labels)


def _floats(values: Any, where: str) -> np.ndarray:
    """A table or column of a partition in double precision; missing values become NaN."""
    if hasattr(values, "columns"):
        found = np.empty(values.shape)
        for index in range(values.shape[1]):
            found[:, index] = _floats(values.iloc[:, index], where)
        return found
    if not hasattr(values, "iloc"):
        return np.asarray(values, dtype=np.float64)
    try:
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where}: column {str(values.name)!r} must hold numbers ({error}): encode it first."
        ) from None
