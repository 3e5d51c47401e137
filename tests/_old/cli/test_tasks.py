"""Targets of classes and counts: what they are taken for, and the numbers of Python."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import bowtienet as bt
from bowtienet._old import BowTieClassifier, BowTieRegressor, FitOptions
from bowtienet._old.cli.plot import BY_TASK, OF_MODELS
from bowtienet._old.cli.tasks import Task, describe_task, find_task, read_task
from bowtienet._old.ensemble.settings import EFFORTS
from bowtienet._old.evaluation import average_scores, compare, evaluate_classes, evaluate_counts
from tests._old.cli.conftest import TINY, accepted, refused

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SETTINGS = {
    "n_estimators": 1,
    "max_iter": 5,
    "random_state": 0,
    "options": FitOptions(weighting="equal"),
}


def make_rows(n_rows: int, seed: int) -> pd.DataFrame:
    """Two numbers, and targets of every kind that depend on the first."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, size=(n_rows, 2)).round(3)
    hours = rng.uniform(0.5, 4.0, size=n_rows).round(2)
    score = 2.0 * x[:, 0] + rng.logistic(size=n_rows)
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "churn": np.where(score > 0.0, "yes", "no"),
            "kind": np.select([score < -1.0, score > 1.0], ["low", "top"], "mid"),
            "hours": hours,
            "visits": rng.poisson(hours * np.exp(0.5 * x[:, 0])),
        }
    )


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    """The working folder, with data.csv (80 rows) and new.csv (20 rows)."""
    make_rows(80, 501).to_csv(empty_folder / "data.csv", index=False)
    make_rows(20, 502).to_csv(empty_folder / "new.csv", index=False)
    return empty_folder


def fit(target: str, *options: object) -> dict:
    others = {"churn", "kind", "visits"} - {target}
    drop = [part for other in sorted(others) for part in ("--drop", other)]
    told = accepted(
        *("fit", "data.csv", "-t", target, "-o", "model.btn", "--force", "--json"),
        *(*drop, *TINY, *options),
    )
    return json.loads(told.stdout)


def features(table: pd.DataFrame, *more: str) -> pd.DataFrame:
    return table[["a", "b", *more]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["u", "v", "w"] * 10, Task.CLASSES),
        (pa.array(["u", "v"] * 10).dictionary_encode(), Task.CLASSES),
        ([True, False, None] * 10, Task.CLASSES),
        ([0, 1] * 10, Task.CLASSES),
        ([-1.0, 1.0, None] * 10, Task.CLASSES),
        ([0.5, 1.0] * 10, Task.NUMBERS),
        ([0, 1, 2] * 10, Task.NUMBERS),
        ([0, 1], Task.NUMBERS),
        ([1.0] * 10, Task.NUMBERS),
        ([f"{i},5" for i in range(9)] * 3, Task.NUMBERS),
    ],
)
def test_what_a_target_holds_says_what_it_is(values, expected):
    assert find_task(pa.table({"y": values}), "data.csv", ["y"]) == expected


def test_options_say_otherwise_and_several_targets_are_numbers():
    table = pa.table({"y": [0, 1] * 10, "z": [0, 1] * 10})
    assert find_task(table, "t", ["y"], Task.COUNTS) == Task.COUNTS
    assert find_task(table, "t", ["y"], exposure="z") == Task.COUNTS
    assert find_task(table, "t", ["y", "z"]) == Task.NUMBERS
    with pytest.raises(ValueError, match="one target"):
        find_task(table, "t", ["y", "z"], Task.CLASSES)
    with pytest.raises(ValueError, match="--exposure"):
        find_task(table, "t", ["y"], Task.CLASSES, "z")
    with pytest.raises(ValueError, match="--task"):
        read_task("class")


def test_names_of_rows_are_no_classes_unless_that_is_said():
    table = pa.table({"y": [f"row {i}" for i in range(30)]})
    with pytest.raises(ValueError, match="--task classes"):
        find_task(table, "data.csv", ["y"])
    assert find_task(table, "data.csv", ["y"], Task.CLASSES) == Task.CLASSES


