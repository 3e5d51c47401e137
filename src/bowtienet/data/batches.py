"""Batches as a source of rows: a list of them, or an object that gives them anew at each pass."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._arrays import to_numpy
from bowtienet.data.blocks import BLOCK_ROWS, Source, check_block, check_unique
from bowtienet.data.rows import Rows, _floats, split

_FORM = "(X, y) or (X, y, weights), or X alone to predict"
_TABLE_LIKE = ("shape", "dtype", "columns", "__array__", "__dataframe__", "__arrow_c_stream__")


class BatchSource(Source):
    """Rows of batches, each (X, y) or (X, y, weights), or X alone; messages count them from 0.

    Parameters
    ----------
    batches : iterable
        A list, or an object whose ``__iter__`` starts anew each time and gives the same rows in
        the same order. Batches without rows are passed over.
    read : callable, optional
        ``read(values, "X")`` and ``read(values, "y")`` turn a table into an array of floats.
    """

    n_pieces = 1

    def __init__(
        self, batches: Iterable[Any], read: Callable[[Any, str], Any] | None = None
    ) -> None:
        first = iter(batches)
        if first is batches or first is iter(batches):
            raise ValueError(
                f"X is of type {type(batches).__name__}, which can be read only once, but rows are "
                "read several times: give a list of batches, or an object of a class whose "
                "__iter__ starts anew."
            )
        self._batches = batches
        self._read = _plain if read is None else read
        self._n_rows: int | None = None
        found = next(self._converted(first), None)
        if found is None:
            raise ValueError(f"X gave no rows: let it give batches {_FORM}.")
        self._layout = found[1]
        self.input_names, self.n_inputs = self._layout.input_names, self._layout.n_inputs
        self.target_names, self.n_targets = self._layout.target_names, self._layout.n_targets
        self.single_target = self._layout.single_target

    def read(self, piece: int) -> Iterator[Rows]:
        """All batches from the beginning, cut where they are longer than a block."""
        count = 0
        for number, layout, rows in self._converted(iter(self._batches)):
            _compare(layout, self._layout, f"batch {number}")
            count += rows.inputs.shape[0]
            if self._n_rows is not None and count > self._n_rows:
                self._refuse_count(f"more than {self._n_rows:,}")
            check_block(rows, f"batch {number}", self.input_names, self.target_names)
            yield from split(rows, BLOCK_ROWS)
        if self._n_rows is None:
            self._n_rows = count
        if count != self._n_rows:
            self._refuse_count(f"{count:,}")

    def check_unchanged(self) -> None:
        """No file to look at; that every pass gives as many rows is checked while reading."""

    def _converted(self, batches: Iterator[Any]) -> Iterator[tuple[int, _Layout, Rows]]:
        """Number, layout and rows of the batches that have any."""
        for number, batch in enumerate(batches):
            where = f"batch {number}"
            parts = _parts(batch, where)
            if _n_rows(parts, where) > 0:
                yield number, *self._convert(parts, where)

    def _convert(self, parts: dict[str, Any], where: str) -> tuple[_Layout, Rows]:
        try:
            inputs = _double(self._read(parts["X"], "X"), "X", (2,))
            n_rows = inputs.shape[0]
            targets, weights = np.empty((n_rows, 0)), np.ones(n_rows)
            if "y" in parts:
                targets = _double(self._read(parts["y"], "y"), "y", (1, 2))
            if "weights" in parts:
                weights = _double(_plain(parts["weights"], "weights"), "weights", (1,))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from error
        layout = _Layout(
            input_names=_names(parts["X"], where),
            n_inputs=inputs.shape[1],
            target_names=_names(parts["y"], where) if "y" in parts else None,
            n_targets=1 if targets.ndim == 1 else targets.shape[1],
            single_target=targets.ndim == 1,
        )
        return layout, Rows(inputs=inputs, targets=targets.reshape(n_rows, -1), weights=weights)

    def _refuse_count(self, count: str) -> None:
        raise ValueError(
            f"X gave {self._n_rows:,} rows in the first pass and {count} in a later one: let it "
            "give the same rows each time."
        )


def gives_batches(X: Any) -> bool:
    """Whether `X` gives batches rather than being a table itself."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and (
            (not isinstance(X[0], (list, tuple)) and _is_table(X[0]))
            or (isinstance(X[0], (list, tuple)) and len(X[0]) > 0 and _is_table(X[0][0]))
        )
    if isinstance(X, (str, bytes, range, Mapping, Set, type)):
        return False
    return hasattr(X, "__iter__") and not any(hasattr(X, name) for name in _TABLE_LIKE)


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """What all batches must have in common."""

    input_names: tuple[str, ...] | None
    n_inputs: int
    target_names: tuple[str, ...] | None
    n_targets: int
    single_target: bool


