"""Commands do what Python does, say it to people and machines, and their examples run."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

import bowtienet as bt
from bowtienet._old import BowTieRegressor, FitOptions
from bowtienet._old.cli.app import EXAMPLES
from bowtienet._old.cli.plot import BY_TASK, OF_MODELS
from bowtienet._old.cli.writing import write
from bowtienet._old.ensemble.settings import EFFORTS
from bowtienet._old.evaluation import average_scores, compare, evaluate
from tests._old.cli.conftest import TINY, accepted, refused, run, write_rows

GUIDE = Path(__file__).parents[3] / "docs" / "guide"
PAGE, TOUR = GUIDE / "commandline.md", GUIDE / "tour.md"
KINDS = [*OF_MODELS, *BY_TASK["numbers"]]
COMMANDS = [command.__name__ for command in EXAMPLES]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def regressor(**settings) -> BowTieRegressor:
    options = FitOptions(weighting="equal")
    tiny = {"n_estimators": 1, "max_iter": 5, "random_state": 0, "options": options}
    return BowTieRegressor((5,), **{**tiny, **settings})


def read(path: str) -> pd.DataFrame:
    return pd.read_csv(path, float_precision="round_trip")


def answer(*arguments: object) -> dict:
    return json.loads(accepted(*arguments, "--json").stdout)


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Default settings, but as little effort as there is, and no threads to start."""
    monkeypatch.setitem(EFFORTS, "balanced", EFFORTS["fast"])
    with joblib.parallel_config("sequential"):
        yield


