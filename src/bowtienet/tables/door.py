"""The only checks of what users give: tables, targets and row weights.

What leaves this module is right: finite numbers where numbers must be, equal lengths, weights that
are positive. Inside, nothing is checked again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from os import PathLike
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from bowtienet._format import count
from bowtienet.tables.texts import (
    NUMBER,
    TRUTH,
    Hints,
    distinct_cells,
    is_missing,
    learn_reading,
    read_cells,
    settled,
)

Floats = NDArray[np.float64]

MOST_BYTES = 2e9
"""Of a sparse array made dense."""
SHOWN = 10
"""Problems that a refusal lists."""
NO_HINTS = Hints()
ATTRIBUTE = "bowtienet"
"""Under which a frame of `read_table` carries what was said and noticed of its file."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The columns of n rows: a matrix of numbers, or an array for each column."""

    names: tuple[str, ...]
    matrix: Floats | None
    """(n, columns); missing numbers are NaN. None for a table with anything else."""
    columns: tuple[NDArray[Any], ...]
    """(n,) of each column where there is no matrix: texts that may be anything are objects, and
    texts that the user declared categories are of NumPy's type of texts."""
    n_rows: int
    hints: Hints = NO_HINTS
    precision: str = "float64"
    """Of the numbers as they came, "float32" if all of them fit into that."""


@dataclass(frozen=True, kw_only=True)
class TrainingTable:
    """Rows of a fit, without those of weight zero."""

    table: Table
    targets: NDArray[Any]
    """(n, targets) numbers, or (n,) labels."""
    weights: Floats
    exposure: Floats | None
    """Of counts."""
    target_names: tuple[str, ...]
    is_single: bool
    """Whether targets came as one column, so that predictions go as one."""
    is_labels: bool
    """Whether targets are labels of classes."""
    notes: tuple[str, ...]
    """What was noticed of the file and of rows left out."""


def open_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    exposure: Any = None,
    *,
    labels: bool = False,
    reset: bool = True,
) -> TrainingTable:
    """The rows of a fit; `estimator` learns scikit-learn's attributes of the columns.

    Parameters
    ----------
    estimator : estimator
        For `n_features_in_` and `feature_names_in_`.
    X, y : table and targets
        An array or a frame of any library; targets may be names of columns of the frame.
    sample_weight : array (n,) or name, optional
        Non-negative weights; rows of weight 0 are as good as absent.
    exposure : array (n,), optional
        Positive exposures of counts.
    labels : bool
        Whether targets are labels of classes, one column of anything.
    reset : bool
        Whether these are the first rows; further ones must have the columns of the first.
    """
    _refuse_others(X)
    X, y, target_names = separate(X, y)
    if isinstance(sample_weight, str):
        X, sample_weight, _ = separate(X, sample_weight)
    table = open_features(estimator, X, reset=reset)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    y = values_of(y)
    targets = _labels(y) if labels else numeric_targets(y, table)
    check_consistent_length(X, targets)
    weights = _row_weights(sample_weight, table.n_rows)
    if exposure is not None:
        exposure = exposure_of(exposure, table.n_rows)
    known = _known_targets(targets)
    notes = (*notes_of(X), *_note_of_unknown(known, weights))
    present = known & (weights > 0.0)
    is_single = targets.ndim == 1
    if not labels:
        targets = targets.reshape(len(targets), -1)
    if not present.all():
        table, targets, weights = take(table, present), targets[present], weights[present]
        exposure = None if exposure is None else exposure[present]
    return TrainingTable(
        table=table,
        targets=targets,
        weights=weights,
        exposure=exposure,
        target_names=target_names or _default_names(1 if labels else targets.shape[1]),
        is_single=is_single,
        is_labels=labels,
        notes=notes,
    )


