"""What a table holds, column by column: arrays, lists and frames of any library in, floats out.

The words "Expected 2D array", "Reshape your data", "Complex data not supported" and "sparse" in
errors are those of scikit-learn, whose contract tests look for them.
"""

from __future__ import annotations

import numbers
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import array_api_compat
import narwhals as nw
import numpy as np

from bowtienet._old._arrays import Array, namespace, to_numpy
from bowtienet._old._validation import listed
from bowtienet._old.data.limits import check_columns

_LOOKED_AT = 10_000
"""Rows among which an example of what is wrong is looked for."""
_REAL = "fiub"
_VECTORS = ("sample_weight", "exposure")
"""What has one number for each row."""
_NESTED = (list, tuple, dict, set, np.ndarray)
_NUMBERS = (numbers.Real, Decimal, np.bool_, type(None))


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A table, or a single column, and what of it is numbers."""

    shape: tuple[int, ...]
    """(n,) or (n, k)."""
    labels: tuple[Any, ...] | None
    """What the columns are called, if they have names."""
    array: Array | None
    """All of it as floats, NaN where missing; None if a column does not hold numbers."""
    columns: tuple[Any, ...] | None
    """Where `array` is None: floats of the columns that hold numbers, the others as they came."""
    booleans: tuple[int, ...] = ()
    """Which columns of targets hold True and False; not looked for elsewhere."""


def parse(values: Any, name: str) -> Parsed:
    """Read a table called `name` in errors."""
    frame = as_frame(values, name)
    if frame is not None:
        check_rank(frame.shape, name)
        return _parse_frame(frame, name)
    array = as_array(values, name)
    check_rank(array.shape, name)
    if isinstance(array, np.ndarray) and array.dtype.kind not in _REAL:
        columns = tuple(array.T) if array.ndim == 2 else (array,)
        return _together(array.shape, None, columns, name)
    xp = namespace(array)
    if xp.isdtype(array.dtype, "complex floating"):
        refuse_complex(name)
    flags = name == "y" and xp.isdtype(array.dtype, "bool")
    if array.dtype not in (xp.float64, xp.float32):
        array = xp.astype(array, xp.float64)
    booleans = (0,) if flags else ()
    shape = tuple(array.shape)
    return Parsed(shape=shape, labels=None, array=array, columns=None, booleans=booleans)


def as_array(values: Any, name: str) -> Array:
    """Arrays where they live, and lists, in which numbers beside texts stay numbers."""
    is_numpy = isinstance(values, (np.ndarray, np.generic))
    if not is_numpy and array_api_compat.is_array_api_obj(values):
        return values
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array: fill the masked values with NaN.")
    if hasattr(values, "tocsr") or hasattr(values, "tocoo"):
        raise TypeError(f"Sparse data was passed as {name}, but dense data is required.")
    if isinstance(values, dict):
        expected = "Expected 2D array: " if name == "X" else ""
        raise ValueError(
            f"{expected}{name} is a dict: give a data frame, such as pandas.DataFrame({name})."
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind in "SU" and not hasattr(values, "dtype"):
            array = np.asarray(values, dtype=object)
    except ValueError:
        raise ValueError(
            f"{name} must be a rectangular table: its rows have different lengths."
        ) from None
    if array.dtype.kind == "c":
        refuse_complex(name)
    if array.dtype.kind == "V":
        raise ValueError(f"{name} is a structured array: give a data frame, or plain columns.")
    if array.dtype.kind in "iuf":
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array


def as_frame(values: Any, name: str) -> Any | None:
    """`values` as a narwhals DataFrame or Series, or None if it is neither."""
    if isinstance(values, (np.ndarray, list, tuple)) or values is None:
        return None
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(values, arrow.RecordBatch):
        values = arrow.Table.from_batches([values])
    # Here, since narwhals' own error of it is three lines long.
    if arrow is not None and isinstance(values, arrow.Table):
        check_unique(values.column_names, name)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, pandas.DataFrame):
        check_unique(list(values.columns), name)
    frame = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError(f"{name} is a lazy table: call collect() on it first.")
    return frame if isinstance(frame, (nw.DataFrame, nw.Series)) else None


def column_floats(column: Any, label: str) -> np.ndarray | None:
    """A column as floats (n,), NaN where missing; None if it does not hold numbers."""
    if isinstance(column, np.ndarray):
        return _array_floats(column, label)
    dtype = column.dtype
    if dtype.is_nested():
        refuse_nested(label)
    if dtype.is_numeric() or dtype == nw.Boolean:
        # pyarrow refuses to round whole numbers that no float can hold, and NumPy does it.
        with suppress(ValueError):
            column = column.cast(nw.Float64)
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if dtype not in (nw.Object, nw.Unknown):
        return None
    values = column.to_numpy()
    if values.dtype.kind == "O" and any(issubclass(k, _NESTED) for k in set(map(type, values))):
        refuse_nested(label)
    return _array_floats(values, label)


def text_names(labels: Sequence[Any] | None) -> tuple[str, ...] | None:
    """Names of columns if they are text; scikit-learn's rule refuses those of mixed types."""
    texts = [isinstance(label, str) for label in labels or ()]
    if labels is None or not any(texts):
        return None
    if not all(texts):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"X has names of columns of the types {kinds}. Feature names are only supported "
            "if all input features have string names: convert them all with X.columns.astype(str)."
        )
    return tuple(str(label) for label in labels)


