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
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bowtienet._format import listed
from bowtienet.tables.dates import (
    DAY,
    DAY_FIRST,
    MONTH_FIRST,
    order_of_dates,
    parse_dates,
    without_zone,
)

Floats = NDArray[np.float64]

NUMBER, CATEGORY, DATE = "number", "category", "date"
TRUTH, COMPACT = "truth", "compact"
CODES = (
    frozenset({"-", "--", "---", "–", "—", "?", "??", ".", ".."})
    | {"n/a", "#n/a", "na", "--na", "n.a.", "nan", "nat", "none", "null", "nil", "inf", "-inf"}
    | {"k.a.", "k. a.", "keine angabe", "unknown", "unbekannt", "missing"}
)
"""Texts that are missing values in a column of numbers or dates, in any case."""
TRUE = frozenset({"true", "yes", "y", "t", "on", "ja", "j", "wahr", "oui", "vrai", "sí", "si"})
FALSE = frozenset({"false", "no", "n", "f", "off", "nein", "falsch", "non", "faux"})

_NUMBER = {
    decimal: re.compile(
        r"(?P<open>\()?(?P<sign>[-+−]?)\s*"
        r"(?P<before>[$€£¥]|(?:EUR|USD|GBP|CHF|JPY|Fr\.?|US\$)(?=[\s\d]))?\s*(?P<late>[-+−]?)"
        rf"(?P<whole>\d{{1,3}}(?:[\s'’{group}]\d{{3}})+|\d*)(?:\{decimal}(?P<part>\d+))?"
        rf"(?P<power>[eE][-+]?\d+)?\s*\)?\s*(?P<after>[^\d\s.,;:/()-][^\d,;:]{{0,11}})?"
    )
    for decimal, group in ((".", ","), (",", "."))
}
# Possessive, so that one text that does not fit ends the search.
_PLAIN_LINES = re.compile(r"(?:[-+]?+(?>\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+\n)++")
_COMPACT_LINES = re.compile(r"(?:(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\n)++")
_SEPARATORS = re.compile(r"[\s'’.,]")
_ZEROS = re.compile(r"0\d+")
_CURRENCIES = {"€": "eur", "$": "usd", "us$": "usd", "£": "gbp", "¥": "jpy", "fr": "chf"}


class Cells(NamedTuple):
    """A column by its distinct values."""

    values: list[Any]
    place: NDArray[np.intp]
    """(n,) of each row's value among them; -1 where it is missing."""


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What a user says of all columns; None where columns decide."""

    missing_values: tuple[str, ...] = ()
    day_first: bool | None = None
    decimal: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the cells of a column are read."""

    kind: str
    """A number, a date or a category."""
    style: str = ""
    """Of texts: the decimal sign of numbers, truth, the order of day and month, compact dates."""
    codes: tuple[str, ...] = ()
    """Texts that are missing values, as the column had them."""
    doubt: str = ""
    """What else the column could be, and the option that decides."""


def distinct_cells(values: NDArray[Any]) -> Cells:
    """Distinct values of a column of objects; texts without blanks around them."""
    everything = values.tolist()
    keys: list[Any] = everything
    is_text = set(map(type, everything)) <= {str, type(None)}
    if not is_text:  # 1, 1.0 and True are equal, and NaN is not equal to itself
        keys = [None if is_missing(value) else _key(value) for value in everything]
    seen: dict[Any, int] = {}
    raw = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
    tidy = [cleaned(key if is_text or key is None else key[1]) for key in seen]
    places: dict[Any, int] = {}
    place = [-1 if v is None else places.setdefault((type(v), v), len(places)) for v in tidy]
    return Cells([value for _, value in places], np.array(place, dtype=np.intp)[raw])