def open_known(estimator: Any, X: Any) -> Table:
    """New rows with the columns of the fit; other columns of the targets' names are left out."""
    if isinstance(X, Table):
        return X
    _refuse_others(X)
    frame = frame_of(X)
    names = getattr(estimator, "_target_names", ())
    if frame is not None:
        # A target given apart may have the name of a feature.
        features = getattr(estimator, "feature_names_in_", ())
        extra = [name for name in names if name in frame.columns and name not in features]
        X = frame.drop(extra).to_native() if extra else X
    return open_features(estimator, X, reset=False)


def open_features(estimator: Any, X: Any, *, reset: bool) -> Table:
    """A table; a float array that is ready is not copied."""
    if issparse(X):
        X = _dense(X)
    frame = frame_of(X)
    hints = hints_of(X)
    if frame is not None:
        frame = frame if reset else _in_order(estimator, frame)
        validate_data(estimator, frame.to_native(), skip_check_array=True, reset=reset)
        if not frame.shape[0] or not frame.shape[1]:
            raise ValueError(
                f"Found array with {frame.shape[0]} sample(s) and {frame.shape[1]} feature(s) "
                f"(shape={frame.shape}) while a minimum of 1 is required."
            )
        names = tuple(map(str, frame.columns))
        columns = tuple(_column(series) for series in frame.iter_columns())
    else:
        array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        names = tuple(f"x{i}" for i in range(array.shape[1]))
        if array.dtype.kind in "fiub":
            matrix = array.astype(np.float64, copy=False)
            return Table(
                names=names,
                matrix=matrix,
                columns=(),
                n_rows=len(matrix),
                precision=_precision((array,)),
            )
        columns = tuple(array.astype(object).T if array.dtype.kind in "US" else array.T)
    _refuse_infinite(columns, names)
    precision, matrix = _precision(columns), None
    if all(column.dtype.kind in "fiub" for column in columns):
        matrix = np.column_stack(columns).astype(np.float64, copy=False)
    return Table(
        names=names,
        matrix=matrix,
        columns=columns if matrix is None else (),
        n_rows=len(columns[0]),
        hints=hints,
        precision=precision,
    )


def take(table: Table, rows: NDArray[Any]) -> Table:
    """Some of the rows."""
    return replace(
        table,
        matrix=None if table.matrix is None else table.matrix[rows],
        columns=tuple(column[rows] for column in table.columns),
        n_rows=int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows),
    )


def refuse(problems: Sequence[str]) -> None:
    """Raise one ValueError with all problems, or the first of many."""
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        lines = [f"- {problem}" for problem in problems[:SHOWN]]
        if len(problems) > SHOWN:
            lines.append(f"- and {len(problems) - SHOWN:,} more like these.")
        raise ValueError("\n".join([f"the table has {len(problems):,} problems:", *lines]))


def _precision(columns: Sequence[NDArray[Any]]) -> str:
    """Type that holds all numbers of columns; those in objects are double."""
    kinds = [column.dtype for column in columns if column.dtype.kind in "fiub"]
    single = bool(kinds) and np.result_type(*kinds) in (np.float16, np.float32)
    return "float32" if single else "float64"


