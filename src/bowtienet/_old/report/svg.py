"""Figures of matplotlib as SVG inside a page.

A page may hold many figures and a strict content policy: names are unique in the page, looks are
attributes of SVG instead of styles, texts stay texts, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import importlib
import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bowtienet._old._validation import printable

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # texts that can be read, searched and translated
    "svg.hashsalt": "bowtienet",
    "text.parse_math": False,  # names from the data are no formulas
    "text.usetex": False,
    "font.family": "sans-serif",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "white",
}
_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT_SIZE = re.compile(r"([\d.]+)px")


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A plot as an element of a page."""

    svg: str
    words: str
    """What it shows, also for those who do not see it."""


@contextmanager
def page_style() -> Iterator[None]:
    """How figures are drawn and written for a page; without warnings of users' data."""
    with importlib.import_module("matplotlib").rc_context(_STYLE), warnings.catch_warnings():
        # Of glyphs, which the browser has, and of new categories and names, told of by `predict`.
        warnings.simplefilter("ignore", UserWarning)
        yield


def new_figure(width: float, height: float) -> Any:
    """A figure of so many inches that no window knows of."""
    module = importlib.import_module("matplotlib.figure")
    return module.Figure(figsize=(width, height), layout="constrained")


def _move_titles_inside(figure: Any) -> None:
    """Long labels make axes narrow, and a title in their middle would leave the figure."""
    figure.draw_without_rendering()
    for ax in figure.axes:
        box = ax.title.get_window_extent()
        over = max(box.x1 - figure.bbox.x1, 0.0) - max(figure.bbox.x0 - box.x0, 0.0)
        ax.title.set_x(ax.title.get_position()[0] - over / ax.bbox.width)


def inline_svg(figure: Any, name: str, words: str) -> Plot:
    """A figure, drawn in `page_style`, as an element of a page with a name of its own."""
    _move_titles_inside(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata=_METADATA)
    root = ET.fromstring(printable(buffer.getvalue().decode()))
    kept = {found for element in root.iter() for found in _references(element)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata"):
                parent.remove(child)
        _make_inline(parent, name, kept)
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    # What the style sheet of matplotlib says of all elements.
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    root.attrib |= {"class": "plot", "role": "img", "aria-label": words}
    ET.register_namespace("", _SVG)
    svg = re.sub(r"\s*\n\s*", "\n", ET.tostring(root, encoding="unicode"))
    return Plot(svg=svg, words=words)


def _references(element: ET.Element) -> list[str]:
    """Names of other elements that an element points to."""
    pointers = [element.get(_HREF, "")]
    pointers += [value for value in element.attrib.values() if "url(#" in value]
    return [found for pointer in pointers for found in _REFERENCE.findall(pointer)]


def _make_inline(element: ET.Element, name: str, kept: set[str]) -> None:
    """Turn styles into attributes, and make names those of this figure."""
    for entry in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in entry.partition(":"))
        if key == "font":
            key, value = "font-size", "".join(_FONT_SIZE.findall(value)[:1]) + "px"
        if key and key != "font-family":  # the page has its own
            element.set(key, value)
    if element.get("id") is not None and element.get("id") not in kept:
        del element.attrib["id"]
    if _HREF in element.attrib:
        element.set("href", element.attrib.pop(_HREF))
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key == "href" or "url(#" in value:
            element.set(key, _REFERENCE.sub(rf"#{name}-\1", value))
        elif key in ("d", "x", "y", "transform", "points"):
            shorter = _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.2f}", value)
            element.set(key, re.sub(r"\s+", " ", shorter).strip())
