"""Cells of a column as numbers, dates or levels, and the codes that stand for missing values.

Whatever holds a table, text cells are read here. A column is looked at as a whole, once, in
training; what was learnt is its `Reading`, by which new rows are read, also a row alone. Each
distinct text is read once.

- Numbers may have a unit or currency, the same in all cells, and either decimal sign: the sign
  that makes more cells numbers. "1,234" alone is in doubt; then other columns decide.
- Truth values are yes and no in some languages, without regard to case.
- Codes such as "n/a" in a column of numbers or dates are missing. So are a few other texts in a
  column that is nearly all numbers or dates; the reading says that it is in doubt.
- Digits with leading zeros are names, not numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import listed, shorten
from bowtienet.tables.dates import order_of_dates, parse_dates

Floats = NDArray[np.float64]
Cells: TypeAlias = tuple[list[Any], NDArray[np.intp]]
"""Distinct values of a column, and (n,) the one of each row; -1 where it is missing."""

CODES = (
    frozenset({"-", "--", "---", "–", "—", "?", "??", ".", ".."})
    | {"n/a", "#n/a", "na", "--na", "n.a.", "nan", "nat", "none", "null", "nil", "inf", "-inf"}
    | {"k.a.", "k. a.", "keine angabe", "unknown", "unbekannt", "missing"}
)
"""Texts that are missing values in a column of numbers or dates, in any case."""


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What a user says of all columns; None where columns decide."""

    missing_values: Sequence[str] = ()
    day_first: bool | None = None
    decimal: str | None = None


@dataclass(frozen=True, kw_only=True)
class Column:
    """What was learnt of a column: how its cells are read, and what they become."""

    kind: str
    """A "number", "date" or "category"; or, of texts too, "many levels" or "text"."""
    style: str = ""
    """For texts: the decimal sign, "truth", "day first", "month first" or "compact" dates."""
    codes: tuple[str, ...] = ()
    """Texts that are missing values, as the column had them."""
    note: str = ""
    """What is in doubt, or why it is left out, and the remedy."""
    name: str = ""
    parts: tuple[str, ...] = ()
    """Levels, words, parts of a date that vary, ("",) for a number; none if left out."""
    typical: float = 0.0
    """Median of numbers and days, which stands where one is missing."""
    has_indicator: bool = False
    """Whether a further column says where values are missing."""
    levels: NDArray[np.str_] | None = None
    """(L,), sorted: those of training, of a category or many levels."""
    means: Floats | None = None
    """(L + 1, targets), shrunk; the last for levels that training did not have."""


def distinct_cells(values: NDArray[Any]) -> Cells:
    """Distinct values of a column; texts without blanks around them."""
    everything = values.tolist()
    keys: list[Any] = everything
    is_text = set(map(type, everything)) <= {str, type(None)}
    if not is_text:  # 1, 1.0 and True are equal, NaN is not equal to itself
        if odd := [v for v in everything if v.__hash__ is None or isinstance(v, complex)]:
            raise ValueError(
                f"cells such as {shorten(odd[0])} are no numbers, dates or texts: make a column of "
                "numbers of each of their parts."
            )
        keys = [None if is_missing(v) else (type(v), v) for v in everything]
    seen: dict[Any, int] = {}
    raw = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
    tidy = [cleaned(key if is_text or key is None else key[1]) for key in seen]
    numbers: dict[Any, int] = {}
    index = [-1 if v is None else numbers.setdefault((type(v), v), len(numbers)) for v in tidy]
    return [value for _, value in numbers], np.array(index, dtype=np.intp)[raw]


def learn_reading(cells: Cells, weights: Floats, hints: Hints) -> Column:
    """How a column is read, by all its distinct values and how often they come."""
    values, index = cells
    user = _folded(hints.missing_values)
    codes = CODES | user
    coded = [v for v in values if isinstance(v, str) and v.casefold() in codes]
    known = [i for i, v in enumerate(values) if isinstance(v, str) and v.casefold() not in codes]
    reading = Column(kind=_kind_of([v for v in values if not isinstance(v, str)]))
    is_texts = len(coded) + len(known) == len(values)
    if known and (is_texts or reading.kind != "category"):
        counts = np.asarray(np.bincount(index + 1, weights, len(values) + 1)[1:], dtype=float)
        of_texts = _learn_texts([values[i] for i in known], counts[known], hints)
        is_mixed = not is_texts and of_texts.kind != reading.kind
        reading = Column(kind="category") if is_mixed else of_texts
    if reading.kind == "category":
        coded = [text for text in coded if text.casefold() in user]
    return replace(reading, codes=(*sorted(coded), *reading.codes))


