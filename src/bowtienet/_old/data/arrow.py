"""Parquet and Arrow files as a source of rows: files, folders and datasets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bowtienet._old.data.arrow_files import open_path, pyarrow
from bowtienet._old.data.in_memory import InMemory
from bowtienet._old.data.parsing import check_unique
from bowtienet._old.data.source import BLOCK_ROWS, Source, read_part, read_part_classes
from bowtienet._old.data.tables import Block, Chosen, choose_columns, split_block
from bowtienet._old.data.targets import NUMBERS, Reading

INDEX = re.compile(r"__index_level_\d+__")
"""Columns of an index without a name, which pandas writes beside the others."""
_ONCE = ("Scanner", "ParquetFile", "ParquetDataset")


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file of a dataset: what opens it again, in any process and without what was read of it."""

    path: str
    filesystem: Any
    format: Any
    schema: Any
    folders: dict[str, Any]
    """Values of the columns that its folders stand for."""
    groups: tuple[int, ...]
    """Row groups of a Parquet file or record batches of an Arrow file; others are one group."""
    stamp: tuple[int, int] | None
    """Size, and time in ns of the last change; None for files in other storage."""


class ArrowSource(Source):
    """Rows of files with named columns; its pieces are their groups of rows.

    Made by `open_arrow`, which checks names and types before anything is read.
    """

    def __init__(
        self, files: Sequence[DataFile], chosen: Chosen, reading: Reading = NUMBERS
    ) -> None:
        self.feature_names, self.n_features = chosen.features, len(chosen.features)
        self.target_names, self.n_targets = chosen.targets or None, len(chosen.targets)
        self.single_target = isinstance(chosen.y, str)
        self.has_exposure = reading.target == "count" or chosen.exposure is not None
        self._chosen, self.reading = chosen, reading
        self._pieces = [(file, group) for file in files for group in file.groups]
        self.n_pieces = len(self._pieces)

    def read(self, piece: int) -> Iterator[Block]:
        """Blocks of a group of rows; memory is bounded by one group."""
        chosen = self._chosen
        settings = {"exposure": chosen.exposure, "reading": self.reading}
        for where, batch in self._batches(piece, chosen.all):
            block, _ = read_part(where, batch, chosen.y, chosen.weight, **settings)
            yield from split_block(block, BLOCK_ROWS)

    def part_classes(self) -> Iterator[np.ndarray]:
        """Classes of each group of rows; only the column of labels is read."""
        chosen = self._chosen
        for piece in range(self.n_pieces):
            for where, batch in self._batches(piece, chosen.targets):
                yield read_part_classes(where, batch, chosen.y)

    def check_unchanged(self) -> None:
        """Raise if a file changed since it was opened."""
        for file in {file.path: file for file, _ in self._pieces}.values():
            _check_unchanged(file)

    def _batches(self, piece: int, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Tables with the given columns of a group of rows, and where they are."""
        file, group = self._pieces[piece]
        where = f"{file.path}, row group {group}"
        _check_unchanged(file)
        try:
            for batch in _read_group(file, group, names):
                yield where, batch
        except (OSError, pyarrow().ArrowException) as error:
            raise ValueError(f"{where} cannot be read ({error}): write the file again.") from error


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


def open_arrow(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    features: Sequence[str] | None = None,
    exposure: Any = None,
    reading: Reading = NUMBERS,
) -> Source:
    """The source of `X`, for which `is_arrow` holds; see `open_source`."""
    dataset = open_path(X) if isinstance(X, (str, os.PathLike, list, tuple)) else X
    if isinstance(dataset, pyarrow(".dataset").InMemoryDataset):
        settings = {"features": features, "exposure": exposure, "reading": reading}
        return InMemory(dataset.to_table(), y, sample_weight, **settings)
    files = [_open_file(fragment) for fragment in dataset.get_fragments()]
    files = [file for file in files if file.groups]
    if not files:
        raise ValueError(f"{X} has 0 sample(s): at least one is needed.")
    names = [name for name in dataset.schema.names if not INDEX.fullmatch(name)]
    chosen = choose_columns(names, y, sample_weight, features, exposure)
    for file in files:
        _check_columns(file, chosen)
        if features is None:
            _check_no_others(file, names)
    return ArrowSource(files, chosen, reading)


def _open_file(fragment: Any) -> DataFile:
    path, local = fragment.path, isinstance(fragment.filesystem, pyarrow(".fs").LocalFileSystem)
    if local:
        path = os.path.abspath(path)  # other processes may work in other folders
    try:
        return DataFile(
            # Before anything is read, so that no change after that goes unnoticed.
            stamp=_stamp(path) if local else None,
            path=path,
            filesystem=fragment.filesystem,
            format=fragment.format,
            schema=fragment.physical_schema,
            folders=pyarrow(".dataset").get_partition_keys(fragment.partition_expression),
            groups=_groups(fragment),
        )
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{path} cannot be read ({error}): write the file again.") from error


def _groups(fragment: Any) -> tuple[int, ...]:
    """Numbers of the groups of a file that have rows."""
    if hasattr(fragment, "row_groups"):
        return tuple(group.id for group in fragment.row_groups if group.num_rows > 0)
    if fragment.count_rows() == 0:
        return ()
    if not _is_ipc(fragment.format):
        return (0,)
    with fragment.open() as content:
        return tuple(range(pyarrow(".ipc").open_file(content).num_record_batches))


def _is_ipc(file_format: Any) -> bool:
    return isinstance(file_format, pyarrow(".dataset").IpcFileFormat)


def _check_columns(file: DataFile, chosen: Chosen) -> None:
    """Raise if a file lacks a column, which pyarrow would fill with nulls."""
    check_unique(file.schema.names, file.path)
    for name in chosen.all:
        if name not in file.schema.names and name not in file.folders:
            raise ValueError(
                f"{file.path} has no column {name!r}, which the first file has: let all files have "
                "the same columns, or name those to use with features."
            )


def _check_no_others(file: DataFile, names: Sequence[str]) -> None:
    """Raise if a file has columns that the dataset, whose names are of its first file, has not."""
    for name in file.schema.names:
        if name not in names and not INDEX.fullmatch(name):
            raise ValueError(
                f"{file.path} has the column {name!r}, which the first file has not: let all files "
                "have the same columns, or name those to use with features."
            )


def _check_unchanged(file: DataFile) -> None:
    if file.stamp is not None and (
        not os.path.exists(file.path) or _stamp(file.path) != file.stamp
    ):
        raise ValueError(
            f"{file.path} changed after it was opened: leave the files alone while they are read, "
            "and fit again."
        )


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _read_group(file: DataFile, group: int, names: Sequence[str]) -> Iterator[Any]:
    """Tables with the given columns, those that folders stand for among them."""
    arrow = pyarrow()
    columns = [name for name in names if name not in file.folders]
    read = _read_ipc if _is_ipc(file.format) else _read_fragment
    for batch in read(file, group, columns):
        table = arrow.Table.from_batches([batch])
        for name in names:
            if name in file.folders:
                values = arrow.repeat(arrow.scalar(file.folders[name]), len(table))
                table = table.append_column(name, values)
        yield table.select(list(names))


def _read_ipc(file: DataFile, group: int, columns: Sequence[str]) -> Iterator[Any]:
    ipc = pyarrow(".ipc")
    fields = [file.schema.names.index(name) for name in columns]
    with file.filesystem.open_input_file(file.path) as content:
        options = ipc.IpcReadOptions(included_fields=fields)
        yield ipc.open_file(content, options=options).get_batch(group)


def _read_fragment(file: DataFile, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Batches of a group, one after the other: nothing is read ahead."""
    datasets, options = pyarrow(".dataset"), {}
    if isinstance(file.format, datasets.ParquetFileFormat):
        fragment = file.format.make_fragment(file.path, file.filesystem, row_groups=[group])
        if file.stamp is not None:
            # A file on disk needs no copy of its bytes beside the numbers.
            options["fragment_scan_options"] = datasets.ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True
            )
    else:
        fragment = file.format.make_fragment(file.path, file.filesystem)
    yield from fragment.to_batches(
        columns=list(columns),
        batch_size=BLOCK_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
        **options,
    )
