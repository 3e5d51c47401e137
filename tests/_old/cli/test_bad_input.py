"""Mistakes end with code 2 and one sentence, and leave every file as it was."""

import errno
import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import bowtienet as bt
from bowtienet._old.cli.console import printable
from bowtienet._old.cli.exits import sentence
from tests._old.cli.conftest import TINY, accepted, refused

ESCAPE = "\x1b[31mred\x1b[0m"
N_ROWS = 30


@pytest.fixture(autouse=True)
def folder(empty_folder):
    return empty_folder


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """One model of `table()`, as bytes."""
    place = tmp_path_factory.mktemp("fitted")
    pa.parquet.write_table(table(), place / "data.parquet")
    accepted("fit", place / "data.parquet", "-t", "y", "-o", place / "model.btn", *TINY)
    return (place / "model.btn").read_bytes()


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


def refused_fit(content, *options, name="data.csv", target="y"):
    """The sentence of a fit whose place holds an older model."""
    put(content, name)
    put("an older model", "model.btn")
    rest = ("--out", "model.btn", "--force", *TINY, *options)
    return refused("fit", name, "--target", target, *rest)


def accepted_fit(content, *options, name="data.csv"):
    """What becomes of the columns, by name, the rest of the answer, and what is noted."""
    put(content, name)
    result = accepted("fit", name, "-t", "y", "-o", "model.btn", "--json", *TINY, *options)
    accepted("inspect", "model.btn")
    found = json.loads(result.stdout)
    return {column["name"]: column["use"] for column in found["columns"]}, found, result.stderr


# Files that are no tables


@pytest.mark.parametrize(
    ("content", "name", "mentioned"),
    [
        ("", "data.csv", "data.csv"),
        (b"\x00\x01\xff" * 100, "data.csv", "data.csv"),
        (parquet(table())[:300], "data.parquet", "data.parquet"),
    ],
)
def test_files_that_are_no_tables(content, name, mentioned):
    assert mentioned in refused_fit(content, name=name)


def test_files_that_are_not_there():
    put(text(), "houses.csv")
    assert "houses.csv" in refused("fit", "house.csv", "-t", "y", "-o", "model.btn")
    Path("folder").mkdir()
    assert "folder" in refused("fit", "folder", "-t", "y", "-o", "model.btn")


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        (text().replace(",", "\t"), "data.tsv", ()),
        (
            text().replace(",", ";").replace(".", ","),
            "d.csv",
            ("--delimiter", ";", "--decimal", ","),
        ),
        (text().encode("utf-16"), "data.csv", ("--encoding", "utf-16")),
        (text().replace(",", ";").replace(".", ","), "d.csv", ()),
        (text().encode("utf-16"), "data.csv", ()),
    ],
)
def test_one_table_in_many_ways(fitted, content, name, options):
    accepted_fit(content, *options, name=name)
    model = bt.load("model.btn")
    del model.dialect_  # all else is the same
    model.save("model.btn")
    assert Path("model.btn").read_bytes() == fitted


# Columns


@pytest.mark.parametrize(("target", "mentioned"), [("Y", "'y'"), ("zzzzz", "'zzzzz'"), ("", "''")])
@pytest.mark.parametrize("command", ["fit", "compare"])
def test_targets_that_are_none(command, target, mentioned):
    put(text())
    out = ("--out", "model.btn") if command == "fit" else ()
    assert mentioned in refused(command, "data.csv", "--target", target, *out, *TINY)


def test_the_entry_that_makes_a_target_text_is_named():
    rows = "".join(f"{i},{i}\n" for i in range(500))
    assert "'oops'" in refused_fit(f"a,y\n{rows}1,oops\n")
    commas = "a,y\n" + "".join(f'{i},"{i},5"\n' for i in range(1, 30))
    assert "'oops'" in refused_fit(commas + "1,oops\n")
    assert "--decimal" in refused_fit(commas + "2,3.25\n")


@pytest.mark.parametrize(
    ("options", "mentioned"),
    [
        (("--target", "y"), "'y'"),
        (("--drop", "y"), "'y'"),
        (("--weight", "y"), "'y'"),
        (("--drop", "aa"), "'a'"),
        (("--weight", "weight"), "'weight'"),
        (("--weight", "a"), "sample_weight"),
        (("--drop", "a", "--drop", "b", "--drop", "c", "--drop", "none"), "feature"),
    ],
)
def test_columns_that_cannot_be_used_so(options, mentioned):
    assert mentioned in refused_fit(text(table(none=[0.0] * N_ROWS)), *options)


