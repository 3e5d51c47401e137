"""Parquet and Arrow files as a source of rows: files, folders and datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from bowtienet.data.arrow_files import (
    DataFile,
    check_file,
    data_files,
    holds_tables,
    open_path,
    pyarrow,
    read_group,
)
from bowtienet.data.in_memory import InMemory
from bowtienet.data.parsing import check_unique
from bowtienet.data.source import Source, read_part
from bowtienet.data.tables import Block, Chosen, choose_columns

INDEX = re.compile(r"__index_level_\d+__")
"""Columns of an index without a name, which pandas writes beside the others."""
_FOOTERS = 8
"""Files whose footers are kept while row groups are read in random order."""
_ONCE = ("Scanner", "ParquetFile", "ParquetDataset")


class ArrowSource(Source):
    """Rows of files with named columns; its pieces are their groups of rows.

    Made by `open_arrow`, which checks names and types before anything is read.
    """

    def __init__(self, files: Sequence[DataFile], chosen: Chosen) -> None:
        self.feature_names, self.n_features = chosen.features, len(chosen.features)
        self.target_names, self.n_targets = chosen.targets or None, len(chosen.targets)
        self.single_target = isinstance(chosen.y, str)
        self._chosen = chosen
        self._files = tuple(files)
        self._pieces = [(i, group) for i, file in enumerate(files) for group in file.groups]
        self.n_pieces = len(self._pieces)
        self._fragments: dict[int, Any] = {}

    def read(self, piece: int) -> Iterator[Block]:
        """Blocks of a group of rows."""
        index, group = self._pieces[piece]
        file, chosen, start = self._files[index], self._chosen, 0
        names = [name for name in chosen.all if name not in file.folders]
        for batch in read_group(file, group, names, self._fragment(index)):
            stop = start + batch.num_rows
            where = f"{file.where(group)} (rows {start} to {stop - 1})"
            table = _with_folders(batch, file.folders, chosen.all)
            yield read_part(where, table, chosen.y, chosen.weight)[0]
            start = stop

    def check_unchanged(self) -> None:
        """Raise if a file changed since it was opened."""
        for file in self._files:
            check_file(file)

    def _fragment(self, index: int) -> Any:
        """The opened file, which knows its footer after the first use; only a few are kept."""
        fragment = self._fragments.get(index) or self._files[index].open()
        others = [item for item in self._fragments.items() if item[0] != index]
        # A new dictionary each time, so that threads may read pieces side by side.
        self._fragments = dict([*others[1 - _FOOTERS :], (index, fragment)])
        return fragment

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fragments": {}}


def is_arrow(X: Any) -> bool:
    """Whether `X` is a path, a list of paths or a pyarrow dataset."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(item, (str, os.PathLike)) for item in X)
    if isinstance(X, (str, os.PathLike)):
        return True
    if type(X).__module__.split(".")[0] != "pyarrow":
        return False
    kind = type(X).__name__
    if kind in _ONCE or kind.endswith("Reader"):
        raise ValueError(
            f"X is a {kind} of pyarrow, which cannot be read several times: give the path of the "
            "files, a pyarrow.dataset.Dataset or a pyarrow.Table."
        )
    return kind.endswith("Dataset")


def open_arrow(X: Any, y: Any, sample_weight: Any, features: Sequence[str] | None) -> Source:
    """The source of `X`, for which `is_arrow` holds; see `open_source`."""
    is_path = isinstance(X, (str, os.PathLike, list, tuple))
    dataset = open_path(X) if is_path else X
    if holds_tables(dataset):
        return InMemory(dataset.to_table(), y, sample_weight, features=features)
    files = data_files(dataset, whole=is_path)
    if not files:
        label = os.path.basename(os.path.abspath(X)) if isinstance(X, (str, os.PathLike)) else "X"
        raise ValueError(f"{label} has 0 sample(s): at least one is needed.")
    names = list(dataset.schema.names)
    if is_path:
        folders = [name for name in names if name in files[0].folders]
        names = list(dict.fromkeys([*files[0].schema.names, *folders]))
    names = [name for name in names if not INDEX.fullmatch(name)]
    chosen = choose_columns(names, y, sample_weight, features)
    for file in files:
        _check_columns(file, files[0], chosen, extra=features is None)
        _check_types(file, chosen)
    return ArrowSource(files, chosen)


def _check_columns(file: DataFile, first: DataFile, chosen: Chosen, *, extra: bool) -> None:
    """Raise if a file has other columns than the first; pyarrow would fill them with nulls."""
    check_unique(file.schema.names, file.label)
    known = {*first.schema.names, *first.folders}
    here = {*file.schema.names, *file.folders}
    remedy = "let all files have the same columns, or name those to use with features"
    for name in chosen.all:
        if name not in here:
            owner = "the first file" if name in known else "the dataset"
            raise ValueError(f"{file.label} has no column {name!r}, which {owner} has: {remedy}.")
    unknown = [name for name in file.schema.names if name not in known and not INDEX.match(name)]
    if extra and unknown:
        raise ValueError(
            f"{file.label} has the column {unknown[0]!r}, which the first file has not: {remedy}."
        )


def _check_types(file: DataFile, chosen: Chosen) -> None:
    """Refuse nested columns, and targets and weights that are no numbers, before they are read."""
    types = pyarrow().types
    real = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    for name in chosen.all:
        if name in file.folders:
            kind = pyarrow().scalar(file.folders[name]).type
        else:
            kind = file.schema.field(name).type
        if name not in chosen.features and not any(check(kind) for check in real):
            raise ValueError(f"{file.label} has no numbers in {name!r} ({kind}).")
        if types.is_nested(kind):
            raise ValueError(f"{file.label} has lists or tables in {name!r} ({kind}).")


def _with_folders(batch: Any, folders: dict[str, Any], names: Sequence[str]) -> Any:
    """The columns of a batch as a table, with those that folders stand for."""
    arrow = pyarrow()
    table = arrow.Table.from_batches([batch])
    for name, value in folders.items():
        if name in names:
            table = table.append_column(name, arrow.repeat(arrow.scalar(value), batch.num_rows))
    return table.select(list(names))
