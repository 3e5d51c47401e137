"""Tables in files: CSV, TSV, Parquet and Arrow in, one pyarrow table with unique names out.

Rows that do not fit in memory are read by `open_source` instead.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import csv
import io
import itertools
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bowtienet._validation import nearest
from bowtienet.data.arrow_files import open_path, pyarrow
from bowtienet.data.parsing import check_unique

FORMATS = "CSV, TSV, Parquet or Arrow"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ","}
_BINARY = (".parquet", ".parq", ".pq", ".arrow", ".feather", ".ipc")
_PACKED = {
    ".gz": b"\x1f\x8b",
    ".bz2": b"BZh9",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".lz4": b"\x04\x22M\x18",
}
"""Endings of packed files, and how these begin."""
_SHEETS = (".xls", ".xlsx", ".ods")
_CANDIDATES = ",;\t|"
_INDEX = re.compile(r"__index_level_\d+__")
_QUOTED = (r'(?s)^"(.*)"$', r"\1")
"""Quotes after a blank, which are no quotes for readers of CSV."""
_SHOWN = 60
_LONGEST = 2**24
"""Bytes of a line."""
_WIDE = ("utf-16", "utf-32")
_END = "\x04"
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
    ...     read_file(file).to_pydict()
    {'size': [1.5, None], 'colour': ['red', 'blue']}
    """
    found = _existing(path)
    suffix = _suffix(found)
    if found.is_dir() or suffix in _BINARY:
        table = _read_binary(found)
    elif suffix in _DELIMITERS:
        delimiter = _DELIMITERS[suffix] if delimiter is None else delimiter
        table = _read_text(found, *_marks(delimiter, decimal), encoding)
    else:
        remedy = "save the sheet as CSV" if suffix in _SHEETS else f"give {FORMATS}"
        ending = f"its name ends in {suffix!r}" if suffix else "its name has no ending"
        raise ValueError(
            f"{found.name} is not a kind of file that can be read ({ending}): {remedy}."
        )
    if table.num_columns == 0:
        raise ValueError(f"{found.name} has no columns: give a table with named columns.")
    check_unique(table.column_names, found.name)
    if table.num_rows == 0:
        raise ValueError(f"{found.name} has names of columns but no rows: give at least one.")
    return table


def _existing(path: str | os.PathLike[str]) -> Path:
    found = Path(path)
    with contextlib.suppress(RuntimeError):  # the home of somebody unknown
        found = found.expanduser()
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
    if path.is_file() and path.stat().st_size == 0:
        raise ValueError(f"{path.name} is empty: give a file with a table.")
    try:
        table = open_path(path).to_table()
    except (OSError, pyarrow().ArrowException) as error:
        raise ValueError(_unreadable(path, error)) from error
    table = table.select([name for name in table.column_names if not _INDEX.fullmatch(name)])
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
        raise ValueError(_bad_byte(path, codec)) from None
    except pyarrow().ArrowException as error:
        raise ValueError(_bad_text(path, delimiter, codec, error)) from error
    except OSError as error:
        raise ValueError(_unreadable(path, error)) from error
    if any(pyarrow().types.is_binary(kind) for kind in table.schema.types):
        raise ValueError(_bad_byte(path, codec))
    _check_delimiter(names, delimiter, path)
    _check_quotes(table, delimiter, codec, path)
    return _trimmed(_named(table, path), decimal)


def _codec(encoding: str) -> str:
    try:
        "a".encode(encoding)  # some codecs, such as rot13, are no encodings of text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise ValueError(
            f"{encoding!r} is no known encoding: try 'utf-8', 'latin-1' or 'utf-16'."
        ) from None


def _refuse_bytes(path: Path, codec: str) -> None:
    """Refuse what is no text, or not in the encoding that is named, by how it begins."""
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        raise ValueError(f"{path.name} is empty: give a file with names of columns and rows.")
    for mark, kind in ((b"PAR1", "a Parquet"), (b"ARROW1", "an Arrow")):
        if start.startswith(mark):
            ending = kind.split()[1].lower()
            raise ValueError(f"{path.name} is {kind} file: let its name end in .{ending}.")
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise ValueError(f"{path.name} is a spreadsheet or archive, not text: save it as CSV.")
    if path.suffix.lower() in _PACKED:
        return
    for ending, mark in _PACKED.items():
        if start.startswith(mark):
            raise ValueError(f"{path.name} is packed: let its name end in {path.suffix}{ending}.")
    if codec.startswith(_WIDE):
        return
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{path.name} is text in UTF-16: name the encoding utf-16.")
    if b"\0" in start:
        raise ValueError(
            f"{path.name} holds zero bytes, as text in UTF-8 does not: save it as UTF-8, or name "
            "its encoding, such as utf-16."
        )


def _unpacked(path: Path) -> io.BufferedReader:
    return io.BufferedReader(pyarrow().input_stream(str(path)))


def _bad_byte(path: Path, codec: str) -> str:
    """Where a file first fails to be text of its encoding."""
    decoder = codecs.getincrementaldecoder(codec)()
    where, number = "", 0
    with _unpacked(path) as file:
        try:
            for line in file:
                number += 1
                decoder.decode(line)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            where = f" (byte 0x{error.object[error.start]:02X}, line {number})"
        except UnicodeError:
            where = f" (line {number})"
    return (
        f"{path.name} is not text in {codec}{where}: save it as UTF-8, or name its encoding, such "
        "as latin-1."
    )


