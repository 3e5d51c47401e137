"""Results survive the file: every field, several writers, and a writer that was killed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest

import bowtienet
from bowtienet.experiments import records as records_module
from bowtienet.experiments import tables
from bowtienet.experiments.provenance import describe_run, find_commit
from bowtienet.experiments.records import Journal, Record, Run, build_key, count, load, plain

RUN = Run(id="one", started="now", command="try", commit=None, versions={}, machine={"cores": 2})
DONE = Record(
    experiment="toy",
    dataset="toy",
    method="lasso",
    seed=3,
    hidden=(20, 10),
    members=2,
    settings={"prior": "gaussian", "rates": [0.1, 0.2]},
    status="done",
    scores={"rmse": 1.25, "nll": math.inf},
    curve=(0.1, 0.75),
    seconds=1.5,
    wall_seconds=2.5,
    predict_seconds=0.25,
    n_train=90,
    n_test=10,
    note="größer als ½",
)
FAILED = replace(
    DONE,
    seed=4,
    status="failed",
    scores={},
    curve=(),
    seconds=math.nan,
    wall_seconds=math.nan,
    predict_seconds=math.nan,
    note="ValueError: no\nline",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


def same(ours: Record, theirs: Record) -> bool:
    return all(
        np.array_equal(getattr(ours, field.name), getattr(theirs, field.name), equal_nan=True)
        if isinstance(getattr(ours, field.name), float)
        else getattr(ours, field.name) == getattr(theirs, field.name)
        for field in fields(Record)
    )


def test_a_record_comes_back_as_it_was(path):
    scores = {"rmse": 1.25, "nll": math.inf, "gain": -math.inf}
    journal = Journal(path, RUN)
    journal.append(FAILED)
    journal.append(replace(DONE, scores=scores))
    runs, found = load(path)
    assert runs == [RUN]
    assert same(found[0], replace(FAILED, run="one"))
    assert same(found[1], replace(DONE, scores=scores, run="one"))
    journal.append(replace(DONE, scores={"nll": math.nan}))
    assert math.isnan(load(path)[1][1].scores["nll"])


def test_a_table_of_loaded_records_is_that_of_the_first_run(path):
    journal = Journal(path, RUN)
    first = [journal.append(replace(DONE, seed=seed)) for seed in (0, 1)]
    cells = [tables.score_cell(records, "nll", 2, 2).text for records in (first, load(path)[1])]
    assert cells[0] == cells[1]
    assert "failed" not in cells[0]


def test_every_line_is_strict_json_and_the_run_is_first(path):
    journal = Journal(path, RUN)
    for record in (DONE, FAILED):
        journal.append(record)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["run", "record", "record"]
    assert lines[1]["scores"] == {"rmse": 1.25, "nll": "inf"}
    assert lines[2]["seconds"] is None


def test_nothing_is_written_before_there_is_a_record(path):
    Journal(path, RUN)
    assert not path.exists()
    assert load(path) == ([], [])


def test_the_last_record_of_a_case_counts_but_done_stays_done(path):
    journal = Journal(path, RUN)
    missing = replace(FAILED, seed=3, status="missing", note="no library")
    journal.append(missing)
    journal.append(replace(missing, status="failed", note="a crash"))
    assert [record.note for record in load(path)[1]] == ["a crash"]
    journal.append(DONE)
    journal.append(missing)
    [found] = load(path)[1]
    assert found.status == "done"
    assert [record.status for record in journal.records.values()] == ["done"]
    journal.append(replace(DONE, note="again"))
    assert load(path)[1][0].note == "again"


def test_a_second_run_has_a_line_of_its_own(path):
    Journal(path, RUN).append(DONE)
    Journal(path, replace(RUN, id="two")).append(FAILED)
    runs, found = load(path)
    assert [run.id for run in runs] == ["one", "two"]
    assert [record.run for record in found] == ["one", "two"]


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_last_line_that_was_cut_is_dropped_with_a_note(path, cut, monkeypatch):
    monkeypatch.setattr(records_module, "_PATIENCE", 0.0)
    Journal(path, RUN).append(DONE)
    before = path.read_bytes()
    Journal(path, RUN).append(FAILED)
    added = path.read_bytes()[len(before) :]
    kept = max(1, len(added) - cut)
    path.write_bytes(before + added[:kept])
    assert [record.seed for record in load(path)[1]] == [3]
    journal = Journal(path, RUN)
    assert "results.jsonl was cut short" in journal.mended
    assert path.read_bytes() == before
    journal.append(FAILED)
    assert [record.seed for record in load(path)[1]] == [3, 4]
    assert Journal(path, RUN).mended is None


def test_a_line_that_another_process_is_writing_is_left_alone(path, monkeypatch):
    Journal(path, RUN).append(DONE)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    monkeypatch.setattr(records_module.time, "sleep", lambda seconds: path.write_bytes(whole))
    journal = Journal(path, RUN)
    assert journal.mended is None
    assert list(journal.records) == [DONE.key]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "neither a run nor a record"),
        ('{"kind": "other"}', "neither a run nor a record"),
        ('{"kind": "record", "status": "done"}', "it lacks 'seconds'"),
        ('{"kind": "record", "status": "lost"}', "its status is 'lost'"),
        ('{"kind": "run"}', "it lacks 'id'"),
        ("\xff", "Expecting value"),
    ],
)
def test_a_broken_line_in_the_middle_is_one_clear_error(path, line, reason):
    Journal(path, RUN).append(DONE)
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{line}\n{second}\n")
    with pytest.raises(ValueError, match=rf"line 2 of .*results\.jsonl cannot be read.*{reason}"):
        load(path)


def test_a_whole_last_line_of_another_kind_is_an_error_and_not_dropped(path):
    path.write_text('{"kind": "other"}\n')
    with pytest.raises(ValueError, match="line 1 of"):
        Journal(path, RUN)
    assert path.read_text() == '{"kind": "other"}\n'


def test_lines_of_several_processes_stay_whole(path):
    code = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from tests.experiments.test_records import DONE, RUN; "
        "from bowtienet.experiments.records import Journal\n"
        "journal = Journal(Path(sys.argv[1]), replace(RUN, id=sys.argv[2]))\n"
        "for seed in range(40):\n"
        "    journal.append(replace(DONE, seed=seed, note=sys.argv[2] * 3000))\n"
    )
    root, source = Path(__file__).parents[2], Path(bowtienet.__file__).parents[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), name],
            env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{source}"},
        )
        for name in "ab"
    ]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(line["id"] for line in lines if line["kind"] == "run") == ["a", "b"]
    assert len(lines) == 82
    assert sorted(record.seed for record in load(path)[1]) == list(range(40))


def test_keys_tell_cases_apart_and_survive_the_file():
    changes = [
        {"experiment": "uci"},
        {"dataset": "yacht"},
        {"method": "gpr"},
        {"seed": 5},
        {"hidden": (20,)},
        {"members": 1},
        {"settings": {}},
        {"settings": {"prior": "gaussian", "rates": [0.1, 0.3]}},
    ]
    keys = {replace(DONE, **change).key for change in changes}
    assert len(keys | {DONE.key}) == len(changes) + 1
    turned = replace(DONE, settings={"rates": (0.1, 0.2), "prior": "gaussian"})
    assert turned.key == DONE.key
    assert replace(DONE, status="failed", note=None, run="other").key == DONE.key


def test_numpy_numbers_have_the_key_of_plain_ones():
    ours = replace(DONE, seed=np.int64(3), settings={"rate": np.float64(0.1)})
    assert build_key(ours) == build_key(replace(DONE, settings={"rate": 0.1}))


def test_plain_holds_no_nan_at_any_depth():
    found = plain({"a": [math.nan, (np.float32(1.5), -math.inf)], "b": np.arange(2), "c": True})
    assert found == {"a": [None, [1.5, "-inf"]], "b": [0, 1], "c": True}


def test_count_names_every_status():
    assert count([DONE, FAILED, FAILED]) == {"done": 1, "failed": 2, "missing": 0}


def test_a_run_says_with_what_and_where_but_not_who():
    run = describe_run("bowtienet reproduce uci")
    assert run.command == "bowtienet reproduce uci"
    assert run.started.endswith("+00:00")
    assert {"python", "numpy", "scikit-learn"} <= set(run.versions)
    assert run.versions["numpy"] == np.__version__
    assert set(run.machine) == {"cores", "processor", "memory_gb", "platform"}
    assert run.machine["cores"] >= 1
    assert str(Path.home()) not in json.dumps(asdict(run))
    assert describe_run("other").id != run.id


def test_a_folder_without_sources_under_git_has_no_commit(tmp_path):
    (tmp_path / "__init__.py").touch()
    assert find_commit(tmp_path) is None


def test_the_commit_of_a_folder_and_its_changes(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "__init__.py").write_text("")
    try:
        subprocess.run([*git, "init", "--quiet"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no git")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "first"], check=True)
    clean = find_commit(tmp_path)
    assert len(clean) == 40
    (tmp_path / "__init__.py").write_text("changed = True\n")
    assert find_commit(tmp_path) == clean + "+"