def learn_readings(cells: Sequence[Cells], weights: Floats, hints: Hints) -> list[Column]:
    """How the columns of a table are read; those that leave it open follow those that decide."""
    readings = [learn_reading(each, weights, hints) for each in cells]
    styles, more = [reading.style for reading in readings if not reading.note], hints
    if hints.decimal is None and "," in styles:
        more = replace(more, decimal=",")
    if hints.day_first is None and styles.count("day first") >= max(styles.count("month first"), 1):
        more = replace(more, day_first=True)
    for i, reading in enumerate(readings):
        if more != hints and (reading.note or reading.style == "."):
            readings[i] = learn_reading(cells[i], weights, more)
    return readings


def read_cells(cells: Cells, column: Column, hints: Hints) -> tuple[NDArray[Any], list[Any]]:
    """Distinct cells as floats, dates or texts, as learnt, and those that are none of these.

    One more is at the end, missing, for the rows without a value.
    """
    values, codes = cells[0], _folded((*hints.missing_values, *column.codes))
    if column.kind not in ("number", "date"):
        texts = map(level_text, values)
        levels = [None if text.casefold() in codes else text for text in texts]
        return np.array([*levels, None], dtype=object), []
    codes |= CODES
    is_coded = [isinstance(v, str) and v.casefold() in codes for v in values]
    parsed = _parse(values, column)
    # What is missing, NaN or NaT, does not equal itself.
    unread = [
        values[i] for i in np.flatnonzero((parsed != parsed)[:-1] & ~np.array(is_coded, bool))
    ]
    parsed[np.flatnonzero(is_coded)] = parsed[-1]
    return parsed, unread


