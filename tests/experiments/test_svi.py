"""The study of stochastic steps: what is kept, what is done again, and what is written."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import bowtienet as bt
from bowtienet.data.toy import simulate_toy
from bowtienet.experiments import svi, svi_study
from bowtienet.experiments.svi_study import CAVI, OURS, PAPER, Cell, Study

TINY = Study(
    first_seed=3,
    runs=2,
    rows=40,
    new_rows=30,
    width=3,
    passes=2,
    batches=(10, 20),
    rates=(0.7, 1.0),
    members=2,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with a finished study, and what was reported."""
    folder, said = tmp_path_factory.mktemp("svi"), []
    svi_study.run(TINY, folder, said.append)
    return folder, said


def test_the_default_is_the_study_of_the_guide() -> None:
    study = Study()
    assert (study.seeds, study.rows, study.new_rows) == (range(140, 145), 270, 2000)
    assert (study.width, study.passes, study.members) == (20, 200, 5)
    assert len(study.cells()) == 3 * 4 + 3 + 1
    assert study.shown() == (Cell(PAPER, 10, 0.7), Cell(OURS, 30, 0.7), Cell(CAVI))
    assert len(list(svi_study.keys(study))) == 5 * 16 + 2 * 5 * 3


def test_a_single_fit_of_coordinate_ascent_is_that_of_the_library() -> None:
    rng = np.random.default_rng(3)
    X, y = simulate_toy(40, rng)
    new_X, new_y = simulate_toy(30, rng)
    of_inputs, of_targets = bt.fit_scaling(X), bt.fit_scaling(y[:, None])
    rows = bt.build_rows(bt.standardize(of_inputs, X), bt.standardize(of_targets, y[:, None]))
    model = bt.default_model(bt.build_architecture(2, (3,), 1), rows.inputs, rows.targets)
    factors = bt.initialize(model, rows, 3000, init="laplace")
    fitted = bt.fit(model, rows, factors, max_iter=2)
    found = bt.predict(fitted.model, fitted.factors, bt.standardize(of_inputs, new_X))
    mean = bt.restore_mean(of_targets, found.mean)[:, 0]
    result = svi_study.single(TINY, "laplace", Cell(CAVI), 3)
    assert result["rmse"] == pytest.approx(np.sqrt(np.mean((new_y - mean) ** 2)))
    assert result["passes"] == 2


def test_members_together_are_an_equal_mixture() -> None:
    of = svi_study.problem(TINY, 3)
    members = [svi_study._fit(TINY, of, "laplace", Cell(CAVI), member)[0] for member in (0, 1)]
    apart = [svi_study.predictive(of, [member], of.new) for member in members]
    both = svi_study.predictive(of, members, of.new)
    np.testing.assert_allclose(both.mean(), 0.5 * (apart[0].mean() + apart[1].mean()))
    assert np.abs(apart[0].mean() - apart[1].mean()).max() > 1e-3  # their starts differ
    result = svi_study.together(TINY, "laplace", Cell(CAVI), 3)
    assert result["one"]["rmse"] == pytest.approx(
        svi_study.scores(apart[0], of.new_targets)["rmse"]
    )
    assert result["all"]["rmse"] == pytest.approx(svi_study.scores(both, of.new_targets)["rmse"])
    assert result["errors"][-1] == pytest.approx(result["one"]["rmse"])
    assert result["passes"] == [1.0, 2.0]
    assert result["bounds"][1] > result["bounds"][0]


