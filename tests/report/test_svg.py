"""SVG: texts are escaped, ticks are round and inside, labels tell neighbours apart."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bowtienet.report import svg
from bowtienet.report.svg import Frame, date_ticks, element, shortened, tick_labels, ticks


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.0), (-3.2, 7.7), (1e-9, 3e-9), (1e12, 1e12 + 5.0), (-1e6, 1e6), (0.0, 1e-300)],
)
def test_ticks_are_even_and_inside(low, high):
    found = ticks(low, high)
    assert 1 < len(found) <= 8
    slack = 1e-6 * (high - low)
    assert low - slack <= min(found)
    assert max(found) <= high + slack
    np.testing.assert_allclose(np.diff(found), found[1] - found[0], rtol=1e-3)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.2, 7.7), (0.0, 0.03), (97.0, 101.0), (0, 2e5)])
def test_labels_differ_and_say_their_number(ends):
    values = ticks(*map(float, ends))
    labels = tick_labels(values)
    assert len(set(labels)) == len(values)
    read = [float(text.replace("−", "-").replace(",", "")) for text in labels]
    np.testing.assert_allclose(read, values, atol=1e-9)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("1990-01-05", "2022-10-01", ["2000", "2010", "2020"]),
        ("2024-01-15", "2024-12-28", ["2024-04", "2024-07", "2024-10"]),
        ("2024-02-01", "2024-02-02", ["2024-02-01", "2024-02-02"]),
    ],
)
def test_ticks_of_dates(begin, end, expected):
    days = [float(np.datetime64(day).astype(int)) for day in (begin, end)]
    found = date_ticks(*days)
    assert [text for _, text in found] == expected
    assert all(days[0] <= day <= days[1] for day, _ in found)
    assert [str(np.datetime64(int(day), "D"))[: len(text)] for day, text in found] == expected


def test_a_single_day_has_a_tick():
    assert date_ticks(0.0, 0.0) == [(0.0, "1970-01-01")]


def test_texts_and_attributes_are_escaped():
    hostile = "\"><script>'&"
    found = svg.mark("rect", hostile, class_=hostile, x=1.0)
    parsed = ET.fromstring(found)
    assert parsed.attrib["class"] == hostile
    assert parsed[0].text == hostile
    assert [child.tag for child in parsed] == ["title"]
    assert element("g", element("text", "<")) == "<g><text>&lt;</text></g>"


def test_a_frame_maps_its_corners():
    frame = Frame(x=(2.0, 4.0), y=(-1.0, 1.0))
    assert (frame.across(2.0), frame.across(4.0)) == (frame.left, frame.right)
    assert (frame.up(-1.0), frame.up(1.0)) == (frame.bottom, frame.top)
    assert frame.line([2.0, 4.0], [-1.0, 1.0]) == (
        f"M{frame.left:g} {frame.bottom:g}L{frame.right:g} {frame.top:g}"
    )


def test_labels_are_cut_to_their_room():
    assert shortened("short", 100.0) == "short"
    assert len(shortened("x" * 200, 100.0)) < 20
    assert len(shortened("字" * 200, 100.0)) < len(shortened("x" * 200, 100.0))
    first, second = ("a common start " * 9 + end for end in ("one", "two"))
    assert shortened(first, 100.0).startswith("a com")
    assert shortened(first, 100.0).endswith("one")
    assert shortened(second, 100.0) != shortened(first, 100.0)
