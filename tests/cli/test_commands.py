"""Commands do what Python does, say it to people and machines, and their examples run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.model_selection import train_test_split

import bowtienet as bt
from bowtienet import BowTieRegressor, make_table_pipeline
from bowtienet.cli.drawing import NEED_ROWS, Kind
from bowtienet.estimators import fitting
from bowtienet.evaluation import average_scores, compare, evaluate
from tests.cli.conftest import TINY, write_rows

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "commandline.md"
SOURCE = str(Path(bt.__file__).parents[1])
COMMANDS = (
    *("fit", "predict", "prune", "inspect", "plot", "report", "compare"),
    "demo",
)
pytestmark = pytest.mark.filterwarnings(
    "ignore:Most members were still:sklearn.exceptions.ConvergenceWarning"
)
SETTINGS = {"n_estimators": 1, "combine": "equal", "max_iter": 5}


def regressor(**settings) -> BowTieRegressor:
    return BowTieRegressor((5,), **{**SETTINGS, "random_state": 0, **settings})


@pytest.fixture
def model(folder, run) -> Path:
    """A fitted model file."""
    assert run("fit", "data.csv", "--target", "y", "--out", "model.btn", *TINY).exit_code == 0
    return folder / "model.btn"


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Default settings, but one recipe of five, short starts, and no processes to start."""
    monkeypatch.setattr("bowtienet.estimators.fitting.RECIPES", fitting.RECIPES[2:3])
    monkeypatch.setattr("bowtienet.estimators.tasks.START_ITERATIONS", 60)
    monkeypatch.setattr("bowtienet.estimators.tasks.SMALL_START_ITERATIONS", 100)
    with joblib.parallel_config("sequential"):
        yield


def example(run, command: str) -> list[str]:
    text = run(command, "--help").stdout
    return shlex.split(re.search(r"Example: (bowtienet [^\n]+(?:\n  [^\n]+)*)", text)[1])[1:]


@pytest.mark.usefixtures("short_fits")
def test_every_example_of_the_help_runs(folder, run):
    """In the order of a first session; the demo has a test of its own."""
    for command in COMMANDS[:-1]:
        arguments = example(run, command)
        assert arguments[0] == command
        result = run(*arguments)
        assert result.exit_code == 0, (command, result.stderr)
        assert result.stdout
    assert len(pd.read_csv("pred.csv")) == 10
    assert {"model.btn", "small.btn", "plots"} <= {path.name for path in folder.iterdir()}
    # The documentation says that this code gives the model of the first example.
    ours = bt.load("model.btn").predict(read("new.csv"))
    Path("model.btn").unlink()
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    np.testing.assert_array_equal(bt.load("model.btn").predict(read("new.csv")), ours)


@pytest.mark.usefixtures("short_fits")
def test_the_example_of_demo_runs_and_says_where_its_files_are(folder, run):
    result = run(*example(run, "demo"))
    assert result.exit_code == 0, result.stderr
    assert "coverage of 90 % intervals" in result.stdout
    listed = re.findall(r"^  (\S+)$", result.stdout, flags=re.MULTILINE)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*demo/**/*") if path.is_file()}
    assert set(listed) == found
    assert sum(name.endswith(".png") for name in listed) == 12
    scores = re.findall(r"^RMSE +(\S+) +(\S+)$", result.stdout, flags=re.MULTILINE)
    assert len(scores) == 2
    assert all(float(ours) < float(constant) for ours, constant in scores)


def test_help_lists_every_command(run):
    text = run("--help").stdout
    assert all(command in text for command in COMMANDS)
    assert run("--version").stdout.startswith("bowtienet ")


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_fit_and_predict_give_the_numbers_of_python(model, folder, run, library):
    result = run("fit", "data.csv", "-t", "y", "--out", "model.btn", "--json", *TINY)
    run("predict", "model.btn", "new.csv", "--out", "pred.csv", "--coverage", "0.8")
    table = bt.read_file("data.csv").to_pandas() if library == "pyarrow" else read("data.csv")
    new = bt.read_file("new.csv") if library == "pyarrow" else read("new.csv")
    train, test = train_test_split(table, test_size=0.1, random_state=0)
    ours = make_table_pipeline(regressor()).fit(train, "y")
    found = read("pred.csv")
    mean, std = ours.predict(new, return_std=True)
    np.testing.assert_array_equal(found["mean"], mean)
    np.testing.assert_array_equal(found["std"], std)
    np.testing.assert_array_equal(found[["lower", "upper"]], ours.predict_interval(new, 0.8))
    scores = json.loads(result.stdout)["scores"]["y"]["model"]
    expected = evaluate(test["y"].to_numpy(), ours.predict_dist(test))
    assert scores == {name: getattr(expected, name) for name in scores}
    loaded = bt.load("model.btn")
    np.testing.assert_array_equal(loaded.predict(new), mean)


