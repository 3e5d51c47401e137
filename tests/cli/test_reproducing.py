"""The experiments from the command line: what is run, kept, gone on with and shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bowtienet
from bowtienet.cli import reproducing
from bowtienet.data.toy import simulate_toy
from bowtienet.estimators import tasks
from bowtienet.experiments import methods, running
from bowtienet.experiments.cases import Case, unscored
from bowtienet.experiments.drawing import load_or_fit
from bowtienet.experiments.provenance import describe_run
from bowtienet.experiments.records import Journal, Record, load
from bowtienet.inference.coordinate_ascent import fit

pytestmark = pytest.mark.usefixtures("experiment")
RESULTS = Path("out") / "results.jsonl"
SLOW = "ensemble"
"""A method that takes so long that a signal comes in the middle of it."""


def cases(splits: int = 10, methods: Sequence[str] | None = None) -> list[Case]:
    return [
        Case(experiment="fake", dataset=dataset, method=method, seed=seed)
        for dataset in ("toy", "diabetes")
        for method in methods or ("lasso", "nuts")
        for seed in range(splits)
    ]


def write(records: Sequence[Record], folder: Path, report) -> list[Path]:
    report("a table")
    table, figure = folder / "tables" / "fake.md", folder / "figures" / "fake_one.png"
    for file in (table, figure):
        file.parent.mkdir(exist_ok=True)
    rows = sorted(f"{r.method} {r.dataset} {r.seed} {r.status}" for r in records)
    table.write_text("# A table\n\n" + "\n".join(rows) + "\n")
    figure.write_bytes(b"")
    return [table, figure]


def install() -> types.ModuleType:
    """Make the functions above an experiment that the command finds by its name."""
    module = types.ModuleType("bowtienet.experiments.fake")
    module.__dict__.update(cases=cases, write=write)
    return module


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> types.ModuleType:
    """An experiment with lasso, and with NUTS that is not installed, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    module = install()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(reproducing, "EXPERIMENTS", (*reproducing.EXPERIMENTS, "fake"))
    entry = replace(methods.METHODS["nuts"], modules=("no_such_module",))
    monkeypatch.setitem(methods.METHODS, "nuts", entry)
    return module


