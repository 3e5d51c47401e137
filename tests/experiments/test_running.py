"""Cases run in processes of their own: in order, once, and whatever becomes of a process."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest

import bowtienet
from bowtienet.experiments import cases as cases_module
from bowtienet.experiments import methods, running
from bowtienet.experiments.cases import Case, run_case, unscored
from bowtienet.experiments.records import Journal, Record, Run, load
from bowtienet.experiments.running import ONE_THREAD, run_cases, seconds_left, to_do

RUN = Run(id="one", started="now", command="try", commit=None, versions={}, machine={})
CASE = Case(experiment="toy", dataset="toy", method="lasso", seed=0)


def done(case: Case, seconds: float = 1.0, note: str | None = None) -> Record:
    record = unscored(case, "done", note or "")
    return replace(record, seconds=seconds, wall_seconds=seconds, predict_seconds=0.0)


def behave(case: Case) -> Record:
    """What the settings of a case ask a process to do."""
    wish = dict(case.settings).get("wish")
    print("words that nobody asked for")
    os.write(2, b"more of them\n")
    if wish == "exit":
        os._exit(3)
    if wish == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if wish == "sleep":
        Path(dict(case.settings)["place"]).write_text(str(os.getpid()))
        time.sleep(600.0)
    seen = [os.environ.get(name) == value for name, value in ONE_THREAD.items()]
    return done(case, note=f"{os.getpid()} {all(seen)}")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "results.jsonl", RUN)


def test_methods_come_one_after_another_and_then_splits():
    cases = [
        replace(CASE, method=method, dataset=dataset, seed=seed)
        for dataset in ("toy", "diabetes")
        for method in ("single", "lasso")
        for seed in (1, 0)
    ]
    found = [(case.method, case.seed, case.dataset) for case in to_do([*cases, *cases], {})]
    assert found == [
        (method, seed, dataset)
        for method in ("single", "lasso")
        for seed in (0, 1)
        for dataset in ("toy", "diabetes")
    ]


def test_what_is_done_is_not_done_again_and_failures_on_demand():
    cases = [replace(CASE, seed=seed) for seed in range(4)]
    statuses = dict(zip(cases, ("done", "failed", "missing"), strict=False))
    records = {case.key: unscored(case, status, "") for case, status in statuses.items()}
    assert [case.seed for case in to_do(cases, records)] == [2, 3]
    assert [case.seed for case in to_do(cases, records, again=True)] == [1, 2, 3]


def test_missing_cases_wait_for_their_library(monkeypatch):
    entry = replace(methods.METHODS["lasso"], modules=("no_such_module",))
    monkeypatch.setitem(methods.METHODS, "lasso", entry)
    records = {CASE.key: unscored(CASE, "missing", "")}
    assert to_do([CASE], records, again=True) == []
    assert to_do([CASE], {}) == [CASE]


def test_time_left_is_that_of_the_most_similar_cases():
    twice = replace(CASE, members=2)
    other = replace(CASE, dataset="diabetes")
    gpr = replace(CASE, method="gpr")
    records = [
        done(CASE, 1.0),
        done(replace(CASE, seed=1), 3.0),
        done(twice, 10.0),
        done(replace(gpr, dataset="diabetes"), 50.0),
        unscored(replace(gpr, seed=9), "failed", ""),
    ]
    new = 5
    assert seconds_left([replace(CASE, seed=new)], records, 1) == pytest.approx(2.0)
    assert seconds_left([replace(twice, seed=new)], records, 1) == pytest.approx(10.0)
    assert seconds_left([replace(CASE, seed=new, members=3)], records, 1) == pytest.approx(14 / 3)
    assert seconds_left([replace(other, seed=new)], records, 1) == pytest.approx(14 / 3)
    assert seconds_left([replace(gpr, seed=new)], records, 1) == pytest.approx(50.0)
    assert seconds_left([replace(CASE, method="single")], records, 1) == pytest.approx(16.0)
    assert seconds_left([replace(CASE, seed=s) for s in (5, 6)], records, 2) == pytest.approx(2.0)
    assert seconds_left([], records, 1) == 0.0
    assert math.isfinite(seconds_left([CASE], [], 1))


@pytest.mark.parametrize("n_jobs", [0, -2, "many", None, 1.5])
def test_a_wrong_number_of_jobs(journal, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a whole number"):
        run_cases([CASE], journal, n_jobs=n_jobs, run=behave)


def test_a_crash_is_a_failure_of_its_case_alone(journal, capfd):
    """Eight cases, two at a time: one process for each method, and one more after each crash."""
    wishes = {1: "exit", 2: "kill"}
    cases = [
        replace(CASE, method=method, seed=seed, settings=(("wish", wishes.get(seed)),))
        for method in ("lasso", "single")
        for seed in range(4)
        if method == "lasso" or seed not in wishes
    ]
    before, seen, children = dict(os.environ), [], set(multiprocessing.active_children())
    run_cases(cases, journal, n_jobs=2, callback=seen.append, run=behave)
    assert dict(os.environ) == before
    # Processes of other tests may still be there.
    assert set(multiprocessing.active_children()) <= children
    found = {(record.method, record.seed): record for record in load(journal.path)[1]}
    assert len(found) == len(seen) == len(cases)
    assert {record.run for record in seen} == {"one"}
    assert found["lasso", 1].status == found["lasso", 2].status == "failed"
    assert found["lasso", 1].note == "its process ended with exit code 3"
    assert found["lasso", 2].note == "its process was ended by signal SIGKILL"
    ended = [record for key, record in found.items() if record.status == "done"]
    assert len(ended) == 4
    assert all(record.note.endswith("True") for record in ended)
    processes = {record.method: set() for record in ended}
    for record in ended:
        processes[record.method].add(record.note)
    assert processes["lasso"].isdisjoint(processes["single"])
    captured = capfd.readouterr()
    assert "words" not in captured.out
    assert "more" not in captured.err
    # Nothing is left to do, and nothing is run or written again.
    size = journal.path.stat().st_size
    run_cases(cases, Journal(journal.path, RUN), callback=seen.append, run=behave)
    assert (len(seen), journal.path.stat().st_size) == (len(cases), size)


def test_the_records_of_processes_are_those_of_this_one(journal):
    cases = [replace(CASE, dataset=name, members=2) for name in ("toy", "diabetes")]
    run_cases(cases, journal, n_jobs=1)
    for case, found in zip(cases, load(journal.path)[1], strict=True):
        expected = run_case(case)
        assert found.status == expected.status == "done"
        assert found.scores == pytest.approx(expected.scores, rel=1e-9)
        assert found.key == expected.key


def test_an_interrupt_leaves_no_process_and_all_that_was_done(journal, tmp_path):
    place = tmp_path / "process"
    cases = [CASE, replace(CASE, seed=1, settings=(("place", str(place)), ("wish", "sleep")))]

    def interrupt(record: Record) -> None:
        wait_for(place.exists)
        raise KeyboardInterrupt

    children = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        run_cases(cases, journal, n_jobs=2, callback=interrupt, run=behave)
    assert set(multiprocessing.active_children()) <= children
    assert not is_alive(int(place.read_text()))
    assert [record.seed for record in load(journal.path)[1]] == [0]


def wait_for(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # What is dead but was not waited for is still there, as a zombie.
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_processes_end_with_a_program_that_is_killed(tmp_path):
    place, program = tmp_path / "process", tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from tests.experiments.test_running import *\n"
        "if __name__ == '__main__':\n"
        f"    settings = (('place', {str(place)!r}), ('wish', 'sleep'))\n"
        f"    journal = Journal(Path({str(tmp_path / 'r.jsonl')!r}), RUN)\n"
        "    run_cases([replace(CASE, settings=settings)], journal, n_jobs=1, run=behave)\n"
    )
    root, source = Path(__file__).parents[2], Path(bowtienet.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{source}"}
    started = subprocess.Popen([sys.executable, str(program)], env=environment)
    try:
        wait_for(lambda: place.exists() and place.read_text())
    finally:
        started.kill()
        started.wait()
    child = int(place.read_text())
    wait_for(lambda: not is_alive(child), 30.0)


def test_what_cannot_be_run_starts_no_process(journal, monkeypatch):
    entry = replace(methods.METHODS["lasso"], modules=("no_such_module",))
    monkeypatch.setitem(methods.METHODS, "lasso", entry)
    monkeypatch.setattr(running, "_run_waiting", None)
    asked = []

    def load_set(name: str) -> None:
        asked.append(name)
        if name == "slump":
            raise FileNotFoundError("it is not on this machine")

    monkeypatch.setattr(cases_module, "load_set", load_set)
    gone = [replace(CASE, method="single", dataset="slump", seed=seed) for seed in (0, 1)]
    seen: list[Record] = []
    for _ in range(2):
        run_cases([CASE, *gone], journal, callback=seen.append)
    assert asked.count("slump") == 2
    notes = ["no_such_module", *["FileNotFoundError: it is not on this machine"] * 2]
    assert all(note in record.note for note, record in zip(notes, seen, strict=False))
    # The second time the data were looked for again; nothing was written twice.
    assert len(seen) == 5
    assert len(journal.path.read_text().splitlines()) == 4
    assert {record.status for record in load(journal.path)[1]} == {"missing"}


def test_a_program_that_cannot_be_imported_is_told(journal, monkeypatch):
    module = types.ModuleType("only_here")
    exec("def run(case):\n    pass\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "only_here", module)
    with pytest.raises(ChildProcessError, match="could not start"):
        run_cases([CASE], journal, n_jobs=1, run=module.run)
    assert journal.records == {}
