"""Files that are written, completely or not at all, and never over what is read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from bowtienet import persistence
from bowtienet.data.arrow_files import pyarrow

TABLES = (".csv", ".tsv", ".parquet", ".arrow")
PAGES = (".html", ".htm")


def check_place(path: Path, *sources: Path, endings: Sequence[str] = ()) -> Path:
    """A file that can be written, has one of the endings, and is none of the sources."""
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"the name {path} must end in one of {', '.join(endings)}.")
    persistence.check_writable(path)
    if os.path.realpath(path) in map(os.path.realpath, sources):
        raise ValueError(f"{path} is named twice, to read and to write: choose another name.")
    return path


def check_folder(folder: Path) -> None:
    """Raise if there can be no files in a folder, which need not exist yet."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder.")
    persistence.check_writable(folder / "file" if folder.is_dir() else folder)


def write(table: Any, path: Path) -> None:
    """Write a table to a file."""
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
    arrow = pyarrow(".csv")
    settings = arrow.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
    header = io.StringIO()
    csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    # Columns of lists, which text cannot hold, are refused before anything is written.
    with arrow.CSVWriter(file, table.schema, write_options=settings) as writer:
        file.write(header.getvalue().encode())
        writer.write_table(table)
