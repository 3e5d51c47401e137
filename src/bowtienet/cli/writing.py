"""Files that are written, completely or not at all, and never over what is read."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from bowtienet import persistence
from bowtienet.cli.exits import stop_if_interrupted
from bowtienet.data.arrow_files import pyarrow

_TABLES = (".csv", ".tsv", ".parquet", ".arrow")
_PAGES = (".html", ".htm")


def check_place(path: Path, *sources: Path) -> Path:
    """A file that can be written and is none of those that are read."""
    persistence.check_writable(path)
    for source in sources:
        if os.path.realpath(source) == os.path.realpath(path):
            raise ValueError(f"{path} is the file that is read: choose another name to write to.")
    return path


def check_table_place(path: Path, *sources: Path) -> Path:
    """The same for a table, whose name says how it is written."""
    if path.suffix.lower() not in _TABLES:
        raise ValueError(
            f"{path} is no name for a table: let it end in one of {', '.join(_TABLES)}."
        )
    return check_place(path, *sources)


def check_page_place(path: Path, *sources: Path) -> Path:
    """The same for a page."""
    if path.suffix.lower() not in _PAGES:
        raise ValueError(f"{path} is no name for a page: let it end in .html.")
    return check_place(path, *sources)


def check_folder(folder: Path) -> None:
    """Raise if there can be no files in a folder, which need not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder.")
    persistence.check_writable(folder / "file" if folder.is_dir() else folder)


def write(table: Any, path: Path) -> None:
    """Write a table to a file."""
    stop_if_interrupted()
    with persistence.replacing(persistence.check_writable(path)) as temporary:
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            pyarrow(".parquet").write_table(table, temporary)
        elif suffix == ".arrow":
            pyarrow(".feather").write_feather(table, temporary, compression="uncompressed")
        else:
            with open(temporary, "xb") as file:
                write_text(table, file, "\t" if suffix == ".tsv" else ",")


def write_text(table: Any, file: BinaryIO, delimiter: str = ",") -> None:
    """A table as text, with quotes only where they are needed."""
    for field in table.schema:
        if pyarrow().types.is_nested(field.type):
            raise ValueError(
                f"the column {field.name!r} holds lists or groups of values, which text cannot: "
                "write to .parquet or .arrow, or leave the column out."
            )
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(header.getvalue().encode())
    writer = pyarrow(".csv")
    settings = writer.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="needed"
    )
    writer.write_csv(table, file, settings)
