"""Tables at the door: NumPy, pandas, polars, pyarrow or torch in, an array of real numbers out.

What is wrong with a table is said by column, with what to do about it.
"""

from __future__ import annotations

import importlib
import numbers
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from bowtienet._arrays import Array, namespace, to_numpy
from bowtienet._validation import suggestion

IMPUTE = "impute them first, for example with make_pipeline(SimpleImputer(), BowTieRegressor())"
ENCODE = {
    "X": (
        "encode them first, for example with make_pipeline(make_column_transformer((OneHotEncoder("
        'sparse_output=False), columns), remainder="passthrough"), BowTieRegressor())'
    ),
    "y": "give one number for each row",
}
LARGEST = int(np.finfo(np.float64).max)
DATES = "M"
SPANS = "m"


def read_inputs(X: Any, *, min_rows: int = 1) -> Array:
    """Inputs (n, columns) as finite floats, where they live."""
    if X is None:
        raise ValueError("X is None: give a table of numbers, one row for each observation.")
    return _read(X, "X", min_rows=min_rows)


def read_targets(y: Any, n_rows: int) -> Array:
    """Targets (n,) or (n, outputs) as finite floats, where they live."""
    if y is None:
        raise ValueError(
            "BowTieRegressor requires y to be passed, but the target y is None: call fit(X, y)."
        )
    values = _read(y, "y")
    if values.shape[0] != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and y has {values.shape[0]}: found input variables with "
            "inconsistent numbers of samples; give one target for each row."
        )
    return values


def read_table(values: Any, name: str) -> np.ndarray:
    """A table that came as part of a stream, X or y: float64 NumPy, and it may have no rows."""
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) > 0 and shape[0] == 0:
        return np.empty(shape)
    return to_numpy(_read(values, name)).astype(np.float64, copy=False)


def named_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights, where `y` or the weights may be names of columns of `X`."""
    several = isinstance(y, (list, tuple)) and bool(y) and all(isinstance(k, str) for k in y)
    if not isinstance(y, str) and not isinstance(sample_weight, str) and not several:
        return X, y, sample_weight
    frame = as_frame(X, "X")
    if frame is None or not hasattr(frame, "columns"):
        if several and not isinstance(sample_weight, str):
            return X, y, sample_weight  # texts for targets: reading them says what is wrong
        raise ValueError("names of columns need a table whose columns have names: give arrays.")
    wanted = list(y) if several else [y] if isinstance(y, str) else []
    weights = [sample_weight] if isinstance(sample_weight, str) else []
    for name in (*wanted, *weights):
        if name not in frame.columns:
            known = [str(column) for column in frame.columns]
            raise ValueError(f"X has no column {name!r}{suggestion(name, known)}")
    if several:
        y = frame.select(wanted).to_native()
    elif wanted:
        y = frame.get_column(y).to_native()
    if weights:
        sample_weight = _series_values(frame.get_column(sample_weight))
    return frame.drop([*wanted, *weights]).to_native(), y, sample_weight


def input_names(estimator: Any) -> list[str]:
    """Names of the columns that an estimator was fitted to; x0, x1, ... if they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{index}" for index in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def known_columns(estimator: Any) -> dict[str, Any]:
    """Fitted attributes that tell of the columns of X and y, by name."""
    names = ("n_features_in_", "feature_names_in_", "_single_target")
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def with_names(X: Any) -> Any:
    """`X` in a form whose column names scikit-learn finds."""
    if type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow"):
        return importlib.import_module("pyarrow").Table.from_batches([X])
    return X