@pytest.mark.parametrize(
    ("values", "task", "words"),
    [
        (["no", "yes"], Task.CLASSES, "target y: 2 classes (no, yes)"),
        ([True, False], Task.CLASSES, "target y: 2 classes (false, true)"),
        ([0, 1], Task.CLASSES, "target y: 2 classes (0, 1); --task numbers fits numbers"),
        ([0.0, 1.0], Task.CLASSES, "target y: 2 classes (0, 1); --task numbers fits numbers"),
        (list("abcdefg"), Task.CLASSES, "target y: 7 classes (a, b, c, d, e and 2 more)"),
        ([0.5, 2.0], Task.NUMBERS, "target y: numbers"),
        ([-1, 2], Task.NUMBERS, "target y: numbers"),
        (
            [0, 2],
            Task.NUMBERS,
            "target y: numbers; whole numbers from 0 on: --task counts fits counts",
        ),
    ],
)
def test_one_line_says_what_the_target_is(values, task, words):
    assert describe_task(pa.table({"y": values}), ["y"], task, None) == words


def test_classes_give_the_numbers_of_python(folder):
    told = fit("churn", "--drop", "hours")
    assert (told["task"], told["classes"]) == ("classes", ["no", "yes"])
    assert "noise" not in told["fit"]
    table, new = pd.read_csv("data.csv"), pd.read_csv("new.csv")
    train, test = train_test_split(
        table, test_size=0.1, random_state=0, stratify=table["churn"] == "yes"
    )
    ours = BowTieClassifier((5,), **SETTINGS).fit(features(train), train["churn"])
    scores, y = told["scores"]["churn"], test["churn"].to_numpy()
    found = ours.predict_proba(features(test))
    assert scores["model"] == pytest.approx(asdict(evaluate_classes(y, found, ours.classes_)))
    shares = [train["churn"].eq(label).mean() for label in ours.classes_]
    constant = asdict(evaluate_classes(y, np.tile(shares, (len(y), 1)), ours.classes_))
    assert scores["class shares"] == pytest.approx(constant)
    scaler = StandardScaler().fit(features(train))
    line = LogisticRegression().fit(scaler.transform(features(train)), train["churn"])
    linear = line.predict_proba(scaler.transform(features(test)))
    expected = asdict(evaluate_classes(y, linear, line.classes_))
    assert scores["logistic"] == pytest.approx(expected, rel=1e-3)

    accepted("predict", "model.btn", "new.csv", "--out", "pred.csv", "--entropy")
    predicted = pd.read_csv("pred.csv", float_precision="round_trip")
    assert list(predicted) == ["class", "p_no", "p_yes", "epistemic", "aleatoric"]
    np.testing.assert_array_equal(predicted[["p_no", "p_yes"]], ours.predict_proba(features(new)))
    np.testing.assert_array_equal(predicted["class"], ours.predict(features(new)))
    parts = ours.predict_components(features(new))
    np.testing.assert_array_equal(predicted["aleatoric"], parts.aleatoric)
    np.testing.assert_array_equal(predicted["epistemic"], parts.epistemic)
    assert list(json.loads(accepted("predict", "model.btn", "new.csv", "--json").stdout)["columns"])


def test_people_are_told_the_classes_and_their_scores(folder):
    printed = accepted("fit", "data.csv", "-t", "kind", "-o", "m.btn", *TINY).stdout
    assert printed.splitlines()[0] == "target kind: 3 classes (low, mid, top)"
    for words in ("log loss", "Brier score", "class shares", "logistic", "calibration error"):
        assert words in printed
    assert "ROC" not in printed  # of two classes only
    assert "RMSE" not in printed
    shown = accepted("inspect", "m.btn", "new.csv").stdout
    assert "a BowTieClassifier for kind: 3 classes (low, mid, top)" in shown
    assert "drop in log probability" in shown
    told = json.loads(accepted("inspect", "m.btn", "--json").stdout)
    assert (told["task"], told["classes"]) == ("classes", ["low", "mid", "top"])


