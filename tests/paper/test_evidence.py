"""The page of results says what its records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.paper import evidence
from benchmarks.paper.records import load, to_line
from tests.paper.made_up import made_up

PAGE = evidence.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return evidence.tables(load(evidence.RESULTS)[1])


@pytest.mark.parametrize("path", evidence.PAGES, ids=lambda path: path.name)
def test_tables_follow_from_the_records(path: Path, texts: dict[str, str]) -> None:
    page = path.read_text(encoding="utf-8")
    wanted = [name for _, name, _ in evidence.MARKED.findall(page)]
    assert wanted
    assert set(wanted) <= set(texts)
    assert evidence.filled(page, texts) == page


def test_a_changed_number_would_be_seen(texts: dict[str, str]) -> None:
    changed = re.sub(r"(\| RMSE \| slump \| )\d", r"\g<1>9", PAGE, count=1)
    assert changed != PAGE
    assert evidence.filled(changed, texts) == PAGE


def test_every_record_can_be_traced() -> None:
    runs, records = load(evidence.RESULTS)
    assert {record["run"] for record in records} == {run["id"] for run in runs}
    assert all(run["versions"]["bowtienet"] and run["commit"] for run in runs)
    assert all(record["seconds"] > 0.0 for record in records if record["status"] == "done")


def test_the_kept_results_are_written_as_they_were() -> None:
    runs, records = load(evidence.RESULTS)
    written = "".join(map(to_line, runs + records))
    assert written == evidence.RESULTS.read_text(encoding="utf-8")


def test_figures_are_there_and_results_name_no_place_on_a_machine() -> None:
    shown = evidence.SHOWN.findall(PAGE)
    assert shown
    assert all((evidence.FIGURES / f"evidence_{name}.png").is_file() for name in shown)
    text = evidence.RESULTS.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|Users)/", text)


def test_the_first_folder_with_a_finished_case_counts(tmp_path: Path) -> None:
    failed, done = made_up(status="failed", note="no"), made_up()
    for name, records in {"one": [failed], "two": [done, made_up(seed=1)]}.items():
        (tmp_path / name).mkdir()
        lines = [{"kind": "run", "id": "made-up", "started": name}, *records]
        (tmp_path / name / "results.jsonl").write_text("".join(map(to_line, lines)))
    runs, records = evidence.gathered([tmp_path / "one", tmp_path / "two"])
    assert [run["id"] for run in runs] == ["made-up"]
    assert [record["status"] for record in records] == ["done", "done"]