def read(path: str) -> pd.DataFrame:
    return pd.read_csv(path, float_precision="round_trip")


def test_compare_gives_the_numbers_of_python(folder, run):
    result = run("compare", "data.csv", "--target", "y", "--splits", "2", "--json", *TINY)
    table = read("data.csv")
    expected = compare(
        table.drop(columns="y"),
        table["y"],
        regressor=regressor(random_state=None),
        n_splits=2,
        prepare=bt.TablePreparer(),
    )
    found = json.loads(result.stdout)["methods"]
    assert [one["method"] for one in found] == [one.method for one in expected]
    for ours, theirs in zip(found, expected, strict=True):
        mean = average_scores(theirs.scores)
        assert ours["mean"]["rmse"] == pytest.approx(mean.rmse, rel=1e-6)
        assert ours["mean"]["crps"] == pytest.approx(mean.crps, rel=1e-6)
        assert len(ours["seconds"]) == 2


def test_compare_and_fit_agree_on_the_same_split(folder, run):
    fitted = run("fit", "data.csv", "-t", "y", "--json", *TINY)
    compared = run("compare", "data.csv", "-t", "y", "--splits", "1", "--json", *TINY)
    ours = json.loads(compared.stdout)["methods"][0]["mean"]
    assert json.loads(fitted.stdout)["scores"]["y"]["model"] == ours


def test_all_rows_are_used_if_none_are_held_out(folder, run):
    result = run("fit", "data.csv", "-t", "y", "--test-size", "0", "--json", *TINY)
    answer = json.loads(result.stdout)
    assert answer["rows"] == {"fitted": 60, "held_out": 0}
    assert answer["scores"] is None
    everything = make_table_pipeline(regressor()).fit(read("data.csv"), "y")
    found = bt.load("data.btn").predict(read("new.csv"))
    np.testing.assert_array_equal(found, everything.predict(read("new.csv")))


def test_few_rows_are_not_held_out(folder, run):
    write_rows(folder / "few.csv", 19, seed=3)
    result = run("fit", "few.csv", "-t", "y", *TINY)
    assert "no rows were held out" in result.stdout


def test_columns_and_their_use_are_shown(folder, run):
    text = run("fit", "data.csv", "-t", "y", *TINY).stdout
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "one-hot" in lines["colour"]
    assert "missing" in lines["x2"]
    assert "date" in lines["when"]
    assert "only one value" in lines["same"]
    assert "target" in lines["y"]


def test_weights_and_dropped_columns(folder, run):
    table = read("data.csv").assign(times=1.0 + np.arange(60) % 2)
    table.to_csv("weighted.csv", index=False)
    fit = ["fit", "weighted.csv", "-t", "y", "--weight", "times", "--drop", "colour"]
    result = run(*fit, "--drop", "when", "--test-size", "0", *TINY)
    assert result.exit_code == 0, result.stderr
    expected = make_table_pipeline(regressor()).fit(
        table.drop(columns=["colour", "when"]), "y", sample_weight="times"
    )
    found = bt.load("weighted.btn").predict(read("new.csv"))
    np.testing.assert_array_equal(found, expected.predict(read("new.csv")))


def test_several_targets(folder, run):
    table = read("data.csv")
    table.assign(z=-table["y"]).to_csv("two.csv", index=False)
    result = run("fit", "two.csv", "-t", "y", "-t", "z", *TINY)
    assert result.exit_code == 0, result.stderr
    run("predict", "two.btn", "new.csv", "--out", "two-pred.csv")
    expected = ["mean_y", "mean_z", "std_y", "std_z", "lower_y", "lower_z", "upper_y", "upper_z"]
    assert read("two-pred.csv").columns.tolist() == expected
    shown = run("fit", "two.csv", "-t", "y", "-t", "z", "--json", *TINY)
    assert list(json.loads(shown.stdout)["scores"]) == ["y", "z"]
    assert run("inspect", "two.btn").exit_code == 0
    plotted = run("plot", "two.btn", "two.csv", "--target", "z")
    assert plotted.exit_code == 0, plotted.stderr
    refused = run("plot", "two.btn", "two.csv", "--target", "x")
    assert refused.exit_code == 2
    assert "the model has no target 'x'" in refused.stderr