def test_a_class_of_one_row_is_fitted_and_rows_without_a_label_are_left_out(folder):
    table = make_rows(80, 501)
    table.loc[3, "churn"] = "perhaps"
    table.loc[[5, 6], "churn"] = None
    table.to_csv("data.csv", index=False)
    for seed in range(500, 504):
        told = fit("churn", "--seed", seed, "--test-size", "0.5")
        assert told["classes"] == ["no", "perhaps", "yes"]
        assert sum(told["rows"].values()) == 78


def test_counts_give_the_numbers_of_python(folder):
    told = fit("visits", "--exposure", "hours")
    assert (told["task"], told["classes"]) == ("counts", None)
    train, test = train_test_split(pd.read_csv("data.csv"), test_size=0.1, random_state=0)
    ours = BowTieRegressor((5,), outcome="counts", **SETTINGS)
    ours.fit(features(train), train["visits"], exposure=train["hours"])
    found = ours.predict_dist(features(test), exposure=test["hours"])
    expected = asdict(evaluate_counts(test["visits"].to_numpy(), found))
    assert told["scores"]["visits"]["model"] == pytest.approx(expected)
    assert told["scores"]["visits"]["constant"]["n_rows"] == 8

    arguments = ["predict", "model.btn", "new.csv", "--coverage", "0.8", "--exposure", "hours"]
    accepted(*arguments, "--out", "pred.csv")
    predicted = pd.read_csv("pred.csv", float_precision="round_trip")
    new = pd.read_csv("new.csv")
    found = ours.predict_dist(features(new), exposure=new["hours"])
    np.testing.assert_array_equal(predicted["mean"], found.mean())
    np.testing.assert_array_equal(predicted["std"], found.std())
    np.testing.assert_array_equal(predicted[["lower", "upper"]], found.interval(0.8))
    assert predicted["lower"].dtype.kind == "i"
    plain = accepted("predict", "model.btn", "new.csv").stdout.splitlines()[1]
    assert float(plain.split(",")[0]) == ours.predict(features(new))[0]

    rows = ("inspect", "model.btn", "new.csv", "--json")
    own, other = (
        json.loads(accepted(*rows, *more).stdout)["importance"]
        for more in (("--exposure", "hours"), ())
    )
    source = bt.open_source(
        new[["a", "b", "hours", "visits"]], "visits", target="count", exposure="hours"
    )
    drops = dict(zip("ab", ours.importance(source).log_density_drop, strict=True))
    assert {one["name"]: one["log_density_drop"] for one in own} == pytest.approx(drops)
    assert own != other


def test_counts_need_to_be_asked_for(folder):
    printed = accepted("fit", "data.csv", "-t", "visits", "-o", "m.btn", *TINY).stdout
    assert "--task counts fits counts" in printed.splitlines()[0]
    assert "whole numbers in an interval" not in printed
    asked = accepted("fit", "data.csv", "-t", "visits", "--task", "counts", "-o", "n.btn", *TINY)
    assert asked.stdout.splitlines()[0] == "target visits: counts"
    assert "whole numbers in an interval" in asked.stdout


@pytest.mark.parametrize("target", ["churn", "visits"])
def test_plots_that_apply_are_drawn_and_others_are_refused(folder, target):
    task = fit(target, *(("--task", "counts") if target == "visits" else ()))["task"]
    found = json.loads(accepted("plot", "model.btn", "new.csv", "--json").stdout)["plots"]
    assert {Path(place).stem for place in found} == {*OF_MODELS, *BY_TASK[task]}
    said = refused("plot", "model.btn", "new.csv", "--kind", "band")
    assert BY_TASK[task][0] in said
    assert "needs rows" in refused("plot", "model.btn", "--kind", "importance")
    one = pd.read_csv("new.csv").query(f"{target} == {target}[0]")
    one.to_csv("one.csv", index=False)
    if task == "classes":
        assert "two classes" in refused("plot", "model.btn", "one.csv", "--kind", "roc")
        drawn = accepted("plot", "model.btn", "one.csv", "-o", "one", "--kind", "confusion")
        assert drawn.stdout.strip().endswith("confusion.png")


