"""Tables in files: CSV, TSV, Parquet and Arrow in, one pyarrow table with unique names out.

Rows that do not fit in memory are read by `open_source` instead.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bowtienet._old._validation import nearest, printable
from bowtienet._old.data.arrow import INDEX
from bowtienet._old.data.arrow_files import SUFFIXES, open_path, pyarrow
from bowtienet._old.data.dialect import (
    DELIMITERS,
    Dialect,
    Given,
    find_dialect,
    is_encoding,
    is_mark,
    read_columns,
    unpacked,
)
from bowtienet._old.data.limits import check_columns, check_memory
from bowtienet._old.data.parsing import check_unique

FORMATS = "CSV, TSV, Parquet or Arrow"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
"""Endings of packed files."""
_OTHERS = {
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"PK\x03\x04": "a spreadsheet or archive, not text: save it as CSV",
}
"""How files that are no plain text begin, and what they are."""
_SHOWN = 60
_LONGEST = 2**24
"""Bytes of a line."""
_LARGER = "read a part of it, or fit from Parquet files, which are read piece by piece"
"""What to do about a table that does not fit in memory."""
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts that stand for a missing value: those of pandas, so that both read the same table."""


def read_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    date_format: str | None = None,
) -> Any:
    r"""Read a table from a file, with types found from what its columns hold.

    How a text file is written is found from its content, unless it is given.

    Parameters
    ----------
    path : str or path
        A CSV or TSV file (also packed, as ``.csv.gz``), a Parquet or Arrow file, or a folder of
        Parquet or Arrow files. Text files have the names of the columns in their first line.
    delimiter : str, optional
        One character between the columns of a text file.
    decimal : str, optional
        Decimal point of a text file.
    encoding : str, optional
        Encoding of a text file.
    date_format : str, optional
        Format of the dates in a text file, such as "%d/%m/%Y"; 2023-12-31 is read in any case.

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
    given = Given(delimiter=delimiter, decimal=decimal, encoding=encoding, date_format=date_format)
    return read_with_dialect(path, given)[0]


def read_with_dialect(
    path: str | os.PathLike[str], given: Given | None = None
) -> tuple[Any, Dialect | None]:
    """The table of `read_table`, and how a text file is written; None of other files."""
    given = Given() if given is None else given
    found = _existing(path)
    suffix = _suffix(found)
    dialect: Dialect | None = None
    if found.is_dir() or suffix in SUFFIXES:
        table = _read_binary(found)
    elif suffix in _DELIMITERS:
        table, dialect = _read_dialect(found, _checked(given), _DELIMITERS[suffix])
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
    return table, dialect


def _read_dialect(path: Path, given: Given, usual: str) -> tuple[Any, Dialect]:
    _refuse_bytes(path, given.encoding)
    dialect = find_dialect(path, given, usual)
    table = _read_text(path, dialect, given.texts)
    return read_columns(table, dialect, given)


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


def _checked(given: Given) -> Given:
    """What is given, with characters for their names, and an encoding that there is."""
    names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    delimiter = names.get(given.delimiter or "", given.delimiter)
    for name, mark in (("delimiter", delimiter), ("decimal", given.decimal)):
        if mark is not None and not is_mark(mark):
            likely = "';' or tab" if name == "delimiter" else "'.' or ','"
            raise ValueError(f"{name} must be one plain character, got {mark!r}: such as {likely}.")
    encoding = None if given.encoding is None else _codec(given.encoding)
    return replace(given, delimiter=delimiter, encoding=encoding)


def _read_binary(path: Path) -> Any:
    try:
        dataset = open_path(path)
        check_columns(len(dataset.schema.types))
        n_rows = dataset.count_rows()
        check_memory(
            n_rows * sum(_cell_bytes(kind) for kind in dataset.schema.types),
            f"{path.name}, of {n_rows:,} rows and {len(dataset.schema.types):,} columns,",
            _LARGER,
        )
        table = dataset.to_table()
    except pyarrow().ArrowMemoryError:
        raise MemoryError(f"{path.name} does not fit in memory: {_LARGER}.") from None
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(_unreadable(path, error)) from error
    table = table.select([name for name in table.column_names if not INDEX.fullmatch(name)])
    for index, field in enumerate(table.schema):
        if str(field.type) == "string_view":  # polars writes it, but pyarrow can do little with it
            table = table.set_column(index, field.name, table.column(index).cast("string"))
    return table


def _cell_bytes(kind: Any) -> float:
    """Bytes of a value of a column in memory, at least: those of texts beside their lengths."""
    try:
        return float(kind.bit_width) / 8.0
    except ValueError:
        return 4.0


def _check_size(path: Path) -> None:
    """Refuse a text file that cannot fit in memory, a packed one when it reaches the limit."""
    if path.suffix.lower() not in _PACKED:
        check_memory(path.stat().st_size, path.name, _LARGER)
        return
    n_read = 0
    for part in unpacked(path):
        n_read += len(part)
        # The text goes by, and the table of what it holds is about as large.
        check_memory(2.0 * n_read, f"{path.name}, unpacked,", _LARGER)


def read_exactly(path: str | os.PathLike[str], dialect: Dialect, names: Sequence[str]) -> Any:
    """Some columns of a text file letter by letter, such as 007, in a table of texts."""
    reader, settings = pyarrow(".csv"), _settings(dialect.delimiter, _codec(dialect.encoding))
    found = Path(path).expanduser()
    with reader.open_csv(found, **settings) as stream:
        spelt = {name.strip(): name for name in stream.schema.names}
    chosen = [spelt[name] for name in names]
    convert = reader.ConvertOptions(
        include_columns=chosen, column_types=dict.fromkeys(chosen, pyarrow().string())
    )
    table = reader.read_csv(found, convert_options=convert, **settings)
    return table.rename_columns(list(names))


def _settings(delimiter: str, codec: str) -> dict[str, Any]:
    """How text is cut into cells."""
    reader = pyarrow(".csv")
    return {
        # One thread: the first bad line is the one that is told of.
        "read_options": reader.ReadOptions(encoding=codec, use_threads=False, block_size=_LONGEST),
        "parse_options": reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
    }


def _read_text(path: Path, dialect: Dialect, texts: Sequence[str]) -> Any:
    delimiter, decimal, codec = dialect.delimiter, dialect.decimal, _codec(dialect.encoding)
    reader = pyarrow(".csv")
    try:
        check_columns(1 + _first_line(path, codec).count(delimiter))
        _check_size(path)
        table = reader.read_csv(
            path,
            **_settings(delimiter, codec),
            convert_options=reader.ConvertOptions(
                null_values=list(MISSING),
                strings_can_be_null=True,
                decimal_point=decimal,
                column_types=dict.fromkeys(texts, pyarrow().string()),
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
    return _trimmed(_named(table, path), decimal, texts)


def _refuse_open_quote(table: Any, path: Path) -> None:
    """Refuse a last value that swallowed the rest of the file, since its quote never ends."""
    last = [column[-1].as_py() for column in table.columns if len(column)]
    if not any(isinstance(value, str) and "\n" in value for value in last):
        return
    if sum(part.count(b'"') for part in unpacked(path)) % 2:
        raise ValueError(f"a quote in {path.name} is opened and never closed: mend the file.")


def _codec(encoding: str) -> str:
    if not is_encoding(encoding):
        raise ValueError(f"{encoding!r} is no known encoding: try 'utf-8', 'latin-1' or 'utf-16'.")
    return codecs.lookup(encoding).name


def _refuse_bytes(path: Path, codec: str | None) -> None:
    """Refuse what is no text, or not in the encoding that is named, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ValueError(f"{path.name} is empty: give a file with names of columns and rows.")
    for mark, words in _OTHERS.items():
        if start.startswith(mark):
            raise ValueError(f"{path.name} is {words}.")
    is_wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if is_wide and codec is not None and not codec.startswith(("utf-16", "utf-32")):
        raise ValueError(_bad_encoding(path, codec))


