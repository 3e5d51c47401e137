"""How a text file is written: encoding, delimiter, decimal sign and dates, found from its content.

What is given counts first, then what the content proves, then what is remembered of an earlier file
(that of a fit, for a prediction), then the usual. 1,234 and 03/04/2023 prove nothing.
"""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bowtienet._old.data.arrow_files import pyarrow

DELIMITERS = ",;\t|"
_SAMPLE = 2**20
"""Bytes that are looked at for the delimiter and the decimal sign."""
_RECORDS = 200
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
"""Bytes that no text in cp1252 has."""
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DAY_FIRST, _MONTH_FIRST = "%d{0}%m{0}%Y", "%m{0}%d{0}%Y"
_SHAPES = {
    r"\d{1,2}\.\d{1,2}\.\d{4}": (_DAY_FIRST.format("."),),
    r"\d{1,2}/\d{1,2}/\d{4}": (_MONTH_FIRST.format("/"), _DAY_FIRST.format("/")),
    r"\d{1,2}-\d{1,2}-\d{4}": (_DAY_FIRST.format("-"), _MONTH_FIRST.format("-")),
    r"\d{4}/\d{1,2}/\d{1,2}": ("%Y/%m/%d",),
    r"\d{4}\.\d{1,2}\.\d{1,2}": ("%Y.%m.%d",),
}
"""Dates by their shape; where two formats read a whole column, the first of them."""
_TIMES = {"": "", r" \d{1,2}:\d\d": " %H:%M", r" \d{1,2}:\d\d:\d\d": " %H:%M:%S"}
_WORDS = {"%d": "day", "%m": "month", "%Y": "year", "%H": "hour", "%M": "minute", "%S": "second"}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a text file is written."""

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    dates: Mapping[str, str] = field(default_factory=dict)
    """Formats, as of `strptime`, of the columns with dates that are not written as 2023-12-31."""
    unsure: tuple[str, ...] = ()
    """Columns of dates in which day and month could also be the other way round."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """What is known of a file before it is opened; None where it is to be found."""

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    date_format: str | None = None
    remembered: Dialect | None = None
    texts: tuple[str, ...] = ()
    """Columns that were texts in the file that is remembered; they stay so."""


def describe_dialect(dialect: Dialect) -> str:
    r"""A dialect in words.

    Examples
    --------
    >>> describe_dialect(Dialect(delimiter=";", decimal=",", encoding="cp1252"))
    "delimiter ';', decimal comma, encoding cp1252"
    """
    mark = {"\t": "tab", " ": "space"}.get(dialect.delimiter, f"'{dialect.delimiter}'")
    sign = {".": "point", ",": "comma"}.get(dialect.decimal, f"sign '{dialect.decimal}'")
    return f"delimiter {mark}, decimal {sign}, encoding {dialect.encoding}"


def describe_date_format(form: str) -> str:
    """A format of dates in words.

    Examples
    --------
    >>> describe_date_format("%d.%m.%Y %H:%M")
    'day.month.year hour:minute'
    """
    for sign, word in _WORDS.items():
        form = form.replace(sign, word)
    return form


def to_plain(dialect: Dialect | None) -> dict[str, Any] | None:
    """A dialect as a file of a model holds it."""
    if dialect is None:
        return None
    return {**asdict(dialect), "dates": dict(dialect.dates), "unsure": list(dialect.unsure)}


def from_plain(content: Any) -> Dialect | None:
    """The dialect that `to_plain` wrote; a ValueError if it is none."""
    if content is None:
        return None
    names = ("delimiter", "decimal", "encoding")
    dates, unsure = content["dates"], content["unsure"]
    texts = [*(content[name] for name in names), *dates, *dates.values(), *unsure]
    if not all(type(text) is str for text in texts) or not is_encoding(content["encoding"]):
        raise ValueError(f"its dialect is {content!r:.80}")
    if not all(map(is_mark, (content["delimiter"], content["decimal"]))):
        raise ValueError(f"its dialect is {content!r:.80}")
    own = {name: content[name] for name in names}
    return Dialect(**own, dates=dict(dates), unsure=tuple(unsure))


def is_mark(text: str) -> bool:
    """Whether a text can part columns or digits."""
    return len(text) == 1 and text.isascii() and text not in '"\r\n'


def is_encoding(name: str) -> bool:
    """Whether there is such an encoding of texts."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True


def find_dialect(path: Path, given: Given, usual: str) -> Dialect:
    """Encoding, delimiter and decimal sign of a text file; `usual` is its likely delimiter."""
    past = given.remembered
    encoding = given.encoding or find_encoding(path, None if past is None else past.encoding)
    lines = list(_first_lines(path, encoding))
    likely = usual if past is None else past.delimiter
    delimiter = given.delimiter or find_delimiter(lines, usual, likely)
    decimal = given.decimal
    if decimal is None:
        header, *records = _records(lines, delimiter) or [[]]
        others = [place for place, name in enumerate(header) if name.strip() not in given.texts]
        cells = [record[place] for record in records for place in others if place < len(record)]
        decimal = find_decimal(cells) or ("." if past is None else past.decimal)
    return Dialect(delimiter=delimiter, decimal=decimal, encoding=encoding)


def find_encoding(path: Path, remembered: str | None = None) -> str:
    """UTF-8 if all of a file is, one of UTF-16 and UTF-32 if it says so, and else one of bytes."""
    start = next(unpacked(path), b"")
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    for order, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if start[order::2].count(0) > 0.3 * len(start):
            return name
    decoder = codecs.getincrementaldecoder("utf-8")()
    undefined = False
    try:
        for part in unpacked(path):
            decoder.decode(part)
        decoder.decode(b"", final=True)
        return "utf-8"
    except UnicodeDecodeError:
        if _CONTROLS.search(start):
            return "utf-8"  # no text at all: the reader says so
        undefined = any(_UNDEFINED.search(part) for part in unpacked(path))
    if remembered is not None and remembered != "utf-8":
        return remembered
    return "latin-1" if undefined else "cp1252"


