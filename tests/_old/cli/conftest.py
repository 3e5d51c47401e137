"""A small table with texts, dates and missing values, in a folder that commands run in."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

TINY = ["--members", "1", "--weighting", "equal", "--max-iter", "5", "--hidden", "5", "--jobs", "1"]
"""A fit of a fraction of a second."""
SWITCHES = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "BOWTIENET_DEBUG")
"""Variables of the environment that change what is printed."""


def write_rows(path: Path, n_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x1", "x2", "colour", "when", "same", "y"])
        for row in range(n_rows):
            x1, x2 = rng.uniform(-2.0, 2.0, size=2).round(3)
            colour = ("red", "green", "blue")[rng.integers(3)]
            y = round(np.sin(2.0 * x1) + (colour == "red") + rng.normal(0.0, 0.1), 4)
            second = "" if rng.random() < 0.1 else x2
            writer.writerow([x1, second, colour, f"2024-03-{1 + row % 28:02d}", 1, y])


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    """The working folder, with data.csv (60 rows) and new.csv (10 rows)."""
    write_rows(empty_folder / "data.csv", 60, seed=1)
    write_rows(empty_folder / "new.csv", 10, seed=2)
    return empty_folder


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of one model file."""
    place = tmp_path_factory.mktemp("fitted")
    write_rows(place / "data.csv", 60, seed=1)
    accepted("fit", place / "data.csv", "-t", "y", "-o", place / "model.btn", *TINY)
    return (place / "model.btn").read_bytes()


@pytest.fixture
def model(folder: Path, fitted: bytes) -> str:
    """A model file in the folder, of data.csv."""
    (folder / "model.btn").write_bytes(fitted)
    return "model.btn"


def run(*arguments: object) -> Result:
    from bowtienet._old.cli.app import app

    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def accepted(*arguments: object) -> Result:
    """A command that must end well, and print nothing that a terminal would obey."""
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    printed = result.stdout + result.stderr
    assert all(character.isprintable() or character == "\n" for character in printed), printed
    assert all(line.startswith("Note: ") for line in result.stderr.splitlines())
    return result


def refused(*arguments: object) -> str:
    """The sentence of a command that must do nothing but say it."""
    before = snapshot(".")
    result = run(*arguments)
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr, result.exception)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: "), result.stderr
    assert last.isprintable()
    assert snapshot(".") == before
    return last.removeprefix("Error: ")


def snapshot(folder: str | Path) -> dict[str, bytes | None]:
    """Every file and folder, hidden ones too, and what files hold."""
    found = sorted(Path(folder).rglob("*"))
    return {str(place): place.read_bytes() if place.is_file() else None for place in found}
