"""Records that were never run, for tests of tables and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bowtienet.evaluation.metrics import LEVELS
from bowtienet.experiments.records import DONE, Record


def made_up(
    dataset: str = "slump", method: str = "single", seed: int = 0, **changes: Any
) -> Record:
    """A record; keywords that are no field of it are scores."""
    named = {name: changes.pop(name) for name in list(changes) if name in Record.__annotations__}
    scores = {
        "rmse": 1.0,
        "nll": 1.0,
        "crps": 0.5,
        "coverage": 0.95,
        "gaussian_nll": 1.0,
        "gaussian_coverage": 0.95,
        "interval_width": 4.0,
    }
    fields: dict[str, Any] = {
        "experiment": "uci",
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "hidden": (50,),
        "members": 1,
        "settings": {},
        "status": DONE,
        "scores": scores | changes,
        "curve": tuple(np.asarray(LEVELS).tolist()),
        "seconds": 2.0,
        "wall_seconds": 2.0,
        "predict_seconds": 0.1,
        "n_train": 90,
        "n_test": 10,
        "note": None,
        "run": "made-up",
    }
    if named.get("status", DONE) != DONE:
        nothing = dict.fromkeys(("seconds", "wall_seconds", "predict_seconds"), math.nan)
        fields |= {"scores": {}, "curve": (), **nothing}
    return Record(**(fields | named))


def splits(values: Sequence[float], score: str = "rmse", **changes: Any) -> list[Record]:
    """One record for each value of a score."""
    return [made_up(seed=seed, **{score: value, **changes}) for seed, value in enumerate(values)]