@pytest.mark.parametrize(
    ("content", "mentioned"),
    [
        ("a,y\n,1\n,2\n,3\n", "'a'"),
        ("a,y\n1,\n2,\n", "'y'"),
        ("a,y\n1,1\n", "2"),
        ("y\n1\n2\n3\n", "feature"),
        (text() + "1,2,u,inf\n", "'y'"),
        (text() + "inf,2,u,1\n", "'a'"),
        ("a,y\n" + "".join(f"{i},{i}\n" for i in range(300)) + "oops,1\n", "'oops'"),
    ],
)
def test_nothing_to_learn_from(content, mentioned):
    assert mentioned in refused_fit(content, "--test-size", "0")


def test_a_constant_alone_is_no_mistake():
    """The model is the mean."""
    accepted_fit("a,y\n1,1\n1,2\n1,3\n", "--test-size", "0")


# Settings


@pytest.mark.parametrize(
    ("options", "mentioned"),
    [
        (("--coverage", "1"), "--coverage"),
        (("--test-size", "1"), "--test-size"),
        (("--test-size", "0.99"), "--test-size"),
        (("--hidden", "abc"), "--hidden"),
        (("--hidden", "-5"), "--hidden"),
        (("--seed", str(2**40)), str(2**40)),
        (("--prior", "horse"), "prior"),
        (("--weighting", "best"), "weighting"),
        (("--jobs", "0"), "--jobs"),
        (("--out", "none/model.btn"), "none"),
        (("--out", "."), "folder"),
        (("--out", "../{folder}/data.csv"), "data.csv"),
        (("--plots", "data.csv"), "data.csv"),
        (("--report", "page.pdf"), "page.pdf"),
        (("--no-such-option",), "--no-such-option"),
        (("--members", "0"), "--members"),
    ],
)
def test_settings_that_are_none(folder, options, mentioned):
    options = [option.format(folder=folder.name) for option in options]
    assert mentioned in refused_fit(text(), *options)


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (("fit", "data.csv"), "--target"),
        (("compare", "data.csv", "-t", "y", "--splits", "0"), "--splits"),
        (("compare", "data.csv", "-t", "y", "--test-size", "1"), "--test-size"),
        (("compare", "data.csv", "-t", "y", "-t", "a"), "--target"),
        (("plot", "model.btn", "--kind", "pie"), "--kind"),
        (("prune", "model.btn", "data.csv", "--tolerance", "-1"), "--tolerance"),
        (("fitt", "data.csv"), "fitt"),
    ],
)
def test_commands_that_cannot_be_parsed(arguments, mentioned):
    put(text())
    assert mentioned in refused(*arguments)


# What is no mistake


def test_rows_without_a_target_are_left_out():
    _, found, _ = accepted_fit(text(table(y=[1.0, None, 2.5] * 10)))
    assert found["rows"] == {"fitted": 18, "held_out": 2}
    assert "10 without a target: left out" in [one["what"] for one in found["decisions"]]


def test_names_are_text_and_never_commands():
    names = (ESCAPE, "[red]x[/red]", "[/]", ":smile:", "bell\x07", "back\x08", "\u202eright")
    put(text(table(**{name: np.arange(N_ROWS) % 7 for name in names})))
    printed = accepted("fit", "data.csv", "-t", "y", "-o", "model.btn", *TINY).stdout
    assert all(printable(name) in printed for name in names)
    assert r"\x1b[31mred\x1b[0m" in printed
    shown = accepted("inspect", "model.btn").stdout
    assert all(printable(name) in shown for name in names)
    found = json.loads(accepted("inspect", "model.btn", "--json").stdout)
    assert set(names) < {column["name"] for column in found["columns"]}


def test_errors_and_notes_hold_no_escapes(model):
    put("".join(f"{line},\n" for line in text().splitlines()), f"{ESCAPE}.csv")
    assert printable(ESCAPE) in accepted("predict", model, f"{ESCAPE}.csv").stderr
    assert printable(ESCAPE) in refused("inspect", f"{ESCAPE}.btn")
    assert printable(ESCAPE) in refused_fit(text(), target=ESCAPE)
    assert printable(ESCAPE) in refused_fit(f"{ESCAPE},{ESCAPE},y\n1,2,3\n")


