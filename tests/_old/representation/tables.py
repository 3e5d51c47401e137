"""Tables through the door, columns learnt from them, and what these are encoded as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bowtienet._old._arrays import to_numpy
from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.tables import Table
from bowtienet._old.representation.columns import Column, encode, encoded_names
from bowtienet._old.representation.learning import learn_columns


def as_table(given: Any) -> Table:
    """All rows of a table in memory, as the door reads them."""
    return open_features(given).block.table  # type: ignore[attr-defined]


def learn(given: Any, max_categories: int = 100, weights: Any = None) -> tuple[Column, ...]:
    source = open_source(given, np.arange(len(given)), weights)
    return learn_columns(source, max_categories=max_categories)


def learn_in_parts(parts: Sequence[Any], max_categories: int = 100) -> tuple[Column, ...]:
    """Columns of batches that are read one by one."""
    batches = [(part, np.arange(len(part))) for part in parts if len(part)]
    return learn_columns(open_source(batches), max_categories=max_categories)


def encoded(columns: Sequence[Column], given: Any) -> dict[str, list[float]]:
    """Encoded columns by name; there must be nothing to warn of."""
    values, surprises = encode(columns, as_table(given))
    assert surprises == []
    assert np.isfinite(to_numpy(values)).all()
    return dict(zip(encoded_names(columns), to_numpy(values).T.tolist(), strict=True))


def learnt_and_encoded(given: Any) -> dict[str, list[float]]:
    return encoded(learn(given), given)


def one(values: Any, *, like: Any = None) -> dict[str, list[float]]:
    """A single pandas column `x`, encoded as one that was learnt from `like`."""
    columns = learn(pd.DataFrame({"x": values if like is None else like}))
    return encoded(columns, pd.DataFrame({"x": values}))
