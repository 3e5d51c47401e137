"""Numbers and names as a page shows them."""

from __future__ import annotations

import math

import numpy as np

from bowtienet._old._validation import printable
from bowtienet._old.representation.kinds import DATE, DURATION, NUMBER, Numbers

_LONGEST = 60
_LARGE, _SMALL = 1e9, 1e-3
YEAR = "year"
"""Kind of a column whose numbers are years, and have no separators."""
_YEARS = (1500.0, 2100.0)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
NOTHING = "–"
"""Where there is no number to show."""


def clean(text: object, longest: int = _LONGEST) -> str:
    r"""A text from the data without characters that change the text around them, and cut.

    Line breaks and the like become spaces; what cannot be printed, or written to a file, is spelt
    out. A long text loses its middle, as names often differ at the end.

    Examples
    --------
    >>> clean("two\nlines"), clean("bell\a"), clean("abcdef", 4)
    ('two lines', 'bell\\x07', 'ab…f')
    """
    given = str(text)
    if len(given) > 2 * longest:
        given = given[:longest] + given[-longest:]
    shown = printable("".join(" " if letter.isspace() else letter for letter in given))
    if len(shown) <= longest:
        return shown
    first, last = longest // 2, (longest - 1) // 2
    return shown[:first].rstrip() + "…" + shown[len(shown) - last :].lstrip()


def number(value: float | None, digits: int = 4, separator: str = ",") -> str:
    """A number as people read it, with at least so many digits where they say something.

    Examples
    --------
    >>> number(1234.5678), number(-0.25), number(2.0), number(1.5e-9), number(None)
    ('1,235', '−0.25', '2', '1.5e−09', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0.0 else "−∞"
    size = abs(value)
    if size >= _LARGE or 0.0 < size < _SMALL:
        return f"{value:.{digits}g}".replace("-", "−")
    places = 0 if size == 0.0 else max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{places}f}".replace(",", separator)
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def percent(share: float) -> str:
    """A share as readers say it, 90 %, which no line may break."""
    return f"{number(100.0 * share, 3)}\N{NO-BREAK SPACE}%"


def count(n: int, thing: str, things: str | None = None) -> str:
    """So many things: 1 row, 2 rows.

    Examples
    --------
    >>> count(1, "row"), count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def kind_of(content: Numbers) -> str:
    """The kind of a column of numbers; "year" where all of them could be years."""
    if content.kind != NUMBER:
        return content.kind
    present = content.values[np.isfinite(content.values)]
    inside = (present >= _YEARS[0]) & (present <= _YEARS[1]) & (present == np.floor(present))
    return YEAR if present.size and inside.all() else NUMBER


def quantity(value: float | None, kind: str, digits: int = 4) -> str:
    """A value of a column: a number, a year, a date (days since 1970), or a number of days.

    Examples
    --------
    >>> quantity(19723.0, "date"), quantity(2.5, "duration"), quantity(2.5, "number")
    ('2024-01-01', '2.5 days', '2.5')
    >>> quantity(1891.0, "year"), quantity(1891.0, "number")
    ('1891', '1,891')
    """
    if value is None or not math.isfinite(value):
        return number(value)
    if kind == DATE:
        return str(np.datetime64(math.floor(value), "D"))
    if kind == YEAR:
        return number(value, digits, separator="")
    return number(value, digits) + (" days" if kind == DURATION else "")


def rarity(probability: float) -> str:
    """A small probability as people say it.

    Examples
    --------
    >>> rarity(0.04), rarity(1.0 / 12345.0), rarity(2e-9), rarity(0.0)
    ('1 in 25', '1 in 12,000', '1 in 10⁸', 'below 1 in 10¹²')
    """
    if probability < 1e-12:
        return f"below 1 in 10{'12'.translate(_RAISED)}"
    times = 1.0 / probability
    rounded = float(f"{times:.2g}")
    if rounded < 1e7:
        return f"1 in {number(rounded, 2)}"
    return f"1 in 10{str(math.floor(math.log10(times))).translate(_RAISED)}"
