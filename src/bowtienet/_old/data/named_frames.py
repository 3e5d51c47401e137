"""Results as data frames: of the library that the rows came from, or of one that is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw

from bowtienet._old._arrays import to_numpy
from bowtienet._old._validation import optional

LIBRARIES = ("pandas", "polars", "pyarrow")


def is_data_frame(given: Any) -> bool:
    """Whether it is a frame of pandas, polars or their like.

    Tables of pyarrow are not: they have no arithmetic, and what is predicted for them is an array.
    """
    frame = nw.from_native(given, pass_through=True, eager_only=True)
    return isinstance(frame, nw.DataFrame) and not frame.implementation.is_pyarrow()


def frame_like(given: Any, columns: Mapping[str, Any]) -> Any:
    """The columns (n,) as a frame like the data frame `given`, with its index.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"])
    >>> frame_like(rows, {"lower": [0.0, 1.0], "upper": [2.0, 3.0]})
       lower  upper
    a    0.0    2.0
    b    1.0    3.0
    """
    frame = nw.from_native(given, eager_only=True)
    values = {name: to_numpy(column) for name, column in columns.items()}
    found = nw.to_native(nw.from_dict(values, backend=frame.implementation))
    index = nw.maybe_get_index(frame)
    if index is not None:
        found.index = index
    return found


def new_frame(
    columns: Mapping[str, Any], library: str = "pandas", *, index: str | None = None
) -> Any:
    """The columns as a frame; the one named `index` is that of a pandas frame.

    Examples
    --------
    >>> new_frame({"column": ["area", "rooms"], "loss": [1.5, 0.5]}, index="column")
            loss
    column
    area     1.5
    rooms    0.5
    """
    if library not in LIBRARIES:
        raise ValueError(f"library must be one of {', '.join(LIBRARIES)}, got {library!r}.")
    others = " or ".join(repr(other) for other in LIBRARIES if other != library)
    optional(
        library,
        f"tables need {library}: pip install {library}, or name another library, {others}.",
    )
    # Lists: the libraries agree on what texts, truth values and numbers become.
    values = {
        name: column.tolist() if hasattr(column, "tolist") else list(column)
        for name, column in columns.items()
    }
    backend: Any = library
    found = nw.to_native(nw.from_dict(values, backend=backend))
    return found.set_index(index) if library == "pandas" and index is not None else found
