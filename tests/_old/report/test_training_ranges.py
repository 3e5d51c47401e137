"""Rows that differ from all of training are flagged, with the reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bowtienet._old import BowTieRegressor
from bowtienet._old.report import collect
from bowtienet._old.report.content import read_contents
from bowtienet._old.report.page import render
from bowtienet._old.report.sampled_rows import read_rows
from bowtienet._old.report.training_ranges import departures, training_ranges
from tests._old.plotting.fits import quick
from tests._old.report.pages import Page


def make_rooms(n_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(500)
    rooms = 1.0 + np.arange(n_rows) % 9
    city = np.where(np.arange(n_rows) % 2, "Oslo", "Rome")
    sold = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(n_rows), unit="D")
    price = rooms + rng.normal(0.0, 0.3, size=n_rows)
    return pd.DataFrame({"rooms": rooms, "city": city, "sold": sold, "price": price})


@pytest.fixture(scope="module")
def table():
    return make_rooms(90)


@pytest.fixture(scope="module")
def new(table):
    """Four rows of training, each with something new but the last."""
    rows = table.iloc[[3, 4, 5, 6]].copy().reset_index(drop=True)
    rows.loc[0, "rooms"] = 14.0
    rows.loc[1, ["city", "sold"]] = ["Lima", pd.Timestamp("2019-01-01")]
    rows.loc[2, "rooms"] = np.nan
    return rows


@pytest.fixture(scope="module")
def model(table):
    """Keeps the ranges of its columns."""
    return BowTieRegressor((3,), effort="fast", random_state=500).fit(table, "price")


REASONS = {
    0: ("rooms = 14, training maximum 9",),
    1: ("city = Lima, not in training", "sold = 2019-01-01, training minimum 2020-01-01"),
    2: ("rooms is missing, in training never",),
}


@pytest.mark.filterwarnings("ignore:.*training did not have:UserWarning")
def test_reasons(model, table, new):
    rows = read_rows(model, new, "price", most=10)
    assert model.ensemble_.outside is not None
    found = departures(training_ranges(model, None), read_contents(model, rows), 4)
    assert {one.row: one.reasons for one in found} == REASONS
    # The furthest first: a year before a range of 90 days.
    assert found[0].row == 1
    assert found[0].distance == pytest.approx(365 / 89)
    same = read_rows(model, table, "price", most=1000)
    assert departures(training_ranges(model, None), read_contents(model, same), 90) == ()


@pytest.mark.filterwarnings("ignore:.*training did not have:UserWarning")
def test_a_model_without_ranges_has_those_of_the_training_rows(table, new):
    plain = quick(n_estimators=1, tol=1.0).fit(table, "price")
    assert plain.ensemble_.outside is None
    rows = read_rows(plain, new, "price", most=10)
    train = read_rows(plain, table, "price", most=1000)
    found = departures(training_ranges(plain, train), read_contents(plain, rows), 4)
    assert {one.row: one.reasons for one in found} == REASONS
    assert training_ranges(plain, None) is None
    # Of some of the training rows nobody knows the range.
    assert training_ranges(plain, read_rows(plain, table, "price", most=50)) is None


def test_the_page_has_them(model, new):
    text = Page(render(collect(model, new, "price", max_features=1))).by_id("main").text
    assert "3 rows of 4 have a value that training did not have" in text
    for reasons in REASONS.values():
        for words in reasons:
            assert words in text
