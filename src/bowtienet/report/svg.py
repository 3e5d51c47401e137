"""SVG from plain numbers: elements whose texts are always escaped, scales, ticks and axes."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WIDTH = 420.0
"""Of a chart in its own units: on a phone it shrinks little, so that its letters stay readable."""
_LETTER = 7.2
"""Width of a letter of the labels in the same units."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_DATE_STEPS = (
    *(("Y", 1970, factor) for factor in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
    *(("M", 0, factor) for factor in (1, 2, 3, 6)),
    *(("D", 0, factor) for factor in (1, 2, 5, 10)),
)
Point = tuple[float, float]
Values = Sequence[float] | np.ndarray


class Svg(str):
    """Markup: the only kind of text that `element` does not escape."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Svg:
    """One element; ``class_`` stands for class, and _ for -.

    Examples
    --------
    >>> element("text", "a < b", x=1.25, text_anchor="end")
    '<text x="1.2" text-anchor="end">a &lt; b</text>'
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Svg) else html.escape(child) for child in children)
    return Svg(f"<{tag}{written}>{inside}</{tag}>")


def join(parts: Sequence[Svg]) -> Svg:
    """Elements one after another."""
    return Svg("".join(parts))


def mark(tag: str, tip: str, **attributes: object) -> Svg:
    """An element that says what it shows when it is pointed at."""
    look = attributes.pop("class_", "mark")
    return element(tag, element("title", tip), class_=look, **attributes)


def drawing(words: str, width: float, height: float, *parts: Svg, class_: str = "chart") -> Svg:
    """A picture that scales, with the words that stand for it."""
    box = f"0 0 {_plain(width)} {_plain(height)}"
    return element("svg", *parts, class_=class_, viewBox=box, role="img", aria_label=words)


