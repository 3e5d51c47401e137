"""Commands on real files: what they write, what they refuse, and that data are only data."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from bowtienet import load
from bowtienet.cli import predict as predict_module
from bowtienet.cli.app import app
from bowtienet.cli.data import Rows, hold_out

FAST = ("--effort", "fast")


def run(*words: Any, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def houses(folder: Path, rng: np.random.Generator) -> pd.DataFrame:
    area, rooms = rng.uniform(30.0, 200.0, 120), rng.integers(1, 6, 120)
    city = rng.choice(["Lima", "Oslo"], 120)
    price = 3.0 * area + 20.0 * (city == "Oslo") + rng.normal(0.0, 10.0, 120)
    columns = {"address": range(120), "area": area, "rooms": rooms, "city": city, "price": price}
    frame = pd.DataFrame(columns).round(2)
    frame.to_csv("houses.csv", index=False)
    return frame


def test_fit_and_predict_are_those_of_python(
    houses: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks too, and of columns in another order."""
    said = run("fit", "houses.csv", "-t", "price", "--exclude", "address", *FAST).output
    assert all(word in said for word in ("CRPS", "RMSE", "bow tie", "linear", "chance"))
    houses[["city", "price", "rooms", "address", "area"]].to_csv("houses.csv", index=False)
    monkeypatch.setattr(predict_module, "ROWS", 7)
    run(
        *("predict", "houses.btn", "houses.csv", "--out", "p.csv", "--id", "address"),
        *("--quantiles", "0.25,0.75", "--coverage", "0.8"),
    )
    written, model = pd.read_csv("p.csv"), load("houses.btn")
    rows = houses[["area", "rooms", "city"]]
    assert list(written) == [
        *("address", "prediction", "std", "lower_80", "upper_80", "q0.25", "q0.75")
    ]
    mean, std = model.predict(rows, return_std=True)
    parts = [mean, std, *model.predict_interval(rows, 0.8).T]
    parts += [*model.predict_quantiles(rows, [0.25, 0.75]).T]
    expected = np.column_stack(parts)
    np.testing.assert_allclose(written.to_numpy()[:, 1:], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(written["address"], houses["address"])


def test_held_out_rows_are_the_last_or_none_if_asked(houses: pd.DataFrame) -> None:
    options = ("fit", "houses.csv", "-t", "price", "--exclude", "address", "--json", *FAST)
    content = json.loads(run(*options, "--test-last", 0.25).stdout)
    assert (content["rows"], content["held_out_rows"]) == (90, 30)
    saved, rows = load("houses.btn"), houses[["area", "rooms", "city"]]
    again = load("houses.btn").set_params(verbose=0).fit(rows[:90], houses["price"][:90])
    np.testing.assert_array_equal(saved.predict(rows), again.predict(rows))
    content = json.loads(run(*options, "--test-size", 0).stdout)
    assert content["rows"] == 120
    assert "scores" not in content
    options = ("--test-size", 0, "--report", "page.html")
    assert "--report" in run("fit", "houses.csv", "-t", "price", *options, *FAST, code=2).stderr


def test_equal_rows_are_not_seen_in_training(houses: pd.DataFrame) -> None:
    """Held-out ones and those of the fit have no row in common, of classes either."""
    twice = pd.concat([houses, houses], ignore_index=True)
    for outcome, target in (("numbers", "price"), ("classes", "city")):
        parts = {"features": twice.drop(columns=target), "target": twice[target]}
        rows = Rows(**parts, outcome=outcome, extra={}, notes=())
        seen, held = hold_out(rows, 0.2, last=False, seed=0)
        assert held is not None
        assert not set(seen.features["address"]) & set(held.features["address"])
        assert len(held.target) == 48


def test_all_problems_are_said_at_once(houses: pd.DataFrame) -> None:
    said = run(
        *("fit", "houses.csv", "-t", "prize", "--exclude", "adress", "-o", "houses.csv"),
        *("--set", "colour=red", "--report", "no/page.html"),
        code=2,
    ).stderr
    for word in ("'prize'", "'adress'", "the input", "colour", "no does not"):
        assert word in said
    assert [path.name for path in Path().iterdir()] == ["houses.csv"]
    for option, value in (("--effort", "bset"), ("--test-last", "7"), ("--outcome", "rank")):
        assert option in run("fit", "houses.csv", "-t", "price", option, value, code=2).stderr


def test_a_saved_model_has_a_page_and_a_failure_leaves_no_file(houses: pd.DataFrame) -> None:
    run("fit", "houses.csv", "-t", "price", *FAST)
    run("report", "houses.btn", "houses.csv", "--out", "page.html")
    assert "price" in Path("page.html").read_text(encoding="utf-8")
    houses.drop(columns="area").to_csv("new.csv", index=False)
    said = run("predict", "houses.btn", "new.csv", "--out", "p.csv", code=2).stderr
    assert "'area'" in said
    assert not list(Path().glob("*p.csv*"))


def test_probabilities_of_classes(houses: pd.DataFrame) -> None:
    run("fit", "houses.csv", "-t", "city", "--exclude", "address", "-o", "city.btn", *FAST)
    written = pd.read_csv(StringIO(run("predict", "city.btn", "houses.csv").stdout))
    shares = written[["probability_Lima", "probability_Oslo"]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-5)
    expected = np.where(shares[:, 1] > 0.5, "Oslo", "Lima")
    assert np.mean(written["prediction"] == expected) > 0.98
    refused = run("predict", "city.btn", "houses.csv", "--quantiles", "0.5", code=2).stderr
    assert "--quantiles" in refused


def test_counts_have_an_exposure(folder: Path, rng: np.random.Generator) -> None:
    years, risk = rng.uniform(0.5, 3.0, 200), rng.normal(size=200)
    claims = rng.poisson(years * np.exp(0.5 * risk + 0.5))
    pd.DataFrame({"risk": risk, "years": years, "claims": claims}).to_csv("c.csv", index=False)
    options = ("--outcome", "counts", "--exposure", "years", "--report", "c.html", *FAST)
    run("fit", "c.csv", "-t", "claims", *options)
    assert "years" not in load("c.btn").feature_names_in_
    with_years = run("predict", "c.btn", "c.csv", "--exposure", "years")
    one = run("predict", "c.btn", "c.csv")
    assert "--exposure" in one.stderr
    mean, rate = (pd.read_csv(StringIO(r.stdout))["prediction"] for r in (with_years, one))
    np.testing.assert_allclose(mean, rate * years, rtol=1e-4)


def test_intervals_by_calibration_rows(houses: pd.DataFrame) -> None:
    options = ("--exclude", "address", "--test-size", 0, *FAST)
    run("fit", "houses.csv", "-t", "price", *options)
    rows = houses[["area", "rooms", "city"]]
    said = run("predict", "houses.btn", "houses.csv", "--calibration", "houses.csv").stdout
    expected = load("houses.btn").predict_interval(
        rows, method="conformal", calibration=(rows, houses["price"])
    )
    found = pd.read_csv(StringIO(said))[["lower_90", "upper_90"]]
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    houses.drop(columns="price").to_csv("bare.csv", index=False)
    refused = run("predict", "houses.btn", "houses.csv", "--calibration", "bare.csv", code=2)
    assert "'price'" in refused.stderr


def test_parameters_and_weights(houses: pd.DataFrame) -> None:
    houses.assign(weight=1.0 * (houses["city"] == "Lima")).to_csv("w.csv", index=False)
    options = ("--weight", "weight", "--set", "hidden_layer_sizes=(7,)", "--set", "prior=laplace")
    run("fit", "w.csv", "-t", "price", *options, *FAST)
    model = load("w.btn")
    assert model.hidden_layer_sizes == (7,)
    assert model.prior == "laplace"
    assert "weight" not in model.feature_names_in_
    refused = run("fit", "w.csv", "-t", "price", "--weight", "city", *FAST, code=2).stderr
    assert "--weight" in refused


def test_comparison(houses: pd.DataFrame) -> None:
    options = ("--splits", 2, "--effort", "fast", "--exclude", "address")
    said = " ".join(run("compare", "houses.csv", "-t", "price", *options).stdout.split())
    for word in ("bow tie", "linear", "constant", "gradient boosting", "120 held-out rows in 2"):
        assert word in said


def test_names_are_no_markup(folder: Path, rng: np.random.Generator) -> None:
    odd = "[bold]a\x1b[31m"
    frame = pd.DataFrame({odd: rng.normal(size=60), "y[/red]": rng.normal(size=60)})
    frame.to_csv("odd.csv", index=False)
    said = run("check", "odd.csv", "-t", "y[/red]").output
    assert "[bold]a\\x1b[31m" in said
    assert "\x1b" not in said
    assert "[/red]" in run("fit", "odd.csv", "-t", "y[/red]", *FAST).output


def test_cells_are_no_formulas(folder: Path, rng: np.random.Generator) -> None:
    """Of labels, carried columns and names; numbers stay numbers."""
    names = np.array(["=1+1", "@x", "plain"])[np.arange(60) % 3]
    frame = pd.DataFrame({"a": rng.normal(size=60), "-id": names, "n": "-5", "y": names})
    frame.to_csv("odd.csv", index=False)
    run("fit", "odd.csv", "-t", "y", "--exclude", "-id", "--exclude", "n", *FAST)
    said = run("predict", "odd.btn", "odd.csv", "--id", "-id", "--id", "n").stdout
    written = pd.read_csv(StringIO(said))
    assert list(written)[:3] == ["'-id", "n", "prediction"]
    assert set(written["'-id"]) == {"'=1+1", "'@x", "plain"}
    assert set(written["prediction"]) <= {"'=1+1", "'@x", "plain"}
    assert set(written["n"]) == {-5}


def test_check_of_many_columns_is_short(folder: Path, rng: np.random.Generator) -> None:
    frame = pd.DataFrame(rng.normal(size=(40, 500)), columns=[f"x{i}" for i in range(500)])
    frame.assign(empty=np.nan, y=1.0).to_csv("wide.csv", index=False)
    said = run("check", "wide.csv", "-t", "y", "--outcome", "numbers").output
    assert len(said.splitlines()) < 20
    assert "501" in said
    assert "empty" in said


def test_check_names_what_becomes_of_columns(houses: pd.DataFrame) -> None:
    said = run("check", "houses.csv", "-t", "price").stdout
    kinds = [line.split()[:2] for line in said.splitlines()]
    assert ["city", "category"] in kinds
    assert ["area", "number"] in kinds
    assert "(numbers)" in said
    # A target in doubt is said with the option that decides.
    assert "--outcome" in run("check", "houses.csv", "-t", "rooms").stderr


def test_rows_without_a_target_are_left_out(houses: pd.DataFrame) -> None:
    houses.loc[:9, "price"] = np.nan
    houses.to_csv("gaps.csv", index=False)
    result = run("fit", "gaps.csv", "-t", "price", "--json", *FAST)
    content = json.loads(result.stdout)
    assert content["rows"] + content["held_out_rows"] == 110


@pytest.mark.parametrize("command", ["demo", "check", "fit", "predict", "compare", "report"])
def test_help_has_an_example(command: str) -> None:
    assert "Example: bowtienet " + command in run(command, "--help").output


@pytest.mark.slow
def test_demo(folder: Path) -> None:
    said = run("demo", "--out", "shown").output
    paths = [Path(line.strip()) for line in said.splitlines() if line.startswith("  shown")]
    assert len(paths) == 3
    assert all(path.stat().st_size > 10_000 for path in paths)


@pytest.mark.process
def test_the_module_is_the_command(houses: pd.DataFrame) -> None:
    command = [sys.executable, "-m", "bowtienet", "check", "-", "--target", "price"]
    done = subprocess.run(
        command, input=Path("houses.csv").read_bytes(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert b"area" in done.stdout