@pytest.mark.parametrize("ending", ["tsv", "parquet", "arrow"])
def test_other_files_in_and_out(model, folder, run, ending):
    table = bt.read_file("new.csv")
    if ending == "tsv":
        table.to_pandas().to_csv("same.tsv", sep="\t", index=False)
    elif ending == "parquet":
        pyarrow.parquet.write_table(table, "same.parquet")
    else:
        pyarrow.feather.write_feather(table, "same.arrow", compression="uncompressed")
    result = run("predict", "model.btn", f"same.{ending}", "--out", f"pred.{ending}")
    assert result.exit_code == 0, result.stderr
    run("predict", "model.btn", "new.csv", "--out", "pred.csv")
    pd.testing.assert_frame_equal(bt.read_file(f"pred.{ending}").to_pandas(), read("pred.csv"))


def test_predictions_go_to_standard_output_and_beside_their_inputs(model, run):
    plain = run("predict", "model.btn", "new.csv")
    assert plain.stdout.splitlines()[0] == "mean,std,lower,upper"
    assert len(plain.stdout.splitlines()) == 11
    run("predict", "model.btn", "new.csv", "--out", "both.csv", "--with-inputs")
    both = read("both.csv")
    assert both.columns.tolist()[:6] == read("new.csv").columns.tolist()
    answer = json.loads(run("predict", "model.btn", "new.csv", "--json").stdout)
    assert answer["columns"]["mean"] == both["mean"].tolist()


def test_a_model_of_python_serves_too(folder, run):
    table = read("data.csv")[["x1", "y"]]
    fitted = regressor().fit(table, "y")
    fitted.save("plain.btn")
    result = run("predict", "plain.btn", "new.csv", "--out", "pred.csv")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(read("pred.csv")["mean"], fitted.predict(read("new.csv")[["x1"]]))
    assert run("inspect", "plain.btn").exit_code == 0
    read("data.csv").rename(columns={"y": "price"}).to_csv("price.csv", index=False)
    for named in (["data.csv"], ["price.csv", "--target", "price"]):
        plotted = run("plot", "plain.btn", *named)
        assert plotted.exit_code == 0, plotted.stderr
    refit = ["--refit", "price.csv", "--target", "price", "--rate", "0.5"]
    pruned = run("prune", "plain.btn", *refit)
    assert pruned.exit_code == 0, pruned.stderr
    missing = run("predict", "plain.btn", "plain.csv")
    assert missing.exit_code == 2


def test_models_that_know_no_names(folder, run):
    table = read("data.csv")
    regressor().fit(table[["x1"]].to_numpy(), table["y"]).save("numbers.btn")
    mixed = table[["x1", "colour"]].to_numpy(dtype=object)
    make_table_pipeline(regressor()).fit(mixed, table["y"].to_numpy()).save("mixed.btn")
    table[["x1", "y"]].to_csv("one.csv", index=False)
    table[["x1", "colour", "y"]].to_csv("two.csv", index=False)
    for model, data in (("numbers.btn", "one.csv"), ("mixed.btn", "two.csv")):
        for command in (["predict", model, data], ["plot", model, data], ["inspect", model]):
            result = run(*command)
            assert result.exit_code == 0, result.stderr
            assert "feature names" not in result.stderr
    assert "x1=red" in run("inspect", "mixed.btn").stdout


