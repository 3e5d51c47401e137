"""Tables at the door: NumPy, pandas, polars, pyarrow or torch in, an array of real numbers out.

What is wrong with a table is said by column, with what to do about it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from bowtienet._arrays import Array, namespace, to_numpy

IMPUTE = "impute them first, for example with make_pipeline(SimpleImputer(), BowTieRegressor())"
ENCODE = (
    "encode them first, for example with make_pipeline(make_column_transformer((OneHotEncoder("
    'sparse_output=False), columns), remainder="passthrough"), BowTieRegressor())'
)


def read_inputs(X: Any, *, min_rows: int = 1) -> Array:
    """Inputs (n, columns) as finite floats, where they live."""
    return _read(X, "X", min_rows=min_rows)


def read_targets(y: Any, n_rows: int) -> Array:
    """Targets (n,) or (n, outputs) as finite floats, where they live."""
    if y is None:
        raise ValueError(
            "BowTieRegressor requires y to be passed, but the target y is None: call fit(X, y)."
        )
    values = _read(y, "y")
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError("y has no columns: give one number, or a row of them, for each row of X.")
    if values.shape[0] != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {values.shape[0]}: found input variables with "
            "inconsistent numbers of samples; give one target for each row."
        )
    return values


def _read(values: Any, name: str, *, min_rows: int = 1) -> Array:
    if is_foreign_array(values):
        found, columns = _read_foreign(values, name), None
    elif (frame := _as_frame(values)) is not None:
        found, columns = _read_frame(frame, name)
    else:
        found, columns = _read_plain(values, name), _pandas_columns(values)
    if found.shape[0] < min_rows or 0 in found.shape:
        _too_small(found, name, min_rows)
    _check_finite(found, name, columns)
    return found


def is_foreign_array(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy, such as a torch tensor."""
    return (
        array_api_compat.is_array_api_obj(values)
        and not isinstance(values, (np.ndarray, np.generic))
        and not sparse.issparse(values)
    )


