"""Mistakes end with code 2 and one sentence, and leave every file as it was."""

import datetime
import errno
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from bowtienet.cli.app import app
from bowtienet.cli.commands import sentence
from bowtienet.cli.console import printable

TINY = ("--members", "1", "--combine", "equal", "--max-iter", "5", "--hidden", "5", "--jobs", "1")
SWITCHES = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "BOWTIENET_DEBUG")
ESCAPE = "\x1b[31mred\x1b[0m"
N_ROWS = 30


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, and none of the switches that change what is printed."""
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """One model of `table()`, as bytes."""
    place = tmp_path_factory.mktemp("fitted")
    pa.parquet.write_table(table(), place / "data.parquet")
    result = run("fit", place / "data.parquet", "-t", "y", "-o", place / "model.btn", *TINY)
    assert result.exit_code == 0, result.stderr
    return (place / "model.btn").read_bytes()


@pytest.fixture
def model(folder, fitted):
    """The model in the folder."""
    (folder / "model.btn").write_bytes(fitted)
    return "model.btn"


def table(n_rows=N_ROWS, **more):
    draws = np.random.default_rng(0)
    columns = {
        "a": draws.normal(size=n_rows).round(3),
        "b": draws.normal(size=n_rows).round(3),
        "c": (["u", "v", "w"] * n_rows)[:n_rows],
        "y": draws.normal(size=n_rows).round(3),
    }
    return pa.table(columns | more)


def text(content=None):
    stream = io.BytesIO()
    pa.csv.write_csv(table() if content is None else content, stream)
    return stream.getvalue().decode()


def parquet(content):
    stream = io.BytesIO()
    pa.parquet.write_table(content, stream)
    return stream.getvalue()


def put(content, name="data.csv"):
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def snapshot(folder):
    """Every file and folder, hidden ones too, and what files hold."""
    found = sorted(Path(folder).rglob("*"))
    return {str(place): place.read_bytes() if place.is_file() else None for place in found}


def refused(*arguments):
    """The sentence of a command that must do nothing but say it."""
    before = snapshot(".")
    result = run(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.stderr, result.exception)
    *notes, last = result.stderr.splitlines()
    assert last.startswith("Error: "), result.stderr
    assert all(note.startswith("Note: ") for note in notes), result.stderr
    assert result.stdout == ""
    assert snapshot(".") == before
    check_plain(result.stderr)
    assert last.endswith((".", "?")), last
    return last.removeprefix("Error: ")


def accepted(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    check_plain(result.stdout + result.stderr)
    return result


def check_plain(output):
    """Nothing that a terminal would obey."""
    assert all(character.isprintable() or character == "\n" for character in output), output


def refused_fit(content, *options, name="data.csv", target="y"):
    """The sentence of a fit whose place holds an older model."""
    put(content, name)
    put("an older model", "model.btn")
    return refused("fit", name, "--target", target, "--out", "model.btn", *TINY, *options)


def accepted_fit(content, *options, name="data.csv", target="y"):
    put(content, name)
    result = accepted("fit", name, "-t", target, "-o", "model.btn", "--json", *TINY, *options)
    assert run("inspect", "model.btn").exit_code == 0
    return json.loads(result.stdout), result.stderr


def uses(found):
    return {column["name"]: column["use"] for column in found["columns"]}


# Files that are no tables


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("", "data.csv", "data.csv is empty: give"),
        ("\n\n", "data.csv", "data.csv is empty: give"),
        ("a,b,y\n", "data.csv", "data.csv has names of columns but no rows: give"),
        (text().replace(",", ";"), "data.csv", "give the delimiter ';', and the decimal"),
        (text().replace(",", "\t"), "data.csv", "give the delimiter 'tab', and the decimal"),
        (text() + "1,2\n", "data.csv", "line 32 of data.csv has 2 columns where the first has 4"),
        ("a,a,y\n1,2,3\n2,3,4\n", "data.csv", "data.csv has several columns called 'a': rename"),
        (text().replace("u", "é").encode("latin-1"), "data.csv", "is not text in utf-8 .byte 0xE9"),
        (text().encode("utf-16"), "data.csv", "is text in UTF-16: name the encoding utf-16"),
        (text(), "data.dat", r"data.dat is not a kind of file .* give CSV, TSV, Parquet or Arrow"),
        (b"PK\x03\x04", "data.xlsx", "save the sheet as CSV"),
        (parquet(table()), "data.csv", "data.csv is a Parquet file: let its name end in .parquet"),
        (parquet(table())[:300], "data.parquet", "data.parquet cannot be read"),
        (text(), "data.parquet", "data.parquet is no Parquet or Arrow file"),
        (b"", "data.parquet", "data.parquet is empty"),
    ],
)
def test_files_that_are_no_tables(content, name, words):
    assert re.search(words, refused_fit(content, name=name))


def test_a_file_that_is_not_there():
    put(text(), "houses.csv")
    said = refused("fit", "house.csv", "-t", "y", "-o", "model.btn")
    assert said == "house.csv does not exist; did you mean houses.csv?"


def test_a_folder_without_tables():
    Path("folder").mkdir()
    said = refused("fit", "folder", "-t", "y", "-o", "model.btn")
    assert said.startswith("folder is an empty folder: give")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delimiter", ";;"), "delimiter must be one plain character, got ';;'"),
        (("--delimiter", ""), "delimiter must be one plain character, got ''"),
        (("--delimiter", ";"), "give the delimiter ','"),
        (("--decimal", ",,"), "decimal must be one plain character, got ',,'"),
        (("--encoding", "latin-99"), "'latin-99' is no known encoding: try 'utf-8'"),
        (("--encoding", "rot13"), "'rot13' is no known encoding: try 'utf-8'"),
        (("--encoding", "utf-16"), "is not text in utf-16"),
        (("--encoding", "ascii"), "is not text in ascii"),
    ],
)
def test_how_text_is_written(options, words):
    assert words in refused_fit(text().replace("u", "é"), *options)


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (text().replace("\n", "\r\n"), "data.csv", ()),
        ("\ufeff" + text(), "data.csv", ()),
        (text().replace(",", " , "), "data.csv", ()),
        (text().replace(",", "\t"), "data.tsv", ()),
        (
            text().replace(",", ";").replace(".", ","),
            "d.csv",
            ("--delimiter", ";", "--decimal", ","),
        ),
        (text().encode("utf-16"), "data.csv", ("--encoding", "utf-16")),
        (parquet(table()), "data.parquet", ()),
    ],
)
def test_one_table_in_many_ways(fitted, content, name, options):
    accepted_fit(content, *options, name=name)
    assert Path("model.btn").read_bytes() == fitted


# Columns


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("Y", r"data.csv has no column 'Y'; did you mean 'y'\?"),
        ("zzzzz", "data.csv has no column 'zzzzz'; there are 'a', 'b', 'c', 'y'."),
        ("", "data.csv has no column ''; there are"),
        ("c", "the column 'c' of data.csv holds text, such as 'u', where numbers are needed"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_targets_that_are_none(command, target, words):
    put(text())
    out = ("--out", "model.btn") if command == "fit" else ()
    assert re.search(words, refused(command, "data.csv", "--target", target, *out, *TINY))


def test_the_entry_that_makes_a_target_text_is_named():
    rows = "".join(f"{i},{i}\n" for i in range(500))
    said = refused_fit(f"a,y\n{rows}1,oops\n")
    assert said.startswith("the column 'y' of data.csv holds text, such as 'oops', where numbers")
    said = refused_fit("a,y\n" + "".join(f'{i},"{i},000"\n' for i in range(1, 30)))
    assert "holds text, such as '1,000'" in said


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([datetime.date(2024, 1, 1 + i) for i in range(N_ROWS)], "dates or times, such as '2024-"),
        ([datetime.time(10, i) for i in range(N_ROWS)], "dates or times, such as '10:00:00'"),
        ([datetime.timedelta(i) for i in range(N_ROWS)], "dates or times, such as '0:00:00'"),
        ([[i] for i in range(N_ROWS)], r"lists or groups of values, such as '\[0\]'"),
        ([b"x"] * N_ROWS, "bytes, such as"),
        (pa.array(["p", "q"] * 15).dictionary_encode(), "text, such as 'p'"),
    ],
)
def test_targets_of_other_types(values, words):
    content = parquet(table(y=pa.array(values) if isinstance(values, list) else values))
    said = refused_fit(content, name="data.parquet")
    assert re.search(f"the column 'y' of data.parquet holds {words}", said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "y"), "'y' is named twice, as target, weight or drop: name it once."),
        (("--drop", "y"), "'y' is named twice, as target, weight or drop: name it once."),
        (("--weight", "y"), "'y' is named twice, as target, weight or drop: name it once."),
        (("--drop", "aa"), "data.csv has no column 'aa'; did you mean 'a'?"),
        (("--weight", "weight"), "data.csv has no column 'weight'; there are"),
        (("--weight", "c"), "the column 'c' of data.csv holds text"),
        (("--drop", "a", "--drop", "b", "--drop", "c"), "no columns but those named: inputs are"),
        (("--weight", "a"), "the weights 'a' of data.csv must be numbers of at least 0, but"),
    ],
)
def test_columns_that_cannot_be_used_so(options, words):
    assert words in refused_fit(text(), *options)


def test_a_target_alone():
    said = refused_fit("y\n1\n2\n3\n")
    assert said == "data.csv has no columns but those named: inputs are needed too."


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -1.0, 2.0], "but 10 are negative, infinite or missing: use 0 to leave a row out"),
        ([1.0, None, 2.0], "but 10 are negative, infinite or missing"),
        ([1.0, math.inf, 2.0], "but 10 are negative, infinite or missing"),
        ([0.0, 0.0, 0.0], "the weights 'w' of data.csv are all 0: no row would count."),
    ],
)
def test_weights_that_are_none(weights, words):
    assert words in refused_fit(text(table(w=weights * 10)), "--weight", "w")


def test_100_000_categories():
    rows = "".join(f"{i},name {i},{i}\n" for i in range(100_000))
    said = refused_fit(f"a,who,y\n{rows}", "--test-size", "0")
    assert said.startswith("column 'who' holds 100,000 different texts, such as 'name 0'")
    assert "leave the column out" in said


def test_one_text_among_numbers():
    rows = "".join(f"{i},{i}\n" for i in range(300))
    said = refused_fit(f"a,y\n{rows}oops,1\n", "--test-size", "0")
    assert said.startswith("column 'a' holds text where numbers are expected, 1 of 301 values")
    assert "such as 'oops'" in said


def test_nothing_to_learn_from():
    assert "each of its columns holds fewer than two" in refused_fit("a,y\n1,1\n1,2\n1,3\n")
    assert "each of its columns holds fewer than two" in refused_fit("a,y\n,1\n,2\n,3\n")
    assert refused_fit("a,y\n1,\n2,\n") == (
        "the target 'y' of data.csv has no values: name another."
    )
    assert "at least 2 are needed: give more rows" in refused_fit("a,y\n1,1\n")


@pytest.mark.parametrize("value", ["inf", "-inf", "1e308"])
def test_targets_that_are_too_large(value):
    said = refused_fit(text() + f"1,2,u,{value}\n")
    assert said.startswith(f"the target 'y' of data.csv holds {float(value):g}, too large")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, math.inf, 2.0] * 10, "the column 'z' of data.parquet holds infinite numbers, 10 of"),
        ([[1, 2], [3], []] * 10, "the column 'z' of data.parquet holds lists or groups of values"),
        ([{"p": i} for i in range(N_ROWS)], "the column 'z' of data.parquet holds lists or groups"),
    ],
)
def test_inputs_that_no_model_takes(values, words):
    content = parquet(table(z=values))
    assert words in refused_fit(content, name="data.parquet")
    accepted_fit(content, "--drop", "z", name="data.parquet")


# Settings

WIDTHS = "widths parted by commas, such as 50,20, or 0 for none"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--coverage", "0"), "coverage must lie strictly between 0 and 1, got 0"),
        (("--coverage", "1"), "coverage must lie strictly between 0 and 1, got 1"),
        (("--coverage", "2"), "coverage must lie strictly between 0 and 1, got 2"),
        (("--coverage", "nan"), "coverage must lie strictly between 0 and 1, got nan"),
        (("--test-size", "1"), "--test-size must be at least 0 and below 1, got 1."),
        (("--test-size", "-1"), "--test-size must be at least 0 and below 1, got -1."),
        (("--test-size", "nan"), "--test-size must be at least 0 and below 1, got nan."),
        (("--test-size", "0.99"), "0.99"),
        (
            ("--hidden", "abc"),
            f"--hidden must be {WIDTHS}; got 'abc'.",
        ),
        (
            ("--hidden", "-5"),
            f"--hidden must be {WIDTHS}; got '-5'.",
        ),
        (
            ("--hidden", "5.5"),
            f"--hidden must be {WIDTHS}; got '5.5'.",
        ),
        (("--seed", str(2**40)), str(2**40)),
        (("--out", "none/model.btn"), "none does not exist: create it first."),
        (("--out", "."), ". is a folder: add the name of a file."),
        (("--out", "data.csv"), "data.csv is the file that is read: choose another name"),
        (("--out", "../{folder}/data.csv"), "is the file that is read: choose another name"),
        (("--plots", "data.csv"), "data.csv is a file: name a folder for the pictures."),
        (("--plots", "none/plots"), "none does not exist: create it first."),
    ],
)
def test_settings_that_are_none(folder, options, words):
    options = [option.format(folder=folder.name) for option in options]
    assert words in refused_fit(text(), *options)


@pytest.mark.parametrize(
    "options",
    [("--prior", "horseshoe"), ("--combine", "best"), ("--jobs", "0")],
)
def test_settings_that_the_regressor_refuses(options):
    assert options[0].strip("-") in refused_fit(text(), *options)


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit",),
        ("fit", "data.csv"),
        ("fit", "data.csv", "-t", "y", "--no-such-option"),
        ("fit", "data.csv", "-t", "y", "--coverage", "much"),
        ("fit", "data.csv", "-t", "y", "--members", "0"),
        ("fit", "data.csv", "-t", "y", "--max-iter", "0"),
        ("fit", "data.csv", "-t", "y", "--seed", "-1"),
        ("compare", "data.csv", "-t", "y", "--splits", "0"),
        ("plot", "model.btn", "--kind", "pie"),
        ("fitt", "data.csv"),
    ],
)
def test_commands_that_cannot_be_parsed(arguments):
    put(text())
    before = snapshot(".")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert snapshot(".") == before


# What is no mistake


def test_a_column_of_one_value_is_left_out():
    content = text(table(one=[5] * N_ROWS, empty=[None] * N_ROWS, word=["same"] * N_ROWS))
    found, _ = accepted_fit(content)
    for name, use in {
        "one": "only one value",
        "empty": "no values",
        "word": "only one value",
    }.items():
        assert uses(found)[name] == f"left out: {use}"
    result = accepted("fit", "data.csv", "-t", "y", "-o", "model.btn", *TINY)
    assert re.search(r"^one +left out: only one value", result.stdout, re.MULTILINE)


def test_rows_without_a_target_are_left_out():
    found, said = accepted_fit(text(table(y=[1.0, None, 2.5] * 10)))
    assert found["rows"] == {"fitted": 18, "held_out": 2}
    assert "Note: 10 rows without a target left out.\n" in said


def test_dates_times_and_texts_with_newlines():
    content = table(
        when=pa.array([datetime.datetime(2024, 1, 1, 0, i) for i in range(N_ROWS)]),
        day=pa.array([datetime.date(2024, 1, 1 + i) for i in range(N_ROWS)]),
        note=['two\nlines, "quoted"', "plain"] * 15,
    )
    found, _ = accepted_fit(text(content))
    assert uses(found)["when"].startswith("date")
    assert uses(found)["day"].startswith("date")
    assert uses(found)["note"] == "2 categories, one-hot"
    long = table(span=pa.array([datetime.timedelta(i) for i in range(N_ROWS)]))
    found, _ = accepted_fit(parquet(long), name="data.parquet")
    assert uses(found)["span"] == "duration, in days"


def test_missing_inputs_are_imputed():
    content = text(table(a=[1.0, None, 2.0] * 10, c=["u", None, "v"] * 10))
    found, _ = accepted_fit(content, "--test-size", "0")
    assert "missing: median 1.5 and an indicator" in uses(found)["a"]
    assert "missing: an indicator" in uses(found)["c"]


def test_names_are_text_and_never_commands():
    names = (ESCAPE, "[red]x[/red]", "[/]", ":smile:", "bell\x07", "back\x08", "\u202eright")
    more = {name: np.arange(N_ROWS) % 7 for name in names}
    put(text(table(**more)))
    result = accepted("fit", "data.csv", "-t", "y", "-o", "model.btn", *TINY)
    for name in names:
        assert printable(name) in result.stdout
    assert r"\x1b[31mred\x1b[0m" in result.stdout
    shown = accepted("inspect", "model.btn").stdout
    assert all(printable(name) in shown for name in names)
    found = json.loads(accepted("inspect", "model.btn", "--json").stdout)
    assert set(names) < set(uses(found))


def test_errors_hold_no_escapes():
    assert printable(ESCAPE) in refused_fit(text(), target=ESCAPE)
    assert r"\x1b[31mred" in refused_fit(f"{ESCAPE},{ESCAPE},y\n1,2,3\n")
    assert printable(ESCAPE) in refused("inspect", f"{ESCAPE}.btn")


def test_notes_about_file_names_hold_no_escapes(model):
    put("".join(f"{line},\n" for line in text().splitlines()), f"{ESCAPE}.csv")
    result = accepted("predict", model, f"{ESCAPE}.csv")
    assert result.stderr == (
        f"Note: {printable(ESCAPE)}.csv has no name for column 5, which is left out.\n"
    )


# Predictions


def test_new_columns_are_ignored(model):
    put(text())
    expected = accepted("predict", model, "data.csv")
    put(text(table(new=["text"] * N_ROWS).select(["new", "y", "c", "b", "a"])), "more.csv")
    found = accepted("predict", model, "more.csv")
    assert (found.stdout, found.stderr) == (expected.stdout, "")
    put(text(table().drop_columns(["y"])), "less.csv")
    assert accepted("predict", model, "less.csv").stdout == expected.stdout


def test_new_categories_are_noted(model):
    put("a,b,c\n1,2,u\n1,2,new\n1,2,\n")
    result = accepted("predict", model, "data.csv")
    assert len(result.stdout.splitlines()) == 4
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Note: ")
    assert "column 'c', 1 row, such as 'new'" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,c\n1,u\n", "lacks the column 'b' that the model needs: add or rename it."),
        ("A,b,c\n1,2,u\n", "lacks the column 'a' (is it 'A'?) that the model needs"),
        ("q\n1\n", "lacks the columns 'a', 'b', 'c' that the model needs: add or rename them."),
        ("a,b,c\n1,oops,u\n", "column 'b' held numbers in training and now holds text, such as"),
        ("a,b,c\n1,2024-01-01,u\n", "column 'b' held numbers in training and now holds dates"),
        ("a,b,c\n1,inf,u\n", "column 'b' (1 infinite)"),
        ("a,b,c\n", "data.csv has names of columns but no rows"),
        ("", "data.csv is empty"),
        ("a;b;c\n1;2;u\n", "give the delimiter ';'"),
        ("a,a,b,c\n1,1,2,u\n", "data.csv has several columns called 'a'"),
    ],
)
def test_tables_that_cannot_be_predicted(model, content, words):
    put(content)
    put("older", "out.csv")
    assert words in refused("predict", model, "data.csv")
    assert words in refused("predict", model, "data.csv", "--out", "out.csv")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--coverage", "0"), "coverage must lie strictly between 0 and 1"),
        (("--out", "out.txt"), "out.txt is no name for a table: let it end in one of .csv, .tsv"),
        (("--out", "data.csv"), "data.csv is the file that is read: choose another name"),
        (("--out", "none/out.csv"), "none does not exist: create it first."),
        (("--out", "folder.csv"), "folder.csv is a folder: add the name of a file."),
    ],
)
def test_predictions_that_have_no_place(model, options, words):
    put(text())
    Path("folder.csv").mkdir()
    assert words in refused("predict", model, "data.csv", *options)


def test_inputs_beside_predictions(model):
    put(text(table(mean=np.arange(N_ROWS))))
    said = refused("predict", model, "data.csv", "--with-inputs")
    assert said.startswith("the table has a column 'mean' already: leave --with-inputs out")
    put(parquet(table(z=[[1, 2]] * N_ROWS)), "data.parquet")
    said = refused("predict", model, "data.parquet", "--with-inputs")
    assert said.startswith("the column 'z' holds lists or groups of values, which text cannot")
    assert said == refused("predict", model, "data.parquet", "--with-inputs", "--out", "out.csv")
    accepted("predict", model, "data.parquet", "--with-inputs", "--out", "out.parquet")
    assert pa.parquet.read_table("out.parquet").column("z").to_pylist() == [[1, 2]] * N_ROWS


# Model files


def damaged(content, kind):
    if kind == "short":
        return content[: len(content) // 2]
    if kind == "flipped":
        return content[:-1] + bytes([content[-1] ^ 1])
    return {"empty": b"", "foreign": b"some other file of bytes", "table": text().encode()}[kind]


@pytest.mark.parametrize("kind", ["short", "flipped", "empty", "foreign", "table"])
@pytest.mark.parametrize("command", ["predict", "prune", "plot", "inspect"])
def test_files_that_are_no_models(fitted, command, kind):
    put(text())
    put(damaged(fitted, kind), "bad.btn")
    data = ("data.csv",) if command == "predict" else ()
    said = refused(command, "bad.btn", *data)
    assert said.startswith("bad.btn ")
    assert re.search("is truncated|was altered|is damaged|is not a bowtienet file", said)
    assert said.endswith(("copy it again.", "give one that bowtienet has saved."))


@pytest.mark.parametrize("command", ["predict", "prune", "plot", "inspect"])
def test_models_that_are_not_there(command):
    put(text())
    data = ("data.csv",) if command == "predict" else ()
    assert refused(command, "none.btn", *data) == "none.btn does not exist: check its name."
    Path("folder.btn").mkdir()
    said = refused(command, "folder.btn", *data)
    assert said == "folder.btn is a folder: add the name of a file."


@pytest.mark.parametrize("rate", ["0", "1", "-1", "2", "nan"])
def test_rates_that_are_none(model, rate):
    said = refused("prune", model, "--out", "small.btn", "--rate", rate)
    assert said.startswith("--rate must lie between 0 and 1, got")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b,c\n1,2,u\n2,3,v\n", "data.csv has no column 'y'; there are"),
        ("a,b,y\n1,2,3\n2,3,4\n", "lacks the column 'c' that the model needs"),
        ("", "data.csv is empty"),
    ],
)
def test_tables_that_cannot_be_fitted_on(model, content, words):
    put(content)
    put("older", "small.btn")
    assert words in refused("prune", model, "--out", "small.btn", "--refit", "data.csv")


def test_pruning_needs_another_place(model):
    assert "is the file that is read" in refused("prune", model, "--out", model)
    assert "none does not exist" in refused("prune", model, "--out", "none/small.btn")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--kind", "pit"), "pit needs rows with targets: name a table after the model."),
        (("less.csv",), "less.csv has no column 'y'; there are"),
        (("data.csv", "--coverage", "1"), "coverage must lie strictly between 0 and 1"),
        (("--out", "data.csv"), "data.csv is a file: name a folder for the pictures."),
        (("--out", "none/plots"), "none does not exist: create it first."),
    ],
)
def test_pictures_that_cannot_be_drawn(model, arguments, words):
    put(text())
    put(text(table().drop_columns(["y"])), "less.csv")
    assert words in refused("plot", model, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("data.csv", "--kind", "band", "--feature", "zzz"), "'zzz'"),
        (("less.csv",), "lacks the column 'c' that the model needs"),
    ],
)
def test_pictures_of_rows_that_do_not_fit(model, arguments, words):
    put(text())
    put(text(table().drop_columns(["c"])), "less.csv")
    assert words in refused("plot", model, *arguments)


# Places that cannot be written to


@pytest.fixture
def read_only(folder, monkeypatch):
    """A folder that denies new files, also to those who may do everything."""
    place = folder / "kept"
    place.mkdir()
    may = os.access

    def access(path, mode, **settings):
        return Path(path) != place and may(path, mode, **settings)

    if os.geteuid() == 0:
        monkeypatch.setattr(os, "access", access)
    else:
        place.chmod(0o555)
    yield "kept"
    place.chmod(0o755)


def test_a_read_only_folder(read_only, model):
    put(text())
    for arguments in (
        ("fit", "data.csv", "-t", "y", *TINY, "--out", f"{read_only}/model.btn"),
        ("fit", "data.csv", "-t", "y", *TINY, "--out", "m.btn", "--plots", f"{read_only}/plots"),
        ("predict", model, "data.csv", "--out", f"{read_only}/out.csv"),
        ("prune", model, "--out", f"{read_only}/small.btn"),
        ("plot", model, "--out", read_only),
    ):
        assert re.search("kept cannot be written to: choose another one", refused(*arguments))


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["model.btn", "new.btn"])
@pytest.mark.parametrize("command", ["fit", "prune"])
def test_a_disk_that_is_full_in_the_middle_of_a_model(fitted, monkeypatch, command, name):
    put(text())
    put(fitted, "first.btn")
    if name == "model.btn":
        put("an older model", name)
    monkeypatch.setattr(os, "fsync", full)
    before = snapshot(".")
    options = ("data.csv", "-t", "y", *TINY) if command == "fit" else ("first.btn",)
    result = run(command, *options, "--out", name)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert re.fullmatch(rf"Error: .*{name} cannot be written, the disk is full: free .*", last)
    assert snapshot(".") == before


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("out.csv", "pyarrow.csv.write_csv"),
        ("out.tsv", "pyarrow.csv.write_csv"),
        ("out.parquet", "pyarrow.parquet.write_table"),
        ("out.arrow", "pyarrow.feather.write_feather"),
    ],
)
@pytest.mark.parametrize("older", [True, False])
def test_a_disk_that_is_full_in_the_middle_of_a_table(model, monkeypatch, name, writer, older):
    put(text())
    if older:
        put("older", name)

    def write(content, place, *_, **__):
        if hasattr(place, "write"):
            place.write(b"half")
        else:
            Path(place).write_bytes(b"half")
        full()

    monkeypatch.setattr(writer, write)
    said = refused("predict", model, "data.csv", "--out", name)
    assert re.search(f"{name} cannot be written, the disk is full: free some space or choose", said)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "full", "f"), "f cannot be written, the disk is full: free some"),
        (OSError(errno.EDQUOT, "quota", "f"), "f cannot be written, the disk is full: free some"),
        (OSError(errno.EACCES, "denied", "f"), "f may not be read or written: check permissions"),
        (OSError(errno.EROFS, "read only"), "the output may not be read or written: check"),
        (OSError(errno.EIO, "Input/output error", "f"), "f: Input/output error."),
        (MemoryError(), "the memory of this machine is not enough: give fewer rows or columns."),
        (ValueError("a sentence."), "a sentence."),
        (ValueError(), "ValueError"),
    ],
)
def test_sentences_about_errors(error, said):
    assert sentence(error).startswith(said)


# Programs


NO_ROOM = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
runpy.run_module("bowtienet", run_name="__main__")
"""
"""The program on a machine that lets no file grow beyond 4096 bytes."""