def find_delimiter(lines: Sequence[str], usual: str, likely: str) -> str:
    """The sign that parts most lines into as many columns as the first one; of equals the likely.

    The usual sign is returned if none parts the first line.
    """
    best, found = (0.0, 0.0, False, 0), usual
    for mark in dict.fromkeys((likely, usual, *DELIMITERS)):
        records = _records(lines, mark)
        n_columns = len(records[0]) if records else 0
        if n_columns > 1:
            same = sum(len(record) == n_columns for record in records) / len(records)
            # Half of a quotation in a cell: the sign stands within quotes.
            whole = sum(all(cell.count('"') % 2 == 0 for cell in record) for record in records)
            score = (same, whole / len(records), mark == likely, n_columns)
            if score > best:
                best, found = score, mark
    return found


def find_decimal(cells: Sequence[str]) -> str | None:
    """The decimal sign that most numbers prove; None if none does.

    Examples
    --------
    >>> find_decimal(["1,5", "x"]), find_decimal(["1.234,5"]), find_decimal(["1,234", "7"])
    (',', ',', None)
    """
    proofs = {
        mark: sum(_proves(cell.strip(" \u00a0\u202f$€£¥%"), mark, other) for cell in cells)
        for mark, other in ((".", ","), (",", "."))
    }
    if proofs["."] == proofs[","] == 0:
        return None
    return "," if proofs[","] > proofs["."] else "."


def _proves(cell: str, mark: str, other: str) -> bool:
    """Whether a number has a decimal sign that cannot part thousands."""
    number = rf"[+-]?(\d+|\d{{1,3}}(\{other}\d{{3}})+)?\{mark}\d+([eE][+-]?\d+)?"
    thousands = rf"[+-]?[1-9]\d{{0,2}}(\{mark}\d{{3}})+"
    return re.fullmatch(number, cell) is not None and re.fullmatch(thousands, cell) is None


def read_columns(table: Any, dialect: Dialect, given: Given) -> tuple[Any, Dialect]:
    """The table with thousands of a decimal comma as numbers and written dates as dates."""
    types = pyarrow().types
    past = {} if given.remembered is None else given.remembered.dates
    dates: dict[str, str] = {}
    unsure: list[str] = []
    for index, name in enumerate(table.column_names):
        column = table.column(index)
        if not types.is_string(column.type) or column.null_count == len(column):
            continue
        if name in given.texts:
            continue
        if dialect.decimal == "," and (numbers := _whole_thousands(column)) is not None:
            table = table.set_column(index, name, numbers)
            continue
        known = [form for form in (given.date_format, past.get(name)) if form is not None]
        forms = [form for form in (*known, *_likely_formats(column)) if _reads(column, form)]
        if forms:
            dates[name] = forms[0]
            table = table.set_column(index, name, _as_dates(column, forms[0]))
            if not known and len(forms) > 1:
                unsure.append(name)
    if given.date_format is not None and given.date_format not in dates.values():
        warnings.warn(
            f"no column holds dates like {given.date_format!r}, the date format that is given.",
            UserWarning,
            stacklevel=4,
        )
    return table, replace(dialect, dates=dates, unsure=tuple(unsure))


def _whole_thousands(column: Any) -> Any | None:
    """Numbers such as 1.234 or 1.234,5, if a column holds no other; None if it does."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    pattern = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"
    if not compute.all(compute.match_substring_regex(column, pattern)).as_py():
        return None
    plain = compute.replace_substring(compute.replace_substring(column, ".", ""), ",", ".")
    return plain.cast(arrow.float64())


def _likely_formats(column: Any) -> list[str]:
    """Formats of the shape that every text of a column has."""
    compute = pyarrow(".compute")
    for shape, forms in _SHAPES.items():
        if compute.any(compute.match_substring_regex(column, rf"^{shape}")).as_py():
            for time, form in _TIMES.items():
                pattern = rf"^{shape}{time}$"
                if compute.all(compute.match_substring_regex(column, pattern)).as_py():
                    return [one + form for one in forms]
    return []


def _reads(column: Any, form: str) -> bool:
    """Whether every text of a column is a date in a format."""
    return bool(_moments(column, form).null_count == column.null_count)


def _moments(column: Any, form: str) -> Any:
    return pyarrow(".compute").strptime(column, format=form, unit="s", error_is_null=True)


def _as_dates(column: Any, form: str) -> Any:
    moments = _moments(column, form)
    return moments if "%H" in form else moments.cast(pyarrow().date32())


def unpacked(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, part by part; none where it cannot be unpacked."""
    try:
        with pyarrow().input_stream(str(path)) as stream:
            yield from iter(lambda: stream.read(_SAMPLE), b"")
    except OSError:
        return  # whoever reads it says so


def _first_lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines of the sample, without one that it cuts off."""
    start = next(unpacked(path), b"")
    text = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = text.splitlines()
    yield from (lines[:-1] if len(start) == _SAMPLE and len(lines) > 1 else lines)


def _records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The first records that are not empty."""
    found: list[list[str]] = []
    try:
        for record in csv.reader(lines, delimiter=delimiter):
            if record:
                found.append(record)
            if len(found) == _RECORDS:
                break
    except csv.Error:
        return []
    return found
