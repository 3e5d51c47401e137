"""Files that are written, completely or not at all, and over no other unless that is asked for.

A spreadsheet runs a cell of a text file that begins with = + - or @ as a formula, whoever wrote it.
Such texts, in cells and in names of columns, get an apostrophe in front, which makes them text;
numbers stay as they are.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from bowtienet._old import persistence
from bowtienet._old.data.arrow_files import pyarrow
from bowtienet._old.representation.written import reads_as_number

TABLES = (".csv", ".tsv", ".parquet", ".arrow")
PAGES = (".html", ".htm")


_FORMULAS = "=+-@\t\r\n＝＋－＠"
"""What a text must not begin with, in the wide forms of Asian keyboards, too."""
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
"""Types of columns whose cells are written as they are."""


def check_place(
    path: Path, *sources: Path, endings: Sequence[str] = (), force: bool = False
) -> Path:
    """A file that can be written, has one of the endings, and is none of the sources.

    One that exists is refused unless `force` says that it may be overwritten.
    """
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"the name {path} must end in one of {', '.join(endings)}.")
    persistence.check_writable(path)
    if os.path.realpath(path) in map(os.path.realpath, sources):
        raise ValueError(f"{path} is named twice, to read and to write: choose another name.")
    _refuse_existing([path], force)
    return path


def check_folder(folder: Path, names: Iterable[str] = (), *, force: bool = False) -> None:
    """Raise if there can be no files of these names in a folder, which need not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder.")
    persistence.check_writable(folder / "file" if folder.is_dir() else folder)
    _refuse_existing([folder / name for name in names], force)


def _refuse_existing(places: Sequence[Path], force: bool) -> None:
    for place in places:
        if place.exists() and not force:
            raise ValueError(
                f"{place} exists and is not overwritten: choose another name, or give --force."
            )


def write(table: Any, path: Path, *, raw: bool = False) -> None:
    """Write a table to a file."""
    with persistence.replacing(persistence.check_writable(path)) as temporary:
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            pyarrow(".parquet").write_table(table, temporary)
        elif suffix == ".arrow":
            pyarrow(".feather").write_feather(table, temporary, compression="uncompressed")
        else:
            with open(temporary, "xb") as file:
                write_text(table, file, "\t" if suffix == ".tsv" else ",", raw=raw)


def write_text(table: Any, file: BinaryIO, delimiter: str = ",", *, raw: bool = False) -> None:
    """A table as text, with quotes only where they are needed; without formulas unless `raw`."""
    arrow = pyarrow(".csv")
    if not raw:
        table = without_formulas(table)
    settings = arrow.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    # Columns of lists, which text cannot hold, are refused before anything is written.
    with arrow.CSVWriter(file, table.schema, write_options=settings) as writer:
        file.write(header.getvalue().encode())
        writer.write_table(table)


def without_formulas(table: Any) -> Any:
    """The table with an apostrophe before every text that a spreadsheet would run as a formula."""
    is_dictionary = pyarrow().types.is_dictionary
    for index, column in enumerate(table.columns):
        kind = column.type.value_type if is_dictionary(column.type) else column.type
        if str(kind) in _TEXTS:
            table = table.set_column(index, table.column_names[index], _as_texts(column, kind))
    return table.rename_columns([as_text(name) for name in table.column_names])


def as_text(cell: str) -> str:
    """A cell that a spreadsheet shows and does not run.

    Examples
    --------
    >>> as_text("=1+1"), as_text("-5"), as_text("- none"), as_text("a=b")
    ("'=1+1", '-5', "'- none", 'a=b')
    """
    return f"'{cell}" if cell[:1] in _FORMULAS and cell and not reads_as_number(cell) else cell


def _as_texts(column: Any, kind: Any) -> Any:
    arrow = pyarrow()
    if all(_safe(cell) == cell for cell in column.unique().to_pylist()):
        return column
    return arrow.chunked_array([arrow.array(map(_safe, column.to_pylist()), kind)])


def _safe(cell: str | bytes | None) -> str | bytes | None:
    if isinstance(cell, bytes):
        return as_text(cell.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    return None if cell is None else as_text(cell)
