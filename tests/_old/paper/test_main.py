"""The experiments from the command line: what is run, kept, gone on with and shown."""

from __future__ import annotations

import json

import pytest

from benchmarks._old.paper import __main__ as command
from benchmarks._old.paper.records import load

TOY = [
    "toy",
    "diabetes",
    "--splits",
    "1",
    "--first-seed",
    "500",
    "--method",
    "lasso",
    "--jobs",
    "1",
]


def test_a_run_the_same_again_and_a_larger_one(tmp_path, capsys):
    out = tmp_path / "out"
    assert command.main([*TOY, "--out", str(out)]) == 0
    runs, records = load(out / "results.jsonl")
    assert {(r["experiment"], r["seed"], r["status"]) for r in records} == {
        ("toy", 500, "done"),
        ("diabetes", 500, "done"),
    }
    assert {r["run"] for r in records} == {runs[0]["id"]}
    assert runs[0]["command"] == "python -m benchmarks._old.paper " + " ".join(TOY)
    index = (out / "index.md").read_text()
    assert "## Diabetes data\n\n### Diabetes" in index
    assert "![toy depth](figures/toy_depth.png)" in index
    assert f"`{runs[0]['command']}`" in index
    capsys.readouterr()
    # Again: nothing is run, but tables are there again.
    (out / "tables" / "toy.md").unlink()
    assert command.main([*TOY, "--out", str(out)]) == 0
    assert "split 500" not in capsys.readouterr().err
    assert (out / "tables" / "toy.md").is_file()
    # One split more, after a run that was killed in the middle of a line.
    with (out / "results.jsonl").open("a") as file:
        file.write('{"kind": "record", "experi')
    more = [*TOY, "--splits", "2", "--data", "diabetes"]
    assert command.main([*more, "--out", str(out)]) == 0
    assert sorted(r["seed"] for r in load(out / "results.jsonl")[1] if r["dataset"] != "toy") == [
        500,
        501,
    ]
    kinds = [json.loads(line)["kind"] for line in (out / "results.jsonl").read_text().splitlines()]
    assert kinds.count("record") == len(records) + 1


@pytest.mark.parametrize("words", [["ucy"], ["uci", "--method", "laso"], ["uci", "--data", "x"]])
def test_unknown_names_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        command.main(words)
    assert words[-1] in capsys.readouterr().err


def test_priors_need_no_records(tmp_path):
    assert command.main(["priors", "--out", str(tmp_path)]) == 0
    assert "| Student-t | inverse gamma | -1.5, " in (tmp_path / "index.md").read_text()
