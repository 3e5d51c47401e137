"""``bowtienet report`` and ``fit --report`` write what Python writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from typer.testing import CliRunner, Result

import bowtienet as bt
from bowtienet.cli.app import app
from tests.report.fits import SCRIPT, make_flats, quick
from tests.report.pages import Page

TINY = ["--members", "1", "--combine", "equal", "--max-iter", "5", "--hidden", "5", "--jobs", "1"]
pytestmark = pytest.mark.filterwarnings(
    "ignore:Most members were still:sklearn.exceptions.ConvergenceWarning"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder with flats.csv, of whose rows the second and third have no price."""
    monkeypatch.chdir(tmp_path)
    table = make_flats(60).rename(columns={"new": SCRIPT})
    table.loc[[1, 2], "price"] = np.nan
    table.to_csv("flats.csv", index=False)
    return tmp_path


@pytest.fixture
def run() -> Callable[..., Result]:
    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return call


def read(name: str) -> Page:
    return Page(Path(name).read_text(encoding="utf-8"))


def rows_of(page: Page) -> list[str]:
    """Names of the rows in the table of surprises, which stands last."""
    headers = [e.text for e in page.all("th") if e.attributes.get("scope") == "row"]
    return headers[-20:]


def scored_rmse(page: Page) -> float:
    headers = [e.text for e in page.all("th")]
    assert any(text.startswith("RMSE") for text in headers)
    cells = iter(page.elements)
    for element in cells:
        if element.tag == "th" and element.text.startswith("RMSE"):
            return float(next(e for e in cells if e.tag == "td").text)
    raise AssertionError


def test_a_report_of_rows_held_out(folder, run):
    result = run(
        "fit",
        "flats.csv",
        "-t",
        "price",
        "--report",
        "page.html",
        "--test-size",
        "0.4",
        "--json",
        *TINY,
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["report"] == "page.html"
    page = read("page.html")
    assert "were held out, and fitted to" in page.by_id("provenance").text
    assert page.by_id("scores").text.startswith("Held-out scores")
    assert "fitted to the rows of training" in page.by_id("main").text
    rmse = found["scores"]["price"]["model"]["rmse"]
    assert scored_rmse(page) == pytest.approx(rmse, rel=1e-3)
    # Rows are numbered as in the file, also behind those without a target.
    table = pd.read_csv("flats.csv")
    _, test = train_test_split(table.dropna(subset="price"), test_size=0.4, random_state=0)
    density = bt.load("flats.btn").predict_dist(test).logpdf(test["price"].to_numpy())
    assert rows_of(page) == [str(1 + row) for row in test.index[np.argsort(density)[:20]]]
    assert "numbered as in the file" in page.by_id("main").text


def test_a_report_of_all_rows_says_that_they_were_fitted(folder, run):
    result = run("fit", "flats.csv", "-t", "price", "--report", "p.html", "--test-size", "0", *TINY)
    assert result.exit_code == 0, result.stderr
    assert "no rows were held out" in result.stderr
    assert "report: p.html" in result.stdout
    page = read("p.html")
    assert "No rows were held out" in page.by_id("provenance").text
    assert "fitted to the rows that it is scored on" in page.by_id("main").text


def test_a_report_of_a_model_file(folder, run):
    assert run("fit", "flats.csv", "-t", "price", "-t", "rent", *TINY).exit_code == 0
    result = run("report", "flats.btn", "flats.csv", "--title", "My flats", "--max-inputs", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.strip() == "report: report.html"
    page = read("report.html")
    assert page.all("h1")[0].text == "My flats"
    assert "flatter" in page.by_id("provenance").text
    assert [len(page.all("select")), len(page.all("option"))] == [2, 6]
    assert "bowtienet predict flats.btn" in page.all("code")[-1].text
    assert len(page.all("script")) == 1
    machine = json.loads(run("report", "flats.btn", "flats.csv", "--json").stdout)
    assert machine["rows"] == 58
    assert machine["bytes"] == Path(machine["report"]).stat().st_size


def test_weights_are_no_input(folder, run):
    fit = ["fit", "flats.csv", "-t", "price", "--weight", "rent", "--report", "page.html"]
    table = pd.read_csv("flats.csv")
    table.assign(rent=table["rent"].abs()).to_csv("flats.csv", index=False)
    assert run(*fit, *TINY).exit_code == 0
    assert "they say as much as" in read("page.html").by_id("main").text
    text = read("page.html").by_id("columns").text
    assert "rent" not in text
    assert "city" in text


def test_a_model_that_knows_no_target(folder, run):
    table = pd.read_csv("flats.csv").dropna()
    quick().fit(table[["area"]], table["price"].to_numpy()).save("plain.btn")
    result = run("report", "plain.btn", "flats.csv", "--target", "price")
    assert result.exit_code == 2  # the table has gaps, and this model takes none
    table.to_csv("full.csv", index=False)
    result = run("report", "plain.btn", "full.csv", "--target", "price", "--out", "p.html")
    assert result.exit_code == 0, result.stderr
    assert read("p.html").all("h1")[0].text == "A model of price"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["report", "flats.btn", "flats.csv", "--out", "page.pdf"], "let it end in .html"),
        (["report", "flats.btn", "none.csv"], "none.csv"),
        (["report", "none.btn", "flats.csv"], "none.btn does not exist"),
        (["report", "flats.btn", "flats.csv", "--out", "no/page.html"], "create it first"),
        (["report", "flats.btn", "flats.csv", "--coverage", "2"], "coverage"),
        (["fit", "flats.csv", "-t", "price", "--report", "page"], "let it end in .html"),
        (["fit", "flats.csv", "-t", "price", "-o", "a.html", "--report", "a.html"], "two files"),
    ],
)
def test_mistakes_are_told_before_the_work(folder, run, arguments, words):
    if arguments[0] == "report" and "none.btn" not in arguments:
        assert run("fit", "flats.csv", "-t", "price", *TINY).exit_code == 0
    before = sorted(path.name for path in folder.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
