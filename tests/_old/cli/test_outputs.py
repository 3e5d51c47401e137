"""What commands write: over no file unless that is asked for, and no formulas for spreadsheets."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bowtienet._old.cli.app import EXAMPLES
from bowtienet._old.cli.writing import as_text, write, write_text
from bowtienet._old.representation.written import reads_as_number
from tests._old.cli.conftest import TINY, accepted, refused

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OUTPUTS = {
    "fit --out": ("notes.txt", ("fit", "data.csv", "-t", "y", "-o", "notes.txt", *TINY)),
    "fit": ("data.btn", ("fit", "data.csv", "-t", "y", *TINY)),
    "fit --report": ("page.html", ("fit", "data.csv", "-t", "y", "--report", "page.html", *TINY)),
    "fit --plots": ("p/band.png", ("fit", "data.csv", "-t", "y", "--plots", "p", *TINY)),
    "predict --out": ("notes.csv", ("predict", "model.btn", "new.csv", "-o", "notes.csv")),
    "prune --out": ("small.btn", ("prune", "model.btn", "data.csv", "-o", "small.btn")),
    "prune": ("model-pruned.btn", ("prune", "model.btn", "data.csv")),
    "plot --out": ("p/elbo.png", ("plot", "model.btn", "--kind", "elbo", "-o", "p")),
    "plot": ("plots/elbo.svg", ("plot", "model.btn", "--format", "svg", "--kind", "elbo")),
    "report --out": ("page.html", ("report", "model.btn", "data.csv", "-o", "page.html")),
    "report": ("report.html", ("report", "model.btn", "data.csv")),
}
"""What each option writes."""


@pytest.mark.parametrize("case", OUTPUTS)
def test_no_file_is_overwritten_unless_that_is_asked_for(case, model, monkeypatch):
    """It is refused before any row is fitted or drawn, and the file stays as it was."""
    name, arguments = OUTPUTS[case]
    place = Path(name)
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    begun = []
    for work in ("fit", "prune", "predict_dist"):
        monkeypatch.setattr(f"bowtienet.BowTieRegressor.{work}", lambda *_, **__: begun.append(1))
    said = refused(*arguments)
    assert name in said
    assert "--force" in said
    assert not begun
    assert place.read_text() == "mine"
    monkeypatch.undo()


@pytest.mark.parametrize("case", ["fit --out", "predict --out", "plot --out"])
def test_force_overwrites(case, model):
    name, arguments = OUTPUTS[case]
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("mine")
    accepted(*arguments, "--force")
    assert Path(name).read_bytes() != b"mine"


def test_files_beside_the_outputs_are_nobodys_business(model):
    Path("plots").mkdir()
    Path("plots/band.png").write_text("mine")
    accepted("plot", model, "--kind", "elbo")
    assert Path("plots/band.png").read_text() == "mine"


def test_the_demo_needs_an_empty_folder(folder):
    assert "--force" in refused("demo", "--out", ".")


def test_every_option_that_names_a_file_is_covered():
    """A new output of a command must be added to `OUTPUTS`."""
    found = set()
    for command in (one.__name__ for one in EXAMPLES):
        text = accepted(command, "--help").stdout
        named = re.findall(r"(--[a-z-]+) (?:FILE|FOLDER|<path>)", text)
        found |= {f"{command} {option}" for option in named}
        assert ("--force" in text) == bool(named), command
    assert found - {"demo --out"} == {case for case in OUTPUTS if " " in case}


FORMULAS = ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\t=1", "\r=1", "=HYPERLINK(a,b)", "－1+1", "-inf"]
HARMLESS = ["a=b", "", "-5", "+1.5", "-1e5", "'=1", " x", "a@b.c", "é"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_become_text(cell):
    assert as_text(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", HARMLESS)
def test_all_else_is_left_alone(cell):
    assert as_text(cell) == cell


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_every_cell_and_name_of_a_text_file(empty_folder, ending):
    """Whatever the type of its column; no cell begins a formula, numbers are untouched."""
    cells = [*FORMULAS, *HARMLESS, None]
    n = len(cells)
    table = pa.table(
        {
            "=name": pa.array(cells),
            "large": pa.array(cells, pa.large_string()),
            "category": pa.array(cells).dictionary_encode(),
            "bytes": pa.array([None if cell is None else cell.encode() for cell in cells]),
            "-1": np.linspace(-2.0, 2.0, n),
            "whole": -np.arange(n),
        }
    )
    write(table, Path("out" + ending))
    read = {"dtype": str, "sep": "\t" if ending == ".tsv" else ",", "keep_default_na": False}
    found = pd.read_csv("out" + ending, **read, lineterminator="\n")
    assert list(found) == ["'=name", "large", "category", "bytes", "-1", "whole"]
    for name in list(found)[:4]:
        assert found[name].tolist() == [f"'{cell}" for cell in FORMULAS] + [*HARMLESS, ""]
    for cell in found.to_numpy().ravel():
        assert cell[:1] not in ("=", "@", "\t", "\r", "+", "-") or reads_as_number(cell)
    np.testing.assert_array_equal(found["-1"].astype(float), np.linspace(-2.0, 2.0, n))
    write(table, Path("raw" + ending), raw=True)
    raw = pd.read_csv("raw" + ending, **read, lineterminator="\n")
    assert next(iter(raw)) == "=name"
    assert raw["large"].tolist() == [*FORMULAS, *HARMLESS, ""]
    stream = io.BytesIO()
    write_text(table, stream, raw=True)
    assert (ending == ".tsv") or stream.getvalue() == Path("raw.csv").read_bytes()


def test_predictions_carry_no_formulas(model):
    table = pd.read_csv("new.csv").assign(**{"@who": "=cmd|' /C calc'!A0"})
    table.to_csv("evil.csv", index=False)
    begin = ("predict", model, "evil.csv", "--with-columns")
    for options, name, cell in (((), "'@who", "'=cmd"), (("--raw",), "@who", "=cmd")):
        printed = accepted(*begin, *options).stdout
        accepted(*begin, *options, "--out", "out.csv", "--force")
        for text in (printed, Path("out.csv").read_text()):
            assert f",{name}," in text
            assert f',"{cell}|' in text
    accepted(*begin, "-o", "out.parquet")
    assert pd.read_parquet("out.parquet")["@who"][0].startswith("=cmd")
