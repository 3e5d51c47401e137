"""What every source of rows has in common: its interface, and the checks of a block and of a file.

A source is read block by block and as often as wanted, so that it may be larger than memory.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bowtienet.data.rows import Rows

BLOCK_ROWS = 65_536
"""No block has more rows."""
PIECE_ROWS = 4_096
"""Rows in a piece of a table in memory or in a memory map: few enough to mix well."""

_REMEDY = "impute them or leave those rows out first"
_SHOWN = 5


class Source(ABC):
    """Rows that are read block by block, as often as wanted.

    A source can be pickled: it holds paths and settings, and opens files only to read them.

    Attributes
    ----------
    input_names, target_names : tuple of str, or None
        Names of the columns, None if they have none.
    n_inputs, n_targets : int
        Numbers of columns; no targets for a source of inputs alone.
    single_target : bool
        Whether the targets were given as one column (1-D, or one name), not as a table.
    n_pieces : int
        Parts that can be read in any order; 1 for what can only be read from its beginning.
    """

    input_names: tuple[str, ...] | None
    target_names: tuple[str, ...] | None
    n_inputs: int
    n_targets: int
    single_target: bool
    n_pieces: int

    @abstractmethod
    def read(self, piece: int) -> Iterator[Rows]:
        """Blocks of a piece in the user's units: at most BLOCK_ROWS rows of finite float64.

        Targets have the shape (rows, n_targets), also (rows, 0); weights may all be zero.
        """

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise if a file behind the rows is no longer what it was when it was opened."""


def check_block(
    rows: Rows,
    where: str,
    input_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
) -> Rows:
    """`rows` if all is finite and no weight negative, else an error that says where it is not."""
    finite = all(np.isfinite(x).all() for x in (rows.inputs, rows.targets, rows.weights))
    if not finite:
        bad = [
            *_not_finite(rows.inputs, _labels("column", input_names, rows.inputs)),
            *_not_finite(rows.targets, _labels("target", target_names, rows.targets)),
            *_not_finite(rows.weights[:, None], ["the weights"]),
        ]
        shown = ", ".join(bad[:_SHOWN]) + _more(len(bad) - _SHOWN)
        raise ValueError(f"{where}: NaN or infinity in {shown}: {_REMEDY}.")
    negative = int(np.sum(rows.weights < 0.0))
    if negative:
        raise ValueError(
            f"{where}: {negative} of the weights are negative: use 0 to leave a row out."
        )
    return rows


def check_unique(names: Sequence[str], where: str) -> None:
    """Raise if several columns have the same name."""
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where} has several columns called {', '.join(repeated[:_SHOWN])}"
            f"{_more(len(repeated) - _SHOWN)}: rename them so that names are unique."
        )


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """Size in bytes of a file, and the time in ns of its last change (None: may be written to)."""

    path: str
    size: int
    modified: int | None


def stamp(path: str, *, with_time: bool = True) -> Stamp:
    """What is remembered of a file to notice that it changed."""
    found = os.stat(path)
    return Stamp(path=path, size=found.st_size, modified=found.st_mtime_ns if with_time else None)


def check_stamp(before: Stamp, label: str) -> None:
    """Raise if the file is gone or changed."""
    remedy = "leave the files alone while they are read, and fit again"
    try:
        now = stamp(before.path, with_time=before.modified is not None)
    except OSError as error:
        raise ValueError(f"{label} cannot be read any more ({error.strerror}): {remedy}.") from None
    if now.size != before.size:
        raise ValueError(
            f"{label} changed during the fit (it had {before.size:,} bytes and has {now.size:,} "
            f"now): {remedy}."
        )
    if now.modified != before.modified:
        raise ValueError(
            f"{label} changed during the fit (it was written to after it was opened): {remedy}."
        )


def _labels(kind: str, names: Sequence[str] | None, values: np.ndarray) -> list[str]:
    if names is None:
        return [f"{kind} {index}" for index in range(values.shape[1])]
    return [f"{kind} {name!r}" for name in names]


def _not_finite(values: np.ndarray, labels: Sequence[str]) -> list[str]:
    """The columns that are not all finite, such as "column 'x2' (3 NaN, 1 infinite)"."""
    missing, infinite = np.isnan(values).sum(axis=0), np.isinf(values).sum(axis=0)
    found = []
    for index in np.flatnonzero(missing + infinite).tolist():
        counts = [f"{missing[index]} NaN"] * bool(missing[index])
        counts += [f"{infinite[index]} infinite"] * bool(infinite[index])
        found.append(f"{labels[index]} ({', '.join(counts)})")
    return found


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
