"""Tables of results as plain text."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LINES = 20
_LONGEST = 40


def text_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Names to the left, numbers to the right; of many lines the first.

    Examples
    --------
    >>> print(text_table(("column", "loss"), [("a", "1.5"), ("bee", "10.0")]))
    column  loss
    a        1.5
    bee     10.0
    """
    shown = [[_shortened(name), *numbers] for name, *numbers in lines[:MOST_LINES]]
    cells = [list(header), *shown]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    found = []
    for name, *numbers in cells:
        right = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
        found.append("  ".join([name.ljust(widths[0]), *right]))
    if len(lines) > MOST_LINES:
        found.append(f"and {len(lines) - MOST_LINES} more")
    return "\n".join(found)


def with_error(value: float, error: float) -> str:
    """A number and its standard error, to the error's second digit.

    Examples
    --------
    >>> with_error(1.23456, 0.0123), with_error(120.0, 34.0), with_error(0.5, 0.0)
    ('1.235 ± 0.012', '120 ± 34', '0.5 ± 0')
    """
    if not error > 0.0:
        return f"{value:.4g} ± {error:.2g}"
    digits = int(f"{error:.1e}".partition("e")[2])
    if abs(digits) > 5 or abs(value) >= 1e6:
        return f"{value:.4g} ± {error:.2g}"
    places = max(1 - digits, 0)
    # Zero has no sign.
    return f"{round(float(value), places) + 0.0:.{places}f} ± {error:.{places}f}"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
