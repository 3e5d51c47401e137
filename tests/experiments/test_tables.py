"""Cells of tables from made-up records, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bowtienet.evaluation.paired import paired_difference
from bowtienet.experiments.paper import Published
from bowtienet.experiments.records import FAILED, MISSING
from bowtienet.experiments.tables import (
    Cell,
    collect,
    compare_runs,
    difference_text,
    embolden,
    label_of,
    mean_of,
    methods_of,
    most_splits,
    notes_of,
    page,
    published_cell,
    score_cell,
    seconds_cell,
    seconds_text,
    sets_of,
    value_of,
)
from tests.experiments.made_up import made_up, splits


def failed(seed: int, note: str = "ValueError: no", **changes: Any) -> Any:
    return made_up(seed=seed, status=FAILED, note=note, **changes)


def missing(seed: int, **changes: Any) -> Any:
    return made_up(seed=seed, status=MISSING, note="needs x", n_train=0, n_test=0, **changes)


def test_collect_sorts_and_keeps_one_experiment() -> None:
    records = [made_up(seed=2), made_up(seed=0), made_up(experiment="toy"), made_up(members=4)]
    results = collect(records, "uci")
    assert [record.seed for record in results["slump", "single", 1]] == [0, 2]
    assert set(results) == {("slump", "single", 1), ("slump", "single", 4)}


def test_order_of_methods_and_sets() -> None:
    names = [("yacht", "nuts"), ("slump", "unheard"), ("another", "single")]
    results = collect([made_up(dataset, method) for dataset, method in names], "uci")
    assert methods_of(results) == ["single", "nuts", "unheard"]
    assert sets_of(results, ("slump", "yacht")) == ["slump", "yacht", "another"]
    assert label_of("unheard", 4) == "4 × unheard"


def test_mean_and_deviation_by_hand() -> None:
    cell = score_cell(splits([1.0, 2.0, 4.5]), "rmse", 2, 3)
    assert cell == Cell("2.50 ± 1.80", 2.5, True)  # √((1.5² + 0.5² + 2²) / 2) = 1.803


def test_one_split_has_no_deviation() -> None:
    assert score_cell(splits([1.25]), "rmse", 1, 1).text == "1.2"


def test_fewer_splits_are_told() -> None:
    assert score_cell(splits([1.0, 2.0]), "rmse", 1, 5) == Cell(
        "1.5 ± 0.7 (2 of 5 splits)", 1.5, False
    )


def test_failed_and_missing_cells() -> None:
    some = [*splits([1.0, 2.0]), failed(2)]
    assert score_cell(some, "rmse", 2, 3).text == "failed (1 of 3)"
    assert math.isnan(score_cell(some, "rmse", 2, 3).mean)
    assert math.isnan(mean_of(some, "rmse"))
    assert score_cell([missing(0), missing(1)], "rmse", 2, 3).text == "missing"
    assert score_cell([], "rmse", 2, 3).text == "–"
    late = [*splits([1.0, 2.0]), missing(2)]
    assert score_cell(late, "rmse", 1, 3).text == "1.5 ± 0.7 (2 of 3 splits)"


def test_infinite_scores_are_shown_without_a_warning() -> None:
    assert score_cell(splits([1.0, math.inf], "nll"), "nll", 2, 2) == Cell("∞", math.inf)


def test_a_done_record_without_the_score_counts_as_failed() -> None:
    assert score_cell(splits([1.0, math.nan]), "rmse", 2, 2).text == "failed (1 of 2)"


def test_value_of_seconds_and_of_a_failure() -> None:
    record = made_up(seconds=7.0)
    assert value_of(record, "seconds") == 7.0
    assert math.isnan(value_of(failed(0), "rmse"))


def test_seconds() -> None:
    assert seconds_text(3.0) == "3.0"
    assert seconds_text(9.96) == "10"
    assert seconds_text(math.nan) == "–"
    records = [made_up(seed=i, seconds=value) for i, value in enumerate((100.0, 3000.0))]
    assert seconds_cell(records, 2) == Cell("1,550", 1550.0, True)
    assert seconds_cell(records, 3).text == "1,550 (2 of 3 splits)"
    assert seconds_cell([failed(0)], 1).text == "failed (1 of 1)"


def test_most_splits_counts_what_was_run() -> None:
    records = [*splits([1.0, 2.0]), failed(2), missing(3), *splits([1.0], method="nuts")]
    assert most_splits(collect(records, "uci"), "slump") == 3
    assert most_splits({}, "slump") == 0


def test_best_is_bold_and_failures_and_parts_are_not() -> None:
    cells = [Cell("a", 1.0), Cell("b", math.nan), Cell("c", 0.5, False), Cell("d", math.inf)]
    assert embolden(cells, 2) == ["**a**", "b", "c", "d"]
    assert embolden([Cell("b", math.nan)], 2) == ["b"]


def test_nearest_coverages_share_the_bold() -> None:
    cells = [Cell("a", 0.94), Cell("b", 0.96), Cell("c", 0.93), Cell("d", 1.0)]
    bold = embolden(cells, 2, lambda coverage: abs(coverage - 0.95))
    assert bold == ["**a**", "**b**", "c", "d"]


def test_published() -> None:
    assert published_cell(Published(7.0, 1.24)) == Cell("7.00 ± 1.24", 7.0)
    assert published_cell(None).text == "–"


def test_paired_by_seed_whatever_the_order() -> None:
    first = splits([1.0, 2.0, 4.0])
    second = [made_up(seed=seed, rmse=value) for seed, value in ((3, 0.0), (2, 1.0), (0, 3.0))]
    found = compare_runs(first, second, "rmse")
    expected = paired_difference([1.0, 4.0], [3.0, 1.0], n_train=90, n_test=10)
    assert found == expected


def test_paired_counts_failures_and_leaves_out_what_is_missing() -> None:
    first = [*splits([1.0, 2.0]), failed(2), missing(3)]
    found = compare_runs(first, splits([0.0, 0.0, 0.0, 0.0]), "rmse")
    assert found is not None
    assert (found.n_splits, found.first_failed, found.second_failed) == (2, 1, 0)
    assert compare_runs([missing(0)], splits([1.0]), "rmse") is None
    assert compare_runs([], [], "rmse") is None


@pytest.mark.parametrize(
    ("first", "splits_", "text"),
    [
        ([1.0, 2.0, 3.0], 3, "+2.00 [−0.87, +4.87]"),
        ([-2.0, -2.0, -2.1], 3, "**−2.03 [−2.20, −1.87]**"),
        ([1.0, 1.0], 3, "**+1.00 [+1.00, +1.00] (2 of 3 splits)**"),
        ([-0.001], 1, "0.00"),
        ([math.nan], 1, "failed"),
        ([math.inf, 1.0], 2, "∞"),
    ],
)
def test_difference_texts(first: list[float], splits_: int, text: str) -> None:
    found = paired_difference(first, [0.0] * len(first), n_train=90, n_test=10)
    assert difference_text(found, 2, splits_) == text


def test_no_difference() -> None:
    assert difference_text(None, 2, 3) == "–"


def test_notes_say_who_where_and_why() -> None:
    records = [
        failed(2, "LinAlgError: not\n positive."),
        failed(5, "LinAlgError: not\n positive."),
        failed(1, "LinAlgError: not\n positive.", dataset="yacht"),
        missing(0, method="nuts"),
        made_up(method="gpr", note="of 2,000 rows"),
        made_up(method="gpr", dataset="yacht", note="of 2,000 rows"),
    ]
    assert notes_of(collect(records, "uci")).splitlines() == [
        "- Bow tie failed (slump, splits 2, 5; yacht, split 1): LinAlgError: not positive.",
        "- Gaussian process (slump, yacht): of 2,000 rows.",
        "- NUTS is missing: needs x.",
    ]


def test_a_reason_that_names_the_method_is_not_said_twice() -> None:
    record = made_up(method="nuts", status=MISSING, note="NUTS needs numpyro: install it.")
    assert notes_of(collect([record], "uci")) == "- NUTS needs numpyro: install it."


def test_many_notes_are_counted() -> None:
    lines = notes_of(collect([failed(i, f"reason {i}") for i in range(7)], "uci")).splitlines()
    assert len(lines) == 4
    assert "4 more of such notes are in results.jsonl" in lines[-1]


def test_page_leaves_out_empty_parts() -> None:
    assert page("Title", "one", "", "two") == "# Title\n\none\n\ntwo\n"
