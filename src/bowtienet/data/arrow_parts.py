"""The parts of an Arrow source: files and tables, found, opened and read in groups of rows.

A group is a row group of a Parquet file, a record batch of an Arrow file or a slice of a table.
pyarrow (``pip install 'bowtienet[bigdata]'``) is imported only when it is needed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bowtienet._arrays import slices
from bowtienet.data.blocks import (
    BLOCK_ROWS,
    PIECE_ROWS,
    Stamp,
    check_stamp,
    check_unique,
    stamp,
)

_SUFFIXES = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
}
_MARKS = {b"PAR1": "parquet", b"ARRO": "ipc"}
_NEEDED = "give a Parquet or Arrow file, or a folder of them"


@dataclass(frozen=True, kw_only=True)
class FilePart:
    """A file: the numbers of its groups that have rows, and the values its folders stand for."""

    label: str
    path: str
    filesystem: Any
    format: Any
    kind: str
    folders: dict[str, Any]
    groups: tuple[int, ...]
    stamp: Stamp | None

    def where(self, group: int) -> str:
        """Words for a group."""
        words = {"parquet": "row group", "ipc": "batch", "other": "part"}
        return f"{self.label}, {words[self.kind]} {group}"


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """A table in memory."""

    label: str
    table: Any
    folders: dict[str, Any]
    groups: tuple[int, ...]
    stamp: None = None

    def where(self, group: int) -> str:
        """Words for a group."""
        start = group * PIECE_ROWS
        stop = min(start + PIECE_ROWS, self.table.num_rows)
        return f"rows {start} to {stop - 1} of {self.label}"


Part = FilePart | TablePart


def pyarrow(module: str = "") -> Any:
    """pyarrow or one of its modules, such as ".dataset"."""
    try:
        return importlib.import_module(f"pyarrow{module}")
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files need pyarrow: pip install 'bowtienet[bigdata]'."
        ) from error


def open_path(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Any:
    """The pyarrow dataset of a file, of the files of a folder, or of several files."""
    if isinstance(path, str) and "://" in path:
        return _dataset(path, path, format="parquet", partitioning="hive")
    if not isinstance(path, (str, os.PathLike)):
        files = [_absolute(name) for name in path]
        kinds = {_kind(file) for file in files}
        base = None
    else:
        found = _absolute(path)
        files = _files(found) if found.is_dir() else [found]
        kinds = {_SUFFIXES[file.suffix] if found.is_dir() else _kind(file) for file in files}
        base = str(found) if found.is_dir() else None
    label = files[0].name if base is None else Path(base).name
    if len(kinds) > 1:
        raise ValueError(f"{label} has both Parquet and Arrow files: give files of one kind.")
    kind = kinds.pop()
    # pyarrow would unify the schema with itself first and then say less.
    check_unique(_schema(files[0], kind).names, files[0].name)
    hive = {} if base is None else {"partitioning": "hive", "partition_base_dir": base}
    return _dataset([str(file) for file in files], label, format=kind, **hive)


def dataset_parts(dataset: Any, *, whole: bool = False) -> list[tuple[Part, Any]]:
    """The files (or tables) behind a dataset that have rows, each with its own schema.

    Unless files are known to be used as a `whole`, a dataset may leave row groups of them out.
    """
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        raise ValueError(
            "X is a dataset with a filter, whose row groups cannot be read one by one: write the "
            "rows to new files with pyarrow.dataset.write_dataset, or give weight 0 to the others."
        ) from None
    paths = [_local(fragment) or getattr(fragment, "path", "X") for fragment in fragments]
    labels = _labels(paths)
    found = [
        _open_fragment(fragment, path, label, whole)
        for fragment, path, label in zip(fragments, paths, labels, strict=True)
    ]
    return [(part, schema) for part, schema in found if part.groups]


def table_part(table: Any, label: str = "X") -> TablePart:
    """A table in memory as a part."""
    groups = tuple(range(len(slices(table.num_rows, PIECE_ROWS))))
    return TablePart(label=label, table=table, folders={}, groups=groups)


def open_fragment(part: FilePart) -> Any:
    """The file of a part as a fresh pyarrow fragment."""
    return part.format.make_fragment(part.path, part.filesystem)


def read_group(part: Part, group: int, columns: Sequence[str], fragment: Any) -> Iterator[Any]:
    """Record batches (or one table) of at most BLOCK_ROWS rows with the given columns.

    Memory is bounded by one group: nothing is read ahead.
    """
    check_part(part)
    try:
        for batch in _batches(part, group, columns, fragment):
            for rows in slices(batch.num_rows, BLOCK_ROWS):
                yield batch.slice(rows.start, rows.stop - rows.start)
    except (OSError, pyarrow().ArrowException) as error:
        check_part(part)
        raise ValueError(
            f"{part.where(group)} cannot be read ({error}): write the file again."
        ) from error
    check_part(part)


def check_part(part: Part) -> None:
    """Raise if the file of a part changed since it was opened."""
    if part.stamp is not None:
        check_stamp(part.stamp, part.label)


def _batches(part: Part, group: int, columns: Sequence[str], fragment: Any) -> Iterable[Any]:
    if isinstance(part, TablePart):
        return [part.table.slice(group * PIECE_ROWS, PIECE_ROWS).select(columns)]
    if part.kind == "ipc":
        return [_ipc_batch(part, group, columns)]
    options: dict[str, Any] = {}
    if part.kind == "parquet":
        fragment = fragment.subset(row_group_ids=[group])
        if part.stamp is not None:
            # A file on disk needs no copy of its bytes beside the numbers.
            options["fragment_scan_options"] = pyarrow(".dataset").ParquetFragmentScanOptions(
                pre_buffer=False, use_buffered_stream=True
            )
    return fragment.to_batches(
        columns=list(columns),
        batch_size=BLOCK_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        use_threads=False,
        **options,
    )


def _ipc_batch(part: FilePart, group: int, columns: Sequence[str]) -> Any:
    ipc = pyarrow(".ipc")
    with part.filesystem.open_input_file(part.path) as file:
        names = ipc.open_file(file).schema.names
        options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        return ipc.open_file(file, options=options).get_batch(group)


def _open_fragment(fragment: Any, path: str, label: str, whole: bool) -> tuple[Part, Any]:
    if getattr(fragment, "path", None) is None or fragment.buffer is not None:
        table = fragment.to_table()
        return table_part(table, label), table.schema
    keys = pyarrow(".dataset").get_partition_keys(fragment.partition_expression)
    part = FilePart(
        label=label,
        path=path,
        filesystem=fragment.filesystem,
        format=fragment.format,
        kind=_format_kind(fragment.format),
        folders=dict(keys),
        groups=(),
        # Before anything is read, so that no change after that goes unnoticed.
        stamp=None if _local(fragment) is None else _stamp(path, label),
    )
    try:
        # A fresh fragment: one of the user's dataset would keep all it reads in memory for good.
        opened = open_fragment(part)
        schema, groups = opened.physical_schema, _groups(part, opened)
        if part.kind == "parquet" and not whole:
            kept = {row_group.id for row_group in fragment.row_groups}
            groups = tuple(group for group in groups if group in kept)
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{label} cannot be read ({error}): {_NEEDED}.") from error
    return FilePart(**{**vars(part), "groups": groups}), schema


def _format_kind(file_format: Any) -> str:
    datasets = pyarrow(".dataset")
    if isinstance(file_format, datasets.ParquetFileFormat):
        return "parquet"
    return "ipc" if isinstance(file_format, datasets.IpcFileFormat) else "other"


def _groups(part: FilePart, fragment: Any) -> tuple[int, ...]:
    """Numbers of the groups of a file that have rows."""
    if part.kind == "parquet":
        metadata = fragment.metadata
        return tuple(
            group
            for group in range(metadata.num_row_groups)
            if metadata.row_group(group).num_rows > 0
        )
    if fragment.count_rows() == 0:
        return ()
    if part.kind == "ipc":
        with part.filesystem.open_input_file(part.path) as file:
            return tuple(range(pyarrow(".ipc").open_file(file).num_record_batches))
    return (0,)


def _stamp(path: str, label: str) -> Stamp:
    try:
        return stamp(path)
    except OSError as error:
        raise ValueError(f"{label} cannot be read ({error.strerror}): {_NEEDED}.") from None


def _local(fragment: Any) -> str | None:
    """Full path of a file on this machine; other processes may work in other folders."""
    local = pyarrow(".fs").LocalFileSystem
    if not isinstance(getattr(fragment, "filesystem", None), local) or fragment.buffer is not None:
        return None
    return os.path.abspath(fragment.path)


def _labels(paths: Sequence[str]) -> list[str]:
    """The paths below the folder that all have in common."""
    try:
        common = os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:
        return list(paths)
    return [os.path.relpath(path, common) if common else path for path in paths]


def _absolute(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise FileNotFoundError(f"X is the path {str(path)!r}, which does not exist: {_NEEDED}.")
    return found


def _files(folder: Path) -> list[Path]:
    """Parquet and Arrow files of a folder and those below it; names with _ or . are not data."""
    everything = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [
        path
        for path in everything
        if path.suffix in _SUFFIXES
        and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]
    if not files:
        content = "is an empty folder" if not everything else "has no Parquet or Arrow file"
        raise ValueError(f"{folder.name} {content}: {_NEEDED}.")
    return files


def _kind(path: Path) -> str:
    if path.is_dir():
        raise ValueError(f"{path.name} is a folder among files: give one folder, or files only.")
    with path.open("rb") as file:
        kind = _MARKS.get(file.read(4))
    if kind is None:
        raise ValueError(
            f"{path.name} is no Parquet or Arrow file: write its rows to one, for example with "
            "pandas.DataFrame.to_parquet."
        )
    return kind


def _schema(file: Path, kind: str) -> Any:
    datasets = pyarrow(".dataset")
    reader = datasets.ParquetFileFormat() if kind == "parquet" else datasets.IpcFileFormat()
    try:
        return reader.inspect(str(file), pyarrow(".fs").LocalFileSystem())
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{file.name} cannot be read ({error}): {_NEEDED}.") from error


def _dataset(source: Any, label: str, **settings: Any) -> Any:
    try:
        return pyarrow(".dataset").dataset(source, **settings)
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{label} cannot be read ({error}): {_NEEDED}.") from error