def is_foreign_array(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy, such as a torch tensor."""
    return (
        array_api_compat.is_array_api_obj(values)
        and not isinstance(values, (np.ndarray, np.generic))
        and not sparse.issparse(values)
    )


def _read(values: Any, name: str, *, min_rows: int = 1) -> Array:
    columns: list[str] | None = None
    if is_foreign_array(values):
        found = _read_foreign(values, name)
    elif (frame := as_frame(values, name)) is not None:
        found, columns = _read_frame(frame, name)
    else:
        found, columns = _read_plain(values, name), _pandas_columns(values)
    check_size(found.shape, name, min_rows)
    _check_finite(found, name, columns)
    return found


def _read_foreign(values: Array, name: str) -> Array:
    xp = namespace(values)
    check_rank(values.shape, name)
    if xp.isdtype(values.dtype, "complex floating"):
        refuse_complex(name, str(values.dtype))
    if values.dtype not in (xp.float64, xp.float32):
        values = xp.astype(values, xp.float64)
    return values


def _read_plain(values: Any, name: str) -> np.ndarray:
    """NumPy arrays, lists and whatever else scikit-learn can turn into an array."""
    _check_kind(values, name)
    try:
        array = check_array(
            values,
            accept_sparse=False,
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            ensure_min_features=0,
            input_name=name,
            estimator="BowTieRegressor",
        )
    except (ValueError, TypeError, OverflowError) as error:
        if "inhomogeneous" in str(error):
            raise ValueError(
                f"{name} must be a rectangular table of numbers: its rows have different lengths."
            ) from error
        _explain(values, name)
        raise ValueError(f"{name} must hold numbers: {error}.") from error
    check_rank(array.shape, name)
    return np.asarray(array)


def _check_kind(values: Any, name: str) -> None:
    """Arrays that scikit-learn would take for what they are not."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: fill or drop the masked values first."
        )
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind == "c":
        refuse_complex(name, str(values.dtype))
    if kind in (DATES, SPANS):
        raise ValueError(
            f"{name} must hold numbers, but has dtype {values.dtype}: turn dates and times into "
            "numbers first, such as days since a fixed day."
        )


def _explain(values: Any, name: str) -> None:
    """Raise a better error for values that could not be turned into numbers, if there is one."""
    if sparse.issparse(values):
        return
    try:
        array = np.asarray(values, dtype=object)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular table of numbers.") from None
    if array.ndim not in _ranks(name):
        return
    for index, column in enumerate((array if array.ndim == 2 else array[:, None]).T):
        where = _column_name(name, index, None)
        for value in column:
            if isinstance(value, (str, bytes)):
                if not _is_number(value):
                    text = value if isinstance(value, str) else value.decode(errors="replace")
                    raise ValueError(
                        f"{name} must hold numbers: could not convert string to float: "
                        f"{str(text)!r} in {where}; {ENCODE[name]}."
                    )
            elif isinstance(value, (complex, np.complexfloating)):
                refuse_complex(name, f"complex numbers in {where}")
            elif isinstance(value, int) and abs(value) > LARGEST:
                raise ValueError(f"{name} holds a number too large for a float in {where}.")
            elif not isinstance(value, (numbers.Real, np.generic, type(None))):
                raise TypeError(
                    f"{name} must hold numbers: argument must be a string or a real number, not "
                    f"{type(value).__name__!r}, in {where}; {ENCODE[name]}."
                )