def frame_of(X: Any) -> Any:
    """X as a narwhals frame, or None if it is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def hints_of(X: Any) -> Hints:
    """What was said when a file was read."""
    about = getattr(X, "attrs", {}).get(ATTRIBUTE, {})
    return Hints(
        missing_values=tuple(about.get("missing_values", ())),
        day_first=about.get("day_first"),
        decimal=about.get("decimal"),
    )


def notes_of(X: Any) -> tuple[str, ...]:
    """What was noticed when a file was read."""
    return tuple(getattr(X, "attrs", {}).get(ATTRIBUTE, {}).get("notes", ()))


def _in_order(estimator: Any, frame: Any) -> Any:
    """A frame with texts, categories or dates by the names of the fit, in any order.

    Frames of numbers alone keep scikit-learn's contract, which refuses another order by name.
    """
    names = list(getattr(estimator, "feature_names_in_", ()))
    if frame.columns == names or sorted(frame.columns, key=str) != sorted(names, key=str):
        return frame
    if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        return frame
    return frame.select(names)


def _dense(X: Any) -> NDArray[Any]:
    """A sparse array with its zeros."""
    size = 8.0 * X.shape[0] * X.shape[1]
    if size > MOST_BYTES:
        raise ValueError(
            f"X is sparse, and with its zeros would take {size / 1e9:.1f} GB: put a "
            "TruncatedSVD(n_components=100) or SelectKBest before the model in a Pipeline."
        )
    return np.asarray(X.toarray())


def _refuse_others(X: Any) -> None:
    """Arrays of all libraries have `__array__`."""
    in_memory = hasattr(X, "__array__") or hasattr(X, "toarray") or frame_of(X) is not None
    if isinstance(X, (str, PathLike)) or not (in_memory or isinstance(X, Sequence)) or _is_lazy(X):
        raise ValueError(
            f"X must be an array or a frame here, got {type(X).__name__}: load the rows into a "
            "frame (read_table, compute, collect). fit and predict also read files, pyarrow "
            "datasets, Dask collections and batches."
        )


def _is_lazy(X: Any) -> bool:
    return isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)


def separate(X: Any, y: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Features and targets, where targets may be names of columns."""
    names = [y] if isinstance(y, str) else y
    is_names = isinstance(names, (list, tuple)) and names and all(isinstance(n, str) for n in names)
    frame = frame_of(X)
    if not is_names or (frame is None and not isinstance(y, str)):
        return X, y, _names_of(y)
    if frame is None:
        raise ValueError(f"the column {y!r} has a name, but X is no frame: give the values.")
    absent = [name for name in names if name not in frame.columns]
    if absent and len(names) == len(frame) and not isinstance(y, str):
        return X, y, ()  # labels of the rows, not names
    if absent:
        known = ", ".join(map(repr, frame.columns[:10]))
        raise ValueError(f"the table has no column {absent[0]!r}: it has {known}.")
    targets = frame.select(names).to_native() if len(names) > 1 else frame[names[0]].to_native()
    return frame.drop(list(names)).to_native(), targets, tuple(names)


def _names_of(y: Any) -> tuple[str, ...]:
    frame = frame_of(y)
    if frame is not None:
        return tuple(map(str, frame.columns))
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) and name else ()


def values_of(y: Any) -> Any:
    """Values of a frame or series of any library; anything else as it is."""
    frame = frame_of(y)
    if frame is not None:
        return frame.to_numpy()
    series = nw.from_native(y, series_only=True, pass_through=True)
    return series.to_numpy() if isinstance(series, nw.Series) else y