def test_prune_writes_a_smaller_model_and_can_refit_it(folder, run):
    fit = ["fit", "data.csv", "-t", "y", "--members", "1", "--combine", "equal", "--jobs", "1"]
    run(*fit, "--out", "model.btn", "--hidden", "20", "--max-iter", "60")
    answer = json.loads(run("prune", "model.btn", "--rate", "0.05", "--json").stdout)
    assert answer["model"] == "model-pruned.btn"
    assert answer["nodes"]["before"] == 20
    assert 0 < answer["nodes"]["after"] < 20
    expected = bt.load("model.btn").prune(0.05)
    new = read("new.csv")
    np.testing.assert_array_equal(bt.load("model-pruned.btn").predict(new), expected.predict(new))
    result = run(
        "prune", "model.btn", "--out", "again.btn", "--rate", "0.05", "--refit", "data.csv"
    )
    assert result.exit_code == 0, result.stderr
    assert np.isfinite(bt.load("again.btn").regressor_.elbo_)
    assert run("plot", "model-pruned.btn", "--out", "pruned").exit_code == 0
    assert not Path("pruned/elbo.png").exists()  # pruning leaves no history
    assert Path("pruned/network.png").exists()


def test_inspect_tells_people_and_machines_the_same(model, run):
    facts = json.loads(run("inspect", "model.btn", "--json").stdout)
    text = run("inspect", "model.btn").stdout
    assert facts["kind"] == "TablePipeline"
    assert facts["targets"] == ["y"]
    assert [column["name"] for column in facts["columns"]] == ["x1", "x2", "colour", "when", "same"]
    assert facts["bytes"] == model.stat().st_size
    relevance = bt.load("model.btn").feature_relevance_
    by_name = {one["name"]: one["strength"] for one in facts["relevance"]}
    assert by_name == dict(zip(relevance.name, relevance.strength, strict=True))
    assert all(name in text for name in by_name)


def test_plot_draws_what_is_asked_for(model, folder, run):
    answer = json.loads(run("plot", "model.btn", "data.csv", "--out", "all", "--json").stdout)
    assert [Path(place).stem for place in answer["pictures"]] == list(Kind)
    for place in answer["pictures"]:
        assert plt.imread(place).std() > 0.01  # not blank
    without = json.loads(run("plot", "model.btn", "--json").stdout)["pictures"]
    assert {Path(place).stem for place in without} == set(Kind) - set(NEED_ROWS)
    one = ["plot", "model.btn", "data.csv", "--out", "one", "--format", "svg"]
    result = run(*one, "--kind", "band", "--feature", "colour")
    assert result.stdout.strip() == os.path.join("one", "band.svg")
    assert plt.get_fignums() == []


def test_fit_draws_pictures_of_the_rows_held_out(folder, run):
    result = run("fit", "data.csv", "-t", "y", "--plots", "pictures", *TINY)
    assert result.exit_code == 0, result.stderr
    assert {path.stem for path in Path("pictures").iterdir()} == set(Kind)


def program(*arguments: str, env=os.environ, **settings) -> subprocess.CompletedProcess:
    env = {**env, "PYTHONPATH": SOURCE}  # whichever folder it is started in
    command = [sys.executable, "-m", "bowtienet", *arguments]
    return subprocess.run(command, text=True, check=False, env=env, **settings)


def test_a_pipe_gets_results_alone(folder):
    result = program("fit", "data.csv", "-t", "y", *TINY, capture_output=True)
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert "\r" not in result.stdout + result.stderr
    assert [line[:5] for line in result.stderr.splitlines()] == ["Note:"]  # of convergence
    quiet = program("predict", "data.btn", "new.csv", capture_output=True)
    assert quiet.stderr == ""
    assert len(quiet.stdout.splitlines()) == 11


def test_a_terminal_sees_a_bar(folder):
    """What a pseudo-terminal receives as standard error; standard output stays a pipe."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    seen: list[bytes] = []
    reader = threading.Thread(target=_listen, args=(ours, seen), daemon=True)
    reader.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    slow = ["--members", "2", "--combine", "equal", "--max-iter", "30", "--jobs", "1"]
    result = program(
        *("fit", "data.csv", "-t", "y", *slow),
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    reader.join(timeout=60)
    os.close(ours)
    text = b"".join(seen).decode()
    assert result.returncode == 0
    assert "━" in text
    assert re.search(r"fit \d/2", text)
    assert "━" not in result.stdout


def _listen(descriptor: int, seen: list[bytes]) -> None:
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(descriptor, 65536):
            seen.append(chunk)


def test_without_its_packages_the_command_says_how_to_get_them():
    code = "import sys; sys.modules['typer'] = None; from bowtienet.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr == ("Error: the command line needs typer: pip install 'bowtienet[cli]'.\n")
