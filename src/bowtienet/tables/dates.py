"""Dates: from texts in the usual styles, and the numbers that they become.

A text is a day, or a day and a time, written as 2024-03-01, 01.03.2024, 3/1/24, 1 March 2024,
March 1, 2024 or 20240301. Whether day or month comes first is decided by the whole column.

Times with a zone are moved to UTC, whatever holds them: the same moment is the same number in a
frame, in a file and in another zone. Times without a zone stay as the clock shows them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PARTS = ("days", "season sine", "season cosine", "weekday", "hour")
DAYS_OF_YEAR = 365.2425


def parse_dates(texts: Sequence[str], order: str) -> NDArray[np.datetime64]:
    """Moments (m,) in microseconds; NaT where a text is no date. `order` is of day and month."""
    # Lines that NumPy reads; possessive, so that one text that does not fit ends the search.
    iso = r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?+)?+)?+\n)++"
    if texts and re.fullmatch(iso, "\n".join(texts) + "\n"):
        try:
            return np.array(texts, dtype="datetime64[us]")
        except ValueError:
            pass  # a day such as February 30
    return np.array([_moment(text, order) for text in texts], dtype="datetime64[us]")


def order_of_dates(texts: Sequence[str]) -> tuple[str, bool]:
    """Which of day and month comes first in a column, and whether that is in doubt.

    A number above twelve decides. Without one, days come first where points or hyphens stand
    between, as in Europe, and months where slashes do; after slashes this is in doubt.
    """
    matches = [match for text in texts if (match := _shapes()[1].fullmatch(text))]
    first, second = ([int(match[name]) for match in matches] for name in ("first", "next"))
    if max(first, default=0) > 12:
        return "day first", False
    if max(second, default=0) > 12:
        return "month first", False
    has_slashes = any(match["mark"] == "/" for match in matches)
    return ("month first", first != second) if has_slashes else ("day first", False)


def days_of(moments: NDArray[Any]) -> Floats:
    """Days since 1970-01-01; NaN where missing."""
    since = moments.astype("datetime64[us]") - np.datetime64(0, "us")
    return np.asarray(since / np.timedelta64(1, "D"))


def date_parts(moments: NDArray[Any], typical: float) -> Floats:
    """Days, season, weekday and hour (n, 5); those of the typical day where missing."""
    days = days_of(moments)
    days = np.where(np.isfinite(days), days, typical)
    angle = 2.0 * np.pi * days / DAYS_OF_YEAR
    whole = np.floor(days)
    # To the digits that days have: the same time of every day is the same number.
    hours = np.round(24.0 * (days - whole), 6)
    return np.column_stack([days, np.sin(angle), np.cos(angle), (whole + 3.0) % 7.0, hours])


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    """Year, month, day; numbers in either order; named months, behind the day or before; 20240301.

    Each may be followed by a time.
    """
    time = (
        r"(?:[T\s,]+(?P<hour>\d{1,2}):(?P<minute>\d\d)"
        r"(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?"
        r"\s*(?P<half>[ap]\.?m\.?)?(?:\s*Uhr)?\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
    )
    weekday, month = r"(?:[^\W\d_]{2,10}\.?,?\s+)?", r"(?P<name>[^\W\d_]{3,10})"
    shapes = (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<first>\d{1,2})(?P<mark>[-/.])\s?(?P<next>\d{1,2})(?P=mark)\s?(?P<year>\d{4}|\d\d)",
        rf"{weekday}(?P<day>\d{{1,2}})\.?[\s-]+{month}\.?,?[\s-]+(?P<year>\d{{4}}|\d\d)",
        rf"{weekday}{month}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})",
        r"(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)",
    )
    return tuple(re.compile(shape + time, re.IGNORECASE) for shape in shapes)


@cache
def _months() -> dict[str, int]:
    """Beginnings of the names of months in six languages."""
    names = (
        "jan ene gen|feb fév fev|mar mär mrz maer|apr avr abr|may mai mag|jun juin giu|"
        "jul juil lug|aug aoû aou ago|sep set|oct okt ott out|nov|dec dez déc dic"
    )
    return {word: i + 1 for i, words in enumerate(names.split("|")) for word in words.split()}


def _moment(text: str, order: str) -> datetime | None:
    match = next((match for shape in _shapes() if (match := shape.fullmatch(text))), None)
    try:
        return match and _day(match.groupdict(), order) + _time(match.groupdict())
    except (ValueError, OverflowError):
        return None


def _day(fields: dict[str, Any], order: str) -> datetime:
    year = int(fields["year"])
    if year < 100:
        year += 2000 if year < 69 else 1900  # as POSIX has it
    if "first" in fields:
        day, month = int(fields["first"]), int(fields["next"])
        return datetime(year, day, month) if order == "month first" else datetime(year, month, day)
    if "name" in fields:
        name = fields["name"].casefold()
        month = _months().get(name[:4]) or _months().get(name[:3]) or 0
    else:
        month = int(fields["month"])
    return datetime(year, month, int(fields["day"]))


def _time(fields: dict[str, Any]) -> timedelta:
    """Time of the day, less the offset of its zone."""
    if fields["hour"] is None:
        return timedelta()
    hour, minute, second = (int(fields[name] or 0) for name in ("hour", "minute", "second"))
    if fields["half"]:
        hour = hour % 12 + 12 * fields["half"].lower().startswith("p")
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError("no time of the day")
    micro = int((fields["part"] or "0")[:6].ljust(6, "0"))
    offset, zone = timedelta(), fields["zone"]
    if zone and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        offset = -offset if zone[0] == "-" else offset
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro) - offset
