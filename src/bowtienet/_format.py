"""Numbers, durations, counts and warnings for people, in one place."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable

SCORES = {
    "crps": "CRPS",
    "rmse": "RMSE",
    "log_score": "log score",
    "brier_score": "Brier score",
    "interval_score": "interval score",
    "coverage": "in 90 % intervals",
    "accuracy": "accuracy",
}
"""Names of scores for people."""


def number(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits, without an exponent where it reads well.

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


def percent(share: float, decimals: int = 0) -> str:
    """A share in per cent.

    Examples
    --------
    >>> percent(0.9), percent(0.1234, 1)
    ('90 %', '12.3 %')
    """
    return f"{100.0 * share:.{decimals}f} %" if math.isfinite(share) else "unknown"


def score(name: str, value: float) -> str:
    """A score; accuracy and coverage in per cent.

    Examples
    --------
    >>> score("accuracy", 0.9), score("crps", 12.3456)
    ('90.0 %', '12.35')
    """
    return percent(value, 1) if name in ("accuracy", "coverage") else number(value, 4)


def printable(text: object) -> str:
    r"""Text in one line of a screen: what is not printable is escaped.

    Examples
    --------
    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def shorten(text: object, width: int = 32) -> str:
    """Printable text of at most `width` characters.

    Examples
    --------
    >>> shorten("a long name of a column", 12)
    'a long name…'
    """
    line = printable(text)
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def listed(names: Iterable[object], most: int = 5) -> str:
    """Names in a sentence, the first `most` of them.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    words = [f"'{shorten(name)}'" for name in names]
    rest = f" and {len(words) - most:,} more" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the line of the user, however deep inside the library it is."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals["__name__"].startswith("bowtienet"):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
