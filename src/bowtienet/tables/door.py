"""The only checks of what users give: tables, targets and row weights.

What leaves this module is right: finite numbers where numbers must be, equal lengths, weights that
are positive. Inside, nothing is checked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from bowtienet._format import count, warn
from bowtienet.tables.frames import (
    array_of,
    dense,
    frame_of,
    is_in_memory,
    matrix_of,
    separate,
    values_of,
)
from bowtienet.tables.texts import (
    Hints,
    distinct_cells,
    is_missing,
    learn_reading,
    learn_readings,
    read_cells,
)

Floats = NDArray[np.float64]

KNOWS_FRAMES = parse_version(sklearn.__version__) >= parse_version("1.9")
"""Whether scikit-learn finds the names in all frames that narwhals knows."""


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
    hints: Hints = field(default_factory=Hints)
    precision: str = "float64"
    """Type of the numbers as they came, "float32" if all of them fit into that."""


@dataclass(frozen=True, kw_only=True)
class TrainingTable:
    """Rows of a fit, without those of weight zero."""

    table: Table
    targets: NDArray[Any]
    """(n, targets) numbers, or (n,) labels."""
    weights: Floats
    exposure: Floats | None
    """(n,) exposures; None but for counts."""
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

    X is an array or a frame of any library; y values or names of columns of the frame, `labels` if
    they are classes; weights non-negative, rows of weight 0 are as good as absent; exposures of
    counts positive. Without `reset` the columns must be those of the first rows.
    """
    rows, n_absent = open_batch(
        estimator, X, y, sample_weight, exposure, labels=labels, reset=reset
    )
    if rows is None and n_absent:
        raise ValueError("Input y contains NaN only: no row has a target.")
    if rows is None:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if n_absent:
        note = f"{count(n_absent, 'row')} without a target left out."
        warn(note)
        rows = replace(rows, notes=(*rows.notes, note))
    return rows


def open_batch(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    exposure: Any = None,
    *,
    labels: bool,
    reset: bool,
) -> tuple[TrainingTable | None, int]:
    """As `open_rows`: rows with targets and weight, if any, and the number without a target."""
    refuse_others(X)
    X, y, target_names = separate(X, y)
    row_names = [name for name in (sample_weight, exposure) if isinstance(name, str)]
    if isinstance(sample_weight, str):
        X, sample_weight, _ = separate(X, sample_weight)
    if isinstance(exposure, str):
        X, exposure, _ = separate(X, exposure)
    if reset:
        estimator._row_names = tuple(row_names)
    table = open_features(estimator, X, reset=reset)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give "
            "values, or the name of a column."
        )
    targets = _labels(y) if labels else numeric_targets(y, table)
    check_consistent_length(X, targets)
    weights = _by_row(
        1.0 if sample_weight is None else sample_weight, table.n_rows, "sample_weight"
    )
    known, is_single = _known_targets(targets), targets.ndim == 1
    if not labels:
        targets = targets.reshape(len(targets), -1)
        if targets.shape[1] > 1:
            target_names = target_names or tuple(f"y{i}" for i in range(targets.shape[1]))
    rows = TrainingTable(
        table=table,
        targets=targets,
        weights=weights,
        exposure=None if exposure is None else exposure_of(exposure, table.n_rows),
        target_names=target_names or ("y",),
        is_single=is_single,
        is_labels=labels,
        notes=notes_of(X),
    )
    present, n_absent = known & (weights > 0.0), int(np.count_nonzero(~known))
    if not present.any():
        return None, n_absent
    return rows if present.all() else take_training(rows, present), n_absent


def open_known(estimator: Any, X: Any) -> Table:
    """New rows with the columns of the fit; targets, weights and exposures of it are left out."""
    if isinstance(X, Table):
        return X
    refuse_others(X)
    frame = frame_of(X)
    names = (*getattr(estimator, "_target_names", ()), *getattr(estimator, "_row_names", ()))
    if frame is not None:
        # Targets, weights and exposures given apart may have the name of a feature.
        features = getattr(estimator, "feature_names_in_", ())
        extra = [name for name in names if name in frame.columns and name not in features]
        X = frame.drop(extra).to_native() if extra else X
    return open_features(estimator, X, reset=False)


