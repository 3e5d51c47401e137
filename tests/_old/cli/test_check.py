"""Messy files: every decision and problem at once, dialects that are remembered, identifiers."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from rich.console import Console
from rich.progress import Progress

import bowtienet as bt
from bowtienet._old.cli import console
from bowtienet._old.cli.identifiers import counts_up, named_like_identifier
from bowtienet._old.cli.predict import _print
from bowtienet._old.cli.writing import write
from bowtienet._old.data.dialect import Dialect
from tests._old.cli.conftest import TINY, accepted, refused, run

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
COLUMNS = ["Kunden-Nr", "Name", "Baujahr", "Fläche", "verkauft", "Ort", "Land", "Miete", "Preis"]


@pytest.fixture(autouse=True)
def folder(empty_folder: Path) -> Path:
    return empty_folder


def houses(n_rows: int, seed: int, first: int = 1) -> pd.DataFrame:
    """As a program would write them."""
    rng = np.random.default_rng(seed)
    area, year = rng.uniform(30.0, 200.0, n_rows).round(1), rng.integers(1891, 2020, n_rows)
    days = pd.to_datetime(rng.integers(15_000, 19_000, n_rows), unit="D")
    return pd.DataFrame(
        {
            "Kunden-Nr": first + np.arange(n_rows),
            "Name": [f"Haus {first + i}" for i in range(n_rows)],
            "Baujahr": year,
            "Fläche": np.where(rng.random(n_rows) < 0.1, np.nan, area),
            "verkauft": days.strftime("%Y-%m-%d"),
            "Ort": rng.choice(["Zürich", "Genève", "Bern"], n_rows),
            "Land": "CH",
            "Miete": [f"{1000 + i},50 €" for i in range(n_rows)],
            "Preis": (3000.0 * area * (1.0 + (year - 1900) / 200.0)).round(2),
        }
    )


def german(table: pd.DataFrame, path: str) -> None:
    """As an office program of Switzerland exports them: 1.234,50 and 31.12.2023, in cp1252."""
    with_days = table.assign(verkauft=pd.to_datetime(table["verkauft"]).dt.strftime("%d.%m.%Y"))
    if "Preis" in table:
        prices = [f"{x:_.2f}".replace(".", ",").replace("_", ".") for x in table["Preis"]]
        with_days = with_days.assign(Preis=prices)
    with_days.to_csv(path, sep=";", decimal=",", encoding="cp1252", index=False)


def answer(*arguments: object) -> dict:
    return json.loads(accepted(*arguments, "--json").stdout)


def said(*arguments: object) -> dict[str, tuple[str, str | None]]:
    """What becomes of each column, and the option; of rows all sentences together."""
    found: dict[str, tuple[str, str | None]] = {}
    for one in answer("check", *arguments)["decisions"]:
        before = found.get(one["subject"], ("",))[0]
        found[one["subject"]] = (f"{before} {one['what']}".strip(), one["option"])
    return found


def test_every_decision_stands_in_one_table():
    table = houses(80, 501)
    table.loc[[3, 4], "Preis"] = np.nan
    table = pd.concat([table, table.iloc[[7]]])
    table.to_csv("data.csv", index=False)
    found = said("data.csv", "-t", "Preis")
    assert "81 rows, 9 columns; delimiter ','" in found["(file)"][0]
    for words in ("1 equal to an earlier one: kept", "2 without a target: left out", "8 of 79"):
        assert words in found["(rows)"][0]
    assert found["Kunden-Nr"] == (
        "left out (identifiers: whole numbers that count up)",
        "--keep Kunden-Nr",
    )
    assert found["Name"] == ("left out (identifiers: 80 texts, all different)", "predict --id Name")
    assert re.match(r"number from 18\d\d to 20\d\d$", found["Baujahr"][0])
    assert re.search(r"missing: median \d+.* and an indicator", found["Fläche"][0])
    assert found["Fläche"][1] == "--drop Fläche"
    assert found["verkauft"][0].startswith("date from 2011")
    assert found["Ort"] == ("3 categories, one-hot", "--drop Ort")
    assert found["Land"] == ("left out (only one value)", None)
    assert "read as numbers" in found["Miete"][0]
    assert re.match(r"target: numbers from [\d,]+ to [\d,]+$", found["Preis"][0])
    assert set(found) == {"(file)", "(rows)", *COLUMNS}
    less = answer("check", "data.csv", "-t", "Preis", "--drop-duplicates", "--drop", "Ort")
    whats = [one["what"] for one in less["decisions"]]
    assert "1 equal to an earlier one: left out" in whats
    assert "8 of 78 are held out and scored" in whats


def test_truth_values_and_numbers_among_which_are_words():
    table = pd.DataFrame({"y": np.arange(40.0), "b": np.arange(40) % 3 == 0})
    table["x"] = [str(i % 20) if i % 7 else "broken" for i in range(40)]
    table.to_csv("data.csv", index=False)
    found = said("data.csv", "-t", "y")
    assert found["b"][0] == "true or false, as 1 and 0"
    assert "texts that look like numbers, such as '1'" in found["x"][0]
    assert "but for 'broken': empty these cells to have numbers" in found["x"][0]


def test_an_infinite_target_is_not_a_missing_one():
    table = houses(60, 504)
    table.loc[3, "Preis"] = np.inf
    table.to_csv("data.csv", index=False)
    result = run("check", "data.csv", "-t", "Preis")
    assert result.exit_code == 2
    assert "infinite value of 'Preis'" in " ".join(result.stdout.split())
    assert "without a target" not in result.stdout


def test_fit_prints_the_table_of_check_and_no_note_says_it_again():
    houses(60, 502).to_csv("data.csv", index=False)
    checked = accepted("check", "data.csv", "-t", "Preis")
    lines = checked.stdout.splitlines()
    assert lines[-1] == "no problems: fit can begin"
    fitted = accepted("fit", "data.csv", "-t", "Preis", *TINY)
    assert fitted.stdout.splitlines()[: len(lines) - 2] == lines[:-2]
    assert not re.search("Name|Miete|target", fitted.stderr)
    assert Path("data.btn").exists()
    assert checked.stderr == ""


def test_many_columns_of_numbers_are_counted():
    table = pd.DataFrame(np.random.default_rng(512).normal(size=(30, 61)).round(3))
    table.columns = [f"x{i}" for i in range(60)] + ["y"]
    table["x50"] = 1.0
    table.loc[3, "x51"] = 1234567.0
    table.loc[4, "x51"] = np.nan
    table.to_csv("data.csv", index=False)
    printed = accepted("check", "data.csv", "-t", "y").stdout
    assert re.search(r"^\(columns\) +18 more numbers", printed, flags=re.MULTILINE)
    assert re.search(r"^x50 +left out", printed, flags=re.MULTILINE)
    assert re.search(
        r"^x51 +number from -[\d.]+ to 1,234,567; 1 missing", printed, flags=re.MULTILINE
    )
    assert len(answer("check", "data.csv", "-t", "y")["decisions"]) == 63


def test_all_problems_are_told_at_once():
    table = houses(60, 503)
    table["Ort"] = [f"Ort {i % 30}" for i in range(60)]
    table["hoch"] = np.where(np.arange(60) == 5, np.inf, 1.0 * np.arange(60))
    table.to_csv("data.csv", index=False)
    begin = ("data.csv", "-t", "Preis", "--max-categories", "10")
    result = run("check", *begin)
    assert result.exit_code == 2
    assert result.stdout.count("PROBLEM") == 2
    assert result.stderr == "Error: 2 problems would stop a fit: see the table.\n"
    told = json.loads(run("check", *begin, "--json").stdout)
    assert [one["subject"] for one in told["problems"]] == ["hoch", "Ort"]
    assert "row 6, counted from 1" in told["problems"][0]["what"]  # of the file, not of the split
    assert told["problems"][1]["option"] == "--drop Ort"
    sentence = refused("fit", *begin, *TINY)
    assert "2 problems" in sentence
    assert "'Ort'" in sentence
    assert "'hoch'" in sentence
    names = run("check", "data.csv", "-t", "Pries", "--drop", "Orte")
    assert names.stdout.count("PROBLEM") == 2
    assert "'Preis'" in names.stdout
    text = run("check", "data.csv", "-t", "Name", "--drop", "Ort", "--drop", "hoch")
    assert "too many for classes" in " ".join(text.stdout.split())
    assert "Baujahr" in text.stdout


def test_one_table_in_two_dialects_gives_one_model():
    table, new = houses(60, 504), houses(10, 505, first=900)
    table.to_csv("plain.csv", index=False)
    german(table, "amt.csv")
    new.to_csv("new.csv", index=False)
    german(new.drop(columns="Preis"), "neu.csv")
    found = said("amt.csv", "-t", "Preis")
    assert "delimiter ';', decimal comma, encoding cp1252" in found["(file)"][0]
    assert found["(file)"][1] == "--delimiter, --decimal, --encoding"
    assert "written day.month.year" in found["verkauft"][0]
    assert found["verkauft"][1] == "--date-format"
    told = answer("fit", "amt.csv", "-t", "Preis", *TINY)
    assert told["dialect"]["decimal"] == ","
    accepted("fit", "plain.csv", "-t", "Preis", *TINY)
    columns = ("mean", "std", "lower", "upper")
    frames = [
        pd.DataFrame(answer("predict", *pair)["columns"])[list(columns)]
        for pair in (("plain.btn", "new.csv"), ("amt.btn", "neu.csv"), ("amt.btn", "new.csv"))
    ]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    pd.testing.assert_frame_equal(frames[0], frames[2])
    model = bt.load("amt.btn")
    expected = {"delimiter": ";", "decimal": ",", "encoding": "cp1252"}
    assert model.dialect_ == Dialect(**expected, dates={"verkauft": "%d.%m.%Y"})
    assert "decimal comma" in accepted("inspect", "amt.btn").stdout
    accepted("prune", "amt.btn", "amt.csv", "-o", "small.btn")
    assert bt.load("small.btn").dialect_ == model.dialect_
    accepted("plot", "amt.btn", "amt.csv", "--kind", "pit")


def test_what_new_rows_do_not_prove_is_remembered():
    """A few rows with whole numbers, and days that may be months."""
    rng = np.random.default_rng(506)
    days = [f"{day}/{month}/2023" for day, month in rng.integers(1, 12, (60, 2))]
    days[0] = "31/12/2023"
    x = rng.uniform(0.0, 9.0, 60).round(2)
    table = pd.DataFrame({"day": days, "x": x, "y": (x**2).round(3)})
    table.to_csv("data.csv", sep=";", decimal=",", index=False)
    accepted("fit", "data.csv", "-t", "y", *TINY)
    Path("few.csv").write_text("day;x\n03/04/2023;2\n05/06/2023;3\n")
    Path("iso.csv").write_text("day,x\n2023-04-03,2\n2023-06-05,3\n")
    means = [
        answer("predict", "data.btn", f"{name}.csv")["columns"]["mean"] for name in ("few", "iso")
    ]
    assert means[0] == means[1]
    other = answer("predict", "data.btn", "few.csv", "--date-format", "%m/%d/%Y")["columns"]["mean"]
    assert other != means[0]
    Path("unsure.csv").write_text(
        "day,y\n" + "".join(f"03/0{1 + i % 9}/2023,{i}\n" for i in range(20))
    )
    assert "the other way round" in said("unsure.csv", "-t", "y")["day"][0]


def test_categories_that_look_like_numbers_or_dates_in_a_few_rows():
    """They were texts in training, and no prediction depends on how few rows are asked for."""
    rng = np.random.default_rng(511)
    codes = rng.choice(["1.2.2024", "3.4.2024", "none"], 60)
    table = pd.DataFrame({"code": codes, "z": rng.normal(size=60), "y": 0.1 * (codes == "none")})
    table["y"] = (table["y"] + rng.normal(size=60)).round(3)
    table.to_csv("data.csv", index=False)
    accepted("fit", "data.csv", "-t", "y", *TINY)
    table.to_csv("all.csv", index=False)
    whole = answer("predict", "data.btn", "all.csv")["columns"]["mean"]
    few = table[table["code"] != "none"]
    few.to_csv("few.csv", index=False)
    result = accepted("predict", "data.btn", "few.csv", "--json")
    assert json.loads(result.stdout)["columns"]["mean"] == [whole[i] for i in few.index]
    assert result.stderr == ""


def test_a_target_with_thousands_is_numbers():
    rng = np.random.default_rng(507)
    x = rng.uniform(1.0, 9.0, 40).round(3)
    prices = [f"{1000.0 * value:,.2f} $" for value in x]
    pd.DataFrame({"x": x, "y": prices}).to_csv("data.csv", index=False)
    assert "written like 1,234.5 $" in said("data.csv", "-t", "y")["y"][0]
    told = answer("fit", "data.csv", "-t", "y", *TINY)
    assert told["task"] == "numbers"
    accepted("plot", "data.btn", "data.csv", "--kind", "pit")


def test_the_manual_shows_what_check_prints(monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / "guide" / "commandline.md").read_text()
    content, transcript = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)[:2]
    command, _, expected = transcript.partition("\n")
    Path("houses.csv").write_text(content)
    monkeypatch.setattr(console, "_WIDE", 80)
    assert accepted(*command.split()[2:]).stdout == expected


# Identifiers


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[
            (name, True)
            for name in ("id", "ID", "row_id", "PassengerId", "Kunden-Nr", "Unnamed: 0")
        ],
        *[(name, True) for name in ("index", "customer key", "orderNo", "rowid", "Id.")],
        *[
            (name, False)
            for name in ("paid", "width", "humid", "year", "monkey", "x1", "grid", "Nord")
        ],
    ],
)
def test_names_of_identifiers(name, expected):
    assert named_like_identifier(name) == expected


def test_numbers_that_count_up():
    shuffled = np.random.default_rng(508).permutation(40)
    assert counts_up(shuffled.astype(float))
    assert counts_up(np.cumsum(1.0 + np.arange(30.0)))
    assert not counts_up(np.arange(9.0))
    assert not counts_up(np.arange(30.0) / 2.0)
    assert not counts_up(np.r_[np.arange(30.0), 3.0])
    assert not counts_up(np.r_[np.arange(30.0), np.nan])
    assert not counts_up(1000.0 * shuffled)


def test_identifiers_are_left_out_unless_they_shall_stay():
    table = houses(60, 509)[["Kunden-Nr", "Name", "Fläche", "Preis"]]
    table.to_csv("data.csv", index=False)
    begin = ("fit", "data.csv", "-t", "Preis", "--force", *TINY)
    names = [one["name"] for one in answer(*begin)["columns"]]
    assert names == ["Fläche"]
    kept = [one["name"] for one in answer(*begin, "--keep", "Kunden-Nr")["columns"]]
    assert kept == ["Kunden-Nr", "Fläche"]
    assert "'Name'" in refused(*begin, "--keep", "Name")
    assert "'Nam'" in refused(*begin, "--keep", "Nam")
    told = accepted("compare", "data.csv", "-t", "Preis", "--splits", "1", *TINY).stderr
    assert told.count("'Kunden-Nr'") == told.count("'Name'") == 1
    table[["Kunden-Nr", "Preis"]].to_csv("only.csv", index=False)
    assert answer("fit", "only.csv", "-t", "Preis", *TINY)["columns"][0]["name"] == "Kunden-Nr"


def test_identifiers_go_with_the_predictions_letter_by_letter():
    table = houses(40, 510)[["Fläche", "Ort", "Preis"]]
    table.to_csv("data.csv", index=False)
    accepted("fit", "data.csv", "-t", "Preis", *TINY)
    Path("new.csv").write_text(" code ;Fläche;Ort;d\n007;50,5;Bern;1.2.2024\nNA;60;Bern;3.4.2024\n")
    begin = ("predict", "data.btn", "new.csv", "--id", "code", "--id", "d")
    accepted(*begin, "--out", "out.csv")
    found = pd.read_csv("out.csv", dtype=str, keep_default_na=False)
    assert list(found) == ["code", "d", "mean", "std", "lower", "upper"]
    assert found["code"].tolist() == ["007", "NA"]
    assert found["d"].tolist() == ["1.2.2024", "3.4.2024"]
    assert "'cod'" in refused("predict", "data.btn", "new.csv", "--id", "cod")
    write(bt.read_table("new.csv"), Path("new.parquet"))
    plain = answer("predict", "data.btn", "new.parquet", "--id", "code")["columns"]
    assert len(plain["code"]) == 2
    table.assign(mean=1).to_csv("mean.csv", index=False)
    assert "--id" in refused("predict", "data.btn", "mean.csv", "--id", "mean")


# Screens


def test_people_at_a_terminal_see_few_digits(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table = pa.table(
        {"id": ["a"] * 30, "mean": np.full(30, 12345.678901), "lower": np.full(30, np.pi)}
    )
    _print(table, False, 0.8, console.Output(as_json=False))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert printed[0].split() == ["id", "mean", "lower"]
    assert printed[1].split() == ["a", "12,346", "3.142"]
    assert printed[-2:] == [
        "and 10 more (--out FILE writes them all)",
        "lower to upper: 80 % interval",
    ]
    assert len(printed) == 23


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1891, "1891"),
        (12345.6, "12,346"),
        (0.123456, "0.1235"),
        (-1e6, "-1,000,000"),
        (2e20, "2e+20"),
    ],
)
def test_numbers_for_people(value, expected):
    assert console.number(value) == expected


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_progress_is_one_line_with_one_time(width, verbose):
    screen = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    columns = console._bar_columns()
    with Progress("{task.description}", *columns, console=screen, auto_refresh=False) as progress:
        bar = console.Bar(progress, "fitting", verbose=verbose)
        bar.show("fit 3/10 | ELBO -123.4 | " + "x" * 200, 0.25, short="fit 3/10", left=7400.0)
        bar.show("fit 3/10 | ELBO -122.9", 0.2, short="fit 3/10", left=90.0)
        progress.refresh()
    shown = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.file.getvalue()))
    last = [line for line in shown if line.strip()][-1]
    assert max(map(len, shown)) <= width
    assert last.count(" left") == 1
    assert "90 s left" in last or "89 s left" in last
    assert ("ELBO" in last) == (verbose and width > 40)
    if width > 40:
        assert last.startswith("fit 3/10")


def test_the_time_of_a_loop_follows_from_what_is_done(monkeypatch):
    clock = iter([0.0, 10.0, 10.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    told = {}

    class Quiet:
        console = Console(width=80)

        def add_task(self, *_, **__):
            return 0

        def update(self, task, **settings):
            told.update(settings)

    bar = console.Bar(Quiet(), "comparing")
    bar.show("comparing: 2 of 8 fits done", 0.25)
    assert told["deadline"] == pytest.approx(40.0)
    assert told["share"] == 0.25
