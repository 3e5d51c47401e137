"""Results survive the file: every field, and a writer that was killed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks._old.paper.records import Journal, key_of, load, to_frame, to_line
from tests._old.paper.made_up import made_up

RUN = {"kind": "run", "id": "one"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.jsonl"


def test_lines_are_strict_json_and_come_back_as_numbers(path):
    journal = Journal(path, RUN)
    journal.append(made_up(nll=math.inf, crps=np.float64(0.25), note="größer als ½"))
    journal.append(made_up(seed=1, status="failed", note="no\nline"))

    def refuse(word):
        raise AssertionError(word)

    lines = [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["run", "record", "record"]
    assert lines[1]["scores"]["nll"] == "inf"
    assert (lines[1]["run"], lines[2]["seconds"]) == ("one", None)
    done, failed = to_frame(load(path)[1]).to_dict("records")
    assert (done["nll"], done["crps"], done["note"], done["depth"]) == (
        *(math.inf, 0.25, "größer als ½", 1),
    )
    assert math.isnan(failed["rmse"])
    assert math.isnan(failed["seconds"])


def test_a_case_is_known_by_all_that_names_it_and_by_nothing_else():
    record = made_up()
    for name in ("experiment", "dataset", "method", "seed", "hidden", "members", "settings"):
        assert key_of(record | {name: "other"}) != key_of(record)
    assert key_of(record | {"hidden": (50,), "note": "x", "run": "y"}) == key_of(record)


def test_the_last_record_of_a_case_counts_but_done_stays_done(path):
    journal = Journal(path, RUN)
    for status, note in (("missing", "a"), ("failed", "b"), ("done", "c"), ("failed", "d")):
        journal.append(made_up(status=status, note=note))
    assert [record["note"] for record in load(path)[1]] == ["c"]
    assert [record["note"] for record in journal.records.values()] == ["c"]
    journal.append(made_up(note="e"))
    assert [record["note"] for record in load(path)[1]] == ["e"]


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_last_line_that_was_cut_is_dropped(path, cut):
    Journal(path, RUN).append(made_up())
    before = path.read_bytes()
    added = to_line(made_up(seed=1)).encode()
    path.write_bytes(before + added[: max(1, len(added) - cut)])
    assert [record["seed"] for record in load(path)[1]] == [0]
    journal = Journal(path, {"kind": "run", "id": "two"})
    journal.append(made_up(seed=1))
    runs, records = load(path)
    assert [run["id"] for run in runs] == ["one", "two"]
    assert [(record["seed"], record["run"]) for record in records] == [(0, "one"), (1, "two")]
