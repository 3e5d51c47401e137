"""Frames of any library, sparse arrays and series as NumPy arrays; targets among the columns."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray


def frame_of(X: Any) -> Any:
    """X as a narwhals frame, or None if it is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def is_in_memory(X: Any) -> bool:
    """Whether X is a frame or an array, which in all libraries has `__array__`."""
    is_array = hasattr(X, "__array__") or hasattr(X, "toarray")
    return (is_array or frame_of(X) is not None) and not is_lazy(X)


def is_lazy(X: Any) -> bool:
    """Whether X is a frame that is not computed yet."""
    return isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)


def separate(X: Any, y: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """Features, and values and names of targets, which may be names of columns."""
    names = [y] if isinstance(y, str) else y
    is_names = isinstance(names, (list, tuple)) and names and all(isinstance(n, str) for n in names)
    frame = frame_of(X)
    if not is_names or (frame is None and not isinstance(y, str)):
        return X, *values_of(y)
    if frame is None:
        raise ValueError(f"the column {y!r} has a name, but X is no frame: give the values.")
    absent = [name for name in names if name not in frame.columns]
    if absent and len(names) == len(frame) and not isinstance(y, str):
        return X, y, ()  # labels of the rows, not names
    if absent:
        known = ", ".join(map(repr, frame.columns[:10]))
        raise ValueError(f"the table has no column {absent[0]!r}: it has {known}.")
    targets = (frame.select(names) if len(names) > 1 else frame[names[0]]).to_numpy()
    return frame.drop(list(names)).to_native(), targets, tuple(names)


def values_of(y: Any) -> tuple[Any, tuple[str, ...]]:
    """Values and names of a frame or series of any library; anything else as it is."""
    data = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(data, nw.DataFrame):
        return data.to_numpy(), tuple(map(str, data.columns))
    if isinstance(data, nw.Series):
        return data.to_numpy(), (data.name,) if isinstance(data.name, str) and data.name else ()
    return y, ()


def dense(X: Any) -> NDArray[Any]:
    """A sparse array with its zeros."""
    size = 8.0 * X.shape[0] * X.shape[1]
    if size > 2e9:
        raise ValueError(
            f"X is sparse, and with its zeros would take {size / 1e9:.1f} GB: put a "
            "TruncatedSVD(n_components=100) or SelectKBest before the model in a Pipeline."
        )
    return np.asarray(X.toarray())


def matrix_of(frame: Any) -> NDArray[Any] | None:
    """A frame of numbers at once, which for thousands of columns is much faster; None of others."""
    if not all(dtype.is_numeric() for dtype in frame.schema.values()):
        return None
    array = np.ascontiguousarray(frame.to_numpy())
    return array if array.dtype.kind in "fiub" else None


def array_of(series: Any) -> NDArray[Any]:
    """Values of a column of a frame: floats, dates, or objects with None where missing."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = np.asarray(series.to_numpy())
        if values.dtype.kind in "fiub":
            return values
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if dtype == nw.Datetime and dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype in (nw.Date, nw.Datetime):
        return np.asarray(series.to_numpy(), dtype="datetime64[us]")
    if dtype == nw.Duration:
        return np.asarray(series.to_numpy(), dtype="timedelta64[us]")
    if dtype in (nw.Categorical, nw.Enum):
        # Also where the levels are numbers.
        levels = series.cast(nw.String).to_list()
        return np.array([v if isinstance(v, str) else "" for v in levels], dtype=str)
    if hasattr(getattr(series.to_native(), "dt", None), "to_timestamp"):  # periods of pandas
        return np.asarray(series.to_native().dt.to_timestamp(), dtype="datetime64[us]")
    cells = series.to_list()
    if dtype == nw.String:
        cells = [cell if isinstance(cell, str) else None for cell in cells]
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column
