"""Memory maps as a source of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._arrays import slices
from bowtienet.data.parsing import check_rank
from bowtienet.data.source import PIECE_ROWS, Source, Stamp, check_stamp, read_part, stamp
from bowtienet.data.tables import Block

_ARRAYS = ("_features", "_targets", "_weights")


class MemoryMap(Source):
    """Rows of a memory map in pieces of 4,096; only the piece that is read is ever converted.

    Parameters
    ----------
    X : numpy.memmap (rows, columns)
    y : array (rows,) or (rows, outputs), optional
        Targets, in memory or mapped.
    sample_weight : array (rows,), optional
    """

    def __init__(self, X: np.memmap, y: Any = None, sample_weight: Any = None) -> None:
        self._features = _array(X, "X")
        self._targets = None if y is None else _array(y, "y")
        self._weights = None if sample_weight is None else _array(sample_weight, "sample_weight")
        n_rows = len(self._features)
        for values, name in ((self._targets, "y"), (self._weights, "sample_weight")):
            if values is not None and len(values) != n_rows:
                raise ValueError(
                    f"{name} has {len(values)} rows, but X has {n_rows}: inconsistent numbers of "
                    "samples."
                )
        self._pieces = slices(n_rows, PIECE_ROWS)
        self.n_pieces = len(self._pieces)
        self._stamps = [found for found in map(_map_stamp, self._arrays()) if found is not None]
        # A few rows are enough to know the columns, and to refuse what cannot be read at all.
        self.set_layout(read_part("X", *self._slices(slice(0, 1)))[1])

    def read(self, piece: int) -> Iterator[Block]:
        """The one block of a piece."""
        self.check_unchanged()
        part = self._pieces[piece]
        yield read_part(f"rows {part.start} to {part.stop - 1} of X", *self._slices(part))[0]

    def check_unchanged(self) -> None:
        """Raise if the file of a memory map changed since the source was made."""
        for found in self._stamps:
            check_stamp(found, os.path.basename(found.path))

    def _arrays(self) -> list[np.ndarray | None]:
        return [self._features, self._targets, self._weights]

    def _slices(self, part: slice) -> list[np.ndarray | None]:
        return [None if array is None else np.asarray(array[part]) for array in self._arrays()]

    def __getstate__(self) -> dict[str, Any]:
        # Pickle would send all the numbers of a memory map; its place in the file is enough.
        return {**self.__dict__, **{name: _place(getattr(self, name)) for name in _ARRAYS}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.check_unchanged()
        for name in _ARRAYS:
            if isinstance(state[name], _Place):
                setattr(self, name, _open_place(state[name]))


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where in a file the numbers of a memory map are; `first` is the byte of the first one."""

    path: str
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int


def _array(values: Any, name: str) -> np.ndarray:
    if isinstance(values, str):
        raise ValueError(f"{name} is a name, but the columns of a memory map have none.")
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    check_rank(array.shape, name)
    return array


def _place(array: np.ndarray | None) -> Any:
    """The place of a memory map in its file; other arrays as they are."""
    root = None if array is None else _root(array)
    if root is None or array is None:
        return array
    return _Place(
        path=_path(root),
        dtype=array.dtype,
        shape=array.shape,
        strides=array.strides,
        first=root.offset + _address(array) - _address(root),
    )


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _open_place(place: _Place) -> np.ndarray:
    content = np.memmap(place.path, dtype=np.uint8, mode="r")
    return np.ndarray(
        place.shape, dtype=place.dtype, buffer=content, offset=place.first, strides=place.strides
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
