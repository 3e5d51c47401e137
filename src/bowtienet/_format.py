"""Numbers, durations and counts for people, in one place."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, without an exponent where it reads well.

    Examples
    --------
    >>> number(1234.567), number(0.0012345), number(1e-9)
    ('1,235', '0.00123', '1e-09')
    """
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size and not 1e-4 <= size < 1e6:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
    return f"{value:,.{decimals}f}"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Examples
    --------
    >>> duration(0.42), duration(95.0), duration(7300.0)
    ('0.4 s', '1 min 35 s', '2 h 1 min')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def count(value: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "weight"), count(1200, "weight")
    ('1 weight', '1,200 weights')
    """
    return f"{value:,} {noun}" + ("" if value == 1 else "s")
