"""The page of results says what its records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import evidence
from bowtienet.experiments.records import Record, load

PAGE = evidence.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return load(evidence.RESULTS)[1]


@pytest.mark.parametrize("path", evidence.PAGES, ids=lambda path: path.name)
def test_tables_follow_from_the_records(path: Path, records: list[Record]) -> None:
    page, texts = path.read_text(encoding="utf-8"), evidence.tables(records)
    wanted = [name for _, name, _ in evidence.MARKED.findall(page)]
    assert wanted
    assert set(wanted) <= set(texts)
    assert evidence.filled(page, texts) == page


def test_a_changed_number_would_be_seen(records: list[Record]) -> None:
    changed = re.sub(r"(\| RMSE \| slump \| )\d", r"\g<1>9", PAGE, count=1)
    assert changed != PAGE
    assert evidence.filled(changed, evidence.tables(records)) == PAGE


def test_every_record_can_be_traced() -> None:
    runs, records = load(evidence.RESULTS)
    known = {run.id for run in runs}
    assert {record.run for record in records} == known
    for run in runs:
        assert run.versions["bowtienet"]
        assert run.commit
    assert all(record.seconds > 0.0 for record in records if record.status == "done")


def test_figures_are_there() -> None:
    shown = evidence.SHOWN.findall(PAGE)
    assert shown
    for name in shown:
        assert (evidence.FIGURES / f"evidence_{name}.png").is_file()


def test_results_name_no_place_on_a_machine() -> None:
    text = evidence.RESULTS.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


def test_a_table_of_fits_is_copied_from_the_folder_that_has_it(tmp_path: Path) -> None:
    page = "a\n<!-- copied some -->\nold\n<!-- end -->\nb\n"
    assert evidence.with_copies(page, []) == page
    (tmp_path / "one" / "tables").mkdir(parents=True)
    (tmp_path / "two" / "tables").mkdir(parents=True)
    folders = [tmp_path / "one", tmp_path / "two"]
    assert evidence.with_copies(page, folders) == page
    (tmp_path / "two" / "tables" / "some.md").write_text("# Title\n\nnew\n")
    expected = "a\n<!-- copied some -->\n\nnew\n\n<!-- end -->\nb\n"
    assert evidence.with_copies(page, folders) == expected
