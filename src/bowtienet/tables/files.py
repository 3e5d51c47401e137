"""Files as people have them: cells and names of CSV, xlsx, Parquet and Feather files, or stdin.

The encoding, the separator and the rows that are no data are found from the content: lines above
the header, a row of units under it, headers that come again, blank lines, totals and remarks at the
end are left out, and a note says so. Cells stay as they are written, except in columns of plain
numbers: what a text means is decided in `texts`, where a model remembers it for new files.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from bowtienet._format import count, listed, shorten
from bowtienet.tables.texts import CODES, Hints, cleaned, parse_numbers

Records = Iterator[list[Any]]
"""Cells without blanks around them, None where there is nothing."""
Layout = tuple[list[str], list[Any], int]
"""Names; the header, which may come again; and how many records are before the first row."""


def read_table(
    path: str | PathLike[str],
    missing_values: Sequence[str] = (),
    day_first: bool | None = None,
    decimal: str | None = None,
) -> Any:
    """A file as a pandas frame.

    Parameters
    ----------
    path : path or "-"
        A file in CSV with any usual encoding and separator, xlsx, Parquet or Feather; "-" is stdin.
    missing_values : sequence of str
        More codes of missing values, such as "-999".
    day_first : bool, optional
        Whether 03/04/2024 is the third of April; by default the column decides, or is in doubt.
    decimal : {".", ","}, optional
        The decimal sign of cells such as 1,234; by default the column decides, or is in doubt.

    Returns
    -------
    DataFrame
        Numbers where all cells of a column are plain numbers, and cells as they are written
        elsewhere: the estimators read these, and remember how. Notes are in ``frame.attrs``.
    """
    hints = Hints(missing_values=missing_values, day_first=day_first, decimal=decimal)
    frame = next(read_chunks(path, None, **vars(hints)), None)
    if frame is None:
        raise ValueError(f"{path} has no rows under its header.")
    separator = frame.attrs["bowtienet"].get("separator")
    # Without a separator cells have types.
    return frame if separator is None else frame.apply(_typed, separator=separator, hints=hints)


def read_chunks(path: str | PathLike[str], rows: int | None, **how: Any) -> Iterator[Any]:
    """Frames of `rows` rows of a file, one after the other, for predictions in little memory.

    Cells are as they are written: a model reads them as those of its training. The separator and
    the header are those of the first rows. Options are those of `read_table`.
    """
    try:
        yield from _chunks(path, rows, **how)
    except (FileNotFoundError, ImportError, MemoryError):
        raise
    except Exception as error:  # of the libraries that read damaged and foreign files
        if type(error) is ValueError or getattr(error, "errno", None):  # ours, or the system's
            raise
        reason = shorten(" ".join(str(error).split()) or type(error).__name__, 200)
        raise ValueError(f"{path} cannot be read as a table: {reason}") from error


def pieces_of(dataset: Any, rows: int) -> Iterator[Any]:
    """Batches of a dataset of pyarrow, little more of it in memory than the one that is taken."""
    from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

    # Threads read up to a gigabyte ahead of whoever takes the batches, buffers whole files.
    calm = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    if isinstance(getattr(dataset, "format", None), ParquetFileFormat):
        calm["fragment_scan_options"] = ParquetFragmentScanOptions(pre_buffer=False)
    yield from dataset.to_batches(batch_size=rows, **calm)


def _chunks(path: str | PathLike[str], rows: int | None, **how: Any) -> Iterator[Any]:
    import pandas as pd

    form, hints = form_of(path), Hints(**how)
    if isinstance(hints.missing_values, str):
        raise ValueError(f"missing_values must be a list of texts, got {hints.missing_values!r}.")
    if hints.decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {hints.decimal!r}.")
    if str(path) != "-" and not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if Path(path).suffix.lower() in (".xls", ".ods", ".numbers"):
        raise ValueError(f"{path} is a spreadsheet of a kind that is not read: save it as xlsx.")
    if form in ("parquet", "feather"):
        import pyarrow.dataset

        data = pyarrow.dataset.dataset(path, format=form)
        for batch in [data.to_table()] if rows is None else pieces_of(data, rows):
            frame = batch.to_pandas()
            frame.attrs["bowtienet"] = {"hints": vars(hints)}
            yield frame
        return
    with _sheet(path) if form == "xlsx" else _text(path) as (records, separator, notes):
        head = list(islice(records, 200))
        if not head:
            raise ValueError(f"{path} is empty.")
        layout = _layout(head, notes)
        left_out: Counter[str] = Counter()
        body = _body(islice(chain(head, records), layout[2], None), layout, left_out)
        while chunk := list(islice(body, rows)):
            frame = pd.DataFrame(chunk, columns=layout[0], dtype=object)
            notes += [f"{count(n, what)} left out." for what, n in left_out.items()]
            about = {"hints": vars(hints), "separator": separator, "notes": notes}
            frame.attrs["bowtienet"] = about
            yield frame
            notes = []
            left_out.clear()


def form_of(path: Any) -> str:
    """The kind of a file by the ending of its name; "" for any other."""
    forms = {".csv": "csv", ".xlsx": "xlsx", ".xlsm": "xlsx", ".feather": "feather"}
    forms |= {".parquet": "parquet", ".pq": "parquet", ".arrow": "feather"}
    return forms.get(Path(path).suffix.lower(), "")


@contextmanager
def _text(path: str | PathLike[str]) -> Iterator[tuple[Records, str, list[str]]]:
    """Records, separator and notes of a text; stdin is copied, for its beginning is read twice."""
    with tempfile.TemporaryFile() if str(path) == "-" else open(path, "rb") as file:
        if str(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.seek(0)
        encoding = _encoding(cast(BinaryIO, file))
        file.seek(0)
        with io.TextIOWrapper(cast(BinaryIO, file), encoding=encoding, newline="") as stream:
            separator = _separator(list(islice(stream, 200)))
            stream.seek(0)
            records = csv.reader(stream, delimiter=separator, skipinitialspace=True)
            notes = [] if encoding == "utf-8-sig" else [f"the file is read as {encoding}."]
            yield (list(map(cleaned, record)) for record in records), separator, notes


@contextmanager
def _sheet(path: str | PathLike[str]) -> Iterator[tuple[Records, str, list[str]]]:
    """Records of the first sheet of a workbook that has any."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError("xlsx files need openpyxl: pip install 'bowtienet[excel]'.") from error
    with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
        sheets = [sheet for sheet in book.worksheets if next(sheet.iter_rows(), None)]
        if not sheets:
            raise ValueError(f"{path} has no rows.")
        note = f"of {len(book.worksheets)} sheets {sheets[0].title!r} is read."
        records = sheets[0].iter_rows(values_only=True)
        notes = [note] * (len(book.worksheets) > 1)
        yield (list(map(cleaned, record)) for record in records), "", notes


