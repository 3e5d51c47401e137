"""Predictions as columns, and into a Parquet file block by block."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bowtienet._old import persistence
from bowtienet._old.prediction.mixture import Mixture


def write_parquet(
    path: str | os.PathLike[str], parts: Iterable[Mixture], coverage: float | None
) -> None:
    """Mean, deviation and interval of every row, completely or not at all."""
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError("Parquet needs pyarrow: pip install 'bowtienet[bigdata]'.") from None
    target = persistence.check_writable(path)
    with persistence.replacing(target) as temporary:
        writer: Any = None
        try:
            for part in parts:
                limits = None if coverage is None else part.interval(coverage)
                table = arrow.table(prediction_columns(part, limits))
                writer = writer or parquet.ParquetWriter(temporary, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()


def refuse_own_input(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Refuse to write predictions over the rows that they are of, or among them."""
    read, written = os.path.realpath(source), os.path.realpath(path)
    if written == read or written.startswith(read + os.sep):
        raise ValueError(
            f"{os.fspath(path)} is, or would be, one of the files that are read: write the "
            "predictions somewhere else."
        )


def prediction_columns(
    part: Mixture, limits: np.ndarray | None, names: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Columns mean, std, and lower and upper limits (n, 2), or (n, D, 2) of several targets.

    With several targets there is one of each for every name.
    """
    columns = {"mean": part.mean(), "std": part.std()}
    if limits is not None:
        columns |= {"lower": limits[..., 0], "upper": limits[..., 1]}
    if columns["mean"].ndim == 1:
        return columns
    if columns["mean"].shape[1] == 1:
        return {column: values[:, 0] for column, values in columns.items()}
    names = [str(i) for i in range(columns["mean"].shape[1])] if names is None else names
    return {
        f"{column}_{name}": values[:, index]
        for column, values in columns.items()
        for index, name in enumerate(names)
    }