def learn_reading(cells: Cells, weights: Floats, hints: Hints) -> Reading:
    """How a column is read, by all its distinct values and how often they come."""
    texts = [value for value in cells.values if isinstance(value, str)]
    others = [value for value in cells.values if not isinstance(value, str)]
    user = {code.strip().casefold() for code in hints.missing_values}
    coded = [text for text in texts if text.casefold() in CODES | user]
    known = [text for text in texts if text.casefold() not in CODES | user]
    kind = CATEGORY
    for of_others, types in ((NUMBER, (Real, Decimal, np.bool_)), (DATE, (date, np.datetime64))):
        kind = of_others if all(isinstance(value, types) for value in others) else kind
    kind = NUMBER if all(isinstance(value, timedelta) for value in others) else kind
    reading = Reading(kind=kind if others else CATEGORY)
    if known and (not others or kind != CATEGORY):
        places = cells.place[cells.place >= 0]
        share = np.bincount(places, weights[cells.place >= 0], minlength=len(cells.values))
        often = dict(zip(map(_key, cells.values), share, strict=True))
        texts_are = _learn_texts(known, np.array([often[_key(text)] for text in known]), hints)
        mixes = others and texts_are.kind != kind
        reading = Reading(kind=CATEGORY) if mixes else texts_are
    if reading.kind == CATEGORY:
        coded = [text for text in coded if text.casefold() in user]
    return replace(reading, codes=(*sorted(coded), *reading.codes))


def settled(hints: Hints, readings: Sequence[Reading]) -> Hints:
    """Hints for columns in doubt, by the columns of the same table that are in none."""
    styles = [reading.style for reading in readings if not reading.doubt]
    if hints.decimal is None and "," in styles:
        hints = replace(hints, decimal=",")
    days = styles.count(DAY_FIRST)
    if hints.day_first is None and days and days >= styles.count(MONTH_FIRST):
        hints = replace(hints, day_first=True)
    return hints


def read_cells(cells: Cells, reading: Reading, hints: Hints) -> tuple[NDArray[Any], list[Any]]:
    """Distinct cells as floats, dates or texts, as learnt, and those that are none of these."""
    codes = {code.casefold() for code in (*hints.missing_values, *reading.codes)}
    if reading.kind == CATEGORY:
        texts = [level_text(value) for value in cells.values]
        levels = [None if text.casefold() in codes else text for text in texts]
        return np.array(levels, dtype=object), []
    codes |= CODES
    missing = np.array([isinstance(v, str) and v.casefold() in codes for v in cells.values], bool)
    values = _parse(cells.values, reading)
    unread = np.isnat(values) if reading.kind == DATE else np.isnan(values)
    values[missing] = np.datetime64("NaT") if reading.kind == DATE else np.nan
    return values, [cells.values[i] for i in np.flatnonzero(unread & ~missing)]


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
    """Numbers (m,), NaN where a text is none, and their units."""
    if texts and decimal == "." and _PLAIN_LINES.fullmatch("\n".join(texts) + "\n"):
        return np.array(texts, dtype=np.float64), set()
    pattern = _NUMBER[decimal]
    units: set[str | None] = set()
    numbers = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        match = pattern.fullmatch(text)
        if match is None or not (match["whole"] or match["part"]):
            continue
        whole, part = _SEPARATORS.sub("", match["whole"]) or "0", match["part"] or "0"
        size = float(f"{whole}.{part}{match['power'] or ''}")
        negative = match["open"] or match["sign"] in ("-", "−") or match["late"] in ("-", "−")
        numbers[i] = -size if negative and match["sign"] != "+" else size
        units |= {match["before"], match["after"]}
    return numbers, {_unit(unit) for unit in units if unit}


def is_compact_date(numbers: Floats) -> bool:
    """Whether numbers such as 20240301 are dates, all of them and several."""
    known = np.unique(numbers[np.isfinite(numbers)])
    # A cheap look before texts are made of them.
    if len(known) < 10 or known[0] < 19000101 or known[-1] > 20991231:
        return False
    return bool(np.all(known == np.round(known))) and _is_compact([str(int(v)) for v in known])


def _is_compact(texts: Sequence[str]) -> bool:
    whole = _COMPACT_LINES.fullmatch("\n".join(texts) + "\n")
    return whole is not None and not np.isnat(parse_dates(texts, DAY_FIRST)).any()


