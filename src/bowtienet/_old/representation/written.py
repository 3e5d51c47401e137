"""Numbers as people write them: 1,234.5 or 1.234,5 or 1 234, with a currency or a percent sign.

A column has one format: the style of its decimal and thousands separators, and at most one unit
after a space, such as "1,234.5", "1.234,5 €" or "1,234.5 %". Thousands are parted by the style's
own sign, a space or an apostrophe, always in groups of three digits. The unit does not change the
number: 12 % is 12.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

POINT, COMMA = "1,234.5", "1.234,5"
"""Styles; where both read all of a column, as of 1,234, the comma parts thousands."""
CURRENCIES, PERCENT = "$€£¥", "%"
NEARLY_ALL = 0.95
"""Share of the values that must be numbers.

One value in twenty may be a remark such as "n/a" or a slip; where more are, the column is one of
texts that happens to hold numbers, and counting so many as missing would lose what they say.
"""
_SPACES = " \u00a0\u202f"


def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = (
        rf"\d+|[1-9]\d{{0,2}}(?:(?P<parts>[{thousands}'’{_SPACES}])\d{{3}}(?:(?P=parts)\d{{3}})*)"
    )
    return re.compile(
        rf"(?P<sign>[+-]?)(?P<before>[{CURRENCIES}]?)[{_SPACES}]?"
        rf"(?P<whole>{whole})(?:[{decimal}](?P<rest>\d+))?"
        rf"[{_SPACES}]?(?P<after>[{CURRENCIES}{PERCENT}]?)",
        re.ASCII,
    )


_PATTERNS = {POINT: _pattern(".", ","), COMMA: _pattern(",", ".")}


def formats() -> list[str]:
    """Every format that a column can have."""
    return [
        style if unit == "" else f"{style} {unit}"
        for style in _PATTERNS
        for unit in ("", *CURRENCIES, PERCENT)
    ]


def reads_as_number(text: str) -> bool:
    """Whether a text is a finite number as computers write it, with spaces around it or not."""
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def read_written(text: str, number_format: str) -> float | None:
    """The number that a text is in a format; None if it is none, or has another unit.

    A currency may be left out, a percent sign may not: 0.12 beside 12 % is another number.
    """
    style, _, unit = number_format.partition(" ")
    found = _split(text, style)
    if found is None or found[1] not in (unit, "" if unit != PERCENT else unit):
        return None
    return found[0]


def find_format(counts: Mapping[str, int]) -> str | None:
    """The format in which nearly all texts, each with how often it occurs, are numbers.

    None where there is none, or where no text needs it, because plain numbers such as 12 or 07
    are as often names of categories.
    """
    total = sum(counts.values())
    best, most = None, 0
    for style in _PATTERNS:
        tally: Counter[str] = Counter()
        for text, count in counts.items():
            found = _split(text, style)
            if found is not None:
                tally[found[1]] += count
        for unit in sorted(tally):
            alone = unit in ("", PERCENT)
            n_read = tally[unit] if alone else tally[unit] + tally[""]
            if n_read > most:
                best, most = style if unit == "" else f"{style} {unit}", n_read
    if best is None or most < NEARLY_ALL * total:
        return None
    needed = (text for text in counts if not reads_as_number(text))
    return best if any(read_written(text, best) is not None for text in needed) else None


def _split(text: str, style: str) -> tuple[float, str] | None:
    """A number and its unit, "" without one."""
    text = text.strip()
    if style == POINT and reads_as_number(text):
        return float(text), ""
    match = _PATTERNS[style].fullmatch(text)
    if match is None or (match["before"] and match["after"]):
        return None
    digits = "".join(filter(str.isdigit, match["whole"]))
    value = float(f"{match['sign']}{digits}.{match['rest'] or 0}")
    return (value, match["before"] or match["after"]) if math.isfinite(value) else None
