"""Ticks and titles for people."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from bowtienet._old.plotting._axes import add_figure_title, add_title, group_thousands, whole_numbers


def new_axes(width: float = 5.0) -> Any:
    return Figure(figsize=(width, 4.0)).add_subplot()


@pytest.mark.parametrize(
    ("limits", "value", "text"),
    [
        ((1891.0, 2021.0), 1900.0, "1900"),
        ((0.0, 50_000.0), 20_000.0, "20,000"),
        ((-50_000.0, 0.0), -20_000.0, "−20,000"),
        ((0.0, 3e8), 2.5e8, "250 million"),
        ((0.0, 3e9), 5e8, "0.5 billion"),
        ((0.0, 5e13), 0.0, "0"),
    ],
)
def test_large_numbers_have_commas_and_years_have_none(
    limits: tuple[float, float], value: float, text: str
) -> None:
    ax = new_axes()
    ax.set_xlim(*limits)
    group_thousands(ax.xaxis)
    ax.set_xticks([value])
    ax.figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_xticklabels()] == [text]


def test_smaller_numbers_have_commas_where_they_are_no_years() -> None:
    ax = new_axes()
    ax.set_xlim(-4000.0, 0.0)
    group_thousands(ax.xaxis, least=1e3)
    ax.set_xticks([-2000.0])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["−2,000"]


def test_whole_numbers() -> None:
    ax = new_axes()
    ax.set_xlim(1.0, 3.0)
    whole_numbers(ax.xaxis)
    assert set(ax.get_xticks()) == {1.0, 2.0, 3.0}


def test_titles_fit_and_leave_those_of_users_alone() -> None:
    words = "A title that is much too long for the few inches that axes have here"
    ax = new_axes(3.0)
    add_title(ax, words)
    assert "\n" in ax.get_title()
    assert ax.get_title().replace("\n", " ") == words
    add_title(ax, "another")
    assert ax.get_title().startswith("A title")
    add_figure_title(ax.figure, "one")
    add_figure_title(ax.figure, "two")
    assert ax.figure.get_suptitle() == "one"
