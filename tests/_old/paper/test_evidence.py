"""The page of results says what its records say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks._old.outcomes.records import append
from benchmarks._old.outcomes.tables import published_classes
from benchmarks._old.paper import evidence
from benchmarks._old.paper.records import load, to_line
from tests._old.paper.made_up import made_up, table

PAGE = evidence.PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return evidence.tables(*load(evidence.RESULTS), evidence.gathered_classes([]))


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


def test_origins_say_day_commit_and_machine(texts: dict[str, str]) -> None:
    machine = {"cores": 2, "processor": "some"}
    runs = [
        {"id": name, "started": f"{day}T10:00", "commit": "0123456789", "machine": machine}
        for name, day in (("made-up", "2026-01-01"), ("later", "2026-02-02"))
    ]
    records = [made_up(), made_up(seed=1), made_up(seed=2, run="later"), made_up(status="failed")]
    first, second = table(evidence.origins(runs, records))["Bow tie"][0].split("; ")
    assert first == "2026-01-01, commit 01234567, 2 cores of some: 2"
    assert second == "2026-02-02, commit 01234567, 2 cores of some: 1"


def test_classes_of_the_first_folder_that_has_some(tmp_path: Path) -> None:
    scores = dict.fromkeys(("log_loss", "brier_score", "calibration_error", "accuracy"), 0.25)
    case = {"task": "classification", "set": "iris", "method": "bowtienet", "scores": scores}
    for name, seed in (("one", 500), ("two", 501)):
        (tmp_path / name).mkdir()
        record = {**case, "seed": seed, "n_train": 75, "n_test": 75, "seconds": 1.0}
        append(tmp_path / name / "classes.jsonl", record)
    found = evidence.gathered_classes([tmp_path, tmp_path / "two", tmp_path / "one"])
    assert [record["seed"] for record in found] == [501]
    assert "| iris | 75 / 75 | **0.2500** |" in published_classes(found)


def test_a_figure_that_nobody_drew_is_asked_for(tmp_path: Path) -> None:
    assert evidence.find_figures("../figures/evidence_uci_ranks.png", [tmp_path]) == {}
    with pytest.raises(SystemExit, match="nothing"):
        evidence.find_figures("../figures/evidence_nothing.png", [tmp_path])
