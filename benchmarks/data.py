"""Tables for studies: those in the folder of the environment variable BOWTIENET_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

Floats = NDArray[np.float64]

FIVE_SETS = ("slump", "yacht", "boston", "energy", "concrete")
"""Those of the paper's table."""


def rows_of(name: str) -> tuple[Floats, Floats]:
    """Features (n, columns) and targets (n,) of a table, the target last."""
    path = Path(os.environ.get("BOWTIENET_DATA", "")) / f"{name}.csv"
    if not os.environ.get("BOWTIENET_DATA") or not path.is_file():
        raise FileNotFoundError(
            f"the table {name!r} is not here: set BOWTIENET_DATA to a folder with {name}.csv."
        )
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def split_of(name: str, split: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Training and test rows of a random split, a tenth for the test: X, X_test, y, y_test."""
    X, y = rows_of(name)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=split)
    return X_train, X_test, y_train, y_test