def refuse_complex(name: str, what: str) -> None:
    """Raise the error for complex numbers."""
    raise ValueError(
        f"Complex data not supported: {name} has {what}; give real numbers, such as the real and "
        "the imaginary part as two columns."
    )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_frame(values: Any, name: str) -> Any | None:
    """`values` as a narwhals frame or series, or None if it is none."""
    if isinstance(values, (np.ndarray, list, tuple)) or sparse.issparse(values):
        return None
    try:
        narwhals = importlib.import_module("narwhals")
    except ImportError:
        return None
    _refuse_equal_names(values, name)
    frame = narwhals.from_native(values, pass_through=True, allow_series=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise ValueError(f"{name} is a lazy table: call collect() on it first.")
    if isinstance(frame, (narwhals.DataFrame, narwhals.Series)):
        return frame
    return None


def _read_frame(frame: Any, name: str) -> tuple[np.ndarray, list[str] | None]:
    """A data frame (n, columns) or a series (n,) as floats; missing values become NaN."""
    if not hasattr(frame, "columns"):
        check_rank(frame.shape, name)
        _check_types([frame], name, [repr(frame.name) if frame.name else "target 0"])
        return _series_values(frame), None
    names = [str(column) for column in frame.columns]
    columns = [frame.get_column(column) for column in frame.columns]
    _check_types(columns, name, [repr(column) for column in names])
    values = np.empty((len(frame), len(columns)))
    for index, column in enumerate(columns):
        values[:, index] = _series_values(column)
    return values, names


def _refuse_equal_names(values: Any, name: str) -> None:
    if type(values).__module__.split(".")[0] not in ("pandas", "pyarrow"):
        return  # other libraries have no equal names
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    counts = Counter(str(column) for column in names if isinstance(column, (str, int)))
    repeated = sorted(repr(column) for column, count in counts.items() if count > 1)
    if repeated:
        raise ValueError(
            f"{name} has several columns called {', '.join(repeated)}: rename them so that names "
            "are unique."
        )


def _check_types(columns: Sequence[Any], name: str, labels: Sequence[str]) -> None:
    bad = [
        f"{label} ({column.dtype})"
        for label, column in zip(labels, columns, strict=True)
        if not _holds_numbers(column, name)
    ]
    if bad:
        raise ValueError(
            f"{name} must hold numbers, but these columns do not: {', '.join(bad)}; {ENCODE[name]}."
        )


def _is_numeric(column: Any) -> bool:
    dtypes = importlib.import_module("narwhals").dtypes
    return column.dtype.is_numeric() or isinstance(column.dtype, dtypes.Boolean)


def _holds_numbers(column: Any, name: str) -> bool:
    """Whether a column is numeric, or of Python objects that are all real numbers or missing."""
    if _is_numeric(column):
        return True
    if str(column.dtype) not in ("Object", "Unknown"):
        return False
    values = column.to_numpy()
    if values.dtype.kind == "c":
        refuse_complex(name, f"complex numbers in {column.name!r}")
    if values.dtype.kind in (DATES, SPANS):
        return False
    try:
        values.astype(float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _series_values(column: Any) -> np.ndarray:
    if _is_numeric(column):
        # pyarrow refuses to round whole numbers that no float can hold, and NumPy does it.
        with suppress(ValueError):
            column = column.cast(importlib.import_module("narwhals").Float64)
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


def check_rank(shape: tuple[int, ...], name: str) -> None:
    """Refuse inputs that are no table and targets that are neither a column nor a table."""
    if len(shape) in _ranks(name):
        return
    if name == "X":
        # The words of scikit-learn's own checks: "Expected 2D array", "Reshape your data".
        raise ValueError(
            f"Expected 2D array: X must be a table of shape (rows, columns), got {tuple(shape)}. "
            "Reshape your data: x.reshape(-1, 1) for a single column, x.reshape(1, -1) for a "
            "single row."
        )
    raise ValueError(
        f"y must have shape (rows,) or (rows, outputs), got {tuple(shape)}: reshape it."
    )


def check_size(shape: tuple[int, ...], name: str, min_rows: int) -> None:
    """Refuse tables without columns or with too few rows.

    The words `sample(s)` and `feature(s)` are those that scikit-learn's own checks expect.
    """
    if shape[0] < max(min_rows, 1):
        raise ValueError(
            f"{name} has {shape[0]} sample(s) (shape {tuple(shape)}), but at least "
            f"{max(min_rows, 1)} are needed: give more rows."
        )
    if 0 not in shape:
        return
    if name == "y":
        raise ValueError("y has no columns: give one number, or a row of them, for each row of X.")
    raise ValueError(
        f"{name} has 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required."
    )