def _read_foreign(values: Array, name: str) -> Array:
    xp = namespace(values)
    if values.ndim not in _ranks(name):
        _wrong_rank(values.shape, name)
    if xp.isdtype(values.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported: {name} has dtype {values.dtype}.")
    if values.dtype not in (xp.float64, xp.float32):
        values = xp.astype(values, xp.float64)
    return values


def _read_plain(values: Any, name: str) -> np.ndarray:
    """NumPy arrays, lists and whatever else scikit-learn can turn into an array."""
    _refuse_text(values, name)
    array = check_array(
        values,
        accept_sparse=False,
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_2d=name == "X",
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
        estimator="BowTieRegressor",
    )
    if array.ndim not in _ranks(name):
        _wrong_rank(array.shape, name)
    return np.asarray(array)


def _refuse_text(values: Any, name: str) -> None:
    """Text in an array of objects or strings, by its column."""
    if sparse.issparse(values) or not hasattr(values, "dtype"):
        return
    array = np.asarray(values)
    if array.dtype.kind not in "OUS" or array.ndim not in _ranks(name):
        return
    columns = array if array.ndim == 2 else array[:, None]
    for index, column in enumerate(columns.T):
        text = next((v for v in column if isinstance(v, (str, bytes)) and not _is_number(v)), None)
        if text is not None:
            raise ValueError(
                f"{name} must hold numbers: could not convert string to float: {text!r} in "
                f"{_column_name(name, index, None)}; {ENCODE}."
            )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_frame(values: Any) -> Any | None:
    """`values` as a narwhals frame or series, or None if it is none."""
    if isinstance(values, (np.ndarray, list, tuple)) or sparse.issparse(values):
        return None
    try:
        narwhals = importlib.import_module("narwhals")
    except ImportError:
        return None
    frame = narwhals.from_native(values, pass_through=True, allow_series=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise ValueError("the table is lazy: call collect() on it first.")
    if isinstance(frame, (narwhals.DataFrame, narwhals.Series)):
        return frame
    return None


def _read_frame(frame: Any, name: str) -> tuple[np.ndarray, list[str] | None]:
    """A data frame (n, columns) or a series (n,) as floats; missing values become NaN."""
    if not hasattr(frame, "columns"):
        _check_types([frame], name)
        return _series_values(frame), None
    columns = [frame.get_column(column) for column in frame.columns]
    _check_types(columns, name)
    values = np.empty((len(frame), len(columns)))
    for index, column in enumerate(columns):
        values[:, index] = _series_values(column)
    return values, [str(column) for column in frame.columns]


def _check_types(columns: Sequence[Any], name: str) -> None:
    dtypes = importlib.import_module("narwhals").dtypes
    bad = [
        f"{column.name!r} ({column.dtype})"
        for column in columns
        if not (column.dtype.is_numeric() or isinstance(column.dtype, dtypes.Boolean))
        and not _holds_numbers(column)
    ]
    if bad:
        raise ValueError(
            f"{name} must hold numbers, but these columns do not: {', '.join(bad)}; {ENCODE}."
        )


def _holds_numbers(column: Any) -> bool:
    """Whether a column of Python objects holds nothing but real numbers or nothing."""
    if str(column.dtype) not in ("Object", "Unknown"):
        return False
    try:
        column.to_numpy().astype(float)
    except (TypeError, ValueError):
        return False
    return True


def _series_values(column: Any) -> np.ndarray:
    narwhals = importlib.import_module("narwhals")
    if column.dtype.is_numeric() or isinstance(column.dtype, narwhals.dtypes.Boolean):
        column = column.cast(narwhals.Float64)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _pandas_columns(values: Any) -> list[str] | None:
    columns = getattr(values, "columns", None)
    return None if columns is None else [str(column) for column in columns]


def _check_finite(values: Array, name: str, columns: Sequence[str] | None) -> None:
    xp = namespace(values)
    finite = xp.isfinite(values)
    if bool(xp.all(finite)):
        return
    array = to_numpy(values)
    array = array if array.ndim == 2 else array[:, None]
    missing, infinite = np.isnan(array).sum(axis=0), np.isinf(array).sum(axis=0)
    where = [
        f"{_column_name(name, int(index), columns)} ({_count(missing[index], infinite[index])})"
        for index in np.flatnonzero(missing + infinite)
    ]
    shown = ", ".join(where[:5]) + (f" and {len(where) - 5} more" if len(where) > 5 else "")
    remedy = IMPUTE if name == "X" else "leave those rows out"
    if not missing.any():
        remedy = "replace them by finite numbers or leave those rows out"
    raise ValueError(f"{name} contains NaN or infinity in {shown}: {remedy}.")


def _count(missing: int, infinite: int) -> str:
    parts = [f"{missing} NaN"] * bool(missing) + [f"{infinite} infinite"] * bool(infinite)
    return ", ".join(parts)


def _column_name(name: str, index: int, columns: Sequence[str] | None) -> str:
    if columns is not None:
        return f"column {columns[index]!r}"
    return f"column {index}" if name == "X" else f"target {index}"


def _ranks(name: str) -> tuple[int, ...]:
    return (2,) if name == "X" else (1, 2)


def _wrong_rank(shape: tuple[int, ...], name: str) -> None:
    if name == "X":
        raise ValueError(
            f"X must be a table of shape (rows, columns), got {tuple(shape)}. Reshape your data: "
            "x.reshape(-1, 1) for a single column, x.reshape(1, -1) for a single row."
        )
    raise ValueError(f"y must have shape (rows,) or (rows, outputs), got {tuple(shape)}.")


def _too_small(values: Array, name: str, min_rows: int) -> None:
    """The words `sample(s)` and `feature(s)` are those that scikit-learn's own checks expect."""
    rows = values.shape[0]
    if rows < max(min_rows, 1):
        raise ValueError(
            f"{name} has {rows} sample(s) (shape {tuple(values.shape)}), but at least "
            f"{max(min_rows, 1)} are needed: give more rows."
        )
    raise ValueError(
        f"{name} has 0 feature(s) (shape={tuple(values.shape)}) while a minimum of 1 is required."
    )
