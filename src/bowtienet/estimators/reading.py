"""What an estimator was given, beside what it was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from bowtienet._arrays import Array
from bowtienet.data.door import open_features, open_source
from bowtienet.data.sampling import in_order
from bowtienet.data.source import Source
from bowtienet.data.tables import Block
from bowtienet.ensemble.ensemble import chunks
from bowtienet.representation.columns import encode


class _Header:
    """Columns without rows, in a form whose number and names scikit-learn reads."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.shape = names, (1, len(names))

    def __dataframe__(self) -> _Header:
        return self

    def column_names(self) -> list[str]:
        return self.names


def open_known(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Source:
    """Rows with targets whose columns are those that the estimator was fitted to."""
    source = open_source(X, y, sample_weight, features=_known_names(estimator))
    _check_columns(estimator, source)
    if source.n_targets != estimator.n_outputs_:
        raise ValueError(
            f"y has {source.n_targets or 'no'} target{'s' if source.n_targets != 1 else ''}, but "
            f"{estimator.n_outputs_} {'was' if estimator.n_outputs_ == 1 else 'were'} fitted: give "
            "them as y, or name their columns."
        )
    return source


def open_known_features(estimator: Any, X: Any) -> Source:
    """Features alone, of the columns that the estimator was fitted to."""
    source = open_features(X, features=_known_names(estimator))
    _check_columns(estimator, source)
    return source


def encoded_chunks(estimator: Any, source: Source, draws: int = 1) -> Iterator[Array]:
    """Encoded features in parts that are small enough to predict at once."""
    for _, features in encoded_blocks(estimator, source):
        yield from chunks(features, draws)


def encoded_blocks(estimator: Any, source: Source) -> Iterator[tuple[Block, Array]]:
    """Blocks of a source with their encoded features; one warning of values never seen before."""
    columns = estimator.ensemble_.representation.columns
    surprises: list[str] = []
    for block in [source.block] if source.in_memory else in_order(source):
        features, found = encode(columns, block.table)
        surprises += [surprise for surprise in found if surprise not in surprises]
        yield block, features
    if surprises:
        warnings.warn(
            f"X has categories that training did not have: {'; '.join(surprises[:5])}; they are "
            "treated as none of the known ones.",
            UserWarning,
            stacklevel=4,
        )


def _known_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _check_columns(estimator: Any, source: Source) -> None:
    """scikit-learn's own checks of the number, names and order of columns."""
    names = source.feature_names
    header = np.empty((1, source.n_features)) if names is None else _Header(list(names))
    validate_data(estimator, header, reset=False, skip_check_array=True)
