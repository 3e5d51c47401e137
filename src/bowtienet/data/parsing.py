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

from bowtienet._arrays import Array, namespace

_SHOWN = 5
_REAL = "fiub"
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
    """Where `array` is None: the columns as they came."""
    floats: tuple[np.ndarray | None, ...] | None
    """Where `array` is None: the floats of those columns that hold numbers."""


def parse(values: Any, name: str) -> Parsed:
    """Read a table called `name` in errors."""
    frame = as_frame(values, name)
    if frame is not None:
        check_rank(frame.shape, name)
        return _parse_frame(frame, name)
    if _is_foreign(values):
        array = _foreign_floats(values, name)
    else:
        array = _as_array(values, name)
        if array.dtype.kind not in _REAL:
            return _parse_objects(array, name)
        if array.dtype not in (np.float64, np.float32):
            array = array.astype(np.float64)
    return Parsed(shape=tuple(array.shape), labels=None, array=array, columns=None, floats=None)


def as_frame(values: Any, name: str) -> Any | None:
    """`values` as a narwhals DataFrame or Series, or None if it is neither."""
    if isinstance(values, (np.ndarray, list, tuple)) or values is None:
        return None
    if isinstance(values, (nw.DataFrame, nw.Series)):
        return values
    values = _as_table(values)
    _refuse_equal_names(values, name)
    frame = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError(f"{name} is a lazy table: call collect() on it first.")
    if isinstance(frame, (nw.DataFrame, nw.Series)):
        return frame
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        raise TypeError(
            f"{name} is a {type(values).__name__}, which is no known table: give a pandas, polars "
            "or pyarrow table, or an array."
        )
    return None


def text_names(labels: Sequence[Any] | None, name: str = "X") -> tuple[str, ...] | None:
    """Names of columns if they are text; scikit-learn's rule refuses those of mixed types."""
    texts = [isinstance(label, str) for label in labels or ()]
    if labels is None or not any(texts):
        return None
    if not all(texts):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"{name} has names of columns of the types {kinds}. Feature names are only supported "
            "if all input features have string names: convert them all with X.columns.astype(str)."
        )
    return tuple(str(label) for label in labels)


def label_of(name: str, index: int, labels: Sequence[Any] | None) -> str:
    """What errors call a column: column 'size', column 2, target 'price' or target 0."""
    if name == "sample_weight":
        return name
    kind = "target" if name == "y" else "column"
    return f"{kind} {index if labels is None else labels[index]!r}"


def check_rank(shape: tuple[int, ...], name: str) -> None:
    """Refuse features that are no table, targets that are no column or table, and so on."""
    if len(shape) in {"X": (2,), "y": (1, 2), "sample_weight": (1,)}[name]:
        return
    if name == "X":
        raise ValueError(
            f"Expected 2D array: X must be a table of shape (rows, columns), got {tuple(shape)}. "
            "Reshape your data: x.reshape(-1, 1) for a single column, x.reshape(1, -1) for a "
            "single row."
        )
    wanted = "(rows,) or (rows, outputs)" if name == "y" else "(rows,)"
    raise ValueError(f"{name} must have shape {wanted}, got {tuple(shape)}: reshape it.")


def check_unique(names: Sequence[Any], where: str) -> None:
    """Raise if several columns have the same name."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where} has several columns called {', '.join(repeated[:_SHOWN])}: rename them so "
            "that names are unique."
        )


def refuse_complex(what: str) -> None:
    """Raise the error for complex numbers."""
    raise ValueError(
        f"Complex data not supported: {what} holds complex numbers; give real numbers, such as the "
        "real and the imaginary part as two columns."
    )


def _as_table(values: Any) -> Any:
    """What narwhals does not take of pyarrow, in the form that it does."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None:
        return values
    if isinstance(values, arrow.RecordBatch):
        return arrow.Table.from_batches([values])
    return arrow.chunked_array([values]) if isinstance(values, arrow.Array) else values


