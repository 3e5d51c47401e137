"""Tables of results as plain text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bowtienet._old._validation import shorten

MOST_LINES = 20
_LONGEST = 40
_SMALL, _LARGE = 1e-4, 1e9
"""Sizes between which numbers are written in full."""


def text_table(header: Sequence[str], lines: Sequence[Sequence[str]], *, n_texts: int = 1) -> str:
    """The first columns, which are texts, to the left, numbers to the right; many lines are cut.

    Examples
    --------
    >>> print(text_table(("column", "loss"), [("a", "1.5"), ("bee", "10.0")]))
    column  loss
    a        1.5
    bee     10.0
    """
    shown = [[shorten(name, _LONGEST), *numbers] for name, *numbers in lines[:MOST_LINES]]
    cells = [list(header), *shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    found = []
    for line in cells:
        parts = [
            text.ljust(width) if place < n_texts else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        found.append("  ".join(parts).rstrip())
    if len(lines) > MOST_LINES:
        found.append(f"and {len(lines) - MOST_LINES} more")
    return "\n".join(found)


def with_error(value: float, error: float) -> str:
    """A number and its standard error, to the error's second digit.

    Examples
    --------
    >>> with_error(1.23456, 0.0123), with_error(123456.7, 3400.0), with_error(0.5, 0.0)
    ('1.235 ± 0.012', '123,457 ± 3,400', '0.5 ± 0')
    """
    if not error > 0.0:
        return f"{value:.4g} ± {error:.2g}"
    digits = int(f"{error:.1e}".partition("e")[2])
    if digits < -5 or not max(abs(value), error) < _LARGE:
        return f"{value:.4g} ± {error:.2g}"
    places = max(1 - digits, 0)
    # Zero has no sign.
    return f"{round(float(value), places) + 0.0:,.{places}f} ± {error:,.{places}f}"


def readable(value: float, digits: int = 4) -> str:
    """A number for people: significant digits, and commas between thousands.

    Zeros at the end are left out of a number that has no more digits, and of no other.

    Examples
    --------
    >>> [readable(value) for value in (1234567.0, -12.3456, 0.25, 52.9987, 1.5e-7, float("nan"))]
    ['1,234,567', '-12.35', '0.25', '53.00', '1.5e-07', '-']
    """
    if math.isnan(value):
        return "-"
    size = abs(value)
    if not (size == 0.0 or _SMALL <= size < _LARGE):
        return f"{value:.{digits}g}"
    places = 0 if size == 0.0 else max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{places}f}"
    is_exact = math.isclose(float(text.replace(",", "")), value, rel_tol=1e-12)
    return text.rstrip("0").rstrip(".") if is_exact and "." in text else text
