"""Cases of the command line: random files and options, an exit code and one sentence."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from bowtienet._old.cli.app import app
from tests._old.fuzz.attempts import Failure, place_of, require
from tests._old.fuzz.fits import TASKS, Note
from tests._old.fuzz.settings import pick
from tests._old.fuzz.tables import Table, draw_table

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet would compute."""
TINY = ("--hidden", "3", "--effort", "fast", "--jobs", "1", "--max-iter", "3")


def command(note: Note, *arguments: object) -> int:
    """The exit code, which is 0 or 2, of a command that says one sentence if it refuses."""
    texts = [str(argument) for argument in arguments]
    note(f"bowtienet {' '.join(map(repr, texts))}")
    before = snapshot()
    result = CliRunner().invoke(app, texts)
    name = texts[0]
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        place = place_of(result.exception)
        raise Failure(f"{name} raises {place}", str(result.exception)) from result.exception
    require(result.exit_code in (0, 2), f"{name} ends with another code", result.exit_code)
    require("Traceback" not in result.stderr, f"{name} shows a traceback", result.stderr)
    lines = result.stderr.splitlines()
    if result.exit_code == 2:
        ok = lines and lines[-1].startswith("Error: ") and lines[-1].isprintable()
        require(ok, f"{name} refuses without a sentence", result.stderr)
        require(snapshot() == before, f"{name} refuses, but changes files", sorted(snapshot()))
    else:
        told = [line for line in lines if not line.startswith("Note: ")]
        require(not told, f"{name} says something that is no note", result.stderr)
    printed = result.stdout + result.stderr
    odd = [c for c in printed if not c.isprintable() and c not in "\n"]
    require(not odd or name == "predict", f"{name} prints what a terminal obeys", odd)
    left = [place for place in snapshot() if Path(place).name.startswith(".")]
    require(not left, f"{name} leaves temporary files", left)
    return int(result.exit_code)


def snapshot() -> dict[str, bytes | None]:
    """Every file of the working folder with its content."""
    found = sorted(Path().rglob("*"))
    return {str(place): place.read_bytes() if place.is_file() else None for place in found}


def _text_of(rng: np.random.Generator, frame: pd.DataFrame) -> bytes:
    """The frame as CSV, now and then as a program that does not know the rules would write it."""
    text = frame.to_csv(index=False)
    data = text.encode("utf-8", "surrogateescape")
    if rng.random() < 0.75:
        return data
    at = int(rng.integers(len(data)))
    return pick(
        rng,
        data[:at],
        data[:at] + rng.bytes(5) + data[at:],
        data.replace(b",", b";"),
        data.replace(b"\n", b"\r\n"),
        data.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + data,
        text.encode("utf-16"),
        text.encode("latin-1", "replace"),
        data.replace(b",", b"", 1),
        data + b"1,2,3,4,5,6,7,8,9\n",
        data.replace(b"\n", b"\n\n"),
        b"",
        b"\n",
        data.split(b"\n", 1)[0],
        data + b'"',
        rng.bytes(200),
    )


def _frame_of(table: Table) -> pd.DataFrame | None:
    """One frame with the target, or None if there is none."""
    target = table.target
    if target is None or np.ndim(target) != 1 or len(target) != len(table.frame):
        return None
    if table.frame.columns.has_duplicates or not all(map(_is_text, table.frame.columns)):
        return None
    frame = table.frame.copy()
    frame["the target"] = np.asarray(target) if not isinstance(target, list) else target
    return frame


def _is_text(name: Any) -> bool:
    return isinstance(name, str)


def fuzz_command(rng: np.random.Generator, folder: Path, note: Note) -> str:
    """`fit` of a random file; then what can be done with its model."""
    os.chdir(folder)
    task = pick(rng, *TASKS)
    table = draw_table(rng, task)
    frame = _frame_of(table)
    if frame is None:
        return "no frame"
    note(table.words)
    data = _text_of(rng, frame)
    Path("data.csv").write_bytes(data)
    asked = pick(rng, (), ("--task", task))
    options = pick(rng, (), (), ("--json",), ("--test-size", "0"), ("--report", "page.html"))
    exists = rng.random() < 0.15
    if exists:
        Path("model.btn").write_text("notes of a year")
    code = command(
        note, "fit", "data.csv", "-t", "the target", "-o", "model.btn", *TINY, *asked, *options
    )
    require(code == 2 or not exists, "fit overwrites a file that it was not told to")
    if code == 2:
        require(
            not table.tame or exists or data != frame.to_csv(index=False).encode(),
            "a tame table is refused by fit",
        )
        return "refused"
    Path("new.csv").write_bytes(_text_of(rng, frame))
    _use(rng, note, frame)
    return "fitted"


def _use(rng: np.random.Generator, note: Note, frame: pd.DataFrame) -> None:
    """Predict, inspect, report, plot or prune."""
    if command(note, "inspect", "model.btn") != 0:
        raise Failure("inspect refuses a model that fit wrote")
    name = pick(rng, "predict", "predict", "predict", "report", "plot", "prune", "inspect")
    if name == "predict":
        columns = pick(rng, (), ("--with-columns",))
        code = command(note, name, "model.btn", "new.csv", "-o", "out.csv", *columns)
        if code == 0:
            _check_cells(Path("out.csv").read_text(encoding="utf-8"))
            code = command(note, name, "model.btn", "new.csv", "-o", "out.csv")
            require(code == 2, "predict overwrites a file that it was not told to")
    elif name == "report":
        command(note, name, "model.btn", "new.csv", "-o", "page2.html")
    elif name == "plot":
        kind = pick(rng, "network", "elbo", "relevance", "calibration", "band", "nonsense")
        command(note, name, "model.btn", "new.csv", "--kind", kind, "-o", "plot.png")
    elif name == "prune":
        command(note, name, "model.btn", "new.csv", "-o", "small.btn")
    else:
        command(note, name, "model.btn", "new.csv", "--json")


def _check_cells(text: str) -> None:
    """No cell would be computed by a spreadsheet."""
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            if cell.startswith(FORMULA) and not _is_number(cell):
                raise Failure("a cell of a CSV is a formula", repr(cell))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