def path(points: Sequence[Point], *, closed: bool = False) -> str:
    """The letters of a path through points."""
    steps = "L".join(f"{_plain(x)} {_plain(y)}" for x, y in points)
    return f"M{steps}{'Z' if closed else ''}"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most so many round numbers between two ends.

    Examples
    --------
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0.0:
        return [low]
    rough = span / max(most - 1, 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    if unit == 0.0:
        return [low, high]
    step = next(unit * factor for factor in _STEPS if unit * factor >= rough * (1.0 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)] or [low, high]


def date_ticks(low: float, high: float, most: int = 4) -> list[tuple[float, str]]:
    """At most so many first days of years or months, or days, since 1970, with their names.

    Examples
    --------
    >>> date_ticks(0.0, 1500.0)
    [(0.0, '1970'), (730.0, '1972'), (1461.0, '1974')]
    """
    start, end = (np.datetime64(math.floor(day), "D") for day in (low, high))
    for unit, epoch, factor in _DATE_STEPS:
        first, last = (int(moment.astype(f"M8[{unit}]").astype(int)) for moment in (start, end))
        # Round years are those of the calendar, which numpy counts from 1970.
        places = range(-(-(first + epoch) // factor) * factor - epoch, last + 1, factor)
        if len(places) > most + 1:
            continue
        moments = np.array(places, dtype=np.int64).astype(f"M8[{unit}]")
        days = moments.astype("M8[D]").astype(np.int64)
        kept = [(float(d), str(m)) for d, m in zip(days, moments, strict=True) if d >= low]
        if 2 <= len(kept) <= most:
            return kept
    return [(low, str(start))] if start == end else [(low, str(start)), (high, str(end))]


def tick_labels(values: Sequence[float]) -> list[str]:
    """Texts of round numbers, all with as many digits as the step between them needs."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0])
    largest = max(abs(value) for value in values)
    if largest >= 1e6 or 0.0 < step < 1e-4:
        return [f"{value:.3g}".replace("-", "−") for value in values]
    needed = 0 if step == 0.0 else max(0, math.ceil(-math.log10(step) - 1e-9))
    if step and abs(step * 10.0**needed - round(step * 10.0**needed)) > 1e-6:
        needed += 1
    return [f"{value + 0.0:,.{needed}f}".replace("-", "−") for value in values]


def shortened(text: str, room: float) -> str:
    """A label that loses its middle to fit into so many units; see `_width`."""
    if sum(map(_width, text)) <= room:
        return text
    half = 0.5 * (room - _LETTER)
    return _fitting(text, half).rstrip() + "…" + _fitting(text[::-1], half)[::-1].lstrip()


def _fitting(text: str, room: float) -> str:
    """The first letters of a text, at least one, that fit into so many units."""
    ends = np.cumsum([_width(letter) for letter in text])
    return text[: max(1, int(np.sum(ends <= room)))]


def _width(letter: str) -> float:
    """Letters of East Asia are twice as wide."""
    return _LETTER * (2.0 if unicodedata.east_asian_width(letter) in "WF" else 1.0)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where numbers stand in a chart."""

    x: tuple[float, float]
    y: tuple[float, float]
    """Ends of the two axes."""
    left: float = 56.0
    right: float = WIDTH - 14.0
    top: float = 28.0
    bottom: float = 250.0

    def across(self, value: float) -> float:
        """Place of a number on the horizontal axis."""
        return self.left + (self.right - self.left) * _share(value, *self.x)

    def up(self, value: float) -> float:
        """Place of a number on the vertical axis."""
        return self.bottom - (self.bottom - self.top) * _share(value, *self.y)

    def line(self, x: Values, y: Values) -> str:
        """A path through points."""
        return path([(self.across(a), self.up(b)) for a, b in zip(x, y, strict=True)])

    def band(self, x: Values, low: Values, high: Values) -> str:
        """A path around the room between two lines."""
        there = [(self.across(a), self.up(b)) for a, b in zip(x, high, strict=True)]
        back = [(self.across(a), self.up(b)) for a, b in zip(x, low, strict=True)]
        return path([*there, *reversed(back)], closed=True)


def axes(
    frame: Frame,
    x_label: str,
    y_label: str,
    *,
    x_ticks: Sequence[tuple[float, str]] | None = None,
    x_most: int = 6,
) -> Svg:
    """Grid lines, numbers and names of both axes; the vertical one is named above it."""
    parts = []
    rising = ticks(*frame.y)
    for value, text in zip(rising, tick_labels(rising), strict=True):
        at = frame.up(value)
        parts.append(element("path", d=path([(frame.left, at), (frame.right, at)]), class_="grid"))
        parts.append(element("text", text, x=frame.left - 6, y=at + 4, text_anchor="end"))
    parts.append(horizontal_axis(frame, x_label, named=x_ticks, most=x_most))
    parts.append(
        element("text", shortened(y_label, 390.0), x=4, y=14, class_="name", text_anchor="start")
    )
    return join(parts)


def horizontal_axis(
    frame: Frame,
    label: str,
    *,
    named: Sequence[tuple[float, str]] | None = None,
    most: int = 6,
    grid: bool = False,
) -> Svg:
    """The line at the bottom with its numbers and its name."""
    ends = [(frame.left, frame.bottom), (frame.right, frame.bottom)]
    parts = [element("path", d=path(ends), class_="axis")]
    values = ticks(*frame.x, most)
    for value, text in named or zip(values, tick_labels(values), strict=True):
        at = frame.across(value)
        top = frame.top if grid else frame.bottom - 4.0
        parts.append(
            element(
                "path",
                d=path([(at, top), (at, frame.bottom)]),
                class_="grid" if grid else "axis",
            )
        )
        half = 0.5 * _LETTER * len(text)
        inside = min(max(at, half), WIDTH - half)  # the first and the last may stick out
        parts.append(element("text", text, x=inside, y=frame.bottom + 17, text_anchor="middle"))
    middle = 0.5 * (frame.left + frame.right)
    parts.append(
        element(
            "text",
            shortened(label, 330.0),
            x=middle,
            y=frame.bottom + 36,
            class_="name",
            text_anchor="middle",
        )
    )
    return join(parts)


def widened(low: float, high: float, share: float = 0.04) -> tuple[float, float]:
    """Ends of an axis a little beyond those of the numbers, and never the same."""
    room = share * (high - low)
    if room == 0.0:
        room = 0.5 * abs(low) or 1.0
    return low - room, high + room


def _share(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low)


def _plain(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        text = f"{value:.1f}"
        return text.removesuffix(".0")
    return str(value)
