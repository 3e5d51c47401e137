"""Data sets of the experiments by name, with the same rows in the same order on every machine.

A published table is looked for in the folder that the environment variable BOWTIENET_DATA names
(``slump.csv``, ...: a line of names, then numbers, the target last) and then on OpenML, whose
answers scikit-learn keeps. Its values must be those of ``sets.toml``.
"""

from __future__ import annotations

import decimal
import hashlib
import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml, load_diabetes

from bowtienet._old.data.toy import simulate_toy

FOLDER = "BOWTIENET_DATA"
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "sets.toml").read_text(encoding="utf-8")
)
SETS = (*PUBLISHED, "diabetes", "toy")
"""Names that `load_set` knows."""


@cache
def load_set(name: str) -> pd.DataFrame:
    """A data set as a frame of float64 columns, the target last; FileNotFoundError if it is absent.

    "diabetes" comes with scikit-learn and "toy" is simulated.
    """
    if name == "diabetes":
        found = load_diabetes(scaled=False, as_frame=True)
        return found.frame.rename(columns={"target": "progression"}).astype(float)
    if name == "toy":
        features, targets = simulate_toy(300, np.random.default_rng(0))
        return pd.DataFrame(np.column_stack([features, targets]), columns=["x1", "x2", "y"])
    return _published(name, PUBLISHED[name])


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, columns) and targets (n,) of a data set."""
    table = load_set(name).to_numpy()
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()


def checksum(table: np.ndarray) -> str:
    """SHA-256 of the values, row by row, as little-endian float64; 0 and -0 are the same."""
    return hashlib.sha256((table + 0.0).astype("<f8").tobytes(order="C")).hexdigest()


def rounded(values: np.ndarray, decimals: int) -> np.ndarray:
    """Values with so many decimals; halves go away from zero, as in spreadsheets.

    The shortest text of a float is what is rounded, so 0.285 gives 0.29, although the float is a
    little less; readers of numbers that miss the last bit then give the same value, too.
    """
    step, rule = decimal.Decimal(1).scaleb(-decimals), decimal.ROUND_HALF_UP
    return np.array([float(decimal.Decimal(repr(v)).quantize(step, rule)) for v in values.tolist()])


def _published(name: str, known: dict[str, Any]) -> pd.DataFrame:
    path = Path(os.environ.get(FOLDER, "")) / f"{name}.csv"
    if os.environ.get(FOLDER) and path.is_file():
        frame = pd.read_csv(path, float_precision="round_trip")
    elif "openml" in known:
        frame = _from_openml(name, known)
    else:
        raise FileNotFoundError(f"the data set {name!r} is not here: {_remedy(name, known)}")
    if frame.shape[1] == len(known["names"]):
        columns = zip(frame.to_numpy(dtype=float).T, known["decimals"], strict=True)
        table = np.column_stack([rounded(column, decimals) for column, decimals in columns])
        if checksum(table) == known["checksum"]:
            return pd.DataFrame(table, columns=known["names"])
    raise ValueError(
        f"{name!r} holds other values or another order of rows than the published table, so "
        f"results would not be comparable: {_remedy(name, known)}"
    )


def _from_openml(name: str, known: dict[str, Any]) -> pd.DataFrame:
    """The table of OpenML with our columns in our order."""
    try:
        frame = fetch_openml(**known["openml"], target_column=None, as_frame=True).frame
    except OSError as error:
        raise FileNotFoundError(
            f"the data set {name!r} is not here and OpenML did not give it ({error}): "
            f"{_remedy(name, known)}"
        ) from error
    starts = known.get("aliases", ())
    chosen = [next(c for c in frame if c.lower().startswith(start)) for start in starts]
    # Columns that OpenML takes for classes are numbers, too.
    return (frame[chosen] if chosen else frame).apply(pd.to_numeric)


def _remedy(name: str, known: dict[str, Any]) -> str:
    return (
        f"save the table of {known['page']} as {name}.csv with the columns "
        f"{', '.join(known['names'])} and its rows in their order, and set {FOLDER} to its folder."
    )
