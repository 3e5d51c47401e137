"""What an estimator was given, beside what it was fitted to."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from bowtienet._old._arrays import Array, map_arrays, to_numpy
from bowtienet._old.data.door import open_features, open_source
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.random_rows import RowSample
from bowtienet._old.data.rows import Rows
from bowtienet._old.data.source import Source, in_order, log_exposures
from bowtienet._old.data.tables import Block
from bowtienet._old.ensemble.ensemble import chunks
from bowtienet._old.representation.columns import encode

PASSED_OVER = {"bowtienet", "sklearn"}
"""Packages whose lines warnings do not point at."""


def open_known(
    estimator: Any, X: Any, y: Any = None, sample_weight: Any = None, **rows: Any
) -> Source:
    """Rows with targets whose columns are those that the estimator was fitted to."""
    targets = estimator._target_settings()
    source = open_source(X, y, sample_weight, features=_known_names(estimator), **targets, **rows)
    _check_columns(estimator, source)
    if source.n_targets != estimator.n_outputs_:
        raise ValueError(
            f"y has {source.n_targets or 'no'} target{'s' if source.n_targets != 1 else ''}, but "
            f"{estimator.n_outputs_} {'was' if estimator.n_outputs_ == 1 else 'were'} fitted: give "
            "them as y, or name their columns."
        )
    return source


def open_known_features(estimator: Any, X: Any, exposure: Any = None) -> Source:
    """Features alone, of the columns that the estimator was fitted to, and perhaps exposures."""
    source = open_features(X, features=_known_names(estimator), exposure=exposure)
    _check_columns(estimator, source)
    return source


def encoded_chunks(estimator: Any, source: Source) -> Iterator[Array]:
    """Encoded features in parts that are small enough to predict at once."""
    for _, features in encoded_blocks(estimator, source):
        yield from chunks(features)


def exposed_chunks(
    estimator: Any, source: Source, draws: int = 1
) -> Iterator[tuple[Array, np.ndarray]]:
    """Encoded features in parts, with the logs (m, 1) of the exposures of their rows."""
    for block, features in encoded_blocks(estimator, source):
        logs, start = log_exposures(source, block), 0
        for part in chunks(features, draws):
            stop = start + part.shape[0]
            yield part, logs[start:stop, None]
            start = stop


def encoded_blocks(estimator: Any, source: Source) -> Iterator[tuple[Block, Array]]:
    """Blocks of a source with their encoded features; one warning of values never seen before."""
    columns = estimator.ensemble_.representation.columns
    surprises: list[str] = []
    blocks = [source.block] if isinstance(source, InMemory) else in_order(source)
    for block in blocks:
        features, found = encode(columns, block.table)
        surprises += [surprise for surprise in found if surprise not in surprises]
        yield block, features
    if surprises:
        warnings.warn("; ".join(surprises[:5]) + ".", UserWarning, stacklevel=warning_level())


def sampled_rows(estimator: Any, source: Source, most: int, seed: int) -> Rows:
    """Encoded rows that count, with targets, in double precision; a random sample of many."""
    sample = RowSample(most, np.random.default_rng(seed))
    start = 0
    for block, features in encoded_blocks(estimator, source):
        rows = Rows(inputs=features, targets=block.targets, weights=block.weights)
        rows = map_arrays(lambda x: to_numpy(x).astype(np.float64), rows)
        sample.add(rows, start)
        start += rows.inputs.shape[0]
    return sample.rows


def warning_level() -> int:
    """The `stacklevel` at which a warning points at the user's line, whatever stands between."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _module(frame.f_globals) in PASSED_OVER:
        level, frame = level + 1, frame.f_back
    return level


def _module(names: dict[str, Any]) -> str:
    return str(names.get("__name__")).partition(".")[0]


def _known_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _check_columns(estimator: Any, source: Source) -> None:
    """Names are checked where rows are read; here their number, and whether there are names."""
    owner, fitted = type(estimator).__name__, hasattr(estimator, "feature_names_in_")
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {owner} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    if fitted == (source.feature_names is not None):
        return
    warnings.warn(
        f"X does not have valid feature names, but {owner} was fitted with feature names"
        if fitted
        else f"X has feature names, but {owner} was fitted without feature names",
        UserWarning,
        stacklevel=warning_level(),
    )
