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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from bowtienet._format import count
from bowtienet.tables.door import ATTRIBUTE, refuse
from bowtienet.tables.texts import CODES, parse_numbers

Source = tuple[Iterator[Sequence[Any]], str, tuple[str, ...]]
"""Records of a file, its separator, and notes."""
SEPARATORS = ",;\t|"
SAMPLE = 200
"""Records that the layout of a file is found from."""
PART = 2**20
"""Bytes that are decoded at a time to find the encoding."""
AT_END = 3
"""Rows at the end among which totals and remarks are looked for."""
TOTALS = re.compile(
    r"(grand |sub)?(total|sum|summe|gesamt|gesamtsumme|insgesamt|suma|somme|mean|average|mittelwert"
    r"|durchschnitt|moyenne|media)\b.*",
    re.IGNORECASE,
)
_LEADING_ZERO = re.compile(r"-?0\d")
_THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(\.\d{3})+")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the data of a file begin, and their names."""

    names: tuple[str, ...]
    header: tuple[Any, ...]
    """The header as it stands, which may come again."""
    first: int
    """Records before the first row."""
    separator: str
    notes: tuple[str, ...]


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
        Codes of missing values besides the usual ones, such as "-999".
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
    import pandas as pd

    said = _said(missing_values, day_first, decimal)
    form = _form(path)
    if form in ("parquet", "feather"):
        frame = pd.read_parquet(path) if form == "parquet" else pd.read_feather(path)
        return _with(frame, said, ())
    left_out: Counter[str] = Counter()
    with _open(path, form) as (layout, records):
        rows = list(_body(records, layout, left_out))
    if not rows:
        raise ValueError(f"{path} has no rows under its header.")
    columns = zip(layout.names, zip(*rows, strict=True), strict=True)
    frame = pd.DataFrame(
        {name: _typed(cells, layout.separator, said) for name, cells in columns}, copy=False
    )
    return _with(frame, said, (*layout.notes, *_notes_of(left_out)))


def read_chunks(
    path: str | PathLike[str],
    rows: int,
    missing_values: Sequence[str] = (),
    day_first: bool | None = None,
    decimal: str | None = None,
) -> Iterator[Any]:
    """Frames of so many rows of a file, one after the other, for predictions in little memory.

    Cells are as they are written: a model reads them as those of its training. The separator and
    the header are those of the first rows. Parameters are as for `read_table`.
    """
    import pandas as pd

    said = _said(missing_values, day_first, decimal)
    form = _form(path)
    if form in ("parquet", "feather"):
        for batch in _batches(path, form, rows):
            yield _with(batch.to_pandas(), said, ())
        return
    left_out: Counter[str] = Counter()
    with _open(path, form) as (layout, records):
        body, notes = _body(records, layout, left_out), layout.notes
        while chunk := list(islice(body, rows)):
            frame = pd.DataFrame(chunk, columns=list(layout.names), dtype=object)
            yield _with(frame, said, (*notes, *_notes_of(left_out)))
            notes = ()
            left_out.clear()