@pytest.fixture
def at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that is run makes the test fail."""
    monkeypatch.setattr(running, "_start", None)


def put(*records: Record) -> None:
    """Records of an earlier run."""
    RESULTS.parent.mkdir(exist_ok=True)
    journal = Journal(RESULTS, describe_run("earlier"))
    for record in records:
        journal.append(record)


def ended(status: str, splits: int = 1, note: str = "") -> list[Record]:
    return [unscored(case, status, note) for case in cases(splits, ["lasso"])]


def test_a_run_and_the_same_again(run, monkeypatch):
    command = ["reproduce", "fake", "--out", "out", "--splits", "1", "--jobs", "1"]
    first = run(*command)
    assert first.exit_code == 0, first.stderr
    assert "4 cases: 0 done, 2 to do, 2 missing, 0 failed" in first.stdout
    assert "nuts missing: NUTS needs no_such_module" in first.stdout
    rows = {line.split()[0]: line.split()[1:] for line in first.stdout.splitlines() if line.strip()}
    assert rows["lasso"] == ["2", "0", "0"]
    index = Path("out/index.md").read_text()
    assert "lasso diabetes 0 done\nlasso toy 0 done\nnuts diabetes 0 missing" in index
    assert "### A table" in index
    assert "![fake one](figures/fake_one.png)" in index
    assert "`bowtienet reproduce fake --splits 1 --jobs 1`" in index
    [written], records = load(RESULTS)
    assert "out" not in written.command
    assert {record.run for record in records} == {written.id}
    # Again: no process, no line more, but tables are there again.
    monkeypatch.setattr(running, "_start", None)
    before = RESULTS.read_bytes()
    Path("out/tables/fake.md").unlink()
    again = run(*command, "--json")
    assert again.exit_code == 0, again.stderr
    answer = json.loads(again.stdout)
    assert answer["cases"] == {"done": 2, "failed": 0, "missing": 2}
    assert [Path(file).name for file in answer["files"]] == ["fake.md", "fake_one.png", "index.md"]
    assert all(Path(file).exists() for file in answer["files"])
    assert answer["index"] == str(Path("out/index.md"))
    assert RESULTS.read_bytes() == before


@pytest.mark.usefixtures("at_rest")
def test_failures_stay_unless_they_are_wanted_again(run, monkeypatch):
    put(*ended("failed", note="a crash"))
    command = ["reproduce", "fake", "--out", "out", "--splits", "1", "--method", "lasso"]
    result = run(*command)
    assert "2 cases: 0 done, 0 to do, 0 missing, 2 failed" in result.stdout
    assert "lasso failed: a crash (2 cases)" in result.stdout
    wanted = []
    monkeypatch.setattr(
        running, "_run_waiting", lambda cases, *_: (wanted.extend(cases), iter_closed())[1]
    )
    assert "0 done, 2 to do, 0 missing, 0 failed" in run(*command, "--again").stdout
    assert [case.dataset for case in wanted] == ["toy", "diabetes"]


def iter_closed():
    """A generator without records."""
    yield from ()


@pytest.mark.usefixtures("at_rest")
def test_records_of_other_methods_and_splits_stay_in_the_tables(run):
    put(*ended("done", splits=3))
    result = run("reproduce", "fake", "--out", "out", "--splits", "1", "--data", "toy")
    assert result.exit_code == 0, result.stderr
    assert "2 cases: 1 done, 0 to do, 1 missing" in result.stdout
    table = Path("out/tables/fake.md").read_text()
    assert table.count("lasso") == 6
    assert "nuts toy 0 missing" in table


@pytest.mark.usefixtures("at_rest")
def test_a_line_that_was_cut_is_noted_and_dropped(run):
    put(*ended("done"))
    with RESULTS.open("ab") as file:
        file.write(b'{"kind": "rec')
    result = run("reproduce", "fake", "--out", "out", "--splits", "1")
    assert result.exit_code == 0
    assert "Note: the last line of results.jsonl was cut short" in result.stderr
    assert len(load(RESULTS)[1]) == 4


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["prior"], "there is no experiment 'prior'; did you mean 'priors'?"),
        (["fake", "--method", "laso"], "there is no method 'laso'; did you mean 'lasso'?"),
        (["fake", "--data", "yatch"], "there is no data set 'yatch'; did you mean 'yacht'?"),
        (["fake", "--data", "slump"], "fake has nothing to run with these --method and --data"),
        (["fake", "--jobs", "0"], "n_jobs must be a whole number of at least 1, or -1"),
    ],
)
def test_mistakes_are_one_sentence(run, arguments, sentence):
    result = run("reproduce", *arguments, "--out", "out")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not RESULTS.exists()


@pytest.mark.usefixtures("at_rest")
def test_places_that_cannot_serve(run, tmp_path):
    Path("file").touch()
    result = run("reproduce", "fake", "--out", "file")
    assert result.exit_code == 2
    assert "file is a file: name a folder" in result.stderr
    put(*ended("done"))
    lines = RESULTS.read_text().splitlines()
    RESULTS.write_text("\n".join([lines[0], "broken", *lines[1:]]) + "\n")
    result = run("reproduce", "fake", "--out", "out")
    assert result.exit_code == 2
    assert "line 2 of" in result.stderr


@pytest.mark.usefixtures("at_rest")
def test_all_is_every_experiment_in_the_order_of_the_paper(run, monkeypatch):
    seen = []
    for name in reproducing.EXPERIMENTS[:-1]:
        module = types.ModuleType(name)
        module.cases = lambda splits, methods: []
        module.write = lambda records, folder, report, name=name: seen.append(name) or []
        monkeypatch.setitem(sys.modules, f"bowtienet.experiments.{name}", module)
    put(*ended("done", splits=10))
    for words in ([], ["all"], ["uci", "all"]):
        seen.clear()
        result = run("reproduce", *words, "--out", "out", "--method", "lasso")
        assert result.exit_code == 0, result.stderr
        assert seen == list(reproducing.EXPERIMENTS[:-1])
    seen.clear()
    run("reproduce", "svi", "toy", "--out", "out")
    assert seen == ["svi", "toy"]


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_signal_while_tables_are_written(run, experiment, number, code, swallowed):
    """Also where a fit takes it as a wish to end early, and goes on as if nothing had been."""
    put(*ended("done"))

    def interrupted(records, folder, report):
        with suppress(KeyboardInterrupt) if swallowed else nullcontext():
            signal.raise_signal(number)
        assert swallowed
        return []

    experiment.write = interrupted
    before = signal.getsignal(signal.SIGTERM)
    result = run("reproduce", "fake", "--out", "out", "--splits", "1")
    assert result.exit_code == code
    assert result.stderr.splitlines()[-1] == (
        "Error: interrupted: all that is done is in out, the same command goes on."
    )
    assert not Path("out/index.md").exists()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_fit_behind_a_figure_keeps_no_model(run, experiment, monkeypatch, number):
    put(*ended("done"))
    X, y = simulate_toy(30, np.random.default_rng(0))

    def interrupting(*arguments, **settings):
        settings["callback"] = lambda progress: signal.raise_signal(number)
        return fit(*arguments, **settings)

    def write_fits(folder, report, n_jobs):
        model = bowtienet.BowTieRegressor((3,), n_estimators=1, combine="equal", random_state=0)
        load_or_fit(model, X, y, folder, "fake", report)
        raise AssertionError

    monkeypatch.setattr(tasks, "fit", interrupting)
    experiment.write_fits = write_fits
    result = run("reproduce", "fake", "--out", "out", "--splits", "1")
    assert result.exit_code == 128 + number
    assert list(Path("out/models").iterdir()) == []


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fake"], True),
        (["fake", "--method", "lasso"], True),
        (["fake", "priors"], True),
        (["fake", "priors", "--method", "lasso"], False),
        (["fake", "priors", "--data", "toy"], False),
    ],
)
def test_fits_behind_figures(run, experiment, monkeypatch, words, expected):
    """With the jobs of the command, but not where a run of several is narrowed down."""
    put(*ended("done"))
    priors = types.ModuleType("priors")
    priors.__dict__.update(cases=lambda splits, methods: [], write=lambda *_: [])
    monkeypatch.setitem(sys.modules, "bowtienet.experiments.priors", priors)
    jobs = []
    experiment.write_fits = lambda folder, report, n_jobs: jobs.append(n_jobs) or []
    result = run("reproduce", *words, "--out", "out", "--splits", "1", "--jobs", "3")
    assert result.exit_code == 0, result.stderr
    assert jobs == ([3] if expected else [])
    left_out = "with --method or --data, fits behind figures are left out: name one"
    assert (f"{left_out} of fake alone" in " ".join(result.stdout.split())) is not expected
    assert Path("out/tables/fake.md").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes as Linux does")
def test_ctrl_c_ends_all_processes_and_keeps_what_is_done(tmp_path):
    """The signal goes to the whole group, as from a terminal, in the middle of a long fit."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from bowtienet.cli import main, reproducing\n"
        "from tests.cli.test_reproducing import install\n"
        "if __name__ == '__main__':\n"
        "    reproducing.EXPERIMENTS += ('fake',)\n"
        "    sys.modules['bowtienet.experiments.fake'] = install()\n"
        "    main()\n"
    )
    root, source = Path(__file__).parents[2], Path(bowtienet.__file__).parents[1]
    words = f"reproduce fake --splits 1 --method lasso --method {SLOW} --data diabetes"
    started = subprocess.Popen(
        [sys.executable, str(program), *words.split(), "--jobs", "1", "--out", "out"],
        env={**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{source}"},
        start_new_session=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(lambda: RESULTS.exists() and RESULTS.read_text().count("\n") == 2, started)
        children = wait_for(lambda: children_of(started.pid), started)
        os.killpg(started.pid, signal.SIGINT)
        _, errors = started.communicate(timeout=60)
    finally:
        started.kill()
        started.wait()
    assert started.returncode == 130
    assert errors.splitlines()[-1].startswith("Error: interrupted: all that is done is in ")
    assert "Traceback" not in errors
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert [(record.method, record.status) for record in load(RESULTS)[1]] == [("lasso", "done")]


def children_of(process: int) -> list[int]:
    """Those that run cases, and not the one that Python keeps for its own ends."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


def wait_for(condition, started: subprocess.Popen, seconds: float = 120.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert started.poll() is None, started.stderr.read()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def test_times_as_people_say_them():
    said = [reproducing._duration(seconds) for seconds in (3.2, 89.0, 600.0, 7200.0)]
    assert said == ["3 s", "89 s", "10 min", "2.0 h"]