def _refuse_equal_names(values: Any, name: str) -> None:
    # Other libraries have no equal names, and narwhals' own error says less.
    if nw.dependencies.is_pandas_like_dataframe(values):
        check_unique([label for label in values.columns if isinstance(label, (str, int))], name)
    elif nw.dependencies.is_pyarrow_table(values):
        check_unique(values.column_names, name)


def _is_foreign(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy, such as a torch tensor."""
    return array_api_compat.is_array_api_obj(values) and not isinstance(
        values, (np.ndarray, np.generic)
    )


def _foreign_floats(values: Array, name: str) -> Array:
    check_rank(values.shape, name)
    xp = namespace(values)
    if xp.isdtype(values.dtype, "complex floating"):
        refuse_complex(name)
    return values if values.dtype in (xp.float64, xp.float32) else xp.astype(values, xp.float64)


def _as_array(values: Any, name: str) -> np.ndarray:
    """Arrays and lists; numbers in lists beside texts stay numbers."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array: fill the masked values with NaN.")
    if hasattr(values, "tocsr") or hasattr(values, "tocoo"):
        raise TypeError(f"Sparse data was passed as {name}, but dense data is required.")
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
    check_rank(array.shape, name)
    return array


def _parse_objects(array: np.ndarray, name: str) -> Parsed:
    """Arrays of Python objects, texts or dates."""
    columns = tuple(array.T) if array.ndim == 2 else (array,)
    floats = [
        _object_floats(column, label_of(name, index, None)) if column.dtype.kind == "O" else None
        for index, column in enumerate(columns)
    ]
    return _together(array.shape, None, columns, floats)


def _parse_frame(frame: Any, name: str) -> Parsed:
    if isinstance(frame, nw.Series):
        labels = None if frame.name is None or frame.name == "" else (frame.name,)
        columns = (frame,)
    else:
        labels = tuple(frame.columns)
        columns = tuple(frame.get_column(column) for column in frame.columns)
    floats = [_series_floats(c, label_of(name, i, labels)) for i, c in enumerate(columns)]
    return _together(frame.shape, labels, columns, floats)


def _together(
    shape: tuple[int, ...],
    labels: tuple[Any, ...] | None,
    columns: tuple[Any, ...],
    floats: Sequence[np.ndarray | None],
) -> Parsed:
    found = [column for column in floats if column is not None]
    if len(found) < len(floats):
        return Parsed(shape=shape, labels=labels, array=None, columns=columns, floats=tuple(floats))
    if len(shape) == 1:
        return Parsed(shape=shape, labels=labels, array=found[0], columns=None, floats=None)
    array = np.empty(shape)
    for index, column in enumerate(found):
        array[:, index] = column
    return Parsed(shape=shape, labels=labels, array=array, columns=None, floats=None)


def _series_floats(column: Any, label: str) -> np.ndarray | None:
    """A column of a frame as floats, NaN where missing; None if it does not hold numbers."""
    dtype = column.dtype
    if dtype.is_nested():
        _refuse_nested(label, dtype)
    if dtype.is_numeric() or dtype == nw.Boolean:
        # pyarrow refuses to round whole numbers that no float can hold, and NumPy does it.
        with suppress(ValueError):
            column = column.cast(nw.Float64)
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if dtype not in (nw.Object, nw.Unknown):
        return None
    values = column.to_numpy()
    if values.dtype.kind == "c":
        refuse_complex(label)
    if values.dtype.kind in _REAL:
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    if any(issubclass(kind, _NESTED) for kind in set(map(type, values))):
        _refuse_nested(label, dtype)
    return _object_floats(values, label)


def _refuse_nested(label: str, dtype: Any) -> None:
    raise ValueError(f"{label} holds lists or tables ({dtype}): give one value for each row.")


def _object_floats(values: np.ndarray, label: str) -> np.ndarray | None:
    """Python objects as floats if all are real numbers or missing."""
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