def _column(series: Any) -> NDArray[Any]:
    """Values of a column of a frame: floats, dates, or objects with None where missing."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = np.asarray(series.to_numpy())
        if values.dtype.kind in "fiub":
            return values
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if dtype == nw.Datetime:
        if dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(series.to_numpy(), dtype="datetime64[us]")
    if dtype == nw.Date:
        return np.asarray(series.cast(nw.Datetime("us")).to_numpy(), dtype="datetime64[us]")
    if dtype == nw.Duration:
        return np.asarray(series.to_numpy(), dtype="timedelta64[us]")
    if dtype in (nw.Categorical, nw.Enum):
        # Also where the levels are numbers.
        levels = series.cast(nw.String).to_list()
        return np.array([v if isinstance(v, str) else "" for v in levels], dtype=str)
    cells = series.to_list()
    if dtype == nw.String:
        cells = [cell if isinstance(cell, str) else None for cell in cells]
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def _default_names(count: int) -> tuple[str, ...]:
    return ("y",) if count == 1 else tuple(f"y{i}" for i in range(count))


def _labels(y: Any) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise ValueError(f"y must have one label for each row, got shape {labels.shape}.")
    if labels.dtype.kind == "f":
        check_array(labels, ensure_2d=False, input_name="y", ensure_all_finite="allow-nan")
    return labels


def numeric_targets(y: Any, table: Table) -> Floats:
    """Targets (n,) or (n, targets) as floats; NaN where one is missing."""
    values = np.asarray(y)
    if values.dtype.kind in "OU" and values.size:
        read = [_read_target(column, table) for column in values.reshape(len(values), -1).T]
        y = np.column_stack(read).reshape(values.shape)
    targets = check_array(
        y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_all_finite="allow-nan"
    )
    if targets.ndim > 2:
        raise ValueError(f"y must have one or two axes, got shape {targets.shape}.")
    return np.asarray(targets)


def _read_target(values: NDArray[Any], table: Table) -> Floats:
    cells, each, hints = distinct_cells(values.astype(object)), np.ones(len(values)), table.hints
    reading = learn_reading(cells, each, hints)
    if reading.doubt:
        texts = [distinct_cells(column) for column in table.columns if column.dtype.kind == "O"]
        hints = settled(hints, [learn_reading(text, each, hints) for text in texts])
        reading = learn_reading(cells, each, hints)
    numbers, unread = read_cells(cells, reading, hints)
    is_number = reading.kind == NUMBER and reading.style != TRUTH
    if unread or (cells.values and not is_number):
        example = (unread or cells.values)[0]
        raise ValueError(
            f"y must be numbers, got {example!r}: a classifier takes labels, and missing_values "
            "of read_table names what is missing."
        )
    return np.append(numbers.astype(float), np.nan)[cells.place]


def _note_of_unknown(known: NDArray[np.bool_], weights: Floats) -> tuple[str, ...]:
    """Rows without a target are left out with a warning, which is a note as well."""
    if not np.any(known & (weights > 0.0)):
        raise ValueError("Input y contains NaN only: no row has a target.")
    if known.all():
        return ()
    note = f"{count(int(np.count_nonzero(~known)), 'row')} without a target left out."
    warnings.warn(note, UserWarning, stacklevel=4)
    return (note,)


def _known_targets(targets: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows (n,) that have all targets."""
    if targets.dtype.kind == "f":
        return np.asarray(np.isfinite(targets.reshape(len(targets), -1)).all(axis=1))
    if targets.dtype.kind == "O":
        return np.array([not is_missing(label) and label != "" for label in targets], dtype=bool)
    return np.ones(len(targets), dtype=bool)


def _row_weights(weights: Any, n_rows: int) -> Floats:
    if weights is None:
        return np.ones(n_rows)
    if isinstance(weights, Real):
        weights = np.full(n_rows, weights)
    weights = check_array(
        values_of(weights), dtype=np.float64, ensure_2d=False, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar.")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    if np.any(weights < 0.0):
        raise ValueError("Negative values in data passed to sample_weight: use 0 to leave out.")
    if not np.any(weights > 0.0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return np.asarray(weights)


def exposure_of(exposure: Any, n_rows: int) -> Floats:
    """Positive exposures (n,) of counts."""
    values = np.asarray(values_of(exposure), dtype=np.float64)
    values = np.broadcast_to(values, (n_rows,)) if values.ndim == 0 else values
    if values.shape != (n_rows,):
        raise ValueError(
            f"exposure must have one number for each of {n_rows} rows, got shape {values.shape}."
        )
    if not np.all(np.isfinite(values) & (values > 0.0)):
        raise ValueError("exposure must be positive and finite: leave out rows without exposure.")
    return values


def _refuse_infinite(columns: tuple[NDArray[Any], ...], names: tuple[str, ...]) -> None:
    refuse(
        [
            f"Input X contains infinity in column {name!r}: replace it by a number, or leave it "
            "empty for a missing value."
            for name, column in zip(names, columns, strict=True)
            if column.dtype.kind == "f" and np.isinf(column).any()
        ]
    )