def _bad_encoding(path: Path, codec: str) -> str:
    return (
        f"{path.name} is not text in {codec}: save it as UTF-8, or name its encoding, such as "
        "latin-1 or utf-16."
    )


def _first_line(path: Path, codec: str) -> str:
    with pyarrow().input_stream(str(path)) as stream:
        return stream.read(_LONGEST).decode(codec, errors="replace").partition("\n")[0].strip()


def _unreadable(path: Path, error: Exception) -> str:
    # Errors of Arrow show the line as it is, with tabs and what else a terminal would obey.
    shown = str(error).partition("\n")[0].rstrip(".")[: 2 * _SHOWN]
    reason = printable(shown)
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
    likely = max(DELIMITERS, key=line.count)
    if delimiter not in line and likely in line:
        shown = "tab" if likely == "\t" else likely
        raise ValueError(
            f"{path.name} has a single column, {line[:_SHOWN]!r}, when columns are parted by "
            f"{delimiter!r}: give the delimiter '{shown}', and the decimal ',' if numbers have "
            "commas."
        )


def _trimmed(table: Any, decimal: str, texts: Sequence[str]) -> Any:
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
        if name not in texts:
            with contextlib.suppress(arrow.ArrowInvalid):
                trimmed = compute.replace_substring(trimmed, decimal, ".").cast(arrow.float64())
        table = table.set_column(index, name, trimmed)
    return table