def _compare(found: _Layout, first: _Layout, where: str) -> None:
    """Raise if a batch is not laid out as the first one."""
    if found == first:
        return
    if found.n_inputs != first.n_inputs:
        difference = f"has {found.n_inputs} columns, but the first has {first.n_inputs}"
    elif found.input_names != first.input_names:
        difference = _other_names("columns", found.input_names, first.input_names)
    elif found.n_targets != first.n_targets:
        difference = f"has {found.n_targets} targets, but the first has {first.n_targets}"
    elif found.single_target != first.single_target:
        shapes = {True: "(rows,)", False: "(rows, outputs)"}
        difference = (
            f"has a y of shape {shapes[found.single_target]}, but the first has one of shape "
            f"{shapes[first.single_target]}"
        )
    else:
        difference = _other_names("targets", found.target_names, first.target_names)
    raise ValueError(f"{where} {difference}: let all batches have the same columns in one order.")


def _other_names(what: str, found: tuple[str, ...] | None, first: tuple[str, ...] | None) -> str:
    if found is None or first is None:
        given = "no names" if found is None else "names"
        return f"has {given} of {what}, but the first has {'names' if found is None else 'none'}"
    index = next(i for i, (a, b) in enumerate(zip(found, first, strict=True)) if a != b)
    return f"has {found[index]!r} where the first has {first[index]!r} among its {what}"


def _parts(batch: Any, where: str) -> dict[str, Any]:
    """X, y and weights of a batch, those that it has."""
    if not isinstance(batch, (list, tuple)) and _is_table(batch):
        return {"X": batch}
    if not isinstance(batch, (list, tuple)):
        raise ValueError(f"{where} is of type {type(batch).__name__}: let it be {_FORM}.")
    if not 1 <= len(batch) <= 3:
        raise ValueError(f"{where} has {len(batch)} parts: let it be {_FORM}.")
    parts = zip(("X", "y", "weights"), batch, strict=False)
    return {name: part for name, part in parts if part is not None or name == "X"}


def _n_rows(parts: dict[str, Any], where: str) -> int:
    lengths = {name: _length(values) for name, values in parts.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{length} in {name}" for name, length in lengths.items())
        raise ValueError(f"{where} has different numbers of rows ({counts}): let them be equal.")
    return lengths["X"]


def _length(values: Any) -> int:
    """Number of rows; 1 of a lone number, which its conversion refuses with better words."""
    shape = getattr(values, "shape", None)
    if shape is None:
        return len(values) if hasattr(values, "__len__") else 1
    return int(shape[0]) if len(shape) > 0 else 1


def _is_table(values: Any) -> bool:
    """Whether `values` has rows and columns: an array, a frame, or rows of numbers in lists."""
    shape = getattr(values, "shape", None)
    if shape is not None:
        return len(shape) == 2
    if not isinstance(values, (list, tuple)) or not values:
        return False
    row = values[0]
    return isinstance(row, (list, tuple)) and len(row) > 0 and isinstance(row[0], numbers.Number)


def _names(values: Any, where: str) -> tuple[str, ...] | None:
    """Names of the columns of a frame, if they are text."""
    found = getattr(values, "column_names", None)
    if found is None:
        found = getattr(values, "columns", None)
    names = () if found is None else tuple(found)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    check_unique(names, where)
    return tuple(str(name) for name in names)


def _plain(values: Any, name: str) -> Any:
    return _floats(values, name, None)


def _double(values: Any, name: str, ranks: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(to_numpy(values), dtype=np.float64)
    if array.ndim not in ranks or 0 in array.shape[1:]:
        shape = {"X": "(rows, columns)", "y": "(rows,) or (rows, outputs)", "weights": "(rows,)"}
        raise ValueError(f"{name} must have shape {shape[name]}, got {array.shape}.")
    return array