def test_what_is_for_numbers_says_so(folder):
    fit("churn")
    assert "numbers" in refused("prune", "model.btn", "data.csv")
    assert "numbers" in refused("predict", "model.btn", "new.csv", "--method", "conformal")
    assert "--exposure" in refused("predict", "model.btn", "new.csv", "--exposure", "hours")
    assert "reliability" in refused("plot", "model.btn", "new.csv", "--kind", "pit")
    begin = ("fit", "data.csv", "-o", "other.btn", *TINY)
    assert "--noise" in refused(*begin, "-t", "churn", "--noise", "constant")
    assert "--exposure" in refused(
        *begin, "-t", "churn", "--task", "classes", "--exposure", "hours"
    )
    page = ("--task", "counts", "--report", "page.html")
    assert "reports" in refused(*begin, "-t", "visits", *page)
    assert "counts" in refused(*begin, "-t", "a", "--task", "counts")
    assert "churn" in refused(*begin, "-t", "churn", "--task", "numbers")
    assert "--task" in refused(*begin, "-t", "churn", "--task", "ranks")
    pd.read_csv("data.csv").query("churn == 'no'").to_csv("one.csv", index=False)
    assert "one class" in refused("fit", "one.csv", "-t", "churn", *TINY)
    accepted(*begin, "-t", "visits", "--task", "counts")
    assert "--entropy" in refused("predict", "other.btn", "new.csv", "--entropy")
    assert "reports" in refused("report", "other.btn", "new.csv")
    assert "'nothing'" in refused("predict", "other.btn", "new.csv", "--exposure", "nothing")
    assert "numbers" in refused("compare", "data.csv", "-t", "visits", "--task", "counts")


def test_classes_are_compared_as_in_python(folder):
    begin = ["compare", "data.csv", "-t", "churn", "--drop", "kind", "--drop", "visits"]
    options = [*TINY, "--splits", "2", "--seed", "500", "--test-size", "0.2"]
    told = json.loads(accepted(*begin, *options, "--json").stdout)
    table = pd.read_csv("data.csv").drop(columns=["kind", "visits"])
    ours = BowTieClassifier((5,), **{**SETTINGS, "random_state": None})
    found = compare(table, "churn", classifier=ours, n_splits=2, random_state=500, test_size=0.2)
    assert told["task"] == "classes"
    assert [one["method"] for one in told["methods"]] == [one.method for one in found]
    for one, expected in zip(told["methods"], found, strict=True):
        assert one["mean"] == pytest.approx(asdict(average_scores(expected.scores)))
    printed = accepted(*begin, *options).stdout
    assert "log loss" in printed
    assert "LogisticRegression" in printed


def test_a_report_of_held_out_classes(folder):
    told = fit("kind", "--report", "page.html", "--test-size", "0.25")
    page = Path("page.html").read_text()
    assert told["report"] == "page.html"
    assert "Held-out scores beside a logistic regression" in page
    assert "fitted to 60 training rows" in page
    accepted("report", "model.btn", "new.csv", "-o", "other.html", "--title", "Kinds")
    assert "<title>Kinds</title>" in Path("other.html").read_text()


def test_the_commands_of_the_manual_run(folder, monkeypatch):
    """Those of its section on classes and counts, with as little effort as there is."""
    page = Path(__file__).parents[3] / "docs" / "guide" / "commandline.md"
    section = page.read_text().partition("## Classes and counts")[2].partition("\n## ")[0]
    [block] = re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL)
    monkeypatch.setitem(EFFORTS, "balanced", EFFORTS["fast"])
    columns = {"customers": ["a", "b", "churn"], "shops": ["a", "b", "hours", "visits"]}
    for name, chosen in columns.items():
        pd.read_csv("data.csv")[chosen].to_csv(f"{name}.csv", index=False)
    pd.read_csv("new.csv").to_csv("new-shops.csv", index=False)
    with joblib.parallel_config("sequential"):
        for line in block.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "bowtienet"
            accepted(*arguments)
    assert list(pd.read_csv("churn-predictions.csv")) == ["class", "p_no", "p_yes"]
    assert list(pd.read_csv("visits-predictions.csv")) == ["mean", "std", "lower", "upper"]
    assert {path.stem for path in Path("plots").iterdir()} == {"reliability", "confusion"}