def _encoding(file: BinaryIO) -> str:
    """UTF-8 if all of a file is, UTF-16 if it looks so, and else that of Windows."""
    start = file.read(2**20)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for zeros, name in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if zeros.count(0) > 0.6 * len(start) / 2:
            return name
    file.seek(0)
    try:
        deque(codecs.iterdecode(iter(lambda: file.read(2**20), b""), "utf-8"), maxlen=0)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"  # with a mark at its beginning or without


def _separator(lines: Sequence[str]) -> str:
    """The sign that cuts most lines into the same number of cells, and into several."""

    def agreement(separator: str) -> tuple[float, int]:
        sizes = [len(r) for r in csv.reader(lines, delimiter=separator, skipinitialspace=True) if r]
        size, often = Counter(sizes).most_common(1)[0] if sizes else (1, 0)
        return (often / len(sizes), size) if size > 1 else (0.0, 1)

    return max(",;\t|", key=agreement)


def _layout(head: list[list[Any]], notes: list[str]) -> Layout:
    """The header is the first record that is as wide as most, with names in most cells."""
    filled = [sum(cell is not None for cell in record) for record in head]
    if not any(filled):
        raise ValueError("the file has no cell with anything in it: there is nothing to read.")
    width = Counter(n for n in map(len, head) if n).most_common(1)[0][0]
    typical = Counter(n for n in filled if n).most_common(1)[0][0]
    wide = [len(r) >= width and 2 * n > typical for r, n in zip(head, filled, strict=True)]
    if True not in wide:
        raise ValueError("the file has no header: no line has as many names as others have cells.")
    start = wide.index(True)
    header, first = head[start], start + 1
    while header and all(cell is None for record in head for cell in record[width - 1 :]):
        header, width = header[:-1], width - 1
    if above := sum(n > 0 for n in filled[:start]):
        notes.append(f"{count(above, 'line')} above the header left out.")
    if all(map(_is_number, header)):
        notes.append("the first row holds numbers: columns are named column_1, column_2, ....")
        return [f"column_{i + 1}" for i in range(len(header))], [], start
    if first < len(head) and _are_units(head[first], head[first + 1 : first + 30]):
        shown = ", ".join(str(cell) for cell in head[first] if cell is not None)
        notes.append(f"a row of units under the header left out: {shown}.")
        first += 1
    names: list[str] = []
    for i, name in enumerate(header):
        text = f"column_{i + 1}" if name is None else re.sub(r"\s+", " ", str(name))
        tries = chain([text], (f"{text}_{k}" for k in range(2, len(header) + 2)))
        names.append(next(t for t in tries if t not in names))
        if name is not None and names[-1] != text:
            notes.append(f"a second column {text!r} is named {names[-1]!r}.")
    return names, header, first