# Models and their tables


@pytest.mark.parametrize(
    ("content", "mentioned"),
    [
        ("a,c\n1,u\n", "'b'"),
        ("A,b,c\n1,2,u\n", "'A'"),
        ("a,b,c\n1,oops,u\n", "'oops'"),
        ("a,b,c\n1,inf,u\n", "'b'"),
    ],
)
def test_tables_that_cannot_be_predicted(model, content, mentioned):
    put(content)
    put("older", "out.csv")
    assert mentioned in refused("predict", model, "data.csv")
    assert mentioned in refused("predict", model, "data.csv", "--out", "out.csv", "--force")


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (("predict", "data.csv", "--out", "out.txt"), "out.txt"),
        (("predict", "data.csv", "--out", "data.csv"), "data.csv"),
        (("predict", "data.csv", "--out", "none/out.csv"), "none"),
        (("predict", "mean.csv", "--with-columns"), "'mean'"),
        (("predict", "lists.parquet", "--with-columns"), "list"),
        (("predict", "lists.parquet", "--with-columns", "--out", "out.csv"), "list"),
        (("prune", "less.csv"), "'y'"),
        (("prune", "other.csv"), "'c'"),
        (("prune", "data.csv", "--out", "model.btn"), "model.btn"),
        (("plot", "--kind", "pit"), "pit"),
        (("plot", "less.csv"), "'y'"),
        (("plot", "other.csv"), "'c'"),
        (("plot", "--out", "data.csv"), "data.csv"),
        (("plot", "--out", "none/plots"), "none"),
        (("plot", "data.csv", "--kind", "band", "--feature", "zzz"), "'zzz'"),
        (("report", "less.csv"), "'y'"),
        (("report", "data.csv", "--out", "page.pdf"), "page.pdf"),
    ],
)
def test_commands_on_a_model_that_cannot_be_done(model, arguments, mentioned):
    put(text())
    put(text(table(mean=np.arange(N_ROWS))), "mean.csv")
    put(parquet(table(z=[[1, 2]] * N_ROWS)), "lists.parquet")
    put(text(table().drop_columns(["y"])), "less.csv")
    put(text(table().drop_columns(["c"])), "other.csv")
    command, *options = arguments
    assert mentioned in refused(command, model, *options)


def test_files_that_are_no_models(fitted):
    put(text())
    flipped = fitted[:-1] + bytes([fitted[-1] ^ 1])
    for number, content in enumerate((fitted[:2000], flipped, b"", text())):
        name = put(content, f"bad{number}.btn")
        assert refused("predict", name, "data.csv").startswith(f"{name} ")
    for command in (["prune"], ["plot"], ["inspect"]):
        rows = ["data.csv"] if command == ["prune"] else []
        assert refused(*command, "absent.btn", *rows).startswith("absent.btn ")


def test_sentences_about_errors():
    assert "file" in sentence(OSError(errno.EACCES, "denied", "file"))
    assert "memory" in sentence(MemoryError())
    assert sentence(MemoryError("a fit needs 8 EB")) == "a fit needs 8 EB"
    assert "ValueError" in sentence(ValueError())


# Machines


def test_json_is_one_object_and_nothing_else(model):
    more = {"z": [math.nan, math.inf, 1.0] * 10, "when": pa.array([None] * 30, pa.date32())}
    put(text(table(c=["u", "new", "w"] * 10)))
    put(parquet(table(**more)), "data.parquet")
    for arguments in (
        ("fit", "data.csv", "-t", "y", "-o", "new.btn", *TINY),
        ("predict", model, "data.csv", "--out", "out.csv"),
        ("prune", model, "data.csv", "--out", "small.btn"),
        ("inspect", model),
        ("plot", model, "--kind", "relevance"),
        ("predict", model, "data.parquet", "--with-columns"),
    ):
        printed = accepted(*arguments, "--json").stdout
        found = json.loads(printed, parse_constant=pytest.fail)
        assert isinstance(found, dict), arguments
    assert found["columns"]["z"][:3] == [None, None, 1.0]
    assert found["columns"]["when"] == [None] * N_ROWS
