"""What was given to an estimator: a table in memory, or a source that is read block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bowtienet.data.rows import Rows, build_weights
from bowtienet.data.sources import Source, in_order, open_source
from bowtienet.estimators.cluster import DaskSource, is_dask
from bowtienet.estimators.tables import (
    named_columns,
    read_inputs,
    read_table,
    read_targets,
    with_names,
)


@dataclass(frozen=True, kw_only=True)
class Given:
    """Rows in the user's units, in memory or not, and what is known of their columns."""

    table: dict[str, Any]
    """Fitted attributes that tell of the columns."""
    n_targets: int
    rows: Rows | None = None
    source: Source | None = None
    native: Any = None
    """The inputs as they came, if in memory."""

    def blocks(self) -> Iterator[Rows]:
        """All rows, in parts if they are read."""
        if self.source is not None:
            yield from in_order(self.source)
        elif self.rows is not None:
            yield self.rows


def read_given(
    X: Any, y: Any, sample_weight: Any, names: Sequence[str] | None, *, min_rows: int = 2
) -> Given:
    """Check what `fit` was given; `names` are those of inputs that are known already."""
    source = find_source(X, y, sample_weight, names)
    if source is not None:
        if source.n_targets == 0:
            raise ValueError(
                "the target is missing: name it, as in fit(dataset, 'y'), or let batches be (X, y)."
            )
        return Given(table=_source_table(source), n_targets=source.n_targets, source=source)
    X, y, sample_weight = named_columns(X, y, sample_weight)
    inputs = read_inputs(X, min_rows=min_rows)
    targets = read_targets(y, inputs.shape[0])
    weights = build_weights(sample_weight, inputs, name="sample_weight")
    table = {**_columns(X), "_single_target": targets.ndim == 1}
    targets = targets if targets.ndim == 2 else targets[:, None]
    rows = Rows(inputs=inputs, targets=targets, weights=weights)
    return Given(table=table, n_targets=targets.shape[1], rows=rows, native=X)


def find_source(
    X: Any, y: Any = None, sample_weight: Any = None, names: Sequence[str] | None = None
) -> Source | None:
    """Who reads `X` block by block; None if it is a table in memory."""
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise ValueError("an opened source knows its targets and weights: give it alone.")
        return X
    if is_dask(X):
        return DaskSource(X, y, sample_weight, inputs=names)
    in_memory = type(X).__name__ in ("Table", "RecordBatch") and y is None
    return open_source(X, y, sample_weight, inputs=None if in_memory else names, read=read_table)


def check_columns(estimator: Any, given: Given) -> None:
    """Refuse columns that are not those the estimator was fitted to."""
    if given.source is None:
        validate_data(estimator, with_names(given.native), reset=False, skip_check_array=True)
    else:
        check_source(estimator, given.source)


def check_source(estimator: Any, source: Source) -> None:
    """The same for a source."""
    if source.n_inputs != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_inputs} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is None or source.input_names is None:
        return
    for before, now in zip(names, source.input_names, strict=True):
        if str(before) != now:
            raise ValueError(
                f"The feature names should match those that were passed during fit: {now!r} stands "
                f"where {str(before)!r} was."
            )


def _source_table(source: Source) -> dict[str, Any]:
    table: dict[str, Any] = {"n_features_in_": source.n_inputs}
    if source.input_names is not None:
        table["feature_names_in_"] = np.asarray(source.input_names, dtype=object)
    return {**table, "_single_target": source.single_target}


def _columns(X: Any) -> dict[str, Any]:
    """Number and names of the columns, as scikit-learn reads them."""
    probe = BaseEstimator()
    validate_data(probe, with_names(X), reset=True, skip_check_array=True)
    return vars(probe)