def _are_units(record: Sequence[Any], rows: Sequence[Sequence[Any]]) -> bool:
    """Whether no cell of a record is a number where the cells below are, and one has a unit."""
    below = [[row[i] for row in rows if i < len(row)] for i in range(len(record))]
    is_numeric = [bool(cells) and sum(map(_is_number, cells)) > 0.7 * len(cells) for cells in below]
    pairs = list(zip(record, is_numeric, strict=True))
    over_numbers = [cell for cell, numeric in pairs if numeric]
    units = [cell for cell in over_numbers if cell is not None]
    if not units or any(_is_number(c) or str(c).casefold() in CODES - {"-"} for c in units):
        return False
    others = [str(cell) for cell, numeric in pairs if not numeric and cell is not None]
    return 2 * len(units) >= len(over_numbers) and all(
        text[0] in "[(-" or text.casefold() in ("text", "date", "datum") for text in others
    )


def _body(records: Records, layout: Layout, left_out: Counter[str]) -> Records:
    """The rows of the data; what is left out is counted."""
    names, header, first = layout
    width = len(names)
    wider: list[int] = []
    waiting: deque[list[Any]] = deque()
    for line, row in enumerate(records, start=first + 1):
        if not any(cell is not None for cell in row):
            left_out["blank line"] += 1
        elif row[:width] == header:
            left_out["repeated header"] += 1
        else:
            if any(cell is not None for cell in row[width:]):
                wider.append(line)
            waiting.append((row + [None] * width)[:width])
        if len(waiting) > 3 and not wider:  # totals and remarks are among the last three
            yield waiting.popleft()
    if wider:
        raise ValueError(
            f"the header has {count(width, 'cell')} and record {listed(wider)} more: put cells "
            "that hold the separator in quotes, or give a file that is a table."
        )
    while waiting and (junk := _junk_at_end(waiting[-1])):
        left_out[junk] += 1
        waiting.pop()
    yield from waiting


def _junk_at_end(row: Sequence[Any]) -> str:
    """What a row at the end is, if it is no data."""
    cells = [cell for cell in row if cell is not None]
    totals = (
        r"(grand |sub)?(total|sum|summe|gesamt|gesamtsumme|insgesamt|suma|somme|mean|average"
        r"|mittelwert|durchschnitt|moyenne|media)\b.*"
    )
    if isinstance(cells[0], str) and re.fullmatch(totals, cells[0], re.IGNORECASE):
        return "row of totals at the end"
    is_remark = len(cells) == 1 and len(row) > 2 and isinstance(cells[0], str)
    return "remark at the end" if is_remark and row[0] is not None else ""


def _typed(column: Any, separator: str, hints: Hints) -> Any:
    """A column: numbers if all its cells are plain ones, and else cells as they are."""
    known = column.dropna()
    if not all(isinstance(cell, str) for cell in known):
        return column.infer_objects()
    texts = list(dict.fromkeys(known))
    numbers, units = parse_numbers(texts, ".")
    is_odd = units or not texts or set(texts) & set(map(str, hints.missing_values))
    # Cells such as 007 are names, and 1,234 may be a thousand.
    if is_odd or not np.isfinite(numbers).all() or any(map(re.compile(r"-?0\d|.*,").match, texts)):
        return column
    if hints.decimal == "," or separator == ";":
        # Behind semicolons 1.234 may be a thousand; other columns know.
        with_points = [text for text in texts if "." in text]
        thousands = re.compile(r"-?[1-9]\d{0,2}(\.\d{3})+")
        if with_points and all(map(thousands.fullmatch, with_points)):
            return column
    values = column.map(dict(zip(texts, numbers.tolist(), strict=True)))
    whole = re.compile(r"[-+]?\d{1,15}")
    is_whole = len(known) == len(column) and all(map(whole.fullmatch, texts))
    return values.astype("int64" if is_whole else "float64")


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number in either decimal style, with a unit or without."""
    if not isinstance(cell, str):
        return isinstance(cell, (int, float))
    return any(np.isfinite(parse_numbers([cell], sign)[0][0]) for sign in ".,")
