"""Arrays as a source of rows: memory maps, and arrays in memory that are too large to copy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._arrays import slices
from bowtienet.data.blocks import PIECE_ROWS, Source, Stamp, check_block, check_stamp, stamp
from bowtienet.data.rows import Rows


class ArraySource(Source):
    """Rows of arrays in pieces of 4,096; only the piece that is read is ever converted.

    Parameters
    ----------
    X : array (rows, columns)
        Of real numbers; a memory map, or an array in memory.
    y : array (rows,) or (rows, outputs), optional
    weights : array (rows,), optional
        How many times each row counts; 1 by default.
    """

    input_names = None
    target_names = None

    def __init__(self, X: Any, y: Any = None, weights: Any = None) -> None:
        self._inputs = _numbers(X, "X", (2,))
        n_rows, self.n_inputs = self._inputs.shape
        if n_rows == 0 or self.n_inputs == 0:
            raise ValueError(f"X has no {'columns' if n_rows else 'rows'}: at least one is needed.")
        self._targets = None if y is None else _numbers(y, "y", (1, 2))
        self._weights = None if weights is None else _numbers(weights, "weights", (1,))
        for values, name in ((self._targets, "y"), (self._weights, "weights")):
            if values is not None and values.shape[0] != n_rows:
                raise ValueError(
                    f"{name} has {values.shape[0]} rows, but X has {n_rows}: the numbers must be "
                    "equal."
                )
        self.n_targets = _n_columns(self._targets)
        if y is not None and self.n_targets == 0:
            raise ValueError("y has no columns: give one number, or a row of them, for each row.")
        self.single_target = self._targets is not None and self._targets.ndim == 1
        self._parts = slices(n_rows, PIECE_ROWS)
        self.n_pieces = len(self._parts)
        self._stamps = [found for found in map(_map_stamp, self._arrays()) if found is not None]

    def read(self, piece: int) -> Iterator[Rows]:
        """The one block of a piece."""
        self.check_unchanged()
        part = self._parts[piece]
        n_rows = part.stop - part.start
        rows = Rows(
            inputs=np.asarray(self._inputs[part], dtype=np.float64),
            targets=_part(self._targets, part, np.empty((n_rows, 0))).reshape(n_rows, -1),
            weights=_part(self._weights, part, np.ones(n_rows)),
        )
        yield check_block(rows, f"rows {part.start} to {part.stop - 1} of X")

    def check_unchanged(self) -> None:
        """Raise if the file of a memory map changed since the source was made."""
        for found in self._stamps:
            check_stamp(found, os.path.basename(found.path))

    def _arrays(self) -> list[np.ndarray | None]:
        return [self._inputs, self._targets, self._weights]

    def __getstate__(self) -> dict[str, Any]:
        # Pickle would send all the numbers of a memory map; its place in the file is enough.
        state = dict(self.__dict__)
        for name in ("_inputs", "_targets", "_weights"):
            state[name] = _place(state[name])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.check_unchanged()
        for name in ("_inputs", "_targets", "_weights"):
            if isinstance(state[name], _Place):
                setattr(self, name, _open_place(state[name]))


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where in a file the numbers of a memory map are, in bytes."""

    path: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    length: int
    first: int


def _place(array: np.ndarray | None) -> Any:
    """The place of a memory map in its file; other arrays as they are."""
    root = None if array is None else _root(array)
    if root is None or array is None:
        return array
    low, high = _bounds(array)
    return _Place(
        path=_path(root),
        dtype=array.dtype,
        shape=array.shape,
        strides=array.strides,
        offset=root.offset + low - _bounds(root)[0],
        length=high - low,
        first=array.__array_interface__["data"][0] - low,
    )


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """First address of the numbers and the one after the last; strides may be negative."""
    address = array.__array_interface__["data"][0]
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = address + sum(step for step in reach if step < 0)
    return low, address + sum(step for step in reach if step > 0) + array.itemsize


def _open_place(place: _Place) -> np.ndarray:
    raw = np.memmap(
        place.path, dtype=np.uint8, mode="r", offset=place.offset, shape=(place.length,)
    )
    return np.ndarray(
        place.shape, dtype=place.dtype, buffer=raw, offset=place.first, strides=place.strides
    )


def _root(array: np.ndarray) -> np.memmap | None:
    """The memory map of a file that `array` is a view of (only the first knows its offset)."""
    root: np.memmap | None = None
    base: Any = array
    while base is not None:
        if isinstance(base, np.memmap):
            root = base
        base = getattr(base, "base", None)
    # Changes of a copy-on-write map are in no file, so its numbers themselves must be kept.
    return None if root is None or root.filename is None or root.mode == "c" else root


def _path(root: np.memmap) -> str:
    return os.path.abspath(os.fspath(root.filename or ""))


def _map_stamp(array: np.ndarray | None) -> Stamp | None:
    root = None if array is None else _root(array)
    if root is None:
        return None
    # Whoever maps a file for writing may write to it: then only its size must stay.
    return stamp(_path(root), with_time=root.mode == "r")


def _numbers(values: Any, name: str, ranks: tuple[int, ...]) -> np.ndarray:
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array: fill or drop the masked values first."
        )
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must be an array of real numbers, got dtype {array.dtype}: convert or encode "
            "it first."
        )
    if array.ndim not in ranks:
        words = {"X": "(rows, columns)", "y": "(rows,) or (rows, outputs)", "weights": "(rows,)"}
        raise ValueError(f"{name} must have shape {words[name]}, got {array.shape}: reshape it.")
    return array


def _n_columns(targets: np.ndarray | None) -> int:
    if targets is None:
        return 0
    return 1 if targets.ndim == 1 else targets.shape[1]


def _part(values: np.ndarray | None, part: slice, otherwise: np.ndarray) -> np.ndarray:
    return otherwise if values is None else np.asarray(values[part], dtype=np.float64)