def level_text(value: Any) -> str:
    """A level as text; whole floats as whole numbers, so that 1 and 1.0 are one level."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or the NA of pandas."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return True  # the NA of pandas has no truth value


def cleaned(value: Any) -> Any:
    """A cell without blanks around it; None for an empty one."""
    return (value.strip() or None) if isinstance(value, str) else value


def parse_numbers(texts: Sequence[str], decimal: str) -> tuple[Floats, set[str]]:
    """Numbers (m,), NaN for other texts, and their units."""
    # Possessive, so that one text that does not fit ends the search.
    plain = r"(?:[-+]?+(?>\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+\n)++"
    if texts and decimal == "." and re.fullmatch(plain, "\n".join(texts) + "\n"):
        return np.array(texts, dtype=np.float64), set()
    pattern, separators = _number_pattern(decimal), re.compile(r"\D")
    units: set[str | None] = set()
    numbers = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        match = pattern.fullmatch(text)
        if match is None or not (match["whole"] or match["part"]):
            continue
        whole, part = separators.sub("", match["whole"]) or "0", match["part"] or "0"
        size = float(f"{whole}.{part}{match['power'] or ''}")
        negative = match["open"] or {match["sign"], match["late"]} & {"-", "−"}
        numbers[i] = -size if negative and match["sign"] != "+" else size
        units |= {match["before"], match["after"]}
    return numbers, {_unit(unit) for unit in units if unit}


def is_compact_date(numbers: Floats) -> bool:
    """Whether numbers such as 20240301 are dates, all of them and several."""
    known = np.unique(numbers[np.isfinite(numbers)])
    # A cheap look before texts are made of them.
    if len(known) < 10 or known[0] < 19000101 or known[-1] > 20991231 or np.any(known % 1.0):
        return False
    return not np.isnat(parse_dates(list(map(level_text, known.tolist())), "day first")).any()


@cache
def _number_pattern(decimal: str) -> re.Pattern[str]:
    group = "," if decimal == "." else "."
    return re.compile(
        r"(?P<open>\()?(?P<sign>[-+−]?)\s*"
        r"(?P<before>[$€£¥]|(?:EUR|USD|GBP|CHF|JPY|Fr\.?|US\$)(?=[\s\d]))?\s*(?P<late>[-+−]?)"
        rf"(?P<whole>\d{{1,3}}(?:[\s'’{group}]\d{{3}})+|\d*)(?:\{decimal}(?P<part>\d+))?"
        rf"(?P<power>[eE][-+]?\d+)?\s*\)?\s*(?P<after>[^\d\s.,;:/()-][^\d,;:]{{0,11}})?"
    )


def _folded(codes: Sequence[str]) -> set[str]:
    return {str(code).strip().casefold() for code in codes}


def _kind_of(values: list[Any]) -> str:
    """The kind of cells that are no texts."""
    if values and all(isinstance(v, (Real, Decimal, np.bool_, timedelta)) for v in values):
        return "number"
    is_dates = values and all(isinstance(v, (date, np.datetime64)) for v in values)
    return "date" if is_dates else "category"


def _learn_texts(texts: list[str], counts: Floats, hints: Hints) -> Column:
    """How texts that are no codes are read."""
    if set(_truth(texts).tolist()) == {0.0, 1.0}:
        return Column(kind="number", style="truth")
    is_digits = all(map(str.isdecimal, texts))
    if is_digits and any(len(text) > 1 and text.startswith("0") for text in texts):
        return Column(kind="category")
    if is_digits and is_compact_date(np.array(texts, dtype=float)):
        return Column(kind="date", style="compact")
    decimal, doubt = _decimal_of(texts, hints)
    numbers, units = parse_numbers(texts, decimal)
    if np.isfinite(numbers).any() and len(units) < 2:
        reading = _mostly(texts, counts, ~np.isfinite(numbers), "number", decimal, doubt)
        if reading.kind == "number":
            return reading
    order, is_unsure = order_of_dates(texts)
    if hints.day_first is not None and (is_unsure or order == "day first"):
        order, is_unsure = "day first" if hints.day_first else "month first", False
    moments = parse_dates(texts, order)
    if np.isnat(moments).all():
        several = len(units) > 1 and np.isfinite(numbers).all()
        doubt = f"numbers in several units ({listed(sorted(units), 3)}); convert them to one."
        return Column(kind="category", note=doubt if several else "")
    doubt = "dates are read month first; day_first=True reads the day first." if is_unsure else ""
    return _mostly(texts, counts, np.isnat(moments), "date", order, doubt)


def _mostly(
    texts: list[str], counts: Floats, unread: NDArray[np.bool_], kind: str, style: str, doubt: str
) -> Column:
    """The reading, if nearly all cells can be read so; else a category."""
    strange = [text for text, is_unread in zip(texts, unread, strict=True) if is_unread]
    few = len(strange) <= 3 and counts[unread].sum() <= 0.05 * counts.sum()
    if strange and not (few and np.count_nonzero(~unread) > 3 * len(strange)):
        return Column(kind="category")
    if strange:
        doubt = f"read as {kind}s, with {listed(strange)} missing; missing_values names such codes."
    return Column(kind=kind, style=style, codes=tuple(sorted(strange)), note=doubt)


def _decimal_of(texts: list[str], hints: Hints) -> tuple[str, str]:
    """The sign that makes more texts numbers, and the doubt if both make as many."""
    looked = texts[:1_000]  # enough to decide
    points, commas = (parse_numbers(looked, decimal)[0] for decimal in (".", ","))
    read = [np.count_nonzero(np.isfinite(numbers)) for numbers in (points, commas)]
    if read[0] != read[1]:
        return (".", "") if read[0] > read[1] else (",", "")
    differ = np.flatnonzero(np.isfinite(points) & (points != commas))
    if hints.decimal is not None or not differ.size:
        return hints.decimal or ".", ""
    example = looked[differ[0]]
    if "." in example:
        # A column of numbers with three digits behind the point is nothing special.
        return ".", ""
    value = points[differ[0]]
    return ".", f"{example!r} is read as {value:g}; decimal=',' reads {commas[differ[0]]:g}."


def _parse(values: list[Any], column: Column) -> NDArray[Any]:
    """Floats or dates (m + 1,); NaN or NaT for other values, and at the end."""
    is_date = column.kind == "date"
    parsed = np.full(len(values) + 1, np.datetime64("NaT", "us") if is_date else np.nan)
    places = [i for i, value in enumerate(values) if isinstance(value, str)]
    texts = [values[i] for i in places]
    if is_date:
        parsed[places] = parse_dates(texts, column.style or order_of_dates(texts)[0])
    elif column.style == "truth":
        parsed[places] = _truth(texts)
    else:
        decimal = column.style or _decimal_of(texts, Hints())[0]
        parsed[places] = parse_numbers(texts, decimal)[0]
    for i, value in enumerate(values):
        if is_date and isinstance(value, datetime) and value.tzinfo is not None:
            parsed[i] = value.astimezone(UTC).replace(tzinfo=None)
        elif is_date and isinstance(value, (date, np.datetime64)):
            parsed[i] = value
        elif is_date and isinstance(value, Real) and column.style == "compact":
            parsed[i] = parse_dates([level_text(value)], "day first")[0]
        elif not is_date and isinstance(value, (Real, Decimal, np.bool_)):
            parsed[i] = float(value)
        elif not is_date and isinstance(value, timedelta):
            parsed[i] = value / timedelta(days=1)
    return parsed


def _truth(texts: Sequence[str]) -> Floats:
    """1 for yes, 0 for no, in some languages; NaN for any other text."""
    yes = {"true", "yes", "y", "t", "on", "ja", "j", "wahr", "oui", "vrai", "sí", "si"}
    no = {"false", "no", "n", "f", "off", "nein", "falsch", "non", "faux"}
    known = dict.fromkeys(yes, 1.0) | dict.fromkeys(no, 0.0)
    return np.array([known.get(text.casefold(), np.nan) for text in texts], dtype=np.float64)


def _unit(text: str) -> str:
    """A unit or currency in one form: EUR and €, year and years."""
    plain = text.strip().rstrip(".").casefold()
    short = plain.removesuffix("s") if len(plain) > 3 else plain
    signs = {"€": "eur", "$": "usd", "us$": "usd", "£": "gbp", "¥": "jpy", "fr": "chf"}
    return signs.get(plain, short)