def _said(
    missing_values: Sequence[str], day_first: bool | None, decimal: str | None
) -> dict[str, Any]:
    if isinstance(missing_values, str):
        raise ValueError(f"missing_values must be a list of texts, got {missing_values!r}.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    codes = tuple(str(code) for code in missing_values)
    return {"missing_values": codes, "day_first": day_first, "decimal": decimal}


def _with(frame: Any, said: dict[str, Any], notes: Iterable[str]) -> Any:
    frame.attrs[ATTRIBUTE] = {**said, "notes": tuple(notes)}
    return frame


def _form(path: str | PathLike[str]) -> str:
    """Text, xlsx, parquet or feather, by the ending of the name."""
    if str(path) == "-":
        return "text"
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    ending = Path(path).suffix.lower()
    if ending in (".xls", ".ods", ".numbers"):
        raise ValueError(f"{path} is a spreadsheet of a kind that is not read: save it as xlsx.")
    endings = {".xlsx": "xlsx", ".xlsm": "xlsx", ".parquet": "parquet", ".pq": "parquet"}
    return {**endings, ".feather": "feather", ".arrow": "feather"}.get(ending, "text")


def _batches(path: str | PathLike[str], form: str, rows: int) -> Iterator[Any]:
    import pyarrow.dataset

    yield from pyarrow.dataset.dataset(path, format=form).to_batches(batch_size=rows)


@contextmanager
def _open(path: str | PathLike[str], form: str) -> Iterator[tuple[Layout, Iterator[Sequence[Any]]]]:
    """The layout of a text file or sheet, and its records after the header."""
    with _sheet(path) if form == "xlsx" else _text(path) as (records, separator, about):
        head = list(islice(records, SAMPLE))
        if not head:
            raise ValueError(f"{path} is empty.")
        layout = _layout(head, separator, about)
        yield layout, islice(chain(head, records), layout.first, None)


@contextmanager
def _text(path: str | PathLike[str]) -> Iterator[Source]:
    """Records of a text file; stdin is copied to a file, for its beginning is read twice."""
    with tempfile.TemporaryFile() if str(path) == "-" else open(path, "rb") as file:
        if str(path) == "-":
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.seek(0)
        encoding = _encoding(cast(BinaryIO, file))
        file.seek(0)
        with io.TextIOWrapper(cast(BinaryIO, file), encoding=encoding, newline="") as stream:
            separator = _separator(list(islice(stream, SAMPLE)))
            stream.seek(0)
            records = csv.reader(stream, delimiter=separator, skipinitialspace=True)
            usual = encoding == "utf-8-sig"
            yield records, separator, () if usual else (f"the file is read as {encoding}.",)


@contextmanager
def _sheet(path: str | PathLike[str]) -> Iterator[Source]:
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
        several = len(book.worksheets) > 1
        yield sheets[0].iter_rows(values_only=True), "", (note,) if several else ()


def _encoding(file: BinaryIO) -> str:
    """UTF-8 if all of a file is, UTF-16 if it looks so, and else that of Windows."""
    start = file.read(PART)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for zeros, name in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if zeros.count(0) > 0.6 * len(start) / 2:
            return name
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while start:
            decoder.decode(start)
            start = file.read(PART)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"  # with a mark at its beginning or without


def _separator(lines: Sequence[str]) -> str:
    """The sign that cuts most lines into the same number of cells, and into several."""

    def agreement(separator: str) -> tuple[float, int]:
        sizes = [len(r) for r in csv.reader(lines, delimiter=separator, skipinitialspace=True) if r]
        size, often = Counter(sizes).most_common(1)[0] if sizes else (1, 0)
        return (often / len(sizes), size) if size > 1 else (0.0, 1)

    return max(SEPARATORS, key=agreement)


def _layout(head: list[Sequence[Any]], separator: str, about: tuple[str, ...]) -> Layout:
    """The header is the first record that is as wide as most, with names in most cells."""
    filled = [sum(not _is_empty(cell) for cell in record) for record in head]
    width = Counter(n for n in map(len, head) if n).most_common(1)[0][0]
    typical = Counter(n for n in filled if n).most_common(1)[0][0]
    wide = [len(r) >= width and 2 * n > typical for r, n in zip(head, filled, strict=True)]
    start = wide.index(True)
    header = tuple(_cleaned(cell) for cell in head[start])
    while header and header[-1] is None and all(_is_empty(c) for r in head for c in r[width - 1 :]):
        header, width = header[:-1], width - 1
    notes = list(about)
    above = sum(n > 0 for n in filled[:start])
    if above:
        notes.append(f"{count(above, 'line')} above the header left out.")
    first = start + 1
    if all(isinstance(cell, (int, float)) or _is_number(cell) for cell in header):
        notes.append("the first row holds numbers: columns are named column_1, column_2, ....")
        return _named((None,) * len(header), (), start, separator, notes)
    if first < len(head) and _are_units(head[first], head[first + 1 : first + 30]):
        shown = ", ".join(str(cell) for cell in head[first] if not _is_empty(cell))
        notes.append(f"a row of units under the header left out: {shown}.")
        first += 1
    return _named(header, header, first, separator, notes)


def _named(
    names: Sequence[Any], header: Sequence[Any], first: int, separator: str, notes: list[str]
) -> Layout:
    """A layout with names that are different texts."""
    unique: list[str] = []
    for i, name in enumerate(names):
        text = f"column_{i + 1}" if name is None else re.sub(r"\s+", " ", str(name))
        tries = chain([text], (f"{text}_{k}" for k in range(2, len(names) + 2)))
        unique.append(next(t for t in tries if t not in unique))
        if name is not None and unique[-1] != text:
            notes.append(f"a second column {text!r} is named {unique[-1]!r}.")
    return Layout(
        names=tuple(unique),
        header=tuple(header),
        first=first,
        separator=separator,
        notes=tuple(notes),
    )


def _are_units(record: Sequence[Any], rows: Sequence[Sequence[Any]]) -> bool:
    """Whether no cell of a record is a number where the cells below are, and one has a unit."""
    below = [[row[i] for row in rows if i < len(row)] for i in range(len(record))]
    is_numeric = [bool(cells) and sum(map(_is_number, cells)) > 0.7 * len(cells) for cells in below]
    pairs = list(zip(record, is_numeric, strict=True))
    over_numbers = [_cleaned(cell) for cell, numeric in pairs if numeric]
    units = [cell for cell in over_numbers if cell is not None]
    if not units or any(_is_number(c) or str(c).casefold() in CODES - {"-"} for c in units):
        return False
    others = [str(cell).strip() for cell, numeric in pairs if not numeric and not _is_empty(cell)]
    return 2 * len(units) >= len(over_numbers) and all(
        text[0] in "[(-" or text.casefold() in ("text", "date", "datum") for text in others
    )


def _body(
    records: Iterable[Sequence[Any]], layout: Layout, left_out: Counter[str]
) -> Iterator[list[Any]]:
    """The rows of the data; what is left out is counted."""
    width = len(layout.names)
    problems: list[str] = []
    waiting: deque[list[Any]] = deque()
    for line, record in enumerate(records, start=layout.first + 1):
        row = [_cleaned(cell) for cell in record]
        if not any(cell is not None for cell in row):
            left_out["blank line"] += 1
        elif tuple(row[:width]) == layout.header:
            left_out["repeated header"] += 1
        else:
            if any(cell is not None for cell in row[width:]) and len(problems) < 1000:
                problems.append(
                    f"record {line} has {len(row)} cells and the header has {width}: put cells "
                    "that hold the separator in quotes."
                )
            waiting.append((row + [None] * width)[:width])
        if len(waiting) > AT_END and not problems:
            yield waiting.popleft()
    refuse(problems)
    while waiting and (junk := _junk_at_end(waiting[-1])):
        left_out[junk] += 1
        waiting.pop()
    yield from waiting


def _junk_at_end(row: Sequence[Any]) -> str:
    """What a row at the end is, if it is no data."""
    cells = [cell for cell in row if cell is not None]
    if isinstance(cells[0], str) and TOTALS.fullmatch(cells[0]):
        return "row of totals at the end"
    is_remark = len(cells) == 1 and len(row) > 2 and isinstance(cells[0], str)
    return "remark at the end" if is_remark and row[0] is not None else ""


def _notes_of(left_out: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{count(n, what)} left out." for what, n in left_out.items())


def _typed(cells: Sequence[Any], separator: str, said: dict[str, Any]) -> Any:
    """A column: numbers if all its cells are plain ones, and else cells as they are."""
    import pandas as pd

    known = [cell for cell in cells if cell is not None]
    if not all(isinstance(cell, str) for cell in known):
        return pd.Series(cells, dtype=object).infer_objects()
    texts = list(dict.fromkeys(known))
    numbers, units = parse_numbers(texts, ".")
    plain = not units and np.isfinite(numbers).all() and not any("," in text for text in texts)
    plain = plain and not any(map(_LEADING_ZERO.match, texts))
    with_points = [text for text in texts if "." in text]
    if with_points and (said["decimal"] == "," or separator == ";"):
        # Behind semicolons 1.234 may be a thousand; other columns know.
        plain = plain and not all(map(_THOUSANDS.fullmatch, with_points))
    if not plain or not texts or set(texts) & set(said["missing_values"]):
        return pd.Series(cells, dtype=object)
    value_of = dict(zip(texts, numbers.tolist(), strict=True))
    values = [value_of.get(cell, np.nan) for cell in cells]
    if len(known) == len(cells) and all(re.fullmatch(r"[-+]?\d{1,15}", text) for text in texts):
        return pd.Series(values).astype("int64")
    return pd.Series(values, dtype="float64")


def _cleaned(cell: Any) -> Any:
    """A cell without blanks around it; None for an empty one."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


def _is_empty(cell: Any) -> bool:
    return _cleaned(cell) is None


def _is_number(cell: Any) -> bool:
    """Whether a cell is a number in either decimal style, with a unit or without."""
    if not isinstance(cell, str):
        return isinstance(cell, (int, float))
    return any(np.isfinite(parse_numbers([cell.strip()], sign)[0][0]) for sign in ".,")