def _bad_text(path: Path, delimiter: str, codec: str, error: Exception) -> str:
    if "straddling" in str(error):
        return f"{path.name} has a line of more than {_LONGEST:,} bytes: does a quote never end?"
    if "Empty CSV" in str(error):
        lines = [line for line, row in _rows(path, delimiter, codec) if row != [_END]]
        content = "has names of columns but no rows" if lines else "is empty"
        return (
            _unclosed(path, delimiter, codec)
            or f"{path.name} {content}: give a file with names of columns and rows."
        )
    found = re.search(r"Expected (\d+) columns, got (\d+)", str(error))
    if found is None:
        return _unreadable(path, error)
    _, first = next(_rows(path, delimiter, codec))
    _check_delimiter(first, delimiter, path)  # decimal commas in a table parted by ';'
    alike = (line for line, row in _rows(path, delimiter, codec) if len(row) == int(found[2]))
    return (
        f"line {next(alike, '?')} of {path.name} has {found[2]} columns where the first has "
        f"{found[1]}: mend the line, or give the right delimiter."
    )


def _unclosed(path: Path, delimiter: str, codec: str) -> str | None:
    """What to say of a quote that never ends; None if all do."""
    line, row = collections.deque(_rows(path, delimiter, codec), maxlen=1).pop()
    if row == [_END]:
        return None
    return f"a quote that begins in line {line} of {path.name}, or after it, never ends: close it."


def _rows(path: Path, delimiter: str, codec: str) -> Iterator[tuple[int, list[str]]]:
    """Rows and the lines they begin in; the last is `_END`, unless an open quote swallows it."""
    start = 1
    codec = "utf-8-sig" if codec == "utf-8" else codec  # pyarrow passes over its mark, too
    with io.TextIOWrapper(_unpacked(path), codec, errors="replace", newline="") as file:
        rows = csv.reader(itertools.chain(file, [_END]), delimiter=delimiter)
        try:
            for row in rows:
                if row:
                    yield start, row
                start = rows.line_num + 1
        except csv.Error:  # a value so long that it is none
            yield start, []


def _unreadable(path: Path, error: Exception) -> str:
    text = str(error).partition("\n")[0].rstrip(".")
    shown = text if len(text) <= 2 * _SHOWN else text[: 2 * _SHOWN] + "…"
    return f"{path.name} cannot be read ({shown}): check that it is a whole {FORMATS} file."


def _named(table: Any, path: Path) -> Any:
    """The columns that have names, without blanks around them."""
    names = [
        name if name == name.strip() else re.sub(*_QUOTED, name.strip())
        for name in table.column_names
    ]
    nameless = [index for index, name in enumerate(names) if not name]
    if nameless and len(nameless) < len(names):
        places = ", ".join(str(index + 1) for index in nameless)
        warnings.warn(
            f"{path.name} has no name for column {places}, which is left out.",
            UserWarning,
            stacklevel=4,
        )
    kept = [index for index, name in enumerate(names) if name]
    return table.select(kept).rename_columns([names[index] for index in kept])


def _check_delimiter(names: Sequence[str], delimiter: str, path: Path) -> None:
    """Refuse a single column whose name looks like several."""
    if len(names) > 1:
        return
    name = names[0] if names else ""
    counts = {other: name.count(other) for other in _CANDIDATES if other != delimiter}
    likely = max(counts, key=lambda other: counts[other])
    if counts[likely] > 0:
        shown = "tab" if likely == "\t" else likely
        raise ValueError(
            f"{path.name} has a single column, {name[:_SHOWN]!r}, when columns are parted by "
            f"{delimiter!r}: they seem to be parted by {likely!r}; give the delimiter '{shown}', "
            "and the decimal ',' if numbers have commas."
        )


def _check_quotes(table: Any, delimiter: str, codec: str, path: Path) -> None:
    """Refuse a last value that is all the rest of the file, since its quote never ends."""
    last = [column[-1].as_py() for column in table.columns if len(column)]
    if any(isinstance(value, str) and ("\n" in value or "\r" in value) for value in last):
        remark = _unclosed(path, delimiter, codec)
        if remark is not None:
            raise ValueError(remark)


def _trimmed(table: Any, decimal: str) -> Any:
    """Texts without blanks around them, and numbers where these were all that made them texts."""
    arrow = pyarrow()
    compute = pyarrow(".compute")
    for index, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if not arrow.types.is_string(kind):
            continue
        column, before = compute.utf8_trim_whitespace(table.column(index)), table.column(index)
        if column.equals(before):
            continue
        bare = compute.replace_substring_regex(column, *_QUOTED)
        column = compute.if_else(compute.equal(column, before), column, bare)
        absent = compute.is_in(column, value_set=arrow.array(MISSING))
        column = compute.if_else(absent, arrow.scalar(None, arrow.string()), column)
        plain = column if decimal == "." else compute.replace_substring(column, decimal, ".")
        with contextlib.suppress(arrow.ArrowInvalid):
            column = plain.cast(arrow.float64())
        table = table.set_column(index, name, column)
    return table