def _learn_texts(texts: list[str], counts: Floats, hints: Hints) -> Reading:
    """How texts that are no codes are read."""
    folded = {text.casefold() for text in texts}
    if folded <= TRUE | FALSE and folded & TRUE and folded & FALSE:
        return Reading(kind=NUMBER, style=TRUTH)
    if any(map(_ZEROS.fullmatch, texts)) and all(map(str.isdigit, texts)):
        return Reading(kind=CATEGORY)
    if len(texts) >= 10 and _is_compact(texts):
        return Reading(kind=DATE, style=COMPACT)
    decimal, doubt = _decimal_of(texts, hints)
    numbers, units = parse_numbers(texts, decimal)
    if np.isfinite(numbers).any() and len(units) < 2:
        reading = _mostly(texts, counts, ~np.isfinite(numbers), NUMBER, decimal, doubt)
        if reading is not None:
            return reading
    order, is_unsure = order_of_dates(texts)
    if hints.day_first is not None and (is_unsure or order == DAY_FIRST):
        order, is_unsure = DAY_FIRST if hints.day_first else MONTH_FIRST, False
    moments = parse_dates(texts, order)
    if np.isnat(moments).all():
        several = len(units) > 1 and np.isfinite(numbers).all()
        doubt = f"numbers in several units ({listed(sorted(units), 3)}); convert them to one."
        return Reading(kind=CATEGORY, doubt=doubt if several else "")
    doubt = ""
    if is_unsure:
        doubt = "dates are read month first; day_first=True reads the day first."
    reading = _mostly(texts, counts, np.isnat(moments), DATE, order, doubt)
    return Reading(kind=CATEGORY) if reading is None else reading


def _mostly(
    texts: list[str], counts: Floats, unread: NDArray[np.bool_], kind: str, style: str, doubt: str
) -> Reading | None:
    """The reading, if nearly all cells can be read so."""
    strange = [text for text, is_unread in zip(texts, unread, strict=True) if is_unread]
    few = len(strange) <= 3 and counts[unread].sum() <= 0.05 * counts.sum()
    if strange and not (few and np.count_nonzero(~unread) > 3 * len(strange)):
        return None
    if strange:
        doubt = f"read as {kind}s, with {listed(strange)} missing; missing_values names such codes."
    return Reading(kind=kind, style=style, codes=tuple(sorted(strange)), doubt=doubt)


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


def _parse(values: Sequence[Any], reading: Reading) -> NDArray[Any]:
    """Values (m,) as floats or dates; NaN and NaT where they are none."""
    texts = [value for value in values if isinstance(value, str)]
    places = [i for i, value in enumerate(values) if isinstance(value, str)]
    if reading.kind == DATE:
        moments = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[us]")
        moments[places] = parse_dates(texts, reading.style or order_of_dates(texts)[0])
        for i, value in enumerate(values):
            if isinstance(value, (date, np.datetime64)):
                moments[i] = np.datetime64(without_zone(value), "us")
            elif isinstance(value, Real) and reading.style == COMPACT:
                moments[i] = parse_dates([level_text(value)], DAY_FIRST)[0]
        return moments
    numbers = np.full(len(values), np.nan)
    if reading.style == TRUTH:
        folded = [text.casefold() for text in texts]
        numbers[places] = [1.0 if f in TRUE else 0.0 if f in FALSE else np.nan for f in folded]
    elif texts:
        numbers[places] = parse_numbers(texts, reading.style or _decimal_of(texts, Hints())[0])[0]
    for i, value in enumerate(values):
        if isinstance(value, (Real, Decimal, np.bool_)):
            numbers[i] = float(value)
        elif isinstance(value, timedelta):
            numbers[i] = value / timedelta(days=1)
        elif isinstance(value, np.timedelta64):
            numbers[i] = value / DAY
    return numbers


def _key(value: Any) -> tuple[type, Any]:
    """What makes a value distinct; lists and their like are texts."""
    return (type(value), value) if value.__hash__ is not None else (str, str(value))


def _unit(text: str) -> str:
    """A unit or currency in one form: EUR and €, year and years."""
    plain = text.strip().rstrip(".").casefold()
    return _CURRENCIES.get(plain, plain.removesuffix("s") if len(plain) > 3 else plain)