def start(*arguments, program=("-m", "bowtienet")):
    environment = {name: value for name, value in os.environ.items() if name not in SWITCHES}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, *program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )


def finish(process, seconds=120):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out.decode(), err.decode()


def test_a_program_ends_with_code_2_and_one_line():
    put(text())
    code, out, err = finish(start("fit", "data.csv", "-t", "Y", "-o", "model.btn"))
    assert (code, out) == (2, "")
    assert err == "Error: data.csv has no column 'Y'; did you mean 'y'?\n"


def test_pipes_are_quiet(model):
    put(text())
    code, out, err = finish(start("fit", "data.csv", "-t", "y", "-o", "new.btn", *TINY))
    assert code == 0
    check_plain(out + err)
    assert all(line.startswith("Note: ") for line in err.splitlines())
    assert not re.search("fitting|reading|sweep 1|rows/s", out + err)
    code, out, err = finish(start("predict", model, "data.csv"))
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "mean,std,lower,upper"
    assert len(out.splitlines()) == 1 + N_ROWS


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system limits no files")
@pytest.mark.parametrize(
    ("name", "older"),
    [("model.btn", True), ("out.csv", False), ("out.parquet", True), ("out.arrow", False)],
)
def test_a_file_that_may_not_grow(folder, fitted, name, older):
    place = folder / "place"
    place.mkdir()
    put(text(table(600)))
    put(fitted, "first.btn")
    if older:
        put("older", place / name)
    before = snapshot(folder)
    if name == "model.btn":
        arguments = ("fit", "data.csv", "-t", "y", *TINY)
    else:
        arguments = ("predict", "first.btn", "data.csv")
    code, _, err = finish(start(*arguments, "--out", place / name, program=("-c", NO_ROOM)))
    assert code == 2, err
    assert re.fullmatch(
        rf"Error: .*{name} cannot be written, the disk is full: .*", err.splitlines()[-1]
    )
    assert snapshot(folder) == before


