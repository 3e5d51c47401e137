"""Cells of tables from made-up records, by hand."""

from __future__ import annotations

import math

import pytest

from benchmarks._old.paper import tables
from benchmarks._old.paper.comparison import paired_difference
from benchmarks._old.paper.methods import METHODS
from benchmarks._old.paper.records import FAILED, MISSING, to_frame
from benchmarks._old.paper.tables import COUNTERPARTS, PUBLISHED, Cell, Results, score_cell
from tests._old.paper.made_up import made_up, splits


def failed(seed, note="ValueError: no", **changes):
    return made_up(seed=seed, status=FAILED, note=note, **changes)


def missing(seed, **changes):
    return made_up(seed=seed, status=MISSING, note="needs x", n_train=0, n_test=0, **changes)


def cell(records, score="rmse", digits=2, n_splits=3):
    return score_cell(to_frame(records), score, digits, n_splits)


def test_results_sort_and_count():
    records = [made_up(seed=2), made_up(seed=0), made_up(members=4), missing(5), failed(7)]
    results = Results(to_frame([*records, made_up("yacht", "nuts"), made_up("yacht", "lasso")]))
    assert list(results.runs("slump", "single")["seed"]) == [0, 2, 5, 7]
    assert len(results.runs("slump", "single", 4)) == 1
    assert results.runs("boston", "single").empty
    assert results.methods == ["single", "lasso", "nuts"]
    assert (results.splits("slump"), results.splits("boston")) == (3, 0)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (splits([1.0, 2.0, 4.5]), Cell("2.50 ± 1.80", 2.5, True)),  # √((1.5² + 0.5² + 2²) / 2)
        (splits([1.0, 2.0]), Cell("1.50 ± 0.71 (2 of 3 splits)", 1.5, False)),
        ([*splits([1.0, 2.0]), missing(2)], Cell("1.50 ± 0.71 (2 of 3 splits)", 1.5, False)),
        (splits([1.25]), Cell("1.25 (1 of 3 splits)", 1.25, False)),
        (splits([1.0, math.inf]), Cell("∞", math.inf)),
    ],
)
def test_means_and_deviations(records, expected):
    assert cell(records) == expected


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([*splits([1.0, 2.0]), failed(2)], "failed (1 of 3)"),
        (splits([1.0, math.nan]), "failed (1 of 2)"),
        ([missing(0), missing(1)], "missing"),
        ([], "–"),
    ],
)
def test_what_has_no_mean(records, text):
    found = cell(records)
    assert found.text == text
    assert math.isnan(found.mean)


def test_paired_by_seed_whatever_the_order():
    first = to_frame(splits([1.0, 2.0, 4.0]))
    second = [made_up(seed=seed, rmse=value) for seed, value in ((3, 0.0), (2, 1.0), (0, 3.0))]
    expected = paired_difference([1.0, 4.0], [3.0, 1.0], n_train=90, n_test=10)
    assert tables.compare_runs(first, to_frame(second), "rmse") == expected


def test_paired_counts_failures_and_leaves_out_what_is_missing():
    frame = to_frame([*splits([1.0, 2.0]), failed(2, n_train=0, n_test=0), missing(3)])
    found = tables.compare_runs(frame, to_frame(splits([0.0] * 4)), "rmse")
    assert found[3:] == (2, 1, 0)
    assert tables.compare_runs(frame.iloc[:0], frame, "rmse") is None


def test_the_papers_numbers():
    """Sums of its tables, so that no digit can change unseen."""
    sums = PUBLISHED.groupby("score")[["mean", "deviation"]].sum().round(2)
    assert sums.loc["rmse"].tolist() == [579.82, 86.75]
    assert sums.loc["gaussian_nll"].tolist() == [170.29, 18.96]
    assert sums.loc["gaussian_coverage"].tolist() == [47.44, 2.1]
    assert len(PUBLISHED) == 9 * 3 * 5 + 7 * 3
    assert tables.published_cell("VBNN", "rmse", "yacht") == Cell("2.47 ± 1.10", 2.47)
    assert tables.published_cell("LassoCV", "rmse", "yacht").text == "–"
    assert set(COUNTERPARTS) <= set(METHODS)
    assert set(COUNTERPARTS.values()) == set(PUBLISHED.index.get_level_values("method"))
