"""Tables in files: CSV, TSV, Parquet and Arrow in, one pyarrow table with unique names out.

Rows that do not fit in memory are read by `open_source` instead.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import warnings
from pathlib import Path
from typing import Any

from bowtienet._validation import nearest
from bowtienet.data.arrow import INDEX
from bowtienet.data.arrow_files import SUFFIXES, open_path, pyarrow
from bowtienet.data.parsing import check_unique

FORMATS = "CSV, TSV, Parquet or Arrow"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Endings of packed files."""
_OTHERS = {
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"PK\x03\x04": "a spreadsheet or archive, not text: save it as CSV",
    codecs.BOM_UTF16_LE: "text in UTF-16: name the encoding utf-16",
    codecs.BOM_UTF16_BE: "text in UTF-16: name the encoding utf-16",
}
"""How files that are no plain text begin, and what they are."""
_CANDIDATES = ",;\t|"
_SHOWN = 60
_LONGEST = 2**24
"""Bytes of a line."""
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that stand for a missing value: those of pandas, so that both read the same table."""


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
) -> Any:
    r"""Read a table from a file, with types found from what its columns hold.

    Parameters
    ----------
    path : str or path
        A CSV or TSV file (also packed, as ``.csv.gz``), a Parquet or Arrow file, or a folder of
        Parquet or Arrow files. Text files have the names of the columns in their first line.
    delimiter : str, optional
        One character between the columns of a text file; "," by default, a tab for ``.tsv``.
    decimal : str
        Decimal point of a text file.
    encoding : str
        Encoding of a text file.

    Returns
    -------
    pyarrow.Table
        Blanks around names and values are gone, as are columns without a name (with a warning).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     _ = file.write_text("size,colour\n1.5,red\n,blue\n")
    ...     read_table(file).to_pydict()
    {'size': [1.5, None], 'colour': ['red', 'blue']}
    """
    found = _existing(path)
    suffix = _suffix(found)
    if found.is_dir() or suffix in SUFFIXES:
        table = _read_binary(found)
    elif suffix in _DELIMITERS:
        delimiter = _DELIMITERS[suffix] if delimiter is None else delimiter
        table = _read_text(found, *_marks(delimiter, decimal), encoding)
    else:
        raise ValueError(
            f"{found.name} is not a kind of file that can be read (its name ends in {suffix!r}): "
            f"give {FORMATS}."
        )
    if table.num_columns == 0:
        raise ValueError(f"{found.name} has no columns: give a table with named columns.")
    check_unique(table.column_names, found.name)
    if table.num_rows == 0:
        raise ValueError(f"{found.name} has names of columns but no rows: give at least one.")
    return table


def _existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path).expanduser()
    if found.is_file() or found.is_dir():
        return found
    if found.exists():
        raise ValueError(f"{path} is not a regular file: copy its content to one.")
    folder = found.parent
    beside = {item.stem: item.name for item in folder.iterdir()} if folder.is_dir() else {}
    near = [beside[stem] for stem in nearest(found.stem, beside)]
    remedy = f"; did you mean {' or '.join(near)}?" if near else ": check its name."
    raise FileNotFoundError(f"{path} does not exist{remedy}")


def table_name(path: Path) -> str:
    """The name of a table's file without the endings that say what it is."""
    packed = path.suffix.lower() in _PACKED and _suffix(path) in _DELIMITERS
    return path.with_suffix("").stem if packed else path.stem