@pytest.mark.parametrize("wait", [0.0, 1.0])
def test_an_interrupted_fit_writes_nothing(folder, wait):
    put(text(table(20_000)))
    before = snapshot(folder)
    options = ("--members", "4", "--max-iter", "100000", "--hidden", "50,50", "--jobs", "1")
    process = start("fit", "data.csv", "-t", "y", "-o", "model.btn", *options)
    try:
        # The table of columns ends with the target, and is printed just before the fit begins.
        while not process.stdout.readline().startswith(b"y "):
            assert process.poll() is None, process.stderr.read()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        code, _, err = finish(process)
    finally:
        process.kill()
    assert code == 130, err
    assert err.splitlines()[-1] == "Error: interrupted: nothing more was written."
    assert "Traceback" not in err
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("arguments", "n_lines"),
    [
        (("predict", "model.btn", "data.csv"), 0),
        (("predict", "model.btn", "data.csv"), 1),
        (("inspect", "model.btn"), 0),
    ],
)
def test_a_reader_that_has_seen_enough(model, arguments, n_lines):
    put(text(table(20_000)))
    with start(*arguments) as process:
        seen = [process.stdout.readline() for _ in range(n_lines)]
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 141
    assert all(line.endswith(b"\n") for line in seen)


# Machines


def test_json_is_one_object_and_nothing_else(model):
    put(text(table(c=["u", "new", "w"] * 10)))
    for arguments in (
        ("fit", "data.csv", "-t", "y", "-o", "new.btn", *TINY),
        ("predict", model, "data.csv"),
        ("predict", model, "data.csv", "--out", "out.csv"),
        ("prune", model, "--out", "small.btn", "--rate", "0.5"),
        ("inspect", model),
        ("plot", model, "--kind", "relevance"),
    ):
        found = json.loads(accepted(*arguments, "--json").stdout)
        assert isinstance(found, dict), arguments


def test_json_has_null_where_there_is_no_number(model):
    more = {"z": [math.nan, math.inf, 1.0] * 10, "when": pa.array([None] * 30, pa.date32())}
    put(parquet(table(**more)), "data.parquet")
    result = accepted("predict", model, "data.parquet", "--with-inputs", "--json")
    columns = json.loads(result.stdout, parse_constant=pytest.fail)["columns"]
    assert columns["z"][:3] == [None, None, 1.0]
    assert columns["when"] == [None] * 30
    assert len(columns["mean"]) == N_ROWS
