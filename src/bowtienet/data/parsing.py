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
    """Where `array` is None: floats of the columns that hold numbers, the others as they came."""


def parse(values: Any, name: str) -> Parsed:
    """Read a table called `name` in errors."""
    frame = as_frame(values, name)
    if frame is not None:
        check_rank(frame.shape, name)
        return _parse_frame(frame, name)
    array = values if _is_foreign(values) else _as_array(values, name)
    check_rank(array.shape, name)
    if isinstance(array, np.ndarray) and array.dtype.kind not in _REAL:
        columns = tuple(array.T) if array.ndim == 2 else (array,)
        return _together(array.shape, None, columns, name)
    xp = namespace(array)
    if xp.isdtype(array.dtype, "complex floating"):
        refuse_complex(name)
    if array.dtype not in (xp.float64, xp.float32):
        array = xp.astype(array, xp.float64)
    return Parsed(shape=tuple(array.shape), labels=None, array=array, columns=None)


def as_frame(values: Any, name: str) -> Any | None:
    """`values` as a narwhals DataFrame or Series, or None if it is neither."""
    if isinstance(values, (np.ndarray, list, tuple)) or values is None:
        return None
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(values, arrow.RecordBatch):
        values = arrow.Table.from_batches([values])
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
        _refuse_nested(label)
    if dtype.is_numeric() or dtype == nw.Boolean:
        # pyarrow refuses to round whole numbers that no float can hold, and NumPy does it.
        with suppress(ValueError):
            column = column.cast(nw.Float64)
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if dtype not in (nw.Object, nw.Unknown):
        return None
    values = column.to_numpy()
    if values.dtype.kind == "O" and any(issubclass(k, _NESTED) for k in set(map(type, values))):
        _refuse_nested(label)
    return _array_floats(values, label)


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
    if len(shape) in {"X": (2,), "sample_weight": (1,)}.get(name, (1, 2)):
        return
    if name == "X":
        raise ValueError(
            f"Expected 2D array: X must be a table of shape (rows, columns), got {tuple(shape)}. "
            "Reshape your data: x.reshape(-1, 1) for a single column, x.reshape(1, -1) for a "
            "single row."
        )
    wanted = "(rows,)" if name == "sample_weight" else "(rows,) or (rows, columns)"
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


def _is_foreign(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy, such as a torch tensor."""
    return array_api_compat.is_array_api_obj(values) and not isinstance(
        values, (np.ndarray, np.generic)
    )


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
    return array


def _parse_frame(frame: Any, name: str) -> Parsed:
    if isinstance(frame, nw.Series):
        labels = None if frame.name is None or frame.name == "" else (frame.name,)
        return _together(frame.shape, labels, (frame,), name)
    columns = tuple(frame.get_column(column) for column in frame.columns)
    return _together(frame.shape, tuple(frame.columns), columns, name)


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
    return Parsed(shape=shape, labels=labels, array=array, columns=None)


def _refuse_nested(label: str) -> None:
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