def _suffix(path: Path) -> str:
    """The ending that says what a file is, below one that says how it is packed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _PACKED and suffixes[-2] in _DELIMITERS:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def _marks(delimiter: str, decimal: str) -> tuple[str, str]:
    """The characters between columns and within numbers."""
    names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    delimiter = names.get(delimiter, delimiter)
    for name, mark in (("delimiter", delimiter), ("decimal", decimal)):
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n':
            likely = "';' or tab" if name == "delimiter" else "'.' or ','"
            raise ValueError(f"{name} must be one plain character, got {mark!r}: such as {likely}.")
    return delimiter, decimal


def _read_binary(path: Path) -> Any:
    try:
        table = open_path(path).to_table()
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(_unreadable(path, error)) from error
    table = table.select([name for name in table.column_names if not INDEX.fullmatch(name)])
    for index, field in enumerate(table.schema):
        if str(field.type) == "string_view":  # polars writes it, but pyarrow can do little with it
            table = table.set_column(index, field.name, table.column(index).cast("string"))
    return table


def _read_text(path: Path, delimiter: str, decimal: str, encoding: str) -> Any:
    codec = _codec(encoding)
    _refuse_bytes(path, codec)
    reader = pyarrow(".csv")
    try:
        table = reader.read_csv(
            path,
            # One thread: the first bad line is the one that is told of.
            read_options=reader.ReadOptions(encoding=codec, use_threads=False, block_size=_LONGEST),
            parse_options=reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=reader.ConvertOptions(
                null_values=list(MISSING), strings_can_be_null=True, decimal_point=decimal
            ),
        )
        names = table.column_names  # decoded only now
    except UnicodeError:
        raise ValueError(_bad_encoding(path, codec)) from None
    except (OSError, pyarrow().ArrowException) as error:
        if "Expected 1 columns" in str(error):
            _check_delimiter(_first_line(path, codec), delimiter, path)
        raise ValueError(_unreadable(path, error)) from error
    if any(pyarrow().types.is_binary(kind) for kind in table.schema.types):
        raise ValueError(_bad_encoding(path, codec))
    if len(names) == 1:
        _check_delimiter(names[0], delimiter, path)
    _refuse_open_quote(table, path)
    return _trimmed(_named(table, path), decimal)


def _refuse_open_quote(table: Any, path: Path) -> None:
    """Refuse a last value that swallowed the rest of the file, since its quote never ends."""
    last = [column[-1].as_py() for column in table.columns if len(column)]
    if not any(isinstance(value, str) and "\n" in value for value in last):
        return
    with pyarrow().input_stream(str(path)) as file:
        quotes = sum(part.count(b'"') for part in iter(lambda: file.read(2**20), b""))
    if quotes % 2:
        raise ValueError(f"a quote in {path.name} is opened and never closed: mend the file.")


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(
            f"{encoding!r} is no known encoding: try 'utf-8', 'latin-1' or 'utf-16'."
        ) from None


def _refuse_bytes(path: Path, codec: str) -> None:
    """Refuse what is no text, or not in the encoding that is named, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path.name} is empty: give a file with names of columns and rows.")
    for mark, words in _OTHERS.items():
        if start.startswith(mark) and not codec.startswith(("utf-16", "utf-32")):
            raise ValueError(f"{path.name} is {words}.")


def _bad_encoding(path: Path, codec: str) -> str:
    return (
        f"{path.name} is not text in {codec}: save it as UTF-8, or name its encoding, such as "
        "latin-1 or utf-16."
    )


def _first_line(path: Path, codec: str) -> str:
    with pyarrow().input_stream(str(path)) as stream:
        return stream.read(_LONGEST).decode(codec, errors="replace").partition("\n")[0].strip()


def _unreadable(path: Path, error: Exception) -> str:
    reason = str(error).partition("\n")[0].rstrip(".")[: 2 * _SHOWN]
    return f"{path.name} cannot be read ({reason}): check that it is a whole {FORMATS} file."


def _named(table: Any, path: Path) -> Any:
    """The columns that have names, without blanks around them."""
    names = [name.strip() for name in table.column_names]
    kept = [index for index, name in enumerate(names) if name]
    if 0 < len(kept) < len(names):
        places = ", ".join(str(index + 1) for index, name in enumerate(names) if not name)
        warnings.warn(
            f"{path.name} has no name for column {places}, which is left out.",
            UserWarning,
            stacklevel=4,
        )
    return table.select(kept).rename_columns([names[index] for index in kept])


def _check_delimiter(line: str, delimiter: str, path: Path) -> None:
    """Refuse a single column whose name looks like several with another delimiter."""
    likely = max(_CANDIDATES, key=line.count)
    if delimiter not in line and likely in line:
        shown = "tab" if likely == "\t" else likely
        raise ValueError(
            f"{path.name} has a single column, {line[:_SHOWN]!r}, when columns are parted by "
            f"{delimiter!r}: give the delimiter '{shown}', and the decimal ',' if numbers have "
            "commas."
        )


def _trimmed(table: Any, decimal: str) -> Any:
    """Texts without blanks around them, and numbers where these were all that made them texts."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    for index, name in enumerate(table.column_names):
        column = table.column(index)
        if not arrow.types.is_string(column.type):
            continue
        trimmed = compute.utf8_trim_whitespace(column)
        if trimmed.equals(column):
            continue
        absent = compute.is_in(trimmed, value_set=arrow.array(MISSING))
        trimmed = compute.if_else(absent, arrow.scalar(None, arrow.string()), trimmed)
        with contextlib.suppress(arrow.ArrowInvalid):
            trimmed = compute.replace_substring(trimmed, decimal, ".").cast(arrow.float64())
        table = table.set_column(index, name, trimmed)
    return table
