"""``bowtienet report`` and ``fit --report`` write what Python writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from typer.testing import CliRunner, Result

import bowtienet as bt
from bowtienet._old.cli.app import app
from tests._old.report.fits import SCRIPT, make_flats
from tests._old.report.pages import Page

TINY = ["--members", "1", "--weighting", "equal", "--max-iter", "5", "--hidden", "5", "--jobs", "1"]
pytestmark = pytest.mark.filterwarnings("ignore:max_iter:sklearn.exceptions.ConvergenceWarning")


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


def test_a_report_of_held_out_rows(folder, run):
    held = ["--report", "page.html", "--test-size", "0.4", "--json"]
    result = run("fit", "flats.csv", "-t", "price", *held, *TINY)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["report"] == "page.html"
    page = read("page.html")
    assert "held out" in page.by_id("provenance").text
    assert "training rows" in page.by_id("main").text
    # Rows are numbered as in the file, also behind those without a target.
    table = pd.read_csv("flats.csv")
    _, test = train_test_split(table.dropna(subset="price"), test_size=0.4, random_state=0)
    below = bt.load("flats.btn").predict_dist(test).cdf(test["price"].to_numpy())
    tails = np.minimum(below, 1.0 - below)
    numbers = [e.text for e in page.all("th") if re.fullmatch(r"\d+", e.text)]
    assert numbers[:20] == [str(1 + row) for row in test.index[np.argsort(tails)[:20]]]


def test_a_report_of_all_rows_says_that_they_were_fitted(folder, run):
    result = run("fit", "flats.csv", "-t", "price", "--report", "p.html", "--test-size", "0", *TINY)
    assert result.exit_code == 0, result.stderr
    assert "too good" in read("p.html").by_id("provenance").text


def test_a_report_of_a_model_file(folder, run):
    assert run("fit", "flats.csv", "-t", "price", "-t", "rent", *TINY).exit_code == 0
    result = run("report", "flats.btn", "flats.csv", "--title", "My flats", "--max-features", "2")
    assert result.exit_code == 0, result.stderr
    page = read("report.html")
    assert page.all("h1")[0].text == "My flats"
    chosen = [e for e in page.all("select") if "data-chooses" in e.attributes]
    assert len(chosen) == 4
    assert SCRIPT in page.by_id("columns").text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "page.pdf"], "page.pdf"),
        (["--out", "no/page.html"], "no"),
        (["--coverage", "2"], "coverage"),
    ],
)
def test_mistakes_are_told_before_the_work(folder, run, arguments, words):
    assert run("fit", "flats.csv", "-t", "price", *TINY).exit_code == 0
    before = sorted(path.name for path in folder.iterdir())
    result = run("report", "flats.btn", "flats.csv", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == before
