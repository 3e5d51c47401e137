"""The public names work for a user while the library behind them is rebuilt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bowtienet
from bowtienet import BowTieClassifier, BowTieRegressor, load


def rows(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(-2.0, 2.0, size=(n_rows, 2))
    return X, np.sin(2.0 * X[:, 0]) + rng.normal(0.0, 0.1, size=n_rows)


def test_numbers_and_files(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = rows(rng, 200)
    model = BowTieRegressor((20,), effort="fast", random_state=0).fit(X, y)
    X_new, y_new = rows(rng, 100)
    mean, std = model.predict(X_new, return_std=True)
    assert np.sqrt(np.mean((mean - y_new) ** 2)) < 0.2
    assert np.all((std > 0.05) & (std < 0.4))
    model.save(tmp_path / "model.btn")
    np.testing.assert_array_equal(load(tmp_path / "model.btn").predict(X_new), mean)


def test_classes(rng: np.random.Generator) -> None:
    X, y = rows(rng, 150)
    model = BowTieClassifier((10,), effort="fast", random_state=0).fit(X, y > 0.0)
    assert model.score(X, y > 0.0) > 0.9


def test_a_command(rng: np.random.Generator, tmp_path: Path) -> None:
    X, y = rows(rng, 60)
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,y", comments="")
    said = subprocess.run(
        [sys.executable, "-m", "bowtienet", "check", "rows.csv", "--target", "y"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert "60" in said.stdout


@pytest.mark.parametrize("name", bowtienet.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(bowtienet, name) is not None