def open_features(estimator: Any, X: Any, *, reset: bool) -> Table:
    """A table; a float array that is ready is not copied."""
    X = dense(X) if issparse(X) else X
    frame, hints = frame_of(X), hints_of(X)
    columns: tuple[NDArray[Any], ...] = ()
    if frame is None:
        array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        names = tuple(f"x{i}" for i in range(array.shape[1]))
        if array.dtype.kind not in "fiub":
            columns = tuple(array.astype(object).T if array.dtype.kind in "US" else array.T)
    else:
        frame = frame if reset else _in_order(estimator, frame)
        named = frame.to_native() if KNOWS_FRAMES else _Named(frame)
        validate_data(estimator, named, skip_check_array=True, reset=reset)
        if 0 in frame.shape:
            check_array(np.empty(frame.shape))  # scikit-learn's own words
        names = tuple(map(str, frame.columns))
        array = matrix_of(frame)
        if array is None:
            columns = tuple(array_of(series) for series in frame.iter_columns())
            if all(column.dtype.kind in "fiub" for column in columns):
                array, columns = np.column_stack(columns), ()
        refuse(
            [
                f"Input X contains infinity in column {name!r}: replace it by a number, or leave "
                "it empty for a missing value."
                for name, column in zip(names, columns or array.T, strict=True)
                if column.dtype.kind == "f" and np.isinf(column).any()
            ]
        )
    numeric = [each.dtype for each in columns or (array,) if each.dtype.kind in "fiub"]
    is_single = bool(numeric) and np.result_type(*numeric) in (np.float16, np.float32)
    return Table(
        names=names,
        matrix=None if columns else array.astype(np.float64, copy=False),
        columns=columns,
        n_rows=len(columns[0] if columns else array),
        hints=hints,
        precision="float32" if is_single else "float64",
    )


class _Named:
    """A frame as scikit-learn before 1.9 asks for the names of its columns."""

    def __init__(self, frame: Any) -> None:
        self.shape, self._names = frame.shape, list(frame.columns)

    def __dataframe__(self) -> _Named:
        return self

    def column_names(self) -> list[Any]:
        return self._names


def take_training(rows: TrainingTable, index: NDArray[Any]) -> TrainingTable:
    """Some of the rows, by numbers or a mask."""
    table, weights = rows.table, rows.weights[index]
    return replace(
        rows,
        table=replace(
            table,
            matrix=None if table.matrix is None else table.matrix[index],
            columns=tuple(column[index] for column in table.columns),
            n_rows=len(weights),
        ),
        targets=rows.targets[index],
        weights=weights,
        exposure=None if rows.exposure is None else rows.exposure[index],
    )


def arrays_of(table: Table) -> tuple[NDArray[Any], ...]:
    """The columns (n,), whatever holds them."""
    return table.columns if table.matrix is None else tuple(table.matrix.T)


def refuse(problems: Sequence[str]) -> None:
    """Raise one ValueError with all problems, or the first of many."""
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        more = [f"and {len(problems) - 10:,} more like these."] if len(problems) > 10 else []
        head = f"the table has {len(problems):,} problems:"
        raise ValueError("\n- ".join([head, *problems[:10], *more]))


def hints_of(X: Any) -> Hints:
    """What was said when a file was read."""
    return Hints(**_about(X).get("hints", {}))


def notes_of(X: Any) -> tuple[str, ...]:
    """What was noticed when a file was read."""
    return tuple(_about(X).get("notes", ()))


def _about(X: Any) -> Any:
    return getattr(X, "attrs", {}).get("bowtienet", {})


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


def refuse_others(X: Any) -> None:
    """Refuse what is no array or frame in memory."""
    if is_in_memory(X) or (isinstance(X, Sequence) and not isinstance(X, str)):
        return
    raise ValueError(
        f"X must be an array or a frame here, got {type(X).__name__}: load the rows into a "
        "frame (read_table, compute, collect). fit and predict also read files, pyarrow "
        "datasets, Dask collections and batches."
    )


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
    cells, each = distinct_cells(values), np.ones(len(values))
    reading = learn_reading(cells, each, table.hints)
    if reading.note:
        others = [distinct_cells(column) for column in table.columns if column.dtype.kind == "O"]
        reading = learn_readings([cells, *others], each, table.hints)[0]
    numbers, unread = read_cells(cells, reading, table.hints)
    is_number = reading.kind == "number" and reading.style != "truth"
    if unread or (cells[0] and not is_number):
        example = (unread or cells[0])[0]
        raise ValueError(
            f"y must be numbers, got {example!r}: a classifier takes labels, and missing_values "
            "of read_table names what is missing."
        )
    return numbers.astype(float)[cells[1]]


def _known_targets(targets: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows (n,) that have all targets."""
    if targets.dtype.kind == "f":
        return np.asarray(np.isfinite(targets.reshape(len(targets), -1)).all(axis=1))
    if targets.dtype.kind == "O":
        return np.array([not is_missing(label) and label != "" for label in targets], dtype=bool)
    return np.ones(len(targets), dtype=bool)


def exposure_of(exposure: Any, n_rows: int) -> Floats:
    """Positive exposures (n,) of counts."""
    values = _by_row(exposure, n_rows, "exposure")
    if not values.all():
        raise ValueError("exposure must be positive: leave out rows without exposure.")
    return values


def _by_row(values: Any, n_rows: int, name: str) -> Floats:
    """A number of at least zero for each row (n,); a single one is that of all rows."""
    values = np.full(n_rows, values) if np.isscalar(values) else values_of(values)[0]
    values = check_array(
        values, dtype=np.float64, ensure_2d=False, ensure_non_negative=True, input_name=name
    )
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} must have one number for each of {n_rows} rows, got shape {values.shape}."
        )
    return np.asarray(values)
