"""Parquet and Arrow files: found, opened, and read in groups of rows.

A group is a row group of a Parquet file or a record batch of an Arrow file. pyarrow
(``pip install 'bowtienet[bigdata]'``) is imported only when it is needed.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bowtienet._arrays import slices
from bowtienet.data.parsing import check_unique
from bowtienet.data.source import BLOCK_ROWS, Stamp, check_stamp, stamp

SUFFIXES = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "ipc"),
}
_MARKS = {b"PAR1": "parquet", b"ARRO": "ipc"}
_GROUPS = {"parquet": "row group", "ipc": "batch", "other": "part"}
_NEEDED = "give a Parquet or Arrow file, or a folder of them"


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file: the numbers of its groups that have rows, and the values its folders stand for."""

    label: str
    path: str
    filesystem: Any
    format: Any
    kind: str
    schema: Any
    folders: dict[str, Any]
    groups: tuple[int, ...]
    stamp: Stamp | None

    def where(self, group: int) -> str:
        """Words for a group."""
        return f"{self.label}, {_GROUPS[self.kind]} {group}"

    def open(self) -> Any:
        """The file as a fresh pyarrow fragment; one of a user's dataset keeps all it reads."""
        return self.format.make_fragment(self.path, self.filesystem)


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
    hive: dict[str, Any] = {}
    if isinstance(path, (str, os.PathLike)):
        found = _existing(path)
        files, label = ([found], found.name) if found.is_file() else (_files(found), found.name)
        if found.is_dir():
            hive = {"partitioning": "hive", "partition_base_dir": str(found)}
    else:
        files = [_existing(name) for name in path]
        label = files[0].name
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"{label} has both Parquet and Arrow files: give files of one kind.")
    kind = kinds.pop()
    # pyarrow would unify the schema with itself first and then say less.
    check_unique(_schema(files[0], kind).names, files[0].name)
    return _dataset([str(file) for file in files], label, format=kind, **hive)


def holds_tables(dataset: Any) -> bool:
    """Whether a dataset is of tables in memory rather than of files."""
    return any(
        getattr(fragment, "path", None) is None or fragment.buffer is not None
        for fragment in _fragments(dataset)
    )


def data_files(dataset: Any, *, whole: bool) -> list[DataFile]:
    """The files behind a dataset that have rows.

    Unless files are known to be used as a `whole`, a dataset may leave row groups of them out.
    """
    fragments = _fragments(dataset)
    paths = [_local(fragment) or fragment.path for fragment in fragments]
    found = [
        _open_fragment(fragment, path, label, whole)
        for fragment, path, label in zip(fragments, paths, _labels(paths), strict=True)
    ]
    return [file for file in found if file.groups]


def read_group(file: DataFile, group: int, columns: Sequence[str], fragment: Any) -> Iterator[Any]:
    """Record batches of at most BLOCK_ROWS rows with the given columns.

    Memory is bounded by one group: nothing is read ahead.
    """
    check_file(file)
    try:
        for batch in _batches(file, group, columns, fragment):
            for rows in slices(batch.num_rows, BLOCK_ROWS):
                yield batch.slice(rows.start, rows.stop - rows.start)
    except (OSError, pyarrow().ArrowException) as error:
        check_file(file)
        raise ValueError(
            f"{file.where(group)} cannot be read ({error}): write the file again."
        ) from error
    check_file(file)


def check_file(file: DataFile) -> None:
    """Raise if a file changed since it was opened."""
    if file.stamp is not None:
        check_stamp(file.stamp, file.label)


def _fragments(dataset: Any) -> list[Any]:
    try:
        return list(dataset.get_fragments())
    except ValueError:
        raise ValueError(
            "X is a dataset with a filter, whose row groups cannot be read one by one: write the "
            "rows to new files with pyarrow.dataset.write_dataset, or give weight 0 to the others."
        ) from None


def _batches(file: DataFile, group: int, columns: Sequence[str], fragment: Any) -> Iterable[Any]:
    if file.kind == "ipc":
        return [_ipc_batch(file, group, columns)]
    options: dict[str, Any] = {}
    if file.kind == "parquet":
        fragment = fragment.subset(row_group_ids=[group])
        if file.stamp is not None:
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


def _ipc_batch(file: DataFile, group: int, columns: Sequence[str]) -> Any:
    ipc = pyarrow(".ipc")
    fields = [file.schema.names.index(name) for name in columns]
    with file.filesystem.open_input_file(file.path) as content:
        options = ipc.IpcReadOptions(included_fields=fields)
        return ipc.open_file(content, options=options).get_batch(group)


def _open_fragment(fragment: Any, path: str, label: str, whole: bool) -> DataFile:
    local = _local(fragment) is not None
    try:
        file = DataFile(
            label=label,
            path=path,
            filesystem=fragment.filesystem,
            format=fragment.format,
            kind=_format_kind(fragment.format),
            schema=None,
            folders=pyarrow(".dataset").get_partition_keys(fragment.partition_expression),
            groups=(),
            # Before anything is read, so that no change after that goes unnoticed.
            stamp=stamp(path) if local else None,
        )
        opened = file.open()
        schema, groups = opened.physical_schema, _groups(file, opened)
        if file.kind == "parquet" and not whole:
            kept = {row_group.id for row_group in fragment.row_groups}
            groups = tuple(group for group in groups if group in kept)
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(f"{label} cannot be read ({error}): {_NEEDED}.") from error
    return replace(file, schema=schema, groups=groups)


def _format_kind(file_format: Any) -> str:
    datasets = pyarrow(".dataset")
    if isinstance(file_format, datasets.ParquetFileFormat):
        return "parquet"
    return "ipc" if isinstance(file_format, datasets.IpcFileFormat) else "other"


def _groups(file: DataFile, fragment: Any) -> tuple[int, ...]:
    """Numbers of the groups of a file that have rows."""
    if file.kind == "parquet":
        metadata = fragment.metadata
        groups = range(metadata.num_row_groups)
        return tuple(group for group in groups if metadata.row_group(group).num_rows > 0)
    if fragment.count_rows() == 0:
        return ()
    if file.kind == "ipc":
        with file.filesystem.open_input_file(file.path) as content:
            return tuple(range(pyarrow(".ipc").open_file(content).num_record_batches))
    return (0,)


def _local(fragment: Any) -> str | None:
    """Full path of a file on this machine; other processes may work in other folders."""
    if isinstance(fragment.filesystem, pyarrow(".fs").LocalFileSystem):
        return os.path.abspath(fragment.path)
    return None


def _labels(paths: Sequence[str]) -> list[str]:
    """The paths below the folder that all have in common."""
    try:
        common = os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:
        return list(paths)
    return [os.path.relpath(path, common) if common else path for path in paths]


def _existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise FileNotFoundError(f"X is the path {str(path)!r}, which does not exist: {_NEEDED}.")
    return found


def _files(folder: Path) -> list[Path]:
    """Parquet and Arrow files of a folder and those below it; names with _ or . are not data."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in SUFFIXES
        and path.is_file()
        and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise ValueError(f"{folder.name} is a folder without Parquet or Arrow files: {_NEEDED}.")
    return files


def _kind(path: Path) -> str:
    if path.is_dir():
        raise ValueError(f"{path.name} is a folder among files: give one folder, or files only.")
    with path.open("rb") as file:
        kind = _MARKS.get(file.read(4))
    if kind is None:
        raise ValueError(
            f"{path.name} is no Parquet or Arrow file: read it with bowtienet.read_table, or "
            "write its rows to a Parquet file."
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
