"""A small table with texts, dates and missing values, in a folder that commands run in."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

TINY = ["--members", "1", "--combine", "equal", "--max-iter", "5", "--hidden", "5", "--jobs", "1"]
"""A fit of a fraction of a second."""


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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with data.csv (60 rows) and new.csv (10 rows)."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "data.csv", 60, seed=1)
    write_rows(tmp_path / "new.csv", 10, seed=2)
    return tmp_path


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run a command; anything but a planned end is an error of the test."""
    from bowtienet.cli.app import app

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), catch_exceptions=False)

    return call