def test_a_second_run_fits_nothing(
    results: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, said = results
    assert len(said) == len(list(svi_study.keys(TINY)))

    def refuse(*_: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(svi_study, "_fit", refuse)
    before = (folder / svi_study.FILE).read_bytes()
    fewer = replace(TINY, runs=1, rates=(0.7,))
    assert len(svi_study.run(fewer, folder, said.append)) == len(list(svi_study.keys(fewer)))
    assert (folder / svi_study.FILE).read_bytes() == before
    with pytest.raises(AssertionError, match="fitted again"):
        svi_study.run(replace(TINY, passes=3), folder, lambda _: None)


def test_a_line_that_was_cut_short_is_done_again(
    results: tuple[Path, list[str]], tmp_path: Path
) -> None:
    lines = (results[0] / svi_study.FILE).read_bytes().splitlines(keepends=True)
    path = tmp_path / svi_study.FILE
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    said: list[str] = []
    svi_study.run(TINY, tmp_path, said.append)
    assert said[0].startswith("svi: the last line of svi.jsonl was cut short")
    assert len(said) == 2
    again = path.read_bytes().splitlines(keepends=True)
    assert again[:-2] == lines[:-1]  # a new run before what it did
    first, second = json.loads(again[-1]), json.loads(lines[-1])
    assert first["key"] == second["key"]
    assert first["result"]["all"]["mean"] == second["result"]["all"]["mean"]
    said.clear()
    svi_study.run(TINY, tmp_path, said.append)
    assert not said


def test_lines_say_of_which_run_they_are(results: tuple[Path, list[str]]) -> None:
    run, *lines = map(json.loads, (results[0] / svi_study.FILE).read_text().splitlines())
    assert (run["kind"], run["command"]) == ("run", "bowtienet reproduce svi")
    assert run["versions"]["numpy"] == np.__version__
    assert {"commit", "machine", "started"} <= run.keys()
    assert {(line["kind"], line["run"]) for line in lines} == {("result", run["id"])}
    assert len(lines) == len(list(svi_study.keys(TINY)))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"key": "cut', "Invalid control character"),
        ("[]", "it is neither a run nor a result"),
        ('{"kind": "result"}', "it lacks 'key'"),
        ('{"kind": "run"}', "it lacks 'id'"),
    ],
)
def test_a_broken_line_in_the_middle_is_one_clear_error(
    line: str, reason: str, results: tuple[Path, list[str]], tmp_path: Path
) -> None:
    first, *others = (results[0] / svi_study.FILE).read_text().splitlines()
    (tmp_path / svi_study.FILE).write_text("\n".join([first, line, *others]) + "\n")
    with pytest.raises(ValueError, match=rf"line 2 of .*svi\.jsonl cannot be read.*{reason}"):
        svi_study.run(TINY, tmp_path, lambda _: None)


def test_infinities_come_back(
    results: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    infinite = {"nll": np.inf, "bounds": [-np.inf, 1.0]}
    monkeypatch.setattr(svi_study, "single", lambda *_: infinite)
    monkeypatch.setattr(svi_study, "together", lambda *_: infinite)
    first = svi_study.run(TINY, tmp_path, lambda _: None)
    monkeypatch.delattr(svi_study, "single")
    assert svi_study.run(TINY, tmp_path, lambda _: None) == first


@pytest.mark.parametrize("cell", [Cell(CAVI), Cell(PAPER, 10, 0.7)])
def test_a_fit_that_was_interrupted_is_not_kept(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting(svi_study.Watch):
        def __call__(self, progress: svi_study.Progress) -> None:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(svi_study, "Watch", Interrupting)
    monkeypatch.setattr(svi_study, "keys", lambda _: [("together", "laplace", cell, 3)])
    with pytest.raises(KeyboardInterrupt):
        svi_study.run(TINY, tmp_path, lambda _: None)
    assert not (tmp_path / svi_study.FILE).exists()


def test_tables_and_figure(results: tuple[Path, list[str]]) -> None:
    folder, _ = results
    assert svi.cases(3, ["svi"]) == []
    assert svi.write([], folder, lambda _: None) == []
    paths = svi.write_fits(folder, lambda _: None, study=TINY)
    assert [path.relative_to(folder).as_posix() for path in paths] == [
        "tables/svi.md",
        "figures/svi.png",
    ]
    assert plt.imread(paths[1]).std() > 0.01
    found = svi_study.run(TINY, folder, lambda _: None)
    values = svi.values_of(found, TINY, Cell(PAPER, 10, 0.7), "rmse")
    text = paths[0].read_text()
    start = f"| {PAPER} | 10 | 0.7 | {values.mean():.2f} ± {values.std(ddof=1):.2f} | "
    assert sum(line.startswith(start) for line in text.splitlines()) == 1
    cavi, own = (
        svi.values_of(found, TINY, cell, "seconds").mean()
        for cell in (Cell(CAVI), Cell(PAPER, 10, 0.7))
    )
    (row,) = [line for line in text.splitlines() if line.startswith(start)]
    assert row.endswith(f"| {cavi / own:.2g} |")
    assert sum(line.startswith("| `relu_network` | ") for line in text.splitlines()) == 6