def label_of(name: str, index: int, labels: Sequence[Any] | None) -> str:
    """What errors call a column: column 'size', column 2, target 'price' or target 0."""
    if name in _VECTORS:
        return name
    kind = "target" if name == "y" else "column"
    return f"{kind} {index if labels is None else labels[index]!r}"


def check_rank(shape: tuple[int, ...], name: str) -> None:
    """Refuse features that are no table, targets that are no column or table, and so on."""
    if len(shape) in ((2,) if name == "X" else (1,) if name in _VECTORS else (1, 2)):
        check_columns(shape[1] if name == "X" else 1)
        return
    if name == "X":
        raise ValueError(
            f"Expected 2D array: X must be a table of shape (rows, columns), got {tuple(shape)}. "
            "Reshape your data: x.reshape(-1, 1) for a single column, x.reshape(1, -1) for a "
            "single row."
        )
    wanted = "(rows,)" if name in _VECTORS else "(rows,) or (rows, columns)"
    raise ValueError(f"{name} must have shape {wanted}, got {tuple(shape)}: reshape it.")


def check_unique(names: Sequence[Any], where: str) -> None:
    """Raise if several columns have the same name."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where} has several columns called {listed(repeated)}: rename them so "
            "that names are unique."
        )


def refuse_complex(what: str) -> None:
    """Raise the error for complex numbers."""
    raise ValueError(
        f"Complex data not supported: {what} holds complex numbers; give real numbers, such as the "
        "real and the imaginary part as two columns."
    )


def refuse_texts(parsed: Parsed, name: str, remedy: str = "") -> None:
    """Raise the error for columns that do not hold numbers; `remedy` ends the sentence."""
    bad = [
        label_of(name, index, parsed.labels) + _example(column)
        for index, column in enumerate(parsed.columns or ())
        if not _is_numbers(column)
    ]
    raise ValueError(
        f"{name} must hold numbers, but {listed(bad)} "
        f"{'does' if len(bad) == 1 else 'do'} not: give one number for each row{remedy}."
    )


def _example(column: Any) -> str:
    """The first value of a column that is no number, and its row; nothing if none is at hand."""
    for row, value in enumerate(column[:_LOOKED_AT]):
        if value is not None and not isinstance(value, _NUMBERS):
            return f" (row {row} has {str(value)!r:.40})"
    return ""


def _is_numbers(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"


def check_lengths(found: int, n_rows: int, name: str) -> None:
    """Raise if there are not as many values as rows."""
    if found != n_rows:
        raise ValueError(
            f"X has {n_rows} rows and {name} has {found}: found input variables with inconsistent "
            "numbers of samples; give one for each row."
        )


def check_finite(parsed: Parsed, name: str, *, allow_nan: bool) -> None:
    """Refuse infinite values, and missing ones unless they are allowed, and name their columns."""
    if parsed.array is not None:
        xp = namespace(parsed.array)
        bad = xp.isinf(parsed.array) if allow_nan else ~xp.isfinite(parsed.array)
        if not bool(xp.any(bad)):
            return
        columns = list(np.atleast_2d(to_numpy(bad).T))
    else:
        columns = [np.isinf(c) if _is_numbers(c) else np.zeros(1) for c in parsed.columns or ()]
    found = [
        label_of(name, i, parsed.labels) + _row_text(np.flatnonzero(column))
        for i, column in enumerate(columns)
        if column.any()
    ]
    if found:
        what = "infinity" if allow_nan else "NaN or infinity"
        raise ValueError(
            f"{name} contains {what} in {listed(found)}, counted from 0: give "
            "finite numbers or leave those rows out."
        )


def _row_text(rows: np.ndarray) -> str:
    """Where a column is wrong: the first row, and how many others."""
    more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
    return f" (row {rows[0]}{more})"


def frame_labels(frame: Any) -> tuple[Any, ...] | None:
    """What the columns of a narwhals DataFrame or Series are called."""
    if isinstance(frame, nw.Series):
        return None if frame.name is None or frame.name == "" else (frame.name,)
    return tuple(frame.columns)


def _parse_frame(frame: Any, name: str) -> Parsed:
    if isinstance(frame, nw.Series):
        return _together(frame.shape, frame_labels(frame), (frame,), name)
    columns = tuple(frame.get_column(column) for column in frame.columns)
    return _together(frame.shape, frame_labels(frame), columns, name)


def _together(
    shape: tuple[int, ...], labels: tuple[Any, ...] | None, columns: tuple[Any, ...], name: str
) -> Parsed:
    floats = [column_floats(c, label_of(name, i, labels)) for i, c in enumerate(columns)]
    found = [column for column in floats if column is not None]
    if len(found) < len(floats):
        read = tuple(
            c if numbers is None else numbers for c, numbers in zip(columns, floats, strict=True)
        )
        return Parsed(shape=shape, labels=labels, array=None, columns=read)
    array = found[0] if len(shape) == 1 else np.empty(shape)
    if len(shape) == 2:
        for index, column in enumerate(found):
            array[:, index] = column
    flags = tuple(i for i, c in enumerate(columns) if name == "y" and _holds_booleans(c))
    return Parsed(shape=shape, labels=labels, array=array, columns=None, booleans=flags)


def _holds_booleans(column: Any) -> bool:
    """Whether all values of a column of numbers that are not missing are True or False."""
    if not isinstance(column, np.ndarray):
        if column.dtype not in (nw.Object, nw.Unknown):
            return bool(column.dtype == nw.Boolean)
        column = column.to_numpy()
    kinds = {kind for kind in set(map(type, column)) if not _is_missing(kind)}
    return bool(kinds) and kinds <= {bool, np.bool_}


def refuse_nested(label: str) -> None:
    """Raise the error for a column of lists or tables."""
    raise ValueError(f"{label} holds lists or tables: give one value for each row.")


def _array_floats(values: np.ndarray, label: str) -> np.ndarray | None:
    """Floats of an array (n,); Python objects must all be real numbers or missing."""
    if values.dtype.kind in _REAL:
        return values.astype(np.float64, copy=False)
    if values.dtype.kind == "c":
        refuse_complex(label)
    if values.dtype.kind != "O":
        return None
    kinds = set(map(type, values))
    if any(issubclass(kind, (complex, np.complexfloating)) for kind in kinds):
        refuse_complex(label)
    if not all(issubclass(kind, _NUMBERS) or _is_missing(kind) for kind in kinds):
        return None
    try:
        return np.array([np.nan if _is_missing(type(v)) else float(v) for v in values], dtype=float)
    except OverflowError:
        raise ValueError(f"{label} holds a number too large for a float.") from None


def _is_missing(kind: type) -> bool:
    """Whether values of this type stand for a missing number: None, and NA of pandas."""
    return kind is type(None) or kind.__name__ == "NAType"
