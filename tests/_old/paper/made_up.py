"""Records that were never run, for tests of tables and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks._old.paper.records import DONE, Record
from bowtienet._old.evaluation import LEVELS

SCORES = {
    "rmse": 1.0,
    "nll": 1.0,
    "crps": 0.5,
    "coverage": 0.95,
    "gaussian_nll": 1.0,
    "gaussian_coverage": 0.95,
    "interval_width": 4.0,
}


def made_up(
    dataset: str = "slump", method: str = "single", seed: int = 0, **changes: Any
) -> Record:
    """A record; keywords that name a score change it."""
    scores = {name: changes.pop(name, value) for name, value in SCORES.items()}
    record: Record = {
        "kind": "record",
        "experiment": "uci",
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "hidden": [50],
        "members": 1,
        "settings": {},
        "status": DONE,
        "scores": scores,
        "curve": list(LEVELS),
        "seconds": 2.0,
        "wall_seconds": 2.0,
        "predict_seconds": 0.1,
        "n_train": 90,
        "n_test": 10,
        "note": None,
        "run": "made-up",
    }
    if changes.get("status", DONE) != DONE:
        nothing = dict.fromkeys(("seconds", "wall_seconds", "predict_seconds"), math.nan)
        record |= {"scores": {}, "curve": [], **nothing}
    return record | changes


def splits(values: Sequence[float], score: str = "rmse", **changes: Any) -> list[Record]:
    """One record for each value of a score."""
    return [made_up(seed=seed, **{score: value, **changes}) for seed, value in enumerate(values)]


def table(text: str, after: str = "") -> dict[str, list[str]]:
    """Rows of the first table after some text, by their first cell."""
    lines = text[text.index(after) :].splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("|"))
    rows: dict[str, list[str]] = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
        rows[first] = rest
    return rows
