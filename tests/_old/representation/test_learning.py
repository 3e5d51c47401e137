"""Columns learnt block by block are those of the whole table."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bowtienet._old.representation import facts as module
from bowtienet._old.representation.facts import TableFacts, gather_facts, merge_facts
from bowtienet._old.representation.learning import decide
from tests._old.representation.tables import as_table, encoded, learn, learn_in_parts
from tests._old.representation.test_columns import (
    FILE,
    OBJECTS,
    READERS,
    TABLES,
    random_columns,
)

NAN = float("nan")


def rows_of(table: Any, part: slice) -> Any:
    return table[part] if isinstance(table, np.ndarray) else nw.from_native(table)[part].to_native()


def in_parts(table: Any, cuts: Sequence[int]) -> list[Any]:
    bounds = [0, *sorted(cuts), len(table)]
    return [rows_of(table, slice(*ends)) for ends in pairwise(bounds)]


# Blocks against the whole


@pytest.mark.parametrize("cuts", [[1], [2], [0, 3], [1, 2, 3]])
@pytest.mark.parametrize("kind", [*TABLES, "objects"])
def test_blocks_give_the_columns_of_the_whole(kind: str, cuts: list[int]) -> None:
    table = OBJECTS if kind == "objects" else TABLES[kind]
    assert learn_in_parts(in_parts(table, cuts)) == learn(table)


@pytest.mark.parametrize("reader", READERS)
def test_parts_of_a_file_that_are_read_one_by_one(reader: str) -> None:
    """Each line has other types; only spellings that no part shows as text are lost."""
    head, *lines = FILE.splitlines()
    parts = [READERS[reader](f"{head}\n{line}\n") for line in lines]
    whole = learn(READERS[reader](FILE))
    assert learn_in_parts(parts)[:-1] == whole[:-1]


@settings(deadline=None, max_examples=60)
@given(cells=random_columns(), data=st.data())
def test_random_tables_in_random_parts(cells: dict[str, list[Any]], data: st.DataObject) -> None:
    n_rows = len(cells["c0"])
    cuts = data.draw(st.lists(st.integers(0, n_rows), max_size=3))
    make = data.draw(st.sampled_from([pd.DataFrame, pl.DataFrame, pa.table]))
    try:
        expected = learn(make(cells))
    except ValueError:
        with pytest.raises(ValueError, match="nothing is left"):
            learn_in_parts(in_parts(make(cells), cuts))
        return
    assert learn_in_parts(in_parts(make(cells), cuts)) == expected


def test_many_blocks_are_folded() -> None:
    matrix = np.random.default_rng(1).normal(size=(400, 2))
    matrix[7, 1] = NAN
    assert learn_in_parts(in_parts(matrix, range(4, 400, 4))) == learn(matrix)


def test_the_limit_of_categories_counts_all_blocks() -> None:
    parts = [pd.DataFrame({"x": [f"{k}{i % 6}" for i in range(12)]}) for k in "ab"]
    assert len(learn_in_parts(parts, 12)[0].categories) == 12
    with pytest.raises(ValueError, match="'x' holds 12 different texts"):
        learn_in_parts(parts, 11)


def test_identifiers_of_several_blocks() -> None:
    ids = [f"id {index}" for index in range(20)]
    table = pd.DataFrame({"id": ids, "n": range(20)})
    assert not learn_in_parts(in_parts(table, [5, 12]))[0].has_value
    table.loc[19, "id"] = ids[0]  # in the first block too
    assert len(learn_in_parts(in_parts(table, [5, 12]))[0].categories) == 19


# Kinds that differ between blocks


def test_numbers_in_one_block_and_texts_in_another_are_texts() -> None:
    numbers, texts = pd.DataFrame({"x": [7.0, 12.0, NAN]}), pd.DataFrame({"x": ["07", "x7", "07"]})
    for parts in ([numbers, texts], [texts, numbers]):
        columns = learn_in_parts(parts)
        assert columns[0].categories == ("07", "12", "x7")
        assert columns[0].n_missing == 1
        assert encoded(columns, numbers)["x=07"] == [1, 0, 0]


def test_written_numbers_beside_numbers() -> None:
    parts = [pd.DataFrame({"x": ["1,234", "2,345.5", None]}), pd.DataFrame({"x": [999, 5]})]
    columns = learn_in_parts(parts)
    assert (columns[0].number_format, columns[0].typical) == ("1,234.5", 1116.5)
    assert encoded(columns, parts[1])["x"] == [999, 5]


def test_truth_values_and_dates_of_several_types() -> None:
    truth = [pd.DataFrame({"x": [True, False]}), pd.DataFrame({"x": ["true", None]})]
    assert [column.kind for column in learn_in_parts(truth)] == ["number"]
    day = datetime.date(1970, 1, 5)
    dates = [pl.DataFrame({"x": [day, None]}), pl.DataFrame({"x": ["1970-01-02", "1970-01-03"]})]
    [column] = learn_in_parts(dates)
    assert (column.kind, column.typical, column.n_missing) == ("date", 2.0, 1)


@pytest.mark.parametrize(
    "values", [[[1, 2], [datetime.date(2020, 1, 1)]], [[datetime.date(2020, 1, 1)], ["soon"]]]
)
def test_kinds_that_cannot_be_one(values: list[list[Any]]) -> None:
    for order in (1, -1):
        with pytest.raises(ValueError, match="column 'x' holds"):
            learn_in_parts([pl.DataFrame({"x": part}) for part in values[::order]])


# Weights


def every_library(cells: dict[str, list[Any]]) -> list[Any]:
    objects = np.array(list(cells.values()), dtype=object).T
    return [pd.DataFrame(cells), pl.DataFrame(cells), pa.table(cells), objects]


CELLS = {
    "n": [1.0, 2.0, None, 7.0, 9.0],
    "t": ["a", None, "b", "c", "a"],
    "p": ["1,5", "2,5", None, "9,5", "7,5"],
    "c": [3, 3, 3, 4, 3],
}


@pytest.mark.parametrize("library", range(4))
def test_rows_of_weight_zero_are_absent(library: int) -> None:
    left = {name: [cell for i, cell in enumerate(cells) if i != 3] for name, cells in CELLS.items()}
    expected = learn(every_library(left)[library])
    assert learn(every_library(CELLS)[library], weights=[1, 1, 1, 0, 1]) == expected
    assert expected[-1].note is not None


@pytest.mark.parametrize("library", range(4))
def test_a_weight_is_as_good_as_a_repetition(library: int) -> None:
    times = [1, 4, 2, 1, 2]
    repeated = {name: list(np.repeat(np.array(x, object), times)) for name, x in CELLS.items()}
    expected = learn(every_library(repeated)[library])
    found = learn(every_library(CELLS)[library], weights=times)
    assert [column.typical for column in found] == [column.typical for column in expected]
    assert [column.categories for column in found] == [column.categories for column in expected]


@settings(deadline=None)
@given(
    values=st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
    unit=st.floats(1e-300, 1e99),
)
@example(values=[(0, 1), (0, 1), (0, 1), (-1, 3)], unit=1.0)
def test_weighted_medians_in_any_unit(values: list[tuple[int, int]], unit: float) -> None:
    numbers = np.array([[float(number), index] for index, (number, _) in enumerate(values)])
    times = [count for _, count in values]
    columns = learn(numbers, weights=np.array(times) * unit)
    assert columns[0].typical == np.median(np.repeat(numbers[:, 0], times))


# Bounds


def gathered(table: Any, cuts: Sequence[int]) -> TableFacts:
    return merge_facts(*(gather_facts(as_table(part)) for part in in_parts(table, cuts)))


def test_more_texts_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 50)
    texts = [f"t{index % 400}" for index in range(1_000)]
    table = pd.DataFrame({"x": texts})
    [whole] = gathered(table, []).texts
    assert whole is not None
    assert [whole] == list(gathered(table, [100, 450, 451]).texts)
    assert len(whole.counts) == 50
    assert {text: texts.count(text) for text in whole.counts} == whole.counts
    with pytest.raises(ValueError, match=r"'x'.*max_categories"):
        decide(gathered(table, []), 1_000)
    ids = pd.DataFrame({"x": [f"id {index}" for index in range(1_000)], "n": range(1_000)})
    assert not decide(gathered(ids, [300]), 100)[0].has_value
    # A text that comes again in another block is found, if it is one of those that are kept.
    again = pd.concat([ids, ids[:200]], ignore_index=True)
    with pytest.raises(ValueError, match=r"'x'.*max_categories"):
        decide(gathered(again, [1_000]), 100)


def test_the_median_of_more_rows_than_are_kept() -> None:
    """Error bars are those of medians of 50,000 and 25,000 normal numbers; five are allowed."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200_000, 2))
    matrix[rng.random(200_000) < 0.5, 1] = NAN
    for cuts in ([], [70_000, 150_000]):
        found = gathered(matrix, cuts)
        assert found.sample.rows.inputs.shape == (50_000, 2)
        for column, bar in zip(decide(found, 1), (0.0056, 0.0079), strict=True):
            assert column.typical is not None
            assert abs(column.typical) < 5 * bar
    np.testing.assert_array_equal(found.low, np.nanmin(matrix, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(matrix, axis=0))


def test_the_sample_of_a_wide_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_NUMBERS", 6_000)
    assert gather_facts(as_table(np.ones((2_000, 4)))).sample.rows.inputs.shape == (1_500, 4)


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_matrices_of_other_libraries(library: str) -> None:
    xp = pytest.importorskip(library)
    values = np.array([[1, NAN, 2], [3, 4, 2], [8, 5, 2]], dtype=np.float32)
    columns = learn(xp.asarray(values), weights=[1, 1, 0])
    assert columns == learn(values, weights=[1, 1, 0])
