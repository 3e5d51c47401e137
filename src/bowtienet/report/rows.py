"""The rows of a report: what a model was asked about, and what happened."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from bowtienet._arrays import to_numpy
from bowtienet.data.rows import build_weights
from bowtienet.estimators.columns import open_table, refuse_sources
from bowtienet.estimators.tables import (
    as_frame,
    is_foreign_array,
    named_columns,
    read_inputs,
    read_targets,
    with_names,
)
from bowtienet.plotting.fitted import network_of, target_name

_SEED = 0
"""Of every choice of rows: the same report every time."""
_ROUNDING = 1e-9
"""n equal weights are n rows, also where their sums are a little less."""


@dataclass(frozen=True, kw_only=True)
class ReportRows:
    """Rows with targets, as the user gave them and as the network takes them."""

    table: Any
    """The columns that the model uses."""
    prepared: Any
    """The same after all steps before the network."""
    targets: np.ndarray
    """(n, outputs)."""
    weights: np.ndarray | None
    """(n,), how many times each row counts."""
    names: tuple[str, ...]
    """What each row is called."""
    n_given: int
    """Rows that count, before some were chosen."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.targets)

    @property
    def n_effective(self) -> int:
        """(Σ w)² / Σ w², so many rows of equal weight say as much; all without weights."""
        if self.weights is None:
            return self.n_rows
        shares = self.weights / np.max(self.weights)  # no square of them overflows
        return max(1, int(np.sum(shares) ** 2 / np.sum(shares**2) + _ROUNDING))

    def inputs(self) -> np.ndarray:
        """Numbers (n, inputs) that the network sees."""
        return to_numpy(read_inputs(self.prepared)).astype(np.float64, copy=False)


def read_rows(
    model: Any,
    X: Any,
    y: Any,
    *,
    most: int,
    sample_weight: Any = None,
    row_numbers: Any = None,
) -> ReportRows:
    """Rows of a table that count, at most so many of them at random."""
    refuse_streams(X)
    index = getattr(X, "index", None) if hasattr(X, "iloc") else None
    X, y, sample_weight = named_columns(X, y, sample_weight)
    table = used_columns(model, X)
    n_rows = open_table(table).n_rows
    targets = to_numpy(read_targets(y, n_rows)).astype(np.float64).reshape(n_rows, -1)
    network = network_of(model)
    if targets.shape[1] != network.n_outputs_:
        raise ValueError(
            f"y has {targets.shape[1]} targets, but the model was fitted to {network.n_outputs_}: "
            "give the same ones in the same order."
        )
    names = [*map(str, _row_names(row_numbers, index, n_rows))]
    weights = None if sample_weight is None else np.asarray(to_numpy(sample_weight), dtype=float)
    if weights is not None and weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_rows} rows: give one for each."
        )
    if weights is not None:
        weights = to_numpy(build_weights(weights, targets, "sample_weight"))
    counted = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
    places = counted[sample(counted.size, most)]
    if places.size < n_rows:
        table, targets = take(table, places), targets[places]
        names = [names[place] for place in places]
        weights = None if weights is None else weights[places]
    return ReportRows(
        table=table,
        prepared=prepare(model, table),
        targets=targets,
        weights=weights,
        names=tuple(names),
        n_given=counted.size,
    )


def refuse_streams(X: Any) -> None:
    """Refuse rows that are not in memory."""
    try:
        refuse_sources(X)
    except ValueError as error:
        raise ValueError(
            f"a report needs rows in memory, got a {type(X).__name__}: read them, or some of them, "
            "into a table."
        ) from error


def sample(n_rows: int, most: int) -> np.ndarray:
    """Places of all rows, or of so many at random, in their order."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(_SEED).choice(n_rows, size=most, replace=False))


def used_columns(model: Any, X: Any) -> Any:
    """The columns of a table that a model uses; all where it finds them by their place."""
    frame = as_frame(with_names(X), "X")
    if frame is None or not hasattr(frame, "columns") or not knows_names(model):
        return X
    present = [name for name in known_names(model) if name in frame.columns]
    return frame.select(present).to_native() if present else X


def known_names(model: Any) -> list[str]:
    """Names of the columns that a model was fitted to; none if it knows none."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    return [str(name) for name in getattr(first, "feature_names_in_", ())]


def knows_names(model: Any) -> bool:
    """Whether a model finds columns by their names."""
    return bool(known_names(model))


def take(table: Any, places: np.ndarray) -> Any:
    """Some rows of a table, in the form of its library."""
    frame = None if is_foreign_array(table) else as_frame(with_names(table), "X")
    if frame is not None:
        return frame[places.tolist()].to_native()
    array = to_numpy(table) if is_foreign_array(table) else np.asarray(table)
    return array[places]


def prepare(model: Any, table: Any) -> Any:
    """A table after all steps before the network."""
    if not isinstance(model, Pipeline) or len(model) == 1:
        return table
    with names_ignored():
        return model[:-1].transform(table)


@contextmanager
def names_ignored() -> Iterator[None]:
    """No warning that a model finds columns by their place: a report says which is which."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has feature names", UserWarning)
        yield


def target_names(model: Any, y: Any) -> list[str]:
    """Names of the targets; y, or y0, y1, ..., where none are known."""
    count = network_of(model).n_outputs_
    found = [target_name(model, y, place) for place in range(count)]
    if found != ["target"] * count:
        return found
    return ["y"] if count == 1 else [f"y{place}" for place in range(count)]


def _row_names(row_numbers: Any, index: Any, n_rows: int) -> Any:
    if row_numbers is None:
        return range(n_rows) if index is None else index
    found = list(row_numbers)
    if len(found) != n_rows:
        raise ValueError(
            f"row_numbers has {len(found)} entries, but X has {n_rows} rows: give one for each."
        )
    return found