def example(command: str) -> list[str]:
    text = accepted(command, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    return shlex.split(re.search(r"Example: (bowtienet [^\n]+(?:\n  [^\n]+)*)", text)[1])[1:]


def test_help_lists_every_command_and_the_version_is_told():
    text = accepted("--help").stdout
    assert re.findall(r"^  ([a-z]+)  ", text.partition("Commands:")[2], re.MULTILINE) == COMMANDS
    assert "..." not in text.partition("Commands:")[2]
    assert accepted("--version").stdout == f"bowtienet {bt.__version__}\n"


@pytest.mark.usefixtures("short_fits")
def test_every_example_of_the_help_runs(folder):
    """In the order of a first session; the demo has a test of its own."""
    for command in COMMANDS[:-1]:
        arguments = example(command)
        assert arguments[0] == command
        assert accepted(*arguments).stdout
    assert len(pd.read_csv("pred.csv")) == 10
    assert {"model.btn", "small.btn", "plots"} <= {path.name for path in folder.iterdir()}
    # The documentation says that this code gives the model of the first example.
    ours = bt.load("model.btn").predict(read("new.csv"))
    Path("model.btn").unlink()
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    np.testing.assert_array_equal(bt.load("model.btn").predict(read("new.csv")), ours)


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_the_example_of_demo_runs_and_says_where_its_files_are(folder, monkeypatch):
    monkeypatch.setattr("bowtienet._old.cli.console._WIDE", 80)
    printed = accepted(*example("demo")).stdout
    listed = re.findall(r"^  (\S+)$", printed, flags=re.MULTILINE)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*demo/**/*") if path.is_file()}
    assert set(listed) == found
    assert {Path(name).name for name in listed} >= {"rents.btn", "rents.html", "diabetes.csv"}
    [scores] = re.findall(r"^RMSE +(\S+) +(\S+)$", printed, flags=re.MULTILINE)
    assert float(scores[0]) < float(scores[1])
    # Both comparisons: where it shines, and where a line is as good.
    tables = re.findall(r"^bowtienet +(\S+).*\nBayesianRidge +(\S+)", printed, flags=re.MULTILINE)
    assert len(tables) == 2
    assert float(tables[0][0]) < 0.8 * float(tables[0][1])
    # The tour shows this screen; a fit with more effort has other scores.
    [transcript] = re.findall(r"```text\n\$ bowtienet demo\n(.*?)```", TOUR.read_text(), re.DOTALL)
    for part in (r"\$ bowtienet fit.*?\n\n.*?\n\n", r"\$ bowtienet predict.*?\n\n", r"Next:.*"):
        [shown] = re.findall(part, transcript, flags=re.DOTALL)
        assert shown in printed


def test_fit_and_predict_give_the_numbers_of_python(folder):
    told = answer("fit", "data.csv", "-t", "y", "--out", "model.btn", *TINY)
    accepted("predict", "model.btn", "new.csv", "--out", "pred.csv", "--coverage", "0.8")
    train, test = train_test_split(read("data.csv"), test_size=0.1, random_state=0)
    ours, new, found = regressor().fit(train, "y"), read("new.csv"), read("pred.csv")
    mean, std = ours.predict(new, return_std=True)
    np.testing.assert_array_equal(found["mean"], mean)
    np.testing.assert_array_equal(found["std"], std)
    np.testing.assert_array_equal(found[["lower", "upper"]], ours.predict_interval(new, 0.8))
    expected = evaluate(test["y"].to_numpy(), ours.predict_dist(test))
    assert told["scores"]["y"]["model"] == asdict(expected)
    np.testing.assert_array_equal(bt.load("model.btn").predict(new), mean)


def test_effort_noise_and_conformal_intervals(folder):
    fit = ["fit", "data.csv", "-t", "y", "--hidden", "5", "--jobs", "1", "--effort", "fast"]
    told = answer(*fit, "--features", "principal", "--out", "model.btn")["fit"]
    assert told["networks_see"].startswith("principal components")
    assert re.fullmatch(
        r"3 levels, variances times [\d., ]+, chosen by the features", told["noise"]
    )
    assert answer(*fit, "--noise", "constant", "--out", "same.btn")["fit"]["noise"].startswith("1 ")
    assert "variances times" in accepted("inspect", "model.btn").stdout
    predict = ["predict", "model.btn", "new.csv", "--coverage", "0.8"]
    accepted(*predict, "--method", "conformal", "--out", "conformal.csv")
    found, model = read("conformal.csv"), bt.load("model.btn")
    expected = model.predict_interval(read("new.csv"), 0.8, method="conformal")
    np.testing.assert_array_equal(found[["lower", "upper"]], expected)
    accepted(*predict, "--method", "central", "--out", "central.csv")
    np.testing.assert_array_equal(read("central.csv")["mean"], found["mean"])
    assert not np.array_equal(read("central.csv")["lower"], found["lower"])
    assert "central or conformal" in refused(*predict, "--method", "shortest")
    assert "effort" in refused(*fit, "--effort", "great")
    assert "noise" in refused(*fit, "--noise", "none")


def test_a_fit_without_held_out_rows_has_no_conformal_intervals(model):
    assert "held no rows out" in refused("predict", model, "new.csv", "--method", "conformal")


def test_compare_gives_the_numbers_of_python(folder):
    found = answer("compare", "data.csv", "--target", "y", "--splits", "2", *TINY)["methods"]
    expected = compare(read("data.csv"), "y", regressor=regressor(random_state=None), n_splits=2)
    assert [one["method"] for one in found] == [one.method for one in expected]
    for ours, theirs in zip(found, expected, strict=True):
        mean = average_scores(theirs.scores)
        assert ours["mean"]["rmse"] == pytest.approx(mean.rmse, rel=1e-6)
        assert ours["mean"]["crps"] == pytest.approx(mean.crps, rel=1e-6)
        assert len(ours["seconds"]) == 2


def test_compare_takes_as_many_categories_as_it_is_told(folder):
    read("data.csv").assign(code=[f"c{i % 7}" for i in range(60)]).to_csv("codes.csv", index=False)
    command = ["compare", "codes.csv", "-t", "y", "--splits", "1", *TINY]
    assert "'code'" in refused(*command, "--max-categories", "5")
    accepted(*command, "--max-categories", "7")


def test_all_rows_are_used_if_none_are_held_out(folder):
    told = answer("fit", "data.csv", "-t", "y", "--test-size", "0", *TINY)
    assert told["rows"] == {"fitted": 60, "held_out": 0}
    assert told["scores"] is None
    everything = regressor().fit(read("data.csv"), "y")
    found = bt.load("data.btn").predict(read("new.csv"))
    np.testing.assert_array_equal(found, everything.predict(read("new.csv")))
    write_rows(folder / "few.csv", 19, seed=3)
    assert answer("fit", "few.csv", "-t", "y", *TINY)["rows"]["held_out"] == 0


def test_columns_and_their_use_are_shown_once(folder):
    table = read("data.csv").assign(
        id=[f"row {i}" for i in range(60)], rent=[f"1,{100 + i}.50" for i in range(60)]
    )
    table.to_csv("more.csv", index=False)
    result = accepted("fit", "more.csv", "-t", "y", *TINY)
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for name, word in {
        "colour": "one-hot",
        "x2": "missing",
        "when": "date",
        "same": "left out",
        "id": "identifiers",
        "rent": "read as numbers",
        "y": "target",
    }.items():
        assert word in lines[name]
    assert "'id'" not in result.stderr
    assert "'rent'" not in result.stderr
    accepted("fit", "more.csv", "-t", "y", "--drop", "id", "--force", *TINY)
    # Without a table of columns the notes say it, once for all splits.
    said = accepted("compare", "more.csv", "-t", "y", "--splits", "2", *TINY).stderr
    assert said.count("'id'") == said.count("'rent'") == 1


def test_a_fit_that_a_limit_cut_short_says_so(folder):
    result = accepted("fit", "data.csv", "-t", "y", *TINY)
    assert "iteration limit" in result.stdout
    assert "converged" not in result.stdout
    assert result.stderr.count("max_iter=5") == 1


def test_weights_and_dropped_columns(folder):
    table = read("data.csv").assign(times=1.0 + np.arange(60) % 2)
    table.to_csv("weighted.csv", index=False)
    fit = ["fit", "weighted.csv", "-t", "y", "--weight", "times", "--drop", "colour"]
    accepted(*fit, "--drop", "when", "--test-size", "0", *TINY)
    expected = regressor().fit(table.drop(columns=["colour", "when"]), "y", sample_weight="times")
    found = bt.load("weighted.btn").predict(read("new.csv"))
    np.testing.assert_array_equal(found, expected.predict(read("new.csv")))


def test_several_targets(folder):
    table = read("data.csv")
    table.assign(z=-table["y"]).to_csv("two.csv", index=False)
    told = answer("fit", "two.csv", "-t", "y", "-t", "z", *TINY)
    assert list(told["scores"]) == ["y", "z"]
    accepted("predict", "two.btn", "new.csv", "--out", "two-pred.csv")
    expected = [f"{column}_{name}" for column in ("mean", "std", "lower", "upper") for name in "yz"]
    assert read("two-pred.csv").columns.tolist() == expected
    accepted("inspect", "two.btn")
    accepted("plot", "two.btn", "two.csv", "--target", "z", "--kind", "pit")
    assert "'x'" in refused("plot", "two.btn", "two.csv", "--target", "x")
    assert "'y', 'z'" in refused("prune", "two.btn", "two.csv", "-t", "y")


@pytest.mark.parametrize("ending", ["tsv", "parquet", "arrow"])
def test_other_files_in_and_out(model, ending):
    write(bt.read_table("new.csv"), Path(f"same.{ending}"))
    accepted("predict", model, f"same.{ending}", "--out", f"pred.{ending}")
    accepted("predict", model, "new.csv", "--out", "pred.csv")
    pd.testing.assert_frame_equal(bt.read_table(f"pred.{ending}").to_pandas(), read("pred.csv"))


def test_predictions_go_to_standard_output_and_beside_the_columns(model):
    plain = accepted("predict", model, "new.csv").stdout.splitlines()
    assert plain[0] == "mean,std,lower,upper"
    assert len(plain) == 11
    accepted("predict", model, "new.csv", "--out", "both.csv", "--with-columns")
    both = read("both.csv")
    assert both.columns.tolist()[:6] == read("new.csv").columns.tolist()
    assert answer("predict", model, "new.csv")["columns"]["mean"] == both["mean"].tolist()


def test_columns_are_found_by_name_in_any_order(model):
    """Others are ignored, and those that the model left out may be absent."""
    expected = accepted("predict", model, "new.csv").stdout
    table = read("new.csv")
    table[table.columns[::-1]].assign(new="text").to_csv("more.csv", index=False)
    found = accepted("predict", model, "more.csv")
    assert (found.stdout, found.stderr) == (expected, "")
    table.drop(columns=["y", "same"]).to_csv("less.csv", index=False)
    assert accepted("predict", model, "less.csv").stdout == expected


def test_a_model_of_python_serves_too(folder):
    table = read("data.csv")[["x1", "y"]]
    fitted = regressor().fit(table, "y")
    fitted.save("plain.btn")
    accepted("predict", "plain.btn", "new.csv", "--out", "pred.csv")
    np.testing.assert_array_equal(read("pred.csv")["mean"], fitted.predict(read("new.csv")))
    accepted("inspect", "plain.btn")
    read("data.csv").rename(columns={"y": "price"}).to_csv("price.csv", index=False)
    for named in (["data.csv"], ["price.csv", "--target", "price"]):
        accepted("plot", "plain.btn", *named, "--kind", "predicted", "--force")
    accepted("prune", "plain.btn", "price.csv", "--target", "price")


def test_models_that_know_no_names(folder):
    table = read("data.csv")[["x1", "colour", "y"]]
    features = table[["x1", "colour"]].to_numpy(dtype=object)
    regressor().fit(features, table["y"].to_numpy()).save("mixed.btn")
    table.to_csv("two.csv", index=False)
    for command in (["predict"], ["plot", "--kind", "band"]):
        assert "feature names" not in accepted(*command, "mixed.btn", "two.csv").stderr


def test_prune_writes_a_smaller_model_and_says_what_it_saves(folder):
    accepted("fit", "data.csv", "-t", "y", *TINY, "--out", "model.btn")
    told = answer("prune", "model.btn", "data.csv", "--tolerance", "0.05")
    assert told["model"] == "model-pruned.btn"
    assert told["networks"]["after"] == 1
    assert 0 < told["weights"]["after"] < told["weights"]["before"]
    expected = bt.load("model.btn").prune(read("data.csv"), "y", tolerance=0.05)
    assert told["columns_left"] == list(expected.pruning_.columns_after)
    assert told["out_of_fold"]["rmse"]["after"] == pytest.approx(expected.pruning_.rmse_after)
    new, smaller = read("new.csv"), bt.load("model-pruned.btn")
    np.testing.assert_array_equal(smaller.predict(new), expected.predict(new))
    assert Path("model-pruned.btn").stat().st_size < Path("model.btn").stat().st_size
    text = accepted("prune", "model.btn", "data.csv", "--out", "again.btn").stdout
    assert "columns left: " in text
    assert "out of fold" in text
    assert "inf" not in accepted("inspect", "model-pruned.btn").stdout.split()
    drawn = answer("plot", "model-pruned.btn", "--out", "pruned")["plots"]
    assert {Path(place).stem for place in drawn} == set(OF_MODELS)


def test_inspect_tells_people_and_machines_the_same(model):
    text = accepted("inspect", model).stdout
    facts = answer("inspect", model)
    assert facts["targets"] == ["y"]
    assert [column["name"] for column in facts["columns"]] == ["x1", "x2", "colour", "when", "same"]
    assert facts["bytes"] == Path(model).stat().st_size
    relevance = bt.load(model).feature_relevance_
    by_name = {one["name"]: one["strength"] for one in facts["relevance"]}
    assert by_name == dict(zip(relevance.name, relevance.strength, strict=True))
    assert all(name in text for name in by_name)
    assert facts["importance"] is None
    assert "permuted" not in text


def test_inspect_with_rows_permutes_features(model):
    text = accepted("inspect", model, "data.csv").stdout
    losses = answer("inspect", model, "data.csv")["importance"]
    table = bt.read_table("data.csv")
    found = bt.load(model).importance(table, "y")
    by_name = {one["name"]: one["log_density_drop"] for one in losses}
    assert by_name == pytest.approx(dict(zip(found.name, found.log_density_drop, strict=True)))
    assert [one["log_density_drop"] for one in losses] == sorted(by_name.values(), reverse=True)
    assert "y, permuted" in text
    assert "±" in text


def test_plot_draws_what_is_asked_for(model):
    places = answer("plot", model, "data.csv", "--out", "all")["plots"]
    assert [Path(place).stem for place in places] == KINDS
    for place in places:
        assert plt.imread(place).std() > 0.01  # not blank
    without = answer("plot", model)["plots"]
    assert {Path(place).stem for place in without} == set(OF_MODELS)
    one = ["plot", model, "data.csv", "--out", "one", "--format", "svg"]
    result = accepted(*one, "--kind", "band", "--feature", "colour")
    assert result.stdout.strip() == os.path.join("one", "band.svg")
    assert plt.get_fignums() == []


def test_fit_draws_and_reports_the_held_out_rows(folder):
    told = answer("fit", "data.csv", "-t", "y", "--plots", "drawn", "--report", "p.html", *TINY)
    assert {path.stem for path in Path("drawn").iterdir()} == set(KINDS)
    assert told["report"] == "p.html"
    assert "</html>" in Path("p.html").read_text()


def test_debugging_shows_where_an_error_came_from(folder, monkeypatch):
    monkeypatch.setenv("BOWTIENET_DEBUG", "1")
    assert isinstance(run("inspect", "none.btn").exception, FileNotFoundError)
