"""Figures inside a page: names of their own, attributes instead of styles, nothing loaded."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from bowtienet._old.report.svg import inline_svg, new_figure, page_style
from tests._old.report.fits import IMAGE, SCRIPT

HOSTILE = f"{SCRIPT} ]]> & $x^{{$ {IMAGE}"


def draw(name: str, label: str = "label") -> str:
    with page_style():
        figure = new_figure(4.0, 3.0)
        ax = figure.add_subplot()
        ax.plot([1.0, 2.0], [8e5, 9e5], "o--", label=label)
        ax.fill_between([1.0, 2.0], 8e5, 8.5e5, alpha=0.5, hatch="//")
        ax.scatter([1.0, 2.0], [8.2e5, 8.4e5])
        ax.legend()
        ax.set(xlabel=label)
        return inline_svg(figure, name, f"about {label}").svg


def elements(svg: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter())


@pytest.fixture(scope="module")
def plain() -> str:
    return draw("one")


def test_names_are_those_of_the_figure_and_lead_somewhere(plain: str) -> None:
    names = [element.get("id") for element in elements(plain) if element.get("id")]
    assert len(names) == len(set(names)) >= 3
    assert all(name.startswith("one-") for name in names)
    values = [value for element in elements(plain) for value in element.attrib.values()]
    pointers = [value for value in values if "url(" in value]
    pointers += [e.get("href") for e in elements(plain) if e.get("href")]
    assert len(pointers) >= 4
    assert {re.search(r"#([\w-]+)", pointer)[1] for pointer in pointers} == set(names)
    other = {element.get("id") for element in elements(draw("two"))}
    assert other.isdisjoint(names)


def test_looks_are_attributes(plain: str) -> None:
    root = ET.fromstring(plain)
    assert not [e for e in root.iter() if "style" in e.attrib or e.tag.endswith("style")]
    colours = {e.get("fill") for e in root.iter()} | {e.get("stroke") for e in root.iter()}
    assert "#1f77b4" in colours
    assert {e.get("font-size") for e in root.iter() if e.tag.endswith("}text")} == {"10px"}
    assert root.get("stroke-linejoin") == "round"
    assert any(e.get("stroke-dasharray") for e in root.iter())
    assert (root.get("role"), root.get("aria-label")) == ("img", "about label")
    assert root.get("width") is None
    assert root.get("viewBox") == "0 0 288 216"


def test_nothing_is_loaded_or_run(plain: str) -> None:
    tags = {element.tag.rsplit("}")[-1] for element in elements(plain)}
    assert tags <= {"svg", "g", "defs", "path", "use", "text", "clipPath", "rect", "pattern"}
    assert "http" not in plain.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_hostile_texts_stay_text() -> None:
    svg = draw("one", HOSTILE)
    texts = ["".join(e.itertext()) for e in elements(svg) if e.tag.endswith("}text")]
    assert texts.count(HOSTILE) == 2
    assert ET.fromstring(svg).get("aria-label") == f"about {HOSTILE}"
    assert "<script" not in svg


def test_titles_above_narrow_axes_stay_inside() -> None:
    """Long labels at the left leave little width."""
    with page_style():
        figure = new_figure(4.0, 3.0)
        ax = figure.add_subplot()
        ax.barh(["a label that needs half of the figure"], [1.0])
        ax.set_title("a title that needs more than the axes")
        inline_svg(figure, "one", "bars")
        box = ax.title.get_window_extent()
    assert box.x0 >= figure.bbox.x0 - 1.0
    assert box.x1 <= figure.bbox.x1 + 1.0
